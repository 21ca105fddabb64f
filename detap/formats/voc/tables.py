"""Read PASCAL VOC: folders of XML, or of text files with one box per line.

Fast readers read regular files and fall back to lxml (annotations.py) or `formats/text/lines.py`,
which report every problem. Tests check that both give the same rows.

References: the VOC 2012 development kit, "Annotation file format" and "Detection results file
format"; for one text file per image, the formats of Cartucho/mAP and of Padilla et al. 2021,
Electronics 10(3):279.
"""

import os
from typing import Any

from detap.errors import UsageError
from detap.formats.options import TRUTH, named_coordinates
from detap.formats.reading.attributes import Attributes
from detap.formats.text.class_names import ClassNames
from detap.formats.text.detections import read_detections
from detap.formats.text.folder import ground_truth_folder
from detap.formats.text.lines import LineForm
from detap.formats.text.reader import FolderReader
from detap.formats.voc.annotations import CORNERS, read_annotations
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import check_choice
from detap.tables.detection import BOX_FORMATS, GroundTruth

__all__ = ["read_detections", "read_ground_truth"]


class _Reader(FolderReader):
    """Reader of annotation files."""

    files, content = "annotation files", "annotations"


def read_ground_truth(
    path: Path,
    *,
    image_set: Path | None = None,
    class_names: Path | None = None,
    boxes: str = "xyxy",
    attributes: tuple[str, ...] = (),
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of a VOC tree or a folder of XML or text files.

    The name of an image is its file name without the suffix. Only ``object`` elements directly
    under the root of an XML are read, with their ``name``, ``difficult`` and ``bndbox``. A line of
    a text file is ``class x1 y1 x2 y2`` or ``class x y width height``, optionally followed by
    ``difficult``; class names contain no spaces.

    Parameters
    ----------
    path : str or path
        The folder of ``Annotations``, that folder itself, any folder of XML, or a folder with one
        ``.txt`` per image.
    image_set : str or path, optional
        The name of a set in ``ImageSets/Main``, or a file with one image per line in the first
        column. By default all files.
    class_names : str or path, optional
        A file with one class per line, for text files with class numbers from 0.
    boxes : {"xyxy", "xywh"}
        Box format of text files, in pixels. XML is always "xyxy".
    attributes : tuple of str
        Further elements of XML objects to read, as `extra` columns of numbers or text.
    as_is : bool
        Accept any number of boxes of negative size; they overlap nothing. By default more than one
        in twenty is an error.
    limits : Limits
        Limits on the input size.

    Returns
    -------
    GroundTruth
        Images in the order of the image set, else sorted by name; classes sorted by name; rows in
        the order of images and file.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    UsageError
        If `boxes` is "xywh" for XML.
    """
    check_choice("boxes", boxes, BOX_FORMATS)
    folder = ground_truth_folder(os.fspath(path))
    reader = _Reader(folder, as_is, limits, image_set)
    problems, members = reader.problems, reader.selection.members
    names = ClassNames.read(class_names, problems, limits)
    problems.raise_any()
    sizes, nested = None, 0
    extra: dict[str, Any] = {}
    if folder.suffix == ".xml":
        if boxes != "xyxy":
            coordinates = "xmin, ymin, xmax, ymax"
            raise UsageError(named_coordinates("VOC XML", coordinates, TRUTH, boxes))
        reader.corner_names = CORNERS
        columns = Attributes(attributes, texts=True)
        reader.rows, sizes, nested = read_annotations(folder, members, problems, limits, columns)
        extra = columns.columns()
    else:
        reader.read(LineForm("class", False, boxes, names.resolve))
    problems.raise_any()
    rows = reader.rows
    return reader.ground_truth(
        rows.names,
        nested=nested,
        sources=() if folder.suffix == ".xml" else names.source(),
        boxes=rows.values,
        box_format=boxes,
        flags={"difficult": rows.flag},
        sizes=sizes,
        extra=extra,
    )
