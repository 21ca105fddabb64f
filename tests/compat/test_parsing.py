"""Records that the drop-in parses itself equal json's, types and order of keys included."""

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.compat.pycocotools._walks import parse_validated
from detap.compat.pycocotools.coco import COCO

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
)


@given(VALUES, st.sampled_from([None, 1]))
def test_values(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert repr(parse_validated(text.encode())) == repr(json.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        *("0", "-0", "-0.0", "1e5", "1E-3", "1.5e+3", "0.1000000000000000055511151231257827"),
        *("999999999999999999", "-999999999999999999", "18446744073709551616", "1" * 50),
        *("9223372036854775807", "-9223372036854775809", "1" * 30 + ".5", "-" + "1" * 30 + "e-2"),
        *("123456789012345678.5", "5e-324", "1.7976931348623157e308"),
        *(" [ ] ", "{ }", "\t[\r\n1 ,2.5 , [[]],{}]\n", '{"a" : 1 , "b":[ ] , "a":2}'),
        *('""', r'"\u00e9\ud83d\ude00\"\\\/"', r'{"\u0061": "a"}'),
    ],
)
def test_spellings(text: str) -> None:
    assert repr(parse_validated(text.encode())) == repr(json.loads(text))


def test_keys_are_shared() -> None:
    first, second = parse_validated(b'[{"image_id": 1}, {"image_id": 2}]')
    assert next(iter(first)) is next(iter(second))


@pytest.mark.parametrize("after", ["", "}" + " " * 20])
def test_a_part(after: str) -> None:
    assert parse_validated(f'{{"a": [1, 23]{after}'.encode(), 6, 13) == [1, 23]


@pytest.mark.parametrize("text", ['"\N{LATIN SMALL LETTER E WITH ACUTE}"', '"\\n\N{EM DASH}"'])
def test_a_string_that_is_not_ascii(text: str) -> None:
    with pytest.raises(ValueError, match="ascii"):
        parse_validated(text.encode())


def test_the_collector_skips_numbers() -> None:
    records = parse_validated(b'[{"segmentation": [[1.5, 2, 3]], "bbox": [1, 2]}, {"a": {}}]')
    record, other = records
    assert gc.is_tracked(records)
    assert gc.is_tracked(other)
    for value in (record, record["segmentation"], record["segmentation"][0], record["bbox"]):
        assert not gc.is_tracked(value)
    record["attributes"] = []
    assert gc.is_tracked(record)


def test_an_infinite_number() -> None:
    with pytest.raises(ValueError, match="a number is infinite"):
        parse_validated(b"[1e999]")


@pytest.mark.parametrize("extra", ["1e999", '"\\u00e9"', '"\N{LATIN SMALL LETTER E WITH ACUTE}"'])
def test_annotations_of_a_file(extra: str, tmp_path: Path) -> None:
    annotation = (
        '{"id": 7, "image_id": 1, "category_id": 1, "bbox": [1, 2.0, 3, 4], "area": 12,'
        f' "iscrowd": 0, "extra": {extra}}}'
    )
    text = (
        f'{{"images": [{{"id": 1, "width": 9, "height": 9}}], "annotations": [{annotation}],'
        ' "categories": [{"id": 1, "name": "a"}]}'
    )
    path = tmp_path / "instances.json"
    path.write_text(text, encoding="utf-8")
    coco = COCO(path)
    assert coco.unopened is not None
    assert repr(coco.loadAnns(7)) == repr([json.loads(annotation)])
    assert gc.isenabled()
