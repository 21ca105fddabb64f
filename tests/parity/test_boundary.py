"""coco-boundary: published numbers, worked cases, and every array and match bit for bit.

The reference, bowenc0221/boundary-iou-api 37d2558, runs if a checkout is on the path (it needs
OpenCV). Otherwise its rules are added to pycocotools, with erosion in plain NumPy.
"""

import contextlib
import io
import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pycocotools import mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from detap.errors import UsageError
from detap.evaluation.detection import evaluate
from detap.evaluation.results import Result
from detap.protocols import protocol
from tests.coco import Files, read, saved
from tests.parity.compare import (
    assert_numbers,
    assert_same_arrays,
    assert_same_matches,
    cells_of_coco,
)
from tests.parity.sweep.shapes import case

pytestmark = [
    pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]


def scored(files: Files, ratio: float = 0.02, **more: Any) -> Result:
    rules = protocol("coco-boundary").with_changes(dilation_ratio=ratio)
    return evaluate(*read(files, masks=True), rules, **more)


@pytest.fixture(scope="module")
def files(real_data: Path) -> Files:
    folder = real_data / "coco-val2014-100"
    return (
        folder / "instances_val2014_100.json",
        folder / "instances_val2014_fakesegm100_results.json",
    )


@pytest.mark.parametrize("ratio", [0.02, 0.008])
def test_published_numbers(real_data: Path, files: Files, ratio: float) -> None:
    listed = json.loads((real_data / "coco-val2014-100-masks" / "expected.json").read_text("utf-8"))
    name = f"boundary, dilation ratio {ratio} (boundary-iou-api 37d2558)".replace(" 0.", " .")
    result = scored(files, ratio)
    assert_numbers(result, listed[name]["stats"])
    averages = result.by_class["AP"].tolist()
    ours = {str(k): value for k, value in zip(result.class_ids, averages, strict=True)}
    for category, value in listed[name]["per_category_AP"].items():
        expected = np.nan if value is None else value
        assert ours[category] == pytest.approx(expected, abs=1e-12, nan_ok=True)


CASES = ["shift by 2 pixels, boundary", "boundary and crowd", "boundary honours ignore"]


@pytest.mark.parametrize("name", CASES)
def test_worked_cases(real_data: Path, tmp_path: Path, name: str) -> None:
    listed = json.loads((real_data / "iou-types-cases" / "cases.json").read_text("utf-8"))
    known = {case["name"]: case for case in listed if case["protocol"] == "coco-boundary"}
    assert [*known] == CASES
    files = saved(tmp_path, known[name]["ground_truth"], known[name]["detections"])
    assert_numbers(scored(files), known[name]["expected"])


# --- the rules of the reference, on pycocotools


class BoundaryEval(COCOeval):  # type: ignore[misc]
    """pycocotools with the smaller of mask and boundary IoU, using `ignore`."""

    ratio = 0.02

    def _prepare(self) -> None:
        marked = {n: each.get("ignore", 0) for n, each in self.cocoGt.anns.items()}
        super()._prepare()
        for truths in self._gts.values():
            for each in truths:
                each["ignore"] = marked[each["id"]] or each["iscrowd"]

    def computeIoU(self, image: int, category: int) -> Any:  # noqa: N802 - its name there
        overlaps = super().computeIoU(image, category)
        if not len(overlaps):
            return overlaps
        truths, dts = self._gts[image, category], self._dts[image, category]
        order = np.argsort([-each["score"] for each in dts], kind="mergesort")
        dts = [dts[n] for n in order[: self.params.maxDets[-1]]]
        crowd = [int(each["iscrowd"]) for each in truths]
        of_boundaries = mask.iou(
            [self._boundary(each) for each in dts],
            [self._boundary(each) for each in truths],
            crowd,
        )
        return np.where(np.array(crowd) == 1, overlaps, np.minimum(overlaps, of_boundaries))

    def _boundary(self, record: dict[str, Any]) -> Any:
        """Return the mask pixels near the outside or the image border."""
        whole: NDArray[np.uint8] = mask.decode(record["segmentation"])
        height, width = whole.shape
        depth = max(1, round(self.ratio * math.sqrt(height**2 + width**2)))
        wide = 2 * depth + 1
        x, y, w, h = map(int, mask.toBbox(record["segmentation"]))
        box = whole[y : y + h, x : x + w]
        # The sums over all windows, as differences of sums from the corner.
        sums = np.pad(box, depth).astype(np.int32).cumsum(0).cumsum(1)
        sums = np.pad(sums, ((1, 0), (1, 0)))
        windows = sums[wide:, wide:] - sums[:-wide, wide:] - sums[wide:, :-wide]
        box[windows + sums[:-wide, :-wide] == wide**2] = 0
        return mask.encode(whole)


def assert_same(files: Files, ratio: float, kind: Any, **options: Any) -> Result:
    """Compare precision, recall and matches with those of a pycocotools-like evaluator."""
    with contextlib.redirect_stdout(io.StringIO()):
        made = kind(**options)
        made.evaluate()
        made.accumulate()
    result = scored(files, ratio, matches=True)
    assert_same_arrays(result, made)
    annotations = [each["id"] for each in made.cocoGt.dataset["annotations"]]
    assert_same_matches(result, cells_of_coco(made), annotations)
    return result


def assert_as_on_pycocotools(files: Files, ratio: float) -> Result:
    with contextlib.redirect_stdout(io.StringIO()):
        truths = COCO(str(files[0]))
        detections = truths.loadRes(str(files[1]))
    kind = type("Eval", (BoundaryEval,), {"ratio": ratio})
    return assert_same(files, ratio, kind, cocoGt=truths, cocoDt=detections, iouType="segm")


@pytest.mark.parametrize("ratio", [0.02, 0.008])
def test_every_array_and_match(files: Files, ratio: float) -> None:
    assert_as_on_pycocotools(files, ratio)


def reference(monkeypatch: pytest.MonkeyPatch, name: str) -> Any:
    """Return a module of the reference that starts no processes; they would outlive the test."""
    monkeypatch.setattr(np, "float", float, raising=False)  # gone since NumPy 1.24
    pytest.importorskip("cv2")
    package = "boundary_iou"
    module = pytest.importorskip(f"{package}.{name}", exc_type=ImportError)
    drawing = import_module(f"{package}.utils.boundary_utils")
    alone = drawing.augment_annotations_with_boundary_single_core
    monkeypatch.setattr(
        module,
        "augment_annotations_with_boundary_multi_core",
        lambda records, draw, dilation_ratio: alone(0, records, draw, dilation_ratio),
    )
    return module


@pytest.mark.parametrize("ratio", [0.02, 0.008])
def test_every_array_and_match_of_the_reference_itself(
    files: Files, ratio: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = reference(monkeypatch, "coco_instance_api.coco")
    evaluator = import_module("boundary_iou.coco_instance_api.cocoeval").COCOeval
    with contextlib.redirect_stdout(io.StringIO()):
        truths = api.COCO(get_boundary=True, dilation_ratio=ratio)  # it leaves files open
        truths.dataset = json.loads(files[0].read_text("utf-8"))
        truths.createIndex()
        detections = truths.loadRes(json.loads(files[1].read_text("utf-8")))
    options = {
        "cocoGt": truths,
        "cocoDt": detections,
        "iouType": "boundary",
        "dilation_ratio": ratio,
    }
    assert_same(files, ratio, evaluator, **options)


@pytest.mark.parametrize("seed", range(12))
def test_random_masks_with_crowds_and_ignored_objects(tmp_path: Path, seed: int) -> None:
    files = saved(tmp_path, *case(np.random.default_rng(seed), "segm"))
    assert_as_on_pycocotools(files, [0.02, 0.05, 0.1][seed % 3])


# --- what goes with it


def test_the_dilation_ratio_changes_boundary_iou_only() -> None:
    finer = protocol("coco-boundary").with_changes(dilation_ratio=0.008)
    assert finer.with_changes(iou_type="segm").dilation_ratio == 0.02
    with pytest.raises(UsageError, match=r"dilation_ratio: 0\.0 is outside"):
        finer.with_changes(dilation_ratio=0)
