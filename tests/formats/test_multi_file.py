"""Several inputs are read like one file of all of them."""

import json
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.errors import InputError, Problem, UsageError
from detap.evaluation.scoring import score_tables
from detap.formats import read_detections, read_ground_truth
from detap.formats.base import Format
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from detap.formats.multi_file import expand_folders, expand_patterns
from detap.tables.concat import join_detections
from detap.tables.detection import Detections
from detap.tables.notes import INTERLEAVED
from tests.coco import results_of
from tests.coco import truth_of as rows_as_truth
from tests.raised import raised


def coco(_: str) -> Format:
    return FORMATS["coco"]


def truth_of(images: Sequence[int], **more: Any) -> dict[str, Any]:
    """Return ground truth with a box of each of two classes in each image."""
    rows = [(i, k, [i, k, 20 + i, 10 + k]) for i in images for k in (3, 7)]
    truth = rows_as_truth(rows, {3: "cat", 7: "dog"}, images, size=(100, 80), area=100)
    for record in truth["annotations"]:
        record["id"] = 10 * record["image_id"] + record["category_id"]
    return {**truth, **more}


def detections_on(images: Sequence[int]) -> list[dict[str, Any]]:
    """Return detections, those on odd images and of cats displaced."""
    rows = [(i, k, [i + 8 * (i % 2), k, 20 + i, 10 + k]) for i in images for k in (7, 3)]
    return [row | {"score": 0.5 + 0.1 * (row["category_id"] == 7)} for row in results_of(rows)]


def write(path: Path, content: Any) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))
    return str(path)


# --- which files are meant


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["*.json"], ["a.json", "b.json", "run1.json", "run[1].json"]),
        (["b.json", "[a].json"], ["a.json", "b.json"]),
        (["night/**/*.json"], ["night/rain/a.json"]),
        (["run[1].json"], ["run[1].json"]),  # an existing path
        (["missing/X.json"], ["missing/X.json"]),
    ],
)
def test_patterns_give_the_matching_files_sorted(
    given: list[str], expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "night").mkdir()
    for name in ("b.json", "a.json", "c.txt", "run[1].json", "run1.json", "night/rain/a.json"):
        write(tmp_path / name, [])
    paths = expand_patterns([f"{tmp_path}/{name}" for name in given])
    assert paths == tuple(f"{tmp_path}/{name}" for name in expected)


def test_a_pattern_that_matches_nothing_is_named() -> None:
    with pytest.raises(InputError, match=r"^shards/\*\.json: matches no file; check the pattern"):
        expand_patterns(["shards/*.json"])


def test_a_folder_gives_its_files_if_the_format_has_no_folders(tmp_path: Path) -> None:
    for name in ("b.json.gz", "a.json", ".c.json", "readme.md"):
        write(tmp_path / name, [])
    paths = expand_folders([str(tmp_path)], coco)
    assert [os.path.basename(path) for path in paths] == ["a.json", "b.json.gz"]
    assert expand_folders([str(tmp_path)], lambda _: FORMATS["voc"]) == (str(tmp_path),)


def test_a_folder_without_such_files_is_named(tmp_path: Path) -> None:
    write(tmp_path / "readme.md", [])
    assert str(raised(InputError, expand_folders, [str(tmp_path)], coco)) == (
        f"{tmp_path}: folder has no COCO files; expected files or a folder of *.json files"
    )


@pytest.mark.parametrize("paths", [("a.json", "a.json"), ("b", "a.json", "b")])
def test_a_path_given_twice_is_refused(paths: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="is given twice; its boxes would count twice"):
        expand_folders(paths, coco)


def test_standard_input_is_no_shard() -> None:
    with pytest.raises(UsageError, match="standard input cannot be combined with other inputs"):
        expand_folders(["-", "a.json"], coco)


@pytest.mark.parametrize(
    ("names", "format_"),
    [
        (["a.json"], "coco"),
        (["a.json", "b.txt"], "voc"),
        (["a.json", "Annotations/1.xml"], "voc"),
        ([".git/x", "a.json"], "coco"),
        (["readme"], "voc"),
        ([], "voc"),
    ],
)
def test_the_format_of_a_folder_is_detected(tmp_path: Path, names: list[str], format_: str) -> None:
    for name in names:
        write(tmp_path / name, [])
    assert detect_format(tmp_path).name == format_


# --- one file of all of them


def same_rows(one: Any, other: Any) -> bool:
    return all(
        np.array_equal(column, other.columns()[name]) for name, column in one.columns().items()
    )


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_shards_give_the_result_of_one_file(
    tmp_path_factory: Any, dealt: list[int], luck: Any
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    images = list(range(1, len(dealt) + 1))
    luck.shuffle(images)
    parts = [[i for i, part in zip(images, dealt, strict=True) if part == k] for k in range(4)]
    order = [image for part in parts for image in part]
    gts = [write(folder / f"gt{k}.json", truth_of(part)) for k, part in enumerate(parts) if part]
    dts = [write(folder / f"dt{k}.json", detections_on(part)) for k, part in enumerate(parts)]
    one = read_ground_truth(write(folder / "gt.json", truth_of(order)))
    several = read_ground_truth(gts)
    assert (several.images, several.classes, several.class_ids) == (
        one.images,
        one.classes,
        one.class_ids,
    )
    assert several.image_sizes is not None
    assert same_rows(several, one)
    records = detections_on(order)
    on = [[record["image_id"] for record in detections_on(part)] for part in parts]
    interleaved = any(max(a) > min(b) for a, b in pairwise(filter(None, on)))
    if interleaved:
        records.sort(key=lambda record: record["image_id"])
    detections = read_detections(write(folder / "dt.json", records), one)
    both = read_detections(dts, several)
    assert (both.images, both.class_ids) == (detections.images, detections.class_ids)
    assert same_rows(both, detections)
    assert both.notes == (*detections.notes, *([INTERLEAVED] if interleaved else ()))
    assert [source.path for source in both.files] == dts


def test_rows_split_over_inputs_count_as_in_one_file(tmp_path: Path) -> None:
    truth = read_ground_truth(write(tmp_path / "gt.json", truth_of([1, 2, 3])))
    records = detections_on([1, 2, 3])
    one = read_detections(write(tmp_path / "dt.json", records), truth)
    parts = [write(tmp_path / f"{k}.json", records[k::2]) for k in range(2)]
    both = read_detections(parts, truth, merge_images=True)
    # All dogs stand in the one, all cats in the other, each class in the order of one file.
    split, whole = (list(score_tables(truth, t).summary.values()) for t in (both, one))
    assert np.array_equal(split, whole, equal_nan=True)


def test_an_image_of_two_inputs_is_refused(tmp_path: Path) -> None:
    gts = [write(tmp_path / f"gt{k}.json", truth_of([k, 5])) for k in (1, 2)]
    merge = "pass merge_images=True (--merge-images) if their boxes differ"
    assert str(raised(InputError, read_ground_truth, gts)) == (
        f"{gts[1]}: image 5 is also in {gts[0]}; put each image in one input, or {merge}"
    )
    truth = read_ground_truth(gts, merge_images=True)
    assert truth.images == (1, 2, 5)
    assert len(truth) == 8
    dts = [write(tmp_path / f"dt{k}.json", detections_on([k, 5])) for k in (1, 2)]
    assert str(raised(InputError, read_detections, dts, truth)) == (
        f"{dts[1]}: image 5 is also in {dts[0]}; put each image in one input, "
        f"{merge}, or compare the files of several detectors: detap compare FILES --gt GT"
    )


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            truth_of([2], categories=[{"id": 3, "name": "cow"}, {"id": 7, "name": "dog"}]),
            "category 3 is 'cow', but 'cat' in {first}; use one list of categories",
        ),
        (
            truth_of([]) | {"images": [{"id": "a", "width": 9, "height": 9}]},
            "images are text, but numbers in {first}; use the same names in every input",
        ),
    ],
)
def test_inputs_must_agree_on_names(other: Any, message: str, tmp_path: Path) -> None:
    gts = [write(tmp_path / "a.json", truth_of([1])), write(tmp_path / "b.json", other)]
    error = raised(InputError, read_ground_truth, gts)
    assert str(error) == f"{gts[1]}: {message.format(first=gts[0])}"


def test_a_ground_truth_among_several_may_be_empty(tmp_path: Path) -> None:
    bare = write(tmp_path / "a.json", truth_of([1], annotations=[]))
    other = write(tmp_path / "b.json", truth_of([2], annotations=[]))
    truth = read_ground_truth([bare, write(tmp_path / "c.json", truth_of([3]))])
    assert truth.images == (1, 3)
    assert truth.image.tolist() == [1, 1]
    with pytest.raises(InputError, match=r"a\.json: no annotations"):
        read_ground_truth(bare)
    error = raised(InputError, read_ground_truth, [bare, other])
    message = "no annotations in any of the 2 ground-truth inputs"
    assert error.problems == (Problem(bare, "", message),)


def test_categories_of_equal_names_stay_distinct_over_inputs(tmp_path: Path) -> None:
    def box(image: int, listed: list[dict[str, Any]]) -> dict[str, Any]:
        label = listed[0]["id"]
        return {"id": 1, "image_id": image, "category_id": label, "bbox": [1, 1, 5, 5], "area": 25}

    lists = [[{"id": 3, "name": "cat"}], [{"id": 7, "name": "cat"}], [{"id": 3, "name": "cat"}]]
    gts = [
        write(
            tmp_path / f"{k}.json", truth_of([k], categories=listed, annotations=[box(k, listed)])
        )
        for k, listed in enumerate(lists, 1)
    ]
    assert read_ground_truth(gts).classes == ("cat (id 3)", "cat (id 7)")


def test_the_problems_of_every_input_are_listed(tmp_path: Path) -> None:
    truth = read_ground_truth(write(tmp_path / "gt.json", truth_of([1, 2])))
    wrong = [{**record, "score": True} for record in detections_on([1])]
    dts = [
        write(tmp_path / "a.json", wrong),
        write(tmp_path / "b.json", detections_on([2])),
        write(tmp_path / "c.json", detections_on([9])),
    ]
    error = raised(InputError, read_detections, dts, truth)
    assert {problem.file for problem in error.problems} == {dts[0], dts[2]}


def test_classes_only_in_detections_follow_sorted(tmp_path: Path) -> None:
    folder = tmp_path / "gt"
    folder.mkdir()
    for image in "ab":
        (folder / f"{image}.txt").write_text("m 1 1 9 9\n")
    truth = read_ground_truth(folder)
    for image, name in (("a", "z"), ("b", "c")):
        part = tmp_path / f"dt-{image}"
        part.mkdir()
        (part / f"{image}.txt").write_text(f"m 0.9 1 1 9 9\n{name} 0.5 1 1 9 9\n")
    both = read_detections([tmp_path / "dt-a", tmp_path / "dt-b"], truth)
    assert both.classes == ("m", "c", "z")
    assert both.label.tolist() == [0, 2, 0, 1]


def test_notes_are_merged_over_inputs() -> None:
    def table(images: list[int], scores: list[float]) -> Detections:
        boxes = np.tile([1.0, 1.0, 5.0, 5.0], (len(images), 1))
        return Detections.from_arrays(
            image=np.array(images, int), label=np.ones(len(images), int), boxes=boxes, score=scores
        )

    from dataclasses import replace

    from detap.errors import Note
    from detap.io.paths import SourceFile

    plain = Note("zero-area-detections", "zero-area detections", 2, severity="info")
    tables = [
        replace(
            table([k], [0.5]),
            files=(SourceFile(f"{k}.json", 1),),
            notes=(plain, Note("scores-outside-unit", f"scores up to {k}", k)),
        )
        for k in (3, 4)
    ]
    assert join_detections(tables).notes == (
        Note("zero-area-detections", "zero-area detections", 4, severity="info"),
        Note("scores-outside-unit", "3.json: scores up to 3 (and 1 more inputs)", 7),
    )
    nothing = Note("no-detections", "there is no detection")
    assert join_detections([tables[0], replace(tables[1], notes=(nothing,))]).notes[0] == plain
    empty = [replace(one, notes=(nothing,)) for one in tables]
    assert join_detections(empty).notes == (nothing,)


def test_files_that_one_input_lacks_another_has(tmp_path: Path) -> None:
    """The number of images without a file neither adds up nor holds for all inputs."""
    for folder in ("gt", "a", "b"):
        (tmp_path / folder).mkdir()
    for name in "ab":
        (tmp_path / "gt" / f"{name}.txt").write_text("cat 1 1 9 9\n")
        (tmp_path / name / f"{name}.txt").write_text("cat .5 1 1 9 9\n")
    truth = read_ground_truth(tmp_path / "gt")
    parts = [read_detections(tmp_path / name, truth, layout="image-files") for name in "ab"]
    assert [[note.code for note in part.notes] for part in parts] == [["images-without-file"]] * 2
    assert join_detections(parts, truth).notes == ()
