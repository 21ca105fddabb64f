"""TensorFlow's CSV of boxes with a header; also of Roboflow and supervision.

References: `xml_to_csv.py` of the TensorFlow object detection tutorials; Roboflow's export
"Tensorflow Object Detection CSV"; supervision 0.31, `CSVSink`.
"""

import csv
import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO
from typing import Any, Self

import numpy as np

from detap.checks.tables import pair_key, repeats
from detap.errors import Note
from detap.formats.by_name.problems import CORNERS
from detap.formats.content import (
    Content,
    check_words,
    lost,
    number_text,
    rounded_areas,
    scores_of,
    sizes,
)
from detap.formats.reading.sniffing import head
from detap.formats.shapes.document import SCORES, Document, DocumentFormat, Image, Item
from detap.formats.shapes.values import nonzero_number
from detap.formats.stem_matching import base_name
from detap.formats.text.csv_rows import Row, read_csv
from detap.formats.text.lines import number_of
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.problems import FaultError
from detap.tables.detection import Detections, GroundTruth
from detap.text_input import quote

_COORDINATES = (
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
)
_IMAGES = ("filename", "image")
_CLASSES = ("class", "class_name", "class_id")
_COLUMNS = ("filename", "width", "height", "class", "xmin", "ymin", "xmax", "ymax")
_HEADER = "filename,xmin,ymin,xmax,ymax,class"
_SINK = 'for supervision\'s CSVSink add it with custom_data={"image": ...}'


class Rows(Document):
    """The rows of a file; a row with only an image has no box.

    The first line names the columns, in any order: ``filename`` (or ``image``), ``class`` (or
    ``class_name``, ``class_id``), ``xmin``, ``ymin``, ``xmax``, ``ymax`` (or ``x_min``, ...), and
    optionally ``width`` and ``height`` of the image.
    Images of ground truth that only the table of image sizes lists have no boxes.
    """

    corner_names = _COORDINATES[0]
    expected = f"expected a CSV with the header `{_HEADER}`"

    def parse(self, data: bytes) -> Any:
        """Return the location, name and rows of each image."""
        before = self.problems.count
        header, rows = read_csv(data, self.problems, self.expected)
        images: dict[str, list[Row]] = defaultdict(list)
        if self.problems.count == before:
            self._find_columns(header)
            for row in rows:
                images[row.values[self._columns["image"]]].append(row)
        return [(f"line {rows[0].line}", (name, rows)) for name, rows in images.items()]

    def _find_columns(self, header: Sequence[str]) -> None:
        """Find the column of the image, class, score (if any) and each coordinate."""
        if _is_without_header(header):
            raise FaultError("has no header", f"put the line `{_HEADER}` above it", "line 1")
        score = next((name for name in SCORES if name in header), "")
        if score and not self.scored and not self.images_only:
            message = f"has a column {score} (detections?)"
            raise FaultError(message, "use the ground truth", "line 1")
        corners = next((c for c in _COORDINATES if set(c) & set(header)), _COORDINATES[0])
        self.without_scores = not score
        self._columns = dict[str, str]()
        choices = {"image": _IMAGES, "class": _CLASSES}
        choices |= {name: (column,) for name, column in zip(CORNERS, corners, strict=True)}
        choices |= {"score": (score,)} if score and self.scored else {}
        for name, columns in choices.items():
            column = next((column for column in columns if column in header), None)
            if column is None:
                sink = name == "image" and corners is not _COORDINATES[0]
                hint = _SINK if sink else self.expected
                raise FaultError(f"has no column {' or '.join(columns)}", hint, "line 1")
            self._columns[name] = column

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of rows."""
        name, rows = record
        self._seen = set[tuple[Any, ...]]()
        objects = ((f"line {row.line}", row.values) for row in rows)
        self._size = {side: rows[0].values.get(side, "") for side in ("width", "height")}
        self._first_row = location
        width, height = (nonzero_number(*pair) for pair in self._size.items())
        return Image(name, objects, width, height)

    def item_of(self, record: Any) -> Item | None:
        """Return the box of a row; None for a row without, and for a repeated one."""
        for side, text in self._size.items():
            if record.get(side, "") != text:
                message = f"{side} is {quote(record[side])}, {quote(text)} in {self._first_row}"
                raise FaultError(message, "use one size per image")
        values = {name: record[column] for name, column in self._columns.items()}
        if not any(values[name] for name in ("class", *CORNERS)):
            self.counts["empty"] += 1
            return None
        if not values["class"]:
            raise FaultError(f"{self._columns['class']} is empty", "write the name of its class")
        label = self.class_names.resolve(values["class"])
        box = [number_of(self._columns[name], values[name]) for name in CORNERS]
        if self.scored:
            score = self._columns.get("score", "")
            text = values.get("score", "")
            return Item(label, box, {score: number_of(score, text)} if text else {})
        if (label, *box) in self._seen:
            self.counts["repeated"] += 1
            return None
        self._seen.add((label, *box))
        return Item(label, box)

    def read(self, *, check: bool = True) -> Self:
        """Read the file, then the image sizes."""
        super().read(check=check)
        names = {base_name(name): name for name in self.images}
        for stem, size in self.size_table.items():
            name = names.get(stem, stem)
            if math.isnan(self.images.get(name, (math.nan,))[0]):
                self.images[name] = size
        return self

    def notes(self) -> tuple[Note, ...]:
        """Return notes about the file."""
        if self.scored:
            return ()
        message = "images in the file; images without boxes are missing, unless in --image-sizes"
        count = 0 if self.size_table or self.counts["empty"] else len(self.images)
        return (
            Note("repeated-rows", "rows repeat another; dropped", self.counts["repeated"]),
            Note("images-with-boxes-only", message, count, severity="info"),
        )


class TensorFlowCsv(DocumentFormat):
    """A CSV with one row per box; detections may have a ``score`` or ``confidence``."""

    document = Rows
    coordinates = "xmin, ymin, xmax, ymax"
    image_folders = (".", "images")
    written = ("annotations.csv", "detections.csv")

    def fits(self, path: str) -> bool:
        """Return True if a header names corners in pixels, or the CSV looks like Keras RetinaNet's.

        The latter have no header: ``path,x1,y1,x2,y2,class``.
        """
        line = head(path).removeprefix(BYTE_ORDER_MARK).partition(b"\n")[0]
        names = [name.strip(' "\r') for name in line.decode("utf-8", "replace").split(",")]
        if _is_without_header(names):
            return True
        return any(set(corners) <= set(names) for corners in _COORDINATES)

    def text(self, content: Content, table: GroundTruth | Detections, notes: list[Note]) -> bytes:
        """Return the file of a table; an image without boxes has a row with an empty box."""
        check_words(content, table.classes, "class")
        check_words(content, [*map(content.file_name, content.images)], "image")
        if isinstance(table, GroundTruth):
            repeated = repeats(pair_key(table.image, table.label), table.corners)
            notes += lost("duplicate objects; readers drop them", repeated)
        notes += rounded_areas(table, "boxes")
        text = StringIO()
        rows = csv.writer(text, lineterminator="\n")
        scores = scores_of(table)
        rows.writerow((*_COLUMNS, *(() if scores is None else ("score",))))
        images = [
            (content.file_name(name), *(map(number_text, size) if size else ("", "")))
            for name, size in zip(content.images, sizes(content), strict=True)
        ]
        numbers = table.corners if scores is None else np.column_stack([table.corners, scores])
        columns = table.image.tolist(), table.label.tolist(), numbers.tolist()
        for image, label, values in zip(*columns, strict=True):
            rows.writerow((*images[image], table.classes[label], *map(number_text, values)))
        empty = np.flatnonzero(~table.images_with_rows).tolist()
        for number in empty if isinstance(table, GroundTruth) else ():
            rows.writerow((*images[number], *[""] * 5))
        return text.getvalue().encode()


def _is_without_header(values: Sequence[str]) -> bool:
    """Return True for a first row ``path,x1,y1,x2,y2,class``."""
    if len(values) != 6 or not values[0]:
        return False
    if not any(values[1:]):
        return True  # an image without objects
    with suppress(ValueError):
        return all(abs(float(value)) >= 0 for value in values[1:5])
    return False
