"""Read the rows of YOLO label files: boxes, polygons, oriented boxes and keypoints."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import pair_key, repeats
from detap.core.masks import pixel_counts
from detap.core.polygons import box_polygons
from detap.errors import InputError, Note, Problem
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.by_name.objects import Objects
from detap.formats.text.class_names import ClassNames
from detap.formats.text.folder import Folder
from detap.formats.text.lines import LineForm
from detap.formats.text.reader import FolderReader, Rows
from detap.formats.yolo.rows import (
    BOX,
    CORNERS,
    Task,
    YoloForm,
    all_axis_aligned,
    check_tracks,
    refuse_equal_lengths,
    refuse_other_polygons,
)
from detap.formats.yolo.shapes import (
    LABELS_REACH,
    PREDICTIONS_REACH,
    Outlines,
    check_areas,
    check_fractions,
    check_keypoints,
    check_mixed,
    in_pixels,
    keypoint_fields,
    keypoint_notes,
)
from detap.io.limits import Limits
from detap.io.problems import FaultError
from detap.tables.detection import Flags, Floats, encode_boxes
from detap.tables.notes import POLYGONS_BOUNDED
from detap.text_input import is_whole, quote


class LabelReader(FolderReader):
    """Reader of label files; everything is normalized.

    `values` (N, 4 or 5) has the box of each row, or the lowest and highest x and y of its
    `polygon` (N,), and the score. `corners` (N, 8) are set if all polygons are oriented boxes and
    not all upright, `keypoints` (N, K, 2 or 3) if rows have them, `outlines` if masks are read;
    `drawn` says how. `by_name` is True if all rows have class names. `selected` are the rows in
    tables, if not all.
    """

    form: YoloForm
    corners: Floats | None = None
    keypoints: Floats | None = None
    outlines: Outlines | None = None
    drawn = ""
    selected: NDArray[np.intp] | None = None

    def __init__(
        self,
        path: str,
        folder: Folder,
        names: ClassNames,
        limits: Limits,
        task: Task,
        *,
        scored: bool,
        known: Collection[str] = (),
    ) -> None:
        super().__init__(folder, task.as_is, limits)
        self.path = path
        self.task = task
        name_kinds: set[bool] = set()
        resolve = _resolver(names, frozenset(known), name_kinds)
        form = task.form(resolve, folder.given, scored=scored)
        rows = self.read(form)
        self.by_name = name_kinds == {True}
        self._take_shapes(form, rows)

    def read(self, form: LineForm) -> Rows:
        """Read the rows; raise InputError with every invalid line."""
        rows = super().read(form)
        self.problems.raise_any()
        return rows

    def _take_shapes(self, form: YoloForm, rows: Rows) -> None:
        """Set the arrays of the rows; raise InputError for rows of another task."""
        task, counts = self.task, rows.counts - form.scored
        are_corners = form.used == CORNERS and not form.keypoints
        self.polygon = np.full(len(rows), are_corners) if form.counts else counts != len(BOX)
        if not task.as_is:
            check_tracks(form, task.name, (self.folder.given, ""))
            if not form.counts and task.name is None and len(rows) and self.polygon.all():
                refuse_equal_lengths(form, self.location(0), rows)
        if not (form.counts or task.masks or task.name == "segment"):
            are_corners = bool(self.polygon.any() and (counts[self.polygon] == CORNERS).all())
        self.oriented = are_corners
        if task.masks:
            self._check_outlines()
            self.outlines = Outlines.of(rows, scored=form.scored)
            self.polygon = np.ones(len(rows), np.bool_)
        self.values = self._boxes(counts)
        if form.keypoints and form.used > len(BOX):
            points = _padded(rows, counts, form.used)[:, len(BOX) :]
            self.keypoints = points.reshape(len(rows), *form.keypoints)
        elif task.needs_keypoints and len(rows):
            message = "rows have no keypoints"
            hint = "write `kpt_shape: [K, D]` into data.yaml, omit --task, or pass --iou-type bbox"
            raise InputError(Problem(*self.location(0), message, hint))
        if self.oriented:
            corners = _padded(rows, counts, CORNERS)
            if task.keep_corners or not all_axis_aligned(corners[self.polygon]):
                self.corners = corners

    def _boxes(self, counts: NDArray[np.int64]) -> Floats:
        """Return the box, or the bounds of the polygon, and the score of each row."""
        rows, scored = self.rows, self.form.scored
        if (counts == len(BOX)).all() and not self.polygon.any():
            return rows.table(len(BOX) + scored)
        values = _padded(rows, counts, len(BOX))
        if self.polygon.any():
            outlines = self.outlines or Outlines.of(rows, scored=scored)
            values[self.polygon] = outlines.bounds()[self.polygon]
        return np.column_stack([values, rows.numbers[rows.ends - 1]]) if scored else values

    def _check_outlines(self) -> None:
        """Raise InputError if rows are boxes; a prediction of two points is a contour."""
        boxes = ~self.polygon
        if len(boxes) and (boxes.all() or (boxes.any() and not self.form.scored)):
            shape = "keypoints" if self.form.keypoints else "boxes"
            hint = "use polygons (`class x1 y1 x2 y2 x3 y3 ...`), or pass --iou-type bbox"
            location = self.location(int(np.argmax(boxes)))
            raise InputError(Problem(*location, f"masks need polygons, but rows are {shape}", hint))

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a row in tables."""
        return super().location(row if self.selected is None else int(self.selected[row]))

    def check(self, box: Floats) -> None:
        """Raise InputError if boxes (N, 4) are not normalized, or rows are of several kinds."""
        scored = self.form.scored
        mixed = bool(self.polygon.any() and not self.polygon.all())
        if mixed:
            check_mixed(self, self.polygon)
        if not self.as_is:
            reach = None
            if self.corners is not None or self.task.name == "obb":  # also if all are upright
                reach = PREDICTIONS_REACH if scored else LABELS_REACH
            check_fractions(self, box, self.polygon, self.form.box_format, reach)
            if self.keypoints is not None:
                check_keypoints(self, self.keypoints, scored=scored)
        self.problems.raise_any()
        if scored and mixed and not self.as_is:
            message = "is a box, but other files have polygons"
            hint = (
                "use the predictions of one task, or predictions.json; rows of six columns may be "
                "contours of two pixels (--iou-type segm reads them)"
            )
            raise InputError(Problem(*self.location(int(np.argmin(self.polygon))), message, hint))

    def objects(
        self, box: Floats, size: Floats, *, dropped: Flags | None = None, **columns: Any
    ) -> Objects:
        """Return the rows in pixels, of boxes (N, 4) in images of the sizes (N, 2).

        `columns` are those of :class:`Objects`, by row or for all. Dropped rows (N,) are left out.
        """
        pixels = in_pixels(box, self.polygon, size, self.form.box_format)
        check_areas(self, pixels)
        self.problems.raise_any()
        columns |= {"boxes": pixels, "polygons": self._polygons(pixels, size)}
        fields: dict[str, Any] = {}
        constant = {}
        if self.outlines is not None:
            masks, self.drawn = self.outlines.masks(size, self)
            constant = {"masks": masks}
            fields = {"mask": np.arange(len(masks), dtype=np.int32)}
            columns["area"] = pixel_counts(masks.arrays).astype(np.float64)
        elif self.keypoints is not None:
            fields = keypoint_fields(self.keypoints, pixels, size, scored=self.form.scored)
        if dropped is not None:
            self.selected = np.flatnonzero(~dropped)
            fields = {name: values[self.selected] for name, values in fields.items()}
            for name in columns.keys() & {"image", "label", "boxes", "polygons", "area"}:
                if columns[name] is not None:
                    columns[name] = columns[name][self.selected]
        return Objects(box_format="xywh", fields=fields | constant, **columns)

    def _polygons(self, pixels: Floats, size: Floats) -> Floats | None:
        """Return the quadrilaterals (N, 8) in pixels; None for boxes, or with ``shapes="bbox"``.

        Raise InputError if they look like polygons or keypoints, and no task is given.
        """
        if self.corners is None or self.task.shapes == "bbox":
            return None
        corners = np.where(
            self.polygon[:, None],
            self.corners * np.tile(size, (1, CORNERS // 2)),
            box_polygons(encode_boxes(pixels, "xywh")[0]),
        )
        if self.task.name is None and not self.as_is:
            polygon_rows = np.flatnonzero(self.polygon)
            refuse_other_polygons(
                self.corners[polygon_rows],
                corners[polygon_rows],
                self.form.scored,
                lambda row: self.location(int(polygon_rows[row])),
            )
        return corners

    def repeated(self) -> Flags:
        """Return a mask of rows that equal an earlier one of their file."""
        rows, values = self.rows, [self.values]
        if self.corners is not None:
            values.append(self.corners)
        if self.keypoints is not None:
            values.append(self.keypoints.reshape(len(rows), -1))
        return repeats(2 * pair_key(rows.file, rows.name) + self.polygon, np.hstack(values))

    def notes(self, title: str) -> tuple[Note, ...]:
        """Return notes about the rows and their ignored parts."""
        notes: tuple[Note, ...] = ()
        if self.keypoints is not None:
            notes = keypoint_notes(self.keypoints, scored=self.form.scored)
        elif self.form.keypoints:
            message = f"keypoints of the {title} are ignored (--task detect)"
            notes = (Note("keypoints-left-out", message, len(self.rows), severity="info"),)
        if self.drawn:
            code = "contours" if self.drawn.startswith("contours") else "outlines"
            exact = "predictions.json has exact masks"
            message = f"polygons of the {title} are {self.drawn}; {exact}"
            notes += (Note(code, message, len(self.rows), severity="info"),)
        polygons = int(np.count_nonzero(self.polygon))
        bounding = self.corners is not None and self.task.shapes == "bbox"
        bounded = bounding or not (self.form.counts or self.oriented or self.outlines)
        oriented = self.corners is not None and self.task.name is None and not bounding
        return nonzero_notes(
            *notes,
            Note(
                "track-ids",
                f"rows of the {title} end with a track id, which is not used",
                self.form.tracks.total(),
                severity="info",
            ),
            Note(
                "oriented-boxes",
                f"rows of the {title} have four corners: oriented boxes (else pass --task segment)",
                polygons if oriented else 0,
                severity="info",
            ),
            Note(
                POLYGONS_BOUNDED,
                f"polygons of the {title} are read as their bounding boxes",
                polygons if bounded else 0,
                severity="info",
            ),
        )


def _padded(rows: Rows, counts: NDArray[np.int64], width: int) -> Floats:
    """Return the first `width` coordinates (N, width), zeros where a row has fewer (`counts`)."""
    column = np.arange(width)
    exists = column < counts[:, None]
    values = np.zeros((len(rows), width))
    values[exists] = rows.numbers[((rows.ends - rows.counts)[:, None] + column)[exists]]
    return values


def _resolver(names: ClassNames, known: frozenset[str], by_name: set[bool]) -> Callable[[str], str]:
    """Return a function from class numbers to names; known names are kept.

    `by_name` gets True for names and False for numbers.
    """

    def resolve(word: str) -> str:
        named = word in known and not word.isdigit()
        by_name.add(named)
        if named:
            return word
        if not is_whole(word):
            message = f"class {quote(word)} is not a whole number >= 0"
            raise FaultError(message, "write the class number")
        return names.resolve(word) if names.names else word.lstrip("0") or "0"

    return resolve
