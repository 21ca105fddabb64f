"""COCO metadata: image attributes, file names, names in detections."""

import json
from typing import Any

from detap.formats.reading.placeholder import empty_ground_truth
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.json_text import integer
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.stream import read_bytes
from detap.tables.detection import GroundTruth, Name

_NAMES = {"class_names", "dt_class_names", "first_category_id"}


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the image and category ids in results; empty if parsing fails.

    This is lenient, because the reader then reports every problem of the file.
    """
    try:
        value = json.loads(read_bytes(path, limits).decode("utf-8-sig"), parse_int=integer)
    except (ValueError, RecursionError):
        value = []
    listed: object = None
    if isinstance(value, dict):
        listed = value.get("categories")
        value = value.get("annotations") or value.get("predictions")
    records = [record for record in value or () if isinstance(record, dict)]
    images, classes = (
        {name for record in records if (name := _name(record.get(key))) is not None}
        for key in ("image_id", "category_id")
    )
    class_names = {
        identifier: name
        for record in (listed if isinstance(listed, list) else ())
        if isinstance(record, dict)
        and (identifier := _name(record.get("id"))) is not None
        and isinstance(name := record.get("name"), str)
    }
    # Without ground truth, categories need no names.
    for name in _NAMES & options.keys():
        del options[name]
    return empty_ground_truth(images, classes, class_names)


def _name(value: object) -> Name | None:
    """Return an id as an integer or text; None if it is invalid."""
    if isinstance(value, bool) or not isinstance(value, int | str | float):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value


def image_attribute(truth: GroundTruth, name: str) -> dict[Name, Any]:
    """Return the value of a key in the image records, from reading the files again."""
    texts = (read_bytes(source.path).decode("utf-8-sig") for source in truth.files)
    files = [json.loads(text, parse_int=integer) for text in texts]
    known = {str(image): image for image in truth.images}
    return {
        known[str(_integer_id(image["id"]))]: image[name]
        for record in files
        for image in record["images"]
        if image.get(name) is not None and str(_integer_id(image["id"])) in known
    }


def _integer_id(identifier: object) -> object:
    # The reader accepts 7.0 as 7.
    return int(identifier) if isinstance(identifier, float) else identifier


def file_names(truth: GroundTruth) -> dict[Name, str]:
    """Return the file_name of each image, from reading the files again."""
    names: dict[Name, str] = {}
    for source in truth.files:
        names |= listed_file_names(source.path)
    return names


def listed_file_names(path: str) -> dict[Name, str]:
    """Return the file_name by image id of a ground-truth file."""
    from detap.formats.coco._scan import ListsScan
    from detap.formats.coco.columns import listed_names, read_listed
    from detap.formats.coco.prefetch import Handle

    lists = Handle(path, scanner=ListsScan)
    scan = lists.result()
    if scan is None:
        records = json.loads(lists.content().removeprefix(BYTE_ORDER_MARK), parse_int=integer)[
            "images"
        ]
    else:
        records = read_listed(scan.images)
    return listed_names(records, "file_name")
