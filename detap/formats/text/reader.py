"""Base reader for folders of files: select files, read rows, build tables."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from detap.errors import Note
from detap.formats.by_name.notes import files_skipped, images_without_objects, nonzero_notes
from detap.formats.by_name.objects import Objects, detections, ground_truth
from detap.formats.by_name.problems import Problems, RowReader, refuse_empty
from detap.formats.text._ragged import RaggedLines
from detap.formats.text.folder import Folder, select_images
from detap.formats.text.lines import SWAPPED, LineForm, decoded
from detap.formats.text.rows import Rows, contents, used_names
from detap.io import stream as files
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.io.problems import FaultError
from detap.tables.columns import reindexed
from detap.tables.detection import Detections, Flags, GroundTruth, Integers, SourceFile
from detap.text_input import join_names


class FolderReader(RowReader):
    """Reader of a folder's files.

    A format finds the folder, defines the lines, and provides the columns of the table.

    Attributes
    ----------
    problems : Problems
        Problems of the files.
    selection : Selection
        The images and their files.
    form : LineForm
        The format of the lines, once read; XML has none.
    rows : Rows
        The rows of all files, once read.
    """

    form: LineForm
    rows: Rows
    files, content = "label files", "labels"
    """Names of the ground-truth files and their content in messages."""
    unit = "line"
    """The unit of `rows.line`."""

    def __init__(
        self, folder: Folder, as_is: bool, limits: Limits, image_set: Path | None = None
    ) -> None:
        self.folder = folder
        self.path = folder.given
        self.as_is = as_is
        self.limits = limits
        self.problems = Problems(limits.problems)
        self.selection = select_images(folder, image_set, self.problems, limits)

    def read(self, form: LineForm) -> Rows:
        """Read the rows; raise earlier problems and collect new ones."""
        self.problems.raise_any()
        self.form = form
        self.swapped = SWAPPED.format("dt" if form.scored else "gt")
        members, limits = self.selection.members, self.limits
        files_ = contents(self.folder, members, self.problems, limits)
        self.rows = read_lines(files_, form, self.problems, limits.records)
        self.check_records(len(self.rows))
        return self.rows

    def check_records(self, count: int) -> None:
        """Raise InputError for more rows than the limit."""
        if count > self.limits.records:
            files.refuse(self.folder.given, *self.limits.exceeded)

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a row."""
        member = self.selection.members[int(self.rows.file[row])]
        return self.folder.file(member), f"{self.unit} {self.rows.line[row]}"

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

        `names` has the class for each of `rows.names`, `nested` is the number of skipped objects
        inside others, and `columns` are attributes of :class:`Objects`.
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
        """Return the rows as detections; `label` (N,) indexes `names`."""
        classes = tuple(sorted(set(names)))
        objects = Objects(classes=classes, label=reindexed(label, names, classes), **columns)
        sources = (*self.sources(), *sources)
        return detections(objects, ground_truth, self, sources, nonzero_notes(*notes))


def read_lines(
    contents: Iterable[tuple[int, str, bytes]], form: LineForm, problems: Problems, most: int
) -> Rows:
    """Read the lines of files; collect problems; stop after more than `most` rows.

    `contents` has the index, path and content of each file.
    """
    lines = _Lines(form, problems)
    known = [*_encodable(form.known)]
    rows = RaggedLines(lines.read, lines.accept, known=known, **form.regular)
    for number, path, data in contents:
        lines.start(path, data)
        try:
            rows.read(lines.data, number, most)
        except FaultError as fault:
            problems.add(path, "", fault.message, fault.hint)
        if len(rows) > most:
            break
    file, line, word, flag, ends, numbers, words = rows.columns()
    names, name = used_names(word, words, form.resolve)
    return Rows(file, line, name, names, flag, numbers, ends)


def _encodable(words: Iterable[str]) -> Iterator[bytes]:
    """Yield the words that a file in UTF-8 may have."""
    for word in words:
        with suppress(UnicodeEncodeError):
            yield word.encode()


class _Lines:
    """The words of lines, and lines that are not regular, read by a form."""

    def __init__(self, form: LineForm, problems: Problems) -> None:
        self._form = form
        self._problems = problems
        self._checked = False

    def accept(self, word: bytes) -> bool:
        """Return True if a word is valid."""
        try:
            self._form.resolve(word.decode())
        except (UnicodeDecodeError, FaultError):
            return False
        return True

    def start(self, path: str, data: bytes) -> None:
        """Begin a file."""
        self._path, self._checked = path, False
        self.data = self._form.prepared(data)

    def read(self, _file: int, number: int, line: bytes) -> tuple[bytes, list[float], bool] | None:
        """Read a line; None after collecting its problem; FaultError for another kind of file."""
        if not self._checked:
            self._checked = True
            if kind := self._form.other_kind(self.data):
                usage = f"expected lines `{' '.join(self._form.columns)}`"
                raise FaultError(f"looks like {kind}", usage)
        try:
            word, numbers, flag = self._form.read_line(decoded(line))
        except FaultError as fault:
            self._problems.add(self._path, f"line {number}", fault.message, fault.hint)
            return None
        return word.encode(), numbers, flag
