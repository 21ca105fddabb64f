"""``--class-map`` on every command that reads inputs."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.errors import InputError
from detap.testing import assert_detections
from tests.cli.conftest import Run as Command
from tests.coco import results_of, truth_of

pytestmark = pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")

BOXES = [[0, 0, 20, 20], [40, 0, 20, 20], [80, 0, 20, 20], [120, 0, 20, 20]]
TRUTH = [(1, 1, BOXES[0]), (1, 2, BOXES[1]), (2, 3, BOXES[2]), (2, 4, BOXES[3])]
NAMES = {1: "car", 2: "truck", 3: "person", 4: "chair"}
FOUND = [(1, 1, BOXES[0]), (1, 1, BOXES[1]), (2, 3, BOXES[2])]
"""The truck is taken for a car, and the chair is not found."""
MAP = 'truck = "car"\nchair = "-"\n'
EFFECT = "class map: 1 class to car, 1 dropped (2 ground truths, 0 detections)"


def write(name: str, content: Any) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    Path(name).write_text(text)


class Run:
    """Commands on files in the working folder."""

    def __init__(self, detap: Command) -> None:
        self.detap = detap

    def __call__(self, command: str, *more: str, status: int = 0) -> str:
        """Run a command and return its output."""
        ended = self.detap(*command.split(), *more)
        assert ended.status == status, ended.err
        return ended.out + ended.err

    def report(self, command: str, *more: str) -> Any:
        return json.loads(self(f"{command} --output-format json -q", *more))


@pytest.fixture
def run(cwd: Path, detap: Command) -> Run:
    write("gt.json", truth_of(TRUTH, NAMES, (1, 2)))
    write("dt.json", results_of(FOUND))
    write("map.toml", MAP)
    return Run(detap)


def test_eval(run: Run) -> None:
    """By hand: both cars and the person are found; without the map, AP is (1 + 0 + 1 + 0) / 4."""
    plain = run.report("eval gt.json dt.json --metrics AP50")
    record = run.report("eval gt.json dt.json --metrics AP50 --class-map map.toml")
    assert (plain["summary"]["AP50"], record["summary"]["AP50"]) == pytest.approx((0.5, 1.0))
    assert [(c["name"], c["id"], c["ground_truths"]) for c in record["classes"]] == [
        ("car", 1, 2),
        ("person", 2, 1),
    ]
    assert [note["message"] for note in record["notes"] if note["code"] == "class-map"] == [EFFECT]
    assert re.search(r"\|class-map:[0-9a-f]{8}\|detap:", record["signature"])
    reading = {"class_map": '{"chair":"-","truck":"car"}'}
    assert [entry["reading"] for entry in record["inputs"]] == [reading, reading]
    assert f"info: {EFFECT} [class-map]" in run("eval gt.json dt.json --class-map map.toml")


def test_python_is_the_command_line(run: Run) -> None:
    record = run.report("eval gt.json dt.json --class-map map.toml")
    for given in ("map.toml", {"truck": "car", "chair": "-"}):
        result = detap.evaluate("gt.json", "dt.json", class_map=given)
        assert result.signature == record["signature"]
    truth = detap.read_ground_truth("gt.json")
    detections = detap.read_detections("dt.json", truth)
    by_tables = detap.evaluate(truth, detections, class_map=Path("map.toml"))
    assert by_tables.signature == record["signature"]
    assert by_tables.to_dict()["summary"] == record["summary"]
    limit: dict[str, Any] = {"fail_under": {"AP50": 1.0}, "class_map": "map.toml"}
    assert_detections("gt.json", "dt.json", **limit, baseline=detections, max_drop=0)
    with pytest.raises(AssertionError):
        assert_detections("gt.json", "dt.json", fail_under={"AP50": 1.0})


@pytest.mark.parametrize(
    "command",
    [
        "eval gt.json dt.json --cross-check --analysis",
        "eval gt.json dt.json --baseline-detections dt.json --max-drop 0",
        "compare dt.json other.json --gt gt.json --resamples 10",
        "check gt.json dt.json",
        "show 1 gt.json dt.json",
        "explain --gt gt.json --dt dt.json --from coco --to voc2012",
    ],
)
def test_every_command_sees_mapped_classes(run: Run, command: str) -> None:
    pytest.importorskip("pycocotools")
    write("other.json", results_of(FOUND[:2]))
    text = run(f"{command} --class-map map.toml")
    assert EFFECT in text
    report = json.dumps(run.report(f"{command} --class-map map.toml"))
    assert "truck" not in re.sub(r'class_map": ?".*?[^\\]"', "", report).replace(EFFECT, "")


def test_agreement_of_annotators_after_the_map(run: Run) -> None:
    other = [(image, 1 if label == 2 else label, box) for image, label, box in TRUTH]
    write("second.json", truth_of(other, NAMES, (1, 2)))
    command = "compare --agreement gt.json second.json --output-format json -q"
    kappas = [json.loads(run(command, *m))["summary"] for m in ([], ["--class-map", "map.toml"])]
    assert [one["kappa of matched"] for one in kappas] == pytest.approx([2 / 3, 1.0])


def test_settings_and_paths_of_reports(run: Run) -> None:
    write("detap.toml", 'class-map = "map.toml"\n')
    assert "|class-map:" in run("eval gt.json dt.json")
    text = run("eval gt.json dt.json -o json=map.toml", status=2)
    assert "map.toml" in text
    assert Path("map.toml").read_text() == MAP
    assert "no such file" in run("eval gt.json dt.json --class-map none.toml", status=2).lower()


def test_reports_of_different_maps_are_not_compared(run: Run) -> None:
    run("eval gt.json dt.json -q -o plain.json")
    gate = "eval gt.json dt.json --baseline plain.json --max-drop 0 --class-map map.toml"
    text = run(gate, status=2)
    assert re.search(
        r"reading: --class-map \(baseline: not given; current: sha256 [0-9a-f]{8}\)", text
    )
    run(f"{gate} --allow-mismatch")
    run("eval gt.json dt.json -q --class-map map.toml -o mapped.json")
    write("same.json", '{"chair": "-", "truck": "car"}')
    run("eval gt.json dt.json --baseline mapped.json --max-drop 0 --class-map same.json")
    # explain repeats the map of a report: AP is 0.5 without it and 1 with it, as by hand.
    for more in ([], ["--class-map", "map.toml"]):
        record = run.report("explain plain.json mapped.json --gt gt.json --dt dt.json", *more)
        assert [(c["name"], c["change"]) for c in record["contributions"]] == [("reading", 0.5)]


def test_convert_writes_the_mapped_classes(run: Run) -> None:
    assert EFFECT in run("convert gt.json dt.json --class-map map.toml --to coco -o new")
    written = json.loads(Path("new/instances.json").read_text())
    assert [c["name"] for c in written["categories"]] == ["car", "person"]
    assert [a["category_id"] for a in written["annotations"]] == [1, 1, 2]
    truth = detap.read_ground_truth("gt.json")
    detections = detap.read_detections("dt.json", truth)
    rules = {"truck": "car", "chair": "-"}
    done = detap.convert("python", truth, detections, to="coco", class_map=rules)
    assert [note.message for note in done.notes if note.code == "class-map"] == [EFFECT]
    for name in done.files:
        assert Path("python", name).read_bytes() == Path("new", name).read_bytes()
    with pytest.raises(InputError, match="class 'truk' is not in the inputs; did you mean 'truck'"):
        detap.convert("none", truth, to="coco", class_map={"truk": "car"})
    assert not Path("none").exists()
    text = run("convert --gt gt.json --class-map map.toml --to coco -o gt-only.json")
    assert "(2 ground truths) [class-map]" in text
    assert run.report("eval new/instances.json new/results.json")["summary"]["AP"] == 1


# --- detectors with other classes


def test_results_with_categories_of_their_own(run: Run) -> None:
    """Ids are other classes' in the ground truth, and names decide: the map makes them known."""
    own = [{"id": 1, "name": "human"}, {"id": 3, "name": "lorry"}, {"id": 8, "name": "moped"}]
    rows = [(1, 3, BOXES[1]), (2, 1, BOXES[2]), (2, 8, BOXES[3])]
    write("own.json", {"annotations": results_of(rows), "categories": own})
    assert "expected" in run("eval gt.json own.json", status=2)
    write("own.toml", '[dt]\nhuman = "person"\nlorry = "truck"\n')
    record = run.report("eval gt.json own.json --metrics AP50 --class-map own.toml")
    assert record["summary"]["AP50"] == pytest.approx(0.5)
    messages = {note["code"]: note["message"] for note in record["notes"]}
    assert messages["unknown-categories"] == (
        "categories not in the ground truth ('moped'); detections ignored"
    )
    assert {note["code"]: note["count"] for note in record["notes"]}["unknown-categories"] == 1


def test_results_with_class_names_as_ids(run: Run) -> None:
    names = {1: "Car", 3: "human"}
    rows = [{**row, "category_id": names[row["category_id"]]} for row in results_of(FOUND)]
    write("named.json", rows)
    text = run("eval gt.json named.json", status=2)
    assert "'Car', 'human' (2 of 2 names) are not class names of the ground truth" in text
    line = 'dt = { "Car" = "car" }'
    assert f"pass --class-map FILE with the line {line}" in text
    write("line.toml", line)
    record = run.report("eval gt.json named.json --metrics AP50 --class-map line.toml")
    assert [c["AP50"] for c in record["classes"]] == pytest.approx([1, 0, 0, 0])
    write("both.toml", '[dt]\nCar = "car"\nhuman = "person"\n')
    record = run.report("eval gt.json named.json --metrics AP50 --class-map both.toml")
    assert [c["AP50"] for c in record["classes"]] == pytest.approx([1, 0, 1, 0])


def test_a_class_of_one_of_several_detectors(run: Run) -> None:
    own = {"annotations": results_of([(1, 7, BOXES[1])]), "categories": [{"id": 7, "name": "van"}]}
    write("own.json", own)
    write("one.json", results_of(FOUND[:1]))
    write("map.toml", MAP + '[dt]\nvan = "car"\n')
    command = "compare dt.json one.json own.json --gt gt.json --class-map map.toml --resamples 0"
    assert "|class-map:" in run(f"{command} --metric AP50")
    write("map.toml", MAP + '[dt]\nwan = "car"\nvan = "car"\n')
    text = run(command, status=2)
    assert "map.toml: [dt]: class 'wan' is not in the detections; did you mean 'van'?" in text


def test_ids_that_the_map_names_are_not_shifted(run: Run) -> None:
    """Two files of one detector whose ids are 100 higher; an id off by one is still an error."""
    write("ids.toml", '[dt]\n101 = "car"\n103 = "person"\n')
    for name, row in {"a.json": (1, 101, BOXES[0]), "b.json": (2, 103, BOXES[2])}.items():
        write(name, results_of([row]))
    files = "--gt gt.json --dt a.json --dt b.json"
    record = run.report(f"eval {files} --metrics AP50 --class-map ids.toml")
    assert [c["AP50"] for c in record["classes"]] == pytest.approx([1, 0, 1, 0])
    rows = [(1, 1 + k % 3, [40 * k, 0, 20, 20]) for k in range(12)]
    write("many.json", truth_of(rows, NAMES, (1, 2)))
    write("off.json", results_of([(image, label + 1, box) for image, label, box in rows]))
    text = run("eval many.json off.json --class-map map.toml", status=2)
    assert "every category_id looks off by +1 (e.g. 2 overlaps class 1)" in text


def named_truth(labels: list[str]) -> dict[str, Any]:
    boxes = np.array(BOXES, float)[: len(labels)]
    return {"image": ["a"] * len(labels), "label": labels, "boxes": boxes, "box_format": "xywh"}


def test_names_that_differ_in_case_have_the_line_to_add(run: Run) -> None:
    truth = detap.GroundTruth.from_arrays(**named_truth(["car", "traffic light"]))
    labels = ["Car", "TrafficLight"]
    detections = detap.Detections.from_arrays(**named_truth(labels), score=[0.5, 0.4])
    detap.convert("g", truth, to="createml")
    detap.convert("d", detections=detections, to="createml")
    command = "eval g/annotations.json d/detections.json"
    text = run(command, status=2)
    match = re.search(r"no class in common .*--class-map FILE with the line (dt = \{.*\})", text)
    assert match
    write("line.toml", match[1])
    record = run.report(f"{command} --class-map line.toml --metrics AP50")
    assert record["summary"]["AP50"] == pytest.approx(1.0)
    assert [note["code"] for note in record["notes"] if "class" in note["code"]] == ["class-map"]


def test_no_class_in_common_after_the_map_and_misspelt_names(run: Run) -> None:
    write("map.toml", '[dt]\ncar = "auto"\nperson = "x"\n')
    text = run("eval gt.json dt.json --class-map map.toml", status=2)
    assert (
        "no class in common with the ground truth after the class map (detections: 'auto', 'x'"
        in text
    )
    run("eval gt.json dt.json --as-is --class-map map.toml")
    write("map.toml", 'truk = "car"\n')
    text = run("check gt.json dt.json --class-map map.toml", status=2)
    assert "map.toml: class 'truk' is not in the inputs; did you mean 'truck'?" in text
    assert text.count("'truk'") == 1


def test_classes_without_a_file_are_those_after_the_map(run: Run) -> None:
    labels = ["car", "truck", "chair", "person"]
    truth = detap.GroundTruth.from_arrays(**named_truth(labels), image_sizes=[[200, 100]])
    detections = detap.Detections.from_arrays(**named_truth(["truck"]), score=[0.5])
    detap.convert("voc", truth, detections.reindex_like(truth), to="voc")
    for path in Path("voc/detections").iterdir():
        if not path.read_text():
            path.unlink()
    command = "eval voc voc/detections"
    plain, mapped = (
        [n["message"] for n in run.report(command, *m)["notes"] if "without-file" in n["code"]]
        for m in ([], ["--class-map", "map.toml"])
    )
    assert "'car', 'chair', 'person'" in plain[0]
    assert mapped == ["classes without a detections file have AP 0: 'person'"]


def test_the_five_maps_of_real_files(real_data: Path) -> None:
    """The figures of pycocotools."""
    folder = real_data / "coco-val2014-100"
    gt, dt = (folder / f"instances_val2014_{name}.json" for name in ("100", "fakebbox100_results"))
    expected = json.loads((real_data / "class-map" / "expected.json").read_text())
    supercategory = {
        category["name"]: category["supercategory"]
        for category in json.loads(gt.read_text())["categories"]
    }
    maps: dict[str, Any] = {
        "supercategories": supercategory,
        "vehicle": {name: "vehicle" for name, of in supercategory.items() if of == "vehicle"},
        "keep person and dog": dict.fromkeys(supercategory.keys() - {"person", "dog"}, "-"),
        "drop chair from the ground truth only": {"gt": {"chair": "-"}},
        "bus and truck as car on both sides; train crowd of car": {
            "bus": "car",
            "truck": "car",
            "gt": {"train": {"to": "car", "as": "crowd"}},
        },
    }
    assert maps.keys() == expected.keys()
    for name, given in maps.items():
        assert detap.evaluate(gt, dt, class_map=given).summary == expected[name], name
