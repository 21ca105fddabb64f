"""Gates in a test suite: an assertion that says which numbers are below their limits.

>>> from detap.testing import assert_detections
>>> assert_detections("instances.json", "results.json", fail_under={"AP50": 0.7})
"""

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from detap.errors import DetapWarning, Note, UsageError
from detap.escaping import escape
from detap.gates.config import LIMITS, BaselineReport, GateConfig, GateResults, OptionNames
from detap.gates.evaluate import evaluate_gates

if TYPE_CHECKING:
    from detap.analysis.operating import Threshold
    from detap.evaluation.results import Result
    from detap.formats.registry import Format
    from detap.gates.checks import Limit
    from detap.gates.detection import Scored
    from detap.protocols import Protocol
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
    ground_truth: "GroundTruth | Path",
    detections: "Detections | Path",
    *,
    protocol: "Protocol | str | None" = None,
    classes: "Iterable[str] | None" = None,
    images: "Iterable[Name] | None" = None,
    fail_under: Limits | None = None,
    fail_over: Limits | None = None,
    baseline: "Path | Detections | None" = None,
    max_drop: Limits | None = None,
    max_rise: Limits | None = None,
    allow_mismatch: bool = False,
    confidence: float | None = None,
    resamples: int | None = None,
    seed: int | None = None,
    detectable_drop: float | None = None,
    min_ground_truths: int | None = None,
    score_threshold: "Threshold | None" = None,
    threads: int | None = None,
    **reading: Any,
) -> "Result":
    """Assert that a detector's numbers keep to their limits.

    Parameters
    ----------
    ground_truth, detections : table or path
        As for :func:`detap.evaluate`, or what the readers read.
    protocol : Protocol or str, optional
        By default ``"coco"``, or ``"voc2012"`` for VOC files.
    classes : iterable of str, optional
        Names of the classes to report, as for :func:`detap.evaluate`.
    images : iterable of int or str, optional
        Names of the images to evaluate.
    fail_under : mapping of str to number, or a number
        Least values by name, as for ``--fail-under``; a bare number is for the headline.
    fail_over : mapping of str to number, or a number
        Largest values by name, as for ``--fail-over``.
    baseline : path or Detections, optional
        An earlier JSON report, or an earlier detector's detections.
    max_drop : mapping of str to number or text, or a number
        The largest drops from the baseline, as for ``--max-drop``: 0.005, or ``"1%"``.
    max_rise : mapping of str to number or text, or a number
        The largest rises, as for ``--max-rise``.
    allow_mismatch : bool
        Whether an earlier report may be of another ground truth or protocol.
    confidence : float, optional
        With detections as the baseline: a drop or rise fails only where its whole interval is
        beyond.
    resamples, seed : int, optional
        Of that interval, or of `detectable_drop`: 1000 and 0 by default.
    detectable_drop : float, optional
        A drop: a note of the result, or the assertion, says how many images would tell it from
        noise, of these two detectors with detections as the baseline, and else of this one and
        another as noisy.
    min_ground_truths : int, optional
        Drops and rises of classes with fewer pass: 20 by default with `confidence`, else 0.
    score_threshold : float or "best", optional
        Where precision, recall, F1 and false positives per image are taken; by default, and with
        ``"best"``, where F1 is largest.
    threads : int, optional
        The result does not depend on it.
    **reading
        What the format's readers take besides.

    Returns
    -------
    Result
        For further assertions. Its notes end with those of the gates.

    Raises
    ------
    AssertionError
        Where a number is not within its limit; the message lists every gate.
    UsageError, InputError
        Where a name is unknown, or an input cannot be read.
    """
    __tracebackhide__ = True  # pytest shows the test's own line, and the gates
    limits = _limits(
        fail_under=fail_under, fail_over=fail_over, max_drop=max_drop, max_rise=max_rise
    )
    if not limits:
        raise UsageError(f"assert_detections requires a limit: {', '.join(LIMITS)}")
    if protocol is not None:
        from detap.protocols import Protocol  # only when called

        reading = {**reading, **Protocol.of(protocol).reading}
    truth, found, file_format = _tables(ground_truth, detections, reading)
    before = _earlier(baseline, truth)
    config = GateConfig.of(
        limits,
        _ARGUMENTS,
        baseline=baseline is not None and before is None,
        baseline_detections=before is not None,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        detectable_drop=detectable_drop,
        min_ground_truths=min_ground_truths,
        allow_mismatch=allow_mismatch,
    )
    resolved = protocol or ("coco" if file_format is None else file_format.protocol)
    numbers = {"threads": threads, "score": _threshold(score_threshold)}
    choice = {
        "classes": None if classes is None else [*classes],
        "images": None if images is None else [*images],
    }
    how = numbers, choice
    now, judged = _judged((truth, found, before), resolved, config, baseline, how)
    shown = _images_needed(judged, detectable_drop)
    if judged.failed:
        raise AssertionError(_message(judged, now.overall, shown))
    for note in judged.notes:
        warnings.warn(DetapWarning(note), stacklevel=2)
    return replace(now.overall, notes=(*now.overall.notes, *judged.notes, *shown))


def _tables(
    ground_truth: "GroundTruth | Path", detections: "Detections | Path", reading: Mapping[str, Any]
) -> "tuple[GroundTruth, Detections, Format | None]":
    from detap.formats.registry import check_options, detect_format
    from detap.tables.detection import Detections, GroundTruth

    file_format = by = None
    if not isinstance(ground_truth, GroundTruth):
        file_format = by = detect_format(ground_truth)
    if not isinstance(detections, Detections):
        by = (
            file_format.of_detections(detections)
            if file_format
            else detect_format(None, detections)
        )
    check_options(reading, filter(None, [file_format]), filter(None, [by]))
    if not isinstance(ground_truth, GroundTruth):
        ground_truth = detect_format(ground_truth).read_ground_truth(ground_truth, reading)
    if not isinstance(detections, Detections):
        assert by is not None  # detected above
        detections = by.read_detections(detections, ground_truth, reading)
    return ground_truth, detections.numbered_as(ground_truth), file_format


def _earlier(
    baseline: "Path | Detections | None", ground_truth: "GroundTruth"
) -> "Detections | None":
    from detap.tables.detection import Detections  # numpy

    return baseline.numbered_as(ground_truth) if isinstance(baseline, Detections) else None


def _limits(**asked: Limits | None) -> "list[Limit]":
    from detap.gates.checks import Limit  # only when called

    limits = []
    for name, given in asked.items():
        if given is None:
            continue
        texts = (
            [f"{number}={bound}" for number, bound in given.items()]
            if isinstance(given, Mapping)
            else [str(given)]
        )
        try:
            limits += [Limit.of(LIMITS[name], text) for text in texts]
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None
    return limits


def _judged(
    tables: "tuple[GroundTruth, Detections, Detections | None]",
    protocol: "Protocol | str",
    config: GateConfig,
    baseline: Any,
    how: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> "tuple[Scored, GateResults]":
    from detap.analysis.comparison import numbered_alike
    from detap.checks.sanity_notes import comparison_notes
    from detap.evaluation.detection import evaluate, score_tables
    from detap.gates.baseline import read_baseline  # numpy
    from detap.gates.detection import Scored

    truth, found, before = tables
    numbers, choice = how
    choice = {**choice, "threads": numbers["threads"]}
    kept = earlier = None
    if before is not None:
        found, before = numbered_alike(found, before)
        earlier = Scored(score_tables(truth, before, protocol, **choice), **numbers)
    elif baseline is not None:
        kept = BaselineReport(os.fspath(baseline), read_baseline(os.fspath(baseline)))
    now = Scored(evaluate(truth, found, protocol, **choice), **numbers)
    judged = evaluate_gates(
        config, now, lambda: _record(now), baseline_report=kept, baseline=earlier
    )
    if earlier is not None:
        differing = comparison_notes(now.overall, earlier.overall)
        judged = replace(judged, notes=(*differing, *judged.notes))
    return now, judged


def _threshold(given: object) -> Any:
    from detap.analysis.operating import threshold  # numpy

    return None if given is None else threshold(given)


def _record(scored: "Scored") -> dict[str, Any]:
    from detap.report.inputs import describe_inputs  # only with an earlier report
    from detap.report.sections.analysis import analysis_blocks
    from detap.report.sections.detection import detection_report
    from detap.report.writers.json import as_dict

    result = scored.overall
    inputs = describe_inputs(result.ground_truth, result.detections, digests=True)
    requested = (
        {} if scored.score_threshold is None else {"operating_point": scored.score_threshold}
    )
    blocks = [*analysis_blocks(result, requested)]
    return as_dict(detection_report(result, inputs=inputs, blocks=blocks))


def _images_needed(judged: GateResults, drop: float | None) -> tuple[Note, ...]:
    """Return the note of how many images would tell a drop from noise, where that was asked."""
    if judged.power is None or drop is None:
        return ()
    known = [(reach.name, reach.images_needed) for reach in judged.power.numbers]
    counts = ", ".join(f"{needed:,} of {name}" for name, needed in known if needed is not None)
    told = f"takes so many images: {counts}" if counts else "is not known: no resample differs"
    return (
        Note("images-needed", f"to tell a drop of {drop:g} from noise {told}", severity="info"),
    )


def _message(judged: GateResults, result: "Result", shown: tuple[Note, ...]) -> str:
    from detap.report.sections.gates import judged_blocks  # only where one failed

    lines = [line for block in judged_blocks(judged) for line in (block.title, *block.lines)]
    lines += [*(note.message for note in shown), result.signature]
    return "\n".join(map(escape, lines))
