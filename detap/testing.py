"""Gates in a test suite: an assertion that lists the metrics beyond their limits.

>>> from detap.testing import assert_detections
>>> assert_detections("instances.json", "results.json", fail_under={"AP50": 0.7})
"""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from detap.analysis.operating import Threshold, threshold
from detap.errors import DetapError, DetapWarning, Note, UsageError
from detap.escaping import escape
from detap.evaluation.detection import Result, evaluate
from detap.evaluation.sanity_notes import comparison_notes
from detap.evaluation.scoring import score_tables
from detap.formats import read_tables
from detap.formats.class_map import map_tables
from detap.gates.baseline import read_baseline
from detap.gates.config import LIMITS, BaselineReport, GateConfig, Limit, OptionNames
from detap.gates.detection import Scored
from detap.gates.evaluate import GateResults, evaluate_gates
from detap.protocols import Protocol
from detap.report.inputs import describe_inputs
from detap.report.numbers import fraction
from detap.report.sections.analysis import analysis_blocks
from detap.report.sections.detection import detection_report
from detap.report.sections.gates import gate_blocks
from detap.report.writers.json import as_dict
from detap.tables.concat import align_classes
from detap.tables.detection import Detections, GroundTruth, Name

__all__ = ["assert_detections"]

Path = str | os.PathLike[str]
Limits = Mapping[str, float | str] | float | str

_ARGUMENTS = OptionNames(
    options=False,
    interval_source="an earlier detector's detections as the baseline",
    names={"baseline_detections": "baseline"},
)


def assert_detections(
    ground_truth: GroundTruth | Path,
    detections: Detections | Path,
    *,
    protocol: Protocol | str | None = None,
    classes: Iterable[Name] | None = None,
    images: Iterable[Name] | None = None,
    fail_under: Limits | None = None,
    fail_over: Limits | None = None,
    baseline: Path | Detections | None = None,
    max_drop: Limits | None = None,
    max_rise: Limits | None = None,
    allow_mismatch: bool = False,
    confidence: float | None = None,
    resamples: int | None = None,
    seed: int | None = None,
    detectable_drop: float | None = None,
    min_ground_truths: int | None = None,
    score_threshold: Threshold | None = None,
    threads: int | None = None,
    class_map: Any = None,
    **reading: Any,
) -> Result:
    """Assert that the metrics of a detector are within their limits.

    Parameters
    ----------
    ground_truth, detections : table or path
        As for :func:`detap.evaluate`, or the paths of files.
    protocol : Protocol or str, optional
        As for :func:`detap.evaluate`.
    classes : iterable of int or str, optional
        Names, or ids if integers, of the classes to report, as for :func:`detap.evaluate`.
    images : iterable of int or str, optional
        Names of the images to evaluate.
    fail_under : mapping of str to number, or a number
        Minimum values by metric, as for ``--fail-under``; a single number is for the primary
        metric.
    fail_over : mapping of str to number, or a number
        Maximum values by metric, as for ``--fail-over``.
    baseline : path or Detections, optional
        An earlier JSON report, or an earlier detector's detections.
    max_drop : mapping of str to number or text, or a number
        Maximum drops from the baseline, as for ``--max-drop``: 0.005, or ``"1%"``.
    max_rise : mapping of str to number or text, or a number
        Maximum rises from the baseline, as for ``--max-rise``.
    allow_mismatch : bool
        True to accept an earlier report of another ground truth or protocol.
    confidence : float, optional
        The level of confidence intervals; requires detections as the baseline. A drop or rise
        fails only if its whole interval is beyond the limit.
    resamples, seed : int, optional
        Resamples and seed of the intervals and of `detectable_drop`. Defaults: 1000 and 0.
    detectable_drop : float, optional
        A drop; a note of the result, or the assertion message, gives the number of images needed
        to detect it. The noise is that of both detectors with detections as the baseline, and
        otherwise estimated from this one.
    min_ground_truths : int, optional
        Classes with fewer pass limits on drops and rises. Default: 20 with `confidence`, else 0.
    score_threshold : float or "best", optional
        Score threshold of precision, recall, F1 and false positives per image. Default
        ``"best"``: the one with the largest F1.
    threads : int, optional
        Number of threads; the result does not depend on it.
    class_map : path or mapping, optional
        Other class names, as for :func:`detap.evaluate`.
    **reading
        Further arguments of the format's readers.

    Returns
    -------
    Result
        The evaluation result; its notes end with those of the gates.

    Raises
    ------
    AssertionError
        If a metric is beyond its limit; the message lists every gate.
    UsageError, InputError
        If a name is unknown, or an input cannot be read.
    """
    __tracebackhide__ = True  # the traceback ends at the test
    limits = _limits(
        fail_under=fail_under, fail_over=fail_over, max_drop=max_drop, max_rise=max_rise
    )
    if not limits:
        raise UsageError(f"assert_detections requires a limit: {', '.join(LIMITS)}")
    reading |= {"any_classes": True} if class_map is not None else {}
    truth, detected, resolved = read_tables(ground_truth, detections, protocol, **reading)
    detected = detected.reindex_like(truth)
    others, path = [], None
    if isinstance(baseline, Detections):
        others = [baseline.reindex_like(truth)]
    elif baseline is not None:
        path = os.fspath(baseline)
    [truth], [detected, *others] = map_tables(class_map, [truth], [detected, *others])
    earlier = others[0] if others else None
    config = GateConfig.of(
        limits,
        _ARGUMENTS,
        baseline=path is not None,
        baseline_detections=earlier is not None,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        detectable_drop=detectable_drop,
        min_ground_truths=min_ground_truths,
        allow_mismatch=allow_mismatch,
    )
    selection: dict[str, Any] = {
        "classes": None if classes is None else [*classes],
        "images": None if images is None else [*images],
        "threads": threads,
    }
    at = None if score_threshold is None else threshold(score_threshold)
    report = before = None
    if earlier is not None:
        detected, earlier = align_classes(detected, earlier)
        before = Scored(score_tables(truth, earlier, resolved, **selection), score_threshold=at)
    elif path is not None:
        report = BaselineReport(path, read_baseline(path))
    result = evaluate(truth, detected, resolved, **selection)
    subject = Scored(result, score_threshold=at)
    results = evaluate_gates(
        config, subject, lambda: _record(subject), baseline_report=report, baseline=before
    )
    if before is not None:
        notes = comparison_notes(result, before.overall)
        results = replace(results, notes=(*notes, *results.notes))
    needed = _images_needed(results, detectable_drop)
    if results.failed:
        raise AssertionError(_message(results, result, needed))
    for note in results.notes:
        warnings.warn(DetapWarning(note), stacklevel=2)
    return replace(result, notes=(*result.notes, *results.notes, *needed))


def recorded(record: Callable[..., None]) -> Callable[..., Result]:
    """Return :func:`assert_detections`, calling `record` with the outcome of each assertion."""

    def gate(*arguments: Any, **named: Any) -> Result:
        __tracebackhide__ = True
        try:
            result = assert_detections(*arguments, **named)
        except (AssertionError, DetapError) as error:
            summary = str(error).partition("\n")[0].removeprefix("Gates: ")
            record(summary, passed=False)
            raise error.with_traceback(None) from None
        name, value = next(iter(result.summary.items()))
        record(f"{name} {fraction(value, 4)}", passed=True)
        return result

    return gate


def _limits(**values: Limits | None) -> list[Limit]:
    limits = []
    for name, value in values.items():
        if value is None:
            continue
        texts = (
            [f"{metric}={bound}" for metric, bound in value.items()]
            if isinstance(value, Mapping)
            else [str(value)]
        )
        try:
            limits += [Limit.of(LIMITS[name], text) for text in texts]
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None
    return limits


def _record(scored: Scored) -> dict[str, Any]:
    result = scored.overall
    inputs = describe_inputs(result.ground_truth, digests=True, detections=result.detections)
    requested = (
        {} if scored.score_threshold is None else {"operating_point": scored.score_threshold}
    )
    blocks = [*analysis_blocks(result, requested)]
    return as_dict(detection_report(result, inputs=inputs, blocks=blocks))


def _images_needed(results: GateResults, drop: float | None) -> tuple[Note, ...]:
    """Return a note with the number of images needed to detect a drop, if one was given."""
    if results.power is None or drop is None:
        return ()
    needed = [(row.name, row.images_needed) for row in results.power.metrics]
    counts = ", ".join(f"{count:,} for {name}" for name, count in needed if count is not None)
    text = counts or "unknown (all resamples are equal)"
    message = f"images needed to detect a drop of {drop:g}: {text}"
    return (Note("images-needed", message, severity="info"),)


def _message(results: GateResults, result: Result, notes: tuple[Note, ...]) -> str:
    lines = [line for block in gate_blocks(results) for line in (block.title, *block.lines)]
    lines += [*(note.message for note in notes), result.signature]
    return "\n".join(map(escape, lines))
