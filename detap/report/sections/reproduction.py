"""Which implementation's numbers a preset gives, and how nearly."""

from typing import TYPE_CHECKING, Annotated, TypedDict

from detap.report.fields import Limits
from detap.report.model import Block

if TYPE_CHECKING:
    from detap.protocols import Protocol


class ReproducesData(TypedDict):
    """Which implementation's numbers these are, where they may differ from its own.

    Absent where they are equal, where that could not be tried, and where the protocol departs from
    its preset.
    """

    source: str
    tolerance: Annotated[float, "By how much a number may differ.", Limits(above=0)]
    residue: Annotated[str, "What the difference comes from."]


def reproduction(rules: "Protocol") -> tuple[Block, ...]:
    """Say how far numbers may be from those of the preset's source; nothing where they are equal.

    Of a protocol that departs from its preset nothing is promised.
    """
    if not rules.tolerance or rules.departures():
        return ()
    data = {"source": rules.source, "tolerance": rules.tolerance, "residue": rules.residue}
    line = f"{rules.name} is {rules.source}, to within {rules.tolerance:g}: {rules.residue}"
    return (Block("reproduces", "", data, (line,)),)
