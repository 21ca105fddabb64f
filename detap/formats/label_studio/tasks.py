"""Read the tasks of one Label Studio file: the regions of each image."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from detap.errors import Note
from detap.formats.label_studio.regions import (
    SHAPES,
    box_of,
    file_name_of,
    image_name_of,
    is_region,
    label_of,
)
from detap.formats.shapes.documents import DocumentReader, Image, Item
from detap.formats.shapes.json_values import finite_number, object_of, required
from detap.formats.stem_matching import without_suffix
from detap.io.json_text import short_json
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import FaultError
from detap.text_input import join_names

_LISTS = ("annotations", "completions")
"""Keys of the annotations of a task; the second before version 1.0."""
_CSV = (b"annotation_id", b"lead_time")
_IMAGE = "image"
_LARGEST = 1e9


class Tasks(DocumentReader):
    """Reader of a Label Studio file.

    Parameters
    ----------
    model_version : str, optional
        The model whose predictions are read.
    known : set of str, optional
        File names of known images, without suffix. Predictions of other images are skipped if
        their task has no annotation, but tasks of the file have.

    Attributes
    ----------
    values : dict of str to str
        The image as tasks name it: a URL or path.
    models : dict of str to None
        The models of predictions.
    """

    box_format = "xywh"
    expected = "expected Label Studio's JSON or JSON-MIN, a list of tasks with data and annotations"

    def __init__(
        self,
        path: Path,
        limits: Limits = DEFAULT_LIMITS,
        shapes: str = "reject",
        *,
        model_version: str | None = None,
        known: Collection[str] | None = None,
        **how: Any,
    ) -> None:
        super().__init__(path, limits, shapes, score="score", **how)
        self.model_version = model_version
        self.known = known
        self.values: dict[str, str] = {}
        self.models: dict[str, None] = {}
        self._predictions = 0
        self._counts: Counter[str] = Counter()
        self._other: dict[str, None] = {}

    def parse(self, data: bytes, file: str) -> tuple[Any, int] | None:
        """Return the content of a file; None after collecting a problem."""
        first = data.lstrip(b"\xef\xbb\xbf").split(b"\n", 1)[0]
        if all(name in first for name in _CSV) and not first.lstrip().startswith((b"[", b"{")):
            self.problems.add(file, "", "is Label Studio's CSV, which is not read", "export JSON")
            return None
        return super().parse(data, file)

    def images_of(self, content: Any) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each annotated image."""
        if not isinstance(content, list):
            raise FaultError(f"is {short_json(content)}", self.expected)
        if not content:
            raise FaultError("has no tasks", "export tasks with annotations")
        is_full = any(isinstance(record, dict) and "data" in record for record in content)
        if self.scored and not is_full:
            raise FaultError("is JSON-MIN, which has no predictions", "export JSON")
        tasks = enumerate(content) if is_full else self._newest_records(content)
        is_project = self.scored and any(map(_is_annotated, content))
        for number, task in tasks:
            if not (self._is_unknown(task) if is_project else self._is_skipped(task)):
                yield f"[{number}]", task
        if self.scored and not self._predictions and not self.problems.count:
            raise FaultError("has no predictions", "import predictions, and export them with tasks")

    def _newest_records(self, content: list[Any]) -> Iterator[tuple[int, Any]]:
        """Yield the newest record of each task of JSON-MIN, which has one per annotation."""
        by_task: dict[str, list[int]] = {}
        for number, record in enumerate(content):
            is_task = isinstance(record, dict) and record.get("id") is not None
            key = short_json(record["id"]) if is_task else f"[{number}]"
            by_task.setdefault(key, []).append(number)
        for numbers in by_task.values():
            records = [content[number] for number in numbers]
            yield numbers[self._newest(records)], records[self._newest(records)]
            self._counts["annotators"] += len(numbers) > 1

    def _newest(self, records: list[Any]) -> int:
        """Return the index of the newest annotation; of equally new ones, the last."""
        if len(records) == 1:
            return 0
        times = [(_time_of(record), number) for number, record in enumerate(records)]
        return max(times)[1]

    def _is_skipped(self, task: Any) -> bool:
        """Return True for a task that has no annotation, or only cancelled ones."""
        if self.scored or not isinstance(task, dict) or "data" not in task:
            return False
        annotations = task.get(_list_key(task), [])
        if not isinstance(annotations, list):
            return False
        valid = _valid(annotations)
        self._counts["cancelled"] += len(annotations) - len(valid)
        self._counts["unannotated"] += not annotations
        return not valid

    def _is_unknown(self, task: Any) -> bool:
        """Return True for a task without annotation whose image is not in the ground truth."""
        if self.known is None or not isinstance(task, dict) or _is_annotated(task):
            return False
        try:
            value = _image_value(required(task, "data", dict, "expected an object"))
        except FaultError:
            return False
        is_unknown = without_suffix(image_name_of(value)) not in self.known
        self._counts["unannotated"] += is_unknown
        return is_unknown

    def image_of(self, location: str, record: Any) -> Image:
        """Return the image of a task."""
        task = object_of(record)
        is_full = "data" in task or self.scored
        data = required(task, "data", dict, "expected an object") if is_full else task
        value = _image_value(data)
        regions = [*(self._of_task(location, task) if is_full else _of_record(location, task))]
        name = image_name_of(value)
        self.values[without_suffix(name)] = value
        regions = [*self._shapes(regions)]
        sizes = [(r.get("original_width"), r.get("original_height")) for _, r in regions]
        if any(size != sizes[0] for size in sizes):
            raise FaultError("regions have several image sizes", "use one image per task")
        width, height = sizes[0] if sizes else (None, None)
        return Image(name, regions, width, height, data)

    def _of_task(self, location: str, task: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the location and record of each result that counts."""
        key = "predictions" if self.scored else _list_key(task)
        candidates = task.get(key, [] if self.scored else None)
        if not isinstance(candidates, list):
            raise FaultError(f"{key} is {short_json(candidates)}", "expected a list")
        number, source = self._chosen(key, candidates)
        if source is None:
            return
        results = source.get("result")
        if not isinstance(results, list):
            message = f"{key}[{number}].result is {short_json(results)}"
            raise FaultError(message, "expected a list")
        for index, result in enumerate(results):
            where = f"{location}.{key}[{number}].result[{index}]"
            if not isinstance(result, dict) or not _has_value(result):
                message = f"{key}[{number}].result[{index}] is {short_json(result)}"
                raise FaultError(message, "expected an object with type and value")
            score = result.get("score")
            if self.scored and score is None and source.get("score") is not None:
                score = source["score"]
                self._counts["scores"] += 1
            yield where, {**result, "score": score}

    def _chosen(self, key: str, candidates: list[Any]) -> tuple[int, dict[str, Any] | None]:
        """Return the index and record of the annotation or prediction that counts."""
        records: dict[int, dict[str, Any]] = {}
        for number, record in enumerate(candidates):
            if not isinstance(record, dict):
                hint = "expected an object; export with predictions, not their ids"
                raise FaultError(f"{key}[{number}] is {short_json(record)}", hint)
            if self.scored or not record.get("was_cancelled"):
                records[number] = record
        if self.scored:
            return self._prediction(records)
        if not records:
            return 0, None
        self._counts["annotators"] += len(records) > 1
        return [*records.items()][self._newest([*records.values()])]

    def _prediction(self, records: dict[int, dict[str, Any]]) -> tuple[int, dict[str, Any] | None]:
        """Return the index and record of the model's prediction.

        With several models and none chosen, the reader is not used.
        """
        self._predictions += len(records)
        models = {
            number: str(record.get("model_version") or "") for number, record in records.items()
        }
        self.models |= dict.fromkeys(models.values())
        chosen = [number for number in records if self.model_version in (None, models[number])]
        names = {models[number] for number in chosen}
        if len(chosen) > len(names):
            raise FaultError(f"has {len(chosen)} predictions of one model", "keep one per task")
        return (chosen[0], records[chosen[0]]) if len(chosen) == 1 else (0, None)

    def _shapes(
        self, regions: list[tuple[str, dict[str, Any]]]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the regions with a class; count other results."""
        labeled = [r.get("id") for _, r in regions if r.get("type") in SHAPES and r.get("id")]
        for location, result in regions:
            kind, value = result.get("type"), result.get("value") or {}
            if is_region(kind) or value.keys() & {"x", "points", "rle"}:
                if kind in SHAPES or result.get("id") not in labeled:
                    yield location, result
            else:
                self._counts["other"] += 1
                self._other.setdefault(str(kind))

    def item_of(self, record: Any) -> Item:
        """Return the object of a result."""
        kind, value = record.get("type"), record["value"]
        if not is_region(kind):
            raise FaultError(f"type is {short_json(kind)}", "use rectanglelabels")
        label = label_of(kind, value)
        if finite_number("image_rotation", record.get("image_rotation") or 0):
            raise FaultError("image_rotation is not 0", "rotate the image, and label it again")
        width, height = (
            finite_number(key, record.get(key)) for key in ("original_width", "original_height")
        )
        if not (0 < width < _LARGEST and 0 < height < _LARGEST):
            raise FaultError(f"image size is {width:g}x{height:g}", "write pixels")
        box, corners = box_of(kind, value, (width, height), self.shapes)
        return Item(label, box, {"score": record.get("score")}, corners)

    def notes(self) -> tuple[Note, ...]:
        """Return notes about the tasks."""
        counts = self._counts
        others = f"results skipped: not regions ({join_names(self._other)})"
        return (
            Note(
                "several-annotators",
                "tasks annotated more than once; the newest annotation counts",
                counts["annotators"],
            ),
            Note(
                "tasks-not-annotated",
                "tasks without annotations skipped",
                counts["unannotated"],
                severity="info",
            ),
            Note(
                "annotations-cancelled",
                "cancelled annotations skipped",
                counts["cancelled"],
                severity="info",
            ),
            Note("results-skipped", others, counts["other"], severity="info"),
            Note(
                "prediction-scores",
                "results without a score have that of their prediction",
                counts["scores"],
                severity="info",
            ),
        )


def _has_value(result: dict[str, Any]) -> bool:
    """Return True unless the value of a result is missing or not an object."""
    value = result.get("value")
    return isinstance(value, dict) or (value is None and not is_region(result.get("type")))


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
        if not isinstance(regions, list) or not any(isinstance(r, dict) for r in regions):
            continue
        for number, region in enumerate(regions):
            if not isinstance(region, dict):
                raise FaultError(f"{key}[{number}] is {short_json(region)}", "expected an object")
            kind = next((name for name in SHAPES if name in region), None)
            yield f"{location}.{key}[{number}]", {**region, "type": kind, "value": region}


def _image_value(data: Mapping[str, Any]) -> str:
    """Return the URL or path of the image in the data of a task."""
    value = data.get(_IMAGE)
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


def _time_of(record: Any) -> datetime:
    text = None
    if isinstance(record, dict):
        text = record.get("updated_at") or record.get("created_at")
    try:
        time = datetime.fromisoformat(text or "")
    except (ValueError, TypeError):
        message = f"updated_at is {short_json(text)}; several annotations need it"
        raise FaultError(message, "write the time of each, such as 2026-01-01T00:00:00Z") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
