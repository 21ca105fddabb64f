"""Group-of boxes and verified classes: TensorFlow's values, cases by hand, and invariants."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.core.matching import accumulate
from detap.errors import UsageError
from detap.evaluation.detection import Result, evaluate
from detap.evaluation.scoring import on_images
from detap.evaluation.selection import select
from detap.formats.openimages.tables import read_detections, read_ground_truth
from detap.protocols import Protocol, protocol
from detap.tables.detection import Detections, GroundTruth, Name
from tests.cases import Case, Detection, Truth, cases
from tests.depth import examples
from tests.parity.compare import assert_same_bits

V2, CHALLENGE = protocol("open-images-v2"), protocol("open-images-challenge")
REFERENCE = {
    "challenge (group-of weight 1, verified labels)": CHALLENGE,
    "V2 (group-of weight 0)": V2,
}
BOX, AWAY = (0.0, 0.0, 20.0, 20.0), (200.0, 0.0, 20.0, 20.0)
GROUP = (50.0, 50.0, 40.0, 40.0)
INSIDE, ALSO = (50.0, 50.0, 20.0, 20.0), (70.0, 70.0, 20.0, 20.0)


def tables(case: Case) -> tuple[GroundTruth, Detections]:
    """Return the tables of a case, with image-level labels."""
    truth, detections = case.tables()
    return replace(truth, listed={"negative": np.zeros((0, 2), np.int32)}), detections


def average(case: Case, protocol: Protocol) -> float:
    return float(evaluate(*tables(case), protocol).average_precision[0, 0, 0])


def around(*groups: tuple[float, float, float, float], box: bool = True) -> tuple[Truth, ...]:
    single = (Truth(1, 1, BOX),) if box else ()
    return (*single, *(Truth(1, 1, group, group=True) for group in groups))


def dts(
    *detections: tuple[tuple[float, float, float, float], float],
) -> tuple[Detection, ...]:
    return tuple(Detection(1, 1, box, score) for box, score in detections)


# --- numbers of TensorFlow


@pytest.mark.parametrize("name", REFERENCE)
def test_ap_of_every_class_equals_tensorflow(real_data: Path, name: str) -> None:
    folder = real_data / "open-images-150"
    expected = json.loads((folder / "expected.json").read_text("utf-8"))[name]
    truth = read_ground_truth(folder / "boxes.csv", image_labels=folder / "labels.csv")
    result = evaluate(truth, read_detections(folder / "predictions.csv", truth), REFERENCE[name])
    ours = dict(zip(result.classes, result.average_precision[0, :, 0].tolist(), strict=True))
    for class_name, value in expected["per_class"].items():
        required = np.nan if value is None else value
        np.testing.assert_allclose(
            ours[class_name], required, rtol=0, atol=1e-12, err_msg=class_name
        )
    assert abs(result.summary["mAP"] - expected["mAP"]) < 1e-12


def tables_of(case: dict[str, Any]) -> tuple[GroundTruth, Detections]:
    names = {entry["id"]: entry["name"] for entry in case["classes"]}

    def columns(side: str) -> dict[str, Any]:
        rows = [
            (image, names[label], [box[1], box[0], box[3], box[2]])
            for image, entry in case[side].items()
            for box, label in zip(entry["boxes"], entry["classes"], strict=True)
        ]
        image, label, boxes = map(list, zip(*rows, strict=True))
        return {"image": image, "label": label, "boxes": boxes, "as_is": True}

    truths, detections = case["ground_truth"], case["detections"]
    return GroundTruth.from_arrays(
        **columns("ground_truth"),
        group_of=[bool(flag) for entry in truths.values() for flag in entry["group_of"]],
        listed={
            "negative": [(i, names[k]) for i, entry in truths.items() for k in entry["verified"]]
        },
        images=[*truths],
        classes=[*names.values()],
    ), Detections.from_arrays(
        **columns("detections"), score=[s for entry in detections.values() for s in entry["scores"]]
    )


def test_worked_cases_equal_tensorflow(real_data: Path) -> None:
    listed = json.loads((real_data / "iou-types-cases" / "cases.json").read_text("utf-8"))
    listed = [case for case in listed if case["protocol"].startswith("open-images")]
    assert len(listed) == 20
    for case in listed:
        result = evaluate(*tables_of(case), case["protocol"], as_is=True)
        for name, value in case["expected"]["per_class"].items():
            ours = result.average_precision[0, result.classes.index(name), 0]
            expected = np.nan if value is None else value
            message = f"{case['name']}, {case['protocol']}, {name}"
            np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12, err_msg=message)


# --- cases by hand


@pytest.mark.parametrize(
    ("truths", "detections", "v2", "challenge"),
    [
        # False positive, box, group: 0 1 over one box; 0 1 1 over two.
        (around(GROUP), dts((AWAY, 0.95), (BOX, 0.7), (INSIDE, 0.2)), 1 / 2, 2 / 3),
        # No detection lies in the group: it is missed if groups count.
        (around(GROUP), dts((BOX, 0.7)), 1.0, 1 / 2),
        # Two lie in it: one finds it, the other is ignored.
        (around(GROUP), dts((INSIDE, 0.9), (ALSO, 0.8), (BOX, 0.7)), 1.0, 1.0),
        # Both lie in both groups wholly: the first takes them, the other is missed.
        (around(GROUP, (45.0, 45.0, 50.0, 50.0), box=False), dts((INSIDE, 0.9), (ALSO, 0.8)),
         np.nan, 1 / 2),
        # A group that holds more of a detection than another, though later in the file.
        (around((60.0, 60.0, 40.0, 40.0), GROUP, box=False),
         dts(((52.0, 52.0, 20.0, 20.0), 0.9), ((75.0, 75.0, 20.0, 20.0), 0.8)), np.nan, 1.0),
        # Half of a detection suffices, less does not.
        (around(GROUP), dts(((50.0, 40.0, 20.0, 20.0), 0.9), (BOX, 0.7)), 1.0, 1.0),
        (around(GROUP), dts(((50.0, 39.0, 20.0, 20.0), 0.9), (BOX, 0.7)), 1 / 2, 1 / 4),
        # A duplicate of a box lies in a group.
        (around((0.0, 0.0, 50.0, 50.0)), dts((BOX, 0.9), (BOX, 0.8)), 1.0, 1.0),
        # What scores 0 vanishes in a group, and does not find it.
        (around(GROUP), dts((BOX, 0.7), (INSIDE, 0.0)), 1.0, 1 / 2),
        # A flat box is no detection.
        (around(), dts(((5.0, 5.0, 0.0, 9.0), 0.9), ((5.0, 5.0, 9.0, 0.0), 0.8), (BOX, 0.7)),
         1.0, 1.0),
    ],
)  # fmt: skip
def test_by_hand(
    truths: tuple[Truth, ...], detections: tuple[Detection, ...], v2: float, challenge: float
) -> None:
    case = Case(truths, detections)
    np.testing.assert_allclose(average(case, V2), v2, rtol=0, atol=1e-15)
    np.testing.assert_allclose(average(case, CHALLENGE), challenge, rtol=0, atol=1e-15)


def test_group_of_is_ignored_by_other_protocols() -> None:
    case = Case(around(GROUP), dts((BOX, 0.9), (GROUP, 0.8)))
    plain = replace(V2, group_of_weight=None)
    assert average(case, plain) == 1.0
    assert average(Case(case.truths, dts((BOX, 0.9), (INSIDE, 0.8))), plain) == 0.5


def test_a_group_is_matched_at_each_threshold_separately() -> None:
    """Three quarters of it lie in the group: enough at .5 and .7, not at .8."""
    case = Case(around(GROUP), dts(((45.0, 50.0, 20.0, 20.0), 0.9), (BOX, 0.8)))
    result = evaluate(*tables(case), replace(CHALLENGE, iou_thresholds=(0.5, 0.7, 0.8)))
    np.testing.assert_allclose(result.average_precision[:, 0, 0], [1.0, 1.0, 0.25])


def test_only_verified_classes_count() -> None:
    """Class 2 of image 1 is a false positive only if verified as absent."""
    truth: dict[str, Any] = {"image": [1, 2], "label": [1, 2], "boxes": [(0, 0, 20, 20)] * 2}
    detections = Detections.from_arrays(
        image=[1, 1, 2],
        label=[1, 2, 2],
        boxes=[(0, 0, 20, 20), (50, 0, 70, 20), (0, 0, 20, 20)],
        score=[0.9, 0.95, 0.8],
    )

    def run(listed: dict[str, list[tuple[Name, Name]]], protocol: Protocol) -> Result:
        return evaluate(GroundTruth.from_arrays(**truth, listed=listed), detections, protocol)

    nothing: list[tuple[Name, Name]] = []
    assert run({}, V2).summary["mAP"] == 0.75
    left_out = run({"negative": nothing}, CHALLENGE)
    assert left_out.summary["mAP"] == 1.0
    assert left_out.within_max_dets.tolist() == [1, 1]
    (note,) = (note for note in left_out.notes if note.code == "unverified")
    assert (note.count, note.severity) == (1, "info")
    assert run({"negative": [(1, 2)]}, CHALLENGE).summary["mAP"] == 0.75
    assert run({"negative": nothing, "positive": [(1, 2)]}, CHALLENGE).summary["mAP"] == 0.75
    with pytest.raises(UsageError, match=r"--image-labels.*the ground truth lacks them"):
        run({}, CHALLENGE)


@given(cases(), st.sets(st.tuples(st.integers(0, 2), st.integers(0, 2))))
@examples(100)
def test_detections_of_unverified_classes_do_not_change_results(
    case: Case, pairs: set[tuple[int, int]]
) -> None:
    truth, detections = case.tables()
    places = {(i, k) for i, k in pairs if i < len(truth.images) and k < len(truth.classes)}
    negative = np.array(sorted(places), np.int32).reshape(-1, 2)
    truth = replace(truth, listed={"negative": negative})
    known = places | set(zip(truth.image.tolist(), truth.label.tolist(), strict=True))
    where = zip(detections.image.tolist(), detections.label.tolist(), strict=True)
    kept = detections.select(np.array([pair in known for pair in where], np.bool_))
    ours = evaluate(truth, detections, CHALLENGE)
    theirs = evaluate(truth, kept, replace(CHALLENGE, verified="all"))
    assert_same_bits(ours.average_precision, theirs.average_precision, "average")
    assert_same_bits(ours.false_positives, theirs.false_positives, "false positives")
    assert_same_bits(ours.within_max_dets, theirs.within_max_dets, "within")


# --- whatever else is asked


@given(cases(), st.sampled_from(["open-images-v2", "open-images-challenge"]), st.integers(1, 8))
@examples(60)
def test_the_match_table_keeps_group_of_matches(case: Case, protocol: str, threads: int) -> None:
    """Accumulated again, and on some images: the same bits."""
    result = evaluate(*tables(case), protocol, threads=threads)
    kept = result.match_table
    again = accumulate(kept)
    assert_same_bits(again.average, result.average_precision, "average")
    assert_same_bits(again.recall, result.recall, "recall")
    image = case.images[-1]
    alone = on_images(result, [image])
    anew = evaluate(*select(*tables(case), images=[image]), protocol)
    assert_same_bits(alone.average_precision, anew.average_precision, "on an image")
    assert not (kept.true_positive & kept.ignored).any()
