"""COCO files of annotation tools: rotations, a parent category, repeated images.

References: CVAT writes ``attributes.rotation`` of each box, degrees about its center, next to the
box before rotation. Roboflow writes the project as category 0, the supercategory of all others.
Label Studio lists an image once per annotator.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from detap.errors import Note
from detap.formats.by_name.notes import angles_beyond_a_turn, nonzero_notes
from detap.formats.coco.columns import TruthColumns, only_texts
from detap.formats.coco.truth import TruthFile, image_values_of
from detap.io.stream import refuse
from detap.tables.columns import indices_in
from detap.tables.detection import GroundTruth, Name
from detap.text_input import quote

_HINT = "pass shapes='bbox' (--shapes bbox) to read the bounding boxes"


def as_exported(
    columns: TruthColumns, file: TruthFile, *, path: str, shapes: str
) -> tuple[TruthColumns, tuple[Note, ...]]:
    """Return the columns as the exporting tool means them; refuse rotated boxes, or bound them."""
    notes: list[Note] = []
    info = file.info if isinstance(file.info, dict) else {}
    table = columns.table
    may_have_parent = table.class_ids[:1] == (0,) and not (table.label == 0).any()
    if table.zero_id.any() and info.get("contributor") == "Label Studio":
        table, notes = _merged(table, file)
    may_have_parent &= len(table.class_ids) > 1 and not table.listed
    if may_have_parent and (name := _parent_of(file.categories)) is not None:
        message = f"category 0, {quote(name)}, is the parent of all others; left out"
        notes.append(Note("parent-category", message, severity="info"))
        table = replace(
            table,
            class_ids=table.class_ids[1:],
            classes=table.classes[1:],
            label=table.label - 1,
        )
        columns = columns._replace(class_names=columns.class_names[1:])
    if file.rotated:
        table = _turned(table, file, path, shapes)
        beyond = sum(abs(degrees) > 360 for degrees in file.rotated.values())
        notes += nonzero_notes(angles_beyond_a_turn(beyond))
    return columns._replace(table=table), tuple(notes)


def _merged(table: GroundTruth, file: TruthFile) -> tuple[GroundTruth, list[Note]]:
    """Give images of one file name the index of the first."""
    names = only_texts(image_values_of(file.document.again(), "file_name"))
    files = [names.get(identifier, identifier) for identifier in table.images]
    first: dict[Name, int] = {}
    for index, name in enumerate(files):
        first.setdefault(name, index)
    kept = list(first.values())
    repeated = len(files) - len(kept)
    message = (
        "images listed again by Label Studio, once per annotator; the boxes of all annotators "
        "count: export JSON to use the newest annotation"
    )
    merged = replace(
        table,
        image=indices_in(files, first)[table.image],
        images=tuple(table.images[old] for old in kept),
        image_sizes=None if table.image_sizes is None else table.image_sizes[kept],
    )
    return merged, [*nonzero_notes(Note("images-of-several-annotators", message, repeated))]


def _parent_of(categories: Iterable[Any]) -> str | None:
    """Return the name of category 0 if it is the supercategory of all others."""
    records = [record for record in categories if isinstance(record, dict)]
    name = next(record.get("name") for record in records if record.get("id") == 0)
    others = [record.get("supercategory") for record in records if record.get("id") != 0]
    return name if isinstance(name, str) and all(other == name for other in others) else None


def _turned(table: GroundTruth, file: TruthFile, path: str, shapes: str) -> GroundTruth:
    """Replace boxes by their bounding boxes when rotated by degrees about their centers."""
    rows = sorted(file.rotated)
    if shapes != "bbox":
        degrees = f"attributes.rotation {file.rotated[rows[0]]:g}"
        message = f"boxes are rotated ({degrees}); {len(rows)} in all"
        refuse(path, message, _HINT, file.location(rows[0]))
    corners, box_area = table.corners.copy(), table.box_area.copy()
    angles = np.radians([file.rotated[row] for row in rows])
    cos, sin = np.abs(np.cos(angles)), np.abs(np.sin(angles))
    low, high = corners[rows, :2], corners[rows, 2:]
    with np.errstate(over="ignore", invalid="ignore"):
        width, height = (high - low).T
        half = np.stack((width * cos + height * sin, width * sin + height * cos), axis=1) / 2
        center = (low + high) / 2
        corners[rows] = np.hstack((center - half, center + half))
        box_area[rows] = 4 * half.prod(axis=1)
    wrong = np.flatnonzero(~np.isfinite(box_area[rows]))
    if len(wrong):
        where = file.location(rows[wrong[0]])
        refuse(path, "the area of the bounding box overflows", "correct the box", where)
    return replace(table, corners=corners, box_area=box_area)
