"""Read CreateML's JSON.

Reference: Apple's documentation, "Building an object detector data source", with the default
anchor, the center of the box, in pixels; Roboflow exports the same.
"""

from collections.abc import Iterator
from typing import Any

from detap.formats.shapes.documents import DocumentReader, Image, Item
from detap.formats.shapes.json_values import class_name, numbers, object_of, required
from detap.io.json_text import short_json
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import FaultError
from detap.tables.detection import Detections, GroundTruth, Name

_COORDINATES = "write {x, y, width, height}, where x, y is the center"


def read_ground_truth(
    path: Path, *, as_is: bool = False, limits: Limits = DEFAULT_LIMITS
) -> GroundTruth:
    """Read the ground truth of a CreateML file.

    The name of an image is ``image`` without the suffix. Image sizes are unknown.

    Parameters
    ----------
    path : str or path
    as_is : bool
        Accept boxes that look normalized, and any number of boxes of negative size.
    limits : Limits
        Limits on the input size.

    Returns
    -------
    GroundTruth
        Images and classes sorted by name, rows in the order of the file.

    Raises
    ------
    InputError
        If the input is invalid; lists every problem, up to the limit.
    """
    return Annotations(path, limits, as_is=as_is).read().ground_truth_of()


def read_detections(
    path: Path, ground_truth: GroundTruth, *, as_is: bool = False, limits: Limits = DEFAULT_LIMITS
) -> Detections:
    """Read detections from a CreateML file whose annotations have a ``confidence``.

    Parameters
    ----------
    path, as_is, limits
        As in :func:`read_ground_truth`, with the same errors.
    ground_truth : GroundTruth
        The ground truth, for its images and classes.
    """
    return _scored(path, limits, as_is=as_is).detections_of(ground_truth)


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in detections."""
    return _scored(path, limits).placeholder()


def file_names(ground_truth: GroundTruth) -> dict[Name, str]:
    """Return the file of each image; files are read again."""
    return Annotations.images_again(ground_truth).file_names


def _scored(path: Path, limits: Limits, *, as_is: bool = False) -> "Annotations":
    return Annotations(path, limits, scored=True, score="confidence", as_is=as_is).read()


class Annotations(DocumentReader):
    """Reader of a CreateML file."""

    box_format = "xywh"
    expected = 'expected [{"image": ..., "annotations": [{"label": ..., "coordinates": {...}}]}]'

    def images_of(self, content: Any) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each image."""
        if not isinstance(content, list):
            raise FaultError(f"is {short_json(content)}, not a list of images", self.expected)
        for number, record in enumerate(content):
            yield f"[{number}]", record

    def image_of(self, location: str, record: Any) -> Image:
        """Return the image of a record."""
        items = required(object_of(record), "annotations", list, "expected a list")
        where = f"{location}.annotations"
        return Image(record.get("image"), ((f"{where}[{n}]", one) for n, one in enumerate(items)))

    def item_of(self, record: Any) -> Item:
        """Return the object of an annotation."""
        label = class_name(record, "label")
        if not self.scored and "confidence" in record:
            raise FaultError("has a confidence (detections?)", "use the ground truth")
        coordinates = required(record, "coordinates", dict, _COORDINATES)
        x, y, width, height = numbers(coordinates, "x", "y", "width", "height")
        box = [x - width / 2, y - height / 2, width, height]
        return Item(label, box, record if self.scored else {})
