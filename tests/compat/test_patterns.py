"""Every pattern on pycocotools and on the drop-in: the same bits, the same printed characters."""

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
from tests.compat.made import made
from tests.compat.patterns import PATTERNS, Case, Package
from tests.compat.same import differences

THEIRS = Package(
    pycocotools.coco.COCO,
    pycocotools.cocoeval.COCOeval,
    pycocotools.cocoeval.Params,
    pycocotools.mask,
)
OURS = Package(ours.COCO, ours.COCOeval, ours.Params, ours.mask)


def seen(pattern: str, package: Package, case: Case) -> dict[str, Any]:
    """Run a pattern and return what it shows, prints or raises."""
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


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_on_real_data(pattern: str, real_data: Path, tmp_path: Path) -> None:
    folder = real_data / "coco-val2014-100"
    truth = json.loads((folder / "instances_val2014_100.json").read_text("utf-8"))
    results = json.loads((folder / "instances_val2014_fakebbox100_results.json").read_text("utf-8"))
    assert "seen" in compare(pattern, Case.write((truth, results), tmp_path))


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(settings.get_profile("unshrunk"), max_examples=12)
@given(seed=st.integers(0, 2**32 - 1), zero_id=st.booleans())
def test_a_pattern_on_made_data(pattern: str, seed: int, zero_id: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        compare(pattern, Case.write(made(seed, zero_id=zero_id), Path(folder)))
