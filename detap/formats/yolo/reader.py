"""Read the rows of YOLO label files: boxes, polygons, oriented boxes and keypoints."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import pair_key, repeats
from detap.core.polygons import box_polygons
from detap.errors import InputError, Note, Problem
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.text.class_names import ClassNames
from detap.formats.text.folder import Folder
from detap.formats.text.lines import LineForm
from detap.formats.text.reader import FolderReader
from detap.formats.text.rows import Rows
from detap.formats.yolo.boxes import (
    LABELS_REACH,
    PREDICTIONS_REACH,
    check_areas,
    check_fractions,
    check_mixed,
    in_pixels,
)
from detap.formats.yolo.keypoints import check_keypoints, keypoint_fields, keypoint_notes
from detap.formats.yolo.lines import BOX, CORNERS, YoloForm
from detap.formats.yolo.masks import Outlines, masks_of, outlines_of
from detap.formats.yolo.tasks import (
    Keypoints,
    all_axis_aligned,
    check_tracks,
    form_of,
    refuse_equal_lengths,
    refuse_other_polygons,
)
from detap.io.limits import Limits
from detap.io.problems import SHAPES, FaultError, check_choice
from detap.tables.detection import Flags, Floats, encode_boxes
from detap.tables.notes import POLYGONS_BOUNDED
from detap.text_input import is_whole, quote


@dataclass(frozen=True, slots=True)
class Task:
    """Options that determine the rows.

    `keep_corners` keeps quadrilaterals that are all upright, for a ground truth that has others.
    """

    name: str | None
    keypoints: Keypoints | None
    as_is: bool
    boxes: str
    masks: bool = False
    needs_keypoints: bool = False
    shapes: str = "reject"
    keep_corners: bool = False


class LabelReader(FolderReader):
    """Reader of label files.

    Attributes
    ----------
    values : (N, 4) or (N, 5) float64
        The box of each row, or the lowest and highest x and y of its polygon; then the score.
    polygon : (N,) bool
        True for rows that are polygons.
    corners : (N, 8) float64 or None
        Normalized, if all polygons are oriented boxes and not all are axis-aligned.
    keypoints : (N, K, 2) or (N, K, 3) float64 or None
        Normalized x and y, and visibility or confidence; None if no row has keypoints.
    outlines : Outlines or None
        The polygons of the rows, if masks are read.
    by_name : bool
        True if all rows have class names.
    selected : (n,) array of int or None
        The rows in tables, if not all.
    """

    form: YoloForm
    corners: Floats | None = None
    keypoints: Floats | None = None
    outlines: Outlines | None = None
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
        check_choice("shapes", task.shapes, SHAPES)
        super().__init__(folder, task.as_is, limits)
        self.path = path
        self.task = task
        self.scored = scored
        name_kinds: set[bool] = set()
        form = form_of(
            task.name,
            task.keypoints,
            scored=scored,
            resolve=_resolver(names, frozenset(known), name_kinds),
            path=folder.given,
            box_format=task.boxes,
            contours=task.masks and scored,
        )
        rows = self.read(form)
        self.by_name = name_kinds == {True}
        counts = rows.counts - scored
        are_corners = form.used == CORNERS and not form.keypoints
        self.polygon = np.full(len(rows), are_corners) if form.counts else counts != len(BOX)
        if not task.as_is:
            self._check_unknown_task()
        if not (form.counts or task.masks or task.name == "segment"):
            are_corners = bool(self.polygon.any() and (counts[self.polygon] == CORNERS).all())
        self.oriented = are_corners
        if task.masks:
            self._check_outlines()
            self.outlines = outlines_of(rows, scored=scored)
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

    def _check_unknown_task(self) -> None:
        """Raise InputError if the task is not given, and rows may be those of several tasks."""
        form, task = self.form, self.task.name
        if form.tracks:
            check_tracks(form, task, (self.folder.given, ""))
        if not form.counts and task is None and len(self.rows) and self.polygon.all():
            refuse_equal_lengths(form, self.location(0), self.rows)

    def _boxes(self, counts: NDArray[np.int64]) -> Floats:
        """Return the box, or the bounds of the polygon, and the score of each row."""
        rows = self.rows
        if (counts == len(BOX)).all() and not self.polygon.any():
            return rows.table(len(BOX) + self.scored)
        values = _padded(rows, counts, len(BOX))
        if self.polygon.any():
            outlines = self.outlines or outlines_of(rows, scored=self.scored)
            values[self.polygon] = outlines.bounds()[self.polygon]
        return np.column_stack([values, rows.numbers[rows.ends - 1]]) if self.scored else values

    def _check_outlines(self) -> None:
        """Raise InputError if rows are boxes; a prediction of two points is a contour."""
        boxes = ~self.polygon
        if len(boxes) and (boxes.all() or (boxes.any() and not self.scored)):
            shape = "keypoints" if self.form.keypoints else "boxes"
            hint = "use polygons (`class x1 y1 x2 y2 x3 y3 ...`), or pass --iou-type bbox"
            location = self.location(int(np.argmax(boxes)))
            raise InputError(Problem(*location, f"masks need polygons, but rows are {shape}", hint))

    def read(self, form: LineForm) -> Rows:
        """Read the rows; raise InputError with every invalid line."""
        rows = super().read(form)
        self.problems.raise_any()
        return rows

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a row in tables."""
        return super().location(row if self.selected is None else int(self.selected[row]))

    def check(self, box: Floats) -> None:
        """Raise InputError if boxes (N, 4) are not normalized, or rows are of several kinds."""
        mixed = bool(self.polygon.any() and not self.polygon.all())
        if mixed:
            check_mixed(self.rows.file, self.polygon, self.location, self.problems)
        if not self.as_is:
            reach = None
            if self.corners is not None or self.task.name == "obb":  # also if all are upright
                reach = PREDICTIONS_REACH if self.scored else LABELS_REACH
            box_format = self.form.box_format
            check_fractions(
                box, self.polygon, self.location, self.problems, box_format=box_format, reach=reach
            )
            if self.keypoints is not None:
                check_keypoints(self.keypoints, self.location, self.problems, scored=self.scored)
        self.problems.raise_any()
        if self.scored and mixed and not self.as_is:
            message = "is a box, but other files have polygons"
            hint = (
                "use the predictions of one task, or predictions.json; rows of six columns may be "
                "contours of two pixels (--iou-type segm reads them)"
            )
            raise InputError(Problem(*self.location(int(np.argmin(self.polygon))), message, hint))

    def pixels(self, box: Floats, size: Floats) -> Floats:
        """Return the boxes (N, 4) in pixels, in images of the sizes (N, 2)."""
        pixels = in_pixels(box, self.polygon, size, self.task.boxes)
        check_areas(pixels, self.location, self.problems)
        self.problems.raise_any()
        return pixels

    def polygons(self, pixels: Floats, size: Floats) -> Floats | None:
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
                self.scored,
                lambda row: self.location(int(polygon_rows[row])),
            )
        return corners

    def fields(self, pixels: Floats, size: Floats) -> dict[str, Any]:
        """Return the fields of a table that hold keypoints or masks."""
        if self.outlines is not None:
            masks = masks_of(self.outlines, size, self.rows.file, self, scored=self.scored)
            return {"masks": masks, "mask": np.arange(len(masks), dtype=np.int32)}
        if self.keypoints is None:
            return {}
        return keypoint_fields(self.keypoints, pixels, size, scored=self.scored)

    def repeated(self) -> Flags:
        """Return a mask of rows that equal an earlier one of their file."""
        rows, values = self.rows, self.values
        if self.corners is not None:
            values = np.hstack([values, self.corners])
        if self.keypoints is not None:
            values = np.hstack([values, self.keypoints.reshape(len(rows), -1)])
        return repeats(2 * pair_key(rows.file, rows.name) + self.polygon, values)

    def notes(self, title: str) -> tuple[Note, ...]:
        """Return notes about the rows and their ignored parts."""
        notes: tuple[Note, ...] = ()
        if self.keypoints is not None:
            notes = keypoint_notes(self.keypoints, scored=self.scored)
        elif self.form.keypoints:
            message = f"keypoints of the {title} are ignored (--task detect)"
            notes = (Note("keypoints-left-out", message, len(self.rows), severity="info"),)
        if self.outlines is not None:
            notes += self.outlines.notes(title)
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
            raise FaultError(
                f"class {quote(word)} is not a whole number >= 0", "write the class number"
            )
        return names.resolve(word) if names.names else word.lstrip("0") or "0"

    return resolve
