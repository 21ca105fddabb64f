"""The format of Parquet and Arrow files."""

from typing import Any

from detap.errors import UsageError
from detap.formats.base import Format
from detap.formats.stem_matching import empty_ground_truth
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.stream import refuse
from detap.tables.columns import name_of
from detap.tables.detection import Detections, GroundTruth, Name


def check_installed() -> None:
    """Raise UsageError if pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        message = "Parquet and Arrow files require pyarrow: pip install 'detap[arrow]'"
        raise UsageError(message) from None


class Arrow(Format):
    """Columns with the keys of COCO records."""

    by_ids = True

    def read_truth_file(self, path: Path, **options: Any) -> GroundTruth:
        """Read ground truth."""
        truth: GroundTruth = _tables().read_ground_truth(path, **options)
        return truth

    def read_detections_file(self, path: Path, truth: GroundTruth, **options: Any) -> Detections:
        """Read detections."""
        detections: Detections = _tables().read_detections(path, truth, **options)
        return detections

    def placeholder(self, path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
        """Return the image and class names in detections."""
        table = _tables().Table(path, True, options.get("boxes"), limits)
        classes = table.codes[table.shape.class_columns[0]]
        return empty_ground_truth(table.images.number, classes.number)

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the value of a column by image; raise InputError if rows of one image differ."""
        files, values = _tables().files, dict[Name, Any]()
        for path in (source.path for source in ground_truth.files):
            with files.opened(path, DEFAULT_LIMITS) as container, files.damage(path):
                if name not in container.schema.names:
                    continue
                table = container.read((*dict.fromkeys(("image_id", name)),))
                images = map(name_of, table["image_id"].to_pylist())
                for image, value in zip(images, table[name].to_pylist(), strict=True):
                    if image is None or value is None:
                        continue
                    if values.setdefault(image, value) != value:
                        one = f"{values[image]!r}, {value!r}"
                        message = f"image {image!r} has two values of {name}: {one}"
                        refuse(path, message, "use one value per image")
        return values

    def file_names(self, ground_truth: GroundTruth) -> dict[Name, str]:
        """Return the ``file_name`` of each image, if there is such a column."""
        return self.attribute_values(ground_truth, "file_name")


def _tables() -> Any:
    check_installed()
    from detap.formats.arrow import tables  # imports pyarrow

    return tables
