"""COCO files: instances JSON as ground truth, results JSON as detections.

References: the data format of the COCO API (pycocotools ``coco.py``, ``loadRes``).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from detap.errors import InputError, Note, UsageError
from detap.formats.base import Format
from detap.formats.coco import id_mapping
from detap.formats.coco.assembly import Source, detection_table, refuse_same_file, truth_table
from detap.formats.coco.columns import SHAPE_OF_RESULTS, listed_names, only_texts
from detap.formats.coco.exports import as_exported
from detap.formats.coco.masks import masked_detections, masked_ground_truth
from detap.formats.coco.records import has_no_box
from detap.formats.coco.results import ResultsFile
from detap.formats.coco.truth import TruthFile, image_values_of_file
from detap.formats.content import Content
from detap.formats.json.document import JsonFile
from detap.formats.options import DETECTIONS, GEOMETRIES, KEYS
from detap.formats.read import reader_options
from detap.formats.reading.sniffing import head
from detap.formats.stem_matching import empty_ground_truth
from detap.formats.text.class_names import ClassNames
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, SourceFile, shown
from detap.tables.detection import Detections, GroundTruth, Name
from detap.tables.notes import POLYGONS_BOUNDED

_BOUNDED = "segmentations of the detections are replaced by their boxes"


def read_ground_truth(
    path: Path | JsonFile,
    *,
    class_names: Path | None = None,
    as_is: bool = False,
    shapes: str = "reject",
    limits: Limits = DEFAULT_LIMITS,
    **how: Any,
) -> GroundTruth:
    """Read an instances file; images and classes in ascending order of id, rows in file order.

    `how` are the options of :class:`TruthFile`. `shapes` are rejected or replaced by a ``"bbox"``
    if CVAT rotates them.
    """
    del class_names  # the file has class names
    source = path if isinstance(path, JsonFile) else JsonFile(path)
    truth = TruthFile(**how)
    with source.opened(limits) as document:
        truth.read(document)
    columns, notes = as_exported(truth.columns(), truth, path=source.path, shapes=shapes)
    file = SourceFile(source.path, columns.records, sha256=source.sha256)
    described = Source(file, limits, as_is, truth.location, truth.boxes)
    if columns.table.masks is not None:
        columns = columns._replace(table=masked_ground_truth(columns.table, described))
    table = truth_table(columns, described)
    return replace(table, notes=(*table.notes, *notes))


def read_detections(
    path: Path | JsonFile,
    ground_truth: GroundTruth,
    *,
    class_names: Path | None = None,
    dt_class_names: Path | None = None,
    first_category_id: int | str | None = None,
    as_is: bool = False,
    shapes: str = "reject",
    limits: Limits = DEFAULT_LIMITS,
    **how: Any,
) -> Detections:
    """Read a results file: a list of detections, or an object with one.

    An ``image_id`` may also be a file stem, as text or number. If the ground truth has class names
    instead of ids, names come from the results' own list of categories or from `dt_class_names` or
    `class_names`, of which the first has `first_category_id`, by default detected. A missing box is
    that of the mask or of the keypoints. With `shapes` ``"bbox"``, so is a `poly`. `how` are the
    options of :class:`ResultsFile`.
    """
    source = path if isinstance(path, JsonFile) else JsonFile(path)
    refuse_same_file(source.path, ground_truth, SHAPE_OF_RESULTS)
    listed = class_names if dt_class_names is None else dt_class_names
    by_name = goes_by_names(ground_truth, listed, first_category_id)
    file = shown(source.path)
    results: ResultsFile = source.parsed(partial(parse_results, limits=limits, **how))
    columns = results.columns(ground_truth, by_name=by_name)
    sources: tuple[SourceFile, ...] = ()
    notes: tuple[Note, ...] = ()
    if by_name:
        names = ClassNames.load(listed, limits)
        sources = names.source()
        default = None
        if not names.names and ground_truth.format == "yolo":
            names, default = id_mapping.names_in_order(ground_truth), 1
        first = None if first_category_id is None else int(first_category_id)
        listed_by_id = results.category_names
        mapping = id_mapping.CategoryMapping(file, listed_by_id, names, first, as_is, default)
        columns, notes = id_mapping.match_by_name(columns, ground_truth, mapping)
    elif results.category_names:
        columns, notes = id_mapping.match_by_listed_name(
            columns, ground_truth, results.category_names, file, any_names=limits.any_classes
        )
    source_file = SourceFile(source.path, len(columns), sha256=source.sha256)
    described = Source(source_file, limits, as_is, results.location, results.boxes)
    if columns.mask is not None:
        polygons = results.segmentations.listed if results.masks else None
        columns, mask_notes = masked_detections(columns, ground_truth, described, polygons)
        notes = (*mask_notes, *notes)
    table = detection_table(columns, ground_truth, described, results.category_names)
    if shapes == "bbox":
        table = replace(table, polygons=None)
    if results.only_shapes and not (results.masks or results.keypoints):
        message = f"boxes are those around the {results.only_shapes}, as results have no bbox"
        notes += (Note("boxes-of-shapes", message, len(table)),)
    if ground_truth.polygons is not None and results.has_segmentations:
        notes += (Note(POLYGONS_BOUNDED, _BOUNDED, len(table), severity="info"),)
    return replace(table, notes=(*table.notes, *notes), files=(*table.files, *sources))


def parse_results(source: JsonFile, *, limits: Limits = DEFAULT_LIMITS, **how: Any) -> ResultsFile:
    """Read a results file, as :class:`ResultsFile`, as far as that needs no ground truth."""
    results = ResultsFile(**how)
    with source.opened(limits) as document:
        results.read(document)
    return results


def goes_by_names(truth: GroundTruth, class_names: object, first: object) -> bool:
    """Return True if categories are matched by name; refuse a first id without names."""
    if first is not None and class_names is None and truth.format != "yolo":
        raise UsageError(
            "first_category_id (--first-category-id) requires class_names (--class-names)"
        )
    has_names = bool(truth.class_ids) and isinstance(truth.class_ids[0], str)
    return class_names is not None or has_names


# --- the format

_RECORDS = re.compile(r'\s*(?:\{.*?"(?:annotations|predictions)"\s*:\s*)?\[\s*', re.DOTALL)
_SEPARATOR = re.compile(r"\s*,\s*")
_SNIFFED = 1 << 18  # bytes


def _first_records(path: str) -> list[dict[str, Any]]:
    """Return the first records of results up to one with a box; none if they are not records."""
    text = head(path, _SNIFFED).decode("utf-8-sig", "replace")
    records: list[dict[str, Any]] = []
    separator = _RECORDS.match(text)
    with suppress(ValueError, RecursionError):
        while separator and (not records or has_no_box(records[-1])):
            record, end = json.JSONDecoder().raw_decode(text, separator.end())
            if not isinstance(record, dict):
                return []
            records.append(record)
            separator = _SEPARATOR.match(text, end)
    return records


_NAMES = {"class_names", "dt_class_names", "first_category_id"}
_PARSED = {"boxes", "masks", "keypoints", *KEYS, "limits"}
"""Options of :func:`parse_results`."""


def placeholder_ground_truth(
    path: Path | JsonFile, options: dict[str, Any], limits: Limits
) -> GroundTruth:
    """Return the image and category ids in results; empty if invalid, which the reader reports."""
    # Without ground truth, categories need no names.
    for name in _NAMES & options.keys():
        del options[name]
    source = path if isinstance(path, JsonFile) else JsonFile(path)
    try:
        results: ResultsFile = source.parsed(_parser(options | {"limits": limits}))
    except InputError:
        return empty_ground_truth((), ())
    ids = results.image_ids.names, results.category_ids.names
    return empty_ground_truth(*ids, listed_names(results.categories, "name"))


def _parser(options: Mapping[str, Any]) -> Callable[[JsonFile], ResultsFile]:
    return partial(parse_results, **{name: options[name] for name in _PARSED & options.keys()})


class Coco(Format):
    """COCO JSON: ``instances.json`` and a list of results."""

    by_ids = True
    geometries = (*GEOMETRIES, *KEYS)
    has_attributes = True

    read_truth_file = staticmethod(read_ground_truth)
    read_detections_file = staticmethod(read_detections)
    placeholder = staticmethod(placeholder_ground_truth)

    def source(self, path: str) -> JsonFile:
        """Return the file, whose progress can be shown."""
        return JsonFile(path)

    def shapes_of_results(self, path: str) -> tuple[str, bool]:
        """Return the geometry that the first records have, or "", and whether one has a box."""
        records = _first_records(path)
        has_boxes = not all(map(has_no_box, records))
        for name, key in (("masks", "segmentation"), ("keypoints", "keypoints")):
            if records and all(record.get(key) for record in records):
                return name, has_boxes
        return "", has_boxes

    def begin_detections(self, source: JsonFile, reading: Mapping[str, Any]) -> None:
        """Begin to parse results in a thread: it takes as long as the ground truth and more."""
        source.begin(_parser(reader_options(self, DETECTIONS, reading)))

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
        return only_texts(self.attribute_values(ground_truth, "file_name"))

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield ``instances.json`` and ``results.json``."""
        from detap.formats.coco import writer  # only to convert

        return writer.files(content, notes)
