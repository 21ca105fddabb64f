"""Read the rows of YOLO label files: boxes, polygons, oriented boxes and keypoints."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import pair_key, repeats
from detap.core.polygons import bounds, box_polygons
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
    in_pixels,
)
from detap.formats.yolo.keypoints import check_keypoints, keypoint_fields, keypoint_notes
from detap.formats.yolo.lines import BOX, CORNERS, YoloForm
from detap.formats.yolo.outlines import Outlines, masks_of, outlines_of
from detap.formats.yolo.tasks import (
    Keypoints,
    all_axis_aligned,
    check_tracks,
    form_of,
    has_keypoints,
    refuse_equal_lengths,
    refuse_other_polygons,
    storing,
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
    """Reader of label files; rows have a box or bounds, and a score.

    Attributes
    ----------
    task : Task
    corners : (N, 8) float64 or None
        Normalized, if all polygons are oriented boxes and not all are axis-aligned.
    keypoints : (N, K, 2) or (N, K, 3) float64 or None
        Normalized x and y, and visibility or confidence; None if no row has keypoints.
    outlines : Outlines or None
        The polygons of the rows, if masks are read.
    by_name : bool
        True if all rows have class names.
    tracks : int
        Number of rows with a track id.
    selected : (n,) array of int or None
        The rows in tables, if not all.
    """

    form: YoloForm
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
        self.corners: Floats | None = None
        self.keypoints: Floats | None = None
        self.outlines: Outlines | None = None
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
        self.tracks = form.tracks.total()
        if self.tracks and not task.as_is:
            check_tracks(form, task.name, (folder.given, ""))
        if not (form.counts or task.name or task.as_is) and rows.flag.any() and rows.flag.all():
            refuse_equal_lengths(form, self.location(0), lambda form: self.read(form).values)
        if task.masks:
            self._read_outlines()
        elif not form.counts and form.polygons == {CORNERS} and task.name != "segment":
            rows = self.read(storing(form, CORNERS, len(BOX), CORNERS))
        if self.form.keypoints and self.form.stored > len(BOX):
            self._split_keypoints(rows)
        elif task.needs_keypoints and len(rows):
            message = "rows have no keypoints"
            hint = "write `kpt_shape: [K, D]` into data.yaml, omit --task, or pass --iou-type bbox"
            raise InputError(Problem(*self.location(0), message, hint))
        if self.form.stored == CORNERS and not self.form.keypoints:
            self._split_corners(rows)

    def _split_keypoints(self, rows: Rows) -> None:
        """Separate boxes and keypoints."""
        assert self.form.keypoints is not None
        box, keypoints, score = np.split(rows.values, (len(BOX), self.form.stored), axis=1)
        self.rows = replace(
            rows, values=np.hstack([box, score]), flag=np.zeros(len(rows), np.bool_)
        )
        self.keypoints = keypoints.reshape(len(rows), *self.form.keypoints)

    def _split_corners(self, rows: Rows) -> None:
        """Separate bounds and quadrilaterals."""
        corners, score = np.split(rows.values, (CORNERS,), axis=1)
        box = np.where(rows.flag[:, None], bounds(corners), corners[:, : len(BOX)])
        self.rows = replace(rows, values=np.hstack([box, score]))
        upright = all_axis_aligned(corners[rows.flag]) and not self.task.keep_corners
        self.corners = None if upright else corners

    def _read_outlines(self) -> None:
        """Read the polygons of all rows; a prediction of two points is one as well.

        Raises
        ------
        InputError
            If rows are boxes.
        """
        rows = self.rows
        boxes = ~rows.flag | has_keypoints(self.form)
        if len(rows) and (boxes.all() or (boxes.any() and not self.form.scored)):
            shape = "keypoints" if has_keypoints(self.form) else "boxes"
            hint = "use polygons (`class x1 y1 x2 y2 x3 y3 ...`), or pass --iou-type bbox"
            location = self.location(int(np.argmax(boxes)))
            raise InputError(Problem(*location, f"masks need polygons, but rows are {shape}", hint))
        self.outlines = outlines_of(self)
        if boxes.any():
            ends = self.outlines.bounds()[boxes]
            values = rows.values.copy()
            values[boxes, : len(BOX)] = ends
            self.rows = replace(rows, values=values, flag=np.ones(len(rows), np.bool_))

    def read(self, form: LineForm) -> Rows:
        """Read the rows; raise InputError with every invalid line."""
        rows = super().read(form)
        self.problems.raise_any()
        return rows

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a row in tables."""
        return super().location(row if self.selected is None else int(self.selected[row]))

    def check(self, box: Floats) -> None:
        """Raise InputError if boxes (N, 4) are not normalized."""
        reach = None
        if self.corners is not None or self.task.name == "obb":  # also if all are upright
            reach = PREDICTIONS_REACH if self.form.scored else LABELS_REACH
        rows, location, box_format = self.rows, self.location, self.form.box_format
        check_fractions(
            rows, box, location, self.problems, as_is=self.as_is, box_format=box_format, reach=reach
        )
        if self.keypoints is not None and not self.as_is:
            check_keypoints(self.keypoints, self.location, self.problems, scored=self.form.scored)
        self.problems.raise_any()
        mixed = bool(rows.flag.any() and not rows.flag.all())
        if self.form.scored and mixed and not self.as_is:
            message = "is a box, but other files have polygons"
            hint = (
                "use the predictions of one task, or predictions.json; rows of six columns may be "
                "contours of two pixels (--iou-type segm reads them)"
            )
            raise InputError(Problem(*location(int(np.argmin(rows.flag))), message, hint))

    def pixels(self, box: Floats, size: Floats) -> Floats:
        """Return the boxes (N, 4) in pixels, in images of the sizes (N, 2)."""
        pixels = in_pixels(box, self.rows.flag, size, self.task.boxes)
        check_areas(pixels, self.location, self.problems)
        self.problems.raise_any()
        return pixels

    def polygons(self, pixels: Floats, size: Floats) -> Floats | None:
        """Return the quadrilaterals (N, 8) in pixels; None for boxes, or with ``shapes="bbox"``.

        Raises
        ------
        InputError
            If they look like polygons or keypoints, and no task is given.
        """
        if self.corners is None or self.task.shapes == "bbox":
            return None
        polygon = self.rows.flag
        corners = np.where(
            polygon[:, None],
            self.corners * np.tile(size, (1, CORNERS // 2)),
            box_polygons(encode_boxes(pixels, "xywh")[0]),
        )
        if self.task.name is None and not self.as_is:
            polygon_rows = np.flatnonzero(polygon)
            refuse_other_polygons(
                self.corners[polygon_rows],
                corners[polygon_rows],
                self.form.scored,
                lambda row: self.location(int(polygon_rows[row])),
            )
        return corners

    def fields(self, pixels: Floats, size: Floats) -> dict[str, Any]:
        """Return the fields of a table that hold keypoints or masks.

        Parameters
        ----------
        pixels : (N, 4) float64
            x, y, width, height.
        size : (N, 2) float64
            Sizes of the images of the rows.

        Raises
        ------
        InputError
            If masks are too large.
        """
        if self.outlines is not None:
            masks = masks_of(self, size)
            return {"masks": masks, "mask": np.arange(len(masks), dtype=np.int32)}
        if self.keypoints is None:
            return {}
        return keypoint_fields(self.keypoints, pixels, size, scored=self.form.scored)

    def repeated(self) -> Flags:
        """Return a mask of rows that equal an earlier one of their file."""
        rows, values = self.rows, self.rows.values
        if self.corners is not None:
            values = np.hstack([values, self.corners])
        if self.keypoints is not None:
            values = np.hstack([values, self.keypoints.reshape(len(rows), -1)])
        return repeats(2 * pair_key(rows.file, rows.name) + rows.flag, values)

    def notes(self, title: str) -> tuple[Note, ...]:
        """Return notes about the rows and their ignored parts."""
        rows = self.rows
        notes: tuple[Note, ...] = ()
        if self.keypoints is not None:
            notes = keypoint_notes(self.keypoints, scored=self.form.scored)
        elif self.form.keypoints:
            message = f"keypoints of the {title} are ignored (--task detect)"
            notes = (Note("keypoints-left-out", message, len(rows), severity="info"),)
        if self.outlines is not None:
            notes += self.outlines.notes(title)
        bounding = self.corners is not None and self.task.shapes == "bbox"
        bounded = bounding or (not self.form.counts and self.outlines is None)
        oriented = self.corners is not None and self.task.name is None and not bounding
        return nonzero_notes(
            *notes,
            Note(
                "track-ids",
                f"rows of the {title} end with a track id, which is not used",
                self.tracks,
                severity="info",
            ),
            Note(
                "oriented-boxes",
                f"rows of the {title} have four corners: oriented boxes (else pass --task segment)",
                int(np.count_nonzero(rows.flag)) if oriented else 0,
                severity="info",
            ),
            Note(
                POLYGONS_BOUNDED,
                f"polygons of the {title} are read as their bounding boxes",
                int(np.count_nonzero(rows.flag)) if bounded else 0,
                severity="info",
            ),
        )


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
