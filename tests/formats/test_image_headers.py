"""Image sizes from the first bytes of files, built by hand from the formats' specifications."""

import struct
from pathlib import Path

import pytest

from detap.errors import InputError
from detap.formats.image_sizes import read_image_sizes
from detap.formats.reading.image_headers import image_size
from tests.raised import raised

WIDTH, HEIGHT = 640, 427


def jpeg(*segments: bytes, frame: int = 0xC0) -> bytes:
    """Return a JPEG up to its first scan, with other segments before the frame."""
    sof = struct.pack(">BHHBBBB", 8, HEIGHT, WIDTH, 1, 1, 0x11, 0)
    parts = [b"\xff\xd8", *segments, segment(frame, sof), b"\xff\xda\0\x02"]
    return b"".join(parts)


def segment(marker: int, content: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(content) + 2) + content


def exif(orientation: int, order: str = "<", kind: int = 3) -> bytes:
    head = {"<": b"II*\0", ">": b"MM\0*"}[order]
    make = struct.pack(order + "HHI4s", 0x010F, 2, 4, b"abc\0")
    turn = struct.pack(order + "HHIHH", 0x0112, kind, 1, orientation, 0)
    body = struct.pack(order + "IH", 8, 2) + make + turn + bytes(4)
    return segment(0xE1, b"Exif\0\0" + head + body)


APP0 = segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0")
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
BMP = b"BM" + bytes(12) + struct.pack("<IiiHH", 40, WIDTH, HEIGHT, 1, 24)
TOP_DOWN = b"BM" + bytes(12) + struct.pack("<IiiHH", 40, WIDTH, -HEIGHT, 1, 24)
OLD_BMP = b"BM" + bytes(12) + struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, 24) + bytes(8)
GIF = b"GIF89a" + struct.pack("<HHBBB", WIDTH, HEIGHT, 0, 0, 0) + bytes(4)


def webp(kind: bytes, content: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", len(content) + 12) + b"WEBP" + kind + bytes(4) + content


LOSSY = webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", WIDTH | 0x4000, HEIGHT))
LOSSLESS = webp(b"VP8L", b"\x2f" + struct.pack("<I", (WIDTH - 1) | (HEIGHT - 1) << 14))
EXTENDED = webp(
    b"VP8X", bytes(4) + struct.pack("<I", WIDTH - 1)[:3] + struct.pack("<I", HEIGHT - 1)
)


@pytest.mark.parametrize(
    "content",
    [
        jpeg(APP0),
        jpeg(APP0, frame=0xC2),  # progressive
        jpeg(segment(0xE2, bytes(60_000)), segment(0xC4, bytes(20))),  # a profile, a table
        jpeg(b"\xff\xff", APP0[1:]),  # filled up with 0xFF
        jpeg(exif(1)),
        jpeg(exif(3)),
        jpeg(exif(4, ">")),
        jpeg(exif(6, kind=4)),  # of another type than the standard's
        jpeg(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0")),
        jpeg(segment(0xE1, b"Exif\0\0II*\0\xff\xff\xff\xff")),  # leads nowhere
        PNG, BMP, TOP_DOWN, OLD_BMP, GIF, LOSSY, LOSSLESS, EXTENDED,
    ],
)  # fmt: skip
def test_sizes(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"  # the content counts, not the name
    path.write_bytes(content)
    assert image_size(str(path)) == (WIDTH, HEIGHT)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
def test_images_rotated_by_90_degrees_have_swapped_sizes(
    order: str, orientation: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg(exif(orientation, order), APP0))
    assert image_size(str(path)) == (HEIGHT, WIDTH)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a JPEG, PNG, BMP, GIF or WebP"),
        (b"II*\0\x08\0\0\0" + bytes(100), "not a JPEG, PNG, BMP, GIF or WebP"),
        (jpeg(APP0)[:26], "image is damaged"),
        (PNG[:20], "image is damaged"),
        (b"BM", "image is damaged"),
        (webp(b"VP8 ", bytes(20)), "image is damaged"),
        (b"\xff\xd8\xff\xe1\0\x01", "image is damaged"),
        (b"\xff\xd8\xff\xc0\0\0" + bytes(30), "image is damaged"),
    ],
)
def test_files_that_are_not_images(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        image_size(str(path))
    assert "--image-sizes FILE" in str(error.value)


WHOLE = {
    "jpeg": jpeg(APP0, exif(6)), "png": PNG, "bmp": BMP, "os/2": OLD_BMP, "gif": GIF,
    "lossy": LOSSY, "lossless": LOSSLESS, "extended": EXTENDED,
}  # fmt: skip


def size_of(path: Path) -> tuple[int, int] | None:
    try:
        return image_size(str(path))
    except InputError:
        return None


@pytest.mark.parametrize("kind", WHOLE)
def test_truncated_files_have_a_size_or_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    size = (HEIGHT, WIDTH) if kind == "jpeg" else (WIDTH, HEIGHT)
    for length in range(len(WHOLE[kind]) + 1):
        path.write_bytes(WHOLE[kind][:length])
        assert size_of(path) in (size, None), length


@pytest.mark.parametrize("kind", WHOLE)
def test_any_changed_byte_is_handled(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    for offset in range(len(WHOLE[kind])):
        for byte in (0, 1, 2, 0x7F, 0xFF):
            content = bytearray(WHOLE[kind])
            content[offset] = byte
            path.write_bytes(content)
            assert min(size_of(path) or (1, 1)) > 0, (offset, byte)


@pytest.mark.parametrize("suffix", ["jpeg", "png", "bmp", "gif", "webp"])
def test_sizes_equal_pillow(suffix: str, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow writes the images")
    path = tmp_path / f"a.{suffix}"
    image.new("RGB", (33, 21)).save(path)
    assert image_size(str(path)) == (33, 21)


# --- tables


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
        ("image,width,height\na,-1,2\n", "line 2: width is '-1', expected an integer above 0"),
        (
            "image,width,height\na,0,2\n",
            "line 2: width is '0', expected an integer above 0; write `image,width,height`",
        ),
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
