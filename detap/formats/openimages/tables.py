"""Read Open Images' CSV files.

References: the description of Open Images' files (storage.googleapis.com/openimages/web); for
detections the columns of the Challenge's evaluator in TensorFlow's object detection library.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from detap.checks.tables import negative_size_error, of_unknown_size
from detap.errors import InputError, Note, Problem
from detap.formats.base import Format
from detap.formats.by_name import objects
from detap.formats.by_name.notes import images_without_objects, nonzero_notes
from detap.formats.by_name.problems import RowReader, refuse_empty
from detap.formats.image_sizes import GivenSizes, refuse_unknown, sizes_of
from detap.formats.openimages.labels import Descriptions, Hierarchy
from detap.formats.openimages.rows import CORNERS, Rows
from detap.formats.stem_matching import empty_ground_truth, stem_of
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile, shown
from detap.io.problems import Problems
from detap.tables.columns import check_scores, indices_in
from detap.tables.detection import Detections, Floats, GroundTruth, Integers
from detap.tables.notes import FRACTIONS, backward, exchanged, too_many
from detap.text_input import quote

_MANY_ROWS = 1 << 20
"""A hierarchy may always expand to this many rows."""


def read_ground_truth(
    path: Path,
    *,
    class_descriptions: Path | None = None,
    image_sizes: Path | None = None,
    image_labels: Path | None = None,
    hierarchy: Path | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read a CSV with one row per box; images and classes are sorted by name.

    The name of an image is its ``ImageID`` without the suffix. Without `image_sizes`, boxes stay
    normalized: IoU is the same, but area ranges and inclusive pixels are refused. Image labels add
    their images and classes, and the lists ``positive`` and ``negative``. With a hierarchy, a box
    or a label of confidence 1 is repeated for every ancestor of its class, a label of confidence 0
    for every descendant.
    """
    read = _Read(path, class_descriptions, image_sizes, limits, scored=False, as_is=as_is)
    refuse_empty(read.path, len(read.rows), limits, "boxes", "annotations")
    labels = None
    if image_labels is not None:
        labels = _Read(
            image_labels, class_descriptions, None, limits, scored=True, as_is=True, labels=True
        )
    sources = read.sources()
    if hierarchy is not None:
        tree = Hierarchy(hierarchy, read.descriptions, limits)
        read.expand(tree)
        if labels is not None:
            labels.expand(tree)
        sources += (SourceFile(tree.file, len(tree.above)),)
    images = sorted({*read.stems, *read.sizes.table, *(labels.stems if labels else ())})
    sizes = read.sizes.of(images) if read.sizes.table else None
    box_rows = read.box_rows(images, sizes)
    notes = nonzero_notes(
        Note(
            "group-of-unknown",
            "boxes have an unknown group flag (IsGroupOf -1); read as 0",
            read.rows.unknown,
            severity="info",
        ),
        images_without_objects(len(images), box_rows.image),
    )
    if labels is not None:
        classes = sorted({*box_rows.classes, *labels.classes})
        index = indices_in(box_rows.classes, classes)
        box_rows = box_rows._replace(classes=tuple(classes), label=index[box_rows.label])
        sources += (SourceFile(labels.given, len(labels.rows), sha256=labels.rows.sha256),)
    table = objects.ground_truth(
        box_rows._replace(flags={"group_of": read.rows.group_of[read.origin]}, sizes=sizes),
        read,
        sources,
        (*read.notes(sizes), *notes),
    )
    if labels is None:
        return table
    return replace(table, listed=labels.listed(images, table.classes))


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    class_descriptions: Path | None = None,
    image_sizes: Path | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read a CSV of detections, with a column ``Score`` or without.

    They have the image sizes of the ground truth; if it has none, they stay normalized too.
    """
    read = _Read(path, class_descriptions, image_sizes, limits, scored=True, as_is=as_is)
    assert read.rows.score is not None
    check_scores(read.rows.score, read.location)
    images = sorted(set(read.stems))
    sizes, known = None, ground_truth.image_sizes
    if not of_unknown_size(ground_truth) and (known is not None or read.sizes.table):
        rows = () if known is None else zip(ground_truth.images, known.tolist(), strict=True)
        of_truth = sizes_of(images, dict(rows))
        read.sizes.check_against(of_truth, images, read.path, "in the ground truth")
        sizes = np.where(np.isnan(of_truth), read.sizes.of(images), of_truth)
        # Unknown images are reported later.
        ours = set(ground_truth.images)
        sizes[[name not in ours for name in images]] = 1.0
    box_rows = read.box_rows(images, sizes)._replace(score=read.rows.score)
    return objects.detections(box_rows, ground_truth, read, read.sources(), read.notes(sizes))


class _Read(RowReader):
    """The content of a CSV file, with class names and image sizes."""

    corner_names = CORNERS

    def __init__(
        self,
        path: Path,
        class_descriptions: Path | None,
        image_sizes: Path | None,
        limits: Limits,
        *,
        scored: bool,
        as_is: bool,
        labels: bool = False,
    ) -> None:
        self.given, self.limits, self.as_is = os.fspath(path), limits, as_is
        self.path = shown(self.given)
        problems = Problems(limits.problems)
        self.descriptions = Descriptions(class_descriptions, problems, limits)
        problems.raise_any()
        self.sizes = GivenSizes.read(None, image_sizes, limits)
        self.rows = Rows(self.given, problems, limits, scored=scored, as_is=as_is, labels=labels)
        problems.raise_any()
        self.without_scores = self.rows.without_scores
        self.origin = np.arange(len(self.rows))
        self.stems = [stem_of(word) for word in self.rows.images]
        self._check_stems()
        self._name_classes()
        if labels:
            self._check_confidences()
        if not as_is:
            self._check_order()

    def _raise_for_names(self, column: Integers, faults: dict[int, str], hint: str) -> None:
        """Raise InputError for names, with messages by index, at the first row of each."""
        if faults:
            first = np.unique(column, return_index=True)[1].tolist()
            self._raise(((first[number], message) for number, message in faults.items()), hint)

    def _raise(self, faults: Iterable[tuple[int, str]], hint: str) -> None:
        """Raise InputError for rows with their messages."""
        problems = Problems(self.limits.problems)
        for row, message in faults:
            problems.add(self.path, f"line {self.rows.line[row]}", message, hint)
        problems.raise_any()

    def _check_stems(self) -> None:
        """Raise InputError for images that differ only in the suffix."""
        first: dict[str, str] = {}
        faults = {}
        for number, (word, stem) in enumerate(zip(self.rows.images, self.stems, strict=True)):
            other = word if word == stem else first.setdefault(stem, word)
            if other != word:
                message = f"image {quote(word)} and {quote(other)} differ only in the suffix"
                faults[number] = message
        self._raise_for_names(self.rows.image, faults, "rename one of them")

    def _name_classes(self) -> None:
        names = [self.descriptions.name(label) for label in self.rows.labels]
        faults = {
            number: f"label {quote(self.rows.labels[number])} is not in {self.descriptions.file}"
            for number, name in enumerate(names)
            if name is None
        }
        self._raise_for_names(self.rows.label, faults, "use the list that belongs to this file")
        self.classes, number_of = objects.name_index([name or "" for name in names])
        self._label = number_of[self.rows.label]

    def _check_confidences(self) -> None:
        """Raise InputError for labels that are not human-verified, or contradict each other."""
        assert self.rows.score is not None
        score = self.rows.score
        rows = np.flatnonzero(~np.isin(score, (0.0, 1.0))).tolist()
        faults = ((row, f"Confidence {score[row]:g} is not 0 or 1") for row in rows)
        self._raise(faults, "use the human-verified labels")
        number = objects.name_index(self.stems)[1]  # an image may have its suffix in some rows
        pair = number[self.rows.image].astype(np.int64) * max(len(self.classes), 1) + self._label
        _, first, entry = np.unique(pair, return_index=True, return_inverse=True)
        earlier = first[entry]

        def message(row: int) -> str:
            image = self.rows.images[self.rows.image[row]]
            return (
                f"class {quote(self.classes[self._label[row]])} of image {quote(image)} has "
                f"Confidence {score[row]:g}, and {score[earlier[row]]:g} in line "
                f"{self.rows.line[earlier[row]]}"
            )

        rows = np.flatnonzero(score != score[earlier]).tolist()
        self._raise(((row, message(row)) for row in rows), "keep one of them")

    def expand(self, tree: Hierarchy) -> None:
        """Repeat rows for the ancestors of their class; labels of absence, for the descendants.

        The copies of a row replace it in place, its own class first.
        """
        faults = {
            number: f"class {quote(name)} is not in {tree.file}"
            for number, name in enumerate(self.classes)
            if name not in tree.above
        }
        hint = "use the hierarchy of these classes; its root is not a class"
        self._raise_for_names(self._label, faults, hint)
        # The ancestors of each class, followed by the descendants of each.
        relatives = [[*tree.above[name]] for name in self.classes]
        relatives += [[*tree.below[name]] for name in self.classes]
        classes, numbers = objects.name_index([name for names in relatives for name in names])
        sizes = np.array([len(names) for names in relatives], np.intp)
        entry = self._label.astype(np.intp)
        if self.rows.score is not None:
            entry[self.rows.score == 0] += len(self.classes)
        count = sizes[entry]
        self._check_expansion(int(count.sum()))
        nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        self._label = numbers[np.repeat((np.cumsum(sizes) - sizes)[entry], count) + nth]
        self.origin = np.repeat(self.origin, count)
        used, label = np.unique(self._label, return_inverse=True)
        self._label = label.astype(np.int32)
        self.classes = tuple(classes[number] for number in used.tolist())

    def _check_expansion(self, rows: int) -> None:
        """Raise InputError if a hierarchy expands a few rows to very many."""
        limit = max(self.limits.expansion * len(self.rows), _MANY_ROWS)
        if rows > min(limit, self.limits.records):
            message = f"the hierarchy expands {len(self.rows)} rows to {rows}"
            hint = "raise the limits with --max-expansion and --max-records"
            raise InputError(Problem(self.path, "", message, hint))

    def listed(self, images: list[str], classes: Sequence[str]) -> dict[str, Integers]:
        """Return the distinct labels as the ``positive`` and ``negative`` lists of a table."""
        image = indices_in(self.stems, images)[self.rows.image[self.origin]]
        pairs = np.stack([image, indices_in(self.classes, classes)[self._label]], axis=1)
        assert self.rows.score is not None
        present = self.rows.score[self.origin] == 1
        lists = {"negative": ~present, "positive": present}
        return {name: np.unique(pairs[rows], axis=0) for name, rows in lists.items()}

    def _check_order(self) -> None:
        """Raise InputError if many normalized boxes have negative size."""
        corners = self.rows.corners
        width, height = (corners[:, 2:] - corners[:, :2]).T
        rows = backward(corners, width * height)
        if len(rows) and too_many(len(rows), len(corners)):
            listed = self.box_problems(corners, rows[: self.limits.problems], "xyxy")
            looks = exchanged(corners, self.corner_names)[0]
            raise negative_size_error(self.path, len(rows), len(corners), listed, looks)

    def box_rows(self, images: list[str], sizes: Floats | None) -> objects.Objects:
        """Return the boxes, in pixels where sizes (I, 2) are known."""
        image = indices_in(self.stems, images)[self.rows.image[self.origin]]
        boxes = self.rows.corners[self.origin]
        if sizes is not None:
            refuse_unknown(sizes, image, images, self.path)
            boxes = boxes * np.tile(sizes, 2)[image]
        return objects.Objects(tuple(images), self.classes, image, self._label, boxes)

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a box."""
        return self.path, f"line {self.rows.line[self.origin[row]]}"

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the input sources."""
        return (
            SourceFile(self.given, len(self.rows), sha256=self.rows.sha256),
            *self.descriptions.source(),
            *self.sizes.source,
        )

    def notes(self, sizes: Floats | None) -> tuple[Note, ...]:
        """Return notes about the file."""
        commas = len(self.rows) if self.rows.commas else 0
        message = "rows have decimal commas"
        unknown = (FRACTIONS,) if sizes is None else ()
        return (*unknown, *nonzero_notes(Note("decimal-commas", message, commas, severity="info")))


class OpenImages(Format):
    """CSV files of boxes in fractions of the image."""

    coordinates = "XMin, XMax, YMin, YMax"

    read_truth_file = staticmethod(read_ground_truth)
    read_detections_file = staticmethod(read_detections)

    def placeholder(self, path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
        """Return the images and classes named in a file, unchecked."""
        problems = Problems(1)
        rows = Rows(os.fspath(path), problems, limits, scored=True, as_is=True)
        names = Descriptions(options.get("class_descriptions"), problems, limits)
        classes = {names.name(label) or label for label in rows.labels}
        return empty_ground_truth(set(map(stem_of, rows.images)), classes)
