"""The number of threads changes no bit of a result."""

from hypothesis import given
from hypothesis import strategies as st

from detap.core.matching import accumulate
from detap.evaluation.scoring import score_tables
from detap.protocols import Protocol
from tests.cases import Case, cases, crowded_cases
from tests.laws.test_match_table import any_protocol, assert_same_scores
from tests.parity.compare import assert_same_bits

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
