"""The steps that formats of a folder share: select files, read them, make tables of the rows."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from detap.errors import Note
from detap.formats.by_name.notes import images_without_objects, left_aside, told
from detap.formats.by_name.objects import Objects, detections, ground_truth
from detap.formats.by_name.problems import Problems, RowReader, refuse_empty
from detap.formats.text.folder import Folder, select_images
from detap.formats.text.lines import SWAPPED, LineForm, Lines, read_lines
from detap.formats.text.rows import Rows, content, no_rows, scan_text, with_care
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.tables.columns import renumbered
from detap.tables.detection import Detections, Flags, GroundTruth, Integers, SourceFile
from detap.text_input import join_names


class FolderReader(RowReader):
    """Reads the files of a folder, and makes a table of their rows.

    A format finds the folder, says what a line is, and hands over the columns of the table.

    Parameters
    ----------
    folder : Folder
    as_is : bool
        Whether what only looks wrong is taken as it is.
    limits : Limits
        What is accepted at most.
    image_set : str or path, optional
        Which images are read: all of the folder where left out.

    Attributes
    ----------
    problems : Problems
        What is wrong with the files.
    selection : Selection
        The images, and their files in the order of their numbers.
    form : LineForm or None
        What the lines are; None for XML.
    rows : Rows
        Those of all files, once they are read.
    """

    rows: Rows
    files, of = "files of labels", "labels"
    """What messages call the files of ground truth, and what they are files of."""

    def __init__(
        self, folder: Folder, as_is: bool, limits: Limits, image_set: Path | None = None
    ) -> None:
        self.folder = folder
        self.path = folder.given
        self.as_is = as_is
        self.limits = limits
        self.problems = Problems(limits.problems)
        self.selection = select_images(folder, image_set, self.problems, limits)
        self.form: LineForm | None = None
        self._lines: tuple[int, list[int]] = (-1, [])

    def read(self, form: LineForm) -> Rows:
        """Read the rows, whose lines are of a form; raise earlier problems, and add those of it."""
        self.problems.raise_any()
        self.form, members = form, self.selection.members
        self.swapped = SWAPPED.format("dt" if form.scored else "gt")
        if not members:
            self.rows = no_rows(len(form.columns) - 1)
            return self.rows
        self.rows, declined = scan_text(self.folder, form, members, self.limits)

        def read(data: bytes, file: str, _: int) -> Lines:
            return read_lines(data, file, form, self.problems)

        if declined:
            self.rows = with_care(
                self.folder,
                members,
                declined,
                read,
                scanned=self.rows,
                problems=self.problems,
                limits=self.limits,
            )
        return self.rows

    def location(self, row: int) -> tuple[str, str]:
        """Return the file of a row, and its line there; the last such file is not read twice."""
        number = int(self.rows.file[row])
        file = self.folder.file(self.selection.members[number])
        record = row - int(np.searchsorted(self.rows.file, number))
        if self.form is None:
            return file, f"object {record + 1}"
        if number != self._lines[0]:
            problems = Problems(1)
            data = content(file, problems, self.limits) or b""
            self._lines = number, read_lines(data, file, self.form, problems).location
        lines = self._lines[1]
        return file, f"line {lines[record]}" if record < len(lines) else ""

    def refuse(self, faults: Iterable[tuple[Flags, str]]) -> None:
        """Raise InputError with all problems, those of rows (N,) that have a fault among them."""
        for flags, message in faults:
            for row in np.flatnonzero(flags).tolist():
                self.problems.add(*self.location(row), message, "correct the line")
        self.problems.raise_any()

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the files of the images, and the image set, as inputs."""
        chosen, members = self.selection, self.selection.members
        read = (self.folder.source(members, len(self.rows)),) if members else ()
        return (*read, *((SourceFile(chosen.file, chosen.records),) if chosen.file else ()))

    def ground_truth(
        self,
        names: Sequence[str],
        *,
        nested: int = 0,
        sources: tuple[SourceFile, ...] = (),
        notes: tuple[Note, ...] = (),
        **columns: Any,
    ) -> GroundTruth:
        """Return the rows as ground truth.

        Parameters
        ----------
        names : sequence of str
            The class that each of `rows.names` means.
        nested : int
            How many objects inside others are left aside.
        sources, notes
            What else was read, and is to be said.
        **columns
            The other attributes of :class:`Objects`.

        Raises
        ------
        InputError
            Where there is no row, or too many boxes end before they begin.
        """
        rows, selection = self.rows, self.selection
        what = f"object in its {len(selection.images)} {self.files}"
        refuse_empty(self.path, len(rows), self.limits, what, self.of)
        classes = tuple(sorted(set(names)))
        label = renumbered(rows.name, names, classes)
        objects = Objects(selection.images, classes, rows.file, label, **columns)
        twice = "lines of the image set repeat an image, which counts once: "
        found = told(
            Note(
                "images-listed-twice",
                twice + join_names(selection.repeated),
                len(selection.repeated),
            ),
            left_aside(self.folder.aside, "annotations"),
            Note("nested-objects", "object elements inside others are left aside", nested),
            images_without_objects(len(selection.images), rows.file),
            *notes,
        )
        return ground_truth(objects, self, (*self.sources(), *sources), found)

    def detections(
        self,
        truth: GroundTruth,
        label: Integers,
        names: Sequence[str],
        *,
        sources: tuple[SourceFile, ...] = (),
        notes: Iterable[Note] = (),
        **columns: Any,
    ) -> Detections:
        """Return the rows as detections; `label` (N,) is which of `names` the class of each is.

        All else is as :meth:`ground_truth` has it.
        """
        classes = tuple(sorted(set(names)))
        objects = Objects(classes=classes, label=renumbered(label, names, classes), **columns)
        sources = (*self.sources(), *sources)
        return detections(objects, truth, self, sources, told(*notes))
