"""What each axis has in the difference of two protocols."""

from dataclasses import replace
from functools import cache
from itertools import permutations
from math import fsum, isnan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap import metrics, read_detections, read_ground_truth
from detap.analysis.explanation import protocol_diff as module
from detap.analysis.explanation.numbers import (
    Tables,
    canonical,
    evaluate_protocols,
    find_metric,
    primary_value,
)
from detap.analysis.explanation.protocol_diff import ProtocolDiff, protocol_diff
from detap.analysis.explanation.shapley import walk_combinations
from detap.errors import UnknownNameError, UsageError
from detap.evaluation.detection import score_tables
from detap.protocols import PRESETS, Protocol, protocol
from detap.protocols.steps import steps
from detap.tables.detection import Detections, GroundTruth
from tests.cases import PLAIN, RANKED, Case, cases
from tests.conftest import ROOT


@cache
def difficult() -> Tables:
    folder = ROOT / "fixtures" / "difficult" / "voc"
    truth = read_ground_truth(folder / "Annotations")
    return truth, read_detections(folder / "detections", truth)


@cache
def cars() -> Tables:
    """Return a car that is found, with what KITTI's labels tell of it."""
    truth = GroundTruth.from_arrays(
        image=[1],
        label=["Car"],
        boxes=[[0, 0, 100, 100]],
        extra={"occluded": [0.0], "truncated": [0.0]},
    )
    found = Detections.from_arrays(image=[1], label=["Car"], boxes=[[0, 0, 90, 99]], score=[0.5])
    return truth, found.reindex_like(truth)


def parts(found: ProtocolDiff) -> dict[str, tuple[float, ...]]:
    return {step.name: tuple(part) for step, part in zip(found.steps, found.effects, strict=True)}


def test_the_difficult_cat_by_hand() -> None:
    """Rankings as in fixtures/difficult/why.md.

    All points 1/2, 2/3 where difficult objects count; at 101 points 51/101 (recall 1/2 is reached
    at .5 too) and 67/101. COCO's guard takes 2e-16 of each.
    """
    found = protocol_diff(difficult(), protocol("voc2012"), protocol("coco"), "AP50")
    assert (found.first.metric.name, found.second.metric.name) == ("mAP50", "AP50")
    assert found.first.value == 1 / 2
    assert found.second.value == pytest.approx(67 / 101, abs=1e-15)
    given_all, given_points = 2 / 3 - 1 / 2, 67 / 101 - 51 / 101
    points, points_counted = 51 / 101 - 1 / 2, 67 / 101 - 2 / 3
    expected = {
        "ignore flags, crowd flags": (given_all, given_points),
        "interpolation, precision eps": (points_counted, points),
    }
    for name, part in parts(found).items():
        ends = expected.get(name, (0.0, 0.0))
        assert part[:2] == pytest.approx(ends, abs=1e-14), name
        assert part[2:] == pytest.approx((sum(ends) / 2, min(ends), max(ends)), abs=1e-14), name
    assert dict(zip(parts(found), found.descriptions, strict=True))[
        "ignore flags, crowd flags"
    ] == ("that difficult objects count")
    assert found.combinations == 256
    assert fsum(found.fractions) == pytest.approx(1, abs=1e-14)


def test_the_worked_example(real_data: Path) -> None:
    """The specification's, on the whole of VOC 2007's test set, digit for digit."""
    folder = real_data / "voc2007-test"
    truth = read_ground_truth(folder / "Annotations")
    tables = truth, read_detections(folder / "detections", truth)
    found = protocol_diff(tables, protocol("voc2012"), protocol("coco"), "AP50")
    assert (found.first.value, found.second.value) == (0.7706458113642893, 0.6762879424942938)
    assert f"{found.total:.10f}" == "-0.0943578689"
    told = {name: [f"{number:+.9f}" for number in part[:3]] for name, part in parts(found).items()}
    assert told == {
        "inclusive pixels": ["-0.003703852", "-0.004604239", "-0.004103638"],
        "ignore flags, crowd flags": ["-0.088905229", "-0.087428525", "-0.088275968"],
        "candidate, equal iou": ["+0.000089556", "+0.000384802", "+0.000253565"],
        "interpolation, precision eps": ["-0.001847409", "-0.002719816", "-0.002241744"],
        "max dets": ["+0.000000487", "+0.000000485", "+0.000000470"],
        "area ranges": ["+0.000008577", "+0.000009424", "+0.000009445"],
        "max iou threshold": ["+0.000000000"] * 3,
        "tie break": ["+0.000000000"] * 3,
    }
    ranges = [[f"{number:.6f}" for number in part[3:]] for part in parts(found).values()]
    assert ranges[:4] == [
        ["-0.004604", "-0.003519"],
        ["-0.089254", "-0.087127"],
        ["0.000074", "0.000451"],
        ["-0.002786", "-0.001715"],
    ]
    assert fsum(part.shapley for part in found.effects) == pytest.approx(found.total, abs=1e-15)


@given(cases(), st.sampled_from([*RANKED]), st.sampled_from([*RANKED]), st.data())
def test_it_adds_up_whatever_the_data(
    case: Case, first: str, second: str, data: st.DataObject
) -> None:
    """Of two presets, in some of the steps between them."""
    one, other = (replace(PRESETS[name], primary_metric="AP") for name in (first, second))
    between = steps(one.only_area_range(0), other.only_area_range(0))
    taken = data.draw(st.permutations(range(len(between)))) if between else []
    changes = [between[number].values(other.only_area_range(0)) for number in taken[:4]]
    other = one.only_area_range(0)
    for values in changes:
        other = replace(other, **values)
    try:
        found = protocol_diff(case.tables(), one, other)
        back = protocol_diff(case.tables(), other, one)
    except UsageError:  # the same, or undefined here
        return
    assert fsum(part.shapley for part in found.effects) == pytest.approx(found.total, abs=1e-15)
    assert [part.shapley for part in back.effects] == pytest.approx(
        [-part.shapley for part in found.effects], abs=1e-15
    )


@given(cases(), st.lists(st.sampled_from([*RANKED]), min_size=2, max_size=4))
def test_matching_once_for_many_gives_the_bits_of_each(case: Case, names: list[str]) -> None:
    protocols = [PRESETS[name] for name in names]
    both = [*protocols, *(entry.with_changes(interpolation="11-point") for entry in protocols)]
    asked = evaluate_protocols(case.tables(), both, lambda result: result.summary)
    for entry, numbers in zip(both, asked, strict=True):
        alone = score_tables(*case.tables(), entry).summary
        assert [repr(value) for value in numbers.values()] == [
            repr(value) for value in alone.values()
        ]


@pytest.mark.parametrize(("first", "second"), [*permutations(PLAIN, 2)])
def test_every_two_presets_have_contexts_that_stand(first: str, second: str) -> None:
    """Axes that contradict each other when only one of them changes are one step."""
    ends = [PRESETS[name] for name in (first, second)]
    alone = [protocol.only_metric(metrics.summary(protocol)[0]) for protocol in ends]
    declared = steps(*alone)
    found = module._merge_dependent(declared, alone, cars())
    assert sorted(axis.name for step in found for axis in step.fields) == sorted(
        axis.name for step in declared for axis in step.fields
    )
    for context in walk_combinations(len(found)):
        score_tables(*cars(), module._combine(alone, found, context))


def test_what_another_pairing_brings_with_it_is_one_step() -> None:
    """Between KITTI and VOC: the pairing, which clashes either way, gives the step its name."""
    found = protocol_diff(
        cars(), protocol("kitti"), replace(protocol("voc2012"), inclusive_pixels=False)
    )
    assert [step.name for step in found.steps] == [
        "crowd flags",
        "matching and 8 more",
        "strict iou",
    ]
    assert {axis.name for axis in found.steps[1].fields} >= {
        "class_iou",
        "min_height",
        "recall_grid",
    }
    assert found.descriptions[1] == "matching by-score instead of kitti, and dependent fields"


def test_twelve_steps_are_walked_only(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = protocol_diff(difficult(), protocol("voc2012"), protocol("coco"), "AP50")
    monkeypatch.setattr(module, "MAX_STEPS", 7)
    walked = protocol_diff(difficult(), protocol("voc2012"), protocol("coco"), "AP50")
    assert (whole.is_exhaustive, walked.is_exhaustive) == (True, False)
    assert walked.combinations == 16
    assert [part[:2] for part in walked.effects] == [part[:2] for part in whole.effects]
    assert all(isnan(number) for part in walked.effects for number in part[2:])
    assert fsum(walked.fractions) == pytest.approx(1, abs=1e-14)


def test_much_data_is_walked_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sum(map(len, difficult()))
    for most, everywhere in ((256 * rows, True), (256 * rows - 1, False)):
        monkeypatch.setattr(module, "MAX_ROWS", most)
        found = protocol_diff(difficult(), protocol("voc2012"), protocol("coco"), "AP50")
        assert found.is_exhaustive == everywhere


def test_what_the_ground_truth_cannot_tell_apart_is_one() -> None:
    truth, _ = difficult()
    coco = protocol("coco")
    same = replace(
        coco, max_iou_threshold=1.0, annotation_id_zero="unmatched", ignore_flags=(), crowd_flags=()
    )
    assert canonical(coco, truth) == canonical(same, truth)
    for other in (
        replace(coco, iou_thresholds=(1.0,)),
        replace(coco, ignore_flags=("difficult", "crowd")),
    ):
        assert canonical(other, truth) != canonical(coco, truth)


def test_flags_that_nothing_bears_are_not_told() -> None:
    coco = protocol("coco")
    found = protocol_diff(difficult(), coco, replace(coco, ignore_flags=("difficult", "crowd")))
    assert found.descriptions == ("that difficult objects are ignored",)
    found = protocol_diff(difficult(), coco, replace(coco, ignore_flags=(), crowd_flags=()))
    assert found.descriptions == ("that crowd objects count",)
    assert found.total == 0
    assert all(isnan(share) for share in found.fractions)


def test_a_number_by_either_name() -> None:
    assert find_metric(protocol("voc2012"), "AP").name == "mAP"
    assert find_metric(protocol("coco"), "mAP75").name == "AP75"
    assert find_metric(protocol("coco"), None).name == "AP"
    with pytest.raises(UnknownNameError, match="protocol voc2012 has no metric 'AP75'"):
        find_metric(protocol("voc2012"), "AP75")


@pytest.mark.parametrize(
    ("first", "second", "at", "message"),
    [
        (
            "coco",
            "coco",
            None,
            "coco and coco do not differ in any field that AP depends on",
        ),
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
        (
            "coco",
            "coco|area-ranges:tiny=0:1",
            "APs",
            "has no metric 'APs'",
        ),
    ],
)
def test_what_has_no_difference(first: str, second: str, at: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("|", r"\|")):
        protocol_diff(difficult(), Protocol.parse(first), Protocol.parse(second), at)


def test_a_number_that_is_undefined() -> None:
    """No cat is larger than 96 by 96."""
    coco = protocol("coco")
    with pytest.raises(
        UsageError,
        match="APl is undefined under coco: all ground truths are ignored",
    ):
        protocol_diff(difficult(), coco, replace(coco, inclusive_pixels=True), "APl")


def test_proposals_differ_from_coco_in_the_recall() -> None:
    found = protocol_diff(difficult(), protocol("coco"), protocol("proposals"), "AR100")
    names = [step.name for step in found.steps]
    assert "class agnostic, matching" in names
    assert primary_value(score_tables(*difficult(), protocol("proposals"))) == found.second.value
