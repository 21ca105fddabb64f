"""COCO input that is odd or invalid; the usual cases are in tests/reliability/coco_cases.py."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.errors import UsageError
from detap.io.limits import MOST_RECORDS, Limits
from detap.tables.columns import MOST_ROWS
from tests.formats.coco_files import (
    RESULTS,
    TRUTH,
    Files,
    as_bytes,
    result,
    truth,
    with_record,
)
from tests.formats.helpers import codes


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def text(document: Any, old: str, new: str) -> bytes:
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
    assert np.asarray(ground.image_sizes).tolist() == [[640, 480]] * 3


ERRORS: dict[str, tuple[Any, str]] = {
    "an image id as a number among strings": (
        truth(images=[{**image, "id": str(image["id"])} for image in TRUTH["images"]]),
        "annotations[1]: image_id 2 is not in images (ids are strings)\n",
    ),
    "nested key twice": (
        text(TRUTH, '"counts": [1, 2, 3]', '"counts": [1], "counts": [1]'),
        'annotations[2]: duplicate key "counts"',
    ),
    "NaN where it is ignored": (
        text(TRUTH, "[10, 20, 40.5", "[NaN, 20, 40.5"),
        "annotations[0]: contains NaN or Infinity, which are not valid JSON",
    ),
    "merge markers far below": (
        as_bytes(truth(info="x" * 100_000))[:-1] + b',\n<<<<<<< HEAD\n"a": 1}\n',
        "looks like a file with unresolved merge conflicts",
    ),
    "a number": (b"17", 'not a JSON object: "17"; expected an object'),
}
RESULT_ERRORS: dict[str, tuple[Any, str]] = {
    "no value on the second line": (
        b"\n[,]",
        'line 2, column 2: invalid JSON at ",]": expecting value; write valid JSON',
    ),
    "category names, one unknown": (
        [{**record, "category_id": "ox" if k else "cat"} for k, record in enumerate(RESULTS)],
        "category_id is text, and 'ox' (1 of 2 names) are not class names of the ground truth; "
        "use the ground truth's category ids or names",
    ),
    "no category in common": (
        [{**record, "category_id": record["category_id"] + 10} for record in RESULTS],
        "11\N{EN DASH}13; ground truth: 1\N{EN DASH}3); "
        "use the ground truth's category ids, or pass as_is=True (--as-is)",
    ),
    "a semicolon between two parts": (
        text({"annotations": RESULTS, "info": {}}, '], "info"', ']; "info"'),
        'invalid JSON at "; ',
    ),
    "two lists": (
        {"annotations": RESULTS, "predictions": RESULTS},
        "both annotations and predictions are lists; keep the one with the detections",
    ),
    "other names for the categories": (
        {"annotations": RESULTS, "categories": [{"id": 2, "name": "horse"}]},
        'categories: category 2 has the name "horse", expected "dog" as in the ground truth; use',
    ),
    "an equals sign after a key": (
        text(RESULTS, '"image_id": 1', '"image_id"= 1'),
        'column 13: invalid JSON at "= 1, ',
    ),
}


@pytest.mark.parametrize("name", [*ERRORS, *RESULT_ERRORS])
def test_invalid_files_are_refused(files: Files, name: str) -> None:
    document, expected = (ERRORS | RESULT_ERRORS)[name]
    of_truth = name in ERRORS
    error = files.truth_error(document) if of_truth else files.results_error(document)
    assert str(error).startswith(f"{files.truth_path if of_truth else files.results_path}: ")
    assert expected in str(error)


TRUTH_NOTES: dict[str, tuple[Any, dict[str, int]]] = {
    "annotation id 0": (with_record("annotations", 0, id=0), {"annotation-id-zero": 1}),
    "iscrowd true": (with_record("annotations", 2, iscrowd=True), {}),
    "no sizes": (truth(images=[{"id": 1}, {"id": 2}, {"id": 3}]), {}),
    "sizes that are none": (with_record("images", 0, width="640", height=None), {}),
    "no name": (with_record("categories", 1, "name"), {"missing-category-names": 1}),
    "an extra part": (
        text(truth(info="?", licenses=[{"id": 1}], x=None), '"?"', '{"a": [1e999]}'),
        {},
    ),
}


@pytest.mark.parametrize(("document", "expected"), TRUTH_NOTES.values(), ids=TRUTH_NOTES)
def test_notes_on_ground_truth(files: Files, document: Any, expected: dict[str, int]) -> None:
    table = files.read_truth(document)
    assert codes(table) == expected
    assert len(table) == 3


@pytest.mark.parametrize("part", ["images", "annotations", "categories"])
def test_duplicate_ids_and_keys_are_named(files: Files, part: str) -> None:
    again = TRUTH[part][1]
    (note,) = files.read_truth(truth(**{part: [*TRUTH[part], again, again]})).notes
    assert (note.code, note.count) == (f"repeated-{part}", 2)
    assert note.message == f"duplicate {part}, counted once: id {again['id']}"


RESULT_NOTES: dict[str, tuple[Any, dict[str, int]]] = {
    "score in percent": (result(1, score=80), {"scores-outside-unit": 1}),
    "score 0 and 1": (result(0, score=0) + result(0, score=1), {}),
    "zero area": (result(1, bbox=[5, 5, 0, 5]), {"zero-area-detections": 1}),
    "less than a pixel beyond": (result(1, bbox=[-0.5, 5, 10, 5]), {}),
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
}


@pytest.mark.parametrize(("document", "expected"), RESULT_NOTES.values(), ids=RESULT_NOTES)
def test_notes_on_results(files: Files, document: Any, expected: dict[str, int]) -> None:
    assert codes(files.read_results(document)) == expected


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
    message = "class names differ only in case and stay separate classes: 'cat', 'Cat'"
    assert note.message == message
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
    assert codes(table) == {
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


@pytest.mark.parametrize(("document", "side"), [(TRUTH, "truth"), (RESULTS, "results")])
def test_files_cut_off_anywhere_are_refused(files: Files, document: Any, side: str) -> None:
    content, error = as_bytes(document), getattr(files, f"{side}_error")
    for length in range(1, len(content)):
        assert CUT_OFF in str(error(content[:length])), content[:length]


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


def test_nesting_that_would_overflow_the_stack(files: Files) -> None:
    document = b'{"info": ' + b"[" * 300_000 + b"]" * 300_000 + b"}"
    error = files.truth_error(document, Limits(nesting=1_000_000))
    assert str(error).endswith("is nested too deeply; reduce the nesting")


def test_a_repeated_annotation_does_not_move_the_location_of_a_negative_size(files: Files) -> None:
    annotation = TRUTH["annotations"][0] | {"bbox": [1, 2, 3, 4], "area": 12}
    rows = [annotation | {"id": n} for n in range(1, 31)]
    rows[9]["bbox"] = [5, 5, 5, -1]
    truth_ = TRUTH | {"annotations": [rows[0], *rows]}
    (note,) = [note for note in files.read_truth(truth_).notes if "negative" in note.code]
    assert "annotations[10]: bbox has a negative height: [5, 5, 5, -1]" in note.message


def test_class_lists_of_images_with_string_ids(files: Files) -> None:
    document = truth()
    for image in document["images"]:
        image |= {"id": f"im{image['id']}", "neg_category_ids": [2]}
    for annotation in document["annotations"]:
        annotation["image_id"] = f"im{annotation['image_id']}"
    table = files.read_truth(document)
    assert table.images == ("im1", "im2", "im3")
    assert table.listed["negative"].tolist() == [[0, 1], [1, 1], [2, 1]]


def test_ids_are_compared_where_other_records_are_faulty(files: Files) -> None:
    changed = [{**RESULTS[0], "image_id": 99}, {**RESULTS[1], "bbox": "x"}, *RESULTS[2:]]
    lines = str(files.results_error(changed)).splitlines()
    assert [line.split(": ", 1)[1].partition(";")[0] for line in lines] == [
        '[1]: bbox is "x", expected [x, y, width, height]',
        "[0]: image_id 99 is not in the ground truth",
    ]
    assert len(str(files.results_error([{**RESULTS[0], "bbox": "x"}])).splitlines()) == 1
