"""Columns of a Parquet or Arrow file, and their validation."""

import os
from collections.abc import Callable, Iterator
from math import isfinite, isnan
from typing import Any

import numpy as np

from detap.errors import Note
from detap.formats.arrow.files import check_installed, damage, opened
from detap.formats.coco.assembly import Source
from detap.io.json_text import short_json
from detap.io.limits import Limits
from detap.io.paths import Path, shown
from detap.io.problems import FaultError, Problems, check_choice
from detap.tables.detection import BOX_FORMATS, Floats, Integers, Name, SourceFile, encode_boxes

_NONE = np.zeros(0, np.intp)
_NAME_TYPE = ", expected an integer or a string"
_LAYOUT = (
    "name the columns after the box format (x1, y1, x2, y2 or x, y, width, height), or set the "
    "metadata `boxes` of bbox"
)


class Table:
    """The columns of a file, and their problems."""

    def __init__(self, path: Path, scored: bool, boxes: str | None, limits: Limits) -> None:
        check_installed()
        from detap.formats.arrow.gather import Gathered  # imports pyarrow
        from detap.formats.arrow.shape import shape_of

        if boxes is not None:
            check_choice("boxes", boxes, BOX_FORMATS)
        self.path = os.fspath(path)
        self.limits = limits
        self.problems = Problems(shown(self.path), limits.problems)
        with opened(path, limits) as container, damage(self.path):
            self.shape = shape_of(container.schema, scored, boxes, self.problems)
            container.check_size(self.shape.columns, limits)
            batches = container.batches(self.shape.columns)
            try:
                self.rows = Gathered(self.shape, batches, sum(container.rows), limits.records)
            except FaultError as error:
                self.problems.add("", error.message, error.hint)
        self.problems.raise_any()
        self._container = container
        self._starts = None if self.rows.counts is None else np.cumsum(self.rows.counts)

    def source(self, records: int, as_is: bool, origin: Any = None) -> Source:
        """Return the origin of the columns, for messages."""

        def location(row: int) -> str:
            return self.location(row if origin is None else int(origin[row]))

        file = SourceFile(self.path, records, sha256=self._container.sha256)
        return Source(file, self.limits, as_is, location, self.shape.box_format, _LAYOUT)

    def location(self, row: int) -> str:
        """Return the location of a box."""
        if self._starts is None:
            return self._container.location(row)
        image = int(np.searchsorted(self._starts, row, side="right"))
        first = int(self._starts[image - 1]) if image else 0
        return f"{self._container.location(image)}, objects[{row - first}]"

    def notes(self) -> Iterator[Note]:
        """Yield the notes of the table."""
        if self.rows.single:
            message = (
                "boxes or scores are float32; AP may differ from that of JSON results in the "
                "eighth decimal"
            )
            yield Note("float32-columns", message, severity="info")

    def report(
        self, rows: Any, message: str | Callable[[int], str], hint: str = "", location: Any = None
    ) -> None:
        """Report a problem of rows, listing as many as the limit allows."""
        for row in rows[: self.limits.problems].tolist():
            text = message if isinstance(message, str) else message(row)
            self.problems.add((location or self.location)(row), text, hint)
        self.problems.count += max(0, len(rows) - self.limits.problems)

    def check_names(self, name: str, codes: Any, empty: Any = _NONE, location: Any = None) -> None:
        """Report rows without a valid name."""
        missing = exclude(self.rows.without(name), empty)
        self.report(missing, f"{name} is null{_NAME_TYPE}", location=location)
        if codes.wrong:
            code = codes.rows()
            rows = np.setdiff1d(np.flatnonzero(np.isin(code, list(codes.wrong))), missing)
            invalid = codes.wrong
            self.report(
                rows,
                lambda row: f"{name} is {format_value(invalid[code[row]])}{_NAME_TYPE}",
                location=location,
            )

    def check_classes(self, empty: Any = _NONE) -> None:
        """Report rows without a class."""
        for name in self.shape.class_columns:
            self.check_names(name, self.rows.codes[name], empty)

    def image(self, indices: Integers | None = None) -> Integers:
        """Return the image code of each box, or its value in `indices`, as `Codes.rows`."""
        rows = self.rows.image.rows(indices)
        return rows if self.rows.counts is None else np.repeat(rows, self.rows.counts)

    def check_images(self) -> None:
        """Report rows without an image, and repeated images of nested tables."""
        location = self._container.location
        self.check_names("image_id", self.rows.image, _NONE, location)
        if self.rows.counts is None:
            return
        code = self.rows.image.rows()
        first = np.full(len(self.rows.image.number), -1)
        first[code[::-1]] = np.arange(len(code))[::-1]
        repeated = np.flatnonzero(first[code] != np.arange(len(code)))
        self.report(
            repeated,
            lambda row: f"duplicate image_id (also at {location(first[code[row]])})",
            "write one row per image",
            location,
        )

    def boxes(self, empty: Any = _NONE) -> tuple[Floats, Floats]:
        """Return the corners (N, 4) and areas (N,) of all boxes."""
        box = self.rows.boxes()
        names = self.shape.box
        columns = [box] if len(names) == 1 else list(box.T)
        for name, column in zip(names, columns, strict=True):
            self.check_given(name, column, empty)
        small = self.rows.small
        if not small:
            for name, column in zip(names, columns, strict=True):
                self.check_finite(name, column)
        finite = small or self.problems.count
        corners, areas = encode_boxes(box, self.shape.box_format, copy=False)
        if not finite:
            rows = np.flatnonzero(~(np.isfinite(areas) & np.isfinite(corners).all(axis=1)))
            self.report(rows, "box overflows, expected finite corners and area")
        return corners, areas

    def check_given(self, name: str, column: Floats, empty: Any = _NONE) -> None:
        """Report rows of a column, (N,) or (N, 4), without numbers or with inexact ones."""
        missing = exclude(self.rows.without(name), empty)
        problem = "null, expected a number"
        if column.ndim > 1:
            problem = "null or not of length 4, expected 4 numbers"
        self.report(missing, f"{name} is {problem}")
        self.report(
            self.rows.inexact(name),
            lambda row: f"{name} is about {format_value(column[row].tolist())}, beyond 2^53",
            "use numbers that float64 represents exactly, such as integers below 2^53",
        )

    def check_finite(self, name: str, column: Floats) -> None:
        """Report rows of a column, (N,) or (N, 4), whose numbers are not finite."""
        if not np.isfinite(column).all():
            finite = np.isfinite(column).reshape(len(column), -1).all(axis=1)
            rows = np.setdiff1d(np.flatnonzero(~finite), self.rows.without(name))
            expected = "a finite number" if column.ndim == 1 else "finite numbers"
            self.report(
                rows,
                lambda row: f"{name} is {format_value(column[row].tolist())}, expected {expected}",
            )

    def category_names(self, empty: Any = _NONE) -> dict[Name, str]:
        """Return the name of each category id; report ids with several names."""
        ids, names = (self.rows.codes[k].rows() for k in ("category_id", "category"))
        by_id, by_name = (list(self.rows.codes[k].number) for k in ("category_id", "category"))
        count = len(by_name) + 1
        rows = np.setdiff1d(np.arange(len(ids)), empty)
        keys = ids[rows].astype(np.int64) * count + names[rows]
        pairs, first = np.unique(keys, return_index=True)
        name_by_id: dict[Name, str] = {}
        for pair, row in zip(pairs.tolist(), rows[first].tolist(), strict=True):
            id_code, name_code = divmod(pair, count)
            identifier, name = by_id[id_code], str(by_name[name_code])
            if name_by_id.setdefault(identifier, name) != name:
                message = (
                    f"category {short_json(identifier)} has the names {short_json(name)} and "
                    f"{short_json(name_by_id[identifier])}"
                )
                self.problems.add(self.location(row), message, "use one name per category")
        return name_by_id


def exclude(rows: Any, others: Any) -> Any:
    """Return the rows that are not in `others`."""
    return np.setdiff1d(rows, others) if len(rows) else rows  # the first call takes 0.007 s


def format_value(value: Any) -> str:
    """Return the text of a number, or of four, for messages."""
    if isinstance(value, list):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, float):
        return f"{value:g}" if isfinite(value) else "NaN" if isnan(value) else "infinite"
    return short_json(value)
