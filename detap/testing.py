"""Gates in a test suite: an assertion that says which numbers are below their limits.

>>> from detap.testing import assert_detections
>>> assert_detections("instances.json", "results.json", fail_under={"AP50": 0.7})
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from detap.errors import UsageError
from detap.report.names import printable

if TYPE_CHECKING:
    from detap.gate import Gate, Limit
    from detap.protocols import Protocol
    from detap.results import Result
    from detap.tables import Detections, GroundTruth

__all__ = ["assert_detections"]

Path = str | os.PathLike[str]
Limits = Mapping[str, float | str] | float | str


def assert_detections(
    ground_truth: "GroundTruth | Path",
    detections: "Detections | Path",
    *,
    protocol: "Protocol | str | None" = None,
    fail_under: Limits | None = None,
    baseline: "Path | Detections | None" = None,
    max_drop: Limits | None = None,
    confidence: float | None = None,
    resamples: int = 1000,
    seed: int = 0,
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
    fail_under : mapping of str to number, or a number
        Least values by name, as for ``--fail-under``; a bare number is for the headline.
    baseline : path or Detections, optional
        An earlier JSON report, or an earlier detector's detections.
    max_drop : mapping of str to number or text, or a number
        The largest drops from the baseline, as for ``--max-drop``: 0.005, or ``"1%"``.
    confidence : float, optional
        With detections as the baseline: a drop fails only where its whole interval is beyond.
    resamples, seed : int
        Of that interval.
    threads : int, optional
        The result does not depend on it.
    **reading
        What the format's readers take besides.

    Returns
    -------
    Result
        For further assertions.

    Raises
    ------
    AssertionError
        Where a number is not within its limit; the message lists every gate.
    UsageError, InputError
        Where a name is unknown, or an input cannot be read.
    """
    if fail_under is None and max_drop is None:
        raise UsageError("assert_detections needs fail_under or max_drop")
    if (max_drop is None) != (baseline is None):
        raise UsageError("max_drop and baseline go together")
    truth, found, file_format = _tables(ground_truth, detections, reading)
    rules = protocol or {"voc": "voc2012"}.get(file_format, "coco")
    before = _earlier(baseline, truth)
    if confidence is not None and before is None:
        raise UsageError("confidence needs an earlier detector's detections as the baseline")
    result, gates = _judged(
        (truth, found, before),
        rules,
        (_limits("floor", fail_under), _limits("drop", max_drop)),
        baseline,
        {"confidence": confidence, "resamples": resamples, "seed": seed, "threads": threads},
    )
    if any(gate.failed for gate in gates):
        raise AssertionError(_message(gates, result))
    return result


def _tables(
    ground_truth: "GroundTruth | Path", detections: "Detections | Path", reading: Mapping[str, Any]
) -> "tuple[GroundTruth, Detections, str]":
    from detap.formats import (  # noqa: PLC0415 - numpy
        read_detections,
        read_ground_truth,
        tell_format,
    )
    from detap.tables import Detections, GroundTruth  # noqa: PLC0415

    file_format = ""
    if not isinstance(ground_truth, GroundTruth):
        file_format = tell_format(ground_truth)
        options = {key: value for key, value in reading.items() if key != "layout"}
        ground_truth = read_ground_truth(ground_truth, format=file_format, **options)
    if not isinstance(detections, Detections):
        options = {key: value for key, value in reading.items() if key != "image_set"}
        detections = read_detections(
            detections, ground_truth, format=file_format or None, **options
        )
    return ground_truth, detections.numbered_as(ground_truth), file_format


def _earlier(baseline: "Path | Detections | None", truth: "GroundTruth") -> "Detections | None":
    from detap.tables import Detections  # noqa: PLC0415 - numpy

    return baseline.numbered_as(truth) if isinstance(baseline, Detections) else None


def _limits(kind: str, given: Limits | None) -> "list[Limit]":
    from detap.gate import Limit  # noqa: PLC0415 - only when called

    if given is None:
        return []
    texts = (
        [f"{name}={limit}" for name, limit in given.items()]
        if isinstance(given, Mapping)
        else [str(given)]
    )
    try:
        return [Limit.floor(text) if kind == "floor" else Limit.drop(text) for text in texts]
    except ValueError as error:
        raise UsageError(str(error)) from None


def _judged(
    tables: "tuple[GroundTruth, Detections, Detections | None]",
    rules: "Protocol | str",
    limits: "tuple[list[Limit], list[Limit]]",
    baseline: Any,
    noise: Mapping[str, Any],
) -> "tuple[Result, list[Gate]]":
    from detap.baseline import numbers_of_record, read_baseline  # noqa: PLC0415 - numpy
    from detap.comparison import numbered_alike  # noqa: PLC0415
    from detap.detection import evaluate, score_tables  # noqa: PLC0415
    from detap.gate import Noise, check_drops, check_floors  # noqa: PLC0415
    from detap.gating import Intervals, Scored  # noqa: PLC0415

    truth, found, before = tables
    floors, drops = limits
    if before is not None:
        found, before = numbered_alike(found, before)
    threads = noise["threads"]
    scored = Scored(evaluate(truth, found, rules, threads=threads))
    numbers = scored.numbers()
    gates = check_floors(floors, numbers)
    if before is not None:
        earlier = Scored(score_tables(truth, before, rules, threads=threads))
        how = None
        if noise["confidence"] is not None:
            intervals = Intervals(scored, earlier, drops, **noise)
            how = Noise(confidence=noise["confidence"], interval=intervals.of)
        gates += check_drops(drops, numbers, earlier.numbers(), noise=how)
    elif drops:
        record = read_baseline(os.fspath(baseline))
        _check_comparable(record, scored.whole, os.fspath(baseline))
        gates += check_drops(drops, numbers, numbers_of_record(record))
    return scored.whole, gates


def _check_comparable(record: Mapping[str, Any], result: "Result", path: str) -> None:
    from detap.baseline import differences, refuse_differences  # noqa: PLC0415 - numpy
    from detap.formats.digest import sha256  # noqa: PLC0415
    from detap.report.json import as_dict  # noqa: PLC0415
    from detap.report.rows import describe_inputs, detection_report  # noqa: PLC0415

    files = [*result.ground_truth.files, *result.detections.files]
    digests = {file.path: sha256(file.path, file.members) for file in files if file.path != "-"}
    inputs = describe_inputs(result.ground_truth, result.detections, digests)
    report = detection_report(result, inputs=inputs)
    refuse_differences(path, differences(as_dict(report), record))


def _message(gates: "list[Gate]", result: "Result") -> str:
    from detap.report.gates import gate_block  # noqa: PLC0415 - only where one failed

    block = gate_block(gates)
    lines = [block.title, *block.lines, result.protocol.signature(_version())]
    return "\n".join(printable(line) for line in lines)


def _version() -> str:
    from detap._version import __version__  # noqa: PLC0415

    return __version__
