"""LabelMe metadata: names in detections, image attributes and file names."""

import os
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from detap.formats.by_name.problems import Problems
from detap.formats.image_folders import ImageFolder
from detap.formats.labelme.shapes import parsed
from detap.formats.labelme.tables import folder_of
from detap.formats.reading.placeholder import empty_ground_truth
from detap.formats.stem_matching import base_name
from detap.formats.text.folder import name_of_member
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.stream import read_bytes
from detap.tables.detection import GroundTruth, Name


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in files, unchecked."""
    folder = folder_of(path)
    classes = {
        shape["label"]
        for member in folder.members.values()
        for shape in _record(folder.file(member), limits).get("shapes", ())
        if isinstance(shape, dict) and isinstance(shape.get("label"), str)
    }
    return empty_ground_truth(folder.members, classes)


def image_attribute(ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
    """Return a flag of the images, or else a key of their files, read again."""
    values: dict[Name, Any] = {}
    for image, record in _records(ground_truth):
        flags = record.get("flags")
        value = flags[name] if isinstance(flags, dict) and name in flags else record.get(name)
        if value is not None:
            values[image] = value
    return values


def file_names(ground_truth: GroundTruth) -> dict[Name, str]:
    """Return the stem of each JSON with the suffix of its ``imagePath``.

    The stem is the image's name, even if ``imagePath`` differs.
    """
    return {
        image: f"{image}{os.path.splitext(base_name(file))[1]}"
        for image, record in _records(ground_truth)
        if isinstance(file := record.get("imagePath"), str)
    }


def image_files(ground_truth: GroundTruth) -> tuple[list[ImageFolder], Mapping[str, str]]:
    """Return the folders that may have the images, and the ``imagePath`` of each image.

    Paths are relative to the folder of the ground truth, or to its parent: ``../images/a.jpg``
    becomes ``images/a.jpg``, because no file outside a folder is opened.
    """
    folders: dict[str, ImageFolder] = {}
    for source in ground_truth.files:
        base = source.path if source.members else os.path.dirname(source.path)
        parent = os.path.dirname(os.path.abspath(base))
        for name, root in ((".", base), (os.pardir, parent), ("../images", parent)):
            path = os.path.normpath(os.path.join(base, name))
            folders.setdefault(path, ImageFolder(path, os.path.realpath(root)))
    return list(folders.values()), _ImagePaths(ground_truth)


class _ImagePaths(Mapping[str, str]):
    """The ``imagePath`` by image; a file is read when its image is requested."""

    def __init__(self, ground_truth: GroundTruth) -> None:
        self._files = {str(image): files for image, *files in _files(ground_truth)}

    def __getitem__(self, image: str) -> str:
        file, below = self._files[image]
        path = _record(file, DEFAULT_LIMITS).get("imagePath")
        if not isinstance(path, str):
            raise KeyError(image)
        joined = posixpath.join(posixpath.dirname(below), path.replace("\\", "/").lstrip("/"))
        return posixpath.normpath("/" + _without_parents(joined)).lstrip("/")

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _without_parents(path: str) -> str:
    return posixpath.normpath(path).removeprefix("../")


def _records(truth: GroundTruth) -> Iterator[tuple[Name, dict[str, Any]]]:
    """Yield each known image and the content of its file, read again."""
    for image, file, _ in _files(truth):
        yield image, _record(file, DEFAULT_LIMITS)


def _files(truth: GroundTruth) -> Iterator[tuple[Name, str, str]]:
    """Yield each known image, its file, and the file relative to the folder."""
    known = {str(image): image for image in truth.images}
    for source in truth.files:
        for member in source.members or (os.path.basename(source.path),):
            image = name_of_member(member, known)
            if image is not None:
                file = os.path.join(source.path, member) if source.members else source.path
                yield known[image], file, member


def _record(file: str, limits: Limits) -> dict[str, Any]:
    return parsed(read_bytes(file, limits), file, Problems(1), limits)[0] or {}
