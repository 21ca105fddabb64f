"""Files of the outside world into tables, one module per format.

Nothing here imports numpy or lxml before a file is read.
"""

import os
from typing import TYPE_CHECKING, Any

from detap.formats.registry import format_named, told

if TYPE_CHECKING:
    from detap.tables.detection import Detections, GroundTruth

_Path = str | os.PathLike[str]


def tell_format(ground_truth: _Path | None, detections: _Path | None = None) -> str:
    """Return the name of the format that files are in, by their names and first bytes.

    Parameters
    ----------
    ground_truth, detections : str or path, optional
        What is to be read; ``"-"`` tells nothing.

    Raises
    ------
    UsageError
        Where neither tells, or the two tell differently.
    """
    return told(ground_truth, detections).name


def read_ground_truth(path: _Path, *, format: str | None = None, **options: Any) -> "GroundTruth":
    """Read ground truth in any format.

    Parameters
    ----------
    path : str or path
        A file or a folder, as the format has it.
    format : str, optional
        As ``--format`` has it; told from the files where left out.
    **options
        Those of the format's own function of this name.

    Raises
    ------
    UsageError
        Where the format is unknown or cannot be told.
    InputError
        Where the input is not right.
    """
    found = format_named(format) if format else told(path)
    table: GroundTruth = found.reader().read_ground_truth(path, **options)
    return table


def read_detections(
    path: _Path, truth: "GroundTruth", *, format: str | None = None, **options: Any
) -> "Detections":
    """Read detections in any format, numbered as the ground truth they are for.

    Parameters
    ----------
    path : str or path
        A file or a folder, as the format has it; ``"-"`` is standard input.
    truth : GroundTruth
        The ground truth that they are scored against.
    format, **options
        As :func:`read_ground_truth` has them; so is what is raised.
    """
    found = format_named(format) if format else told(path)
    table: Detections = found.reader().read_detections(path, truth, **options)
    return table
