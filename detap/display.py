"""Results and tables in Python: `repr` in one line, `print` and notebooks as tables."""

from collections.abc import Iterable
from dataclasses import Field, fields
from importlib import import_module
from typing import Any, ClassVar

WRITER = "detap.report.writers.notebook"
"""Module with the functions of :class:`Displayed`, imported when a value is shown."""

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
        text: str = import_module(WRITER).to_text(self)
        return text

    def _repr_html_(self) -> str:
        html: str = import_module(WRITER).to_html(self)
        return html
