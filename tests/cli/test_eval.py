"""``detap eval`` on files whose metrics are computed by hand.

One of the two cats is matched, at rank 1 of 3, so recall stays at .5. COCO reads precision at
0, .01, ... 1: 51 of the 101 levels are reached, at a precision of 1 up to COCO's eps of 2**-52.
VOC takes the area: .5. The dog is matched at rank 1 of 1. The bird has no ground truth.
"""

import csv
import hashlib
import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from detap.cli.commands.eval import command as eval_command
from detap.protocols import Protocol, protocol
from detap.protocols.fields import protocol_fields
from tests.cli.conftest import Ended, Files, Run, instances, results, spawn, write_coco
from tests.schemas import valid

CAT_AP = 51 / 101


def report_of(ended: Ended) -> Any:
    return valid(ended.report())


def evaluated(detap: Run, files: Files, *options: str | Path) -> Any:
    return report_of(detap(*files.arguments, "--output-format", "json", *options))


def test_coco_numbers(detap: Run, coco: Files) -> None:
    record = evaluated(detap, coco)
    assert list(record["summary"]) == [
        "AP", "AP50", "AP75", "APs", "APm", "APl",
        "AR1", "AR10", "AR100", "ARs", "ARm", "ARl",
    ]  # fmt: skip
    summary = record["summary"]
    for name in ("AP", "AP50", "AP75"):
        assert summary[name] == pytest.approx((CAT_AP + 1) / 2, abs=1e-12)
    for name in ("AR1", "AR10", "AR100"):
        assert summary[name] == 0.75
    # 50 * 50 is medium, 100 * 100 large; there is nothing small.
    assert (summary["APs"], summary["ARs"]) == (None, None)
    assert summary["APm"] == pytest.approx(1, abs=1e-12)
    assert summary["APl"] == pytest.approx(CAT_AP, abs=1e-12)
    assert summary["ARl"] == 0.5


def test_coco_classes(detap: Run, coco: Files) -> None:
    cat, dog, bird = evaluated(detap, coco)["classes"]
    assert cat["AP"] == pytest.approx(CAT_AP, abs=1e-12)
    assert {name: cat[name] for name in ("name", "id", "AR1", "AR100", "APs", "ARm", "ARl")} == {
        "name": "cat",
        "id": 1,
        "AR1": 0.5,
        "AR100": 0.5,
        "APs": None,
        "ARm": None,
        "ARl": 0.5,
    }
    assert counts(cat) == (2, 0, 3, 3, 1, 2, 1)
    assert counts(dog) == (1, 0, 1, 1, 1, 0, 0)
    assert counts(bird) == (0, 0, 1, 1, 0, 1, 0)
    assert bird["AP"] is None


def counts(row: dict[str, Any]) -> tuple[int, ...]:
    names = ("ground_truths", "ignored", "detections", "within_max_dets")
    outcomes = ("true_positives", "false_positives", "duplicates")
    return tuple(row[name] for name in names + outcomes)


def test_the_report_lists_inputs_with_their_digests(detap: Run, coco: Files) -> None:
    gt, dt = evaluated(detap, coco)["inputs"]
    assert gt == {
        "role": "ground_truth",
        "path": str(coco.gt),
        "sha256": hashlib.sha256(coco.gt.read_bytes()).hexdigest(),
        "files": 1,
        "records": 3,
        "images": 2,
    }
    assert (dt["role"], dt["records"]) == ("detections", 5)
    assert dt["sha256"] == hashlib.sha256(coco.dt.read_bytes()).hexdigest()


def test_the_digest_of_a_folder(detap: Run, voc: Files) -> None:
    lines = "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(voc.dt.iterdir())
    )
    dt = evaluated(detap, voc)["inputs"][1]
    assert dt["sha256"] == hashlib.sha256(lines.encode()).hexdigest()
    assert dt["files"] == 3


# --- the table


def test_the_table(detap: Run, coco: Files) -> None:
    ended = detap(*coco.arguments)
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["cat", "dog", "bird"]
    assert lines[2].split()[1] == "0.5050"
    assert "\x1b" not in ended.out
    assert "AP50    0.7525  0.50 " in ended.out
    assert lines[-1].startswith("protocol:coco|detap:")
    assert "[classes-only-in-detections]" in ended.err
    assert "warning: " in ended.err


def test_verbose_runs_show_their_steps(detap: Run, coco: Files) -> None:
    loud = detap(*coco.arguments, "--verbose")
    assert "evaluating: 0." in loud.err
    assert loud.out == detap(*coco.arguments).out


@pytest.mark.parametrize("command", ["eval", "check"])
def test_a_quiet_run_that_succeeds_prints_nothing(command: str, coco: Files, detap: Run) -> None:
    line = (command, *coco.arguments[1:])
    assert detap(*line).out
    assert detap(*line, "-q") == Ended(0, "", "")


def test_a_quiet_run_prints_a_gate_that_fails_and_requested_output(coco: Files, detap: Run) -> None:
    quiet = (*coco.arguments, "-q")
    assert detap(*quiet, "--fail-under", "0.1") == Ended(0, "", "")
    failed = Ended(1, "", "gate failed: AP 0.7525, required >= 0.99\n")
    assert detap(*quiet, "--fail-under", "0.99") == failed
    plain = detap(*coco.arguments).out
    assert detap(*quiet, "--output-format", "table").out == plain
    assert detap(*quiet, "-o", "table=-").out == plain


@pytest.mark.parametrize(
    ("options", "order"),
    [
        (["--sort", "AP"], ["dog", "cat", "bird"]),
        (["--sort", "AP", "--reverse"], ["cat", "dog", "bird"]),
        (["--sort", "name"], ["bird", "cat", "dog"]),
        (["--sort", "detections"], ["cat", "dog", "bird"]),
        (["--reverse"], ["bird", "dog", "cat"]),
    ],
)
def test_sorting(detap: Run, coco: Files, options: list[str], order: list[str]) -> None:
    record = evaluated(detap, coco, *options)
    assert [row["name"] for row in record["classes"]] == order


# --- selection


def test_only_some_classes(detap: Run, coco: Files) -> None:
    record = evaluated(detap, coco, "--classes", "dog,bird")
    assert [row["name"] for row in record["classes"]] == ["dog", "bird"]
    assert record["summary"]["AP"] == pytest.approx(1, abs=1e-12)


def test_a_class_whose_name_has_a_comma(detap: Run, tmp_path: Path) -> None:
    truth = instances()
    truth["categories"][1]["name"] = "dog, hot"
    files = write_coco(tmp_path, truth)
    record = evaluated(detap, files, "--classes", "dog, hot", "--classes", "bird")
    assert [row["name"] for row in record["classes"]] == ["dog, hot", "bird"]


@pytest.mark.parametrize("way", ["names", "file"])
def test_only_some_images(detap: Run, coco: Files, way: str) -> None:
    chosen = "2"
    if way == "file":
        (coco.folder / "chosen.txt").write_text("2\n\n")
        chosen = str(coco.folder / "chosen.txt")
    record = evaluated(detap, coco, "--images", chosen)
    assert counts(record["classes"][0]) == (0, 0, 0, 0, 0, 0, 0)
    assert record["summary"]["AR100"] == 1.0


# --- the protocol's axes


def test_every_protocol_field_has_an_option() -> None:
    assert {axis.name for axis in protocol_fields(Protocol) if axis.option} <= {
        parameter.name for parameter in eval_command.params
    }


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        (["--iou", "0.75,0.5"], "iou_thresholds", [0.5, 0.75]),
        (["--iou", "0.9", "--iou", ".5"], "iou_thresholds", [0.5, 0.9]),
        (["--iou", "0.5:0.6:0.05"], "iou_thresholds", [0.5, 0.55, 0.6]),
        (["--max-iou-threshold", "0.9"], "max_iou_threshold", 0.9),
        (["--ignore-flags", "difficult,crowd"], "ignore_flags", ["difficult", "crowd"]),
        (["--ignore-flags", "crowd,group-of"], "ignore_flags", ["crowd", "group_of"]),
        (["--ignore-flags", "none"], "crowd_flags", []),
        (["--crowd-flags", "none"], "crowd_flags", []),
        (["--max-dets", "5,none"], "max_dets", [5, None]),
        (["--max-dets-scope", "image"], "max_dets_scope", "image"),
        (["--interpolation", "11-point"], "recall_grid", "matlab"),
        (["--precision-eps", "0"], "precision_eps", 0.0),
        (["--min-score=-1e3"], "min_score", -1000.0),
        (["--min-score", "none"], "min_score", None),
        (["--annotation-id-zero", "unmatched"], "annotation_id_zero", "unmatched"),
        (["--score-decimals", "3"], "score_decimals", 3),
        (["--box-decimals", "none"], "box_decimals", None),
        (["--primary-metric", "mAP"], "primary_metric", "mAP"),
    ],
)
def test_an_option_changes_its_field(
    detap: Run, coco: Files, options: list[str], field: str, value: object
) -> None:
    record = evaluated(detap, coco, *options)
    assert record["protocol"][field] == pytest.approx(value) or record["protocol"][field] == value


def test_a_report_names_the_implementation_of_its_preset(detap: Run, coco: Files) -> None:
    record = evaluated(detap, coco, "--protocol", "ultralytics")
    rules = protocol("ultralytics")
    promised = {"source": rules.source, "tolerance": 1e-6, "residue": rules.residue}
    assert record["reproduces"] == promised
    text = "ultralytics reproduces Ultralytics 8.4.190, val: "
    ended = detap(*coco.arguments, "--protocol", "ultralytics")
    assert text in ended.out
    assert "within 1e-06" in " ".join(ended.out.split())
    # Of what departs from it nothing is promised; what is equal to the last bit needs no promise.
    for options in (["--protocol", "ultralytics", "--iou", "0.5"], ["--protocol", "coco"]):
        assert "reproduces" not in evaluated(detap, coco, *options)
        assert " is Ultralytics" not in detap(*coco.arguments, *options).out


def test_coco_thresholds_as_a_range_are_identical(detap: Run, coco: Files) -> None:
    record = evaluated(detap, coco, "--iou", "0.5:0.95:0.05", "--max-dets", "1,10,100")
    assert record["signature"].startswith("protocol:coco|detap:")


def test_area_ranges(detap: Run, coco: Files) -> None:
    record = evaluated(detap, coco, "--area-ranges", "small=0:2500,tiny=0:10,big=2500:")
    bands = [(band["name"], band["high"]) for band in record["protocol"]["area_ranges"]]
    assert bands == [("all", 1e10), ("small", 2500.0), ("tiny", 10.0), ("big", 1e10)]
    # The dog's 2500 square pixels belong to both: ends are inclusive.
    assert record["summary"]["ARs"] == 1.0
    assert record["summary"]["AR-tiny"] is None
    assert record["summary"]["AR-big"] == 0.75


def test_no_area_ranges(detap: Run, coco: Files) -> None:
    summary = evaluated(detap, coco, "--area-ranges", "none")["summary"]
    assert list(summary) == ["AP", "AP50", "AP75", "AR1", "AR10", "AR100"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--iou", "half"], "'half' is not a number"),
        (["--iou", "0_5"], "'0_5' is not a number"),
        (["--iou", "nan"], "'nan' is not a number"),
        (["--iou", "1e999"], "'1e999' is too large"),
        (["--iou", "1.5"], "Invalid value for '--iou': 1.5 is outside (0, 1]"),
        (["--iou", "0.5:0.9"], "is not start:stop:step"),
        (["--iou", "0.9:0.5:0.1"], "is not in ascending order"),
        (["--iou", "0.5:0.6:0.04"], "does not reach 0.6 in equal steps"),
        (["--iou", "0.5:0.6:1e-9"], "has more than 1000 steps"),
        (["--max-dets", "0"], "'--max-dets': 0 is not None or an integer of at least 1"),
        (["--max-dets", "ten"], "'ten' is not a whole number"),
        (
            ["--ignore-flags", "cloud"],
            "'--ignore-flags': 'cloud' is unknown; choose from difficult, crowd",
        ),
        (["--area-ranges", "small"], "'small' is not name=low:high or one of coco"),
        (["--area-ranges", "all=0:5"], "'all' means all areas"),
        (["--area-ranges", "a=9:5"], "it must be ascending"),
        (
            ["--score-decimals", "-1"],
            "'--score-decimals': -1 is not None or an integer from 0 to 99",
        ),
        (["--recall-grid", "matlab"], "101-point interpolation needs 101"),
        (["--interpolation", "12-point"], "'12-point' is not one of"),
        (["--threads", "0"], "0 is not in the range"),
        (["--layout", "class-files"], "--layout is for VOC files; these are read as coco"),
        (
            ["--dt-format", "openimages", "--hierarchy", "none.json"],  # which is the truth's
            "--hierarchy is for Open Images files; these are read as coco",
        ),
        (["--format", "tfrecord"], "'tfrecord' is not one of"),
        (["--sort", "mAP"], "--sort mAP: no such column; choose from name, AP, AP50"),
        (["--classes", "dgo"], "class 'dgo' is not in the ground truth; did you mean dog?"),
        (["--images", "1,77"], "image '77' is not in the ground truth"),
        (["--images", "none.txt"], "no image is selected"),
        (["--images", "bad.txt"], "bad.txt: byte 2: is not UTF-8; list one image per line"),
        (["--curves", "curves.txt"], "use a file name that ends in .json or .csv"),
    ],
)
def test_a_wrong_value(
    detap: Run, coco: Files, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(coco.folder)
    Path("none.txt").write_text("\n")
    Path("bad.txt").write_bytes(b"1\n\xff\n")
    said = detap(*coco.arguments, *options).refused()
    assert message in " ".join(said.split())


def test_options_from_the_environment(
    detap: Run, coco: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DETAP_PROTOCOL", "voc2012")
    monkeypatch.setenv("DETAP_OUTPUT_FORMAT", "json")
    assert "mAP" in report_of(detap(*coco.arguments))["summary"]
    assert "AP50" in report_of(detap(*coco.arguments, "--protocol", "coco"))["summary"]


def test_voc_options_reach_the_reader(detap: Run, tmp_path: Path) -> None:
    gt, dt = tmp_path / "gt", tmp_path / "dt"
    gt.mkdir()
    dt.mkdir()
    (gt / "a.txt").write_text("0 10 10 20 20\n")
    (dt / "a.txt").write_text("0 0.9 10 10 20 20\n")
    (tmp_path / "names.txt").write_text("cat\n")
    options = ["--boxes", "xywh", "--class-names", str(tmp_path / "names.txt")]
    record = evaluated(
        detap, Files(tmp_path, gt, dt), "--format", "voc", *options, "--layout", "image-files"
    )
    assert record["summary"] == {"mAP": 1.0}
    assert record["classes"][0]["name"] == "cat"


# --- outputs


def test_several_outputs(detap: Run, coco: Files) -> None:
    out = coco.folder / "out"
    out.mkdir()
    ended = detap(
        *coco.arguments, "-o", out / "r.json", "-o", f"csv={out / 'classes'}", "-o", out / "r.txt"
    ).passed()
    assert ended.out.startswith("class ")
    assert json.loads((out / "r.json").read_text())["summary"]["AR1"] == 0.75
    rows = list(csv.DictReader(StringIO((out / "classes").read_text())))
    assert [row["name"] for row in rows] == ["cat", "dog", "bird"]
    assert rows[2]["AP"] == ""
    assert (out / "r.txt").read_text() == ended.out
    assert sorted(path.name for path in out.iterdir()) == ["classes", "r.json", "r.txt"]


def test_a_report_to_stdout_replaces_the_table(detap: Run, coco: Files) -> None:
    assert detap(*coco.arguments, "-o", "csv=-").out.startswith("name,id,AP,")
    assert detap(*coco.arguments, "-o", "-").out.startswith("class ")
    assert detap(*coco.arguments, "-o", "-", "--output-format", "csv").out.startswith("name,")


def test_o_adds_to_the_output_of_the_settings(detap: Run, coco: Files, tmp_path: Path) -> None:
    """A file that both name is written once."""
    settings = tmp_path / "detap.toml"
    settings.write_text('output = ["a.json", "b.csv"]\n')
    line = [*coco.arguments, "--config", settings]
    assert detap(*line, "-o", tmp_path / "c.md").status == 0
    assert all((tmp_path / name).exists() for name in ("a.json", "b.csv", "c.md"))
    (tmp_path / "b.csv").unlink()
    report = (tmp_path / "a.json").read_text()
    assert detap(*line, "-o", os.path.relpath(tmp_path / "a.json")).status == 0
    assert (tmp_path / "a.json").read_text() == report
    assert (tmp_path / "b.csv").exists()
    for name in ("a.json", "b.csv", "c.md"):
        (tmp_path / name).unlink()
    assert detap(*coco.arguments, "--isolated", "-o", tmp_path / "c.md").status == 0
    assert not (tmp_path / "a.json").exists()


def test_an_unknown_extension(detap: Run, coco: Files) -> None:
    target = coco.folder / "report.out"
    assert "unknown extension; use FORMAT=" in detap(*coco.arguments, "-o", target).refused()
    assert detap(*coco.arguments, "-o", target, "--output-format", "json").status == 0
    assert json.loads(target.read_text())["schema_version"] == 2


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (["-", "csv=-"], "only one report can go to standard output"),
        (["a.json", "csv=a.json"], "a.json would be written twice"),
    ],
)
def test_invalid_outputs(
    detap: Run, coco: Files, monkeypatch: pytest.MonkeyPatch, outputs: list[str], message: str
) -> None:
    monkeypatch.chdir(coco.folder)
    said = detap(*coco.arguments, *(word for path in outputs for word in ("-o", path))).refused()
    assert message in said


def test_only_detections_come_from_stdin(detap: Run, voc: Files) -> None:
    said = detap("eval", "--gt", "-", "--dt", voc.dt).refused()
    assert "only detections can come from stdin" in said


# --- curves


def test_curves_as_json(detap: Run, coco: Files) -> None:
    target = coco.folder / "curves.json"
    assert detap(*coco.arguments, "--protocol", "voc2012", "--curves", target).status == 0
    record = json.loads(target.read_text())
    assert record["signature"].startswith("protocol:voc2012|")
    cat, dog = record["curves"]
    assert cat == {
        "class": "cat",
        "iou_threshold": 0.5,
        "AP": 0.5,
        "score": [0.9, 0.8, 0.7],
        "recall": [0.5, 0.5, 0.5],
        "precision": [1.0, 0.5, 1 / 3],
        "fppi": [0.0, 0.5, 1.0],  # on two images
        "interpolated_recall": [0.5],
        "interpolated_precision": [1.0],
    }
    assert dog["class"] == "dog"


def test_curves_as_csv(detap: Run, coco: Files) -> None:
    target = coco.folder / "curves.csv"
    assert detap(*coco.arguments, "--curves", target, "--iou", "0.5").status == 0
    rows = list(csv.DictReader(StringIO(target.read_text())))
    cat = [row for row in rows if row["class"] == "cat"]
    assert [row["points"] for row in cat] == ["raw"] * 3 + ["interpolated"] * 101
    assert cat[2] == {
        "class": "cat",
        "iou_threshold": "0.5",
        "points": "raw",
        "score": "0.7",
        "recall": "0.5",
        "precision": "0.3333333333333333",
        "fppi": "1.0",
    }
    assert cat[3 + 51]["precision"] == "0.0"
    assert cat[3 + 51]["score"] == cat[3 + 51]["fppi"] == ""


# --- input by pipe


def test_detections_from_stdin(coco: Files) -> None:
    text = json.dumps(results())
    ended = spawn("eval", coco.gt, "-", "--output-format", "json", input=text)
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    assert record["summary"]["AR1"] == 0.75
    assert record["inputs"][1]["path"] == "-"
    assert record["inputs"][1]["sha256"] == hashlib.sha256(text.encode()).hexdigest()


def test_detections_from_stdin_of_another_format(tmp_path: Path) -> None:
    """The fast reader falls back, as images are named by stems, so stdin is read twice."""
    (tmp_path / "a.xml").write_text(
        "<annotation><object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax>"
        "<ymax>9</ymax></bndbox></object></annotation>"
    )
    instances_file = {
        "images": [{"id": 0, "file_name": "a.jpg"}],
        "categories": [{"id": 0, "name": "cat"}],
        "annotations": [{"image_id": 0, "category_id": 0, "bbox": [1, 1, 8, 8], "score": 0.5}],
    }
    arguments = ["eval", "--gt", str(tmp_path), "--dt", "-", "--dt-format", "coco"]
    ended = spawn(*arguments, "--output-format", "json", input=json.dumps(instances_file))
    assert json.loads(ended.stdout)["summary"] == {"mAP": 1.0}, ended.stderr
