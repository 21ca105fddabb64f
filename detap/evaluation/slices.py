"""Slices: groups of images by tag, such as night and day.

Tags come from a file, or from an image attribute in the ground truth files.
"""

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from typing import Any

from detap.errors import InputError, Note, Problem
from detap.io.json_text import decode, distinct
from detap.io.stream import read_bytes, refuse
from detap.tables.columns import Name

_HEADINGS = ("image", "tag")
_LONGEST = 200


def read_slices(path: str, images: Iterable[Name]) -> tuple[dict[str, list[Name]], list[Note]]:
    """Read the images of each slice."""
    name_by_text = {str(name): name for name in images}
    tags: dict[str, set[str]] = {}
    text, is_csv = decode(read_bytes(path), path), os.path.splitext(path)[1].lower() == ".csv"
    for image, tag in _csv_pairs(path, text) if is_csv else _json_pairs(path, text, name_by_text):
        members = tags.setdefault(tag, set())
        if image is not None:
            members.add(image)
    tagged = set[str]().union(*tags.values())
    unknown = tagged - name_by_text.keys()
    if unknown and unknown == tagged:
        message = f"no image is in the ground truth (e.g. {min(unknown)!r})"
        refuse(path, message, "use the image names of the ground truth")
    notes = []
    if unknown:
        message = f"slice images not in the ground truth (e.g. {min(unknown)!r})"
        notes.append(Note("slice-unknown-image", message, len(unknown)))
    untagged = [name for name in name_by_text if name not in tagged]
    if untagged:
        message = f"images without a slice (e.g. {untagged[0]!r})"
        notes.append(Note("images-without-slice", message, len(untagged), severity="info"))
    return _ordered(tags, name_by_text), notes


def slices_by(
    attributes: Mapping[Name, Any], attribute: str, images: Iterable[Name]
) -> tuple[dict[str, list[Name]], list[Note]]:
    """Return slices by the value of an image attribute."""
    name_by_text = {str(name): name for name in images}
    tags: dict[str, set[str]] = {}
    for image, value in attributes.items():
        if value is not None and str(image) in name_by_text:
            text = value if isinstance(value, str) else json.dumps(value)
            tags.setdefault(f"{attribute}={text[:_LONGEST]}", set()).add(str(image))
    notes = []
    untagged = len(name_by_text) - sum(map(len, tags.values()))
    if untagged:
        message = f"images without attribute {attribute!r} are in no slice"
        notes.append(Note("images-without-slice", message, untagged, severity="info"))
    return dict(sorted(_ordered(tags, name_by_text).items())), notes


def _ordered(
    tags: Mapping[str, set[str]], name_by_text: Mapping[str, Name]
) -> dict[str, list[Name]]:
    return {
        tag: [name for text, name in name_by_text.items() if text in members]
        for tag, members in tags.items()
    }


def _csv_pairs(path: str, text: str) -> Iterator[tuple[str | None, str]]:
    rows = csv.reader(StringIO(text), strict=True)
    try:
        headings = next(rows, None)
        if headings is None or tuple(cell.strip().lower() for cell in headings) != _HEADINGS:
            refuse(path, "is not the header image,tag", "start the file with image,tag", "line 1")
        for row in rows:
            if not row:
                continue
            if len(row) != len(_HEADINGS) or not all(row):
                message = f"has {len(row)} columns, or an empty one"
                hint = "write image,tag; one line per tag of an image"
                refuse(path, message, hint, f"line {rows.line_num}")
            yield row[0], row[1]
    except csv.Error as error:
        raise InputError(Problem(path, f"line {rows.line_num}", f"is not CSV: {error}")) from None


def _json_pairs(
    path: str, text: str, name_by_text: Mapping[str, Name]
) -> Iterator[tuple[str | None, str]]:
    """Yield pairs of image and tag; image is None for an empty tag."""
    try:
        record = json.loads(text, object_pairs_hook=distinct)
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(path, "", f"is not JSON: {error}")) from None
    if not isinstance(record, dict) or not record:
        refuse(path, "is not a JSON object", 'write {"image": ["tag"]} or {"tag": ["image"]}')
    # Keys are images if more keys than values are known images.
    keys = sum(key in name_by_text for key in record)
    values = sum(
        str(entry) in name_by_text for value in record.values() for entry in _as_list(value)
    )
    for key, value in record.items():
        if value == [] and (keys < values or not keys):
            yield None, key
        for entry in _as_list(value):
            if isinstance(entry, bool) or not isinstance(entry, str | int):
                refuse(path, f"{entry!r} is not a name", "use names or integers", f"entry {key!r}")
            yield (key, str(entry)) if keys >= values else (str(entry), key)


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]
