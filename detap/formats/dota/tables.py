"""DOTA: a folder of labels, and one of Task1 results, to tables.

Reference: parse_gt and voc_eval of dota_evaluation_task1.py, CAPTAIN-WHU/DOTA_devkit; Xia et al.,
DOTA: a large-scale dataset for object detection in aerial images, CVPR 2018.
"""

import os
from functools import partial

import numpy as np

from detap.core.polygons import bounds, crossing, polygon_areas
from detap.errors import Note
from detap.formats.by_name.notes import classes_without_file, files_skipped, nonzero_notes
from detap.formats.dota.lines import DotaForm, encoding_of, faults, polygons_of, without_head
from detap.formats.text.class_names import ClassNames
from detap.formats.text.detections import read_class_files
from detap.formats.text.folder import detections_folder, first_folder
from detap.formats.text.layout import class_of_stem
from detap.formats.text.lines import Lines, read_lines
from detap.formats.text.reader import FolderReader
from detap.formats.text.rows import no_rows, read_fallback
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.tables.detection import Detections, Floats, GroundTruth

LABELS = ("labelTxt", "")
"""Where below a folder that is given the files may be."""


def read_ground_truth(
    path: Path,
    *,
    image_set: Path | None = None,
    angle_unit: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read DOTA's labels: a text file for each image, ``x1 y1 ... x4 y4 class difficult`` a line.

    Lines ``imagesource:`` and ``gsd:`` may stand at the head. Without ``difficult``, as in labels
    of some tools, an object is not difficult. Areas are those of the quadrilaterals, and boxes
    those around them.

    Parameters
    ----------
    path : str or path
        The folder of the files, or the one that ``labelTxt`` is in.
    image_set : str or path, optional
        A file with one image a line. All files of the folder without it.
    angle_unit : {"degrees", "radians"}, optional
        For lines of ``cx cy w h angle class difficult``: what the angle is in, by which the width
        is turned from the x axis to the y axis.
    as_is : bool
        Whether what only looks wrong is taken as it is; here nothing does.
    limits : Limits
        What is accepted at most.

    Returns
    -------
    GroundTruth
        Images in the order of the image set, else sorted by name; classes sorted by name; rows in
        the order of the images, and of the file within each. A file without lines is of an image
        without objects.

    Raises
    ------
    InputError
        With every problem found, up to the limit. A line of fewer columns is one: the reference
        skips it, and with it an object that is to be found.
    """
    form = DotaForm("class", False, encoding_of(angle_unit), str)
    folder = first_folder(os.fspath(path), LABELS, "DOTA's", "labels")
    reader = FolderReader(folder, as_is, limits, image_set)
    problems, members = reader.problems, reader.selection.members
    problems.raise_any()

    def read(data: bytes, file: str, _: int) -> Lines:
        return read_lines(without_head(data), file, form, problems)

    # Numbers come first, which the scanner has no line for.
    every, none = range(len(members)), no_rows(len(form.shape))
    rows = read_fallback(
        folder, members, every, read, scanned=none, problems=problems, limits=limits
    )
    reader.form, reader.rows = form, rows
    problems.raise_any()
    reader.raise_problems(faults(rows.values, form.box_format))
    polygons = polygons_of(rows.values, form.box_format)
    return reader.ground_truth(
        rows.names,
        notes=_notes(polygons, "ground-truth"),
        boxes=bounds(polygons),
        flags={"difficult": rows.flag},
        polygons=polygons,
    )


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    angle_unit: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read DOTA's Task1 results: a file for each class, ``image score x1 y1 ... x4 y4`` a line.

    Parameters
    ----------
    path : str or path
        A folder of files called ``Task1_<class>.txt``, or one of them.
    ground_truth : GroundTruth
        What they are about: its images and classes.
    angle_unit : {"degrees", "radians"}, optional
        For lines of ``image score cx cy w h angle``, as :func:`read_ground_truth` has it.
    as_is, limits
        As :func:`read_ground_truth` has them.

    Returns
    -------
    Detections
        Numbered as `ground_truth`; classes that it lacks are behind its own. Rows are in the order
        of the files' names, and of the lines within each.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    """
    box_format = encoding_of(angle_unit)
    folder = detections_folder(os.fspath(path))
    reader, known = FolderReader(folder, as_is, limits), frozenset(ground_truth.classes)
    of_stem = {stem: class_of_stem(stem, known) for stem in folder.members}
    form = partial(DotaForm, "image", True, box_format)
    image = read_class_files(reader, ground_truth, of_stem, form, ClassNames())
    rows, classes = reader.rows, [found.name for found in of_stem.values()]
    reader.raise_problems(faults(rows.values[:, 1:], box_format))
    polygons = polygons_of(rows.values[:, 1:], box_format)
    aside = files_skipped(folder.skipped, "detections")
    return reader.detections(
        ground_truth,
        rows.file,
        classes,
        notes=(classes_without_file(ground_truth, classes), aside, *_notes(polygons, "detections")),
        images=ground_truth.images,
        image=image,
        boxes=bounds(polygons),
        score=rows.values[:, 0].copy(),
        polygons=polygons,
    )


def _notes(polygons: Floats, kind: str) -> tuple[Note, ...]:
    """Say of quadrilaterals (N, 8) that they cross themselves, or have no area."""
    crossed = crossing(polygons)
    flat = ~crossed & (polygon_areas(polygons) == 0)
    what = kind.replace("-", " ")
    return nonzero_notes(
        Note(
            f"{kind}-crossed",
            f"quadrilaterals of the {what} cross themselves, as a bow tie does: their corners are "
            "in no order around them, and what turns the other way counts against the rest",
            int(np.count_nonzero(crossed)),
        ),
        Note(
            f"zero-area-{kind}",
            f"quadrilaterals of the {what} have no area: they overlap nothing",
            int(np.count_nonzero(flat)),
            severity="warning" if kind == "ground-truth" else "info",
        ),
    )
