"""Image sizes for files with normalized boxes: from options, else from image headers."""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Problem, UsageError
from detap.formats.reading.image_headers import image_size as size_of_file
from detap.formats.reading.image_sizes import read_image_sizes, sizes_of
from detap.formats.yolo.dataset import DataSet
from detap.io.limits import Limits
from detap.io.paths import Path, SourceFile
from detap.tables.detection import Floats, Integers, Name
from detap.tables.notes import INSIST
from detap.text_input import quote

Size = str | tuple[float, float]

_SIZE = re.compile(r"([1-9][0-9]{0,8})[xX]([1-9][0-9]{0,8})")
_SAMPLED = 16


class GivenSizes(NamedTuple):
    """Image sizes from options: one for all images (``"640x480"``), or a table by stem.

    `source` is the table's file, if there is one.
    """

    size: tuple[float, float]
    table: dict[str, tuple[int, int]]
    source: tuple[SourceFile, ...]

    @classmethod
    def read(
        cls, image_size: Size | None, image_sizes: Path | None, limits: Limits
    ) -> "GivenSizes":
        """Return the sizes of the two options, at most one of which is given."""
        if image_sizes is None:
            size = (np.nan, np.nan) if image_size is None else _parsed(image_size)
            return cls(size, {}, ())
        if image_size is not None:
            raise UsageError("use either --image-size or --image-sizes, not both")
        table = read_image_sizes(image_sizes, limits)
        return cls((np.nan, np.nan), table, (SourceFile(str(image_sizes), len(table)),))

    def of(self, images: Sequence[Name]) -> Floats:
        """Return the width and height of images, (I, 2), NaN if unknown."""
        return sizes_of(images, self.table) if self.table else np.tile(self.size, (len(images), 1))

    def check_against(self, other: Floats, images: Sequence[Name], path: str, source: str) -> None:
        """Raise InputError if other sizes (I, 2), those of `path`, differ."""
        sizes = self.of(images)
        wrong = (sizes != other) & ~np.isnan(sizes) & ~np.isnan(other)
        differing = np.flatnonzero(wrong.any(axis=1))
        if not len(differing):
            return
        first = differing[0]
        given, actual = ("{:g}x{:g}".format(*table[first]) for table in (sizes, other))
        swapped = (sizes[differing] == other[differing][:, ::-1]).all()
        looks = ": width and height look swapped" if swapped else ""
        origin = self.source[0].path if self.source else "--image-size"
        message = f"image {quote(str(images[first]))} is {actual} {source}, but {given} in {origin}"
        raise InputError(Problem(path, "", f"{message}{looks}", f"correct {origin}, or omit it"))


def _parsed(size: Size) -> tuple[float, float]:
    if not isinstance(size, str):
        width, height = size
        if not (0 < width < 1e9 and 0 < height < 1e9):
            raise UsageError(f"image_size {size!r} is not a width and height in pixels")
        return float(width), float(height)
    match = _SIZE.fullmatch(size)
    if match is None:
        usage = "use WIDTHxHEIGHT, e.g. 640x480"
        raise UsageError(f"--image-size {quote(size)} is not a size; {usage}")
    return float(match[1]), float(match[2])


def sizes_of_images(
    data_set: DataSet, given: GivenSizes, required: Integers, *, as_is: bool
) -> Floats:
    """Return the size (I, 2) of each image: as given, else from its header.

    Raise InputError if the size of a `required` image is unknown, or a table differs from the
    files.
    """
    sizes = given.of(data_set.images)
    problems: dict[int, Problem] = {}
    for image in np.flatnonzero(np.isnan(sizes[:, 0])).tolist():
        if data_set.image_files[image]:
            try:
                sizes[image] = size_of_file(data_set.image_files[image])
            except InputError as error:
                problems[image] = error.problems[0]
    if given.source and not as_is:
        _check_sample(data_set, given)
    unknown = np.unique(required[np.isnan(sizes[required, 0])])
    if listed := [problems[image] for image in unknown.tolist() if image in problems]:
        raise InputError(listed)
    first_hint = "put images next to their labels (labels/x.txt, images/x.jpg), or "
    refuse_unknown(unknown, data_set.images, data_set.folder.given, first_hint)
    return sizes


def _check_sample(data_set: DataSet, given: GivenSizes) -> None:
    """Compare a table with the sizes of a sample of image files."""
    existing = [image for image, path in enumerate(data_set.image_files) if path]
    sampled = existing[:: max(1, len(existing) // _SAMPLED)]
    other = np.full((len(data_set.images), 2), np.nan)
    for image in sampled:
        try:
            other[image] = size_of_file(data_set.image_files[image])
        except InputError:
            continue  # the table has the size
    path = data_set.image_files[sampled[0]] if sampled else ""
    source = f"in its file (if the table is right, pass {INSIST})"
    given.check_against(other, data_set.images, os.path.dirname(path), source)


def refuse_unknown(
    unknown: NDArray[np.integer], images: Sequence[Name], path: str, first_hint: str = ""
) -> None:
    """Raise InputError for images of unknown size; `first_hint` precedes the hint."""
    if len(unknown):
        others = f" (and {len(unknown) - 1} others)" if len(unknown) > 1 else ""
        name = quote(str(images[int(unknown[0])]))
        message = f"unknown size of image {name}{others}, required for normalized boxes"
        hint = (
            f"{first_hint}pass --image-sizes FILE (image,width,height), or --image-size WxH if "
            "all are equal"
        )
        raise InputError(Problem(path, "", message, hint))
