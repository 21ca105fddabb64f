"""detap history: runs in order; runs that are not comparable are listed separately."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from detap.errors import InputError, UsageError
from detap.gates.history import history, report_paths
from detap.report.sections.history import history_report
from detap.report.writers.registry import WRITERS, Style
from tests.cli.conftest import Run, instances, results, write_coco
from tests.schemas import valid

# One of two cats is found, and the dog: (51/101 + 1) / 2, or 0 for the one that is lost.
BOTH, NO_DOG, NO_CAT = (51 / 101 + 1) / 2, 51 / 101 / 2, 1 / 2


@pytest.fixture
def runs(cwd: Path, detap: Run) -> Path:
    """Write four reports: without the dog, two with cat and dog, one without the cat."""
    write_coco(cwd)
    (cwd / "runs").mkdir()
    for number, lost in ((8, 2), (9, 0), (10, 0), (11, 1)):
        detections = [row for row in results() if row["category_id"] != lost]
        (cwd / "dt.json").write_text(json.dumps(detections))
        line = ("eval", "--gt", "instances.json", "--dt", "dt.json", "-q")
        target = f"runs/run-{number}.json"
        status = detap(*line, "--fail-under", "0.4", "-o", target).status
        assert status == (number == 8)
    return cwd


def of(detap: Run, *options: str) -> Any:
    return valid(detap("history", *options, "--output-format", "json").report(), "history")


def test_each_run_has_its_metrics_change_and_status(runs: Path, detap: Run) -> None:
    rows = of(detap, "runs")["reports"]
    # Numbers in names count as such.
    assert [row["name"] for row in rows] == [f"runs/run-{n}.json" for n in (8, 9, 10, 11)]
    assert [row["AP"] for row in rows] == pytest.approx([NO_DOG, BOTH, BOTH, NO_CAT])
    assert rows[0]["change"] is None
    expected = [BOTH - NO_DOG, 0, NO_CAT - BOTH]
    assert [row["change"] for row in rows[1:]] == pytest.approx(expected)
    assert [row["gates"] for row in rows] == ["FAILED", "passed", "passed", "passed"]
    # Files are in the order of the command line.
    rows = of(detap, "runs/run-11.json", "runs/run-9.json")["reports"]
    assert [row["name"] for row in rows] == ["runs/run-11.json", "runs/run-9.json"]
    assert rows[1]["change"] == pytest.approx(BOTH - NO_CAT)


def test_the_table(runs: Path, detap: Run) -> None:
    assert detap(
        "history", "runs", "--metric", "class:dog.AP", "--metric", "class:cat.detections"
    ).out == (
        "report            class:dog.AP   change  gates   class:cat.detections\n"
        + "\N{BOX DRAWINGS LIGHT HORIZONTAL}" * 69
        + "\n"
        "runs/run-8.json         0.0000        \N{EN DASH}  FAILED                     3\n"
        "runs/run-9.json         1.0000  +1.0000  passed                     3\n"
        "runs/run-10.json        1.0000   0.0000  passed                     3\n"
        "runs/run-11.json        1.0000   0.0000  passed                     0\n"
        "\n"
        "protocol:coco|detap:0.1.0\n"
    )


def test_a_count_may_be_the_first_metric(runs: Path, detap: Run) -> None:
    rows = of(detap, "runs", "--metric", "class:cat.detections")["reports"]
    assert [row["change"] for row in rows] == [None, 0, 0, -3]
    lines = detap("history", "runs", "--metric", "class:cat.detections").out.splitlines()
    assert [line.split()[2] for line in lines[3:6]] == ["0", "0", "-3"]


@pytest.fixture
def mixed(runs: Path, detap: Run) -> Path:
    """Add reports of another protocol, of another ground truth and of selected classes."""
    truth = instances()
    truth["annotations"].pop()
    (runs / "other.json").write_text(json.dumps(truth))
    for name, gt, options in (
        ("run-1", "instances.json", ("--protocol", "voc2012")),
        ("run-2", "other.json", ()),
        ("run-3", "other.json", ()),
        ("run-4", "instances.json", ("--classes", "cat")),
    ):
        line = ("eval", "--gt", gt, "--dt", "dt.json", "-q", "-o", f"runs/{name}.json")
        assert detap(*line, *options).status == 0
    return runs


def test_runs_that_are_not_comparable_are_separate(mixed: Path, detap: Run) -> None:
    record = of(detap, "runs")
    assert len(record["reports"]) == 4
    assert record["notes"][0]["code"] == "history-not-comparable"
    assert record["notes"][0]["count"] == 4
    apart = record["not_comparable"]["series"]
    names = [[row["name"][9:-5] for row in entry["reports"]] for entry in apart]
    assert names == [["4"], ["2", "3"], ["1"]]  # the latest first
    differences = [" ".join(entry["differences"]) for entry in apart]
    chosen = f"classes:1-of-3-{sha256(b'cat').hexdigest()[:8]}"
    assert f"selection (baseline: {chosen}; current: all classes and images)" in differences[0]
    assert differences[1].startswith("ground truth: sha256 (")
    assert "protocol (baseline: voc2012; current: coco)" in differences[2]
    assert "mAP" in apart[2]["reports"][0]
    text = detap("history", "runs").out
    assert text.count("Not comparable with the latest report: ") == 3
    assert "\nprotocol (baseline: voc2012; current: coco)\n" in text
    assert "4" in detap("history", "runs", "--strict").refused()


def test_other_versions_are_shown(runs: Path, detap: Run) -> None:
    path = runs / "runs" / "run-8.json"
    path.write_text(
        path.read_text().replace('"detap_version": "0.1.0"', '"detap_version": "0.0.9"')
    )
    assert "0.0.9" in detap("history", "runs", "--metric", "AP").out
    assert "0.1.0" not in detap("history", "runs/run-9.json", "--metric", "AP").out.split("\n\n")[0]


def test_other_score_thresholds_are_not_comparable(runs: Path, detap: Run) -> None:
    for name, score in (("a", "0.5"), ("b", "0.5"), ("c", "0.7")):
        line = ("eval", "--gt", "instances.json", "--dt", "dt.json", "-q")
        assert detap(*line, "--score-threshold", score, "-o", f"{name}.json").status == 0
    paths = ["c.json", "a.json", "b.json"]
    assert len(of(detap, *paths)["reports"]) == 3
    record = of(detap, *paths, "--metric", "F1")
    assert [row["name"] for row in record["reports"]] == ["a.json", "b.json"]
    differences = record["not_comparable"]["series"][0]["differences"]
    assert differences == ["score threshold (baseline: 0.7; current: 0.5)"]


def of_slices(ap: float, **digests: str) -> dict[str, Any]:
    """Return a report with slices, whose images have these digests."""
    part = {"summary": {"AP": ap}, "classes": []}
    return {
        "kind": "detection",
        "protocol": {"name": "coco"},
        "inputs": [{"role": "ground_truth", "sha256": "a" * 64}],
        **part,
        "slices": {
            tag: {**part, "images": len(digest), "images_sha256": digest}
            for tag, digest in digests.items()
        },
    }


def test_slices_of_other_images_are_not_comparable() -> None:
    """The length of a digest is the number of images here."""
    records = [
        ("a.json", of_slices(0.5, night="aa", day="b")),
        ("b.json", of_slices(0.25, night="aaa", fog="c")),
        ("c.json", of_slices(0.75, night="aaa", fog="c")),
    ]
    latest, other = history(records, ["slice:night.AP"])
    assert [run.name for run in latest.runs] == ["b.json", "c.json"]
    values = [[*run.metrics.values()] for run in latest.runs]
    assert (values, latest.differences) == ([[0.25], [0.75]], [])
    assert [run.name for run in other.runs] == ["a.json"]
    assert other.differences == [
        "slice 'day': only in the baseline",
        "slice 'fog': only in the current report",
        "slice 'night': different images (baseline: 2; current: 3)",
    ]
    (series,) = history(records, ["AP"])
    assert series.changes[1:] == [-0.25, 0.5]


@pytest.mark.parametrize("missing", ["a.json", "b.json"])
def test_a_report_without_slices_has_no_metric_of_one(missing: str) -> None:
    records = [(name, of_slices(0.5, night="aa")) for name in ("a.json", "b.json")]
    del dict(records)[missing]["slices"]
    with pytest.raises(UsageError, match=f"^{missing}: 'slice:night.AP': no slices"):
        history(records, ["slice:night.AP"])


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.listdir", refuse)
    with pytest.raises(InputError) as caught:
        report_paths([str(tmp_path)])
    message = f"{tmp_path}: permission denied; check its permissions"
    assert str(caught.value) == message


def test_statuses_are_colored_and_values_are_not(runs: Path) -> None:
    paths = report_paths(["runs"])
    records = [(path, json.loads(Path(path).read_text())) for path in paths]
    report = history_report(history(records))
    text = WRITERS["table"].render(report, Style(width=80, color=True))
    failed = next(line for line in text.splitlines() if "run-8" in line)
    passed = next(line for line in text.splitlines() if "run-9" in line)
    assert "\x1b[1;31m  FAILED" in failed
    assert "\x1b[1;32m  passed" in passed
    assert "  0.7525" in passed.split("\x1b")[0]  # neither red nor green


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["absent.json"], "absent.json: no such file or directory"),
        (["instances.json"], "instances.json: not a detap report; create it with detap eval"),
        (["empty"], "empty: no .json files; write reports with detap eval -o FILE.json"),
        (["runs", "--metric", "AP5O"], "runs/run-8.json: unknown metric 'AP5O'"),
        (["runs", "--metric", "class:*.AP"], "'class:*.AP' matches 2 metrics; name"),
        (["runs", "--output-format", "junit"], "a history cannot be written as junit"),
        (["runs/run-8.json", "-o", "runs/run-8.json"], "is an input"),
        ([], "Missing argument 'PATH...'"),
    ],
)
def test_errors_are_reported(line: list[str], message: str, runs: Path, detap: Run) -> None:
    (runs / "empty").mkdir()
    assert message in detap("history", *line).refused()
