"""Fallback reader of COCO files: accepts any valid JSON and reports every problem.

It reads record by record with the standard library's scanner. The fast reader falls back to it for
any file of irregular shape, and must give the same results.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.formats.coco._scan import nesting
from detap.formats.coco.columns import (
    LISTS,
    SHAPE_OF_RESULTS,
    SHAPE_OF_TRUTH,
    DetectionColumns,
    TruthColumns,
    groups_of,
    keypoints_of,
    listed_names,
    listed_pairs,
)
from detap.formats.coco.id_mapping import ambiguous_number, image_indices
from detap.formats.coco.keypoints import (
    KeypointsReader,
    drop_visibility,
    extent_of,
    keypoints_of_result,
    number_of_keypoints,
)
from detap.formats.coco.segmentation import Segmentation, SegmentationsReader
from detap.formats.coco.values import (
    Record,
    area_of,
    bounds_of,
    box_of,
    check_text,
    flag_of,
    identifier_of,
    no_common_id,
    polygon_of,
    required,
    score_of,
    size_of,
)
from detap.formats.reading.attributes import Attributes
from detap.io.json_text import HOLDS_CONSTANTS, JsonText, NotJsonError, short_json, text_of
from detap.io.limits import DEFAULT_LIMITS, MORE_RECORDS, Limits
from detap.io.problems import FaultError, Problems
from detap.tables.detection import Floats, GroundTruth, Name, encode_boxes

_NO_BOX = (0.0, 0.0, np.nan, np.nan)
"""Box of a row whose box comes from its mask."""


def _segmentation_of(record: Record, segmentations: SegmentationsReader) -> Segmentation:
    if "segmentation" not in record:
        raise FaultError("segmentation is missing", "add it, or use --iou-type bbox")
    return segmentations.parse(record["segmentation"])


def _has_no_box(record: Record) -> bool:
    """Return True if a record has no bbox, or an empty list, as in pycocotools."""
    return bool(record.get("bbox", []) == [])


class _IdColumn:
    """A column of ids, stored as indices of the distinct ids in order of occurrence."""

    def __init__(self) -> None:
        self.index_by_id: dict[Name, int] = {}
        self.rows = array("i")

    def add(self, name: Name) -> None:
        self.rows.append(self.index_by_id.setdefault(name, len(self.index_by_id)))

    def indices(self, index_by_id: dict[Name, int]) -> NDArray[np.int32]:
        """Return the index of each row's id, -1 for an unknown id."""
        distinct = np.array([index_by_id.get(name, -1) for name in self.index_by_id], np.int32)
        rows = np.frombuffer(self.rows, np.int32) if self.rows else np.zeros(0, np.int32)
        return distinct[rows] if len(rows) else rows.copy()


class _RecordList:
    """The array of records under one key; detects repeated ids."""

    def __init__(self, name: str, cursor: JsonText, problems: Problems, limits: Limits) -> None:
        self.name = name
        self.cursor = cursor
        self.problems = problems
        self.limits = limits
        self.count = 0
        self.repeated: list[Name] = []
        self.seen: dict[Name, int] = {}
        self.starts = array("q")

    def location(self, index: int, identifier: object = None) -> str:
        suffix = "" if identifier is None else f" (id {short_json(identifier)})"
        return f"{self.name}[{index}]{suffix}"

    def read(self, add: Callable[[Record, int], None]) -> None:
        """Pass every record to `add`, which raises FaultError for an invalid one."""
        for index in self.cursor.items():
            if index == self.limits.records:
                raise NotJsonError(
                    self.cursor.index,
                    f"more than {index} records under {self.name}",
                    MORE_RECORDS,
                )
            self.starts.append(self.cursor.index)
            problems = self.problems.count
            constants = self.cursor.constants
            record = self.cursor.value(self.name, index)
            self._add(record, index, add)
            if self.cursor.constants > constants and self.problems.count == problems:
                self.problems.add(self.location(index), *HOLDS_CONSTANTS)
            self.count = index + 1

    def _add(self, record: Any, index: int, add: Callable[[Record, int], None]) -> None:
        if not isinstance(record, dict):
            self.problems.add(self.location(index), f"is {short_json(record)}, expected an object")
            return
        try:
            add(record, index)
        except FaultError as error:
            identifier = record.get("id")
            known = identifier if isinstance(identifier, int | str) else None
            self.problems.add(self.location(index, known), error.message, error.hint)

    def is_new(self, identifier: Name, record: Record, index: int) -> bool:
        """Return True for a new id; only an identical record may repeat it."""
        first = self.seen.setdefault(identifier, index)
        if first == index:
            return True
        if self._record(first) != record:
            raise FaultError(
                f"duplicate id {short_json(identifier)} (also at {self.location(first)})"
            )
        self.repeated.append(identifier)
        return False

    def _record(self, index: int) -> Any:
        text = JsonText(self.cursor.text, Problems("", 1))
        text.index = self.starts[index]
        return text.value("")


class _TruthReader:
    """Reader of one instances file."""

    def __init__(
        self,
        cursor: JsonText,
        problems: Problems,
        limits: Limits,
        masks: bool = False,
        keypoints: bool = False,
        *,
        boxes: str = "xywh",
        attributes: tuple[str, ...] = (),
    ) -> None:
        self.limits = limits
        self.boxes = boxes
        self.attributes = Attributes(attributes)
        self.cursor = cursor
        self.problems = problems
        self.segmentations = SegmentationsReader() if masks else None
        self.keypoints = KeypointsReader() if keypoints else None
        self.sections = {
            name: _RecordList(name, cursor, problems, limits)
            for name in ("images", "annotations", "categories")
        }
        self.keys: set[str] = set()
        self.sizes: dict[Name, tuple[float, float]] = {}
        self.class_names: dict[Name, str | None] = {}
        self.groups: dict[Name, str] = {}
        self.category_lists: dict[str, dict[Name, list[Name]]] = {}
        self.image = _IdColumn()
        self.label = _IdColumn()
        self.box = array("d")
        self.area = array("d")
        self.flags = {name: bytearray() for name in ("iscrowd", "ignore", "isgroupof")}
        self.origin = array("q")
        self.ids = array("q")
        self.scored = 0
        self.zero_row = -1
        self.counts = dict.fromkeys(
            ("missing-annotation-ids", "missing-area", "missing-iscrowd", "annotation-id-zero"), 0
        )

    def read(self) -> None:
        adders = {
            "images": self._add_image,
            "annotations": self._add_annotation,
            "categories": self._add_category,
        }
        for key in self.cursor.members():
            repeated = key in self.keys
            if repeated:
                _report_repeated(self.problems, key)
            self.keys.add(key)
            add = adders.get(key)
            if add is None or repeated:
                _read_value(self.cursor, self.problems, key)
            elif self.cursor.peek() == "[":
                self.sections[key].read(add)
            else:
                message = f"{key} is {short_json(self.cursor.value(key))}, expected an array"
                self.problems.add("", message, SHAPE_OF_TRUTH)

    def read_categories(self) -> None:
        """Read a text that is only the list of categories."""
        self.sections["categories"].read(self._add_category)

    def _add_image(self, record: Record, index: int) -> None:
        identifier = identifier_of(record, "id")
        lists = {name: _category_ids(record, key) for name, key in LISTS.items() if key in record}
        if self.sections["images"].is_new(identifier, record, index):
            for name, categories in lists.items():
                self.category_lists.setdefault(name, {})[identifier] = categories
            self.sizes[identifier] = (size_of(record.get("width")), size_of(record.get("height")))

    def _add_category(self, record: Record, index: int) -> None:
        identifier = identifier_of(record, "id")
        name = record.get("name")
        if "name" in record and not isinstance(name, str):
            raise FaultError(f"name is {short_json(name)}, expected a string")
        if name is not None:
            check_text("name", name)
        if self.sections["categories"].is_new(identifier, record, index):
            self.class_names[identifier] = name
            self.groups |= groups_of([record])

    def _add_annotation(self, record: Record, index: int) -> None:
        has_id = "id" in record
        identifier = identifier_of(record, "id") if has_id else None
        image = identifier_of(record, "image_id")
        label = identifier_of(record, "category_id")
        no_box = self.segmentations is not None and _has_no_box(record)
        box = _NO_BOX if no_box else box_of(record, self.boxes)
        width, height = box[2:] if self.boxes == "xywh" else (box[2] - box[0], box[3] - box[1])
        area = area_of(record, width, height)
        segmentation = (
            None if self.segmentations is None else _segmentation_of(record, self.segmentations)
        )
        keypoints = None if self.keypoints is None else self.keypoints.parse(record)
        num_keypoints = None if self.keypoints is None else number_of_keypoints(record)
        flags = {name: name in record and flag_of(record, name) for name in self.flags}
        attributes = self.attributes.values(record.get)
        if identifier is not None and not self.sections["annotations"].is_new(
            identifier, record, index
        ):
            return
        self.counts["missing-annotation-ids"] += not has_id
        if identifier == 0:
            self.counts["annotation-id-zero"] += 1
            self.zero_row = len(self.area)
        self.counts["missing-area"] += "area" not in record
        self.counts["missing-iscrowd"] += "iscrowd" not in record
        self.scored += "score" in record
        self.image.add(image)
        self.label.add(label)
        self.box.extend(box)
        self.area.append(area)
        if self.segmentations is not None:
            self.segmentations.add(segmentation)
        if self.keypoints is not None and keypoints is not None:
            self.keypoints.add_annotation(keypoints, num_keypoints, (width, height))
        for name, column in self.flags.items():
            column.append(flags[name])
        self.origin.append(index)
        self.attributes.append(attributes)

    def columns(self) -> TruthColumns:
        """Return the columns; raise InputError for inconsistent sections."""
        self._check_sections()
        if self.keypoints is not None:
            self.counts["missing-num-keypoints"] = self.keypoints.without_count
        image_ids = self._sorted("images", self.sizes)
        class_ids = self._sorted("categories", self.class_names)
        self.problems.raise_any()
        image = self.image.indices({name: i for i, name in enumerate(image_ids)})
        label = self.label.indices({name: i for i, name in enumerate(class_ids)})
        self._check_references("image_id", "images", image, self.image, image_ids)
        self._check_references("category_id", "categories", label, self.label, class_ids)
        self.problems.raise_any()
        box = np.array(self.box, np.float64).reshape(-1, 4)
        corners, box_area = encode_boxes(box, self.boxes, copy=False)
        columns = TruthColumns(
            image_ids=image_ids,
            image_sizes=np.array([self.sizes[i] for i in image_ids], np.float64).reshape(-1, 2),
            class_ids=class_ids,
            class_names=tuple(self.class_names[i] for i in class_ids),
            image=image,
            label=label,
            corners=corners,
            box_area=box_area,
            area=np.array(self.area, np.float64),
            crowd=_as_flags(self.flags["iscrowd"]),
            ignore=_as_flags(self.flags["ignore"]),
            group_of=_as_flags(self.flags["isgroupof"]),
            records=self.sections["annotations"].count,
            zero_row=self.zero_row,
            origin=(
                np.array(self.origin, np.int64) if self.sections["annotations"].repeated else None
            ),
            counts=self.counts,
            repeated={name: section.repeated for name, section in self.sections.items()},
            groups=self.groups,
            segmentations=None if self.segmentations is None else self.segmentations.columns(),
            keypoints=None if self.keypoints is None else self.keypoints.columns(),
            extra=self.attributes.columns(),
        )
        for name, by_image in self.category_lists.items():
            if by_image:
                columns = _with_category_lists(columns, name, by_image)
        return columns

    def _check_sections(self) -> None:
        missing = [name for name in self.sections if name not in self.keys]
        if missing:
            looks = ""
            if self.scored or "predictions" in self.keys:
                looks = " (records have scores: results?)"
            message = f"no {' and no '.join(missing)}{looks}"
            self.problems.lead("", message, SHAPE_OF_TRUTH)
            return
        empty = not self.sections["annotations"].count and not self.limits.empty
        if empty and not self.problems.count:
            self.problems.add("", "no annotations")

    def _sorted(self, name: str, ids: dict[Name, Any]) -> tuple[Name, ...]:
        if len({isinstance(identifier, str) for identifier in ids}) > 1:
            self.problems.add("", f"ids of {name} mix numbers and strings", "use one type")
            return tuple(ids)
        return tuple(sorted(ids))

    def _check_references(
        self,
        key: str,
        section: str,
        indices: NDArray[np.int32],
        column: _IdColumn,
        known: Sequence[Name],
    ) -> None:
        distinct = list(column.index_by_id)
        records = self.sections["annotations"]
        for row in np.flatnonzero(indices < 0).tolist():
            name = distinct[column.rows[row]]
            self.problems.add(
                records.location(self.origin[row]),
                f"{key} {short_json(name)} is not in {section}{_other_type(name, known)}",
            )


def _category_ids(record: Record, key: str) -> list[Name]:
    """Return a list of category ids of an image record."""
    values = record[key]
    if not isinstance(values, list):
        raise FaultError(f"{key} is {short_json(values)}, expected a list of category ids")
    return [identifier_of({key: value}, key) for value in values]


def _with_category_lists(
    columns: TruthColumns, name: str, by_image: dict[Name, list[Name]]
) -> TruthColumns:
    label_by_id = {identifier: label for label, identifier in enumerate(columns.class_ids)}
    pairs = [
        (image, label_by_id.get(identifier, -1))
        for image, image_id in enumerate(columns.image_ids)
        for identifier in by_image.get(image_id, ())
    ]
    array = np.array(pairs, np.int32).reshape(-1, 2)
    return listed_pairs(array[:, 0], array[:, 1], len(by_image), name, columns)


def _report_repeated(problems: Problems, key: str) -> None:
    problems.add("", f"duplicate key {short_json(key)} in one object", "keep one of them")


def _read_value(cursor: JsonText, problems: Problems, key: str) -> Any:
    """Read a value without checking its type; add a problem for NaN or Infinity in it."""
    constants = cursor.constants
    count = problems.count
    value = cursor.value(key)
    if cursor.constants > constants and problems.count == count:
        problems.add(key, *HOLDS_CONSTANTS)
    return value


def _as_flags(values: bytearray) -> NDArray[np.bool_]:
    return np.frombuffer(bytes(values), np.bool_).copy()


def _other_type(name: Name, known: Sequence[Name]) -> str:
    if not known or isinstance(known[0], str) == isinstance(name, str):
        return ""
    return " (ids are strings)" if isinstance(known[0], str) else " (ids are numbers)"


def read_truth(
    data: bytes,
    file: str,
    limits: Limits,
    *,
    masks: bool = False,
    keypoints: bool = False,
    boxes: str = "xywh",
    attributes: tuple[str, ...] = (),
) -> TruthColumns:
    """Read an instances file.

    Parameters
    ----------
    data : bytes
        The decompressed file.
    file : str
        Its name in messages.
    limits : Limits
        Uses `records`, `nesting` and `problems`.
    masks, keypoints : bool
        If True, read segmentations, or keypoints.
    boxes : {"xywh", "xyxy"}
        Format of the bbox.
    attributes : tuple of str
        Further keys of annotations to read.

    Raises
    ------
    InputError
        With all problems of the file.
    """
    document = _Document(data, file, limits)
    cursor, problems = document.cursor, document.problems
    reader = _TruthReader(
        cursor, problems, limits, masks, keypoints, boxes=boxes, attributes=attributes
    )
    with document:
        first = cursor.peek()
        if first == "[":
            problems.lead("", "is a JSON list (results?)", SHAPE_OF_TRUTH)
            problems.raise_any()
        if first != "{":
            raise NotJsonError(cursor.index, "not a JSON object", SHAPE_OF_TRUTH)
        reader.read()
        cursor.finish()
    return reader.columns()


def read_categories(data: bytes) -> dict[Name, str | None] | None:
    """Read a list of categories: names by ascending id.

    Returns
    -------
    dict or None
        None if the list is irregular and the fallback reader must read the whole file.
    """
    problems = Problems("", 1)
    try:
        cursor = JsonText(data.decode(), problems)
        reader = _TruthReader(cursor, problems, DEFAULT_LIMITS)
        reader.read_categories()
        cursor.finish()
    except (NotJsonError, UnicodeDecodeError):
        return None
    names = reader.class_names
    regular = not problems.count and not reader.sections["categories"].repeated
    if not regular or len({isinstance(identifier, str) for identifier in names}) > 1:
        return None
    return dict(sorted(names.items()))


class _ResultsReader:
    """Reader of one results file."""

    def __init__(
        self,
        cursor: JsonText,
        problems: Problems,
        limits: Limits,
        masks: bool = False,
        keypoints: KeypointsReader | None = None,
        *,
        boxes: str = "xywh",
        by_file: bool = False,
    ) -> None:
        self.boxes = boxes
        self.by_file = by_file
        self.cursor = cursor
        self.problems = problems
        self.limits = limits
        self.masks = masks
        self.segmentations = SegmentationsReader()
        self.keypoints = keypoints
        self.records = _RecordList("", cursor, problems, limits)
        self.keys: list[str] = []
        self.categories: list[Any] = []
        self.images: list[Any] = []
        self.image = _IdColumn()
        self.label = _IdColumn()
        self.box = array("d")
        self.score = array("d")
        self.polygons: dict[int, list[float]] = {}
        self.origin = array("q")
        self.unscored = 0

    def read(self) -> None:
        if self.cursor.peek() == "[":
            self.records.read(self._add)
            return
        for key in self.cursor.members():
            if key in self.keys:
                _report_repeated(self.problems, key)
            self.keys.append(key)
            if key in ("annotations", "predictions") and self.cursor.peek() == "[":
                if not self.records.name:
                    self.records.name = key
                    self.records.read(self._add)
                    continue
                message = "both annotations and predictions are lists"
                self.problems.add("", message, "keep the one with the detections")
            if key in ("categories", "images"):
                value = _read_value(self.cursor, self.problems, key)
                setattr(self, key, value if isinstance(value, list) else [])
            else:
                _read_value(self.cursor, self.problems, key)
        if not self.records.name:
            message = "is an object without a list of annotations or predictions"
            self.problems.lead("", message, SHAPE_OF_RESULTS)

    def _add(self, record: Record, index: int) -> None:
        self.unscored += "score" not in record
        image = identifier_of(record, "image_id")
        if self.by_file and isinstance(record.get("file_name"), str):
            image = record["file_name"]
        label = identifier_of(record, "category_id")
        keypoints = None if self.keypoints is None else self.keypoints.parse(record)
        segmentation, box = self._segmentation_and_box(record, keypoints)
        score = score_of(required(record, "score"))
        if _has_no_box(record) and "poly" in record:
            self.polygons[len(self.score)] = polygon_of(record)
        self.segmentations.add(segmentation)
        if self.keypoints is not None and keypoints is not None:
            self.keypoints.add(drop_visibility(keypoints))
        self.image.add(image)
        self.label.add(label)
        self.box.extend(box)
        self.score.append(score)
        self.origin.append(index)

    def _segmentation_and_box(
        self, record: Record, keypoints: list[float] | None
    ) -> tuple[Segmentation | None, tuple[float, float, float, float]]:
        """Return the segmentation, if needed, and the box of a record.

        Without a bbox, the box is that of the mask, computed later, or that of the keypoints.
        """
        no_box, has_mask = _has_no_box(record), "segmentation" in record
        required = self.masks or (no_box and keypoints is None)
        segmentation = (
            self.segmentations.parse(record["segmentation"]) if has_mask and required else None
        )
        if no_box and segmentation is not None:
            return segmentation, _NO_BOX
        if no_box and "keypoints" in record:
            x, y, width, height = extent_of(keypoints_of_result(record))
            far = (width, height) if self.boxes == "xywh" else (x + width, y + height)
            return segmentation, (x, y, *far)
        if no_box and "poly" in record:
            polygon = polygon_of(record)
            x, y, right, bottom = bounds_of(polygon)
            far = (right - x, bottom - y) if self.boxes == "xywh" else (right, bottom)
            return segmentation, (x, y, *far)
        return segmentation, box_of(record, self.boxes)

    def check_shape(self) -> None:
        """Raise InputError if no record has a score."""
        if self.records.count and self.unscored == self.records.count:
            looks = ""
            if "images" in self.keys and "annotations" in self.keys:
                looks = " (has images and annotations: ground truth?)"
            message = f"none of the {self.records.count} records has a score{looks}"
            self.problems.instead(message, SHAPE_OF_RESULTS)
            self.problems.raise_any()

    def columns(self, truth: GroundTruth, by_name: bool) -> DetectionColumns:
        """Return the columns with the indices of the ground truth."""
        image_ids = truth.images
        class_ids = () if by_name else truth.class_ids
        listed = listed_names(self.images, "file_name")
        image = self.image.indices(image_indices(truth, self.image.index_by_id, listed))
        unknown = self._unknown(class_ids)
        label = self.label.indices({name: i for i, name in enumerate((*class_ids, *unknown))})
        self._check_images(image, image_ids)
        self._check_category_types(class_ids)
        self.problems.raise_any()
        box = np.array(self.box, np.float64).reshape(-1, 4)
        corners, box_area = encode_boxes(box, self.boxes, copy=False)
        return DetectionColumns(
            image=image,
            label=label,
            corners=corners,
            box_area=box_area,
            score=np.array(self.score, np.float64),
            unknown=unknown,
            file_names=listed,
            categories=listed_names(self.categories, "name"),
            segmentations=(
                self.segmentations.columns() if self.masks or any(self.segmentations.has) else None
            ),
            keypoints=None if self.keypoints is None else self.keypoints.points(2),
            polygons=self._polygons(corners),
            by_file=not self.image.index_by_id.keys() <= set(image_ids),
        )

    def _polygons(self, corners: Floats) -> Floats | None:
        """Return the quadrilaterals (N, 8), boxes among them; None if all are boxes."""
        if not self.polygons:
            return None
        from detap.core.polygons import box_polygons

        polygons: Floats = box_polygons(corners)
        for row, polygon in self.polygons.items():
            polygons[row] = polygon
        return polygons

    def _unknown(self, known: Sequence[Name]) -> dict[Name, int]:
        """Return the number of detections of each unknown category."""
        rows = np.frombuffer(self.label.rows, np.int32) if self.label.rows else ()
        known_ids = set(known)
        counts = np.bincount(rows, minlength=len(self.label.index_by_id)).tolist()
        return {
            name: counts[index]
            for name, index in self.label.index_by_id.items()
            if name not in known_ids
        }

    def _check_images(self, image: NDArray[np.int32], image_ids: Sequence[Name]) -> None:
        unknown = np.flatnonzero(image < 0)
        if not len(unknown):
            return
        names = list(self.image.index_by_id)
        if len(unknown) == len(image):
            message = no_common_id("image_id", names, image_ids)
            self.problems.instead(message, "use results for the same images")
            return
        for row in unknown.tolist():
            name = names[self.image.rows[row]]
            self.problems.add(
                self.records.location(self.origin[row]),
                f"image_id {short_json(name)} is not in the ground truth"
                f"{_other_type(name, image_ids)}",
                ambiguous_number(name, image_ids),
            )

    def _check_category_types(self, class_ids: Sequence[Name]) -> None:
        if not class_ids:
            return
        names = list(self.label.index_by_id)
        expects_text = isinstance(class_ids[0], str)
        expected = "a string" if expects_text else "a number"
        for row, index in enumerate(self.label.rows):
            if isinstance(names[index], str) != expects_text:
                self.problems.add(
                    self.records.location(self.origin[row]),
                    f"category_id is {short_json(names[index])}, expected {expected} as in the "
                    "ground truth",
                )


def read_results(
    data: bytes,
    file: str,
    limits: Limits,
    ground_truth: GroundTruth,
    *,
    by_name: bool = False,
    masks: bool = False,
    keypoints: bool = False,
    boxes: str = "xywh",
) -> DetectionColumns:
    """Read a results file, with the image and class indices of the ground truth.

    Parameters
    ----------
    data, file, limits
        As in :func:`read_truth`, which also lists the errors.
    ground_truth : GroundTruth
        Defines the indices.
    by_name : bool
        If True, the caller maps categories by name, and all are unknown here.
    masks : bool
        If True, read segmentations of rows with a box too.
    keypoints : bool
        If True, read keypoints.
    boxes : {"xywh", "xyxy"}
        Format of the bbox.
    """
    document = _Document(data, file, limits)
    cursor, problems = document.cursor, document.problems
    of_yolo = ground_truth.format == "yolo"
    keypoints_reader = None
    if keypoints:
        keypoints_reader = KeypointsReader(keypoints_of(ground_truth), pairs=of_yolo)
    reader = _ResultsReader(
        cursor, problems, limits, masks, keypoints_reader, boxes=boxes, by_file=of_yolo
    )
    with document:
        if cursor.peek() not in ("[", "{"):
            raise NotJsonError(cursor.index, "not a JSON array", SHAPE_OF_RESULTS)
        reader.read()
        cursor.finish()
    reader.check_shape()
    return reader.columns(ground_truth, by_name)


class _Document:
    """A file being read; reports a JSON syntax error as the first problem."""

    def __init__(self, data: bytes, file: str, limits: Limits) -> None:
        self.problems = Problems(file, limits.problems)
        self.cursor = text_of(data, self.problems, limits, nesting)

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: object, __: object) -> None:
        if isinstance(error, NotJsonError):
            self.problems.lead(*self.cursor.fault(error))
            self.problems.raise_any()
