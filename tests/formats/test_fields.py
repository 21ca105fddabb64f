"""The reader of records at its limits: what is odd and goes to Python, and what is not.

Whether a value is JSON is what Python's json says of it.
"""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.errors import InputError
from detap.formats.coco.results import ResultsFile
from detap.formats.coco.truth import TruthFile
from detap.formats.json._fields import DONE, Fields, Reader, nesting
from detap.formats.json.document import Ids
from detap.tables.detection import GroundTruth
from tests.formats.coco_files import agreed, document_of, feeder, truth_columns

MANY = 1 << 40
X = '"x": '
QUESTION = '"?"'


def walked(
    fields: Fields,
    text: str | bytes,
    *,
    block: int = MANY,
    most: int = MANY,
    rows: int = MANY,
    deep: int = 64,
) -> Any:
    """Walk a list; `regular` is False at an odd record, or if something follows."""
    data = text.encode() if isinstance(text, str) else text
    reader = Reader(feeder(data, block), most, deep)
    reader.begin()
    fields.most = rows
    regular = reader.peek() == "["
    if regular:
        reader.skip()
        regular = reader.walk(fields, 1) == DONE and not (reader.peek() or reader.failed)
    return SimpleNamespace(regular=regular, fields=fields, count=fields.count)


def results(text: str | bytes, *, xyxy: bool = False, **options: Any) -> Any:
    file = ResultsFile(boxes="xyxy" if xyxy else "xywh")
    return walked(file.fields[0], text, **options)


def record(extra: str = "", **changes: str) -> str:
    values = {"image_id": "1", "category_id": "2", "bbox": "[1, 2, 3, 4]", "score": "0.5"}
    pairs = [f'"{key}": {value}' for key, value in (values | changes).items()]
    return "{" + ", ".join([*pairs, extra] if extra else pairs) + "}"


def annotations(rows: str, **options: Any) -> Any:
    return walked(TruthFile().fields[1], f"[{rows}]", **options)


TRUTH = GroundTruth.from_arrays(
    image=[1], label=[2], boxes=[[0, 0, 9, 9]], images=[1, 2], classes=[2, 5]
)
ANNOTATION = '{"id": 7, "image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "area": 12}'


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return False
    return True


NUMBERS = ["0", "-0", "7", "-7", "10", "1.5", "-0.25", "0.0", "100.125", "1e5", "1E-5", "2e+3"]
NO_NUMBERS = ["01", "-01", "00", "-", "--1", "1-2", "1.", ".5", "-.5", "1.-2", "1.2.3", "1 2", ""]
NO_NUMBERS += ["1:", "1:2", "1e5:", ":1", "1.5:", "1e:", "1/2"]
NO_NUMBERS += ["1e", "1e+", "1.e5", "+1", "1e5.5", "0x1", "1,", ",1", "1,,2", "-,1", "NaN", "1. 5"]


@pytest.mark.parametrize("number", NUMBERS + NO_NUMBERS)
def test_numbers_in_arrays(number: str) -> None:
    for before in ("", "1,", "11, "):
        for after in ("", ",2", ",-3.5, 4"):
            text = f"[{record(X + f'[{before}{number}{after}]')}]"
            assert results(text).regular == is_json(text), text
    assert number in NUMBERS or not results(f"[{record(image_id=number)}]").regular


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
    text = f"[{record(X + value)}, {record()}]"
    assert results(text).regular == is_json(text)
    assert results(text, block=64).regular == is_json(text)


STRINGS = ['""', '"a"', '"abcdefg"', '"abcdefgh"', '"abcdefghi"', '"\\n\\t\\b\\f\\r\\/\\\\\\""']
STRINGS += ['"\\u00e9\\uABCd"', '"\\u00g0"', '"\\u00e"', '"\\v"', '"\\x41"', '"a\tb"', '"a\x1fb"']
STRINGS += ['"\u007f"', '"\u00e9"', '"\u20ac uro"', '"\U0001f600"', '"1234567\n"', '"abc', "abc"]
STRINGS += ['"\\u00eg"', '"\\u0g00"', '"\\ug000"', '"\\u00gz"', '"\\u00E9"']
STRINGS += ["true", "false", "null", "trux", "fals", "falsf", "nulk", "nul", "True", "tru"]
STRINGS += ["{}", "[]", "{,}", "[,]", '{"a"}', '{"a":}', '{"a" 1}', '{"a": 1,}', "[1,]"]
STRINGS += ['{"a": 1 "b": 2}']
STRINGS += ["[\v1]", "[\r\n\t 1 ]", "{1: 2}", "[{}, [], {}]", "[1}", '{"a": 1]', '["a" "b"]']


@pytest.mark.parametrize("value", STRINGS)
def test_values_of_other_keys_are_checked(value: str) -> None:
    text = f"[{record(X + value)}, {record()}]"
    assert results(text).regular == is_json(text)
    assert results(text, block=1).regular == is_json(text)


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
    data = f"[{record(X + QUESTION)}]".encode().replace(b"?", b"ab" + text + b"c")
    try:
        data.decode()
        valid = True
    except UnicodeDecodeError:
        valid = False
    assert results(data).regular == valid


def test_keys_of_an_object_are_distinct_and_not_too_many() -> None:
    def value(text: str) -> bool:
        return bool(results(f"[{record(X + text)}]").regular)

    assert not value('{"a": 1, "a": 2}')
    assert not value('{"a": {"b": 1, "b": 2}}')
    assert value('{"a": {"a": 1}, "b": {"a": 1}}')
    assert value('{"abcdefgha": 1, "abcdefghb": 2, "abcdefg": 3, "abcdefgh": 4}')
    assert not value('{"abcdefgha": 1, "abcdefghb": 2, "abcdefgha": 3}')
    assert not value('{"\\u0061": 1}')  # may be another key
    assert value("{" + ",".join(f'"{n}": 1' for n in range(512)) + "}")
    assert not value("{" + ",".join(f'"{n}": 1' for n in range(513)) + "}")
    assert value("[" + ",".join('{"a": 1}' for _ in range(600)) + "]")
    for key in ('"score": 1', '"scor\\u0065": 1'):
        assert not results(f"[{record(key)}]").regular


def test_nesting_of_records_is_limited() -> None:
    deepest = [results(f"[{record()}]", deep=deep).regular for deep in (1, 2, 3)]
    assert deepest == [False, False, True]
    assert not results(f"[{record(X + '[' * 70 + ']' * 70)}]", deep=100).regular


def test_limits_of_bytes_and_records_are_inclusive() -> None:
    text = f"[{record()}, {record()}]"
    assert results(text, most=len(text)).regular
    assert not results(text, most=len(text) - 1).regular
    assert results(text, rows=2).regular
    assert not results(text, rows=1).regular


@pytest.mark.parametrize(
    ("text", "regular"),
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
def test_the_outermost_value(text: str, regular: bool) -> None:
    for block in (MANY, 1):
        file = ResultsFile()
        data = text.encode()
        try:
            file.read(document_of(data, feed=feeder(data, block)))
            file.columns(TRUTH)
        except InputError:
            assert not regular
        else:
            assert regular


@pytest.mark.parametrize("block", [1, MANY])
def test_values_by_hand(block: int) -> None:
    rows = [
        record(),
        record(image_id="2", category_id="5", bbox="[10, 20, 40, 60]", score="-1.5"),
        record('"area": 3, "iscrowd": 1', image_id="2.0", category_id='"c"'),
        record(image_id="4611686018427387904", category_id="-4611686018427387905"),
    ]
    scan = results(f"[{', '.join(rows)}]", block=block)
    assert scan.regular
    fields = scan.fields
    for key, names, index in (
        ("image_id", [1, 2, 2**62], [0, 1, 1, 2]),
        ("category_id", [2, 5, "c", -(2**62) - 1], [0, 1, 2, 3]),
    ):
        ids = Ids(fields, key)
        assert (ids.names, ids.rows.tolist()) == (names, index)
    assert np.asarray(fields.take("score")).tolist() == [0.5, -1.5, 0.5, 0.5]
    boxes = [[1, 2, 3, 4], [10, 20, 40, 60], [1, 2, 3, 4], [1, 2, 3, 4]]
    assert np.asarray(fields.take("bbox")).tolist() == boxes


def test_many_keys_and_long_gaps_in_a_record() -> None:
    """48 keys are read; the keys of a record differ from those of the one before."""
    keys = [f'"k{n}": {n}' for n in range(45)]
    rows = [record(), record(", ".join(keys[:44])), record('"y": 1')]
    assert results(f"[{', '.join(rows)}]").regular
    assert not results(f"[{record(', '.join(keys))}]").regular
    gaps = [record(), record().replace(", ", ", " + " " * 60), record().replace(": ", ":")]
    gaps += [record(), record().replace('": ', '" :  '), record().replace(", ", " ,")]
    gaps += [record('"k": 1'), record('"' + "k" * 100 + '": 1'), record('"' + "k" * 100 + '": 1')]
    scan = results(f"[{','.join(gaps)}]")
    assert scan.regular
    assert np.asarray(scan.fields.take("bbox")).tolist() == [[1, 2, 3, 4]] * len(gaps)


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


def test_nesting_of_text() -> None:
    depths = {b"": 0, b"1": 0, b"[]": 1, b'{"a": [1]}': 2, b"[[], []]": 2, b"[[[1]], [2]]": 3}
    depths |= {b'["[[[", "\\"[[", [1], {}, {}]': 2, b'["\\\\", [[1]]]': 3}
    assert {text: nesting(text) for text in depths} == depths


def test_keys_that_differ_in_one_letter_from_those_before() -> None:
    for old, new in (("image_id", "imagf_id"), ("category_id", "cbtegory_id"), ("bbox", "bbo_")):
        assert not results(f"[{record()}, {record().replace(old, new)}]").regular
    for name in ("area_", "scores", "heights", "isgroupoF", "ID", "bboxx", "nam"):
        extra = f', "{name}": "text"}}'  # not read, so it need not be a number
        assert results(f"[{record()[:-1]}{extra}]").regular
        assert annotations(ANNOTATION[:-1] + extra).regular
    for text in (record().replace(', "cat', '; "cat'), record().replace(', "cat', '  "cat')):
        assert not results(f"[{text}]").regular
        assert not results(f"[{record()}, {text}]").regular


@pytest.mark.parametrize("cut", [False, True])
def test_blocks_end_anywhere(cut: bool) -> None:
    values = '[true, false, null, "\\u00e9\u20ac\\n", -1.25e-3, 12345678901, {"a": []}]'
    text = f"[{record(X + values)}, {record(X + values, score='0.25')}, {record()}]".encode()
    for block in range(1, len(text)):
        scan = results(text[:-2] if cut else text, block=block)
        assert scan.regular != cut
        assert cut or scan.count == 3


def test_spans_of_records_without_a_box() -> None:
    fields = Fields([("bbox", "box"), ("a", "span"), ("b", "span")], only_boxless=["a"])
    rows = ['{"a": [1], "b": 2}', '{"bbox": [1, 2, 3, 4], "a": "x", "b": {}}', '{"b": [ ]}', "{}"]
    assert walked(fields, f"[{', '.join(rows)}]", block=3).regular
    assert [fields.span_of("a", row) for row in range(4)] == [b"[1]", b"", b"", b""]
    assert [fields.span_of("b", row) for row in range(4)] == [b"2", b"{}", b"[ ]", b""]
    fields.append({"a": b"[5]"})
    assert fields.span_of("a", 4) == b"[5]"
    fields.drain()
    fields.append({"b": b"7"})
    assert fields.span_of("b", 5) == b"7"


@pytest.mark.parametrize(
    ("attributes", "degrees"),
    [
        ('{"rotation": 1.5}', 1.5), ('{"x": {"rotation": 2}, "rotation": 3}', 3),
        ('{"rotation": "4"}', None), ("5", None), ("[]", None), ("{}", None),
        ('{"rotation": true, "a": 1}', None), ('{"a": "rotation", "rotation": 1e999}', None),
        ('{"rotation": 360.0}', None), ('{"rot\\u0061tion": 5}', 5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("one_by_one", [False, True])
def test_rotations(attributes: str, degrees: float | None, one_by_one: bool) -> None:
    rotated = f'{ANNOTATION[:-1]}, "attributes": {attributes}}}'
    head = '{"images": [{"id": 1}], "categories": [{"id": 2}], "annotations": '
    file = TruthFile()
    file.fields[1].each = one_by_one
    file.read(document_of(f"{head}[{ANNOTATION.replace('7', '8')}, {rotated}]}}".encode()))
    file.columns()
    assert file.rotated == ({} if degrees is None else {1: degrees})
