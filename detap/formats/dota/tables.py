"""Read folders of DOTA labels and Task1 results.

Reference: parse_gt and voc_eval of dota_evaluation_task1.py, CAPTAIN-WHU/DOTA_devkit; Xia et al.,
DOTA: a large-scale dataset for object detection in aerial images, CVPR 2018.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from detap.core.polygons import bounds, is_self_intersecting, polygon_areas
from detap.errors import Note
from detap.formats.by_name.notes import classes_without_file, files_skipped, nonzero_notes
from detap.formats.dota.lines import DotaForm, encoding_of, faults, polygons_of, without_head
from detap.formats.text.class_names import ClassNames
from detap.formats.text.detections import read_class_files
from detap.formats.text.folder import detections_folder, first_folder
from detap.formats.text.layout import ClassOfFile, class_of_stem
from detap.formats.text.lines import Lines, read_lines
from detap.formats.text.reader import FolderReader
from detap.formats.text.rows import no_rows, read_fallback
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import SHAPES, check_choice
from detap.tables.detection import Detections, Floats, GroundTruth

LABELS = ("labelTxt", "")
"""Sub-folders that may contain the files."""


def read_ground_truth(
    path: Path,
    *,
    image_set: Path | None = None,
    angle_unit: str | None = None,
    shapes: str = "reject",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read DOTA labels: one text file per image.

    A line is ``x1 y1 ... x4 y4 class difficult``. ``imagesource:`` and ``gsd:`` lines may come
    first. ``difficult`` may be missing, for 0. Areas are those of the quadrilaterals, and boxes
    enclose them.

    Parameters
    ----------
    path : str or path
        The folder of the files, or the one with ``labelTxt``.
    image_set : str or path, optional
        A file with one image per line. By default all files.
    angle_unit : {"degrees", "radians"}, optional
        Unit of the angle in lines ``cx cy w h angle class difficult``. The angle turns the width
        from the x axis to the y axis.
    shapes : {"reject", "bbox"}
        ``"bbox"`` reads the bounding boxes, which protocols that compare boxes require.
    as_is : bool
        Has no effect here.
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
        If an input is invalid; lists every problem, up to the limit. Lines with too few columns,
        which the reference skips, are errors.
    """
    check_choice("shapes", shapes, SHAPES)
    form = DotaForm("class", False, encoding_of(angle_unit), str)
    folder = first_folder(os.fspath(path), LABELS, "DOTA's", "labels")
    reader = FolderReader(folder, as_is, limits, image_set)
    problems, members = reader.problems, reader.selection.members
    problems.raise_any()

    def read(data: bytes, file: str, _: int) -> Lines:
        return read_lines(without_head(data), file, form, problems)

    # The fast reader does not support lines that begin with numbers.
    rows = read_fallback(
        folder,
        members,
        range(len(members)),
        read,
        scanned=no_rows(len(form.shape)),
        problems=problems,
        limits=limits,
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
        polygons=None if shapes == "bbox" else polygons,
    )


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    angle_unit: str | None = None,
    shapes: str = "reject",
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read DOTA Task1 results: one file per class.

    A line is ``image score x1 y1 ... x4 y4``.

    Parameters
    ----------
    path : str or path
        A folder of files ``Task1_<class>.txt``, or one of them.
    ground_truth : GroundTruth
        The ground truth, for its images and classes.
    angle_unit : {"degrees", "radians"}, optional
        For lines ``image score cx cy w h angle``, as in :func:`read_ground_truth`.
    shapes, as_is, limits
        As in :func:`read_ground_truth`.

    Returns
    -------
    Detections
        Numbered as `ground_truth`; classes that it lacks follow. Rows are ordered by file and line.

    Raises
    ------
    InputError
        If an input is invalid; lists every problem, up to the limit.
    """
    check_choice("shapes", shapes, SHAPES)
    box_format = encoding_of(angle_unit)
    folder = detections_folder(os.fspath(path))
    reader = FolderReader(folder, as_is, limits)
    class_by_stem = _classes_of_files(folder.members, ground_truth.classes)
    form = partial(DotaForm, "image", True, box_format)
    image = read_class_files(reader, ground_truth, class_by_stem, form, ClassNames())
    rows, classes = reader.rows, [class_of_file.name for class_of_file in class_by_stem.values()]
    reader.raise_problems(faults(rows.values[:, 1:], box_format))
    polygons = polygons_of(rows.values[:, 1:], box_format)
    skipped = files_skipped(folder.skipped, "detections")
    return reader.detections(
        ground_truth,
        rows.file,
        classes,
        notes=(
            classes_without_file(ground_truth, classes),
            skipped,
            *_notes(polygons, "detections"),
        ),
        images=ground_truth.images,
        image=image,
        boxes=bounds(polygons),
        score=rows.values[:, 0].copy(),
        polygons=None if shapes == "bbox" else polygons,
    )


def _classes_of_files(stems: Iterable[str], classes: Sequence[str]) -> dict[str, ClassOfFile]:
    """Return the class of each file; Ultralytics writes hyphens for blanks in class names."""
    known = frozenset(classes)
    hyphened = {name.replace(" ", "-"): name for name in classes if " " in name}
    aliases = {alias: name for alias, name in hyphened.items() if alias not in known}
    class_by_stem = {stem: class_of_stem(stem, known | aliases.keys()) for stem in stems}
    return {
        stem: replace(of_file, name=aliases.get(of_file.name, of_file.name))
        for stem, of_file in class_by_stem.items()
    }


def _notes(polygons: Floats, kind: str) -> tuple[Note, ...]:
    """Note quadrilaterals (N, 8) that cross themselves or have no area."""
    crossed = is_self_intersecting(polygons)
    zero_area = ~crossed & (polygon_areas(polygons) == 0)
    role = kind.replace("-", " ")
    return nonzero_notes(
        Note(
            f"{kind}-crossed",
            f"quadrilaterals of the {role} cross themselves: their corners are not in order, and "
            "parts with the other orientation reduce the area",
            int(np.count_nonzero(crossed)),
        ),
        Note(
            f"zero-area-{kind}",
            f"quadrilaterals of the {role} have zero area and overlap nothing",
            int(np.count_nonzero(zero_area)),
            severity="warning" if kind == "ground-truth" else "info",
        ),
    )
