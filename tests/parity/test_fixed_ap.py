"""Fixed AP: a limit per class over the data set (measures.md, section 4)."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detap
from detap.errors import UsageError
from detap.evaluation.detection import evaluate
from detap.evaluation.scoring import score_tables
from detap.protocols import PRESETS, Protocol, protocol
from tests.cases import Case, cases

BOXES = "results = lvis-val-100-results/lvis_results_bbox.json"
WITH_MORE = "results + lvis_extra.json (made, seed 7), in this order"


@pytest.fixture(scope="module")
def expected(measures: Path) -> Any:
    return json.loads((measures / "lvis_fixed_expected.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def files(
    real_data: Path, measures: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    results = real_data / "lvis-val-100-results" / "lvis_results_bbox.json"
    more = json.loads((measures / "lvis_extra.json").read_text("utf-8"))
    both = tmp_path_factory.mktemp("fixed") / "both.json"
    both.write_text(json.dumps([*json.loads(results.read_text("utf-8")), *more]))
    return {BOXES: results, WITH_MORE: both}


def test_values_of_the_reference(real_data: Path, expected: Any, files: dict[str, Path]) -> None:
    truth = detap.read_ground_truth(real_data / "lvis-val-100" / "lvis_val_100.json")
    compared = 0
    for title, file in files.items():
        detections = detap.read_detections(file, truth)
        for name, values in expected[title].items():
            if not name.startswith("fixed "):
                continue
            limit = int(name.removeprefix("fixed "))
            rules = replace(protocol("lvis-fixed"), max_dets=(limit,))
            result = evaluate(truth, detections, rules)
            assert len(result.detections) == values["detections_kept"]
            assert len(result.summary) == 9  # no AR
            assert result.summary == {key: values[key] for key in result.summary}
            compared += 1
    assert compared >= 8


@pytest.mark.parametrize(
    ("limit", "expected"), [(10000, 0.4254952858865378), (5, 0.3767507382317179)]
)
def test_masks_of_the_reference(real_data: Path, limit: int, expected: float) -> None:
    """AP of lvis 0.5.3 without a limit, run on the best masks of each class, without boxes."""
    truth = real_data / "lvis-val-100" / "lvis_val_100.json"
    masks = real_data / "lvis-val-100-results" / "lvis_results_segm.json"
    rules = replace(protocol("lvis-fixed-segm"), max_dets=(limit,))
    assert detap.evaluate(truth, masks, protocol=rules).summary["AP"] == expected


def test_classes_with_fewer_detections_are_noted(real_data: Path, files: dict[str, Path]) -> None:
    truth = real_data / "lvis-val-100" / "lvis_val_100.json"
    result = detap.evaluate(truth, files[BOXES], protocol="lvis-fixed")
    (note,) = (note for note in result.notes if note.code == "fewer-than-max-dets")
    expected = "classes have fewer than 10000 detections; more could raise their AP"
    assert (note.message, note.severity) == (expected, "info")
    classes = {row["category_id"] for row in json.loads(truth.read_text("utf-8"))["annotations"]}
    assert note.count == len(classes)


# --- any data

LIMITS = st.sampled_from((1, 2, 4))
RULES = st.sampled_from((PRESETS["coco"], PRESETS["voc2012"], PRESETS["tidecv-ap"]))


@given(cases(), RULES, LIMITS)
def test_the_limit_is_that_of_a_file_without_the_others(
    case: Case, rules: Protocol, limit: int
) -> None:
    """As the reference, which writes the best detections of each class and scores these."""
    truth, detections = case.tables()
    order = np.argsort(-detections.score, kind="stable").tolist()
    if rules.tie_break == "image":
        order = np.lexsort((detections.image, -detections.score)).tolist()
    rows = []
    for label in range(len(detections.classes)):
        rows += [row for row in order if detections.label[row] == label][:limit]
    best = detections.select(np.array(sorted(rows), np.intp))
    limited = replace(rules, max_dets=(limit,), max_dets_scope="dataset", metrics=("CPM",))
    ours = score_tables(truth, detections, limited)
    theirs = score_tables(truth, best, replace(rules, max_dets=(None,), metrics=("CPM",)))
    values = theirs.average_precision.tobytes()
    assert ours.average_precision.tobytes() == values
    assert repr(ours.metric("CPM")) == repr(theirs.metric("CPM"))


# --- refused


def test_proposals_have_no_limit_of_the_data_set() -> None:
    with pytest.raises(UsageError, match="labels no detection TP or FP; use --max-dets-scope cl"):
        replace(protocol("proposals"), max_dets=(10,), max_dets_scope="dataset")
