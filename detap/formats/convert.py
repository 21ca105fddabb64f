"""Convert tables to files of another format."""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from detap.checks.tables import of_unknown_size, unsized_problem
from detap.errors import InputError, Note, UsageError
from detap.formats.catalogue import FORMATS
from detap.formats.content import (
    Content,
    lost_columns,
    lost_keypoints,
    lost_lists,
    lost_polygons,
)
from detap.formats.new_folder import check_new, write_new
from detap.io.paths import Path
from detap.tables.arguments import check_table
from detap.tables.detection import Detections, GroundTruth, Name
from detap.text_input import suggest


class Converted(NamedTuple):
    """A finished conversion.

    Attributes
    ----------
    path : str
        The new folder, or file.
    files : tuple of str
        Paths relative to the folder; for a single file, its name in such a folder.
    notes : tuple of Note
        Lost data; a warning if metrics may change.
    """

    path: str
    files: tuple[str, ...]
    notes: tuple[Note, ...]


def convert(
    path: Path,
    ground_truth: GroundTruth | None = None,
    detections: Detections | None = None,
    *,
    to: str,
    file_names: Mapping[Name, str] | None = None,
    accept: Callable[[tuple[Note, ...]], None] | None = None,
) -> Converted:
    """Write tables as files of a format, bit-exactly if it supports that.

    Parameters
    ----------
    path : str or path
        A new folder. For COCO and only one of the two tables, also a new file ``*.json``.
    ground_truth : GroundTruth, optional
    detections : Detections, optional
        With the images and classes of `ground_truth`, if given.
    to : str
        The name of a format with a writer, such as ``"coco"``.
    file_names : mapping of int or str to str, optional
        File names of images; by default from the files that the tables were read from.
    accept : callable, optional
        Called with the notes before anything is written; may raise.

    Returns
    -------
    Converted

    Raises
    ------
    UsageError
        If the format is unknown, or both tables are missing.
    InputError
        If the format cannot represent the tables.
    OutputError
        If `path` exists or cannot be written.
    """
    writers = [line.name for line in FORMATS.lines.values() if line.writes]
    if to not in writers:
        hint = suggest(to, writers) or f"use one of {', '.join(writers)}"
        raise UsageError(f"format {to!r} is not writable; {hint}")
    if ground_truth is None and detections is None:
        raise UsageError("nothing to convert: pass ground_truth, detections or both")
    if ground_truth is not None:
        check_table(ground_truth, GroundTruth)
    if detections is not None:
        check_table(detections, Detections)
    if ground_truth is not None and detections is not None:
        detections = detections.reindex_like(ground_truth)
    for table in (ground_truth, detections):
        if table is not None and of_unknown_size(table):
            raise InputError(unsized_problem(table, "pixels are written"))
    target = os.fspath(path)
    only_one = ground_truth is None or detections is None
    single = only_one and to == "coco" and target.endswith(".json")
    check_new(target)
    names = file_names
    if names is None:
        names = {}
        if ground_truth is not None and ground_truth.format in FORMATS:
            names = FORMATS[ground_truth.format].file_names(ground_truth)
    notes: list[Note] = []
    content = Content(ground_truth, detections, names)
    files = list(FORMATS[to].write(content, notes))
    notes += lost_columns(ground_truth, to)
    if ground_truth is not None and to != "coco":
        notes += lost_lists(ground_truth, to)
    if to != "yolo":
        notes += lost_polygons((ground_truth, detections), to)
        notes += lost_keypoints((ground_truth, detections), to)
    if accept is not None:
        accept(tuple(notes))
    written = write_new(target, files, single=single)
    return Converted(target, tuple(written), tuple(notes))
