"""Named area ranges, in square pixels or in percent of the image."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.analysis.bootstrap import Weights, resampled
from detap.errors import InputError, UsageError
from detap.evaluation.scoring import on_images, score_tables
from detap.evaluation.tie_range import tie_range
from detap.protocols import ALL_AREAS, ANY_AREA, COCO_AREAS, AreaRange, Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.parity.compare import assert_same_bits
from tests.tables import dt_table, gt_table

PERCENT = "tiny=0:0.1%,small=0.1%:1%,medium=1%:10%,large=10%:100%"


def coco(ranges: str) -> Protocol:
    return Protocol.parse(f"coco|area-ranges:{ranges}")


def test_names_and_signature_keep_the_percent() -> None:
    relative = coco(PERCENT)
    assert relative.area_ranges[1:3] == (
        AreaRange("tiny", 0, 0.1, "-tiny", "%"),
        AreaRange("small", 0.1, 1, "s", "%"),
    )
    text = "all=0-10000000000,tiny=0-0.1%,small=0.1-1%,medium=1-10%,large=10-100%"
    assert relative.text == f"coco|area-ranges:{text}"
    assert Protocol.parse(relative.text) == relative
    assert Protocol.from_dict(json.loads(json.dumps(relative.as_dict()))) == relative
    assert relative.area_bounds[1:3] == ((0.0, 0.001), (0.001, 0.01))
    assert coco("tiny=0:256,small=256:1024").area_bounds[1:] == ((0, 256), (256, 1024))
    specs = {spec.name: spec.params.area for spec in detap.metrics.summary(relative)}
    assert specs["AP-tiny"] == "tiny 0-0.1%"
    assert specs["APs"] == "small 0.1-1%"
    assert specs["AP"] == "all"


def test_ranges_in_pixels_are_recorded_without_a_unit() -> None:
    """So that reports and baselines of earlier versions remain comparable."""
    record = protocol("coco").as_dict()["area_ranges"][1]
    assert record == {"name": "small", "low": 0.0, "high": 1024.0, "suffix": "s"}


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ("a=0:1%,b=1:1024", "in square pixels and in percent; use one unit"),
        ("a=0.1%:1", "'a=0.1%:1': add % to the upper end"),
        ("a=1%:", "'a=1%:': add % to the upper end"),
        ("a=x:1%", "'x' is not a number"),
        ("a=2%:1%", "'a' goes from 2 to 1"),
    ],
)
def test_invalid_ranges(ranges: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("+", r"\+")):
        coco(ranges)


def test_an_unknown_unit_is_an_error() -> None:
    ranges = (AreaRange("a", 0, 1, "a", "km"),)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'a' has the unit 'km', which is neither 'px' nor '%'"):
        replace(protocol("coco"), area_ranges=ranges)


def tables(**changes: Any) -> tuple[GroundTruth, Detections]:
    """Two images of 100 x 100 and 200 x 50 pixels; all areas are whole percents.

    a: objects of exactly 1 % (found) and 4 % (missed); a detection of 1 % on nothing.
    b: an object of 4 % (found); detections of 9 % on nothing, and of more than the image.
    """
    boxes: list[list[float]] = [[0, 0, 10, 10], [50, 50, 70, 70], [0, 0, 20, 20]]
    truth = gt_table(
        boxes, image=["a", "a", "b"], label="x", image_sizes=[[100, 100], [200, 50]], **changes
    )
    detections = dt_table(
        np.array([boxes[0], [80, 0, 90, 10], boxes[2], [100, 0, 130, 30], [50, 20, 300, 100]]),
        [0.9, 0.95, 0.8, 0.85, 0.99],
        image=["a", "a", "b", "b", "b"],
        label="x",
    )
    return truth, detections.reindex_like(truth)


def test_ranges_in_percent_by_hand() -> None:
    """Both ends count; a detection larger than its image is in no range.

    One: the false positive of 1 % and then the hit, so precision 1/2 at each recall. Four: one of
    two objects, no false positive of 4 %. Nine: no object.
    """
    rules = Protocol.parse(
        "coco|iou:0.5|area-ranges:one=0:1%,four=2%:4%,nine=5%:100%,below=0:0.99%"
    )
    result = score_tables(*tables(), rules)
    assert result.summary["AP-one"] == pytest.approx(0.5, abs=1e-12)
    assert result.summary["AP-four"] == pytest.approx(51 / 101, abs=1e-12)
    assert np.isnan(result.summary["AP-nine"])
    assert np.isnan(result.summary["AP-below"])
    # All areas: FP .99, FP .95, TP .9, FP .85, TP .8, one missed: 34 levels of 2/5, 33 of 2/5.
    assert result.summary["AP"] == pytest.approx(67 * 0.4 / 101, abs=1e-12)


def test_all_areas_mean_the_same_with_ranges_in_percent() -> None:
    """pycocotools ignores unmatched detections of more than 1e10 square pixels."""
    truth, _ = tables()
    detections = dt_table(
        [[0.0, 0, 10, 10], [0.0, 0, 2e5, 2e5]], [0.9, 0.95], image="a", label="x"
    ).reindex_like(truth)
    values = [
        score_tables(truth, detections, coco(r)).summary["AP"] for r in ("one=0:1%", "one=0:100")
    ]
    assert values[0] == values[1] == pytest.approx(34 / 101, abs=1e-12)
    relative = AreaRange("one", 0, 1, "x", "%")
    any_first = replace(protocol("coco"), area_ranges=(ANY_AREA, relative))
    assert score_tables(truth, detections, any_first).summary["AP"] == pytest.approx(0.5 * 34 / 101)
    assert ALL_AREAS.unit == "px"


def test_an_image_without_size_is_named() -> None:
    truth, detections = tables()
    for sizes, images, count in (
        (None, "a", 2),
        (np.array([[100, 100], [np.nan, 5]]), "b", 1),
        (np.array([[np.nan, np.nan], [200, 50]]), "a", 1),
    ):
        with pytest.raises(InputError) as error:
            score_tables(replace(truth, image_sizes=sizes), detections, coco("one=0:1%"))
        assert f"image {images!r}: area ranges in percent need the size" in str(error.value)
        assert f"which {count} of 2 images lack" in str(error.value)
        assert "--area-ranges coco" in str(error.value)
        score_tables(replace(truth, image_sizes=sizes), detections, "coco")


def test_image_sizes_are_positive_or_unknown() -> None:
    with pytest.raises(InputError, match=r"image_sizes is \[0\.0, 5\.0\]; expected two positive"):
        GroundTruth.from_arrays(
            image=["a"], label=["x"], boxes=[[0, 0, 1, 1]], image_sizes=[[0, 5]]
        )


def test_slices_and_batches_equal_one_run() -> None:
    truth, detections = tables()
    rules = coco("one=0:1%,four=2%:4%")
    whole = score_tables(truth, detections, rules, match_table=True)
    alone = score_tables(*detap.select(truth, detections, images=["b"]), rules)
    sliced = on_images(whole, ["b"])
    assert_same_bits([*sliced.summary.values()], [*alone.summary.values()], "slice")
    boxes = [[d.tolist() for d in t.corners] for t in (truth, detections)]
    of_image = [[np.flatnonzero(t.image == i) for i in (0, 1)] for t in (truth, detections)]
    evaluator = detap.Evaluator(protocol=rules, boxes="xyxy")
    for i, name in enumerate("ab"):
        ours, theirs = (np.array(boxes[t])[of_image[t][i]] for t in (0, 1))
        given = {"boxes": [ours], "labels": [["x"] * len(ours)]}
        assert truth.image_sizes is not None
        evaluator.update(
            [name],
            [theirs],
            [detections.score[of_image[1][i]]],
            [["x"] * len(theirs)],
            ground_truth={**given, "image_sizes": truth.image_sizes[[i]]},
        )
    for result in (evaluator.compute(), evaluator.merge([evaluator.to_bytes()]).compute()):
        assert_same_bits([*result.summary.values()], [*whole.summary.values()], "batches")


def test_the_sizes_of_normalized_boxes_serve_ranges_in_percent() -> None:
    evaluator = detap.Evaluator(protocol=coco("one=0:1%"), boxes="xyxy")
    box = [[0.0, 0.0, 0.1, 0.1]]
    truths = {"boxes": [box], "labels": [["x"]]}
    evaluator.update(["a"], [box], [[0.5]], [["x"]], ground_truth=truths, sizes=[[100, 100]])
    assert evaluator.compute().summary["AP-one"] == pytest.approx(1)


def test_oks_uses_areas_in_pixels_also_with_ranges_in_percent(real_data: Path) -> None:
    folder = real_data / "keypoints"
    inputs = folder / "example_coco_val.json", folder / "example_coco_preds.json"
    ranges = "medium=0:1%,large=1%:100%"
    plain, relative = (
        detap.evaluate(*inputs, protocol=p)
        for p in ("coco-keypoints", Protocol.parse(f"coco-keypoints|area-ranges:{ranges}"))
    )
    assert relative.summary["AP"] == plain.summary["AP"] > 0.2


def test_tie_bounds_enclose_metrics_of_ranges_in_percent() -> None:
    truth, detections = tables()
    tied = replace(detections, score=np.full(5, 0.5))
    bounds = tie_range(score_tables(truth, tied, coco("one=0:1%,four=2%:4%")))
    low, _, high = bounds["AP-one"]
    assert low == pytest.approx(0.5)
    assert high == pytest.approx(1)


def test_pycocotools_has_no_ranges_in_percent() -> None:
    from detap.analysis.crosscheck import check_supported

    with pytest.raises(UsageError, match=r"\(area-ranges in percent\)"):
        check_supported(coco("one=0:1%"))


def test_areas_of_pycocotools_on_shares(real_data: Path) -> None:
    """measures.md, section 9: pycocotools 2.0.11 with every area replaced by its share."""
    file = real_data / "measures" / "relative_expected.json"
    if not file.is_file():
        pytest.skip(f"no expected values in {file}")
    expected = json.loads(file.read_text())["coco-val2014-100"]
    folder = real_data / "coco-val2014-100"
    result = detap.evaluate(
        folder / "instances_val2014_100.json",
        folder / "instances_val2014_fakebbox100_results.json",
        protocol=coco(PERCENT),
    )
    names = {"all": "", "tiny": "-tiny", "small": "s", "medium": "m", "large": "l"}
    for area, suffix in names.items():
        values = expected[area]
        index = result.area_ranges.index(area)
        assert result.metric(f"AP{suffix}") == pytest.approx(values["AP"], abs=1e-12)
        assert result.metric(f"AP50{suffix}") == pytest.approx(values["AP50"], abs=1e-12)
        assert result.metric(f"AR100{suffix}") == pytest.approx(values["AR"], abs=1e-12)
        assert result._positives[index].sum() == values["ground_truths"]


def test_cartucho_files_have_no_sizes(real_data: Path) -> None:
    """measures.md, section 9: width 0 is an error."""
    folder = real_data / "cartucho-85"
    inputs = folder / "groundtruths_coco.json", folder / "detections_coco.json"
    with pytest.raises(InputError, match="area ranges in percent need the size of each image"):
        detap.evaluate(*inputs, protocol=coco("one=0:1%"))


@pytest.mark.parametrize("preset", ["dota", "tidecv-ap"])
def test_a_class_without_objects_in_a_range_is_undefined_there(preset: str) -> None:
    # Neither reference has ranges. A class of no object at all keeps its AP of 0 over all areas.
    square = {"small": [0, 0, 10, 10], "large": [0, 0, 200, 200]}
    polygons = preset == "dota"

    def boxes(sizes: list[str]) -> dict[str, Any]:
        corners = np.array([square[size] for size in sizes], np.float64)
        return (
            {"polygons": corners[:, [0, 1, 2, 1, 2, 3, 0, 3]]} if polygons else {"boxes": corners}
        )

    truth = GroundTruth.from_arrays(
        image=["a", "b"],
        label=["cat", "dog"],
        classes=["bird", "cat", "dog"],
        **boxes(["small", "large"]),
    )
    detections = Detections.from_arrays(
        image=["a", "b", "a"],
        label=["cat", "dog", "bird"],
        score=[0.9, 0.8, 0.7],
        **boxes(["small", "large", "large"]),
    )
    rules = protocol(preset).with_changes(area_ranges=COCO_AREAS)
    result = score_tables(truth, detections, rules)
    mean = "mAP" if polygons else "AP"
    assert result.summary[mean] == pytest.approx(2 / 3, abs=0.02)
    assert result.summary[f"{mean}s"] == pytest.approx(1, abs=0.02)
    assert np.isnan(result.summary[f"{mean}m"])
    assert result.summary[f"{mean}l"] == pytest.approx(1, abs=0.02)
    drawn = resampled(result, Weights.from_table(np.ones((1, 2), np.uint8)), [f"{mean}s", mean])
    assert drawn.overall[f"{mean}s"].drawn[0] == pytest.approx(1, abs=0.02)
    assert drawn.overall[mean].drawn[0] == pytest.approx(2 / 3, abs=0.02)


def test_the_public_report_of_oriented_boxes_by_size(real_data: Path) -> None:
    folder = real_data / "reports4" / "obb-by-size"
    truth = detap.read_ground_truth(folder / "data.yaml", task="obb")
    detections = detap.read_detections(folder / "pred", truth, task="obb")
    rules = protocol("dota").with_changes(area_ranges=COCO_AREAS)
    result = detap.evaluate(truth, detections, rules)
    assert result.summary["mAPs"] == 1
    assert result.summary["mAPl"] == pytest.approx(0.545455, abs=1e-6)
