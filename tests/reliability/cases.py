"""The cases of the corpus, and the kinds of input (rows) that they cover."""

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

BOTH = ("coco", "voc")
COCO = ("coco",)
VOC = ("voc",)

NAMES = {
    "escape": "\x1b[31mred\x1b[0m",
    "nul-and-bell": "a\0b\x07",
    "c1": "\x9b31m",
    "bidirectional": "abc\u202edcba",
    "newline": "one\ntwo: AP 1.0",
    "markup": "[bold red]x[/] :smile:",
    "formula": "=cmd|' /C calc'!A0",
    "html": "<script>alert(1)</script>",
    "percent": "100%s %n",
    "zero-width": "a\u200bb\ufeff",
    "long": "n" * 500,
    "empty": "",
    "emoji": "\U0001f408",
    "line-separator": "a\u2028b",
}
"""Names of classes."""

ROWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "any-annotation-id": ("annotation id 0, negative or huge: an id like any other", COCO),
    "equal-ids": ("one id for two different records: error", COCO),
    "repeated-record": ("the same record repeated: warning, counted once", COCO),
    "no-annotation-ids": ("annotation ids missing: accepted, warning", COCO),
    "unknown-image": ("detection on an unknown image: error", BOTH),
    "unknown-category": ("detection of an unknown category: warning, error if all are", BOTH),
    "nothing-in-common": ("all category ids one off, or no image in common: error", BOTH),
    "dangling-truth": ("ground truth of an unknown image or category: error", COCO),
    "no-detections": ("empty results: AP 0, warning", BOTH),
    "no-truth": ("ground truth without annotations: error", BOTH),
    "same-file": ("ground truth given as results: error", BOTH),
    "not-finite": ("score, box or area NaN, infinite or beyond every float: error", BOTH),
    "no-score": ("score missing or null: error", BOTH),
    "any-score": ("logits, percent, negative scores: accepted", BOTH),
    "negative-size": (
        "negative width or height, xmax < xmin: IoU 0, warning; error from one in twenty",
        BOTH,
    ),
    "fractions": ("normalized boxes instead of pixels: error", BOTH),
    "as-is": ("input that fails a plausibility check, with --as-is: scored, warning", BOTH),
    "no-box": ("box missing, null, not of four numbers: error", BOTH),
    "xyxy-for-xywh": ("xyxy boxes instead of xywh: warning", BOTH),
    "empty-detection": ("zero-area detection: false positive", COCO),
    "empty-truth": ("zero-area ground truth: warning, cannot be matched", COCO),
    "one-pixel": ("VOC box that begins and ends at one pixel: one pixel wide", VOC),
    "beyond-image": ("box beyond the image: not clipped, warning", BOTH),
    "defaults": ("iscrowd or area missing: 0, w * h, warning", COCO),
    "negative-area": ("negative area: error", COCO),
    "ignore": ("ignore: no effect, warning", COCO),
    "whole-float-id": ("id as a whole float: accepted", COCO),
    "wrong-id": ("id as bool, fraction, or of another type than in the other file: error", COCO),
    "string-ids": ("string ids in both files: compared exactly", COCO),
    "duplicate-key": ("duplicate JSON key: error", COCO),
    "encoding": ("byte order mark stripped; UTF-16, trailing bytes, truncated: error", BOTH),
    "gzip": (".gz accepted, with a limit on expansion", BOTH),
    "nesting": ("deep nesting: error", BOTH),
    "ties": ("equal scores: image id, then file order; VOC file order", BOTH),
    "stem": ("VOC image id is the XML's stem", VOC),
    "no-class-file": ("VOC class without detection file: AP 0, in the mean, warning names it", VOC),
    "only-ignored": ("class with difficult or crowd objects only: undefined", BOTH),
    "listed-twice": ("VOC image twice in the set: warning names it, counted once", VOC),
    "odd-numbers": ("2_63, full-width digits, nan, 0x10, 1,5 in text: error with line", VOC),
    "doctype": ("XML with DOCTYPE or entities: error", VOC),
    "comments": ("XML comments inside a number: skipped", VOC),
    "xml-encoding": ("XML in UTF-16 or Latin-1, declared: read", VOC),
    "bad-object": ("difficult other than 0 or 1; object without name or box: error", VOC),
    "case-of-names": ("names that differ in case only: distinct, warning", BOTH),
    "object-twice": ("the same object twice in a VOC file: both count, warning", VOC),
    "two-files": ("two detection files for one class: error", VOC),
    "columns": ("a line of more or fewer columns: error with line", VOC),
    "other-content": ("LFS pointer, HTML, merge markers, pickle, JSON Lines, ...: error", BOTH),
    "leftovers": ("other files in a folder: skipped", VOC),
    "overflow": ("box area that overflows: error", COCO),
    "no-file": ("FIFO, device, socket, folder, link loop, nothing: refused", BOTH),
    "target": ("unwritable or full target: error, the old report untouched", BOTH),
    "names": ("hostile class names: printed as text", BOTH),
    "mask-forms": ("masks as polygons or run lengths of either kind, in either file", COCO),
    "mask-crowd": ("a crowd mask of any form: matches any number of detections", COCO),
    "mask-counts": ("run lengths that do not sum to h * w, or are not whole numbers: error", COCO),
    "mask-string": ("invalid or truncated compressed run lengths: error", COCO),
    "mask-size": ("size swapped, missing, null, not the image's: error", COCO),
    "mask-polygon": ("polygon of fewer than three points, odd length, not of numbers: error", COCO),
    "no-mask": ("segmentation missing, null, empty, something else: error", COCO),
    "mask-mixed": ("results with boxes, masks, or both: each row by its own", COCO),
    "mask-beyond-image": ("mask beyond the image: clipped", COCO),
    "mask-empty": ("mask without pixels: like a zero-area box", COCO),
    "pose-forms": ("any v in results, any position with v 0: accepted", COCO),
    "pose-length": (
        "keypoints empty, not in triples, or of different numbers: error",
        COCO,
    ),
    "pose-number": ("keypoint that is not a number or not in pixels: error", COCO),
    "no-pose": ("keypoints missing, null, something else: error", COCO),
    "pose-visibility": ("v other than 0, 1 and 2: labeled above 0, warning", COCO),
    "pose-count": ("num_keypoints not a number: error; missing or contradicting: warning", COCO),
    "unsized-image": ("image without size: taken from its run lengths; error for polygons", COCO),
}
"""Each kind of input, the expected behavior, and the formats that it applies to."""


@dataclass(frozen=True)
class Refused:
    """Status 2 and a message: the file as given, and regular expressions for the rest."""

    file: str
    location: str  # in the file; empty for the whole file
    says: str  # what is wrong, with the value


@dataclass(frozen=True)
class Scored:
    """Status 0 and these numbers, worked by hand; None is undefined."""

    summary: Mapping[str, float | None]
    notes: tuple[str, ...] = ()  # codes of required ones; any other warning is an error
    classes: Mapping[str, float | None] = field(default_factory=dict)  # the AP of some


@dataclass(frozen=True)
class Case:
    """Two inputs, relative to a folder, and the expected outcome of the command."""

    row: str  # a key of ROWS
    name: str  # unique among the cases of its format
    format: str  # "coco" or "voc"
    build: Callable[[Path], None]  # writes the inputs into an empty folder
    expect: Refused | Scored
    gt: str
    dt: str
    options: tuple[str, ...] = ()
    iou_type: str = ""  # boxes if empty
    stdin: str = ""
    output: str = "report.json"
    for_peers: bool = True  # other evaluators can run it too

    @property
    def id(self) -> str:
        """The parameter id in tests."""
        return "-".join(filter(None, (self.format, self.iou_type, self.row, self.name)))


def replacing(
    build: Callable[[Path], None], make: Callable[[Path], object], which: str
) -> Callable[[Path], None]:
    """Return a function that builds the usual files and then replaces one."""

    def built(folder: Path) -> None:
        build(folder)
        (folder / which).unlink(missing_ok=True)
        make(folder / which)

    return built


def make_socket(path: Path) -> None:
    """Make a socket, as a file."""
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket may have 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)
