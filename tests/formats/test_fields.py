"""Odd JSON in files of results: read as by Python's json, which says what is JSON, or refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.errors import InputError
from detap.formats.coco.results import ResultsFile
from detap.formats.json._fields import DONE, Fields, Reader
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.tables.detection import GroundTruth
from tests.formats.coco_files import agreed, document_of, feeder, result_columns, truth_columns

MANY = 1 << 40
X = '"x": '
TRUTH = GroundTruth.from_arrays(
    image=[1], label=[2], boxes=[[0, 0, 9, 9]], images=[1, 2], classes=[2, 5]
)


def record(extra: str = "", **changes: str) -> str:
    values = {"image_id": "1", "category_id": "2", "bbox": "[1, 2, 3, 4]", "score": "0.5"}
    pairs = [f'"{key}": {value}' for key, value in (values | changes).items()]
    return "{" + ", ".join([*pairs, extra] if extra else pairs) + "}"


def is_json(data: bytes) -> bool:
    def unite(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        json.loads(data.decode(), parse_constant=lambda name: 1 / 0, object_pairs_hook=unite)
    except (ValueError, ZeroDivisionError):
        return False
    return True


def accepted(text: str | bytes, block: int = MANY, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Return True if results are valid; both readings must agree on that and on all values."""
    data = text.encode() if isinstance(text, str) else text
    feed = feeder(data, block)
    return agreed(result_columns, data, TRUTH, feed=feed, limits=limits) is not None


def walk(fields: Fields, data: bytes, block: int = MANY) -> bool:
    """Read a list of records; return True if the compiled reader leaves none to Python."""
    reader = Reader(feeder(data, block), MANY, 64)
    reader.begin()
    fields.most = MANY
    reader.skip()
    return reader.walk(fields, 1) == DONE and not (reader.peek() or reader.failed)


def check(text: str | bytes, *, left: bool = False) -> None:
    """Assert that results are accepted, read at once or byte by byte, if they are JSON.

    The compiled reader reads all of it, unless it is `left` to Python.
    """
    data = text.encode() if isinstance(text, str) else text
    for block in (MANY, 1):
        assert accepted(data, block) == is_json(data), data
    assert walk(ResultsFile().fields[0], data) == (is_json(data) and not left)


NUMBERS = ["0", "-0", "7", "-7", "10", "1.5", "-0.25", "0.0", "100.125", "1e5", "1E-5", "2e+3"]
NUMBERS += ["01", "-01", "00", "-", "--1", "1-2", "1.", ".5", "-.5", "1.-2", "1.2.3", "1 2", ""]
NUMBERS += ["1:", "1:2", "1e5:", ":1", "1.5:", "1e:", "1/2"]
NUMBERS += ["1e", "1e+", "1.e5", "+1", "1e5.5", "0x1", "1,", ",1", "1,,2", "-,1", "NaN", "1. 5"]


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_in_arrays(number: str) -> None:
    for before in ("", "1,", "11, "):
        for after in ("", ",2", ",-3.5, 4"):
            check(f"[{record(X + f'[{before}{number}{after}]')}]")
    assert is_json(number.encode()) or not accepted(f"[{record(image_id=number)}]")


def test_ids_are_whole_numbers() -> None:
    assert accepted(f"[{record(image_id='1.0')}]")
    assert not accepted(f"[{record(image_id='1.5')}]")


def test_a_key_of_no_column_twice() -> None:
    check(f"[{record(f'{X}1, {X}2')}]")
    check(f"[{record(f'{X}1')}, {record(f'{X}1, {X}2')}]")


PARTS = st.sampled_from(["0", "7", "12", "345.67", "0.25", "1." + "3" * 60, "9" * 61, "-1", "1e5"])
LISTS = st.lists(st.tuples(PARTS, st.sampled_from([",", ", ", ",  ", " , "])), min_size=1)


@given(LISTS, st.integers(0), st.sampled_from("0123456789.,- ]e\n["), st.booleans(), st.booleans())
def test_long_lists_of_numbers(
    parts: list[tuple[str, str]], at: int, letter: str, spoilt: bool, nested: bool
) -> None:
    plain = "".join(map("".join, parts)) + "5"
    at %= len(plain)
    spoilt_text = plain[:at] + letter + plain[at + 1 :] if spoilt else plain
    value = f"[[{spoilt_text}], 1]" if nested else f"[{spoilt_text}]"
    text = f"[{record(X + value)}, {record()}]".encode()
    for block in (MANY, 64):
        assert accepted(text, block) == is_json(text)


VALUES = ['""', '"a"', '"abcdefg"', '"abcdefgh"', '"abcdefghi"', '"\\n\\t\\b\\f\\r\\/\\\\\\""']
VALUES += ['"\\u00e9\\uABCd"', '"\\u00g0"', '"\\u00e"', '"\\v"', '"\\x41"', '"a\tb"', '"a\x1fb"']
VALUES += ['"\u007f"', '"\u00e9"', '"\u20ac uro"', '"\U0001f600"', '"1234567\n"', '"abc', "abc"]
VALUES += ['"\\u00eg"', '"\\u0g00"', '"\\ug000"', '"\\u00gz"', '"\\u00E9"']
VALUES += ["true", "false", "null", "trux", "fals", "falsf", "nulk", "nul", "True", "tru"]
VALUES += ["{}", "[]", "{,}", "[,]", '{"a"}', '{"a":}', '{"a" 1}', '{"a": 1,}', "[1,]"]
VALUES += ['{"a": 1 "b": 2}']
VALUES += ["[\v1]", "[\r\n\t 1 ]", "{1: 2}", "[{}, [], {}]", "[1}", '{"a": 1]', '["a" "b"]']
# Keys of one object are distinct, however many there are.
VALUES += ['{"a": 1, "a": 2}', '{"a": {"b": 1, "b": 2}}', '{"a": {"a": 1}, "b": {"a": 1}}']
VALUES += ['{"abcdefgha": 1, "abcdefghb": 2, "abcdefg": 3, "abcdefgh": 4}', '{"\\u0061": 1}']
VALUES += ['{"abcdefgha": 1, "abcdefghb": 2, "abcdefgha": 3}', '{"a": 1, "\\u0061": 1}']
VALUES += ["{" + ",".join(f'"{n}": 1' for n in range(count)) + "}" for count in (512, 513)]
VALUES += ["[" + ",".join('{"a": 1}' for _ in range(600)) + "]"]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value[:30]))
def test_values_of_other_keys_are_checked(value: str) -> None:
    left = "\\u0061" in value or "512" in value  # may be another key; too many
    check(f"[{record(X + value)}, {record()}]", left=left)


@pytest.mark.parametrize(
    "text",
    [
        b"\x80", b"\xc1\xbf", b"\xc2\x80", b"\xc2\x7f", b"\xdf\xbf", b"\xe0\x9f\xbf",
        b"\xe0\xa0\x80",
        b"\xed\x9f\xbf", b"\xed\xa0\x80", b"\xef\xbf\xbf", b"\xe1\x80\xc0", b"\xf0\x8f\xbf\xbf",
        b"\xf0\x90\x80\x80", b"\xf4\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff",
        b"\xf1\x80\x80\x7f", b"\xe1\x80", b"\xc2", b"\xc0\x80",
    ],
)  # fmt: skip
def test_strings_are_utf_8(text: bytes) -> None:
    check(f'[{record(X)}"?"]'.encode().replace(b'}"?"', b'"ab' + text + b'c"}'))


KEYS = [", ".join(f'"k{n}": {n}' for n in range(count)) for count in (44, 45)]
GAPS = [record().replace(", ", ", " + " " * 60), record().replace(": ", ":")]
GAPS += [record().replace('": ', '" :  '), record().replace(", ", " ,")]
NAMES = [f'"{name}": "text"' for name in ("area_", "scores", "heights", "isgroupoF", "ID", "nam")]
RECORDS = [*map(record, (*KEYS, *NAMES, '"k": 1', '"' + "k" * 100 + '": 1')), *GAPS]
RECORDS += [record('"score": 1'), record('"scor\\u0065": 1')]
RECORDS += [record().replace(', "cat', sign) for sign in ('; "cat', '  "cat')]


@pytest.mark.parametrize("text", RECORDS, ids=lambda text: text[50:90])
def test_records_that_differ_from_those_before(text: str) -> None:
    """In their keys, of which 48 are read, and in their gaps; other keys may have any value."""
    left = KEYS[1] in text
    check(f"[{text}]", left=left)
    check(f"[{record()}, {text}, {text}, {record()}]", left=left)


@pytest.mark.parametrize("key", ["image_id", "category_id", "bbox", "score"])
@pytest.mark.parametrize("at", [1, -1])
def test_a_key_that_differs_in_one_letter(key: str, at: int) -> None:
    other = f"{key[:at]}?{key[at:][1:]}"
    assert not accepted(f"[{record()}, {record().replace(key, other)}]")


def test_limits_are_inclusive() -> None:
    text = f"[{record()}, {record()}]"
    for name, least in (("file_bytes", len(text)), ("records", 2), ("nesting", 3)):
        for most in (least - 1, least):
            limit: dict[str, Any] = {name: most}
            assert accepted(text, limits=Limits(**limit)) == (most == least)
    assert not accepted(f"[{record(X + '[' * 70 + ']' * 70)}]", limits=Limits(nesting=71))


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("[]", True), ("[ ]", True), ("[] ", True), ("[]]", False), ("[],", False), ("", False),
        ("{}", False), ('{"annotations": []}', True), ('{"predictions": []}', True),
        ('{"annotations": [], "annotations": []}', False),
        ('{"annotations": [], "predictions": []}', False),
        ('{"annotations": {}}', False), ('{"annotations": [], "x": 1}', True),
        ('{"annotations": [] "x": 1}', False), ('{"annotations": [],}', False),
        ('{"x": 1, "x": 2, "annotations": []}', False), ('{"annotations": []', False),
        (f"[{record()},]", False), (f"[{record()} {record()}]", False), (f"[,{record()}]", False),
        (f"[{record()}, 1]", False), (f"[{record()}", False), (f"[{record()}]\0", False),
        (f"[{record()}}}", False), (f" \n[{record()}]\n", True), ("\ufeff[]", True),
        ("\ufeff\ufeff[]", False), ('{"annot\\u0061tions": [], "annotations": []}', False),
        ('{"x": [{"a": 1}, {"a": 2}], "annotations": []}', True),
        ('{"x": [1, 2], "annotations": []}', True),
        ('{"x": [1 2], "annotations": []}', False), ('{"x": 12, "annotations": []}', True),
        ("{" + "".join(f'"{n}": 1, ' for n in range(60)) + '"annotations": []}', True),
        ("{" + "".join(f'"{n}": 1, ' for n in range(64)) + '"annotations": []}', True),
    ],
)  # fmt: skip
def test_the_outermost_value(text: str, valid: bool) -> None:
    for block in (MANY, 1):
        file = ResultsFile()
        data = text.encode()
        try:
            file.read(document_of(data, feed=feeder(data, block)))
            file.columns(TRUTH)
        except InputError:
            assert not valid
        else:
            assert valid


ANNOTATION = '{"id": 7, "image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "area": 12}'


@pytest.mark.parametrize(
    ("ids", "distinct"),
    [
        (("3", "1", "2"), True),
        (("3", "5", "1", "5"), False),
        (("3", "259", "515"), True),
        (("9", "-9", "1"), True),
        (("5", "72057594037927941", "5"), False),
        (("9223372036854775807", "9223372036854775808"), True),
        (('"a"', '"b"'), True),
        (('"a"', '"\\u0061"'), False),
        (("1", "1.0"), False),
    ],
)
def test_equal_ids_are_found(ids: tuple[str, ...], distinct: bool) -> None:
    """Only equal records may have one id; these differ in their areas."""
    rows = [
        ANNOTATION.replace("7", name).replace("12}", f"{12 + k}}}") for k, name in enumerate(ids)
    ]
    head = '{"images": [{"id": 1}], "categories": [{"id": 2}], "annotations": '
    data = f"{head}[{', '.join(rows)}]}}".encode()
    assert (agreed(truth_columns, data) is not None) == distinct


@pytest.mark.parametrize("cut", [False, True])
def test_blocks_end_anywhere(cut: bool) -> None:
    values = '[true, false, null, "\\u00e9\u20ac\\n", -1.25e-3, 12345678901, {"a": []}]'
    text = f"[{record(X + values)}, {record(X + values, score='0.25')}, {record()}]".encode()
    for block in range(1, len(text)):
        assert accepted(text[:-2] if cut else text, block) != cut


@pytest.mark.parametrize("block", [3, MANY])
def test_spans_of_records_without_a_box(block: int) -> None:
    fields = Fields([("bbox", "box"), ("a", "span"), ("b", "span")], only_boxless=["a"])
    rows = ['{"a": [1], "b": 2}', '{"bbox": [1, 2, 3, 4], "a": "x", "b": {}}']
    rows += ['{"a": [6], "b": [ ]}', "{}"]
    assert walk(fields, f"[{', '.join(rows)}]".encode(), block)
    assert [fields.span_of("a", row) for row in range(4)] == [b"[1]", b"", b"[6]", b""]
    assert [fields.span_of("b", row) for row in range(4)] == [b"2", b"{}", b"[ ]", b""]
    fields.append({"a": b"[5]"})
    assert fields.span_of("a", 4) == b"[5]"
    fields.drain()
    fields.append({"b": b"7"})
    assert fields.span_of("b", 5) == b"7"
