"""Small polygon files need little memory, or are refused by name."""

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as reference

from detap.core.masks import runs_of
from detap.tables.masks import Masks
from tests.coco import saved, truth_of
from tests.reliability.runner import SANITIZED
from tests.reliability.test_faults import ENVIRONMENT, check_failure

pytestmark = pytest.mark.skipif(SANITIZED, reason="AddressSanitizer takes terabytes of addresses")

GIBIBYTE = 1 << 30
SQUARE = [10, 10, 10, 90, 90, 90, 90, 10]


def zigzag(points: int, width: int, height: int) -> list[int]:
    """Return a polygon with every edge across all columns."""
    rows = np.linspace(0, height - 1, points).astype(int).tolist()
    return [value for i, row in enumerate(rows) for value in (width * (i % 2), row)]


def scattered(points: int, width: int, height: int) -> list[int]:
    drawn = np.random.default_rng(5).integers(0, [width, height], (points, 2))
    return [int(value) for value in drawn.ravel()]


CASES: dict[str, tuple[int, int, list[int]]] = {
    "1e7 x 1e7": (10**7, 10**7, [0, 0, 0, 10**7, 10**7, 10**7, 10**7, 0]),
    "1e8 x 1e8": (10**8, 10**8, [0, 0, 0, 10**8, 10**8, 10**8, 10**8, 0]),
    "2 x 2e9": (2, 2 * 10**9, [0, 0, 10**8, 2, 10**8, 0]),
    "22 KB": (65_000, 65_000, zigzag(2200, 65_000, 65_000)),
}
REFUSED = {
    "1e7 x 1e7": "image has height 10000000 and width 10000000 (100000000000000 pixels); masks are "
    "limited to 4294967295 pixels",
    "1e8 x 1e8": "image has height 100000000 and width 100000000 (10000000000000000 pixels)",
    "2 x 2e9": "segmentation has up to 200000001 runs, those of its image 200000001, above the "
    "limit of 8388608; simplify the polygons, or raise --max-mask-runs",
    "22 KB": "above the limit of 8388608; simplify the polygons, or raise --max-mask-runs",
}


def write(folder: Path, height: int, width: int, gt: list[Any], dt: list[Any]) -> None:
    """Write a ground truth and results, of one object each."""
    rows = [(1, 1, [0, 0, 90, 90])]
    truth = truth_of(rows, {1: "cat"}, [1], size=(width, height), segmentation=[gt])
    result = {"image_id": 1, "category_id": 1, "score": 0.9, "segmentation": [dt]}
    saved(folder, truth, [result])


def evaluate(
    folder: Path, *options: str, limit: int = GIBIBYTE
) -> "subprocess.CompletedProcess[bytes]":
    line = ["eval", "--iou-type", "segm", "--gt", "gt.json", "--dt", "dt.json", *options]
    return subprocess.run(
        [sys.executable, "-m", "detap", *line],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


@pytest.mark.parametrize("side", ["ground truth", "results"])
@pytest.mark.parametrize("case", CASES)
def test_a_polygon_that_needs_much_memory_is_refused(case: str, side: str, tmp_path: Path) -> None:
    height, width, polygon = CASES[case]
    if side == "ground truth":
        write(tmp_path, height, width, polygon, SQUARE)
    else:
        write(tmp_path, height, width, SQUARE, polygon)
    if "e7" in case or "e8" in case:  # any polygon on it is refused
        side = "ground truth"
    said = check_failure(evaluate(tmp_path), {2})
    where = {"ground truth": "gt.json: annotations[0]", "results": "dt.json: [0]"}[side]
    assert where in said
    assert REFUSED[case] in " ".join(said.split())


@pytest.mark.parametrize("side", ["ground truth", "results"])
def test_many_points_need_no_more_memory_than_the_pixels(side: str, tmp_path: Path) -> None:
    polygon = scattered(100_000, 640, 480)
    polygon[::2] = [0, 640] * 50_000  # every edge crosses all columns
    pair = (polygon, SQUARE) if side == "ground truth" else (SQUARE, polygon)
    write(tmp_path, 480, 640, *pair)
    done = evaluate(tmp_path, limit=3 * GIBIBYTE // 4)
    assert done.returncode == 0, done.stderr


def test_the_limit_covers_all_polygons_of_an_image_and_can_be_raised(tmp_path: Path) -> None:
    write(tmp_path, 1000, 1000, SQUARE, SQUARE)
    # 80 columns, twice, and an end
    said = check_failure(evaluate(tmp_path, "--max-mask-runs", "160"), {2})
    assert "has up to 161 runs, those of its image 161, above the limit of 160" in said
    done = evaluate(tmp_path, "--max-mask-runs", "161", "--output-format", "json")
    assert json.loads(done.stdout)["summary"]["AP"] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("height", [1, 7, 100])
def test_crossings_that_cancel_out_give_the_runs_of_pycocotools(height: int) -> None:
    polygon = scattered(6_000, 97, height)  # 200,000 crossings: more than are kept uncancelled
    expected = reference.frPyObjects([polygon], height, 97)[0]
    masks = Masks(
        np.array([[height, 97]], np.int32),
        np.zeros(2, np.int64),
        np.zeros(0, np.uint32),
        np.array([0, 1]),
        np.array([6_000]),
        np.array(polygon, float).reshape(-1, 2),
    )
    runs = runs_of(masks.arrays, 0)
    listed = {"size": [height, 97], "counts": runs.tolist()}
    assert reference.frPyObjects(listed, height, 97) == expected
