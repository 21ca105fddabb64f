"""The differences of docs/implementation-differences.md, each tested under its number."""

import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detap import metrics
from detap.evaluation.detection import Result, evaluate
from detap.formats.coco import format as coco
from detap.formats.voc import tables as voc
from detap.protocols import RECALL_GRIDS, Protocol, protocol
from tests.cases import BY_IMAGE, Case, Detection, Truth
from tests.coco import results_of, truth_of
from tests.parity import reference
from tests.parity.voc_eval import voc_eval

BOX = (10.0, 10.0, 20.0, 20.0)
ELSEWHERE = (10.0, 110.0, 20.0, 20.0)


def scored(folder: Path, protocol: Protocol | str, suffix: str = "") -> Result:
    """Return the result of a case of fixtures/, from its VOC or its COCO files."""
    if folder.name == "voc":
        truth = voc.read_ground_truth(folder / "Annotations")
        return evaluate(
            truth,
            voc.read_detections(folder / f"detections{suffix}", truth),
            protocol,
            matches=True,
        )
    truth = coco.read_ground_truth(folder / "instances.json")
    detections = coco.read_detections(folder / f"results{suffix}.json", truth)
    return evaluate(truth, detections, protocol, matches=True)


def test_fact_01_the_grids_are_those_of_numpy_and_of_matlab() -> None:
    assert RECALL_GRIDS["arange"] == tuple(np.arange(0.0, 1.1, 0.1).tolist())
    assert RECALL_GRIDS["linspace"] == tuple(np.linspace(0.0, 1.0, 101).tolist())
    tenths = [k / 10 for k in range(11)]
    above = [k for k, level in enumerate(RECALL_GRIDS["arange"]) if level > tenths[k]]
    assert above == [3, 6, 7]
    above = [k for k, level in enumerate(RECALL_GRIDS["matlab"]) if level != tenths[k]]
    assert above == [3]
    assert RECALL_GRIDS["matlab"][3] == np.nextafter(0.3, 1)
    above = [k for k, level in enumerate(RECALL_GRIDS["linspace"]) if level != k / 100]
    assert above == [35, 41, 47, 57, 69, 70, 82, 83, 94, 95]


def test_fact_02_equal_iou_takes_the_later_in_coco_and_the_first_in_voc() -> None:
    case = Case(
        truths=(Truth(1, 1, (0, 0, 20, 20)), Truth(1, 1, (10, 0, 20, 20))),
        dt=(Detection(1, 1, (5, 0, 20, 20), 0.9),),
    )
    for name, row in (("coco", 1), ("voc2012", 0), ("voc2007", 0), ("voc2012-py", 0)):
        result = evaluate(*case.tables(), name, matches=True)
        assert result.matches is not None
        assert result.matches.ground_truth[0, 0, 0] == row, name
    assert reference.run(*case.coco()).matched[0, 0, 0] == 1


def test_fact_03_annotation_id_zero(tmp_path: Path) -> None:
    """One perfectly detected ground truth with id 0: AP is 1 here and 0 in pycocotools."""
    rows = [(0, 0, list(BOX))]
    instances = truth_of(rows, {0: "cat"}, [0], size=None, id=0)
    results = results_of(rows)
    (tmp_path / "instances.json").write_text(json.dumps(instances), "utf-8")
    (tmp_path / "results.json").write_text(json.dumps(results), "utf-8")
    result = scored(tmp_path, "coco")
    assert result.summary["AP"] == pytest.approx(1, abs=1e-12)
    assert reference.run(instances, results, renumber=False).summary["AP"] == 0
    note = next(note for note in result.notes if note.code == "annotation-id-zero")
    assert note.message.endswith("AP is 1.0000 here and 0.0000 with --protocol coco-strict")


def test_fact_03_coco_strict_reproduces_it(fixtures: Path) -> None:
    """Also if the detection is outside the area range or the annotation is a crowd."""
    result = scored(fixtures / "annotation-id-zero" / "coco", "coco-strict")
    assert result.summary["AP"] == pytest.approx((1 + 51 / 101 / 2) / 2, abs=1e-12)
    dog = result.classes.index("dog")
    assert (result.true_positives[dog], result.false_positives[dog]) == (1, 1)
    # (1 + 51 / 101 / 2) / 2
    (note,) = [note for note in result.notes if note.code == "annotation-id-zero"]
    assert note.message.endswith("AP is 0.6262 here and 1.0000 with --protocol coco")


def test_fact_04_ties_between_images(fixtures: Path) -> None:
    """COCO goes image by image, VOC line by line."""
    folder = fixtures / "ties-between-images"
    assert scored(folder / "coco", "coco").summary["AP"] == pytest.approx(1, abs=1e-12)
    assert scored(folder / "voc", "voc2012").summary["mAP"] == pytest.approx(1 / 2, abs=1e-12)


def test_fact_05_ignore_is_overwritten_by_iscrowd(fixtures: Path) -> None:
    folder = fixtures / "ignore" / "coco"
    result = scored(folder, "coco")
    assert result.summary["AP"] == pytest.approx(51 / 101, abs=1e-12)
    theirs = reference.run(
        json.loads((folder / "instances.json").read_text("utf-8")),
        json.loads((folder / "results.json").read_text("utf-8")),
    )
    assert result.summary["AP"] == theirs.summary["AP"]
    assert any("ignore" in note.message and note.severity == "warning" for note in result.notes)
    honoured = scored(folder, replace(protocol("coco"), ignore_flags=("crowd", "ignore")))
    assert honoured.summary["AP"] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("files", ["voc", "coco"])
def test_fact_06_area_1024_is_small_and_medium(fixtures: Path, files: str) -> None:
    result = scored(fixtures / "area-ends" / files, "coco")
    expected = {"APs": 1 / 2, "APm": 51 / 101, "APl": 0, "ARs": 1, "ARm": 1 / 2, "ARl": 0}
    assert {name: result.summary[name] for name in expected} == pytest.approx(expected, abs=1e-12)


def test_fact_07_ap_is_taken_at_the_largest_limit(fixtures: Path) -> None:
    folder = fixtures / "ranking-10101" / "coco"
    rules = replace(protocol("coco"), max_dets=(1, 10, 300))
    result = scored(folder, rules)
    assert result.summary["AP"] == pytest.approx(76.4 / 101, abs=1e-12)
    assert list(result.summary)[6:9] == ["AR1", "AR10", "AR300"]
    params = {measure.name: measure.params for measure in metrics.summary(rules)}
    assert params["AP"].max_dets == "300"
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(folder / "instances.json"))
        theirs = COCOeval(truth, truth.loadRes(str(folder / "results.json")), "bbox")
        theirs.params.maxDets = [1, 10, 300]
        theirs.evaluate()
        theirs.accumulate()
        theirs.summarize()
    assert theirs.stats[0] == -1


def test_fact_08_ap90_is_found_though_its_threshold_is_not_nine_tenths() -> None:
    rules = protocol("coco")
    assert rules.iou_thresholds[8] == 0.8999999999999999
    assert rules.iou_thresholds == tuple(np.linspace(0.5, 0.95, 10).tolist())
    # IoU .92: found up to .90, not at .95.
    case = Case(truths=(Truth(1, 1, (0, 0, 10, 100)),), dt=(Detection(1, 1, (0, 0, 10, 92), 1.0),))
    result = evaluate(*case.tables(), "coco")
    assert result.metric("AP90") == pytest.approx(1, abs=1e-12)
    assert result.metric("AP95") == 0
    assert result.summary["AP"] == pytest.approx(9 / 10, abs=1e-12)


@pytest.mark.parametrize(
    ("rows", "thresholds_reached"), [(5, 1), (6, 3), (8, 7)], ids=["half", "six", "eight-tenths"]
)
def test_fact_09_iou_exactly_at_a_threshold(rows: int, thresholds_reached: int) -> None:
    case = Case(truths=(Truth(1, 1, (0, 0, 10, 10)),), dt=(Detection(1, 1, (0, 0, 10, rows), 0.9),))
    result = evaluate(*case.tables(), "coco")
    assert (result.recall[:, 0, 0, -1] == 1).sum() == thresholds_reached
    truth, detections = case.tables()
    at = (rows / 10,)
    reached = replace(protocol("voc2012"), iou_thresholds=at, inclusive_pixels=False)
    assert evaluate(truth, detections, reached).summary["mAP"] == 1
    assert evaluate(truth, detections, replace(reached, strict_iou=True)).summary["mAP"] == 0


def test_fact_09_thresholds_as_float32_would_lose_it() -> None:
    assert float(np.float32(0.6)) > 6 / 10
    assert float(np.float32(0.8)) > 8 / 10


@pytest.mark.parametrize(("files", "preset"), [("voc", "voc2012"), ("coco", "coco")])
def test_fact_10_classes_only_in_detections(fixtures: Path, files: str, preset: str) -> None:
    result = scored(fixtures / "absent-class" / files, preset)
    bird = result.classes.index("bird")
    assert np.isnan(result.by_class["AP"][bird])
    assert result.false_positives[bird] == 2
    assert next(iter(result.summary.values())) == pytest.approx(1, abs=1e-12)
    # Said once: by the VOC reader, if the ground truth does not list the class, or later.
    codes = {"unknown-classes", "classes-only-in-detections"}
    (note,) = (note for note in result.notes if note.code in codes)
    assert note.count == 2
    assert "bird" in note.message


@pytest.mark.parametrize("preset", [p for p in BY_IMAGE if p != "proposals"])
def test_fact_11_false_positives_on_images_without_ground_truth_count(preset: str) -> None:
    case = Case(
        truths=(Truth(1, 1, BOX),),
        dt=(Detection(1, 1, BOX, 0.8), Detection(2, 1, BOX, 0.9)),
        images=(1, 2),
    )
    result = evaluate(*case.tables(), preset)
    # A line under which the area is taken falls to 0 at recall 1: half a step of .01 is lost.
    perfect = 0.995 if protocol(preset).interpolation == "trapezoid-101" else 1
    assert next(iter(result.summary.values())) == pytest.approx(perfect / 2, abs=1e-12)
    assert result.false_positives[0] == 1


def test_fact_12_cut_at_100_per_class_after_sorting_by_score() -> None:
    """A hundred background cats exclude the 101st cat, which is correct, and no dog.

    One of two dogs is detected: 51 of 101 levels. TIDE's limit is per image and excludes the dog
    as well.
    """
    strays = tuple(Detection(1, 1, (0, 200 + n, 5, 1), 0.5 + n / 1000) for n in range(100))
    case = Case(
        truths=(Truth(1, 1, BOX), Truth(1, 2, BOX), Truth(1, 2, ELSEWHERE)),
        dt=(Detection(1, 1, BOX, 0.4), Detection(1, 2, BOX, 0.3), *strays),
        classes=(1, 2),
    )
    result = evaluate(*case.tables(), "coco", matches=True)
    assert result.by_class["AP"].tolist() == pytest.approx([0, 51 / 101], abs=1e-12)
    assert result.matches is not None
    assert result.matches.counted.tolist() == [False, *[True] * 101]
    over_all = replace(protocol("coco"), max_dets_scope="image")
    assert evaluate(*case.tables(), over_all).by_class["AP"].tolist() == [0, 0]
    first = case.with_dt((replace(case.dt[0], score=0.99), *case.dt[1:]))
    assert evaluate(*first.tables(), "coco").by_class["AP"][0] == pytest.approx(1, abs=1e-12)
    ours = evaluate(*case.tables(), "coco").summary
    assert ours == pytest.approx(reference.run(*case.coco()).summary, abs=0, rel=0, nan_ok=True)


def test_fact_13_images_without_proposals_count(fixtures: Path) -> None:
    for files in ("voc", "coco"):
        folder = fixtures / "proposals" / files
        counted = scored(folder, "proposals").summary
        assert counted["AR100"] == pytest.approx((7 / 10 + 1) / 4, abs=1e-12)
        detectron = replace(protocol("proposals"), empty_images="exclude")
        assert scored(folder, detectron).summary["AR100"] == pytest.approx(
            (7 / 10 + 1) / 3, abs=1e-12
        )


def test_fact_15_what_the_axes_are_worth_on_a_real_detector(real_data: Path) -> None:
    folder = real_data / "voc2007-test"
    truth = voc.read_ground_truth(folder, image_set="test")
    detections = voc.read_detections(folder / "detections", truth)

    def mean(rules: Protocol) -> float:
        return evaluate(truth, detections, rules).summary["mAP"]

    eleven, every = protocol("voc2007-py"), protocol("voc2012-py")
    assert 0.004 <= mean(every) - mean(eleven) <= 0.0245
    for rules in (eleven, every):
        assert 0.003 <= mean(rules) - mean(replace(rules, inclusive_pixels=False)) <= 0.004
        assert 0.07 <= mean(rules) - mean(replace(rules, ignore_flags=())) <= 0.09
    # The other side of the same coin, by an independent implementation.
    averages = [voc_eval(truth, detections, k, pixel=0.0)[2] for k in range(3)]
    ours = evaluate(truth, detections, replace(every, inclusive_pixels=False)).by_class["AP"]
    assert ours[:3].tolist() == pytest.approx(averages, abs=1e-12)


def test_fact_16_a_box_clipped_away_is_a_false_positive_in_voc(
    fixtures: Path, tmp_path: Path
) -> None:
    """Its ymax is less than its ymin: no overlap, a negative area, and the highest score of two."""
    annotations = fixtures / "empty-image" / "voc" / "Annotations"
    line = "000001 {score} 11 {top} 30 {bottom}\n"
    text = line.format(score=0.9, top=205, bottom=200) + line.format(score=0.8, top=11, bottom=30)
    (tmp_path / "det_test_cat.txt").write_text(text, "utf-8")
    truth = voc.read_ground_truth(annotations)
    detections = voc.read_detections(tmp_path, truth, as_is=True)
    assert detections.box_area[0] < 0
    result = evaluate(truth, detections, "voc2012")
    assert result.summary["mAP"] == pytest.approx(1 / 2, abs=1e-12)
    assert result.false_positives[0] == 1
    # pycocotools: outside the range of all areas, so that it counts neither way.
    result = evaluate(truth, detections, "coco")
    instances, results, *_ = reference.as_coco(truth, detections)
    theirs = reference.run(instances, results)
    assert theirs.ignored[0, 0].tolist() == [True, False]
    assert result.summary["AP"] == theirs.summary["AP"] == pytest.approx(1, abs=1e-12)
