"""Base reader for folders of files: select files, read rows, build tables."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from detap.errors import Note
from detap.formats.by_name.notes import files_skipped, images_without_objects, nonzero_notes
from detap.formats.by_name.objects import Objects, detections, ground_truth
from detap.formats.by_name.problems import Problems, RowReader, refuse_empty
from detap.formats.text.folder import Folder, select_images
from detap.formats.text.lines import SWAPPED, LineForm, Lines, read_lines
from detap.formats.text.rows import Rows, content, no_rows, read_fallback, scan_text
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.tables.columns import reindexed
from detap.tables.detection import Detections, Flags, GroundTruth, Integers, SourceFile
from detap.text_input import join_names


class FolderReader(RowReader):
    """Reader of a folder's files.

    A format finds the folder, defines the lines, and provides the columns of the table.

    Parameters
    ----------
    folder : Folder
    as_is : bool
        Accept input that fails a plausibility check.
    limits : Limits
        Limits on the input size.
    image_set : str or path, optional
        The images to read; by default all of the folder.

    Attributes
    ----------
    problems : Problems
        Problems of the files.
    selection : Selection
        The images and their files.
    form : LineForm or None
        The format of the lines; None for XML.
    rows : Rows
        The rows of all files, once read.
    """

    rows: Rows
    files, content = "label files", "labels"
    """Names of the ground-truth files and their content in messages."""

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
        """Read the rows; raise earlier problems and collect new ones."""
        self.problems.raise_any()
        self.form, members = form, self.selection.members
        self.swapped = SWAPPED.format("dt" if form.scored else "gt")
        if not members:
            self.rows = no_rows(len(form.columns) - 1)
            return self.rows
        self.rows, fallback = scan_text(self.folder, form, members, self.limits)

        def read(data: bytes, file: str, _: int) -> Lines:
            return read_lines(data, file, form, self.problems)

        if fallback:
            self.rows = read_fallback(
                self.folder,
                members,
                fallback,
                read,
                scanned=self.rows,
                problems=self.problems,
                limits=self.limits,
            )
        return self.rows

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a row; the last file read is cached."""
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

    def raise_problems(self, checks: Iterable[tuple[Flags, str]]) -> None:
        """Raise InputError with all problems and the rows (N,) that fail a check."""
        for flags, message in checks:
            for row in np.flatnonzero(flags).tolist():
                self.problems.add(*self.location(row), message, "correct the line")
        self.problems.raise_any()

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the image files and the image set as input sources."""
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
            The class for each of `rows.names`.
        nested : int
            Number of skipped objects inside others.
        sources, notes
            Further sources and notes.
        **columns
            The other attributes of :class:`Objects`.

        Raises
        ------
        InputError
            If there are no rows, or too many boxes have negative size.
        """
        rows, selection = self.rows, self.selection
        missing = f"objects in its {len(selection.images)} {self.files}"
        refuse_empty(self.path, len(rows), self.limits, missing, self.content)
        classes = tuple(sorted(set(names)))
        label = reindexed(rows.name, names, classes)
        objects = Objects(selection.images, classes, rows.file, label, **columns)
        repeated = "image set lines repeat an image, which counts once: "
        notes = nonzero_notes(
            Note(
                "images-listed-twice",
                repeated + join_names(selection.repeated),
                len(selection.repeated),
            ),
            files_skipped(self.folder.skipped, "annotations"),
            Note("nested-objects", "object elements inside others are skipped", nested),
            images_without_objects(len(selection.images), rows.file),
            *notes,
        )
        return ground_truth(objects, self, (*self.sources(), *sources), notes)

    def detections(
        self,
        ground_truth: GroundTruth,
        label: Integers,
        names: Sequence[str],
        *,
        sources: tuple[SourceFile, ...] = (),
        notes: Iterable[Note] = (),
        **columns: Any,
    ) -> Detections:
        """Return the rows as detections.

        `label` (N,) indexes `names`; the others are as in :meth:`ground_truth`.
        """
        classes = tuple(sorted(set(names)))
        objects = Objects(classes=classes, label=reindexed(label, names, classes), **columns)
        sources = (*self.sources(), *sources)
        return detections(objects, ground_truth, self, sources, nonzero_notes(*notes))
