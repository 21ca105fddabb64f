"""A Parquet or Arrow file that was read: its columns, and what is wrong with them."""

import os
from collections.abc import Callable, Iterator
from math import isfinite, isnan
from typing import Any

import numpy as np

from detap.errors import Note
from detap.formats.arrow.files import check_installed, damage, opened
from detap.formats.coco.assembly import Source
from detap.io.json_text import spelt
from detap.io.limits import Limits
from detap.io.paths import Path, shown
from detap.io.problems import FaultError, Problems, check_choice
from detap.tables.detection import BOX_FORMATS, Floats, Integers, Name, SourceFile, encode_boxes

_NONE = np.zeros(0, np.intp)
_NAME_DUE = "give a whole number or text"
_LAYOUT = (
    "mend the boxes; or, if the numbers are of the other kind, name the columns so (x1, y1, x2, y2 "
    "or x, y, width, height; of bbox, the metadata `boxes`)"
)


class Table:
    """A file that was read: its columns, and what is wrong with them."""

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
        """Return where the columns were read, for what is said of them."""

        def location(row: int) -> str:
            return self.location(row if origin is None else int(origin[row]))

        file = SourceFile(self.path, records, sha256=self._container.sha256)
        return Source(file, self.limits, as_is, location, self.shape.box_format, _LAYOUT)

    def location(self, row: int) -> str:
        """Return where a box stands."""
        if self._starts is None:
            return self._container.location(row)
        image = int(np.searchsorted(self._starts, row, side="right"))
        first = int(self._starts[image - 1]) if image else 0
        return f"{self._container.location(image)}, objects[{row - first}]"

    def notes(self) -> Iterator[Note]:
        """Say what is true of the table as such."""
        if self.rows.single:
            message = (
                "boxes or scores are of single precision (float32), and are read as just these "
                "numbers; JSON of the same detector has others, so that AP may differ from its in "
                "the eighth decimal"
            )
            yield Note("float32-columns", message, severity="info")

    def report(
        self, rows: Any, message: str | Callable[[int], str], hint: str = "", location: Any = None
    ) -> None:
        """Note a problem of some rows, of which as many are listed as may be."""
        for row in rows[: self.limits.problems].tolist():
            text = message if isinstance(message, str) else message(row)
            self.problems.add((location or self.location)(row), text, hint)
        self.problems.count += max(0, len(rows) - self.limits.problems)

    def check_names(self, name: str, codes: Any, bare: Any = _NONE, location: Any = None) -> None:
        """Note the rows that have no name."""
        without = but(self.rows.without(name), bare)
        self.report(without, f"{name} is null", _NAME_DUE, location)
        if codes.wrong:
            found = codes.rows()
            rows = np.setdiff1d(np.flatnonzero(np.isin(found, list(codes.wrong))), without)
            wrong = codes.wrong
            self.report(
                rows, lambda row: f"{name} is {said(wrong[found[row]])}", _NAME_DUE, location
            )

    def check_classes(self, bare: Any = _NONE) -> None:
        """Note the rows that have no class."""
        for name in self.shape.class_columns:
            self.check_names(name, self.rows.codes[name], bare)

    def image(self, places: Integers | None = None) -> Integers:
        """Return the number of each box's image, as first met or by its place, as `Codes.rows`."""
        rows = self.rows.image.rows(places)
        return rows if self.rows.counts is None else np.repeat(rows, self.rows.counts)

    def check_images(self) -> None:
        """Note the rows that have no image, or where an image is a row, that of another."""
        location = self._container.location
        self.check_names("image_id", self.rows.image, _NONE, location)
        if self.rows.counts is None:
            return
        found = self.rows.image.rows()
        first = np.full(len(self.rows.image.number), -1)
        first[found[::-1]] = np.arange(len(found))[::-1]
        again = np.flatnonzero(first[found] != np.arange(len(found)))
        self.report(
            again,
            lambda row: f"its image_id is that of {location(first[found[row]])} too",
            "give each image one row",
            location,
        )

    def boxes(self, bare: Any = _NONE) -> tuple[Floats, Floats]:
        """Return the corners (N, 4) and areas (N,) of all boxes."""
        box = self.rows.boxes()
        names = self.shape.box
        columns = [box] if len(names) == 1 else list(box.T)
        for name, column in zip(names, columns, strict=True):
            self.check_given(name, column, bare)
        calm = self.rows.calm
        if not calm:
            for name, column in zip(names, columns, strict=True):
                self.check_finite(name, column)
        fine = calm or self.problems.count
        corners, areas = encode_boxes(box, self.shape.box_format, copy=False)
        if not fine:
            over = np.flatnonzero(~(np.isfinite(areas) & np.isfinite(corners).all(axis=1)))
            self.report(over, "the box overflows", "give a box of finite area and corners")
        return corners, areas

    def check_given(self, name: str, column: Floats, bare: Any = _NONE) -> None:
        """Note the rows of a column, (N,) or (N, 4), that have no numbers, or inexact ones."""
        without = but(self.rows.without(name), bare)
        what, due = ("null", "a number") if column.ndim == 1 else ("null, or not 4", "4 numbers")
        self.report(without, f"{name} is {what}", f"give {due}")
        self.report(
            self.rows.inexact(name),
            lambda row: f"{name} is about {said(column[row].tolist())}, beyond 2^53",
            "give numbers that float64 holds, such as whole numbers below 2^53",
        )

    def check_finite(self, name: str, column: Floats) -> None:
        """Note the rows of a column, (N,) or (N, 4), whose numbers are not finite."""
        if not np.isfinite(column).all():
            finite = np.isfinite(column).reshape(len(column), -1).all(axis=1)
            rows = np.setdiff1d(np.flatnonzero(~finite), self.rows.without(name))
            self.report(
                rows, lambda row: f"{name} is {said(column[row].tolist())}", "give finite numbers"
            )

    def called(self, bare: Any = _NONE) -> dict[Name, str]:
        """Return what each category id is called; note those called two things."""
        ids, names = (self.rows.codes[k].rows() for k in ("category_id", "category"))
        by_id, by_name = (list(self.rows.codes[k].number) for k in ("category_id", "category"))
        many = len(by_name) + 1
        rows = np.setdiff1d(np.arange(len(ids)), bare)
        pairs, first = np.unique(ids[rows].astype(np.int64) * many + names[rows], return_index=True)
        called: dict[Name, str] = {}
        for pair, row in zip(pairs.tolist(), rows[first].tolist(), strict=True):
            number, other = divmod(pair, many)
            identifier, name = by_id[number], str(by_name[other])
            if called.setdefault(identifier, name) != name:
                message = (
                    f"category {spelt(identifier)} is {spelt(name)} here, "
                    f"{spelt(called[identifier])} elsewhere"
                )
                self.problems.add(self.location(row), message, "give each category one name")
        return called


def but(rows: Any, others: Any) -> Any:
    """Return the rows that are not among others."""
    return np.setdiff1d(rows, others) if len(rows) else rows  # the first call takes 0.007 s


def said(value: Any) -> str:
    """Return a number, or four of them, as messages have it."""
    if isinstance(value, list):
        return f"[{', '.join(map(said, value))}]"
    if isinstance(value, float):
        return f"{value:g}" if isfinite(value) else "NaN" if isnan(value) else "infinite"
    return spelt(value)
