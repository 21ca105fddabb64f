"""The fallback reader of text lines: what it accepts, and every refusal message."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from detap.errors import InputError
from detap.formats.by_name.problems import Problems
from detap.formats.text.folder import Folder
from detap.formats.text.lines import LineForm, Lines, decoded_lines, plain_lines, read_lines
from detap.formats.text.rows import Rows, merge, no_rows
from detap.io.problems import FaultError


def resolve(word: str) -> str:
    if word == "?":
        raise FaultError("'?' is no image", "name one")
    return word.upper()


SCORED = LineForm("image", True, "xyxy", resolve)
TRUTH = LineForm("class", False, "xyxy", resolve)
SIDES = LineForm("class", False, "xywh", resolve)

ProblemRows = list[tuple[str, str, str]]


def problems_of(data: bytes, form: LineForm) -> ProblemRows:
    problems = Problems(9)
    lines = read_lines(data, "f.txt", form, problems)
    assert lines.names == []
    assert {problem.file for problem in problems.listed} <= {"f.txt"}
    return [(problem.location, problem.message, problem.hint) for problem in problems.listed]


def test_lines_of_blanks_and_tabs_are_blank() -> None:
    lines = decoded_lines(b"X\r\n \t\r\n\nXX", "f.txt", Problems(9))
    assert list(lines) == [(1, "X"), (4, "XX")]


def test_valid_lines() -> None:
    problems = Problems(9)
    data = b"\xef\xbb\xbfcat 1 2 3 4\r\n\n \t\ncat\t1.5  -2 +3 4e1 difficult\ndog 5 6 5 6"
    lines = read_lines(data, "f.txt", TRUTH, problems)
    assert lines.names == ["CAT", "CAT", "DOG"]
    assert lines.values == [[1, 2, 3, 4], [1.5, -2, 3, 40], [5, 6, 5, 6]]
    assert lines.flags == [False, True, False]
    assert lines.location == [1, 4, 5]
    assert problems.count == 0
    assert read_lines(b"a .5 1 2 3 4", "f.txt", SCORED, problems).values == [[0.5, 1, 2, 3, 4]]


NUMBER = "use a decimal number"
DUE = "write `class x1 y1 x2 y2`"
SCORE_DUE = "write `image score x1 y1 x2 y2`"


@pytest.mark.parametrize(
    ("line", "form", "message", "hint"),
    [
        ("cat 1 2 3 1_0", TRUTH, "y2 '1_0' is not a number", NUMBER),
        (
            "cat 1,5 2 3 4",
            TRUTH,
            "x1 '1,5' is not a number (use a decimal point, not a comma)",
            NUMBER,
        ),
        ("cat 1 -NaN 3 4", TRUTH, "y1 '-NaN' is not a finite number", NUMBER),
        ("cat 1 2 inf 4", TRUTH, "x2 'inf' is not a finite number", NUMBER),
        ("cat 1 2 3 Infinity", TRUTH, "y2 'Infinity' is not a finite number", NUMBER),
        ("cat 1 2 3 1e999", TRUTH, "y2 '1e999' is too large for a number", NUMBER),
        ("cat 1 2 3 " + "x" * 60, TRUTH, f"y2 '{'x' * 60}' is not a number", NUMBER),
        ("cat 1 2 3 " + "x" * 61, TRUTH, f"y2 '{'x' * 57}...' is not a number", NUMBER),
        ("a high 1 2 3 4", SCORED, "score 'high' is not a number", NUMBER),
        ("? 1 2 3 4", TRUTH, "'?' is no image", "name one"),
        ("cat", TRUTH, "has 1 column, expected 5", DUE),
        ("cat 1 2 3", TRUTH, "has 4 columns, expected 5", DUE),
        ("cat,1,2,3,4", TRUTH, "has 1 column, expected 5", f"{DUE}, separated by spaces"),
        ("cat;1 2 3 4 5 6", TRUTH, "has 6 columns, expected 5", f"{DUE}, separated by spaces"),
        (
            "cat .9 1 2 3 4",
            TRUTH,
            "has 6 columns, expected 5: has a score (detections?)",
            DUE,
        ),
        (
            "a 1 2 3 4",
            SCORED,
            "has 5 columns, expected 6: no score (ground truth?)",
            SCORE_DUE,
        ),
        ("a x 2 3 4", SCORED, "has 5 columns, expected 6", SCORE_DUE),
        (
            "traffic light 1 2 3 4",
            TRUTH,
            "has 6 columns, expected 5",
            f"{DUE}, the class without spaces",
        ),
        (
            "my own image .5 1 2 3 4",
            SCORED,
            "has 8 columns, expected 6",
            f"{SCORE_DUE}, the image without spaces",
        ),
        ("cat 1 2 3 4 hard", TRUTH, "has 6 columns, expected 5", DUE),
        ("a .5 1 2 3 4 difficult", SCORED, "has 7 columns, expected 6", SCORE_DUE),
        ("cat 0 0 1e200 1e200", TRUTH, "box area overflows", "correct the box"),
        ("cat 1e308 0 1e308 1", SIDES, "box corner overflows", "correct the box"),
        ("cat 0 1e308 1 1e308", SIDES, "box corner overflows", "correct the box"),
        ("cat a\x01b 2 3 4", TRUTH, "contains control character '\\x01'", "remove it"),
    ],
)
def test_every_message(line: str, form: LineForm, message: str, hint: str) -> None:
    assert problems_of(f"\n{line}\n".encode(), form) == [("line 2", message, hint)]


def test_lines_that_are_not_utf_8_are_quoted_in_part() -> None:
    data = b"\xff" + b"a" * 70 + b" 1 2 3 4"
    shown = repr(b"\xff" + b"a" * 59)
    assert problems_of(data, TRUTH) == [("line 1", f"{shown} is not UTF-8", "save it as UTF-8")]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer (download it with "
                                                             "git lfs pull)"),
        (b"\x80\x02}q\x00", "a Python pickle"),
        (b"\x80\x05}q\x00", "a Python pickle"),
        (b"\x1f\x8b\x08", "gzip data"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\x93NUMPY\x01", "a NumPy array"),
        (b"\x89PNG\r\n", "a PNG image"),
        (b"\xff\xd8\xff\xe0", "a JPEG image"),
        (b"%PDF-1.4", "a PDF document"),
        (b"\n <!DOCTYPE html><p>", "an HTML page (a download that failed?)"),
        (b"<HTML>", "an HTML page (a download that failed?)"),
        (b"cat 1 2 3 4\n<<<<<<< HEAD\n", "a file with unresolved merge markers"),
        (b"cat 1 2 3 4\n=======\r\n", "a file with unresolved merge markers"),
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
    assert read_lines(b"<cat> 1 2 3 4", "f.txt", TRUTH, problems).names == ["<CAT>"]
    assert plain_lines(b"a\n\n\tb \n", "l.txt", problems) == [(1, "a"), (3, "b")]
    assert problems.count == 0


def test_problems_beyond_the_limit_are_counted() -> None:
    problems = Problems(2)
    read_lines(b"a\nb\nc\nd\n", "f.txt", TRUTH, problems)
    with pytest.raises(InputError) as caught:
        problems.raise_any()
    assert [problem.location for problem in caught.value.problems] == ["line 1", "line 2"]
    assert caught.value.omitted == 2


def test_no_problems_raise_no_error() -> None:
    Problems(1).raise_any()


def test_no_rows_have_no_columns_of_any_length() -> None:
    rows = no_rows(5)
    assert [len(column) for column in (rows.file, rows.name, rows.flag)] == [0, 0, 0]
    assert (rows.values.shape, rows.names) == ((0, 5), ())


def test_rows_of_both_readers_are_merged_in_order() -> None:
    scanned = Rows(
        np.array([0, 2], np.int32),
        np.array([0, 1], np.int32),
        ("cat", "dog"),
        np.array([[1.0, 2], [3, 4]]),
        np.array([True, False]),
    )
    fallback = {
        3: Lines(["dog"], [[5.0, 6]], [True], [1]),
        1: Lines(["cow", "cat"], [[7.0, 8], [9, 10]], [False, True], [1, 2]),
    }
    merged = merge(scanned, fallback)
    assert merged.file.tolist() == [0, 1, 1, 2, 3]
    assert merged.names == ("cat", "dog", "cow")
    assert merged.name.tolist() == [0, 2, 0, 1, 1]
    assert merged.values.tolist() == [[1, 2], [7, 8], [9, 10], [3, 4], [5, 6]]
    assert merged.flag.tolist() == [True, False, True, False, True]
    assert merged.file.dtype == merged.name.dtype == np.dtype(np.int32)
    assert merge(scanned, {1: Lines()}) is scanned


def test_the_digest_of_a_folder_covers_the_files_read(tmp_path: Path) -> None:
    """Files hashed while reading are not read again."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.txt").write_bytes(b"b")
    once = {1: sha256(b"a").hexdigest()}
    folder = Folder(str(tmp_path), "in", ".txt", {"a": "a.txt", "b": "b.txt"}, digests=once)
    source = folder.source(["b.txt", "a.txt"], 7)
    assert (source.path, source.records) == (str(tmp_path), 7)
    assert source.members == ("in/a.txt", "in/b.txt")
    lines = [f"{sha256(name).hexdigest()}  in/{name.decode()}.txt\n" for name in (b"a", b"b")]
    assert source.sha256 == sha256("".join(lines).encode()).hexdigest()
    assert Folder(str(tmp_path), "", ".txt", {}).source(["x"], 1)[2:4] == (("x",), "")
