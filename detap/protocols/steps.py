"""The steps that lead from one protocol to another: axes in which they differ, some together."""

from typing import Any, NamedTuple

from detap.protocols.fields import ProtocolBase, ProtocolField, display_name, protocol_fields


class Step(NamedTuple):
    """Axes in which two protocols differ and which only make sense together.

    Attributes
    ----------
    fields : tuple of ProtocolField
    """

    fields: tuple[ProtocolField, ...]

    @property
    def is_long(self) -> bool:
        """Whether there are more axes than a name lists."""
        return len(self.fields) > 3

    @property
    def name(self) -> str:
        """What the axes are called."""
        names = [display_name(field.name) for field in self.fields]
        return f"{names[0]} and {len(names) - 1} more" if self.is_long else ", ".join(names)

    def values(self, protocol: ProtocolBase) -> dict[str, Any]:
        """Return what a protocol has on these axes, by name."""
        return {field.name: getattr(protocol, field.name) for field in self.fields}


def steps(first: ProtocolBase, second: ProtocolBase) -> tuple[Step, ...]:
    """Return the steps that lead from a protocol to another of its kind, in their fixed order."""
    differing = {
        field.name: field
        for field in protocol_fields(type(first))
        if getattr(first, field.name) != getattr(second, field.name)
    }
    grouped = {name for group in first.together for name in group}
    groups = (*first.together, *((name,) for name in differing if name not in grouped))
    found = (tuple(differing[name] for name in group if name in differing) for group in groups)
    return tuple(Step(group) for group in found if group)
