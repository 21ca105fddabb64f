"""PASCAL VOC: a folder of XML, or of text files with a box a line, to tables.

What is regular is read by compiled scanners; whatever they decline is read again with care, by
lxml (annotations.py) or by `formats/text/lines.py`, which know what to say of it.
Both give the same rows: tests hold them to it.

References: the VOC 2012 development kit, "Annotation file format" and "Detection results file
format"; for text files of an image each, the formats of Cartucho/mAP and of Padilla et al. 2021,
Electronics 10(3):279.
"""

import os

from detap.errors import UsageError
from detap.formats.registry import TRUTH, named_coordinates
from detap.formats.text.class_names import ClassNames
from detap.formats.text.detections import read_detections
from detap.formats.text.folder import ground_truth_folder
from detap.formats.text.lines import LineForm
from detap.formats.text.reader import FolderReader
from detap.formats.voc.annotations import CORNERS, read_annotations
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import check_choice
from detap.tables.detection import BOX_ENCODINGS, GroundTruth

__all__ = ["read_detections", "read_ground_truth"]


class _Reader(FolderReader):
    """Reads annotation files."""

    files, of = "annotation files", "annotations"


def read_ground_truth(
    path: Path,
    *,
    image_set: Path | None = None,
    class_names: Path | None = None,
    boxes: str = "xyxy",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of a VOC tree, of a folder of XML, or of a folder of text files.

    An image is called by its file's name without the suffix. Only the ``object`` elements directly
    under an XML's root are objects, and of them only their own ``name``, ``difficult`` and
    ``bndbox`` are read; corners go by name. A line of a text file is ``class x1 y1 x2 y2``, or
    ``class x y width height``, and may end with the word ``difficult``; a class has no spaces.

    Parameters
    ----------
    path : str or path
        The folder that holds ``Annotations``, that folder itself, or any folder of XML; or a
        folder with one ``.txt`` an image.
    image_set : str or path, optional
        The name of a set under ``ImageSets/Main``, or a file: one image a line, of which the first
        column counts. Every file of the folder without it.
    class_names : str or path, optional
        A file with one class a line, for text files that number their classes from 0.
    boxes : {"xyxy", "xywh"}
        What the numbers of a text file are, in pixels. XML names its corners: always "xyxy".
    as_is : bool
        Whether boxes that end before they begin count however many there are: as boxes that
        overlap nothing. By default one in twenty is an error.
    limits : Limits
        What is accepted at most.

    Returns
    -------
    GroundTruth
        Images in the order of the image set, else sorted by name; classes sorted by name; rows in
        the order of the images, and of the file within each.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    UsageError
        If boxes of XML are to be read as "xywh".
    """
    check_choice("boxes", boxes, BOX_ENCODINGS)
    folder = ground_truth_folder(os.fspath(path))
    reader = _Reader(folder, as_is, limits, image_set)
    problems, members = reader.problems, reader.selection.members
    names = ClassNames.read(class_names, problems, limits)
    problems.raise_any()
    sizes, nested = None, 0
    if folder.suffix == ".xml":
        if boxes != "xyxy":
            coordinates = "xmin, ymin, xmax, ymax"
            raise UsageError(named_coordinates("VOC XML", coordinates, TRUTH, boxes))
        reader.corner_names = CORNERS
        reader.rows, sizes, nested = read_annotations(folder, members, problems, limits)
    else:
        reader.read(LineForm("class", False, boxes, names.resolve))
    problems.raise_any()
    rows = reader.rows
    return reader.ground_truth(
        rows.names,
        nested=nested,
        sources=() if folder.suffix == ".xml" else names.source(),
        boxes=rows.values,
        encoding=boxes,
        flags={"difficult": rows.flag},
        sizes=sizes,
    )
