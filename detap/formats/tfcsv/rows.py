"""Read the rows of a CSV file of boxes in pixels."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from detap.errors import Note
from detap.formats.by_name.problems import CORNERS
from detap.formats.reading.image_sizes import read_image_sizes
from detap.formats.shapes.csv_rows import Row, read_csv
from detap.formats.shapes.documents import SCORES, DocumentReader, Image, Item
from detap.formats.shapes.reader import number_of
from detap.formats.stem_matching import base_name
from detap.formats.text.class_names import ClassNames
from detap.formats.tfcsv.sniff import COORDINATES, without_header
from detap.io.paths import Path
from detap.io.problems import FaultError
from detap.tables.detection import SourceFile
from detap.text_input import quote

_IMAGES = ("filename", "image")
_CLASSES = ("class", "class_name", "class_id")
_HEADER = "filename,xmin,ymin,xmax,ymax,class"
_SINK = 'for supervision\'s CSVSink add it with custom_data={"image": ...}'


class Rows(DocumentReader):
    """Reader of a CSV file; the location of a box is its line.

    Attributes
    ----------
    names : ClassNames
        Names of numbered classes.
    """

    corner_names = COORDINATES[0]
    expected = f"expected a CSV with the header `{_HEADER}`"

    def __init__(self, *arguments: Any, **how: Any) -> None:
        super().__init__(*arguments, **how)
        self.names = ClassNames()
        self._columns: dict[str, str] = {}
        self._seen: set[tuple[Any, ...]] = set()
        self._size: dict[str, str] = {}
        self._first_row = ""
        self._has_empty = False
        self._repeated = 0
        self._sizes: tuple[SourceFile, ...] = ()

    def parse(self, data: bytes, file: str) -> tuple[Any, int] | None:
        """Return the rows of each image."""
        table = read_csv(data, file, self.problems, self.limits, self.expected)
        if table is None:
            return None
        try:
            self._find_columns(table.header)
        except FaultError as fault:
            self.problems.add(file, "line 1", fault.message, fault.hint)
            return None
        images: dict[str, list[Row]] = defaultdict(list)
        for row in table.rows:
            images[row.values[self._columns["image"]]].append(row)
        return images, 0

    def _find_columns(self, header: Sequence[str]) -> None:
        """Find the column of the image, class, score and each coordinate."""
        if without_header(header):
            raise FaultError("has no header", f"put the line `{_HEADER}` above it")
        named = {name: name for name in header}
        score = next((name for name in SCORES if name in named), "")
        if score and not self.scored and not self.images_only:
            raise FaultError(f"has a column {score} (detections?)", "use the ground truth")
        corners = next((c for c in COORDINATES if set(c) & set(header)), COORDINATES[0])
        choices = {"image": _IMAGES, "class": _CLASSES}
        choices |= {name: (column,) for name, column in zip(CORNERS, corners, strict=True)}
        choices |= {"score": SCORES} if self.scored else {}
        for name, columns in choices.items():
            column = next((column for column in columns if column in named), None)
            if column is None:
                sink = name == "image" and corners is not COORDINATES[0]
                hint = _SINK if sink else self.expected
                truth = " (ground truth?)" if name == "score" else ""
                raise FaultError(f"has no column {' or '.join(columns)}{truth}", hint)
            self._columns[name] = column

    def images_of(self, content: Any) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each image."""
        for name, rows in content.items():
            yield f"line {rows[0].line}", (name, rows)

    def image_of(self, location: str, record: Any) -> Image:
        """Return the image of rows."""
        name, rows = record
        self._seen.clear()
        first = rows[0].values
        objects = ((f"line {row.line}", row.values) for row in rows)
        width, height = (_side(side, first.get(side, "")) for side in ("width", "height"))
        self._size = {side: first.get(side, "") for side in ("width", "height")}
        self._first_row = location
        return Image(name, objects, width, height)

    def item_of(self, record: Any) -> Item | None:
        """Return the box of a row; None for a row without, and for a repeated one."""
        for side, text in self._size.items():
            if record.get(side, "") != text:
                message = f"{side} is {quote(record[side])}, {quote(text)} in {self._first_row}"
                raise FaultError(message, "use one size per image")
        values = {name: record[column] for name, column in self._columns.items()}
        if not any(values[name] for name in ("class", *CORNERS)):
            self._has_empty = True
            return None
        if not values["class"]:
            raise FaultError(f"{self._columns['class']} is empty", "write the name of its class")
        label = self.names.resolve(values["class"])
        box = [number_of(self._columns[name], values[name]) for name in CORNERS]
        if self.scored:
            score = self._columns["score"]
            return Item(label, box, {score: number_of(score, values["score"])})
        if (label, *box) in self._seen:
            self._repeated += 1
            return None
        self._seen.add((label, *box))
        return Item(label, box)

    def add_sizes(self, path: Path) -> None:
        """Add the sizes, and images without boxes, of a table."""
        table = read_image_sizes(path, self.limits)
        names = {base_name(name): name for name in self.images}
        for stem, size in table.items():
            name = names.get(stem, stem)
            if math.isnan(self.images.get(name, (math.nan,))[0]):
                self.images[name] = size
        self._sizes = (SourceFile(str(path), len(table)),)

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the input sources."""
        return (*super().sources(), *self._sizes, *self.names.source())

    def notes(self) -> tuple[Note, ...]:
        """Return notes about the file."""
        message = "images in the file; images without boxes are missing, unless in --image-sizes"
        count = 0 if self._sizes or self._has_empty else len(self.images)
        return (
            Note("repeated-rows", "rows repeat another; dropped", self._repeated),
            Note("images-with-boxes-only", message, count, severity="info"),
        )


def _side(name: str, text: str) -> float | None:
    """Return the width or height of an image; None if unknown."""
    return number_of(name, text) or None if text else None
