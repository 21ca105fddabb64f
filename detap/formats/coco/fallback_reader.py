"""The careful reader of COCO files: any valid JSON, and every problem of an invalid file.

It reads record by record with the standard library's scanner. The fast reader is held to its
results, and hands over to it whatever is not of the regular shape.
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
from detap.formats.coco.id_mapping import image_numbers
from detap.formats.coco.keypoints import (
    PosesReader,
    extent_of,
    number_of_keypoints,
    pose_of,
    without_v,
)
from detap.formats.coco.segmentation import OutlinesReader, Shape
from detap.formats.coco.values import (
    Record,
    area_of,
    box_of,
    check_text,
    flag_of,
    identifier_of,
    nothing_in_common,
    required,
    score_of,
    size_of,
)
from detap.io.json_text import HOLDS_CONSTANTS, JsonText, NotJsonError, spelt, text_of
from detap.io.limits import DEFAULT_LIMITS, MORE_RECORDS, Limits
from detap.io.problems import FaultError, Problems
from detap.tables.detection import GroundTruth, Name, encode_boxes

_NO_BOX = (0.0, 0.0, np.nan, np.nan)
"""Of a row whose mask has the box."""


def _shape(record: Record, outlines: OutlinesReader) -> Shape:
    if "segmentation" not in record:
        raise FaultError(
            "segmentation is missing", "give every object its mask, or score boxes: --iou-type bbox"
        )
    return outlines.drawn(record["segmentation"])


def _has_no_box(record: Record) -> bool:
    """Return True if a record has no bbox, or the empty list, as for pycocotools."""
    return bool(record.get("bbox", []) == [])


class _Names:
    """The ids of one kind that a file uses, each numbered when first met."""

    def __init__(self) -> None:
        self.number: dict[Name, int] = {}
        self.rows = array("i")

    def add(self, name: Name) -> None:
        self.rows.append(self.number.setdefault(name, len(self.number)))

    def numbered(self, dense: dict[Name, int]) -> NDArray[np.int32]:
        """Return each row's number by `dense`; -1 where that has no such name."""
        by_first = np.array([dense.get(name, -1) for name in self.number], np.int32)
        rows = np.frombuffer(self.rows, np.int32) if self.rows else np.zeros(0, np.int32)
        return by_first[rows] if len(rows) else rows.copy()


class _Records:
    """The array of records under one key: read in turn, repeated ones found."""

    def __init__(self, name: str, cursor: JsonText, problems: Problems, limits: Limits) -> None:
        self.name = name
        self.cursor = cursor
        self.problems = problems
        self.limits = limits
        self.count = 0
        self.repeated: list[Name] = []
        self.seen: dict[Name, int] = {}
        self.starts = array("q")

    def location(self, number: int, identifier: object = None) -> str:
        named = "" if identifier is None else f" (id {spelt(identifier)})"
        return f"{self.name}[{number}]{named}"

    def read(self, take: Callable[[Record, int], None]) -> None:
        """Hand every record to `take`, which raises `FaultError` where one is not right."""
        for number in self.cursor.items():
            if number == self.limits.records:
                raise NotJsonError(
                    self.cursor.index,
                    f"more than {number} records under {self.name}",
                    MORE_RECORDS,
                )
            self.starts.append(self.cursor.index)
            before = self.problems.count
            constants = self.cursor.constants
            record = self.cursor.value(self.name, number)
            self._take(record, number, take)
            if self.cursor.constants > constants and self.problems.count == before:
                self.problems.add(self.location(number), *HOLDS_CONSTANTS)
            self.count = number + 1

    def _take(self, record: Any, number: int, take: Callable[[Record, int], None]) -> None:
        if not isinstance(record, dict):
            self.problems.add(self.location(number), f"is {spelt(record)}", "an object is due")
            return
        try:
            take(record, number)
        except FaultError as wrong:
            identifier = record.get("id")
            shown = identifier if isinstance(identifier, int | str) else None
            self.problems.add(self.location(number, shown), wrong.message, wrong.hint)

    def is_new(self, identifier: Name, record: Record, number: int) -> bool:
        """Tell whether this id was not met before; an identical record may repeat it."""
        first = self.seen.setdefault(identifier, number)
        if first == number:
            return True
        if self._record(first) != record:
            raise FaultError(
                f"id {spelt(identifier)} is that of {self.location(first)} too, another record",
                "give every record an id of its own",
            )
        self.repeated.append(identifier)
        return False

    def _record(self, number: int) -> Any:
        again = JsonText(self.cursor.text, Problems("", 1))
        again.index = self.starts[number]
        return again.value("")


class _TruthReader:
    """An instances file, being read."""

    def __init__(
        self,
        cursor: JsonText,
        problems: Problems,
        limits: Limits,
        masks: bool = False,
        keypoints: bool = False,
        *,
        boxes: str = "xywh",
    ) -> None:
        self.limits = limits
        self.boxes = boxes
        self.cursor = cursor
        self.problems = problems
        self.outlines = OutlinesReader() if masks else None
        self.poses = PosesReader() if keypoints else None
        self.parts = {
            name: _Records(name, cursor, problems, limits)
            for name in ("images", "annotations", "categories")
        }
        self.found: set[str] = set()
        self.sizes: dict[Name, tuple[float, float]] = {}
        self.class_names: dict[Name, str | None] = {}
        self.groups: dict[Name, str] = {}
        self.lists: dict[str, dict[Name, list[Name]]] = {}
        self.image = _Names()
        self.label = _Names()
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
        takers = {
            "images": self._take_image,
            "annotations": self._take_annotation,
            "categories": self._take_category,
        }
        for key in self.cursor.members():
            repeated = key in self.found
            if repeated:
                _report_repeated(self.problems, key)
            self.found.add(key)
            taker = takers.get(key)
            if taker is None or repeated:
                _skip(self.cursor, self.problems, key)
            elif self.cursor.peek() == "[":
                self.parts[key].read(taker)
            else:
                message = f"{key} is {spelt(self.cursor.value(key))}"
                self.problems.add("", message, f"an array is due: {SHAPE_OF_TRUTH}")

    def read_categories(self) -> None:
        """Read the list of categories, where it is all there is."""
        self.parts["categories"].read(self._take_category)

    def _take_image(self, record: Record, number: int) -> None:
        identifier = identifier_of(record, "id")
        lists = {name: _list_of(record, key) for name, key in LISTS.items() if key in record}
        if self.parts["images"].is_new(identifier, record, number):
            for name, categories in lists.items():
                self.lists.setdefault(name, {})[identifier] = categories
            self.sizes[identifier] = (size_of(record.get("width")), size_of(record.get("height")))

    def _take_category(self, record: Record, number: int) -> None:
        identifier = identifier_of(record, "id")
        name = record.get("name")
        if "name" in record and not isinstance(name, str):
            raise FaultError(f"name is {spelt(name)}", "give a string")
        if name is not None:
            check_text("name", name)
        if self.parts["categories"].is_new(identifier, record, number):
            self.class_names[identifier] = name
            self.groups |= groups_of([record])

    def _take_annotation(self, record: Record, number: int) -> None:
        has_id = "id" in record
        identifier = identifier_of(record, "id") if has_id else None
        image = identifier_of(record, "image_id")
        label = identifier_of(record, "category_id")
        boxless = self.outlines is not None and _has_no_box(record)
        box = _NO_BOX if boxless else box_of(record, self.boxes)
        width, height = box[2:] if self.boxes == "xywh" else (box[2] - box[0], box[3] - box[1])
        area = area_of(record, width, height)
        shape = None if self.outlines is None else _shape(record, self.outlines)
        pose = None if self.poses is None else self.poses.posed(record)
        labelled = None if self.poses is None else number_of_keypoints(record)
        flags = {name: name in record and flag_of(record, name) for name in self.flags}
        if identifier is not None and not self.parts["annotations"].is_new(
            identifier, record, number
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
        if self.outlines is not None:
            self.outlines.add(shape)
        if self.poses is not None and pose is not None:
            self.poses.add_truth(pose, labelled, (width, height))
        for name, column in self.flags.items():
            column.append(flags[name])
        self.origin.append(number)

    def columns(self) -> TruthColumns:
        """Return what was read; raise where its parts do not fit each other."""
        self._check_parts()
        if self.poses is not None:
            self.counts["missing-num-keypoints"] = self.poses.unnumbered
        image_ids = self._sorted("images", self.sizes)
        class_ids = self._sorted("categories", self.class_names)
        self.problems.raise_any()
        image = self.image.numbered({name: i for i, name in enumerate(image_ids)})
        label = self.label.numbered({name: i for i, name in enumerate(class_ids)})
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
            records=self.parts["annotations"].count,
            zero_row=self.zero_row,
            origin=np.array(self.origin, np.int64) if self.parts["annotations"].repeated else None,
            counts=self.counts,
            repeated={name: part.repeated for name, part in self.parts.items()},
            groups=self.groups,
            outlines=None if self.outlines is None else self.outlines.columns(),
            poses=None if self.poses is None else self.poses.columns(),
        )
        for name, by_image in self.lists.items():
            if by_image:
                columns = _with_list(columns, name, by_image)
        return columns

    def _check_parts(self) -> None:
        missing = [name for name in self.parts if name not in self.found]
        if missing:
            looks = ""
            if self.scored or "predictions" in self.found:
                looks = "; its records have scores, so it looks like results"
            message = f"has no {' and no '.join(missing)}{looks}"
            self.problems.lead("", message, SHAPE_OF_TRUTH)
            return
        bare = not self.parts["annotations"].count and not self.limits.empty
        if bare and not self.problems.count:
            self.problems.add("", "has no annotations", "there is nothing to score against")

    def _sorted(self, name: str, ids: dict[Name, Any]) -> tuple[Name, ...]:
        if len({isinstance(identifier, str) for identifier in ids}) > 1:
            self.problems.add(
                "", f"the ids of {name} are partly numbers and partly strings", "use one of the two"
            )
            return tuple(ids)
        return tuple(sorted(ids))

    def _check_references(
        self,
        key: str,
        part: str,
        numbers: NDArray[np.int32],
        names: _Names,
        known: Sequence[Name],
    ) -> None:
        by_number = list(names.number)
        records = self.parts["annotations"]
        for row in np.flatnonzero(numbers < 0).tolist():
            name = by_number[names.rows[row]]
            self.problems.add(
                records.location(self.origin[row]),
                f"{key} {spelt(name)} is not among the {part}{_other_kind(name, known)}",
                f"list it under {part}, or remove the annotation",
            )


def _list_of(record: Record, key: str) -> list[Name]:
    """Return what an image lists of categories."""
    values = record[key]
    if not isinstance(values, list):
        raise FaultError(f"{key} is {spelt(values)}", "give a list of category ids")
    return [identifier_of({key: value}, key) for value in values]


def _with_list(columns: TruthColumns, name: str, by_image: dict[Name, list[Name]]) -> TruthColumns:
    label = {identifier: number for number, identifier in enumerate(columns.class_ids)}
    pairs = [
        (image, label.get(identifier, -1))
        for image, name_of in enumerate(columns.image_ids)
        for identifier in by_image.get(name_of, ())
    ]
    found = np.array(pairs, np.int32).reshape(-1, 2)
    return listed_pairs(found[:, 0], found[:, 1], len(by_image), name, columns)


def _report_repeated(problems: Problems, key: str) -> None:
    problems.add("", f"duplicate key {spelt(key)} in one object", "keep one of them")


def _skip(cursor: JsonText, problems: Problems, key: str) -> Any:
    """Read a value that is not needed, or whose parts are checked later; return it."""
    constants = cursor.constants
    before = problems.count
    value = cursor.value(key)
    if cursor.constants > constants and problems.count == before:
        problems.add(key, *HOLDS_CONSTANTS)
    return value


def _as_flags(values: bytearray) -> NDArray[np.bool_]:
    return np.frombuffer(bytes(values), np.bool_).copy()


def _other_kind(name: Name, known: Sequence[Name]) -> str:
    if not known or isinstance(known[0], str) == isinstance(name, str):
        return ""
    kinds = ("a number", "strings") if isinstance(known[0], str) else ("a string", "numbers")
    return f": it is {kinds[0]}, they are {kinds[1]}"


def read_truth(
    data: bytes,
    file: str,
    limits: Limits,
    *,
    masks: bool = False,
    keypoints: bool = False,
    boxes: str = "xywh",
) -> TruthColumns:
    """Read an instances file.

    Parameters
    ----------
    data : bytes
        The file, expanded.
    file : str
        What messages call it.
    limits : Limits
        `records`, `nesting` and `problems` are obeyed.
    masks, keypoints : bool
        Whether segmentations, or keypoints, are read.
    boxes : {"xywh", "xyxy"}
        What the four numbers of a bbox are.

    Raises
    ------
    InputError
        With all problems of the file.
    """
    document = _Document(data, file, limits)
    cursor, problems = document.cursor, document.problems
    reader = _TruthReader(cursor, problems, limits, masks, keypoints, boxes=boxes)
    with document:
        first = cursor.peek()
        if first == "[":
            problems.lead("", "is a list, as results are", SHAPE_OF_TRUTH)
            problems.raise_any()
        if first != "{":
            raise NotJsonError(cursor.index, "is no JSON object", SHAPE_OF_TRUTH)
        reader.read()
        cursor.finish()
    return reader.columns()


def read_categories(data: bytes) -> dict[Name, str | None] | None:
    """Read the list of categories alone: the name of each id, by ascending id.

    Returns
    -------
    dict or None
        None where anything about it is unusual: then the whole file must be read carefully.
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
    usual = not problems.count and not reader.parts["categories"].repeated
    if not usual or len({isinstance(identifier, str) for identifier in names}) > 1:
        return None
    return dict(sorted(names.items()))


class _ResultsReader:
    """A results file, being read."""

    def __init__(
        self,
        cursor: JsonText,
        problems: Problems,
        limits: Limits,
        masks: bool = False,
        poses: PosesReader | None = None,
        *,
        boxes: str = "xywh",
    ) -> None:
        self.boxes = boxes
        self.cursor = cursor
        self.problems = problems
        self.limits = limits
        self.masks = masks
        self.outlines = OutlinesReader()
        self.poses = poses
        self.records = _Records("", cursor, problems, limits)
        self.found: list[str] = []
        self.categories: list[Any] = []
        self.images: list[Any] = []
        self.image = _Names()
        self.label = _Names()
        self.box = array("d")
        self.score = array("d")
        self.origin = array("q")
        self.unscored = 0

    def read(self) -> None:
        if self.cursor.peek() == "[":
            self.records.read(self._take)
            return
        for key in self.cursor.members():
            if key in self.found:
                _report_repeated(self.problems, key)
            self.found.append(key)
            if key in ("annotations", "predictions") and self.cursor.peek() == "[":
                if not self.records.name:
                    self.records.name = key
                    self.records.read(self._take)
                    continue
                message = "has both annotations and predictions"
                self.problems.add("", message, "keep the one that holds the detections")
            if key in ("categories", "images"):
                value = _skip(self.cursor, self.problems, key)
                setattr(self, key, value if isinstance(value, list) else [])
            else:
                _skip(self.cursor, self.problems, key)
        if not self.records.name:
            message = "is an object without a list of annotations or predictions"
            self.problems.lead("", message, SHAPE_OF_RESULTS)

    def _take(self, record: Record, number: int) -> None:
        self.unscored += "score" not in record
        image = identifier_of(record, "image_id")
        label = identifier_of(record, "category_id")
        pose = None if self.poses is None else self.poses.posed(record)
        shape, box = self._shape(record, pose)
        score = score_of(required(record, "score"))
        self.outlines.add(shape)
        if self.poses is not None and pose is not None:
            self.poses.add(without_v(pose))
        self.image.add(image)
        self.label.add(label)
        self.box.extend(box)
        self.score.append(score)
        self.origin.append(number)

    def _shape(
        self, record: Record, pose: list[float] | None
    ) -> tuple[Shape | None, tuple[float, float, float, float]]:
        """Return the mask of a record, where it is wanted or the box is to be had of it, and that.

        Of what has no box it is that of its mask, taken later, or that around its keypoints.
        """
        boxless, masked = _has_no_box(record), "segmentation" in record
        asked = self.masks or (boxless and pose is None)
        shape = self.outlines.drawn(record["segmentation"]) if masked and asked else None
        if boxless and shape is not None:
            return shape, _NO_BOX
        if boxless and "keypoints" in record:
            x, y, width, height = extent_of(pose_of(record))
            far = (width, height) if self.boxes == "xywh" else (x + width, y + height)
            return shape, (x, y, *far)
        return shape, box_of(record, self.boxes)

    def check_shape(self) -> None:
        """Lead the problems by what the whole file looks like, where that explains them."""
        if self.records.count and self.unscored == self.records.count:
            looks = ""
            if "images" in self.found and "annotations" in self.found:
                looks = ": it looks like ground truth, with images and annotations"
            message = f"none of its {self.records.count} records has a score{looks}"
            self.problems.instead(message, SHAPE_OF_RESULTS)
            self.problems.raise_any()

    def columns(self, truth: GroundTruth, by_name: bool) -> DetectionColumns:
        """Return what was read, numbered as the ground truth; raise where it does not fit."""
        image_ids = truth.images
        class_ids = () if by_name else truth.class_ids
        listed = listed_names(self.images, "file_name")
        image = self.image.numbered(image_numbers(truth, self.image.number, listed))
        unknown = self._unknown(class_ids)
        label = self.label.numbered({name: i for i, name in enumerate((*class_ids, *unknown))})
        self._check_images(image, image_ids)
        self._check_kinds(class_ids)
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
            outlines=self.outlines.columns() if self.masks or any(self.outlines.has) else None,
            keypoints=None if self.poses is None else self.poses.keypoints(2),
            by_file=not self.image.number.keys() <= set(image_ids),
        )

    def _unknown(self, known: Sequence[Name]) -> dict[Name, int]:
        """Return how often each category occurs that is not among those known."""
        rows = np.frombuffer(self.label.rows, np.int32) if self.label.rows else ()
        listed = set(known)
        counts = np.bincount(rows, minlength=len(self.label.number)).tolist()
        return {
            name: counts[number] for name, number in self.label.number.items() if name not in listed
        }

    def _check_images(self, image: NDArray[np.int32], image_ids: Sequence[Name]) -> None:
        unknown = np.flatnonzero(image < 0)
        if not len(unknown):
            return
        names = list(self.image.number)
        if len(unknown) == len(image):
            self.problems.instead(
                nothing_in_common("image", "image_id is", names, image_ids),
                "give the results of the same images",
            )
            return
        for row in unknown.tolist():
            name = names[self.image.rows[row]]
            self.problems.add(
                self.records.location(self.origin[row]),
                f"image_id {spelt(name)} is not in the ground truth{_other_kind(name, image_ids)}",
                "score the detections of its images only",
            )

    def _check_kinds(self, class_ids: Sequence[Name]) -> None:
        if not class_ids:
            return
        names = list(self.label.number)
        wrong = {name for name in names if isinstance(name, str) != isinstance(class_ids[0], str)}
        if not wrong:
            return
        for row, number in enumerate(self.label.rows):
            if names[number] in wrong:
                name = names[number]
                self.problems.add(
                    self.records.location(self.origin[row]),
                    f"category_id {spelt(name)}{_other_kind(name, class_ids)}",
                    "spell the ids as the ground truth does",
                )


def read_listed(data: bytes) -> list[Any]:
    """Return a list that a scanner has kept: its syntax is known to be right."""
    value = JsonText(data.decode(), Problems("", 1)).value("") if data else []
    return value if isinstance(value, list) else []


def read_results(
    data: bytes,
    file: str,
    limits: Limits,
    truth: GroundTruth,
    *,
    by_name: bool = False,
    masks: bool = False,
    keypoints: bool = False,
    boxes: str = "xywh",
) -> DetectionColumns:
    """Read a results file, numbering images and categories as the ground truth does.

    Parameters
    ----------
    data, file, limits
        As :func:`read_truth` has them; so is what is raised.
    truth : GroundTruth
        Its images and classes are what the rows are numbered by.
    by_name : bool
        Whether categories are looked up elsewhere: then each is an unknown one.
    masks : bool
        Whether segmentations are read also of rows that have a box.
    keypoints : bool
        Whether keypoints are read.
    boxes : {"xywh", "xyxy"}
        What the four numbers of a bbox are.
    """
    document = _Document(data, file, limits)
    cursor, problems = document.cursor, document.problems
    poses = PosesReader(keypoints_of(truth)) if keypoints else None
    reader = _ResultsReader(cursor, problems, limits, masks, poses, boxes=boxes)
    with document:
        if cursor.peek() not in ("[", "{"):
            raise NotJsonError(cursor.index, "is no JSON array", SHAPE_OF_RESULTS)
        reader.read()
        cursor.finish()
    reader.check_shape()
    return reader.columns(truth, by_name)


class _Document:
    """A file being read: what turns out to be no JSON becomes the problem that is read first."""

    def __init__(self, data: bytes, file: str, limits: Limits) -> None:
        self.problems = Problems(file, limits.problems)
        self.cursor = text_of(data, self.problems, limits, nesting)

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: object, __: object) -> None:
        if isinstance(error, NotJsonError):
            self.problems.lead(*self.cursor.fault(error))
            self.problems.raise_any()
