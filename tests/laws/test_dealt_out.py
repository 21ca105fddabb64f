"""Large classes split into chunks for threads give the same bits as one pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.core import matching, threads
from detap.core.accumulate import accumulate
from detap.evaluation.detection import score_tables
from detap.protocols import Protocol
from tests.cases import EVERY_RANKED, Case, cases, crowded_cases
from tests.laws.test_match_table import any_protocol, assert_same_scores
from tests.parity.compare import assert_same_bits

COUNTS = (2, 3, 8)


@contextmanager
def split_into_chunks(rows: int) -> Iterator[None]:
    """Split classes larger than a thread's part into chunks of `rows` rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "MIN_SPLIT_ROWS", 1)
        patch.setattr(matching, "CHUNK_SIZE", rows)
        yield


def assert_splitting_changes_nothing(
    case: Case, protocol: Protocol, one_class: bool, rows: int
) -> None:
    truth, detections = case.tables_for(protocol)
    if one_class:
        truth = replace(truth, label=truth.label * 0)
        detections = replace(detections, label=detections.label * 0)
    else:
        # Lists of what was looked for are said class by class.
        every: dict[str, Any] = {
            "class_agnostic": True,
            "verified": "all",
            "not_exhaustive": "count",
            "class_groups": "none",
        }
        protocol = replace(protocol, **every)
    generated = score_tables(truth, detections, protocol)._run
    generated.threads = 1
    plain = generated.evaluate()
    match_table = generated.match_table()
    levels = accumulate(match_table, threads=1, all_max_dets=True)
    with split_into_chunks(rows):
        for count in COUNTS:
            generated.threads = count
            assert_same_scores(generated.evaluate(), plain)
            kept = generated.match_table()
            for name in (
                "max_dets_index",
                "true_positive",
                "ignored",
                "duplicate",
                "max_iou",
                "matched_gt",
            ):
                assert_same_bits(getattr(kept, name), getattr(match_table, name), name)
            for ours, theirs in zip(kept.ranking, match_table.ranking, strict=True):
                assert_same_bits(ours, theirs, "ranking")
            assert_same_scores(accumulate(kept, threads=count, all_max_dets=True), levels)


@given(cases(), any_protocol, st.booleans(), st.integers(1, 4))
def test_few_boxes(case: Case, protocol: Protocol, one_class: bool, rows: int) -> None:
    assert_splitting_changes_nothing(case, protocol, one_class, rows)


@pytest.mark.parametrize("name", EVERY_RANKED)
@given(cases(), st.booleans())
def test_every_preset(name: str, case: Case, one_class: bool) -> None:
    assert_splitting_changes_nothing(case, EVERY_RANKED[name], one_class, 2)


@given(crowded_cases(), any_protocol, st.booleans(), st.integers(1, 200))
def test_many_equal_scores(case: Case, protocol: Protocol, one_class: bool, rows: int) -> None:
    assert_splitting_changes_nothing(case, protocol, one_class, rows)


@given(cases(), any_protocol, st.integers(1, 4))
def test_large_classes_among_others(case: Case, protocol: Protocol, rows: int) -> None:
    """Some classes are split, others are not."""
    generated = score_tables(*case.tables_for(protocol), protocol)._run
    generated.threads = 1
    plain, match_table = generated.evaluate(), generated.match_table()
    with split_into_chunks(rows):
        for count in COUNTS:
            generated.threads = count
            assert_same_scores(generated.evaluate(), plain)
            kept = generated.match_table()
            assert_same_bits(kept.true_positive, match_table.true_positive, "true_positive")
            assert_same_bits(kept.ranking.rows, match_table.ranking.rows, "ranking")


def test_chunks_per_thread() -> None:
    assert threads.max_rows_per_thread(10**6, 1) == 10**6
    assert threads.max_rows_per_thread(10**6, 4) == 312_500
    assert threads.max_rows_per_thread(1000, 4) == threads.MIN_SPLIT_ROWS
