"""Label Studio: a JSON list of tasks, in full or as JSON-MIN.

References: Label Studio's documentation, "Export annotations" and "Image annotation formats";
label-studio-sdk 2.1, ``converter``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import numpy as np

from detap.errors import Note
from detap.formats.content import (
    Content,
    check_words,
    exact_number,
    known_sizes,
    lost,
    rounded_corners,
    rows_of_images,
    scores_of,
)
from detap.formats.image_folders import ImageFolder, nearby_folders
from detap.formats.reading.sniffing import head, json_paths
from detap.formats.shapes.document import (
    Box,
    Document,
    DocumentFormat,
    Image,
    Item,
    exact_xywh,
    json_list,
)
from detap.formats.shapes.values import (
    class_name,
    finite_number,
    located_objects,
    numbers,
    object_of,
    points_of,
    positive_box,
    required,
    rotated_ellipse,
)
from detap.formats.stem_matching import base_name, without_suffix
from detap.formats.xywh import to_xywh
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.tables.detection import Detections, Floats, GroundTruth
from detap.text_input import join_names

_SHAPES = ("rectanglelabels", "polygonlabels", "ellipselabels", "brushlabels", "labels")
"""Types of results that are regions with a class."""
_BARE = ("rectangle", "polygon", "ellipse", "brush")
"""Types of regions without a class."""
_REGIONS = (*_SHAPES, *_BARE)
_UPLOADED = re.compile(r"^[0-9a-f]{8}-(?=.)")
_LOCAL = "/data/local-files/?d="
_LISTS = ("annotations", "completions")
"""Keys of the annotations of a task; the second before version 1.0."""
_STEPS = (0, 1, -1, 2, -2)
_SCORED = "results without a score have that of their prediction"


class Tasks(Document):
    """The tasks of a file, in full or as JSON-MIN.

    The name of an image is its file name without the suffix and the eight hexadecimal digits that
    an upload puts before it. Of several annotations of a task, the newest counts. Tasks without
    annotations, and those whose annotations are all cancelled, are not images. The score of a
    detection is that of the result, or else that of its prediction. In a file with annotations,
    predictions are skipped if their task has none and the image is not in the ground truth.
    """

    box_format = "xywh"
    expected = "expected Label Studio's JSON or JSON-MIN, a list of tasks with data and annotations"
    score_names = ("score",)
    noted = (
        Note("several-annotators", "tasks annotated more than once; the newest annotation counts"),
        Note("tasks-not-annotated", "tasks without annotations skipped", severity="info"),
        Note("annotations-cancelled", "cancelled annotations skipped", severity="info"),
        Note("results-skipped", "results skipped: not regions ({})", severity="info"),
        Note("prediction-scores", _SCORED, severity="info"),
    )

    def __init__(self, *arguments: Any, model_version: str | None = None, **how: Any) -> None:
        super().__init__(*arguments, **how)
        self.model_version = model_version  # of the predictions that are read
        self._models: dict[str, None] = {}  # of all predictions

    def parse(self, data: bytes) -> Any:
        """Return the content of a file; raise FaultError for CSV."""
        if _is_csv(data):
            raise FaultError("is Label Studio's CSV, which is not read", "export JSON")
        return super().parse(data)

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each annotated image."""
        if not isinstance(content, list):
            raise FaultError(f"is {short_json(content)}", self.expected)
        if not content:
            raise FaultError("has no tasks", "export tasks with annotations")
        is_full = any(isinstance(record, dict) and "data" in record for record in content)
        if self.scored and not is_full:
            raise FaultError("is JSON-MIN, which has no predictions", "export JSON")
        tasks = enumerate(content) if is_full else self._newest_records(content)
        known = None  # images of the ground truth, for detections of a project
        if self.truth is not None and any(map(_is_annotated, content)):
            known = {base_name(str(name)) for name in self.truth.images}
        for number, task in tasks:
            if not self._is_skipped(task, known):
                yield f"[{number}]", task
        if self.scored and not self._models and not self.problems.count:
            raise FaultError("has no predictions", "import predictions, and export them with tasks")
        if self.model_version is None and len(self._models) > 1:
            message = f"predictions of several models: {join_names(self._models)}"
            raise FaultError(message, "choose one with --model-version")

    def _newest_records(self, content: list[Any]) -> Iterator[tuple[int, Any]]:
        """Return the newest record of each task of JSON-MIN, which has one per annotation."""
        by_task: dict[str | int, list[tuple[int, Any]]] = {}
        for number, record in enumerate(content):
            identifier = record.get("id") if isinstance(record, dict) else None
            key = number if identifier is None else short_json(identifier)
            by_task.setdefault(key, []).append((number, record))
        return map(self._newest, by_task.values())

    def _newest(self, records: list[tuple[Any, Any]]) -> Any:
        """Return the newest of located annotations; of equally new ones, the last."""
        if len(records) == 1:
            return records[0]
        self.counts["several-annotators"] += 1
        return max(reversed(records), key=lambda record: _time_of(record[1]))

    def _is_skipped(self, task: Any, known: set[str] | None) -> bool:
        """Return True for a task that is not an image.

        In ground truth it has no annotation, or only cancelled ones; in detections of a project
        neither an annotation nor an image of the ground truth.
        """
        if not isinstance(task, dict) or "data" not in task:
            return False
        if self.scored:
            is_unknown = False
            if known is not None and not _is_annotated(task):
                with suppress(FaultError):
                    name = image_name_of(_image_value(object_of(task["data"])))
                    is_unknown = without_suffix(name) not in known
            self.counts["tasks-not-annotated"] += is_unknown
            return is_unknown
        annotations = task.get(_list_key(task), [])
        if not isinstance(annotations, list):
            return False
        valid = _valid(annotations)
        self.counts["annotations-cancelled"] += len(annotations) - len(valid)
        self.counts["tasks-not-annotated"] += not annotations
        return not valid

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a task."""
        task = object_of(record)
        is_full = "data" in task or self.scored
        data = required(task, "data", dict, "expected an object") if is_full else task
        value = _image_value(data)
        results = self._of_task(location, task) if is_full else _of_record(location, task)
        regions = [*self._shapes([*results])]
        sizes = [(r.get("original_width"), r.get("original_height")) for _, r in regions]
        if any(size != sizes[0] for size in sizes):
            raise FaultError("regions have several image sizes", "use one image per task")
        width, height = sizes[0] if sizes else (None, None)
        return Image(image_name_of(value), regions, width, height, data)

    def _of_task(self, location: str, task: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the location and record of each result that counts."""
        key = "predictions" if self.scored else _list_key(task)
        hint = "expected an object; export with predictions, not their ids"
        given = required({"predictions": [], **task}, key, list, "expected a list")
        records = [*located_objects(f"{location}.{key}", given, hint)]
        valid = [pair for pair in records if not pair[1].get("was_cancelled")]
        for where, source in self._of_model(records) if self.scored else map(self._newest, [valid]):
            results = required(source, "result", list, "expected a list", where)
            hint = "expected an object with type and value"
            for at, result in located_objects(f"{where}.result", results, hint):
                kind = dict if result.get("type") in _REGIONS else dict | None
                required(result, "value", kind, hint, at)
                score = result.get("score")
                if self.scored and score is None and source.get("score") is not None:
                    score = source["score"]
                    self.counts["prediction-scores"] += 1
                yield at, {**result, "score": score}

    def _of_model(self, records: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Return the prediction of the model; none if there are several models."""
        models = [str(record.get("model_version") or "") for _, record in records]
        self._models |= dict.fromkeys(models)
        chosen = [n for n, model in enumerate(models) if self.model_version in (None, model)]
        if len(chosen) > len({models[number] for number in chosen}):
            raise FaultError(f"has {len(chosen)} predictions of one model", "keep one per task")
        return [records[number] for number in chosen] if len(chosen) == 1 else []

    def _shapes(
        self, regions: list[tuple[str, dict[str, Any]]]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the regions with a class; count other results."""
        labeled = [r.get("id") for _, r in regions if r.get("type") in _SHAPES and r.get("id")]
        for location, result in regions:
            kind, value = result.get("type"), result.get("value") or {}
            if kind in _REGIONS or value.keys() & {"x", "points", "rle"}:
                if kind in _SHAPES or result.get("id") not in labeled:
                    yield location, result
            else:
                self.counts["results-skipped"] += 1
                self.kinds[str(kind)] = None

    def item_of(self, record: Any) -> Item:
        """Return the object of a result."""
        kind, value = record.get("type"), record["value"]
        if kind not in _REGIONS:
            raise FaultError(f"type is {short_json(kind)}", "use rectanglelabels")
        labels = value.get(kind)
        if not isinstance(labels, list) or len(labels) != 1:
            raise FaultError(f"{kind} is {short_json(labels)}", "give each region one label")
        label = class_name({f"{kind}[0]": labels[0]}, f"{kind}[0]")
        if finite_number("image_rotation", record.get("image_rotation") or 0):
            raise FaultError("image_rotation is not 0", "rotate the image, and label it again")
        size = [*numbers(record, "original_width", "original_height")]
        return Item(label, self._box(kind, value, size), {"score": record.get("score")})

    def _box(self, kind: str, value: dict[str, Any], size: Sequence[float]) -> Box:
        """Return the box, or the points, in pixels of a region in percent."""
        if kind in ("brushlabels", "brush") or "rle" in value:
            raise FaultError("is a brush mask, which is not read", "export COCO, or draw boxes")
        if "points" in value:
            self.refuse_shape("polygon")
            return _scaled(points_of(value["points"]), size)
        if "radiusX" in value:
            self.refuse_shape("ellipse")
            x, y, across, down = numbers(value, "x", "y", "radiusX", "radiusY")
            if across < 0 or down < 0:
                raise FaultError("a radius is negative", "correct the ellipse")
        else:
            x, y, across, down = positive_box(value)
        rotation = finite_number("rotation", value.get("rotation", 0))
        (x, y), (across, down) = _scaled([[x, y], [across, down]], size)
        if "radiusX" in value:
            return rotated_ellipse(x, y, 2 * across, 2 * down, rotation)
        measures = x, y, across, down
        return self.rotated([*measures], measures, rotation, about=0)


class LabelStudio(DocumentFormat):
    """Label Studio's JSON or JSON-MIN; detections are predictions."""

    document = Tasks
    boxes = ()
    coordinates = "x, y, width, height"

    def fits(self, path: str) -> bool:
        """Return True if a file is a list of tasks, JSON-MIN, or Label Studio's CSV."""
        if _is_csv(head(path)):
            return True
        paths = json_paths(path)
        # The data of a task may come after more results than the head of a file holds.
        lists = [f"[].{key}[]" for key in (*_LISTS, "predictions")]
        tasks = any(
            ("[].data" in paths and name in paths) or f"{name}.result[]" in paths for name in lists
        )
        return tasks or {"[].annotation_id", "[].lead_time"} <= paths

    def image_files(self, ground_truth: GroundTruth) -> tuple[list[ImageFolder], Mapping[str, str]]:
        """Return the folders that may have the images, and their files as Label Studio names them.

        URLs are not opened; local files are searched for relative to the JSON.
        """
        folders = nearby_folders(ground_truth, ("images", "."))
        return folders, {
            str(stem): file_name_of(_image_value(data))
            for reader in Tasks.images_again(ground_truth)
            for stem, data in reader.attributes.items()
        }

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield ``tasks.json`` to import, and the labeling configuration ``config.xml``."""
        # A task has the ground truth as annotation and the detections as prediction.
        check_words(content, content.classes, "class")
        sizes = known_sizes(content)
        records: list[dict[str, Any]] = [
            {"data": {"image": content.file_name(name)}} for name in content.images
        ]
        for table in (content.ground_truth, content.detections):
            notes += self.lost(table) if isinstance(table, GroundTruth) else ()
            if table is not None:
                _add_results(records, table, sizes, notes)
        yield "tasks.json", json_list(records)
        yield "config.xml", _config(content.classes)


# --- writing


def _add_results(
    tasks: list[dict[str, Any]],
    table: GroundTruth | Detections,
    sizes: Floats,
    notes: list[Note],
) -> None:
    """Add the annotation or prediction of each image to its task."""
    is_scored = isinstance(table, Detections)
    kind, key = ("detections", "predictions") if is_scored else ("objects", "annotations")
    boxes = to_xywh(table.corners, table.box_area)[0]
    side = np.tile(sizes[table.image], 2)
    percent = _percent(boxes, side)
    notes += rounded_corners(table, percent * side / 100, "percent")
    negative = np.any(boxes[:, 2:] < 0, axis=1)
    notes += lost(f"{kind} of negative size; readers reject them", negative)
    scores = scores_of(table)
    values, label, image = percent.tolist(), table.label.tolist(), table.image.tolist()

    def region(row: int) -> dict[str, Any]:
        width, height = map(exact_number, sizes[image[row]].tolist())
        labels = {"rotation": 0, "rectanglelabels": [table.classes[label[row]]]}
        return {
            "id": f"{kind[0]}{row}",
            "type": "rectanglelabels",
            "from_name": "label",
            "to_name": "image",
            "original_width": width,
            "original_height": height,
            "image_rotation": 0,
            "value": {**exact_xywh(values[row]), **labels},
            **({} if scores is None else {"score": exact_number(scores[row])}),
        }

    model = {"model_version": "detap"} if is_scored else {}
    for task, rows in zip(tasks, rows_of_images(table), strict=True):
        task[key] = [{**model, "result": [*map(region, rows.tolist())]}]


def _percent(values: Floats, side: Floats) -> Floats:
    """Return values in percent of a side that read as the same bits, if there are any."""
    percent = values * 100 / side
    result = percent.copy()
    missing = np.ones(values.shape, np.bool_)
    for step in _STEPS:
        tried = percent + step * np.spacing(np.abs(percent))
        exact = missing & (tried * side / 100 == values)
        result[exact] = tried[exact]
        missing &= ~exact
    return result


def _config(classes: tuple[str, ...]) -> bytes:
    from xml.sax.saxutils import quoteattr  # takes 0.02 s

    labels = "".join(f"    <Label value={quoteattr(name)}/>\n" for name in classes)
    return (
        '<View>\n  <Image name="image" value="$image"/>\n'
        f'  <RectangleLabels name="label" toName="image">\n{labels}  </RectangleLabels>\n</View>\n'
    ).encode()


# --- tasks


def _valid(annotations: list[Any]) -> list[Any]:
    """Return the annotations that are not cancelled."""
    return [a for a in annotations if not (isinstance(a, dict) and a.get("was_cancelled"))]


def _is_annotated(task: Any) -> bool:
    annotations = task.get(_list_key(task)) if isinstance(task, dict) else None
    return isinstance(annotations, list) and bool(_valid(annotations))


def _list_key(task: Mapping[str, Any]) -> str:
    return next((key for key in _LISTS if key in task), _LISTS[0])


def _of_record(location: str, record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the location and record of each region of JSON-MIN, as in JSON."""
    for key, regions in record.items():
        is_list = isinstance(regions, list) and any(isinstance(r, dict) for r in regions)
        for where, region in located_objects(f"{location}.{key}", regions if is_list else ()):
            kind = next((name for name in _SHAPES if name in region), None)
            yield where, {**region, "type": kind, "value": region}


def _image_value(data: Mapping[str, Any]) -> str:
    """Return the URL or path of the image in the data of a task."""
    value = data.get("image")
    if isinstance(value, str) and value.strip():
        return value
    if value is not None:
        raise FaultError(f"image is {short_json(value)}", "write its URL or path")
    images = {
        key: text
        for key, text in data.items()
        if isinstance(text, str) and without_suffix(name := file_name_of(text)) != name
    }
    if len(images) != 1:
        names = join_names(images) if images else "none"
        raise FaultError(f"keys with an image: {names}", "expected one, such as data.image")
    return next(iter(images.values()))


def _time_of(record: dict[str, Any]) -> datetime:
    text = record.get("updated_at") or record.get("created_at")
    try:
        time = datetime.fromisoformat(text or "")
    except (ValueError, TypeError):
        message = f"updated_at is {short_json(text)}; several annotations need it"
        raise FaultError(message, "write the time of each, such as 2026-01-01T00:00:00Z") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


# --- regions: boxes, polygons and ellipses in percent of the image


def file_name_of(value: str) -> str:
    """Return the file of an image's value: a URL, an upload or a local path."""
    path = value.removeprefix(_LOCAL)
    if path == value and ("://" in value or value.startswith("/data/")):
        path = unquote(value.partition("?")[0])
    return path.replace("\\", "/").rpartition("/")[2]


def image_name_of(value: str) -> str:
    """Return the file name of an image without the digits that an upload puts before it."""
    return _UPLOADED.sub("", file_name_of(value))


def _is_csv(data: bytes) -> bool:
    """Return True for Label Studio's CSV, by its columns."""
    first = data.removeprefix(BYTE_ORDER_MARK).lstrip().split(b"\n", 1)[0]
    return first[:1] not in (b"[", b"{") and b"annotation_id" in first and b"lead_time" in first


def _scaled(points: list[list[float]], size: Sequence[float]) -> list[list[float]]:
    """Convert points from percent to pixels."""
    return [[x * size[0] / 100, y * size[1] / 100] for x, y in points]
