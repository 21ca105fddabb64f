"""Read responses of Roboflow's hosted models.

Reference: Roboflow's documentation of the hosted API: ``{"predictions": [{x, y, width,
height, class, confidence}], "image": {width, height}}``, where x, y is the center in pixels.
"""

import os
from collections.abc import Iterator
from typing import Any, NoReturn

from detap.formats.by_name.notes import files_skipped, images_without_file
from detap.formats.shapes.documents import DocumentReader, Image, Item
from detap.formats.shapes.json_values import class_name, numbers, object_of, required
from detap.formats.text.folder import Folder, files_of, one_file
from detap.io.json_text import short_json
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path
from detap.io.problems import FaultError
from detap.io.stream import refuse
from detap.tables.detection import Detections, GroundTruth

_NOT_TRUTH = "holds detections of a model", "use an export of the data set as ground truth"


def read_ground_truth(
    path: Path, *, as_is: bool = False, limits: Limits = DEFAULT_LIMITS
) -> NoReturn:
    """Raise InputError: responses of a model are not ground truth.

    Raises
    ------
    InputError
    """
    del as_is, limits
    refuse(os.fspath(path), *_NOT_TRUTH)


def read_detections(
    path: Path, ground_truth: GroundTruth, *, as_is: bool = False, limits: Limits = DEFAULT_LIMITS
) -> Detections:
    """Read the responses of a model, one JSON file per image.

    The name of an image is the file name without ``.json``, and without the suffix of an image:
    ``a.json`` or ``a.jpg.json``.

    Parameters
    ----------
    path : str or path
        A folder, or one file. Other files and sub-folders are skipped.
    ground_truth : GroundTruth
        The ground truth, for its images and classes.
    as_is : bool
        Accept input that fails a plausibility check.
    limits : Limits
        Limits on the input size.

    Returns
    -------
    Detections
        Numbered as `ground_truth`; classes that it lacks follow, sorted by name.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    """
    folder = _folder_of(path)
    reader = Responses(path, limits, scored=True, as_is=as_is).read(folder)
    without_file = len(ground_truth.images) - len(reader.images)
    notes = (files_skipped(folder.skipped, "responses"), images_without_file(max(0, without_file)))
    return reader.detections_of(ground_truth, notes)


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in the responses."""
    del options
    return Responses(path, limits, scored=True).read(_folder_of(path)).placeholder()


def _folder_of(path: Path) -> Folder:
    text = os.fspath(path)
    if text == STDIN:
        refuse(text, "cannot provide Roboflow's responses: file names are needed", "use a folder")
    folder = one_file(text) or files_of(text, "", ".json")
    if not folder.members:
        refuse(text, "no responses: no file ends with .json", "use the folder with the files")
    return folder


class Responses(DocumentReader):
    """Reader of the responses of a folder; each file is an image."""

    box_format = "xywh"
    expected = 'expected {"predictions": [{"x": ..., "y": ..., "class": ..., "confidence": ...}]}'

    def __init__(self, path: Path, limits: Limits = DEFAULT_LIMITS, **how: Any) -> None:
        super().__init__(path, limits, score="confidence", **how)
        self._file = ""

    def read_data(self, data: bytes, file: str) -> None:
        """Read one file and collect its problems."""
        self._file = file
        super().read_data(data, file)

    def images_of(self, content: Any) -> Iterator[tuple[str, Any]]:
        """Yield the only record of a file."""
        if not isinstance(content, dict) or "predictions" not in content:
            raise FaultError(f"is {short_json(content)}", self.expected)
        yield "", content

    def image_of(self, location: str, record: Any) -> Image:
        """Return the image of a response."""
        objects = required(record, "predictions", list, "expected a list")
        size = object_of(record.get("image") or {})
        name = os.path.splitext(os.path.basename(self._file))[0]
        located = ((f"predictions[{number}]", one) for number, one in enumerate(objects))
        return Image(name, located, size.get("width"), size.get("height"))

    def item_of(self, record: Any) -> Item:
        """Return the box of a prediction."""
        if "points" in record:
            raise FaultError("is a polygon", "use a model that detects boxes")
        label = class_name(record, "class")
        x, y, width, height = numbers(record, "x", "y", "width", "height")
        for name, side in (("width", width), ("height", height)):
            if side < 0:
                raise FaultError(f"{name} {side:g} is negative", "correct the box")
        box = [x - width / 2, y - height / 2, width, height]
        return Item(label, box, {"confidence": record.get("confidence")})
