"""KITTI matching: known numbers of the development kit, the plain oracle, and cases by hand."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from detap import metrics
from detap.core import kitti
from detap.errors import UsageError
from detap.evaluation.detection import Result, evaluate
from detap.evaluation.loop.evaluator import Evaluator
from detap.evaluation.scoring import on_images
from detap.evaluation.tie_range import tie_range
from detap.protocols import AreaRange, Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.depth import examples
from tests.oracle import kitti as oracle
from tests.oracle.kitti import Detection, Image, Label

LEVELS = {"easy": oracle.EASY, "moderate": oracle.MODERATE, "hard": oracle.HARD}
NAMES = ("Car", "Pedestrian", "Cyclist")
R40, R11 = protocol("kitti"), protocol("kitti-r11")
BOX = (0.0, 0.0, 50.0, 50.0)


def tables(images: list[Image]) -> tuple[GroundTruth, Detections]:
    labels = [(n, label) for n, image in enumerate(images) for label in image.labels]
    rows = [(n, each) for n, image in enumerate(images) for each in image.detections]
    truth = GroundTruth.from_arrays(
        image=np.array([n for n, _ in labels], np.int64),
        label=np.array([label.type for _, label in labels], str),
        boxes=np.array([label.box for _, label in labels]).reshape(-1, 4),
        difficult=np.array([label.type == "DontCare" for _, label in labels], np.bool_),
        extra={
            "truncated": np.array([label.truncated for _, label in labels], float),
            "occluded": np.array([label.occluded for _, label in labels], float),
        },
        images=range(len(images)),
        classes=sorted({label.type for _, label in labels} | {*NAMES}),
    )
    detections = Detections.from_arrays(
        image=np.array([n for n, _ in rows], np.int64),
        label=np.array([each.type for _, each in rows], str),
        boxes=np.array([each.box for _, each in rows]).reshape(-1, 4),
        score=np.array([each.score for _, each in rows], float),
    )
    return truth, detections


def run(images: list[Image], protocol: Protocol = R40) -> Result:
    return evaluate(*tables(images), protocol)


def average(images: list[Image], name: str, level: str, protocol: Protocol = R40) -> float:
    result = run(images, protocol)
    where = result.classes.index(name), result.area_ranges.index(level)
    return float(result.average_precision[0][where])


def cyclist(box: oracle.Box = BOX) -> Label:
    return Label("Cyclist", 0.0, 0, box)


def make_detection(score: float, box: oracle.Box = BOX, type: str = "Cyclist") -> Detection:
    return Detection(type, box, score)


# --- few objects: by the kit, AP is at most min(n - 1, 40) / 40, or min(ceil(n / 4), 11) / 11


@pytest.mark.parametrize("count", [1, 2, 4, 5, 10, 39, 40, 41, 60])
@pytest.mark.parametrize("protocol", [R40, R11])
def test_the_bound_of_few_objects_is_noted(protocol: Protocol, count: int) -> None:
    perfect = [Image([cyclist()], [make_detection(0.9)]) for _ in range(count)]
    result = run(perfect, protocol)
    most = min(count - 1, 40) / 40 if protocol is R40 else min(-(-count // 4), 11) / 11
    assert result.summary["mAP-moderate"] == pytest.approx(most, abs=1e-12)
    (text,) = [note.message for note in result.notes if note.code == "few-objects"] or [""]
    end = f"'Cyclist' {most:.4f} (moderate/easy/hard: {count})"
    assert text.endswith(end) if count < 41 else not text


def test_the_public_report_of_ten_cars(real_data: Path) -> None:
    folder = real_data / "reports4" / "kitti-ten-cars"
    result = evaluate(folder / "label_2", folder / "data", R40)
    assert result.summary["mAP-moderate"] == pytest.approx(0.225, abs=1e-12)
    (note,) = [note for note in result.notes if note.code == "few-objects"]
    assert note.severity == "info"
    assert "at most (n - 1) / 40 for n < 41 counted objects: 'Car' 0.2250" in note.message


def test_few_objects_of_other_protocols_are_not_noted() -> None:
    truth, detections = tables([Image([cyclist()], [make_detection(0.9)])])
    for preset in ("coco", "voc2012"):
        assert not [n for n in evaluate(truth, detections, preset).notes if n.code == "few-objects"]


# --- numbers of the kit


def real(folder: Path) -> list[Image]:
    images = []
    for file in sorted((folder / "label_2").iterdir()):
        labels = [line.split() for line in file.read_text("utf-8").splitlines()]
        detections = [
            line.split()
            for line in (folder / "results/data" / file.name).read_text("utf-8").splitlines()
        ]
        images.append(
            Image(
                [Label(c[0], float(c[1]), float(c[2]), _box(c)) for c in labels],
                [Detection(c[0], _box(c), float(c[15])) for c in detections],
            )
        )
    return images


def _box(columns: list[str]) -> oracle.Box:
    x1, y1, x2, y2 = map(float, columns[4:8])
    return x1, y1, x2, y2


@pytest.fixture(scope="module")
def staged(real_data: Path) -> tuple[list[Image], dict[str, dict[str, float]]]:
    folder = real_data / "kitti-from-voc"
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    return real(folder), expected["numbers"]


def test_values_of_the_development_kit(
    staged: tuple[list[Image], dict[str, dict[str, float]]],
) -> None:
    images, numbers = staged
    assert len(numbers) == 9
    for preset, key in ((R40, "AP_R40"), (R11, "AP_R11")):
        result = run(images, preset)
        for what, expected in numbers.items():
            name, level = what.split(".")
            where = result.classes.index(name), result.area_ranges.index(level)
            assert result.average_precision[0][where] == pytest.approx(expected[key], abs=1e-12), (
                what
            )


def test_the_oracle_gives_the_values_of_the_kit(
    staged: tuple[list[Image], dict[str, dict[str, float]]],
) -> None:
    images, numbers = staged
    for what, expected in numbers.items():
        name, level = what.split(".")
        points = oracle.precision(images, name.lower(), LEVELS[level])
        assert points is not None
        assert oracle.r40(points) == pytest.approx(expected["AP_R40"], abs=1e-12)
        assert oracle.r11(points) == pytest.approx(expected["AP_R11"], abs=1e-12)


# --- the oracle


BOXES = st.tuples(
    st.sampled_from((0, 3, 60)),
    st.sampled_from((0, 2)),
    st.sampled_from((30, 33)),
    st.sampled_from((20, 24, 25, 26, 40, 41, 44)),
).map(lambda b: (float(b[0]), float(b[1]), float(b[0] + b[2]), float(b[1] + b[3])))
TYPES = ("Car", "Van", "Pedestrian", "Person_sitting", "Cyclist", "Truck", "DontCare")
IMAGES = st.lists(
    st.builds(
        Image,
        st.lists(
            st.builds(
                Label,
                st.sampled_from(TYPES),
                st.sampled_from((0.0, 0.15, 0.2, 0.3, 0.5, 0.9)),
                st.sampled_from((0, 1, 2, 3)),
                BOXES,
            ),
            max_size=5,
        ),
        st.lists(
            st.builds(
                Detection,
                st.sampled_from((*NAMES, "Van", "Truck")),
                BOXES,
                st.sampled_from((0.1, 0.5, 0.9, -2.0)),
            ),
            max_size=6,
        ),
    ),
    min_size=1,
    max_size=4,
)


@given(IMAGES, st.sampled_from((1, 3, 1 << 20)))
@examples(300)
@example(
    # A ground truth that a low detection of another class is the best on, by score.
    [
        Image(
            [cyclist((0, 0, 50, 26))],
            [make_detection(0.9, (0, 0, 50, 24), "Car"), make_detection(0.5)],
        )
    ],
    1,
)
@example(
    # Which of two low ones is taken decides whether the second ground truth is missed.
    [
        Image(
            [cyclist((0, 0, 50, 26)), cyclist((20, 0, 70, 26))],
            [make_detection(0.9, (10, 0, 60, 24)), make_detection(0.8, (0, 0, 50, 24))],
        ),
        Image([cyclist()], [make_detection(0.7)]),
    ],
    1,
)
@example(
    # Of equal scores the first is taken, and then nothing is left for the second ground truth.
    [
        Image(
            [cyclist(), cyclist((20, 0, 70, 50))],
            [make_detection(0.9, (10, 0, 60, 50)), make_detection(0.9)],
        )
    ],
    1,
)
def test_every_point_equals_the_oracle(images: list[Image], at_once: int) -> None:
    before, kitti._PAIRS = kitti._PAIRS, at_once
    try:
        result, eleven = run(images), run(images, R11)
    finally:
        kitti._PAIRS = before
    for name in NAMES:
        label = result.classes.index(name)
        for a, level in enumerate(result.area_ranges):
            points = oracle.precision(images, name.lower(), LEVELS[level])
            ours = result.precision[0, :, label, a]
            if points is None:
                assert np.isnan(ours).all()
                assert np.isnan(result.average_precision[0, label, a])
                continue
            assert ours.tolist() == points[1:]
            assert eleven.precision[0, :, label, a].tolist() == points[::4]
            assert result.average_precision[0, label, a] == pytest.approx(oracle.r40(points))
            assert eleven.average_precision[0, label, a] == pytest.approx(oracle.r11(points))
        _same_counts(result, label, images, name)


def _same_counts(result: Result, label: int, images: list[Image], name: str) -> None:
    tallies = [oracle.tally(image, name.lower(), oracle.MODERATE, -10.0) for image in images]
    assert result.true_positives[label] == sum(tally.right for tally in tallies)
    assert result.false_positives[label] == sum(tally.wrong for tally in tallies)
    of_class = [label for image in images for label in image.labels if label.type == name]
    expected = [
        oracle.label_role(each, name.lower(), oracle.MODERATE) == oracle.COUNTS for each in of_class
    ]
    assert result.ground_truths[label] == sum(expected)
    assert result.ignored[label] == len(expected) - sum(expected)
    missed = sum(tally.missed for tally in tallies)
    if sum(expected):
        right = result.true_positives[label]
        assert result.recall[0, label, 0, 0] == (right / (right + missed) if right else 0.0)


# --- by hand


def test_two_objects_of_which_one_costs_a_false_positive() -> None:
    """Matched scores are .9 and .7; recall 0 and 1/40 are sampled there, and nothing beyond."""
    images = [
        Image([cyclist()], [make_detection(0.9), make_detection(0.8, (100, 0, 150, 50))]),
        Image([cyclist()], [make_detection(0.7)]),
    ]
    # Precision 1 at score .9, 2/3 at score .7: points 0 and 1 of 41.
    assert average(images, "Cyclist", "moderate") == pytest.approx(2 / 3 / 40)
    assert average(images, "Cyclist", "moderate", R11) == pytest.approx(1 / 11)


def test_points_are_added_in_order_on_every_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kit does; sum() compensates rounding from Python 3.12 on."""
    monkeypatch.setattr(kitti, "sum", math.fsum, raising=False)
    # Every third image has a false positive of the same score.
    wrong = (100, 0, 150, 50)
    images = [
        Image(
            [cyclist()],
            [
                make_detection(1 - n / 50),
                *([make_detection(1 - n / 50, wrong)] if n % 3 == 2 else []),
            ],
        )
        for n in range(43)
    ]
    result = run(images)
    label = result.classes.index("Cyclist")
    points = result.precision[0, :, label, 0].tolist()
    total = 0.0
    for point in points:
        total += point
    assert total != math.fsum(points)
    assert result.average_precision[0, label, 0] == total / len(points)


def test_points_are_sampled_as_by_the_oracle_for_any_number_of_objects() -> None:
    for positives in range(1, 300):
        for count in {positives, positives // 2}:
            scores = np.arange(count, 0, -1.0)
            points = kitti.sampled(scores, positives).tolist()
            assert points == oracle.sampled(scores.tolist(), positives)


def test_a_van_is_ignored_for_cars_and_a_truck_is_not() -> None:
    car = Label("Car", 0, 0, (200, 0, 250, 50))
    for kind, wrong in (("Van", 0), ("van", 0), ("Truck", 1)):
        result = run([Image([car, Label(kind, 0, 0, BOX)], [make_detection(0.9, BOX, "Car")])])
        assert result.false_positives[result.classes.index("Car")] == wrong


def test_detections_in_dontcare_regions_are_ignored() -> None:
    """The overlap is divided by the detection's area: the region is far larger."""
    region = Label("DontCare", -1, -1, (100, 0, 400, 300))
    inside, across = make_detection(0.9, (150, 0, 200, 50)), make_detection(0.9, (75, 0, 125, 50))
    for detection, wrong in ((inside, 0), (across, 1)):  # half of a detection is not more than .5
        result = run([Image([cyclist(), region], [detection])])
        assert result.false_positives[result.classes.index("Cyclist")] == wrong


def test_a_detection_below_min_height_matches_last_and_is_ignored() -> None:
    low, right = make_detection(0.9, (0, 0, 50, 24)), make_detection(0.5, (0, 0, 50, 30))
    label = cyclist((0, 0, 50, 30))
    result = run([Image([label], [low])])
    at = result.classes.index("Cyclist")
    assert (result.true_positives[at], result.false_positives[at]) == (0, 0)
    result = run([Image([label], [low, right])])
    assert (result.true_positives[at], result.false_positives[at]) == (1, 0)
    # By score the low one is chosen: no score is found to look at.
    assert result.average_precision[0, at, 0] == 0


def test_a_dontcare_region_takes_no_detection_from_an_object() -> None:
    region = Label("DontCare", -1, -1, BOX)
    result = run([Image([region, cyclist()], [make_detection(0.9)])])
    assert result.true_positives[result.classes.index("Cyclist")] == 1


def test_the_height_of_an_inverted_detection_is_absolute() -> None:
    """The kit takes the absolute height: this detection is tall enough, and a false positive."""
    truth, _ = tables([Image([cyclist()], [])])
    detections = Detections.from_arrays(
        image=[0], label=["Cyclist"], boxes=[(0.0, 50, 50, 0)], score=[0.9], as_is=True
    )
    result = evaluate(truth, detections, "kitti", as_is=True)
    assert result.false_positives[result.classes.index("Cyclist")] == 1


def test_ignored_detections_are_not_duplicates() -> None:
    label, detections = cyclist((0, 0, 50, 30)), make_detection(0.9, (0, 0, 50, 30))
    low, again = make_detection(0.8, (0, 0, 50, 24)), make_detection(0.7, (0, 0, 50, 28))
    region = Label("DontCare", -1, -1, (0, 0, 100, 100))
    for labels, rest, expected in (
        ([label], [low], 0),
        ([label], [again], 1),
        ([label, region], [again], 0),
    ):
        result = run([Image(labels, [detections, *rest])])
        assert result.duplicates[result.classes.index("Cyclist")] == expected


def test_matching_at_each_score_is_by_iou_and_not_by_score() -> None:
    """By score the second ground truth gets the worse box; by IoU each gets its own."""
    left, right = (0.0, 0.0, 50.0, 50.0), (10.0, 0.0, 60.0, 50.0)
    images = [
        Image(
            [cyclist(left), cyclist(right)], [make_detection(0.9, right), make_detection(0.8, left)]
        ),
    ]
    # By score: the left one takes .9, the right one .8; both overlap both by 2/3.
    # At .9 the box is the left one's again: 1 of 1. At .8 each has its own: 2 of 2.
    assert average(images, "Cyclist", "moderate") == pytest.approx(1 / 40)
    result = run(images)
    assert result.recall[0, result.classes.index("Cyclist"), 0, 0] == 1


# --- what goes with it


def test_summary_titles_and_counts() -> None:
    images = [
        Image([cyclist()], [make_detection(0.9), make_detection(0.8)]),
        Image([cyclist()], [make_detection(0.7)]),
    ]
    result = run(images)
    assert list(result.summary) == ["mAP-moderate", "mAP-easy", "mAP-hard"]
    params = metrics.summary(result.protocol)[0].params
    assert params[:3] == ("0.50, 0.70", "moderate", "any")
    at = result.classes.index("Cyclist")
    assert (result.true_positives[at], result.false_positives[at]) == (2, 1)
    assert result.duplicates[at] == 1


def test_other_fields_apply() -> None:
    """A cyclist of 50 by 50 and a detection of its upper half, short of half a pixel."""
    half, images = make_detection(0.9, (0, 0, 50, 25)), []
    for preset, expected in (
        (R40, 0),  # exactly .5 is not above it
        (R40.with_changes(strict_iou=False), 1),
        (R40.with_changes(inclusive_pixels=True), 1),  # 26 of 51 rows
        (R40.with_changes(inclusive_pixels=True, iou_thresholds=(0.51,)), 0),
        (R40.with_changes(max_iou_threshold=0.49), 1),
        (R40.with_changes(iou_dtype="float32", iou_thresholds=(0.5 - 1e-9,)), 0),  # rounded up
    ):
        images = [Image([cyclist()], [half])]
        result = run(images, preset)
        assert result.true_positives[result.classes.index("Cyclist")] == expected, preset


def test_precision_eps_and_area_ranges_apply() -> None:
    images = [Image([cyclist()], [make_detection(0.9)]), Image([cyclist()], [make_detection(0.8)])]
    guarded = R40.with_changes(precision_eps=0.5)
    assert average(images, "Cyclist", "moderate", guarded) == pytest.approx(2 / 2.5 / 40)
    small = (AreaRange("small", 0, 2499, "s"), AreaRange("large", 2500, 1e10, "l"))
    sized = R40.with_changes(
        area_ranges=small, min_height=(1,), max_occlusion=(), max_truncation=()
    )
    result = run(images, sized)
    at = result.classes.index("Cyclist")
    assert np.isnan(result.average_precision[0, at, 0])
    assert result.average_precision[0, at, 1] == pytest.approx(1 / 40)
    assert (result.ignored[at], result.false_positives[at]) == (2, 0)


def test_an_ignored_object_of_the_class_is_not_a_positive() -> None:
    truth, detections = tables([Image([cyclist()], [make_detection(0.9)])])
    marked = replace(truth, crowd=np.array([True]))
    for crowd_flags in ((), ("crowd",)):
        protocol = R40.with_changes(ignore_flags=("crowd",), crowd_flags=crowd_flags)
        result = evaluate(marked, detections, protocol)
        at = result.classes.index("Cyclist")
        assert (result.ignored[at], result.false_positives[at]) == (1, 0)


def test_an_evaluator_gives_the_same_result() -> None:
    truth, detections = tables(
        [Image([cyclist()], [make_detection(0.9)]), Image([cyclist()], [make_detection(0.8)])]
    )
    evaluator = Evaluator(truth, R40, boxes="xyxy")
    for image in range(2):
        rows = detections.image == image
        evaluator.update(
            [image],
            [detections.corners[rows]],
            [detections.score[rows]],
            [["Cyclist"] * int(rows.sum())],
        )
    assert evaluator.compute().summary == evaluate(truth, detections, R40).summary


def test_other_primary_metrics() -> None:
    result = run([Image([cyclist()], [make_detection(0.9)])], R40.with_changes(primary_metric="AP"))
    assert list(result.summary)[:4] == ["AP-moderate", "AP-easy", "AP-hard", "AR-moderate"]
    assert result.summary["AR-moderate"] == 1


def test_classes_that_are_not_scored_are_noted() -> None:
    images = [Image([cyclist(), Label("Truck", 0, 0, BOX)], [make_detection(0.9, BOX, "Truck")])]
    (note,) = (n for n in run(images).notes if n.code == "classes-not-scored")
    assert (note.count, note.severity) == (1, "info")
    assert "Truck" in note.message


def test_only_selected_images_decide_the_sampled_scores() -> None:
    images = [
        Image([cyclist()], [make_detection(0.9 - 0.1 * n), make_detection(0.85, (99, 0, 149, 50))])
        for n in range(4)
    ]
    part, alone = on_images(run(images), [0, 2]), run([images[0], images[2]])
    assert part.summary == alone.summary


def test_slices_of_rows_keep_extra_columns() -> None:
    truth, _ = tables([Image([cyclist(), Label("Car", 0.5, 2, BOX)], [])])
    assert truth.select(np.array([1])).extra["occluded"].tolist() == [2.0]


def test_analyses_that_need_score_matching_are_refused() -> None:
    result = run([Image([cyclist()], [make_detection(0.9)])])
    said = "protocol kitti uses matching kitti, which labels no detection"
    for ask in (
        lambda: result.match_table,
        result.curves,
        result.errors,
        result.operating_point,
        result.confusion,
        result.calibration,
        lambda: tie_range(result),
        result.with_matches,
    ):
        with pytest.raises(UsageError, match=said):
            ask()


def test_missing_columns_are_named() -> None:
    truth = GroundTruth.from_arrays(image=[1], label=["Car"], boxes=[BOX])
    detections = Detections.from_arrays(image=[1], label=["Car"], boxes=[BOX], score=[1.0])
    with pytest.raises(UsageError, match=r"column 'occluded'.*--max-occlusion"):
        evaluate(truth, detections, "kitti")
    protocol = R40.with_changes(max_occlusion=(), max_truncation=())
    assert evaluate(truth, detections, protocol).true_positives.tolist() == [1]


def test_classes_that_the_protocol_does_not_score_are_named() -> None:
    truth = GroundTruth.from_arrays(image=[1], label=["bird"], boxes=[BOX])
    detections = Detections.from_arrays(image=[1], label=["bird"], boxes=[BOX], score=[1.0])
    with pytest.raises(UsageError, match="evaluates only Car, Pedestrian, Cyclist"):
        evaluate(truth, detections, R40.with_changes(max_occlusion=(), max_truncation=()))
    protocol = R40.with_changes(max_occlusion=(), max_truncation=(), class_iou=())
    assert evaluate(truth, detections, protocol).true_positives.tolist() == [1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"min_height": (1, 2)}, "min_height has 2 values for 3 area ranges"),
        (
            {"tie_break": "image"},
            "tie_break has no effect with matching kitti; leave",
        ),
        ({"max_dets": (100,)}, "leave out --max-dets"),
        ({"interpolation": "101-point"}, "101-point interpolation cannot use"),
        ({"interpolation": "all-point"}, "all-point interpolation cannot use"),
        ({"absent_class": "zero"}, "absent_class has no effect with matching kitti"),
        ({"iou_thresholds": (0.5, 0.7)}, "takes one IoU threshold"),
        ({"matching": "by-score"}, "class_iou has no effect with matching by-score"),
        ({"class_iou": (("Car", 0.0),)}, "0.0 is outside"),
        ({"class_iou": (("Car",),)}, "is not a pair of a class and a value"),
        ({"neighbor_classes": (("Car", ""),)}, "'' is not a name"),
    ],
)
def test_incompatible_fields(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        R40.with_changes(**changes)


def test_one_threshold_applies_to_all_classes() -> None:
    protocol = R40.with_changes(iou_thresholds=(0.6,))
    assert protocol.class_iou == (("Car", 0.6), ("Pedestrian", 0.6), ("Cyclist", 0.6))


def test_one_value_applies_to_all_difficulties() -> None:
    protocol = R40.with_changes(min_height=(60,))
    result = run([Image([cyclist()], [])], protocol)
    assert result.ground_truths.sum() == 0
    with pytest.raises(UsageError, match="has no metric 'mAP50-easy'"):
        metrics.named(protocol, "mAP50-easy")
