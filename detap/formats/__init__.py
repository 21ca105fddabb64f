"""Readers and writers of annotation and detection files, a class per format."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from detap.errors import Note, UsageError
from detap.formats.base import Format
from detap.formats.catalogue import FORMATS, check_options, default_protocol, format_named
from detap.formats.detection import detect_format, detections_format, preset_of_results
from detap.formats.multi_file import (
    detections_of,
    expand_folders,
    expand_patterns,
    ground_truth_of,
)
from detap.io.limits import DEFAULT_LIMITS
from detap.protocols import Protocol
from detap.tables.arguments import check_table, is_path, refuse_path
from detap.tables.detection import Detections, GroundTruth

_Path = str | os.PathLike[str]


def read_ground_truth(
    path: _Path | Sequence[_Path],
    *,
    format: str | None = None,
    merge_images: bool = False,
    **options: Any,
) -> GroundTruth:
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
    return _ground_truth(paths, file_format, options, merge_images)


def _ground_truth(
    paths: Sequence[str], file_format: Format, options: dict[str, Any], merge_images: bool
) -> GroundTruth:
    paths = expand_folders(paths, lambda _: file_format, options.get("split"))
    limits = options.get("limits", DEFAULT_LIMITS)
    if len(paths) > 1:
        limits = replace(limits, empty=True)  # some of several files may be empty
    reading = {**options, "limits": limits}
    return ground_truth_of(file_format, paths, reading, merge_images=merge_images)


def read_detections(
    path: _Path | Sequence[_Path],
    ground_truth: GroundTruth,
    *,
    format: str | None = None,
    merge_images: bool = False,
    **options: Any,
) -> Detections:
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
    check_table(ground_truth, GroundTruth)
    file_format = _detections_format(paths[0], FORMATS.get(ground_truth.format), format)
    check_options(options, [file_format])
    return _detections(paths, ground_truth, file_format, options, merge_images)


def _detections_format(path: str, gt_format: Format | None, name: str | None) -> Format:
    if name:
        return format_named(name)
    return detections_format(path, gt_format) if gt_format else detect_format(None, path)


def _detections(
    paths: Sequence[str],
    ground_truth: GroundTruth,
    file_format: Format,
    options: dict[str, Any],
    merge_images: bool,
) -> Detections:
    paths = expand_folders(paths, lambda _: file_format)
    if len(paths) > 1:
        limits = options.get("limits", DEFAULT_LIMITS)
        options = {**options, "limits": replace(limits, part=True)}
    return detections_of(
        lambda _: file_format, paths, ground_truth, options, merge_images=merge_images
    )


def read_tables(
    ground_truth: GroundTruth | _Path | Sequence[_Path],
    detections: Detections | _Path | Sequence[_Path],
    protocol: Protocol | str | None = None,
    *,
    format: str | None = None,
    merge_images: bool = False,
    any_classes: bool = False,
    **options: Any,
) -> tuple[GroundTruth, Detections, Protocol | str]:
    """Return both tables, read like ``detap eval`` where a path is given, and the protocol."""
    # With `any_classes`, those that the ground truth lacks are kept: map_tables follows.
    gt_paths, dt_paths = _paths_of(ground_truth, GroundTruth), _paths_of(detections, Detections)
    gt_format: Format | None
    if isinstance(ground_truth, GroundTruth):
        gt_format, default = FORMATS.get(ground_truth.format), default_protocol(ground_truth)
    else:
        gt_format = format_named(format) if format else detect_format(gt_paths[0], *dt_paths[:1])
        default = gt_format.default_protocol(gt_paths[0], options)
    dt_formats = [_detections_format(dt_paths[0], gt_format, format)] if dt_paths else []
    check_options(options, [gt_format] if gt_paths and gt_format else [], dt_formats)
    notes: tuple[Note, ...] = ()
    if protocol is None and gt_format is not None and gt_paths and dt_paths:
        default, notes = preset_of_results(default, gt_format, dt_formats[0], dt_paths[0])
    protocol = protocol or default
    options = {**options, **Protocol.of(protocol).reader_options}
    if any_classes:
        options["limits"] = replace(options.get("limits", DEFAULT_LIMITS), any_classes=True)
    if not isinstance(ground_truth, GroundTruth):
        assert gt_format is not None
        ground_truth = _ground_truth(gt_paths, gt_format, options, merge_images)
    if not isinstance(detections, Detections):
        detections = _detections(dt_paths, ground_truth, dt_formats[0], options, merge_images)
        detections = replace(detections, notes=(*detections.notes, *notes))
    return ground_truth, detections, protocol


def _paths_of(value: Any, kind: type[GroundTruth] | type[Detections]) -> tuple[str, ...]:
    """Return the paths of a table, none if it is one; raise UsageError for other objects."""
    if is_path(value):
        return _paths(value)
    check_table(value, kind, or_path=True)
    return ()


def _paths(path: _Path | Sequence[_Path]) -> tuple[str, ...]:
    if isinstance(path, str | os.PathLike):
        given: Sequence[_Path] = [path]
    elif isinstance(path, Iterable) and not isinstance(path, Mapping):
        given = [*path]
    else:
        refuse_path(path)
    if not all(map(is_path, given)):
        refuse_path(path)
    paths = expand_patterns([os.fspath(one) for one in given])
    if not paths:
        raise UsageError("no path given")
    return paths
