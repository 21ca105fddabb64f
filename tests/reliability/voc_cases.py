"""The corpus for VOC files: variations of one small tree, worked by hand.

The tree: two images, two classes. Of class cat two ground truths; by falling score the detections
are TP, FP, TP: precision at recall 1/2 is 1, at recall 1 it is 2/3, so that the area under
the envelope is (1 + 2/3) / 2. Of class dog one ground truth, matched: AP = 1.
"""

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from tests.reliability.cases import NAMES, Case, Refused, Scored, replacing

CAT = (1 + 2 / 3) / 2
BASE = (CAT + 1) / 2

GT, DT = "gt", "dt"
A, B = "gt/a.xml", "gt/b.xml"
CATS, DOGS = "dt/det_test_cat.txt", "dt/det_test_dog.txt"

CAT_BOX = (10, 10, 30, 30)
DOG_BOX = (50, 50, 80, 80)

Build = Callable[[Path], object]


def object_xml(name: str, box: Any, inside: str = "<difficult>0</difficult>") -> str:
    """Return an object element; a box given as text is inserted unchanged."""
    if not isinstance(box, str):
        corners = zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
        box = "".join(f"<{corner}>{value}</{corner}>" for corner, value in corners)
        box = f"<bndbox>{box}</bndbox>"
    return f"<object><name>{name}</name>{inside}{box}</object>"


def xml(*objects: str, name: str = "a.jpg", size: str = "") -> str:
    size = size or "<size><width>100</width><height>100</height><depth>3</depth></size>"
    return f"<annotation><filename>{name}</filename>{size}{''.join(objects)}</annotation>"


def usual_a(**changes: str) -> str:
    return changes.get("all") or xml(
        changes.get("cat", object_xml("cat", CAT_BOX)),
        changes.get("dog", object_xml("dog", DOG_BOX)),
    )


def cat(*changes: Any) -> dict[str, str]:
    """Return the annotation of a with another cat: its name, box and other elements."""
    return {A: usual_a(cat=object_xml(*changes))}


LINES = ("a 0.9 10 10 30 30", "a 0.8 60 10 80 30", "b 0.7 10 10 30 30")


@dataclass
class Tree:
    """The files of a case by path, text or bytes; None removes one."""

    files: dict[str, str | bytes | None] = field(default_factory=dict)

    def __call__(self, folder: Path) -> None:
        usual: dict[str, str | bytes | None] = {
            A: usual_a(),
            B: xml(object_xml("cat", CAT_BOX), name="b.jpg"),
            CATS: "".join(f"{line}\n" for line in LINES),
            DOGS: "a 0.6 50 50 80 80\n",
        }
        for name, text in (usual | self.files).items():
            if text is None:
                continue
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())


CASES: list[Case] = []


def _add(row: str, name: str, expect: Refused | Scored, given: Any, more: dict[str, Any]) -> None:
    build = given if callable(given) else Tree(given or {})
    given_more: dict[str, Any] = {"gt": GT, "dt": DT, "for_peers": False, **more}
    CASES.append(Case(row, name, "voc", build, expect, **given_more))


def refused(  # noqa: PLR0917 - a table, column by column
    row: str, name: str, file: str, location: str, says: str, files: Any = None, **more: Any
) -> None:
    _add(row, name, Refused(file, location, says), files, more)


def scored(  # noqa: PLR0917
    row: str,
    name: str,
    value: float | None,
    notes: tuple[str, ...] = (),
    classes: dict[str, float | None] | None = None,
    files: Any = None,
    **more: Any,
) -> None:
    _add(row, name, Scored({"mAP": value}, notes, classes or {}), files, more)


def cats(*lines: str) -> dict[str, str]:
    """Return the detections of class cat with these lines."""
    return {CATS: "".join(f"{line}\n" for line in lines)}


def line_2(text: str) -> dict[str, str]:
    return cats(LINES[0], text, LINES[2])


# --- names of images and classes

scored("stem", "plain", BASE, classes={"cat": CAT, "dog": 1.0})
scored("stem", "not-the-filename-element", BASE, files={A: usual_a().replace("a.jpg", "b.jpg")})
digits = {
    A: None,
    "gt/000001.xml": usual_a(),
    **cats(*(line.replace("a ", "000001 ") for line in LINES)),
    DOGS: "000001 0.6 50 50 80 80\n",
}
scored("stem", "digits", BASE, files=digits)
digits = {A: None, "gt/000001.xml": usual_a(), **cats("1 0.9 10 10 30 30"), DOGS: None}
refused("stem", "digits-to-the-letter", CATS, "line 1", "'1' is not in", digits)
says = "image 'c' is not in the ground truth"
refused("unknown-image", "one", CATS, "line 2", says, line_2("c 0.8 1 1 5 5"))
SET = ("--image-set", "set.txt")
outside = {"set.txt": "a\n"}
refused(
    "unknown-image",
    "outside-the-set",
    CATS,
    "line 3",
    "'b' is not in the ground truth",
    outside,
    options=SET,
)
BIRDS = {"dt/det_test_bird.txt": "a 0.5 1 1 5 5\n"}
scored("unknown-category", "extra", BASE, ("unknown-classes",), {"bird": None}, BIRDS)
refused("unknown-category", "all", DT, "", "bird", {CATS: None, DOGS: None, **BIRDS})
elsewhere = {**cats("x 0.9 10 10 30 30", "y 0.9 10 10 30 30"), DOGS: None}
refused("nothing-in-common", "images", CATS, "line 1", "'x'", elsewhere)
numbered = {
    CATS: None,
    DOGS: None,
    "dt/a.txt": "0 0.9 10 10 30 30\n1 0.6 50 50 80 80\n",
    "dt/b.txt": "0 0.7 10 10 30 30\n",
}
refused("nothing-in-common", "numbered-classes", DT, "", "class-names", numbered)
with_names = {
    **numbered,
    "dt/a.txt": "0 0.9 10 10 30 30\n0 0.8 60 10 80 30\n1 0.6 50 50 80 80\n",
    "names.txt": "cat\ndog\n",
}
NAMED = ("--class-names", "names.txt")
scored("nothing-in-common", "numbers-with-names", BASE, files=with_names, options=NAMED)
cased = {
    A: usual_a(dog=object_xml("Cat", DOG_BOX)),
    DOGS: None,
    "dt/det_test_Cat.txt": "a 0.6 50 50 80 80\n",
}
both = {"Cat": 1.0, "cat": CAT}
scored("case-of-names", "two", (CAT + 1) / 2, ("names-differ-in-case",), {**both}, cased)

# --- nothing there

scored("no-detections", "empty-files", 0.0, ("no-detections",), files={CATS: "", DOGS: ""})
scored("no-detections", "blank-lines", 0.0, ("no-detections",), files={CATS: "\n \n", DOGS: "\n"})
for row, side, says, absent in (
    ("no-detections", DT, "no detections", (CATS, DOGS)),
    ("no-truth", GT, "no annotation", (A, B)),
):

    def empty(folder: Path, side: str = side, absent: tuple[str, ...] = absent) -> None:
        Tree(dict.fromkeys(absent))(folder)
        (folder / side).mkdir()

    refused(row, "empty-folder", side, "", says, empty)
refused("no-truth", "empty-xml", B, "", "is empty; expected an XML annotation", {B: ""})
scored("no-truth", "one-image-without-objects", BASE, files={"gt/c.xml": xml()})
refused("same-file", "truth-as-results", GT, "", "txt", {}, dt=GT)
refused("same-file", "results-as-truth", DT, "", "column", {}, gt=DT)
scored("no-class-file", "dog", CAT / 2, ("classes-without-file",), {"dog": 0.0}, {DOGS: None})
scored("no-class-file", "empty-dog", CAT / 2, (), {"dog": 0.0}, {DOGS: ""})
IGNORED_CAT, IGNORED_DOG = (
    object_xml(name, box, "<difficult>1</difficult>")
    for name, box in (("cat", CAT_BOX), ("dog", DOG_BOX))
)
scored("only-ignored", "dog", CAT, (), {"dog": None}, {A: usual_a(dog=IGNORED_DOG)})
ignored = {A: xml(IGNORED_CAT, IGNORED_DOG), B: xml(IGNORED_CAT)}
scored("only-ignored", "all", None, (), {"dog": None, "cat": None}, ignored)

# --- numbers

says = "x1 'nan' is not a finite number; use a decimal number"
refused("not-finite", "box-nan", CATS, "line 2", says, line_2("a 0.8 nan 10 80 30"))
refused("odd-numbers", "xml", A, "object 1", "xmin '2_63' is not", cat("cat", ("2_63", 10, 30, 30)))
spelled = {
    A: usual_a(cat=object_xml("cat", (" 10 ", "1e1", "+30", "30."))),
    **cats("a .9 010 1.0E+1 30.0 30", *LINES[1:]),
}
scored("odd-numbers", "valid-spellings", BASE, files=spelled)
MISSING = "score is missing; 1 of 4 records has none: give all records a score, or none"
refused("no-score", "missing", CATS, "line 2", MISSING, line_2("a 60 10 80 30"))
below = {DOGS: "a -8e-320 50 50 80 80\n"}
below |= cats("a 90 10 10 30 30", "a 5 60 10 80 30", "b -1e308 10 10 30 30")
scored("any-score", "below-zero-and-in-percent", BASE, files=below)
for name, text in {
    "fewer": "a 0.8 60 10",
    "more": "a 0.8 60 10 80 30 1",
    "name-with-space": "a b 0.8 60 10 80 30",
    "commas": "a,0.8,60,10,80,30",
    "one": "a",
    "class-and-image": "cat a 0.8 60 10 80 30",
}.items():
    says = f"{len(text.split())} columns?, expected 6; write `image score x1 y1 x2 y2`"
    says += {
        "name-with-space": ", the image without spaces",
        "commas": ", separated by spaces",
    }.get(name, "")
    refused("columns", name, CATS, "line 2", says, line_2(text))
spaced = cats("a\t0.9  10 10\t30 30 ", " " + LINES[1], LINES[2])
scored("columns", "tabs-and-spaces", BASE, files=spaced)
scored("columns", "crlf-and-no-last-newline", BASE, files={CATS: "\r\n".join(LINES)})

says = "x2 = 60 is less than x1 = 80"
refused("negative-size", "detection", CATS, "line 2", says, line_2("a 0.8 80 10 60 30"))
TURNED, says = (30, 10, 10, 30), "xmax = 10 is less than xmin = 30"
refused("negative-size", "xml", A, "object 1", says, cat("cat", TURNED))
MICE = [(4 * n, 80, 4 * n + 2, 82) for n in range(20)]


def with_mice(*more: Any, lines: str = "", count: int = 20) -> dict[str, str]:
    """Return a third class, detected perfectly, with many ground truths and detections."""
    mice = [f"b 0.5 {x1} {y1} {x2} {y2}\n" for x1, y1, x2, y2 in MICE[:count]]
    things = [object_xml("mouse", box) for box in [*MICE[:count], *more]]
    return {
        B: xml(object_xml("cat", CAT_BOX), *things, name="b.jpg"),
        "dt/det_test_mouse.txt": "".join(mice),
        CATS: "".join(f"{line}\n" for line in LINES) + lines,
    }


# One of 25, first of the four of its class and false: one of two, two of four.
scored(
    "negative-size",
    "one-of-25",
    2.5 / 3,
    ("detections-negative-size",),
    {"cat": 0.5, "mouse": 1.0},
    with_mice(lines="a 0.95 30 10 10 30\n"),
)
# One of 24 ground truths: 20 of 21 are found.
scored(
    "negative-size",
    "xml-one-of-24",
    (CAT + 1 + 20 / 21) / 3,
    ("ground-truth-negative-size",),
    {"cat": CAT, "mouse": 20 / 21},
    with_mice(TURNED),
)
mice = with_mice(lines="a 0.95 30 10 10 30\n", count=15)
refused("negative-size", "one-of-20", CATS, "line 4", "x2 = 10 is less than x1 = 30", mice)
mice = with_mice(TURNED, count=16)
refused("negative-size", "xml-one-of-20", B, "object 18", says, mice)
HUNDREDTHS = {
    CATS: "a 0.9 .1 .1 .3 .3\na 0.8 .6 .1 .8 .3\nb 0.7 .1 .1 .3 .3\n",
    DOGS: "a 0.6 .5 .5 .8 .8\n",
}
SMALL = {
    A: usual_a(
        cat=object_xml("cat", (0.1, 0.1, 0.3, 0.3)), dog=object_xml("dog", (0.5, 0.5, 0.8, 0.8))
    ),
    B: xml(object_xml("cat", (0.1, 0.1, 0.3, 0.3)), name="b.jpg"),
}
FRACTIONS = "look normalized"
refused("fractions", "detections", DT, "", FRACTIONS, HUNDREDTHS)
refused("fractions", "xml", GT, "", FRACTIONS, SMALL)
scored("as-is", "fractions", 0.0, ("normalized-boxes",), files=HUNDREDTHS, options=("--as-is",))
odd, note = line_2("a 0.8 80 10 60 30"), "detections-negative-size"
scored("as-is", "negative-size", BASE, (note,), files=odd, options=("--as-is",))
sides = cats("a 0.9 60 60 20 20", "b 0.8 60 60 20 20", "b 0.7 50 50 20 20")
sides |= {DOGS: "a 0.5 50 50 30 30\n"}
refused("xyxy-for-xywh", "sides-for-corners", "dt", "", "look like x, y, width", sides)
# As x y w h the boxes end at 140 and 160: overlap (20 + 1)^2 / 81^2 at most.
far = xml(object_xml("cat", (60, 60, 80, 80)))
scored(
    "xyxy-for-xywh",
    "detections",
    0.0,
    ("detections-look-xyxy", "detections-beyond-image"),
    files={A: far, B: far, **cats("a 0.9 60 60 80 80", "b 0.8 60 60 80 80"), DOGS: None},
    options=("--dt-boxes", "xywh"),
)
# The last pixel is included: 1 x 1 on 1 x 1 has IoU 1.
pixel = {A: usual_a(dog=object_xml("dog", (50, 50, 50, 50))), DOGS: "a 0.6 50 50 50 50\n"}
scored("one-pixel", "both", BASE, files=pixel)
BEYOND = ("ground-truth-beyond-image", "detections-beyond-image")
for name, value, notes, corner in (
    ("not-clipped", BASE, BEYOND, 120),
    # Clipped, the detection would be right; its overlap is 21^2 / 41^2.
    ("detection-only", CAT / 2, BEYOND[1:], 100),
):
    dog = usual_a(dog=object_xml("dog", (80, 80, corner, corner)))
    dogs = {A: dog, DOGS: "a 0.6 80 80 120 120\n"}
    scored("beyond-image", name, value, notes, {"dog": float(value == BASE)}, dogs)
SIDES = "<xmin>10</xmin><ymin>10</ymin><xmax>30</xmax><ymax>30</ymax>"
for name, text, says in (
    ("missing", "", "has no bndbox; add <bndbox>"),
    ("empty", "<bndbox/>", "has no xmin; add <xmin>"),
    ("twice", f"<bndbox>{SIDES}</bndbox>" * 2, "has 2 elements <bndbox>; keep one"),
    ("text", "<bndbox>10 10 30 30</bndbox>", "has no ymax; add <ymax>"),
):
    refused("no-box", name, A, "object 1", says, cat("cat", text))
unnamed = {A: usual_a(cat=object_xml("cat", CAT_BOX).replace("<name>cat</name>", ""))}
refused("bad-object", "no-name", A, "object 1", "has no name; add <name>", unnamed)
odd, says = (
    cat("cat", CAT_BOX, "<difficult>\uff11</difficult>"),
    "difficult is '\uff11'; use 0 or 1",
)
refused("bad-object", "difficult-full-width", A, "object 1", says, odd)
scored("bad-object", "no-difficult", BASE, files=cat("cat", CAT_BOX, ""))
part = "<xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>5</ymax>"
part = f"<part><name>head</name><bndbox>{part}</bndbox></part>"
scored("bad-object", "part-is-no-object", BASE, files=cat("cat", CAT_BOX, part))
corners = "<bndbox><xmax>30</xmax><xmin>10</xmin><ymax>30</ymax><ymin>10</ymin></bndbox>"
swapped = {A: usual_a(cat=object_xml("cat", corners))}
scored("bad-object", "corners-by-name", BASE, files=swapped)
# Twice the same cat in one image: recall 1/3 at precision 1, 2/3 at precision 2/3, never 1.
scored(
    "object-twice",
    "cat",
    ((1 + 2 / 3) / 3 + 1) / 2,
    ("repeated-objects",),
    {"cat": (1 + 2 / 3) / 3},
    {A: xml(object_xml("cat", CAT_BOX), object_xml("cat", CAT_BOX), object_xml("dog", DOG_BOX))},
)

# --- XML

DOCTYPES = {
    "doctype": "<!DOCTYPE annotation>",
    "external": '<!DOCTYPE annotation SYSTEM "http://127.0.0.1:9/x.dtd">',
    "file": '<!DOCTYPE annotation [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    "laughs": '<!DOCTYPE annotation [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>',
    "parameter": '<!DOCTYPE annotation [<!ENTITY % x SYSTEM "file:///etc/hostname"> %x;]>',
}
for name, text in DOCTYPES.items():
    refused("doctype", name, A, "", "DOCTYPE|entit", {A: text + usual_a()})
laughs = {A: DOCTYPES["laughs"] + usual_a(cat=object_xml("&c;" * 50, CAT_BOX))}
refused("doctype", "billion-laughs-used", A, "", "DOCTYPE|entit|XML", laughs)
known = {
    A: usual_a(dog=object_xml("a&lt;b&amp;", DOG_BOX)),
    DOGS: None,
    "dt/det_test_a<b&.txt": "a 0.6 50 50 80 80\n",
}
scored("doctype", "five-known-entities", BASE, classes={"a<b&": 1.0}, files=known)
scored("doctype", "character-reference", BASE, files=cat("&#99;at", ("&#49;0", 10, 30, 30)))
scored("comments", "comment", BASE, files=cat("cat", ("1<!-- 5 -->0", 10, 30, 30)))
scored("comments", "instruction", BASE, files=cat("cat", ("<?x 5?>10", 10, 30, 30)))
scored("comments", "cdata", BASE, files=cat("<![CDATA[cat]]>", ("<![CDATA[10]]>", 10, 30, 30)))
hidden = "<!-- " + object_xml("cat", (1, 1, 5, 5)) + " -->"
commented = {A: usual_a(cat=object_xml("cat", CAT_BOX) + hidden)}
scored("comments", "object-in-a-comment", BASE, files=commented)
DECLARED = '<?xml version="1.0" encoding="{}"?>'
for encoding in ("utf-16", "utf-16-le", "latin-1", "utf-8-sig", "utf-8"):
    declared = {"latin-1": "ISO-8859-1", "utf-8-sig": "UTF-8", "utf-16-le": "UTF-16LE"}.get(
        encoding, encoding.upper()
    )
    text = DECLARED.format(declared) + usual_a(dog=object_xml("chi\u00e8n", DOG_BOX))
    named = {
        A: text.encode(encoding),
        DOGS: None,
        "dt/det_test_chi\u00e8n.txt": "a 0.6 50 50 80 80\n",
    }
    scored("xml-encoding", encoding, BASE, classes={"chi\u00e8n": 1.0}, files=named)
refused("encoding", "text-utf-16", CATS, "", "UTF-16", {CATS: "\n".join(LINES).encode("utf-16")})
marked = b"\xef\xbb\xbf" + "\n".join(LINES).encode()
scored("encoding", "text-byte-order-mark", BASE, files={CATS: marked})
refused("encoding", "xml-truncated", A, "line 1", "XML", {A: usual_a()[:-20]})
refused("encoding", "text-nul", CATS, "", "control|binary", line_2("a 0.8 60 10 80 30\0"))
refused("nesting", "xml", A, "", "deep|nest|XML", {A: "<a>" * 100_000})
for name, says, depth in (
    ("xml-closed", "deep|nest|XML", 5_000),
    ("xml-below-the-parser's-limit", "deep|nest", 200),
):
    nested = cat("cat", CAT_BOX, "<x>" * depth + "</x>" * depth)
    refused("nesting", name, A, "", says, nested)
refused("nesting", "brackets", A, "", "XML|JSON", {A: b"<" * 10_000_000})

# --- order, sets, folders

# Two of equal score: the right one first gives precision 1, the wrong one first 1/2.
ONE_CAT = {A: xml(object_xml("cat", CAT_BOX)), B: xml(), DOGS: None}
RIGHT, WRONG = "0.5 10 10 30 30", "0.5 60 10 80 30"
for name, value, pair in (
    ("right-first", 1.0, (f"a {RIGHT}", f"a {WRONG}")),
    ("wrong-first", 0.5, (f"a {WRONG}", f"a {RIGHT}")),
    ("file-before-image", 0.5, (f"b {WRONG}", f"a {RIGHT}")),
):
    scored("ties", name, value, ("one-score",), files=ONE_CAT | cats(*pair))
twice = {"set.txt": "a\nb\na\n"}
scored("listed-twice", "a", BASE, ("images-listed-twice",), files=twice, options=SET)
cat_line = "a 0.9 10 10 30 30\n"
second = "dt/comp4_det_test_cat.txt"
two = {CATS: None, "dt/comp3_det_test_cat.txt": cat_line, second: cat_line}
says = r"duplicate file of class 'cat' \(also \S*comp3_det_test_cat.txt\); use one file per class"
refused("two-files", "comp", second, "", says, two)
scored(
    "leftovers",
    "many",
    BASE,
    files={
        "gt/.DS_Store": b"\0\1",
        "gt/._a.xml": b"\0\5\x16\7",
        "gt/a.xml~": "old",
        "gt/a.xml.bak": "old",
        "gt/#a.xml#": "old",
        "gt/Thumbs.db": b"\0",
        "gt/sub/c.xml": xml(object_xml("cat", CAT_BOX)),
        "gt/folder.xml/inside": "x",
        "dt/.DS_Store": b"\0",
        "dt/._det_test_cat.txt": b"\0",
        "dt/det_test_cat.txt~": "old",
        "dt/notes.md": "old",
        "dt/sub/det_test_dog.txt": "a 1 1 1 2 2",
    },
)
zipped = {"set.txt": gzip.compress(b"a\nb\n")}
scored("gzip", "image-set", BASE, files=zipped, options=SET)
refused("gzip", "bomb", CATS, "", "expands", {CATS: gzip.compress(b"\n" * (40 << 20))})
refused("gzip", "damaged", CATS, "", "gzip", {CATS: gzip.compress(b"a 0.9 10 10 30 30\n")[:-4]})

lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
says = "looks like a Git LFS pointer; expected "
refused("other-content", "text-lfs", CATS, "", f"{says}lines", {CATS: lfs})
refused("other-content", "xml-lfs", A, "", f"{says}an XML annotation", {A: lfs})
refused("other-content", "text-is-xml", CATS, "", "XML", {CATS: usual_a()})
refused("other-content", "xml-is-text", A, "", "XML", {A: "\n".join(LINES)})

# --- what is no file


ABSENT = "no such file or directory"
REGULAR = "expected a file; use the path of a regular file"
for which, side in ((A, "xml"), (CATS, "text")):
    says = f"is a FIFO, {REGULAR}"
    refused("no-file", f"{side}-fifo", which, "", says, replacing(Tree(), os.mkfifo, which))
refused("no-file", "truth-absent", "absent", "", ABSENT, {}, gt="absent")
refused("no-file", "results-absent", "absent", "", ABSENT, {}, dt="absent")
fifo = replacing(Tree(), os.mkfifo, "set.txt")
for name, file, says, build, option in (
    ("set-absent", "absent.txt", ABSENT, {}, "--image-set"),
    ("set-fifo", "set.txt", f"is a FIFO, {REGULAR}", fifo, "--image-set"),
    ("set-is-folder", "gt", "folder", {}, "--image-set"),
    ("names-absent", "absent.txt", ABSENT, {}, "--class-names"),
):
    refused("no-file", name, file, "", says, build, options=(option, file))
refused("no-file", "stdin", "<stdin>", "", "cannot provide VOC", {}, dt="-", stdin=CATS)


def _moved(path: str, there: str, link: str) -> Callable[[Path], None]:
    """Return a function that builds the usual tree and puts a link in place of a path."""

    def build(folder: Path) -> None:
        Tree()(folder)
        (folder / path).rename(folder / there)
        (folder / path).symlink_to(link)

    return build


scored("no-file", "linked-folders", BASE, files=_moved(GT, "there", "there"))
scored("no-file", "linked-file", BASE, files=_moved(A, "a-there", "../a-there"))


for name, member in (("truth", A), ("results", CATS)):
    output = f"json={member}"
    refused("target", f"a-member-of-the-{name}", member, "", "is an input", {}, output=output)

for label, class_name in NAMES.items():
    if label not in {"escape", "nul-and-bell", "empty"}:  # no text of XML
        renamed = {**cat(escape(class_name), CAT_BOX), B: xml(), CATS: None}
        scored("names", label, 1 / 2, ("classes-without-file",), {class_name: 0.0}, renamed)
