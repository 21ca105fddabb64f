"""Read LabelMe's JSON files."""

import os
from typing import Any

from detap.errors import InputError, Note
from detap.formats.by_name.notes import files_skipped, nonzero_notes
from detap.formats.by_name.objects import detections
from detap.formats.labelme.shapes import Shapes
from detap.formats.text.folder import Folder, nested_files_of, one_file
from detap.io.digest import read_hashed
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path
from detap.io.stream import refuse
from detap.tables.detection import Detections, GroundTruth, SourceFile


def read_ground_truth(
    path: Path,
    *,
    shapes: str = "reject",
    attribute_flags: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of a folder of LabelMe's JSON files.

    The name of an image is its JSON's file name without the suffix, even if ``imagePath`` differs;
    two of the same name have their folders.
    A rectangle has two corners, in any order, or four. The flag ``difficult`` of a shape makes it
    difficult. ``imageData`` is ignored.

    Parameters
    ----------
    path : str or path
        A folder, read with its sub-folders, or one file. Other files are skipped.
    shapes : {"reject", "bbox"}
        Reject shapes other than rectangles, or read their bounding boxes and those of rotated
        rectangles, which protocols that compare boxes require.
    attribute_flags : str, optional
        Further flags of shapes to use: ``"iscrowd"``, ``"hard=difficult"``.
    as_is : bool
        Accept boxes that look normalized.
    limits : Limits
        Limits on the input size.

    Returns
    -------
    GroundTruth
        Images and classes sorted by name, rows in the order of images and file.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    """
    flags = f"difficult,{attribute_flags or ''}"
    reader = _Reader(path, limits, shapes, flags, scored=False, as_is=as_is)
    missing = f"shapes in its {len(reader.images)} JSON files"
    return reader.ground_truth(missing, reader.sources(), reader.notes())


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    shapes: str = "reject",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections from LabelMe's files whose shapes have a ``score``.

    LabelMe writes none; X-AnyLabeling writes them for detections.

    Parameters
    ----------
    path, shapes, as_is, limits
        As in :func:`read_ground_truth`.
    ground_truth : GroundTruth
        The ground truth, for its images and classes.

    Returns
    -------
    Detections
        Numbered as `ground_truth`; classes that it lacks follow, sorted by name.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    """
    reader = _Reader(path, limits, shapes, scored=True, as_is=as_is)
    notes = (*reader.flags.notes(), *nonzero_notes(*reader.notes()))
    return detections(reader.objects(), ground_truth, reader, reader.sources(), notes)


def folder_of(path: Path) -> Folder:
    """Return the JSON files of a folder, or a single file."""
    text = os.fspath(path)
    if text == STDIN:
        refuse(text, "cannot provide LabelMe's files: file names are needed", "use a folder")
    folder = one_file(text) or nested_files_of(text, "", ".json")
    if not folder.members:
        refuse(text, "no LabelMe files: no file ends with .json", "use the folder with the files")
    return folder


class _Reader(Shapes):
    """Reader of a folder's files."""

    def __init__(
        self, path: Path, limits: Limits, shapes: str, flags: str | None = None, **how: Any
    ) -> None:
        super().__init__(os.fspath(path), limits, shapes, flags, **how)
        self.folder = folder_of(path)
        self.members = tuple(self.folder.members.values())
        for number, (stem, member) in enumerate(self.folder.members.items()):
            file = self.folder.file(member)
            try:
                data, digest = read_hashed(file, limits)
            except InputError as error:
                self.problems.extend(*error.problems)
            else:
                if digest:
                    self.folder.digests[number] = digest
                self.read(data, file, stem)
            if self.too_many():
                break
        self.problems.raise_any()

    def location(self, row: int) -> tuple[str, str]:
        """Return the file of a box and the index of its shape."""
        return self.folder.file(self.members[self.file[row]]), f"shapes[{self.positions[row]}]"

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the input sources."""
        return (self.folder.source(self.members, len(self)),)

    def notes(self) -> tuple[Note, ...]:
        """Return notes about the files."""
        message = "imagePath differs from the file name; the file name is used"
        return (
            files_skipped(self.folder.skipped, "annotations"),
            Note("image-path-of-other-name", message, self.other_names, severity="info"),
        )
