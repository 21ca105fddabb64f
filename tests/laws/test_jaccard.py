"""The Jaccard index against every matching, for any data."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detap
from detap.analysis.bootstrap import Weights, draw_weights, resampled
from detap.errors import InputError, UsageError
from detap.evaluation.detection import evaluate, on_images, score_tables
from detap.evaluation.partial import Partial, jaccard_columns
from detap.protocols import Protocol, protocol
from tests.cases import RANKED, Case, cases
from tests.laws.test_partials import image_by_image, split_randomly
from tests.oracle.jaccard import SAME, jaccard_index
from tests.oracle.resampling import repeated
from tests.parity.compare import assert_same_bits

PROTOCOLS = [
    *(one for one in RANKED.values() if one.group_of_weight is None),
    replace(protocol("coco"), max_dets_scope="image", max_dets=(1, 2, 4)),
    replace(protocol("voc2012"), iou_thresholds=(0.3, 0.5)),
]


@given(cases(), st.sampled_from(PROTOCOLS))
def test_the_index_is_that_of_a_matching_of_largest_total_iou(
    case: Case, protocol: Protocol
) -> None:
    """With ties, ignored objects and images without objects or detections."""
    tables = case.tables()
    result = evaluate(*tables, protocol)
    for t in (0, len(protocol.iou_thresholds) - 1):
        percent = format(100 * protocol.iou_thresholds[t], ".6g")
        for label, value in enumerate(result.metric_by_class(f"JI@{percent}").tolist()):
            low, high = jaccard_index(*tables, protocol, label, t)
            if np.isnan(low):
                assert np.isnan(value)
            else:
                assert low - SAME <= value <= high + SAME


@given(cases(distinct_scores=True), st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_a_weight_equals_copies_of_the_image(case: Case, drawn: list[int]) -> None:
    truth, detections = case.tables()
    weights = drawn[: len(truth.images)]
    if not any(weights):
        return
    ours = resampled(
        evaluate(truth, detections, "coco"), Weights.from_table(np.array([weights])), ["JI"]
    )
    copied = evaluate(*repeated(truth, detections, weights), "coco")
    expected = copied.metric_by_class("JI")
    np.testing.assert_allclose(ours.by_class["JI"][:, 0], expected, atol=1e-12)
    assert ours.overall["JI"][0] == pytest.approx(copied.metric("JI"), abs=1e-12, nan_ok=True)


@given(cases())
def test_a_slice_of_all_images_changes_nothing(case: Case) -> None:
    result = evaluate(*case.tables(), "coco")
    again = on_images(result, result.images)
    assert result.metric_by_class("JI").tobytes() == again.metric_by_class("JI").tobytes()


@given(cases(), st.integers(0, 1), st.booleans(), st.data())
def test_merged_partials_have_the_same_bits(
    case: Case, index: int, shared: bool, data: st.DataObject
) -> None:
    rules = protocol("coco") if index else protocol("voc2012")
    listed = replace(rules, metrics=("JI", "JI@75") if index else ("JI",))
    truth, detections = case.tables()
    detections = image_by_image(detections)
    whole = score_tables(truth, detections, listed)
    owner = [data.draw(st.integers(0, 4)) for _ in truth.images]
    shared_truth = truth if shared else None
    parts = [
        Partial.of(score_tables(*tables, listed), ground_truth=shared_truth)
        for tables in split_randomly(truth, detections, owner)
    ]
    merged = detap.merge([detap.merge(parts[:2]).to_bytes(), *parts[2:]])
    assert merged.to_bytes() == Partial.of(whole, ground_truth=shared_truth).to_bytes()
    weights = draw_weights(len(truth.images), 3, 1)
    images = [name for name in truth.images if data.draw(st.booleans())]
    for partial in (merged, detap.merge([merged.to_bytes()])):
        result = partial.compute()
        for name in listed.metrics:
            assert_same_bits(result.metric_by_class(name), whole.metric_by_class(name), name)
            left, right = (resampled(one, weights, [name]) for one in (result, whole))
            assert_same_bits(left.by_class[name], right.by_class[name], name)
            if images:
                part, same = (on_images(one, images) for one in (result, whole))
                assert_same_bits(part.metric_by_class(name), same.metric_by_class(name), name)
        label = result.classes[0]
        selected = partial.select([label]).compute()
        assert_same_bits(
            selected.metric_by_class(listed.metrics[0])[:1],
            whole.metric_by_class(listed.metrics[0])[[whole.classes.index(label)]],
            "selected",
        )


def test_partials_keep_matches_only_for_a_listed_index() -> None:
    box = [[0.0, 0.0, 9.0, 9.0]]
    truth = detap.GroundTruth.from_arrays(image=[1], label=["person"], boxes=box)
    detections = detap.Detections.from_arrays(image=[1], label=["person"], boxes=box, score=[0.5])
    part = Partial.of(score_tables(truth, detections, protocol("coco")))
    assert b"jaccard" not in part.to_bytes()
    message = "^JI: the partials keep no matches for it; create them with --metrics JI$"
    with pytest.raises(UsageError, match=message):
        detap.merge([part]).compute().metric("JI")


def test_repeated_images_are_identical_only_with_equal_counts() -> None:
    """A false positive lies in a difficult object by 6 or 4 tenths; its match is the same."""
    listed = replace(protocol("voc2012"), metrics=("JI",), inclusive_pixels=False)
    parts = []
    for left in (4.0, 6.0):
        truth = detap.GroundTruth.from_arrays(
            image=[1, 1],
            label=["person"] * 2,
            boxes=[[10.0, 0.0, 30.0, 10.0], [50.0, 0.0, 60.0, 10.0]],
            difficult=[True, False],
        )
        detections = detap.Detections.from_arrays(
            image=[1], label=["person"], boxes=[[left, 0.0, left + 10, 10.0]], score=[0.95]
        )
        parts.append(Partial.of(score_tables(truth, detections, listed)))
    assert [part.jaccard[0].objects.tolist() for part in parts] == [[[2] * 10], [[1] * 10]]
    detap.merge([parts[0], parts[0].to_bytes()], repeats="identical")
    with pytest.raises(InputError, match="image 1 is in two partials with different rows"):
        detap.merge(parts, repeats="identical")


def test_damaged_counts_are_rejected() -> None:
    box = [[0.0, 0.0, 9.0, 9.0]]
    truth = detap.GroundTruth.from_arrays(image=[1], label=["person"], boxes=box)
    detections = detap.Detections.from_arrays(image=[1], label=["person"], boxes=box, score=[0.5])
    listed = replace(protocol("coco"), metrics=("JI",))
    (counts,) = Partial.of(score_tables(truth, detections, listed)).jaccard
    assert counts.matched.tolist() == [[1] * 5 + [0] * 5]
    good = jaccard_columns.columns([counts])
    for name, column in {
        "jaccard_label": [1],
        "jaccard_image": [1],
        "jaccard_matched": [2] * 10,
        "jaccard_objects": [1] * 9,
    }.items():
        with pytest.raises(ValueError, match="Jaccard counts"):
            jaccard_columns.read(good | {name: np.array(column)}, 1, (1, 1))
