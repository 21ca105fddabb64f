"""The fallback readers as oracle of the compiled scanners, for tests and fuzzing."""

import math
from collections.abc import Sequence

from detap.formats.by_name.problems import Problems
from detap.formats.text import _scan as _voc_text
from detap.formats.text.lines import LineForm, read_lines
from detap.formats.voc import _scan as _voc_xml
from detap.formats.voc.annotations import read_annotation
from detap.formats.yolo.lines import YoloForm
from detap.io.limits import DEFAULT_LIMITS

Row = tuple[str, bool, tuple[str, ...]]
"""Name, flag, and the numbers as float.hex()."""


def _hex(values: Sequence[float]) -> tuple[str, ...]:
    return tuple(map(float.hex, values))


def scan_annotations(contents: list[bytes]) -> list[tuple[list[Row], tuple[str, ...]] | None]:
    """Return the scanner's result of each file, or None if it falls back."""
    not_scanned, file, name, difficult, corners, words, sizes = _voc_xml.scan_files(
        -1, list(contents), file_bytes=1 << 22, records=1 << 30, nesting=100, contents=True
    )
    rows: list[list[Row]] = [[] for _ in contents]
    for at, number, flag, box in zip(
        file.tolist(), name.tolist(), difficult.tolist(), corners.tolist(), strict=True
    ):
        rows[at].append((words[number].decode(), flag, _hex(box)))
    assert not any(rows[at] for at in not_scanned)
    return [
        None if at in set(not_scanned) else (rows[at], _hex(size))
        for at, size in enumerate(sizes.tolist())
    ]


def read_annotation_by_fallback(content: bytes) -> tuple[list[Row], tuple[str, ...]] | None:
    """Return the fallback reader's result, or None on a problem or note."""
    problems = Problems(1)
    annotation = read_annotation(content, "a.xml", problems, DEFAULT_LIMITS)
    if problems.count or annotation.nested:
        return None
    lines = annotation.objects
    rows = [
        (name, flag, _hex(values))
        for name, flag, values in zip(lines.names, lines.flags, lines.values, strict=True)
    ]
    return rows, _hex((annotation.width, annotation.height))


def check_annotation(content: bytes) -> bool:
    """Assert that the scanner falls back or equals the fallback reader.

    Returns
    -------
    bool
        True if the scanner accepted the file.
    """
    (scanned,) = scan_annotations([content])
    if scanned is not None:
        assert scanned == read_annotation_by_fallback(content), content
    return scanned is not None


def plain_number(text: str) -> float | None:
    """Parse a decimal number without a regular expression, as a second implementation."""
    body = text[1:] if text[:1] in {"+", "-"} else text
    mantissa, e, exponent = body.replace("E", "e").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = set("0123456789")
    power = exponent[1:] if exponent[:1] in {"+", "-"} else exponent
    fine = (whole or fraction) and set(whole + fraction) <= digits
    if not fine or (e and not (power and set(power) <= digits)):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def form(
    width: int, box_format: str, known: Sequence[str] | None, counts: tuple[int, ...] = ()
) -> LineForm:
    """Return the form of lines with this many numbers and a first word."""
    key, scored = "image" if known else "class", width % 2 == 1
    if box_format != "fractions":
        return LineForm(key, scored, box_format, str, known)
    return YoloForm(key, scored, "cxcywh", str, known, counts, width - scored)


def check_lines(
    content: bytes,
    width: int,
    box_format: str,
    known: Sequence[str] | None,
    counts: tuple[int, ...] = (),
) -> bool:
    """Assert that the scanner of text files falls back or equals the fallback reader.

    `counts` is how many coordinates lines of YOLO's may have.
    """
    lines_form = form(width, box_format, known, counts)
    met: set[int] = set()
    not_scanned, file, name, flag, values, words = _voc_text.scan_files(
        -1,
        [content],
        [word.encode() for word in known or ()],
        grow=known is None,
        width=width,
        **lines_form.scanned | ({"polygons": met} if box_format == "fractions" else {}),
        file_bytes=1 << 22,
        records=1 << 30,
        contents=True,
    )
    if not_scanned:
        assert len(file) == 0
        return False
    problems = Problems(1)
    lines = read_lines(content, "a.txt", lines_form, problems)
    if isinstance(lines_form, YoloForm) and met | lines_form.polygons:
        assert (min(met), max(met)) == (min(lines_form.polygons), max(lines_form.polygons))
    assert not problems.count, (content, problems.listed)
    assert flag.tolist() == lines.flags
    assert [words[number].decode() for number in name.tolist()] == lines.names, content
    assert [_hex(row) for row in values.tolist()] == [_hex(row) for row in lines.values], content
    if known is not None:
        assert set(lines.names) <= set(known)
    return True
