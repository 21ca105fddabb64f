"""Protocol coco equals pycocotools, every intermediate value to the last bit."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from detap.evaluation.detection import Result, evaluate
from detap.evaluation.selection import select
from detap.formats.coco import format as coco
from detap.formats.voc import tables as voc
from detap.protocols import ALL_AREAS, AreaRange, Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.cases import Case, Detection, Truth, cases, crowded_cases
from tests.depth import examples, some
from tests.parity import reference
from tests.parity.compare import assert_same_bits
from tests.parity.reference import Reference

COCO = protocol("coco")
THREADS = (1, 2, 8)


def in_file_order(
    result: Result, truth: GroundTruth, detections: Detections
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return matches (A, T, N), ignored (A, T, N) and counted (N,) by rows of the tables.

    With class_agnostic, the result's own rows are sorted by class.
    """
    assert result.matches is not None
    matched, ignored = result.matches.ground_truth, result.matches.ignored
    counted = result.matches.counted
    if result.protocol.class_agnostic and result.protocol.tie_break == "image":
        rows = np.argsort(detections.label, kind="stable")
        truth_rows = np.append(np.argsort(truth.label, kind="stable"), -1)
        back = np.argsort(rows)
        return truth_rows[matched][:, :, back], ignored[:, :, back], counted[back]
    return matched, ignored, counted


def compare(ours: Result, theirs: Reference, truth: GroundTruth, detections: Detections) -> None:
    """Compare every array, the matches and the summary with pycocotools."""
    matched, ignored, counted = in_file_order(ours, truth, detections)
    assert_same_bits(matched, theirs.matched, "matches")
    assert_same_bits(ignored, theirs.ignored, "ignored")
    assert_same_bits(counted, theirs.counted, "counted")
    assert_same_bits(ours.full_precision(), theirs.precision, "precision")
    assert_same_bits(ours.precision, theirs.precision[..., -1], "precision at the largest limit")
    assert_same_bits(ours.recall, theirs.recall, "recall")
    for name, value in theirs.summary.items():
        assert_same_bits(ours.metric(name), value, name)


def check(case: Case, protocol: Protocol = COCO, threads: int | None = None) -> None:
    truth, detections = case.tables()
    ours = evaluate(truth, detections, protocol, threads=threads, matches=True)
    compare(ours, reference.run(*case.coco(), protocol), truth, detections)


# One of each thing that has gone wrong in some implementation.
SEVERAL = Case(
    truths=(
        Truth(7, 3, (0.0, 0.0, 32.0, 32.0)),
        Truth(7, 3, (0.0, 0.0, 32.0, 32.0)),
        Truth(7, 3, (0.0, 0.0, 100.0, 100.0), crowd=True),
        Truth(2, 3, (5.5, 5.25, 96.0, 96.0), area=9216.0),
        Truth(2, 9, (10.0, 10.0, 0.0, 5.0)),
    ),
    dt=(
        Detection(7, 3, (0.0, 0.0, 32.0, 32.0), 0.9),
        Detection(7, 3, (1.0, 0.0, 32.0, 32.0), 0.9),
        Detection(7, 3, (2.0, 0.0, 32.0, 32.0), 0.9),
        Detection(2, 3, (5.5, 5.25, 96.0, 80.0), 0.9),
        Detection(2, 9, (10.0, 10.0, 0.0, 5.0), 0.5),
        Detection(4, 9, (0.0, 0.0, 0.0, 0.0), 0.5),
        Detection(4, 5, (0.0, 0.0, 10.0, 10.0), 0.5),
    ),
    images=(2, 4, 7),
    classes=(3, 5, 9),
)


@given(cases())
@examples(250)
@example(SEVERAL)
@example(Case())
@example(SEVERAL.with_dt(()))
def test_small_cases(case: Case) -> None:
    check(case)


@given(crowded_cases(), st.sampled_from(THREADS))
@examples(12)
def test_more_than_100_detections_in_an_image(case: Case, threads: int) -> None:
    check(case, threads=threads)


@st.composite
def other_fields(draw: st.DrawFn) -> Protocol:
    """Draw a protocol that differs from coco only where pycocotools has a parameter."""
    thresholds = draw(
        st.sets(st.sampled_from((0.05, 0.3, 0.5, 0.55, 0.6, 0.75, 0.8, 0.9, 0.95, 1.0)), min_size=1)
    )
    limits = draw(st.sets(st.integers(1, 12), min_size=1, max_size=4))
    bands = draw(
        st.lists(
            st.tuples(
                st.sampled_from((0.0, 1.0, 500.0, 1024.0)),
                st.sampled_from((1024.0, 1024.5, 9216.0, 1e5)),
            ),
            max_size=3,
            unique=True,
        )
    )
    return replace(
        COCO,
        iou_thresholds=tuple(sorted(thresholds)),
        max_dets=tuple(sorted(limits)),
        area_ranges=(
            ALL_AREAS,
            *(AreaRange(f"band{n}", *ends, f"-{n}") for n, ends in enumerate(bands)),
        ),
        class_agnostic=draw(st.booleans()),
        recall_grid=draw(st.sampled_from(("linspace", "hundredths"))),
    )


@given(cases(), other_fields())
@examples(250)
@example(SEVERAL, replace(COCO, class_agnostic=True))
def test_other_thresholds_max_dets_areas_and_class_agnostic(case: Case, protocol: Protocol) -> None:
    check(case, protocol)


@given(cases(), st.integers(0, 9), st.booleans())
@examples(200)
@example(SEVERAL, 0, False)
def test_an_annotation_with_the_id_0(case: Case, row: int, class_agnostic: bool) -> None:
    """coco-strict equals unmodified pycocotools with an annotation of id 0."""
    assume(case.truths)
    row %= len(case.truths)
    truth, detections = case.tables()
    truth = replace(truth, zero_id=np.arange(len(truth)) == row)
    instances, results = case.coco()
    instances["annotations"][row]["id"] = 0
    rules = replace(protocol("coco-strict"), class_agnostic=class_agnostic)
    ours = evaluate(truth, detections, rules, matches=True)
    compare(ours, reference.run(instances, results, rules, renumber=False), truth, detections)


def test_class_agnostic_equal_ious_are_ordered_by_class_then_file() -> None:
    """With useCats=0 pycocotools lists the boxes of an image category by category."""
    case = Case(
        truths=(Truth(1, 8, (0.0, 0.0, 20.0, 20.0)), Truth(1, 3, (10.0, 0.0, 20.0, 20.0))),
        dt=(
            Detection(1, 8, (5.0, 0.0, 20.0, 20.0), 0.9),
            Detection(1, 3, (5.0, 1.0, 20.0, 20.0), 0.9),
        ),
        classes=(3, 8),
    )
    check(case, replace(COCO, class_agnostic=True, max_dets=(1, 2)))


def test_the_comparison_can_fail() -> None:
    """A single entry changed in its last bit is detected, in every array."""
    truth, detections = SEVERAL.tables()
    ours = evaluate(truth, detections, COCO, matches=True)
    theirs = reference.run(*SEVERAL.coco())
    compare(ours, theirs, truth, detections)
    for name in ("precision", "recall"):
        values = getattr(theirs, name).copy()
        where = tuple(index[-1] for index in np.nonzero(values > 0))
        values[where] = np.nextafter(values[where], 2)
        with pytest.raises(AssertionError, match=f"{name}.*: 1 of"):
            compare(ours, replace(theirs, **{name: values}), truth, detections)
    for name in ("matched", "ignored", "counted"):
        values = getattr(theirs, name).copy()
        values.flat[-1] = 1 - values.flat[-1]
        with pytest.raises(AssertionError, match=r": 1 of"):
            compare(ours, replace(theirs, **{name: values}), truth, detections)
    undefined = theirs.precision.copy()
    undefined[np.isnan(undefined)] = 0.0
    with pytest.raises(AssertionError, match="precision"):
        compare(ours, replace(theirs, precision=undefined), truth, detections)
    summary = {**theirs.summary, "AP": np.nextafter(theirs.summary["AP"], 2)}
    with pytest.raises(AssertionError, match="AP"):
        compare(ours, replace(theirs, summary=summary), truth, detections)


@pytest.fixture(scope="module")
def sample(real_data: Path) -> tuple[GroundTruth, Detections, Reference]:
    """Return COCO's own sample and pycocotools' results on it."""
    folder = real_data / "coco-val2014-100"
    instances = folder / "instances_val2014_100.json"
    results = folder / "instances_val2014_fakebbox100_results.json"
    truth = coco.read_ground_truth(instances)
    theirs = reference.run(
        json.loads(instances.read_text("utf-8")), json.loads(results.read_text("utf-8"))
    )
    return truth, coco.read_detections(results, truth), theirs


@pytest.mark.parametrize("threads", THREADS)
def test_coco_val2014_100_is_bit_equal(
    sample: tuple[GroundTruth, Detections, Reference], threads: int
) -> None:
    truth, detections, theirs = sample
    ours = evaluate(truth, detections, "coco", threads=threads, matches=True)
    assert list(ours.summary) == list(reference.NAMES)
    compare(ours, theirs, truth, detections)


def test_coco_val2014_100_has_the_official_numbers(
    sample: tuple[GroundTruth, Detections, Reference], real_data: Path
) -> None:
    truth, detections, _ = sample
    ours = evaluate(truth, detections, "coco")
    folder = real_data / "coco-val2014-100"
    expected = json.loads((folder / "expected_bbox.json").read_text("utf-8"))
    assert ours.summary == expected["stats"]
    per_class = dict(zip(ours.classes, range(len(ours.classes)), strict=True))
    for name, numbers in expected["per_class"].items():
        metrics = ours.class_metrics(per_class[name])
        for key, value in numbers.items():
            required = np.nan if value == -1 else value  # -1 is pycocotools' "undefined"
            assert metrics[key] == pytest.approx(required, abs=1e-15, nan_ok=True), (name, key)
    printed = (folder / "val2014_fake_eval_res.txt").read_text("utf-8")
    printed = printed.partition("type=bbox")[2].partition("type=")[0]
    official = [line.rpartition("=")[2].strip() for line in printed.splitlines() if "@[" in line]
    assert [f"{value:.3f}" for value in ours.summary.values()] == official


@pytest.mark.parametrize("class_agnostic", [False, True])
def test_coco_val2014_100_with_other_fields(
    sample: tuple[GroundTruth, Detections, Reference], real_data: Path, class_agnostic: bool
) -> None:
    truth, detections, _ = sample
    folder = real_data / "coco-val2014-100"
    protocol = replace(
        COCO,
        iou_thresholds=(0.25, 0.5, 0.8, 1.0),
        max_dets=(3, 20),
        area_ranges=(ALL_AREAS, AreaRange("middling", 400.0, 20_000.0, "-mid")),
        class_agnostic=class_agnostic,
    )
    theirs = reference.run(
        json.loads((folder / "instances_val2014_100.json").read_text("utf-8")),
        json.loads((folder / "instances_val2014_fakebbox100_results.json").read_text("utf-8")),
        protocol,
    )
    ours = evaluate(truth, detections, protocol, threads=2, matches=True)
    compare(ours, theirs, truth, detections)


def test_voc2007_test_with_protocol_coco_is_bit_equal(real_data: Path) -> None:
    """111,247 detections on 4952 images, up to 139 of a class in one; takes a few seconds."""
    folder = real_data / "voc2007-test"
    truth = voc.read_ground_truth(folder / "Annotations", image_set="test")
    detections = voc.read_detections(folder / "detections", truth)
    truth, detections = select(truth, detections, images=frozenset(some(truth.images)))
    instances, results, truth, detections = reference.as_coco(truth, detections)
    ours = evaluate(truth, detections, "coco", threads=2, matches=True)
    compare(ours, reference.run(instances, results), truth, detections)
