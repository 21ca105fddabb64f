"""Lines of text files, read one by one: what `detap/formats/text/_ragged.pyx` must equal."""

from collections.abc import Callable
from typing import Any

import numpy as np

Row = tuple[bytes, list[float], bool]


class PlainLines:
    """Rows of files, as a function of plain Python reads every line of them."""

    def __init__(self, odd: Callable[[int, int, bytes], Row | None], _: object, **__: Any) -> None:
        self.odd = odd
        self.rows: list[tuple[int, int, Row]] = []

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, data: bytes, file: int, most: int) -> None:
        """Append the rows of a file, until there are more than `most`; none on an exception."""
        rows: list[tuple[int, int, Row]] = []
        for number, line in enumerate(data.split(b"\n"), 1):
            text = line.removesuffix(b"\r")
            if text.strip(b" \t") and len(self.rows) + len(rows) <= most:
                row = self.odd(file, number, text)
                if row is not None:
                    rows.append((file, number, row))
        self.rows += rows

    def columns(self) -> tuple[Any, ...]:
        """Return the columns of all rows."""
        words = list(dict.fromkeys(word for _, _, (word, _, _) in self.rows))
        numbers = [number for _, _, (_, numbers, _) in self.rows for number in numbers]
        counts = [len(numbers) for _, _, (_, numbers, _) in self.rows]
        return (
            np.array([file for file, _, _ in self.rows], np.int32),
            np.array([line for _, line, _ in self.rows], np.int32),
            np.array([words.index(word) for _, _, (word, _, _) in self.rows], np.int32),
            np.array([flag for _, _, (_, _, flag) in self.rows], np.bool_),
            np.cumsum(counts, dtype=np.int64),
            np.array(numbers, np.float64),
            words,
        )
