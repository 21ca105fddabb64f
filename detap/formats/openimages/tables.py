"""Read Open Images' CSV files.

References: the description of Open Images' files (storage.googleapis.com/openimages/web); for
detections the columns of the Challenge's evaluator in TensorFlow's object detection library.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.checks.tables import negative_size_error, of_unknown_size
from detap.errors import InputError, Note, Problem
from detap.formats.base import Format
from detap.formats.by_name import objects
from detap.formats.by_name.notes import images_without_objects, nonzero_notes
from detap.formats.by_name.problems import refuse_empty
from detap.formats.image_sizes import GivenSizes, refuse_unknown, sizes_of
from detap.formats.openimages.labels import Descriptions, Hierarchy
from detap.formats.openimages.rows import FORM_LABELS, Rows
from detap.formats.stem_matching import empty_ground_truth, stem_of
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile
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
    refuse_empty(read.path, len(read), limits, "boxes", "annotations")
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
    images = sorted({*read.stems, *read.sizes.table, *([] if labels is None else labels.stems)})
    sizes = read.sizes.of(images) if read.sizes.table else None
    box_rows = read.box_rows(images, sizes)
    notes = nonzero_notes(
        Note(
            "group-of-unknown",
            "boxes have an unknown group flag (IsGroupOf -1); read as 0",
            read.unknown,
            severity="info",
        ),
        images_without_objects(len(images), box_rows.image),
    )
    if labels is not None:
        classes = sorted({*box_rows.classes, *labels.classes})
        index = indices_in(box_rows.classes, classes)
        box_rows = box_rows._replace(classes=tuple(classes), label=index[box_rows.label])
        sources += (SourceFile(labels.given, len(labels), sha256=labels.sha256),)
    table = objects.ground_truth(
        box_rows._replace(flags={"group_of": read.group_of[read.origin]}, sizes=sizes),
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
    check_scores(read.score, read.location)
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
    box_rows = read.box_rows(images, sizes)._replace(score=read.score)
    return objects.detections(box_rows, ground_truth, read, read.sources(), read.notes(sizes))


class _Read(Rows):
    """The rows of a CSV file, with class names and image sizes.

    `origin` is the row of the file of each box or label, several of which a hierarchy may expand
    from one; `number` is their index into `classes`.
    """

    def __init__(
        self,
        path: Path,
        class_descriptions: Path | None,
        image_sizes: Path | None,
        limits: Limits,
        **kind: bool,
    ) -> None:
        problems = Problems(limits.problems)
        self.descriptions = Descriptions(class_descriptions, problems, limits)
        problems.raise_any()
        self.sizes = GivenSizes.read(None, image_sizes, limits)
        super().__init__(os.fspath(path), problems, limits, **kind)
        problems.raise_any()
        self.origin = np.arange(len(self))
        self.stems = [stem_of(word) for word in self.images]
        self._check_stems()
        self._name_classes()
        if self.form == FORM_LABELS:
            self._check_confidences()
        if not self.as_is:
            self._check_order()

    def _refuse(self, rows: NDArray[np.intp], message: Callable[[int], str], hint: str) -> None:
        """Raise InputError for rows, if there are any."""
        self.problems.add_rows(rows.tolist(), self.location, message, hint)
        self.problems.raise_any()

    def _refuse_names(self, column: Integers, faults: dict[int, str], hint: str) -> None:
        """Raise InputError for names, with messages by index, at the first row of each."""
        if faults:
            first = np.unique(column, return_index=True)[1]
            self._refuse(first[[*faults]], lambda row: faults[int(column[row])], hint)

    def _check_stems(self) -> None:
        """Raise InputError for images that differ only in the suffix."""
        first: dict[str, str] = {}
        faults = {}
        for number, (word, stem) in enumerate(zip(self.images, self.stems, strict=True)):
            other = word if word == stem else first.setdefault(stem, word)
            if other != word:
                message = f"image {quote(word)} and {quote(other)} differ only in the suffix"
                faults[number] = message
        self._refuse_names(self.image, faults, "rename one of them")

    def _name_classes(self) -> None:
        names = [self.descriptions.name(label) for label in self.labels]
        faults = {
            number: f"label {quote(self.labels[number])} is not in {self.descriptions.file}"
            for number, name in enumerate(names)
            if name is None
        }
        self._refuse_names(self.label, faults, "use the list that belongs to this file")
        self.classes, number_of = objects.name_index([name or "" for name in names])
        self.number = number_of[self.label]

    def _check_confidences(self) -> None:
        """Raise InputError for labels that are not human-verified, or contradict each other."""
        score = self.score
        self._refuse(
            np.flatnonzero(~np.isin(score, (0.0, 1.0))),
            lambda row: f"Confidence {score[row]:g} is not 0 or 1",
            "use the human-verified labels",
        )
        image = objects.name_index(self.stems)[1]  # an image may have its suffix in some rows
        pair = image[self.image].astype(np.int64) * max(len(self.classes), 1) + self.number
        _, first, entry = np.unique(pair, return_index=True, return_inverse=True)
        earlier = first[entry]
        self._refuse(
            np.flatnonzero(score != score[earlier]),
            lambda row: (
                f"class {quote(self.classes[self.number[row]])} of image "
                f"{quote(self.images[self.image[row]])} has Confidence {score[row]:g}, and "
                f"{score[earlier[row]]:g} in line {self.line[earlier[row]]}"
            ),
            "keep one of them",
        )

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
        self._refuse_names(self.number, faults, hint)
        # The ancestors of each class, followed by the descendants of each.
        relatives = [[*tree.above[name]] for name in self.classes]
        relatives += [[*tree.below[name]] for name in self.classes]
        classes, numbers = objects.name_index([name for names in relatives for name in names])
        sizes = np.array([len(names) for names in relatives], np.intp)
        entry = self.number.astype(np.intp)
        entry[self.score == 0] += len(self.classes)
        count = sizes[entry]
        rows, limit = int(count.sum()), max(self.limits.expansion * len(self), _MANY_ROWS)
        if rows > min(limit, self.limits.records):
            message = f"the hierarchy expands {len(self)} rows to {rows}"
            hint = "raise the limits with --max-expansion and --max-records"
            raise InputError(Problem(self.path, "", message, hint))
        nth = np.arange(rows) - np.repeat(np.cumsum(count) - count, count)
        self.number = numbers[np.repeat((np.cumsum(sizes) - sizes)[entry], count) + nth]
        self.origin = np.repeat(self.origin, count)
        used, label = np.unique(self.number, return_inverse=True)
        self.number = label.astype(np.int32)
        self.classes = tuple(classes[number] for number in used.tolist())

    def listed(self, images: list[str], classes: Sequence[str]) -> dict[str, Integers]:
        """Return the distinct labels as the ``positive`` and ``negative`` lists of a table."""
        image = indices_in(self.stems, images)[self.image[self.origin]]
        pairs = np.stack([image, indices_in(self.classes, classes)[self.number]], axis=1)
        present = self.score[self.origin] == 1
        lists = {"negative": ~present, "positive": present}
        return {name: np.unique(pairs[rows], axis=0) for name, rows in lists.items()}

    def _check_order(self) -> None:
        """Raise InputError if many normalized boxes have negative size."""
        corners = self.corners
        width, height = (corners[:, 2:] - corners[:, :2]).T
        rows = backward(corners, width * height)
        if len(rows) and too_many(len(rows), len(corners)):
            listed = self.box_problems(corners, rows[: self.limits.problems], "xyxy")
            looks = exchanged(corners, self.corner_names)[0]
            raise negative_size_error(self.path, len(rows), len(corners), listed, looks)

    def box_rows(self, images: list[str], sizes: Floats | None) -> objects.Objects:
        """Return the boxes, in pixels where sizes (I, 2) are known."""
        image = indices_in(self.stems, images)[self.image[self.origin]]
        boxes = self.corners[self.origin]
        if sizes is not None:
            refuse_unknown(sizes, image, images, self.path)
            boxes = boxes * np.tile(sizes, 2)[image]
        return objects.Objects(tuple(images), self.classes, image, self.number, boxes)

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and line of a box."""
        return self.path, f"line {self.line[self.origin[row]]}"

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the input sources."""
        return (
            SourceFile(self.given, len(self), sha256=self.sha256),
            *self.descriptions.source(),
            *self.sizes.source,
        )

    def notes(self, sizes: Floats | None) -> tuple[Note, ...]:
        """Return notes about the file."""
        unknown = (FRACTIONS,) if sizes is None else ()
        commas = len(self) * self.commas
        note = Note("decimal-commas", "rows have decimal commas", commas, severity="info")
        return (*unknown, *nonzero_notes(note))


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
