"""What images are called where two formats meet: by the stems of their files."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from detap.errors import InputError, Problem
from detap.tables.detection import Detections, GroundTruth, Name

_IMAGE = re.compile(r"\.(?:jpe?g|png|bmp|gif|webp|tiff?|jp2|mpo|dng|heic|avif|pfm|ppm)$", re.I)


def without_suffix(name: str) -> str:
    """Return a file's name without the suffix of an image, which alone is cut.

    ``a.b.jpg`` is ``a.b``, and stays that.
    """
    return _IMAGE.sub("", name)


def base_name(path: str) -> str:
    """Return the name of a file without its folder, whatever system wrote it."""
    return path.replace("\\", "/").rpartition("/")[2]


def by_stem(truth: GroundTruth, file_names: Mapping[Name, str]) -> GroundTruth:
    """Return ground truth whose images are called by the stems of their files, classes by name.

    Folders count where stems do not tell images apart. Numbers stay the same.

    Parameters
    ----------
    truth : GroundTruth
    file_names : mapping of id to str
        The file of each image; one that is absent is called by its file already.

    Raises
    ------
    InputError
        Where two images have a file of the same name.
    """
    files = [str(file_names.get(name, name)).replace("\\", "/") for name in truth.images]
    whole = [without_suffix(name) for name in files]
    stems = [name.rpartition("/")[2] for name in whole]
    for names in (stems, whole, files):
        if len(set(names)) == len(names):
            return replace(truth, images=tuple(names), class_ids=truth.classes)
    raise _alike(truth, files)


def _alike(truth: GroundTruth, files: Sequence[str]) -> InputError:
    name = Counter(files).most_common(1)[0][0]
    path = truth.files[0].path if truth.files else truth.format
    message = f"has several images of the file {name!r}, so that detections of another format "
    message += "cannot be told apart, which go by the names of files"
    return InputError(Problem(path, "", message, "give every image a file_name of its own"))


def restored(found: Detections, truth: GroundTruth) -> Detections:
    """Return detections whose images and classes are called as the ground truth calls them."""
    strangers = found.class_ids[len(truth.class_ids) :]
    return replace(found, images=truth.images, class_ids=truth.class_ids + strangers)
