"""Masks and keypoints in batches, or as arrays, score as COCO files of the same."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pycocotools import mask

import detap
from detap.evaluation.loop.evaluator import Evaluator
from detap.protocols import Protocol, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.coco import Files, read, saved
from tests.laws.test_laws import assert_same_result

pytestmark = pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")

MASKS = ("coco-segm", "coco-boundary", "lvis-segm")
POSES = protocol("coco-keypoints").with_changes(sigmas=(0.05, 0.1, 0.2))
IMAGES = (3, 5, 8, 9)
LISTS = {"neg_category_ids": [1], "not_exhaustive_category_ids": [2]}

Rows = list[dict[str, Any]]


@dataclass
class Batch:
    """Images of `IMAGES` with ground truths and detections as fields of COCO records."""

    truths: Rows
    detections: Rows
    sizes: dict[int, tuple[int, int]]
    masks: bool
    boxed: bool  # whether detections have boxes

    def write(self, folder: str) -> Files:
        images = [
            {"id": image, "height": h, "width": w, **LISTS} for image, (h, w) in self.sizes.items()
        ]
        classes = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
        contents = {"images": images, "annotations": list(map(self.record, self.truths))}
        truth = contents | {"categories": classes}
        return saved(Path(folder), truth, [*map(self.record, self.detections)])

    def record(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row as JSON: a bitmap as pycocotools' run lengths, keypoints in turn."""
        known = {key: value for key, value in row.items() if key not in ("mask", "points")}
        if self.masks:
            runs = mask.encode(np.asfortranarray(row["mask"].astype(np.uint8)))
            known["segmentation"] = {"size": runs["size"], "counts": runs["counts"].decode()}
        else:
            known["keypoints"] = row["points"].ravel().tolist()
            if "id" in row:
                known["num_keypoints"] = int((row["points"][:, 2] > 0).sum())
        if not self.boxed and "score" in row:
            del known["bbox"]
        return known


@st.composite
def loop_cases(draw: st.DrawFn, *, masks: bool) -> Batch:
    """Draw boxes of any float64, so that every last bit of a sum matters; tied scores."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = {image: (int(random.integers(1, 40)), int(random.integers(1, 40))) for image in IMAGES}
    case = Batch([], [], sizes, masks, boxed=draw(st.booleans()))
    for image in IMAGES:
        for _ in range(random.integers(0, 4)):
            row = {
                "image_id": image,
                "category_id": int(random.integers(1, 3)),
                "bbox": (random.random(4) * 40).tolist(),
                "mask": blob(random, *sizes[image]),
                "points": np.hstack([random.random((3, 2)) * 40, random.integers(0, 3, (3, 1))]),
            }
            extra = {"area": random.random() * 2000, "iscrowd": int(random.random() < 0.2)}
            case.truths.append(row | extra | {"id": len(case.truths) + 1})
            for _ in range(random.integers(0, 4)):
                case.detections.append(row | near(random, row))
    return case


def blob(random: np.random.Generator, height: int, width: int) -> NDArray[np.bool_]:
    """Return a rectangle with holes, sometimes empty or the whole image."""
    bits = random.random((height, width)) < random.choice([0.7, 0.95, 1.0])
    bits[: random.integers(0, height + 1)] = False
    bits[:, : random.integers(0, width + 1)] = False
    return bits if random.random() < 0.9 else np.ones_like(bits)


def near(random: np.random.Generator, row: dict[str, Any]) -> dict[str, Any]:
    moved = np.roll(row["mask"], random.integers(0, 2, 2), (0, 1))
    points = row["points"] + np.hstack([random.normal(size=(3, 2)) * 2, np.zeros((3, 1))])
    score = float(random.choice([0.25, 0.5, 0.75]))
    return {"mask": moved, "points": points, "score": score}


def columns(case: Batch, rows: Rows, images: Sequence[int], key: str) -> list[Any]:
    return [[row[key] for row in rows if row["image_id"] == image] for image in images]


def shapes(case: Batch, rows: Rows, images: Sequence[int], form: str) -> dict[str, Any]:
    """Return the masks of each image in one of the accepted forms, or its keypoints."""
    if not case.masks:
        return {"keypoints": columns(case, rows, images, "points")}
    bitmaps = columns(case, rows, images, "mask")
    if form == "runs":
        every = [mask.encode(np.asfortranarray(np.stack(m, -1).view(np.uint8))) if m else []
                 for m in bitmaps]  # fmt: skip
        return {"masks": every}
    if form == "list":
        return {"masks": bitmaps}
    dtype = np.bool_ if form == "bool" else np.uint8
    return {"masks": [np.array(m, dtype) if m else np.zeros((0, 7, 7), dtype) for m in bitmaps]}


def update(evaluator: Evaluator, case: Batch, images: Sequence[int], form: str) -> None:
    def of(rows: Rows, key: str) -> list[Any]:
        return columns(case, rows, images, key)

    truth = None
    if evaluator.ground_truth is None:
        truth = {
            "boxes": of(case.truths, "bbox"),
            "labels": of(case.truths, "category_id"),
            "area": of(case.truths, "area"),
            "crowd": of(case.truths, "iscrowd"),
            **shapes(case, case.truths, images, form),
        }
    evaluator.update(
        images,
        of(case.detections, "bbox") if case.boxed else None,
        of(case.detections, "score"),
        of(case.detections, "category_id"),
        ground_truth=truth,
        **shapes(case, case.detections, images, form),
    )


def of_files(case: Batch, protocol: Protocol) -> tuple[GroundTruth, detap.Result]:
    with tempfile.TemporaryDirectory() as folder:
        truth, detections = read(case.write(folder), **protocol.reading)
    return truth, detap.evaluate(truth, detections, protocol)


FORMS = st.sampled_from(["bool", "uint8", "list", "runs"])
DEALT = st.tuples(st.permutations(IMAGES), st.integers(0, len(IMAGES)))


def check_loop(
    case: Batch, protocol: Protocol, split: tuple[Sequence[int], int], form: str, *, brought: bool
) -> None:
    """Score two batches, and two processes of one each; ground truth given once, or in each."""
    if not case.truths:
        return
    order, cut = split
    truth, whole = of_files(case, protocol)
    given: dict[str, Any] = {"classes": {1: "a", 2: "b"}} if brought else {"ground_truth": truth}
    one = Evaluator(protocol=protocol, **given)
    apart = [Evaluator(protocol=protocol, **given) for _ in range(2)]
    for images, alone in zip((order[:cut], order[cut:]), apart, strict=True):
        for evaluator in (one, alone):
            if images:
                update(evaluator, case, images, form)
    assert_same_result(one.compute(), whole)
    blobs = [evaluator.to_bytes() for evaluator in apart]
    assert_same_result(one.merge(blobs[::-1]).compute(), whole)
    one.reset()
    update(one, case, order, form)
    assert_same_result(one.compute(), whole)


@pytest.mark.parametrize(
    ("name", "brought"), [(n, False) for n in MASKS] + [(n, True) for n in MASKS[:2]]
)
@given(loop_cases(masks=True), DEALT, FORMS)
def test_masks_in_batches(
    name: str, brought: bool, case: Batch, split: tuple[Sequence[int], int], form: str
) -> None:
    check_loop(case, protocol(name), split, form, brought=brought)


@pytest.mark.parametrize("brought", [False, True])
@given(loop_cases(masks=False), DEALT)
def test_keypoints_in_batches(brought: bool, case: Batch, split: tuple[Sequence[int], int]) -> None:
    check_loop(case, POSES, split, "", brought=brought)


@pytest.mark.parametrize("masks", [True, False])
@given(st.data())
def test_arrays(masks: bool, data: st.DataObject) -> None:
    case = data.draw(loop_cases(masks=masks))
    rules = protocol("coco-segm") if masks else POSES
    if not case.truths:
        return
    _, whole = of_files(case, rules)
    key, name = ("mask", "masks") if masks else ("points", "keypoints")

    def table(rows: Rows, *, boxed: bool = True) -> dict[str, Any]:
        columns = {
            "image": [row["image_id"] for row in rows],
            "label": [row["category_id"] for row in rows],
            name: [row[key] for row in rows],
        }
        boxes = {"boxes": [row["bbox"] for row in rows], "box_format": "xywh"}
        return columns | (boxes if boxed else {"box_format": "xywh"})

    truth = GroundTruth.from_arrays(
        **table(case.truths),
        area=[row["area"] for row in case.truths],
        crowd=[row["iscrowd"] for row in case.truths],
        images=IMAGES,
        classes={1: "a", 2: "b"},
    )
    columns = Detections.from_arrays(
        **table(case.detections, boxed=case.boxed),
        score=[row["score"] for row in case.detections],
    )
    assert_same_result(detap.evaluate(truth, columns, rules), whole)


@given(loop_cases(masks=True), loop_cases(masks=False))
def test_records(masks: Batch, poses: Batch) -> None:
    for case, rules in ((masks, protocol("coco-segm")), (poses, POSES)):
        if case.truths:
            truth, whole = of_files(case, rules)
            evaluator = Evaluator(truth, rules)
            evaluator.update_records(IMAGES, map(case.record, case.detections))
            assert_same_result(evaluator.compute(), whole)
