"""Parquet and Arrow files to tables: columns as COCO's records have keys.

A file whose columns hold what a COCO file holds gives the same tables, to the last bit.
"""

from dataclasses import replace

from detap.formats.arrow.detections import detection_columns
from detap.formats.arrow.prefetch import Prefetched
from detap.formats.arrow.table import Table
from detap.formats.arrow.truth import truth_columns
from detap.formats.by_name.notes import images_without_objects, nonzero_notes
from detap.formats.coco.assembly import detection_table, refuse_same_file, truth_table
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.tables.detection import Detections, GroundTruth


def read_ground_truth(
    path: Path | Prefetched,
    *,
    boxes: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read ground truth from a Parquet or Arrow file.

    Images and classes are numbered as of a COCO file: by ascending id, or name. A row that has an
    image and nothing else is an image without any object; of Hugging Face's datasets, one whose
    lists are empty.

    Parameters
    ----------
    path : str or path or Prefetched
        The file, or a URL; or what :mod:`detap.formats.arrow.prefetch` has begun to read, which has
        its own `boxes` and `limits`.
    boxes : {"xywh", "xyxy"}, optional
        What the four numbers of a column `bbox` are, where its metadata do not say.
    as_is : bool
        As :func:`detap.formats.coco.tables.read_ground_truth` has it.
    limits : Limits
        What is accepted at most.

    Raises
    ------
    UsageError
        Where pyarrow is not installed.
    InputError
        With every problem of the file, up to `limits.problems`.
    """
    table = _read(path, False, boxes, limits)
    columns = truth_columns(table)
    found = truth_table(columns, table.source(columns.records, as_is, columns.origin))
    empty = images_without_objects(len(columns.image_ids), columns.image)
    return replace(found, notes=(*found.notes, *table.notes(), *nonzero_notes(empty)))


def read_detections(
    path: Path | Prefetched,
    ground_truth: GroundTruth,
    *,
    boxes: str | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections from a Parquet or Arrow file.

    Parameters
    ----------
    path, boxes, limits
        As :func:`read_ground_truth` has them; so is what is raised. ``"-"`` is standard input.
    ground_truth : GroundTruth
        Of whatever format: image ids are its own, and category ids, or the names of its classes.
        Detections of a class that it does not list are left out, with a note.
    as_is : bool
        As :func:`detap.formats.coco.tables.read_detections` has it.
    """
    given = path.path if isinstance(path, Prefetched) else path
    refuse_same_file(given, ground_truth, "give the detections")
    table = _read(path, True, boxes, limits)
    columns = detection_columns(table, ground_truth, as_is)
    found = detection_table(columns, ground_truth, table.source(len(columns.image), as_is))
    return replace(found, notes=(*found.notes, *table.notes()))


def _read(path: Path | Prefetched, scored: bool, boxes: str | None, limits: Limits) -> Table:
    return path.result() if isinstance(path, Prefetched) else Table(path, scored, boxes, limits)
