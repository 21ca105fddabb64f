"""Parquet and Arrow metadata: names in detections, image attributes, file names."""

from collections.abc import Iterator
from typing import Any

from detap.errors import InputError, Problem
from detap.formats.arrow.files import check_installed, damage, opened
from detap.formats.reading.placeholder import empty_ground_truth
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path, shown
from detap.tables.columns import name_of
from detap.tables.detection import GroundTruth, Name


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the image and class names in detections."""
    from detap.formats.arrow.table import Table  # imports pyarrow

    rows = Table(path, True, options.get("boxes"), limits).rows
    classes = rows.codes[rows.shape.class_columns[0]]
    return empty_ground_truth(rows.image.number, classes.number)


def image_attribute(ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
    """Return the value of a column by image, from reading the files again.

    Raises
    ------
    InputError
        If rows of one image differ.
    """
    values: dict[Name, Any] = {}
    for source in ground_truth.files:
        for image, value in _values(source.path, name):
            if value is not None and values.setdefault(image, value) != value:
                message = f"image {image!r} has two values of {name}: {values[image]!r}, {value!r}"
                raise InputError(
                    Problem(shown(source.path), "", message, "use one value per image")
                )
    return values


def file_names(ground_truth: GroundTruth) -> dict[Name, str]:
    """Return the file_name by image, if there is such a column."""
    return image_attribute(ground_truth, "file_name")


def _values(path: str, name: str) -> Iterator[tuple[Name, Any]]:
    check_installed()
    with opened(path, DEFAULT_LIMITS) as container, damage(path):
        if name not in container.schema.names:
            return
        for batch in container.batches(tuple(dict.fromkeys(("image_id", name)))):
            images = map(name_of, batch.column("image_id").to_pylist())
            values = batch.column(name).to_pylist()
            yield from ((i, v) for i, v in zip(images, values, strict=True) if i is not None)
