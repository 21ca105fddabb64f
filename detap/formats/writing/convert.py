"""Tables into files of another format: the door."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from detap.checks.tables import of_unknown_size, unsized_problem
from detap.errors import InputError, Note, UsageError
from detap.formats.registry import FORMATS
from detap.formats.writing import coco, voc, yolo
from detap.formats.writing.content import Content, lost_columns, lost_lists, lost_polygons
from detap.formats.writing.folder import check_new, write_new
from detap.io.paths import Path
from detap.tables.detection import Detections, GroundTruth, Name
from detap.text_input import suggest

Writer = Callable[[Content, list[Note]], Iterator[tuple[str, bytes]]]

TARGETS: dict[str, Writer] = {"coco": coco.files, "voc": voc.files, "yolo": yolo.files}
"""What can be written, and by whom."""


class Converted(NamedTuple):
    """What was written.

    Attributes
    ----------
    path : str
        The new folder, or file.
    files : tuple of str
        Those in the folder, as paths relative to it; or what the one file would be called there.
    notes : tuple of Note
        What the format could not hold: a warning where numbers may change.
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
    """Write tables as files of a format, to the last bit where it can hold that.

    Parameters
    ----------
    path : str or path
        A folder that is not there yet. For COCO, where only one of the two is given, it may be a
        file, with a name that ends with ``.json``.
    ground_truth : GroundTruth, optional
    detections : Detections, optional
        Numbered as `ground_truth`, where that is given.
    to : {"coco", "voc", "yolo"}
        The format.
    file_names : mapping of int or str to str, optional
        What the file of each image is called; by default as the files say that the tables were read
        from.
    accept : callable, optional
        Takes the notes before anything is put in place, and may raise.

    Returns
    -------
    Converted
        With what the format could not hold.

    Raises
    ------
    UsageError
        Where there is no such format, or nothing to write.
    InputError
        Where the format cannot hold the tables at all.
    OutputError
        Where `path` exists, or cannot be written.
    """
    if to not in TARGETS:
        hint = suggest(to, TARGETS) or f"use one of {', '.join(TARGETS)}"
        raise UsageError(f"format {to!r} cannot be written; {hint}")
    if ground_truth is None and detections is None:
        raise UsageError("nothing to convert: give ground truth, detections, or both")
    if ground_truth is not None and detections is not None:
        detections = detections.numbered_as(ground_truth)
    for table in (ground_truth, detections):
        if table is not None and of_unknown_size(table):
            raise InputError(unsized_problem(table, "pixels are written"))
    target = os.fspath(path)
    one = ground_truth is None or detections is None
    single = one and to == "coco" and target.endswith(".json")
    check_new(target)
    names = file_names
    if names is None:
        source = FORMATS.get(ground_truth.format) if ground_truth is not None else None
        names = {} if source is None else source.file_names(ground_truth)
    notes: list[Note] = []
    content = Content(ground_truth, detections, names)
    found = list(TARGETS[to](content, notes))
    notes += lost_columns(ground_truth, to)
    if ground_truth is not None and to != "coco":
        notes += lost_lists(ground_truth, to)
    notes += lost_polygons((ground_truth, detections), to)
    if accept is not None:
        accept(tuple(notes))
    written = write_new(target, found, single=single)
    return Converted(target, tuple(written), tuple(notes))
