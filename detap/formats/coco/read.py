"""Read COCO files into columns, once: records by `Fields`, odd ones by `records.py`."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.polygons import box_polygons
from detap.formats.coco._spans import Outlines
from detap.formats.coco.columns import (
    LISTS,
    SHAPE_OF_RESULTS,
    SHAPE_OF_TRUTH,
    DetectionColumns,
    KeypointColumns,
    Segmentations,
    TruthColumns,
    groups_of,
    keypoints_of,
    listed_names,
    listed_pairs,
)
from detap.formats.coco.id_mapping import ambiguous_number, image_indices
from detap.formats.coco.keypoints import KeypointLists
from detap.formats.coco.records import (
    FLAGS,
    ROTATION,
    Values,
    annotation_values,
    attribute_column,
    category_ids,
    image_values,
    result_values,
)
from detap.formats.coco.segmentation import parse_segmentation
from detap.formats.coco.values import (
    WHOLE_FLOATS,
    Record,
    bounds_of,
    check_text,
    identifier_of,
    no_common_id,
    polygon_of,
)
from detap.formats.json._fields import Fields, Reader
from detap.formats.json.document import Document, RecordList, RecordProblems
from detap.formats.reading.attributes import Attributes
from detap.io.json_text import integer, short_json
from detap.io.limits import Limits
from detap.io.paths import Path, shown
from detap.io.problems import FaultError
from detap.io.stream import Stream, read_bytes
from detap.tables.detection import Floats, GroundTruth, Integers, Name, encode_boxes

_NO_BOX = (0.0, 0.0, np.nan, np.nan)
"""Box of a row whose box comes from its mask."""


class Ids:
    """A column of ids: indices of the distinct ids, in order of occurrence.

    Parameters
    ----------
    fields : Fields
    name : str
    """

    def __init__(self, fields: Fields, name: str) -> None:
        names: list[Name] = fields.ids(name)
        self.rows: Integers = np.asarray(fields.take(name))
        self.index = dict(zip(names, range(len(names)), strict=True))
        if len(self.index) < len(names):  # written in several ways, with escapes
            self.index = {identifier: k for k, identifier in enumerate(self.index)}
            same = np.array([self.index[identifier] for identifier in names], np.int32)
            self.rows = same[self.rows]

    def indices(self, index_by_id: dict[Name, int]) -> NDArray[np.int32]:
        """Return the index of each row's id, -1 for an unknown id."""
        distinct = np.array([index_by_id.get(name, -1) for name in self.index], np.int32)
        return distinct[self.rows] if len(self.rows) else self.rows.astype(np.int32)

    @property
    def names(self) -> list[Name]:
        """The distinct ids."""
        return list(self.index)


class SegmentationLists:
    """The segmentations of a list of records."""

    def __init__(self, records: RecordList) -> None:
        self._records = records
        self._outlines = Outlines()

    def drain(self) -> None:
        """Decode the spans of the next rows."""
        fields = self._records.fields
        while (row := self._outlines.read(fields, "segmentation")) >= 0:
            span = fields.span_of("segmentation", row)
            try:
                parsed = parse_segmentation(json.loads(span, parse_int=integer))
            except FaultError as error:
                self._outlines.skip()
                self._records.fault_of_row(row, error)
            else:
                self._outlines.append(*parsed)

    def columns(self, kept: NDArray[np.bool_] | None = None) -> Segmentations:
        """Return the columns, of some rows if all have one; call once."""
        has, sizes, run_start, runs, ring_start, ring_end, points = map(
            np.asarray, self._outlines.columns()
        )
        sizes, points = sizes.reshape(-1, 2), points.reshape(-1, 2)
        listed = self._outlines.listed
        if kept is not None:
            sizes = sizes[kept]
            run_start, runs = _ragged(run_start, runs, kept)
            ring_start, ring_end, points = _rings(ring_start, ring_end, points, kept)
            has = has[kept]
        return Segmentations(has, sizes, run_start, runs, ring_start, ring_end, points, listed)


def _ragged(
    start: NDArray[np.int64], values: NDArray[Any], kept: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Select rows of values of which each has the range from its start to the next."""
    lengths = np.diff(start)
    selected = values[np.repeat(kept, lengths)]
    return np.concatenate([[0], np.cumsum(lengths[kept])]), selected


def _rings(
    ring_start: NDArray[np.int64],
    ring_end: NDArray[np.int64],
    points: Floats,
    kept: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Select the polygons of rows."""
    kept_rings = np.repeat(kept, np.diff(ring_start))
    new_start, _ = _ragged(ring_start, ring_end, kept)
    ends = np.concatenate([[0], ring_end])
    point_start, selected = _ragged(ends, points, kept_rings)
    return new_start, point_start[1:], selected


class TruthFile:
    """An instances file being read.

    Parameters
    ----------
    boxes : {"xywh", "xyxy"}
        Format of the bbox.
    masks, keypoints : bool
        If True, read segmentations, or keypoints.
    attributes : tuple of str
        Further keys of annotations to read.
    """

    def __init__(
        self,
        *,
        boxes: str = "xywh",
        masks: bool = False,
        keypoints: bool = False,
        attributes: tuple[str, ...] = (),
    ) -> None:
        self.boxes = boxes
        self.masks = masks
        self.keypoints = keypoints
        self.attributes = Attributes(attributes)
        self.rotation: Floats | None = None
        self.info: Any = None
        self._keys: set[str] = set()
        self._repeated: dict[str, list[Name]] = {}
        self._categories: dict[Name, tuple[int, Record]] = {}
        self._counts: dict[str, int] = {}
        self._lists: dict[str, list[list[Name] | None]] = {name: [] for name in LISTS}
        self._images = Fields(
            [
                ("id", "key"),
                *(("width", "number"), ("height", "number")),
                *((key, "span") for key in LISTS.values()),
            ],
            [("id",)],
        )
        self._annotations = Fields(
            [
                *(("id", "key"), ("image_id", "id"), ("category_id", "id")),
                *(("bbox", "box"), ("area", "area"), ("score", "span"), (ROTATION, "inner")),
                *((name, "flag") for name in FLAGS),
                *((("segmentation", "span"),) if masks else ()),
                *((("keypoints", "span"), ("num_keypoints", "count")) if keypoints else ()),
                *(((attribute_column(name), name), "span") for name in attributes),
            ],
            [
                *(("image_id",), ("category_id",), ("segmentation" if masks else "bbox",)),
                *((("keypoints",),) if keypoints else ()),
            ],
            xyxy=boxes == "xyxy",
        )
        read = {"id", "bbox", "area", "attributes", "segmentation", "keypoints", "num_keypoints"}
        read |= {"image_id", "category_id", "score", *FLAGS}
        self._annotations.each = not read.isdisjoint(attributes)
        self.fields = self._images, self._annotations

    def read(self, document: Document) -> None:
        """Read the file; its problems are raised by :meth:`columns`."""
        self._document = document
        first = document.peek()
        if first == "[":
            document.text()
            document.problems.lead("", "is a JSON list (results?)", SHAPE_OF_TRUTH)
            document.problems.raise_any()
        if first != "{":
            document.fail(lambda text: text.refuse("not a JSON object", SHAPE_OF_TRUTH))
        lists = self._sections(document)
        for key in document.members():
            repeated = key in self._keys
            if repeated:
                message = f"duplicate key {short_json(key)} in one object"
                document.problems.add("", message, "keep one of them")
            self._keys.add(key)
            if key == "info" and not repeated and document.peek() == "{":
                self.info = document.value(key)
            elif key not in lists or repeated:
                document.skip(key)
            elif document.peek() == "[":
                lists[key].section = document.problems.section
                lists[key].read()
            else:
                message = f"{key} is {short_json(document.value(key))}, expected an array"
                document.problems.add("", message, SHAPE_OF_TRUTH)
        document.finish()

    @property
    def categories(self) -> list[Record]:
        """The records of the categories."""
        return [record for _, record in self._categories.values()]

    def image_values(self, key: str) -> dict[Name, Any]:
        """Return a value of the images by id, from reading the file again."""
        return image_values_of(self._document.again(), key)

    def _sections(self, document: Document) -> dict[str, RecordList]:
        images, annotations = self._images, self._annotations
        categories = Fields()
        categories.each = True
        self._records = RecordList(document, "annotations", annotations, self._annotation)
        self._records.drain = self._drain
        self._records.identify = lambda row: annotations.id_of("id", row)
        self._image_records = RecordList(document, "images", images, image_values)
        self._image_records.drain = self._drain_lists
        self._image_records.identify = lambda row: images.id_of("id", row)
        self._category_records = RecordList(document, "categories", categories, self._category)
        self._segmentations = SegmentationLists(self._records) if self.masks else None
        self._keypoints = KeypointLists(self._records) if self.keypoints else None
        return {
            "images": self._image_records,
            "annotations": self._records,
            "categories": self._category_records,
        }

    def _annotation(self, record: Record) -> Values:
        return annotation_values(
            record, self.boxes, self.attributes, masks=self.masks, keypoints=self.keypoints
        )

    def _category(self, record: Record) -> None:
        identifier = identifier_of(record, "id")
        name = record.get("name")
        if "name" in record and not isinstance(name, str):
            raise FaultError(f"name is {short_json(name)}, expected a string")
        if name is not None:
            check_text("name", name)
        number = self._category_records.fields.count
        first, same = self._categories.setdefault(identifier, (number, record))
        if first == number:
            return
        if same != record:
            raise _duplicate(identifier, self._category_records.location(first))
        self._repeated.setdefault("categories", []).append(identifier)

    def _drain(self) -> None:
        fields = self._annotations
        for lists in (self._segmentations, self._keypoints):
            if lists is not None:
                lists.drain()
        names = self.attributes.names
        for row in range(fields.drained, fields.rows if names else 0):
            spans = {name: fields.span_of(attribute_column(name), row) for name in names}
            record = {
                name: json.loads(span, parse_int=integer) for name, span in spans.items() if span
            }
            try:
                values = self.attributes.values(record.get)
            except FaultError as error:
                self._records.fault_of_row(row, error)
            else:
                self.attributes.append(values)

    def _drain_lists(self) -> None:
        fields = self._images
        for name, key in LISTS.items():
            self._lists[name] += [None] * (fields.drained - len(self._lists[name]))
            if not fields.holds(key):
                continue
            for row in range(fields.drained, fields.rows):
                span, categories = fields.span_of(key, row), None
                try:
                    if span:
                        categories = category_ids(key, json.loads(span, parse_int=integer))
                except FaultError as error:
                    self._image_records.fault_of_row(row, error)
                self._lists[name].append(categories)

    def columns(self) -> TruthColumns:
        """Return the columns; raise InputError with all problems of the file."""
        problems, records, fields = self._document.problems, self._records, self._annotations
        if self._keypoints is not None:
            self._keypoints.finish()
        self._count(fields)
        kept_images = self._kept("images", self._image_records)
        kept = self._kept("annotations", records)
        images: list[Any] = list(compress(self._images.keys("id"), kept_images))
        self._check_sections()
        image_ids, order = self._sorted("images", images)
        class_ids, _ = self._sorted("categories", list(self._categories))
        problems.raise_any()
        image, label = Ids(fields, "image_id"), Ids(fields, "category_id")
        image_index = image.indices({name: i for i, name in enumerate(image_ids)})
        label_index = label.indices({name: i for i, name in enumerate(class_ids)})
        rows = np.flatnonzero(kept)
        self._check_references("images", image, rows[image_index[rows] < 0], image_ids)
        self._check_references("categories", label, rows[label_index[rows] < 0], class_ids)
        problems.raise_any()
        every = len(rows) == len(kept)
        select: Any = slice(None) if every else rows
        box = np.asarray(fields.take("bbox")).reshape(-1, 4)
        box[np.isnan(box[:, 0])] = _NO_BOX
        keypoints = None
        if self._keypoints is not None:
            sides = box[:, 2:] - box[:, :2] if self.boxes == "xyxy" else box[:, 2:].copy()
            keypoints = self._keypoints.columns(fields, sides)
            keypoints = KeypointColumns(
                *(getattr(keypoints, name)[select] for name in KeypointColumns.__dataclass_fields__)
            )
        corners, box_area = encode_boxes(box, self.boxes, copy=False)
        area = np.asarray(fields.take("area"))
        area = np.where(np.isnan(area), box_area, area)
        if fields.holds(ROTATION):
            self.rotation = np.asarray(fields.take(ROTATION))[select]
        crowd, ignore, group_of = (np.asarray(fields.take(name))[select] for name in FLAGS)
        segmentations = None
        if self._segmentations is not None:
            segmentations = self._segmentations.columns(None if every else kept)
        zero = np.asarray(fields.take("id"))[select] == 0
        columns = TruthColumns(
            image_ids=image_ids,
            image_sizes=self._sizes()[kept_images][order],
            class_ids=class_ids,
            class_names=tuple(self._categories[name][1].get("name") for name in class_ids),
            image=image_index[select],
            label=label_index[select],
            corners=corners[select],
            box_area=box_area[select],
            area=area[select],
            crowd=crowd,
            ignore=ignore,
            group_of=group_of,
            records=fields.count,
            zero_row=int(np.flatnonzero(zero)[-1]) if zero.any() else -1,
            origin=None if every else rows.astype(np.int64),
            counts=self._counts | {"annotation-id-zero": int(zero.sum())},
            repeated={name: self._repeated.get(name, []) for name in _SECTIONS},
            groups=groups_of(self.categories),
            segmentations=segmentations,
            keypoints=keypoints,
            extra={name: values[select] for name, values in self.attributes.columns().items()},
        )
        for name, lists in self._lists.items():
            columns = self._with_lists(columns, name, lists, kept_images, order)
        return columns

    def _kept(self, name: str, records: RecordList) -> NDArray[np.bool_]:
        """Return the rows without those that repeat a record; add problems for equal ids."""
        kept = np.ones(records.fields.rows, np.bool_)
        if records.fields.are_distinct("id"):
            return kept
        first: dict[Name, int] = {}
        keys = records.fields.keys("id")
        pairs = [
            (first[key], row)
            for row, key in enumerate(keys)
            if key is not None and row not in records.faulty and first.setdefault(key, row) != row
        ]
        if not pairs:
            return kept
        numbers = sorted({records.number_of(row) for pair in pairs for row in pair})
        picked = dict(zip(numbers, self._document.pick(name, numbers), strict=True))
        for row, other in pairs:
            one, two = records.number_of(row), records.number_of(other)
            identifier: Any = keys[other]
            if picked[one] != picked[two]:
                records.fault(two, identifier, _duplicate(identifier, records.location(one)))
            else:
                kept[other] = False
                self._repeated.setdefault(name, []).append(identifier)
                if name == "annotations":
                    self._uncount(picked[two])
        return kept

    def _count(self, fields: Fields) -> None:
        self._counts = {code: fields.missing(key) for code, key in _MISSING.items()}
        if self.keypoints:
            self._counts["missing-num-keypoints"] = fields.missing("num_keypoints")

    def _uncount(self, record: Record) -> None:
        """Remove a repeated annotation from the counts."""
        for code, key in _MISSING.items():
            self._counts[code] -= key not in record
        if self.keypoints:
            self._counts["missing-num-keypoints"] -= "num_keypoints" not in record

    def _sizes(self) -> Floats:
        columns = (np.asarray(self._images.take(side)) for side in ("width", "height"))
        sizes = np.stack(list(columns), axis=1)
        with np.errstate(invalid="ignore"):
            sizes[~((sizes > 0) & (sizes < WHOLE_FLOATS))] = np.nan
        return sizes

    def _with_lists(
        self,
        columns: TruthColumns,
        name: str,
        lists: Sequence[list[Name] | None],
        kept: NDArray[np.bool_],
        order: list[int],
    ) -> TruthColumns:
        if not self._images.holds(LISTS[name]):
            return columns
        rows = np.flatnonzero(kept)[order].tolist()
        used = [lists[row] for row in rows]
        count = sum(categories is not None for categories in used)
        label_by_id = {identifier: label for label, identifier in enumerate(columns.class_ids)}
        pairs = [
            (image, label_by_id.get(identifier, -1))
            for image, categories in enumerate(used)
            for identifier in categories or ()
        ]
        array = np.array(pairs, np.int32).reshape(-1, 2)
        return listed_pairs(array[:, 0], array[:, 1], count, name, columns)

    def _check_sections(self) -> None:
        problems, limits = self._document.problems, self._document.limits
        missing = [name for name in _SECTIONS if name not in self._keys]
        if missing:
            looks = ""
            fields = self._annotations
            if fields.missing("score") < fields.rows or "predictions" in self._keys:
                looks = " (records have scores: results?)"
            problems.lead("", f"no {' and no '.join(missing)}{looks}", SHAPE_OF_TRUTH)
        elif not (self._annotations.count or limits.empty or problems.count):
            problems.add("", "no annotations")

    def _sorted(self, name: str, ids: list[Name]) -> tuple[tuple[Name, ...], list[int]]:
        """Return the ids in ascending order, and their positions."""
        types = set(map(type, ids))
        if len(types) > 1 and str in types:
            problems = self._document.problems
            problems.add("", f"ids of {name} mix numbers and strings", "use one type")
            return tuple(ids), []
        order = sorted(range(len(ids)), key=ids.__getitem__)
        return tuple(ids[k] for k in order), order

    def _check_references(
        self, section: str, ids: Ids, rows: NDArray[np.intp], known: Sequence[Name]
    ) -> None:
        """Add a problem for each of these unknown ids."""
        key, names = _REFERENCES[section], ids.names
        for row in rows.tolist():
            name = names[ids.rows[row]]
            self._document.problems.add(
                self._records.location(self._records.number_of(row)),
                f"{key} {short_json(name)} is not in {section}{_other_type(name, known)}",
            )


_SECTIONS = ("images", "annotations", "categories")
_REFERENCES = {"images": "image_id", "categories": "category_id"}
_MISSING = {
    "missing-annotation-ids": "id",
    "missing-area": "area",
    "missing-iscrowd": "iscrowd",
}


def _duplicate(identifier: Name, first: str) -> FaultError:
    return FaultError(f"duplicate id {short_json(identifier)} (also at {first})")


def _other_type(name: Name, known: Sequence[Name]) -> str:
    if not known or isinstance(known[0], str) == isinstance(name, str):
        return ""
    return " (ids are strings)" if isinstance(known[0], str) else " (ids are numbers)"


class ResultsFile:
    """A results file being read.

    Parameters
    ----------
    boxes : {"xywh", "xyxy"}
        Format of the bbox.
    masks : bool
        If True, read segmentations of rows with a box too.
    keypoints : bool
        If True, read keypoints.
    """

    def __init__(
        self, *, boxes: str = "xywh", masks: bool = False, keypoints: bool = False
    ) -> None:
        self.boxes = boxes
        self.masks = masks
        self.keypoints = keypoints
        self._keys: list[str] = []
        self._categories: list[Any] = []
        self._images: list[Any] = []
        self._polygons: dict[int, list[float]] = {}
        self._ids: tuple[Ids, Ids] | None = None
        self._unscored = 0
        self._has_masks = masks or not keypoints
        spans = {"keypoints", "poly"} | ({"segmentation"} if self._has_masks else set())
        if masks or keypoints:
            spans.add("id")
        kept = ({"segmentation", "id"} if masks else set()) | (
            {"keypoints", "id"} if keypoints else set()
        )
        geometries = ("bbox", "keypoints", "poly")
        self._fields = Fields(
            [
                *(("image_id", "id"), ("category_id", "id"), ("bbox", "box"), ("score", "score")),
                ("file_name", "id"),
                *((name, "span") for name in sorted(spans)),
            ],
            [
                *(("image_id",), ("category_id",), ("score",)),
                (*geometries, *(("segmentation",) if self._has_masks else ())),
                *((("keypoints",),) if keypoints else ()),
            ],
            xyxy=boxes == "xyxy",
            only_boxless=sorted(spans - kept),
        )
        self.fields = (self._fields,)

    def read(self, document: Document) -> None:
        """Read the file; its problems are raised by :meth:`columns`."""
        self._document, fields = document, self._fields
        self._records = RecordList(document, "", fields, self._result)
        self._records.drain = self._drain
        if self.masks or self.keypoints:
            self._records.identify = lambda row: _loaded(fields.span_of("id", row))
        self._segmentations = SegmentationLists(self._records)
        self._lists = KeypointLists(self._records, pairs=self.keypoints)
        first = document.peek()
        if first == "[":
            self._records.read()
        elif first == "{":
            self._read_members(document)
        else:
            document.fail(lambda text: text.refuse("not a JSON array", SHAPE_OF_RESULTS))
        document.finish()

    def _read_members(self, document: Document) -> None:
        problems = document.problems
        for key in document.members():
            if key in self._keys:
                message = f"duplicate key {short_json(key)} in one object"
                problems.add("", message, "keep one of them")
            self._keys.append(key)
            if key in ("annotations", "predictions") and document.peek() == "[":
                if not self._records.name:
                    self._records.name = key
                    self._records.section = problems.section
                    self._records.read()
                    continue
                message = "both annotations and predictions are lists"
                problems.add("", message, "keep the one with the detections")
            if key in ("categories", "images"):
                value = document.value(key)
                setattr(self, f"_{key}", value if isinstance(value, list) else [])
            else:
                document.skip(key)
        if not self._records.name:
            message = "is an object without a list of annotations or predictions"
            problems.lead("", message, SHAPE_OF_RESULTS)

    def _result(self, record: Record) -> Values:
        self._unscored += "score" not in record
        return result_values(record, self.boxes, masks=self.masks, keypoints=self.keypoints)

    @property
    def has_segmentations(self) -> bool:
        """True if a record has a segmentation."""
        return self._has_masks and self._fields.holds("segmentation")

    def _drain(self) -> None:
        fields = self._fields
        if self.masks or self.has_segmentations:
            self._segmentations.drain()
        self._lists.drain()
        if fields.missing("poly") == fields.rows:
            return
        for row in range(fields.drained, fields.rows):
            span = fields.span_of("poly", row)
            try:
                if span:
                    poly = json.loads(span, parse_int=integer)
                    self._polygons[row] = polygon_of({"poly": poly})
            except FaultError as error:
                self._records.fault_of_row(row, error)

    def columns(self, truth: GroundTruth, *, by_name: bool = False) -> DetectionColumns:
        """Return the columns with the image and class indices of the ground truth.

        Parameters
        ----------
        truth : GroundTruth
        by_name : bool
            If True, the caller maps categories by name, and all are unknown here.

        Raises
        ------
        InputError
            With all problems of the file.
        """
        fields, of_yolo = self._fields, truth.format == "yolo"
        if self._ids is None:
            if self.keypoints:
                self._lists.finish(keypoints_of(truth), pairs=of_yolo)
            else:
                self._lists.finish(same=False)
            self._ids = self._image_ids(by_file=of_yolo), Ids(fields, "category_id")
        image, label = self._ids
        problems = self._document.problems.copy()
        self._check_shape(problems)
        class_ids = () if by_name else truth.class_ids
        listed = listed_names(self._images, "file_name")
        index_by_id = image_indices(truth, image.index, listed)
        image_index = image.indices(index_by_id)
        unknown = _unknown(label, class_ids)
        label_index = label.indices({name: i for i, name in enumerate((*class_ids, *unknown))})
        if not image.index.keys() <= index_by_id.keys():
            self._check_images(problems, image_index, image, truth.images)
        self._check_category_types(problems, label, class_ids)
        problems.raise_any()
        corners, box_area = self._boxes
        return DetectionColumns(
            image=image_index,
            label=label_index,
            corners=corners,
            box_area=box_area,
            score=self._scores,
            unknown=unknown,
            file_names=listed,
            categories=listed_names(self._categories, "name"),
            segmentations=self._masks,
            keypoints=self._points if self.keypoints else None,
            polygons=self._quadrilaterals(corners),
            by_file=not image.index.keys() <= set(truth.images),
        )

    def release(self) -> None:
        """Free what only another call of :meth:`columns` would need."""
        self._ids = None

    @cached_property
    def _scores(self) -> Floats:
        return np.asarray(self._fields.take("score"))

    @cached_property
    def _points(self) -> Floats:
        return self._lists.array()[:, :, :2].copy()

    @cached_property
    def _masks(self) -> Segmentations | None:
        if not (self.masks or self.has_segmentations):
            return None
        segmentations = self._segmentations.columns()
        return segmentations if self.masks or segmentations.has.any() else None

    @cached_property
    def _boxes(self) -> tuple[Floats, Floats]:
        """The corners and the areas of the boxes."""
        missing = self._fields.missing("bbox")
        box = np.asarray(self._fields.take("bbox")).reshape(-1, 4)
        if missing:
            self._fill_boxes(box)
        corners, area = encode_boxes(box, self.boxes, copy=False)
        return corners, area

    def _image_ids(self, *, by_file: bool) -> Ids:
        """Return the ids of the images; a file name comes first if `by_file`."""
        image = Ids(self._fields, "image_id")
        if by_file and self._fields.holds("file_name"):
            files = Ids(self._fields, "file_name")
            names, file_names = image.names, [*files.names, None]
            rows = [
                file if isinstance(file := file_names[k], str) else names[row]
                for row, k in zip(image.rows.tolist(), files.rows.tolist(), strict=True)
            ]
            image.index = {}
            index = [image.index.setdefault(name, len(image.index)) for name in rows]
            image.rows = np.array(index, np.int32)
        return image

    def _fill_boxes(self, box: Floats) -> None:
        """Set the boxes that records lack: of the mask, later; of the keypoints; of the polygon."""
        missing = np.isnan(box[:, 0])
        if self._masks is not None:
            box[missing & self._masks.has] = _NO_BOX
            missing &= ~self._masks.has
        rows, extents = self._lists.extents(missing)
        box[rows] = extents
        if self.boxes == "xyxy":
            box[rows, 2:] += box[rows, :2]
        missing[rows] = False
        for row in np.flatnonzero(missing).tolist():
            x, y, right, bottom = bounds_of(self._polygons[row])
            far = (right, bottom) if self.boxes == "xyxy" else (right - x, bottom - y)
            box[row] = x, y, *far

    def _check_shape(self, problems: RecordProblems) -> None:
        """Raise InputError if no record has a score."""
        count = self._fields.count
        if count and self._unscored == count:
            looks = ""
            if "images" in self._keys and "annotations" in self._keys:
                looks = " (has images and annotations: ground truth?)"
            message = f"none of the {count} records has a score{looks}"
            problems.instead(message, SHAPE_OF_RESULTS)
            problems.raise_any()

    def _quadrilaterals(self, corners: Floats) -> Floats | None:
        """Return the quadrilaterals (N, 8), boxes among them; None if all are boxes."""
        if not self._polygons:
            return None
        polygons: Floats = box_polygons(corners)
        for row, polygon in self._polygons.items():
            polygons[row] = polygon
        return polygons

    def _check_images(
        self, problems: RecordProblems, indices: Integers, ids: Ids, known: Sequence[Name]
    ) -> None:
        records = self._records
        unknown, names = np.flatnonzero(indices < 0), ids.names
        if len(unknown) == len(indices):
            message = no_common_id("image_id", names, known)
            problems.instead(message, "use results for the same images")
            return
        for row in unknown.tolist():
            name = names[ids.rows[row]]
            problems.add(
                records.location(records.number_of(row)),
                f"image_id {short_json(name)} is not in the ground truth{_other_type(name, known)}",
                ambiguous_number(name, known),
            )

    def _check_category_types(
        self, problems: RecordProblems, ids: Ids, known: Sequence[Name]
    ) -> None:
        if not known:
            return
        names, records = ids.names, self._records
        expects_text = isinstance(known[0], str)
        expected = "a string" if expects_text else "a number"
        wrong = np.array([isinstance(name, str) != expects_text for name in names], np.bool_)
        for row in np.flatnonzero(wrong[ids.rows]).tolist() if wrong.any() else ():
            problems.add(
                records.location(records.number_of(row)),
                f"category_id is {short_json(names[ids.rows[row]])}, expected {expected} as in the "
                "ground truth",
            )


def _unknown(ids: Ids, known: Sequence[Name]) -> dict[Name, int]:
    """Return the number of detections of each unknown category."""
    known_ids = set(known)
    if ids.index.keys() <= known_ids:
        return {}
    counts = np.bincount(ids.rows, minlength=len(ids.index)).tolist()
    return {name: counts[k] for k, name in enumerate(ids.names) if name not in known_ids}


def _loaded(span: bytes) -> Any:
    return json.loads(span, parse_int=integer) if span else None


@contextmanager
def opened(path: Path, limits: Limits) -> Iterator[Document]:
    """Open a JSON file to read it again."""
    with Stream(path, limits) as stream:
        read = None if stream.descriptor >= 0 else stream.read
        reader = Reader(stream.descriptor, read, limits.file_bytes, limits.nesting)
        yield Document(reader, lambda: read_bytes(path, limits), shown(path), limits)


def image_values_of(document: Document, key: str) -> dict[Name, Any]:
    """Return a value of the images of ground truth by id, unless it is null."""
    values: dict[Name, Any] = {}
    fields = Fields([("id", "id"), (("\0value", key), "span")], [("id",)])
    fields.each = key == "id"

    def drain() -> None:
        for row in range(fields.drained, fields.rows):
            value = _loaded(fields.span_of("\0value", row))
            identifier = fields.id_of("id", row)
            if identifier is not None and value is not None:
                values[identifier] = value

    for name in document.members() if document.peek() == "{" else ():
        if name == "images" and document.peek() == "[":
            records = RecordList(document, name, fields, lambda record: _image_value(record, key))
            records.drain = drain
            records.read()
            break
        document.skip(name)
    return values


def _image_value(record: Record, key: str) -> Values:
    value = record.get(key)
    return {
        "id": identifier_of(record, "id"),
        "\0value": None if value is None else json.dumps(value, default=repr).encode(),
    }
