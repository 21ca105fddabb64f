"""DOTA: a folder of labels, and one of Task1 results, to tables.

Reference: parse_gt and voc_eval of dota_evaluation_task1.py, CAPTAIN-WHU/DOTA_devkit; Xia et al.,
DOTA: a large-scale dataset for object detection in aerial images, CVPR 2018.
"""

import os

import numpy as np

from detap.core.polygons import bounds, crossing, polygon_areas
from detap.errors import Note
from detap.formats.dota.lines import DotaForm, encoding_of, without_head
from detap.formats.named.notes import left_aside, told, without_file
from detap.formats.named.objects import Objects, detections, ground_truth, nothing_in_common
from detap.formats.named.problems import Problems, refuse_empty
from detap.formats.named.sides import Stand
from detap.formats.text.detections import check_classes, image_resolver
from detap.formats.text.folder import detections_folder, first_folder, folder_notes, select_images
from detap.formats.text.layout import class_of_stem
from detap.formats.text.lines import Lines, read_lines
from detap.formats.text.places import Places
from detap.formats.text.rows import in_order, no_rows, read_text, with_care
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.tables.columns import renumbered
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
    path = os.fspath(path)
    form = DotaForm("class", False, encoding_of(angle_unit), str)
    folder = first_folder(path, LABELS, "DOTA's", "labels")
    problems = Problems(limits.problems)
    selection = select_images(folder, image_set, problems, limits)
    problems.raise_any()

    def read(data: bytes, file: str, _: int) -> Lines:
        return read_lines(without_head(data), file, form, problems)

    # Numbers come first, which the scanner has no line for.
    numbers, none = range(len(selection.members)), no_rows(len(form.shape))
    rows = with_care(
        folder, selection.members, numbers, read, scanned=none, problems=problems, limits=limits
    )
    problems.raise_any()
    places = Places(folder, selection.members, rows, form, limits)
    places.refuse(form.faults(rows.values), problems)
    what = f"object in its {len(selection.images)} files of labels"
    refuse_empty(path, len(rows), limits, what, "labels")
    polygons = form.polygons(rows.values)
    classes, label = in_order(rows.name, rows.names)
    objects = Objects(
        images=selection.images,
        classes=classes,
        image=rows.file,
        label=label,
        boxes=bounds(polygons),
        flags={"difficult": rows.flag},
        polygons=polygons,
    )
    sources = selection.sources(folder, len(rows))
    notes = (*folder_notes(folder, selection, rows.file, 0), *_notes(polygons, "ground-truth"))
    return ground_truth(objects, Stand(path, limits, as_is, places.place), sources, notes)


def read_detections(
    path: Path,
    truth: GroundTruth,
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
    truth : GroundTruth
        What they are about: its images and classes.
    angle_unit : {"degrees", "radians"}, optional
        For lines of ``image score cx cy w h angle``, as :func:`read_ground_truth` has it.
    as_is, limits
        As :func:`read_ground_truth` has them.

    Returns
    -------
    Detections
        Numbered as `truth`; classes that it lacks are behind its own. Rows are in the order of the
        files' names, and of the lines within each.

    Raises
    ------
    InputError
        With every problem found, up to the limit.
    """
    path = os.fspath(path)
    folder = detections_folder(path)
    problems = Problems(limits.problems)
    of_stem = {stem: class_of_stem(stem, frozenset(truth.classes)) for stem in folder.members}
    check_classes(folder, of_stem, problems)
    problems.raise_any()
    images = [str(name) for name in truth.images]
    resolve = image_resolver(truth, problems)
    form = DotaForm("image", True, encoding_of(angle_unit), resolve, images)
    members = tuple(folder.members.values())
    rows = read_text(folder, form, members, problems, limits)
    if problems.strangers and not len(rows):
        problems.lead = nothing_in_common(path, problems.strangers, truth)
    places = Places(folder, members, rows, form, limits)
    problems.raise_any()
    places.refuse(form.faults(rows.values[:, 1:]), problems)
    polygons = form.polygons(rows.values[:, 1:])
    called = [found.name for found in of_stem.values()]
    classes, label = in_order(rows.file, called)
    objects = Objects(
        images=truth.images,
        classes=classes,
        image=renumbered(rows.name, rows.names, images),
        label=label,
        boxes=bounds(polygons),
        score=rows.values[:, 0].copy(),
        polygons=polygons,
    )
    return detections(
        objects,
        truth,
        Stand(path, limits, as_is, places.place),
        (folder.source(members, len(rows)),),
        told(
            without_file(truth, called),
            left_aside(folder.aside, "detections"),
            *_notes(polygons, "detections"),
        ),
    )


def _notes(polygons: Floats, kind: str) -> tuple[Note, ...]:
    """Say of quadrilaterals (N, 8) that they cross themselves, or have no area."""
    crossed = crossing(polygons)
    flat = ~crossed & (polygon_areas(polygons) == 0)
    what = kind.replace("-", " ")
    return told(
        Note(
            f"{kind}-crossed",
            f"quadrilaterals of the {what} cross themselves, as a bow tie does: their corners are "
            "in no order around them, and what turns the other way counts against the rest",
            int(np.count_nonzero(crossed)),
        ),
        Note(
            f"{kind}-flat",
            f"quadrilaterals of the {what} have no area: they overlap nothing",
            int(np.count_nonzero(flat)),
            warning=kind == "ground-truth",
        ),
    )
