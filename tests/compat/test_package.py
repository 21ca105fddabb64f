"""The drop-in as a package: its name taken over, what it refuses, what it leaves alone."""

import contextlib
import io
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as their_mask

import detap
from detap.compat import pycocotools as ours
from tests.compat.made import made
from tests.compat.patterns import Case
from tests.conftest import ROOT


def evaluator(kind: str = "bbox") -> Any:
    truth, results = made(1)
    with contextlib.redirect_stdout(io.StringIO()):
        coco = ours.COCO()
        coco.dataset = truth
        coco.createIndex()
        return ours.COCOeval(coco, coco.loadRes(results), kind)


def run(script: str, *arguments: str) -> str:
    """Run a script in a Python of its own, and return what it prints."""
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


PAGE = (ROOT / "docs" / "pycocotools.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_examples_of_the_page_run(code: str) -> None:
    """Each in a process of its own: they may take pycocotools' name."""
    assert len(EXAMPLES) == 2
    run(code)


def test_later_imports_of_pycocotools_find_the_drop_in() -> None:
    said = run(
        """
        from detap.compat.pycocotools import COCO, init_as_pycocotools
        init_as_pycocotools()
        import pycocotools.mask as maskUtils
        from pycocotools import cocoeval, mask
        from pycocotools.coco import COCO as Theirs
        from pycocotools.cocoeval import COCOeval, Params
        assert Theirs is COCO and mask is maskUtils
        print(COCOeval.__module__, cocoeval.__name__, mask.__name__)
        """
    )
    home = "detap.compat.pycocotools"
    assert said.split() == [f"{home}.cocoeval", f"{home}.cocoeval", f"{home}.mask"]


def test_nothing_is_cross_checked_with_itself() -> None:
    said = run(
        """
        import detap
        from detap.analysis.crosscheck import cross_check
        from detap.compat.pycocotools import init_as_pycocotools
        init_as_pycocotools()
        truth = detap.read_ground_truth("fixtures/quickstart/coco/instances.json")
        found = detap.read_detections("fixtures/quickstart/coco/results.json", truth)
        try:
            cross_check(detap.evaluate(truth, found, "coco"))
        except detap.UsageError as error:
            print(error)
        """
    )
    assert "in place of pycocotools in this process" in said
    assert "cross-check in a process of its own" in said


def test_masks_are_the_installed_pycocotools_own_even_in_its_place() -> None:
    said = run(
        """
        import numpy as np
        from detap.compat.pycocotools import init_as_pycocotools
        init_as_pycocotools()
        from pycocotools import mask
        runs = mask.encode(np.asfortranarray(np.eye(4, dtype=np.uint8)))
        print(mask.area(runs), mask.toBbox(runs).tolist(), mask.decode(runs).sum())
        """
    )
    assert said == "4 [0.0, 0.0, 4.0, 4.0] 4\n"


def test_boxes_need_no_pycocotools_and_masks_say_that_they_do(tmp_path: Path) -> None:
    case = Case.write(made(3), tmp_path)
    said = run(
        """
        import sys
        sys.modules["pycocotools"] = None  # as if it were not installed
        import importlib.machinery
        find = importlib.machinery.PathFinder.find_spec
        importlib.machinery.PathFinder.find_spec = classmethod(
            lambda cls, name, *more: None if "pycocotools" == name else find(name, *more)
        )
        from detap.compat.pycocotools import COCO, COCOeval, mask
        truth = COCO(sys.argv[1])
        evaluator = COCOeval(truth, truth.loadRes(sys.argv[2]), "bbox")
        evaluator.evaluate()
        evaluator.accumulate()
        try:
            mask.area({"size": [2, 2], "counts": b"04"})
        except Exception as error:
            print(type(error).__name__, error)
        """,
        str(case.truth_file),
        str(case.results_file),
    )
    assert said.splitlines()[-1] == (
        "UsageError masks need pycocotools itself, which is not installed "
        "(pip install pycocotools); boxes do not"
    )


@pytest.mark.parametrize("kind", ["segm", "keypoints"])
def test_masks_and_keypoints_are_refused(kind: str) -> None:
    refused = evaluator(kind)
    message = f"evaluates boxes; for iouType '{kind}' use pycocotools itself, or iouType='bbox'"
    with pytest.raises(detap.UsageError, match=message), contextlib.redirect_stdout(io.StringIO()):
        refused.evaluate()
    with pytest.raises(detap.UsageError, match=message):
        refused.computeIoU(10, 1)
    refused.eval = {"precision": np.zeros((1, 1, 1, 1, 1))}
    with pytest.raises(detap.UsageError, match=message):
        refused.summarize()


def test_the_deprecated_use_segm_is_heeded(capsys: pytest.CaptureFixture[str]) -> None:
    old = evaluator("segm")
    old.params.useSegm = 0
    old.evaluate()
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == [
        "Running per image evaluation...",
        "useSegm (deprecated) is not None. Running bbox evaluation",
        "Evaluate annotation type *bbox*",
    ]


def test_what_it_does_not_do_says_what_to_do_instead() -> None:
    coco = ours.COCO()
    with pytest.raises(detap.UsageError, match=r"draws nothing; draw with pycocotools\.coco"):
        coco.showAnns([])
    with pytest.raises(detap.UsageError, match=r"opens no connection; download with pycocotools"):
        coco.download("folder")


def test_what_is_wrong_about_results_raises_as_there(tmp_path: Path) -> None:
    coco = evaluator().cocoGt
    path = tmp_path / "results.json"
    stranger = {"image_id": 9999, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}
    cases: list[tuple[Any, str]] = [
        ({"annotations": []}, "results in not an array of objects"),
        ([stranger], "Results do not correspond to current coco set"),
    ]
    for wrong, message in cases:
        path.write_text(json.dumps(wrong), "utf-8")
        for given in (str(path), wrong):
            with (
                pytest.raises(AssertionError, match=message),
                contextlib.redirect_stdout(io.StringIO()),
            ):
                coco.loadRes(given)


def test_a_results_file_may_be_gone_when_its_records_are_read(tmp_path: Path) -> None:
    case = Case.write(made(5), tmp_path)
    with contextlib.redirect_stdout(io.StringIO()):
        truth = ours.COCO(str(case.truth_file))
        found = truth.loadRes(str(case.results_file))
    wanted = case.results()
    assert found.unopened is not None
    case.results_file.unlink()
    assert [record["bbox"] for record in found.dataset["annotations"]] == [
        record["bbox"] for record in wanted
    ]
    assert found.unopened is None


def test_overlaps_of_boxes_are_those_of_the_mask_module() -> None:
    random = np.random.default_rng(0)
    claims, truths = (8 * random.random((n, 4)) - 1 for n in (7, 5))
    crowd = [0, 1, 0, 0, 1]
    for dt, gt in ((claims, truths), (claims.tolist(), truths.tolist())):
        mine, theirs = ours.mask.iou(dt, gt, crowd), their_mask.iou(dt, gt, crowd)
        assert mine.tobytes("A") == theirs.tobytes("A")
        assert mine.flags.f_contiguous
    assert ours.mask.iou([], truths.tolist(), crowd) == [] == their_mask.iou([], [], [])
