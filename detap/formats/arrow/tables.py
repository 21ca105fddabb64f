"""Reader of Parquet and Arrow files with the keys of COCO records as columns.

The same data as a COCO file gives bit-identical tables.
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

    Images and classes are in ascending order of id or name. A row with only an image, or with
    empty lists (Hugging Face datasets), is an image without objects.

    Parameters
    ----------
    path : str or path or Prefetched
        The file or URL. A value of :mod:`detap.formats.arrow.prefetch` has its own `boxes` and
        `limits`.
    boxes : {"xywh", "xyxy"}, optional
        Format of a column `bbox` without metadata.
    as_is : bool
        As in :func:`detap.formats.coco.tables.read_ground_truth`.
    limits : Limits
        Limits on the input.

    Raises
    ------
    UsageError
        If pyarrow is not installed.
    InputError
        With all problems of the file, up to `limits.problems`.
    """
    table = _read(path, False, boxes, limits)
    columns = truth_columns(table)
    truth = truth_table(columns, table.source(columns.records, as_is, columns.origin))
    empty = images_without_objects(len(columns.image_ids), columns.image)
    return replace(truth, notes=(*truth.notes, *table.notes(), *nonzero_notes(empty)))


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
        As in :func:`read_ground_truth`, which also lists the errors. ``"-"`` is standard input.
    ground_truth : GroundTruth
        Defines the image ids, and the category ids or names. Detections of other classes are
        ignored, with a note.
    as_is : bool
        As in :func:`detap.formats.coco.tables.read_detections`.
    """
    given = path.path if isinstance(path, Prefetched) else path
    refuse_same_file(given, ground_truth, "expected detections")
    table = _read(path, True, boxes, limits)
    columns = detection_columns(table, ground_truth, as_is)
    detections = detection_table(columns, ground_truth, table.source(len(columns.image), as_is))
    return replace(detections, notes=(*detections.notes, *table.notes()))


def _read(path: Path | Prefetched, scored: bool, boxes: str | None, limits: Limits) -> Table:
    return path.result() if isinstance(path, Prefetched) else Table(path, scored, boxes, limits)
