"""Read the rows of YOLO files: boxes, polygons, oriented boxes and keypoints.

The confidence of a prediction, if any, is the last column or the second.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import pair_key, repeats
from detap.core.masks import pixel_counts
from detap.core.overlap import paired_overlaps
from detap.core.polygons import box_polygons, is_self_intersecting
from detap.errors import InputError, Note, Problem, Severity, UsageError
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.by_name.objects import Objects
from detap.formats.text.class_names import ClassNames
from detap.formats.text.folder import Folder
from detap.formats.text.reader import FolderReader, Rows
from detap.formats.yolo import shapes
from detap.formats.yolo.rows import (
    BOX,
    CORNERS,
    SAVE_CONF,
    YoloForm,
    all_axis_aligned,
    class_number,
    form_of_task,
)
from detap.io.limits import Limits
from detap.io.problems import FaultError
from detap.tables.columns import check_scores, indices_in
from detap.tables.detection import Flags, Floats, GroundTruth, encode_boxes
from detap.tables.notes import POLYGONS_BOUNDED, too_many
from detap.text_input import is_whole, quote

LAST, FIRST = ("conf-last", "conf-first")
"""The order of Ultralytics and that of Padilla's tools."""

_FEW = 20
"""Fewer rows may fit both orders of columns by chance."""
_FAR = 0.25
"""The required difference of the fractions of rows that overlap a ground truth."""

_SUMS, _DEGREE = 0.05, np.sin(np.radians(1))
"""Tolerances of rectangles: in pixels, and the sine of the angle."""


class LabelReader(FolderReader):
    """Reader of label files; everything is normalized.

    `predicted` is False for labels. `values` (N, 4) has the box of each row, or the lowest and
    highest x and y of its `polygon` (N,), and `score` (N,) the confidence, if rows have one.
    `corners` (N, 8) are set if all polygons are oriented boxes and not all upright (or with
    `keep_corners`, for a ground truth that has others), `keypoints` (N, K, 2 or 3) if rows have
    them; `drawn` says how masks are read. `are_names` has True if rows have class names, and False
    if they have numbers.
    `selected` are the rows in tables, if not all.
    """

    form: YoloForm
    score: Floats | None = None
    corners: Floats | None = None
    keypoints: Floats | None = None
    drawn = ""
    selected: NDArray[np.intp] | None = None

    def __init__(
        self,
        path: str,
        folder: Folder,
        names: ClassNames,
        limits: Limits,
        kpt_shape: tuple[int, int] | None,
        *,
        scored: bool,
        known: Collection[str] = (),
        keep_corners: bool = False,
        as_is: bool = False,
        task: str | None = None,
        boxes: str = "cxcywh",
        masks: bool = False,
        keypoints: bool = False,
        shapes: str = "reject",
    ) -> None:
        super().__init__(folder, as_is, limits)
        self.path = path
        self.task, self.masks, self.bounding = task, masks, shapes == "bbox"
        self.predicted = scored
        self._names, self._known, self.are_names = names, frozenset(known), set[bool]()
        form = YoloForm("class", scored, boxes, self._resolve, contours=masks and scored)
        self.read(form_of_task(form, task, kpt_shape, folder.given))
        self.problems.raise_any()
        self._split_columns()
        self._take_shapes(keep_corners=keep_corners, posed=keypoints)

    def _resolve(self, word: str) -> str:
        """Return the name of a class number; known names are kept."""
        is_name = word in self._known and not word.isdigit()
        self.are_names.add(is_name)
        if is_name:
            return word
        number = class_number(word)
        if not is_whole(number):
            message = f"class {quote(word)} is not a whole number >= 0"
            raise FaultError(message, "write the class number")
        return self._names.resolve(number) if self._names.names else number.lstrip("0") or "0"

    def _split_columns(self) -> None:
        """Take track ids and confidences off the rows; refuse other lengths, and a mixture."""
        rows, form = self.rows, self.form
        # Polygons without confidence may end at the border of their image, not with a track id.
        for is_whole_last in (rows.flag, np.zeros_like(rows.flag)):
            kind = 2 * rows.counts + is_whole_last
            ends = [form.ends(k // 2, k % 2 == 1) for k in range(kind.max(initial=0) + 1)]
            track, confidence, allowed = np.array(ends, np.bool_)[kind].T
            self.rows = rows.without_last(track)
            if not self.predicted:
                self._refuse_keypoints()
            self.add_problems(
                ~allowed, lambda row: form.wrong_length(int(rows.counts[row])), form.hint
            )
            self.problems.raise_any()
            unclear = self.predicted and set(rows.last[track].tolist()) in ({0}, {1}, {0, 1})
            if confidence.all() or not unclear:
                break
        self.tracks = int(np.count_nonzero(track))
        if self.predicted:
            self._split_scores(confidence, unclear=unclear)
            self._refuse_keypoints()

    def _split_scores(self, confidence: Flags, *, unclear: bool) -> None:
        """Take the last number off the rows of a mask (N,): a confidence, or all are track ids."""
        last = self.rows.last
        self.rows = self.rows.without_last(confidence)
        values = last[confidence]
        if (values > 1).any() and (values >= 1).all() and (values == np.floor(values)).all():
            # Track ids, as a confidence is at most 1. Boxes without a track have none.
            self.tracks += int(np.count_nonzero(confidence))
            return
        check_scores(np.where(confidence, 0.0, np.nan), self.location)
        self.score = last if confidence.all() else None
        if unclear and self.score is not None and self._is_unknown_task:
            message = (
                "the last column is 0 or 1 in rows of odd length: a track id, or a coordinate?"
            )
            hint = f"pass --task (detect, segment, obb); for rows without confidence, {SAVE_CONF}"
            raise InputError(Problem(self.folder.given, "", message, hint))

    @property
    def _is_unknown_task(self) -> bool:
        return not (self.as_is or self.form.counts or self.task)

    def _take_shapes(self, *, keep_corners: bool, posed: bool) -> None:
        """Set the arrays of the rows; raise InputError for rows of another task."""
        form, rows = self.form, self.rows
        are_corners = form.used == CORNERS and not form.keypoints
        self.polygon = np.full(len(rows), are_corners) if form.counts else rows.counts != len(BOX)
        if not (form.counts or self.masks or self.task == "segment"):
            are_corners = bool(self.polygon.any() and (rows.counts[self.polygon] == CORNERS).all())
        self.oriented = are_corners
        if self.masks:
            boxes = ~self.polygon  # a prediction of two points is a contour
            if len(boxes) and (boxes.all() or (boxes.any() and not self.predicted)):
                shape = "keypoints" if form.keypoints else "boxes"
                message = f"masks need polygons, but rows are {shape}"
                hint = "use polygons (`class x1 y1 x2 y2 x3 y3 ...`), or pass --iou-type bbox"
                raise InputError(Problem(*self.location(int(np.argmax(boxes))), message, hint))
            self.polygon = np.ones(len(rows), np.bool_)
        self.values = _padded(rows, len(BOX))
        if self.polygon.any():
            self.values[self.polygon] = shapes.bounds(rows)[self.polygon]
        if form.keypoints and form.used > len(BOX):
            points = _padded(rows, form.used)[:, len(BOX) :]
            self.keypoints = points.reshape(len(rows), *form.keypoints)
        elif posed and len(rows):
            message = "rows have no keypoints"
            hint = "write `kpt_shape: [K, D]` into data.yaml, omit --task, or pass --iou-type bbox"
            raise InputError(Problem(*self.location(0), message, hint))
        if self.oriented:
            corners = _padded(rows, CORNERS)
            if keep_corners or not all_axis_aligned(corners[self.polygon]):
                self.corners = corners

    def _refuse_keypoints(self) -> None:
        """Raise InputError if polygons may be keypoints: real polygons differ in length."""
        counts = np.flatnonzero(np.bincount(self.rows.counts)).tolist()
        if len(counts) != 1 or counts[0] in (len(BOX), 6, 7, CORNERS) or not self._is_unknown_task:
            return
        (count,) = counts
        remaining = count - len(BOX)
        keypoints, content = f"[{remaining // 2}, 2]", "rows of keypoints"
        if remaining % 3 == 0 and self.predicted:
            keypoints = "[K, D]"
        elif remaining % 3 == 0 and np.isin(self.rows.table(count)[:, 6::3], (0, 1, 2)).all():
            keypoints, content = f"[{remaining // 3}, 3]", "pose labels"
        elif remaining % 2:
            return
        message = (
            f"every row has {count + 1 + (self.score is not None)} columns: rows look like "
            f"{content}, but no data.yaml has kpt_shape"
        )
        hint = (
            f"write `kpt_shape: {keypoints}` into data.yaml and pass it with --class-names; for "
            "polygons pass --task segment"
        )
        raise InputError(Problem(*self.location(0), message, hint))

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a row in tables."""
        return super().location(row if self.selected is None else int(self.selected[row]))

    def check(self, box: Floats) -> None:
        """Raise InputError if boxes (N, 4) are not normalized, or rows are of several kinds."""
        mixed = bool(self.polygon.any() and not self.polygon.all())
        if mixed:
            shapes.check_mixed(self, self.polygon)
        if not self.as_is:
            reach = None
            if self.corners is not None or self.task == "obb":  # also if all are upright
                reach = shapes.PREDICTIONS_REACH if self.predicted else shapes.LABELS_REACH
            shapes.check_fractions(self, box, self.polygon, self.form.box_format, reach)
            if self.keypoints is not None:
                shapes.check_keypoints(self, self.keypoints, scored=self.predicted)
        self.problems.raise_any()
        if self.predicted and mixed and not self.as_is:
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
        pixels = shapes.in_pixels(box, self.polygon, size, self.form.box_format)
        with np.errstate(over="ignore", invalid="ignore"):
            fine = np.isfinite(pixels).all(axis=1) & np.isfinite(pixels[:, 2] * pixels[:, 3])
        self.add_problems(~fine, "box area overflows", "correct the box")
        self.problems.raise_any()
        columns |= {"boxes": pixels, "polygons": self._polygons(pixels, size)}
        fields: dict[str, Any] = {}
        constant = {}
        if self.masks:
            masks, self.drawn = shapes.masks_of(self, size, predicted=self.predicted)
            constant = {"masks": masks}
            fields = {"mask": np.arange(len(masks), dtype=np.int32)}
            columns["area"] = pixel_counts(masks.arrays).astype(np.float64)
        elif self.keypoints is not None:
            fields = shapes.keypoint_fields(self.keypoints, pixels, size, scored=self.predicted)
        if dropped is not None:
            self.selected = np.flatnonzero(~dropped)
            fields = {name: values[self.selected] for name, values in fields.items()}
            for name in columns.keys() & {"image", "label", "boxes", "polygons", "area"}:
                if columns[name] is not None:
                    columns[name] = columns[name][self.selected]
        return Objects(box_format="xywh", fields=fields | constant, **columns)

    def _polygons(self, pixels: Floats, size: Floats) -> Floats | None:
        """Return the quadrilaterals (N, 8) in pixels; None for boxes, or with ``shapes="bbox"``."""
        if self.corners is None or self.bounding:
            return None
        polygons = np.where(
            self.polygon[:, None],
            self.corners * np.tile(size, (1, CORNERS // 2)),
            box_polygons(encode_boxes(pixels, "xywh")[0]),
        )
        if self.task is not None or self.as_is:
            return polygons
        # Oriented boxes do not cross themselves; predicted ones are rectangles in pixels.
        wrong, fault = is_self_intersecting(self.corners), "cross themselves, unlike oriented boxes"
        if self.predicted:
            wrong |= ~_rectangles(polygons)
            fault = "are not rectangles, unlike predicted oriented boxes"
        wrong &= self.polygon
        count, rows = int(np.count_nonzero(wrong)), int(np.count_nonzero(self.polygon))
        if count and too_many(count, rows):
            columns = 9 + (self.score is not None)
            message = f"{count} of {rows} rows of {columns} columns {fault}"
            hint = (
                "for polygons of four corners pass --task segment; for boxes with two keypoints "
                "write `kpt_shape: [2, 2]` into data.yaml; for oriented boxes pass --task obb"
            )
            raise InputError(Problem(*self.location(int(np.argmax(wrong))), message, hint))
        return polygons

    def repeated(self) -> Flags:
        """Return a mask of rows that equal an earlier one of their file."""
        rows, values = self.rows, [self.values]
        if self.score is not None:
            values.append(self.score[:, None])
        if self.corners is not None:
            values.append(self.corners)
        if self.keypoints is not None:
            values += [*self.keypoints.swapaxes(0, 1)]
        return repeats(2 * pair_key(rows.file, rows.name) + self.polygon, np.hstack(values))

    def notes(self, title: str) -> tuple[Note, ...]:
        """Return notes about the rows and their ignored parts."""
        notes: tuple[Note, ...] = ()
        rows, left_out = len(self.rows), self.keypoints is None and self.form.keypoints is not None
        if self.keypoints is not None:
            notes = shapes.keypoint_notes(self.keypoints, scored=self.predicted)
        ignored = f"keypoints of the {title} are ignored (--task detect)"
        code = "contours" if self.drawn.startswith("contours") else "outlines"
        drawn = f"polygons of the {title} are {self.drawn}; predictions.json has exact masks"
        polygons = int(np.count_nonzero(self.polygon))
        bounding = self.corners is not None and self.bounding
        bounded = bounding or not (self.form.counts or self.oriented or self.masks)
        oriented = self.corners is not None and self.task is None and not bounding
        tracks = f"rows of the {title} end with a track id, which is not used"
        severity: Severity = "info"
        if self.predicted and self.score is None:
            severity = "warning"
            tracks = (
                f"the last column of the {title} is a track id, not a confidence: no AP; for AP, "
                f"{SAVE_CONF}"
            )
        corners = (
            f"rows of the {title} have four corners: oriented boxes (else pass --task segment)"
        )
        bounds = f"polygons of the {title} are read as their bounding boxes"
        return nonzero_notes(
            *notes,
            Note("keypoints-left-out", ignored, rows * left_out, severity="info"),
            Note(code, drawn, rows * bool(self.drawn), severity="info"),
            Note("track-ids", tracks, self.tracks, severity=severity),
            Note("oriented-boxes", corners, polygons if oriented else 0, severity="info"),
            Note(POLYGONS_BOUNDED, bounds, polygons if bounded else 0, severity="info"),
        )


def _rectangles(pixels: Floats) -> Flags:
    """Return a mask of quadrilaterals (N, 8) in pixels that are rectangles."""
    corner = pixels.reshape(-1, 4, 2)
    sums = np.abs(corner[:, 0] + corner[:, 2] - corner[:, 1] - corner[:, 3]).max(axis=1)
    first, second = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 1]
    dot = np.abs((first * second).sum(axis=1))
    long = np.hypot(*first.T) * np.hypot(*second.T)
    short = np.minimum(np.hypot(*first.T), np.hypot(*second.T))
    straight = (dot <= _DEGREE * long) | (short <= 1)
    rectangles: Flags = (sums <= _SUMS) & straight
    return rectangles


def _padded(rows: Rows, width: int) -> Floats:
    """Return the first `width` numbers (N, width), zeros where a row has fewer."""
    column = np.arange(width)
    exists = column < rows.counts[:, None]
    values = np.zeros((len(rows), width))
    values[exists] = rows.numbers[((rows.ends - rows.counts)[:, None] + column)[exists]]
    return values


# --- the order of the columns of predictions


def box_and_score(
    reader: LabelReader, truth: GroundTruth, size: Floats, columns: str | None
) -> tuple[Floats, Floats, tuple[Note, ...]]:
    """Return the box (N, 4) and confidence (N,) of rows, and notes; `columns` may be detected."""
    box, score = reader.values, reader.score
    if score is None:
        return box, np.full(len(box), np.nan), ()
    notes: tuple[Note, ...] = ()
    if reader.form.keypoints and columns == FIRST:
        message = "--columns conf-first is for boxes; rows with keypoints end with the confidence"
        raise UsageError(message)
    shifted = np.column_stack([box[:, 1:], score])
    if columns is None and not reader.form.keypoints:
        columns, notes = _detected_order(reader, (box, shifted), truth, size)
    if columns == FIRST:
        polygon = reader.polygon
        score = np.where(polygon, score, box[:, 0])
        box = np.where(polygon[:, None], box, shifted)
    return box, score, notes


def _detected_order(
    reader: LabelReader, boxes: tuple[Floats, Floats], truth: GroundTruth, size: Floats
) -> tuple[str, tuple[Note, ...]]:
    """Return the column order: conf-last, unless boxes only fit conf-first; and a note.

    `boxes` (N, 4) are those of conf-last and of conf-first. Rows with class names are from
    Padilla's tools, which write the confidence first. If so few rows may fit by chance, ground
    truths decide: far more rows overlapping one as conf-first is an error if boxes fit both.
    """
    is_box = ~reader.polygon
    count, rows = int(np.count_nonzero(is_box)), len(reader.rows)
    if not count:
        return LAST, ()
    last, first = (
        int(np.count_nonzero(~_fits(box[is_box], reader.form.box_format))) for box in boxes
    )
    if reader.are_names == {True}:
        is_first, by_chance = not first, False
        reason = "rows have class names"
    else:
        # A few boxes may extend beyond their images.
        is_first = bool(last and not first) or (
            too_many(last, count) and not too_many(first, count)
        )
        by_chance = count < _FEW and (is_first or last == first == 0)
        reason = f"with the last, {last} of {count} boxes would be outside their image"
    if by_chance:
        as_last, as_first = (
            float(np.mean(_max_ious(reader, truth, box, size) > 0.5)) for box in boxes
        )
        if not is_first and as_first >= as_last + _FAR:
            message = (
                "cannot detect whether the confidence is the last or the second column: boxes fit "
                f"either way, and {as_first:.0%} of {rows} have IoU > 0.5 with a ground truth of "
                f"their class as second, {as_last:.0%} as last"
            )
            hint = "use --columns conf-first (Padilla's tools) or --columns conf-last (Ultralytics)"
            raise InputError(Problem(reader.path, "", message, hint))
        if not is_first or as_last >= as_first + _FAR:
            message = (
                "rows fit both `class xc yc w h conf`, which is used, and `class conf xc yc w h` "
                "(--columns conf-first)"
            )
            return LAST, (Note("columns-conf-last", message, rows, severity="info"),)
    if not is_first:
        return LAST, ()
    message = f"the second column is read as confidence: {reason} (else --columns conf-last)"
    return FIRST, (Note("columns-conf-first", message, count, severity="info"),)


def _fits(box: Floats, box_format: str) -> Flags:
    """Return a mask of the boxes (N, 4) inside their images."""
    low, high = shapes.two_corners(box, box_format)
    return np.asarray(
        ((low >= shapes.LOWEST) & (high <= shapes.HIGHEST) & (high >= low)).all(axis=1)
    )


def _max_ious(reader: LabelReader, truth: GroundTruth, box: Floats, size: Floats) -> Floats:
    """Return the maximum IoU of each box with ground truths of its image and class."""
    rows, pixels = reader.rows, shapes.in_pixels(box, reader.polygon, size, reader.form.box_format)
    image = indices_in(tuple(reader.folder.members), truth.images)[rows.file]
    label = indices_in(rows.names, truth.classes)[rows.name]
    row, gt = np.nonzero((image[:, None] == truth.image) & (label[:, None] == truth.label))
    corners, areas = encode_boxes(pixels, "xywh")
    iou = paired_overlaps(
        corners[row],
        truth.corners[gt],
        detection_areas=areas[row],
        truth_areas=truth.box_area[gt],
    )
    max_iou = np.zeros(len(rows))
    np.maximum.at(max_iou, row, iou)
    return max_iou
