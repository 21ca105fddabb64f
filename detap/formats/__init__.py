"""Files of the outside world into tables, one module per format.

Nothing here imports numpy or lxml before a file is read.
"""

import os
import stat
from importlib import import_module
from typing import TYPE_CHECKING, Any

from detap.errors import UsageError
from detap.formats.files import STDIN

if TYPE_CHECKING:
    from detap.tables import Detections, GroundTruth

FORMATS = ("coco", "voc")
"""The formats that can be read, as `--format` names them."""

_Path = str | os.PathLike[str]

_SUFFIXES = {".json": "coco", ".json.gz": "coco", ".xml": "voc", ".txt": "voc"}
_HEAD = 64


def tell_format(ground_truth: _Path | None, detections: _Path | None = None) -> str:
    """Return which of :data:`FORMATS` the files are in, by their names and first bytes.

    Folders are VOC, since COCO has one file each. No more is looked at than a file's beginning,
    and only where its name does not tell.

    Parameters
    ----------
    ground_truth, detections : str or path, optional
        What is to be read; ``"-"`` tells nothing.

    Raises
    ------
    UsageError
        Where neither tells, or the two tell differently.
    """
    paths = [os.fspath(path) for path in (ground_truth, detections) if path is not None]
    told = {path: name for path in paths if (name := _tell(path))}
    if len(set(told.values())) > 1:
        said = ", ".join(f"{path} looks like {name}" for path, name in told.items())
        raise UsageError(f"{said}; convert one of them, or say --format if one is mistaken")
    if not told:
        named = " and ".join(paths) or "no file"
        raise UsageError(
            f"the format of {named} cannot be told; say --format {' or --format '.join(FORMATS)}"
        )
    return next(iter(told.values()))


def _tell(path: str) -> str | None:
    if path == STDIN:
        return None
    for suffix, name in _SUFFIXES.items():
        if path.lower().endswith(suffix):
            # A name tells nothing of a folder; what is absent is reported by its reader.
            return "voc" if os.path.isdir(path) else name
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            return "voc"
        return _tell_content(path) if stat.S_ISREG(mode) else None
    except (OSError, ValueError):
        return None


def _tell_content(path: str) -> str | None:
    with open(path, "rb") as file:
        head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    if head[:1] in (b"{", b"["):
        return "coco"
    return "voc" if head[:1] == b"<" else None


def read_ground_truth(path: _Path, *, format: str | None = None, **options: Any) -> "GroundTruth":
    """Read ground truth in any format.

    Parameters
    ----------
    path : str or path
        A file or a folder, as the format has it.
    format : str, optional
        One of :data:`FORMATS`; told from the files where left out.
    **options
        Those of the format's own function of this name.

    Raises
    ------
    UsageError
        Where the format is unknown or cannot be told.
    InputError
        Where the input is not right.
    """
    reader = _reader(format or tell_format(path))
    table: GroundTruth = reader.read_ground_truth(path, **options)
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
    reader = _reader(format or tell_format(None, path))
    table: Detections = reader.read_detections(path, truth, **options)
    return table


def _reader(name: str) -> Any:
    if name not in FORMATS:
        raise UsageError(f"format {name!r} is unknown; use {' or '.join(FORMATS)}")
    return import_module(f"detap.formats.{name}")
