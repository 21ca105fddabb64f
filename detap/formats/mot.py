"""MOTChallenge's text files: boxes of the frames of a sequence; tracks are not evaluated.

Reference: Dendorfer et al., MOT20: A benchmark for multi object tracking in crowded scenes, 2020,
and the format page of motchallenge.net: ``frame,id,x,y,w,h,conf[,class[,visibility]]``.
"""

import configparser
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from detap.errors import Note
from detap.formats.content import Content, number_text, scores_of
from detap.formats.reading.sniffing import first_line, head
from detap.formats.shapes.document import (
    DocumentFormat,
    Image,
    Item,
    NumbersDocument,
    words_of,
    written_images,
)
from detap.formats.text.folder import Folder, files_of, one_file
from detap.formats.text.lines import has_columns, numbers_of
from detap.formats.xywh import to_xywh
from detap.io.problems import FaultError
from detap.io.stream import refuse
from detap.tables.detection import Detections, GroundTruth

CLASSES = (
    *("pedestrian", "person on vehicle", "car", "bicycle", "motorbike", "non motorized vehicle"),
    *("static person", "distractor", "occluder", "occluder on the ground", "occluder full"),
    *("reflection", "crowd"),
)
"""The classes 1 to 13; 13 is MOT20's."""

_COLUMNS = ("frame", "id", "x", "y", "w", "h", "conf", "class", "visibility")
_FEWEST, _MOST = 6, 10  # columns; results have three more, which are -1
_DIGITS = 6  # of a frame's number in the name of its image
_MOST_FRAMES = 10**_DIGITS
_USAGE = f"write `{','.join(_COLUMNS)}`"
_FILES = {False: os.path.join("gt", "gt.txt"), True: os.path.join("det", "det.txt")}
_INFO, _NUMBERS = "seqinfo.ini", ("seqlength", "imwidth", "imheight")
_COUNTS = (7, 9, 10)  # columns that tell the format; VisDrone has eight


class Sequences(NumbersDocument):
    """The sequences of a folder, or one; the name of an image is ``SEQUENCE/000001``.

    A ground truth whose seventh column is 0 is ignored. Frames without a line are images of the
    ground truth if ``seqinfo.ini`` gives the length of the sequence.
    """

    box_format = "xywh"
    expected = f"{_USAGE}, one file per sequence"
    score_names = ("conf",)

    def folders(self) -> list[Folder]:
        """Return the file of each sequence."""
        file = one_file(self.given)
        if file is not None:
            parts = os.path.abspath(self.given).split(os.sep)
            is_inside = os.path.join(*parts[-2:]) in _FILES.values()
            name = parts[-3] if is_inside else os.path.splitext(parts[-1])[0]
            return [replace(file, members={name: ""})]
        inside = _below(self.given, self.scored)
        if inside:
            return [Folder(self.given, "", ".txt", inside)]
        folder = files_of(self.given, "", ".txt")
        if not folder.members:
            message = f"no sequences: neither */{_FILES[self.scored]} nor other .txt files"
            refuse(self.given, message, "use the folder of the sequences")
        return [folder]

    def numbers_of(self, words: list[str]) -> Any:
        """Return the numbers of a line by column."""
        return dict(zip(_COLUMNS, _numbers(words), strict=False))

    def images_of(self, content: Any, file: str) -> Iterator[tuple[str, Any]]:
        """Yield each frame with its lines and the size of its image."""
        length, *size = _sequence_info(file)
        length = 0 if self.scored else length or 0
        frames: dict[int, list[Any]] = {frame: [] for frame in range(1, length + 1)}
        for where, row in content:
            frames.setdefault(int(row["frame"]), []).append((where, row))
        for frame in sorted(frames):
            yield f"frame {frame}", (frame, frames[frame], *size)

    def image_of(self, location: str, record: Any, file: str) -> Image:
        """Return the image of a frame."""
        frame, rows, width, height = record
        name, folder = f"{frame:0{_DIGITS}}", f"{self.name}/img1"
        stem = f"{self.name}/{name}"
        return Image(stem, rows, width, height, stem=stem, file=f"{folder}/{name}.jpg")

    def item_of(self, record: Any) -> Item:
        """Return the object of a line."""
        number = int(record.get("class", -1))
        if number != -1 and not 1 <= number <= len(CLASSES):
            raise FaultError(f"class is {number}", f"expected 1 to {len(CLASSES)}, or -1")
        box = [record[name] for name in ("x", "y", "w", "h")]
        return Item(CLASSES[max(number, 1) - 1], box, record)

    def flags_of(self, attributes: Mapping[str, Any]) -> set[str]:
        """Return the flags of a ground truth; COCO's presets ignore crowds only."""
        is_ignored = not self.scored and attributes.get("conf") == 0
        return {"crowd", "ignore"} if is_ignored else set()


def _numbers(words: list[str]) -> list[float]:
    """Return the numbers of a line."""
    if not _FEWEST <= len(words) <= _MOST:
        message = f"{has_columns(len(words))}, expected {_FEWEST} to {_MOST}"
        raise FaultError(message, _USAGE)
    numbers = numbers_of((*_COLUMNS, "column 10")[: len(words)], words)
    if not (numbers[0].is_integer() and 1 <= numbers[0] < _MOST_FRAMES):
        raise FaultError(f"frame is {words[0]}", f"expected 1 to {_MOST_FRAMES - 1}")
    return numbers


def _below(path: str, scored: bool) -> dict[str, str]:
    """Return the files of a folder of sequences, or of one sequence, by name."""
    inside = _FILES[scored]
    if os.path.isfile(os.path.join(path, inside)):
        return {os.path.basename(os.path.abspath(path)): inside}
    with suppress(OSError), os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if entry.name[0] != "." and entry.is_dir())
        files = {name: os.path.join(name, inside) for name in names}
        return {n: f for n, f in files.items() if os.path.isfile(os.path.join(path, f))}
    return {}


def _sequence_info(file: str) -> list[int | None]:
    """Return length, width and height in the seqinfo.ini of a sequence; None if unknown."""
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(file))), _INFO)
    parser = configparser.ConfigParser(interpolation=None)
    try:
        values = parser["Sequence"] if parser.read(path, "utf-8") else {}
        numbers = [int(values[key]) if key in values else None for key in _NUMBERS]
    except (configparser.Error, KeyError, ValueError) as error:
        refuse(path, f"is not a {_INFO}: {str(error).splitlines()[0]}", "write [Sequence]")
    if not all(number is None or 0 < number < _MOST_FRAMES for number in numbers):
        refuse(path, f"{' or '.join(_NUMBERS)} is not a number from 1", "correct the file")
    return numbers


class MotChallenge(DocumentFormat):
    """MOTChallenge's ground truth and detections."""

    document = Sequences
    has_attributes = True
    boxes = ("xywh",)
    coordinates = "x, y, w, h"
    image_folders = (".",)
    lost_flags = ("difficult", "group_of")

    def fits(self, path: str) -> bool:
        """Return True for a folder of sequences, or lines with as many columns."""
        if os.path.isdir(path):
            if _below(path, scored=False) or _below(path, scored=True):
                return True
            line = first_line(path)
        else:
            line = head(path).decode("utf-8", "replace").lstrip("\ufeff\r\n").split("\n")[0]
        words = words_of(line)
        try:
            return len(words) in _COUNTS and bool(_numbers(words))
        except FaultError:
            return False

    def files(
        self, content: Content, table: GroundTruth | Detections, notes: list[Note]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the files of each sequence, and its seqinfo.ini with the ground truth."""
        scored = isinstance(table, Detections)
        boxes = to_xywh(table.corners, table.box_area)[0].tolist()
        if unknown := [name for name in table.classes if name not in CLASSES]:
            message = f"class {unknown[0]!r} is not one of MOTChallenge's"
            raise content.refuse(message, "map it with --class-map")
        numbers = [CLASSES.index(name) + 1 for name in table.classes]
        if isinstance(table, Detections):
            scores = scores_of(table)
        else:
            scores = (~(table.crowd | table.ignore)).astype(float).tolist()  # 0 for ignored ones

        def line(frame: int, row: int) -> str:
            further = () if scores is None else (scores[row], numbers[table.label[row]], -1)
            values = (frame, -1, *boxes[row], *further)
            return ",".join(number_text(float(value)) for value in values) + "\n"

        sequences: dict[str, list[tuple[int, tuple[float, float] | None, list[int]]]] = {}
        images = zip(content.images, written_images(content, table), strict=True)
        for image, (_, size, rows) in images:
            sequence, frame = _frame_of(content, str(image))
            sequences.setdefault(sequence, []).append((frame, size, rows))
        for name, frames in sequences.items():
            lines = [line(frame, row) for frame, _, rows in frames for row in rows]
            yield f"{name}/{_FILES[scored]}", "".join(lines).encode()
            if not scored:
                size, last = frames[-1][1], max(frame for frame, _, _ in frames)
                sides = "" if size is None else "imWidth={:.0f}\nimHeight={:.0f}\n".format(*size)
                info = f"[Sequence]\nname={name}\nimDir=img1\nseqLength={last}\n{sides}"
                yield f"{name}/{_INFO}", info.encode()


def _frame_of(content: Content, image: str) -> tuple[str, int]:
    """Return the sequence and the frame of an image."""
    match = re.fullmatch(r"(?:(.*)/)?([0-9]{1,6})", image)
    if match is None or not int(match[2]):
        message = f"image {image!r} is not SEQUENCE/NUMBER"
        raise content.refuse(message, "rename the images to frames, such as MOT17-02/000001")
    return match[1] or "sequence", int(match[2])
