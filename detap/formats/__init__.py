"""Files of the outside world into tables, one module per format.

Nothing here imports numpy or lxml before a file is read.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from detap.errors import UsageError
from detap.formats.multi_file import detections_of, ground_truth_of, matching, members
from detap.formats.registry import FORMATS, check_options, format_named, told
from detap.io.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from detap.tables.detection import Detections, GroundTruth

_Path = str | os.PathLike[str]


def read_ground_truth(
    path: _Path | Sequence[_Path],
    *,
    format: str | None = None,
    repartition: bool = False,
    **options: Any,
) -> "GroundTruth":
    """Read ground truth in any format.

    Parameters
    ----------
    path : str or path, or a sequence of them
        A file or a folder, as the format has it. Several, a pattern such as ``"shards/*.json"``, or
        a folder of files where no folder is a data set, are read as one file of all would be.
    repartition : bool
        Whether an image may be in several, each of which has some of its boxes.
    format : str, optional
        As ``--format`` has it; told from the files where left out.
    **options
        Those of the format's own function of this name.

    Raises
    ------
    UsageError
        Where the format is unknown or cannot be told.
    InputError
        Where the input is not right, or an image is in several.
    """
    paths = _paths(path)
    found = format_named(format) if format else told(paths[0])
    check_options(options, [found])
    paths = members(paths, lambda _: found)
    limits = options.pop("limits", DEFAULT_LIMITS)
    if len(paths) > 1:
        limits = replace(limits, empty=True)  # some of several files may be empty
    reading = {**options, "limits": limits}
    return ground_truth_of(
        paths, lambda one: found.read_ground_truth(one, reading), limits, repartition=repartition
    )


def read_detections(
    path: _Path | Sequence[_Path],
    truth: "GroundTruth",
    *,
    format: str | None = None,
    repartition: bool = False,
    **options: Any,
) -> "Detections":
    """Read detections in any format, numbered as the ground truth they are for.

    Parameters
    ----------
    path : str or path, or a sequence of them
        As :func:`read_ground_truth` has it; ``"-"`` is standard input.
    truth : GroundTruth
        The ground truth that they are scored against.
    format, repartition, **options
        As :func:`read_ground_truth` has them; so is what is raised.
    """
    paths = _paths(path)
    beside = FORMATS.get(truth.format)
    if format:
        found = format_named(format)
    else:
        found = beside.of_detections(paths[0]) if beside else told(None, paths[0])
    check_options(options, [found])
    paths = members(paths, lambda _: found)
    if len(paths) > 1:
        options["limits"] = replace(options.get("limits", DEFAULT_LIMITS), part=True)
    return detections_of(
        paths,
        lambda one: found.read_detections(one, truth, options),
        truth,
        options.get("limits", DEFAULT_LIMITS),
        repartition=repartition,
    )


def _paths(path: _Path | Sequence[_Path]) -> tuple[str, ...]:
    given = [path] if isinstance(path, str | os.PathLike) else path
    paths = matching([os.fspath(one) for one in given])
    if not paths:
        raise UsageError("no path is given")
    return paths
