"""Readers of annotation and detection files, one package per format.

numpy and lxml are imported only when a file is read.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from detap.errors import UsageError
from detap.formats.multi_file import (
    detections_of,
    expand_folders,
    expand_patterns,
    ground_truth_of,
)
from detap.formats.registry import FORMATS, check_options, detect_format, format_named
from detap.io.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from detap.tables.detection import Detections, GroundTruth

_Path = str | os.PathLike[str]


def read_ground_truth(
    path: _Path | Sequence[_Path],
    *,
    format: str | None = None,
    merge_images: bool = False,
    **options: Any,
) -> "GroundTruth":
    """Read ground truth in any format.

    Parameters
    ----------
    path : str or path, or a sequence of them
        A file or a folder. Several paths, a pattern such as ``"shards/*.json"``, or a folder of
        files (in a format whose data sets are files) are read as one.
    merge_images : bool
        If True, several files may have boxes of the same image.
    format : str, optional
        A value of ``--format``; detected by default.
    **options
        Options of the format's ``read_ground_truth``.

    Raises
    ------
    UsageError
        If the format is unknown or cannot be detected.
    InputError
        If the input is invalid, or an image is in several files.
    """
    paths = _paths(path)
    file_format = format_named(format) if format else detect_format(paths[0])
    check_options(options, [file_format])
    paths = expand_folders(paths, lambda _: file_format)
    limits = options.pop("limits", DEFAULT_LIMITS)
    if len(paths) > 1:
        limits = replace(limits, empty=True)  # some of several files may be empty
    reading = {**options, "limits": limits}
    return ground_truth_of(
        paths,
        lambda one: file_format.read_ground_truth(one, reading),
        limits,
        merge_images=merge_images,
    )


def read_detections(
    path: _Path | Sequence[_Path],
    ground_truth: "GroundTruth",
    *,
    format: str | None = None,
    merge_images: bool = False,
    **options: Any,
) -> "Detections":
    """Read detections in any format, with the indices of the ground truth.

    Parameters
    ----------
    path : str or path, or a sequence of them
        As in :func:`read_ground_truth`; ``"-"`` is standard input.
    ground_truth : GroundTruth
        The ground truth that the detections are scored against.
    format, merge_images, **options
        As in :func:`read_ground_truth`, which also lists the errors.
    """
    paths = _paths(path)
    gt_format = FORMATS.get(ground_truth.format)
    if format:
        file_format = format_named(format)
    elif gt_format:
        file_format = gt_format.of_detections(paths[0])
    else:
        file_format = detect_format(None, paths[0])
    check_options(options, [file_format])
    paths = expand_folders(paths, lambda _: file_format)
    if len(paths) > 1:
        options["limits"] = replace(options.get("limits", DEFAULT_LIMITS), part=True)
    return detections_of(
        paths,
        lambda one: file_format.read_detections(one, ground_truth, options),
        ground_truth,
        options.get("limits", DEFAULT_LIMITS),
        merge_images=merge_images,
    )


def _paths(path: _Path | Sequence[_Path]) -> tuple[str, ...]:
    given = [path] if isinstance(path, str | os.PathLike) else path
    paths = expand_patterns([os.fspath(one) for one in given])
    if not paths:
        raise UsageError("no path given")
    return paths
