"""The COCO format."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from detap.errors import InputError, Note
from detap.formats.base import Format
from detap.formats.coco import tables
from detap.formats.coco.columns import listed_names
from detap.formats.coco.results import ResultsFile
from detap.formats.coco.truth import image_values_of_file, listed_file_names
from detap.formats.content import Content
from detap.formats.json.document import JsonFile
from detap.formats.options import DETECTIONS, GEOMETRIES
from detap.formats.reading.placeholder import empty_ground_truth
from detap.io.limits import Limits
from detap.io.paths import Path
from detap.tables.detection import Detections, GroundTruth, Name

_NAMES = {"class_names", "dt_class_names", "first_category_id"}
_PARSED = {"boxes", "masks", "keypoints", "limits"}
"""Options of :func:`detap.formats.coco.tables.parse_results`."""


def placeholder_ground_truth(
    path: Path | JsonFile, options: dict[str, Any], limits: Limits
) -> GroundTruth:
    """Return the image and category ids in results; empty if parsing fails.

    This is lenient, because the reader then reports every problem of the file.
    """
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
    return partial(
        tables.parse_results, **{name: options[name] for name in _PARSED & options.keys()}
    )


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
        source.begin(_parser(self.reader_options(DETECTIONS, reading)))

    def read_detections(
        self, path: Any, ground_truth: GroundTruth | None, reading: Mapping[str, Any]
    ) -> Detections:
        """Read detections; without ground truth, they are parsed once for it and themselves."""
        if ground_truth is None and not isinstance(path, JsonFile):
            path = JsonFile(path)
        return super().read_detections(path, ground_truth, reading)

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
