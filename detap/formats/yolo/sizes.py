"""How large images are, of which files give fractions only."""

import os
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Problem, UsageError
from detap.formats.reading.image_headers import image_size as size_of_file
from detap.formats.reading.image_sizes import read_image_sizes, sizes_of
from detap.formats.yolo.dataset import DataSet
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.tables.detection import Floats, Integers, Name, SourceFile
from detap.tables.notes import INSIST
from detap.text_input import quote

Size = str | tuple[float, float]

_SIZE = re.compile(r"([1-9][0-9]{0,8})[xX]([1-9][0-9]{0,8})")
_LOOKED_AT = 16


class GivenSizes:
    """What the caller says of sizes: one of all images, or a table.

    Parameters
    ----------
    images : sequence of int or str
        What I images are called.
    image_size : str or (float, float) or None
        Width and height of every image; ``"640x480"``.
    image_sizes : str or path or None
        A table of them.
    limits : Limits

    Attributes
    ----------
    sizes : (I, 2) float64
        NaN where nothing is said.
    source : tuple of SourceFile
        The table, if there is one.

    Raises
    ------
    InputError, UsageError
    """

    def __init__(
        self,
        images: Sequence[Name],
        image_size: Size | None,
        image_sizes: Path | None,
        limits: Limits,
    ) -> None:
        self.sizes: Floats = np.full((len(images), 2), np.nan)
        self.source: tuple[SourceFile, ...] = ()
        if image_size is not None and image_sizes is not None:
            raise UsageError("--image-size is of all images, --image-sizes of each: give one")
        if image_size is not None:
            self.sizes[:] = _parsed(image_size)
        if image_sizes is not None:
            table = read_image_sizes(image_sizes, limits)
            self.source = (SourceFile(str(image_sizes), len(table)),)
            self.sizes = sizes_of(images, table)

    @property
    def name(self) -> str:
        """What says so."""
        return self.source[0].path if self.source else "--image-size"

    def check_against(self, other: Floats, images: Sequence[Name], path: str, where: str) -> None:
        """Refuse sizes that contradict others (I, 2), which are those of `path`.

        Raises
        ------
        InputError
        """
        wrong = (self.sizes != other) & ~np.isnan(self.sizes) & ~np.isnan(other)
        at = np.flatnonzero(wrong.any(axis=1))
        if not len(at):
            return
        here, there = (_spelt(sizes[at[0]]) for sizes in (self.sizes, other))
        swapped = len(at) and (self.sizes[at] == other[at][:, ::-1]).all()
        looks = ": width and height look swapped" if swapped else ""
        name = quote(str(images[at[0]]))
        message = f"image {name} is {there} {where}, but {here} by {self.name}"
        hint = f"give sizes as they are there, or take {self.name} away"
        raise InputError(Problem(path, "", f"{message}{looks}", hint))


def _spelt(size: Floats) -> str:
    return f"{size[0]:g}x{size[1]:g}"


def _parsed(size: Size) -> tuple[float, float]:
    if not isinstance(size, str):
        width, height = size
        if not (0 < width < 1e9 and 0 < height < 1e9):
            raise UsageError(f"image_size {size!r} is no width and height in pixels")
        return float(width), float(height)
    match = _SIZE.fullmatch(size)
    if match is None:
        raise UsageError(f"--image-size {quote(size)} is no size; write WIDTHxHEIGHT, as 640x480")
    return float(match[1]), float(match[2])


def sizes_of_images(
    data_set: DataSet, given: GivenSizes, wanted: Integers, *, as_is: bool
) -> Floats:
    """Return the size of each image, (I, 2): as given, else from its file's header.

    Parameters
    ----------
    data_set : DataSet
    given : GivenSizes
    wanted : (n,) int32
        The images that need one.
    as_is : bool
        Whether a table may contradict the files.

    Raises
    ------
    InputError
        Where an image that needs a size has none, or a table contradicts the files.
    """
    sizes = given.sizes.copy()
    faults: dict[int, Problem] = {}
    for at in np.flatnonzero(np.isnan(sizes[:, 0])).tolist():
        if data_set.image_files[at]:
            try:
                sizes[at] = size_of_file(data_set.image_files[at])
            except InputError as error:
                faults[at] = error.problems[0]
    if given.source and not as_is:
        _check_sample(data_set, given)
    unknown = np.unique(wanted[np.isnan(sizes[wanted, 0])]) if len(wanted) else wanted
    listed = [faults[at] for at in unknown.tolist() if at in faults]
    if listed:
        raise InputError(listed)
    beside = "keep the images where their labels say (labels/x.txt, images/x.jpg), or "
    refuse_unknown(unknown, data_set.images, data_set.folder.given, beside)
    return sizes


def _check_sample(data_set: DataSet, given: GivenSizes) -> None:
    """See whether some of the images that are there are as large as a table says."""
    there = [at for at, path in enumerate(data_set.image_files) if path]
    looked_at = there[:: max(1, len(there) // _LOOKED_AT)]
    other = np.full_like(given.sizes, np.nan)
    for at in looked_at:
        try:
            other[at] = size_of_file(data_set.image_files[at])
        except InputError:
            continue  # the table says what the file does not
    path = data_set.image_files[looked_at[0]] if looked_at else ""
    where = f"by its file; if the table is right, give {INSIST}"
    given.check_against(other, data_set.images, os.path.dirname(path), where)


def refuse_unknown(
    at: NDArray[np.integer], images: Sequence[Name], path: str, first: str = ""
) -> None:
    """Refuse images whose size is not known; `first` is the remedy before the others.

    Raises
    ------
    InputError
    """
    if len(at):
        others = f", nor those of {len(at) - 1} others" if len(at) > 1 else ""
        message = f"the size of image {quote(str(images[int(at[0])]))} is not known{others}: "
        raise InputError(
            Problem(
                path,
                "",
                f"{message}boxes in fractions mean nothing without",
                f"{first}give --image-sizes FILE (image,width,height), or --image-size WxH if all "
                "are alike",
            )
        )
