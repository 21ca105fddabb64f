"""YOLO metadata: names in predictions, image files."""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from detap.formats.by_name.problems import Problems
from detap.formats.image_folders import ImageFolder
from detap.formats.reading.image_headers import IMAGE_SUFFIXES
from detap.formats.reading.placeholder import empty_ground_truth
from detap.formats.text.class_names import ClassNames
from detap.formats.text.rows import first_words
from detap.formats.yolo.dataset import common_folder, is_data_yaml, label_folder_of
from detap.formats.yolo.tables import predictions_folder
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.tables.detection import GroundTruth
from detap.text_input import is_whole


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in files, unchecked."""
    folder = predictions_folder(os.fspath(path))
    names_file = options.get("dt_class_names") or options.get("class_names")
    classes = set(ClassNames.read(names_file, Problems(1), limits).names)
    if not classes:
        words = {word for words in first_words(folder, limits) for word in words}
        classes = {word.lstrip("0") or "0" for word in words if is_whole(word)}
    return empty_ground_truth(folder.members, classes)


def image_files(ground_truth: GroundTruth) -> tuple[list[ImageFolder], Mapping[str, str]]:
    """Return the image folders of the label folders, and file names if they have several.

    Links out of the common folder of labels and images are not followed. A `data.yaml` may name any
    folder, so then images outside its parent folder are not used either.
    """
    folders: dict[str, ImageFolder] = {}
    names: dict[str, str] = {}
    data_yaml = ""
    for source in ground_truth.files:
        if is_data_yaml(source.path):
            data_yaml = os.path.abspath(source.path)
        if not source.members:
            continue
        image_folders = {
            below: label_folder_of(os.path.join(source.path, below), "labels", "images")
            for below in dict.fromkeys(map(os.path.dirname, source.members))
        }
        images = common_folder([*image_folders.values()])
        top = common_folder([source.path, images])
        if data_yaml:
            top = os.path.dirname(os.path.dirname(data_yaml))
        for path, root in ((images, top), (source.path, top if data_yaml else source.path)):
            folders.setdefault(path, ImageFolder(path, os.path.realpath(root)))
        if len(image_folders) > 1:
            for folder in image_folders.values():
                below = os.path.relpath(folder, images)
                names |= {
                    os.path.splitext(name)[0]: os.path.join(below, name)
                    for name in _entries(folder)
                    if name.lower().endswith(IMAGE_SUFFIXES)
                }
    return list(folders.values()), names


def _entries(folder: str) -> list[str]:
    with suppress(OSError):  # labels without images
        return os.listdir(folder)
    return []
