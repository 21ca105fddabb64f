"""Read Supervisely's projects.

Reference: Supervisely's documentation, "Annotation JSON format" and "Project structure".
"""

import os
from collections import Counter
from typing import Any

from detap.errors import Note
from detap.formats.by_name.notes import files_skipped
from detap.formats.by_name.problems import Problems
from detap.formats.shapes.json_values import class_name, json_value, object_of
from detap.formats.stem_matching import without_suffix
from detap.formats.supervisely.annotations import Annotations
from detap.formats.supervisely.sniff import FOLDER, META
from detap.formats.text.folder import Folder, files_of, one_file
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path
from detap.io.problems import FaultError
from detap.io.stream import read_bytes, refuse
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
    """Read the ground truth of a Supervisely project.

    The name of an image is that of its JSON without suffixes, with the folder of its data set if
    two data sets have the same name. Tags of objects are attributes.

    Parameters
    ----------
    path : str or path
        The project, a data set, its folder ``ann``, or one file.
    shapes : {"reject", "bbox"}
        Reject polygons, lines and points, or read their bounding boxes.
    attribute_flags : str, optional
        Tags that are flags: ``"difficult"``, ``"group=crowd"``.
    attributes : tuple of str
        Tags to read, as `extra` columns of numbers or text.
    as_is : bool
        Accept boxes that look normalized.
    limits : Limits
        Limits on the input size.

    Returns
    -------
    GroundTruth
        Images and classes sorted by name, rows in the order of files.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    """
    reader, notes = _read(path, limits, shapes, attribute_flags, attributes=attributes, as_is=as_is)
    return reader.ground_truth_of(notes)


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    shapes: str = "reject",
    score_attribute: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections from a Supervisely project whose objects have a tag with their score.

    Parameters
    ----------
    path, shapes, as_is, limits
        As in :func:`read_ground_truth`, with the same errors.
    ground_truth : GroundTruth
        The ground truth, for its images and classes.
    score_attribute : str, optional
        The tag with the score, by default ``score`` or ``confidence``.
    """
    reader, notes = _read(path, limits, shapes, scored=True, score=score_attribute, as_is=as_is)
    return reader.detections_of(ground_truth, notes)


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in detections."""
    shapes, score = options.get("shapes", "reject"), options.get("score_attribute")
    return _read(path, limits, shapes, scored=True, score=score)[0].placeholder()


def image_attribute(ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
    """Return a tag of the images; files are read again."""
    return Annotations.image_attribute(ground_truth, name)


def file_names(ground_truth: GroundTruth) -> dict[Name, str]:
    """Return the file of each image: the name of its JSON without ``.json``."""
    paths = [os.path.join(s.path, m) for s in ground_truth.files for m in s.members or ("",)]
    return {without_suffix(name): name for name in _names(paths).values()}


def _read(path: Path, limits: Limits, *how: Any, **more: Any) -> tuple[Annotations, list[Note]]:
    folders = _folders(os.fspath(path))
    reader = Annotations(path, limits, *how, **more)
    reader.names = _names([f.file(member) for f in folders for member in f.members.values()])
    reader.classes.update(_classes(os.path.join(os.fspath(path), META), reader.problems, limits))
    reader.read(*folders)
    skipped = [name for folder in folders for name in folder.skipped]
    return reader, [files_skipped(skipped, "annotations")]


def _folders(path: str) -> list[Folder]:
    """Return the annotation files of each data set, or a single file."""
    if path == STDIN:
        refuse(path, "cannot provide Supervisely's files: file names are needed", "use a folder")
    file = one_file(path)
    if file is not None:
        return [file]
    inside = []
    for above, names, _ in os.walk(path):
        if FOLDER in names:
            inside.append(os.path.relpath(os.path.join(above, FOLDER), path))
            names[:] = {*names} - {FOLDER, "img"}
    if not inside and not os.path.isfile(os.path.join(path, META)):
        inside = [""]
    folders = [files_of(path, name, ".json") for name in sorted(inside)]
    if not any(folder.members for folder in folders):
        message = f"no annotations: no file in a folder {FOLDER} ends with .json"
        refuse(path, message, "use the folder of the project or data set")
    return folders


def _names(files: list[str]) -> dict[str, str]:
    """Return the image file by annotation file; with its data set if names repeat."""
    names = {file: os.path.basename(file).removesuffix(".json") for file in files}
    counts = Counter(without_suffix(name) for name in names.values())
    for file, name in names.items():
        if counts[without_suffix(name)] > 1:
            data_set = os.path.basename(os.path.dirname(os.path.dirname(file)))
            names[file] = f"{data_set}/{name}"
    return names


def _classes(file: str, problems: Problems, limits: Limits) -> list[str]:
    """Return the classes of a project; none without ``meta.json``."""
    if not os.path.isfile(file):
        return []
    read = json_value(read_bytes(file, limits), file, problems, limits, "export it again")
    classes = read[0].get("classes") if read and isinstance(read[0], dict) else None
    names = []
    for number, record in enumerate(classes if isinstance(classes, list) else ()):
        try:
            names.append(class_name(object_of(record), "title"))
        except FaultError as fault:
            problems.add(file, f"classes[{number}]", fault.message, fault.hint)
    return names
