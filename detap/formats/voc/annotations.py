"""Read VOC annotations: regular files by `_scan.pyx`, all others by lxml."""

import re

import numpy as np

from detap.formats.reading.attributes import Attributes
from detap.formats.text.reader import FolderReader, Rows, contents, used_names
from detap.formats.voc._scan import Annotations
from detap.tables.detection import Floats

_MAX_SCANNED_BYTES = 4 << 20
"""Larger annotations go to lxml, which has limits of its own."""

_START = re.compile(
    rb"(<\?xml version=([\"'])1\.0\2( encoding=([\"'])(?i:utf-8)\4)?[ \t\r\n]*\?>)?"
    rb"[ \t\r\n]*<annotation( verified=\"(yes|no)\")?>"
)
"""The usual beginnings of an annotation; the attribute is labelImg's."""


class AnnotationReader(FolderReader):
    """Reader of a folder's XML annotations.

    Attributes
    ----------
    sizes : (I, 2) float64
        Width and height of the images, NaN if unknown.
    nested : int
        Number of objects inside others.
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
