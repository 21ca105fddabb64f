"""The results of gates in the report of a detector."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from detap.cli.gates import Gates
from detap.errors import Note
from detap.evaluation.results import Result
from detap.gates.config import BaselineReport
from detap.gates.detection import ImageResamples, Scored
from detap.gates.evaluate import evaluate_gates
from detap.report.model import PageSource, Report
from detap.report.sections.gates import gate_blocks
from detap.report.sections.intervals import with_intervals
from detap.report.sections.slices import slices_block
from detap.report.writers.json import as_dict
from detap.tables.detection import Name


def with_gate_results(
    gating: tuple[Gates, BaselineReport | None],
    results: tuple[Result, Result | None],  # of this detector and of an earlier one
    slices: Mapping[str, Sequence[Name]],
    report: Report,
    options: Mapping[str, Any],
) -> tuple[list[str | Note], Report]:
    """Evaluate the gates; return their problems, and the report with the results."""
    gates, baseline_report = gating
    current, *baselines = (
        Scored.of(
            result,
            slices,
            threads=options["threads"],
            score_threshold=options["score_threshold"],
        )
        for result in results
        if result is not None
    )
    if current.slices:
        block = slices_block(results[0], current.slices, report.columns)
        report = report.with_blocks((block,), ())
    gate_results = evaluate_gates(
        gates.config,
        current,
        lambda: as_dict(report),
        baseline_report=baseline_report,
        baseline=baselines[0] if baselines else None,
    )
    if gate_results.intervals:
        report = with_intervals(report, gate_results.intervals)
    drawn = gate_results.resampled
    page_source = PageSource(
        results[0],
        before=results[1],
        record=None if baseline_report is None else baseline_report.record,
        earlier=gates.baseline_detections or gates.baseline or "",
        resamples=drawn.pair if isinstance(drawn, ImageResamples) else None,
    )
    report = report.with_blocks(gate_blocks(gate_results), gate_results.notes)
    return gate_results.problems, replace(report, page_source=page_source)
