"""Read the rows of folders of text files, and build tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note
from detap.formats.by_name.notes import files_skipped, images_without_objects, nonzero_notes
from detap.formats.by_name.objects import Objects, detections, ground_truth
from detap.formats.by_name.problems import RowReader, refuse_empty
from detap.formats.text._ragged import RaggedLines, RowColumns
from detap.formats.text.folder import Folder, contents, select_images
from detap.formats.text.lines import SWAPPED, LineForm, decoded
from detap.io import stream as files
from detap.io.limits import Limits
from detap.io.paths import Path, SourceFile
from detap.io.problems import FaultError, Problems
from detap.tables.columns import check_scores, reindexed
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Integers
from detap.text_input import join_names


@dataclass(slots=True)
class Rows:
    """The rows of all files, in order.

    Each has its file, its line in that (from 1) or object, the index of its word in `names`, a
    flag, and the end of its numbers in `numbers` (P,).
    """

    file: Integers
    line: Integers
    name: Integers
    names: tuple[str, ...]
    flag: Flags
    numbers: Floats
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, scanned: RowColumns, resolve: Callable[[str], str]) -> "Rows":
        """Return the rows of a scanner, with their words resolved."""
        file, line, word, flag, ends, numbers, words = scanned.columns()
        names, name = used_names(word, words, resolve)
        return cls(file, line, name, names, flag != 0, numbers, ends)

    def __len__(self) -> int:
        return len(self.file)

    def table(self, width: int) -> Floats:
        """Return the numbers as (N, width), if each row has as many."""
        return self.numbers.reshape(-1, width)

    def without_last(self, flags: Flags) -> "Rows":
        """Return the rows without the last number of those flagged (N,)."""
        kept = np.ones(len(self.numbers), np.bool_)
        kept[self.ends[flags] - 1] = False
        ends = self.ends - np.cumsum(flags)
        return replace(self, numbers=self.numbers[kept], ends=ends)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of numbers of each row, (N,)."""
        return np.diff(self.ends, prepend=0)

    @property
    def last(self) -> Floats:
        """The last number of each row, (N,)."""
        return self.numbers[self.ends - 1]


def used_names(
    name: Integers, words: Sequence[bytes], resolve: Callable[[str], str]
) -> tuple[tuple[str, ...], Integers]:
    """Return the resolved names that rows use, and their index (N,)."""
    used = np.flatnonzero(np.bincount(name, minlength=len(words)))
    resolved = [resolve(words[index].decode()) for index in used.tolist()]
    numbers: dict[str, int] = {}
    new_index = np.zeros(len(words), np.int32)
    new_index[used] = [numbers.setdefault(word, len(numbers)) for word in resolved]
    return tuple(numbers), new_index[name]


def first_words(folder: Folder, limits: Limits) -> list[list[str]]:
    """Return the first word of each nonblank line of each file, unchecked."""
    problems = Problems(limits.problems)
    texts = [
        data.decode("utf-8-sig", "replace")
        for _, _, data in contents(folder, [*folder.members.values()], problems, limits)
    ]
    problems.raise_any()
    return [[line.split()[0] for line in text.split("\n") if line.split()] for text in texts]


class FolderReader(RowReader):
    """Reader of a folder's files.

    A format finds the folder, defines the lines (`form`; XML has none), and provides the columns
    of the table. `files` and `content` name the ground-truth files and their content in messages,
    `unit` is that of `rows.line`.
    """

    form: LineForm
    rows: Rows
    files, content = "label files", "labels"
    unit = "line"

    def __init__(
        self, folder: Folder, as_is: bool, limits: Limits, image_set: Path | None = None
    ) -> None:
        self.path = folder.given
        self.as_is = as_is
        self.limits = limits
        self.problems = Problems(limits.problems)
        self.image_set: tuple[SourceFile, ...] = ()
        self.repeated_images: tuple[str, ...] = ()
        if image_set is not None:
            folder, listed, repeated = select_images(folder, image_set, self.problems, limits)
            self.image_set, self.repeated_images = (listed,), repeated
        self.folder = folder
        self.images, self.members = tuple(folder.members), tuple(folder.members.values())

    def read(self, form: LineForm) -> Rows:
        """Read the rows; raise earlier problems and collect new ones."""
        self.problems.raise_any()
        self.form = form
        self.swapped = SWAPPED.format("dt" if form.scored else "gt")
        files_ = contents(self.folder, self.members, self.problems, self.limits)
        self.rows = read_lines(files_, form, self.problems, self.limits.records)
        self.check_records(len(self.rows))
        return self.rows

    def check_records(self, count: int) -> None:
        """Raise InputError for more rows than the limit."""
        if count > self.limits.records:
            files.refuse(self.folder.given, *self.limits.exceeded)

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a row."""
        member = self.members[self.rows.file[row]]
        return self.folder.file(member), f"{self.unit} {self.rows.line[row]}"

    def scored_values(self) -> Floats:
        """Return the numbers of detections (N, width), NaN for scores if rows lack them."""
        self.problems.raise_any()
        column = self.form.columns.index("score") - 1
        values = np.full((len(self.rows), self.form.width), np.nan)
        given = np.ones(values.shape, np.bool_)
        given[self.rows.counts < self.form.width, column] = False
        values[given] = self.rows.numbers
        check_scores(values[:, column], self.location)
        return values

    def raise_problems(self, checks: Iterable[tuple[Flags, str]]) -> None:
        """Raise InputError with all problems and the rows (N,) that fail a check."""
        for flags, message in checks:
            self.add_problems(flags, message)
        self.problems.raise_any()

    def add_problems(
        self, flags: Flags, message: str | Callable[[int], str], hint: str = "correct the line"
    ) -> None:
        """Add a problem for each flagged row (N,); beyond the limit, count them."""
        self.problems.add_rows(np.flatnonzero(flags).tolist(), self.location, message, hint)

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the image files and the image set as input sources."""
        read = (self.folder.source(self.members, len(self.rows)),) if self.members else ()
        return (*read, *self.image_set)

    def ground_truth(
        self,
        names: Sequence[str],
        *,
        sources: tuple[SourceFile, ...] = (),
        notes: tuple[Note, ...] = (),
        **columns: Any,
    ) -> GroundTruth:
        """Return the rows as ground truth.

        `names` has the class of each of `rows.names`, and `columns` are those of :class:`Objects`.
        """
        rows, repeated = self.rows, self.repeated_images
        missing = f"objects in its {len(self.images)} {self.files}"
        refuse_empty(self.path, len(rows), self.limits, missing, self.content)
        classes = tuple(sorted(set(names)))
        label = reindexed(rows.name, names, classes)
        objects = Objects(self.images, classes, rows.file, label, **columns)
        twice = "image set lines repeat an image, which counts once"
        notes = nonzero_notes(
            Note("images-listed-twice", f"{twice}: {join_names(repeated)}", len(repeated)),
            files_skipped(self.folder.skipped, "annotations"),
            images_without_objects(len(self.images), rows.file),
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
    path, data, checked = "", b"", False

    def accept(word: bytes) -> bool:
        """Return True if a word is valid."""
        try:
            form.resolve(word.decode())
        except (UnicodeDecodeError, FaultError):
            return False
        return True

    def read_odd(_file: int, number: int, line: bytes) -> tuple[bytes, list[float], bool] | None:
        """Read a line; None after collecting its problem; FaultError for another kind of file."""
        nonlocal checked
        if not checked and (kind := form.other_kind(data)):
            usage = f"expected lines `{' '.join(form.columns)}`"
            raise FaultError(f"looks like {kind}", usage)
        checked = True
        try:
            word, numbers, flag = form.read_line(decoded(line))
        except FaultError as fault:
            problems.add(path, f"line {number}", fault.message, fault.hint)
            return None
        return word.encode(), numbers, flag

    rows = RaggedLines(read_odd, accept, **form.regular)
    for number, path, content in contents:
        data, checked = form.prepared(content), False
        try:
            rows.read(data, number, most)
        except FaultError as fault:
            problems.add(path, "", fault.message, fault.hint)
        if len(rows) > most:
            break
    return Rows.of(rows, form.resolve)
