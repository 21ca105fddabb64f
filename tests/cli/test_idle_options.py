"""Options without effect are rejected, and the hints of the messages work."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.errors import UsageError
from detap.evaluation.scoring import score_tables
from detap.protocols import Protocol, protocol
from detap.testing import assert_detections
from tests.cases import Case, cases
from tests.cli.conftest import CLASSES, Files, Run, write_coco

COVERAGE = {
    "interpolation": "11-point",
    "recall-grid": "hundredths",
    "precision-eps": "0",
    "absent-class": "zero",
    "candidate": "best",
    "equal-iou": "first",
    "max-dets-scope": "image",
    "annotation-id-zero": "unmatched",
    "crowd-flags": "crowd",
}


@pytest.fixture
def here(cwd: Path) -> Files:
    """Write the small case and its class names to the working directory."""
    Path("names.txt").write_text("\n".join(CLASSES.values()))
    return write_coco(cwd)


@pytest.mark.parametrize("name", COVERAGE)
def test_proposals_have_only_recall(detap: Run, coco: Files, name: str) -> None:
    asked = (*coco.arguments, "--protocol", "proposals")
    said = detap(*asked, f"--{name}", COVERAGE[name]).refused()
    assert f"--{name} has no effect: matching by-iou gives the recall of one class" in said
    assert f"leave out --{name}" in said
    assert detap(*asked).status == 0


@pytest.mark.parametrize(
    ("words", "message", "works"),
    [
        (
            "--protocol voc2012 --recall-grid hundredths",
            "--recall-grid has no effect: --interpolation all-point has no recall levels",
            "--protocol voc2012 --recall-grid hundredths --interpolation 101-point",
        ),
        (
            "--interpolation all-point --recall-grid float32",
            "--recall-grid has no effect",
            "--interpolation all-point",
        ),
        (
            "--protocol voc2012 --max-dets-scope image",
            "--max-dets-scope has no effect: --max-dets is none",
            "--protocol voc2012 --max-dets-scope image --max-dets 1",
        ),
        (
            "--protocol voc2012 --area-source box",
            "--area-source has no effect: --area-ranges has all areas only",
            "--protocol voc2012 --area-source box --area-ranges coco",
        ),
        (
            "--first-category-id 1",
            "(--first-category-id) requires class_names (--class-names)",
            "--first-category-id 1 --class-names names.txt",
        ),
        (
            "--fail-under 0.1 --min-ground-truths 5",
            "--min-ground-truths requires --max-drop or --max-rise",
            "--fail-under 0.1 --min-ground-truths 5 --max-drop 0 --baseline base.json",
        ),
    ],
)
def test_options_without_effect_are_rejected(
    detap: Run, here: Files, words: str, message: str, works: str
) -> None:
    assert detap(*here.arguments, "-o", "base.json").status == 0
    assert message in detap(*here.arguments, *words.split()).refused()
    assert detap(*here.arguments, *works.split()).status == 0


def test_values_of_the_preset_may_be_repeated(detap: Run, coco: Files) -> None:
    """The signature stays that of the preset, so later comparisons are not rejected."""
    asked = ("--protocol", "proposals", "--candidate", "best-unmatched", "--output-format", "json")
    ended = detap(*coco.arguments, *asked).passed()
    assert json.loads(ended.out)["signature"].startswith("protocol:proposals|detap:")


@pytest.mark.parametrize("option", ["--divisor=hits", "--no-relevant=exclude"])
def test_classification_without_k(detap: Run, tmp_path: Path, option: str) -> None:
    name = option.split("=", maxsplit=1)[0]
    (tmp_path / "scores.csv").write_text("sample,cat,dog\na,0.9,0.1\nb,0.2,0.8\n")
    (tmp_path / "labels.csv").write_text("sample,cat,dog\na,1,0\nb,0,1\n")
    files = ("--scores", tmp_path / "scores.csv", "--labels", tmp_path / "labels.csv")
    asked = ("rank", "classification", *files)
    assert f"{name} has no effect: it requires --k" in detap(*asked, option).refused()
    assert detap(*asked, option, "--k", "1").status == 0
    said = detap(*asked, "--recall-grid", "arange").refused()
    assert "--recall-grid has no effect: --interpolation all-point uses no recall levels" in said
    assert detap(*asked, "--recall-grid", "arange", "--interpolation", "11-point").status == 0


def test_python_rejects_them_too(coco: Files) -> None:
    with pytest.raises(UsageError, match="min_ground_truths requires max_drop or"):
        assert_detections(coco.gt, coco.dt, fail_under=0.1, min_ground_truths=5)


IDLE: list[tuple[Protocol, dict[str, Any]]] = [
    (protocol("proposals"), {"interpolation": "all-point"}),
    (protocol("proposals"), {"precision_eps": 0.0}),
    (protocol("proposals"), {"absent_class": "zero"}),
    (protocol("proposals"), {"candidate": "best"}),
    (protocol("proposals"), {"equal_iou": "first"}),
    (protocol("proposals"), {"max_dets_scope": "image"}),
    (protocol("proposals"), {"annotation_id_zero": "unmatched"}),
    (protocol("proposals"), {"crowd_flags": ("crowd",)}),
    (protocol("proposals"), {"recall_grid": "hundredths"}),
    (protocol("voc2012"), {"recall_grid": "hundredths"}),
    (protocol("voc2012"), {"max_dets_scope": "image"}),
    (protocol("voc2012"), {"area_source": "box"}),
]


@given(cases(), st.sampled_from(IDLE))
def test_none_of_them_changes_a_metric(case: Case, idle: tuple[Protocol, dict[str, Any]]) -> None:
    protocol, changes = idle
    other = replace(protocol, **changes)
    with pytest.raises(UsageError, match="has no effect"):
        other.check_effect(changes)
    truth, detections = case.tables()
    one, two = (score_tables(truth, detections, made) for made in (protocol, other))
    assert repr(one.summary) == repr(two.summary)


@pytest.mark.parametrize(
    ("option", "value"),
    [("confidence", "0.9"), ("seed", "3"), ("min-ground-truths", "5"), ("detectable-drop", "0.01")],
)
def test_compare_has_no_intervals_without_resamples(
    detap: Run, coco: Files, option: str, value: str
) -> None:
    words = [str(coco.dt), str(coco.dt), "--gt", str(coco.gt), f"--{option}", value]
    said = detap("compare", *words, "--resamples", "0").refused()
    assert said.rstrip().endswith(f"--{option} requires resamples; remove --resamples 0")
    assert detap("compare", *words).status == 0
