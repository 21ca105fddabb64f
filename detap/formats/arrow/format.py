"""The format of Parquet and Arrow files."""

from collections.abc import Mapping
from typing import Any

from detap.formats.arrow import metadata, prefetch
from detap.formats.arrow.files import check_installed
from detap.formats.base import Format
from detap.formats.options import TRUTH
from detap.tables.detection import Detections, GroundTruth, Name


class Arrow(Format):
    """Columns with the keys of COCO records."""

    by_ids = True

    placeholder = staticmethod(metadata.placeholder_ground_truth)

    def read_truth_file(self, path: Any, **options: Any) -> GroundTruth:
        """Read ground truth."""
        check_installed()
        from detap.formats.arrow import tables  # imports pyarrow

        return tables.read_ground_truth(path, **options)

    def read_detections_file(self, path: Any, truth: GroundTruth, **options: Any) -> Detections:
        """Read detections."""
        check_installed()
        from detap.formats.arrow import tables  # imports pyarrow

        return tables.read_detections(path, truth, **options)

    def begin(self, role: str, path: str, reading: Mapping[str, Any]) -> Any:
        """Start to read the file in a thread."""
        begin = prefetch.ground_truth if role == TRUTH else prefetch.detections
        return begin(path, **self.reader_options(role, reading))

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the value of a column by image."""
        return metadata.image_attribute(ground_truth, name)

    def file_names(self, ground_truth: GroundTruth) -> dict[Name, str]:
        """Return the ``file_name`` of each image, if there is such a column."""
        return metadata.file_names(ground_truth)
