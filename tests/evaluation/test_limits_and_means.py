"""Protocol fields of VisDrone: regions, excluded classes, file order, recall base, class mean."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import detap
from detap.errors import UsageError
from detap.evaluation.regions import share_inside
from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth
from tests.tables import dt_table, gt_table

pytestmark = pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")

BOX, OTHER, AWAY = [0, 0, 10, 10], [20, 20, 30, 30], [50, 50, 60, 60]
Rows = list[tuple[str, str, list[int]]]


def tables(
    truths: Rows, detected: list[tuple[str, str, list[int], float]], **columns: Any
) -> tuple[GroundTruth, Detections]:
    """Return tables of rows of image, class and box, and score."""
    image, label, boxes = zip(*truths, strict=True)
    truth = gt_table(np.array(boxes), image=image, label=label, **columns)
    image, label, boxes, scores = zip(*detected, strict=True)
    return truth, dt_table(np.array(boxes), scores, image=image, label=label)


def scored(protocol: str, *arguments: Any, **columns: Any) -> detap.Result:
    return detap.evaluate(*tables(*arguments, **columns), Protocol.parse(protocol))


def test_a_limit_in_file_order() -> None:
    truths: Rows = [("a", "x", BOX), ("a", "x", OTHER)]
    # The third detection is the best; both limits leave it out.
    detected = [("a", "x", AWAY, 0.1), ("a", "x", OTHER, 0.5), ("a", "x", BOX, 0.9)]
    fields = "voc2012|max-dets:1,2|primary-metric:AP|max-dets-scope:image"
    best, first = (
        scored(f"{fields}|max-dets-order:{o}", truths, detected) for o in ("score", "file")
    )
    assert best.recall[0, 0, 0].tolist() == [0.5, 1]
    assert first.recall[0, 0, 0].tolist() == [0, 0.5]
    assert first.match_table.within_max_dets.tolist() == [True, True, False]


def test_each_limit_matches_what_it_keeps() -> None:
    """The second detection takes the object of the first one, but not where it is left out."""
    detected = [("a", "x", [0, 0, 10, 8], 0.5), ("a", "x", BOX, 0.9)]
    fields = "voc2012|max-dets:1,2|primary-metric:AP|max-dets-order:file"
    result = scored(fields, [("a", "x", BOX)], detected)
    assert result.recall[0, 0, 0].tolist() == [1, 1]
    assert result.true_positives.tolist() == [1]
    assert result.match_table.is_true_positive(0, 0).tolist() == [False, True]


def test_recall_of_all_ground_truths() -> None:
    """A TP of one counted and one ignored object, which a second detection matches."""
    truths: Rows = [("a", "x", BOX), ("a", "x", OTHER), ("a", "y", BOX)]
    detected = [("a", "x", BOX, 0.9), ("a", "x", OTHER, 0.8)]
    flags = {"difficult": [False, True, True]}
    for base, ap, recall in (("counted", [1.0, np.nan], 1.0), ("all", [0.5, 0.0], 0.5)):
        result = scored(f"voc2012|recall-base:{base}", truths, detected, **flags)
        np.testing.assert_array_equal(result.average_precision[0, :, 0], ap)
        assert result.recall[0, 0, 0, 0] == recall
        assert result.false_positives.tolist() == [0, 0]
    assert result.ground_truths.tolist() == [2, 1]


def test_matching_by_iou_has_recall_and_no_precision() -> None:
    result = scored(
        "coco|class-agnostic:yes|matching:by-iou", [("a", "x", BOX)], [("a", "y", BOX, 0.9)]
    )
    assert np.isnan(result.by_class["AP"]).all()
    assert result.summary["AR100"] == 1


def test_classes_weighted_by_images() -> None:
    truths: Rows = [("a", "x", BOX), ("a", "x", OTHER), ("b", "x", BOX), ("c", "y", BOX)]
    detected = [("a", "x", BOX, 0.9), ("a", "x", OTHER, 0.9), ("b", "x", BOX, 0.9)]
    for protocol in ("coco", "voc2012|primary-metric:AP"):
        equal = scored(protocol, truths, detected).summary
        by_images = scored(f"{protocol}|class-mean:images", truths, detected).summary
        assert equal["AP"] == pytest.approx(1 / 2)
        assert by_images["AP"] == pytest.approx(2 / 3)
        recall = "AR100" if protocol == "coco" else "AR"
        assert (equal[recall], by_images[recall]) == pytest.approx((1 / 2, 2 / 3))


def test_intervals_weight_by_the_images_drawn() -> None:
    truths: Rows = [("a", "x", BOX), ("b", "x", BOX), ("c", "y", BOX), ("d", "y", BOX)]
    detected = [("a", "x", BOX, 0.9), ("b", "x", BOX, 0.9)]
    result = scored("voc2012|class-mean:images", truths, detected)
    intervals = result.intervals(0.9, resamples=200, min_ground_truths=1)
    # AP is the fraction of drawn images that have x, of four draws.
    low, high = intervals.summary["mAP"]
    assert 0 <= low < 0.5 < high <= 1


def test_excluded_classes_use_up_the_limit() -> None:
    truths: Rows = [("a", "x", BOX), ("a", "y", OTHER)]
    detected = [("a", "y", OTHER, 0.9), ("a", "x", BOX, 0.8)]
    fields = "voc2012|primary-metric:AP|max-dets-scope:image|excluded-classes:y|max-dets"
    for limit, ap in (("1", 0), ("2", 1)):
        result = scored(f"{fields}:{limit}", truths, detected)
        assert result.summary["AP"] == ap
        assert result.ground_truths.tolist() == [1, 0]
        notes = {note.code: note for note in result.notes}
        assert notes["classes-not-scored"].count == 1
        assert "does not evaluate ('y')" in notes["classes-not-scored"].message
        assert "classes-only-in-detections" not in notes


def reference(box: Any, regions: Any, width: int, height: int) -> float:
    """Return the share of a box in regions as the toolkit does: from a map of all pixels."""
    pixels = np.zeros((height + 1, width + 1))  # from 1
    for x, y, w, h in regions:
        pixels[y : min(height, y + h) + 1, x : min(width, x + w) + 1] = 1
    integral = pixels.cumsum(axis=0).cumsum(axis=1)
    x, y = min(box[0], width), min(box[1], height)
    right, bottom = min(width, x + box[2]), min(height, y + box[3])
    inside = integral[y, x] + integral[bottom, right] - integral[y, right] - integral[bottom, x]
    return float(inside / (box[2] * box[3]))


@pytest.mark.parametrize("seed", range(40))
def test_the_share_in_regions(seed: int) -> None:
    random = np.random.default_rng(seed)
    width, height = random.integers(1, 40, 2).tolist()

    def some(count: int) -> NDArray[np.int64]:
        return np.hstack([random.integers(1, 45, (count, 2)), random.integers(1, 30, (count, 2))])

    boxes, regions = some(60), some(int(random.integers(1, 6)))
    expected = [reference(box, regions.tolist(), width, height) for box in boxes.tolist()]
    size = np.array([width, height], np.float64)
    share = share_inside(boxes.astype(np.float64), regions.astype(np.float64), size)
    assert share.tolist() == expected


def test_regions_in_whole_pixels() -> None:
    """The region has columns 1 to 5; 2.5 becomes 3, and what is below 1 the first pixel."""
    truths: Rows = [("a", "region", [1, 1, 5, 101]), ("a", "x", [5, 1, 9, 5])]
    boxes = [[2.5, 10, 6.5, 14], [2, 10, 6, 14], [3, 10, 7, 14], [-9, 0.4, -5, 4.4]]
    detected: Any = [("a", "x", box, 0.9) for box in boxes]  # of four columns: 2, 3, 2, 4 inside
    for share, kept in (("0.6", [2.5, 3]), ("0.5", []), ("0.51", [2.5, 3]), ("0.8", [2.5, 2, 3])):
        protocol = f"voc2012|drop-in-regions:region={share}"
        result = scored(protocol, truths, detected, image_sizes=[(100, 100)])
        assert result.detections.corners[:, 0].tolist() == kept
        assert result.ground_truths.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "lvis-fixed|max-dets-order:file",
            "max_dets_scope dataset takes the best; use --max-dets-order score",
        ),
        ("kitti|recall-base:all", "recall_base has no effect with matching kitti"),
        ("kitti|group-of-weight:0", "group_of_weight has no effect with matching kitti"),
        ("kitti|excluded-classes:Car", "excluded_classes has no effect with matching kitti"),
        ("proposals|max-dets-order:file", "max_dets_order has no effect with matching by-iou"),
        ("coco-segm|drop-in-regions:x=0.5", "drop_in_regions has no effect with iou_type segm"),
    ],
)
def test_fields_that_have_no_effect(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Protocol.parse(text)
