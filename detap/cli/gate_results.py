"""The results of gates in the report of a detector."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from detap.cli.gates import Gates
from detap.cli.inputs import Evaluated
from detap.errors import Note
from detap.gates.detection import Scored
from detap.gates.evaluate import evaluate_gates
from detap.report.model import Report
from detap.report.sections.gates import gate_blocks
from detap.report.sections.intervals import with_intervals
from detap.report.sections.slices import slices_block
from detap.report.writers.json import as_dict


def with_gate_results(
    evaluated: Evaluated,
    gates: Gates,
    report: Report,
    options: Mapping[str, Any],
) -> tuple[list[str | Note], Report]:
    """Evaluate the gates; return their problems, and the report with the results."""
    threshold = options["score_threshold"]
    score = partial(Scored.of, slices=evaluated.slices, score_threshold=threshold)
    current = score(evaluated.result)
    if current.slices:
        block = slices_block(evaluated.result, current.slices, report.columns)
        report = report.with_blocks((block,), ())
    gate_results = evaluate_gates(
        gates.config,
        current,
        lambda: as_dict(report),
        baseline_report=gates.baseline,
        baseline=None if evaluated.baseline is None else score(evaluated.baseline),
    )
    if gate_results.intervals:
        report = with_intervals(report, gate_results.intervals)
    report = report.with_blocks(gate_blocks(gate_results), gate_results.notes)
    return gate_results.problems, report
