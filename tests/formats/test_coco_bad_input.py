"""Bad COCO input; the messages are the same if Python parses every record."""

import json
import os
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.errors import InputError, UsageError
from detap.formats.coco import format as coco
from detap.io.limits import MOST_RECORDS, Limits
from detap.tables.columns import MOST_ROWS
from tests.formats.coco_files import (
    RESULTS,
    TRUTH,
    Files,
    as_bytes,
    counted,
    result,
    truth,
    with_record,
)


@pytest.fixture(params=["fast", "one by one"])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    return Files(tmp_path, monkeypatch, request.param == "one by one")


def text(document: Any, old: str, new: str) -> bytes:
    """Return the document with one piece of its text replaced."""
    written = json.dumps(document)
    assert old in written
    return written.replace(old, new, 1).encode()


def test_the_valid_files_have_no_notes(files: Files) -> None:
    table = files.read_results(RESULTS)
    assert table.notes == ()
    assert table.score.tolist() == [0.9, 0.8, 0.75]
    assert table.image.tolist() == [0, 1, 1]
    assert table.label.tolist() == [0, 1, 2]
    assert table.corners.tolist()[2] == [300.5, 100, 320.5, 130.25]
    assert table.box_area.tolist() == [1200, 2500, 605]
    ground = files.read_truth(TRUTH)
    assert ground.notes == ()
    assert ground.images == (1, 2, 3)
    assert ground.classes == ("cat", "dog", "bird")
    assert ground.area.tolist() == [700.5, 2500, 4000]
    assert ground.crowd.tolist() == [False, False, True]
    assert ground.image_sizes is not None
    assert ground.image_sizes.tolist() == [[640, 480]] * 3


TRUTH_ERRORS: dict[str, tuple[Any, str]] = {
    "annotation id twice": (
        with_record("annotations", 1, id=11, image_id=1),
        "annotations[1] (id 11): duplicate id 11 (also at annotations[0])",
    ),
    "image id twice": (
        with_record("images", 1, id=1),
        "images[1] (id 1): duplicate id 1 (also at images[0])",
    ),
    "category id twice": (
        with_record("categories", 1, id=1),
        "categories[1] (id 1): duplicate id 1 (also at categories[0])",
    ),
    "unknown image": (
        with_record("annotations", 1, image_id=99),
        "annotations[1]: image_id 99 is not in images",
    ),
    "unknown category": (
        with_record("annotations", 1, category_id=99),
        "annotations[1]: category_id 99 is not in categories",
    ),
    "image id as a string": (
        with_record("annotations", 1, image_id="2"),
        'annotations[1]: image_id "2" is not in images (ids are numbers)',
    ),
    "image ids of two kinds": (
        truth(images=[*TRUTH["images"], {"id": "x"}]),
        "ids of images mix numbers and strings; use one type",
    ),
    "category ids of two kinds": (
        truth(categories=[*TRUTH["categories"], {"id": "x", "name": "x"}]),
        "ids of categories mix numbers and strings",
    ),
    "id a fraction": (
        with_record("images", 0, id=1.5),
        "images[0]: id is 1.5, expected an integer",
    ),
    "id a large float": (
        with_record("images", 0, id=2.0**53),
        "images[0]: id is 9007199254740992.0",
    ),
    "id true": (with_record("annotations", 0, id=True), "annotations[0] (id true): id is true"),
    "image without id": (with_record("images", 0, "id"), "images[0]: id is missing"),
    "image_id missing": (with_record("annotations", 0, "image_id"), "(id 11): image_id is missing"),
    "no annotations": (truth(annotations=[]), "no annotations"),
    "annotations absent": (
        {"images": TRUTH["images"], "categories": TRUTH["categories"]},
        "no annotations; expected an object with images, annotations, categories",
    ),
    "images null": (truth(images=None), "images is null, expected an array"),
    "a record is a number": (truth(images=[1]), "images[0]: is 1, expected an object"),
    "results as ground truth": (RESULTS, "is a JSON list (results?); expected an object"),
    "results object as ground truth": (
        {"annotations": RESULTS},
        "no images and no categories (records have scores: results?)",
    ),
    "box missing": (
        with_record("annotations", 0, "bbox"),
        "bbox is missing, expected [x, y, width, hei",
    ),
    "box null": (with_record("annotations", 0, bbox=None), "bbox is null"),
    "box of three": (
        with_record("annotations", 0, bbox=[1, 2, 3]),
        "bbox has 3 values, expected 4: [x, y",
    ),
    "box of strings": (
        with_record("annotations", 0, bbox=["1", 2, 3, 4]),
        'bbox[0] is "1", expected',
    ),
    "box NaN": (
        with_record("annotations", 0, bbox=[1, 2, float("nan"), 4]),
        "annotations[0] (id 11): bbox[2] is NaN, expected a finite number",
    ),
    "box infinite": (
        with_record("annotations", 0, bbox=[1, 2, float("inf"), 4]),
        "bbox[2] is infinite",
    ),
    "box 1e999": (text(TRUTH, "[10, 20, 30", "[10, 20, 1e999"), "bbox[2] is infinite, expected"),
    "box of 401 digits": (
        text(TRUTH, "[10, 20, 30", "[10, 20, 1" + "0" * 400),
        "bbox[2] is 10000000000000000000... (401 digits), expected a finite number",
    ),
    "box of 310 digits": (
        text(TRUTH, "[10, 20, 30", "[10, 20, 1" + "0" * 310),
        "expected a finite number",
    ),
    "negative width": (
        with_record("annotations", 0, bbox=[1, 2, -3, 4]),
        "bbox has a negative width: [1, 2, -3, 4]",
    ),
    "negative height": (with_record("annotations", 0, bbox=[1, 2, 3, -4]), "negative height"),
    "area overflows": (
        with_record("annotations", 0, bbox=[1, 2, 1e200, 1e200]),
        "bbox [1, 2, 1e+200, 1e+200] overflows",
    ),
    "corner overflows": (
        with_record("annotations", 0, bbox=[1.7e308, 2, 1.7e308, 0]),
        " overflows, expected finite corners",
    ),
    "area negative": (with_record("annotations", 0, area=-1), "area is -1, expected a number >= 0"),
    "crowd of two": (with_record("annotations", 0, iscrowd=2), "iscrowd is 2, expected 0 or 1"),
    "ignore a string": (
        with_record("annotations", 0, ignore="no"),
        'ignore is "no", expected 0 or 1',
    ),
    "name a number": (
        with_record("categories", 0, name=5),
        "categories[0] (id 1): name is 5, expected",
    ),
    "name half a character": (
        with_record("categories", 0, name="\ud800"),
        "name has an unpaired surrogate; write it as UTF-8",
    ),
    "id half a character": (
        with_record("images", 0, id="\ud800"),
        ": id has an unpaired surrogate; write it as UTF-8",
    ),
    "an image id as a number among strings": (
        truth(images=[{**image, "id": str(image["id"])} for image in TRUTH["images"]]),
        "annotations[1]: image_id 2 is not in images (ids are strings)\n",
    ),
    "key twice": (
        text(TRUTH, '"area": 700.5', '"area": 700.5, "area": 700.5'),
        'annotations[0]: duplicate key "area" in one object; keep one of them',
    ),
    "key twice, once with escapes": (
        text(TRUTH, '"area": 700.5', '"area": 700.5, "\\u0061rea": 1'),
        'duplicate key "area"',
    ),
    "nested key twice": (
        text(TRUTH, '"counts": [1, 2, 3]', '"counts": [1], "counts": [1]'),
        'annotations[2]: duplicate key "counts"',
    ),
    "part twice": (
        text(TRUTH, '"categories":', '"images": [], "categories":'),
        'duplicate key "images" in one object',
    ),
    "NaN where it is ignored": (
        text(TRUTH, "[10, 20, 40.5", "[NaN, 20, 40.5"),
        "annotations[0]: contains NaN or Infinity, which are not valid JSON",
    ),
    "trailing bytes": (as_bytes(TRUTH) + b" x", 'unexpected text after the JSON value: "x"'),
    "a comma too many": (text(TRUTH, '"area": 700.5', '"area": 700.5,'), "invalid JSON at"),
    "single quotes": (repr(TRUTH).encode(), "looks like Python text, not JSON; write it with json"),
    "UTF-16": (json.dumps(TRUTH).encode("utf-16"), "is UTF-16 or UTF-32 text, expected UTF-8"),
    "UTF-16 without mark": (json.dumps(TRUTH).encode("utf-16-le"), "is UTF-16 or UTF-32 text"),
    "Latin-1": (
        json.dumps(truth(info="\xe9"), ensure_ascii=False).encode("latin-1"),
        "0xe9 is not UTF-8; save it as UTF-8",
    ),
    "a control character in a string": (text(TRUTH, "a.jpg", "a\x01.jpg"), "nvalid control char"),
    "empty": (b"", "is empty"),
    "a number": (b"17", "not a JSON object; expected an object"),
    "LFS pointer": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "looks like a Git LFS pointer; download the file with `git lfs pull`",
    ),
    "HTML": (b"<!DOCTYPE html><html><body>404</body></html>", "looks like an HTML page"),
    "XML": (b"<annotation/>", "looks like XML; for PASCAL VOC annotations use --format voc"),
    "merge markers far below": (
        as_bytes(truth(info="x" * 100_000))[:-1] + b',\n<<<<<<< HEAD\n"a": 1}\n',
        "looks like a file with unresolved merge conflicts",
    ),
    "merge markers": (
        b"<<<<<<< HEAD\n" + as_bytes(TRUTH) + b"\n=======\n{}\n>>>>>>> other\n",
        "looks like a file with unresolved merge conflicts",
    ),
    "pickle": (b"\x80\x04\x95\x10\x00", "looks like a Python pickle; save it as JSON"),
    "deep nesting": (
        b'{"info": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "JSON is nested 100001 levels deep, the limit is 100",
    ),
    "nothing but brackets": (b"[" * 1_000_000, "JSON is nested 1000000 levels deep"),
}


@pytest.mark.parametrize("name", TRUTH_ERRORS)
def test_invalid_ground_truth_is_refused(files: Files, name: str) -> None:
    document, expected = TRUTH_ERRORS[name]
    error = files.truth_error(document)
    assert expected in str(error)
    assert str(error).startswith(f"{files.truth_path}: ")
    assert error.exit_status == 2


RESULT_ERRORS: dict[str, tuple[Any, str]] = {
    "trailing comma": (
        as_bytes(RESULTS)[:-1] + b",]",
        'invalid JSON at "]": trailing comma; write valid JSON',
    ),
    "no value on the second line": (
        b"\n[,]",
        'line 2, column 2: invalid JSON at ",]": expecting value; write valid JSON',
    ),
    "unknown image": (
        result(1, image_id=99),
        "[1]: image_id 99 is not in the ground truth",
    ),
    "image id a string": (
        result(1, image_id="2"),
        '[1]: image_id "2" is not in the ground truth (ids are numbers)',
    ),
    "no image in common": (
        [{**record, "image_id": record["image_id"] + 100} for record in RESULTS],
        "no image_id of the results is in the ground truth (results: "
        "101\N{EN DASH}102; ground truth: 1\N{EN DASH}3)",
    ),
    "all image ids strings": (
        [{**record, "image_id": str(record["image_id"] + 6)} for record in RESULTS],
        "no image_id of the results is in the ground truth (results: "
        '"7"\N{EN DASH}"8"; ground truth: 1\N{EN DASH}3)',
    ),
    "category names, one unknown": (
        [{**record, "category_id": "ox" if k else "cat"} for k, record in enumerate(RESULTS)],
        "category_id is text, and 'ox' (1 of 2 names) are not class names of the ground truth; "
        "use the ground truth's category ids or names",
    ),
    "category id a string": (
        result(1, category_id="2"),
        '[1]: category_id is "2", expected a number as in the ground truth',
    ),
    "no category in common": (
        [{**record, "category_id": record["category_id"] + 10} for record in RESULTS],
        "no category_id of the results is in the ground truth (results: "
        "11\N{EN DASH}13; ground truth: 1\N{EN DASH}3); "
        "use the ground truth's category ids, or pass as_is=True (--as-is)",
    ),
    "every category id one too high": (
        [{**record, "category_id": record["category_id"] + 1} for record in RESULTS],
        "every category_id looks off by +1 (e.g. 2 overlaps class 1); use the ground truth's ids",
    ),
    "image id beyond 64 bits": (
        result(1, image_id=2**63),
        "[1]: image_id 9223372036854775808 is not in the ground truth",
    ),
    "image id missing": (result(0, "image_id"), "[0]: image_id is missing"),
    "score missing": (
        result(2, "score"),
        "[2]: score is missing; 1 of 3 records has none: give all records a score, or none",
    ),
    "score null": (
        [{**record, "score": None if k < 2 else 0.5} for k, record in enumerate(RESULTS)],
        "[0]: score is missing; 2 of 3 records have none: give all records a score, or none",
    ),
    "score true": (result(2, score=True), "[2]: score is true, expected a number"),
    "score NaN": (result(2, score=float("nan")), "[2]: score is NaN, expected a finite number"),
    "score infinite": (result(2, score=float("-inf")), "[2]: score is infinite"),
    "score 1e999": (text(RESULTS, "0.75", "1e999"), "[2]: score is infinite"),
    "score of 401 digits": (
        text(RESULTS, "0.75", "1" + "0" * 400),
        "[2]: score is 10000000000000000000... (401 digits), expected a finite number",
    ),
    "box negative": (result(0, bbox=[1, 2, -3, 4]), "[0]: bbox has a negative width"),
    "box overflows": (
        result(0, bbox=[0, 0, 1e300, 1e300]),
        "[0]: bbox [0, 0, 1e+300, 1e+300] overflows",
    ),
    "a semicolon between two parts": (
        text({"annotations": RESULTS, "info": {}}, '], "info"', ']; "info"'),
        'invalid JSON at "; ',
    ),
    "an object without a list": ({"results": []}, "is an object without a list of annotations or"),
    "two lists": (
        {"annotations": RESULTS, "predictions": RESULTS},
        "both annotations and predictions are lists; keep the one with the detections",
    ),
    "other names for the categories": (
        {"annotations": RESULTS, "categories": [{"id": 2, "name": "horse"}]},
        'categories: category 2 has the name "horse", expected "dog" as in the ground truth; use',
    ),
    "a list per image": (
        [RESULTS[:1], RESULTS[1:]],
        "has 2 lists, such as one per image, expected one of all detections; expected a results",
    ),
    "a record is a list": ([*RESULTS, [1]], "[3]: is [1], expected an object"),
    "an equals sign after a key": (
        text(RESULTS, '"image_id": 1', '"image_id"= 1'),
        'column 13: invalid JSON at "= 1, ',
    ),
    "JSON Lines": (
        b"\n".join(json.dumps(record).encode() for record in RESULTS),
        "looks like JSON Lines; write the records as one JSON array",
    ),
    "key twice": (
        text(RESULTS, '"score": 0.8', '"score": 0.8, "score": 0.9'),
        '[1]: duplicate key "score"',
    ),
    "a fraction without digits": (text(RESULTS, "0.75", "1."), "invalid JSON at"),
    "a number from 0": (text(RESULTS, "0.75", "01"), "invalid JSON at"),
}


@pytest.mark.parametrize("name", RESULT_ERRORS)
def test_invalid_results_are_refused(files: Files, name: str) -> None:
    document, expected = RESULT_ERRORS[name]
    error = files.results_error(document)
    assert expected in str(error)
    assert str(error).startswith(f"{files.results_path}: ")


TRUTH_NOTES: dict[str, tuple[Any, dict[str, int]]] = {
    "annotation id 0": (with_record("annotations", 0, id=0), {"annotation-id-zero": 1}),
    "annotation id huge": (with_record("annotations", 0, id=10**30), {}),
    "annotation id a string": (with_record("annotations", 0, id="x"), {}),
    "image id whole float": (with_record("images", 0, id=1.0), {}),
    "the same annotation again": (
        truth(annotations=[*TRUTH["annotations"], TRUTH["annotations"][0]]),
        {"repeated-annotations": 1},
    ),
    "the same image again": (
        truth(images=[*TRUTH["images"], TRUTH["images"][0]]),
        {"repeated-images": 1},
    ),
    "the same category again": (
        truth(categories=[*TRUTH["categories"], TRUTH["categories"][0]]),
        {"repeated-categories": 1},
    ),
    "no annotation ids": (
        truth(
            annotations=[
                {key: value for key, value in record.items() if key != "id"}
                for record in TRUTH["annotations"]
            ]
        ),
        {"missing-annotation-ids": 3},
    ),
    "no area": (with_record("annotations", 1, "area"), {"missing-area": 1}),
    "no iscrowd": (with_record("annotations", 1, "iscrowd"), {"missing-iscrowd": 1}),
    "iscrowd true": (with_record("annotations", 2, iscrowd=True), {}),
    "ignore": (with_record("annotations", 1, ignore=1), {"ignore-without-effect": 1}),
    "zero area": (
        with_record("annotations", 1, bbox=[100, 100, 0, 50]),
        {"zero-area-ground-truth": 1},
    ),
    "beyond the image": (
        with_record("annotations", 1, bbox=[600, 100, 50, 50]),
        {"ground-truth-beyond-image": 1},
    ),
    "corners": (
        with_record("annotations", 0, bbox=[400, 400, 500, 470])
        | {"annotations": [{**r, "bbox": [400, 400, 500, 470]} for r in TRUTH["annotations"]]},
        {"ground-truth-look-xyxy": 3, "ground-truth-beyond-image": 3},
    ),
    "no sizes": (truth(images=[{"id": 1}, {"id": 2}, {"id": 3}]), {}),
    "sizes that are none": (with_record("images", 0, width="640", height=None), {}),
    "equal names": (with_record("categories", 1, name="cat"), {"equal-category-names": 2}),
    "names that differ in case": (
        with_record("categories", 1, name="Cat"),
        {"names-differ-in-case": 2},
    ),
    "no name": (with_record("categories", 1, "name"), {"missing-category-names": 1}),
    "byte order mark": (b"\xef\xbb\xbf" + as_bytes(TRUTH), {}),
    "space around": (b" \n\t" + as_bytes(TRUTH) + b"\r\n", {}),
    "an extra part": (
        text(truth(info="?", licenses=[{"id": 1}], x=None), '"?"', '{"a": [1e999]}'),
        {},
    ),
}


@pytest.mark.parametrize("name", TRUTH_NOTES)
def test_notes_on_ground_truth(files: Files, name: str) -> None:
    document, expected = TRUTH_NOTES[name]
    table = files.read_truth(document)
    assert counted(table.notes) == expected
    assert len(table) == 3


@pytest.mark.parametrize("part", ["images", "annotations", "categories"])
def test_duplicate_ids_and_keys_are_named(files: Files, part: str) -> None:
    again = TRUTH[part][1]
    (note,) = files.read_truth(truth(**{part: [*TRUTH[part], again, again]})).notes
    assert (note.code, note.count) == (f"repeated-{part}", 2)
    assert note.message == f"duplicate {part}, counted once: id {again['id']}"


RESULT_NOTES: dict[str, tuple[Any, dict[str, int]]] = {
    "none": ([], {"no-detections": 1}),
    "unknown category": (result(1, category_id=9), {"unknown-categories": 1}),
    "score in percent": (result(1, score=80), {"scores-outside-unit": 1}),
    "score 0 and 1": (result(0, score=0) + result(0, score=1), {}),
    "zero area": (result(1, bbox=[5, 5, 0, 5]), {"zero-area-detections": 1}),
    "beyond the image": (result(1, bbox=[-3, 5, 10, 5]), {"detections-beyond-image": 1}),
    "less than a pixel beyond": (result(1, bbox=[-0.5, 5, 10, 5]), {}),
    "corners": (
        [{**r, "bbox": [400, 300, 500, 400]} for r in RESULTS],
        {"detections-look-xyxy": 3, "detections-beyond-image": 3},
    ),
    "ids as whole floats": (result(1, image_id=2.0, category_id=2e0), {}),
    "an object": ({"predictions": RESULTS}, {}),
    "its own categories, alike": (
        {"annotations": RESULTS, "categories": [{"id": 2, "name": "dog"}]},
        {},
    ),
    "its own images, alike": (
        {"annotations": RESULTS, "images": [{"id": 1, "file_name": "x/a.png"}]},
        {},
    ),
    "its own images, unlike": (
        {"annotations": RESULTS, "images": [{"id": 1, "file_name": "b.jpg"}]},
        {"images-of-other-names": 1},
    ),
    "extra keys": (result(1, segmentation=[[1, 2]], area=4, id=7), {}),
}


@pytest.mark.parametrize("name", RESULT_NOTES)
def test_notes_on_results(files: Files, name: str) -> None:
    document, expected = RESULT_NOTES[name]
    table = files.read_results(document)
    assert counted(table.notes) == expected


def test_detections_of_unknown_categories_are_skipped(files: Files) -> None:
    table = files.read_results(result(1, category_id=9))
    assert table.label.tolist() == [0, 2]
    assert table.files[0].records == 3
    assert "(9)" in table.notes[0].message


def test_a_repeated_annotation_is_counted_once(files: Files) -> None:
    table = files.read_truth(truth(annotations=[*TRUTH["annotations"], TRUTH["annotations"][0]]))
    assert len(table) == 3
    assert table.files[0].records == 4


def test_string_ids_are_compared_exactly(files: Files) -> None:
    named = json.loads(json.dumps(TRUTH).replace('"image_id": 1', '"image_id": "007"'))
    for record, name in zip(named["images"], ("007", "7", "z"), strict=True):
        record["id"] = name
    for record in named["annotations"]:
        record["image_id"] = "007"
    table = files.read_results([{**r, "image_id": "007"} for r in RESULTS], named)
    assert table.images == ("007", "7", "z")
    assert table.image.tolist() == [0, 0, 0]
    error = files.results_error([{**r, "image_id": 7} for r in RESULTS], named)
    assert '(results: 7; ground truth: "007"' in str(error)


def test_categories_of_equal_names_stay_distinct(files: Files) -> None:
    document = truth(
        categories=[
            {"id": 1, "name": "cat"},
            {"id": 2, "name": "cat"},
            {"id": 3, "name": "cat (id 1)"},
        ]
    )
    table = files.read_truth(document)
    assert table.classes == ("cat (id 1) (id 1)", "cat (id 2)", "cat (id 1) (id 3)")


def test_category_names_may_differ_only_in_case(files: Files) -> None:
    names = {1: "cat", 2: "Cat", 3: "dog"}
    table = files.read_truth(truth(categories=[{"id": k, "name": v} for k, v in names.items()]))
    assert table.classes == ("cat", "Cat", "dog")
    (note,) = table.notes
    assert note.message == "category names differ only in case; treated as distinct"
    assert (note.code, note.count) == ("names-differ-in-case", 2)


def test_images_and_classes_are_numbered_by_ascending_id(files: Files) -> None:
    document = truth(
        images=TRUTH["images"][::-1],
        categories=TRUTH["categories"][::-1],
        annotations=TRUTH["annotations"][::-1],
    )
    table = files.read_truth(document)
    assert table.images == (1, 2, 3)
    assert table.classes == ("cat", "dog", "bird")
    assert table.image.tolist() == [1, 1, 0]
    assert table.label.tolist() == [2, 1, 0]


def test_category_lists_and_frequencies_of_lvis(files: Files) -> None:
    """Pairs of image and category are sorted; unknown categories and letters are left out."""
    document = truth(
        images=[
            {"id": 1, "not_exhaustive_category_ids": [3]},
            {"id": 2},
            {"id": 3, "neg_category_ids": [3, 9, 1], "not_exhaustive_category_ids": []},
        ],
        categories=[
            {"id": 1, "name": "cat", "frequency": "f"},
            {"id": 2, "name": "dog", "frequency": "?"},
            {"id": 3, "name": "bird", "frequency": "r"},
        ],
    )
    table = files.read_truth(document)
    assert {name: pairs.tolist() for name, pairs in table.listed.items()} == {
        "negative": [[2, 0], [2, 2]],
        "not_exhaustive": [[0, 2]],
    }
    assert table.groups == {1: "frequent", 3: "rare"}
    assert counted(table.notes) == {
        "negative-of-unknown-categories": 1,
        "images-without-negative": 2,
        "images-without-not_exhaustive": 1,
    }


def test_category_lists_without_categories(files: Files) -> None:
    images = [{"id": 1, "neg_category_ids": [3]}]
    document = {"images": images, "annotations": [], "categories": []}
    table = files.read_truth(document, Limits(empty=True))
    assert table.listed["negative"].tolist() == []
    assert table.listed["negative"].shape == (0, 2)


def test_a_problem_of_many_records_is_one_line(files: Files) -> None:
    spoiled = [{**RESULTS[0], "score": True} for _ in range(30)] + RESULTS
    error = files.results_error(spoiled)
    assert str(error).endswith(
        ": 30 records ([0], [1], [2], ...): score is true, expected a number"
    )
    assert error.omitted == 0


def test_problems_of_several_kinds_are_named_together(files: Files) -> None:
    document = with_record("annotations", 0, bbox=[1, 2, 3])
    document["images"][1]["id"] = True
    document["annotations"][2]["area"] = -1
    assert [problem.location for problem in files.truth_error(document).problems] == [
        "images[1] (id true)",
        "annotations[0] (id 11)",
        "annotations[2] (id 13)",
    ]


CUT_OFF = "file is truncated: it ends inside a value, after"


def test_ground_truth_cut_off_anywhere_is_refused(files: Files) -> None:
    content = as_bytes(TRUTH)
    for length in range(1, len(content)):
        assert CUT_OFF in str(files.truth_error(content[:length])), content[:length]


def test_results_cut_off_anywhere_are_refused(files: Files) -> None:
    content = as_bytes(RESULTS)
    for length in range(1, len(content)):
        assert CUT_OFF in str(files.results_error(content[:length])), content[:length]


def test_the_location_of_a_truncation_is_reported(files: Files) -> None:
    error = files.results_error(b'[\n {"image_id": 1')
    assert error.problems[0].location.startswith("line 2, column ")


def test_the_ground_truth_itself_as_results(files: Files) -> None:
    table = files.read_truth(TRUTH)
    with pytest.raises(InputError, match="this is the ground-truth file"):
        coco.read_detections(files.truth_path, table)


def test_more_records_than_allowed(files: Files) -> None:
    error = files.results_error(RESULTS, limits=Limits(records=2))
    assert "more than 2 records" in str(error)
    assert "more than 2 records under annotations" in str(
        files.truth_error(truth(images=TRUTH["images"][:2]), Limits(records=2))
    )


def test_the_record_limit_is_at_most_int32() -> None:
    assert MOST_RECORDS == MOST_ROWS == np.iinfo(np.int32).max
    with pytest.raises(UsageError, match="limit of 2147483648 records is above 2147483647"):
        Limits(records=2**31)


@pytest.mark.parametrize("score", [2**53 + 1, -(2**60) - 1])
def test_whole_scores_that_float64_would_merge(files: Files, score: int) -> None:
    """2^53 + 1 becomes 2^53: two scores would tie. pycocotools ranks them as whole numbers."""
    error = files.results_error([{**RESULTS[0], "score": score}])
    rounded = "9007199254740992" if score > 0 else "-1152921504606846976"
    assert f"score is {score}, which float64 rounds to {rounded}; use scores" in str(error)


@pytest.mark.parametrize("score", [2**53, -(2**60), 1e300, 2.0**53])
def test_large_scores_that_float64_holds(files: Files, score: float) -> None:
    assert files.read_results([{**RESULTS[0], "score": score}]).score.tolist() == [score]


def test_a_file_larger_than_allowed(files: Files) -> None:
    assert "is larger than 10 bytes" in str(files.truth_error(TRUTH, Limits(file_bytes=10)))


def test_nesting_beyond_the_limit(files: Files) -> None:
    error = files.truth_error(truth(info=[[[[[1]]]]]), Limits(nesting=5))
    assert "JSON is nested 6 levels deep, the limit is 5" in str(error)
    assert len(files.read_truth(truth(info=[[[[1]]]]), Limits(nesting=5))) == 3


def test_nesting_that_would_overflow_the_stack(files: Files) -> None:
    document = b'{"info": ' + b"[" * 300_000 + b"]" * 300_000 + b"}"
    error = files.truth_error(document, Limits(nesting=1_000_000))
    assert str(error).endswith("is nested too deeply; reduce the nesting")


def test_files_that_are_not_regular(files: Files, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))
        for path, expected in (
            (fifo, "is a FIFO, expected a file"),
            (tmp_path, "is a folder, expected a file"),
            (tmp_path / "socket", "is a socket, expected a file"),
            (Path("/dev/null"), "is a device, expected a file"),
            (loop, "too many symbolic links"),
            (tmp_path / "absent", "no such file or directory"),
            (tmp_path / ("x" * 5000), "path is too long"),
        ):
            with pytest.raises(InputError, match=expected):
                coco.read_ground_truth(path)
            with pytest.raises(InputError, match=expected):
                coco.read_detections(path, files.read_truth(TRUTH))
    with pytest.raises(InputError, match="NUL character"):
        coco.read_ground_truth("a\0b")


def test_fewer_than_one_box_in_twenty_may_have_a_negative_size(files: Files) -> None:
    box = [30, 10, -20.5, 20]
    fine = RESULTS[0] | {"bbox": [1, 2, 3, 4]}
    annotation = TRUTH["annotations"][0] | {"bbox": [1, 2, 3, 4], "area": 12}
    for count in (21, 20):
        records = [fine | ({"bbox": box} if n == 7 else {}) for n in range(count)]
        truth_ = TRUTH | {
            "annotations": [
                annotation | {"id": n} | ({"bbox": box} if n == 7 else {})
                for n in range(1, count + 1)
            ]
        }
        if count == 21:
            table, ground = files.read_results(records), files.read_truth(truth_)
            assert table.corners[7].tolist() == [30, 10, 9.5, 30]
            assert table.box_area[7] == -410
            for notes, kind, first in (
                (table.notes, "detections", "[7], [30, 10, -20.5, 20]"),
                (ground.notes, "ground-truth", "annotations[6], [30, 10, -20.5, 20]"),
            ):
                (note,) = [note for note in notes if note.code == f"{kind}-negative-size"]
                assert (note.count, note.severity) == (1, "warning")
                assert f"(first: {first})" in note.message
        else:
            for error, location in (
                (files.results_error(records), "[7]"),
                (files.truth_error(truth_), "annotations[6]"),
            ):
                assert f"{location}: bbox has a negative width: [30, 10, -20.5, 20]" in str(error)
                assert "as_is=True (--as-is)" in str(error)
            # The fixture chooses the reader; the public function is the same.
            assert len(coco.read_ground_truth(files.truth_path, as_is=True)) == 20


def test_corners_of_negative_size_name_both_box_formats(files: Files) -> None:
    table = files.read_truth(TRUTH)
    files.results_path.write_bytes(as_bytes(result(0, bbox=[10, 20, 15, 12])[:1]))
    with pytest.raises(InputError) as caught:
        coco.read_detections(files.results_path, table, boxes="xyxy")
    assert str(caught.value).startswith(
        f"{files.results_path}: [0]: bbox has a negative height: [10, 20, 15, 12]; expected "
        "[x1, y1, x2, y2]; for [x, y, width, height] use --dt-boxes xywh, or pass "
    )


def test_a_repeated_annotation_does_not_move_the_location_of_a_negative_size(files: Files) -> None:
    annotation = TRUTH["annotations"][0] | {"bbox": [1, 2, 3, 4], "area": 12}
    rows = [annotation | {"id": n} for n in range(1, 31)]
    rows[9]["bbox"] = [5, 5, 5, -1]
    truth_ = TRUTH | {"annotations": [rows[0], *rows]}
    (note,) = [note for note in files.read_truth(truth_).notes if "negative" in note.code]
    assert "annotations[10], [5, 5, 5, -1]" in note.message


def crossed(count: int, shift: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return objects of classes 1, 2, 1, 2, ... and detections on them with shifted classes."""
    boxes = [[20 * n, 10, 15, 15] for n in range(count)]
    truth_ = TRUTH | {
        "annotations": [
            {"id": n + 1, "image_id": 1, "category_id": 2 + n % 2, "bbox": box, "area": 225,
             "iscrowd": 0}
            for n, box in enumerate(boxes)
        ]
    }  # fmt: skip
    records = [
        {"image_id": 1, "category_id": 2 + n % 2 + shift, "bbox": box, "score": 0.5}
        for n, box in enumerate(boxes)
    ]
    return truth_, records


def test_ids_that_are_positions_in_the_list(files: Files) -> None:
    """For classes 1, 20, 40 the detections have 0, 1, 2, which no single offset explains."""
    truth_, detections = crossed(12, 0)
    truth_["categories"] = [{"id": number, "name": str(number)} for number in (1, 20, 40)]
    for n, (record, detection) in enumerate(zip(truth_["annotations"], detections, strict=True)):
        record["category_id"] = (1, 20, 40)[n % 3]
        detection["category_id"] = n % 3
    said = str(files.results_error(detections, truth_))
    assert (
        "category_id looks like the 0-based position in the list of categories (e.g. 0 overlaps "
        "class 1); use the ground truth's ids"
    ) in said


def test_two_boxes_are_too_few_for_an_id_offset(files: Files) -> None:
    """Every id is in the ground truth: a detector may be that wrong."""
    for count in (2, 9):
        truth_, detections = crossed(count, -1)
        table = files.read_results(detections, truth_)
        assert (len(table), table.notes) == (count, ())


def test_ten_boxes_show_an_id_offset_unless_as_is(files: Files) -> None:
    truth_, detections = crossed(10, -1)
    said = str(files.results_error(detections, truth_))
    assert "every category_id looks off by -1" in said
    assert "pass as_is=True (--as-is)" in said
    table = coco.read_detections(files.results_path, files.read_truth(truth_), as_is=True)
    assert counted(table.notes) == {"as-is": 1, "category-id-offset": 1}
    assert table.label.tolist() == [0, 1] * 5


def test_annotation_ids_that_differ_in_the_highest_byte(files: Files) -> None:
    document = truth()
    for record, identifier in zip(document["annotations"], (5, 5 + 2**56, 5), strict=True):
        record |= {"id": identifier, "image_id": 1}
    (problem,) = files.truth_error(document).problems
    assert problem.message == "duplicate id 5 (also at annotations[0])"


def test_class_lists_of_images_with_string_ids(files: Files) -> None:
    document = truth()
    for image in document["images"]:
        image |= {"id": f"im{image['id']}", "neg_category_ids": [2]}
    for annotation in document["annotations"]:
        annotation["image_id"] = f"im{annotation['image_id']}"
    table = files.read_truth(document)
    assert table.images == ("im1", "im2", "im3")
    assert table.listed["negative"].tolist() == [[0, 1], [1, 1], [2, 1]]


def test_an_error_of_negative_sizes_names_the_file(files: Files) -> None:
    for error in (
        files.results_error([record | {"bbox": [1, 2, -3, 4]} for record in RESULTS]),
        files.truth_error(
            truth(annotations=[r | {"bbox": [1, 2, -3, 4]} for r in TRUTH["annotations"]])
        ),
    ):
        assert {Path(problem.file).suffix for problem in error.problems} == {".json"}
