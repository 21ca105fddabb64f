"""Every mistake visible only across records is detected, and none is reported without one."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from detap.checks import sample as sampling
from detap.checks import statistics as checking
from detap.checks.boxes import failed_box_checks
from detap.checks.mismatch import exchanged_classes, mismatch_notes
from detap.checks.sample import Sample
from detap.checks.statistics import examine
from detap.errors import InputError, Note, UsageError
from detap.evaluation.detection import evaluate
from detap.evaluation.sanity_notes import add_sanity_notes, comparison_notes, mismatch_notes_of
from detap.evaluation.scoring import score_tables
from detap.evaluation.selection import select
from detap.formats.catalogue import format_named
from detap.formats.read import detections_from
from detap.tables.detection import Detections, GroundTruth
from tests.checks.test_boxes import FEW, PAIRS, read
from tests.cli.conftest import Run, written
from tests.coco import Row, results_of, truth_of
from tests.schemas import valid

IMAGES = 40
SIZE = (640.0, 480.0)


def truth(seed: int = 0, classes: int = 5) -> GroundTruth:
    """Return boxes of 20 to 60 pixels, three in each of 40 images."""
    random = np.random.default_rng(seed)
    count = 3 * IMAGES
    low = random.uniform(60, 380, (count, 2))
    sides = random.uniform(20, 60, (count, 2))
    table = GroundTruth.from_arrays(
        image=np.repeat(np.arange(IMAGES), 3),
        label=np.arange(count) % classes + 1,
        boxes=np.hstack((low, low + sides)),
        images=range(IMAGES),
    )
    return replace(table, image_sizes=np.tile(SIZE, (IMAGES, 1)))


def detector(table: GroundTruth, jitter: float = 2.0, seed: int = 1) -> Detections:
    """Return a detection near each ground truth, and two elsewhere in each image."""
    random = np.random.default_rng(seed)
    near = table.corners + random.normal(0, jitter, table.corners.shape)
    near[:, 2:] = np.maximum(near[:, 2:], near[:, :2])
    low = random.uniform(0, 400, (2 * IMAGES, 2))
    boxes = np.vstack((near, np.hstack((low, low + 40))))
    ids = np.array(table.class_ids)
    return Detections.from_arrays(
        image=np.concatenate((table.image, np.repeat(np.arange(IMAGES), 2))),
        label=np.concatenate((ids[table.label], random.choice(ids, 2 * IMAGES))),
        boxes=boxes,
        score=random.uniform(0, 1, len(boxes)),
    ).reindex_like(table)


def with_corners(table: Any, corners: Any) -> Any:
    sides = corners[:, 2:] - corners[:, :2]
    return replace(table, corners=corners, box_area=sides[:, 0] * sides[:, 1])


def codes(table: GroundTruth, detections: Detections) -> list[str]:
    return [note.code for note in mismatch_notes(table, detections)]


@pytest.mark.parametrize("jitter", [2.0, 5.0, 8.0])
def test_a_good_or_poor_detector_or_none_gives_no_warning(jitter: float) -> None:
    table = truth()
    detections = detector(table, jitter)
    assert codes(table, detections) == []
    none = detections.select(np.zeros(0, np.int64))
    assert codes(table, none) == []
    assert mismatch_notes_of(score_tables(table, none)) == ()


def as_xywh(c: Any) -> Any:
    return np.hstack((c[:, :2], c[:, :2] + c[:, 2:]))


def as_xyxy(c: Any) -> Any:
    return np.hstack((c[:, :2], c[:, 2:] - c[:, :2]))


def centered(c: Any) -> Any:
    half = (c[:, 2:] - c[:, :2]) / 2
    return c + np.hstack((half, half))


def normalized(c: Any) -> Any:
    return c / np.array((*SIZE, *SIZE))


def width_height_swapped(c: Any) -> Any:
    # Boxes of 20 to 60 pixels turned by 90 degrees still overlap; long ones do not.
    return np.hstack((c[:, :2], c[:, :2] + (c[:, 2:] - c[:, :2])[:, ::-1]))


MISREAD: dict[str, Callable[[Any], Any]] = {
    # x1 y1 x2 y2 in the file, read as x y w h: the far corner is the sum.
    "look-xyxy": as_xywh,
    # x y w h in the file, read as corners.
    "look-xywh": as_xyxy,
    "look-centered": centered,
    "look-top-left": lambda c: 2 * c - centered(c),
    "xy-swapped": lambda c: c[:, [1, 0, 3, 2]],
    "look-normalized": normalized,
}


@pytest.mark.parametrize("code", MISREAD)
def test_a_box_format_of_detections_is_detected(code: str) -> None:
    table = truth()
    detections = detector(table)
    wrong = with_corners(detections, MISREAD[code](detections.corners))
    assert codes(table, wrong) == [f"detections-{code}"]
    (note,) = mismatch_notes(table, wrong)
    assert note.count == len(detections)
    assert "would be overlapped instead of" in note.message


@pytest.mark.parametrize("code", ["look-xyxy", "xy-swapped", "look-normalized"])
def test_a_box_format_of_ground_truth_is_detected(code: str) -> None:
    table = truth()
    detections = detector(table)
    wrong = with_corners(table, MISREAD[code](table.corners))
    # Swapped axes look the same from either side.
    side = "detections" if code == "xy-swapped" else "ground-truth"
    assert codes(wrong, detections) == [f"{side}-{code}"]


def test_swapped_width_and_height_are_detected() -> None:
    table = truth()
    corners = table.corners.copy()
    corners[:, 2] = corners[:, 0] + 90
    corners[:, 3] = corners[:, 1] + 15
    table = with_corners(table, corners)
    detections = detector(table, jitter=1.0)
    wrong = with_corners(detections, width_height_swapped(detections.corners))
    assert codes(table, wrong) == ["detections-width-height-swapped"]


def test_swapped_normalized_boxes_are_detected() -> None:
    """Width and height swapped as fractions, about the center, before conversion to pixels."""
    table = truth()
    middle = (table.corners[:, :2] + table.corners[:, 2:]) / 2
    half = np.array((45, 7.5))
    long = np.hstack((middle - half, middle + half))
    turned = np.array((15 / 480 * 640, 90 / 640 * 480)) / 2
    wrong = np.hstack((middle - turned, middle + turned))
    table = with_corners(table, long)
    detections = detector(table, jitter=1.0)
    detections = with_corners(detections, np.vstack((wrong, detections.corners[len(table) :])))
    assert codes(table, detections) == ["detections-width-height-swapped"]


def test_swapped_image_sizes_are_detected() -> None:
    """Fractions times image sizes with swapped columns: it is unknown which side is wrong."""
    table = truth()
    detections = detector(table)
    turned = np.array((480 / 640, 640 / 480) * 2)
    for given, other in (
        (table, with_corners(detections, detections.corners * turned)),
        (with_corners(table, table.corners * turned), detections),
    ):
        [code] = codes(given, other)
        assert code.endswith("-sizes-look-swapped")


@pytest.mark.parametrize("sizes", [True, False])
def test_centered_normalized_boxes_are_detected(sizes: bool) -> None:
    table = truth() if sizes else replace(truth(), image_sizes=None)
    detections = detector(table)
    wrong = with_corners(detections, normalized(centered(detections.corners)))
    assert codes(table, wrong) == ["detections-look-normalized"]


def test_normalized_boxes_reach_at_most_two_where_the_others_are_larger() -> None:
    table = replace(truth(), image_sizes=None)
    detections = detector(table)
    small = detections.corners / detections.corners.max()
    (note,) = mismatch_notes(table, with_corners(detections, 2 * small))
    message = "detections look normalized, expected pixels: no coordinate exceeds 2"
    assert note == Note("detections-look-normalized", message, len(detections))
    assert codes(table, with_corners(detections, 2.01 * small)) == ["few-overlaps"]


def relabelled(detections: Detections, change: Callable[[Any], Any]) -> Detections:
    return replace(detections, label=change(detections.label).astype(np.int32))


LABELS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an offset": (lambda k: (k + 1) % 5, "category-id-offset"),
    "a few right ones among an offset": (lambda k: np.minimum(k + 1, 4), "category-id-offset"),
    "a permutation": (lambda k: np.array([3, 0, 4, 2, 1])[k], "classes-permuted"),
    "random": (
        lambda k: (k + np.random.default_rng(3).integers(1, 5, len(k))) % 5,
        "classes-disagree",
    ),
}


@pytest.mark.parametrize(("change", "code"), LABELS.values(), ids=LABELS)
def test_wrong_classes_are_detected(change: Callable[[Any], Any], code: str) -> None:
    table = truth()
    (note,) = mismatch_notes(table, relabelled(detector(table), change))
    assert note.code == code
    if code == "category-id-offset":
        assert note.message.startswith("class ids of detections look off by +1 (e.g. ")
        assert note.message.endswith("; use the ground truth's ids")


@pytest.mark.parametrize(
    ("way", "code"),
    [
        ([1, 0, 2, 3, 4], "classes-permuted"),  # two exchanged
        ([0, 1, 3, 4, 2], "classes-permuted"),  # three in a ring
        ([0, 2, 3, 4, 5], "category-id-offset"),  # a list that has one name more than the other
    ],
)
def test_a_few_swapped_classes_are_detected(way: list[int], code: str) -> None:
    """AP is .6, .4 or .1: plausible values."""
    table = truth()
    detections = relabelled(detector(table), lambda label: np.array(way)[label])
    detections = replace(
        detections, classes=(*table.classes, "more"), class_ids=(*table.class_ids, "more")
    )
    assert codes(table, detections) == [code]
    result = evaluate(table, detections, protocol="coco")
    assert result.summary["AP"] > 0.1
    assert "classes-permuted" in [note.code for note in result.notes]


@pytest.mark.parametrize(
    ("count", "names"), [(5, "'1', '2', '3', '4', '5' of"), (6, "'1', '2', '3', '4', '5', ... of")]
)
def test_up_to_five_permuted_classes_are_named(count: int, names: str) -> None:
    """The last of seven classes is right."""
    table = truth(classes=7)
    way = np.array([*range(1, count), 0, *range(count, 7)])
    (note,) = exchanged_classes(Sample(table, relabelled(detector(table), lambda k: way[k])))
    assert note.message.startswith(f"the classes {names} detections look permuted (e.g. ")


def test_two_classes_that_a_detector_confuses_are_not_swapped() -> None:
    """All of one are classified as the other: poor, but no wrong class list."""
    table = truth()
    detections = relabelled(detector(table), lambda label: np.array([1, 1, 2, 3, 4])[label])
    assert codes(table, detections) == []
    notes = evaluate(table, detections, protocol="coco").notes
    assert "classes-permuted" not in [note.code for note in notes]


def test_detections_of_other_images_are_detected() -> None:
    table = truth()
    detections = detector(truth(seed=9))
    assert codes(table, detections) == ["few-overlaps"]


@pytest.mark.parametrize(("count", "expected"), [(1, []), (9, []), (10, ["few-overlaps"])])
def test_few_missed_objects_give_no_warning(count: int, expected: list[str]) -> None:
    images, boxes = np.arange(count), np.tile([10.0, 10.0, 50.0, 50.0], (count, 1))
    columns: dict[str, Any] = {"image": images, "label": np.ones(count, np.int64)}
    table = GroundTruth.from_arrays(**columns, boxes=boxes)
    detections = Detections.from_arrays(
        **columns, boxes=boxes + 300, score=np.linspace(0.1, 0.9, count)
    )
    assert codes(table, detections) == expected


@pytest.mark.parametrize("code", ["look-xyxy", "look-xywh"])
@pytest.mark.parametrize("side", ["detections", "ground-truth"])
def test_half_of_the_boxes_in_another_format(code: str, side: str) -> None:
    """Every other box; more than half of the objects may still be overlapped."""
    table = truth()
    detections = detector(table)
    wrong = detections if side == "detections" else table
    corners = wrong.corners.copy()
    corners[::2] = MISREAD[code](corners[::2])
    given = (
        (table, with_corners(detections, corners))
        if side == "detections"
        else (with_corners(table, corners), detections)
    )
    (note,) = mismatch_notes(*given)
    assert note.code == f"{side}-mixed-conventions"
    assert "of 120 sampled ground truths" in note.message
    assert 40 <= note.count <= 60


def test_images_of_a_small_set_in_another_order() -> None:
    """Eight images of three objects: too few to exclude chance."""
    table, detections = truth(), detector(truth())
    eight = select(table, detections, images=range(8))
    assert codes(*eight) == []
    moved = replace(eight[1], image=(eight[1].image + 3) % np.int32(8))
    (note,) = mismatch_notes(eight[0], moved)
    assert (note.code, note.count) == ("images-mixed-up", 8)
    # Detections of image 5 are assigned to image 0.
    assert "those of 3 fit 0" in note.message
    # Some are right: who moved two names has not mixed up all.
    few = replace(eight[1], image=np.array([1, 0, *range(2, 8)], np.int32)[eight[1].image])
    assert codes(eight[0], few) == []


def test_detections_that_fit_no_image_are_not_of_other_images() -> None:
    table, detections = truth(), detector(truth(seed=9))
    assert codes(*select(table, detections, images=range(8))) == []


def test_scores_that_are_distances_are_detected() -> None:
    table = truth()
    detections = detector(table)
    # What lies near an object is 120 of 200, the first.
    score = np.where(np.arange(len(detections)) < 120, 0.5, 0.2) + detections.score / 10
    assert codes(table, replace(detections, score=score)) == []
    (note,) = mismatch_notes(table, replace(detections, score=1 - score))
    assert note.code == "scores-look-inverted"
    assert "higher in 0% of pairs" in note.message
    # Each class has its own scale; none is turned.
    scaled = score + 10.0 * detections.label
    assert codes(table, replace(detections, score=scaled)) == []


@pytest.mark.parametrize(("way", "comparison"), [(1.0, "higher"), (-1.0, "lower")])
def test_pixel_coordinates_from_one_or_zero_are_detected(way: float, comparison: str) -> None:
    table = truth()
    detections = detector(table, jitter=0.05)
    (note,) = mismatch_notes(table, with_corners(detections, detections.corners + way))
    assert note.code == "one-pixel-off"
    assert f"detections are one pixel {comparison} than the ground truth's" in note.message
    wider = detections.corners.copy()
    wider[:, 2:] += way
    (note,) = mismatch_notes(table, with_corners(detections, wider))
    assert note.code == "one-pixel-wider"
    assert f"detections end one pixel {comparison} than the ground truth" in note.message


def test_an_evaluation_checks_only_if_ap_is_near_zero() -> None:
    table = truth()
    detections = detector(table)
    assert mismatch_notes_of(score_tables(table, detections)) == ()
    wrong = with_corners(detections, as_xywh(detections.corners))
    assert [
        note.code for note in mismatch_notes_of(score_tables(table, wrong, check_formats=False))
    ] == ["detections-look-xyxy"]


def test_different_score_thresholds_of_two_detectors_are_noted() -> None:
    table = truth()
    detections = detector(table)
    uncut = score_tables(table, detections)
    cut = score_tables(table, replace(detections, score=0.3 + 0.7 * detections.score))
    (note,) = comparison_notes(cut, uncut)
    assert note.code == "scores-cut-differently"
    assert "(first detector: no score threshold, second: 0.3)" in note.message
    assert comparison_notes(cut, cut) == comparison_notes(uncut, uncut) == ()


def test_boxes_beyond_their_images_are_checked_at_any_ap() -> None:
    """A quarter of the boxes is right, with the highest scores: AP is not near 0."""
    table = truth()
    corners = table.corners.copy()
    corners[:, 2:] = corners[:, :2] + (90, 15)
    table = with_corners(table, corners)
    detections = detector(table, jitter=1.0)
    square = np.flatnonzero(np.arange(len(detections)) % 4 == 0)
    wrong = width_height_swapped(detections.corners)
    wrong[square] = detections.corners[square]
    detections = replace(
        with_corners(detections, wrong), score=1.0 * np.isin(np.arange(len(detections)), square)
    )
    result = score_tables(table, detections)
    assert result.summary["AP50"] > 0.1
    assert mismatch_notes_of(result) == ()
    said = Note("detections-beyond-image", "detections reach beyond", len(detections) // 10 + 1)
    beyond = replace(result, notes=(*result.notes, said))
    assert [note.code for note in mismatch_notes_of(beyond)] == ["detections-width-height-swapped"]
    few = replace(result, notes=(*result.notes, replace(said, count=len(detections) // 10 - 1)))
    assert mismatch_notes_of(few) == ()


def test_duplicate_detections_are_reported() -> None:
    table = truth()
    detections = detector(table)
    twice = detections.select(np.tile(np.arange(len(detections)), 2))
    assert "repeated-detections" not in [
        n.code for n in add_sanity_notes(score_tables(table, detections)).notes
    ]
    [note] = [
        note
        for note in add_sanity_notes(score_tables(table, twice)).notes
        if note.code == "repeated-detections"
    ]
    assert (note.count, note.severity) == (len(detections), "warning")
    said = replace(twice, notes=(Note("repeated-rows", "of a reader", 200),))
    codes_said = [note.code for note in add_sanity_notes(score_tables(table, said)).notes]
    assert "repeated-detections" not in codes_said


def test_boxes_of_extreme_values_give_no_numpy_warning() -> None:
    """Warnings are errors here: none of NumPy's may reach a user."""
    ends = np.array(
        [[-1.7e308, 0, 1, 1], [1e150, 1e150, 2e150, 2e150], [1.7e308, 0, 1.7e308, 5e-324]]
    )
    table = GroundTruth.from_arrays(image=[1, 2, 3], label=[1, 1, 1], boxes=ends)
    table = replace(table, image_sizes=np.array([[9e15, 1], [np.nan, np.nan], [5e-324, 1e308]]))
    detections = Detections.from_arrays(
        image=[1, 2, 3], label=[1, 1, 1], boxes=ends, score=[1e308, -1e308, 0]
    )
    detections = detections.reindex_like(table)
    assert statistics(examine(table, detections))["met"] >= 0
    shifted = with_corners(detections, detections.corners[[1, 2, 0]])
    examine(table, shifted)
    examine(with_corners(table, ends[[2, 0, 1]]), detections)


def test_crowds_are_not_counted_as_overlapped() -> None:
    table = truth()
    crowd = replace(table, crowd=np.ones(len(table), np.bool_))
    assert len(Sample(crowd, detector(table)).rows) == 0
    assert codes(crowd, detector(table)) == []


def test_an_iou_of_one_half_overlaps() -> None:
    """Boxes of 10 by 10 and 10 by 5 pixels, and a slightly smaller one."""
    for height, expected in ((5.0, True), (4.99, False)):
        rows: dict[str, Any] = {"image": [1], "label": [1]}
        table = GroundTruth.from_arrays(**rows, boxes=[[0, 0, 10, 10]])
        detections = Detections.from_arrays(**rows, boxes=[[0, 0, 10, height]], score=[0.5])
        sample = Sample(table, detections)
        assert sample.overlapped_if().tolist() == sample.overlapped.tolist() == [expected]
        assert sample.overlapped_by_class.tolist() == sample.correct[1].tolist() == [expected]


def crowded(count: int) -> tuple[GroundTruth, Detections]:
    """Return that many ground truths and detections in one image, far apart."""
    at = np.arange(count, dtype=np.float64)[:, None]
    boxes = np.hstack((at, at, at + 0.9, at + 0.9))
    zeros = np.zeros(count, np.int64)
    table = GroundTruth.from_arrays(image=zeros, label=zeros, boxes=boxes)
    detections = Detections.from_arrays(image=zeros, label=zeros, boxes=boxes + 1e6, score=at[:, 0])
    return table, detections


def test_one_crowded_image_makes_a_bounded_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 by 4,000 boxes are 16 million pairs; no matrix may exceed a million."""
    pairs = []
    real = sampling.overlaps  # type: ignore[attr-defined]  # what is replaced here

    def counted(one: Any, other: Any, **areas: Any) -> Any:
        pairs.append(len(one) * len(other))
        return real(one, other, **areas)

    monkeypatch.setattr("detap.checks.sample.overlaps", counted)
    table, detections = crowded(4_000)
    assert codes(table, detections) == ["few-overlaps"]
    assert max(pairs) <= 1_000_000
    assert sum(pairs) <= 20_000_000
    examine(table, detections)
    assert max(pairs) <= 1_000_000


def test_out_of_memory_in_a_check_does_not_fail_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of the check itself is not hidden."""

    def fails(*_: Any) -> Any:
        raise error

    monkeypatch.setattr("detap.evaluation.sanity_notes.mismatch_notes", fails)
    table, detections = crowded(3)
    error: type[Exception] = MemoryError
    assert mismatch_notes_of(score_tables(table, detections)) == ()
    error = ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        mismatch_notes_of(score_tables(table, detections))


def statistics(examination: checking.DataCheck) -> dict[str, Any]:
    return {fact.key: fact.value for fact in examination.statistics}


def test_statistics_are_counted() -> None:
    table = GroundTruth.from_arrays(
        image=[1, 1, 1, 2],
        label=["cat", "cat", "dog", "dog"],
        boxes=[[0, 0, 10, 10], [0, 0, 10, 10], [5, 5, 5, 9], [200, 0, 210, 10]],
        images=[1, 2, 3],
        classes=["bird", "cat", "dog"],
    )
    table = replace(table, image_sizes=np.array([[100.0, 100], [100, 100], [100, 100]]))
    detections = Detections.from_arrays(
        image=[1, 1, 1, 1],
        label=["cat", "cat", "cat", "bird"],
        boxes=[[0, 0, 10, 10], [0, 0, 10, 10], [50, 50, 60, 60], [0, 0, 9, 10]],
        score=[0.5, 0.5, 0.25, 0.5],
    ).reindex_like(table)
    seen = statistics(examine(table, detections))
    assert (
        seen
        | {
            "images": 3,
            "images_without_ground_truth": 1,
            "classes": 3,
            "ground_truths": 4,
            "ground_truth_repeated": 1,
            "ground_truth_empty": 1,
            "ground_truth_outside": 1,
            "detections": 4,
            "detections_per_image": 4,
            "score_lowest": 0.25,
            "score_median": 0.5,
            "score_highest": 0.5,
            "scores_distinct": 2,
            "tied_detections": 2,  # the bird's equal score is of another class
            "detections_repeated": 1,
            "images_with_detections": 1,
            "images_undetected": 1,
            "classes_only_in_detections": ["bird"],
            "classes_undetected": ["dog"],
            "sampled_images": 1,
            "sampled_ground_truths": 3,
            "met": 2 / 3,
            "met_by_class": 2 / 3,
        }
        == seen
    )
    notes = {note.code: note for note in examine(table, detections).notes}
    assert {code: note.count for code, note in notes.items()} == {
        "repeated-ground-truth": 1,
        "classes-without-ground-truth": 1,
        "repeated-detections": 1,
        "classes-undetected": 1,
    }
    message = "duplicate ground truths (same image, class, box) all count"
    assert notes["repeated-ground-truth"].message == message


def test_statistics_have_titles() -> None:
    table = truth()
    titles = [each.title for each in examine(table, detector(table)).statistics]
    assert titles == [
        *("images", "  without ground truth", "classes", "ground truths"),
        *("  median shorter side (px)", "  duplicates (same image, class, box)", "  zero area"),
        *("  outside the image", "detections", "  maximum per image", "  lowest score"),
        *("  median score", "  highest score", "  distinct scores"),
        *("  tied with another score of the class", "  median shorter side (px)"),
        *("  duplicates (same image, class, box)", "  zero area", "images with detections"),
        *("  with ground truth, without detections", "classes only in detections"),
        *("classes without detections", "images sampled for overlap"),
        *("  ground truths in these images", "  overlapped by any detection (IoU >= 0.5)"),
        "  overlapped by a detection of the class",
    ]


def test_missing_detections_on_most_images_are_noted() -> None:
    """On 19 of 40 images there are detections; 20 would be half."""
    table = truth()
    detections = detector(table)
    for images, expected in ((19, [21]), (20, [])):
        some = detections.select(np.flatnonzero(detections.image < images))
        notes = examine(table, some).notes
        assert [note.count for note in notes if note.code == "images-undetected"] == expected


def test_undetected_classes_with_difficult_objects_only_are_separate() -> None:
    rows: dict[str, Any] = {"image": [1, 1, 1], "label": ["ant", "bee", "cat"]}
    boxes = [[0, 0, 10, 10], [20, 20, 30, 30], [50, 50, 60, 60]]
    detections = Detections.from_arrays(image=[1], label=["ant"], boxes=boxes[:1], score=[0.5])
    for difficult, more in (
        ([False, True, False], "; undefined if .*, possibly 'bee'"),
        ([True, False, False], ""),
    ):
        table = GroundTruth.from_arrays(**rows, boxes=boxes, difficult=difficult)
        (note,) = (
            note
            for note in examine(table, detections.reindex_like(table)).notes
            if note.code == "classes-undetected"
        )
        assert re.search(rf"\(bee, cat\): their AP is 0{more}", note.message)
        assert note.message.endswith("their AP is 0") == (not more)
    unscored = replace(detections, score=np.full(1, np.nan))
    messages = [note.message for note in examine(table, unscored.reindex_like(table)).notes]
    assert any(message.endswith("(bee, cat): their F1 is 0") for message in messages)


# --- the command


ROWS: list[Row] = [(1, 1, [10, 10, 20, 20])]
(FOUND,) = results_of(ROWS)


def write(folder: Path, detections: list[Any]) -> tuple[str, str]:
    files = written(folder, truth_of(ROWS, {1: "cat"}, [1], size=(100, 100)), detections)
    return files[1], files[3]


def test_the_command_reports_statistics(tmp_path: Path, command: Run) -> None:
    gt, dt = write(tmp_path, [FOUND])
    report = command("check", gt, dt, "--output-format", "json").report()
    assert report["kind"] == "check"
    assert report["errors"] == {"problems": [], "omitted": 0}
    assert report["statistics"]["met_by_class"] == 1
    assert report["classes"] == [{"name": "cat", "id": 1, "ground_truths": 1, "detections": 1}]
    assert [source["role"] for source in report["inputs"]] == ["ground_truth", "detections"]
    assert all(len(source["sha256"]) == 64 for source in report["inputs"])
    shown = command("check", gt, dt, "--strict").passed().out
    assert "No errors" in shown
    assert "highest score" in shown


def test_the_report_matches_its_schema(tmp_path: Path, command: Run) -> None:
    gt, dt = write(tmp_path, [FOUND, {**FOUND, "score": 0.8}])
    for arguments in (("--gt", gt, "--dt", dt), ("--gt", gt), ("--dt", dt), ("--gt", dt)):
        command("check", *arguments, "-o", tmp_path / "out.json")
        report = valid(json.loads((tmp_path / "out.json").read_text()), "check")
        with pytest.raises(jsonschema.ValidationError):
            valid(report | {"kind": "detection"}, "check")


def test_errors_of_both_files_are_reported_in_one_run(tmp_path: Path, command: Run) -> None:
    gt, dt = write(tmp_path, [{**FOUND, "score": True}])
    Path(gt).write_text('{"images": 5}')
    assert command("check", gt, dt, "-o", tmp_path / "out.json").status == 2
    report = json.loads((tmp_path / "out.json").read_text())
    said = [(problem["file"], problem["message"]) for problem in report["errors"]["problems"]]
    assert (gt, "images is 5, expected an array") in said
    assert (dt, "score is true, expected a number") in said
    assert report["classes"] == []
    (tmp_path / "text").mkdir()
    (tmp_path / "text/a.txt").write_text("cat 0.9 1 1 5 5\n")
    ended = command("check", gt, tmp_path / "text")
    assert "not checked: cannot detect the layout of the files" in ended.err


def test_each_input_alone_is_checked(tmp_path: Path, command: Run) -> None:
    gt, dt = write(tmp_path, [FOUND])
    of_truth, alone = (
        command("check", option, path, "--output-format", "json").report()
        for option, path in (("--gt", gt), ("--dt", dt))
    )
    assert "detections" not in of_truth["statistics"]
    assert alone["statistics"]["detections"] == 1
    assert alone["classes"] == [{"name": "1", "id": 1, "detections": 1}]


def test_what_check_cannot_do(tmp_path: Path, command: Run) -> None:
    assert command("check").refused().endswith("Error: no input: use --gt, --dt, or both\n")
    said = command("check", *write(tmp_path, [FOUND]), "--output-format", "csv").refused()
    assert said == "Error: a check cannot be written as csv; use table, json\n"


# --- detections alone


def test_coco_detections_alone_are_checked_like_those_of_other_formats(tmp_path: Path) -> None:
    path = tmp_path / "dt.json"
    path.write_text(json.dumps([FOUND, {**FOUND, "bbox": [1, 2, -3, 4]}]))
    with pytest.raises(InputError, match="negative width"):
        detections_from(format_named("coco"), path, None, {})
    with pytest.raises(UsageError, match="cannot come from stdin"):
        detections_from(format_named("coco"), "-", None, {})


# --- real data


@pytest.mark.parametrize("name", [*PAIRS, *FEW])
def test_a_real_detector_gives_no_warning(real_data: Path, name: str) -> None:
    tables = read(real_data, name)
    assert codes(*tables) == []
    assert name in FEW or failed_box_checks(*tables, ("gt", "dt")) == []


@pytest.mark.parametrize("name", [*PAIRS, *FEW])
def test_a_few_images_of_a_real_detector_give_no_mismatch_warning(
    real_data: Path, name: str
) -> None:
    """Small sets, where chance is large: at most few-overlaps is reported."""
    table, detections = read(real_data, name)
    for size in (5, 12):
        for first in range(0, min(300, len(table.images) - size), size):
            part = table.images[first : first + size]
            reported = codes(*select(table, detections, images=part))
            assert set(reported) <= {"few-overlaps"}, part
