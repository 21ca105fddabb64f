"""Folders that may have the images of a ground truth."""

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from detap.io.paths import is_url
from detap.tables.detection import GroundTruth


class ImageFolder(NamedTuple):
    """A folder of image files; links out of `root` are not followed, if it is given."""

    path: str
    root: str = ""


def nearby_folders(ground_truth: GroundTruth, relative: Iterable[str] = ()) -> list[ImageFolder]:
    """Return the folders that may have the images, existing or not.

    Links out of the folder of the annotations are not followed, for folders above it links out of
    its parent. By default, they are for ``instances_val2017.json`` its folder and the parent, their
    ``images``, and the folders in these that are named by a part of the file name (``val2017``).
    """
    relative = tuple(relative)
    sources = [source for source in ground_truth.files if not is_url(source.path)]
    folders: dict[str, ImageFolder] = {}
    for source in [source for source in sources if source.members] or sources:
        base = source.path
        if source.members or not os.path.isdir(base):
            base = os.path.dirname(os.path.join(base, *source.members[:1]))
        for folder in folders_at(base, relative or _near_file(source.path)):
            folders.setdefault(folder.path, folder)
    return list(folders.values())


def folders_at(base: str, relative: Iterable[str]) -> Iterator[ImageFolder]:
    """Yield folders relative to that of the annotations."""
    parent = os.path.dirname(os.path.abspath(base))
    for name in relative:
        root = os.path.realpath(parent if name.startswith(os.pardir) else base)
        yield ImageFolder(os.path.normpath(os.path.join(base, name)), root)


def _near_file(path: str) -> Iterator[str]:
    stem = os.path.splitext(os.path.basename(path).removesuffix(".gz"))[0]
    parts = reversed([*re.finditer(r"[^_.-]+", stem)])
    subsets = dict.fromkeys(name for part in parts for name in (part[0], stem[part.start() :]))
    for subset in ("", *subsets):
        for folder in ("", "images", os.pardir, "../images"):
            yield os.path.join(folder, subset)
