"""Detect the format of a path by its name, the first bytes of files, and the formats' ``fits``."""

import os
import re
import stat
from contextlib import suppress
from itertools import islice

from detap.errors import InputError, Note, Problem, UsageError
from detap.formats.base import Format, Line
from detap.formats.catalogue import FORMATS
from detap.formats.options import DETECTIONS, TRUTH
from detap.formats.reading.sniffing import head
from detap.formats.subsets import subsets_of
from detap.io.file_kinds import BYTE_ORDER_MARK
from detap.io.paths import STDIN, Path, is_url, shown

_HEAD = 64
"""Bytes read to detect a format by its first ones."""
_MAX_ENTRIES = 256
"""Folder entries read to detect a format."""
_MAX_FILES = 16
"""Files of a folder whose content is read to detect a format."""

_UNSUPPORTED = {
    ".tfrecord": ("TFRecord", "export COCO JSON, or the CSV that it was made from"),
    ".record": ("TFRecord", "export COCO JSON, or the CSV that it was made from"),
    ".cache": ("a cache of Ultralytics", "use the data.yaml, or the folder of the labels"),
}
"""Titles and hints by a part of the file name."""


def detect_format(ground_truth: Path | None, detections: Path | None = None) -> Format:
    """Detect the format of ground truth, or else of detections, by name and content."""
    paths = {TRUTH: ground_truth, DETECTIONS: detections}
    for role, path in paths.items():
        if path is not None:
            file_format = only_format(path, matching_formats(os.fspath(path)), role)
            if file_format is not None:
                return file_format
    given = [os.fspath(path) for path in paths.values() if path is not None]
    for text in given:
        for part, (title, hint) in _UNSUPPORTED.items():
            if part in os.path.basename(text).lower():
                raise InputError(Problem(shown(text), "", f"{title} is not supported", hint))
    for text in given:
        if text != STDIN and not is_url(text) and not os.path.lexists(text):
            raise InputError(Problem(text, "", "no such file or directory"))
    inputs = " and ".join(given) or "no file"
    choices = " or --format ".join(FORMATS)
    raise UsageError(
        f"cannot detect the format of {inputs}; use --format {choices} (format= in Python)"
    )


def detections_format(path: Path, gt_format: Format) -> Format:
    """Return the format of detections, that of their ground truth if it may be."""
    names = matching_formats(os.fspath(path))
    if gt_format.name in names:
        return gt_format
    return only_format(path, names, DETECTIONS) or gt_format


_IOU_TYPES = {"masks": "segm", "keypoints": "keypoints"}


def preset_of_results(
    preset: str, gt_format: Format, dt_format: Format, path: str
) -> tuple[str, tuple[Note, ...]]:
    """Return the default preset, that of masks or keypoints if results have no boxes; a note."""
    if preset != "coco" or not (gt_format.by_ids and gt_format.geometries):
        return preset, ()
    geometry, has_boxes = dt_format.shapes_of_results(path)
    if not geometry:
        return preset, ()
    iou_type = _IOU_TYPES[geometry]
    if has_boxes:
        message = f"{geometry} are not scored; --iou-type {iou_type} scores them"
        return preset, (Note("shapes-not-scored", message, severity="info"),)
    message = (
        f"results have {geometry} and no bbox, so the preset is coco-{iou_type}; --iou-type bbox "
        "scores the boxes around them"
    )
    return f"coco-{iou_type}", (Note("preset-of-results", message, severity="info"),)


def only_format(path: Path, names: list[str], role: str) -> Format | None:
    """Return the only format of the names, None without any; raise UsageError for several."""
    if len(names) > 1:
        option = "--gt-format" if role == TRUTH else "--dt-format"
        titles = " or ".join(FORMATS.lines[name].title for name in names)
        choices = f" or {option} ".join(names)
        message = f"{os.fspath(path)} may be {titles}; use {option} {choices} (format= in Python)"
        raise UsageError(message)
    return FORMATS[names[0]] if names else None


def matching_formats(path: str) -> list[str]:
    """Return the names of the possible formats; sniffed formats take precedence."""
    if path == STDIN:
        return []
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        mode = 0  # the reader reports missing files
    if stat.S_ISDIR(mode):
        return _matching_folder_formats(path)
    name = shown(path).removesuffix("?...").lower()
    by_suffix = [line for line in FORMATS.lines.values() if name.endswith(line.suffixes)]
    if not stat.S_ISREG(mode):
        plain = [line.name for line in by_suffix if not line.fits]
        return plain[:1] or [line.name for line in by_suffix[:1]]
    fitting = [line.name for line in by_suffix if line.fits == "files" and _fits(line, path)]
    if not by_suffix:
        data = head(path, _HEAD).removeprefix(BYTE_ORDER_MARK).lstrip()
        by_suffix = [line for line in FORMATS.lines.values() if data.startswith(line.heads)]
    return fitting or [line.name for line in by_suffix if not line.fits][:1]


def _fits(line: Line, path: str) -> bool:
    """Return True if the format fits a path; its module is imported only if the content may."""
    if line.pattern and not os.path.isdir(path):
        data = head(path).removeprefix(BYTE_ORDER_MARK).lstrip()
        if re.match(line.pattern, data, re.DOTALL) is None:
            return False
    return FORMATS[line.name].fits(path)


def _matching_folder_formats(path: str) -> list[str]:
    """Return the possible formats of a folder: a data set, or files."""
    exported = [
        line.name
        for line in FORMATS.lines.values()
        if (files := [*subsets_of(path, line.subsets).values()][:_MAX_FILES])
        and (not line.fits or all(_fits(line, file) for file in files))
    ]
    if exported:
        return exported
    entries, folders = _entries(path)
    names = [name.lower() for name in entries]
    fitting = [
        line.name
        for line in FORMATS.lines.values()
        if line.fits
        and line.folders
        and (
            "annotations" not in folders
            or (line.inside and os.path.isdir(os.path.join(path, line.inside)))
        )
        and (folders or any(name.endswith(line.suffixes) for name in names))
        and _fits(line, path)
    ]
    of_files = [
        name
        for name in _formats_of_files(path, entries)
        if name not in fitting and (FORMATS.lines[name].fits or not fitting)
    ]
    if of_files:
        return [*fitting, *of_files]
    # The first folder format, or file format if only its files are present.
    lines = [line for line in FORMATS.lines.values() if not line.fits]
    possible = [line for name in names for line in lines if name.endswith(line.suffixes)]
    if not possible or "annotations" in folders or any(line.folders for line in possible):
        possible = [line for line in lines if line.folders]
    plain = possible[0]
    # Only its first suffix counts: a text file in a folder of other files may list the classes.
    suffixes = tuple(suffix for name in fitting for suffix in FORMATS.lines[name].suffixes)
    count = sum(n.endswith(plain.suffixes[:1]) and not n.endswith(suffixes) for n in names)
    half = 2 * count >= max(1, sum(n.endswith(suffixes) for n in names))
    return [*fitting, plain.name] if half or not fitting else fitting


def _formats_of_files(path: str, names: list[str]) -> list[str]:
    """Return the formats of the first files, if the content of one is that of a file format."""
    lines = [f for f in FORMATS.lines.values() if f.fits == "files" and not f.folders]
    suffixes = tuple(suffix for line in lines for suffix in line.suffixes)
    files = (name for name in names if name.lower().endswith(suffixes))
    matches = {
        name
        for file in islice(files, _MAX_FILES)
        for name in matching_formats(os.path.join(path, file))
    }
    if not any(line.name in matches for line in lines):
        return []
    return [name for name in FORMATS if name in matches]


def _entries(path: str) -> tuple[list[str], set[str]]:
    """Return the names of the first files and subfolders of a folder."""
    names: list[str] = []
    folders = set()
    with suppress(OSError), os.scandir(path) as entries:
        for entry in islice(entries, _MAX_ENTRIES):
            if entry.is_dir():
                folders.add(entry.name.lower())
            elif entry.name[0] != ".":
                names.append(entry.name)
    return names, {name for name in folders if name[0] != "."}
