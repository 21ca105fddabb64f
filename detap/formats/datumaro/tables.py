"""Read Datumaro's JSON."""

from typing import Any

from detap.formats.datumaro.items import Items
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.tables.detection import Detections, GroundTruth, Name


def read_ground_truth(
    path: Path,
    *,
    shapes: str = "reject",
    attribute_flags: str | None = None,
    attributes: tuple[str, ...] = (),
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of a Datumaro file.

    The name of an image is the ``id`` of its item.

    Parameters
    ----------
    path : str or path
    shapes : {"reject", "bbox"}
        Reject shapes other than boxes, or read their bounding boxes and those of rotated boxes,
        which protocols that compare boxes require.
    attribute_flags : str, optional
        Attributes that are flags: ``"difficult"``, ``"is_crowd"``, ``"hard=difficult"``.
    attributes : tuple of str
        Attributes to read, as `extra` columns of numbers or text.
    as_is : bool
        Accept boxes that look normalized, and any number of boxes of negative size.
    limits : Limits
        Limits on the input size.

    Returns
    -------
    GroundTruth
        Images and classes sorted by name, rows in the order of the file.

    Raises
    ------
    InputError
        If the input is invalid; lists every problem, up to the limit.
    """
    how: dict[str, Any] = {"attributes": attributes, "as_is": as_is}
    reader = Items(path, limits, shapes, attribute_flags, **how).read()
    return reader.ground_truth_of(reader.notes())


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    shapes: str = "reject",
    score_attribute: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections from a Datumaro file whose annotations have a score.

    Parameters
    ----------
    path, shapes, as_is, limits
        As in :func:`read_ground_truth`, with the same errors.
    ground_truth : GroundTruth
        The ground truth, for its images and classes.
    score_attribute : str, optional
        The attribute with the score, by default ``score`` or ``confidence``.
    """
    reader = _scored(path, limits, shapes, score=score_attribute, as_is=as_is)
    return reader.detections_of(ground_truth, reader.notes())


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in detections."""
    shapes, score = options.get("shapes", "reject"), options.get("score_attribute")
    return _scored(path, limits, shapes, score=score).placeholder()


def image_attribute(ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
    """Return an attribute of the items; files are read again."""
    return Items.image_attribute(ground_truth, name)


def file_names(ground_truth: GroundTruth) -> dict[Name, str]:
    """Return the path of each image that has one; files are read again."""
    return Items.images_again(ground_truth).paths


def _scored(path: Path, limits: Limits, shapes: str, **how: Any) -> "Items":
    return Items(path, limits, shapes, scored=True, **how).read()
