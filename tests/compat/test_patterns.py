"""Every pattern on pycocotools and on the drop-in: same bits, same printed text."""

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pycocotools.coco
import pycocotools.cocoeval
import pycocotools.mask
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detap.compat import pycocotools as ours
from tests.compat.made import made_of
from tests.compat.patterns import PATTERNS, Case, Package
from tests.compat.same import differences
from tests.depth import on_some_images, sampled

THEIRS = Package(
    pycocotools.coco.COCO,
    pycocotools.cocoeval.COCOeval,
    pycocotools.cocoeval.Params,
    pycocotools.mask,
)
BOXES_OR_MASKS = {"step_by_step", "read_and_changed"}
"""Patterns that call computeIoU, which does not support keypoints."""

OURS = Package(ours.COCO, ours.COCOeval, ours.Params, ours.mask)


def seen(pattern: str, package: Package, case: Case) -> dict[str, Any]:
    """Run a pattern and return its results, output or exception."""
    printed = io.StringIO()
    result: dict[str, Any] = {}
    with contextlib.redirect_stdout(printed):
        try:
            result["seen"] = PATTERNS[pattern](package, case)
        except Exception as error:
            result["raised"] = repr(error)
    return {**result, "printed": printed.getvalue()}


def compare(pattern: str, case: Case) -> dict[str, Any]:
    theirs = seen(pattern, THEIRS, case)
    assert differences(seen(pattern, OURS, case), theirs) == []
    return theirs


KINDS = ("bbox", "segm", "keypoints")

REAL = {
    "bbox": ("instances_val2014_100.json", "instances_val2014_fakebbox100_results.json"),
    "segm": ("instances_val2014_100.json", "instances_val2014_fakesegm100_results.json"),
    "keypoints": ("../keypoints/coco79_gt.json", "../keypoints/coco79_dt.json"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_on_real_data(pattern: str, kind: str, real_data: Path, tmp_path: Path) -> None:
    files = [real_data / "coco-val2014-100" / name for name in REAL[kind]]
    truth, results = (json.loads(path.read_text("utf-8")) for path in files)
    data = on_some_images(truth, results, 10)
    outcome = compare(pattern, Case.write(data, tmp_path, kind))
    assert "seen" in outcome or (kind == "keypoints" and pattern in BOXES_OR_MASKS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pattern", PATTERNS)
@settings(settings.get_profile("unshrunk"), max_examples=sampled(12, least=4))
@given(seed=st.integers(0, 2**32 - 1), zero_id=st.booleans(), by_file=st.booleans())
def test_a_pattern_on_random_data(
    pattern: str, kind: str, seed: int, zero_id: bool, by_file: bool
) -> None:
    data = made_of(kind, seed, zero_id=zero_id)
    with tempfile.TemporaryDirectory() as folder:
        compare(pattern, Case.write(data, Path(folder), kind, by_file=by_file))
