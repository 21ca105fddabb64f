"""Read PASCAL VOC: folders of XML, or of text files with one box per line.

References: the VOC 2012 development kit, "Annotation file format" and "Detection results file
format"; for one text file per image, the formats of Cartucho/mAP and of Padilla et al. 2021,
Electronics 10(3):279.
"""

import os
import re
from typing import Any

import numpy as np

from detap.errors import UsageError
from detap.formats.options import TRUTH, named_coordinates
from detap.formats.reading.attributes import Attributes
from detap.formats.text.class_names import ClassNames
from detap.formats.text.detections import read_detections
from detap.formats.text.folder import ground_truth_folder
from detap.formats.text.lines import LineForm
from detap.formats.text.reader import FolderReader, Rows, contents, used_names
from detap.formats.voc._scan import Annotations
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import check_choice
from detap.tables.detection import BOX_FORMATS, Floats, GroundTruth

__all__ = ["read_detections", "read_ground_truth"]

_MAX_SCANNED_BYTES = 4 << 20
"""Larger annotations go to lxml, which has limits of its own."""

_START = re.compile(
    rb"(<\?xml version=([\"'])1\.0\2( encoding=([\"'])(?i:utf-8)\4)?[ \t\r\n]*\?>)?"
    rb"[ \t\r\n]*<annotation( verified=\"(yes|no)\")?>"
)
"""The usual beginnings of an annotation; the attribute is labelImg's."""


class AnnotationReader(FolderReader):
    """Reader of a folder's XML: plain files by `_scan.pyx`, all others by lxml.

    `sizes` (I, 2) are those of the images, NaN if unknown; `nested` counts objects inside others.
    """

    files, content = "annotation files", "annotations"
    unit = "object"
    corner_names = ("xmin", "ymin", "xmax", "ymax")

    def read_annotations(self, attributes: Attributes) -> None:
        """Read the rows; collect problems.

        `attributes` gets those of the rows. Only lxml reads them: with names, it reads all files.
        """
        members, limits = self.selection.members, self.limits
        self.nested = 0
        self.sizes: Floats = np.full((len(members), 2), np.nan)
        scanned = Annotations(limits.nesting)
        for number, path, data in contents(self.folder, members, self.problems, limits):
            small = len(data) <= _MAX_SCANNED_BYTES and not attributes.names
            if small and scanned.read(plain_start(data), number):
                self.sizes[number] = scanned.width, scanned.height
            else:
                from detap.formats.voc.xml import read_annotation  # lxml takes 0.03 s

                annotation = read_annotation(data, path, self.problems, limits, attributes)
                for each in annotation.objects:
                    scanned.add(number, each.name.encode(), each.difficult, each.corners)
                    attributes.append(each.attributes)
                self.sizes[number] = annotation.size
                self.nested += annotation.nested
            self.check_records(len(scanned))
        file, word, flag, corners, words = scanned.columns()
        names, name = used_names(word, words, str)
        line = np.arange(1, len(file) + 1) - np.searchsorted(file, file)
        ends = 4 * np.arange(1, len(file) + 1)
        self.rows = Rows(file, line.astype(np.int32), name, names, flag, corners.ravel(), ends)


def plain_start(data: bytes) -> bytes:
    """Return an annotation without the usual XML declaration and attribute of the root."""
    start = _START.match(data)
    return data if start is None else b"<annotation>" + data[start.end() :]


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
    ``difficult``. `attributes` are further elements of XML objects. Images are in the order of the
    image set, else sorted by name; classes are sorted by name.
    """
    check_choice("boxes", boxes, BOX_FORMATS)
    folder = ground_truth_folder(os.fspath(path))
    is_xml = folder.suffix == ".xml"
    reader = (AnnotationReader if is_xml else FolderReader)(folder, as_is, limits, image_set)
    names = ClassNames.read(class_names, reader.problems, limits)
    reader.problems.raise_any()
    columns: dict[str, Any] = {}
    if isinstance(reader, AnnotationReader):
        if boxes != "xyxy":
            coordinates = "xmin, ymin, xmax, ymax"
            raise UsageError(named_coordinates("VOC XML", coordinates, TRUTH, boxes))
        extra = Attributes(attributes, texts=True)
        reader.read_annotations(extra)
        columns = {"nested": reader.nested, "sizes": reader.sizes, "extra": extra.columns()}
    else:
        reader.read(LineForm("class", False, boxes, names.resolve))
        columns = {"sources": names.source()}
    reader.problems.raise_any()
    rows = reader.rows
    return reader.ground_truth(
        rows.names,
        boxes=rows.table(4),
        box_format=boxes,
        flags={"difficult": rows.flag},
        **columns,
    )
