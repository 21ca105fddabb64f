"""Match images of two formats by file stem."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from detap.errors import InputError, Problem
from detap.tables.columns import ordered
from detap.tables.detection import Detections, GroundTruth, Name

_IMAGE = re.compile(r"\.(?:jpe?g|jpe|png|bmp|gif|webp|tiff?|jp2|mpo|dng|heic|avif|pfm|ppm)$", re.I)


def without_suffix(name: str) -> str:
    """Remove the suffix of an image file: ``a.b.jpg`` becomes ``a.b``."""
    return _IMAGE.sub("", name)


def base_name(path: str) -> str:
    """Return the file name of a POSIX or Windows path."""
    return path.replace("\\", "/").rpartition("/")[2]


def stem_of(path: str) -> str:
    """Return the file name of a path without the suffix of an image."""
    return without_suffix(base_name(path))


class ImageNames:
    """Images by id, and by file name with or without folder and suffix."""

    def __init__(self, images: Sequence[Name], file_names: Mapping[Name, str]) -> None:
        self.names = [str(file_names.get(name, name)) for name in images]
        self._by_id: dict[Name, int] = {str(name): row for row, name in enumerate(images)}
        self._by_id |= {name: row for row, name in enumerate(images)}
        self._by_file: dict[str, int] = {}
        for forms in zip(*map(_forms, self.names), strict=True):
            counts = Counter(forms)
            for row, form in enumerate(forms):
                if counts[form] == 1:
                    self._by_file.setdefault(form, row)

    def find(self, image: Name) -> int:
        """Return the index of an id or file name; -1 if it is unknown or not clear."""
        row = self._by_id.get(image, -1)
        row = self.find_file(str(image)) if row < 0 else row
        return self._by_id.get(_forms(str(image))[-1], -1) if row < 0 else row

    def find_file(self, name: str) -> int:
        """Return the index of a file name, -1 if it is unknown or not clear."""
        return next((self._by_file[form] for form in _forms(name) if form in self._by_file), -1)


def _forms(name: str) -> tuple[str, ...]:
    """Return a name, and without suffix, without folder, and without both."""
    name = name.replace("\\", "/")
    base = base_name(name)
    return name, without_suffix(name), base, stem_of(name)


def by_stem(ground_truth: GroundTruth, file_names: Mapping[Name, str]) -> GroundTruth:
    """Replace image ids by file stems and class ids by class names."""
    files = [str(file_names.get(name, name)).replace("\\", "/") for name in ground_truth.images]
    paths = [without_suffix(name) for name in files]
    stems = [name.rpartition("/")[2] for name in paths]
    for names in (stems, paths, files):
        if len(set(names)) == len(names):
            return replace(ground_truth, images=tuple(names), class_ids=ground_truth.classes)
    name = Counter(files).most_common(1)[0][0]
    path = ground_truth.files[0].path if ground_truth.files else ground_truth.format
    message = f"several images have the file {name!r}, so files of another format cannot be matched"
    raise InputError(Problem(path, "", message, "give each image a unique file_name"))


def restore_ids(detections: Detections, ground_truth: GroundTruth) -> Detections:
    """Replace file stems and class names by the ids of the ground truth."""
    known = len(ground_truth.class_ids)
    return replace(
        detections,
        images=ground_truth.images,
        classes=ground_truth.classes + detections.classes[known:],
        class_ids=ground_truth.class_ids + detections.class_ids[known:],
    )


def empty_ground_truth(
    images: Iterable[Name],
    classes: Iterable[Name],
    class_names: Mapping[Name, str] = MappingProxyType({}),
) -> GroundTruth:
    """Return a ground truth without boxes; ids name classes without a name."""
    return GroundTruth.from_arrays(
        image=(),
        label=(),
        boxes=np.zeros((0, 4)),
        images=ordered(images),
        classes={name: class_names.get(name, str(name)) for name in ordered(classes)},
    )
