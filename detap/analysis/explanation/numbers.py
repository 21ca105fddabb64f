"""The numbers of many protocols on the same tables, at the cost of a few matchings."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from detap import metrics
from detap.errors import InputError, UnknownNameError, UsageError
from detap.evaluation.detection import Result, reaccumulate, score_tables
from detap.protocols import MetricSpec, Protocol
from detap.protocols.fields import protocol_fields
from detap.tables.detection import Detections, GroundTruth

Value = TypeVar("Value")
Tables = tuple[GroundTruth, Detections]

MAX_ROWS = 1_000_000_000
"""Rows times protocols that are scored in a minute, or somewhat less."""


def evaluate_protocols(
    tables: Tables,
    protocols: Sequence[Protocol],
    question: Callable[[Result], Value],
    *,
    classes: Sequence[str] | None = None,
    threads: int | None = None,
) -> list[Value]:
    """Return what the result of each of some protocols answers.

    Protocols that match alike are matched once, and those that the ground truth cannot tell apart
    are asked once. No more than one result is held at a time.

    Parameters
    ----------
    tables : (GroundTruth, Detections)
        Numbered alike.
    protocols : sequence of Protocol
    question : callable
        Takes a Result, perhaps of another protocol that gives the same.
    classes : sequence of str, optional
        The classes to report, as :func:`detap.evaluate` has it.
    threads : int, optional
        The answers do not depend on it.
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
    """Give the results of protocols that match alike."""
    if len(protocols) == 1:
        yield score_tables(*tables, protocols[0], classes=classes, threads=threads)
        return
    first = _matching(protocols[0])
    options: dict[str, Any] = {"classes": classes, "threads": threads}
    matched = score_tables(*tables, first, **options, match_table=True, curves=False)
    for protocol in protocols:
        yield reaccumulate(matched, protocol)


def _matching(protocol: Protocol) -> Protocol:
    """Return one protocol for all that match alike; other pairings are no matching."""
    if protocol.matching != "by-score":
        return protocol
    after = metrics.after_matching()
    return replace(
        protocol,
        **{field.name: field.default for field in protocol_fields(Protocol) if field.name in after},
    )


def is_applicable(protocol: Protocol, tables: Tables) -> bool:
    """Return True if tables can be scored by a protocol.

    Not so if it contradicts itself, or counts pixels of images whose size is not known.
    """
    no_rows = np.zeros(0, np.int64)
    truth, detections = tables
    try:
        score_tables(truth.select(no_rows), detections.select(no_rows), protocol, threads=1)
    except (InputError, UsageError):
        return False
    return True


def canonical(protocol: Protocol, ground_truth: GroundTruth) -> Protocol:
    """Return one protocol for all that a ground truth cannot tell apart at a glance.

    Flags that nothing bears, an id of 0 that nothing has, and a ceiling that no threshold reaches
    make no difference.
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
    """Return which flags any ground truth bears, in their fixed order."""
    return tuple(sorted(flag for flag in flags if ground_truth.marked(flag).any()))


def primary_value(result: Result) -> float:
    """Return the number that a result is quoted by; NaN is undefined."""
    return next(iter(result.summary.values()))


def find_metric(protocol: Protocol, at: str | None) -> MetricSpec:
    """Return a number of a protocol by its name, be the mean AP called AP there or mAP.

    Without a name it is the headline.

    Raises
    ------
    UnknownNameError
        Where there is none.
    """
    if at is None:
        return metrics.summary(protocol)[0]
    for name in (f"m{at}", at.removeprefix("m")):
        try:
            return metrics.named(protocol, name)
        except UnknownNameError:
            continue
    return metrics.named(protocol, at)
