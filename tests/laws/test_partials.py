"""Invariants of partials: random shards, merged in any order, equal the whole."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import detap
from detap.analysis.bootstrap import draw_weights, resampled
from detap.evaluation.detection import on_images, score_tables
from detap.evaluation.partial import Partial
from detap.evaluation.results import Result
from detap.evaluation.tie_range import tie_range
from detap.protocols import Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.cases import Case, cases
from tests.laws.test_match_table import ANY_RULES, protocols_with_more_data
from tests.parity.compare import assert_same_bits

partial_module = import_module("detap.evaluation.partial.partial")
EVERY = [*ANY_RULES, protocol("proposals"), replace(protocol("proposals"), empty_images="exclude")]
every_protocol = st.one_of(st.sampled_from(EVERY), protocols_with_more_data)

ARRAYS = ("average_precision", "recall", "precision")
COUNTS = (
    "ground_truths",
    "ignored",
    "detections_count",
    "true_positives",
    "false_positives",
    "duplicates",
    "within_max_dets",
)


def assert_same_numbers(ours: Result, theirs: Result) -> None:
    assert ours.images == theirs.images
    assert ours.class_ids == theirs.class_ids
    assert ours.classes == theirs.classes
    for name in (*ARRAYS, *COUNTS):
        assert_same_bits(getattr(ours, name), getattr(theirs, name), name)
    for name, value in theirs.summary.items():
        assert_same_bits(np.array(ours.summary[name]), np.array(value), name)


def assert_same_analyses(ours: Result, theirs: Result) -> None:
    """Also compare later analyses of the result."""
    assert_same_numbers(ours, theirs)
    if theirs.protocol.matching == "by-iou":
        return
    assert_same_bits(ours.full_precision(), theirs.full_precision(), "full precision")
    for one, two in zip(ours.curves(), theirs.curves(), strict=True):
        for name in ("score", "precision", "recall", "interpolated"):
            assert_same_bits(getattr(one, name), getattr(two, name), name)
    names = list(theirs.summary)
    weights = draw_weights(len(theirs.images), 3, 1)
    left, right = (resampled(result, weights, names) for result in (ours, theirs))
    for name in names:
        assert_same_bits(left.by_class[name], right.by_class[name], name)
    points = [result.operating_point() for result in (ours, theirs)]
    left_points, right_points = (repr((point.overall, point.by_class)) for point in points)
    assert left_points == right_points


@given(cases(), every_protocol, st.sampled_from((1, 3, 7)), st.integers(1, 4), st.data())
def test_chunk_sizes_do_not_change_results(
    case: Case, protocol: Protocol, chunk: int, threads: int, data: st.DataObject
) -> None:
    """For any number of rows held at a time, and any number of threads."""
    truth, detections = case.tables_for(protocol)
    detections = image_by_image(detections)
    if protocol.matching == "by-iou":
        truth, detections = (
            replace(truth, label=truth.label * 0),
            replace(detections, label=detections.label * 0),
        )
    whole = score_tables(truth, detections, protocol)
    owner = [data.draw(st.integers(0, 4)) for _ in truth.images]
    parts = [
        Partial.of(score_tables(*tables, protocol))
        for tables in split_randomly(truth, detections, owner)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partial_module, "CHUNK", chunk)
        patch.setattr(partial_module, "MAX_CHUNK", chunk)
        merged = detap.merge(parts)
        assert_same_numbers(merged.compute(threads=threads), whole)
        data_of_chunks = merged.to_bytes()
    assert data_of_chunks == Partial.of(whole).to_bytes()


def image_by_image(table: Detections) -> Detections:
    """Return detections grouped by image, as rows without a file must be."""
    return table.select(np.argsort(table.image, kind="stable"))


def split_randomly(
    truth: GroundTruth, detections: Detections, owner: list[int]
) -> list[tuple[GroundTruth, Detections]]:
    """Return the tables of each shard, including shards without images."""
    shards = []
    for shard in range(5):
        kept = np.array([at == shard for at in owner], np.bool_)
        number = np.cumsum(kept, dtype=np.int32) - np.int32(1)
        images = tuple(name for name, here in zip(truth.images, kept, strict=True) if here)
        one = truth.select(kept[truth.image])
        two = detections.select(kept[detections.image])
        listed = {
            name: np.stack([number[pairs[:, 0]], pairs[:, 1]], axis=1)[kept[pairs[:, 0]]]
            for name, pairs in one.listed.items()
        }
        shards.append(
            (
                replace(one, image=number[one.image], images=images, listed=listed),
                replace(two, image=number[two.image], images=images),
            )
        )
    return shards


def merged_in_a_tree(parts: list[Partial], data: st.DataObject) -> Partial:
    """Merge some parts repeatedly, sometimes via bytes."""
    while len(parts) > 1:
        parts = list(data.draw(st.permutations(parts)))
        count = data.draw(st.integers(2, len(parts)))
        some = [part.to_bytes() if data.draw(st.booleans()) else part for part in parts[:count]]
        parts = [detap.merge(some), *parts[count:]]
    return detap.merge(parts)


@given(cases(), every_protocol, st.booleans(), st.booleans(), st.data())
def test_shards_merged_in_any_order_equal_the_whole(
    case: Case, protocol: Protocol, shared: bool, ties: bool, data: st.DataObject
) -> None:
    truth, detections = case.tables_for(protocol)
    detections = image_by_image(detections)
    ties = ties and protocol.group_of_weight is None  # which has no bounds of ties
    if protocol.matching == "by-iou":
        truth, detections = (
            replace(truth, label=truth.label * 0),
            replace(detections, label=detections.label * 0),
        )
    whole = score_tables(truth, detections, protocol)
    given = truth if shared else None
    owner = [data.draw(st.integers(0, 4)) for _ in truth.images]
    parts = [
        Partial.of(score_tables(*tables, protocol), ground_truth=given, tie_range=ties)
        for tables in split_randomly(truth, detections, owner)
    ]
    single = Partial.of(whole, ground_truth=given, tie_range=ties)
    merged = merged_in_a_tree(parts, data)
    assert_same_analyses(merged.compute(), whole)
    assert merged.to_bytes() == single.to_bytes()
    again = Partial.from_bytes(merged.to_bytes())
    assert_same_analyses(again.compute(threads=1), whole)
    if ties:
        assert repr(tie_range(again.compute())) == repr(tie_range(whole))
    chosen = data.draw(st.sets(st.sampled_from(case.images), min_size=1))
    some, alone = on_images(again.compute(), chosen), on_images(whole, chosen)
    assert_same_numbers(some, alone)
    if ties:
        assert repr(tie_range(some)) == repr(tie_range(alone))


@given(cases(), every_protocol, st.data())
def test_selected_classes(case: Case, protocol: Protocol, data: st.DataObject) -> None:
    truth, detections = case.tables_for(protocol)
    assume(not protocol.class_agnostic and protocol.max_dets_scope == "class")
    assume(protocol.group_of_weight is None)  # which has no bounds of ties
    detections = image_by_image(detections)
    chosen = sorted(data.draw(st.sets(st.integers(0, len(case.classes) - 1), min_size=1)))
    partial = Partial.of(score_tables(truth, detections, protocol), tie_range=True)
    ours = Partial.from_bytes(partial.select_classes(chosen).to_bytes()).compute()
    names = [truth.classes[label] for label in chosen]
    theirs = score_tables(*detap.select(truth, detections, classes=names), protocol)
    assert_same_numbers(ours, theirs)
    assert repr(tie_range(ours)) == repr(tie_range(theirs))
