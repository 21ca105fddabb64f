"""Boxes, keypoints and polygons of YOLO rows: check them, and convert them to pixels.

Reference: Ultralytics 8.4.190, ``YOLODataset``, ``PoseValidator`` and ``masks2segments``.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.checks.masks import oversized_masks
from detap.core.masks import contour_runs
from detap.errors import InputError, Note, Problem
from detap.formats.text.reader import FolderReader, Rows
from detap.formats.yolo.rows import TITLES
from detap.tables.detection import Flags, Floats
from detap.tables.masks import Masks
from detap.tables.notes import INSIST, KEYPOINT_AREAS

LOWEST, HIGHEST = -0.01, 1.01
"""The allowed range; Ultralytics drops images with labels outside."""
LABELS_REACH, PREDICTIONS_REACH = 0.5, 1.0
"""Distance by which corners of oriented boxes may lie outside, relative to the image size."""
_POLYGON_BOUNDS = ("the lowest x", "the lowest y", "the highest x", "the highest y")
_PIXELS = 2.0
_ZEROED_BELOW = 0.5
"""Older Ultralytics sets keypoints of lower confidence to 0 0 in text files."""
_NEAR, _ROUNDED = 0.002, 1e-6
"""Distance in pixels of contours from whole numbers, and rounding to six digits."""


# --- boxes


def two_corners(box: Floats, box_format: str) -> tuple[Floats, Floats]:
    """Return the first and last corners, (N, 2) each, of boxes (N, 4)."""
    first, second = box[:, :2], box[:, 2:]
    if box_format == "xyxy":
        return first, second
    if box_format == "xywh":
        return first, first + second
    return first - second / 2, first + second / 2


def in_pixels(box: Floats, is_polygon: Flags, size: Floats, box_format: str = "cxcywh") -> Floats:
    """Return x, y, width and height (N, 4) in pixels, in images of the sizes (N, 2).

    Computed via the corners, like writers of COCO JSON do: another order of operations changes the
    last bits, and so IoUs at a threshold. `box` is as in :func:`check_fractions`.
    """
    polygon = is_polygon[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = box * np.tile(size, (1, 2))
        low, high = two_corners(scaled, box_format)
        width_height = scaled[:, 2:] if box_format == "xywh" else high - low
        low = np.where(polygon, scaled[:, :2], low)
        width_height = np.where(polygon, scaled[:, 2:] - scaled[:, :2], width_height)
    pixels: Floats = np.concatenate([low, width_height], axis=1)
    return pixels


def check_fractions(
    reader: FolderReader, box: Floats, polygon: Flags, box_format: str, reach: float | None
) -> None:
    """Collect problems of non-normalized numbers.

    `box` (N, 4) has the lowest and highest x and y of polygons. `reach` is how far polygons may
    extend beyond the image; by default like boxes.
    """
    outside = (box < LOWEST) | (box > HIGHEST)
    if reach is not None:
        far = (box < -reach) | (box > 1 + reach)
        outside = np.where(polygon[:, None], far, outside)
    rows = np.asarray(outside.any(axis=1))
    hint = f"correct it; if boxes do extend beyond their images, pass {INSIST}"
    if 2 * np.count_nonzero(rows) > len(box) and np.median(box[rows].max(axis=1)) > _PIXELS:
        hint = (
            "boxes look like pixels: divide x and width by the image's width, y and height by its "
            "height; for lines `class x1 y1 x2 y2` or `class conf x1 y1 x2 y2` use --format voc"
        )

    def message(row: int) -> str:
        column = int(outside[row].argmax())
        title = (_POLYGON_BOUNDS if polygon[row] else TITLES[box_format])[column]
        return f"{title} {box[row, column]:.6g} is outside [0, 1]"

    reader.add_problems(rows, message, hint)


def check_mixed(reader: FolderReader, polygon: Flags) -> None:
    """Collect the problems of files with boxes and polygons."""
    file = reader.rows.file
    changes = np.flatnonzero((polygon[1:] != polygon[:-1]) & (file[1:] == file[:-1])) + 1
    _, first = np.unique(file[changes], return_index=True)
    for row in changes[first].tolist():
        shape, above = ("a polygon", "a box") if polygon[row] else ("a box", "a polygon")
        message = f"is {shape}, but the line above is {above}: a file has one kind of shape"
        hint = "write all objects of an image as one kind"
        reader.problems.add(*reader.location(row), message, hint)


# --- keypoints


def check_keypoints(reader: FolderReader, keypoints: Floats, *, scored: bool) -> None:
    """Collect problems of keypoints (N, K, 2 or 3) that are not normalized or have no visibility.

    The third number of predictions (`scored`) is a confidence.
    """

    def add(wrong: Flags, text: str, hint: str) -> None:
        def message(row: int) -> str:
            number = int(wrong[row].argmax())
            return f"keypoint {number + 1} {text.format(*keypoints[row, number].tolist())}"

        reader.add_problems(np.asarray(wrong.any(axis=1)), message, hint)

    low, high = (-PREDICTIONS_REACH, 1 + PREDICTIONS_REACH) if scored else (LOWEST, HIGHEST)
    points = keypoints[:, :, :2]
    outside = np.asarray(((points < low) | (points > high)).any(axis=2))
    hint = f"correct it; if keypoints do extend beyond their images, pass {INSIST}"
    add(outside, "{:g} {:g} is outside [0, 1]", hint)
    if keypoints.shape[2] == 3 and not scored:
        wrong = ~np.isin(keypoints[:, :, 2], (0, 1, 2))
        add(wrong, "has visibility {2:g}, expected 0, 1 or 2", "correct it, or kpt_shape")


def keypoint_fields(
    keypoints: Floats, pixels: Floats, size: Floats, *, scored: bool
) -> dict[str, Any]:
    """Return the table fields of normalized keypoints (N, K, 2 or 3).

    Without visibility, a keypoint is labeled unless x or y is negative.
    """
    points = keypoints[:, :, :2] * size[:, None]
    if scored:
        return {"keypoints": points}
    if keypoints.shape[2] == 3:
        labeled = keypoints[:, :, 2:]
    else:
        labeled = np.where((keypoints >= 0).all(axis=2, keepdims=True), 2.0, 0.0)
    return {
        "keypoints": np.concatenate([points, labeled], axis=2),
        "no_keypoints": ~(labeled > 0).any(axis=(1, 2)),
        "width_height": pixels[:, 2:].copy(),
    }


def keypoint_notes(keypoints: Floats, *, scored: bool) -> tuple[Note, ...]:
    """Return notes on keypoints at 0 0, and on areas."""
    zero = (keypoints[:, :, :2] == 0).all(axis=2)
    count = int(np.count_nonzero(zero))
    has_third = keypoints.shape[2] == 3
    if not scored:
        message = (
            "keypoints at 0 0 are labeled, as in Ultralytics: kpt_shape [K, 2] has no visibility; "
            "padding?"
        )
        area = "labels have no area; OKS uses 0.53 of the box, as in Ultralytics"
        return (
            Note(KEYPOINT_AREAS, area, len(keypoints), severity="info"),
            Note("keypoints-at-zero", message, 0 if has_third else count, severity="info"),
        )
    zeroed = has_third and bool((keypoints[zero][:, 2] < _ZEROED_BELOW).all())
    message = (
        "keypoints are 0 0, all of confidence below 0.5: older Ultralytics writes that to text "
        "files, which lowers OKS; use predictions.json"
    )
    return (Note("keypoints-zeroed", message, count if zeroed else 0),)


# --- polygons


def bounds(rows: Rows) -> Floats:
    """Return the lowest x and y and the highest x and y of each row, (N, 4)."""
    points, starts = rows.numbers.reshape(-1, 2), (rows.ends - rows.counts) // 2
    return np.hstack([f.reduceat(points, starts) for f in (np.minimum, np.maximum)])


def masks_of(reader: FolderReader, size: Floats, *, predicted: bool) -> tuple[Masks, str]:
    """Return the masks of rows in images of the sizes (N, 2), and how predictions were drawn.

    Ultralytics writes predicted masks as contours: their corners are the centers of the mask's
    border pixels (OpenCV's ``findContours``). Labels are outlines, as in COCO.
    """
    if not len(size):
        return Masks.none(), ""
    fractional = np.flatnonzero((size != np.floor(size)).any(axis=1))
    if len(fractional):
        row = int(fractional[0])
        message = f"image size {size[row].tolist()} is not in whole pixels, required for masks"
        hint = "correct the size of the image"
        raise InputError(Problem(*reader.location(row), message, hint))
    counts, ends = reader.rows.counts // 2, reader.rows.ends // 2
    scale = np.repeat(size, counts, axis=0)
    points, sizes = reader.rows.numbers.reshape(-1, 2) * scale, size[:, ::-1].astype(np.int32)
    nearest = np.rint(points)
    near = np.abs(points - nearest) <= np.maximum(_NEAR, _ROUNDED * scale)
    if predicted and (near & (nearest >= 0) & (nearest < scale)).all():
        return _filled(np.split(nearest.astype(np.int32), ends[:-1]), sizes)
    short = np.flatnonzero(counts < 3)
    if len(short):
        message = "is a box or a line among polygons, whose vertices are not pixels"
        raise InputError(Problem(*reader.location(int(short[0])), message, "write a polygon"))
    count = len(sizes)
    masks = Masks(
        sizes,
        np.zeros(count + 1, np.int64),
        np.zeros(0, np.uint32),
        np.arange(count + 1, dtype=np.int64),
        ends,
        points,
    )
    large = oversized_masks(np.arange(count), masks, reader.rows.file, reader.limits.mask_runs)
    if problems := [Problem(*reader.location(row), *words) for row, *words in large]:
        raise InputError(problems)
    return masks, "drawn as outlines: vertices are not centers of pixels" if predicted else ""


def _filled(rings: list[NDArray[np.int32]], sizes: NDArray[np.int32]) -> tuple[Masks, str]:
    """Return the masks of contours of pixels, and how they were drawn."""
    shapes = [(height, width) for height, width in sizes.tolist()]
    drawn = "contours of pixels, filled with their border"
    if joined := sum(map(_has_joining_line, rings)):
        drawn += f"; lines join the parts of {joined}"
    runs = [contour_runs(ring, shape) for ring, shape in zip(rings, shapes, strict=True)]
    return Masks.of_runs(shapes, runs), drawn


def _has_joining_line(ring: NDArray[np.int32]) -> bool:
    """Return True if an edge is neither horizontal, vertical nor diagonal."""
    across, down = np.abs(np.roll(ring, -1, axis=0) - ring).T
    return bool(((across > 0) & (down > 0) & (across != down)).any())
