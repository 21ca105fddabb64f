"""The scanner of Open Images at its limits: what it reads, by hand, and what it leaves."""

from typing import Any

import pytest

from detap.formats.openimages._scan import Scanner

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
    assert scanner.scan(line, 2) == regular
    before = len(scanner)
    assert before == (regular and line != b"")
    assert scanner.scan(first + line, 2) == regular  # an irregular line leaves no row of its block
    assert len(scanner) == (2 * before + 1 if regular else 0)


def test_rows_of_open_images_by_hand() -> None:
    scanner: Any = Scanner([-2, -1, -3, 0, 1, 2, 3, -4], 4, 0.0, 1.0)
    assert scanner.scan(b"i.1,z,c,0,1,0,1,-1\ni2,z,c,1,0,1,0,0\n", 2)
    assert not scanner.has_points  # the point of a name is none of a number
    assert scanner.scan(b"i2,z,d,0.25,1,0,1,1\n", 4)
    assert scanner.has_points
    assert scanner.scan(b"i3,z,d,0,1,0,1,\n", 6)
    assert scanner.has_points
    scanner.add(scanner.image(b"i2"), 8, b"e", [0.5, 1, 2, 3], 2)
    assert len(scanner) == 5
    image, line, label, group, _, numbers, labels = scanner.columns()
    assert scanner.images() == [b"i.1", b"i2", b"i3"]
    assert labels == [b"c", b"d", b"e"]
    assert image.tolist() == [0, 1, 1, 2, 1]
    assert line.tolist() == [2, 3, 4, 6, 8]
    assert label.tolist() == [0, 0, 1, 1, 2]
    assert group.tolist() == [2, 0, 1, 0, 2]
    expected = [[0, 1, 0, 1], [1, 0, 1, 0], [0.25, 1, 0, 1], [0, 1, 0, 1], [0.5, 1, 2, 3]]
    assert numbers.reshape(-1, 4).tolist() == expected
    assert len(scanner) == 0
