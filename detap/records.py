"""Frozen dataclasses that share their methods.

`dataclass` compiles the methods of each class, which takes 0.0005 to 0.002 s per class at every
start. Classes of a plain run derive from :class:`Record` or :class:`Value` instead. Type
checkers, `dataclasses.fields` and `dataclasses.replace` see a frozen dataclass.
"""

from collections.abc import Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, dataclass_transform

if TYPE_CHECKING:
    from inspect import Signature


class _Signature:
    """The ``__signature__`` of a record, created on access."""

    def __get__(self, instance: object, owner: "type[Record]") -> "Signature":
        from inspect import Parameter, Signature  # noqa: PLC0415 - start-up time

        def parameter(item: Field[Any]) -> Parameter:
            kind = Parameter.KEYWORD_ONLY if item.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            value = item.default_factory if item.default is MISSING else item.default
            default = Parameter.empty if value is MISSING else value
            return Parameter(item.name, kind, default=default, annotation=item.type)

        # Keyword-only parameters come last.
        return Signature(sorted(map(parameter, fields(owner)), key=lambda item: item.kind))


_LINE = 100
"""Width of a short repr, which ends with ``...`` beyond it."""


def one_line(name: str, values: Iterable[tuple[str, Any]]) -> str:
    """Return a short repr: numbers and text by value, tuples and arrays by their size."""
    parts, arrays = [], []
    for key, value in values:
        if isinstance(value, str | int | float):
            parts.append(f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={value!r}")
        elif isinstance(value, tuple):
            parts.append(f"{len(value)} {key.replace('_', ' ')}")
        elif hasattr(value, "shape"):
            arrays.append(f"{key} {value.shape}")
    text = ""
    for part in (*parts, *arrays):
        if len(name) + len(text) + len(part) > _LINE:
            text += ", ..."
            break
        text += f", {part}"
    return f"{name}({text[2:]})"


def summary_line(result: Any, *sizes: str) -> str:
    """Return a short repr of a result: protocol, primary metric and sizes."""
    name, value = next(iter(result.summary.items()))
    parts = (repr(result.protocol.name), f"{name}={value:.4f}", *sizes)
    return f"{type(result).__name__}({', '.join(parts)})"


class Brief:
    """A dataclass that `repr` shows in one line, without its arrays."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __repr__(self) -> str:
        names = (item.name for item in fields(self) if item.repr and item.name[0] != "_")
        return one_line(type(self).__name__, ((name, getattr(self, name)) for name in names))


class Displayed(Brief):
    """A dataclass that `print` and notebooks show as tables, and `repr` in one line."""

    __slots__ = ()

    def __str__(self) -> str:
        from detap.report.writers.notebook import to_text  # noqa: PLC0415 - start-up time

        return to_text(self)

    def _repr_html_(self) -> str:
        from detap.report.writers.notebook import to_html  # noqa: PLC0415 - start-up time

        return to_html(self)


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
class Record(Brief):
    """A frozen dataclass compared by identity.

    Raises
    ------
    TypeError
        If a field without default is missing, or an argument is not a field.
    FrozenInstanceError
        If a field is assigned to.
    """

    __signature__ = _Signature()

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)

    def __init__(self, *given: Any, **named: Any) -> None:
        values = vars(self)
        if given:
            names = [item.name for item in fields(self) if not item.kw_only]
            positional = dict(zip(names, given, strict=False))
            if len(given) > len(names):
                raise self._wrong(f"takes {len(names)} positional arguments, not {len(given)}")
            for name in filter(named.__contains__, positional):
                raise self._wrong(f"got multiple values for argument {name!r}")
            named |= positional
        for item in fields(self):
            if item.name in named:
                values[item.name] = named.pop(item.name)
            elif item.default is not MISSING:
                values[item.name] = item.default
            elif item.default_factory is not MISSING:
                values[item.name] = item.default_factory()
            else:
                raise self._wrong(f"missing required argument: {item.name!r}")
        for name in named:
            raise self._wrong(f"got an unexpected keyword argument {name!r}")
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check and complete the fields."""

    def _wrong(self, message: str) -> TypeError:
        return TypeError(f"{type(self).__name__}.__init__() {message}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


class Value(Record):
    """A record compared and shown by its fields."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = (item.name for item in fields(self) if item.compare)
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, item.name) for item in fields(self) if item.compare))

    def __repr__(self) -> str:
        shown = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(self))
        return f"{type(self).__name__}({', '.join(shown)})"
