"""Score the same tables under many protocols with few matchings."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from detap import metrics
from detap.errors import InputError, UnknownNameError, UsageError
from detap.evaluation.conditions import ignored_by_condition
from detap.evaluation.detection import Result, reaccumulate, score_tables
from detap.protocols import MetricSpec, Protocol
from detap.protocols.fields import protocol_fields
from detap.tables.detection import Detections, GroundTruth

Value = TypeVar("Value")
Tables = tuple[GroundTruth, Detections]

MAX_ROWS = 1_000_000_000
"""Maximum of rows times protocols, scored in about a minute."""


def evaluate_protocols(
    tables: Tables,
    protocols: Sequence[Protocol],
    question: Callable[[Result], Value],
    *,
    classes: Sequence[str] | None = None,
    threads: int | None = None,
) -> list[Value]:
    """Apply a function to the result of each protocol.

    Protocols with the same matching are matched once. Protocols that are equivalent on the ground
    truth are scored once. Only one result is in memory at a time.

    Parameters
    ----------
    tables : (GroundTruth, Detections)
        With the same image and class indices.
    protocols : sequence of Protocol
    question : callable
        Function of a Result, possibly of an equivalent protocol.
    classes : sequence of str, optional
        Classes to report, as in :func:`detap.evaluate`.
    threads : int, optional
        Does not affect the result.
    """
    canonical_protocols = [canonical(protocol, tables[0]) for protocol in protocols]
    groups: dict[Protocol, dict[Protocol, Protocol]] = {}
    for canonical_protocol, protocol in zip(canonical_protocols, protocols, strict=True):
        groups.setdefault(_matching(canonical_protocol), {}).setdefault(
            canonical_protocol, protocol
        )
    answers: dict[Protocol, Value] = {}
    for members in groups.values():
        results = _results(tables, [*members.values()], classes, threads)
        for canonical_protocol, result in zip(members, results, strict=True):
            answers[canonical_protocol] = question(result)
    return [answers[canonical_protocol] for canonical_protocol in canonical_protocols]


def _results(
    tables: Tables,
    protocols: Sequence[Protocol],
    classes: Sequence[str] | None,
    threads: int | None,
) -> Iterator[Result]:
    """Yield the results of protocols with the same matching."""
    if len(protocols) == 1:
        yield score_tables(*tables, protocols[0], classes=classes, threads=threads)
        return
    first = _matching(protocols[0])
    options: dict[str, Any] = {"classes": classes, "threads": threads}
    matched = score_tables(*tables, first, **options, match_table=True, curves=False)
    for protocol in protocols:
        yield reaccumulate(matched, protocol)


def _matching(protocol: Protocol) -> Protocol:
    """Reset the fields that apply after score matching to their defaults."""
    if protocol.matching != "by-score":
        return protocol
    after = metrics.after_matching()
    return replace(
        protocol,
        **{field.name: field.default for field in protocol_fields(Protocol) if field.name in after},
    )


def is_applicable(protocol: Protocol, tables: Tables) -> bool:
    """Return True if the tables can be scored under a protocol.

    False if its fields conflict, or if it needs unknown image sizes or missing attributes.
    """
    no_rows = np.zeros(0, np.int64)
    truth, detections = tables
    try:
        score_tables(truth.select(no_rows), detections.select(no_rows), protocol, threads=1)
        ignored_by_condition(truth, protocol)
    except (InputError, UsageError):
        return False
    return True


def canonical(protocol: Protocol, ground_truth: GroundTruth) -> Protocol:
    """Return one representative of the protocols equivalent on a ground truth.

    Unused flags, an unused annotation id 0 and an IoU limit above all thresholds have no effect.
    """
    uncapped = replace(protocol, max_iou_threshold=1.0).search_thresholds
    out_of_reach = uncapped == protocol.search_thresholds and protocol.matching == "by-score"
    return replace(
        protocol,
        name="",
        max_iou_threshold=1.0 if out_of_reach else protocol.max_iou_threshold,
        ignore_flags=occurring_flags(protocol.ignore_flags, ground_truth),
        crowd_flags=occurring_flags(protocol.crowd_flags, ground_truth),
        group_of_weight=protocol.group_of_weight if ground_truth.group_of.any() else None,
        annotation_id_zero=protocol.annotation_id_zero if ground_truth.zero_id.any() else "valid",
    )


def occurring_flags(flags: tuple[str, ...], ground_truth: GroundTruth) -> tuple[str, ...]:
    """Return the flags that any ground truth has, sorted."""
    return tuple(sorted(flag for flag in flags if ground_truth.marked(flag).any()))


def primary_value(result: Result) -> float:
    """Return the primary metric of a result; NaN if undefined."""
    return next(iter(result.summary.values()))


def find_metric(protocol: Protocol, at: str | None) -> MetricSpec:
    """Return a metric of a protocol by name, which may be AP for mAP and mAP for AP.

    The default is the primary metric.

    Raises
    ------
    UnknownNameError
        If the protocol does not have the metric.
    """
    if at is None:
        return metrics.summary(protocol)[0]
    for name in (f"m{at}", at.removeprefix("m")):
        try:
            return metrics.named(protocol, name)
        except UnknownNameError:
            continue
    return metrics.named(protocol, at)
