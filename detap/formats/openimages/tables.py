"""Read Open Images' CSV files.

References: the description of Open Images' files (storage.googleapis.com/openimages/web); for
detections the columns of the Challenge's evaluator in TensorFlow's object detection library.
"""

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from detap.checks.tables import negative_size_error, of_unknown_size
from detap.errors import InputError, Note, Problem
from detap.formats.by_name import objects
from detap.formats.by_name.notes import images_without_objects, nonzero_notes
from detap.formats.by_name.problems import Problems, RowReader, refuse_empty
from detap.formats.openimages.descriptions import Descriptions
from detap.formats.openimages.hierarchy import Hierarchy
from detap.formats.openimages.rows import CORNERS, read_rows
from detap.formats.reading.image_sizes import read_image_sizes, sizes_of, stem_of
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, shown
from detap.tables.columns import indices_in
from detap.tables.detection import Detections, Floats, GroundTruth, Integers, Name, SourceFile
from detap.tables.notes import FRACTIONS, backward, too_many
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
    """Read the ground truth of a CSV with one row per box.

    The first line names the columns: ``ImageID``, ``LabelName``, ``XMin``, ``XMax``, ``YMin``,
    ``YMax`` (normalized), and ``IsGroupOf`` (0, 1, or -1 for unknown, read as 0). The name of an
    image is its ``ImageID`` without the suffix.

    Parameters
    ----------
    path : str or path
    class_descriptions : str or path, optional
        A CSV of ``LabelName,DisplayName``, with or without that header.
    image_sizes : str or path, optional
        A CSV of ``image,width,height``. With it, boxes are converted to pixels, and images that
        only it lists have no boxes. Without it boxes stay normalized: IoU is the same, but area
        ranges and inclusive pixels are refused.
    image_labels : str or path, optional
        A CSV of image-level labels, ``ImageID,LabelName,Confidence``: 1 if the class is in the
        image, 0 if not. Its images and classes are added to the ground truth. The labels become
        the lists ``positive`` and ``negative`` of ``GroundTruth.listed``.
    hierarchy : str or path, optional
        A JSON file of the class tree. A box, or a label of confidence 1, is repeated for every
        ancestor of its class, a label of confidence 0 for every descendant. The root is not a
        class.
    as_is : bool
        Accept coordinates that look like pixels, and any number of boxes of negative size.
    limits : Limits
        Limits on the input size.

    Returns
    -------
    GroundTruth
        Images and classes sorted by name, rows in the order of the file.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
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
        sources += (tree.source(),)
    images = sorted({*read.stems, *(read.table or ()), *(labels.stems if labels else ())})
    sizes = None if read.table is None else sizes_of(images, read.table)
    if sizes is not None:
        read.check_sizes(sizes, images)
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
    """Read detections from a CSV with one row per detection.

    The columns are those of the ground truth and ``Score``, in any order.

    Parameters
    ----------
    path : str or path
        ``"-"`` is standard input.
    ground_truth : GroundTruth
        Its images, classes and image sizes are used. If it is normalized without image sizes,
        detections stay normalized too.
    class_descriptions, image_sizes, as_is, limits
        As in :func:`read_ground_truth`.

    Returns
    -------
    Detections
        Indexed as `ground_truth`; classes that it lacks follow, sorted by name.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    """
    read = _Read(path, class_descriptions, image_sizes, limits, scored=True, as_is=as_is)
    images = sorted(set(read.stems))
    sizes = None
    if not of_unknown_size(ground_truth):
        sizes = known = _sizes_of_truth(images, ground_truth)
        if read.table is not None:
            sizes = sizes_of(images, read.table)
            if known is not None:
                read.check_same_sizes(sizes, known, images)
    if sizes is not None:
        # Unknown images are reported later.
        ours = set(ground_truth.images)
        sizes[[name not in ours for name in images]] = 1.0
        read.check_sizes(sizes, images)
    box_rows = read.box_rows(images, sizes)._replace(score=read.rows.score)
    return objects.detections(box_rows, ground_truth, read, read.sources(), read.notes(sizes))


def _sizes_of_truth(images: list[str], truth: GroundTruth) -> Floats | None:
    """Return the sizes (I, 2) of images in the ground truth; None if it has no sizes."""
    if truth.image_sizes is None:
        return None
    known: dict[Name, list[float]] = dict(
        zip(truth.images, truth.image_sizes.tolist(), strict=True)
    )
    unknown = [np.nan, np.nan]
    return np.array([known.get(name, unknown) for name in images], np.float64).reshape(-1, 2)


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
        self.table_file = "" if image_sizes is None else os.fspath(image_sizes)
        self.table = None if image_sizes is None else read_image_sizes(image_sizes, limits)
        self.rows = read_rows(
            self.given, problems, limits, scored=scored, as_is=as_is, labels=labels
        )
        problems.raise_any()
        self.origin = np.arange(len(self.rows))
        self.stems = [stem_of(word) for word in self.rows.images]
        self._check_stems()
        self._name_classes()
        if labels:
            self._check_confidences()
        if not as_is:
            self._check_order()

    def _raise_for_names(self, column: Integers, faults: dict[int, str], hint: str) -> None:
        """Raise InputError for invalid names, located at the first row of each.

        Parameters
        ----------
        column : (N,) int32
            The index of each row's name; every name is used.
        faults : dict of int to str
            The message by index of the name.
        hint : str
        """
        if faults:
            problems = Problems(self.limits.problems)
            first = np.unique(column, return_index=True)[1].tolist()
            for number, message in faults.items():
                line = self.rows.line(first[number])
                problems.add(self.path, f"line {line}", message, hint)
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
        """Raise InputError for labels that are not human-verified."""
        assert self.rows.score is not None
        rows = np.flatnonzero(~np.isin(self.rows.score, (0.0, 1.0)))
        problems = Problems(self.limits.problems)
        for row in rows.tolist():
            message = f"Confidence {self.rows.score[row]:g} is not 0 or 1"
            line = f"line {self.rows.line(row)}"
            problems.add(self.path, line, message, "use the human-verified labels")
        problems.raise_any()
        self._check_contradictions(problems)

    def _check_contradictions(self, problems: Problems) -> None:
        """Raise InputError for contradicting labels of an image and class."""
        assert self.rows.score is not None
        number = objects.name_index(self.stems)[1]  # an image may have its suffix in some rows
        pair = number[self.rows.image].astype(np.int64) * max(len(self.classes), 1) + self._label
        _, first, entry = np.unique(pair, return_index=True, return_inverse=True)
        earlier = first[entry]
        for row in np.flatnonzero(self.rows.score != self.rows.score[earlier]).tolist():
            image = self.rows.images[self.rows.image[row]]
            message = (
                f"class {quote(self.classes[self._label[row]])} of image {quote(image)} has "
                f"Confidence {self.rows.score[row]:g}, and "
                f"{self.rows.score[earlier[row]]:g} in line {self.rows.line(int(earlier[row]))}"
            )
            line = f"line {self.rows.line(row)}"
            problems.add(self.path, line, message, "keep one of them")
        problems.raise_any()

    def expand(self, tree: Hierarchy) -> None:
        """Repeat rows for the ancestors of their class; labels of absence, for the descendants.

        The copies of a row replace it in place, its own class first.
        """
        unknown = [name for name in self.classes if name not in tree.above]
        self._raise_for_names(
            self._label,
            {
                self.classes.index(name): f"class {quote(name)} is not in {tree.file}"
                for name in unknown
            },
            "use the hierarchy of these classes; its root is not a class",
        )
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
        assert self.rows.score is not None
        image = indices_in(self.stems, images)[self.rows.image[self.origin]]
        pairs = np.stack([image, indices_in(self.classes, classes)[self._label]], axis=1)
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
            raise negative_size_error(self.path, len(rows), len(corners), listed)

    def check_sizes(self, sizes: Floats, images: list[str]) -> None:
        """Raise InputError for boxes of images of unknown size (I, 2)."""
        source = self.table_file or "the ground truth"
        index_by_stem = {stem: index for index, stem in enumerate(self.stems)}
        unknown = np.flatnonzero(np.isnan(sizes).any(axis=1)).tolist()
        self._raise_for_names(
            self.rows.image,
            {
                index_by_stem[images[i]]: f"image {quote(images[i])} has no size in {source}"
                for i in unknown
                if images[i] in index_by_stem
            },
            "pass --image-sizes FILE with the size of each image",
        )

    def check_same_sizes(self, sizes: Floats, others: Floats, images: list[str]) -> None:
        """Raise InputError if a table's sizes (I, 2) differ from the ground truth."""
        index_by_stem = {stem: index for index, stem in enumerate(self.stems)}
        differ = np.flatnonzero((np.abs(sizes - others) > 0).any(axis=1)).tolist()
        message = "image {} is {:g} by {:g} pixels in {}, and {:g} by {:g} in the ground truth"
        self._raise_for_names(
            self.rows.image,
            {
                index_by_stem[images[i]]: message.format(
                    quote(images[i]), *sizes[i], self.table_file, *others[i]
                )
                for i in differ
            },
            "correct the table, or omit it",
        )

    def box_rows(self, images: list[str], sizes: Floats | None) -> objects.Objects:
        """Return the boxes, in pixels where sizes (I, 2) are known."""
        image = indices_in(self.stems, images)[self.rows.image[self.origin]]
        boxes = self.rows.corners[self.origin]
        if sizes is not None:
            boxes = boxes * np.tile(sizes, 2)[image]
        return objects.Objects(tuple(images), self.classes, image, self._label, boxes)

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a box."""
        return self.path, f"line {self.rows.line(int(self.origin[row]))}"

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the input sources."""
        return (
            SourceFile(self.given, len(self.rows), sha256=self.rows.sha256),
            *self.descriptions.source(),
            *((SourceFile(self.table_file, len(self.table)),) if self.table else ()),
        )

    def notes(self, sizes: Floats | None) -> tuple[Note, ...]:
        """Return notes about the file."""
        commas = len(self.rows) if self.rows.commas else 0
        message = "rows have decimal commas"
        unknown = (FRACTIONS,) if sizes is None else ()
        return (*unknown, *nonzero_notes(Note("decimal-commas", message, commas, severity="info")))
