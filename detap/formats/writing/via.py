"""Write VIA 2: ``via_region_data.json``, ground truth only."""

import json
from collections.abc import Iterator

from detap.errors import Note
from detap.formats.writing.content import (
    Content,
    lost_areas,
    lost_flags,
    lost_unused,
    rows_of_images,
)
from detap.formats.writing.xywh import to_xywh

TRUTH = "via_region_data.json"


def files(content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of the file; add lost data to `notes`.

    The size of image files is unknown and written as 0.

    Raises
    ------
    InputError
        If there are detections.
    """
    truth = content.ground_truth
    if truth is None or content.detections is not None:
        raise content.refuse("VIA cannot hold scores", "convert the ground truth alone")
    notes += lost_flags(truth, ["crowd", "difficult", "ignore", "group_of"], "VIA")
    notes += lost_areas(truth, "VIA")
    notes += lost_unused(truth, "VIA")
    boxes = to_xywh(truth.corners, truth.box_area)[0].tolist()
    labels = [truth.classes[k] for k in truth.label.tolist()]
    images = {}
    for name, rows in zip(content.images, rows_of_images(truth), strict=True):
        regions = [
            {
                "shape_attributes": {
                    "name": "rect",
                    **dict(zip(("x", "y", "width", "height"), boxes[row], strict=True)),
                },
                "region_attributes": {"label": labels[row]},
            }
            for row in rows.tolist()
        ]
        file = content.file_name(name)
        record = {"filename": file, "size": 0, "regions": regions, "file_attributes": {}}
        images[f"{file}0"] = record
    yield TRUTH, (json.dumps(images, ensure_ascii=False) + "\n").encode()
