"""COCO files of annotation tools: rotations, a parent category, repeated images.

References: CVAT writes ``attributes.rotation`` of each box, degrees about its center, next to the
box before rotation. Roboflow writes the project as category 0, the supercategory of all others.
Label Studio lists an image once per annotator.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from detap.errors import InputError, Note, Problem
from detap.formats.coco._scan import TruthScan
from detap.formats.coco.columns import TruthColumns, listed_names
from detap.io.json_text import integer
from detap.io.paths import shown
from detap.io.problems import SHAPES, check_choice
from detap.tables.detection import Floats, Name
from detap.text_input import quote

_MOST_DEGREES = 1e6
_LABEL_STUDIO = b'"Label Studio"'
_HINT = "pass shapes='bbox' (--shapes bbox) to read the bounding boxes"


def as_exported(
    columns: TruthColumns,
    scan: TruthScan | None,
    content: Callable[[], bytes],
    *,
    path: str,
    shapes: str,
) -> tuple[TruthColumns, tuple[Note, ...]]:
    """Return the columns as the exporting tool means them.

    Parameters
    ----------
    columns : TruthColumns
    scan : TruthScan or None
        The fast reader, if it read the file.
    content : callable
        Returns the file; called if the columns may need it.
    path : str
        For messages.
    shapes : {"reject", "bbox"}
        Reject rotated boxes, or read their bounding boxes.

    Raises
    ------
    InputError
        If there are rotated boxes and `shapes` is "reject".
    """
    check_choice("shapes", shapes, SHAPES)
    has_attributes = scan is None or scan.with_attributes > 0
    may_be_merged = columns.zero_row >= 0
    may_have_parent = columns.class_ids[:1] == (0,) and not (columns.label == 0).any()
    if not (has_attributes or may_be_merged or may_have_parent):
        return columns, ()
    data = content()
    notes: list[Note] = []
    if may_be_merged and _LABEL_STUDIO in data:
        columns, notes = _merged(columns, _parsed(data))
    if may_have_parent and len(columns.class_ids) > 1 and not columns.listed:
        categories = _parsed(data)["categories"]
        if (name := _parent_of(categories)) is not None:
            message = f"category 0, {quote(name)}, is the parent of all others; left out"
            notes.append(Note("parent-category", message, severity="info"))
            columns = replace(
                columns,
                class_ids=columns.class_ids[1:],
                class_names=columns.class_names[1:],
                label=columns.label - 1,
            )
    if has_attributes and b'"rotation"' in data:
        columns = _turned(columns, _parsed(data), path, shapes)
    return columns, tuple(notes)


def _parsed(data: bytes) -> Any:
    # The reader has checked all that is used.
    text = data.decode("utf-8-sig", "replace")
    return json.loads(text, parse_int=integer, strict=False)


def _merged(columns: TruthColumns, document: Any) -> tuple[TruthColumns, list[Note]]:
    """Give images of one file name the index of the first."""
    info = document.get("info")
    if not isinstance(info, dict) or info.get("contributor") != "Label Studio":
        return columns, []
    names = listed_names(document["images"], "file_name")
    first: dict[Name, int] = {}
    for index, identifier in enumerate(columns.image_ids):
        first.setdefault(names.get(identifier, identifier), index)
    kept = sorted(first.values())
    if len(kept) == len(columns.image_ids):
        return columns, []
    new_index = {old: new for new, old in enumerate(kept)}
    index_of_image = np.array(
        [new_index[first[names.get(name, name)]] for name in columns.image_ids], np.int32
    )
    repeated = len(columns.image_ids) - len(kept)
    message = (
        "images listed again by Label Studio, once per annotator; the boxes of all annotators "
        "count: export JSON to use the newest annotation"
    )
    merged = replace(
        columns,
        image=index_of_image[columns.image],
        image_ids=tuple(columns.image_ids[old] for old in kept),
        image_sizes=columns.image_sizes[kept],
    )
    return merged, [Note("images-of-several-annotators", message, repeated)]


def _parent_of(categories: Iterable[Any]) -> str | None:
    """Return the name of category 0 if it is the supercategory of all others."""
    records = [record for record in categories if isinstance(record, dict)]
    name = next(record.get("name") for record in records if record.get("id") == 0)
    others = [record.get("supercategory") for record in records if record.get("id") != 0]
    return name if isinstance(name, str) and all(other == name for other in others) else None


def _turned(columns: TruthColumns, document: Any, path: str, shapes: str) -> TruthColumns:
    """Replace rotated boxes by their bounding boxes."""
    rotations = {
        number: float(degrees)
        for number, record in enumerate(document["annotations"])
        if isinstance(attributes := record.get("attributes"), dict)
        and isinstance(degrees := attributes.get("rotation"), int | float)
        and not isinstance(degrees, bool)
        and abs(degrees) < _MOST_DEGREES  # false for NaN
        and degrees % 360
    }
    origin = range(len(columns.image)) if columns.origin is None else columns.origin.tolist()
    rows = [row for row, number in enumerate(origin) if number in rotations]
    if not rows:
        return columns
    if shapes != "bbox":
        degrees = [rotations[origin[row]] for row in rows]
        message = f"boxes are rotated (attributes.rotation {degrees[0]:g}); {len(rows)} in all"
        location = f"annotations[{origin[rows[0]]}]"
        raise InputError(Problem(shown(path), location, message, _HINT))
    corners, box_area = columns.corners.copy(), columns.box_area.copy()
    angles = np.radians([rotations[origin[row]] for row in rows])
    with np.errstate(over="ignore", invalid="ignore"):
        corners[rows], box_area[rows] = _bounds(corners[rows], angles)
    wrong = np.flatnonzero(~np.isfinite(box_area[rows]))
    if len(wrong):
        location = f"annotations[{origin[rows[wrong[0]]]}]"
        message = "the area of the bounding box overflows"
        raise InputError(Problem(shown(path), location, message, "correct the box"))
    return replace(columns, corners=corners, box_area=box_area)


def _bounds(corners: Floats, angles: Floats) -> tuple[Floats, Floats]:
    """Return the bounding boxes of boxes (N, 4) rotated about their centers, and their areas."""
    cos, sin = np.abs(np.cos(angles)), np.abs(np.sin(angles))
    low, high = corners[:, :2], corners[:, 2:]
    width, height = (high - low).T
    half = np.stack((width * cos + height * sin, width * sin + height * cos), axis=1) / 2
    center = (low + high) / 2
    return np.hstack((center - half, center + half)), 4 * half.prod(axis=1)
