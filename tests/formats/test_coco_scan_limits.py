"""The fast reader of COCO JSON at its limits: what it reads, and what it leaves to the other.

Whether a value is JSON is what Python's json says of it.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.formats.coco._scan import (
    CAN_SPLIT,
    ListsScan,
    ResultsScan,
    TruthScan,
    class_names,
    find_record,
    nesting,
)

MANY = 1 << 40
X = '"x": '
QUESTION = '"?"'
NAMED = '"c"'
UNPAIRED = '"\\ud800"'


def reader(data: bytes, block: int) -> Callable[[int], bytes]:
    rest = memoryview(data)

    def read(count: int) -> bytes:
        nonlocal rest
        part, rest = rest[: min(count, block)], rest[min(count, block) :]
        return bytes(part)

    return read


def results(
    text: str | bytes, *, block: int = MANY, most: int = MANY, rows: int = MANY, deep: int = 64
) -> ResultsScan:
    data = text.encode() if isinstance(text, str) else text
    scan = ResultsScan(-1, reader(data, block), most, rows, deep)
    scan.run()
    return scan


def masks(segmentation: str, *, deep: int = 64) -> ResultsScan:
    data = record(f'"segmentation": {segmentation}').encode()
    scan = ResultsScan(-1, reader(f"[{data.decode()}]".encode(), MANY), MANY, MANY, deep, True)
    scan.run()
    return scan


def record(extra: str = "", **changes: str) -> str:
    values = {"image_id": "1", "category_id": "2", "bbox": "[1, 2, 3, 4]", "score": "0.5"}
    pairs = [f'"{key}": {value}' for key, value in (values | changes).items()]
    return "{" + ", ".join([*pairs, extra] if extra else pairs) + "}"


def truth(
    annotations: str, images: str = '{"id": 1}', categories: str = '{"id": 2}', **options: Any
) -> TruthScan:
    text = f'{{"images": [{images}], "annotations": [{annotations}], "categories": [{categories}]}}'
    scan = TruthScan(
        -1, reader(text.encode(), MANY), MANY, options.pop("rows", MANY), 64, **options
    )
    scan.run()
    return scan


ANNOTATION = '{"id": 7, "image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "area": 12}'


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return False
    return True


NUMBERS = ["0", "-0", "7", "-7", "10", "1.5", "-0.25", "0.0", "100.125", "1e5", "1E-5", "2e+3"]
NO_NUMBERS = [
    "01",
    "-01",
    "00",
    "-",
    "--1",
    "1-2",
    "1.",
    ".5",
    "-.5",
    "1.-2",
    "1.2.3",
    "1 2",
    "",
    " ",
]
NO_NUMBERS += ["1:", "1:2", "1e5:", ":1", "1.5:", "1e:", "1/2"]
NO_NUMBERS += ["1e", "1e+", "1.e5", "+1", "1e5.5", "0x1", "1,", ",1", "1,,2", "-,1", "NaN", "1. 5"]


@pytest.mark.parametrize("number", NUMBERS + NO_NUMBERS)
def test_numbers_in_arrays_wherever_64_bytes_end(number: str) -> None:
    for offset in (0, 2, *range(48, 70), *range(120, 132)):
        one = "1," * (offset // 2) if offset % 2 == 0 else "11," + "1," * (offset // 2 - 1)
        for before in {one, "1, " * (offset // 3)}:
            for after in ("", ",2", ",-3.5, 4"):
                text = f"[{record(X + f'[{before}{number}{after}]')}]"
                assert results(text).regular == is_json(text), text


STRINGS = ['""', '"a"', '"abcdefg"', '"abcdefgh"', '"abcdefghi"', '"\\n\\t\\b\\f\\r\\/\\\\\\""']
STRINGS += ['"\\u00e9\\uABCd"', '"\\u00g0"', '"\\u00e"', '"\\v"', '"\\x41"', '"a\tb"', '"a\x1fb"']
STRINGS += ['"\u007f"', '"\u00e9"', '"\u20ac uro"', '"\U0001f600"', '"1234567\n"', '"abc', "abc"]
STRINGS += ['"\\u00eg"', '"\\u0g00"', '"\\ug000"', '"\\u00gz"', '"\\u00E9"']
STRINGS += ["true", "false", "null", "trux", "fals", "falsf", "nulk", "nul", "True", "tru"]
STRINGS += [
    "{}",
    "[]",
    "{,}",
    "[,]",
    '{"a"}',
    '{"a":}',
    '{"a" 1}',
    '{"a": 1,}',
    "[1,]",
    '{"a": 1 "b": 2}',
]
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
        return results(f"[{record(X + text)}]").regular

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


@pytest.mark.parametrize("value", ["[[[1]]]", '{"a": {"b": {}}}', '[{"a": []}]', "[[[]]]"])
def test_nesting_is_limited_in_values(value: str) -> None:
    text = f"[{record(X + value)}]"
    for deep in range(3, 8):
        assert results(text, deep=deep).regular == (deep >= 5), deep
    listed = f'{{"x": {value}, "annotations": [{record()}]}}'
    for deep in range(3, 8):
        assert results(listed, deep=deep).regular == (deep >= 4), deep


def test_nesting_of_records_is_limited() -> None:
    assert [results(f"[{record()}]", deep=deep).regular for deep in (1, 2, 3)] == [
        False,
        False,
        True,
    ]
    listed = f'{{"annotations": [{record()}]}}'
    assert [results(listed, deep=deep).regular for deep in (2, 3, 4)] == [False, False, True]
    assert not results(f"[{record(X + '[' * 70 + ']' * 70)}]", deep=100).regular


def test_limits_of_bytes_and_records_are_inclusive() -> None:
    text = f"[{record()}, {record()}]"
    assert results(text, most=len(text)).regular
    assert not results(text, most=len(text) - 1).regular
    assert results(text, rows=2).regular
    assert not results(text, rows=1).regular
    two = ", ".join([ANNOTATION, ANNOTATION.replace("7", "8")])
    assert truth(two, rows=2).regular
    assert not truth(two, rows=1).regular
    images = '{"id": 1}, {"id": 3}'
    assert truth(ANNOTATION, images, rows=2).regular
    assert not truth(ANNOTATION, images, rows=1).regular


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
        ("{" + "".join(f'"{n}": 1, ' for n in range(64)) + '"annotations": []}', False),
    ],
)  # fmt: skip
def test_the_outermost_value(text: str, regular: bool) -> None:
    assert results(text).regular == regular
    assert results(text, block=1).regular == regular


@pytest.mark.parametrize("missing", ["image_id", "category_id", "score", "bbox"])
def test_each_key_of_a_result_is_needed(missing: str) -> None:
    row = json.dumps({k: v for k, v in json.loads(record()).items() if k != missing})
    scan = results(f"[{record()}, {row}, {record()}]")
    assert not scan.regular
    assert scan.boxless == (missing == "bbox")


@pytest.mark.parametrize(
    ("changes", "regular"),
    [
        ({"score": "9007199254740991"}, True),
        ({"score": "9007199254740992"}, False),
        ({"score": "-9007199254740992"}, False),
        ({"score": "9007199254740992.0"}, True),
        ({"score": "9007199254740992e0"}, True),
        ({"score": "9007199254740993E0"}, True),
        ({"score": "1e400"}, False),
        ({"score": "true"}, False),
        ({"bbox": "[1e308, 0, 1e308, 1]"}, False),
        ({"bbox": "[0, 1e308, 1, 1e308]"}, False),
        ({"bbox": "[0, 0, 1e200, 1e200]"}, False),
        ({"bbox": "[0, 0, 1e100, 1e200]"}, True),
        ({"bbox": "[1, 2, 3]"}, False),
        ({"bbox": "[1, 2, 3, 4, 5]"}, False),
        ({"bbox": "[1] 2, 3, 4]"}, False),
        ({"bbox": "[1, 2, 3, 4,"}, False),
        ({"bbox": "1, 2, 3, 4]"}, False),
        ({"bbox": "[ 1 , 2 , 3 , 4 ]"}, True),
        ({"image_id": "1.0"}, True),
        ({"image_id": "1e0"}, True),
        ({"image_id": "1.5"}, False),
        ({"image_id": "9007199254740992.0"}, False),
        ({"image_id": "-9007199254740992.0"}, False),
        ({"image_id": "9223372036854775807"}, True),
        ({"image_id": "9223372036854775808"}, False),
        ({"image_id": "null"}, False),
    ],
)
def test_numbers_that_may_be_rounded_are_left_to_the_other_reader(
    changes: dict[str, str], regular: bool
) -> None:
    assert results(f"[{record(**changes)}]").regular == regular


@pytest.mark.parametrize(
    ("box", "regular"),
    [
        ("[0, 0, 1e308, 1]", True),
        ("[-1e308, 0, 1e308, 1]", False),
        ("[0, 0, 1e200, 1e200]", False),
        ("[1e308, 1e308, 1e308, 1e308]", True),
    ],
)
def test_corners_have_a_finite_area(box: str, regular: bool) -> None:
    data = f"[{record(bbox=box)}]".encode()
    scan = ResultsScan(-1, reader(data, MANY), MANY, MANY, 64, xyxy=True)
    assert scan.run() == regular


@pytest.mark.parametrize("xyxy", [False, True])
def test_values_by_hand(xyxy: bool) -> None:
    rows = [
        record(),
        record(image_id="2", category_id="5", bbox="[10, 20, 40, 60]", score="-1.5"),
        record('"area": 3, "iscrowd": 1', image_id="2.0", category_id="9"),
    ]
    scan = ResultsScan(-1, reader(f"[{', '.join(rows)}]".encode(), 1), MANY, MANY, 64, xyxy=xyxy)
    assert scan.run()
    columns = scan.columns([1, 2], [2, 5])
    assert columns is not None
    image, label, corners, area, score = map(np.asarray, columns[:5])
    assert columns[5] == {9: 1}
    assert image.tolist() == [0, 1, 1]
    assert label.tolist() == [0, 1, 2]
    assert score.tolist() == [0.5, -1.5, 0.5]
    if xyxy:
        assert corners.tolist() == [[1, 2, 3, 4], [10, 20, 40, 60], [1, 2, 3, 4]]
        assert area.tolist() == [4, 30 * 40, 4]
    else:
        assert corners.tolist() == [[1, 2, 4, 6], [10, 20, 50, 80], [1, 2, 4, 6]]
        assert area.tolist() == [12, 2400, 12]


def test_unknown_ids_and_their_counts() -> None:
    text = f"[{', '.join(record(category_id=str(n)) for n in (2, 9, 8, 9, 0))}]"
    columns = results(text).columns([1], [0, 2])
    assert columns is not None
    assert columns[5] == {9: 2, 8: 1}
    assert np.asarray(columns[1]).tolist() == [1, 2, 3, 2, 0]
    assert results(text).columns([3], [0, 2]) is None
    assert results(text).columns([], [0, 2]) is None
    names = text.replace('"category_id": ', '"category_id": "c').replace(', "bbox"', '", "bbox"')
    columns = results(names).columns([1], ["c2", "c0"])
    assert columns is not None
    assert columns[5] == {"c9": 2, "c8": 1}
    assert np.asarray(columns[1]).tolist() == [0, 2, 3, 2, 1]
    with pytest.raises(TypeError, match="mixed types"):
        results(names).columns([1], [2, 0])
    with pytest.raises(TypeError, match="ids mix"):
        results(f"[{record()}, {record(category_id=NAMED)}]").columns([1], [2])
    with pytest.raises(UnicodeError):
        results(f"[{record(image_id=UNPAIRED)}]").columns(["a"], [2])


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
    columns = scan.columns([1], [2])
    assert columns is not None
    assert np.asarray(columns[2]).tolist() == [[1, 2, 4, 6]] * len(gaps)


@pytest.mark.parametrize("name", ["area_", "scores", "heights", "isgroupoF", "ID", "bboxx", "nam"])
def test_other_keys_are_not_read(name: str) -> None:
    """Of a length or a letter that differs: their text is no number, and that is no matter."""
    extra = f', "{name}": "text"}}'
    assert results(f"[{record()[:-1]}{extra}]").regular
    assert truth(ANNOTATION[:-1] + extra, '{"id": 1' + extra).regular


@pytest.mark.parametrize("length", range(1, 12))
@pytest.mark.parametrize("kind", ["image", "annotation", "result"])
def test_keys_of_any_length_are_told_apart(kind: str, length: int) -> None:
    extra = f', "{"z" * length}": "text"'
    if kind == "result":
        assert results(f"[{record()[:-1]}{extra}}}]").regular
    elif kind == "image":
        assert truth(ANNOTATION, f'{{"id": 1{extra}}}').regular
    else:
        assert truth(f"{ANNOTATION[:-1]}{extra}}}").regular


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        ("0", 0), ("1", 1), ("true", 1), ("false", 0), ("1.0", 1), ("0e0", 0), ("1e0", 1),
        ("0.0", 0), ("-0", 0), ("2", None), ("10", None), ("-1", None), ("0.5", None),
        ("null", None), ('"1"', None), ("tru", None), ("falze", None),
    ],
)  # fmt: skip
def test_flags(value: str, flag: int | None) -> None:
    rows = [f'{ANNOTATION[:-1]}, "{key}": {value}}}' for key in ("iscrowd", "ignore", "isgroupof")]
    rows = [row.replace("7", str(n)) for n, row in enumerate(rows, start=5)]
    for row in rows:
        assert truth(row).regular == (flag is not None)
    if flag is None:
        return
    scan = truth(", ".join([*rows, ANNOTATION.replace("7", "1")]))
    columns: Any = scan.columns([2])
    flags = [np.asarray(column).tolist() for column in columns[7:10]]
    on = bool(flag)
    assert flags == [
        [on, False, False, False],
        [False, on, False, False],
        [False, False, on, False],
    ]
    assert scan.without_crowd == 3


def test_images_are_sorted_with_their_sizes() -> None:
    images = (
        '{"id": 5, "width": 50, "height": 500}, {"id": 3, "width": 30, "height": 300}, '
        '{"id": 4, "width": 40}, {"id": 1, "height": 100}, {"id": 9, "width": 0, "height": -1}, '
        '{"id": 8, "width": 9007199254740992, "height": 9007199254740992}, '
        '{"id": 7, "width": 9007199254740991, "height": 0}'
    )
    scan = truth(ANNOTATION, images)
    assert scan.regular
    columns: Any = scan.columns([2])
    assert columns[0] == [1, 3, 4, 5, 7, 8, 9]
    unknown = np.nan
    expected = [
        [unknown, 100], [30, 300], [40, unknown], [50, 500], [2**53 - 1, unknown],
        [unknown, unknown], [unknown, unknown],
    ]  # fmt: skip
    assert np.array_equal(np.asarray(columns[1]), np.array(expected), equal_nan=True)


@pytest.mark.parametrize(
    ("annotations", "images", "regular"),
    [
        (ANNOTATION, '{"id": 1}, {"id": 1}', False),
        (ANNOTATION, '{"id": 3}, {"id": 1}, {"id": 2}, {"id": 1}', False),
        (ANNOTATION, '{"id": 2}', False),
        (ANNOTATION, '{"file_name": "a"}', False),
        (f"{ANNOTATION}, {ANNOTATION}", '{"id": 1}', False),
        (", ".join(ANNOTATION.replace("7", n) for n in "3515"), '{"id": 1}', False),
        (", ".join(ANNOTATION.replace("7", n) for n in ("3", "259", "515")), '{"id": 1}', True),
        (", ".join(ANNOTATION.replace("7", n) for n in ("9", "-9", "1")), '{"id": 1}', True),
        ("", '{"id": 1}', False),
        (ANNOTATION.replace('"area": 12', '"area": -1'), '{"id": 1}', False),
        (ANNOTATION.replace("3, 4]", "-3, 4]").replace("12", "-12"), '{"id": 1}', True),
        (ANNOTATION.replace('"image_id": 1, ', ""), '{"id": 1}', False),
        (ANNOTATION.replace('"category_id": 2, ', ""), '{"id": 1}', False),
        (ANNOTATION.replace('"bbox": [1, 2, 3, 4], ', ""), '{"id": 1}', False),
        (ANNOTATION.replace('"id": 7', '"id": "a"'), '{"id": 1}', True),
        (ANNOTATION.replace('"id": 7', '"id": "\\u0061"'), '{"id": 1}', False),
        (ANNOTATION.replace('"image_id": 1', '"image_id": "1"'), '{"id": 1}', False),
        (ANNOTATION.replace('"image_id": 1', '"image_id": "1"'), '{"id": "1"}', True),
        (ANNOTATION.replace('"image_id": 1', '"image_id": "1"'), '{"id": "2"}', False),
        (ANNOTATION, '{"id": 1, "neg_category_ids": 5}', False),
        (ANNOTATION, '{"id": 1, "neg_category_ids": ["5"]}', False),
        (ANNOTATION, '{"id": 1, "neg_category_ids": [5.0]}', False),
        (ANNOTATION, '{"id": 1, "neg_category_ids": [ ]}', True),
        (
            ANNOTATION.replace('"image_id": 1', '"image_id": "1"'),
            '{"id": "1", "neg_category_ids": []}',
            False,
        ),
    ],
)
def test_ids_of_ground_truth(annotations: str, images: str, regular: bool) -> None:
    assert truth(annotations, images).regular == regular


def test_what_annotations_lack_is_counted() -> None:
    rows = [
        ANNOTATION.replace('"id": 7, ', ""),
        ANNOTATION.replace("7", "0").replace(', "area": 12', ""),
        ANNOTATION.replace("7", "4.0"),
        ANNOTATION.replace('"id": 7, ', "").replace(', "area": 12', ', "iscrowd": 0'),
    ]
    scan = truth(", ".join(rows))
    assert scan.regular
    counts = scan.without_id, scan.id_zero, scan.zero_row, scan.without_area, scan.without_crowd
    assert counts == (2, 1, 1, 2, 3)
    assert scan.other_ids == 1


def test_lists_of_categories_of_images() -> None:
    images = (
        '{"id": 3, "neg_category_ids": [2, 9], "not_exhaustive_category_ids": []}, '
        '{"id": 1, "neg_category_ids": [ 2 ], "not_exhaustive_category_ids": [2]}, {"id": 2}'
    )
    scan = truth(ANNOTATION, images)
    assert scan.regular
    lists = [
        (count, np.asarray(image).tolist(), np.asarray(label).tolist())
        for count, image, label in scan.lists([2])
    ]
    assert lists == [(2, [2, 2, 0], [0, -1, 0]), (2, [0], [0])]
    assert truth(ANNOTATION).columns([5]) is None


def test_offsets_of_the_annotations() -> None:
    text = f'{{"images": [{{"id": 1}}], "categories": [], "annotations": [{ANNOTATION}]}}'
    for block in (MANY, 10):
        scan = TruthScan(-1, reader(text.encode(), block), MANY, MANY, 64)
        assert scan.run()
        assert text[scan.begin_offset : scan.end_offset] == f"[{ANNOTATION}]"


@pytest.mark.parametrize("missing", ["images", "annotations", "categories"])
def test_each_list_of_ground_truth_is_needed(missing: str) -> None:
    document = {"images": [{"id": 1}], "annotations": [json.loads(ANNOTATION)], "categories": []}

    def regular(**changes: Any) -> bool:
        data = json.dumps({k: v for k, v in (document | changes).items() if v is not None}).encode()
        return TruthScan(-1, reader(data, MANY), MANY, MANY, 64).run()

    assert regular()
    assert not regular(**{missing: None})
    assert not regular(**{missing: {}})


def test_lists_are_kept_as_they_stand() -> None:
    lists = '"images": [{"id": 1} ], "categories" : [ {"id": 2}]'
    text = f'{{{lists}, "annotations": [{ANNOTATION}]}}'
    scan = ListsScan(-1, reader(text.encode(), 7), MANY, MANY, 64)
    assert scan.run()
    assert scan.images == b'[{"id": 1} ]'
    assert scan.categories == b'[ {"id": 2}]'


def test_the_beginning_of_a_record() -> None:
    assert find_record(b'  1}, {"a"') == 6
    assert find_record(b'{"a": 1}, {"a"') == 10
    assert find_record(b"1} {, {}, [, {") == -1
    assert find_record(b"}} , \n {") == 7
    assert find_record(b"") == find_record(b"}") == find_record(b"},") == -1


def test_nesting_of_text() -> None:
    assert [nesting(text) for text in (b"", b"1", b"[]", b'{"a": [1]}', b"[[], []]")] == [
        0,
        0,
        1,
        2,
        2,
    ]
    assert nesting(b'["[[[", "\\"[[", [1], {}, {}]') == 2
    assert nesting(b'["\\\\", [[1]]]') == 3
    assert nesting(b"[[[1]], 2]") == 3
    assert nesting(b"[[[1]], [2]]") == 3


def test_an_error_of_the_source_is_raised() -> None:
    def read(count: int) -> bytes:
        raise OSError("the disk is gone")

    scan = ResultsScan(-1, read, MANY, MANY, 64)
    with pytest.raises(OSError, match="the disk is gone"):
        scan.run()


def test_a_cancelled_scan_ends() -> None:
    scan = ResultsScan(-1, reader(f"[{record()}]".encode(), MANY), MANY, MANY, 64)
    scan.cancel()
    assert not scan.run()


def test_names_of_categories() -> None:
    assert class_names(b'[{"id": 5, "name": "e"}, {"id": 2}, {"name": "c", "id": 3}]') == {
        2: None,
        3: "c",
        5: "e",
    }
    assert list(class_names(b'[{"id": 5}, {"id": 2}]') or ()) == [2, 5]
    for text in (
        b'[{"id": 1}, {"id": 1}]',
        b'[{"name": "a"}]',
        b'[{"id": "a"}]',
        b'[{"id": 1, "name": "\\u0061"}]',
        b'[{"id": 1, "name": 5}]',
        b"[1]",
    ):
        assert class_names(text) is None, text


@pytest.mark.parametrize(
    ("segmentation", "regular"),
    [
        ("[[0, 0, 100000000, 0, 5, -100000000]]", True),
        ("[[0, 0, 100000001, 0, 5, 5]]", False),
        ("[[0, 0, 5, 0, 5]]", False),
        ("[[0, 0, 5, 0]]", False),
        ("[[0, 0, 5, 0, 5, 5], [1, 1, 2, 2]]", True),
        ("[[0, 0, 5, 0, 5, 5] [0, 0, 5, 0, 5, 5]]", False),
        ("[[0 0, 5, 0, 5, 5]]", False),
        ("[0, 0, 5, 0, 5, 5]", False),
        ("[]", False),
        ('{"size": [2, 2], "counts": [1, 3]}', True),
        ('{"counts": [1, 3], "size": [2, 2]}', True),
        ('{"size": [2, 2], "counts": [1, 4]}', False),
        ('{"size": [2, 2], "counts": [1, 2]}', False),
        ('{"size": [2, 2], "counts": [4294967296, 4]}', False),
        ('{"size": [2, 2], "counts": [-4294967292]}', False),
        ('{"size": [2, 2], "counts": [-1, 5]}', False),
        ('{"size": [2, 2], "counts": [1 3]}', False),
        ('{"size": [2, 2], "counts": [1.0, 3]}', False),
        ('{"size": [2, 2], "counts": 4}', False),
        ('{"size": [2, 2], "counts": "13"}', True),
        ('{"size": [2, 2], "counts": "14"}', False),
        ('{"size": [2, 2], "counts": "1\\u0033"}', False),
        ('{"size": [0, 5], "counts": [0]}', False),
        ('{"size": [5, 0], "counts": [0]}', False),
        ('{"size": [2147483648, 1], "counts": [2147483648]}', False),
        ('{"size": [2147483647, 1], "counts": [2147483647]}', True),
        ('{"size": [65536, 65535], "counts": [4294901760]}', True),
        ('{"size": [65536, 65536], "counts": [4294967295, 1]}', False),
        ('{"size": [2, 2, 2], "counts": [4]}', False),
        ('{"size": [4], "counts": [4]}', False),
        ('{"size": [2, 2]}', False),
        ('{"counts": [4]}', False),
        ('{"size": [2, 2], "size": [2, 2], "counts": [4]}', False),
        ('{"size": [2, 2], "counts": [4], "counts": [4]}', False),
        ('{"size": [2, 2], "counts": [4], "x": 1}', False),
        ('{"size": [2, 2] "counts": [4]}', False),
        ('{"size" [2, 2], "counts": [4]}', False),
        ("null", False),
        ("5", False),
    ],
)
def test_segmentations(segmentation: str, regular: bool) -> None:
    assert masks(segmentation).regular == regular


def test_other_escapes_are_no_digits_of_run_lengths() -> None:
    """Behind a backslash, b would be the digit 18, with more to follow."""
    assert not masks(r'{"size": [1, 18], "counts": "\b0"}').regular
    assert masks(r'{"size": [1, 12], "counts": "\\0"}').regular


@pytest.mark.parametrize(
    ("score", "value"),
    [("123456789.", None), ("123456789.5", 123456789.5), ("1e-1000", 0.0), ("1e-310", 1e-310)],
)
def test_long_numbers_and_exponents(score: str, value: float | None) -> None:
    scan = results(f"[{record(score=score)}]")
    assert scan.regular == (value is not None)
    if value is not None:
        columns: Any = scan.columns([1], [1])
        assert np.asarray(columns[4]).tolist() == [value]


@pytest.mark.parametrize(("identifier", "regular"), [("0", True), ("01", False), ("-07", False)])
def test_ids_have_no_leading_zeros(identifier: str, regular: bool) -> None:
    assert results(f"[{record(image_id=identifier)}]").regular == regular


def test_nesting_of_segmentations_is_limited() -> None:
    for segmentation in ("[[0, 0, 5, 0, 5, 5]]", '{"size": [2, 2], "counts": "13"}'):
        regular = [masks(segmentation, deep=deep).regular for deep in (3, 4)]
        assert regular == [False, True]


@pytest.mark.parametrize("block", [1, 3, 50, 1000])
def test_segmentations_of_rows_that_blocks_cut(block: int) -> None:
    one = "[[0, 0, 5, 0, 5, 5], [1, 1, 9, 1, 9, 9.5]]"
    two = '{"size": [2, 3], "counts": [1, 5]}'
    rows = [record(f'"segmentation": {shape}') for shape in (one, two, one)] + [record()]
    scan = ResultsScan(-1, reader(f"[{', '.join(rows)}]".encode(), block), MANY, MANY, 64, True)
    assert scan.run()
    columns = scan.outlines_of(4)
    assert columns is not None
    has, sizes, run_start, runs, ring_start, ring_end, points = (
        np.asarray(column).tolist() for column in columns
    )
    assert has == [True, True, True, False]
    assert sizes == [[0, 0], [2, 3], [0, 0]]
    assert (run_start, runs) == ([0, 0, 2, 2], [1, 5])
    assert (ring_start, ring_end) == ([0, 2, 2, 4], [3, 6, 9, 12])
    assert points == [[0, 0], [5, 0], [5, 5], [1, 1], [9, 1], [9, 9.5]] * 2
    assert scan.listed == 3


def test_keys_that_differ_in_one_letter_from_those_before() -> None:
    for old, new in (("score", "scorf"), ("category_id", "cbtegory_id"), ("bbox", "bbo_")):
        assert not results(f"[{record()}, {record().replace(old, new)}]").regular
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


@pytest.mark.skipif(not CAN_SPLIT, reason="files are not read in two places at a time here")
@pytest.mark.parametrize("quote", ["", '"'])
def test_two_scans_of_one_file_are_one(tmp_path: Path, quote: str) -> None:
    rows = [record(image_id=f"{quote}{n}{quote}", category_id=str(n % 3)) for n in range(100)]
    path = tmp_path / "dt.json"
    path.write_text(f"[{', '.join(rows)}]")
    begin = path.read_text().index(rows[60])
    with path.open("rb") as file:
        first, rest = (ResultsScan(file.fileno(), None, MANY, 100, 64) for _ in range(2))
        first.split_at(begin)
        assert not first.run()
        assert first.paused
        assert first.count == 60
        assert rest.run_rest(begin)
        assert first.append(rest)
        assert first.count == 100
        assert first.texts == (100 if quote else 0)
        other = ResultsScan(file.fileno(), None, MANY, 100, 64)
        other.split_at(begin)
        assert not other.run()
        assert other.resume()
        assert other.count == 100
        few = ResultsScan(file.fileno(), None, MANY, 99, 64)
        few.split_at(begin)
        assert not few.run()
        assert not few.append(rest)
        unread = ResultsScan(file.fileno(), None, MANY, 100, 64)
        assert not few.append(unread)
    images: list[Any] = [f"{n}" if quote else n for n in range(100)]
    for scan in (first, other):
        columns: Any = scan.columns(images, [0, 1])
        assert np.asarray(columns[0]).tolist() == [*range(100)]
        assert np.asarray(columns[1]).tolist() == [n % 3 for n in range(100)]
        assert np.asarray(columns[2]).tolist() == [[1, 2, 4, 6]] * 100
        assert np.asarray(columns[3]).tolist() == [12] * 100
        assert np.asarray(columns[4]).tolist() == [0.5] * 100
        assert columns[5] == {2: 33}


def test_every_image_has_an_id() -> None:
    assert not truth(ANNOTATION, '{"file_name": "a"}, {"id": 1}').regular


def keypoints(values: str, **options: Any) -> ResultsScan:
    rows = f"[{record(f'{KEYPOINTS}{values}')}]".encode()
    scan = ResultsScan(-1, reader(rows, MANY), MANY, MANY, 64, keypoints=True, **options)
    scan.run()
    return scan


KEYPOINTS = '"keypoints": '


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("[1, 2, 2]", [1, 2]),
        ("[1, 2, 2, 3, 4, 0]", [1, 2, 3, 4]),
        ("[100000000, -100000000, 100000000]", [1e8, -1e8]),
        ("[100000001, 0, 0]", None),
        ("[0, 0, 100000001]", None),
        ("[1, 2]", None),
        ("[1, 2, 2, 3]", None),
        ("[]", None),
        ("1, 2, 2]", None),
        ("[1, 2 2]", None),
        ("[1, 2, 2}", None),
        ("[1.5,2.5,2.0,3,4,1.0]", [1.5, 2.5, 3, 4]),
        ("[1, 2, 2.05]", [1, 2]),
        ("[1, 2, 20, 3, 4, 1]", [1, 2, 3, 4]),
        ('[1, 2, "2"]', None),
        ("null", None),
    ],
)
def test_keypoints_of_results(values: str, expected: list[float] | None) -> None:
    scan = keypoints(values)
    assert scan.regular == (expected is not None)
    if expected is not None:
        columns = scan.poses_of(1, False)
        assert columns is not None
        assert np.asarray(columns[0]).tolist() == expected


def test_rows_have_as_many_keypoints_as_the_first() -> None:
    two, one = (record(f"{KEYPOINTS}{values}") for values in ("[1, 2, 2, 3, 4, 1]", "[1, 2, 2]"))
    for rows, regular in (((two, two), True), ((two, one), False), ((two, record()), False)):
        data = f"[{', '.join(rows)}]".encode()
        scan = ResultsScan(-1, reader(data, MANY), MANY, MANY, 64, keypoints=True)
        assert scan.run() == regular


@pytest.mark.parametrize("xyxy", [False, True])
def test_keypoints_make_the_box_that_a_row_lacks(xyxy: bool) -> None:
    values = "[5, 1, 2, 2, 7, 0, 3, 3, 1, 4, 9, 1, 9, 2, 1]"
    row = record(f"{KEYPOINTS}{values}").replace('"bbox": [1, 2, 3, 4], ', "")
    scan = ResultsScan(
        -1, reader(f"[{row}]".encode(), MANY), MANY, MANY, 64, keypoints=True, xyxy=xyxy
    )
    assert scan.run()
    columns: Any = scan.columns([1], [2])
    assert np.asarray(columns[2]).tolist() == [[2, 1, 9, 9]]
    assert np.asarray(columns[3]).tolist() == [56]


@pytest.mark.parametrize("block", [MANY, 7])
@pytest.mark.parametrize("xyxy", [False, True])
def test_keypoints_of_ground_truth(xyxy: bool, block: int) -> None:
    extras = [
        "[1, 2, 2, 3, 4, 0]",
        "[1, 2, 0, 3, 4, 0]",
        "[1, 2, 1.0, 3, 4, 2.5]",
        '[1, 2, 2, 3, 4, 2], "num_keypoints": 0',
        '[1, 2, 0, 3, 4, 0], "num_keypoints": 1',
    ]
    rows = [
        f"{ANNOTATION.replace('7', str(n))[:-1]}, {KEYPOINTS}{extra}}}"
        for n, extra in enumerate(extras, start=1)
    ]
    text = f'{{"images": [{{"id": 1}}], "annotations": [{", ".join(rows)}], "categories": []}}'
    scan = TruthScan(-1, reader(text.encode(), block), MANY, MANY, 64, keypoints=True, xyxy=xyxy)
    assert scan.run()
    assert scan.keypoints == 2
    assert scan.without_number == 3
    columns: Any = scan.poses_of(5, True)
    values, sizes, without = (np.asarray(column).tolist() for column in columns)
    visible = [(2, 0), (0, 0), (1, 2.5), (2, 2), (0, 0)]
    assert values == [value for a, b in visible for value in (1, 2, a, 3, 4, b)]
    assert sizes == [[2, 2] if xyxy else [3, 4]] * 5
    assert without == [False, True, False, True, False]
    bad = text.replace('"num_keypoints": 1', '"num_keypoints": -1').encode()
    assert not TruthScan(-1, reader(bad, MANY), MANY, MANY, 64, keypoints=True).run()


@pytest.mark.parametrize("step", [1, 1000, 1 << 40])
def test_ids_in_any_order_are_numbered(step: int) -> None:
    """Small ids by a table, others by their hash."""
    ids = [step * n for n in (5, -3, 40, 0, 7, *range(100, 300))]
    rows = [record(image_id=str(n), category_id=str(n)) for n in ids]
    columns: Any = results(f"[{', '.join(rows)}]").columns(ids[::-1], ids[1:])
    assert np.asarray(columns[0]).tolist() == [*range(len(ids))][::-1]
    assert np.asarray(columns[1]).tolist() == [len(ids) - 1, *range(len(ids) - 1)]
    assert columns[5] == {5 * step: 1}
    for unknown in (-4 * step, 301 * step, 6 * step, 1 - 2**63, 2**63 - 1):
        assert results(f"[{record(image_id=str(unknown))}]").columns(ids, [2]) is None


@pytest.mark.parametrize(("written", "others"), [("7", 0), ("7.0", 1), ('"7"', 1)])
def test_ids_that_are_not_written_as_integers_are_counted(written: str, others: int) -> None:
    assert truth(ANNOTATION.replace('"id": 7', f'"id": {written}')).other_ids == others
