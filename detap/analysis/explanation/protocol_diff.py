"""Attribute the metric difference of two protocols to their fields, by Shapley values.

A combination is a set of steps, as the bits of an integer. The Shapley value of a step is its mean
effect over all orders of the steps (L. S. Shapley, A value for n-person games, 1953). The values
sum to the difference; a step without any effect has the value 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb, fsum, isnan, nan
from typing import NamedTuple

from detap.analysis.explanation.numbers import (
    MAX_ROWS,
    Tables,
    check_applicable,
    evaluate_protocols,
    find_metric,
    is_applicable,
    occurring_flags,
    primary_value,
)
from detap.decimals import nearly_equal
from detap.errors import UsageError
from detap.metrics.metric import MetricSpec
from detap.protocols import Protocol
from detap.protocols.fields import Flags
from detap.protocols.steps import Step, steps
from detap.tables.detection import GroundTruth

MAX_STEPS = 11  # maximal number of steps whose combinations are all scored: 2,048 combinations


class StepEffect(NamedTuple):
    """Effect of one step on a difference; NaN unless all combinations were scored."""

    in_order: float
    reversed: float
    shapley: float = nan  # mean over all orders
    minimum: float = nan  # over all combinations
    maximum: float = nan


class ProtocolValue(NamedTuple):
    """A protocol and the value of its metric."""

    protocol: Protocol
    metric: MetricSpec
    value: float


@dataclass(frozen=True)
class ProtocolDiff:
    """Effects of protocol fields on a metric difference."""

    first: ProtocolValue
    second: ProtocolValue
    steps: tuple[Step, ...]  # differing fields that the metric depends on, in order of change
    effects: tuple[StepEffect, ...]
    combinations: int  # number scored
    descriptions: tuple[str, ...]  # of the steps, for this ground truth

    @property
    def total(self) -> float:
        """The second value minus the first."""
        return self.second.value - self.first.value

    @property
    def differs(self) -> bool:
        """True if the values differ by more than rounding."""
        return not nearly_equal(self.first.value, self.second.value)

    @property
    def is_exhaustive(self) -> bool:
        """True if all combinations were scored, which the Shapley values need."""
        return not any(isnan(effect.shapley) for effect in self.effects)

    @property
    def fractions(self) -> tuple[float, ...]:
        """Each step's fraction of the difference: by Shapley value if known, else in order."""
        effects = [p.shapley if self.is_exhaustive else p.in_order for p in self.effects]
        return tuple(effect / self.total if self.differs else nan for effect in effects)


def protocol_diff(
    tables: Tables,
    first: Protocol,
    second: Protocol,
    at: str | None = None,
    *,
    classes: Sequence[str] | None = None,
    threads: int | None = None,
) -> ProtocolDiff:
    """Attribute the metric difference of two protocols to their differing fields."""
    protocols = (first, second)
    metric_specs = [find_metric(protocol, at) for protocol in protocols]
    single = [
        protocol.only_metric(spec) for protocol, spec in zip(protocols, metric_specs, strict=True)
    ]
    _check_comparable(protocols, metric_specs, single)
    truth, detections = tables
    tables = truth, detections.reindex_like(truth)
    for protocol in single:
        check_applicable(protocol, tables)
    differing = _merge_dependent(steps(*single), single, tables)
    rows = len(truth) + len(detections)
    exhaustive = len(differing) <= MAX_STEPS and (rows << len(differing)) <= MAX_ROWS
    combinations = (
        [*range(1 << len(differing))] if exhaustive else walk_combinations(len(differing))
    )
    mixed = [_combine(single, differing, combination) for combination in combinations]
    values = evaluate_protocols(tables, mixed, primary_value, classes=classes, threads=threads)
    value_by_combination = dict(zip(combinations, values, strict=True))
    ends = [value_by_combination[end] for end in (0, (1 << len(differing)) - 1)]
    for protocol, value in zip((*protocols, *mixed), (*ends, *values), strict=True):
        if isnan(value):
            raise UsageError(
                f"{metric_specs[0].name} is undefined under {protocol.text}: all ground truths "
                "are ignored"
            )
    return ProtocolDiff(
        ProtocolValue(first, metric_specs[0], ends[0]),
        ProtocolValue(second, metric_specs[1], ends[1]),
        differing,
        tuple(shapley_effects(values) if exhaustive else walk_effects(values, len(differing))),
        len(combinations),
        tuple(describe_step(step, single, truth) for step in differing),
    )


def _check_comparable(
    protocols: Sequence[Protocol], metric_specs: Sequence[MetricSpec], single: Sequence[Protocol]
) -> None:
    first, second = (protocol.text for protocol in protocols)
    if single[0].primary_metric != single[1].primary_metric:
        raise UsageError(
            f"the primary metrics of {first} ({metric_specs[0].name}) and {second} "
            f"({metric_specs[1].name}) differ in type; choose a common one with --metric"
        )
    if not steps(*single):
        raise UsageError(
            f"{first} and {second} do not differ in any field that {metric_specs[0].name} "
            "depends on"
        )


def _merge_dependent(
    differing: tuple[Step, ...], ends: Sequence[Protocol], tables: Tables
) -> tuple[Step, ...]:
    """Merge the steps that are invalid without each other into one step."""
    # Another matching uses other fields, so their values can only change together. The field that
    # is invalid both alone and as the only one unchanged comes first.
    full = (1 << len(differing)) - 1

    def is_valid(combination: int) -> bool:
        try:
            return is_applicable(_combine(ends, differing, combination), tables)
        except UsageError:
            return False

    valid = [[is_valid(1 << n), is_valid(full ^ 1 << n)] for n in range(len(differing))]
    dependent = [index for index, both in enumerate(valid) if not all(both)]
    if not dependent:
        return differing
    dependent.sort(key=lambda index: any(valid[index]))
    joined = Step(tuple(field for index in dependent for field in differing[index].fields))
    independent = [step for index, step in enumerate(differing) if index not in dependent]
    position = min(dependent)
    return (*independent[:position], joined, *independent[position:])


def _combine(ends: Sequence[Protocol], differing: Sequence[Step], combination: int) -> Protocol:
    taken = (
        step.values(ends[1]) for index, step in enumerate(differing) if combination >> index & 1
    )
    return replace(ends[0], **{name: value for values in taken for name, value in values.items()})


def describe_step(
    step: Step, ends: Sequence[Protocol], ground_truth: GroundTruth | None = None
) -> str:
    """Describe the first change of a step that affects the ground truth."""
    for field in step.fields:
        before, after = (getattr(protocol, field.name) for protocol in ends)
        if isinstance(field.kind, Flags) and ground_truth is not None:
            before, after = (occurring_flags(flags, ground_truth) for flags in (before, after))
        if before != after:
            more = ", and dependent fields" if step.is_long else ""
            return field.kind.describe_change(field.name, before, after) + more
    return describe_step(step, ends)


def walk_combinations(steps: int) -> list[int]:
    """Return the combinations of adding the steps in order, then in reversed order."""
    everything = (1 << steps) - 1
    forward = [(1 << taken) - 1 for taken in range(steps + 1)]
    return [*forward, *(everything & ~context for context in forward[1:-1])]


def walk_effects(values: Sequence[float], steps: int) -> list[StepEffect]:
    """Compute the effect of each step in order and in reversed order."""
    value_by_combination = dict(zip(walk_combinations(steps), values, strict=True))
    everything = (1 << steps) - 1
    effects = []
    for step in range(steps):
        before, after = (1 << step) - 1, everything & ~((2 << step) - 1)
        in_order, in_reverse = (
            value_by_combination[taken | 1 << step] - value_by_combination[taken]
            for taken in (before, after)
        )
        effects.append(StepEffect(in_order, in_reverse))
    return effects


def shapley_effects(values: Sequence[float]) -> list[StepEffect]:
    """Compute the Shapley value of each step in the difference of last and first value."""
    steps = (len(values) - 1).bit_length()
    # Fraction of all orders in which a given set of `taken` steps precedes another step.
    weight = [1 / (steps * comb(steps - 1, taken)) for taken in range(steps)]
    effects = walk_effects([values[context] for context in walk_combinations(steps)], steps)
    for step, effect in enumerate(effects):
        bit = 1 << step
        changes = {
            context: values[context | bit] - values[context]
            for context in range(len(values))
            if not context & bit
        }
        effects[step] = effect._replace(
            shapley=fsum(change * weight[c.bit_count()] for c, change in changes.items()),
            minimum=min(changes.values()),
            maximum=max(changes.values()),
        )
    return effects
