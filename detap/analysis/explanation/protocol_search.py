"""Search presets, with up to two changed fields, for a metric value."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import isnan
from types import MappingProxyType
from typing import Any, NamedTuple

from detap import metrics
from detap.analysis.explanation.numbers import (
    MAX_ROWS,
    Tables,
    canonical,
    evaluate_protocols,
    find_metric,
    is_applicable,
    occurring_flags,
)
from detap.decimals import fraction, to_fraction
from detap.errors import UsageError
from detap.evaluation.results import Result
from detap.evaluation.scoring import score_tables
from detap.protocols import Protocol
from detap.protocols.fields import FLAGS, Choice, Flags, ProtocolField, YesNo, compared_fields

MAX_PAIRS = 300  # maximal number of presets scored with two changed fields, the most likely first
MIN_DIGITS = 3  # minimal number of decimals: fewer match nearly every protocol

_SHAPES = {
    "bbox": "boxes",
    "segm": "masks",
    "boundary": "boundaries",
    "keypoints": "keypoints",
    "polygon": "quadrilaterals",
}


class TargetValue(NamedTuple):
    """A metric value as text, compared by its digits."""

    text: str
    value: Fraction  # from 0 to 1; text above 1 is a percentage
    digits: int  # decimals of the value

    @classmethod
    def of(cls, text: str) -> "TargetValue":
        """Parse a value."""
        try:
            value = fraction(text)
        except ValueError as error:
            raise UsageError(f"--value: {error}") from None
        digits = max(0, -int(Decimal(text.strip()).as_tuple().exponent))
        if value > 1:
            value, digits = value / 100, digits + 2
        if not 0 <= value <= 1:
            raise UsageError(f"--value {text} is outside [0, 1] and not a percentage")
        if digits < MIN_DIGITS:
            raise UsageError(
                f"--value {text} has too few digits and matches many protocols; "
                f"use {MIN_DIGITS} decimals, or 1 for a percentage"
            )
        return cls(text.strip(), value, digits)

    def distance(self, value: float) -> Fraction:
        """Return the absolute difference from a value."""
        return abs(to_fraction(value) - self.value)

    def digits_of(self, value: float) -> int:
        """Return the number of matching decimals of a value, at most `digits`."""
        off = self.distance(value)
        return next((n for n in range(self.digits, 0, -1) if off <= Fraction(1, 2 * 10**n)), 0)


class ProtocolMatch(NamedTuple):
    """A protocol and the value of one of its metrics."""

    protocol: Protocol
    changes: Mapping[str, Any]  # from the preset
    name: str  # of the metric
    value: float
    digits: int  # decimals equal to the target's


@dataclass(frozen=True)
class ProtocolSearch:
    """Protocols that give a metric value, or the nearest ones."""

    target: TargetValue
    # Equal values first, by number of changes; then the others, the nearest first.
    candidates: tuple[ProtocolMatch, ...]
    # Of protocols with none, one and two changed fields; the search ends at the first equal value.
    scored: tuple[int, ...]
    pairs: int  # of changed fields that each alone change a metric
    max_pairs: int
    skipped: Mapping[str, Sequence[str]] = field(default_factory=dict)  # presets by reason
    changes: Mapping[str, Any] = field(default_factory=dict)  # in all presets

    @property
    def equal(self) -> tuple[ProtocolMatch, ...]:
        """Matches equal in all digits of the target."""
        return tuple(match for match in self.candidates if match.digits == self.target.digits)


def searched_presets(
    changes: Mapping[str, Any], *, polygons: bool = False
) -> tuple[list[Protocol], dict[str, list[str]]]:
    """Return the presets to search, of the requested IoU type first, and others by reason."""
    iou_type = changes.get("iou_type", "polygon" if polygons else "bbox")
    iou_types = {iou_type, "bbox"} if "iou_type" in changes else {iou_type}
    presets, skipped = [], dict[str, list[str]]()
    rejected: list[UsageError] = []
    for name, protocol in Protocol.presets.items():
        if protocol.iou_type not in iou_types:
            shapes = _SHAPES.get(protocol.iou_type, protocol.iou_type)
            option = "--shapes" if protocol.iou_type == "bbox" else "--iou-type"
            reason = f"compare {shapes}: {option} {protocol.iou_type}"
        elif protocol.attributes and "ignore_where" not in changes:
            # Reading them would be slower for every search.
            reason = "need attributes of annotations: --ignore-where"
        elif not protocol.keys.keys() <= changes.keys():
            reason = "read other keypoints of a record: --keypoint-keys"
        else:
            try:
                presets.append((protocol.iou_type != iou_type, protocol.with_changes(**changes)))
                continue
            except UsageError as error:
                rejected.append(error)
                reason = "reject the options given"
        skipped.setdefault(reason, []).append(name)
    if not presets:
        raise rejected[0]
    return [protocol for _, protocol in sorted(presets, key=lambda pair: pair[0])], skipped


def protocol_search(
    tables: Tables,
    target: TargetValue,
    at: str | None = None,
    *,
    changes: Mapping[str, Any] = MappingProxyType({}),
    classes: Sequence[str] | None = None,
    threads: int | None = None,
) -> ProtocolSearch:
    """Search for protocols that give a metric value."""
    polygons = any(table.polygons is not None for table in tables)
    presets, skipped = searched_presets(changes, polygons=polygons)
    options = {"classes": classes, "threads": threads}
    search = _Search(tables, target, at, (presets, frozenset(changes)), options)
    trials, inapplicable = search.presets()
    if not trials:  # raise the reason of the first preset
        score_tables(*tables, presets[0], threads=threads)
        metrics.named(presets[0], str(at))
    matches, scored = search.candidates(trials), [len(trials)]
    for change_more in (search.changed_once, search.changed_twice):
        if any(match.digits == target.digits for match in matches):
            break
        trials = change_more(trials)
        matches += search.candidates(trials)
        scored.append(len(trials))
    ranked = tuple(sorted(matches, key=search.rank))
    counts = search.pairs, search.max_pairs
    return ProtocolSearch(target, ranked, tuple(scored), *counts, skipped | inapplicable, changes)


class _Trial(NamedTuple):
    """A protocol and its metrics, empty before scoring."""

    protocol: Protocol
    changes: Mapping[str, Any] = MappingProxyType({})  # from the preset
    simpler: "tuple[_Trial, ...]" = ()  # with fewer changes; their values are not reported again
    values: Mapping[str, float] = MappingProxyType({})  # defined metrics by name

    @property
    def new_values(self) -> dict[str, float]:
        """Metrics whose values no simpler trial has."""
        return {
            name: value
            for name, value in self.values.items()
            if all(value not in other.values.values() for other in self.simpler)
        }


class _Search:
    """Scorer of the protocols that are not equivalent on the tables."""

    def __init__(
        self,
        tables: Tables,
        target: TargetValue,
        at: str | None,
        given: tuple[Sequence[Protocol], Container[str]],
        options: Mapping[str, Any],
    ) -> None:
        truth, detections = tables
        self.tables = truth, detections.reindex_like(truth)
        self.target, self.at, self.options = target, at, options
        self.given, self.fixed = given
        self.pairs = 0
        self.max_pairs = min(MAX_PAIRS, MAX_ROWS // max(1, len(truth) + len(detections)))
        self._seen: set[Protocol] = set()

    def presets(self) -> tuple[list[_Trial], dict[str, list[str]]]:
        """Score the presets, equivalent ones too; return them, and others by reason."""
        trials, inapplicable = list[_Trial](), dict[str, list[str]]()
        for protocol in self.given:
            trial = _Trial(protocol)
            if not is_applicable(protocol, self.tables):
                reason = "need data that the ground truth lacks"
            elif not self._has_metric(trial):
                reason = f"have no {self.at}"
            else:
                trials.append(trial)
                self._is_new(trial)
                continue
            inapplicable.setdefault(reason, []).append(protocol.name)
        return self._scored(trials), inapplicable

    def score(self, trials: Iterable[_Trial]) -> list[_Trial]:
        """Score the trials that are applicable and new."""
        applicable = (
            trial
            for trial in trials
            if self._has_metric(trial) and is_applicable(trial.protocol, self.tables)
        )
        return self._scored([trial for trial in applicable if self._is_new(trial)])

    def _has_metric(self, trial: _Trial) -> bool:
        try:
            self._restricted(trial)
        except UsageError:
            return False
        return True

    def _scored(self, trials: Sequence[_Trial]) -> list[_Trial]:
        def defined(result: Result) -> dict[str, float]:
            values = result.summary
            if self.at is not None:
                values = {self.at: next(iter(values.values()))}
            return {name: value for name, value in values.items() if not isnan(value)}

        protocols = [self._restricted(trial) for trial in trials]
        values = evaluate_protocols(self.tables, protocols, defined, **self.options)
        return [trial._replace(values=of) for trial, of in zip(trials, values, strict=True)]

    def _is_new(self, trial: _Trial) -> bool:
        """Return True if the protocol is not equivalent to an earlier one."""
        equivalent = canonical(self._restricted(trial), self.tables[0])
        is_new = equivalent not in self._seen
        # Changed presets are scored over all areas only.
        self._seen |= {equivalent, canonical(_over_all_areas(trial.protocol), self.tables[0])}
        return is_new

    def _restricted(self, trial: _Trial) -> Protocol:
        """Restrict a protocol to the requested metrics."""
        protocol = trial.protocol
        if self.at is not None:
            return protocol.only_metric(find_metric(protocol, self.at))
        return _over_all_areas(protocol) if trial.changes else protocol

    def candidates(self, trials: Iterable[_Trial]) -> list[ProtocolMatch]:
        """Return the values that no simpler trial has."""
        return [
            ProtocolMatch(trial.protocol, trial.changes, name, value, self.target.digits_of(value))
            for trial in trials
            for name, value in trial.new_values.items()
        ]

    def rank(self, candidate: ProtocolMatch) -> tuple[bool, int, Fraction]:
        """Return the sort key of a candidate, best first."""
        equal = candidate.digits == self.target.digits
        return not equal, equal * len(candidate.changes), self.target.distance(candidate.value)

    def changed_once(self, presets: Sequence[_Trial]) -> list[_Trial]:
        """Score every preset with one changed field."""
        return self.score(
            _Trial(protocol, {field.name: value}, (preset,))
            for preset in presets
            for field in compared_fields(Protocol)
            for value in self._values(field)
            for protocol in _changed(preset.protocol, {field.name: value})
        )

    def _values(self, field: ProtocolField) -> Iterable[Any]:
        """Return the candidate values of a field: its choices, or the values in presets."""
        if field.name in self.fixed or field.name in (
            "primary_metric",
            "iou_type",
            "sigmas",
            "keypoint_keys",
            "result_score_key",
            "max_dets_order",
            "recall_base",
            "class_mean",
            "detection_area",
        ):
            return ()
        if isinstance(field.kind, Flags):
            return ((), *((flag,) for flag in occurring_flags(FLAGS, self.tables[0])))
        if isinstance(field.kind, YesNo):
            return (False, True)
        if isinstance(field.kind, Choice):
            return field.kind.choices
        return dict.fromkeys(getattr(protocol, field.name) for protocol in self.given)

    def changed_twice(self, trials: Sequence[_Trial]) -> list[_Trial]:
        """Score presets with two changes of `trials`, nearest first if their effects add up."""
        pairs = [
            (first, second)
            for first, second in combinations([t for t in trials if t.new_values], 2)
            if first.simpler[0] is second.simpler[0]
            and first.changes.keys() != second.changes.keys()
        ]
        self.pairs = len(pairs)

        def distance(pair: tuple[_Trial, _Trial]) -> float:
            first, second = (trial.values for trial in pair)
            distances = (
                abs(first[name] + second[name] - value - float(self.target.value))
                for name, value in pair[0].simpler[0].values.items()
                if name in first and name in second
            )
            return min(distances, default=1.0)

        pairs.sort(key=distance)
        return self.score(
            _Trial(protocol, changes, (*first.simpler, first, second))
            for first, second in pairs[: self.max_pairs]
            for changes in [{**first.changes, **second.changes}]
            for protocol in _changed(first.simpler[0].protocol, changes)
        )


def _over_all_areas(protocol: Protocol) -> Protocol:
    """Restrict a protocol to all areas and the largest max dets."""
    return replace(protocol.only_area_range(0), max_dets=protocol.max_dets[-1:])


def _changed(protocol: Protocol, changes: Mapping[str, Any]) -> Iterator[Protocol]:
    """Yield the changed protocol if the changes are valid."""
    with suppress(UsageError):
        yield protocol.with_changes(**changes)
