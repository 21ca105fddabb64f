"""Steps from one protocol to another: the fields that differ, some of them grouped."""

from typing import Any, NamedTuple

from detap.protocols.fields import ProtocolBase, ProtocolField, compared_fields, display_name


class Step(NamedTuple):
    """Fields that differ between two protocols and must change together."""

    fields: tuple[ProtocolField, ...]

    @property
    def is_long(self) -> bool:
        """True if there are more fields than a name lists."""
        return len(self.fields) > 3

    @property
    def name(self) -> str:
        """The names of the fields."""
        names = [display_name(field.name) for field in self.fields]
        return f"{names[0]} and {len(names) - 1} more" if self.is_long else ", ".join(names)

    def values(self, protocol: ProtocolBase) -> dict[str, Any]:
        """Return the values of these fields in a protocol, by name."""
        return {field.name: getattr(protocol, field.name) for field in self.fields}


def steps(first: ProtocolBase, second: ProtocolBase) -> tuple[Step, ...]:
    """Return the steps from a protocol to another of the same kind, in a fixed order."""
    differing = {
        field.name: field
        for field in compared_fields(type(first))
        if getattr(first, field.name) != getattr(second, field.name)
    }
    grouped = {name for group in first.together for name in group}
    groups = (*first.together, *((name,) for name in differing if name not in grouped))
    changed = (tuple(differing[name] for name in group if name in differing) for group in groups)
    return tuple(Step(group) for group in changed if group)
