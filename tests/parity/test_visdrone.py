"""VisDrone: the figures of its toolkit, run in Octave, through the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

NAMES = ("AP", "AP50", "AP75", "AR1", "AR10", "AR100", "AR500")


@pytest.fixture(scope="module")
def folder(formats3: Path) -> Path:
    return formats3 / "visdrone"


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    """Return the toolkit's figures, in percent."""
    figures: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return figures


def scored(detap: Run, folder: Path, *options: object) -> dict[str, Any]:
    """Return the JSON report of `detap eval`."""
    paths = folder / "annotations", folder / "detections"
    report: dict[str, Any] = detap(
        "eval", *paths, *map(str, options), "--output-format", "json"
    ).report()
    return report


def test_the_toolkit(folder: Path, expected: dict[str, Any], detap: Run) -> None:
    report = scored(detap, folder)
    assert report["signature"].startswith("protocol:visdrone|detap:")
    assert list(report["summary"]) == list(NAMES)
    for name, value in report["summary"].items():
        assert 100 * value == pytest.approx(expected[name], abs=1e-11)
    classes = report["classes"]
    assert [entry["name"] for entry in classes][::11] == ["ignored regions", "others"]
    of_class = {str(number): entry["AP"] for number, entry in enumerate(classes)}
    assert of_class.pop("0") is of_class.pop("11") is None
    for number, value in of_class.items():
        assert 100 * value == pytest.approx(expected["per_class"][number], abs=1e-11)


def test_the_plain_mean(folder: Path, expected: dict[str, Any], detap: Run) -> None:
    report = scored(detap, folder, "--class-mean", "equal")
    mean = sum(expected["per_class"].values()) / 10
    assert 100 * report["summary"]["AP"] == pytest.approx(mean, abs=1e-11)
    assert report["signature"].startswith("protocol:visdrone|class-mean:equal|")


@pytest.mark.parametrize(
    ("option", "changed"),
    [
        (("--max-dets-order", "score"), "AR1"),
        (("--recall-base", "counted"), "AP"),
        (("--drop-in-regions", "none"), "AP"),
        (("--drop-in-regions", "ignored regions=0.6"), "AP"),
        (("--max-dets-scope", "class"), "AR10"),
    ],
    ids=str,
)
def test_the_data_tests_the_rules(
    folder: Path,
    expected: dict[str, Any],
    detap: Run,
    option: tuple[str, str],
    changed: str,
) -> None:
    summary = scored(detap, folder, *option)["summary"]
    assert abs(100 * summary[changed] - expected[changed]) > 1e-3


def test_slices_match_each_limit_again(folder: Path, detap: Run, tmp_path: Path) -> None:
    images = sorted(path.stem for path in (folder / "annotations").iterdir())[::2]
    (tmp_path / "slices.csv").write_text("image,tag\n" + "".join(f"{n},half\n" for n in images))
    (tmp_path / "images.txt").write_text("\n".join(images))
    part = scored(detap, folder, "--images", tmp_path / "images.txt")["summary"]
    whole = scored(detap, folder, "--slices", tmp_path / "slices.csv")
    assert whole["slices"]["half"]["summary"] == pytest.approx(part, abs=1e-15)


def test_intervals_and_bounds(folder: Path, detap: Run) -> None:
    report = scored(detap, folder, "--confidence", "0.9", "--resamples", "100")
    intervals = report["intervals"]["summary"]
    assert intervals["AR10"] == [None, None]  # not among the matches of the largest limit
    for name in ("AP", "AR500"):
        low, high = intervals[name]
        assert low < report["summary"][name] < high
    said = detap("eval", folder / "annotations", folder / "detections", "--tie-range").refused()
    assert "--max-dets-order file matches each limit again, which --tie-range" in said
    sources = ("--gt", folder / "annotations", "--dt", folder / "detections")
    ended = detap("explain", *sources, "--from", "coco", "--to", "visdrone").passed()
    for name in ("max dets order", "recall base", "class mean", "excluded classes"):
        assert name in ended.out
