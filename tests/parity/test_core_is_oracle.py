"""The compiled core equals the plain oracle, for every preset and any combination of fields."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.evaluation.detection import Result, evaluate
from detap.protocols import (
    ALL_AREAS,
    ANY_AREA,
    COCO_AREAS,
    AreaRange,
    Protocol,
    protocol,
)
from detap.tables.detection import Detections, GroundTruth
from tests.cases import IN_ORACLE, RANKED, Case, cases, crowded_cases
from tests.depth import examples
from tests.oracle import score
from tests.oracle.score import counted_detections
from tests.parity.compare import assert_same_bits
from tests.parity.test_coco import in_file_order

THREADS = (1, 2, 8)
COUNTS = (
    "ground_truths",
    "ignored",
    "detections_count",
    "within_max_dets",
    "true_positives",
    "false_positives",
    "duplicates",
)
GRIDS = {
    "11-point": ("matlab", "arange"),
    "101-point": ("linspace", "hundredths", "float32"),
    "trapezoid-101": ("linspace", "hundredths", "float32"),
}


def compare(protocol: Protocol, truth: GroundTruth, detections: Detections, threads: int) -> None:
    # as_is: random boxes may look like those of another format
    ours = evaluate(truth, detections, protocol, threads=threads, matches=True, as_is=True)
    plain = score(truth, detections, protocol)
    detections = counted_detections(detections, protocol)
    assert_same_bits(ours.recall, plain.recall, "recall")
    if protocol.matching == "by-iou":
        return
    assert ours.matches is not None
    matched, ignored, counted = in_file_order(ours, truth, detections)
    assert_same_bits(matched, plain.matched, "matches")
    assert_same_bits(ignored, plain.ignored, "ignored")
    assert_same_bits(counted, plain.counted, "counted")
    if not protocol.class_agnostic:
        best = ours.matches.max_iou
        assert_same_bits(best[counted], plain.overlap[counted], "largest overlap")
    assert_same_bits(ours.full_precision(), plain.precision, "precision")
    np.testing.assert_allclose(ours.average_precision, plain.average_precision, rtol=0, atol=1e-12)
    for name in COUNTS:
        assert_same_bits(getattr(ours, name), plain.counts[name], name)
    _compare_curves(ours, plain.hits)


def _compare_curves(ours: Result, hits: dict[tuple[int, int], list[bool]]) -> None:
    for curve in ours.curves():
        t = int(np.flatnonzero(ours.iou_thresholds == curve.threshold)[0])
        true_positives = np.cumsum(hits[t, curve.label])
        assert_same_bits(curve.recall, true_positives / ours.ground_truths[curve.label], "curve")
        assert (np.diff(curve.score) <= 0).all()


@st.composite
def any_protocol(draw: st.DrawFn, *, sized: bool = False) -> Protocol:
    """Draw a preset with any of its fields changed.

    If `sized`, also area ranges in percent, conditions and images without detections.
    """
    protocol = draw(st.sampled_from([IN_ORACLE[name] for name in RANKED if name in IN_ORACLE]))
    bands: tuple[tuple[AreaRange, ...], ...] = (
        (ANY_AREA,),
        (ALL_AREAS,),
        COCO_AREAS,
        (ALL_AREAS, AreaRange("x", 4.0, 800.0, "x")),
    )
    if sized:
        percent = AreaRange("x", 0.05, 2.0, "x", "%"), AreaRange("y", 2.0, 100.0, "y", "%")
        bands = (*bands, (ALL_AREAS, *percent))
    flags = st.sampled_from(((), ("difficult",), ("crowd",), ("crowd", "difficult"), ("ignore",)))
    axes: dict[str, st.SearchStrategy[Any]] = {
        "iou_thresholds": st.sampled_from(((0.5,), (0.3, 0.6, 0.8, 1.0), (0.05,), (0.25, 0.5))),
        "iou_dtype": st.sampled_from(("float64", "float32")),
        "strict_iou": st.booleans(),
        "absent_class": st.sampled_from(("undefined", "zero", "zero-if-detected")),
        "min_score": st.sampled_from((None, 0.2, -1.0, 100.0)),
        "max_iou_threshold": st.sampled_from((1.0, 1 - 1e-10, 0.7)),
        "inclusive_pixels": st.booleans(),
        "candidate": st.sampled_from(("best", "best-unmatched")),
        "equal_iou": st.sampled_from(("first", "last")),
        "ignore_flags": flags,
        "area_ranges": st.sampled_from(bands),
        "area_source": st.sampled_from(("annotation", "box")),
        "max_dets": st.sampled_from(((None,), (1, 2, None), (3,), (1, 10, 100))),
        "max_dets_scope": st.sampled_from(("class", "image")),
        "tie_break": st.sampled_from(("image", "file")),
        "precision_eps": st.sampled_from((0.0, 2.0**-52)),
        "class_agnostic": st.booleans(),
        "group_of_weight": st.sampled_from((None, 0, 1)),
        "degenerate_boxes": st.sampled_from(("keep", "drop")),
        "zero_area": st.sampled_from(("count", "drop")),
        "score_decimals": st.sampled_from((None, 0, 1)),
        "annotation_id_zero": st.sampled_from(("valid", "unmatched")),
        "box_decimals": st.sampled_from((None, 0, 1)),
    }
    if sized:  # the second implementation of the analyses lacks these
        axes["ignore_where"] = st.sampled_from(("", "height < 20", "x1 > 40 or not width <= 30"))
        axes["empty_images"] = st.sampled_from(("count", "exclude"))
        axes["images_without_ground_truth"] = st.sampled_from(("count", "ignore"))
        axes["max_dets_scope"] = st.sampled_from(("class", "image", "dataset"))
    chosen = draw(st.sets(st.sampled_from(sorted(axes))))
    changes = {name: draw(axes[name]) for name in sorted(chosen)}
    if changes.get("max_dets_scope") == "dataset":
        changes["max_dets"] = draw(st.sampled_from(((1,), (3,), (10000,))))
    flags = changes.get("ignore_flags", protocol.ignore_flags)
    changes["crowd_flags"] = draw(st.sampled_from(((), flags, flags[:1])))
    interpolation = draw(st.sampled_from((*GRIDS, "all-point")))
    changes["interpolation"] = interpolation
    if interpolation in GRIDS:
        changes["recall_grid"] = draw(st.sampled_from(GRIDS[interpolation]))
    return replace(protocol, **changes)


def sized(truth: GroundTruth) -> GroundTruth:
    """Return the ground truth with a size of each image: area ranges in percent need it."""
    sizes = [[200.0 + 50 * number, 100.0] for number in range(len(truth.images))]
    return replace(truth, image_sizes=np.array(sizes).reshape(-1, 2))


@pytest.mark.parametrize("name", IN_ORACLE)
@given(cases(), st.sampled_from(THREADS))
@examples(40)
def test_every_preset(name: str, case: Case, threads: int) -> None:
    compare(protocol(name), *case.tables(), threads)


@given(cases(), any_protocol(sized=True), st.sampled_from(THREADS))
@examples(400)
def test_any_fields(case: Case, protocol: Protocol, threads: int) -> None:
    truth, detections = case.tables()
    first = np.arange(len(truth)) == 0  # the annotation with the id 0, where that matters
    compare(protocol, replace(sized(truth), zero_id=first), detections, threads)


@given(crowded_cases(), any_protocol(sized=True), st.sampled_from(THREADS))
@examples(20)
def test_any_fields_with_many_detections(case: Case, protocol: Protocol, threads: int) -> None:
    truth, detections = case.tables()
    compare(protocol, sized(truth), detections, threads)


@given(
    cases(),
    st.sampled_from(("count", "exclude")),
    st.sampled_from(((1,), (2, None), (1, 3))),
    st.booleans(),
    st.booleans(),
)
@examples(150)
def test_proposals(
    case: Case,
    empty_images: Literal["count", "exclude"],
    limits: tuple[Any, ...],
    strict: bool,
    inclusive_pixels: bool,
) -> None:
    rules = replace(
        protocol("proposals"),
        empty_images=empty_images,
        max_dets=limits,
        strict_iou=strict,
        inclusive_pixels=inclusive_pixels,
    )
    compare(rules, *case.tables(), 1)
