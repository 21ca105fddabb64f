"""The steps that lead from one protocol to another: axes in which they differ, some together."""

from typing import Any, NamedTuple

from detap.protocols.fields import ProtocolBase, ProtocolField, display_name, protocol_fields


class Step(NamedTuple):
    """Axes in which two protocols differ and which only make sense together.

    Attributes
    ----------
    axes : tuple of ProtocolField
    """

    axes: tuple[ProtocolField, ...]

    @property
    def is_long(self) -> bool:
        """Whether there are more axes than a name lists."""
        return len(self.axes) > 3

    @property
    def name(self) -> str:
        """What the axes are called."""
        names = [display_name(entry.name) for entry in self.axes]
        return f"{names[0]} and {len(names) - 1} more" if self.is_long else ", ".join(names)

    def values(self, protocol: ProtocolBase) -> dict[str, Any]:
        """Return what a protocol has on these axes, by name."""
        return {entry.name: getattr(protocol, entry.name) for entry in self.axes}


def steps(first: ProtocolBase, second: ProtocolBase) -> tuple[Step, ...]:
    """Return the steps that lead from a protocol to another of its kind, in their fixed order."""
    differing = {
        entry.name: entry
        for entry in protocol_fields(type(first))
        if getattr(first, entry.name) != getattr(second, entry.name)
    }
    grouped = {name for group in first.together for name in group}
    groups = (*first.together, *((name,) for name in differing if name not in grouped))
    found = (tuple(differing[name] for name in group if name in differing) for group in groups)
    return tuple(Step(group) for group in found if group)
