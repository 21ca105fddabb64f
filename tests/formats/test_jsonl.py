"""JSON Lines of Hugging Face's datasets.

An image per line, with a declared or detected box format.
"""

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap import Detections, GroundTruth, evaluate, read_detections, read_ground_truth
from detap.errors import InputError
from detap.formats import jsonl as module
from detap.formats.catalogue import FORMATS
from detap.io.limits import DEFAULT_LIMITS
from tests.cli.conftest import Run
from tests.formats.coco_files import agreed, odd_fields
from tests.raised import raised

LISTS: dict[str, Any] = {"bbox": [[10, 20, 30, 40], [50, 5, 20.5, 10]], "category": ["cat", "dog"]}


def image(name: str, objects: Any, **more: Any) -> dict[str, Any]:
    return {"file_name": name, "width": 100, "height": 80, "objects": objects} | more


def write(path: Path, *lines: Any) -> Path:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    path.write_text(text)
    return path


def refused(path: Path, **options: Any) -> list[str]:
    error = raised(InputError, read_ground_truth, path, **options)
    return [str(problem).replace(f"{path}: ", "") for problem in error.problems]


def test_lists_and_records_are_the_same(tmp_path: Path) -> None:
    records = [
        {"bbox": box, "category": label, "area": 7.5, "iscrowd": 1}
        for box, label in zip(LISTS["bbox"], LISTS["category"], strict=True)
    ]
    lists = {**LISTS, "area": [7.5, 7.5], "iscrowd": [1, 1], "id": [1, 2], "note": "no list"}
    for objects in (records, lists):
        path = write(tmp_path / "a.jsonl", image("val/a.b.jpg", objects), image("c.png", []))
        truth = read_ground_truth(path)
        assert (truth.images, truth.classes) == (("a.b", "c"), ("cat", "dog"))
        assert truth.corners.tolist() == [[10, 20, 40, 60], [50, 5, 70.5, 15]]
        assert truth.box_area.tolist() == [1200, 205]
        assert (truth.area.tolist(), truth.crowd.tolist()) == ([7.5, 7.5], [True, True])
        assert np.asarray(truth.image_sizes).tolist() == [[100, 80], [100, 80]]
        assert [note.code for note in truth.notes] == ["images-without-objects"]


def test_boxes_that_are_not_xyxy_are_xywh(tmp_path: Path) -> None:
    boxes = {"bbox": [[60, 40, 30, 20]], "category": ["cat"]}
    path = write(tmp_path / "a.jsonl", image("a.jpg", boxes))
    (said,) = refused(path, boxes="xyxy")
    assert "expected [x1, y1, x2, y2]; for [x, y, width, height] use --gt-boxes xywh" in said
    assert read_ground_truth(path, boxes="xywh").corners.tolist() == [[60, 40, 90, 60]]


def test_an_undecidable_box_format_must_be_declared(tmp_path: Path) -> None:
    far = {"bbox": [[60, 40, 95, 75]], "category": ["cat"]}
    path = write(tmp_path / "a.jsonl", image("a.jpg", far))
    hint = "pass boxes='xywh' or 'xyxy' (--boxes)"
    assert refused(path) == [
        "box format of bbox is unknown: 1 of 1 boxes extend beyond their image as x, "
        f"y, width, height; {hint}"
    ]
    assert read_ground_truth(path, boxes="xyxy").corners.tolist() == [[60, 40, 95, 75]]
    unsized = write(tmp_path / "b.jsonl", {"file_name": "a.jpg", "objects": far})
    assert refused(unsized) == [
        "box format of bbox is unknown: without image width and height, boxes fit both "
        f"formats; {hint}"
    ]
    # No corners: the second number pair is left of the first.
    sides = {"bbox": [[60, 40, 30, 20]], "category": ["cat"]}
    source = write(tmp_path / "c.jsonl", {"file_name": "a.jpg", "objects": sides})
    assert read_ground_truth(source).corners.tolist() == [[60, 40, 90, 60]]


def test_classes_that_are_numbers(tmp_path: Path) -> None:
    numbered = {"bbox": LISTS["bbox"], "categories": [2, 0]}
    path = write(tmp_path / "a.jsonl", image("a.jpg", numbered))
    truth = read_ground_truth(path)
    assert (truth.class_ids, truth.classes) == ((0, 2), ("0", "2"))
    names = tmp_path / "names.txt"
    names.write_text("cat\nowl\ndog\n")
    named = read_ground_truth(path, class_names=names)
    assert (named.class_ids, named.classes) == ((0, 2), ("cat", "dog"))
    names.write_text("cat\nowl\n")
    assert refused(path, class_names=names) == [
        f"class 2 is not in {names}, which has 2 classes; check the list; classes are numbered "
        f"from 0"
    ]


def pair(folder: Path) -> tuple[GroundTruth, Detections]:
    gt = write(folder / "gt.jsonl", image("a.jpg", LISTS), image("b.jpg", LISTS, image_id="b"))
    truth = read_ground_truth(gt)
    dt = write(folder / "dt.jsonl", image("a.jpg", {**LISTS, "score": [0.5, 0.25]}))
    return truth, read_detections(dt, truth)


def test_detections_have_scores(tmp_path: Path) -> None:
    truth, detections = pair(tmp_path)
    assert (detections.image.tolist(), detections.label.tolist()) == ([0, 0], [0, 1])
    assert detections.score.tolist() == [0.5, 0.25]
    assert evaluate(truth, detections, protocol="coco").summary["AR100"] == 0.5  # one of two images


def test_detections_of_other_formats(tmp_path: Path, detap: Run) -> None:
    truth, _ = pair(tmp_path)
    results = [
        {"image_id": "b", "category_id": k, "bbox": box, "score": 0.5}
        for k, box in zip((1, 0), LISTS["bbox"], strict=True)
    ]
    names = tmp_path / "names.txt"
    names.write_text("dog\ncat\n")
    coco = tmp_path / "dt.json"
    coco.write_text(json.dumps(results))
    detections = read_detections(coco, truth, class_names=names)
    assert [truth.classes[k] for k in detections.label] == ["cat", "dog"]
    out = tmp_path / "out.json"
    detap("convert", "--gt", tmp_path / "gt.jsonl", "--to", "coco", "-o", out).passed()
    listed = json.loads(out.read_text())["images"]
    assert [entry["file_name"] for entry in listed] == ["a.jpg", "b.jpg"]


def test_keys_of_images(tmp_path: Path) -> None:
    lines = image("x/a.jpg", LISTS, light="night"), image("b.png", [], image_id="b", light=None)
    truth = read_ground_truth(write(tmp_path / "a.jsonl", *lines))
    jsonl = FORMATS["jsonl"]
    assert jsonl.image_attribute(truth, "light") == {"a": "night"}
    assert jsonl.file_names(truth) == {"a": "x/a.jpg", "b": "b.png"}


def test_gzip_and_blank_lines(tmp_path: Path) -> None:
    text = f"\ufeff{json.dumps(image('a.jpg', LISTS))}\r\n\n"
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert len(read_ground_truth(path)) == 2


GOOD = json.dumps(image("good.jpg", LISTS))
BAD = {
    "no JSON": ("{'file_name': 1}", "line 2: invalid JSON at "),
    "cut off": (GOOD.replace("good", "x")[:-9], "line 2: file is truncated"),
    "two values": (
        GOOD.replace("good", "x") + " 3",
        "line 2: unexpected text after the JSON value: ",
    ),
    "no object": ("[1]", "line 2: is [1], expected an object; expected "),
    "a key twice": ('{"file_name": "a", "file_name": "b", "objects": []}', "duplicate key"),
    "no name": ('{"objects": []}', "line 2: has neither image_id nor file_name; expected "),
    "the image again": (GOOD, 'line 2: duplicate image "good"; keep one line per image'),
    "half a pair": (
        '{"file_name": "\\ud800", "objects": []}',
        "line 2: file_name has an unpaired surrogate",
    ),
    "no objects": ('{"file_name": "a.jpg"}', "line 2: objects is missing"),
    "objects null": (json.dumps(image("a.jpg", None)), "line 2: objects is null; expected "),
    "a flat result": (
        json.dumps({"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 1}),
        "line 2: is a single box, expected an image with its objects",
    ),
    "lists of two lengths": (
        json.dumps(image("a.jpg", {"bbox": LISTS["bbox"], "category": ["cat"]})),
        "line 2: objects.category has 1 values, objects.bbox has 2; write one value per object",
    ),
    "three numbers": (
        json.dumps(image("a.jpg", {"bbox": [[1, 2, 3]], "category": ["cat"]})),
        "line 2: objects[0]: bbox has 3 values, expected 4: [x, y, width, height]",
    ),
    "NaN": (
        json.dumps(image("a.jpg", {"bbox": [[1, 2, 3, float("nan")]], "category": ["cat"]})),
        "line 2: contains NaN or Infinity, which are not valid JSON; remove it",
    ),
    "text": (
        json.dumps(image("a.jpg", {"bbox": [[1, 2, 3, "4"]], "category": ["cat"]})),
        'line 2: objects[0]: bbox[3] is "4", expected a number',
    ),
    "no class": (
        json.dumps(image("a.jpg", {"bbox": [[1, 2, 3, 4]]})),
        "line 2: objects[0]: category is missing",
    ),
    "a flag of 2": (
        json.dumps(image("a.jpg", [{"bbox": [1, 2, 3, 4], "category": "cat", "iscrowd": 2}])),
        "line 2: objects[0]: iscrowd is 2, expected 0 or 1",
    ),
    "a score": (
        json.dumps(image("a.jpg", [{"bbox": [1, 2, 3, 4], "category": "cat", "score": 0.5}])),
        "line 2: objects[0]: has a score (detections?); use the ground truth",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_name_their_line(tmp_path: Path, name: str) -> None:
    line, expected = BAD[name]
    [problem] = refused(write(tmp_path / "a.jsonl", GOOD, line))
    assert expected in problem


def test_other_file_types_are_detected(tmp_path: Path) -> None:
    for text in ("<!DOCTYPE html><html>", "\ufeff<html>"):
        assert refused(write(tmp_path / "a.jsonl", text)) == [
            "looks like an HTML page; the download failed: download the file itself"
        ]
    [problem] = refused(write(tmp_path / "b.jsonl"))
    assert problem.startswith("is empty; expected ")
    [bare] = refused(write(tmp_path / "c.jsonl", image("a.jpg", [])))
    assert bare == "no objects in its 1 images; use the annotations that belong to these detections"
    mixed = {"bbox": LISTS["bbox"], "category": ["cat", 1]}
    assert refused(write(tmp_path / "d.jsonl", image("a.jpg", mixed))) == [
        "classes are partly numbers and partly text; use one of the two"
    ]


def test_detections_on_images_left_out_decide_no_box_format(tmp_path: Path) -> None:
    one = {"bbox": [[10, 20, 30, 40]], "category": ["cat"]}
    names = [f"{n}.jpg" for n in range(20)]
    truth = read_ground_truth(write(tmp_path / "gt.jsonl", *(image(n, one) for n in names)))
    scored = (image(n, {**one, "score": [0.5]}) for n in (*names, "x.jpg", "y.jpg"))
    dt = write(tmp_path / "dt.jsonl", *scored)
    assert len(read_detections(dt, truth, extra_images="drop")) == len(names)


# --- both readings


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
    assert columns.flags["crowd"] == [True, True, False, False]


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
