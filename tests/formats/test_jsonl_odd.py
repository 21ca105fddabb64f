"""JSON Lines equal their lines one by one, read by `json.loads`: to the bit, or the same error."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.errors import InputError
from detap.formats import jsonl as module
from detap.io.limits import DEFAULT_LIMITS
from tests.formats.coco_files import agreed, odd_fields

BOX = [1, 2.5, 3e1, 40]
REGULAR = {
    "lists": {"bbox": [BOX, BOX], "category": [1, 2.0], "area": [5, 6.5], "note": "none"},
    "objects": [{"bbox": BOX, "label": "cat", "iscrowd": 1}, {"label": "d\u00f6g", "bbox": BOX}],
    "nothing": [],
    "empty lists": {"bbox": [], "category": []},
    "other lists": {"id": [1], "bbox": [BOX], "labels": ["x"], "difficult": [True]},
    "other values": [{"bbox": BOX, "category_id": 7, "extra": {"a": [1, {"b": None}]}}],
}


def line(name: str, objects: Any, **more: Any) -> dict[str, Any]:
    return {"file_name": name, "width": 100, "height": 80.5, "objects": objects} | more


def read(data: bytes, scored: bool, *, one_by_one: bool = False) -> Any:
    """Read lines, each by `json.loads` if `one_by_one`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "read_hashed", lambda *_: (data, ""))
        if one_by_one:
            patch.setattr(module, "Fields", odd_fields)
        lines = module.Lines("a.jsonl", DEFAULT_LIMITS, scored=scored)
    columns = {name: getattr(lines, name) for name in (*module.Lines.__annotations__, "image")}
    columns["types"] = [type(name) for name in (*lines.images, *lines.classes)]
    columns["locations"] = [lines.location(row) for row in range(len(lines))]
    flags = {name: flag.tolist() for name, flag in lines.flags.items()}
    return SimpleNamespace(**columns | {"flags": flags, "_fields": [*columns]})


def check(data: bytes, scored: bool = False) -> bool:
    """Compare both readings; return True if the file is valid."""
    return agreed(read, data, scored) is not None


@pytest.mark.parametrize("name", [*REGULAR])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n \n\n"])
def test_valid_lines(name: str, end: str) -> None:
    texts = [json.dumps(line(f"{folder}a.b.jpg", REGULAR[name])) for folder in ("", "v/c.")]
    assert check(end.join(texts).encode())
    assert check(b"\xef\xbb\xbf" + (end.join(texts) + end).encode())


def test_null_in_lists() -> None:
    """It is no value, also behind lines that have one there."""
    boxes = {"bbox": [BOX, BOX], "category": [1, 2]}
    given = {**boxes, "area": [12, 13], "iscrowd": [1, 1]}
    none = {**boxes, "area": [9, None], "iscrowd": [None, 0]}
    texts = [json.dumps(line(f"{n}.jpg", lists)) for n, lists in enumerate((given, none))]
    data = "\n".join(texts).encode()
    assert check(data)
    columns = read(data, scored=False)
    assert np.array_equal(columns.area, [12, 13, 9, np.nan], equal_nan=True)
    assert columns.flags["iscrowd"] == [True, True, False, False]


def test_scores_and_ids() -> None:
    objects = {"bbox": [BOX], "category": ["cat"], "score": [0.1]}
    texts = [line("a.jpg", objects, image_id=3), line("b.jpg", objects, image_id="\u00e9\n")]
    data = "\n".join(map(json.dumps, texts)).encode()
    assert check(data, scored=True)
    assert not check(data)
    with pytest.raises(InputError, match=r"objects\[0\]: has a score"):
        read(data, scored=False)


def test_classes_that_differ_only_in_escapes() -> None:
    data = json.dumps(line("a.jpg", {"bbox": [BOX], "category": ["caf\u00e9"]}))
    assert check(
        (data + "\n" + data.replace("a.jpg", "b.jpg").replace("\\u00e9", "\u00e9")).encode()
    )


def test_a_line_longer_than_a_block() -> None:
    objects = {"bbox": [BOX] * 40_000, "category": [1] * 40_000}
    texts = [json.dumps(line(name, objects)) for name in ("a.jpg", "b.jpg")]
    assert check("\n".join(texts).encode())


@pytest.mark.parametrize(
    "objects",
    [
        {"bbox": [BOX], "category": [1], "label": [2]},
        {"bbox": [BOX], "category": [1], "area": [None]},
        {"bbox": [BOX], "category": [1, 2]},
        {"bbox": [BOX], "category": 1},
        {"bbox": [BOX], "category": [1], "area": [-1]},
        {"bbox": [BOX], "category": [10**30]},
        {"bbox": [BOX], "category": [True]},
        {"bbox": [BOX[:3]], "category": [1]},
        {"bbox": [BOX]},
        {"bbox": [BOX], "category": ["\ud800"]},
        {"bbox": [BOX], "category": [1], "iscrowd": [2]},
        [{"bbox": BOX, "category": 1, "categories": 1}],
        [{"bbox": BOX, "category": 1, "area": float("nan")}],
        [{"bbox": [1e308, 0, 1e308, 1], "category": 1}],
        [{"bbox": BOX}],
        [BOX],
        7,
    ],
    ids=repr,
)
def test_odd_objects(objects: Any) -> None:
    check(json.dumps(line("a.jpg", objects)).encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        '{"file_name": "a.jpg", "objects": [\n]}',
        '{"file_name": "a.jpg", "objects": []} {}',
        '{"file_name": "a.jpg", "file_name": "b.jpg", "objects": []}',
        '{"file_name": "a.jpg", "objects": []}\n{"file_name": "b/a.png", "objects": []}',
        '{"file_name": "", "objects": []}',
        '{"file_name": "a.jpg", "objects": [}',
        '{"image_id": null, "file_name": "a.jpg", "objects": []}',
        '{"objects": []}',
        '{"file_name": "a.jpg"}',
        '[{"file_name": "a.jpg", "objects": []}]',
        '{"file_name": "a.jpg", "objects": []}\0',
    ],
    ids=repr,
)
def test_odd_lines(text: str) -> None:
    check(text.encode())


_NAMES = st.sampled_from(["a.jpg", "b.png", "c/d.e.jpg", "", "\u00e9.jpg", "C:\\x.jpg", "3"])
_NUMBERS = st.one_of(st.integers(-3, 200), st.floats(width=64), st.sampled_from([None, "1", 2.0]))
_KEYS = st.sampled_from(["category", "label", "labels", "area", "iscrowd", "difficult", "id", "x"])


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Mostly valid lines, with some bytes replaced."""
    texts = []
    for _ in range(draw(st.integers(1, 3))):
        count = draw(st.integers(0, 3))
        extra = draw(st.lists(_KEYS, max_size=3, unique=True))
        rows = [
            {
                "bbox": draw(st.lists(_NUMBERS, min_size=4, max_size=4))
                if draw(st.booleans())
                else BOX,
                "category": draw(st.sampled_from([1, 2, "cat", "dog", 2.0])),
                "score": 0.5,
                **{key: draw(_NUMBERS) for key in extra},
            }
            for _ in range(count)
        ]
        objects: Any = rows
        as_lists: bool = draw(st.booleans())
        if rows and as_lists:
            objects = {key: [row[key] for row in rows] for key in rows[0]}
        more = {"image_id": draw(_NUMBERS)} if draw(st.booleans()) else {}
        texts.append(json.dumps(line(draw(_NAMES), objects, **more)))
    data = bytearray("\n".join(texts).encode())
    for _ in range(draw(st.integers(0, 2))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.sampled_from(b' "\\{}[],:\n0-.eN\xc3'))
    return bytes(data)


@given(documents(), st.booleans())
def test_lines_are_read_as_one_by_one(data: bytes, scored: bool) -> None:
    check(data, scored)
