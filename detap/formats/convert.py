"""Convert tables to files of another format."""

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from detap.checks.tables import of_unknown_size, unsized_problem
from detap.errors import InputError, Note, OutputError, UsageError
from detap.escaping import escape
from detap.formats.catalogue import FORMATS
from detap.formats.class_map import map_tables
from detap.formats.content import Content, lost
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
    class_map: Any = None,
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
    class_map : path or mapping, optional
        Other class names, as for :func:`detap.evaluate`; a note says what it did.

    Returns
    -------
    Converted

    Raises
    ------
    UsageError
        If the format is unknown, or both tables are missing.
    InputError
        If the format cannot represent the tables, or the class map is invalid.
    OutputError
        If `path` exists or cannot be written.
    """
    writers = [line.name for line in FORMATS.lines.values() if line.writes]
    if to not in writers:
        hint = suggest(to, writers) or f"use one of {', '.join(writers)}"
        raise UsageError(f"format {to!r} is not writable; {hint}")
    if ground_truth is None and detections is None:
        raise UsageError("nothing to convert: pass ground_truth, detections or both")
    for given, kind in ((ground_truth, GroundTruth), (detections, Detections)):
        if given is not None:
            check_table(given, kind)
    if ground_truth is not None and detections is not None:
        detections = detections.reindex_like(ground_truth)
    notes: list[Note] = []
    if class_map is not None:
        [ground_truth], [detections] = map_tables(class_map, [ground_truth], [detections])
        tables = (table for table in (ground_truth, detections) if table is not None)
        notes += (note for table in tables for note in table.notes if note.code == "class-map")
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
    content = Content(ground_truth, detections, names)
    files = list(FORMATS[to].write(content, notes))
    notes += _lost(content, to)
    if accept is not None:
        accept(tuple(notes))
    written = write_new(target, files, single=single)
    return Converted(target, tuple(written), tuple(notes))


def _lost(content: Content, to: str) -> Iterator[Note]:
    """Yield the notes of data that no format, or not this one, can represent."""
    truth = content.ground_truth
    if truth is not None and truth.extra:
        yield from lost(f"columns not supported by {to}: {', '.join(truth.extra)}", len(truth))
    if truth is not None and to != "coco":
        lists = sum(map(len, truth.listed.values()))
        message = f"class lists of images (LVIS, Open Images) not supported by {to}"
        yield from lost(message, lists)
        message = f"frequency groups of classes not supported by {to}"
        yield from lost(message, len(truth.groups))
    messages = {
        "polygons": f"quadrilaterals are written to {to} as bounding boxes",
        "keypoints": f"keypoints are not written to {to}",
    }
    for name, message in messages.items() if to != "yolo" else ():
        tables = [t for t in (truth, content.detections) if t is not None]
        yield from lost(message, sum(len(t) for t in tables if getattr(t, name) is not None))


def check_new(path: str) -> None:
    """Raise OutputError if the target exists or its folder does not."""
    if not path or "\0" in path:
        raise OutputError(f"{escape(path) or 'output'}: invalid output path")
    if os.path.lexists(path):
        raise OutputError(f"{escape(path)}: already exists; use another name, or remove it")
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        raise OutputError(f"{escape(path)}: {escape(parent)} is not a folder; create it first")


def write_new(path: str, files: Iterable[tuple[str, bytes]], *, single: bool) -> list[str]:
    """Write files into a new folder, or a single new file, or nothing; return their names."""
    names = []
    parent = os.path.dirname(os.path.abspath(path))
    try:
        with tempfile.TemporaryDirectory(
            prefix=".detap-", dir=parent, ignore_cleanup_errors=True
        ) as folder:
            inside = os.path.join(folder, "new")
            os.mkdir(inside)
            for name, data in files:
                file = os.path.join(inside, *name.split("/"))
                os.makedirs(os.path.dirname(file), exist_ok=True)
                # On some systems, names that differ only in case are the same file.
                with open(file, "xb") as opened:
                    opened.write(data)
                names.append(name)
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, "already exists", path)
            moved = os.path.join(inside, names[0]) if single else inside
            if single:
                with suppress(OSError):  # a link does not replace a file created meanwhile
                    os.link(moved, path)
                    return names
            os.rename(moved, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{escape(path)}: cannot be written: {reason}") from error
    return names
