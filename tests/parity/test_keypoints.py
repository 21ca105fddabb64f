"""coco-keypoints against pycocotools: published numbers, worked cases, every array bit by bit."""

import contextlib
import copy
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detap.analysis.crosscheck import cross_check
from detap.errors import UsageError
from detap.evaluation.detection import evaluate
from detap.evaluation.results import Result
from detap.evaluation.scoring import on_images
from detap.protocols import Protocol, protocol
from tests.coco import read, saved
from tests.parity.compare import assert_numbers, assert_same_arrays, assert_same_bits
from tests.parity.reference import _matches

pytestmark = pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")

RULES = protocol("coco-keypoints")
FILES = {
    "example_coco (pycocotools 2.0.11)": ("example_coco_val", "example_coco_preds"),
    "coco79 (pycocotools 2.0.11)": ("coco79_gt", "coco79_dt"),
}
WITH_BOXES = (
    "coco79, each row given a bbox = extent of its keypoints: same areas (pycocotools 2.0.11)"
)
CROWD_POSE = "example_crowdpose (xtcocotools 1.14.3, keypoints_crowd, use_area False, 14 sigmas)"


@pytest.fixture(scope="module")
def folder(real_data: Path) -> Path:
    return real_data / "keypoints"


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return values


def load(folder: Path, *names: str) -> list[Any]:
    return [json.loads((folder / f"{name}.json").read_text()) for name in names]


def scored(truth: Any, results: Any, protocol: Protocol = RULES, **more: Any) -> Result:
    """Return the result of two files with these contents."""
    with tempfile.TemporaryDirectory() as made:
        tables = read(saved(Path(made), truth, results), keypoints=True)
    return evaluate(*tables, protocol, **more)


def reference_eval(truth: Any, detections: Any, protocol: Protocol = RULES) -> COCOeval:
    """Return pycocotools' evaluation of the same; annotations are numbered from 1."""
    truths = COCO()
    truths.dataset = copy.deepcopy(truth)
    for number, record in enumerate(truths.dataset["annotations"], 1):
        record["id"] = number
    with contextlib.redirect_stdout(io.StringIO()):
        truths.createIndex()
        reference = COCOeval(truths, truths.loadRes(copy.deepcopy(detections)), "keypoints")
        reference.params.kpt_oks_sigmas = np.array(protocol.sigmas)
        reference.evaluate()
        reference.accumulate()
    return reference


def assert_same(truth: Any, detections: Any, protocol: Protocol = RULES) -> None:
    """Compare every OKS, match, precision and recall."""
    reference = reference_eval(truth, detections, protocol)
    result = scored(truth, detections, protocol, matches=True)
    assert_same_overlaps(result, reference)
    assert result.matches is not None
    matched, ignored, counted = _matches(reference, len(detections))
    assert_same_bits(result.matches.ground_truth, matched, "matches")
    assert_same_bits(result.matches.ignored, ignored, "ignored")
    assert_same_bits(result.matches.counted, counted, "counted")
    assert_same_arrays(result, reference)


def assert_same_overlaps(result: Result, reference: COCOeval) -> None:
    generated = result._run
    truths, dts = generated.ground_truth, generated.detections
    for (image, label), expected in reference.ious.items():
        cell = truths.images.index(image), truths.class_ids.index(label)
        rows, among = (
            np.flatnonzero((table.image == cell[0]) & (table.label == cell[1]))
            for table in (dts, truths)
        )
        ranked = rows[np.argsort(-dts.score[rows], kind="stable")][: len(expected)]
        if len(expected):
            assert_same_bits(
                generated.overlaps(generated.boxes(), ranked, among), expected, f"image {image}"
            )


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("match_table", [False, True])
def test_published_numbers(
    folder: Path, expected: dict[str, Any], name: str, match_table: bool
) -> None:
    truth, detections = load(folder, *FILES[name])
    result = scored(truth, detections, match_table=match_table)
    assert_numbers(result, expected[name]["stats"])
    assert result.summary["AP"] == expected[name]["per_category_AP"]["1"]
    assert [*result.summary] == [*expected[name]["stats"]]


@pytest.mark.parametrize("name", FILES)
def test_every_array_equals_pycocotools(folder: Path, name: str) -> None:
    assert_same(*load(folder, *FILES[name]))


def boxed(row: dict[str, Any]) -> dict[str, Any]:
    x, y = row["keypoints"][0::3], row["keypoints"][1::3]
    return row | {"bbox": [min(x), min(y), max(x) - min(x), max(y) - min(y)]}


def test_a_bbox_around_the_keypoints_does_not_change_results(
    folder: Path, expected: dict[str, Any]
) -> None:
    truth, detections = load(folder, "coco79_gt", "coco79_dt")
    result = scored(truth, [boxed(row) for row in detections])
    assert_numbers(result, expected[WITH_BOXES]["stats"])


def test_the_bbox_area_decides_the_area_range(folder: Path) -> None:
    """Each row with a bbox by itself; a note counts the rows that another area would move."""
    truth, detections = load(folder, "coco79_gt", "coco79_dt")
    small = [row | {"bbox": [5, 5, 40, 40]} for row in detections]
    assert_same(truth, small)
    moved, plain = scored(truth, small), scored(truth, detections)
    assert moved.summary["AP"] == plain.summary["AP"]
    assert moved.summary["APm"] < plain.summary["APm"]
    (note,) = [note for note in moved.notes if note.code == "detection-area-of-box"]
    assert "another area range than their keypoints;" in note.message
    extent = RULES.with_changes(detection_area="extent")
    assert scored(truth, small, extent).summary == plain.summary
    mixed = scored(truth, small[:200] + detections[200:])
    expected = np.array(
        [1600.0] * 200 + [w * h for *_, w, h in (boxed(r)["bbox"] for r in detections[200:])]
    )
    assert_same_bits(mixed._run.boxes()[0].area, expected, "areas")


def test_crowd_pose(folder: Path, expected: dict[str, Any]) -> None:
    """14 keypoints, an area of .53 of the box, and no area ranges."""
    truth, detections = load(folder, "example_crowdpose_val", "example_crowdpose_preds")
    for record in truth["annotations"]:
        record["area"] = record["bbox"][2] * record["bbox"][3] * 0.53
    with pytest.raises(
        UsageError, match=r"the protocol has 17 sigmas, but rows of the .* have 14 keypoints"
    ):
        scored(truth, detections)
    protocol = RULES.with_changes(sigmas=tuple(expected[CROWD_POSE]["sigmas"]))
    assert Protocol.parse("coco-keypoints|sigmas:crowdpose") == protocol
    stats = expected[CROWD_POSE]["stats"]
    numbers = {name: value for name, value in stats.items() if "P " not in name}
    assert len(numbers) == 6
    result = scored(truth, detections, protocol)
    assert_numbers(result, numbers)
    assert_same(truth, detections, protocol)
    # Its three parts, by how crowded an image is, are slices; it rounds them.
    crowded = [(image["id"], image["crowdIndex"]) for image in truth["images"]]
    for name, low, high in (("easy", -1, 0.2), ("medium", 0.2, 0.8), ("hard", 0.8, 1)):
        part = on_images(result, [image for image, index in crowded if low < index <= high])
        assert round(part.summary["AP"], 4) == stats[f"AP {name}"], name


def cases() -> list[str]:
    return [
        "nose 6 px off",
        "nose 6 px off, hip exact",
        "ground truth without keypoints",
        "an ignored one matches only one",
        "a crowd matches all",
        "10 px left of the doubled box",
        "area of a detection: extent of its keypoints",
        "area of a detection: its bbox",
        "21 persons",
    ]


@pytest.mark.parametrize("name", cases())
def test_worked_cases(real_data: Path, name: str) -> None:
    listed = json.loads((real_data / "iou-types-cases" / "cases.json").read_text())
    worked = [case for case in listed if case["protocol"] == "coco-keypoints"]
    case = dict(zip(cases(), worked, strict=True))[name]
    result = scored(case["ground_truth"], case["detections"])
    assert_numbers(result, case["expected"])
    if "oks" in case:
        generated = result._run
        rows = np.argsort(-generated.detections.score, kind="stable")
        ours = generated.overlaps(generated.boxes(), rows, np.arange(len(generated.ground_truth)))
        assert_same_bits(ours, case["oks"], "OKS")
    assert_same(case["ground_truth"], case["detections"])


@pytest.mark.parametrize("changes", [{}, {"detection_area": "extent"}, {"area_source": "box"}])
@pytest.mark.parametrize("name", FILES)
def test_cross_check(folder: Path, name: str, changes: dict[str, Any]) -> None:
    truth, detections = load(folder, *FILES[name])
    protocol = RULES.with_changes(iou_thresholds=(0.5, 0.75), **changes)
    check = cross_check(scored(truth, detections, protocol))
    assert check.equal
    assert check.metrics["AP50"][0] > 0.3


coordinate = st.one_of(st.integers(-20, 120), st.floats(-20, 120, width=32))


@st.composite
def keypoint_cases(draw: st.DrawFn) -> tuple[Any, Any, Protocol]:
    """Draw objects with any number of labeled keypoints, and detections nearby."""
    count = draw(st.sampled_from([1, 2, 5, 7, 8, 9, 16, 17, 20, 136]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sigmas = tuple((random.integers(20, 110, count) / 1000).tolist())
    whole = draw(st.booleans())

    def placed(values: Any) -> list[Any]:
        return [int(v) for v in values] if whole else [float(v) for v in values]

    truths, detections = [], []
    for number in range(1, draw(st.integers(1, 7)) + 1):
        points = random.uniform(0, 100, (count, 2))
        share = draw(st.sampled_from([0.0, 0.3, 1.0]))
        seen = (random.random(count) < share) * random.integers(1, 3, count)
        truth = {
            "id": number,
            "image_id": int(random.integers(1, 3)),
            "category_id": int(random.integers(1, 3)),
            "bbox": placed(random.uniform(1, 60, 4)),
            "area": float(random.choice([0, 900, 1024, 4000, 9216, 20000.5])),
            "iscrowd": int(random.random() < 0.2),
            "num_keypoints": int(np.count_nonzero(seen)) if draw(st.booleans()) else 0,
            "keypoints": placed(np.column_stack([points, seen]).ravel()),
        }
        truths.append(truth)
        for _ in range(draw(st.integers(0, 3))):
            moved = points + random.normal(0, draw(st.sampled_from([0.0, 2.0, 9.0])), points.shape)
            detections.append(
                {
                    "image_id": truth["image_id"],
                    "category_id": int(random.integers(1, 3)),
                    "score": draw(st.sampled_from([0.25, 0.5, 0.75])),
                    "keypoints": placed(np.column_stack([moved, np.ones(count)]).ravel()),
                }
            )
    far = {"image_id": 1, "category_id": 1, "score": 0.5, "keypoints": [500, 500, 1] * count}
    detections = detections or [far]
    instances = {
        "images": [{"id": 1}, {"id": 2}],
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        "annotations": truths,
    }
    return instances, detections, RULES.with_changes(sigmas=sigmas)


@given(keypoint_cases())
def test_random_cases_equal_pycocotools(generated: tuple[Any, Any, Protocol]) -> None:
    assert_same(*generated)
