"""COCO files of annotation tools: rotations, a parent category, repeated images.

References: CVAT writes ``attributes.rotation`` of each box, degrees about its center, next to the
box before rotation. Roboflow writes the project as category 0, the supercategory of all others.
Label Studio lists an image once per annotator.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from detap.errors import InputError, Note, Problem
from detap.formats.coco.columns import TruthColumns
from detap.formats.coco.truth import TruthFile
from detap.io.paths import shown
from detap.io.problems import SHAPES, check_choice
from detap.tables.detection import Floats, Name
from detap.text_input import quote

_HINT = "pass shapes='bbox' (--shapes bbox) to read the bounding boxes"


def as_exported(
    columns: TruthColumns, file: TruthFile, *, path: str, shapes: str
) -> tuple[TruthColumns, tuple[Note, ...]]:
    """Return the columns as the exporting tool means them; refuse rotated boxes, or bound them."""
    check_choice("shapes", shapes, SHAPES)
    notes: list[Note] = []
    info = file.info if isinstance(file.info, dict) else {}
    may_have_parent = columns.class_ids[:1] == (0,) and not (columns.label == 0).any()
    if columns.zero_row >= 0 and info.get("contributor") == "Label Studio":
        columns, notes = _merged(columns, file)
    may_have_parent &= len(columns.class_ids) > 1 and not columns.listed
    if may_have_parent and (name := _parent_of(file.categories)) is not None:
        message = f"category 0, {quote(name)}, is the parent of all others; left out"
        notes.append(Note("parent-category", message, severity="info"))
        columns = replace(
            columns,
            class_ids=columns.class_ids[1:],
            class_names=columns.class_names[1:],
            label=columns.label - 1,
        )
    if file.rotated:
        columns = _turned(columns, file.rotated, path, shapes)
    return columns, tuple(notes)


def _merged(columns: TruthColumns, file: TruthFile) -> tuple[TruthColumns, list[Note]]:
    """Give images of one file name the index of the first."""
    names = {
        identifier: name
        for identifier, name in file.image_values("file_name").items()
        if isinstance(name, str)
    }
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


def _turned(
    columns: TruthColumns, rotated: Mapping[int, float], path: str, shapes: str
) -> TruthColumns:
    """Replace boxes by their bounding boxes when rotated by degrees."""
    rows = sorted(rotated)
    origin = range(len(columns.image)) if columns.origin is None else columns.origin.tolist()
    if shapes != "bbox":
        degrees = f"attributes.rotation {rotated[rows[0]]:g}"
        message = f"boxes are rotated ({degrees}); {len(rows)} in all"
        location = f"annotations[{origin[rows[0]]}]"
        raise InputError(Problem(shown(path), location, message, _HINT))
    corners, box_area = columns.corners.copy(), columns.box_area.copy()
    angles = np.radians([rotated[row] for row in rows])
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
