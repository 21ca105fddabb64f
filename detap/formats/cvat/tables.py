"""Read CVAT for images 1.1."""

import os
from typing import Any

from detap.errors import Note
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.by_name.objects import detections
from detap.formats.cvat.xml import Annotations
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.tables.detection import Detections, GroundTruth, SourceFile

EXPORTED = "annotations.xml"
"""The file name in CVAT's archives."""


def read_ground_truth(
    path: Path,
    *,
    shapes: str = "reject",
    attribute_flags: str | None = None,
    attributes: tuple[str, ...] = (),
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of an export of CVAT for images 1.1.

    The name of an image is its file name with folders and without the suffix.

    Parameters
    ----------
    path : str or path
        The XML, or the folder with ``annotations.xml``.
    shapes : {"reject", "bbox"}
        Reject shapes other than boxes, or read their bounding boxes and those of rotated boxes,
        which protocols that compare boxes require.
    attribute_flags : str, optional
        Attributes that are flags: ``"difficult"``, ``"iscrowd"``, ``"hard=difficult,group=crowd"``.
    attributes : tuple of str
        Attributes to read, as `extra` columns of numbers or text.
    as_is : bool
        Accept any number of boxes of negative size.
    limits : Limits
        Limits on the input size.

    Returns
    -------
    GroundTruth
        Images and classes sorted by name, rows in the order of the file.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    """
    reader = _read(
        path, shapes, attribute_flags, limits, scored=False, as_is=as_is, attributes=attributes
    )
    missing = f"boxes in its {len(reader.images)} images"
    return reader.ground_truth(missing, _source(reader), (_tagged(reader),))


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    shapes: str = "reject",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections in CVAT's annotation format with scores.

    CVAT exports no scores. Other tools write them as ``score`` or ``confidence``, an XML attribute
    or an ``attribute`` element of the shape.

    Parameters
    ----------
    path, shapes, as_is, limits
        As in :func:`read_ground_truth`.
    ground_truth : GroundTruth
        The ground truth, for its images and classes.

    Returns
    -------
    Detections
        Numbered as `ground_truth`; classes that it lacks follow, sorted by name.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    """
    reader = _read(path, shapes, None, limits, scored=True, as_is=as_is)
    objects = reader.objects()
    files = tuple(str(name).rpartition("/")[2] for name in objects.images)
    if len(set(files)) == len(files) and not any("/" in str(name) for name in ground_truth.images):
        objects = objects._replace(images=files)  # the ground truth has no folders in names
    return detections(
        objects, ground_truth, reader, _source(reader), nonzero_notes(_tagged(reader))
    )


def _read(path: Path, shapes: str, flags: str | None, limits: Limits, **how: Any) -> Annotations:
    reader = Annotations(exported(os.fspath(path)), limits, shapes, flags, **how).read()
    reader.problems.raise_any()
    return reader


def exported(path: str) -> str:
    """Return the path of the XML: the path itself, or a file in the folder."""
    if "\0" not in path and os.path.isdir(path):
        return os.path.join(path, EXPORTED)
    return path


def _source(reader: Annotations) -> tuple[SourceFile, ...]:
    return (SourceFile(reader.given, len(reader), sha256=reader.sha256),)


def _tagged(reader: Annotations) -> Note:
    return Note(
        "tags-skipped", "tags of whole images skipped: not boxes", reader.tags, severity="info"
    )
