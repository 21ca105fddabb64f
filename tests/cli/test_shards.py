"""Several inputs: every value equals that of one run."""

import json
from pathlib import Path
from typing import Any

import pytest

from detap import read_detections, read_ground_truth
from tests.cases import BY_IMAGE
from tests.cli.conftest import Ended, Run
from tests.shards import JSON, PAIRS, SHARDS, WHOLE, case


def numbers(ended: Ended) -> dict[str, Any]:
    """Return a JSON report without its inputs and with sorted notes."""
    assert ended.status in (0, 1), ended.err
    report: dict[str, Any] = json.loads(ended.out)
    report.pop("inputs")
    report["notes"] = [note for note in report["notes"] if note["code"] != "interleaved-inputs"]
    report["notes"].sort(key=lambda note: str(note["code"]))
    return report


SAVED = ("--gt", "gt.json", "--dt", "rank-*.npz")
TWO = ("--classes", "class 1,class 3")
SOME = ("--images", "1,2,3,7,14,20")
LIMIT = ("--max-dets", "1", "--max-dets-scope", "image")


@pytest.fixture
def saved(shards: Path) -> tuple[str, ...]:
    """Save the detections of each shard as a table."""
    truth = read_ground_truth("gt.json")
    for part in range(5):
        read_detections(f"dts/{part}.json", truth).save(f"rank-{part}.npz")
    return SAVED


@pytest.mark.parametrize("files", [SHARDS, PAIRS, SAVED], ids=["one-truth", "pairs", "saved"])
@pytest.mark.parametrize("protocol", BY_IMAGE)
def test_shards_give_the_metrics_of_one_run(
    saved: tuple[str, ...], detap: Run, protocol: str, files: tuple[str, ...]
) -> None:
    asked = ("--protocol", protocol, *JSON)
    assert numbers(detap("eval", *files, *asked)) == numbers(detap("eval", *WHOLE, *asked))


@pytest.mark.parametrize(
    ("files", "asked"),
    [
        (SHARDS, ("--max-dets-scope", "image")),
        (SHARDS, ("--slice-by", "light", "--fail-under", "slice:light=day.AP50=0.1")),
        (SHARDS, ("--fail-under", "class:*.AP=0.9")),
        (SHARDS, ("--score-threshold", "0.5")),
        (SHARDS, ("--score-threshold", "best", "--fail-under", "F1=0.1")),
        (SHARDS, SOME),
        (SHARDS, ("--images", "seen")),
        (SHARDS, ("--tie-range",)),
        (SHARDS, ("--errors",)),
        (SHARDS, TWO),
        (SHARDS, ("--analysis",)),
        (SHARDS, (*TWO, *LIMIT)),
        (SHARDS, (*TWO, *SOME, *LIMIT)),
        (PAIRS, (*TWO, *LIMIT)),
        (PAIRS, (*TWO, *SOME, *LIMIT)),
        (SAVED, ("--analysis",)),
        (SAVED, ("--errors", "tidecv")),
        (SAVED, ("--tie-range",)),
        (SAVED, ("--slice-by", "light", "--fail-under", "slice:light=day.AP50=0.1")),
        (
            SAVED,
            ("--baseline-detections", "worse.json", "--max-drop", "0", "--confidence", "0.9"),
        ),
        (SAVED, (*TWO, *SOME)),
    ],
)
def test_options_work_on_several_inputs(
    saved: tuple[str, ...], detap: Run, files: tuple[str, ...], asked: tuple[str, ...]
) -> None:
    Path("worse.json").write_text(json.dumps(case(6)[1]))
    one, several = (detap("eval", *given, *asked, *JSON) for given in (WHOLE, files))
    assert numbers(several) == numbers(one)
    assert several.status == one.status


def test_inputs_that_are_not_paired_are_read_against_all_ground_truths(
    shards: Path, detap: Run
) -> None:
    # As many files as ground truths, but about the images of others.
    first, last = Path("dts/0.json"), Path("dts/3.json")
    first.rename("dts/x.json")
    last.rename("dts/0.json")
    Path("dts/x.json").rename("dts/3.json")
    one = detap("eval", *WHOLE, *JSON)
    assert numbers(detap("eval", *PAIRS, *JSON)) == numbers(one)


def test_an_error_in_a_paired_input_names_the_file(shards: Path, detap: Run) -> None:
    Path("dts/2.json").write_text('[{"image_id": 1, "category_id": 1}]')
    assert detap("eval", *PAIRS).refused().startswith("Error: dts/2.json: [0]: bbox is missing")


def test_a_pair_without_any_ground_truth_counts_its_detections(shards: Path, detap: Run) -> None:
    path = Path("gts/2.json")
    own = json.loads(path.read_text())
    gone = {annotation["id"] for annotation in own["annotations"]}
    path.write_text(json.dumps({**own, "annotations": []}))
    whole = json.loads(Path("gt.json").read_text())
    kept = [a for a in whole["annotations"] if a["id"] not in gone]
    Path("gt.json").write_text(json.dumps({**whole, "annotations": kept}))
    assert numbers(detap("eval", *PAIRS, *JSON)) == numbers(detap("eval", *WHOLE, *JSON))


def test_no_detections_at_all_is_noted_once(shards: Path, detap: Run) -> None:
    for part in range(5):
        Path(f"dts/{part}.json").write_text("[]")
    codes = [note["code"] for note in detap("eval", *SHARDS, *JSON).report()["notes"]]
    assert codes.count("no-detections") == 1
    assert "no-detections" not in detap("eval", "--gt", "gt.json", "--dt", "dt.json").err


@pytest.mark.parametrize("files", [SHARDS, SAVED], ids=["one-truth", "saved"])
def test_other_files_equal_those_of_one_run(
    saved: tuple[str, ...], detap: Run, files: tuple[str, ...]
) -> None:
    for given, name in ((WHOLE, "one"), (files, "merged")):
        tables = ("--matches", f"{name}.csv", "--curves", f"{name}.json")
        assert detap("eval", *given, *tables, "-o", f"{name}.html").status == 0
    assert Path("merged.csv").read_bytes() == Path("one.csv").read_bytes()
    assert Path("merged.json").read_bytes() == Path("one.json").read_bytes()
    assert Path("merged.html").stat().st_size


def test_detectors_of_different_classes_are_compared(tmp_path: Path, detap: Run) -> None:
    """Text files, each with a class that neither the ground truth nor the other file has."""
    (tmp_path / "gt").mkdir()
    for image in "abcd":
        (tmp_path / "gt" / f"{image}.txt").write_text("m 1 1 9 9\nn 11 11 20 20\n")
    truth = read_ground_truth(tmp_path / "gt")
    for name, other in (("now", "z"), ("old", "c")):
        folder = tmp_path / name
        folder.mkdir()
        for image in "abcd"[: 4 if name == "old" else 2]:
            lines = f"m 0.9 1 1 9 9\n{other} 0.5 1 1 9 9\nn .{ord(image) % 7} 11 11 20 20\n"
            (folder / f"{image}.txt").write_text(lines)
        table = read_detections(folder, truth)
        for part in range(2):
            table.select(table.image % 2 == part).save(tmp_path / f"{name}-{part}.npz")
    asked = ("--max-drop", "0.1", "--confidence", "0.9", "--resamples", "100", *JSON)
    one, merged = (
        numbers(
            detap(
                *("eval", "--gt", tmp_path / "gt", "--dt", tmp_path / f"now{files}"),
                *("--baseline-detections", tmp_path / f"old{files}", *asked),
            )
        )
        for files in ("", "-*.npz")
    )
    assert merged["gates"] == one["gates"]
    assert merged["classes"] == one["classes"]


def test_an_image_in_two_saved_tables_is_refused(saved: tuple[str, ...], detap: Run) -> None:
    Path("rank-9.npz").write_bytes(Path("rank-0.npz").read_bytes())
    assert "is also in rank-0.npz" in detap("eval", *saved).refused()


# --- selections and ties


@pytest.mark.parametrize(
    "more", [(), ("--errors",), ("--engine", "dask")], ids=["one process", "errors", "dask"]
)
def test_ties_of_interleaved_inputs_rank_by_image(
    shards: Path, detap: Run, more: tuple[str, ...]
) -> None:
    """With a note: in one process and by workers. Else ties rank by file order."""
    if "dask" in more:
        pytest.importorskip("distributed")
    given = (*SHARDS, "--protocol", "detectron2-voc", *more)
    report = json.loads(detap("eval", *given, *JSON).out)
    one = json.loads(detap("eval", *WHOLE, "--protocol", "detectron2-voc", *JSON).out)
    assert report["summary"] == one["summary"]
    (note,) = [note for note in report["notes"] if note["code"] == "interleaved-inputs"]
    assert note["count"] == 1
    assert note["severity"] == "info"
    assert "interleaved-inputs" not in detap("eval", *SHARDS, *more, *JSON).out
    assert "interleaved-inputs" not in json.dumps(one)


def test_ties_of_consecutive_inputs_rank_by_file_order(cwd: Path, detap: Run) -> None:
    """Images descend in each file and in the file of both, so the metrics are the same."""
    truth, detections = case()
    Path("gt.json").write_text(json.dumps(truth))
    first = [record for record in detections if record["image_id"] <= 12][::-1]
    rest = [record for record in detections if record["image_id"] > 12][::-1]
    Path("dts").mkdir()
    for path, rows in (("dts/1", first), ("dts/2", rest), ("dt", first + rest)):
        Path(f"{path}.json").write_text(json.dumps(rows))
    given = ("--protocol", "detectron2-voc", *JSON)
    whole = json.loads(detap("eval", *WHOLE, *given).out)
    for more in ((), ("--errors",)):
        report = json.loads(detap("eval", *SHARDS, *given, *more).out)
        assert (report["summary"], report["notes"]) == (whole["summary"], whole["notes"])
    by_image = json.loads(detap("eval", *WHOLE, *given, "--tie-break", "image").out)
    assert by_image["summary"] != whole["summary"]  # place matters here


def test_real_text_files_in_interleaved_folders(
    real_data: Path, tmp_path: Path, detap: Run
) -> None:
    """A folder with one file per image ranks by image; so do two with alternate images."""
    data = real_data / "voc-100"
    for number, path in enumerate(sorted((data / "dt" / "abs_xyx2y2").iterdir())):
        folder = tmp_path / str(number % 2)
        folder.mkdir(exist_ok=True)
        (folder / path.name).write_bytes(path.read_bytes())
    given = ("--gt", data / "gt" / "voc_xml", "--class-names", data / "voc.names", *JSON)
    rules = ("--protocol", "detectron2-voc")
    one = json.loads(detap("eval", *given, *rules, "--dt", data / "dt" / "abs_xyx2y2").out)
    parts = "--dt", tmp_path / "0", "--dt", tmp_path / "1"
    assert json.loads(detap("eval", *given, *rules, *parts).out)["summary"] == one["summary"]


@pytest.mark.parametrize("strict", [(), ("--strict",)])
def test_scores_below_min_score_equal_no_detections(
    shards: Path, detap: Run, strict: tuple[str, ...]
) -> None:
    """One file, its shards and an empty file give the same warning, so --strict fails alike."""
    Path("none.json").write_text("[]")
    minimum = ("--min-score", "2", *strict)
    given = [
        (*WHOLE, *minimum),
        (*SHARDS, *minimum),
        ("--gt", "gt.json", "--dt", "none.json", *strict),
    ]
    for arguments in given:
        ended = detap("eval", *arguments, *JSON)
        assert ended.status == (2 if strict else 0), arguments
        notes = [] if strict else json.loads(ended.out)["notes"]
        warned = [note["code"] for note in notes if note["severity"] == "warning"]
        assert warned == ([] if strict else ["no-detections"])
        if strict:
            assert "no detections: every AP is 0" in ended.err
