"""Columns of the attributes that a protocol's condition uses."""

from collections.abc import Callable, Sequence
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import UsageError
from detap.io.problems import FaultError
from detap.tables.detection import GroundTruth
from detap.text_input import number, quote

Value = float | str | None


class Attributes:
    """The attributes `names` of ground truths, added row by row.

    If the format has only `texts`, an attribute is a number if all its values are.
    """

    def __init__(self, names: Sequence[str], *, texts: bool = False) -> None:
        for name in names:
            if name in GroundTruth.__dataclass_fields__:
                raise UsageError(f"attribute {name!r} has the name of a column of the ground truth")
        self.names = tuple(names)
        self._texts = texts
        self._rows: list[tuple[Value, ...]] = []

    def values(self, get: Callable[[str], Any]) -> tuple[Value, ...]:
        """Return the attributes of a row, None for missing ones; `get` returns one by name."""
        return tuple(_value(name, get(name)) for name in self.names)

    def append(self, values: tuple[Value, ...]) -> None:
        """Add a row of :meth:`values`."""
        self._rows.append(values)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns: numbers, NaN if missing, or text, empty if missing."""
        return {
            name: self._column([row[index] for row in self._rows])
            for index, name in enumerate(self.names)
        }

    def _column(self, values: list[Value]) -> NDArray[Any]:
        texts = [value for value in values if isinstance(value, str)]
        if texts and not (self._texts and all(map(_is_number, texts))):
            return np.array(["" if value is None else str(value) for value in values], np.str_)
        return np.array([np.nan if value is None else float(value) for value in values], np.float64)


def _is_number(text: str) -> bool:
    try:
        number(text)
    except ValueError:
        return False
    return True


def _value(name: str, value: Any) -> Value:
    if value is None or isinstance(value, str):
        return value.strip() or None if value else None
    if isinstance(value, int | float):
        if abs(value) > float_info.max:
            raise FaultError(f"{name} is too large", "use a smaller number")
        return float(value)
    raise FaultError(f"{name} is {quote(str(value))}", "expected a number or a string")
