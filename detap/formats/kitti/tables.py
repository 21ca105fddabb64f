"""Read folders of KITTI labels and results.

Reference: readme.txt of the development kit for the object benchmark; Geiger et al., Are we ready
for autonomous driving? The KITTI vision benchmark suite, CVPR 2012.
"""

import os

import numpy as np

from detap.formats.by_name.notes import files_skipped
from detap.formats.by_name.objects import nothing_in_common
from detap.formats.by_name.problems import Problems
from detap.formats.kitti.lines import (
    ALPHA,
    BOX,
    DONT_CARE,
    LABEL,
    OCCLUDED,
    RESULT,
    SCORE,
    TRUNCATED,
    faults,
    one_spelling,
)
from detap.formats.text.folder import Folder, first_folder
from detap.formats.text.reader import FolderReader
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import check_choice
from detap.tables.detection import BOX_FORMATS, Detections, GroundTruth
from detap.text_input import quote

LABELS = (os.path.join("training", "label_2"), "label_2", "")
RESULTS = ("data", "")
"""Sub-folders that may contain the files."""


def read_ground_truth(
    path: Path,
    *,
    image_set: Path | None = None,
    boxes: str = "xyxy",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read KITTI labels: one text file per image, with 15 columns per line.

    The case of types is ignored. ``DontCare`` objects become difficult objects of a class of this
    name; the preset `kitti` treats them as regions. `extra` has the columns
    ``truncated``, ``occluded`` and ``alpha``.

    Parameters
    ----------
    path : str or path
        The folder of the files, or the one with ``label_2`` or ``training/label_2``.
    image_set : str or path, optional
        A file with one image per line. By default all files.
    boxes : {"xyxy", "xywh"}
        Box format, in pixels.
    as_is : bool
        Accept any number of boxes of negative size; they overlap nothing. By default more than one
        in twenty is an error.
    limits : Limits
        Limits on the input size.

    Returns
    -------
    GroundTruth
        Images in the order of the image set, else sorted by name; classes sorted by name; rows in
        the order of images and file. An empty file is an image without objects.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    """
    check_choice("boxes", boxes, BOX_FORMATS)
    folder = first_folder(os.fspath(path), LABELS, "KITTI's", "labels")
    reader = FolderReader(folder, as_is, limits, image_set)
    rows = reader.read(LABEL)
    values = rows.values
    reader.raise_problems(faults(values, boxes, of_labels=True))
    names = one_spelling(rows.names)
    return reader.ground_truth(
        names,
        boxes=np.ascontiguousarray(values[:, BOX]),
        box_format=boxes,
        flags={"difficult": np.array([name == DONT_CARE for name in names], np.bool_)[rows.name]},
        extra={
            "truncated": values[:, TRUNCATED].copy(),
            "occluded": values[:, OCCLUDED].copy(),
            "alpha": values[:, ALPHA].copy(),
        },
    )


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    boxes: str = "xyxy",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read KITTI results: one text file per image, with 16 columns per line.

    Parameters
    ----------
    path : str or path
        The folder of the files, or the one with ``data``. As in the development kit, every image of
        the ground truth needs a file; it is empty without detections.
    ground_truth : GroundTruth
        The ground truth, for its images and classes.
    boxes, as_is, limits
        As in :func:`read_ground_truth`.

    Returns
    -------
    Detections
        Numbered as `ground_truth`; classes that it lacks follow.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    """
    check_choice("boxes", boxes, BOX_FORMATS)
    reader = FolderReader(results_folder(os.fspath(path)), as_is, limits)
    _refuse_missing(reader.folder, ground_truth, reader.problems)
    rows = reader.read(RESULT)
    reader.raise_problems(faults(rows.values, boxes, of_labels=False))
    return reader.detections(
        ground_truth,
        rows.name,
        one_spelling(rows.names, ground_truth.classes),
        notes=(files_skipped(reader.folder.skipped, "detections"),),
        images=reader.selection.images,
        image=rows.file,
        boxes=np.ascontiguousarray(rows.values[:, BOX]),
        box_format=boxes,
        score=rows.values[:, SCORE].copy(),
    )


def results_folder(path: str) -> Folder:
    """Return the result files."""
    return first_folder(path, RESULTS, "KITTI's", "results")


def _refuse_missing(folder: Folder, truth: GroundTruth, problems: Problems) -> None:
    """Raise InputError if an image has no result file."""
    missing = [str(name) for name in truth.images if str(name) not in folder.members]
    for name in missing:
        problems.add(
            folder.file(f"{name}.txt"),
            "",
            f"no such file or directory: image {quote(name)} has no results",
            "write an empty file if nothing was detected, or exclude the image with --image-set",
        )
    if len(missing) == len(truth.images):
        problems.lead = nothing_in_common(folder.given, folder.members, truth)
    problems.raise_any()
