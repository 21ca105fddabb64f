"""Read classifications: a score per sample and class, and the ground truth."""

import os
import re
from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note, UsageError
from detap.formats.coco.records import score_of
from detap.formats.ranking.arrays import NUMBERS, ArraySource, read_npz
from detap.formats.ranking.rows import name_of, number_in_text, refuse_others, text_rows
from detap.formats.shapes.values import json_value, object_of
from detap.formats.text.csv_rows import csv_table
from detap.formats.text.folder import files_of
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.json_text import decode, short_json
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile, shown
from detap.io.problems import FaultError, Problems
from detap.io.stream import read_bytes, refuse
from detap.tables.columns import indices_in
from detap.tables.ranking import Floats, Samples
from detap.text_input import join_names, quote

__all__ = ["read_npz_samples", "read_samples", "read_voc"]


DIFFICULT, NOT_LISTED = -1, -2
_TRUTH_OF_LABEL = {1.0: 1, -1.0: 0, 0.0: DIFFICULT}
"""Truth by the label of an image set."""
_RESULTS = re.compile(r"(?:^|_)cls_[^_]+_(.+)$")


# --- .npz


def read_npz_samples(path: Path, *, limits: Limits = DEFAULT_LIMITS) -> Samples:
    """Read a classification from one .npz file.

    It has `scores` (N, K) and `labels`: class numbers from 0 (N,), or names (N,) of `class_names`,
    or 0 and 1 for each class (N, K). Optional: `difficult` (N, K), 1 if a sample is ignored for a
    class; `class_names` (K,); `sample_names` (N,).
    """
    text = os.fspath(path)
    keys = ("scores", "labels", "difficult", "class_names", "sample_names")
    arrays = read_npz(path, keys, limits)
    source = ArraySource(text, {}, arrays)
    source.require("scores", "labels")
    samples, count = shape = source.matrix("scores").shape
    score = source.numbers("scores").astype(np.float64)
    classes = source.names("class_names", count)
    truth = _truth(source, shape, classes)
    if "difficult" in arrays:
        flags = arrays["difficult"]
        if flags.shape != shape or not np.isin(flags, (0, 1)).all():
            hint = f"give 0 or 1 for each sample and class, {shape}"
            source.refuse("difficult", f"has the shape {flags.shape}", hint)
        truth[flags == 1] = DIFFICULT
    return Samples(
        score=score,
        scored=np.ones(shape, np.bool_),
        truth=truth,
        classes=classes,
        samples=source.names("sample_names", samples),
        files=(SourceFile(text, samples),),
    )


def _truth(
    source: ArraySource, shape: tuple[int, ...], classes: tuple[str, ...]
) -> NDArray[np.int8]:
    labels = source.arrays["labels"]
    samples, count = shape
    if labels.shape == shape and labels.dtype.kind in NUMBERS:
        hint = "give 1 for each label that there is; difficult ones go to 'difficult'"
        return source.flags("labels", hint).astype(np.int8)
    if labels.shape != (samples,):
        message = f"has the shape {labels.shape}, scores has {shape}"
        source.refuse("labels", message, f"give ({samples},) or {shape}")
    source.classes("labels")
    if labels.dtype.kind == "U":
        numbers = indices_in(labels.tolist(), classes).astype(np.int64)
    else:
        source.require_numbers("labels", "give whole numbers, or names as text")
        numbers = labels.astype(np.int64)
    wrong = (numbers < 0) | (numbers >= count)
    if wrong.any():
        row = int(np.argmax(wrong))
        message = f"is {labels[row].item()!r}, expected a class from 0 to {count - 1}"
        hint = "number classes as the columns of scores"
        source.refuse("labels", message, hint, f"row {row}")
    truth = np.zeros(shape, np.int8)
    truth[np.arange(samples), numbers] = 1
    return truth


# --- CSV and JSON


class _Cells:
    """Values by sample and class, in the order of the file; `number` is "score" or "label"."""

    def __init__(self, path: Path, number: str, limits: Limits) -> None:
        """Read a file; raise InputError with every problem."""
        self.number = number
        self.problems = Problems(limits.problems, shown(path))
        self.file = self.problems.file
        self.values: dict[str, dict[str, float]] = {}
        self.classes: dict[str, None] = {}
        data = read_bytes(path, limits)
        with self.problems.collected():
            if data.removeprefix(BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"["):
                self._read_json(data, limits)
            else:
                refuse_others(data, f"a file of {number}s", "CSV or JSON", self.file)
                self._read_csv(decode(data, self.file))
        self.problems.raise_any()
        if not self.values:
            refuse(os.fspath(path), "no samples", f"use the {number}s of the samples")

    def _add(self, sample: str, name: str, value: float) -> None:
        self.classes[name] = None
        if name in self.values[sample]:
            raise FaultError(f"duplicate class {name!r} of sample {sample!r}", "keep one of them")
        self.values[sample][name] = value

    def _read_csv(self, text: str) -> None:
        table = csv_table(text, self.problems)
        headings = next(table, (0, []))[1]
        long = "sample,class,score" if self.number == "score" else "sample,label"
        if len(headings) < 2 or headings[0].lower() != "sample":
            have = ", ".join(map(repr, headings[:6])) or "nothing"
            message = f"has the columns {have}, expected 'sample' first"
            hint = f"write a first line `{long}`, or `sample,` and the classes"
            raise FaultError(message, hint)
        if len(set(headings)) != len(headings):
            twice = next(heading for heading in headings if headings.count(heading) > 1)
            raise FaultError(f"duplicate column {twice!r}", "keep one of them")
        is_long = [heading.lower() for heading in headings] == long.split(",")
        for line, (sample, *cells) in table:
            with self.problems.collected(f"line {line}"):
                if not sample:
                    raise FaultError("no sample name", "add it")
                self.values.setdefault(sample, {})
                pairs: Iterable[tuple[str, str]] = zip(headings[1:], cells, strict=True)
                if is_long and self.number == "score":
                    pairs = [(cells[0], cells[1])]
                elif is_long:
                    pairs = [(cells[0], "1")] if cells[0] else []
                for name, cell in pairs:
                    if cell or self.number == "label":
                        value = number_in_text(self.number, cell)
                        if self.number == "label" and value not in (0.0, 1.0):
                            raise FaultError(f"label {quote(cell)} is not 0 or 1", "use 0 or 1")
                        self._add(sample, name, value)
                    else:
                        self.classes[name] = None

    def _read_json(self, data: bytes, limits: Limits) -> None:
        form = "{class: score}" if self.number == "score" else "[label, ...]"
        usage = f"write {{sample: {form}}}"
        content, _ = json_value(data, self.problems, limits, usage)
        for sample, value in object_of(content, usage).items():
            self.values[sample] = {}
            location = f"sample {short_json(sample)}"
            with self.problems.collected(location):
                if self.number == "label":
                    for label in value if isinstance(value, list) else [value]:
                        if (name := name_of(label)) is None:
                            raise FaultError(f"label {short_json(label)} is not a name", "use text")
                        self._add(sample, name, 1.0)
                else:
                    for name, score in object_of(value, "write {class: score, ...}").items():
                        with self.problems.collected(f"{location}, class {short_json(name)}"):
                            self._add(sample, name, score_of(score))


def read_samples(scores: Path, labels: Path, *, limits: Limits = DEFAULT_LIMITS) -> Samples:
    """Read a classification from CSV or JSON files.

    Scores are CSV with the headings ``sample,<class>,<class>...`` or ``sample,class,score``, or
    JSON, ``{sample: {class: score}}``. Labels are CSV with ``sample,label``, one line per label, or
    ``sample,<class>,...`` with 0 and 1; or JSON, ``{sample: label}`` or ``{sample: [label, ...]}``.
    Samples are in the order of the labels, classes in that of the scores.
    """
    given = _Cells(scores, "score", limits)
    truth = _Cells(labels, "label", limits)
    problems = Problems(limits.problems, given.file)
    unknown = [sample for sample in given.values if sample not in truth.values]
    if len(unknown) == len(given.values):
        message = f"no sample in common with {truth.file}"
        problems.instead(message, "use scores and labels of the same samples")
    for sample in unknown if not problems.count else ():
        hint = "score the samples that have labels"
        problems.add_here("", f"sample {sample!r} has no labels in {truth.file}", hint)
    problems.raise_any()
    problems = Problems(limits.problems, truth.file)
    for name in truth.classes:
        if name not in given.classes:
            message = f"label {name!r} is not a class of {given.file}"
            problems.add_here("", message, "name labels as the classes of the scores")
    problems.raise_any()
    score = _matrix(given.values, truth.values, given.classes)
    return Samples(
        score=np.nan_to_num(score),
        scored=~np.isnan(score),
        truth=(_matrix(truth.values, truth.values, given.classes) == 1).astype(np.int8),
        classes=tuple(given.classes),
        samples=tuple(truth.values),
        files=tuple(SourceFile(table.file, len(table.values)) for table in (given, truth)),
    )


def _matrix(
    values: Mapping[str, Mapping[str, float]], rows: Collection[str], columns: Collection[str]
) -> Floats:
    """Return values by the names of rows and columns, NaN where there are none."""
    column_of = {name: number for number, name in enumerate(columns)}
    table = np.full((len(rows), len(columns)), np.nan)
    for number, row in enumerate(rows):
        for name, value in values.get(row, {}).items():
            table[number, column_of[name]] = value
    return table


# --- PASCAL VOC


def read_voc(
    image_sets: Path,
    results: Path,
    *,
    image_set: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Samples:
    """Read the classification task of PASCAL VOC.

    `image_sets` is the folder of ``<class>_<set>.txt`` files, whose lines are ``image 1``, ``image
    -1`` or ``image 0`` (difficult), or a VOC root; `results` that of ``..._cls_<set>_<class>.txt``
    files, whose lines are ``image score``. `image_set` is optional if there is only one set. Images
    are in the order of the first class's file that lists them, classes sorted by name. An image
    without a score ranks last, as in the development kit.
    """
    folder = os.path.join(image_sets, "ImageSets", "Main")
    folder = folder if os.path.isdir(folder) else os.fspath(image_sets)
    results = os.fspath(results)
    truths = _truth_files(folder, image_set)

    labels = _numbers(folder, truths, "label", limits)
    images = dict.fromkeys(image for of_class in labels.values() for image in of_class)
    if not images:
        refuse(folder, "no images", "use image sets with lines `image label`")
    files = _result_files(results, truths)
    scores = _numbers(results, files, "score", limits, labels)
    label, score = (_matrix(values, truths, images).T for values in (labels, scores))
    truth = np.full(label.shape, NOT_LISTED, np.int8)
    for value, code in _TRUTH_OF_LABEL.items():
        truth[label == value] = code
    absent = [name for name in truths if name not in files]
    message = f"classes without a results file have AP 0: {join_names(absent)}"
    return Samples(
        score=np.nan_to_num(score),
        scored=~np.isnan(score),
        truth=truth,
        classes=tuple(truths),
        samples=tuple(images),
        files=(
            SourceFile(results, sum(map(len, scores.values())), tuple(sorted(files.values()))),
            SourceFile(folder, len(images), tuple(sorted(truths.values()))),
        ),
        notes=(Note("class-without-scores", message, len(absent)),) if absent else (),
    )


def _truth_files(folder: str, image_set: str | None) -> dict[str, str]:
    """Return the image set file of each class."""
    stems = files_of(folder, "", ".txt").members
    if image_set is None:
        sets = sorted({stem.rpartition("_")[2] for stem in stems if "_" in stem})
        if len(sets) > 1:
            raise UsageError(f"{folder} has the sets {', '.join(sets)}; use --image-set NAME")
        image_set = sets[0] if sets else ""
    tail = f"_{image_set}"
    file_by_class = {
        stem.removesuffix(tail): file for stem, file in stems.items() if stem.endswith(tail)
    }
    file_by_class.pop("", None)
    if not file_by_class:
        message = f"no file <class>_{image_set or '<set>'}.txt"
        refuse(folder, message, "give ImageSets/Main, whose files list each class's images")
    return dict(sorted(file_by_class.items()))


def _result_files(folder: str, classes: Iterable[str]) -> dict[str, str]:
    known = set(classes)
    file_by_class: dict[str, str] = {}
    others = []
    for stem, file in files_of(folder, "", ".txt").members.items():
        match = _RESULTS.search(stem)
        if match is None or match[1] not in known:
            others.append(file)
            continue
        if match[1] in file_by_class:
            message = f"duplicate files of class {match[1]!r}: {file_by_class[match[1]]} and {file}"
            refuse(folder, message, "keep one of them")
        file_by_class[match[1]] = file
    if not file_by_class:
        have = f"; it has {others[0]}" if others else ""
        refuse(folder, f"no results of these classes{have}", "name them _cls_<set>_<class>.txt")
    return file_by_class


def _numbers(
    folder: str,
    files: Mapping[str, str],
    title: str,
    limits: Limits,
    labels: Mapping[str, Mapping[str, float]] | None = None,
) -> dict[str, dict[str, float]]:
    """Return the number of each image by class: a label, or the score of one of the `labels`."""
    problems = Problems(limits.problems, shown(folder))
    numbers: dict[str, dict[str, float]] = {}
    for name, file in files.items():
        path, numbers[name] = os.path.join(folder, file), {}
        text = decode(read_bytes(path, limits), shown(path))
        rows = text_rows(text, ("image", title), title, problems, f"{file}: ")
        for line, (image, _), number in rows:
            with problems.collected(f"{file}: line {line}"):
                if image in numbers[name]:
                    raise FaultError(f"duplicate image {image!r}", "keep one line")
                if labels is None and number not in _TRUTH_OF_LABEL:
                    message = f"label {number:g} of image {image!r} is not -1, 0 or 1"
                    raise FaultError(message, "use -1, 0 or 1")
                if labels is not None and image not in labels[name]:
                    message = f"image {image!r} is not in the image set of {name}"
                    raise FaultError(message, "score the images of the set")
                numbers[name][image] = number
    problems.raise_any()
    return numbers
