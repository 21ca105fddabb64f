"""Answers of vision-language models: the text of single answers, and files of them."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detap
from detap.errors import DetapWarning, InputError, UsageError
from detap.formats.detection import matching_formats
from detap.formats.responses.answer import Answer
from detap.formats.responses.dialects import DIALECTS, dialect_of, resized
from detap.io.problems import FaultError
from detap.protocols import Protocol
from tests.cli.conftest import Run
from tests.coco import truth_of
from tests.formats.exports import write

OPTIONS = ("box_key", "label_key", "box_order", "box_scale")
SIZE = (640.0, 480.0)
TRUTH = truth_of(
    [(7, 1, [64, 48, 64, 48]), (8, 2, [100, 50, 200, 100])],
    {1: "cat", 2: "Traffic light"},
    {7: "day/a.jpg", 8: "night/b.png"},
)
TRUTH["images"][1] |= {"width": 1000, "height": 500}
CAT = '[{"bbox_2d": [100, 100, 200, 200], "label": "Cat"}]'
LIGHT = '[{"bbox_2d": [100, 100, 300, 300], "label": " traffic  light "}]'
LINES = [{"image": "a.jpg", "response": CAT}, {"image": "b", "response": LIGHT}]


def jsonl(*records: Any) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def read(folder: Path, content: Any = None, truth: Any = TRUTH, **options: Any) -> detap.Detections:
    """Read answers, by default those of LINES, with the ground truth."""
    path = write(folder / "answers.jsonl", jsonl(*LINES) if content is None else content)
    ground_truth = detap.read_ground_truth(write(folder / "gt.json", truth))
    return detap.read_detections(path, ground_truth, **({"dialect": "qwen3-vl"} | options))


def message(folder: Path, content: Any = None, truth: Any = TRUTH, **options: Any) -> str:
    """Return the message that refuses answers, without the folder."""
    with pytest.raises((InputError, UsageError)) as error:
        read(folder, content, truth, **options)
    return str(error.value).replace(f"{folder}/", "")


def notes_of(table: detap.Detections) -> dict[str, tuple[str, int, str]]:
    return {note.code: (note.message, note.count, note.severity) for note in table.notes}


# --- single answers


def test_answers_of_the_reference_program(unscored: Path) -> None:
    cases = json.loads((unscored / "responses.json").read_text())["cases"]
    assert len(cases) == 80
    for case in cases:
        options = {name: case[name] for name in OPTIONS if name in case}
        dialect = dialect_of(case["dialect"], **options)
        answer = dialect.read(case["response"], case.get("label", ""))
        size = (case["input_width"], case["input_height"]) if "input_width" in case else None
        expected = case["expected"]
        labels = [box["label"] for box in expected["boxes"]]
        assert [box.label for box in answer.boxes] == labels, case["id"]
        for box, one in zip(answer.boxes, expected["boxes"], strict=True):
            corners = dialect.corners(box.numbers, (case["width"], case["height"]), size)
            assert corners == pytest.approx(one["box"], abs=1e-9), case["id"]
        assert len(answer.bad) == expected["bad_boxes"], case["id"]
        assert answer.failed == expected["failed"], case["id"]
        assert answer.all_notes() == expected["notes"], case["id"]


def json_answer(text: str) -> Answer:
    return DIALECTS["qwen3-vl"].read(text)


BOX = '{"bbox_2d": [1, 2, 3, 4], "label": "cat"}'


@pytest.mark.parametrize(
    ("text", "boxes", "notes"),
    [
        (f"[{BOX}, {{'bbox_2d': [5, 6, 7, 8], 'label': 'it\\'s'}}]", 2, ["lenient-json"]),
        (f"[{BOX}, None, True, null]", 1, ["lenient-json"]),
        (f'[{BOX}, "a]b", {{"a": {{}}}}, -1.5e3]', 1, []),
        (f"[{BOX}, tru", 1, ["truncated"]),
        (f"[{BOX}, -", 1, ["truncated"]),
        (f"[{BOX}, 1.", 1, ["truncated"]),
        (f"[{BOX}, 1e", 1, ["truncated"]),
        (f"[{BOX}, 'do\\", 1, ["truncated"]),
        (f"[{BOX}, 01]", 1, ["malformed"]),
        (f"[{BOX}, yes]", 1, ["malformed"]),
        (f'[{BOX}, "\\q"]', 1, ["malformed"]),
        (f'[{BOX}, "two\nlines"]', 1, ["malformed"]),
        (f"[{BOX}}}", 1, ["malformed"]),
        (f"[{BOX}, {{1: 2}}]", 1, ["malformed"]),
        (f"[{BOX},, {BOX}]", 2, ["malformed", "repeated-boxes", "several-blocks"]),
        (f"[a] {{b}} {BOX} [c", 1, []),
        (f"{{'a': (1, {BOX})}}", 1, []),
        ("[['s', [], x", 0, []),  # prose that holds an empty array
        ('[{"bbox_2d": [NaN, 2, 3, 4], "label": "cat"}]', 0, ["bad-boxes"]),
        ('[{"bbox_2d": [1e999, 2, 3, 4], "label": "cat"}]', 0, ["bad-boxes"]),
        ('[{"bbox_2d": [1e300, 2, 3, 4], "label": "cat"}]', 0, ["bad-boxes"]),
        ('[{"bbox_2d": [1, 2, 3, 4], "label": "\\ud800"}]', 0, ["bad-boxes"]),
        (f"<think>a</think><think>{BOX}", 0, ["failed", "unfinished-thinking"]),
        ("[" * 100 + BOX + "]" * 100, 1, []),
    ],
)
def test_odd_json(text: str, boxes: int, notes: list[str]) -> None:
    answer = json_answer(text)
    assert (len(answer.boxes), answer.all_notes()) == (boxes, notes)


def test_outer_boxes_precede_inner_ones() -> None:
    inner = '{"bbox_2d": [5, 6, 7, 8], "label": "head"}'
    answer = json_answer(f'[{{"parts": [{inner}], "bbox_2d": [1, 2, 3, 4], "label": "cat"}}]')
    assert [box.label for box in answer.boxes] == ["cat", "head"]


def test_a_nesting_above_100_is_malformed() -> None:
    # The brackets before the last 100 are no JSON; the rest is whole.
    answer = json_answer("[" * 150 + "]" * 150)
    assert answer.is_empty
    assert answer.all_notes() == []
    deep = json_answer(f"[{BOX}, {'[' * 100}{']' * 101}")
    assert (len(deep.boxes), deep.all_notes()) == (1, ["malformed"])


# Brackets that begin no value, values that are read twice, strings that begin in others.
@pytest.mark.parametrize(
    "part", ["{", "x[", "[1", "[[1],", "[{}", '["', '["\\"', "['\"", '{"a":[1,']
)
def test_odd_json_takes_linear_time(part: str) -> None:
    seconds = []
    for size in (50_000, 400_000):
        text = part * (size // len(part))
        seconds.append(min(process_time_of(text) for _ in range(2)))
    assert seconds[1] < 24 * max(seconds[0], 0.02)  # quadratic time is 64 times as long


def process_time_of(text: str) -> float:
    begin = time.process_time()
    json_answer(text)
    return time.process_time() - begin


TAGS = (
    *("<loc0001>", "<loc_1>", "<phrase>", "</phrase>", "<object>", "</object>"),
    *("<patch_index_0001>", "<1>", "<ref>", "</ref>", "<box>", "</box>", "[[", "1, ", "]]", ";"),
    *("<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "(1,1),(1,1)"),
    *("<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>", "None", "cat", "<"),
)


BRACKETS = ("[" * 10**6, "[{" * 500_000, "[{}" * 333_333, " [" * 10**5, '[{"a":' * 30000)


@pytest.mark.parametrize(
    "text", [*BRACKETS, *(tag * 20_000 for tag in TAGS)], ids=lambda text: text[:20]
)
@pytest.mark.parametrize("name", DIALECTS)
def test_much_repeated_text_is_read_in_under_a_second(name: str, text: str) -> None:
    begin = time.process_time()
    answer = DIALECTS[name].read(text, "cat")
    assert time.process_time() - begin < 1
    assert answer.failed or text not in BRACKETS


def tokens(name: str, text: str, label: str = "") -> tuple[list[tuple[str, Any]], int, list[str]]:
    answer = DIALECTS[name].read(text, label)
    corners = [DIALECTS[name].corners(box.numbers, (1000, 1000)) for box in answer.boxes]
    boxes = [(box.label, one) for box, one in zip(answer.boxes, corners, strict=True)]
    return boxes, len(answer.bad), answer.all_notes()


REF = "<|object_ref_start|>cat<|object_ref_end|>"


@pytest.mark.parametrize(
    ("name", "text", "label", "expected"),
    [
        ("paligemma", "<loc0000>" * 4, "cat", ([("cat", [0, 0, 0, 0])], 0, ["truncated"])),
        ("paligemma", "<loc0000>" * 4 + " ; <loc0000", "", ([], 1, ["bad-boxes", "truncated"])),
        ("florence-2", "<loc_1>" * 4, "", ([], 1, ["bad-boxes"])),
        ("florence-2", "cat" + "<loc_1>" * 5 + "dog" + "<loc_1>" * 4,
         "", ([("cat", [1.5] * 4), ("dog", [1.5] * 4)], 1, ["bad-boxes"])),
        ("kosmos-2", "<phrase>cat</phrase><object><patch_index_1024><patch_index_1024></object>",
         "", ([], 1, ["bad-boxes"])),
        ("kosmos-2", "<object><patch_index_0033><patch_index_0097></object>",
         "cat", ([("cat", [31.25, 31.25, 62.5, 125])], 0, [])),
        ("rex-omni", f"{REF}<|box_start|><0><0><999>,<0><0><999><999><|box_end|>",
         "", ([("cat", [0, 0, 1000, 1000])], 1, ["bad-boxes"])),
        ("rex-omni", f"{REF}<|box_start|>None<|box_end|>{REF}<|box_sta",
         "", ([], 0, ["truncated"])),
        ("qwen2-vl", f"{REF}<|box_start|>(1,2),(3,4)<|box_end|><|box_start|>(5,6),(7,8)<|box_end|>",
         "", ([("cat", [1, 2, 3, 4]), ("cat", [5, 6, 7, 8])], 0, [])),
        ("qwen2-vl", f"{REF}<|box_start|>(1,2),(3<|box_end|>", "", ([], 1, ["bad-boxes"])),
        ("internvl", "<ref>cat</ref><box>[[1, 2, 3, 4], [5, 6, 7, 8",
         "", ([("cat", [1, 2, 3, 4])], 0, ["truncated"])),
        ("internvl", "<ref>cat</ref><box>[]</box>", "", ([], 0, [])),
        ("internvl", "<think>a</think> <ref>ca", "", ([], 0, ["failed", "truncated"])),
        ("deepseek-vl2", "<|ref|>cat<|/ref|><|det|>[[0, 0, 999]]<|/det|>",
         "", ([], 1, ["bad-boxes"])),
        ("cogvlm", "It is [[001,002,003,004;005,006,0",
         "cat", ([("cat", [1, 2, 3, 4])], 0, ["truncated"])),
        ("cogvlm", "[[a]]", "cat", ([], 0, ["failed"])),
    ],
)  # fmt: skip
def test_odd_tokens(name: str, text: str, label: str, expected: Any) -> None:
    boxes, bad, notes = tokens(name, text, label)
    assert (bad, notes) == expected[1:]
    assert [label for label, _ in boxes] == [label for label, _ in expected[0]]
    for (_, actual), (_, corners) in zip(boxes, expected[0], strict=True):
        assert actual == pytest.approx(corners)


LABELS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda label: label.strip() and "think>" not in label
)
NUMBERS = st.floats(-1e4, 1e4)
BOXES = st.lists(st.tuples(LABELS, st.lists(NUMBERS, min_size=4, max_size=4)))


@given(BOXES, st.booleans(), st.sampled_from(["qwen3-vl", "gemini", "json"]))
def test_rendered_boxes_are_read_back(
    boxes: list[tuple[str, list[float]]], ascii_only: bool, name: str
) -> None:
    key = DIALECTS[name].form.box_key
    records = [{key: numbers, "label": label} for label, numbers in boxes]
    text = json.dumps(records, ensure_ascii=ascii_only, indent=1)
    answer = DIALECTS[name].read(f"Here:\n```json\n{text}\n```")
    expected = [(" ".join(label.split()), tuple(numbers)) for label, numbers in boxes]
    assert [box[:2] for box in answer.boxes] == expected
    assert not answer.failed
    assert set(answer.all_notes()) <= {"repeated-boxes"}


ODD = st.lists(
    st.sampled_from([*"[]{}:,'\"\\ \n-1ax<>", BOX, "nul", "<think>", "</think>", *TAGS])
).map("".join)


@given(ODD | st.text(), st.sampled_from(sorted(DIALECTS)))
def test_any_text_is_an_answer(text: str, name: str) -> None:
    answer = DIALECTS[name].read(text, "cat")
    assert answer.failed == ("failed" in answer.all_notes())


def test_sizes_of_the_resized_input() -> None:
    assert resized((640, 480)) == (644, 476)
    assert resized((8000, 6000)) == (4116, 3080)
    assert resized((20, 10)) == (84, 56)
    assert resized((640, 480), 3136, 100_000) == (364, 252)  # sqrt(3.072): 365.1 and 273.9
    with pytest.raises(FaultError, match="is 2010 x 10, a ratio above 200"):
        resized((2010, 10))


# --- files


@pytest.mark.parametrize("image", ["day/a.jpg", "a.jpg", "a", "day/a", "x\\y\\a.jpeg", 7, "7"])
def test_images_by_id_or_name(tmp_path: Path, image: Any) -> None:
    table = read(tmp_path, jsonl({"image": image, "response": CAT}, LINES[1]))
    assert table.images == (7, 8)
    assert table.image.tolist() == [0, 1]
    assert table.label.tolist() == [0, 1]
    assert table.corners == pytest.approx(np.array([[64, 48, 128, 96], [100, 50, 300, 150]]))
    assert not table.has_scores
    assert table.notes == ()


def test_an_array_is_read_like_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "answers.json", LINES)
    truth = detap.read_ground_truth(write(tmp_path / "gt.json", TRUTH))
    result = detap.evaluate(truth, detap.read_detections(path, truth, dialect="qwen3-vl"))
    assert result.summary["F1"] == 1
    assert matching_formats(str(path)) == ["responses"]


def test_other_json_lines_are_read_as_before(tmp_path: Path) -> None:
    objects = {"bbox": [[1, 2, 3, 4]], "category": ["cat"], "score": [0.5]}
    for record in (
        {"file_name": "a.jpg", "objects": objects},
        {"image": "a", "response": "", "file_name": "a.jpg", "objects": objects},
        {"image": "a", "answer": '"response": '},
    ):
        assert matching_formats(str(write(tmp_path / "dt.jsonl", jsonl(record)))) == ["jsonl"]
    path = write(tmp_path / "dt.jsonl", jsonl({"response": "x" * 5000 + '"', "image": "a"}))
    assert matching_formats(str(path)) == ["jsonl"]  # the first 4096 bytes decide


def test_labels_differ_in_more_than_case_and_space(tmp_path: Path) -> None:
    boxes = ["CAT", "cat ", "red  car", "Red Car"]
    records = [{"bbox_2d": [0, 0, n + 1, 9], "label": label} for n, label in enumerate(boxes)]
    line = {"image": "a", "response": json.dumps(records)}
    table = read(tmp_path, jsonl(line, LINES[1]))
    assert table.classes == ("cat", "Traffic light", "red car")
    assert table.label.tolist() == [0, 0, 2, 2, 1]


def test_notes_count_answers(tmp_path: Path) -> None:
    records = [
        {"image": "a", "response": "There are none of these objects in the image."},
        {"image": "a", "response": f"{CAT[:-1]}, {{"},
        {"image": "a", "response": '[{"bbox_2d": [1, 2], "label": "cat"}]'},
        {"image": "b", "response": LIGHT + LIGHT},
    ]
    text = '{"bbox_2d": [1.0, 2.0], "label": "cat"}'
    assert notes_of(read(tmp_path, jsonl(*records))) == {
        "responses-failed": (
            "1 of 4 answers has no boxes that could be read (failed); first: a: "
            '"There are none of these objects in the image."',
            1,
            "warning",
        ),
        "bad-boxes": (
            f"boxes without four finite numbers and a label are left out; first: a: {text}",
            1,
            "warning",
        ),
        "truncated": ("answers are broken off; their complete boxes count", 1, "info"),
        "several-blocks": ("answers have several JSON values with boxes; all count", 1, "info"),
        "repeated-boxes": ("answers repeat a box with its label; all count", 1, "info"),
        "responses-per-image": ("images have several answers; all count", 1, "info"),
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "answers.jsonl: is empty; expected {"),
        ("[]", "answers.jsonl: has no answers; "),
        ('{"image": 1, "response": ""}\n{', "line 2, column 2: file is truncated"),
        ("[{]", 'line 1, column 3: invalid JSON at "]": expecting property name'),
        ("[" * 100_000, "answers.jsonl: JSON is nested 100000 levels deep, the limit is 100"),
        ('{"image": 1, "response": "", "x": ' + "[" * 200, "JSON is nested 201 levels deep"),
        ("3\n", "line 1: is 3; expected {"),
        ('[{"image": "a", "response": ""}, 5]', "[1]: is 5; expected {"),
        (jsonl({"image": "a"}), "line 1: response is missing; "),
        (jsonl({"response": ""}), "line 1: image is missing; "),
        (
            jsonl({"image": "a", "response": None}),
            'line 1: response is null; expected text; write ""',
        ),
        (jsonl({"image": True, "response": ""}), "line 1: image is true; expected a file name"),
        (jsonl({"image": " ", "response": ""}), 'line 1: image is " "; expected a file name'),
        (
            jsonl({"image": "a", "response": "", "label": 3}),
            "line 1: label is 3; write a class name",
        ),
        (
            jsonl({"image": "\ud800", "response": ""}),
            "line 1: image '\\ud800' is not in the ground",
        ),
        (
            jsonl({"image": "a", "response": "", "input_width": 5}),
            "line 1: has one of input_width and input_height; write both or neither",
        ),
        (
            jsonl({"image": "a", "response": "", "input_width": 0, "input_height": 9}),
            "line 1: input_width is 0; write pixels",
        ),
    ],
)
def test_invalid_lines(tmp_path: Path, content: str, expected: str) -> None:
    assert expected in message(tmp_path, content, format="responses")


def test_the_dialect_is_named(tmp_path: Path) -> None:
    names = " or ".join(DIALECTS)
    expected = f"need a dialect, which is not guessed; use --dialect {names} (dialect= in Python)"
    assert expected in message(tmp_path, dialect=None)
    assert "--dialect 'qwen' is unknown; use one of qwen2.5-vl," in message(
        tmp_path, dialect="qwen"
    )


def test_the_key_of_another_dialect(tmp_path: Path) -> None:
    expected = "answers.jsonl: 2 of 2 answers have no box under box_2d, but under bbox_2d; "
    assert message(tmp_path, dialect="gemini") == f"{expected}try --dialect qwen2.5-vl or qwen3-vl"
    as_is = read(tmp_path, dialect="gemini", as_is=True)
    assert notes_of(as_is)["bad-boxes"][1] == 2
    half = jsonl(LINES[0], {"image": "b", "response": "[]"})
    assert notes_of(read(tmp_path, half, dialect="gemini"))["bad-boxes"][1] == 1
    for key in ("bbox", "box"):
        other = jsonl(
            *(line | {"response": line["response"].replace("bbox_2d", key)} for line in LINES)
        )
        expected = f"but under {key}; try --dialect json --box-key {key}"
        assert message(tmp_path, other).endswith(expected)
    # The remedy works; boxes are in pixels then.
    table = read(tmp_path, other, dialect="json", box_key="box", box_scale="1000")
    assert table.corners.tolist() == read(tmp_path).corners.tolist()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"box_key": "b"}, "--box-key is for --dialect json; this is --dialect qwen3-vl"),
        ({"max_pixels": 9}, "--max-pixels is for --dialect qwen2.5-vl; this is --dialect qwen3-vl"),
        (
            {"dialect": "json", "box_scale": "0"},
            "--box-scale '0' is not pixels or a number above 0",
        ),
        (
            {"dialect": "json", "box_scale": "x"},
            "--box-scale 'x' is not pixels or a number above 0",
        ),
        (
            {"dialect": "json", "box_order": "x"},
            "box_order 'x' is unknown; use one of xyxy, xywh",
        ),
        (
            {"dialect": "qwen2.5-vl", "min_pixels": "1.5"},
            "--min-pixels '1.5' is not a whole number",
        ),
        ({"boxes": "xyxy"}, "model answers files, which name their coordinates (see --dialect)"),
        ({"missing_responses": "x"}, "missing_responses 'x' is unknown; use one of error, empty"),
    ],
)
def test_invalid_options(tmp_path: Path, options: dict[str, Any], expected: str) -> None:
    assert expected in message(tmp_path, **options)


def test_unknown_images(tmp_path: Path) -> None:
    lines = [*LINES, {"image": "aa.jpg", "response": ""}, {"image": "c", "response": ""}]
    assert message(tmp_path, jsonl(*lines)) == (
        "answers.jsonl: line 3: image 'aa.jpg' is not in the ground truth; did you mean "
        "'day/a.jpg'?"
    )
    # The remedy for other lines works.
    far = [*LINES, {"image": "zebra", "response": CAT}]
    leave_out = "use results for the same images, or leave such detections out by --extra-images"
    assert leave_out in message(tmp_path, jsonl(*far))
    table = read(tmp_path, jsonl(*far), extra_images="drop")
    assert table.corners.tolist() == read(tmp_path).corners.tolist()
    assert notes_of(table)["extra-images"][1] == 1
    # Two images have the name a.jpg, so that only the folder tells them apart.
    images = [*TRUTH["images"], {"id": 9, "file_name": "night/a.jpg", "width": 10, "height": 10}]
    lines[2] = {"image": "night/a.jpg", "response": ""}
    unclear = message(tmp_path, jsonl(*lines[:3]), TRUTH | {"images": images})
    assert "line 1: image 'a.jpg' is not in the ground truth; did you mean" in unclear


def test_images_without_an_answer(tmp_path: Path) -> None:
    expected = "answers.jsonl: 1 of 2 images has no answer, first night/b.png; "
    remedy = "--missing-responses empty counts them as empty"
    assert message(tmp_path, jsonl(LINES[0])) == expected + remedy
    table = read(tmp_path, jsonl(LINES[0]), missing_responses="empty")
    assert detap.evaluate(detap.read_ground_truth(tmp_path / "gt.json"), table).summary["R"] == 0.5


def test_a_dialect_whose_boxes_have_no_label(tmp_path: Path) -> None:
    lines = [{"image": "a", "label": "CAT", "response": "[[100,100,200,200]]"}]
    table = read(tmp_path, jsonl(*lines, lines[0] | {"image": "b"}), dialect="cogvlm")
    assert table.label.tolist() == [0, 0]
    missing = "label is missing; write the class that was asked for"
    expected = f"answers.jsonl: line 2: {missing}\nanswers.jsonl: line 3: {missing}"
    assert message(tmp_path, jsonl(*lines, *LINES), dialect="cogvlm") == expected


def test_swapped_corners_are_false_positives(tmp_path: Path) -> None:
    """Boxes of a model are not corrected, however many are swapped, nor is the run refused."""
    swapped = CAT.replace("100, 100, 200, 200", "200, 200, 100, 100")
    lines = [{"image": 7, "response": swapped}, {"image": 8, "response": LIGHT}]
    one, other = (write(tmp_path / f"{n}.jsonl", jsonl(lines[n])) for n in (0, 1))
    truth = detap.read_ground_truth(write(tmp_path / "gt.json", TRUTH))
    options: dict[str, Any] = {"dialect": "qwen3-vl", "missing_responses": "empty"}
    several = detap.read_detections([one, other], truth, **options)
    for table in (read(tmp_path, jsonl(*lines)), several):
        assert notes_of(table)["detections-negative-size"][1:] == (1, "warning")
        result = detap.evaluate(truth, table)
        assert (result.summary["P"], result.summary["R"]) == (0.5, 0.5)


def test_several_files(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{n}.jsonl", jsonl(line)) for n, line in enumerate(LINES)]
    truth = detap.read_ground_truth(write(tmp_path / "gt.json", TRUTH))
    expected = "has no answer, first night/b.png; --missing-responses empty"
    with pytest.raises(InputError, match=expected):
        detap.read_detections(paths, truth, dialect="qwen3-vl")
    options: dict[str, Any] = {"dialect": "qwen3-vl", "missing_responses": "empty"}
    assert detap.read_detections(paths, truth, **options).image.tolist() == [0, 1]


def test_image_sizes(tmp_path: Path) -> None:
    images = [{"id": image["id"], "file_name": image["file_name"]} for image in TRUTH["images"]]
    truth = TRUTH | {"images": images}
    assert message(tmp_path, truth=truth) == (
        "answers.jsonl: the size of image 'day/a.jpg' is unknown; "
        "pass --image-sizes FILE, a CSV of image,width,height"
    )
    sizes = write(tmp_path / "sizes.csv", "image,width,height\na.jpg,640,480\nb.png,1000,500\n")
    table = read(tmp_path, truth=truth, image_sizes=sizes)
    assert table.corners.tolist() == read(tmp_path).corners.tolist()
    assert [file.path for file in table.files] == [str(tmp_path / "answers.jsonl"), str(sizes)]
    # Pixels need no size.
    assert len(read(tmp_path, truth=truth, dialect="json", box_key="bbox_2d")) == 2
    images[0] |= {"width": 9000, "height": 9}
    images[1] |= {"width": 10, "height": 10}
    long = message(tmp_path, truth=truth, dialect="qwen2.5-vl")
    assert "line 1: box 1: image is 9000 x 9, a ratio above 200; write input_width" in long


def test_options_are_recorded(tmp_path: Path) -> None:
    options = {"dialect": "qwen2.5-vl", "max_pixels": "100000", "missing_responses": "error"}
    table = read(tmp_path, **options)
    assert table.files[0].reading == (("dialect", "qwen2.5-vl"), ("max_pixels", "100000"))


def test_the_resized_input_is_in_the_signature(tmp_path: Path) -> None:
    truth = write(tmp_path / "gt.json", TRUTH)
    answers = write(tmp_path / "answers.jsonl", jsonl(*LINES))
    options: dict[str, Any] = {"dialect": "qwen2.5-vl", "max_pixels": "100000"}
    options["as_is"] = True
    parts = detap.evaluate(truth, answers, **options).signature.split("|")
    assert parts[:3] == ["protocol:coco", "scores:none", "max-pixels:100000"]
    again = Protocol.parse("|".join(parts))
    assert (again.name, again.scores) == ("coco", "none")
    default = detap.evaluate(truth, answers, **options | {"max_pixels": "12845056"}).signature
    assert "max-pixels" not in default


def test_boxes_of_another_dialect(tmp_path: Path) -> None:
    """The answers are in 1/1000 of the image, and look so if they are read as pixels."""
    read(tmp_path)
    paths = tmp_path / "gt.json", tmp_path / "answers.jsonl"
    expected = "scaled back; name the dialect that the model writes by --dialect, or pass as_is"
    with pytest.raises(InputError, match=expected):
        detap.evaluate(*paths, dialect="qwen2.5-vl")
    assert detap.evaluate(*paths, dialect="qwen3-vl").summary["F1"] == 1


@pytest.mark.parametrize(
    ("boxes", "reach", "size", "count"),
    [
        (30, 500, None, 30),
        (30, 525, None, 30),  # 5 % beyond the border
        (27, 500, None, 27),  # and three in fractions
        (26, 500, None, 0),
        (30, 800, (800, 600), 0),  # as the model saw the image, fractions may be as small
        (30, 690, (690, 600), 30),
        (29, 500, None, 0),  # too few, with one in fractions on a large image
    ],
)
def test_pixels_under_a_dialect_of_fractions(
    tmp_path: Path, boxes: int, reach: int, size: tuple[int, int] | None, count: int
) -> None:
    widths = {7: 500, 8: 900}
    images = [image | {"width": widths[image["id"]], "height": 400} for image in TRUTH["images"]]
    lines: list[Any] = [{"image": image, "response": "[]"} for image in widths]
    for image, end, number in ((7, reach, boxes), (8 if boxes == 29 else 7, 1000, 30 - boxes)):
        records = [{"bbox_2d": [0, n, end, 300], "label": "cat"} for n in range(number)]
        lines.append({"image": image, "response": json.dumps(records)})
        if size:
            lines[-1] |= {"input_width": size[0], "input_height": size[1]}
    table = read(tmp_path, jsonl(*lines), TRUTH | {"images": images})
    message = "boxes end within the width and height of their image as if written in pixels, but "
    expected = (f"{message}--dialect qwen3-vl has 1/1000 of them", count, "warning")
    assert notes_of(table).get("answers-in-pixels") == (expected if count else None)


def scored(*scores: Any) -> str:
    boxes = [json.loads(line["response"])[0] for line in LINES]
    records = [box | {"conf": score} for box, score in zip(boxes, scores, strict=True)]
    lines = zip(LINES, records, strict=True)
    return jsonl(*({"image": line["image"], "response": json.dumps([one])} for line, one in lines))


def test_scores_are_read_by_the_key_of_an_option(tmp_path: Path) -> None:
    content = scored(0.25, 7)
    assert not read(tmp_path, content).has_scores
    table = read(tmp_path, content, score_key="conf")
    assert table.score.tolist() == [0.25, 7]
    truth = detap.read_ground_truth(tmp_path / "gt.json")
    assert detap.evaluate(truth, table).summary["AP"] == pytest.approx(1)  # IoU 1 each
    assert not read(tmp_path, content, score_key="score").has_scores
    for score in (None, "high", True, float("nan")):
        assert message(tmp_path, scored(0.25, score), score_key="conf") == (
            "answers.jsonl: line 2: box 1: score is missing; 1 of 2 records has none: give all "
            "records a score, or none"
        )
    assert message(tmp_path, dialect="cogvlm", score_key="conf") == (
        "--score-key is for dialects in JSON; this is --dialect cogvlm"
    )


def test_answers_without_any_box_have_no_scores(tmp_path: Path) -> None:
    lines = jsonl({"image": "a", "response": "[]"}, {"image": "b", "response": "no idea"})
    read(tmp_path, lines)
    paths = tmp_path / "gt.json", tmp_path / "answers.jsonl"
    with pytest.warns(DetapWarning):
        result = detap.evaluate(*paths, dialect="gemini")
    assert (result.summary["F1"], result.summary["R"]) == (0, 0)
    assert np.isnan(result.summary["P"])
    messages = {note.code: note.message for note in result.notes}
    assert messages["no-detections"] == "no detections: R and F1 are 0"
    with pytest.warns(DetapWarning, match="every AP is 0"):
        assert detap.evaluate(*paths, dialect="gemini", score_key="conf").summary["AP"] == 0


def test_the_report_counts_answers(command: Run, tmp_path: Path) -> None:
    truth = write(tmp_path / "gt.json", TRUTH)
    boxes = f"{CAT[:-1]}, {{'bbox_2d': [1, 2], 'label': 'cat'}}, {{"
    lines = [{"image": "a", "response": boxes}, {"image": "a", "response": "None"}]
    paths = [write(tmp_path / f"{n}.jsonl", jsonl(line)) for n, line in enumerate(lines)]
    options = ["--dialect", "qwen3-vl", "--missing-responses", "empty", "--merge-images"]
    output = tmp_path / "report.json"
    inputs = ["--gt", truth, *(f"--dt={path}" for path in paths)]
    run = command("eval", *inputs, *options, "--output", output).passed()
    sentence = "2 answers: 1 failed, 1 with lenient JSON, 1 truncated, 1 bad boxes"
    assert f"\nAnswers\n{sentence}\n" in run.out
    assert json.loads(output.read_text())["unscored"]["responses"] == {
        "dialect": "qwen3-vl",
        "lines": 2,
        "images_without_response": ["night/b.png"],
        "failed": ["a"],
        "bad_boxes": 1,
        "notes": {"bad-boxes": 1, "failed": 1, "lenient-json": 1, "truncated": 1},
    }


def test_answers_are_converted_to_results_of_coco(command: Run, tmp_path: Path) -> None:
    truth = write(tmp_path / "gt.json", TRUTH)
    other = CAT.replace("Cat", "fox")
    path = write(tmp_path / "answers.jsonl", jsonl(*LINES, {"image": "a", "response": other}))
    converted = tmp_path / "boxes.json"
    inputs = ["convert", "--gt", truth, "--dt", path, "--dialect", "qwen3-vl", "--output"]
    ended = command(*inputs, converted)
    assert (ended.status, f"{converted}: 3 detections\n" in ended.err) == (0, True)
    boxes = {"fox": [64, 48, 64, 48], "Cat": [64, 48, 64, 48], "light": [100, 50, 200, 100]}
    assert json.loads(converted.read_text())["annotations"] == [
        {"image_id": 7, "category_id": 1, "bbox": boxes["Cat"]},
        {"image_id": 7, "category_id": 3, "bbox": boxes["fox"]},  # the next id
        {"image_id": 8, "category_id": 2, "bbox": boxes["light"]},
    ]
    for source in ([path, "--dialect", "qwen3-vl"], [converted]):
        ended = command("eval", truth, *source)
        assert "\nF1        0.8000" in ended.out  # two of three boxes are right
        assert "1 detection of 1 label that the ground truth lacks: fox (1)" in ended.err
    # Scored ones are left out, as in COCO's tools, and a list of results is enough.
    scored = jsonl(
        *(line | {"response": line["response"].replace("label", 's": 1, "label')} for line in LINES)
    )
    write(path, scored)
    command(*inputs, tmp_path / "scored.json", "--score-key", "s")
    assert isinstance(json.loads((tmp_path / "scored.json").read_text()), list)
    ended = command(*inputs, tmp_path / "folder")
    expected = "no target format: use --to, or an output such as results.json for COCO"
    assert (ended.status, expected in ended.err) == (2, True)


def test_answers_are_no_ground_truth(tmp_path: Path, command: Run) -> None:
    path = write(tmp_path / "answers.jsonl", jsonl(*LINES))
    with pytest.raises(InputError, match="holds answers of a model; give it as det"):
        detap.read_ground_truth(path)
    inputs = ["eval", write(tmp_path / "gt.json", TRUTH), path, "--dialect", "qwen3-vl"]
    refused = command(*inputs, "--format", "responses").err
    assert "for a ground truth of another format, use --dt-format" in refused
    followed = command(*inputs, "--dt-format", "responses")
    assert (followed.status, followed.out) == (0, command(*inputs).out)


# --- whole sets


@pytest.mark.parametrize("index", range(3))
def test_sets_of_the_reference_program(real_data: Path, unscored: Path, index: int) -> None:
    expected = json.loads((unscored / "responses_expected.json").read_text())["files"][index]
    path = unscored / expected["responses"]
    truth = detap.read_ground_truth(real_data / expected["ground_truth"])
    options: dict[str, Any] = {"dialect": expected["dialect"]}
    missing = expected["images_without_response"]
    if missing:
        with pytest.raises(InputError) as error:
            detap.read_detections(path, truth, **options)
        first = f"{len(missing)} of 100 images have no answer, first {missing[0]}; "
        assert f"{first}--missing-responses empty counts them as empty" in str(error.value)
        options["missing_responses"] = "empty"
    table = detap.read_detections(path, truth, **options)
    assert len(table) == expected["boxes_read"]
    notes = notes_of(table)
    counts = dict(expected["answers_by_note"])
    failed = expected["failed_responses"]
    assert counts.pop("failed") == len(failed)
    prefix = f"{len(failed)} of {expected['lines']} answers have no boxes that could be read"
    assert notes["responses-failed"][0].startswith(f"{prefix} (failed); first: {failed[0]}: ")
    assert {code: notes[code][1] for code in counts} == counts
    with pytest.warns(DetapWarning, match="labels? that the ground truth lacks"):
        result = detap.evaluate(truth, path, "coco", **options)
    dropping = detap.protocol("coco").with_changes(unknown_labels="drop")
    dropped = detap.evaluate(truth, path, dropping, **options)
    for kept, suffix in ((result, ""), (dropped, "_unknown_dropped")):
        assert kept.summary == pytest.approx(expected[f"summary{suffix}"], abs=1e-9)
        counts = expected[f"counts{suffix}"]
        assert kept.true_positives.sum() == counts["TP"]
        assert kept.false_positives.sum() == counts["FP"]
    unscored_data = result.to_dict()["unscored"]
    assert unscored_data["unknown_labels"] == expected["unknown_labels"]
    assert unscored_data["responses"] == {
        "dialect": expected["dialect"],
        "lines": expected["lines"],
        "images_without_response": missing,
        "failed": failed,
        "bad_boxes": expected["bad_boxes"],
        "notes": expected["answers_by_note"],
    }
