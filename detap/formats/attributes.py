"""What the ground truth's files say of an image besides its boxes, for slices by attribute."""

import json
import os
from typing import TYPE_CHECKING, Any

from detap.errors import InputError, Problem
from detap.formats.files import DEFAULT_LIMITS, read_bytes

if TYPE_CHECKING:
    from detap.tables import GroundTruth, Name


def image_attributes(truth: "GroundTruth", file_format: str, name: str) -> "dict[Name, Any]":
    """Return the value of an attribute of each image that has it.

    Parameters
    ----------
    truth : GroundTruth
        As read; its files are read again.
    file_format : {"coco", "voc"}
        What they are.
    name : str
        COCO: a key of the images' records. VOC: an element, as ``segmented``, or a path such as
        ``source/database``.

    Raises
    ------
    InputError
        Where no image has it.
    """
    read = {"coco": _of_records, "voc": _of_annotations}[file_format]
    found = read(truth, name)
    if not found:
        path = truth.files[0].path if truth.files else "ground truth"
        raise InputError(Problem(path, "", f"no image has an attribute {name!r}"))
    return found


def _of_records(truth: "GroundTruth", name: str) -> "dict[Name, Any]":
    record = json.loads(read_bytes(truth.files[0].path).decode("utf-8-sig"))
    known = {str(image): image for image in truth.images}
    return {
        known[str(_whole(image["id"]))]: image[name]
        for image in record["images"]
        if image.get(name) is not None and str(_whole(image["id"])) in known
    }


def _whole(identifier: object) -> object:
    # The reader takes 7.0 for 7.
    return int(identifier) if isinstance(identifier, float) else identifier


def _of_annotations(truth: "GroundTruth", name: str) -> "dict[Name, Any]":
    from detap.formats.voc import element_text  # noqa: PLC0415 - for VOC alone

    source = truth.files[0]
    known = {str(image): image for image in truth.images}
    found: dict[Name, Any] = {}
    for member in source.members:
        image = os.path.splitext(os.path.basename(member))[0]
        path = os.path.join(source.path, member)
        text = element_text(read_bytes(path), path, name, DEFAULT_LIMITS)
        if text is not None and image in known:
            found[known[image]] = text
    return found
