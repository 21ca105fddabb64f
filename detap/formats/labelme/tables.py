"""LabelMe's JSON files to tables."""

import os

import numpy as np

from detap.errors import InputError, Note
from detap.formats.labelme.shapes import Shapes
from detap.formats.named import objects
from detap.formats.named.notes import images_without_objects, left_aside, told
from detap.formats.named.problems import Problems, refuse_empty
from detap.formats.named.sides import Stand
from detap.formats.shapes.flags import SHAPES, FlagNames
from detap.formats.text.folder import Folder, files_of, one_file
from detap.io.digest import read_hashed
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path
from detap.io.problems import check_choice
from detap.io.stream import refuse
from detap.tables.detection import Detections, GroundTruth, SourceFile


def read_ground_truth(
    path: Path,
    *,
    shapes: str = "boxes",
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
    shapes : {"boxes", "bounds"}
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
    read = _Read(path, shapes, attribute_flags, limits, scored=False)
    gathered = read.shapes.gathered
    what = f"shape in its {len(gathered.images)} JSON files"
    refuse_empty(read.folder.given, len(gathered), limits, what, "annotations")
    empty = images_without_objects(len(gathered.images), np.array(gathered.file))
    notes = (*read.notes(), *told(empty))
    return objects.ground_truth(
        gathered.objects(scored=False), read.stand(as_is), read.source(), notes
    )


def read_detections(
    path: Path,
    truth: GroundTruth,
    *,
    shapes: str = "boxes",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections from LabelMe's files whose shapes have a ``score``.

    LabelMe itself writes none; X-AnyLabeling does for what a model has found.

    Parameters
    ----------
    path, shapes, as_is, limits
        As :func:`read_ground_truth` has them.
    truth : GroundTruth
        What they are about: its images and classes.

    Returns
    -------
    Detections
        Numbered as `truth`; classes that it lacks are behind its own, sorted by name.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    """
    read = _Read(path, shapes, None, limits, scored=True)
    found = read.shapes.gathered.objects(scored=True)
    return objects.detections(found, truth, read.stand(as_is), read.source(), read.notes())


def folder_of(path: Path) -> Folder:
    """Return the JSON files that a path means: those of a folder, or the one file."""
    text = os.fspath(path)
    if text == STDIN:
        refuse(text, "cannot hold files of LabelMe: their names count", "give a folder")
    folder = one_file(text) or files_of(text, "", ".json")
    if not folder.members:
        refuse(text, "has no file of LabelMe: none ends with .json", "give the folder of them")
    return folder


class _Read:
    """The files of a folder, read."""

    def __init__(
        self, path: Path, shapes: str, flags: str | None, limits: Limits, *, scored: bool
    ) -> None:
        check_choice("shapes", shapes, SHAPES)
        names = FlagNames(flags if scored else f"difficult,{flags or ''}")
        problems = Problems(limits.problems)
        self.limits = limits
        self.folder = folder_of(path)
        self.members = tuple(self.folder.members.values())
        self.shapes = Shapes(problems, limits, shapes, names, scored=scored)
        for number, (stem, member) in enumerate(self.folder.members.items()):
            self._read(number, stem, self.folder.file(member), problems)
            if self.shapes.gathered.too_many(self.folder.given, problems):
                break
        problems.raise_any()

    def _read(self, number: int, stem: str, file: str, problems: Problems) -> None:
        try:
            data, digest = read_hashed(file, self.limits)
        except InputError as error:
            problems.note(*error.problems)
            return
        if digest:
            self.folder.digests[number] = digest
        self.shapes.read(data, file, stem)

    def stand(self, as_is: bool) -> Stand:
        """Return where the boxes stand."""
        return Stand(self.folder.given, self.limits, as_is, self._place)

    def _place(self, row: int) -> tuple[str, str]:
        gathered = self.shapes.gathered
        member = self.members[gathered.file[row]]
        return self.folder.file(member), f"shapes[{gathered.place[row]}]"

    def source(self) -> tuple[SourceFile, ...]:
        """Return what was read."""
        return (self.folder.source(self.members, len(self.shapes.gathered)),)

    def notes(self) -> tuple[Note, ...]:
        """Return what is to be said of the files."""
        return (
            *self.shapes.flags.notes(),
            *told(
                left_aside(self.folder.aside, "annotations"),
                Note(
                    "image-path-of-other-name",
                    "files are of an image of another name by their imagePath; the name of the "
                    "file counts",
                    self.shapes.other_names,
                    warning=False,
                ),
            ),
        )
