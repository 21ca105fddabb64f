"""Records: dataclasses whose methods stand here, once.

`dataclass` writes and compiles an ``__init__`` for each class, and what refuses assignment, and
comparisons: 0.0005 to 0.002 s for a class, at every start. What a plain run makes derives from
:class:`Record` or :class:`Value` instead; type checkers see a frozen dataclass, and so do
`dataclasses.fields` and `dataclasses.replace`.
"""

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, dataclass_transform

if TYPE_CHECKING:
    from inspect import Signature


class _Signature:
    """What `help` and editors show of a record's arguments, made when they ask."""

    def __get__(self, instance: object, owner: "type[Record]") -> "Signature":
        from inspect import Parameter, Signature  # noqa: PLC0415 - seldom asked for

        def parameter(entry: Field[Any]) -> Parameter:
            kind = Parameter.KEYWORD_ONLY if entry.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            given = entry.default_factory if entry.default is MISSING else entry.default
            default = Parameter.empty if given is MISSING else given
            return Parameter(entry.name, kind, default=default, annotation=entry.type)

        # Those by keyword alone stand last.
        return Signature(sorted(map(parameter, fields(owner)), key=lambda found: found.kind))


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
class Record:
    """A frozen dataclass that is equal to itself alone.

    Raises
    ------
    TypeError
        Where a field without default is not given, or something is that is no field.
    FrozenInstanceError
        Where a field is assigned to.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __signature__ = _Signature()

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)

    def __init__(self, *given: Any, **named: Any) -> None:
        values = vars(self)
        if given:
            names = [entry.name for entry in fields(self) if not entry.kw_only]
            by_place = dict(zip(names, given, strict=False))
            if len(given) > len(names):
                raise self._wrong(f"takes {len(names)} positional arguments, not {len(given)}")
            for name in filter(named.__contains__, by_place):
                raise self._wrong(f"got multiple values for argument {name!r}")
            named |= by_place
        for entry in fields(self):
            if entry.name in named:
                values[entry.name] = named.pop(entry.name)
            elif entry.default is not MISSING:
                values[entry.name] = entry.default
            elif entry.default_factory is not MISSING:
                values[entry.name] = entry.default_factory()
            else:
                raise self._wrong(f"missing required argument: {entry.name!r}")
        for name in named:
            raise self._wrong(f"got an unexpected keyword argument {name!r}")
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check what was given, and complete it."""

    def _wrong(self, what: str) -> TypeError:
        return TypeError(f"{type(self).__name__}.__init__() {what}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


class Value(Record):
    """A record that is equal to others of the same class with equal fields, and shows them."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = (entry.name for entry in fields(self) if entry.compare)
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, entry.name) for entry in fields(self) if entry.compare))

    def __repr__(self) -> str:
        said = (f"{entry.name}={getattr(self, entry.name)!r}" for entry in fields(self))
        return f"{type(self).__name__}({', '.join(said)})"
