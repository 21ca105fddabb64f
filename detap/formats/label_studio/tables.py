"""Read Label Studio's JSON.

References: Label Studio's documentation, "Export annotations" and "Image annotation formats";
label-studio-sdk 2.1, ``converter``.
"""

from collections.abc import Mapping
from typing import Any

from detap.errors import InputError, Problem
from detap.formats.image_folders import ImageFolder, nearby_folders
from detap.formats.label_studio.regions import file_name_of
from detap.formats.label_studio.tasks import Tasks
from detap.formats.stem_matching import base_name
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.tables.detection import Detections, GroundTruth, Name
from detap.text_input import join_names


def read_ground_truth(
    path: Path,
    *,
    shapes: str = "reject",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the annotations of Label Studio's JSON or JSON-MIN.

    The name of an image is its file name without the suffix and the eight hexadecimal digits that
    an upload puts before it. Of several annotations of a task, the newest counts. Tasks without
    annotations, and those whose annotations are all cancelled, are not images.

    Parameters
    ----------
    path : str or path
    shapes : {"reject", "bbox"}
        Reject polygons and ellipses, or read their bounding boxes and those of rotated boxes, which
        protocols that compare boxes require.
    as_is : bool
        Accept input that fails a plausibility check.
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
    reader = Tasks(path, limits, shapes, as_is=as_is).read()
    return reader.ground_truth_of(reader.notes())


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    shapes: str = "reject",
    model_version: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read the predictions of Label Studio's JSON.

    The score is that of the result, or else that of its prediction. In a file with annotations,
    predictions are skipped if their task has none and the image is not in the ground truth.

    Parameters
    ----------
    path, shapes, as_is, limits
        As in :func:`read_ground_truth`, with the same errors.
    ground_truth : GroundTruth
        The ground truth, for its images and classes.
    model_version : str, optional
        The model to read; required if there are several.
    """
    known = {base_name(str(name)) for name in ground_truth.images}
    reader = _predictions(path, shapes, model_version, limits, as_is=as_is, known=known)
    return reader.detections_of(ground_truth, reader.notes())


def _predictions(
    path: Path, shapes: str, model_version: str | None, limits: Limits, **how: Any
) -> Tasks:
    reader = Tasks(path, limits, shapes, scored=True, model_version=model_version, **how).read()
    if model_version is None and len(reader.models) > 1:
        message = f"predictions of several models: {join_names(reader.models)}"
        raise InputError(Problem(reader.path, "", message, "choose one with --model-version"))
    return reader


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in predictions."""
    shapes, version = options.get("shapes", "reject"), options.get("model_version")
    return _predictions(path, shapes, version, limits).placeholder()


def file_names(ground_truth: GroundTruth) -> dict[Name, str]:
    """Return the file of each image; files are read again."""
    return {**Tasks.images_again(ground_truth).file_names}


def image_attribute(ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
    """Return a key under ``data`` of each task; files are read again."""
    return Tasks.image_attribute(ground_truth, name)


def image_files(ground_truth: GroundTruth) -> tuple[list[ImageFolder], Mapping[str, str]]:
    """Return the folders that may have the images, and the file of each as Label Studio names it.

    URLs are not opened; local files are searched for relative to the JSON.
    """
    folders = nearby_folders(ground_truth, ("images", "."))
    values = Tasks.images_again(ground_truth).values
    return folders, {stem: file_name_of(value) for stem, value in values.items()}
