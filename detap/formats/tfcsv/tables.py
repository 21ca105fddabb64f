"""Read CSV files of boxes in pixels.

References: `xml_to_csv.py` of the TensorFlow object detection tutorials; Roboflow's export
"Tensorflow Object Detection CSV"; supervision 0.31, `CSVSink`.
"""

from typing import Any

from detap.formats.text.class_names import ClassNames
from detap.formats.tfcsv.rows import Rows
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.tables.detection import Detections, GroundTruth, Name


def read_ground_truth(
    path: Path,
    *,
    class_names: Path | None = None,
    image_sizes: Path | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> GroundTruth:
    """Read the ground truth of a CSV with one row per box.

    The first line names the columns, in any order: ``filename`` (or ``image``), ``class`` (or
    ``class_name``, ``class_id``), ``xmin``, ``ymin``, ``xmax``, ``ymax`` (or ``x_min``, ...), and
    optionally ``width`` and ``height`` of the image. A row with only an image has no box.

    Parameters
    ----------
    path : str or path
    class_names : str or path, optional
        Names for class numbers from 0.
    image_sizes : str or path, optional
        A CSV of ``image,width,height``. Images that only it lists have no boxes.
    as_is : bool
        Accept boxes that look normalized, and any number of boxes of negative size.
    limits : Limits
        Limits on the input size.

    Returns
    -------
    GroundTruth
        Images and classes sorted by name, rows in the order of the file, image by image.

    Raises
    ------
    InputError
        If the input is invalid; lists every problem, up to the limit.
    """
    reader = _read(path, class_names, limits, as_is=as_is)
    if image_sizes is not None:
        reader.add_sizes(image_sizes)
    return reader.ground_truth_of(reader.notes())


def read_detections(
    path: Path,
    ground_truth: GroundTruth,
    *,
    class_names: Path | None = None,
    dt_class_names: Path | None = None,
    image_sizes: Path | None = None,
    as_is: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Detections:
    """Read detections from a CSV with one row per box, with a ``score`` or ``confidence``.

    Parameters
    ----------
    path, class_names, as_is, limits
        As in :func:`read_ground_truth`, with the same errors.
    ground_truth : GroundTruth
        The ground truth, for its images and classes.
    dt_class_names : str or path, optional
        Names for the class numbers of detections, if they differ.
    image_sizes : str or path, optional
        Not used: boxes are in pixels.
    """
    del image_sizes
    names = class_names if dt_class_names is None else dt_class_names
    return _read(path, names, limits, scored=True, as_is=as_is).detections_of(ground_truth)


def placeholder_ground_truth(path: Path, options: dict[str, Any], limits: Limits) -> GroundTruth:
    """Return the images and classes named in detections."""
    names = options.get("dt_class_names") or options.get("class_names")
    return _read(path, names, limits, scored=True).placeholder()


def file_names(ground_truth: GroundTruth) -> dict[Name, str]:
    """Return the file of each image; files are read again."""
    return Rows.images_again(ground_truth).file_names


def _read(path: Path, class_names: Path | None, limits: Limits, **how: Any) -> Rows:
    reader = Rows(path, limits, **how)
    reader.names = ClassNames.load(class_names, limits)
    return reader.read()
