"""Why two protocols give two numbers on the same tables: what each axis has in the difference."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import NamedTuple

from detap.analysis.explanation.numbers import (
    MOST_ROWS,
    Tables,
    ask,
    headline,
    measure_called,
    occurring,
    stands,
)
from detap.analysis.explanation.shapley import Part, attribute, contexts_of_walk, walk
from detap.decimals import nearly_equal
from detap.errors import UsageError
from detap.protocols import MetricSpec, Protocol
from detap.protocols.fields import Flags
from detap.protocols.steps import Step, steps
from detap.tables.detection import GroundTruth

MOST_STEPS = 11
"""Of so many steps at most all contexts are scored: 2,048."""


class End(NamedTuple):
    """A protocol and its number.

    Attributes
    ----------
    protocol : Protocol
    measure : MetricSpec
        Of the protocol.
    value : float
    """

    protocol: Protocol
    measure: MetricSpec
    value: float


@dataclass(frozen=True)
class Difference:
    """What the axes have in the difference of two protocols.

    Attributes
    ----------
    first, second : End
    steps : tuple of Step
        The axes in which they differ, as far as the number depends on them, in the order of the
        walk.
    parts : tuple of Part
        What each step has in the difference.
    contexts : int
        How many protocols were scored.
    told : tuple of str
        What each step changes, in words, as far as the ground truth can tell.
    """

    first: End
    second: End
    steps: tuple[Step, ...]
    parts: tuple[Part, ...]
    contexts: int
    told: tuple[str, ...]

    @property
    def total(self) -> float:
        """The number of the second less that of the first."""
        return self.second.value - self.first.value

    @property
    def differs(self) -> bool:
        """Whether the numbers differ by more than rounding does."""
        return not nearly_equal(self.first.value, self.second.value)

    @property
    def in_all_contexts(self) -> bool:
        """Whether all contexts were scored; otherwise only the walks are known."""
        return not any(isnan(part.shapley) for part in self.parts)

    @property
    def shares(self) -> tuple[float, ...]:
        """What each step has in the difference, of 1: by Shapley, or by the walk; NaN of none."""
        has = [p.shapley if self.in_all_contexts else p.forward for p in self.parts]
        return tuple(part / self.total if self.differs else nan for part in has)


def difference(
    tables: Tables,
    first: Protocol,
    second: Protocol,
    at: str | None = None,
    *,
    classes: Sequence[str] | None = None,
    threads: int | None = None,
) -> Difference:
    """Attribute the difference of two protocols' numbers to the axes in which they differ.

    Parameters
    ----------
    tables : (GroundTruth, Detections)
    first, second : Protocol
    at : str, optional
        The number, such as ``"AP50"``; what one protocol calls AP and another mAP is one. By
        default the headline of each.
    classes : sequence of str, optional
        The classes to report, as :func:`detap.evaluate` has it.
    threads : int, optional
        The numbers do not depend on it.

    Raises
    ------
    UnknownNameError
        Where either has no such number.
    UsageError
        Where they differ in nothing that the number depends on, or the number is undefined.
    """
    protocols = (first, second)
    measures = [measure_called(protocol, at) for protocol in protocols]
    alone = [
        protocol.only_metric(entry) for protocol, entry in zip(protocols, measures, strict=True)
    ]
    _check_comparable(protocols, measures, alone)
    truth, detections = tables
    tables = truth, detections.reindex_like(truth)
    ends = ask(tables, alone, headline, classes=classes, threads=threads)
    _check_defined(protocols, ends, measures[0].name)
    found = _standing(steps(*alone), alone, tables)
    rows = len(truth) + len(detections)
    everywhere = len(found) <= MOST_STEPS and (rows << len(found)) <= MOST_ROWS
    contexts = [*range(1 << len(found))] if everywhere else contexts_of_walk(len(found))
    between = [_in_context(alone, found, context) for context in contexts]
    values = ask(tables, between, headline, classes=classes, threads=threads)
    _check_defined(between, values, measures[0].name)
    return Difference(
        End(first, measures[0], ends[0]),
        End(second, measures[1], ends[1]),
        found,
        tuple(attribute(values) if everywhere else walk(values, len(found))),
        len(contexts),
        tuple(told_of(step, alone, truth) for step in found),
    )


def _check_comparable(
    protocols: Sequence[Protocol], measures: Sequence[MetricSpec], alone: Sequence[Protocol]
) -> None:
    first, second = (protocol.text for protocol in protocols)
    if alone[0].primary_metric != alone[1].primary_metric:
        raise UsageError(
            f"{first} is quoted by {measures[0].name} and {second} by {measures[1].name}, which "
            "are of two kinds; name one that both have with --metric"
        )
    if not steps(*alone):
        raise UsageError(
            f"{first} and {second} differ in nothing that {measures[0].name} depends on: there is "
            "nothing to explain"
        )


def _check_defined(protocols: Sequence[Protocol], values: Sequence[float], name: str) -> None:
    for protocol, value in zip(protocols, values, strict=True):
        if isnan(value):
            raise UsageError(
                f"{name} is undefined by {protocol.text}: no class has ground truth that counts"
            )


def _standing(
    found: tuple[Step, ...], ends: Sequence[Protocol], tables: Tables
) -> tuple[Step, ...]:
    """Return the steps, those that contradict other axes when taken or left alone made one.

    Other pairings take other axes: their values can only change together. The axis that decides
    which others have a say contradicts them either way, and is the first of the step.
    """
    everything = (1 << len(found)) - 1
    stand = [
        [_stands(ends, found, taken, tables) for taken in (1 << number, everything ^ 1 << number)]
        for number in range(len(found))
    ]
    clashing = [number for number, both in enumerate(stand) if not all(both)]
    if not clashing:
        return found
    clashing.sort(key=lambda number: any(stand[number]))
    joined = Step(tuple(axis for number in clashing for axis in found[number].fields))
    others = [step for number, step in enumerate(found) if number not in clashing]
    place = min(clashing)
    return (*others[:place], joined, *others[place:])


def _stands(ends: Sequence[Protocol], found: Sequence[Step], context: int, tables: Tables) -> bool:
    try:
        return stands(_in_context(ends, found, context), tables)
    except UsageError:
        return False


def _in_context(ends: Sequence[Protocol], found: Sequence[Step], context: int) -> Protocol:
    taken = (step.values(ends[1]) for number, step in enumerate(found) if context >> number & 1)
    return replace(ends[0], **{name: value for values in taken for name, value in values.items()})


def told_of(step: Step, ends: Sequence[Protocol], ground_truth: GroundTruth | None = None) -> str:
    """Return what a step changes: the first of its axes of which a ground truth tells."""
    for axis in step.fields:
        before, after = (getattr(protocol, axis.name) for protocol in ends)
        if isinstance(axis.kind, Flags) and ground_truth is not None:
            before, after = (occurring(flags, ground_truth) for flags in (before, after))
        if before != after:
            rest = ", and what goes with it" if step.is_long else ""
            return axis.kind.describe_change(axis.name, before, after) + rest
    return told_of(step, ends)
