"""Selecting classes changes none of their metrics."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import detap
from detap.analysis.breakdowns import breakdowns
from detap.analysis.comparison import count_errors
from detap.analysis.confusion import confusion
from detap.analysis.errors import TYPES, errors
from detap.analysis.examples import label_errors
from detap.analysis.match_results import MatchResults
from detap.errors import UsageError
from detap.evaluation.results import Result, class_rows
from detap.evaluation.scoring import on_images, score_tables
from detap.evaluation.selection import shrink
from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth
from tests.analysis.data import fixture
from tests.cases import MORE, Case, cases
from tests.parity.compare import assert_same_bits
from tests.tables import dt_table, gt_table

PRESETS = {
    name: protocol for name, protocol in Protocol.presets.items() if not protocol.class_agnostic
}
COUNTS = (
    "ground_truths",
    "ignored",
    "detections_count",
    "true_positives",
    "false_positives",
    "duplicates",
    "within_max_dets",
)
WITHOUT_KEYPOINTS = [protocol for protocol in PRESETS.values() if protocol.iou_type != "keypoints"]
ANY = st.one_of(
    st.sampled_from(WITHOUT_KEYPOINTS),
    st.sampled_from([protocol for protocol in MORE.values() if not protocol.class_agnostic]),
    st.just(replace(PRESETS["coco"], max_dets_scope="image", max_dets=(1, 2, 3))),
    st.just(replace(PRESETS["voc2012"], absent_class="zero-if-detected")),
)


def tables_of(case: Case, protocol: Protocol) -> tuple[GroundTruth, Detections]:
    """Return tables with the data that the protocol needs: KITTI's columns, class names."""
    truth, detections = case.tables_for(protocol)
    if protocol.matching != "kitti":
        return truth, detections
    extra = {name: np.zeros(len(truth)) for name in ("truncated", "occluded")}
    names = ("Car", "Van", "Pedestrian")[: len(truth.classes)]
    return replace(truth, extra=extra, classes=names), replace(detections, classes=names)


def assert_classes_of(part: Result, whole: Result, names: list[str]) -> None:
    """Assert that a selection has classes of the whole with the same metrics."""
    labels = [whole.classes.index(name) for name in names]
    assert part.classes == tuple(names)
    assert part.class_ids == tuple(whole.class_ids[label] for label in labels)
    assert_same_bits(part.average_precision, whole.average_precision[:, labels], "AP")
    assert_same_bits(part.recall, whole.recall[:, labels], "recall")
    assert_same_bits(part.precision, whole.precision[:, :, labels], "precision")
    for name in COUNTS:
        assert_same_bits(getattr(part, name), getattr(whole, name)[labels], name)
    rows = class_rows(whole)
    assert repr(class_rows(part)) == repr([rows[label] for label in labels])


def drawn(data: st.DataObject, names: tuple[str, ...]) -> list[str]:
    kept = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    return [name for name in names if name in kept]


@given(cases(), ANY, st.data())
def test_each_selected_class_has_the_metrics_of_the_whole_run(
    case: Case, protocol: Protocol, data: st.DataObject
) -> None:
    truth, detections = tables_of(case, protocol)
    whole = score_tables(truth, detections, protocol)
    names = drawn(data, whole.classes)
    for match_table in (False, True):
        part = score_tables(truth, detections, protocol, classes=names, match_table=match_table)
        assert_classes_of(part, whole, names)
        if protocol.matching == "by-score":
            labels = [whole.classes.index(name) for name in names]
            assert_same_bits(
                part.full_precision(), whole.full_precision()[:, :, labels], "full precision"
            )
    images = data.draw(st.lists(st.sampled_from(case.images), min_size=1, unique=True))
    assert_classes_of(on_images(part, images), on_images(whole, images), names)
    chosen = score_tables(truth, detections, protocol, classes=names, images=images)
    assert_classes_of(chosen, score_tables(truth, detections, protocol, images=images), names)


@given(cases(), ANY, st.data())
def test_errors_of_selected_classes_equal_those_among_all(
    case: Case, protocol: Protocol, data: st.DataObject
) -> None:
    assume(protocol.matching == "by-score")
    truth, detections = case.tables_for(protocol)
    whole = score_tables(truth, detections, protocol)
    names = drawn(data, whole.classes)
    labels = [whole.classes.index(name) for name in names]
    part = score_tables(truth, detections, protocol, classes=names)
    conventions: list[Any] = ["protocol"]
    if (
        protocol.iou_type == "bbox"
        and protocol.verified == "all"
        and protocol.not_exhaustive == "count"
    ):
        conventions.append("tidecv")
    for convention in conventions:
        ours, theirs = errors(part, convention), errors(whole, convention)
        assert ours.classes == tuple(names)
        for name in ("delta_ap_by_class", "count_by_class"):
            assert_same_bits(getattr(ours, name), getattr(theirs, name)[:, labels], name)
        assert len(ours.kind) == len(part.detections)
        assert len(ours.missed) == len(part.ground_truth)
        assert (np.bincount(ours.kind[ours.kind >= 0], minlength=5) == ours.count[:5]).all()
    kept = [*labels, len(whole.classes)]
    cells = confusion(part)
    assert (cells.matrix == confusion(whole).matrix[np.ix_(kept, kept)]).all()
    assert len(cells.detection) == len(cells.ground_truth) == cells.matrix.sum()
    each = [score_tables(truth, detections, protocol, classes=[name]) for name in whole.classes]
    crowding = np.array([breakdowns(one).crowding.ground_truths for one in each])
    assert crowding.sum(axis=0).tolist() == breakdowns(whole).crowding.ground_truths.tolist()
    kinds = count_errors(part)
    assert (kinds.by_class == count_errors(whole).by_class[labels]).all()
    assert (kinds.by_image.sum(axis=0) == kinds.by_class.sum(axis=0)).all()


def test_the_errors_worked_by_hand_with_a_class_selected() -> None:
    """fixtures/error-types.

    A cat detected as a dog stays a classification error without the cats.
    """
    result = fixture()
    whole = errors(result)
    kind = TYPES.index("classification")
    of_class = whole.count_by_class[kind]
    name = result.classes[int(of_class.argmax())]
    part = detap.evaluate(result.ground_truth, result.detections, classes=[name]).errors()
    assert part.of_type("classification")[1] == of_class.max() > 0
    outcome = MatchResults.of(
        detap.evaluate(result.ground_truth, result.detections, classes=[name])
    )
    suspicious = label_errors(outcome, part, max_count=9)
    reasons = {reason for reason, _, _ in suspicious}
    assert "wrong_label" not in reasons  # that annotation is not shown


def test_an_evaluator_reports_some_classes() -> None:
    """Max dets 1 per image: the dog of .8 is cut, since the cat of .9 ranks first."""
    protocol = replace(PRESETS["coco"], max_dets_scope="image", max_dets=(1,))
    box = [[0.0, 0.0, 10.0, 10.0]]
    truth = GroundTruth.from_arrays(image=[1, 1, 2], label=["cat", "dog", "dog"], boxes=box * 3)
    evaluator = detap.Evaluator(truth, protocol, "xyxy", images=[1])
    evaluator.update([1], [box * 2], [[0.9, 0.8]], [["cat", "dog"]])
    result = evaluator.compute(classes=["dog"])
    assert result.classes == ("dog",)
    assert result.summary["AP"] == 0.0
    assert evaluator.compute().by_class["AP"].tolist() == [pytest.approx(1.0), 0.0]
    assert result.signature.split("|")[3:5] == ["classes:1-of-2-cd6357ef", "images:1-of-2-6b86b273"]


def test_the_signature_contains_a_digest_of_the_selection() -> None:
    """The digest is that of ``printf 'bird\\ncat' | sha256sum``."""
    truth = GroundTruth.from_arrays(
        image=[1, 2, 3], label=["cat", "dog", "bird"], boxes=[[0, 0, 9, 9]] * 3
    )
    detections = detap.Detections.from_arrays(
        image=[1, 2, 3], label=["cat", "dog", "bird"], boxes=[[0, 0, 9, 9]] * 3, score=[1.0] * 3
    )
    result = detap.evaluate(truth, detections, classes=["cat", "bird"], images=[3, 1])
    assert result.signature.split("|")[1:3] == ["classes:2-of-3-07fb7c93", "images:2-of-3-e9348026"]
    assert Protocol.parse(result.signature) == Protocol.preset("coco")


def test_unknown_classes_and_text_are_refused() -> None:
    truth = gt_table([[0, 0, 9, 9]], image=1, label="cat")
    detections = dt_table([[0, 0, 9, 9]], [1.0], image=1, label="cat")
    with pytest.raises(UsageError, match=r"class 'cst' is not in the ground truth; .*cat"):
        detap.evaluate(truth, detections, classes=["cst"])
    with pytest.raises(UsageError, match="classes is 'cat'; give a list of names"):
        detap.evaluate(truth, detections, classes="cat")
    with pytest.raises(UsageError, match="images is 5; give a list of names"):
        detap.evaluate(truth, detections, images=5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="image '2' is not in the ground truth"):
        detap.select(truth, detections, images=[2])


def test_listed_pairs_of_selected_images_and_classes() -> None:
    """Of the pairs (1, cat), (2, cat), (2, dog) and (3, dog)."""
    truth = GroundTruth.from_arrays(
        image=[1, 2, 3],
        label=["cat", "dog", "dog"],
        boxes=[[0, 0, 9, 9]] * 3,
        listed={"negative": [(1, "cat"), (2, "cat"), (2, "dog"), (3, "dog")]},
    )
    detections = dt_table([[0, 0, 9, 9]], [1.0], image=1, label="cat")
    by_image, _ = detap.select(truth, detections, images=[2, 3])
    assert by_image.listed["negative"].tolist() == [[0, 0], [0, 1], [1, 1]]
    by_both, _ = detap.select(truth, detections, images=[2, 3], classes=["dog"])
    assert by_both.listed["negative"].tolist() == [[0, 0], [1, 0]]
    without_classes = shrink(truth, np.array([False, True, True]))
    assert without_classes.listed["negative"].tolist() == [[0, 0], [0, 1], [1, 1]]
