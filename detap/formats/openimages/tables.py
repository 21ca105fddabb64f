"""Open Images' CSV files of boxes to tables.

References: the description of Open Images' files (storage.googleapis.com/openimages/web); for
detections the columns of the Challenge's evaluator in TensorFlow's object detection library.
"""

import os
from dataclasses import dataclass

import numpy as np

from detap.errors import Note
from detap.formats.named import objects
from detap.formats.named.notes import told
from detap.formats.named.problems import Problems, shown
from detap.formats.named.sides import Stand
from detap.formats.openimages.descriptions import Descriptions
from detap.formats.openimages.rows import CORNERS, Rows, read_rows
from detap.formats.reading.image_sizes import read_image_sizes, sizes_of, stem_of
from detap.formats.reading.paths import shown as called
from detap.formats.reading.stream import DEFAULT_LIMITS, Limits, refuse
from detap.tables.detection import (
    Detections,
    Floats,
    GroundTruth,
    Integers,
    Name,
    SourceFile,
)
from detap.tables.doubts import FRACTIONS, backward, of_unknown_size, too_many, too_many_backward

Path = str | os.PathLike[str]


def read_ground_truth(
    path: Path,
    *,
    class_descriptions: Path | None = None,
    image_sizes: Path | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of a CSV with a row for each box.

    Columns go by the names in the first line: ``ImageID``, ``LabelName``, ``XMin``, ``XMax``,
    ``YMin``, ``YMax`` in fractions of the image's size, and ``IsGroupOf`` (0, 1, or -1 where it is
    unknown, which counts as 0). An image is called by its ``ImageID`` without the suffix.

    Parameters
    ----------
    path : str or path
    class_descriptions : str or path, optional
        A CSV of ``LabelName,DisplayName``, with or without that header.
    image_sizes : str or path, optional
        A CSV of ``image,width,height``. Boxes are in pixels then, and images without boxes are
        those that it lists besides. Without it boxes stay in fractions: overlaps are the same, but
        what asks for areas or whole pixels is refused.
    as_is : bool
        Whether numbers that look like pixels are fractions, and boxes that end before they begin
        count however many there are.
    limits : Limits
        What is accepted at most.

    Returns
    -------
    GroundTruth
        Images and classes sorted by name, rows in the order of the file.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    """
    read = _Read(path, class_descriptions, image_sizes, limits, scored=False, as_is=as_is)
    if not len(read.rows) and not limits.empty:
        refuse(read.path, "has no box", "give the annotations that belong to these detections")
    images = sorted({*read.stems, *(read.table or ())})
    sizes = None if read.table is None else sizes_of(images, read.table)
    read.check_sizes(sizes, images)
    found = read.objects(images, sizes)
    empty = len(images) - len(set(read.stems))
    notes = told(
        Note(
            "group-of-unknown",
            "of boxes it is unknown whether they are groups (IsGroupOf -1); they count as none",
            read.rows.unknown,
            warning=False,
        ),
        Note("images-without-objects", "images have no object", empty, warning=False),
    )
    return objects.ground_truth(
        found._replace(flags={"group_of": read.rows.group_of}, sizes=sizes),
        read.stand(),
        read.sources(),
        (*read.notes(sizes), *notes),
    )


def read_detections(
    path: Path,
    truth: GroundTruth,
    *,
    class_descriptions: Path | None = None,
    image_sizes: Path | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections from a CSV with a row for each.

    The columns are those of the ground truth and ``Score``, in any order.

    Parameters
    ----------
    path : str or path
        ``"-"`` is standard input.
    truth : GroundTruth
        What they are about: its images and classes; and the images' sizes, unless it knows none
        either, because it is in fractions too.
    class_descriptions, image_sizes, as_is, limits
        As :func:`read_ground_truth` has them.

    Returns
    -------
    Detections
        Numbered as `truth`; classes that it lacks are behind its own, sorted by name.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    """
    read = _Read(path, class_descriptions, image_sizes, limits, scored=True, as_is=as_is)
    images = sorted(set(read.stems))
    sizes = None
    if not of_unknown_size(truth) and (read.table is not None or truth.image_sizes is not None):
        sizes = _known_sizes(images, truth, read.table)
        read.check_sizes(sizes, images)
    found = read.objects(images, sizes)._replace(score=read.rows.score)
    return objects.detections(found, truth, read.stand(), read.sources(), read.notes(sizes))


def _known_sizes(
    images: list[str], truth: GroundTruth, table: dict[str, tuple[int, int]] | None
) -> Floats:
    """Return the sizes (I, 2) of images by a table, or else by the ground truth."""
    if table is not None:
        return sizes_of(images, table)
    known: dict[Name, list[float]] = {}
    if truth.image_sizes is not None:
        known = dict(zip(truth.images, truth.image_sizes.tolist(), strict=True))
    # That an image is unknown is said later, of all of them.
    return np.array([known.get(name, (1.0, 1.0)) for name in images], np.float64).reshape(-1, 2)


@dataclass(init=False)
class _Read:
    """A file that was read, with what goes beside it."""

    path: str
    called: str
    limits: Limits
    as_is: bool
    rows: Rows
    descriptions: Descriptions
    table: dict[str, tuple[int, int]] | None
    table_file: str
    stems: list[str]
    _classes: tuple[str, ...]
    _label: Integers

    def __init__(
        self,
        path: Path,
        class_descriptions: Path | None,
        image_sizes: Path | None,
        limits: Limits,
        *,
        scored: bool,
        as_is: bool,
    ) -> None:
        self.path, self.limits, self.as_is = os.fspath(path), limits, as_is
        self.called = called(self.path)
        problems = Problems(limits.problems)
        self.descriptions = Descriptions(class_descriptions, problems, limits)
        problems.raise_any()
        self.table_file = "" if image_sizes is None else os.fspath(image_sizes)
        self.table = None if image_sizes is None else read_image_sizes(image_sizes, limits)
        self.rows = read_rows(self.path, problems, limits, scored=scored, as_is=as_is)
        problems.raise_any()
        self.stems = [stem_of(word) for word in self.rows.images]
        self._check_stems(problems)
        self._name_classes(problems)
        problems.raise_any()
        if not as_is:
            self._check_order()

    def _line(self, column: Integers, number: int) -> str:
        """Return the first line where a column has that number."""
        return f"line {self.rows.line(int(np.argmax(column == number)))}"

    def _check_stems(self, problems: Problems) -> None:
        """Refuse two images of one name: one with a suffix and without it are the same."""
        first: dict[str, str] = {}
        for number, (word, stem) in enumerate(zip(self.rows.images, self.stems, strict=True)):
            other = word if word == stem else first.setdefault(stem, word)
            if other != word:
                place = self._line(self.rows.image, number)
                message = f"image {shown(word)} is called as {shown(other)} is, without its suffix"
                problems.add(self.called, place, message, "give images different names")

    def _name_classes(self, problems: Problems) -> None:
        names = [self.descriptions.name(label) for label in self.rows.labels]
        for number, (name, label) in enumerate(zip(names, self.rows.labels, strict=True)):
            if name is None:
                place = self._line(self.rows.label, number)
                message = f"label {shown(label)} is not in {self.descriptions.file}"
                problems.add(self.called, place, message, "give the list that belongs to this file")
        self._classes, number_of = objects.numbered([name or "" for name in names])
        self._label = number_of[self.rows.label]

    def _check_order(self) -> None:
        """Refuse boxes most of which end before they begin, in the fractions of the file."""
        corners = self.rows.corners
        width, height = (corners[:, 2:] - corners[:, :2]).T
        at = backward(corners, width * height)
        if len(at) and too_many(len(at), len(corners)):
            listed = self.stand().faults(corners, at[: self.limits.problems])
            raise too_many_backward(self.called, len(at), len(corners), listed)

    def check_sizes(self, sizes: Floats | None, images: list[str]) -> None:
        """Refuse boxes of images whose size is not known, where others' are."""
        if sizes is None:
            return
        problems = Problems(self.limits.problems)
        boxed = {stem: number for number, stem in enumerate(self.stems)}
        for name, side in zip(images, sizes.tolist(), strict=True):
            if name in boxed and not all(map(np.isfinite, side)):
                where = self.table_file or "the ground truth"
                message = f"image {shown(name)} has no size in {where}"
                place = self._line(self.rows.image, boxed[name])
                remedy = "give the size of each image (image_sizes, --image-sizes FILE)"
                problems.add(self.called, place, message, remedy)
        problems.raise_any()

    def objects(self, images: list[str], sizes: Floats | None) -> objects.Objects:
        """Return the boxes, in pixels where sizes (I, 2) are known."""
        number = {name: at for at, name in enumerate(images)}
        place = np.array([number[stem] for stem in self.stems], np.int32)
        image = place[self.rows.image] if len(self.rows) else self.rows.image
        boxes = self.rows.corners
        if sizes is not None:
            boxes = boxes * np.tile(sizes, 2)[image]
        return objects.Objects(tuple(images), self._classes, image, self._label, boxes)

    def stand(self) -> Stand:
        """Return where the boxes stand."""
        return Stand(
            self.called,
            self.limits,
            self.as_is,
            lambda row: (self.called, f"line {self.rows.line(row)}"),
            corners=CORNERS,
        )

    def sources(self) -> tuple[SourceFile, ...]:
        """Return what was read."""
        return (
            SourceFile(self.path, len(self.rows), sha256=self.rows.sha256),
            *self.descriptions.source(),
            *((SourceFile(self.table_file, len(self.table)),) if self.table else ()),
        )

    def notes(self, sizes: Floats | None) -> tuple[Note, ...]:
        """Return what is to be said of either side."""
        commas = len(self.rows) if self.rows.commas else 0
        message = "rows have decimal commas, which are taken for points: no number has one of both"
        unknown = (FRACTIONS,) if sizes is None else ()
        return (*unknown, *told(Note("decimal-commas", message, commas, warning=False)))
