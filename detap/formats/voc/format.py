"""The VOC format: placeholder, attributes and files of images."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from detap.errors import Note, UsageError
from detap.formats.base import Format
from detap.formats.content import Content
from detap.formats.image_folders import ImageFolder, folders_at
from detap.formats.reading.placeholder import empty_ground_truth
from detap.formats.text.class_names import ClassNames
from detap.formats.text.detections import class_of_stem, detect_layout, read_detections
from detap.formats.text.folder import detections_folder, name_of_member
from detap.formats.text.reader import first_words
from detap.formats.voc.tables import read_ground_truth
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.problems import FaultError, Problems
from detap.io.stream import read_bytes
from detap.tables.detection import GroundTruth, Name

_ANNOTATIONS = "Annotations/"
_IMAGE_FOLDERS = ("../JPEGImages", "../images", ".")


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in text files, and set their layout option.

    Files are not checked here: the reader does that afterwards, using these names.
    """
    folder = detections_folder(os.fspath(path))
    stems = tuple(folder.members)
    words_of_files = first_words(folder, limits)
    layout = options.get("layout")
    if layout is None:
        first = {stem: words[0] for stem, words in zip(stems, words_of_files, strict=True) if words}
        layout = detect_layout(stems, first, (), ())
    if layout is None:
        raise UsageError(
            "cannot detect the layout of the files without ground truth; use --layout class-files "
            "(one file per class) or --layout image-files (one per image)"
        )
    options["layout"] = layout
    words = {word for words in words_of_files for word in words}
    by_image = layout == "image-files"
    classes = words if by_image else {class_of_stem(stem, ()).name for stem in stems}
    file = options.get("dt_class_names") or options.get("class_names")
    class_names = ClassNames.read(file, Problems(1), limits)
    classes = {_resolved(class_names, word) for word in classes}
    return empty_ground_truth(stems if by_image else words, classes)


def _resolved(class_names: ClassNames, word: str) -> str:
    try:
        return class_names.resolve(word)
    except FaultError:
        return word  # the reader reports it


class Voc(Format):
    """PASCAL VOC: folders of XML, or of text files with one box per line."""

    protocol = "voc2012"
    has_attributes = True

    read_truth_file = staticmethod(read_ground_truth)
    read_detections_file = staticmethod(read_detections)
    placeholder = staticmethod(placeholder_ground_truth)

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the text of an element (``segmented``) or path (``source/database``)."""
        from detap.formats.voc.xml import element_text  # lxml takes 0.03 s

        values: dict[Name, Any] = {}
        for image, folder, member in _files(ground_truth):
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
