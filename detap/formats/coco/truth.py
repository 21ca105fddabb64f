"""Read instances files into columns: records by `Fields`, odd ones by `records.py`."""

from collections.abc import Sequence
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.formats.coco.columns import (
    SHAPE_OF_TRUTH,
    TruthColumns,
    image_sizes,
    listed_names,
    listed_values,
    pairs_of_lists,
)
from detap.formats.coco.outlines import KeypointLists, SegmentationLists
from detap.formats.coco.records import (
    FLAGS,
    LISTS,
    Columns,
    Record,
    Values,
    annotation_values,
    attribute_column,
    category_ids,
    check_text,
    identifier_of,
    other_type,
    present,
    rotation_of,
    values_of,
)
from detap.formats.json._fields import Fields
from detap.formats.json.document import (
    MISSING,
    Document,
    Ids,
    JsonFile,
    RecordList,
    are_distinct,
    loaded,
    names_of,
)
from detap.formats.reading.attributes import Attributes
from detap.io.json_text import short_json
from detap.io.limits import DEFAULT_LIMITS
from detap.io.problems import FaultError
from detap.protocols.summary import FREQUENCIES
from detap.tables.detection import GroundTruth, Name, encode_boxes

_SECTIONS = ("images", "annotations", "categories")
NO_BOX = (0.0, 0.0, np.nan, np.nan)
"""Box of a row whose box comes from its mask."""


class TruthFile:
    """An instances file being read.

    Every annotation must have a mask with `masks`, which also gives a missing box, and keypoints
    with `keypoints`, those of `keypoint_keys` one after the other.
    """

    def __init__(
        self,
        *,
        boxes: str = "xywh",
        masks: bool = False,
        keypoints: bool = False,
        keypoint_keys: tuple[str, ...] = (),
        attributes: tuple[str, ...] = (),
    ) -> None:
        self.boxes = boxes
        self.masks = masks
        self.keypoints = (keypoint_keys or ("keypoints",)) if keypoints else ()
        self._counted = not keypoint_keys  # num_keypoints is that of `keypoints`
        self.attributes = Attributes(attributes)
        self.rotated: dict[int, float] = {}  # degrees by row, of :meth:`columns`
        self.info: Any = None
        self._keys: set[str] = set()
        self._repeated: dict[str, list[Name]] = {name: [] for name in _SECTIONS}
        self._reused_ids = 0
        self._categories: dict[Name, tuple[int, Record]] = {}
        self._lists: dict[str, list[list[Name] | None]] = {name: [] for name in LISTS}
        of_image: Columns = [
            ("id", "key"),
            *(("width", "number"), ("height", "number")),
            *((key, "span") for key in LISTS.values()),
        ]
        shapes = (*(("segmentation",) if masks else ()), *self.keypoints)
        required = ("image_id", "category_id", *(() if masks else ("bbox",)), *shapes)
        kinds = {
            **dict.fromkeys(("image_id", "category_id"), "key"),
            "bbox": "box",
            **dict.fromkeys(shapes, "span"),
            "id": "key",
            "area": "area",
            **dict.fromkeys(("score", "attributes"), "span"),
            **dict.fromkeys(FLAGS, "flag"),
            **({"num_keypoints": "count"} if keypoints else {}),
        }
        of_annotation: Columns = [
            *kinds.items(),
            *(((attribute_column(name), name), "span") for name in attributes),
        ]
        self._images = Fields(of_image, [("id",)])
        one_each = [(key,) for key in required]
        self._annotations = Fields(of_annotation, one_each, xyxy=boxes == "xyxy")
        self._annotations.each = not kinds.keys().isdisjoint(attributes)
        self.fields = self._images, self._annotations
        self._image = lambda record: values_of(present(record, "id"), of_image, "xywh", ("id",))
        self._annotation = partial(
            annotation_values, columns=of_annotation, boxes=boxes, keys=required
        )

    def read(self, document: Document) -> None:
        """Read the file; its problems are raised by :meth:`columns`."""
        self.document = document
        first = document.peek()
        if first == "[":
            document.text()
            document.problems.add_first("", "is a JSON list (results?)", SHAPE_OF_TRUTH)
            document.problems.raise_any()
        if first != "{":
            document.fail("not a JSON object", SHAPE_OF_TRUTH)
        lists = self._sections(document)
        for key in document.members():
            self._keys.add(key)
            if key == "info" and document.peek() == "{":
                self.info = document.value(key)
            elif key not in lists:
                document.skip(key)
            elif document.peek() == "[":
                lists[key].read()
            else:
                message = f"{key} is {short_json(document.value(key))}, expected an array"
                document.problems.add_here("", message, SHAPE_OF_TRUTH)
        document.finish()

    @property
    def categories(self) -> list[Record]:
        """The records of the categories."""
        return [record for _, record in self._categories.values()]

    def location(self, row: int) -> str:
        """Return the location of a row of the table."""
        return f"annotations[{self.rows[row]}]"

    def _sections(self, document: Document) -> dict[str, RecordList]:
        categories = Fields()
        categories.each = True
        self._records = RecordList(document, "annotations", self._annotations, self._annotation)
        self._records.drain = self._drain
        self._image_records = RecordList(document, "images", self._images, self._image)
        self._image_records.drain = self._drain_lists
        self._category_records = RecordList(document, "categories", categories, self._category)
        self._segmentations = SegmentationLists(self._records) if self.masks else None
        self._keypoints = [KeypointLists(self._records, key) for key in self.keypoints]
        return {
            "images": self._image_records,
            "annotations": self._records,
            "categories": self._category_records,
        }

    def _category(self, record: Record) -> Values:
        identifier = identifier_of(record, "id")
        name = record.get("name")
        if "name" in record and not isinstance(name, str):
            raise FaultError(f"name is {short_json(name)}, expected a string")
        if name is not None:
            check_text("name", name)
        number = self._category_records.fields.rows
        first, same = self._categories.setdefault(identifier, (number, record))
        if same != record:
            raise _duplicate(identifier, self._category_records.location(first))
        if first != number:
            self._repeated["categories"].append(identifier)
        return {}

    def _drain(self) -> None:
        """Decode what the next annotations have as spans."""
        fields, names = self._annotations, self.attributes.names
        for row in range(fields.drained, fields.rows if fields.holds("attributes") else 0):
            may_rotate = b'"rotation"' in fields.span_of("attributes", row)
            if may_rotate and (degrees := rotation_of(loaded(fields, "attributes", row))):
                self.rotated[row] = degrees
        if self._segmentations is not None:
            self._segmentations.drain()
        for lists in self._keypoints:
            lists.drain()
        for row in range(fields.drained, fields.rows if names else 0):
            record = {name: loaded(fields, attribute_column(name), row) for name in names}
            try:
                values = self.attributes.values(record.get)
            except FaultError as error:
                self._records.fault_of_row(row, error)
            else:
                self.attributes.append(values)

    def _drain_lists(self) -> None:
        """Decode the category lists of the next images."""
        fields = self._images
        for name, key in LISTS.items():
            lists = self._lists[name]
            for row in range(len(lists), fields.rows if fields.holds(key) else 0):
                value, categories = loaded(fields, key, row), None
                try:
                    categories = None if value is None else category_ids(key, value)
                except FaultError as error:
                    self._image_records.fault_of_row(row, error)
                lists.append(categories)

    def columns(self) -> TruthColumns:
        """Return the columns; raise InputError with all problems of the file."""
        problems, fields = self.document.problems, self._annotations
        for of_key in self._keypoints:
            of_key.finish()
        kept_images = self._kept("images", self._image_records)
        kept = self._kept("annotations", self._records)
        images = [
            name for name in compress(names_of(self._images, "id"), kept_images) if name is not None
        ]
        self._check_sections()
        image_ids, order = self._sorted("images", images)
        class_ids, _ = self._sorted("categories", list(self._categories))
        problems.raise_any()
        self.rows = np.flatnonzero(kept)
        image = self._indices("images", image_ids)
        label = self._indices("categories", class_ids)
        problems.raise_any()
        box, area, ids = (fields.take(name) for name in ("bbox", "area", "id"))
        counts = {
            "missing-annotation-ids": int((ids == MISSING).sum()),
            "annotation-ids-by-image": self._reused_ids,
        }
        crowd, ignore, group_of = (fields.take(name) for name in FLAGS)
        counts["missing-area"] = int(np.isnan(area[kept]).sum())
        counts["missing-iscrowd"] = int(np.isnan(crowd[kept]).sum())
        box = box.reshape(-1, 4)
        box[np.isnan(box[:, 0])] = NO_BOX
        shapes: dict[str, Any] = {}
        if self._keypoints:
            sides = box[:, 2:] - box[:, :2] if self.boxes == "xyxy" else box[:, 2:].copy()
            points = np.concatenate([of_key.array() for of_key in self._keypoints], axis=1)
            labeled = (points[:, :, 2] > 0).sum(axis=1)
            if self._counted:
                numbers = fields.take("num_keypoints")
                counts["missing-num-keypoints"] = int(np.isnan(numbers[kept]).sum())
                labeled = np.where(np.isnan(numbers), labeled, numbers)
            shapes = {"keypoints": points, "no_keypoints": labeled == 0, "width_height": sides}
        corners, box_area = encode_boxes(box, self.boxes, copy=False)
        if self._segmentations is not None:
            shapes["mask"], shapes["masks"] = self._segmentations.columns()
        zero = kept & (ids == 0) & (self._reused_ids == 0)  # else ids are not those of pycocotools
        counts["annotation-id-zero"] = int(zero.sum())
        zero[np.flatnonzero(zero)[:-1]] = False
        image_rows = np.flatnonzero(kept_images)[order].tolist()
        listed = {}
        for name, lists in self._lists.items():
            if self._images.holds(LISTS[name]):
                of_images = [lists[row] for row in image_rows]
                listed[name], more = pairs_of_lists(class_ids, name, of_images)
                counts |= more
        letters = listed_names(self.categories, "frequency")
        sizes = image_sizes(self._images.take("width"), self._images.take("height"))
        table = GroundTruth(
            image=image,
            label=label,
            corners=corners,
            box_area=box_area,
            images=image_ids,
            image_sizes=sizes[kept_images][order],
            classes=tuple(map(str, class_ids)),
            class_ids=class_ids,
            files=(),
            area=np.where(np.isnan(area), box_area, area),
            crowd=crowd == 1,
            difficult=np.zeros(len(crowd), np.bool_),
            ignore=ignore == 1,
            group_of=group_of == 1,
            zero_id=zero,
            listed=listed,
            groups={k: FREQUENCIES[name] for k, name in letters.items() if name in FREQUENCIES},
            extra=self.attributes.columns(),
            **shapes,
        )
        if not kept.all():
            table = table.select(self.rows).compact()
            angles = ((k, self.rotated.get(row)) for k, row in enumerate(self.rows.tolist()))
            self.rotated = {k: degrees for k, degrees in angles if degrees}
        return TruthColumns(
            table,
            class_names=tuple(self._categories[name][1].get("name") for name in class_ids),
            counts=counts,
            records=fields.rows,
            repeated=self._repeated,
        )

    def _kept(self, name: str, records: RecordList) -> NDArray[np.bool_]:
        """Return the rows without those that repeat a record; add problems for equal ids."""
        kept = np.ones(records.fields.rows, np.bool_)
        if are_distinct(records.fields, "id"):
            return kept
        first: dict[Name, int] = {}
        keys = names_of(records.fields, "id")
        pairs = [
            (first[key], row)
            for row, key in enumerate(keys)
            if key is not None and row not in records.faulty and first.setdefault(key, row) != row
        ]
        if not pairs:
            return kept
        read = self.document.again().member(name)
        by_image: dict[tuple[Any, Any], int] = {}  # ids name annotations, or those of an image
        for first_row, other in pairs:
            identifier: Any = keys[other]
            images = [read[row].get("image_id") for row in (first_row, other)]
            by_image.setdefault((identifier, images[0]), first_row)
            row = by_image.setdefault((identifier, images[1]), other)
            if row == other:
                self._reused_ids += 1
            elif read[row] != read[other]:
                records.fault(other, identifier, _duplicate(identifier, records.location(row)))
            else:
                kept[other] = False
                self._repeated[name].append(identifier)
        return kept

    def _check_sections(self) -> None:
        problems, fields = self.document.problems, self._annotations
        missing = [name for name in _SECTIONS if name not in self._keys]
        if missing:
            scored = fields.holds("score") or "predictions" in self._keys
            looks = " (records have scores: results?)" if scored else ""
            problems.add_first("", f"no {' and no '.join(missing)}{looks}", SHAPE_OF_TRUTH)
        elif not (fields.rows or self.document.limits.empty or problems.count):
            problems.add_here("", "no annotations")

    def _sorted(self, name: str, ids: list[Name]) -> tuple[tuple[Name, ...], list[int]]:
        """Return the ids in ascending order, and their positions."""
        types = set(map(type, ids))
        if len(types) > 1 and str in types:
            problems = self.document.problems
            problems.add_here("", f"ids of {name} mix numbers and strings", "use one type")
            return tuple(ids), []
        order = sorted(range(len(ids)), key=ids.__getitem__)
        return tuple(ids[k] for k in order), order

    def _indices(self, section: str, known: Sequence[Name]) -> NDArray[np.int32]:
        """Return the index of each annotation's image or category; add problems for unknown ids."""
        key = {"images": "image_id", "categories": "category_id"}[section]
        ids = Ids(self._annotations, key)
        indices = ids.indices({name: i for i, name in enumerate(known)})
        names = ids.names
        for row in self.rows[indices[self.rows] < 0].tolist():
            name = names[ids.rows[row]]
            self.document.problems.add_here(
                self._records.location(row),
                f"{key} {short_json(name)} is not in {section}{other_type(name, known)}",
            )
        return indices


def _duplicate(identifier: Name, first: str) -> FaultError:
    return FaultError(f"duplicate id {short_json(identifier)} (also at {first})")


def image_values_of(document: Document, key: str) -> dict[Name, Any]:
    """Return a value of the images of ground truth by id, unless it is null."""
    images = document.member("images")
    return listed_values(images if isinstance(images, list) else (), key)


def image_values_of_file(path: str, key: str) -> dict[Name, Any]:
    """Return a value of the images of a ground-truth file by id."""
    with JsonFile(path).opened(DEFAULT_LIMITS) as document:
        return image_values_of(document, key)
