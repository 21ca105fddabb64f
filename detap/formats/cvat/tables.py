"""CVAT for images 1.1 to tables."""

import os

from detap.errors import Note
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.by_name.objects import detections
from detap.formats.cvat.xml import Annotations
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.tables.detection import Detections, GroundTruth, SourceFile

EXPORTED = "annotations.xml"
"""What CVAT calls its file in the archive, beside a folder of images."""


def read_ground_truth(
    path: Path,
    *,
    shapes: str = "reject",
    attribute_flags: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of an export of CVAT for images 1.1.

    An image is called by its file's name without the suffix, the folders that stand before it
    being part of the name. One without shapes has no objects.

    Parameters
    ----------
    path : str or path
        The XML, or the folder that holds it as ``annotations.xml``.
    shapes : {"reject", "bbox"}
        Whether a shape that is no box is an error, or its bounds are its box. A rotated box is
        always an error.
    attribute_flags : str, optional
        Attributes that are flags: ``"difficult"``, ``"iscrowd"``, ``"hard=difficult,group=crowd"``.
    as_is : bool
        Whether boxes that end before they begin count however many there are.
    limits : Limits
        What is accepted at most.

    Returns
    -------
    GroundTruth
        Images and classes sorted by name, rows in the order of the file.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    """
    read = _read(path, shapes, attribute_flags, limits, scored=False, as_is=as_is)
    what = f"boxes in its {len(read.images)} images"
    return read.ground_truth(what, _source(read), (_tagged(read),))


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    shapes: str = "reject",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections that were written as CVAT's annotations are, with scores.

    CVAT's own exports have none. Tools that hand detections to it write them as an attribute
    ``score`` or ``confidence``, of the shape's element or as an element in it.

    Parameters
    ----------
    path, shapes, as_is, limits
        As :func:`read_ground_truth` has them.
    ground_truth : GroundTruth
        What they are about: its images and classes.

    Returns
    -------
    Detections
        Numbered as `ground_truth`; classes that it lacks are behind its own, sorted by name.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    """
    read = _read(path, shapes, None, limits, scored=True, as_is=as_is)
    found = read.objects()
    files = tuple(str(name).rpartition("/")[2] for name in found.images)
    if len(set(files)) == len(files) and not any("/" in str(name) for name in ground_truth.images):
        found = found._replace(images=files)  # where the ground truth goes by no folders
    return detections(found, ground_truth, read, _source(read), nonzero_notes(_tagged(read)))


def _read(path: Path, shapes: str, flags: str | None, limits: Limits, **how: bool) -> Annotations:
    read = Annotations(exported(os.fspath(path)), limits, shapes, flags, **how).read()
    read.problems.raise_any()
    return read


def exported(path: str) -> str:
    """Return the XML that a path means: itself, or the one of a folder."""
    if "\0" not in path and os.path.isdir(path):
        return os.path.join(path, EXPORTED)
    return path


def _source(read: Annotations) -> tuple[SourceFile, ...]:
    return (SourceFile(read.given, len(read), sha256=read.sha256),)


def _tagged(read: Annotations) -> Note:
    return Note("tags-skipped", "images are tagged as a whole: no box", read.tags, severity="info")
