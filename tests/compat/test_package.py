"""The drop-in as a package: replacing pycocotools by name, what it refuses and what it keeps."""

import contextlib
import io
import json
import re
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import coco as their_coco
from pycocotools import mask as their_mask

import detap
from detap.compat import pycocotools as ours
from detap.errors import MaskError
from tests.compat.made import SIDE, made, made_of
from tests.compat.patterns import Case, loaded
from tests.compat.test_patterns import OURS
from tests.conftest import ROOT


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
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
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
    assert said.split() == [f"{home}.cocoeval", f"{home}.cocoeval", f"{home}.mask"]


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


def test_the_mask_module_is_replaced_too() -> None:
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


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_pycocotools_is_not_needed(kind: str, tmp_path: Path) -> None:
    case = Case.write(made_of(kind, 3), tmp_path)
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
        evaluator = COCOeval(truth, truth.loadRes(sys.argv[2]), sys.argv[3])
        evaluator.evaluate()
        evaluator.accumulate()
        evaluator.summarize()
        print(mask.area({"size": [2, 2], "counts": b"04"}))
        """,
        str(case.truth_file),
        str(case.results_file),
        kind,
    )
    assert said.splitlines()[-1] == "4"


def test_an_invalid_iou_type_is_refused() -> None:
    with pytest.raises(Exception, match="iouType not supported"):
        ours.Params("masks")
    odd = evaluator()
    odd.params.iouType = "masks"
    message = "unknown iouType 'masks'; available: segm, bbox, keypoints"
    with pytest.raises(detap.UsageError, match=message), contextlib.redirect_stdout(io.StringIO()):
        odd.evaluate()
    odd._prepare()
    with pytest.raises(Exception, match="unknown iouType for iou computation"):
        odd.computeIoU(odd.cocoGt.getImgIds()[0], odd.cocoGt.getCatIds()[0])
    odd.eval = {"precision": np.zeros((1, 1, 1, 1, 1))}
    with pytest.raises(detap.UsageError, match=message):
        odd.summarize()


def masks_of(wrong: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return a data set with this mask in one annotation, and results that match it."""
    expected = {"size": [SIDE, SIDE + 16], "counts": [0, SIDE * (SIDE + 16)]}
    annotation = {"id": 7, "image_id": 1, "category_id": 2, "iscrowd": 0, "area": 9}
    coco = ours.COCO()
    coco.dataset = {
        "images": [{"id": 1, "height": SIDE, "width": SIDE + 16}],
        "categories": [{"id": 2, "name": "two"}],
        "annotations": [{**annotation, "segmentation": wrong}],
    }
    runs = ours.mask.frPyObjects(expected, 0, 0)
    result = {"image_id": 1, "category_id": 2, "score": 0.5}
    with contextlib.redirect_stdout(io.StringIO()):
        coco.createIndex()
    return coco, [{**result, "segmentation": dict(runs)} for _ in range(3)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"size": [SIDE, SIDE + 16], "counts": [5, 90]},
            r"image 1, category 2: counts sum to 95, and a mask of size \[144, 160\] has 23040",
        ),
        ([[1, 2, 3, 4]], "annotation 7: polygon has 4 numbers, expected at least 6"),
        ([], "annotation 7: .* is not polygons, boxes or RLE"),
        ([[1e9] * 6], "annotation 7: a coordinate of a polygon is 1000000000.0; give pixels"),
    ],
)
def test_an_error_where_pycocotools_hangs_or_crashes(wrong: Any, message: str) -> None:
    coco, results = masks_of(wrong)
    with contextlib.redirect_stdout(io.StringIO()):
        detections = ours.COCOeval(coco, coco.loadRes(results), "segm")
        with pytest.raises(MaskError, match=message):
            detections.evaluate()


def test_an_invalid_result_mask_is_named() -> None:
    coco, results = masks_of([[0, 0, 9, 0, 9, 9]])
    results[1]["segmentation"]["counts"] = b"0P"
    message = "record 2: segmentation: counts ends within a number; write the mask again"
    with pytest.raises(MaskError, match=message), contextlib.redirect_stdout(io.StringIO()):
        coco.loadRes(results)
    assert results[0]["id"] == 1  # those before it are completed, as there
    assert "id" not in results[1]


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


def test_unsupported_features_give_a_hint() -> None:
    coco = ours.COCO()
    with pytest.raises(detap.UsageError, match=r"does not draw; use pycocotools\.coco"):
        coco.showAnns([])
    with pytest.raises(detap.UsageError, match=r"does not download; use pycocotools"):
        coco.download("folder")


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


def test_a_results_file_may_be_gone_when_its_records_are_read(tmp_path: Path) -> None:
    case = Case.write(made(5), tmp_path)
    with contextlib.redirect_stdout(io.StringIO()):
        truth = ours.COCO(str(case.truth_file))
        detections = truth.loadRes(str(case.results_file))
    expected = case.results()
    assert detections.unopened is not None
    case.results_file.unlink()
    assert [record["bbox"] for record in detections.dataset["annotations"]] == [
        record["bbox"] for record in expected
    ]
    assert detections.unopened is None


def test_a_ground_truth_file_may_be_gone_when_its_records_are_read(tmp_path: Path) -> None:
    case = Case.write(made(5), tmp_path)
    with contextlib.redirect_stdout(io.StringIO()):
        truth = ours.COCO(str(case.truth_file))
    expected = case.truth()
    case.truth_file.unlink()
    images, unopened = truth.imgs, [truth.unopened]
    assert truth.dataset == expected
    assert [held is None for held in (*unopened, truth.unopened)] == [False, True]
    assert all(image is images[image["id"]] for image in truth.dataset["images"])


def test_concurrent_threads_get_the_same_records(tmp_path: Path) -> None:
    case = Case.write(made(5, images=200), tmp_path)
    with contextlib.redirect_stdout(io.StringIO()):
        truth = ours.COCO(str(case.truth_file))
    names = ["anns", "imgToAnns", "dataset", "catToImgs"] * 4
    with ThreadPoolExecutor(len(names)) as pool:
        actual = list(pool.map(lambda name: getattr(truth, name), names))
    assert all(one is actual[n % 4] for n, one in enumerate(actual))
    assert actual[0] is truth.anns


def test_box_ious_equal_those_of_the_mask_module() -> None:
    random = np.random.default_rng(0)
    dts, truths = (8 * random.random((n, 4)) - 1 for n in (7, 5))
    crowd = [0, 1, 0, 0, 1]
    for dt, gt in ((dts, truths), (dts.tolist(), truths.tolist())):
        mine, theirs = ours.mask.iou(dt, gt, crowd), their_mask.iou(dt, gt, crowd)
        assert mine.tobytes("A") == theirs.tobytes("A")
        assert mine.flags.f_contiguous
    assert ours.mask.iou([], truths.tolist(), crowd) == [] == their_mask.iou([], [], [])


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_common_usage_takes_the_fast_path(kind: str, tmp_path: Path) -> None:
    """Otherwise results would be right, but as slow as pycocotools."""
    case = Case.write(made_of(kind, 3), tmp_path, kind)
    with contextlib.redirect_stdout(io.StringIO()):
        truth, detections = loaded(OURS, case)
        evaluated = ours.COCOeval(truth, detections, kind)
        evaluated.evaluate()
        evaluated.accumulate()
    assert not {"evalImgs", "ious", "_gts"} & {*vars(evaluated)}


def test_files_of_boxes_are_evaluated_without_their_records(tmp_path: Path) -> None:
    case = Case.write(made_of("bbox", 3), tmp_path, by_file=True)
    with contextlib.redirect_stdout(io.StringIO()):
        truth, detections = loaded(OURS, case)
        evaluated = ours.COCOeval(truth, detections, "bbox")
        evaluated.evaluate()
        evaluated.accumulate()
        evaluated.summarize()
    assert truth.unopened is not None
    assert detections.unopened is not None


@pytest.mark.parametrize(
    ("image", "category", "category_id", "opened"),
    [
        ("1", "2", "2", False),
        ('"a"', '"b"', '"b"', False),
        ("1.0", "2", "2", True),
        ("1", "2", "2.0", True),
        ("1", "2.0", "2", True),
    ],
)
def test_images_of_categories_need_no_records(
    image: str, category: str, category_id: str, *, opened: bool, tmp_path: Path
) -> None:
    annotation = f'"image_id": {image}, "category_id": {category_id}, "bbox": [1, 2, 3, 4]'
    path = tmp_path / "instances.json"
    path.write_text(
        f'{{"images": [{{"id": {image}}}], "categories": [{{"id": {category}, "name": "a"}}],'
        f' "annotations": [{{"id": 7, {annotation}, "area": 12, "iscrowd": 0}}]}}'
    )
    with contextlib.redirect_stdout(io.StringIO()):
        truth, expected = ours.COCO(str(path)), their_coco.COCO(str(path))
    assert repr(truth.getImgIds(catIds=[json.loads(category)])) == f"[{json.loads(image)!r}]"
    assert (truth.unopened is None) == opened
    assert repr(dict(truth.catToImgs)) == repr(dict(expected.catToImgs))
    images = truth.catToImgs
    assert truth.loadAnns(7) == expected.loadAnns(7)
    assert truth.catToImgs is images
