"""lxml as oracle of the compiled scanner of annotations."""

from collections.abc import Sequence

from detap.formats.reading.attributes import Attributes
from detap.formats.text.reader import Rows
from detap.formats.voc._scan import Annotations
from detap.formats.voc.tables import plain_start
from detap.formats.voc.xml import read_annotation
from detap.io.problems import Problems

Row = tuple[str, bool, tuple[str, ...]]
"""Name, flag, and the numbers as float.hex()."""


def _hex(values: Sequence[float]) -> tuple[str, ...]:
    return tuple(map(float.hex, values))


def scan_annotation(content: bytes) -> tuple[list[Row], tuple[str, ...]] | None:
    """Return the scanner's result of a file, or None if it is not regular."""
    scanned = Annotations(100)
    if not scanned.read(plain_start(content), 0):
        assert len(scanned) == 0
        return None
    return _rows_of(scanned), _hex((scanned.width, scanned.height))


def _rows_of(scanned: Annotations) -> list[Row]:
    rows = Rows.of(scanned, str)
    columns = zip(rows.name.tolist(), rows.flag.tolist(), rows.table(4).tolist(), strict=True)
    return [(rows.names[at], flag, _hex(box)) for at, flag, box in columns]


def read_annotation_by_lxml(content: bytes) -> tuple[list[Row], tuple[str, ...]] | None:
    """Return the result of lxml, or None on a problem or note."""
    problems, added = Problems(1), Annotations(100)
    size, nested = (0.0, 0.0), 0
    with problems.collected():
        size, nested, _ = read_annotation(content, "a.xml", added, Attributes(()), problems)
    return None if problems.count or nested else (_rows_of(added), _hex(size))


def check_annotation(content: bytes) -> bool:
    """Assert that the scanner equals lxml; return False if it leaves the file."""
    scanned = scan_annotation(content)
    if scanned is not None:
        assert scanned == read_annotation_by_lxml(content), content
    return scanned is not None
