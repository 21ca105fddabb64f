"""Read the annotations of VIA 1 and 2: JSON, project or CSV.

Reference: VGG Image Annotator (VIA) 2.0.12, its export and import of annotations.
"""

from typing import Any

from detap.errors import UsageError
from detap.formats.via.regions import Regions
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.stream import refuse
from detap.tables.detection import Detections, GroundTruth, Name


def read_ground_truth(
    path: Path,
    *,
    shapes: str = "reject",
    class_attribute: str | None = None,
    attribute_flags: str | None = None,
    attributes: tuple[str, ...] = (),
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of a VIA file: annotations in JSON or CSV, or a project.

    The name of an image is its ``filename`` without the suffix. Image sizes are unknown.

    Parameters
    ----------
    path : str or path
    shapes : {"reject", "bbox"}
        Reject shapes other than rectangles, or read their bounding boxes.
    class_attribute : str, optional
        The attribute of regions with the class, required if they have several.
    attribute_flags : str, optional
        Attributes of regions that are flags: ``"difficult"``, ``"group=crowd"``.
    attributes : tuple of str
        Attributes of regions to read, as `extra` columns of numbers or text.
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
    reader = Regions(path, limits, shapes, attribute_flags, **how)
    reader.class_attribute = class_attribute or ""
    return reader.read().ground_truth_of()


def read_detections(
    path: Path, ground_truth: GroundTruth, *, limits: Limits = DEFAULT_LIMITS, **_: Any
) -> Detections:
    """Raise InputError: VIA has no scores."""
    refuse(str(path), "VIA files have no scores", "they are ground truth; use other detections")


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Raise UsageError: VIA has no detections."""
    raise UsageError("VIA files are ground truth, without scores; use --gt")


def image_attribute(ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
    """Return a file attribute of the images; files are read again."""
    return Regions.image_attribute(ground_truth, name)


def file_names(ground_truth: GroundTruth) -> dict[Name, str]:
    """Return the file of each image; files are read again."""
    return Regions.images_again(ground_truth).file_names
