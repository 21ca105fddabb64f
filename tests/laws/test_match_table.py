"""Invariants of the match table: accumulating, splitting, merging and selecting."""

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detap.core.arrays import Scores
from detap.core.matching import accumulate
from detap.evaluation.detection import evaluate
from detap.evaluation.scoring import on_images, score_tables
from detap.evaluation.selection import select
from detap.protocols import ANY_AREA, AreaRange, Protocol, protocol
from tests.cases import MORE, RANKED, Case, cases, crowded_cases
from tests.depth import examples
from tests.parity.compare import assert_same_bits
from tests.parity.test_core_is_oracle import any_protocol as any_axes

ANY_RULES = [
    *RANKED.values(),
    replace(protocol("coco"), class_agnostic=True),
    replace(protocol("voc2012"), class_agnostic=True),
    replace(protocol("coco"), tie_break="file"),
    replace(protocol("voc2012"), tie_break="image"),
    replace(protocol("coco"), max_dets_scope="image", max_dets=(1, 2, 4)),
    replace(protocol("coco"), max_dets=(1, 2, None)),
    replace(protocol("coco"), iou_thresholds=tuple(np.linspace(0.2, 0.9, 64).tolist())),
    replace(protocol("voc2012"), iou_thresholds=tuple(np.linspace(0.2, 0.9, 17).tolist())),
]
protocols_with_more_data = st.sampled_from([*MORE.values()])
any_protocol = st.one_of(st.sampled_from(ANY_RULES), protocols_with_more_data)


def assert_same_scores(ours: Scores, theirs: Scores) -> None:
    for name in ("precision", "average", "recall", "positives", "counts"):
        assert_same_bits(getattr(ours, name), getattr(theirs, name), name)


@given(cases(), any_protocol)
def test_accumulating_a_match_table_equals_the_direct_pass_bitwise(
    case: Case, protocol: Protocol
) -> None:
    result = evaluate(*case.tables_for(protocol), protocol)
    for threads in (1, 2):
        assert_same_scores(accumulate(result.match_table, threads=threads), result._run.evaluate())
    last = accumulate(result.match_table, all_max_dets=True).precision[-1:]
    assert_same_bits(last, result._run.evaluate().precision, "the largest of all limits")


@given(cases(), any_protocol)
def test_smaller_max_dets_equal_a_protocol_that_ends_with_them(
    case: Case, protocol: Protocol
) -> None:
    """Precision at max dets m is that of a protocol whose largest value is m."""
    every = accumulate(
        evaluate(*case.tables_for(protocol), protocol).match_table, all_max_dets=True
    ).precision
    for m in range(1, len(protocol.max_dets)):
        alone = replace(protocol, max_dets=protocol.max_dets[:m])
        fused = evaluate(*case.tables_for(protocol), alone)._run.evaluate()
        assert_same_bits(every[m - 1 : m], fused.precision, f"limit {m}")


@given(
    cases(),
    st.one_of(st.sampled_from([*ANY_RULES, protocol("proposals")]), protocols_with_more_data),
    st.data(),
)
def test_selected_images_are_not_matched_again(
    case: Case, protocol: Protocol, data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.sampled_from(case.images), min_size=1))
    truth, detections = case.tables_for(protocol)
    if protocol.name == "proposals":
        truth, detections = (
            replace(truth, label=truth.label * 0),
            replace(detections, label=detections.label * 0),
        )
    ours = on_images(evaluate(truth, detections, protocol), chosen)
    theirs = evaluate(*select(truth, detections, images=chosen), protocol)
    assert ours.ground_truth.images == theirs.ground_truth.images
    for name in (
        "average_precision",
        "recall",
        "precision",
        "ground_truths",
        "ignored",
        "within_max_dets",
        *("detections_count", "true_positives", "false_positives", "duplicates"),
    ):
        assert_same_bits(getattr(ours, name), getattr(theirs, name), name)
    if protocol.name == "proposals":
        return
    for name in (
        "image",
        "true_positive",
        "ignored",
        "matched_gt",
        "positive",
        "truth_image",
        "max_iou",
    ):
        left, right = getattr(ours.match_table, name), getattr(theirs.match_table, name)
        assert_same_bits(left, right, name)


@given(cases(), any_protocol)
def test_bits_equal_the_arrays_of_matches(case: Case, protocol: Protocol) -> None:
    result = evaluate(*case.tables_for(protocol), protocol, matches=True)
    bits = evaluate(*case.tables_for(protocol), protocol, match_table=True).match_table
    assert result.matches is not None
    assert_same_bits(bits.within_max_dets, result.matches.counted, "counted")
    assert_same_bits(bits.matched_gt[0], result.matches.ground_truth[0, 0], "matched_gt")
    for a in range(len(protocol.area_ranges)):
        for t in range(len(protocol.iou_thresholds)):
            ignored = result.matches.ignored[a, t]
            assert_same_bits(bits.is_ignored(a, t), ignored, "ignored")
            right = (result.matches.ground_truth[a, t] >= 0) & ~ignored
            assert_same_bits(bits.is_true_positive(a, t), right, "true_positive")
    assert not (bits.true_positive & bits.ignored).any()


# --- the table of matches


PRESETS = st.builds(
    replace,
    st.sampled_from([protocol("coco"), protocol("voc2007"), protocol("voc2012")]),
    ignore_flags=st.sampled_from(((), ("difficult",), ("crowd", "difficult"))),
    crowd_flags=st.just(()),
    max_dets=st.sampled_from(((None,), (1, 2), (3,), (1, 10, 100))),
    max_dets_scope=st.sampled_from(("class", "image")),
    area_ranges=st.sampled_from(((ANY_AREA,), (AreaRange("x", 4.0, 800.0, "x"),))),
)


@given(cases(), st.one_of(PRESETS, any_axes()))
@examples(200)
def test_counts_equal_those_of_the_class_table(case: Case, protocol: Protocol) -> None:
    result = evaluate(*case.tables(), protocol)
    table = result.matches_table(iou=protocol.iou_thresholds[0])
    counts = Counter(zip(table["class"].tolist(), table["result"].tolist(), strict=True))
    rows = Counter(table["class"].tolist())
    for label, name in enumerate(result.classes):
        right, wrong, missed = (
            counts[name, kind] for kind in ("true-positive", "false-positive", "false-negative")
        )
        assert right == result.true_positives[label]
        assert wrong == result.false_positives[label]
        assert right + missed == result.ground_truths[label]
        assert rows[name] - missed == result.detections_count[label]
    errors = Counter(zip(table["result"].tolist(), (table["error"] != "").tolist(), strict=True))
    assert not errors["false-positive", False]
    assert not errors["true-positive", True]


# --- threads


COLUMNS = ("max_dets_index", "true_positive", "ignored", "duplicate", "max_iou", "matched_gt")


@given(st.one_of(cases(), crowded_cases()), any_protocol, st.sampled_from((2, 3, 8)))
def test_threads_change_no_result(case: Case, protocol: Protocol, count: int) -> None:
    run = score_tables(*case.tables_for(protocol), protocol)._run
    run.threads = 1
    plain, match_table = run.evaluate(), run.match_table()
    run.threads = count
    assert_same_scores(run.evaluate(), plain)
    kept = run.match_table()
    for name in COLUMNS:
        assert_same_bits(getattr(kept, name), getattr(match_table, name), name)
    for ours, theirs in zip(kept.ranking, match_table.ranking, strict=True):
        assert_same_bits(ours, theirs, "ranking")
    levels = accumulate(match_table, threads=1, all_max_dets=True)
    assert_same_scores(accumulate(kept, threads=count, all_max_dets=True), levels)
