"""Weighted metrics against the same metrics of tables with repeated images."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap import evaluate, metrics
from detap.analysis.bootstrap import Weights, draw_weights, resampled
from detap.core.resampling import ResampledMetric, resample
from detap.errors import UsageError
from detap.protocols import ALL_AREAS, COCO_AREAS, Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.depth import examples
from tests.oracle import resampling as plain
from tests.oracle.resampling import repeated
from tests.tables import dt_table, gt_table

IMAGES, CLASSES = 12, 3


def scene(
    seed: int, *, images: int = IMAGES, boxes: int = 60, count: int = 200
) -> tuple[GroundTruth, Detections]:
    """Return ground truths and detections near most of them, with distinct scores."""
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 400, (boxes, 2))
    side = rng.choice([12.0, 40.0, 70.0, 150.0], (boxes, 2)) * rng.uniform(0.8, 1.2, (boxes, 2))
    image, label = rng.integers(0, images, boxes), rng.integers(0, CLASSES, boxes)
    truth = GroundTruth.from_arrays(
        image=image,
        label=label,
        boxes=np.hstack([corner, side]),
        box_format="xywh",
        crowd=rng.random(boxes) < 0.1,
        difficult=rng.random(boxes) < 0.1,
        images=range(images),
        classes=range(CLASSES),
    )
    source = rng.integers(0, boxes, count)
    jitter = rng.normal(0, rng.choice([0.02, 0.1, 0.5], (count, 1)), (count, 4))
    size = np.hstack([side, side])[source]
    drawn = np.hstack([corner, side])[source] + jitter * size
    drawn[:, 2:] = np.abs(drawn[:, 2:]) + 1
    score = rng.permutation(count) / count
    return truth, Detections.from_arrays(
        image=image[source], label=label[source], boxes=drawn, score=score, box_format="xywh"
    ).reindex_like(truth)


MANY = replace(protocol("coco"), iou_thresholds=tuple(np.linspace(0.5, 0.99, 64)), max_dets=(2, 5))
PROTOCOLS = {
    "coco": protocol("coco"),
    "voc2007": protocol("voc2007"),
    "voc2012": protocol("voc2012"),
    "voc2012-py": protocol("voc2012-py"),
    "limit over all classes": replace(protocol("coco"), max_dets_scope="image", max_dets=(1, 4, 8)),
    "class agnostic": replace(protocol("coco"), class_agnostic=True),
    "absent is zero": replace(protocol("coco"), absent_class="zero"),
    "absent is zero if detected": replace(
        protocol("coco"), absent_class="zero-if-detected", max_dets=(2,)
    ),
    "ultralytics": protocol("ultralytics"),
    "trapezoid at other levels": replace(
        protocol("coco"), interpolation="trapezoid-101", recall_grid="hundredths"
    ),
    "every bit of a word": MANY,
    "all-point, by area": replace(protocol("voc2012"), area_ranges=COCO_AREAS, max_dets=(1, 3)),
}


def assert_same(left: float, right: float) -> None:
    assert np.isnan(left) == np.isnan(right)
    assert np.isnan(left) or left == pytest.approx(right, abs=1e-12)


def test_precision_eps_is_that_of_pycocotools() -> None:
    """pycocotools adds numpy.spacing(1) to the divisor: a perfect detector stays just below 1."""
    box = [[0, 0, 10, 10]]
    truth = gt_table(box, image=0, label=0)
    detections = dt_table(box, [0.5], image=0, label=0)
    result = evaluate(truth, detections, "coco")
    again = resampled(result, Weights.from_table(np.ones((1, 1), np.uint8)), ["AP50"])
    assert 1 - 1e-15 < again.overall["AP50"].drawn[0] < 1
    assert 1 - 1e-15 < result.metric("AP50") < 1


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_a_weight_equals_copies_of_the_image(protocol: Protocol) -> None:
    truth, detections = scene(2)
    weights = draw_weights(IMAGES, 70, seed=5)  # more than one block of lanes
    table = weights.table()
    again = resampled(
        evaluate(truth, detections, protocol), weights, [m.name for m in metrics.summary(protocol)]
    )
    for b in (0, 1, 63, 64, 69):
        plain = evaluate(*repeated(truth, detections, table[b].tolist()), protocol)
        for name, value in plain.summary.items():
            assert_same(again.overall[name].drawn[b], value)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(sorted(PROTOCOLS.keys() - {"every bit of a word"})),
    st.sampled_from((1, 3)),
)
@examples(60)
def test_class_metrics_in_a_resample_equal_the_oracle(seed: int, name: str, threads: int) -> None:
    """AP and recall of each class, IoU threshold, area range and max_dets, one by one."""
    protocol = replace(PROTOCOLS[name], absent_class="undefined")  # decided outside the kernel
    truth, detections = scene(seed, images=5, boxes=10, count=25)
    weights = draw_weights(5, 2, seed)
    requested = [
        ResampledMetric(precision=precision, thresholds=(t,), area=a, max_dets_index=limit)
        for t in range(0, len(protocol.iou_thresholds), 4)
        for a in range(len(protocol.area_ranges))
        for limit in range(len(protocol.max_dets))
        for precision in (True, False)
        if not precision or limit == len(protocol.max_dets) - 1
    ]
    match_table = evaluate(truth, detections, protocol).match_table
    ours = resample(match_table, weights, requested, threads=threads)
    for b, counts in enumerate(weights.table().tolist()):
        scores = plain.resampled_scores(truth, detections, protocol, counts)
        for one, values in zip(requested, ours[:, :, b], strict=True):
            (t,) = one.thresholds
            expected = scores.recall[t, :, one.area, one.max_dets_index]
            if one.precision:
                expected = scores.average_precision[t, :, one.area]
            np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def test_metrics_outside_the_summary_are_resampled_too() -> None:
    result = evaluate(*scene(3), "coco")
    ones = Weights.from_table(np.ones((1, IMAGES), np.uint8))
    for name in ("AP90", "AP75s", "AR10", "AR100m", "APl"):
        assert_same(resampled(result, ones, [name]).overall[name].drawn[0], result.metric(name))


def test_long_runs_of_heavy_false_positives_do_not_overflow() -> None:
    # 600 false positives of weight 255 stand above the only true positive: 1 / (1 + 600).
    truth = gt_table([[0, 0, 10, 10], [0, 0, 10, 10]], image=[0, 1], label=0, images=[0, 1])
    boxes = [[500, 500, 510, 510]] * 600 + [[0, 0, 10, 10]]
    score = np.linspace(1, 0.1, 601)
    detections = dt_table(boxes, score, image=0, label=0)
    rules = replace(protocol("voc2012"), max_dets=(None,), area_ranges=(ALL_AREAS,))
    result = evaluate(truth, detections, rules)
    again = resampled(result, Weights.from_table(np.array([[255, 0], [1, 1], [0, 1]])), ["mAP"])
    assert again.overall["mAP"].drawn == pytest.approx([1 / 601, 1 / 601 / 2, 0.0])


def test_draws_are_those_of_numpys_pcg64() -> None:
    words = np.random.PCG64(9).random_raw(70 * IMAGES).tolist()
    expected = plain.draw_weights(IMAGES, 70, words)
    assert draw_weights(IMAGES, 70, seed=9).table().tolist() == expected


def test_a_class_without_ground_truth_in_a_resample_is_excluded() -> None:
    truth = GroundTruth.from_arrays(
        image=[0, 1], label=["a", "b"], boxes=[[0, 0, 9, 9], [0, 0, 9, 9]], images=[0, 1]
    )
    detections = dt_table([[0, 0, 9, 9]], [0.5], image=0, label="a")
    result = evaluate(truth, detections, "voc2012")
    again = resampled(
        result, Weights.from_table(np.array([[1, 1], [2, 0], [0, 2], [0, 0]])), ["mAP"]
    )
    assert again.overall["mAP"].drawn[:3].tolist() == [0.5, 1.0, 0.0]
    assert np.isnan(again.overall["mAP"].drawn[3])
    assert np.isnan(again.by_class["mAP"].drawn[1, 1])


@pytest.mark.parametrize("drawn", [(2, 2, 2), (1, 3, 9)])
def test_a_resample_with_too_many_rows(
    drawn: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of three images the first has two detections, the second one, and the third has nothing.
    truth = gt_table([[0, 0, 9, 9]], image=0, label="a", images=[0, 1, 2])
    detections = dt_table([[0, 0, 9, 9]] * 3, [0.5] * 3, image=[0, 0, 1], label="a")
    result = evaluate(truth, detections, "voc2012")
    rows = 2 * drawn[0] + drawn[1]
    weights = Weights.from_table(np.array([[1, 1, 1], drawn]))
    monkeypatch.setattr("detap.analysis.bootstrap.MOST_ROWS", rows)
    resampled(result, weights, ["mAP"])
    monkeypatch.setattr("detap.analysis.bootstrap.MOST_ROWS", rows - 1)
    message = (
        f"a resample of the images holds {rows} boxes; at most {rows - 1} can be counted; "
        "omit --confidence"
    )
    with pytest.raises(UsageError, match=f"^{message}$"):
        resampled(result, weights, ["mAP"])
