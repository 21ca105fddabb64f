"""The drop-in as a package: replacing pycocotools by name, what it refuses and what it keeps."""

import contextlib
import io
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import orjson
import pytest
from pycocotools import cocoeval as their_cocoeval

from detap.compat import pycocotools as ours
from tests.compat.made import made, made_of
from tests.compat.patterns import Case, loaded
from tests.compat.same import differences
from tests.compat.test_patterns import OURS, THEIRS
from tests.conftest import ROOT
from tests.processes import finished


def evaluator(kind: str = "bbox") -> Any:
    truth, results = made(1)
    with contextlib.redirect_stdout(io.StringIO()):
        coco = ours.COCO()
        coco.dataset = truth
        coco.createIndex()
        return ours.COCOeval(coco, coco.loadRes(results), kind)


def run(script: str, *arguments: str) -> str:
    """Run a script in a separate Python process, and return its output."""
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    done = finished(command, cwd=ROOT)
    return done.stdout


PAGE = (ROOT / "docs" / "pycocotools.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_examples_of_the_page_run(code: str) -> None:
    """Each in its own process: an example may take pycocotools' name."""
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
    assert said.split() == [f"{home}.cocoeval", f"{home}.cocoeval", "pycocotools.mask"]


def test_uninstall_restores_pycocotools() -> None:
    said = run(
        """
        import sys
        from detap.compat.pycocotools import install, uninstall
        import pycocotools.coco
        theirs = pycocotools.coco
        for _ in range(2):
            install()
            install()
            from pycocotools.coco import COCO
            import pycocotools.cocoeval
            print(COCO.__module__, pycocotools.__name__)
            uninstall()
            from pycocotools.coco import COCO
            import pycocotools.coco, pycocotools.cocoeval
            assert pycocotools.coco is theirs
            print(COCO.__module__, pycocotools.cocoeval.COCOeval.__module__)
        uninstall()
        """
    )
    home = "detap.compat.pycocotools"
    round_trip = [f"{home}.coco", home, "pycocotools.coco", "pycocotools.cocoeval"]
    assert said.split() == 2 * round_trip


def test_another_package_is_replaced_by_name() -> None:
    said = run(
        """
        import sys
        from detap.compat.pycocotools import install, uninstall
        install("ultrafast_pycocotools")
        from ultrafast_pycocotools import COCO, COCOeval, mask
        import ultrafast_pycocotools.mask, pycocotools
        print(COCO.__module__, pycocotools.__name__)
        uninstall()
        print("ultrafast_pycocotools" in sys.modules)
        """
    )
    assert said.split() == ["detap.compat.pycocotools.coco", "pycocotools", "False"]


def test_nothing_is_cross_checked_with_itself() -> None:
    said = run(
        """
        import detap
        from detap.analysis.crosscheck import cross_check
        from detap.compat.pycocotools import init_as_pycocotools
        init_as_pycocotools()
        truth = detap.read_ground_truth("fixtures/quickstart/coco/instances.json")
        detections = detap.read_detections("fixtures/quickstart/coco/results.json", truth)
        try:
            cross_check(detap.evaluate(truth, detections, "coco"))
        except detap.UsageError as error:
            print(error)
        """
    )
    assert "detap replaces pycocotools in this process" in said
    assert "run the cross-check in another process" in said


def test_the_mask_module_stays() -> None:
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


def test_the_deprecated_use_segm_works(capsys: pytest.CaptureFixture[str]) -> None:
    old = evaluator("segm")
    old.params.useSegm = 0
    old.evaluate()
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == [
        "Running per image evaluation...",
        "useSegm (deprecated) is not None. Running bbox evaluation",
        "Evaluate annotation type *bbox*",
    ]


def test_invalid_results_raise_as_in_pycocotools(tmp_path: Path) -> None:
    coco = evaluator().cocoGt
    path = tmp_path / "results.json"
    unknown = {"image_id": 9999, "category_id": 1, "bbox": [0, 0, 1, 1], "score": 1}
    cases: list[tuple[Any, str]] = [
        ({"annotations": []}, "results in not an array of objects"),
        ([unknown], "Results do not correspond to current coco set"),
    ]
    for wrong, message in cases:
        path.write_text(json.dumps(wrong), "utf-8")
        for given in (str(path), wrong):
            with (
                pytest.raises(AssertionError, match=message),
                contextlib.redirect_stdout(io.StringIO()),
            ):
                coco.loadRes(given)


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_common_usage_takes_the_fast_path(kind: str, tmp_path: Path) -> None:
    """Otherwise results would be right, but as slow as pycocotools."""
    case = Case.write(made_of(kind, 3), tmp_path, kind)
    with contextlib.redirect_stdout(io.StringIO()):
        truth, detections = loaded(OURS, case)
        evaluated = ours.COCOeval(truth, detections, kind)
        evaluated.evaluate()
        evaluated.accumulate()
    assert not {"evalImgs", "ious"} & {*vars(evaluated)}


def test_evaluation_by_image_is_made_when_read(tmp_path: Path) -> None:
    case = Case.write(made_of("bbox", 3), tmp_path)
    with contextlib.redirect_stdout(io.StringIO()):
        truth, detections = loaded(OURS, case)
        evaluated = ours.COCOeval(truth, detections, "bbox")
        evaluated.evaluate()
        expected = their_cocoeval.COCOeval(*loaded(THEIRS, case), "bbox")
        expected.evaluate()
    evaluated.params.maxDets = [1]  # later parameters do not matter
    assert differences(evaluated.evalImgs, expected.evalImgs) == []
    assert {"evalImgs", "ious"} <= {*vars(evaluated)}


def test_results_have_the_class_of_the_package(tmp_path: Path) -> None:
    case = Case.write(made_of("bbox", 3), tmp_path, by_file=True)
    with contextlib.redirect_stdout(io.StringIO()):
        _, detections = loaded(OURS, case)
    assert type(detections) is ours.COCO


@pytest.mark.parametrize(
    "text",
    [
        *("-0", "1" * 19, "1" * 30, "-9223372036854775809", "1e999", "NaN", "-Infinity"),
        *("0.1000000000000000055511151231257827", "123456789012345678901.5"),
        *(r'"\ud800"', '{"a": 1, "a": 2}'),
    ],
)
@pytest.mark.parametrize("parser", [orjson.loads, None])
def test_json_is_read_as_by_json(
    text: str, parser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ours.coco, "_loads", parser)
    path = tmp_path / "truth.json"
    path.write_text(f'{{"info": [{text}, {{"a": {text}}}]}}', "utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        assert repr(ours.COCO(str(path)).dataset) == repr(json.loads(path.read_text("utf-8")))
