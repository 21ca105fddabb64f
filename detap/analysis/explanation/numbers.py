"""Score the same tables under many protocols with few matchings."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from detap import metrics
from detap.core.match_table import MatchTable
from detap.core.matching import accumulate
from detap.errors import InputError, UnknownNameError, UsageError
from detap.evaluation.conditions import ignored_by_condition
from detap.evaluation.match import match_params
from detap.evaluation.overlaps.keypoints import check_skeleton, sigmas_of
from detap.evaluation.results import Result
from detap.evaluation.scoring import reaccumulate, score_tables
from detap.metrics.metric import Accumulated, MetricSpec
from detap.protocols import Protocol
from detap.protocols.fields import AreaRange, protocol_fields
from detap.tables.columns import MOST_ROWS
from detap.tables.detection import Detections, GroundTruth

Value = TypeVar("Value")
Tables = tuple[GroundTruth, Detections]

MAX_ROWS = 1_000_000_000  # maximum of rows times protocols, scored in about a minute

_POOLED = ("iou_thresholds", "area_ranges", "max_dets", "tie_break")
"""Fields in which protocols differ that are matched at once."""


def evaluate_protocols(
    tables: Tables,
    protocols: Sequence[Protocol],
    question: Callable[[Result], Value],
    *,
    classes: Sequence[str] | None = None,
    threads: int | None = None,
) -> list[Value]:
    """Apply a function to the result of each protocol."""
    # Protocols with the same matching are matched once: if they have only metrics of precision and
    # recall, also those with other thresholds, area ranges, max dets or ties. Protocols that are
    # equivalent on the ground truth are scored once. Only one result is in memory at a time.
    canonical_protocols = [canonical(protocol, tables[0]) for protocol in protocols]
    groups: dict[tuple[bool, Protocol], dict[Protocol, Protocol]] = {}
    for canonical_protocol, protocol in zip(canonical_protocols, protocols, strict=True):
        pooled = _is_pooled(canonical_protocol)
        group = groups.setdefault((pooled, _matching(canonical_protocol, pooled)), {})
        group.setdefault(canonical_protocol, protocol)
    answers: dict[Protocol, Value] = {}
    options: dict[str, Any] = {"classes": classes, "threads": threads}
    for (pooled, matching), members in groups.items():
        if pooled and len(members) > 1:
            try:
                pools = [(_pool(matching, members.values()), members)]
            except UsageError:  # too many thresholds, or nearly equal ones
                parts: dict[tuple[float, ...], dict[Protocol, Protocol]] = {}
                for canonical_protocol, protocol in members.items():
                    parts.setdefault(protocol.iou_thresholds, {})[canonical_protocol] = protocol
                pools = [(_pool(matching, part.values()), part) for part in parts.values()]
            for pool, part in pools:
                answers |= _pooled_answers(tables, pool, part, question, options)
            continue
        results: Iterable[Result]
        if len(members) == 1:
            results = [score_tables(*tables, *members.values(), **options)]
        else:
            matched = score_tables(*tables, matching, **options, match_table=True, curves=False)
            results = (reaccumulate(matched, protocol) for protocol in members.values())
        for canonical_protocol, result in zip(members, results, strict=True):
            answers[canonical_protocol] = question(result)
    return [answers[canonical_protocol] for canonical_protocol in canonical_protocols]


def _matching(protocol: Protocol, pooled: bool) -> Protocol:
    """Reset the fields that apply after score matching to their defaults."""
    if protocol.matching != "by-score":
        return protocol
    after = {*metrics.after_matching(), *(_POOLED if pooled else ())}
    return replace(
        protocol,
        **{field.name: field.default for field in protocol_fields(Protocol) if field.name in after},
    )


def _is_pooled(protocol: Protocol) -> bool:
    """Return True if protocols that differ in `_POOLED` are matched at once."""
    return (
        protocol.matching == "by-score"
        and protocol.group_of_weight is None
        and protocol.max_dets_scope != "dataset"
        and protocol.max_dets_order == "score"
        and not (protocol.class_iou or protocol.class_agnostic or protocol.relative_areas)
        and all(isinstance(spec.metric, Accumulated) for spec in metrics.summary(protocol))
    )


def _pool(matching: Protocol, protocols: Iterable[Protocol]) -> Protocol:
    """Return a protocol with the thresholds, area ranges and max dets of all protocols."""

    def union(name: str) -> list[Any]:
        return [*dict.fromkeys(value for p in protocols for value in getattr(p, name))]

    # Names and suffixes of area ranges are unique within a protocol only.
    ranges = [
        AreaRange(f"range{number}", low, high, f"range{number}")
        for number, (low, high) in enumerate(union("area_bounds"))
    ]
    return replace(
        matching,
        iou_thresholds=tuple(sorted(union("iou_thresholds"))),
        area_ranges=tuple(ranges),
        max_dets=tuple(sorted(union("max_dets"), key=lambda count: count or MOST_ROWS)),
    )


def _pooled_answers(
    tables: Tables,
    pool: Protocol,
    members: Mapping[Protocol, Protocol],
    question: Callable[[Result], Value],
    options: Mapping[str, Any],
) -> dict[Protocol, Value]:
    """Apply a function to the results of protocols whose matches are those of one protocol."""
    matched = score_tables(*tables, pool, **options, match_table=True, curves=False)
    table = matched.match_table
    equal_areas = table.equal_areas()
    # Protocols that differ in thresholds, or in area ranges with equal matches, share a pass.
    parts: dict[Any, list[tuple[Protocol, Protocol]]] = {}
    for canonical_protocol, protocol in members.items():
        areas = tuple(equal_areas[pool.area_bounds.index(r)] for r in protocol.area_bounds)
        params = match_params(protocol)._replace(thresholds=(), area_ranges=())
        parts.setdefault((params, areas), []).append((canonical_protocol, protocol))
    answers: dict[Protocol, Value] = {}
    ranked: dict[Any, MatchTable] = {}
    for (params, areas), part in parts.items():
        by_image = params.ties_by_image
        if by_image not in ranked:
            ranked[by_image] = table.with_ties(by_image=by_image)
        if (by_image, params.max_dets) not in ranked:
            indices = [pool.max_dets.index(count) for count in params.max_dets]
            ranked[by_image, params.max_dets] = ranked[by_image].select_max_dets(indices)
        selected = ranked[by_image, params.max_dets].select_areas(areas)
        searched = selected.params
        params_of_part = params._replace(
            thresholds=searched.thresholds, area_ranges=searched.area_ranges
        )
        scores = accumulate(selected, params=params_of_part, threads=options["threads"])
        for canonical_protocol, protocol in part:
            thresholds = [pool.iou_thresholds.index(value) for value in protocol.iou_thresholds]
            result = reaccumulate(matched, protocol, scores.select_thresholds(thresholds))
            answers[canonical_protocol] = question(result)
    return answers


def check_applicable(protocol: Protocol, tables: Tables) -> None:
    """Raise InputError or UsageError if fields conflict or need data that the tables lack."""
    no_rows = np.zeros(0, np.int64)
    truth, detections = tables
    empty = truth.select(no_rows), detections.select(no_rows)
    score_tables(*empty, protocol, threads=1, check_formats=False)
    ignored_by_condition(truth, protocol)
    if protocol.iou_type == "keypoints":
        check_skeleton(truth, sigmas_of(protocol, truth))


def is_applicable(protocol: Protocol, tables: Tables) -> bool:
    """Return False if fields of a protocol conflict or need data that the tables lack."""
    try:
        check_applicable(protocol, tables)
    except (InputError, UsageError):
        return False
    return True


def canonical(protocol: Protocol, ground_truth: GroundTruth) -> Protocol:
    """Return one representative of the protocols equivalent on a ground truth."""
    # Unused flags, an unused annotation id 0 and an IoU limit above all thresholds have no effect.
    below = all(value < protocol.max_iou_threshold for value in protocol.search_thresholds)
    out_of_reach = below and protocol.matching == "by-score"
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
    """Return a metric by name, AP also for mAP and the reverse; by default the primary metric."""
    if at is None:
        return metrics.summary(protocol)[0]
    for name in (f"m{at}", at.removeprefix("m")):
        try:
            return metrics.named(protocol, name)
        except UnknownNameError:
            continue
    return metrics.named(protocol, at)
