"""LabelMe's JSON files to tables."""

import os

from detap.errors import InputError, Note
from detap.formats.by_name.notes import files_skipped, nonzero_notes
from detap.formats.by_name.objects import detections
from detap.formats.labelme.shapes import Shapes
from detap.formats.text.folder import Folder, files_of, one_file
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

    An image is called by its JSON's name without the suffix, whatever ``imagePath`` says. A
    rectangle is two corners, in any order, or all four. ``flags.difficult`` of a shape makes it
    difficult. ``imageData`` is left alone.

    Parameters
    ----------
    path : str or path
        A folder, or one file. Files of other kinds and sub-folders are left aside.
    shapes : {"reject", "bbox"}
        Whether a shape that is no upright rectangle is an error, or its bounds are its box.
    attribute_flags : str, optional
        Other flags of a shape that are flags here: ``"iscrowd"``, ``"hard=difficult"``.
    as_is : bool
        Whether boxes that look like fractions of the image's size are taken for pixels.
    limits : Limits
        What is accepted at most.

    Returns
    -------
    GroundTruth
        Images and classes sorted by name, rows in the order of the images, and of the file within.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    """
    flags = f"difficult,{attribute_flags or ''}"
    read = _Reader(path, limits, shapes, flags, scored=False, as_is=as_is)
    what = f"shapes in its {len(read.images)} JSON files"
    return read.ground_truth(what, read.sources(), read.notes())


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    shapes: str = "reject",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections from LabelMe's files whose shapes have a ``score``.

    LabelMe itself writes none; X-AnyLabeling does for what a model has found.

    Parameters
    ----------
    path, shapes, as_is, limits
        As :func:`read_ground_truth` has them.
    ground_truth : GroundTruth
        What they are about: its images and classes.

    Returns
    -------
    Detections
        Numbered as `ground_truth`; classes that it lacks are behind its own, sorted by name.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    """
    read = _Reader(path, limits, shapes, scored=True, as_is=as_is)
    notes = (*read.flags.notes(), *nonzero_notes(*read.notes()))
    return detections(read.objects(), ground_truth, read, read.sources(), notes)


def folder_of(path: Path) -> Folder:
    """Return the JSON files that a path means: those of a folder, or the one file."""
    text = os.fspath(path)
    if text == STDIN:
        refuse(text, "cannot provide LabelMe's files: file names are needed", "use a folder")
    folder = one_file(text) or files_of(text, "", ".json")
    if not folder.members:
        refuse(text, "has no file of LabelMe: none ends with .json", "give the folder of them")
    return folder


class _Reader(Shapes):
    """The files of a folder, read."""

    def __init__(
        self, path: Path, limits: Limits, shapes: str, flags: str | None = None, **how: bool
    ) -> None:
        super().__init__(os.fspath(path), limits, shapes, flags, **how)
        self.folder = folder_of(path)
        self.members = tuple(self.folder.members.values())
        for number, (stem, member) in enumerate(self.folder.members.items()):
            file = self.folder.file(member)
            try:
                data, digest = read_hashed(file, limits)
            except InputError as error:
                self.problems.note(*error.problems)
            else:
                if digest:
                    self.folder.digests[number] = digest
                self.read(data, file, stem)
            if self.too_many():
                break
        self.problems.raise_any()

    def location(self, row: int) -> tuple[str, str]:
        """Return the file of a box, and the number of its shape."""
        return self.folder.file(self.members[self.file[row]]), f"shapes[{self.positions[row]}]"

    def sources(self) -> tuple[SourceFile, ...]:
        """Return what was read."""
        return (self.folder.source(self.members, len(self)),)

    def notes(self) -> tuple[Note, ...]:
        """Return what is to be said of the files."""
        message = (
            "files are of an image of another name by their imagePath; the name of the file counts"
        )
        return (
            files_skipped(self.folder.skipped, "annotations"),
            Note("image-path-of-other-name", message, self.other_names, severity="info"),
        )
