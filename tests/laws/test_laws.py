"""Invariants of every evaluation, for any boxes."""

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from detap.evaluation.detection import Result, evaluate
from detap.protocols import ANY_AREA, Interpolation, Protocol, protocol
from tests.cases import MORE, RANKED, Case, Detection, Truth, cases
from tests.depth import examples
from tests.oracle.curves import non_interpolated
from tests.parity.compare import assert_same_bits

protocols_with_more_data = st.sampled_from([*MORE.values()])
presets = st.one_of(st.sampled_from([*RANKED.values()]), protocols_with_more_data)
ROUNDING = 1e-12  # sums of up to 101 shares, taken in different orders


def run(case: Case, rules: Protocol | str = "coco") -> Result:
    rules = protocol(rules) if isinstance(rules, str) else rules
    return evaluate(*case.tables_for(rules), rules, matches=True)


def assert_same_result(left: Result, right: Result) -> None:
    assert_same_bits(left.average_precision, right.average_precision, "AP")
    assert_same_bits(left.recall, right.recall, "recall")
    assert_same_bits(left.precision, right.precision, "precision")
    assert list(left.summary) == list(right.summary)
    assert_same_bits(list(left.summary.values()), list(right.summary.values()), "summary")
    for name in ("ground_truths", "ignored", "true_positives", "false_positives", "duplicates"):
        assert_same_bits(getattr(left, name), getattr(right, name), name)


@given(
    cases(distinct_scores=True),
    st.one_of(st.sampled_from([*RANKED.values(), protocol("proposals")]), protocols_with_more_data),
    st.data(),
)
def test_the_order_of_images_and_rows_does_not_matter(
    case: Case, protocol: Protocol, data: st.DataObject
) -> None:
    """With distinct scores.

    Ground truths of one image keep their order, which decides ties of IoU.
    """
    names = dict(zip(case.images, data.draw(st.permutations(range(1, 50))), strict=False))
    detections = tuple(
        replace(f, image=names[f.image]) for f in data.draw(st.permutations(case.dt))
    )
    order = {image: n for n, image in enumerate(data.draw(st.permutations(case.images)))}
    truths = tuple(
        replace(t, image=names[t.image]) for t in sorted(case.truths, key=lambda t: order[t.image])
    )
    images = tuple(data.draw(st.permutations([names[image] for image in case.images])))
    negative, open_ended = (
        frozenset((names[image], label) for image, label in pairs)
        for pairs in (case.negative, case.not_exhaustive)
    )
    shuffled = replace(
        case,
        truths=truths,
        dt=detections,
        images=images,
        negative=negative,
        not_exhaustive=open_ended,
    )
    assert_same_result(run(case, protocol), run(shuffled, protocol))


@given(cases(), presets, st.sampled_from(("double", "cube", "exp", "logit")))
def test_strictly_monotone_scores_give_the_same_result(
    case: Case, protocol: Protocol, kind: str
) -> None:
    changes: dict[str, Callable[[float], float]] = {
        "double": lambda s: 2 * s + 1000,
        "cube": lambda s: s**3,
        "exp": lambda s: float(np.exp(s)),
        "logit": lambda s: float(np.log((s + 2) / (15 - s))),
    }
    change = changes[kind]
    # A minimum and rounding are measured in scores.
    protocol = replace(protocol, min_score=None, score_decimals=None)
    changed = case.with_dt(tuple(replace(f, score=change(f.score)) for f in case.dt))
    assert_same_result(run(case, protocol), run(changed, protocol))


@given(cases(), presets, st.data())
def test_an_appended_lowest_false_positive_never_raises_ap(
    case: Case, protocol: Protocol, data: st.DataObject
) -> None:
    image = data.draw(st.sampled_from(case.images))
    label = data.draw(st.sampled_from(case.classes))
    stray = Detection(image, label, (5000.0, 5000.0, 40.0, 40.0), -2.0)
    before, after = run(case, protocol), run(case.with_dt((*case.dt, stray)), protocol)
    # In every entry, not only in the mean; undefined stays undefined, unless the protocol counts
    # a class without ground truth as 0 once it is detected.
    assert not (after.average_precision > before.average_precision).any()
    undefined = np.isnan(before.average_precision)
    if protocol.absent_class == "zero-if-detected":
        undefined[:, after.class_ids.index(label)] = False
    assert_same_bits(np.isnan(after.average_precision), undefined, "undefined")
    assert not (after.precision > before.precision).any()
    assert_same_bits(after.recall, before.recall, "recall")


@given(cases())
@examples(80)
def test_removing_a_detection_matched_to_a_crowd_changes_nothing(case: Case) -> None:
    # At one limit that is never met: otherwise the removal would let another one in.
    rules = replace(protocol("coco"), max_dets=(100,))
    # Every other ground truth is a crowd, so that enough cases have such a detection.
    truths = tuple(replace(t, crowd=t.crowd or n % 2 == 0) for n, t in enumerate(case.truths))
    case = replace(case, truths=truths)
    before = run(case, rules)
    assert before.matches is not None
    truth = before.ground_truth
    matched = before.matches.ground_truth
    ignored = (matched >= 0) & np.append(truth.crowd, False)[matched]
    rows = np.flatnonzero(ignored.all(axis=(0, 1)))
    assume(len(rows) > 0)
    for row in rows:
        detections = tuple(f for n, f in enumerate(case.dt) if n != row)
        after = run(case.with_dt(detections), rules)
        assert_same_bits(after.average_precision, before.average_precision, "AP")
        assert_same_bits(after.precision, before.precision, "precision")
        assert_same_bits(after.recall, before.recall, "recall")
        assert_same_bits(after.false_positives, before.false_positives, "false positives")


@given(cases(), presets, st.sampled_from(get_args(Interpolation)))
def test_ap_is_in_0_1_or_undefined(case: Case, protocol: Protocol, how: Interpolation) -> None:
    result = run(case, protocol.with_changes(interpolation=how))
    for values in (result.average_precision, result.precision, result.recall):
        defined = values[~np.isnan(values)]
        # Eleven elevenths sum to one ulp more than 1, in voc_eval as here.
        assert (defined >= 0).all()
        assert (defined <= np.nextafter(1.0, 2)).all()
    positive = np.zeros(len(result.classes), bool)
    positive[np.unique(result.ground_truth.label)] = True
    if "difficult" not in protocol.ignore_flags and "crowd" not in protocol.ignore_flags:
        assert_same_bits(~np.isnan(result.average_precision[0, :, 0]), positive, "defined")
    for name, value in result.summary.items():
        assert np.isnan(value) or 0 <= value <= 1 + ROUNDING, name


@given(cases(), st.sampled_from(("voc2012", "voc2012-py")))
def test_the_envelope_never_lowers_ap(case: Case, name: str) -> None:
    """AP of VOC 2012 is at least the non-interpolated AP."""
    result = run(case, name)
    for curve in result.curves():
        steps = np.diff(curve.recall, prepend=0.0)
        plain = non_interpolated(list(steps > 0), int(result.ground_truths[curve.label]))
        assert result.average_precision[0, curve.label, 0] >= plain - ROUNDING


@given(cases(), presets)
def test_recall_never_falls_and_interpolated_precision_never_rises(
    case: Case, protocol: Protocol
) -> None:
    result = run(case, protocol)
    for curve in result.curves():
        assert (np.diff(curve.recall) >= 0).all()
        assert (np.diff(curve.interpolated) <= 0).all()
        assert (np.diff(curve.score) <= 0).all()
    assert not (np.diff(result.precision, axis=1) > 0).any()


@given(cases(), presets, st.sampled_from(((1, 2, 3, 5, None), (2, 100))))
def test_recall_never_falls_with_max_dets(
    case: Case, protocol: Protocol, limits: tuple[int | None, ...]
) -> None:
    result = run(case, replace(protocol, max_dets=limits))
    assert not (np.diff(result.recall, axis=-1) < 0).any()


@given(cases(), st.sampled_from(((1, 2, 3, 5, None), (2, 100))))
def test_proposal_recall_never_falls_with_max_dets(
    case: Case, limits: tuple[int | None, ...]
) -> None:
    # At most one ground truth: with more, a new proposal may take one's best and shift the rest.
    case = replace(case, truths=case.truths[:1])
    result = run(case, replace(protocol("proposals"), max_dets=limits))
    assert not (np.diff(result.recall, axis=-1) < 0).any()


@given(cases())
def test_recall_never_rises_with_the_threshold_if_candidate_is_best(
    case: Case,
) -> None:
    thresholds = (0.1, 0.3, 0.5, 0.6, 0.75, 0.9)
    result = run(case, replace(protocol("voc2012"), iou_thresholds=thresholds))
    assert not (np.diff(result.recall, axis=0) > 0).any()


@given(cases(), st.integers(1, 4))
def test_detections_beyond_max_dets_do_not_matter(case: Case, limit: int) -> None:
    rules = replace(protocol("coco"), max_dets=(limit,))
    before = run(case, rules)
    assert before.matches is not None
    kept = tuple(f for f, counted in zip(case.dt, before.matches.counted, strict=True) if counted)
    assert_same_result(before, run(case.with_dt(kept), rules))


@given(cases(), st.sampled_from([*RANKED.values()]))
def test_doubling_all_coordinates_does_not_change_results(case: Case, protocol: Protocol) -> None:
    """IoU has no unit, without inclusive pixels and area ranges."""
    protocol = replace(protocol, inclusive_pixels=False, area_ranges=(ANY_AREA,))

    def double(item: Truth | Detection) -> tuple[float, float, float, float]:
        x, y, w, h = item.box
        return (2 * x, 2 * y, 2 * w, 2 * h)

    doubled = replace(
        case,
        truths=tuple(replace(t, box=double(t)) for t in case.truths),
        dt=tuple(replace(f, box=double(f)) for f in case.dt),
    )
    assert_same_result(run(case, protocol), run(doubled, protocol))


@given(cases(crowds=False))
def test_the_ground_truth_itself_is_perfect(case: Case) -> None:
    truths = tuple(t for t in case.truths if t.box[2] and t.box[3])
    detections = tuple(Detection(t.image, t.label, t.box, 0.5) for t in truths)
    result = run(replace(case, truths=truths, dt=detections))
    defined = ~np.isnan(result.average_precision)
    assert result.average_precision[defined] == pytest.approx(1.0, abs=ROUNDING)
    assert (result.recall[:, :, 0, -1][~np.isnan(result.recall[:, :, 0, -1])] == 1).all()
    assert result.false_positives.sum() == 0


@given(cases(), presets)
def test_every_detection_is_accounted_for(case: Case, protocol: Protocol) -> None:
    """TP, FP, ignored and beyond max dets are all there are; duplicates are FPs."""
    result = run(case, protocol)
    assert result.matches is not None
    ignored = result.matches.ignored[0, 0] & result.matches.counted
    per_class = np.bincount(result.detections.label[ignored], minlength=len(result.classes))
    assert_same_bits(
        result.true_positives + result.false_positives + per_class,
        result.within_max_dets,
        "detections",
    )
    assert (result.within_max_dets <= result.detections_count).all()
    assert (result.duplicates <= result.false_positives).all()
    assert (result.true_positives <= result.ground_truths).all()
    minimum = -np.inf if protocol.min_score is None else protocol.min_score
    keeps_all = protocol.degenerate_boxes == "keep"
    kept = [f.score >= minimum for f in case.dt if keeps_all or min(f.box[2:]) > 0]
    assert result.detections_count.sum() == sum(kept)
    areas = [t.box[2] * t.box[3] if t.area is None else t.area for t in case.truths]
    dropped = sum(area <= 0 for area in areas) if protocol.zero_area == "drop" else 0
    assert (result.ground_truths + result.ignored).sum() == len(case.truths) - dropped
