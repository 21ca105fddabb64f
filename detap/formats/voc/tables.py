"""PASCAL VOC: folders of XML, or of text files with one box per line.

References: the VOC 2012 development kit, "Annotation file format" and "Detection results file
format"; for one text file per image, the formats of Cartucho/mAP and of Padilla et al. 2021,
Electronics 10(3):279.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from detap.errors import Note, UsageError
from detap.formats.base import Format
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.content import Content
from detap.formats.image_folders import ImageFolder, folders_at
from detap.formats.options import TRUTH, named_coordinates
from detap.formats.reading.attributes import Attributes
from detap.formats.stem_matching import empty_ground_truth
from detap.formats.text.class_names import ClassNames
from detap.formats.text.detections import class_of_stem, detect_layout, read_detections
from detap.formats.text.folder import (
    contents,
    detections_folder,
    ground_truth_folder,
    name_of_member,
)
from detap.formats.text.lines import LineForm
from detap.formats.text.reader import FolderReader, Rows, first_words
from detap.formats.voc._scan import Annotations
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import FaultError, Problems, check_choice
from detap.io.stream import read_bytes
from detap.tables.detection import BOX_FORMATS, GroundTruth, Name

__all__ = ["read_detections", "read_ground_truth"]

_ANNOTATIONS = "Annotations/"
_IMAGE_FOLDERS = ("../JPEGImages", "../images", ".")

_START = re.compile(
    rb"(<\?xml version=([\"'])1\.0\2( encoding=([\"'])(?i:utf-8)\4)?[ \t\r\n]*\?>)?"
    rb"[ \t\r\n]*<annotation( verified=\"(yes|no)\")?>"
)
"""The usual beginnings of an annotation; the attribute is labelImg's."""


def _read_annotations(reader: FolderReader, attributes: Attributes) -> dict[str, Any]:
    """Read a folder's XML into rows; collect problems; return further columns of the table.

    `_scan.pyx` reads plain files, lxml all others, or all if there are `attributes`: of the rows.
    """
    reader.files, reader.content, reader.unit = "annotation files", "annotations", "object"
    reader.corner_names = ("xmin", "ymin", "xmax", "ymax")
    sizes = np.full((len(reader.members), 2), np.nan)
    scanned = Annotations(reader.limits.nesting)
    all_nested = all_empty = 0
    problems, limits = reader.problems, reader.limits
    for number, path, data in contents(reader.folder, reader.members, problems, limits):
        size = None if attributes.names else scanned.read(plain_start(data), number)
        if size is not None:
            sizes[number] = size
        else:
            from detap.formats.voc.xml import read_annotation  # lxml takes 0.03 s

            with problems.collected(file=path):
                sizes[number], nested, empty = read_annotation(
                    data, path, scanned, attributes, problems, limits=limits, number=number
                )
                all_nested += nested
                all_empty += empty
        reader.check_records(len(scanned))
    reader.rows = Rows.of(scanned, str)
    notes = nonzero_notes(
        Note("nested-objects", "object elements inside others are skipped", all_nested),
        Note("empty-difficult", "empty <difficult/> read as 0", all_empty, severity="info"),
    )
    return {"sizes": sizes, "extra": attributes.columns(), "notes": notes}


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
    subfolders: str = "read",
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
    folder = ground_truth_folder(os.fspath(path), nested=subfolders == "read")
    reader = FolderReader(folder, as_is, limits, image_set)
    names = ClassNames.read(class_names, reader.problems, limits)
    reader.problems.raise_any()
    if folder.suffix == ".xml":
        if boxes != "xyxy":
            coordinates = "xmin, ymin, xmax, ymax"
            raise UsageError(named_coordinates("VOC XML", coordinates, TRUTH, boxes))
        columns = _read_annotations(reader, Attributes(attributes, texts=True))
    else:
        reader.read(LineForm("class", False, boxes, names.resolve, last=("", "difficult")))
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


class Voc(Format):
    """PASCAL VOC: folders of XML, or of text files with one box per line."""

    protocol = "voc2012"
    has_attributes = True

    read_truth_file = staticmethod(read_ground_truth)
    read_detections_file = staticmethod(read_detections)

    def placeholder(self, path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
        """Return the images and classes named in text files, and set their layout option.

        Files are not checked here: the reader does that afterwards, using these names.
        """
        folder = detections_folder(os.fspath(path))
        stems = tuple(folder.members)
        words_of_files = first_words(folder, limits)
        first = [words[0] for words in words_of_files if words]
        layout = options.get("layout") or detect_layout(stems, first, (), ())
        if layout is None:
            raise UsageError(
                "cannot detect the layout of the files without ground truth; use --layout "
                "class-files (one file per class) or --layout image-files (one per image)"
            )
        options["layout"] = layout
        words = {word for words in words_of_files for word in words}
        by_image = layout == "image-files"
        classes = words if by_image else {class_of_stem(stem, ()).name for stem in stems}
        file = options.get("dt_class_names") or options.get("class_names")
        class_names = ClassNames.read(file, Problems(1), limits)
        resolved = set()
        for word in classes:
            try:
                resolved.add(class_names.resolve(word))
            except FaultError:
                resolved.add(word)  # the reader reports it
        return empty_ground_truth(stems if by_image else words, resolved)

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the text of an element (``segmented``) or path (``source/database``)."""
        from detap.formats.voc.xml import element_text  # lxml takes 0.03 s

        values: dict[Name, Any] = {}
        for image, folder, member in _files(ground_truth):
            if not member.lower().endswith(".xml"):
                continue  # text files have boxes alone
            path = os.path.join(folder, member)
            text = element_text(read_bytes(path), path, name)
            if text is not None:
                values[image] = text
        return values

    def file_names(self, ground_truth: GroundTruth) -> dict[Name, str]:
        """Return the stem of each XML with the suffix of its ``filename``, which may differ."""
        names = self.attribute_values(ground_truth, "filename")
        return {image: f"{image}{os.path.splitext(name)[1]}" for image, name in names.items()}

    def image_files(self, ground_truth: GroundTruth) -> tuple[list[ImageFolder], Mapping[str, str]]:
        """Return the folders that may have the images, and the names of images in sub-folders."""
        bases: dict[str, None] = {}
        names: dict[str, str] = {}
        for image, base, member in _files(ground_truth):
            bases.setdefault(base)
            if "/" in member:
                names[str(image)] = os.path.splitext(member)[0]
        folders = [folder for base in bases for folder in folders_at(base, _IMAGE_FOLDERS)]
        return list(dict.fromkeys(folders)), names

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield annotations, an image set, and text files of detections."""
        from detap.formats.voc import writer  # only to convert

        return writer.files(content, notes)


def _files(ground_truth: GroundTruth) -> Iterator[tuple[Name, str, str]]:
    """Yield each image, the folder of the annotations, and its file relative to that."""
    known = {str(image): image for image in ground_truth.images}
    for source in ground_truth.files:
        for member in source.members:
            below = member.removeprefix(_ANNOTATIONS)
            image = name_of_member(below, known)
            if image is not None:
                yield known[image], source.path + "/" + member[: -len(below)], below
