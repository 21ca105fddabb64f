"""Adding a format takes one file and one line of the catalogue; no other code names it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import detap
from detap.errors import UsageError
from detap.formats.base import Line
from detap.formats.catalogue import FORMATS, format_named
from detap.formats.detection import detect_format, detections_format
from detap.formats.options import BOXES
from detap.testing import assert_detections
from tests.conftest import ROOT
from tests.formats.made_up import LINE, MadeUp
from tests.processes import finished

TRUTH = "a cat 0 0 10 10\nb cat 0 0 10 10\n"
FOUND = "a cat 0 0 10 10 .9\nb cat 50 50 10 10 .8\n"  # one of two is matched, first: AP 1/2
WORSE = "a cat 50 50 10 10 .9\nb cat 50 50 10 10 .8\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("gt", TRUTH), ("dt", FOUND), ("worse", WORSE), ("bad", "a cat 1\n")):
        (tmp_path / f"{name}.boxes").write_text(text)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return finished(
        [sys.executable, "-m", "tests.formats.made_up", *arguments],
        None,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_its_own_option_is_in_the_help_and_reaches_its_reader(files: Path) -> None:
    assert "Made-up: what a box's numbers are multiplied by." in " ".join(
        run(files, "eval", "--help-all").stdout.split()
    )
    call = ("--gt", "gt.boxes", "--dt", "dt.boxes", "--units", "3", "--output-format", "json")
    ended = run(files, "eval", *call, "--area-ranges", "small=0:100,large=101:")
    # Boxes of 30 by 30: none is small.
    assert json.loads(ended.stdout)["summary"]["mAPs"] is None


def test_an_option_of_another_format_is_refused(files: Path) -> None:
    ended = run(files, "eval", "--gt", "gt.boxes", "--dt", "dt.boxes", "--boxes", "xywh")
    assert ended.returncode == 2
    lines = [line for line in FORMATS.lines.values() if BOXES in line.options]
    titles = " and ".join(line.title for line in lines)
    assert f"--boxes is for {titles} files; these are read as made-up" in ended.stderr


@pytest.fixture
def with_coco(files: Path) -> Path:
    """Write COCO ground truth with the ids of the invented format."""
    box = {"bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0, "category_id": "cat"}
    truth = {
        "images": [{"id": "a"}, {"id": "b"}],
        "categories": [{"id": "cat", "name": "cat"}],
        "annotations": [{"id": 1, "image_id": "a"} | box, {"id": 2, "image_id": "b"} | box],
    }
    (files / "gt.json").write_text(json.dumps(truth))
    return files


def test_detections_may_be_of_another_format(with_coco: Path) -> None:
    call = ("--gt", "gt.json", "--protocol", "voc2012", "--output-format", "json")
    before = ("--baseline-detections", "worse.boxes", "--max-drop", "mAP=0")
    ended = run(with_coco, "eval", *call, "--dt", "dt.boxes", *before)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["summary"]["mAP"] == 0.5
    # An option of the detections' format is theirs alone: three times as large, no box matches.
    ended = run(with_coco, "eval", *call, "--dt", "dt.boxes", "--units", "3")
    assert json.loads(ended.stdout)["summary"]["mAP"] == 0.0
    ended = run(with_coco, "compare", "dt.boxes", "worse.boxes", *call, "--resamples", "0")
    numbers = {entry["name"]: entry for entry in json.loads(ended.stdout)["metrics"]}
    assert (numbers["mAP"]["first"], numbers["mAP"]["second"]) == (0.5, 0.0)


def test_each_input_may_have_its_own_format(with_coco: Path) -> None:
    (with_coco / "odd.txt").write_text(FOUND)
    call = ("eval", "--gt", "gt.json", "--dt", "odd.txt", "--protocol", "voc2012")
    ended = run(with_coco, *call, "--dt-format", "made-up", "--output-format", "json")
    assert json.loads(ended.stdout)["summary"]["mAP"] == 0.5
    ended = run(with_coco, *call, "--format", "made-up", "--gt-format", "coco")
    assert ended.returncode == 0, ended.stderr
    ended = run(with_coco, *call, "--gt-format", "made-up")
    assert "gt.json: line 1: has" in ended.stderr


class Looking(MadeUp):
    """The invented format, which fits all folders."""

    def fits(self, path: str) -> bool:
        return os.path.isdir(path)


def test_a_path_that_two_formats_fit_is_refused_with_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Content detection takes precedence over the name; if two match, it is ambiguous."""
    line = LINE._replace(reader=f"{__name__}.Looking", fits="folders", folders=True)
    looking, other = (line._replace(name=name.lower(), title=name) for name in ("Looking", "Other"))
    monkeypatch.setitem(FORMATS.lines, "looking", looking)
    for name in "acd":
        (tmp_path / f"{name}.boxes").write_text(FOUND)
    (tmp_path / "b.xml").write_text("")
    assert detect_format(tmp_path).name == "looking"
    assert detect_format(tmp_path / "b.xml").name == "voc"
    monkeypatch.setitem(FORMATS.lines, "other", other)
    with pytest.raises(UsageError, match="may be Looking or Other; use --gt-format looking or"):
        detect_format(tmp_path)
    with pytest.raises(UsageError, match="use --dt-format looking or --dt-format other"):
        detections_format(tmp_path, FORMATS["coco"])
    assert detections_format(tmp_path, FORMATS["looking"]).name == "looking"


def test_assertions_take_two_formats(with_coco: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS.lines, "made-up", LINE)
    paths = with_coco / "gt.json", with_coco / "dt.boxes"
    result = assert_detections(*paths, protocol="voc2012", fail_under=0.5, units="1")
    assert result.summary["mAP"] == 0.5
    with pytest.raises(UsageError, match="--layout is for VOC files; these are read as made-up"):
        assert_detections(*paths, fail_under=0.5, layout="image-files")


def test_check(files: Path) -> None:
    ended = run(files, "check", "--gt", "gt.boxes", "--dt", "bad.boxes")
    assert ended.returncode == 2
    assert "bad.boxes: line 1: has 3 columns" in ended.stderr
    alone = run(files, "check", "--dt", "dt.boxes")
    assert "Made-up detections require --gt" in alone.stderr


def test_settings(files: Path) -> None:
    settings = 'format = "made-up"\ngt = "gt.boxes"\ndt = "dt.boxes"\nunits = 2\n'
    (files / "detap.toml").write_text(settings)
    ended = run(files, "eval", "--output-format", "json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["summary"]["mAP"] == 0.5
    assert "units" in run(files, "config").stdout


def test_an_unknown_format_gets_suggestions() -> None:
    with pytest.raises(UsageError, match="format 'coko' is unknown; did you mean coco"):
        format_named("coko")
    with pytest.raises(UsageError, match="format 'xyz' is unknown; use coco or voc"):
        format_named("xyz")


def test_the_format_of_the_contributing_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes one file and one line; both are as the guide shows them."""
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = guide.split("## A format from nothing")[1].split("\n## ")[0]
    file, line = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(file.splitlines()) <= 45
    assert len(line.splitlines()) == 1
    (tmp_path / "spots.py").write_text(file)
    monkeypatch.syspath_prepend(tmp_path)
    entry = eval(line.replace("detap.formats.spots", "spots"), {"Line": Line})
    monkeypatch.setitem(FORMATS.lines, "spots", entry)
    spot = {"class": "cat", "x": 1, "y": 2, "w": 10, "h": 20}
    truth = [{"file": "a.jpg", "spots": [spot]}, {"file": "b.jpg", "spots": [spot]}]
    detected = [{"file": "a.jpg", "spots": [{**spot, "score": 0.9}]}]
    for name, content in (("gt", truth), ("dt", detected), ("bad", [{"file": "a.jpg"}])):
        (tmp_path / f"{name}.spots").write_text(json.dumps(content))
    result = detap.evaluate(tmp_path / "gt.spots", tmp_path / "dt.spots", "voc2012")
    assert result.summary["mAP"] == 0.5  # the first of two objects is found
    with pytest.raises(detap.InputError, match=r"bad.spots: \[0\]: spots is missing"):
        detap.read_ground_truth(tmp_path / "bad.spots")
