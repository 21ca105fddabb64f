"""The scanners of text files at their limits: what they read, by hand, and what they leave."""

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from detap.formats.openimages._scan import Scanner
from detap.formats.text._scan import scan_files

MANY = 1 << 40


class Read(NamedTuple):
    unread: list[int]
    file: list[int]
    name: list[int]
    flag: list[bool]
    values: list[list[float]]
    words: list[bytes]


def scan(*members: bytes | None, known: tuple[bytes, ...] = (b"0",), **options: Any) -> Read:
    """Scan YOLO lines, or those that options describe."""
    given: dict[str, Any] = {"grow": False, "width": 4, "xywh": False, "fractions": True}
    given |= {"file_bytes": MANY, "records": MANY, "contents": True, "folder": -1} | options
    folder = given.pop("folder")
    result: Any = scan_files(folder, list(members), list(known), **given)
    unread, file, name, flag, values, words = result
    rows = file.tolist(), name.tolist(), flag.tolist(), values.tolist()
    return Read(unread, *rows, words)


YOLO: list[tuple[dict[str, Any], bytes, bool, list[float]]] = [
    ({}, b"0 .5 .4 .3 .2", False, [0.5, 0.4, 0.3, 0.2]),
    ({}, b" \t0\t.5 .4  .3 .2 \r\n \n\n", False, [0.5, 0.4, 0.3, 0.2]),
    ({}, b"0 .1 .2 .3 .1 .2 .4", True, [0.1, 0.1, 0.3, 0.4]),
    ({}, b"0 .3 .4 .1 .3 .2 .2 .2 .1", True, [0.1, 0.1, 0.3, 0.4]),
    ({"scored": True, "width": 5}, b"0 .5 .4 .3 .2 .9", False, [0.5, 0.4, 0.3, 0.2, 0.9]),
    ({"scored": True, "width": 5}, b"0 .1 .2 .3 .1 .2 .4 7", True, [0.1, 0.1, 0.3, 0.4, 7]),
    ({"scored": True, "width": 5}, b"0 .1 .2 .3 .1 .2 .4 -7", True, [0.1, 0.1, 0.3, 0.4, -7]),
    ({"counts": (4, 8), "width": 8}, b"0 1 2 3 4", False, [1, 2, 3, 4, 0, 0, 0, 0]),
    ({"counts": (8, 4), "width": 8}, b"0 1 2 3 4 5 6 7 8", True, [1, 2, 3, 4, 5, 6, 7, 8]),
    ({"counts": (7,), "width": 4}, b"0 1 2 3 4 5 6 7", False, [1, 2, 3, 4]),
    ({"counts": (4,), "width": 4}, b"0 1 2 3 4", False, [1, 2, 3, 4]),
]


@pytest.mark.parametrize(("options", "line", "polygon", "values"), YOLO)
def test_yolo_lines_by_hand(
    options: dict[str, Any], line: bytes, polygon: bool, values: list[float]
) -> None:
    read = scan(line, **options)
    assert read == ([], [0], [0], [polygon], [values], [b"0"])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, b"0 .5 .4 .3"), ({}, b"0 .5 .4 .3 .2 .1"), ({}, b"0 1 2 3 4 5 6 7"), ({}, b"0 1 2"),
        ({}, b"0"), ({}, b"0 .5 .4 .3.2 .1"), ({}, b"0 1 2+3 4"), ({}, b"0 1 2 3 4\r"),
        ({}, b"\r\r\n0 1 2 3 4"), ({}, b"0 1 2 3 1e400"), ({}, b"0 1 2 3 nan"), ({}, b"1 1 2 3 4"),
        ({}, b"0 1 2 3 4x"), ({}, b"0\x0b1 2 3 4"), ({}, b"0 1 2 3 4\r0 1 2 3 4"),
        ({"counts": (7,)}, b"0 1 2 3 4"), ({"counts": (4, 8), "width": 8}, b"0 1 2 3 4 5 6"),
        ({"scored": True, "width": 5}, b"0 1 2 3 4"),
        ({"scored": True, "width": 5}, b"0 1 2 3 4 5 6"),
    ],
)  # fmt: skip
def test_other_yolo_lines_are_left(options: dict[str, Any], line: bytes) -> None:
    read = scan(b"", line, **options)
    assert (read.unread, read.file) == ([1], [])


def test_the_numbers_of_coordinates_of_polygons() -> None:
    counts: set[int] = set()
    lines = [b"0 " + b" ".join([b"1"] * count) for count in (8, 4, 6, 10, 8)]
    assert scan(b"\n".join(lines), polygons=counts).flag == [True, False, True, True, True]
    assert counts == {6, 10}
    none: set[int] = set()
    scan(b"0 1 2 3 4", polygons=none)
    assert none == set()


NAMED: dict[str, Any] = {"fractions": False, "grow": True, "width": 5, "known": ()}


@pytest.mark.parametrize("xywh", [False, True])
@pytest.mark.parametrize(
    ("numbers", "finite"),
    [
        ("9 1 2 3 4", (True, True)),
        ("9 1e308 0 1e308 1", (True, False)),  # x + width
        ("9 0 1e308 1 1e308", (True, False)),  # y + height
        ("9 0 0 1e200 1e200", (False, False)),  # the area
        ("9 -1e308 0 1e308 1", (False, True)),  # x2 - x1
        ("1e308 0 1e308 1 1", (True, True)),  # the score is no side
    ],
)
def test_boxes_are_finite(numbers: str, finite: tuple[bool, bool], xywh: bool) -> None:
    read = scan(f"a {numbers}".encode(), xywh=xywh, **NAMED)
    assert read.unread == ([] if finite[xywh] else [0])
    assert read.values == ([[float(n) for n in numbers.split()]] if finite[xywh] else [])


@pytest.mark.parametrize(
    "line",
    [
        b"a .5 1 2 3", b"a .5 1 2 3 4 5", b"a .5 1 2 3 4x", b"a .5 1 2+3 4", b"a .5 1 2 3 4\r",
        b"= .5 1 2 3 4", b"< .5 1 2 3 4", b"> .5 1 2 3 4", b"[ .5 1 2 3 4", b"{ .5 1 2 3 4",
        b"% .5 1 2 3 4", b"a\x7f .5 1 2 3 4", b"\xc3\xa9 .5 1 2 3 4", b"a\x80 .5 1 2 3 4",
        b"a .5 1 2 3 inf", b"a .5 1 2 3 4\n\r", b"a", b"a .5 1 2 3 4 \x0c",
    ],
)  # fmt: skip
def test_other_lines_are_left(line: bytes) -> None:
    read = scan(b"a 1 1 2 3 4", b"b 2 1 2 3 4\n" + line, b"a 3 1 2 3 4", **NAMED)
    assert read.unread == [1]
    assert (read.file, [row[0] for row in read.values]) == ([0, 2], [1, 3])


def test_words_are_numbered_in_their_order() -> None:
    known = (b"\xc3\xa9", b"b")
    read = scan(b"\xc3\xa9 1 0 0 1 1\nb 2 0 0 1 1", **{**NAMED, "grow": False, "known": known})
    assert (read.name, read.words) == ([0, 1], list(known))
    names = [b"w%d" % n for n in range(3000)] + [b"abcdefgh%d" % n for n in range(3000)]
    names += [b"x" * n for n in range(1, 200)]
    lines = [name + b" 1 0 0 1 1" for name in [*names, *reversed(names)]]
    read = scan(b"\n".join(lines), **NAMED)
    assert read.words == names
    assert read.name == [*range(len(names)), *reversed(range(len(names)))]
    read = scan(b"b 1 0 0 1 1\nc 1 0 0 1 1", **{**NAMED, "grow": False, "known": (b"b",)})
    assert read.unread == [0]
    with pytest.raises(ValueError, match="duplicate known word"):
        scan(b"", known=(b"a", b"b", b"a"))


def test_limits_of_bytes_and_rows() -> None:
    one, two = b"0 1 2 3 4\n", b"0 1 2 3 4\n0 5 6 7 8\n"
    assert scan(two, file_bytes=20).unread == []
    assert scan(two, file_bytes=19).unread == [0]
    assert scan(two, records=2).unread == []
    read = scan(one, two, one, None, b"", records=2)
    assert (read.unread, read.file) == ([1, 3], [0, 2])


def test_digests_are_of_the_files_that_were_read() -> None:
    digests: dict[int, str] = {}
    files = b"0 1 2 3 4", b"?", b"0 1 2 3 5", None, b""
    assert scan(*files, digests=digests).unread == [1, 3]
    assert digests == {n: hashlib.sha256(files[n] or b"").hexdigest() for n in (0, 2, 4)}


def test_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0 1 2 3 4")
    (tmp_path / "folder").mkdir()
    (tmp_path / "long").write_bytes(b"0 1 2 3 4\n" * 20_000)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        options: dict[str, Any] = {"contents": False, "folder": folder}
        read = scan(b"a", b"absent", b"folder", None, b"long", b"a", **options)
        assert read.unread == [1, 2, 3]
        assert read.file == [0, *[4] * 20_000, 5]
        assert read.values == [[1, 2, 3, 4]] * 20_002
        assert scan(b"a", file_bytes=9, **options).unread == []
        assert scan(b"a", file_bytes=8, **options).unread == [0]
    finally:
        os.close(folder)
    paths = [os.fsencode(tmp_path / name) for name in ("a", "absent")]
    assert scan(*paths, contents=False).unread == [1]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_left(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert scan(os.fsencode(tmp_path / "pipe"), contents=False).unread == [0]


EMPTY = Path("/sys/class/net/lo/ifalias")


@pytest.mark.skipif(
    not EMPTY.exists() or EMPTY.stat().st_size == 0 or EMPTY.read_bytes() != b"",
    reason="no file here has fewer bytes than its size",
)
def test_a_file_with_fewer_bytes_than_its_size_is_left() -> None:
    assert scan(os.fsencode(EMPTY), contents=False).unread == [0]


def test_paths_begin_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"0 1 2 3 4")
    monkeypatch.chdir(tmp_path)
    assert scan(b"a", contents=False).values == [[1, 2, 3, 4]]


def test_types_of_columns() -> None:
    options: dict[str, Any] = {"grow": False, "width": 4, "xywh": False, "fractions": True}
    options |= {"file_bytes": 99, "records": 9, "contents": True}
    _, *columns, _ = scan_files(-1, [b"0 1 2 3 4"], [b"0"], **options)
    assert [column.dtype for column in columns] == [np.int32, np.int32, np.bool_, np.float64]


BOX = [-2, -3, 0, 1, 2, 3]
"""Columns: image, label and box."""


@pytest.mark.parametrize(
    ("columns", "line", "regular"),
    [
        (BOX, b"a,b,0,1,0.5,0\n", True), (BOX, b"a,b,0,1,0.5,0\r\n", True),
        (BOX, b"a,b,0,1,0.5,0", False), (BOX, b"a,b,0,1,0.5,0\r", False),
        (BOX, b"a,b,0,1,0.5\n", False), (BOX, b"a,b,0,1,0.5,0,1\n", False),
        (BOX, b"a,b,0,1,0.5,0 \n", False), (BOX, b"a,b,0;1,0.5,0\n", False),
        (BOX, b"a,b,0,1.01,0.5,0\n", False), (BOX, b"a,b,-0.01,1,0.5,0\n", False),
        (BOX, b",b,0,1,0.5,0\n", False), (BOX, b"a,,0,1,0.5,0\n", False),
        (BOX, b" a,b,0,1,0.5,0\n", False), (BOX, b"a ,b c,0,1,0.5,0\n", True),
        (BOX, b'a"c,b,0,1,0.5,0\n', False), (BOX, b"\xc3\xa9,b,0,1,0.5,0\n", False),
        (BOX, b"a\x7f,b,0,1,0.5,0\n", False), (BOX, b"a\tc,b,0,1,0.5,0\n", False),
        (BOX, b"a,b,0,1,0.5,nan\n", False), (BOX, b"a;b,0,1,0.5,0\n", False), (BOX, b"", True),
        ([-2, -3, 1, 2, 3, 4], b"a,b,0,1,0.5,2\n", False),
        ([-2, -3, 1, 2, 3, 4], b"a,b,2,1,0.5,0\n", False),
        ([-2, -3, 0, 1, 2, 3, 4], b"a,b,7,0,1,0,1\n", True),
        ([-2, -3, 0, 1, 2, 3, 4], b"a,b,0,7,1,0,1\n", False),
        ([-1, *BOX, -1], b" x,a,b,0,1,0.5,0, \n", True),
        ([-1, *BOX], b'"x",a,b,0,1,0.5,0\n', False),
        ([*BOX, *[-1] * 250], b"a,b,0,1,0.5,0" + b"," * 250 + b"\n", True),
        ([*BOX, *[-1] * 251], b"a,b,0,1,0.5,0" + b"," * 251 + b"\n", False),
        ([*BOX, -4], b"a,b,0,1,0.5,0,2\n", False), ([*BOX, -4], b"a,b,0,1,0.5,0,-2\n", False),
        ([*BOX, -4], b"a,b,0,1,0.5,0,11\n", False), ([*BOX, -4], b"a,b,0,1,0.5,0,-1\n", True),
        ([*BOX, -4], b"a,b,0,1,0.5,0,+1\n", False), ([*BOX, -4], b"a,b,0,1,0.5,0, \n", False),
    ],
)  # fmt: skip
def test_lines_of_open_images(columns: list[int], line: bytes, regular: bool) -> None:
    numbers = 5 if 4 in columns else 4
    scanner = Scanner(columns, numbers, 0.0, 1.0)
    first = b",".join(b"0" if column > -4 else b"" for column in columns) + b"\n"
    assert scanner.scan(line) == regular
    before = len(scanner)
    assert before == (regular and line != b"")
    assert scanner.scan(first + line) == regular  # an irregular line leaves no row of its block
    assert len(scanner) == (2 * before + 1 if regular else 0)


def test_rows_of_open_images_by_hand() -> None:
    scanner: Any = Scanner([-2, -1, -3, 0, 1, 2, 3, -4], 4, 0.0, 1.0)
    assert scanner.scan(b"i.1,z,c,0,1,0,1,-1\ni2,z,c,1,0,1,0,0\n")
    assert not scanner.has_points  # the point of a name is none of a number
    assert scanner.scan(b"i2,z,d,0.25,1,0,1,1\n")
    assert scanner.has_points
    assert scanner.scan(b"i3,z,d,0,1,0,1,\n")
    assert scanner.has_points
    scanner.add(b"i2", b"e", [0.5, 1, 2, 3], 2)
    assert len(scanner) == 5
    image, label, images, labels, group, numbers = scanner.columns_of_rows()
    assert images == [b"i.1", b"i2", b"i3"]
    assert labels == [b"c", b"d", b"e"]
    assert image.tolist() == [0, 1, 1, 2, 1]
    assert label.tolist() == [0, 0, 1, 1, 2]
    assert group.tolist() == [2, 0, 1, 0, 2]
    expected = [[0, 1, 0, 1], [1, 0, 1, 0], [0.25, 1, 0, 1], [0, 1, 0, 1], [0.5, 1, 2, 3]]
    assert numbers.tolist() == expected
    assert len(scanner) == 0
