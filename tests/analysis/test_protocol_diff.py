"""Contribution of each field to the difference of two protocols."""

from dataclasses import replace
from functools import cache
from itertools import permutations
from math import fsum, isnan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap import metrics, read_detections, read_ground_truth
from detap.analysis.explanation import numbers
from detap.analysis.explanation import protocol_diff as module
from detap.analysis.explanation.numbers import (
    Tables,
    canonical,
    evaluate_protocols,
    find_metric,
    primary_value,
)
from detap.analysis.explanation.protocol_diff import ProtocolDiff, protocol_diff, walk_combinations
from detap.errors import UnknownNameError, UsageError
from detap.evaluation.scoring import score_tables
from detap.protocols import PRESETS, Protocol, protocol
from detap.protocols.fields import AreaRange
from detap.protocols.steps import steps
from detap.tables.detection import Detections, GroundTruth
from tests.cases import PLAIN, RANKED, Case, Detection, Truth, cases
from tests.conftest import ROOT
from tests.tables import dt_table, gt_table


@cache
def difficult() -> Tables:
    folder = ROOT / "fixtures" / "difficult" / "voc"
    truth = read_ground_truth(folder / "Annotations")
    return truth, read_detections(folder / "detections", truth)


@cache
def cars() -> Tables:
    """Return a detected car with the attributes of KITTI's labels."""
    truth = gt_table(
        [[0, 0, 100, 100]], image=1, label="Car", extra={"occluded": [0.0], "truncated": [0.0]}
    )
    detections = dt_table([[0, 0, 90, 99]], [0.5], image=1, label="Car")
    return truth, detections.reindex_like(truth)


def parts(diff: ProtocolDiff) -> dict[str, tuple[float, ...]]:
    return {step.name: tuple(part) for step, part in zip(diff.steps, diff.effects, strict=True)}


def test_the_difficult_cat_computed_by_hand() -> None:
    """Rankings as in fixtures/difficult/why.md.

    AP by all points: 1/2, or 2/3 if difficult objects count; at 101 points: 51/101 (recall 1/2
    includes level .5) and 67/101. COCO's eps subtracts 2e-16 from each.
    """
    diff = protocol_diff(difficult(), protocol("voc2012"), protocol("coco"), "AP50")
    assert (diff.first.metric.name, diff.second.metric.name) == ("mAP50", "AP50")
    assert diff.first.value == 1 / 2
    assert diff.second.value == pytest.approx(67 / 101, abs=1e-15)
    given_all, given_points = 2 / 3 - 1 / 2, 67 / 101 - 51 / 101
    points, points_counted = 51 / 101 - 1 / 2, 67 / 101 - 2 / 3
    expected = {
        "ignore flags, crowd flags": (given_all, given_points),
        "interpolation, precision eps": (points_counted, points),
    }
    for name, part in parts(diff).items():
        ends = expected.get(name, (0.0, 0.0))
        assert part[:2] == pytest.approx(ends, abs=1e-14), name
        assert part[2:] == pytest.approx((sum(ends) / 2, min(ends), max(ends)), abs=1e-14), name
    assert dict(zip(parts(diff), diff.descriptions, strict=True))["ignore flags, crowd flags"] == (
        "that difficult objects count"
    )
    assert diff.combinations == 256
    assert fsum(diff.fractions) == pytest.approx(1, abs=1e-14)


def test_the_worked_example(real_data: Path) -> None:
    """The example of the specification on the VOC 2007 test set, digit for digit."""
    folder = real_data / "voc2007-test"
    truth = read_ground_truth(folder / "Annotations")
    tables = truth, read_detections(folder / "detections", truth)
    diff = protocol_diff(tables, protocol("voc2012"), protocol("coco"), "AP50")
    assert (diff.first.value, diff.second.value) == (0.7706458113642893, 0.6762879424942938)
    assert f"{diff.total:.10f}" == "-0.0943578689"
    effects = {
        name: [f"{number:+.9f}" for number in part[:3]] for name, part in parts(diff).items()
    }
    assert effects == {
        "inclusive pixels": ["-0.003703852", "-0.004604239", "-0.004103638"],
        "ignore flags, crowd flags": ["-0.088905229", "-0.087428525", "-0.088275968"],
        "candidate, equal iou": ["+0.000089556", "+0.000384802", "+0.000253565"],
        "interpolation, precision eps": ["-0.001847409", "-0.002719816", "-0.002241744"],
        "max dets": ["+0.000000487", "+0.000000485", "+0.000000470"],
        "area ranges": ["+0.000008577", "+0.000009424", "+0.000009445"],
        "max iou threshold": ["+0.000000000"] * 3,
        "tie break": ["+0.000000000"] * 3,
    }
    ranges = [[f"{number:.6f}" for number in part[3:]] for part in parts(diff).values()]
    assert ranges[:4] == [
        ["-0.004604", "-0.003519"],
        ["-0.089254", "-0.087127"],
        ["0.000074", "0.000451"],
        ["-0.002786", "-0.001715"],
    ]
    assert fsum(part.shapley for part in diff.effects) == pytest.approx(diff.total, abs=1e-15)


@given(cases(), st.sampled_from([*RANKED]), st.sampled_from([*RANKED]), st.data())
def test_effects_add_up_to_the_difference(
    case: Case, first: str, second: str, data: st.DataObject
) -> None:
    """For two presets and some of the steps between them."""
    one, other = (replace(PRESETS[name], primary_metric="AP") for name in (first, second))
    between = steps(one.only_area_range(0), other.only_area_range(0))
    taken = data.draw(st.permutations(range(len(between)))) if between else []
    changes = [between[number].values(other.only_area_range(0)) for number in taken[:4]]
    other = one.only_area_range(0)
    for values in changes:
        other = replace(other, **values)
    try:
        diff = protocol_diff(case.tables(), one, other)
        back = protocol_diff(case.tables(), other, one)
    except UsageError:  # the same, or undefined here
        return
    assert fsum(part.shapley for part in diff.effects) == pytest.approx(diff.total, abs=1e-15)
    assert [part.shapley for part in back.effects] == pytest.approx(
        [-part.shapley for part in diff.effects], abs=1e-15
    )


_AREAS = (AreaRange("small", 0, 400, "s"), AreaRange("all", 0, 10_000))
_CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"interpolation": "11-point"},
    {"max_dets": (1, 2), "tie_break": "file"},
    {"iou_thresholds": (0.3, 0.75), "area_ranges": _AREAS},
    {"iou_thresholds": (0.75 - 1e-10,), "tie_break": "image"},
)


@given(
    cases(),
    st.lists(st.sampled_from([*RANKED]), min_size=1, max_size=3),
    st.lists(st.sampled_from(_CHANGES), min_size=2, max_size=3, unique_by=repr),
)
def test_shared_matching_gives_the_same_bits(
    case: Case, names: list[str], changes: list[dict[str, Any]]
) -> None:
    """Also of protocols whose thresholds are too similar for one protocol."""
    both = [PRESETS[name].with_changes(**change) for name in names for change in changes]
    asked = evaluate_protocols(case.tables(), both, lambda result: result.summary)
    for entry, summary in zip(both, asked, strict=True):
        alone = score_tables(*case.tables(), entry).summary
        assert {name: repr(value) for name, value in summary.items()} == {
            name: repr(value) for name, value in alone.items()
        }


def test_values_of_selected_classes() -> None:
    """The only cat is detected, the only dog is not: AP 1 and 0."""
    case = Case(
        truths=(Truth(1, 1, (0, 0, 10, 10)), Truth(1, 2, (0, 0, 10, 10))),
        dt=(Detection(1, 1, (0, 0, 10, 10), 0.5),),
        classes=(1, 2),
    )
    coco = protocol("coco")
    # The first two share a matching.
    given = [coco, coco.with_changes(interpolation="11-point"), protocol("voc2012")]
    for classes, value in ((None, 1 / 2), (["1"], 1), (["2"], 0)):
        values = evaluate_protocols(case.tables(), given, primary_value, classes=classes)
        assert values == pytest.approx([value] * 3, abs=1e-15)


@pytest.mark.parametrize(("first", "second"), [*permutations(PLAIN, 2)])
def test_all_combinations_of_any_two_presets_are_valid(first: str, second: str) -> None:
    """Fields that contradict each other if only one changes form one step."""
    ends = [PRESETS[name] for name in (first, second)]
    alone = [protocol.only_metric(metrics.summary(protocol)[0]) for protocol in ends]
    declared = steps(*alone)
    merged = module._merge_dependent(declared, alone, cars())
    assert sorted(axis.name for step in merged for axis in step.fields) == sorted(
        axis.name for step in declared for axis in step.fields
    )
    for context in walk_combinations(len(merged)):
        score_tables(*cars(), module._combine(alone, merged, context))


def test_matching_and_its_dependent_fields_are_one_step() -> None:
    """Between KITTI and VOC: the step is named after matching, on which the others depend."""
    diff = protocol_diff(
        cars(), protocol("kitti"), replace(protocol("voc2012"), inclusive_pixels=False)
    )
    assert [step.name for step in diff.steps] == [
        "crowd flags",
        "matching and 8 more",
        "strict iou",
    ]
    assert {axis.name for axis in diff.steps[1].fields} >= {
        "class_iou",
        "min_height",
        "recall_grid",
    }
    assert diff.descriptions[1] == "matching by-score instead of kitti, and dependent fields"


def test_large_data_is_scored_in_order_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sum(map(len, difficult()))
    for most, everywhere in ((256 * rows, True), (256 * rows - 1, False)):
        monkeypatch.setattr(module, "MAX_ROWS", most)
        diff = protocol_diff(difficult(), protocol("voc2012"), protocol("coco"), "AP50")
        assert diff.is_exhaustive == everywhere


def test_flags_on_the_same_objects_are_one_step() -> None:
    truth, _ = difficult()
    coco = protocol("coco")
    same = replace(
        coco, max_iou_threshold=1.0, annotation_id_zero="unmatched", ignore_flags=(), crowd_flags=()
    )
    assert canonical(coco, truth) == canonical(same, truth)
    weighted = protocol("open-images-v2")
    assert canonical(weighted, truth) == canonical(replace(weighted, group_of_weight=None), truth)
    for other in (
        replace(coco, iou_thresholds=(1.0,)),
        replace(coco, ignore_flags=("difficult", "crowd")),
    ):
        assert canonical(other, truth) != canonical(coco, truth)


def test_flags_of_no_object_are_not_mentioned() -> None:
    coco = protocol("coco")
    diff = protocol_diff(difficult(), coco, replace(coco, ignore_flags=("difficult", "crowd")))
    assert diff.descriptions == ("that difficult objects are ignored",)
    diff = protocol_diff(difficult(), coco, replace(coco, ignore_flags=(), crowd_flags=()))
    assert diff.descriptions == ("that crowd objects count",)
    assert diff.total == 0
    assert all(isnan(share) for share in diff.fractions)


def test_an_end_that_lacks_data_is_named() -> None:
    for first, second in (("coco", "lvis"), ("lvis", "coco")):
        with pytest.raises(UsageError, match="protocol lvis requires, per image, the classes"):
            protocol_diff(difficult(), protocol(first), protocol(second), "AP50")


def test_each_matching_is_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scored: list[Protocol] = []

    def score(truth: GroundTruth, detections: Detections, rules: Protocol, **options: Any) -> Any:
        if len(truth):  # protocols are checked without rows
            scored.append(rules)
        return score_tables(truth, detections, rules, **options)

    monkeypatch.setattr(numbers, "score_tables", score)
    coco = protocol("coco")
    protocol_diff(difficult(), coco, replace(coco, ignore_flags=("difficult", "crowd")))
    assert len(scored) == 2


def test_a_metric_by_either_name() -> None:
    assert find_metric(protocol("voc2012"), "AP").name == "mAP"
    assert find_metric(protocol("coco"), "mAP75").name == "AP75"
    assert find_metric(protocol("coco"), None).name == "AP"
    with pytest.raises(UnknownNameError, match="protocol voc2012 has no metric 'AP75'"):
        find_metric(protocol("voc2012"), "AP75")


@pytest.mark.parametrize(
    ("first", "second", "at", "message"),
    [
        ("coco", "coco|max-dets:1,100", "AP50", "do not differ in any field that AP50 depends on"),
        ("coco", "coco|primary-metric:mAP", None, "do not differ in any field that AP depends on"),
        ("voc2012", "coco", "AP75", "protocol voc2012 has no metric 'AP75'"),
        (
            "coco",
            "proposals",
            None,
            r"the primary metrics of coco \(AP\) and proposals \(AR100\) differ in type; "
            "choose a common one with --metric",
        ),
        ("coco", "coco|area-ranges:tiny=0:1", "APs", "has no metric 'APs'"),
    ],
)
def test_protocols_without_a_difference(
    first: str, second: str, at: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message.replace("|", r"\|")):
        protocol_diff(difficult(), Protocol.parse(first), Protocol.parse(second), at)


def test_an_undefined_metric() -> None:
    """No cat is larger than 96 by 96."""
    coco = protocol("coco")
    with pytest.raises(
        UsageError, match="APl is undefined under coco: all ground truths are ignored"
    ):
        protocol_diff(difficult(), coco, replace(coco, inclusive_pixels=True), "APl")


def test_a_metric_undefined_between_the_protocols() -> None:
    """A difficult object is small by its annotation, another object by its box."""
    large, small = (0, 0, 100, 100), (0, 0, 10, 10)
    case = Case(truths=(Truth(1, 1, large, difficult=True, area=100), Truth(1, 1, small, area=1e4)))
    first = Protocol.parse("coco|ignore-flags:none|area-source:annotation")
    second = Protocol.parse("coco|ignore-flags:difficult|area-source:box")
    with pytest.raises(UsageError, match=r"^APs is undefined under coco.*: all ground truths are"):
        protocol_diff(case.tables(), first, second, "APs")


def test_proposals_differ_from_coco_in_the_recall() -> None:
    diff = protocol_diff(difficult(), protocol("coco"), protocol("proposals"), "AR100")
    names = [step.name for step in diff.steps]
    assert "class agnostic, matching" in names
    assert primary_value(score_tables(*difficult(), protocol("proposals"))) == diff.second.value
