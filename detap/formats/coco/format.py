"""The COCO format."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from detap.errors import InputError, Note
from detap.formats.base import Format
from detap.formats.coco import tables
from detap.formats.coco.records import Values
from detap.formats.coco.truth import image_values_of_file, listed_file_names
from detap.formats.coco.values import Record
from detap.formats.content import Content
from detap.formats.json._fields import Fields
from detap.formats.json.document import Document, Ids, JsonFile, RecordList
from detap.formats.options import DETECTIONS, GEOMETRIES
from detap.formats.reading.placeholder import empty_ground_truth
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.tables.detection import GroundTruth, Name

_IDS = ("image_id", "category_id")
_NAMES = {"class_names", "dt_class_names", "first_category_id"}


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the image and category ids in results; empty if parsing fails.

    This is lenient, because the reader then reports every problem of the file.
    """
    fields = Fields([(key, "key") for key in _IDS])
    listed: list[object] = []
    with JsonFile(path).opened(limits) as document:
        try:
            _read_ids(document, fields, listed)
        except InputError:
            fields, listed = Fields([(key, "key") for key in _IDS]), []
    images, classes = (set(Ids(fields, key).names) - {None} for key in _IDS)
    class_names = {
        identifier: name
        for record in listed
        if isinstance(record, dict)
        and (identifier := _name(record.get("id"))) is not None
        and isinstance(name := record.get("name"), str)
    }
    # Without ground truth, categories need no names.
    for name in _NAMES & options.keys():
        del options[name]
    return empty_ground_truth(images, classes, class_names)


def _read_ids(document: Document, fields: Fields, listed: list[object]) -> None:
    records = RecordList(document, "", fields, _ids_of)
    if document.peek() == "[":
        records.read()
    elif document.peek() == "{":
        for key in document.members():
            if key in ("annotations", "predictions") and document.peek() == "[":
                records.read()
            elif key == "categories" and document.peek() == "[":
                listed += document.value(key)
            else:
                document.skip(key)
    document.finish()


def _ids_of(record: Record) -> Values:
    return {key: _name(record.get(key)) for key in _IDS}


def _name(value: object) -> Name | None:
    """Return an id as an integer or text; None if it is invalid."""
    if isinstance(value, bool) or not isinstance(value, int | str | float):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value


class Coco(Format):
    """COCO JSON: ``instances.json`` and a list of results."""

    by_ids = True
    geometries = GEOMETRIES
    has_attributes = True

    read_truth_file = staticmethod(tables.read_ground_truth)
    read_detections_file = staticmethod(tables.read_detections)
    placeholder = staticmethod(placeholder_ground_truth)

    def source(self, path: str) -> JsonFile:
        """Return the file, whose progress can be shown."""
        return JsonFile(path)

    def begin_detections(self, source: JsonFile, reading: Mapping[str, Any]) -> None:
        """Begin to parse results in a thread: it takes as long as the ground truth and more."""
        given = self.reader_options(DETECTIONS, reading)
        names = ("boxes", "masks", "keypoints", "limits")
        source.begin(
            partial(tables.parse_results, **{name: given[name] for name in names if name in given})
        )

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the value of a key of the image records."""
        known = {str(image): image for image in ground_truth.images}
        return {
            known[str(image)]: value
            for source in ground_truth.files
            for image, value in image_values_of_file(source.path, name).items()
            if str(image) in known
        }

    def file_names(self, ground_truth: GroundTruth) -> dict[Name, str]:
        """Return the ``file_name`` of each image."""
        names: dict[Name, str] = {}
        for source in ground_truth.files:
            names |= listed_file_names(source.path)
        return names

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield ``instances.json`` and ``results.json``."""
        from detap.formats.coco import writer  # only to convert

        return writer.files(content, notes)
