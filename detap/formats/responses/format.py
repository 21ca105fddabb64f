"""Answers of vision-language models: JSON Lines of an image and the text of a model."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from detap.errors import InputError, Note, Problem
from detap.formats.base import Format
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.by_name.objects import Objects, detections
from detap.formats.by_name.problems import RowReader
from detap.formats.catalogue import FORMATS
from detap.formats.reading.image_sizes import read_image_sizes, sizes_of
from detap.formats.reading.sniffing import json_paths
from detap.formats.responses.answer import Answer, collapse
from detap.formats.responses.dialects import DIALECTS, Dialect, Size, dialect_of
from detap.formats.responses.lines import ImageNames, Line, read_lines
from detap.formats.responses.tokens import TokenDialect
from detap.io.json_text import short_json
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile, shown
from detap.io.problems import FaultError, check_choice
from detap.io.stream import refuse
from detap.tables.columns import check_scores
from detap.tables.detection import Detections, GroundTruth, ResponseCounts
from detap.text_input import quote

MISSING = ("error", "empty")
_SHOWN = 35
"""Characters of an answer in a message."""
_NOTES = (
    Note("truncated", "answers are broken off; their complete boxes count"),
    Note("malformed", "answers are malformed JSON; boxes before and after the fault count"),
    Note("lenient-json", "answers have single quotes, a trailing comma, or True, False, None"),
    Note("several-blocks", "answers have several JSON values with boxes; all count"),
    Note("repeated-boxes", "answers repeat a box with its label; all count"),
    Note("unfinished-thinking", "answers end within <think>"),
    Note("responses-per-image", "images have several answers; all count"),
)
"""Notes on answers, to which their counts are added."""


class Answers(RowReader):
    """The answers of a file, and their images in the ground truth."""

    def __init__(self, path: Path, dialect: Dialect, limits: Limits, *, as_is: bool) -> None:
        self.path, self.dialect = os.fspath(path), dialect
        self.limits, self.as_is = limits, as_is
        self.without_scores = not getattr(dialect.form, "score_key", None)
        self.lines, self.sha256 = read_lines(path, limits)
        self.answers = [dialect.read(line.response, line.label) for line in self.lines]
        self.counts = dict(Counter(code for one in self.answers for code in one.all_notes()))
        self.pairs = [*zip(self.lines, self.answers, strict=True)]
        self.rows = [
            (number, index)
            for number, answer in enumerate(self.answers)
            for index in range(len(answer.boxes))
        ]

    def location(self, row: int) -> tuple[str, str]:
        """Return the file of a box, its line, and its position in the answer."""
        number, index = self.rows[row]
        return shown(self.path), f"{self.lines[number].location}: box {index + 1}"

    def check_dialect(self) -> None:
        """Raise InputError if most answers have boxes only under the key of another dialect."""
        others = [a.other_keys for a in self.answers if a.other_keys and not a.boxes]
        if self.as_is or 2 * len(others) <= len(self.answers):
            return
        keys = Counter(key for one in others for key in sorted(one))
        key = keys.most_common(1)[0][0]
        of_key = [name for name, one in DIALECTS.items() if one.form.box_key == key]
        names = [name for name in of_key if name != "json"] or [f"json --box-key {key}"]
        counts = f"{len(others)} of {len(self.answers)} answers"
        message = f"{counts} have no box under {self.dialect.form.box_key}, but under {key}"
        self._fail(message, f"try --dialect {' or '.join(names)}")

    def check_labels(self) -> None:
        """Raise InputError if a line has no label in a dialect whose boxes have none."""
        form = self.dialect.form
        if not (isinstance(form, TokenDialect) and form.by_line):
            return
        without = [line.location for line in self.lines if not line.label]
        if without:
            message = f"label is missing, as in {len(without)} of {len(self.lines)} lines"
            self._fail(message, "write the class that was asked for", without[0])

    def check_images(self, image: Sequence[int], names: Sequence[str], missing: str) -> None:
        """Raise InputError if images have no answer, unless these count as empty."""
        if missing == "empty":
            return
        if self.limits.part:
            message = "is one of several files, whose images without an answer are not known"
            self._fail(message, "join the files, or pass --missing-responses empty")
        answered = {*image}
        absent = [name for row, name in enumerate(names) if row not in answered]
        if absent:
            have = "has" if len(absent) == 1 else "have"
            message = f"{len(absent)} of {len(names)} images {have} no answer, first {min(absent)}"
            self._fail(message, "--missing-responses empty counts them as empty")

    def corners(self, image: Sequence[int], sizes: Sequence[Size], names: Sequence[str]) -> Any:
        """Return the boxes (N, 4) in pixels."""
        corners = []
        for (line, answer), row in zip(self.pairs, image, strict=True):
            if answer.boxes:
                if not self.dialect.has_pixels and not all(side > 0 for side in sizes[row]):
                    message = f"the size of image {quote(names[row])} is unknown"
                    self._fail(message, "pass --image-sizes FILE, a CSV of image,width,height")
                corners += self._corners_of(line, answer, sizes[row])
        return np.array(corners, np.float64).reshape(-1, 4)

    def _corners_of(self, line: Line, answer: Answer, size: Size) -> list[list[float]]:
        try:
            return [
                self.dialect.corners(box.numbers, size, line.input_size) for box in answer.boxes
            ]
        except FaultError as fault:
            self._fail(f"image {quote(line.image)} {fault.message}", fault.hint, line.location)

    def responses(self, dialect: str, image: Sequence[int], names: Sequence[str]) -> ResponseCounts:
        """Return the counts of answers for reports."""
        answered = {*image}
        return ResponseCounts(
            dialect=dialect,
            lines=len(self.lines),
            images_without_response=sorted(
                name for row, name in enumerate(names) if row not in answered
            ),
            failed=list(dict.fromkeys(str(line.image) for line, one in self.pairs if one.failed)),
            bad_boxes=sum(len(answer.bad) for answer in self.answers),
            notes=self.counts,
        )

    def notes(self, image: Sequence[int]) -> tuple[Note, ...]:
        """Return notes on the answers."""
        repeated = sum(count > 1 for count in Counter(image).values())
        counts = self.counts | {"responses-per-image": repeated}
        notes = (replace(note, count=counts.get(note.code, 0), severity="info") for note in _NOTES)
        return (*self._failures(), *self._bad_boxes(), *nonzero_notes(*notes))

    def _failures(self) -> list[Note]:
        failed = [line for line, answer in self.pairs if answer.failed]
        if not failed:
            return []
        have = "has" if len(failed) == 1 else "have"
        message = f"{len(failed)} of {len(self.lines)} answers {have} no boxes that could be read"
        first = f"{failed[0].image}: {_excerpt(failed[0].response)}"
        return [Note("responses-failed", f"{message} (failed); first: {first}")]

    def _bad_boxes(self) -> list[Note]:
        bad = [f"{line.image}: {text}" for line, answer in self.pairs for text in answer.bad]
        message = "boxes without four finite numbers and a label are left out; first: "
        return [Note("bad-boxes", message + bad[0], len(bad))] if bad else []

    def _fail(self, message: str, hint: str, location: str = "") -> NoReturn:
        raise InputError(Problem(shown(self.path), location, message, hint))


def _excerpt(text: str) -> str:
    """Return the beginning of an answer in quotes."""
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN].rstrip()}..."
    return short_json(short)


def _labels(words: Sequence[str], classes: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return class names, and the class of each label, which differ in more than case and space."""
    names = [*classes]
    exact = {name: row for row, name in enumerate(names)}
    folded: dict[str, int] = {}
    for row, name in enumerate(names):
        folded.setdefault(collapse(name).casefold(), row)
    label = []
    for word in words:
        known = exact.get(word)
        row = folded.setdefault(word.casefold(), len(names)) if known is None else known
        if row == len(names):
            names.append(word)
        label.append(row)
    return names, label


def _image_sizes(
    truth: GroundTruth, names: Sequence[str], table: Mapping[Any, Sequence[float]]
) -> list[Size]:
    """Return the sizes of the images, of the table where the ground truth has none."""
    sizes = sizes_of(names, table)
    if truth.image_sizes is not None:
        sizes = np.where(np.isnan(truth.image_sizes), sizes, truth.image_sizes)
    return [(width, height) for width, height in sizes.tolist()]


def read_detections(
    path: Path,
    truth: GroundTruth,
    *,
    dialect: str | None = None,
    missing_responses: str | None = None,
    image_sizes: Path | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    **of_dialect: Any,
) -> Detections:
    """Read the boxes of answers, which have no scores; `of_dialect` are options of a dialect."""
    missing = missing_responses or MISSING[0]
    check_choice("--missing-responses", missing, MISSING)
    read = Answers(path, dialect_of(dialect, **of_dialect), limits, as_is=as_is)
    truth_format = FORMATS.get(truth.format)
    by_ids = truth_format is not None and truth_format.by_ids
    images = ImageNames(truth, truth_format.file_names(truth) if truth_format and by_ids else {})
    image = images.find_all(read.lines, read.path)
    read.check_dialect()
    read.check_labels()
    read.check_images(image, images.names, missing)
    files = [SourceFile(read.path, len(read.rows), sha256=read.sha256)]
    table: Mapping[str, tuple[int, int]] = {}
    if image_sizes is not None:
        table = read_image_sizes(image_sizes, limits)
        files.append(SourceFile(os.fspath(image_sizes), len(table)))
    boxes = read.corners(image, _image_sizes(truth, images.names, table), images.names)
    words = [box.label for answer in read.answers for box in answer.boxes]
    classes, label = _labels(words, truth.classes)
    score = np.array([box.score for answer in read.answers for box in answer.boxes], np.float64)
    objects = Objects(
        images=truth.images,
        classes=tuple(classes),
        image=np.array([image[number] for number, _ in read.rows], np.int32),
        label=np.array(label, np.int32),
        boxes=boxes,
        score=score,
    )
    check_scores(score, read.location)
    boxes_read = detections(objects, truth, read, tuple(files), read.notes(image))
    return replace(boxes_read, responses=read.responses(str(dialect), image, images.names))


class Responses(Format):
    """The text of a model for each image; it has boxes in the dialect of the model."""

    same_names = True
    coordinates = "see --dialect"
    boxes = ()

    def fits(self, path: str) -> bool:
        """Return True if the first records have an image and a response, and no objects."""
        paths = json_paths(path)
        for record in (".", "[]."):
            if {f"{record}image", f"{record}response"} <= paths:
                return f"{record}objects" not in paths
        return False

    def read_truth_file(self, path: str, **_: object) -> NoReturn:
        """Refuse answers as ground truth."""
        refuse(path, "has answers of a model, not ground truth", "give it as detections (--dt)")

    read_detections_file = staticmethod(read_detections)
