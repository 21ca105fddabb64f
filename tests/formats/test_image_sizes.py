"""A table of image sizes."""

from pathlib import Path

import pytest

from detap.errors import InputError
from detap.formats.image_sizes import read_image_sizes
from tests.raised import raised


def test_a_table_is_read_by_header_and_matched_by_stem(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_bytes(
        b'\xef\xbb\xbfheight,Image,note,width\r\n20,val/a.jpg,"x, y",10\r\n\r\n'
        b'40,"b,c.0001.png",,30\n'
        b"5,frame.0001,,6\n20,a,,10\n"
    )
    expected = {"a": (10, 20), "b,c.0001": (30, 40), "frame.0001": (6, 5)}
    assert read_image_sizes(path) == expected


HINT = "; write `image,width,height` and one image per line"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty" + HINT),
        ("image,w,h\na,1,2\n", "line 1: header is 'image,w,h'"),
        ("image,width,height,width\n", "line 1: header is"),
        ("image,width,height\n", "no images"),
        (
            "image,width,height\na,1\n",
            "line 2: has 2 columns, expected 3",
        ),
        (
            "image,width,height\na,1,2.5\n",
            "line 2: height is '2.5', expected an integer",
        ),
        ("image,width,height\na,-1,2\n", "line 2: width is '-1', expected an integer above 0"),
        ("image,width,height\na,1_0,2\n", "line 2: width is '1_0', expected"),
        ("image,width,height\na,0,2\n", "line 2: width is '0', expected"),
        ("image,width,height\n,1,2\n", "line 2: image is empty"),
        ("image,width,height\na,1,2\nx/a.jpg,2,1\n", "line 3: image 'x/a.jpg' has another size"),
        ("\x89PNG", "looks like an image"),
        ("image,width\0", "looks like binary data"),
    ],
)
def test_invalid_tables(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_bytes(content.encode("latin-1"))
    assert message in str(raised(InputError, read_image_sizes, path))


def test_tables_that_are_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_bytes(b"image,width,height\na,1,2\n\xff,1,2\n")
    with pytest.raises(InputError, match="line 3: 0xff is not UTF-8"):
        read_image_sizes(path)
