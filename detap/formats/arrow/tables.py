"""Parquet and Arrow files to tables: columns as COCO's records have keys.

A file whose columns hold what a COCO file holds gives the same tables, to the last bit.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note, UsageError
from detap.formats.arrow.files import check_installed, damage, opened
from detap.formats.coco.assembly import (
    Source,
    detection_table,
    refuse_same_file,
    truth_table,
)
from detap.formats.coco.columns import DetectionColumns, TruthColumns
from detap.formats.json.text import spelt
from detap.formats.reading.problems import Problems
from detap.formats.reading.stream import DEFAULT_LIMITS, Limits, shown
from detap.tables.detection import (
    BOX_ENCODINGS,
    Detections,
    Flags,
    Floats,
    GroundTruth,
    Integers,
    Name,
    SourceFile,
    encode_boxes,
)

Path = str | os.PathLike[str]

_NONE = np.zeros(0, np.intp)
_NAME_DUE = "give a whole number or text"
_FLAGS = {"crowd": "iscrowd", "difficult": "difficult", "ignore": "ignore", "group_of": "group_of"}
_LAYOUT = (
    "mend the boxes; or, if the numbers are of the other kind, name the columns so (x1, y1, x2, y2 "
    "or x, y, width, height; of bbox, the metadata `boxes`)"
)


def read_ground_truth(
    path: Path,
    *,
    boxes: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read ground truth from a Parquet or Arrow file.

    Images and classes are numbered as of a COCO file: by ascending id, or name. A row that has an
    image and nothing else is an image without any object; of Hugging Face's datasets, one whose
    lists are empty.

    Parameters
    ----------
    path : str or path
        The file, or a URL.
    boxes : {"xywh", "corners"}, optional
        What the four numbers of a column `bbox` are, where its metadata do not say.
    as_is : bool
        As :func:`detap.formats.coco.tables.read_ground_truth` has it.
    limits : Limits
        What is accepted at most.

    Raises
    ------
    UsageError
        Where pyarrow is not installed.
    InputError
        With every problem of the file, up to `limits.problems`.
    """
    table = _Table(path, False, boxes, limits)
    columns = table.truth()
    empty = len(columns.image_ids) - len(np.unique(columns.image))
    found = truth_table(columns, table.source(columns.records, as_is, columns.origin))
    notes = list(table.notes())
    if empty:
        message = "images have no object"
        notes.append(Note("images-without-objects", message, empty, warning=False))
    return replace(found, notes=(*found.notes, *notes))


def read_detections(
    path: Path,
    truth: GroundTruth,
    *,
    boxes: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections from a Parquet or Arrow file.

    Parameters
    ----------
    path, boxes, limits
        As :func:`read_ground_truth` has them; so is what is raised. ``"-"`` is standard input.
    truth : GroundTruth
        Of whatever format: image ids are its own, and category ids, or the names of its classes.
        Detections of a class that it does not list are left out, with a note.
    as_is : bool
        As :func:`detap.formats.coco.tables.read_detections` has it.
    """
    refuse_same_file(path, truth, "give the detections")
    table = _Table(path, True, boxes, limits)
    columns = table.detections(truth)
    found = detection_table(columns, truth, table.source(len(columns.image), as_is))
    return replace(found, notes=(*found.notes, *table.notes()))


def names_of(
    path: Path, limits: Limits, boxes: str | None
) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
    """Return the images and classes that detections name."""
    rows = _Table(path, True, boxes, limits).rows
    column = rows.shape.class_columns[0]
    return tuple(rows.image.number), tuple(rows.codes[column].number)


class _Table:
    """A file that was read: its columns, and what is wrong with them."""

    def __init__(self, path: Path, scored: bool, boxes: str | None, limits: Limits) -> None:
        check_installed()
        from detap.formats.arrow.gather import Gathered  # imports pyarrow
        from detap.formats.arrow.shape import UnfitError, shape_of

        if boxes not in (None, *BOX_ENCODINGS):
            raise UsageError(f"boxes {boxes!r} is unknown; use one of {', '.join(BOX_ENCODINGS)}")
        self.path = os.fspath(path)
        self.limits = limits
        self.problems = Problems(shown(self.path), limits.problems)
        with opened(path, limits) as container, damage(self.path):
            self.shape = shape_of(container.schema, scored, boxes, self.problems)
            container.check_size(self.shape.columns, limits)
            batches = container.batches(self.shape.columns)
            try:
                self.rows = Gathered(self.shape, batches, sum(container.rows))
            except UnfitError as error:
                self.problems.add("", *error.args)
        self.problems.raise_any()
        if len(self.rows) > limits.records:
            message = f"has more than {limits.records} boxes"
            self.problems.add("", message, "raise the limit on records (--max-records)")
            self.problems.raise_any()
        self._container = container
        self._starts = None if self.rows.counts is None else np.cumsum(self.rows.counts)

    def source(self, records: int, as_is: bool, origin: Any = None) -> Source:
        """Return where the columns were read, for what is said of them."""

        def place(row: int) -> str:
            return self.place(row if origin is None else int(origin[row]))

        file = SourceFile(self.path, records, sha256=self._container.sha256)
        return Source(file, self.limits, as_is, place, self.shape.encoding, _LAYOUT)

    def place(self, row: int) -> str:
        """Return where a box stands."""
        if self._starts is None:
            return self._container.place(row)
        image = int(np.searchsorted(self._starts, row, side="right"))
        first = int(self._starts[image - 1]) if image else 0
        return f"{self._container.place(image)}, objects[{row - first}]"

    def notes(self) -> Iterator[Note]:
        """Say what is true of the table as such."""
        if self.rows.single:
            message = (
                "boxes or scores are of single precision (float32), and are read as just these "
                "numbers; JSON of the same detector has others, so that AP may differ from its in "
                "the eighth decimal"
            )
            yield Note("float32-columns", message, warning=False)

    def truth(self) -> TruthColumns:
        """Return ground truth; raise where something is wrong with it."""
        image = self._image()
        bare = self._bare_rows()
        label, class_ids, class_names = self._classes(bare)
        corners, box_area = self._boxes(bare)
        area, without_area = self._areas(box_area)
        columns: dict[str, NDArray[Any]] = {
            "label": label,
            "corners": corners,
            "box_area": box_area,
            "area": area,
        }
        for flag, name in _FLAGS.items():
            columns[flag] = self._flag(name)
        ids = self._ids()
        self.problems.raise_any()
        names, columns["image"] = self._sorted_images(image)
        kept = np.ones(len(image), np.bool_)
        kept[bare] = False
        records = int(np.count_nonzero(kept))
        if not records:
            self.problems.add("", "has no annotations", "there is nothing to score against")
        repeated = self._repeated(ids, columns, kept)
        self.problems.raise_any()
        without = {
            "missing-annotation-ids": self.rows.without("id"),
            "missing-area": without_area,
            "missing-iscrowd": self.rows.without("iscrowd"),
        }
        counts = {code: int(np.count_nonzero(kept[rows])) for code, rows in without.items()}
        is_zero = (ids == self.rows.codes["id"].number.get(0, -2))[kept]
        counts["annotation-id-zero"] = int(np.count_nonzero(is_zero))
        origin = None
        if not kept.all():
            origin = np.flatnonzero(kept)
            columns = {name: column[kept] for name, column in columns.items()}
        return TruthColumns(
            **columns,
            image_ids=names,
            image_sizes=self._sizes(names),
            class_ids=class_ids,
            class_names=class_names,
            records=records,
            zero_row=int(is_zero.argmax()) if is_zero.any() else -1,
            origin=origin,
            counts=counts,
            repeated={"annotations": repeated},
        )

    def detections(self, truth: GroundTruth) -> DetectionColumns:
        """Return detections, numbered as `truth`; raise where something is wrong with them."""
        image = self._image()
        label, unknown = self._known_classes(truth)
        corners, box_area = self._boxes()
        score = self.rows.numbers("score")
        self._check_given("score", score)
        self._check_finite("score", score)
        self.problems.raise_any()
        dense = self._dense(self.rows.image, truth.images)
        self._check_images(dense, image, truth.images)
        self.problems.raise_any()
        image = dense[image] if len(dense) else image
        return DetectionColumns(image, label, corners, box_area, score, unknown, {})

    # --- what every file has

    def _report(
        self, rows: Any, message: str | Callable[[int], str], remedy: str, place: Any = None
    ) -> None:
        """Note a problem of some rows, of which as many are listed as may be."""
        for row in rows[: self.limits.problems].tolist():
            text = message if isinstance(message, str) else message(row)
            self.problems.add((place or self.place)(row), text, remedy)
        self.problems.count += max(0, len(rows) - self.limits.problems)

    def _check_names(self, name: str, codes: Any, bare: Any = _NONE, place: Any = None) -> Integers:
        """Return the number of each row's name; note the rows that have none."""
        found: Integers = codes.rows()
        without = np.setdiff1d(self.rows.without(name), bare)
        self._report(without, f"{name} is null", _NAME_DUE, place)
        if codes.wrong:
            rows = np.setdiff1d(np.flatnonzero(np.isin(found, list(codes.wrong))), without)
            said = codes.wrong
            self._report(rows, lambda row: f"{name} is {_said(said[found[row]])}", _NAME_DUE, place)
        return found

    def _image(self) -> Integers:
        """Return the number of each box's image, as first met."""
        place = self._container.place
        found = self._check_names("image_id", self.rows.image, _NONE, place)
        if self.rows.counts is None:
            return found
        first = np.full(len(self.rows.image.number), -1)
        first[found[::-1]] = np.arange(len(found))[::-1]
        again = np.flatnonzero(first[found] != np.arange(len(found)))
        self._report(
            again,
            lambda row: f"its image_id is that of {place(first[found[row]])} too",
            "give each image one row",
            place,
        )
        return np.repeat(found, self.rows.counts)

    def _boxes(self, bare: Any = _NONE) -> tuple[Floats, Floats]:
        """Return the corners (N, 4) and areas (N,) of all boxes."""
        box = self.rows.boxes()
        names = self.shape.box
        columns = [box] if len(names) == 1 else list(box.T)
        for name, column in zip(names, columns, strict=True):
            self._check_given(name, column, bare)
        if not np.isfinite(box).all():
            for name, column in zip(names, columns, strict=True):
                self._check_finite(name, column)
        fine = not self.problems.count
        corners, areas = encode_boxes(box, self.shape.encoding, copy=False)
        if fine and not (np.isfinite(areas).all() and np.isfinite(corners).all()):
            over = np.flatnonzero(~(np.isfinite(areas) & np.isfinite(corners).all(axis=1)))
            self._report(over, "the box overflows", "give a box of finite area and corners")
        return corners, areas

    def _check_given(self, name: str, column: Floats, bare: Any = _NONE) -> None:
        """Note the rows of a column, (N,) or (N, 4), that have no finite numbers."""
        without = np.setdiff1d(self.rows.without(name), bare)
        what, due = ("null", "a number") if column.ndim == 1 else ("null, or not 4", "4 numbers")
        self._report(without, f"{name} is {what}", f"give {due}")
        self._report(
            self.rows.inexact(name),
            lambda row: f"{name} is about {_said(column[row].tolist())}, beyond 2^53",
            "give numbers that float64 holds, such as whole numbers below 2^53",
        )

    def _check_finite(self, name: str, column: Floats) -> None:
        if not np.isfinite(column).all():
            finite = np.isfinite(column).reshape(len(column), -1).all(axis=1)
            rows = np.setdiff1d(np.flatnonzero(~finite), self.rows.without(name))
            self._report(
                rows, lambda row: f"{name} is {_said(column[row].tolist())}", "give finite numbers"
            )

    # --- ground truth

    def _bare_rows(self) -> Any:
        """Return the rows that have an image and nothing else."""
        bare = np.arange(0 if self.shape.nested else len(self.rows))
        for name in (*self.shape.box, *self.shape.class_columns):
            bare = np.intersect1d(bare, self.rows.without(name)) if len(bare) else bare
        return bare

    def _classes(self, bare: Any) -> tuple[Integers, tuple[Name, ...], tuple[str | None, ...]]:
        """Return the class of each row, and the ids and names of the classes."""
        codes = {
            name: self._check_names(name, self.rows.codes[name], bare)
            for name in self.shape.class_columns
        }
        column, *others = self.shape.class_columns
        found = self.rows.codes[column]
        if found.wrong or self.problems.count:
            return codes[column], (), ()
        listed = self.shape.class_names
        if column == "category" and self.shape.id_column and listed is not None:
            ids: tuple[Name, ...] = tuple(range(len(listed)))
            label = self._dense(found, ids)[codes[column]]
            label[bare] = 0
            self._report(
                np.flatnonzero(label < 0),
                lambda row: f"category is {list(found.number)[codes[column][row]]}",
                f"the metadata huggingface name the classes 0 to {len(listed) - 1}",
            )
            return label, ids, listed
        ids = tuple(sorted(found.number))
        names: tuple[str | None, ...] = tuple(map(str, ids))
        if self.shape.id_column:
            names = (None,) * len(ids)
        if others:
            called = self._called(codes[column], codes["category"], bare)
            names = tuple(called.get(identifier) for identifier in ids)
        dense = self._dense(found, ids)
        return dense[codes[column]] if len(dense) else codes[column], ids, names

    def _called(self, ids: Integers, names: Integers, bare: Any = _NONE) -> dict[Name, str]:
        """Return what each category id is called; note those called two things."""
        by_id, by_name = (list(self.rows.codes[k].number) for k in ("category_id", "category"))
        many = len(by_name) + 1
        rows = np.setdiff1d(np.arange(len(ids)), bare)
        pairs, first = np.unique(ids[rows].astype(np.int64) * many + names[rows], return_index=True)
        called: dict[Name, str] = {}
        for pair, row in zip(pairs.tolist(), rows[first].tolist(), strict=True):
            number, other = divmod(pair, many)
            identifier, name = by_id[number], str(by_name[other])
            if called.setdefault(identifier, name) != name:
                message = (
                    f"category {spelt(identifier)} is {spelt(name)} here, "
                    f"{spelt(called[identifier])} elsewhere"
                )
                self.problems.add(self.place(row), message, "give each category one name")
        return called

    def _areas(self, box_area: Floats) -> tuple[Floats, Any]:
        """Return the annotated areas, the box's where there is none; and the rows without."""
        area = self.rows.numbers("area")
        without = self.rows.without("area")
        self._check_given("area", area, without)
        self._check_finite("area", area)
        negative = np.flatnonzero(area < 0)
        self._report(
            negative, lambda row: f"area is {area[row]:g}", "give the area of the object, >= 0"
        )
        area[without] = box_area[without]
        return area, without

    def _flag(self, name: str) -> Flags:
        """Return a flag, false where there is none."""
        values = self.rows.numbers(name)
        wrong = np.flatnonzero((values != 0) & (values != 1))
        self._report(wrong, lambda row: f"{name} is {_said(values[row].item())}", "give 0 or 1")
        return np.asarray(values == 1)

    def _ids(self) -> Integers:
        """Return the number of each annotation's id, -1 where there is none."""
        ids = np.full(len(self.rows), -1, np.int32)
        if "id" in self.shape.fields:
            without = self.rows.without("id")
            ids[:] = self._check_names("id", self.rows.codes["id"], without)
            ids[without] = -1
        return ids

    def _repeated(self, ids: Integers, columns: Mapping[str, Any], kept: Flags) -> list[Name]:
        """Leave out the rows that repeat an earlier one, id and all; return their ids."""
        rows = np.flatnonzero(ids >= 0)
        names = list(self.rows.codes["id"].number)
        if len(names) == len(rows):
            return []
        first = np.full(len(names), -1)
        first[ids[rows[::-1]]] = rows[::-1]
        again = rows[first[ids[rows]] != rows]
        before = first[ids[again]]
        same = np.ones(len(again), np.bool_)
        for column in columns.values():
            equal = column[again] == column[before]
            same &= equal.all(axis=1) if equal.ndim > 1 else equal
        self._report(
            again[~same],
            lambda row: (
                f"id {spelt(names[ids[row]])} is that of {self.place(first[ids[row]])} too, "
                "another record"
            ),
            "give every record an id of its own",
        )
        kept[again[same]] = False
        return [names[number] for number in ids[again[same]].tolist()]

    def _sorted_images(self, image: Integers) -> tuple[tuple[Name, ...], Integers]:
        names = tuple(sorted(self.rows.image.number))
        dense = self._dense(self.rows.image, names)
        return names, dense[image] if len(dense) else image

    def _sizes(self, names: tuple[Name, ...]) -> Floats:
        """Return the width and height of each image, NaN where unknown."""
        sizes = np.full((len(names), 2), np.nan)
        if self.rows.sizes is not None and len(names):
            dense = self._dense(self.rows.image, names)
            sizes[dense[self.rows.image.rows()]] = self.rows.sizes
        return sizes

    @staticmethod
    def _dense(codes: Any, names: Sequence[Name]) -> Integers:
        """Return the place among `names` of each number of a column; -1 where it has none."""
        places = {name: place for place, name in enumerate(names)}
        return np.array([places.get(name, -1) for name in codes.number], np.int32)

    # --- detections

    def _known_classes(self, truth: GroundTruth) -> tuple[Integers, dict[Name, int]]:
        """Return the class of each row, as `truth` numbers them; and how often it has not each."""
        codes = {
            name: self._check_names(name, self.rows.codes[name])
            for name in self.shape.class_columns
        }
        column = self.shape.class_columns[0]
        known: Sequence[Name] = truth.class_ids
        by_name = truth.class_ids == truth.classes and "category" in codes
        if by_name or not self.shape.id_column:
            column, known = "category", truth.classes
        found, rows = self.rows.codes[column], codes[column]
        if found.wrong or self.problems.count or not len(rows):
            return rows, {}
        self._check_kind(column, found, known)
        if column == "category_id" and "category" in codes:
            self._check_called(self._called(rows, codes["category"]), truth)
        unknown = sorted(found.number.keys() - set(known), key=found.number.__getitem__)
        label = self._dense(found, (*known, *unknown))[rows]
        counts = np.bincount(label)[len(known) :].tolist() if unknown else []
        return label, dict(zip(unknown, counts, strict=True))

    def _check_called(self, called: dict[Name, str], truth: GroundTruth) -> None:
        """Note categories that are another's name here than in the ground truth."""
        from detap.formats.coco.careful import misnamed  # seldom needed

        listed = [{"id": identifier, "name": name} for identifier, name in called.items()]
        due = dict(zip(truth.class_ids, truth.classes, strict=True))
        for _, identifier, name, right in misnamed(listed, called, due):
            self.problems.add(
                "",
                f"category {spelt(identifier)} is {spelt(name)} here, {spelt(right)} in the "
                "ground truth",
                "use the ground truth's category ids",
            )

    def _check_kind(self, column: str, codes: Any, known: Sequence[Name]) -> None:
        """Note names that are text where the ground truth has numbers, or the reverse."""
        if not codes.number or not known:
            return
        name = next(iter(codes.number))
        if isinstance(name, str) != isinstance(known[0], str):
            self.problems.add(
                "",
                f"{column} holds {_kind(name)} such as {spelt(name)}; the ground truth has "
                f"{_kind(known[0])} such as {spelt(known[0])}",
                "spell them as the ground truth does",
            )

    def _check_images(self, dense: Integers, image: Integers, known: tuple[Name, ...]) -> None:
        """Note detections on images that the ground truth has not."""
        self._check_kind("image_id", self.rows.image, known)
        if self.problems.count or (dense >= 0).all():
            return
        names = list(self.rows.image.number)
        rows = np.flatnonzero(dense[image] < 0)
        if len(rows) == len(image):
            from detap.formats.coco.careful import describe_ids  # seldom needed

            self.problems.instead(
                "no image in common with the ground truth: image_id is "
                f"{describe_ids(names)} here, {describe_ids(known)} there",
                "give the results of the same images",
            )
            return
        self._report(
            rows,
            lambda row: f"image_id {spelt(names[image[row]])} is not in the ground truth",
            "score the detections of its images only; an image without objects is one of them",
        )


def _kind(name: Name) -> str:
    return "text" if isinstance(name, str) else "numbers"


def _said(value: Any) -> str:
    """Return a number, or four of them, as messages have it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_said, value))}]"
    if isinstance(value, float):
        return f"{value:g}" if isfinite(value) else "NaN" if isnan(value) else "infinite"
    return spelt(value)
