"""Tables as ``.npz`` files: numpy arrays, and a header in JSON.

Files are untrusted: nothing is unpickled, and every array is checked.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.stream import read_bytes, refuse
from detap.tables.columns import Name, check_scores
from detap.tables.masks import MOST_PIXELS, Masks

Column = NDArray[Any] | Masks

VERSION = 1
_HEADER = "detap"
_UNREADABLE: tuple[type[Exception], ...] = (
    *(BadZipFile, zlib.error, ValueError, KeyError, EOFError, OSError, MemoryError),
    *(RuntimeError, NotImplementedError),
)
_ROW_SHAPES: dict[str, tuple[tuple[int | None, ...], ...]] = {
    **dict.fromkeys(("image", "label", "mask", "box_area", "score", "area"), ((),)),
    "corners": ((4,),),
    "polygons": ((8,),),
    "keypoints": ((None, 2), (None, 3)),
}
"""The shapes that a row of each column may have; None for any number."""

_INDICES = ("image", "label", "mask")
"""Columns of int32; the others are float64."""


def encode(kind: str, header: Mapping[str, Any], columns: Mapping[str, Column]) -> memoryview:
    """Return the bytes of an ``.npz`` file."""
    text = json.dumps({"kind": kind, "version": VERSION, **header}).encode()
    arrays = {_HEADER: np.frombuffer(text, np.uint8)}
    for name, column in columns.items():
        if isinstance(column, Masks):
            arrays |= {f"{name}.{f.name}": getattr(column, f.name) for f in fields(Masks)}
        else:
            arrays[name] = column
    file = BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getbuffer()


def decode(
    data: bytes, kind: str, path: str, limits: Limits = DEFAULT_LIMITS
) -> tuple[dict[str, Any], dict[str, Column]]:
    """Return the header and columns of an ``.npz`` file."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            if sum(member.file_size for member in archive.infolist()) > limits.file_bytes:
                refuse(path, f"expands to more than {limits.file_bytes} bytes")
        with np.load(BytesIO(data), allow_pickle=False) as arrays:
            header = json.loads(arrays[_HEADER].tobytes()) if _HEADER in arrays else None
            if not isinstance(header, dict) or header.get("kind") != kind:
                refuse(path, f"is not a file of {kind} that detap wrote")
            if header.get("version") != VERSION:
                refuse(path, f"has version {header.get('version')!r}, expected {VERSION}")
            return header, _with_masks({name: arrays[name] for name in arrays if name != _HEADER})
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        refuse(path, f"is damaged or not an .npz file: {reason}")


def _with_masks(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Column]:
    """Return columns with the arrays of masks joined."""
    columns: dict[str, Column] = {}
    for name, array in arrays.items():
        stem, _, part = name.rpartition(".")
        if part not in {field.name for field in fields(Masks)}:
            columns[name] = array
        elif stem not in columns:
            parts = [arrays[f"{stem}.{field.name}"] for field in fields(Masks)]
            none: tuple[NDArray[Any], ...] = Masks.none().arrays
            for given, expected in zip(parts, none, strict=True):
                if given.dtype != expected.dtype or given.shape[1:] != expected.shape[1:]:
                    raise ValueError(f"{name} has dtype {given.dtype} and shape {given.shape}")
            columns[stem] = masks = Masks(*parts)
            _check_masks(masks)
    return columns


def _check_masks(masks: Masks) -> None:
    """Raise ValueError if runs do not fill the image, or points are not finite."""
    height, width = masks.sizes.T.astype(np.int64)
    sums = np.concatenate([[0], np.cumsum(masks.runs, dtype=np.int64)])
    filled = sums[masks.run_start[1:]] - sums[masks.run_start[:-1]] == height * width
    has_runs = np.diff(masks.ring_start) == 0
    if not (masks.sizes > 0).all() or (height * width > MOST_PIXELS).any():
        raise ValueError("a mask has an invalid size")
    if not filled[has_runs].all() or not np.isfinite(masks.points).all():
        raise ValueError("a mask has invalid runs or points")


def load(path: Path, limits: Limits = DEFAULT_LIMITS) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read detections, checked; KeyError, TypeError or ValueError: it is damaged."""
    header, columns = decode(read_bytes(path, limits), "detections", str(path), limits)
    header["images"], header["class_ids"] = map(names_of, (header["images"], header["class_ids"]))
    header["classes"] = tuple(map(str, header["classes"]))
    _check(columns, header, str(path), limits)
    return header, columns


def names_of(values: Sequence[Any]) -> tuple[Name, ...]:
    """Return distinct names, all text or all integers."""
    if {*map(type, values)} not in (set(), {int}, {str}) or len(set(values)) < len(values):
        raise ValueError("names are repeated, or neither text nor integers")
    return tuple(values)


def _check(
    columns: Mapping[str, Any], header: Mapping[str, Any], path: str, limits: Limits
) -> None:
    """Raise InputError if a column has other values than tables have."""
    rows = len(columns["image"])
    if rows > limits.records:
        refuse(path, *limits.exceeded)
    if len(header["classes"]) != len(header["class_ids"]):
        refuse(path, "is damaged: classes and class_ids differ in length")
    if ("mask" in columns) != ("masks" in columns):
        refuse(path, "is damaged: only one of mask and masks is there")
    for name, column in columns.items():
        if name == "masks":
            continue
        dtype = np.int32 if name in _INDICES else np.float64
        shape = (None, *column.shape[2:]) if name == "keypoints" else column.shape[1:]
        if column.dtype != dtype or shape not in _ROW_SHAPES[name] or column.shape[:1] != (rows,):
            refuse(path, f"is damaged: {name} has dtype {column.dtype} and shape {column.shape}")
        if name == "score" and np.isnan(column).any():
            check_scores(column, lambda row: (path, f"row {row}"))
        elif dtype is np.float64 and not np.isfinite(column).all():
            refuse(path, f"is damaged: {name} has values that are not finite")
    check_indices(columns, len(header["images"]), len(header["classes"]), path)


def check_indices(columns: Mapping[str, Any], images: int, classes: int, path: str) -> None:
    """Raise InputError if indices of images, classes or masks are beyond their number."""
    masks = len(columns.get("masks", ()))
    for name, count in zip(_INDICES, (images, classes, masks), strict=True):
        column = columns.get(name, ())
        if len(column) and not 0 <= column.min() <= column.max() < count:
            refuse(path, f"is damaged: {name} has an index outside 0 to {count - 1}")
