"""Which implementation's numbers a preset gives, and how nearly."""

from typing import TYPE_CHECKING

from detap.report.model import Block

if TYPE_CHECKING:
    from detap.protocols import Protocol


def reproduction(rules: "Protocol") -> tuple[Block, ...]:
    """Say how far numbers may be from those of the preset's source; nothing where they are equal.

    Of a protocol that departs from its preset nothing is promised.
    """
    if not rules.tolerance or rules.departures():
        return ()
    data = {"source": rules.source, "tolerance": rules.tolerance, "residue": rules.residue}
    line = f"{rules.name} is {rules.source}, to within {rules.tolerance:g}: {rules.residue}"
    return (Block("reproduces", "", data, (line,)),)
