"""Every text file, however odd, equals the reading of its lines one by one by plain Python."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.formats.dota import dota_form
from detap.formats.kitti import kitti_form
from detap.formats.text import reader
from detap.formats.text.lines import LineForm, plain_lines
from detap.formats.text.reader import Rows
from detap.formats.yolo.rows import YoloForm
from detap.io.problems import FaultError, Problems
from tests.oracle.lines import PlainLines

KNOWN = ("000001", "a", "é", "img-2.x", "7", "\ud800", "[")


def image(word: str) -> str:
    if word not in KNOWN:
        raise FaultError(f"image {word!r} is unknown", "take another")
    return word


def class_number(word: str) -> str:
    if not (word.isascii() and word.isdigit()):
        raise FaultError(f"class {word!r} is no number", "write its number")
    return word.lstrip("0") or "0"


def yolo(counts: tuple[int, ...] = (), *, scored: bool, **options: Any) -> YoloForm:
    return YoloForm("class", scored, "cxcywh", class_number, counts=counts, **options)


FORMS: dict[str, LineForm] = {
    "VOC class file": LineForm("image", True, "xyxy", image),
    "VOC image file": LineForm("class", True, "xywh", str),
    "VOC labels": LineForm("class", False, "xyxy", str, last=("", "difficult")),
    "VOC labels as xywh": LineForm("class", False, "xywh", str, last=("", "difficult")),
    "KITTI labels": kitti_form("xyxy", scored=False),
    "KITTI results": kitti_form("xyxy", scored=True),
    "DOTA labels": dota_form(None, scored=False),
    "DOTA results": dota_form(None, scored=True, resolve=image),
    "DOTA rotated labels": dota_form("degrees", scored=False),
    "DOTA rotated results": dota_form("radians", scored=True, resolve=image),
    "YOLO labels": yolo(scored=False),
    "YOLO predictions": yolo(scored=True),
    "YOLO pose labels": yolo((13,), scored=False, keypoints=(3, 3)),
    "YOLO boxes of poses": yolo((4, 13), scored=True, keypoints=(3, 3)),
}
WORDS = {
    "class": ("0", "7", "07", "90", "dog", "<cat>", "犬", "%x"),
    "image": KNOWN[:-2],
    "type": ("Car", "DontCare", "[x"),
}

gaps = st.text(" \t", min_size=1, max_size=2)
numbers = st.one_of(
    st.floats(0, 1).map(lambda value: f"{value:.6g}"),
    st.floats(allow_nan=False, allow_infinity=False, width=64).map(repr),
    st.floats(0, 1e4).map(lambda value: f"{value:.6f}"),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from(["0", "1", "-0.0", "0.0", ".5", "1.", "1e-5", "-0.01", "1e149", "1e151"]),
    st.from_regex(
        r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?", fullmatch=True
    ),
)


@st.composite
def lines(draw: st.DrawFn, form: LineForm) -> str:
    """Return lines of a form, most of them valid."""
    text = ""
    regular = form.regular
    counts = [*(regular["counts"] or (4, 5, 6, 8, 13))] * 3
    counts += [count + 1 for count in counts[:1]]
    for _ in range(draw(st.integers(0, 5))):
        columns = [draw(numbers) for _ in range(draw(st.sampled_from(counts)))]
        columns.insert(form.lead, draw(st.sampled_from(WORDS[form.key])))
        if bool(form.last) and draw(st.booleans()):
            columns.append(draw(st.sampled_from(["difficult", "0", "1", "2"])))
        margin = draw(st.sampled_from(["", " ", "\t"]))
        end = draw(st.sampled_from(["\n", "\r\n", "\n\n", " \n \n"]))
        text += margin + draw(gaps).join(columns) + end
    return text.rstrip("\r\n") if draw(st.booleans()) else text


SCRAPS = [
    b" ", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\xc2\xa0",
    b"\x7f", b",", b"_", b"nan", b"inf", b"0x1", b"1e999", b"e", b".", b"-", b"+", b"difficult",
    b"a", b"\xc3\xa9", b"\xff", b"\xef\xbb\xbf", b"<", b"[", b"<<<<<<< x\n", b"=======\n", b"{",
    b"-1", b"%PDF", b"\xef\xbc\x91", b"\xd9\xa1", b"1_0", b"  ", b"9" * 30, b"imagesource:x\n",
    b"gsd:0.1\n", b"\xed\xa0\x80", b"{}\n", b"\x1f\x8b", b"<html>",
]  # fmt: skip


@st.composite
def files(draw: st.DrawFn, form: LineForm) -> list[bytes]:
    """Return files of lines, some with bytes inserted, removed or replaced."""
    contents = []
    for _ in range(draw(st.integers(1, 3))):
        content = draw(lines(form)).encode()
        for _ in range(draw(st.integers(0, 3))):
            at = draw(st.integers(0, len(content)))
            behind = min(len(content), at + draw(st.integers(0, 4)))
            new = draw(st.one_of(st.sampled_from(SCRAPS), st.just(b""), st.binary(max_size=2)))
            content = content[:at] + new + content[behind:]
        contents.append(content)
    return contents


def read(contents: Sequence[bytes], form: LineForm, most: int = 1 << 30) -> tuple[Rows, list[str]]:
    """Read files named 0, 1, ...; return the rows and the problems."""
    problems = Problems(99)
    given = [(number, str(number), data) for number, data in enumerate(contents)]
    rows = reader.read_lines(given, form, problems, most)
    return rows, [repr(tuple(problem)) for problem in problems.listed]


def read_plainly(contents: Sequence[bytes], form: LineForm) -> tuple[Rows, list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "RaggedLines", PlainLines)
        return read(contents, form)


def listed(rows: Rows) -> list[tuple[Any, ...]]:
    starts, numbers = [0, *rows.ends.tolist()], rows.numbers.tolist()
    values = [tuple(map(float.hex, numbers[start:end])) for start, end in pairwise(starts)]
    names = [rows.names[name] for name in rows.name.tolist()]
    columns = rows.file.tolist(), rows.line.tolist(), names, rows.flag.tolist(), values
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("name", FORMS)
@given(st.data())
def test_files_equal_their_lines_read_one_by_one(name: str, data: st.DataObject) -> None:
    form = FORMS[name]
    contents = data.draw(files(form))
    rows, problems = read(contents, form)
    plain, plain_problems = read_plainly(contents, form)
    assert problems == plain_problems
    assert listed(rows) == listed(plain)
    assert {*rows.names} == {*plain.names}
    for file, line, _, flag, values in listed(rows):
        text = contents[file].split(b"\n")[line - 1].removeprefix(b"\xef\xbb\xbf").decode()
        columns = re.split(r"[ \t]+", text.removesuffix("\r").strip(" \t"))
        columns.pop(form.lead)
        if form.last and len(columns) > form.width:
            assert flag == (columns.pop() in {"difficult", "1"})
        if isinstance(form, YoloForm):
            assert flag == columns[-1].isdecimal()
        assert [float(column).hex() for column in columns] == list(values)


def test_reading_stops_after_the_limit_of_rows() -> None:
    one, two = b"0 1 2 3 4\n", b"0 1 2 3 4\n0 5 6 7 8\n"
    for contents, most, count in (([two], 2, 2), ([one, two, two], 2, 3), ([two * 9, one], 3, 4)):
        rows, _ = read(contents, FORMS["YOLO labels"], most)
        assert len(rows) == count


def test_words_are_numbered_in_their_order() -> None:
    names = [f"w{n}" for n in range(3000)] + ["x" * n for n in range(1, 200)]
    text = "\n".join(f"{name} 0 0 1 1" for name in [*names, *reversed(names)])
    rows, problems = read([text.encode()], FORMS["VOC labels"])
    assert not problems
    assert rows.names == tuple(names)
    assert rows.name.tolist() == [*range(len(names)), *reversed(range(len(names)))]
    assert rows.line.tolist() == [*range(1, 2 * len(names) + 1)]


def test_numbers_of_a_class_are_one_name() -> None:
    rows, _ = read([b"7 1 2 3 4\n07 1 2 3 4\n0 1 2 3 4"], FORMS["YOLO labels"])
    assert (rows.names, rows.name.tolist()) == (("7", "0"), [0, 0, 1])


# --- messages


def resolve(word: str) -> str:
    if word == "?":
        raise FaultError("'?' is no image", "name one")
    return word.upper()


SCORED = LineForm("image", True, "xyxy", resolve)
TRUTH = LineForm("class", False, "xyxy", resolve, last=("", "difficult"))
ProblemRows = list[tuple[str, str, str]]


def problems_of(data: bytes, form: LineForm) -> ProblemRows:
    problems = Problems(9)
    reader.read_lines([(0, "f.txt", data)], form, problems, 99)
    assert {problem.file for problem in problems.listed} <= {"f.txt"}
    return [(problem.location, problem.message, problem.hint) for problem in problems.listed]


def test_lines_that_are_not_utf_8_are_quoted_in_part() -> None:
    data = b"\xff" + b"a" * 70 + b" 1 2 3 4"
    shown = repr(b"\xff" + b"a" * 59)
    assert problems_of(data, TRUTH) == [("line 1", f"{shown} is not UTF-8", "save it as UTF-8")]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"),
        (b"\x80\x02}q\x00", "a Python pickle"),
        (b"\x80\x05}q\x00", "a Python pickle"),
        (b"\x1f\x8b\x08", "gzip inside gzip"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x93NUMPY\x01", "a NumPy array"),
        (b"\x89PNG\r\n", "an image"),
        (b"\xff\xd8\xff\xe0", "an image"),
        (b"%PDF-1.4", "a PDF document"),
        (b"\n <!DOCTYPE html><p>", "an HTML page"),
        (b"<HTML>", "an HTML page"),
        (b"cat 1 2 3 4\n<<<<<<< HEAD\n", "a file with unresolved merge conflicts"),
        (b"cat 1 2 3 4\n=======\r\n", "a file with unresolved merge conflicts"),
        (b"\xff\xfec\x00", "UTF-16 text (expected UTF-8)"),
        (b"\xfe\xff\x00c", "UTF-16 text (expected UTF-8)"),
        (b'\xef\xbb\xbf {"a": 1}', "JSON"),
        (b"[1]", "JSON"),
        (b"<a/>", "XML"),
        (b"a\0b", "binary data"),
    ],
)  # fmt: skip
def test_other_file_types_are_detected_by_their_first_bytes(data: bytes, what: str) -> None:
    expected = "expected lines `class x1 y1 x2 y2`"
    assert problems_of(data, TRUTH) == [("", f"looks like {what}", expected)]
    problems = Problems(9)
    assert plain_lines(data, "l.txt", problems) == []
    (problem,) = problems.listed
    assert problem == ("l.txt", "", f"looks like {what}", "expected one name per line")


def test_a_class_name_may_begin_like_another_file_type() -> None:
    problems = Problems(9)
    assert read([b"<cat> 1 2 3 4"], TRUTH)[0].names == ("<CAT>",)
    assert plain_lines(b"a\n\n\tb \n", "l.txt", problems) == [(1, "a"), (3, "b")]
    assert problems.count == 0
