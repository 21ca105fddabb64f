"""pycocotools.mask.iou as the kernel: COCO segmentation results from pairs, bit for bit."""

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detap.core.arrays import Boxes, Pairs
from detap.core.matching import accumulate, match_and_accumulate
from detap.evaluation.match import match_params
from detap.protocols import protocol
from tests.parity.compare import assert_same_bits


@pytest.fixture(scope="module")
def reference(real_data: Path) -> COCOeval:
    folder = real_data / "coco-val2014-100"
    with contextlib.redirect_stdout(io.StringIO()):
        truths = COCO(str(folder / "instances_val2014_100.json"))
        detections = truths.loadRes(str(folder / "instances_val2014_fakesegm100_results.json"))
        evaluator = COCOeval(truths, detections, "segm")
        evaluator.params.imgIds = sorted(truths.getImgIds())
        evaluator.evaluate()
        evaluator.accumulate()
    return evaluator


def columns(records: list[dict[str, Any]], evaluator: COCOeval) -> Boxes:
    image = {name: n for n, name in enumerate(evaluator.params.imgIds)}
    label = {name: n for n, name in enumerate(evaluator.params.catIds)}
    return Boxes(
        image=np.array([image[record["image_id"]] for record in records], np.int32),
        label=np.array([label[record["category_id"]] for record in records], np.int32),
        corners=np.zeros((0, 4)),
        overlap_area=np.zeros(0),
        area=np.array([record["area"] for record in records], np.float64),
        score=np.array([record.get("score", 0.0) for record in records]),
    )


def mask_pairs(
    detections: Boxes,
    truths: Boxes,
    segmentations: list[Any],
    annotated: list[Any],
    crowd: list[int],
) -> Pairs:
    """Return the overlapping pairs of masks of one image and class."""
    cells: dict[tuple[int, int], list[int]] = {}
    for row, cell in enumerate(zip(truths.image.tolist(), truths.label.tolist(), strict=True)):
        cells.setdefault(cell, []).append(row)
    counts, rows, values = [], [], []
    for one, cell in zip(
        segmentations,
        zip(detections.image.tolist(), detections.label.tolist(), strict=True),
        strict=True,
    ):
        there = cells.get(cell, [])
        table = mask.iou([one], [annotated[row] for row in there], [crowd[row] for row in there])
        kept = [n for n in range(len(there)) if table[0, n] > 0]
        counts.append(len(kept))
        rows += [there[n] for n in kept]
        values += [table[0, n] for n in kept]
    start = np.append(0, np.cumsum(counts)).astype(np.int64)
    return Pairs(start, np.array(rows, np.int32), np.array(values))


def test_segmentation_is_pycocotools_to_the_last_bit(reference: COCOeval) -> None:
    truths, results_coco = reference.cocoGt, reference.cocoDt
    records, results = truths.dataset["annotations"], results_coco.dataset["annotations"]
    left, right = columns(results, reference), columns(records, reference)
    crowd = np.array([record["iscrowd"] for record in records])
    pairs = mask_pairs(
        left,
        right,
        [result["segmentation"] for result in results],
        [truths.annToRLE(record) for record in records],
        crowd.tolist(),
    )
    assert len(pairs.truth) > 500
    flags = crowd.astype(np.bool_)
    scores = match_and_accumulate(
        left,
        right,
        ignored=flags,
        crowd=flags,
        unmatchable=np.zeros(len(flags), np.bool_),
        images=len(reference.params.imgIds),
        classes=len(reference.params.catIds),
        params=match_params(protocol("coco")),
        pairs=pairs,
        all_max_dets=True,
        match_table=[],
    )
    precision = np.where(reference.eval["precision"] == -1, np.nan, reference.eval["precision"])
    recall = np.where(reference.eval["recall"] == -1, np.nan, reference.eval["recall"])
    assert_same_bits(scores.precision.transpose(2, 3, 4, 1, 0), precision, "precision")
    assert_same_bits(scores.recall, recall, "recall")
    assert scores.match_table is not None
    again = accumulate(scores.match_table, all_max_dets=True)
    assert_same_bits(again.precision, scores.precision, "precision from evidence")
    every = precision[:, :, :, 0, 2]
    # The figure of the data's README, for the masks of COCO's sample.
    assert np.mean(every[~np.isnan(every)]) == pytest.approx(0.3195452758576433, abs=1e-15)
