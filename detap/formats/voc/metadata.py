"""VOC, aside from reading it: detections by themselves, and what images are said to be."""

import os
from typing import Any

from detap.errors import UsageError
from detap.formats.by_name.problems import Problems
from detap.formats.reading.placeholder import empty_truth
from detap.formats.text.class_names import ClassNames
from detap.formats.text.folder import detections_folder
from detap.formats.text.layout import class_of_stem, tell_layout
from detap.formats.voc.annotations import element_text
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.problems import FaultError
from detap.io.stream import read_bytes
from detap.tables.detection import GroundTruth, Name


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes that text files name; their layout becomes an option.

    It is a lenient look: the reader then reads the files against these names, so that everything
    else about them is checked as always.

    Raises
    ------
    UsageError
        Where the layout cannot be told.
    """
    folder = detections_folder(os.fspath(path))
    stems = tuple(folder.members)
    lines = folder.columns(limits)
    layout = options.get("layout")
    if layout is None:
        first = {stem: found[0][0] for stem, found in zip(stems, lines, strict=True) if found}
        layout = tell_layout(stems, first, (), ())
    if layout is None:
        raise UsageError(
            "whether a file holds the detections of a class or of an image cannot be told without "
            "the ground truth; say --layout class-files or --layout image-files"
        )
    met = {columns[0] for found in lines for columns in found}
    by_image = layout == "image-files"
    classes = met if by_image else {class_of_stem(stem, ()).name for stem in stems}
    file = options.get("dt_class_names") or options.get("class_names")
    listed = ClassNames.read(file, Problems(1), limits)
    classes = {_resolved(listed, word) for word in classes}
    options["layout"] = layout
    return empty_truth(stems if by_image else met, classes)


def _resolved(listed: ClassNames, word: str) -> str:
    try:
        return listed.resolve(word)
    except FaultError:
        return word  # which its reader names


def image_attribute(truth: GroundTruth, name: str) -> dict[Name, Any]:
    """Return the text of an element, as ``segmented``, or of a path such as ``source/database``.

    The files are read again.
    """
    known = {str(image): image for image in truth.images}
    found: dict[Name, Any] = {}
    for folder, member in [(s.path, member) for s in truth.files for member in s.members]:
        image = os.path.splitext(os.path.basename(member))[0]
        path = os.path.join(folder, member)
        text = element_text(read_bytes(path), path, name)
        if text is not None and image in known:
            found[known[image]] = text
    return found


def file_names(truth: GroundTruth) -> dict[Name, str]:
    """Return the stem of each XML with the suffix that its ``filename`` has; they are read again.

    The stem is what an image is called, whatever stands in the file.
    """
    named = image_attribute(truth, "filename")
    return {image: f"{image}{os.path.splitext(name)[1]}" for image, name in named.items()}
