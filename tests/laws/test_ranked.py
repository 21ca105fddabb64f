"""Metrics of the ranking against plain loops, for any data."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap import metrics
from detap.evaluation.detection import evaluate
from detap.protocols import Protocol, protocol
from tests.cases import IN_ORACLE, RANKED, Case, cases
from tests.oracle import ranked as plain

PROTOCOLS = [
    *(RANKED[name] for name in RANKED if name in IN_ORACLE),
    replace(protocol("coco"), tie_break="file"),
    replace(protocol("coco"), max_dets_scope="image", max_dets=(1, 2, 4)),
    replace(protocol("voc2012"), iou_thresholds=(0.3, 0.5)),
]
FIELDS = st.fixed_dictionaries(
    {
        "mr_points": st.sampled_from(("rounded", "exact")),
        "mr_rule": st.sampled_from(("at-most", "at-most-or-last", "at-least")),
        "mr_floor": st.sampled_from((0.0, 1e-10, 0.25)),
    }
)


@given(cases(), st.sampled_from(PROTOCOLS), FIELDS, st.sampled_from(("MR-2", "MR-4")))
def test_the_miss_rate_is_that_of_the_oracle(
    case: Case, protocol: Protocol, fields: dict[str, Any], name: str
) -> None:
    """At each IoU threshold and area range, with ties, ignored objects and empty images."""
    protocol = replace(protocol, **fields)
    tables = case.tables()
    result = evaluate(*tables, protocol)
    references = plain.references(name, protocol.mr_points)
    for area, area_range in enumerate(protocol.area_ranges):
        for t in (0, len(protocol.iou_thresholds) - 1):
            percent = format(100 * protocol.iou_thresholds[t], ".6g")
            ours = result.metric_by_class(f"{name}@{percent}{area_range.suffix}")
            for label, value in enumerate(ours.tolist()):
                ranking = plain.ranking(*tables, protocol, label, threshold=t, area=area)
                expected = plain.miss_rate(ranking, references, protocol.mr_rule, protocol.mr_floor)
                assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


NAMES = (
    *("MR-2", "MR-4", "miss@0.5", "recall@fppi=0.5", "CPM", "FROC", "macro-F1", "F2"),
    *("precision@recall=0.5", "recall@precision=0.5", "pooled-CPM", "pooled-MR-2"),
    "AP@thresholds=7",
)
FROC = st.fixed_dictionaries(
    {
        "froc_rule": st.sampled_from(("step", "linear")),
        "froc_points": st.sampled_from(((0.25, 0.5, 1.0, 2.0, 4.0, 8.0), (0.1, 1 / 3))),
        "duplicates": st.sampled_from(("false-positive", "ignore")),
    }
)


@given(cases(), st.sampled_from(PROTOCOLS), FROC)
def test_recall_per_fppi_is_that_of_the_oracle(
    case: Case, protocol: Protocol, fields: dict[str, Any]
) -> None:
    protocol = replace(protocol, **fields)
    tables = case.tables()
    result = evaluate(*tables, protocol)
    cpm = [Fraction(n, 8) for n in (1, 2, 4, 8, 16, 32, 64)]
    froc = [Fraction(repr(f)) for f in protocol.froc_points]
    for area, area_range in enumerate(protocol.area_ranges):
        for label in range(len(result.classes)):
            ranking = plain.ranking(*tables, protocol, label, area=area)
            if protocol.duplicates == "ignore":
                if area:
                    continue  # the match table knows duplicates of all areas
                ranking = ranking.without_duplicates()
            rule = protocol.froc_rule
            for name, expected in (
                ("CPM", plain.mean_recall(ranking, cpm, rule)),
                ("FROC", plain.mean_recall(ranking, froc, rule)),
                ("recall@fppi=0.1", plain.recall_at(ranking, Fraction(1, 10), rule)),
                ("recall@fppi=0", plain.recall_at(ranking, Fraction(0), rule)),
            ):
                ours = result.metric_by_class(f"{name}{area_range.suffix}")[label]
                assert ours == pytest.approx(expected, abs=1e-12, nan_ok=True), name


@given(cases(), st.sampled_from(PROTOCOLS), st.sampled_from(("0", "0.25", "0.3", "2")))
def test_the_miss_rate_at_an_fppi_is_that_of_the_oracle(
    case: Case, protocol: Protocol, fppi: str
) -> None:
    tables = case.tables()
    for rule in ("at-most", "at-most-or-last", "at-least"):
        result = evaluate(*tables, replace(protocol, mr_rule=rule))
        ours = result.metric_by_class(f"miss@{fppi}")
        for label, value in enumerate(ours.tolist()):
            ranking = plain.ranking(*tables, protocol, label)
            expected = plain.miss_rate(ranking, [Fraction(fppi) ** 4], rule, 0.0)
            assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


BEST = {
    **{f"F{beta}": plain.f_beta(Fraction(beta)) for beta in ("1", "2", "0.5")},
    **{f"precision@recall={r}": plain.precision_at(Fraction(r)) for r in ("0.5", "0.9", "0")},
    **{f"recall@precision={p}": plain.recall_where(Fraction(p)) for p in ("0.5", "0.9", "1")},
}


@given(cases(), st.sampled_from(PROTOCOLS), st.sampled_from(sorted(BEST)))
def test_values_at_the_best_threshold_are_those_of_the_oracle(
    case: Case, protocol: Protocol, name: str
) -> None:
    """With their thresholds: the highest of equal ones."""
    tables = case.tables()
    result = evaluate(*tables, protocol)
    spec = metrics.named(protocol, f"macro-{name}" if name.startswith("F") else name)
    metric: Any = spec.metric
    details = metric.details_by_class(result, spec)
    expected_values = []
    for label, value in enumerate(result.class_values(spec).tolist()):
        ranking = plain.ranking(*tables, protocol, label)
        expected, score = plain.best(ranking, BEST[name])
        assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)
        assert (label in details) == (ranking.positives > 0)
        if ranking.positives:
            assert details[label]["score"] == pytest.approx(score, abs=0, nan_ok=True)
            expected_values.append(expected)
    mean = np.mean(expected_values) if expected_values else np.nan
    assert result.metric(spec.name) == pytest.approx(mean, abs=1e-12, nan_ok=True)


@given(cases(), st.sampled_from(PROTOCOLS), st.sampled_from((1, 3, 1000)))
def test_ap_at_thresholds_is_that_of_the_oracle(case: Case, protocol: Protocol, n: int) -> None:
    tables = case.tables()
    result = evaluate(*tables, protocol)
    scores = result.match_table.score.tolist()
    for area, area_range in enumerate(protocol.area_ranges):
        ours = result.metric_by_class(f"AP@thresholds={n}{area_range.suffix}")
        for label, value in enumerate(ours.tolist()):
            ranking = plain.ranking(*tables, protocol, label, area=area)
            expected = plain.area_at_thresholds(ranking, scores, n)
            assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(cases(distinct_scores=True), st.sampled_from(("coco", "voc2012")))
def test_pooled_metrics_rank_all_classes_together(case: Case, name: str) -> None:
    tables = case.tables()
    result = evaluate(*tables, name)
    ranking = plain.pooled(*tables, result.protocol, len(result.classes))
    cpm = [Fraction(n, 8) for n in (1, 2, 4, 8, 16, 32, 64)]
    references = plain.references("MR-2", "rounded")
    for metric, expected in (
        ("pooled-CPM", plain.mean_recall(ranking, cpm, "step")),
        ("pooled-MR-2", plain.miss_rate(ranking, references, "at-most", 0.0)),
        ("F2", plain.best(ranking, plain.f_beta(Fraction(2)))[0]),
        ("pooled-precision@recall=0.5", plain.best(ranking, BEST["precision@recall=0.5"])[0]),
    ):
        assert result.metric(metric) == pytest.approx(expected, abs=1e-12, nan_ok=True), metric
