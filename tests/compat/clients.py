"""Run real clients of pycocotools, from their own sources, on pycocotools and on the drop-in.

    python -m tests.compat.clients SOURCES --data DIR [--python PYTHON] [--only CLIENT]

SOURCES is a folder with a checkout (or an unpacked wheel) of each client, as ``CLIENTS`` below
names them; what is not there is said. DIR holds ``coco-val2014-100`` and ``keypoints``. PYTHON is
an interpreter with torch and what the clients import (mmdetection needs mmengine's requirements,
Detectron2 fvcore and iopath, RF-DETR torchmetrics and pydantic); by default this one. A client runs
in a process of its own, once for each package, and both have to see the same bits, types and
printed characters. Status 1 where one does not.

No build of torchvision, mmcv or Detectron2's compiled half is needed: of packages that a client's
file only imports from, :func:`bare` and :func:`stub` below make empty ones.
"""

import argparse
import contextlib
import importlib.util
import io
import pickle
import re
import sys
import tempfile
import types
import unittest
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.compat.patterns import Case, Seen, batches  # noqa: E402
from tests.compat.same import differences  # noqa: E402
from tests.processes import finished  # noqa: E402

LOG_TIME = re.compile(r"\d\d/\d\d \d\d:\d\d:\d\d")
"""Prefix of mmengine's log lines."""


def stub(name: str, **contents: Any) -> None:
    """Add a fake module with these contents."""
    module = types.ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    vars(module).update(contents)
    sys.modules[name] = module


def bare(name: str, folder: Path, **contents: Any) -> None:
    """Make a package importable without running its __init__."""
    stub(name, __path__=[str(folder)], **contents)


def by_image(case: Case) -> dict[Any, list[dict[str, Any]]]:
    detections: dict[Any, list[dict[str, Any]]] = {}
    for record in case.results():
        detections.setdefault(record["image_id"], []).append(record)
    return detections


def tensors(records: list[dict[str, Any]], kind: str = "bbox") -> dict[str, Any]:
    """Return a detector's output as tensors: xyxy, scores, labels, masks, keypoints."""
    import torch

    boxes = [record.get("bbox", [0.0, 0.0, 1.0, 1.0]) for record in records]
    given = torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4)
    values = {
        "boxes": torch.cat([given[:, :2], given[:, :2] + given[:, 2:]], dim=1),
        "scores": torch.tensor([record["score"] for record in records]),
        "labels": torch.tensor([record["category_id"] for record in records], dtype=torch.int64),
    }
    if kind == "segm":
        values["masks"] = torch.tensor(_bitmaps(records), dtype=torch.uint8)
    elif kind == "keypoints":
        given = torch.tensor([record["keypoints"] for record in records], dtype=torch.float32)
        values["keypoints"] = given.reshape(-1, 17, 3)
    return values


def _bitmaps(records: list[dict[str, Any]]) -> Any:
    """Return the masks of an image's records, (n, h, w) uint8."""
    import numpy as np
    from pycocotools import mask

    if not records:
        return np.zeros((0, 1, 1), np.uint8)
    return np.moveaxis(mask.decode([record["segmentation"] for record in records]), 2, 0)


def coco_evaluator(module: Any, case: Case) -> Seen:
    """Feed DETR's and torchvision's CocoEvaluator batch by batch."""
    from pycocotools.coco import COCO

    truth = COCO(str(case.truth_file))
    detections = by_image(case)
    evaluator = module.CocoEvaluator(truth, [case.kind])
    for batch in batches(truth, 4):
        predicted = {image: tensors(detections.get(image, []), case.kind) for image in batch}
        for prediction in predicted.values():
            if case.kind == "segm":
                prediction["masks"] = prediction["masks"][:, None]
        evaluator.update(predicted)
    evaluator.synchronize_between_processes()
    evaluator.accumulate()
    evaluator.summarize()
    inner = evaluator.coco_eval[case.kind]
    return {
        "stats": inner.stats,
        "arrays": [inner.eval[name] for name in ("precision", "recall", "scores")],
        "entries": inner.evalImgs,
        "images": inner.params.imgIds,
    }


def detr(folder: Path, case: Case) -> Seen:
    stub("util")
    stub("util.misc", all_gather=lambda value: [value])
    return coco_evaluator(_module(folder / "datasets" / "coco_eval.py"), case)


def torchvision(folder: Path, case: Case) -> Seen:
    stub("utils", all_gather=lambda value: [value])
    import torch

    stub("torch._six", string_classes=str)  # which torch had when that file was written
    torch._six = sys.modules["torch._six"]
    return coco_evaluator(_module(folder / "references" / "detection" / "coco_eval.py"), case)


def mmdetection(folder: Path, case: Case, *, processes: bool = False) -> Seen:
    """CocoMetric over boxes and proposals, or masks, class by class, with its own COCO class."""
    sys.path.insert(0, str(folder.parent / "mmengine"))
    package = folder / "mmdet"
    for name in ("mmdet", "mmdet.datasets", "mmdet.evaluation", "mmdet.evaluation.metrics"):
        bare(name, folder / name.replace(".", "/"))
    bare("mmdet.evaluation.functional", package / "evaluation" / "functional", eval_recalls=None)
    for name in ("mmdet.structures", "mmdet.structures.mask"):
        bare(name, folder / name.replace(".", "/"))
    shapes = importlib.import_module("mmdet.structures.mask.utils")
    vars(sys.modules["mmdet.structures.mask"]).update(
        encode_mask_results=shapes.encode_mask_results
    )
    metrics = importlib.import_module("mmdet.evaluation.metrics.coco_metric")
    metric = metrics.CocoMetric(
        ann_file=str(case.truth_file),
        metric=["bbox", "proposal"] if case.kind == "bbox" else ["bbox", "segm"],
        classwise=True,
        use_mp_eval=processes,
    )
    names = [category["name"] for category in case.truth()["categories"]]
    index_by_id = {category["id"]: n for n, category in enumerate(case.truth()["categories"])}
    metric.dataset_meta = {"classes": names}
    detections = by_image(case)
    samples = []
    for image in case.truth()["images"]:
        instances = tensors(detections.get(image["id"], []), case.kind)
        instances["bboxes"] = instances.pop("boxes")
        instances["labels"].apply_(lambda label: index_by_id[label])
        shape = image.get("height", 480), image.get("width", 640)
        samples.append({"pred_instances": instances, "img_id": image["id"], "ori_shape": shape})
    metric.process({}, samples)
    return {"metrics": metric.evaluate(size=len(samples))}


def mmdetection_processes(folder: Path, case: Case) -> Seen:
    return mmdetection(folder, case, processes=True)


def detectron2(folder: Path, case: Case) -> Seen:
    """COCOEvaluator over boxes, without its compiled evaluator."""
    package = folder / "detectron2"
    for name in ("", "evaluation", "data", "data.datasets", "structures", "config", "utils"):
        dotted = f"detectron2.{name}".rstrip(".")
        bare(dotted, package / name.replace(".", "/"))
    boxes = importlib.import_module("detectron2.structures.boxes")
    vars(sys.modules["detectron2.structures"]).update(
        Boxes=boxes.Boxes, BoxMode=boxes.BoxMode, pairwise_iou=boxes.pairwise_iou
    )
    instances = importlib.import_module("detectron2.structures.instances")
    config = importlib.import_module("fvcore.common.config")
    vars(sys.modules["detectron2.config"]).update(CfgNode=config.CfgNode)
    catalog = importlib.import_module("detectron2.data.catalog")
    vars(sys.modules["detectron2.data"]).update(MetadataCatalog=catalog.MetadataCatalog)
    stub("detectron2.data.datasets.coco", convert_to_coco_json=None)
    evaluation = importlib.import_module("detectron2.evaluation.coco_evaluation")
    categories = case.truth()["categories"]
    places = {category["id"]: n for n, category in enumerate(categories)}
    catalog.MetadataCatalog.get("made").set(
        json_file=str(case.truth_file),
        thing_classes=[category["name"] for category in categories],
        thing_dataset_id_to_contiguous_id=places,
    )
    detections = by_image(case)
    outcomes = {}
    for name, chosen in (("all", None), ("some", [*detections][:30])):
        evaluator = evaluation.COCOEvaluator("made", (case.kind,), False, use_fast_impl=False)
        evaluator.reset()
        for image in case.truth()["images"]:
            of = tensors(detections.get(image["id"], []), case.kind)
            of["labels"].apply_(lambda label: places[label])
            output = instances.Instances((image.get("height", 480), image.get("width", 640)))
            output.pred_boxes = boxes.Boxes(of["boxes"])
            output.scores, output.pred_classes = of["scores"], of["labels"]
            for key in {"masks", "keypoints"} & {*of}:
                output.set(f"pred_{key}", of[key])
            evaluator.process([{"image_id": image["id"]}], [{"instances": output}])
        outcomes[name] = evaluator.evaluate(img_ids=chosen)
    return outcomes


def rf_detr(folder: Path, case: Case) -> Seen:
    """Feed RF-DETR's metric as its own backend tests do, with a package of this one as backend."""
    package = folder / "rfdetr"
    for name in ("", "training", "utilities"):
        bare(f"rfdetr.{name}".rstrip("."), package / name)
    _stub_torchvision()
    import pycocotools
    from pycocotools import mask
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    # Its backend for evaluators that look like pycocotools asks for this package by name.
    stub("ultrafast_pycocotools", COCO=COCO, COCOeval=COCOeval, mask=mask, pycocotools=pycocotools)
    metrics = importlib.import_module("rfdetr.training.coco_map")
    metric = metrics.OnePassCocoMeanAveragePrecision(
        class_metrics=True, backend="ufcoco", max_detection_thresholds=[1, 10, 100]
    )
    return _torchmetrics(metric, case)


def torchmetrics(folder: Path, case: Case) -> Seen:
    """Run torchmetrics' metric on its pycocotools backend; installed, not downloaded."""
    _stub_torchvision()
    metrics = importlib.import_module("torchmetrics.detection")
    metric = metrics.MeanAveragePrecision(
        iou_type=case.kind, class_metrics=True, backend="pycocotools", extended_summary=True
    )
    return _torchmetrics(metric, case)


def _stub_torchvision() -> None:
    """Replace the one function of torchvision that torchmetrics uses, for corners."""

    def box_convert(boxes: Any, in_fmt: str, out_fmt: str) -> Any:
        assert (in_fmt, out_fmt) == ("xyxy", "xywh")
        boxes = boxes.clone()
        boxes[..., 2:] -= boxes[..., :2]
        return boxes

    # First, so that torchmetrics finds no torchvision and asks nothing else of it.
    detection = importlib.import_module("torchmetrics.detection")
    mean_ap = importlib.import_module("torchmetrics.detection.mean_ap")
    stub("torchvision", ops=None)
    stub("torchvision.ops", box_convert=box_convert)
    for module in (mean_ap, importlib.import_module("torchmetrics.detection.helpers")):
        vars(module).update(_TORCHVISION_AVAILABLE=True, box_convert=box_convert)
    vars(detection).update(MeanAveragePrecision=mean_ap.MeanAveragePrecision)


def _torchmetrics(metric: Any, case: Case) -> Seen:
    detections = by_image(case)
    truths: dict[Any, list[dict[str, Any]]] = {}
    for annotation in case.truth()["annotations"]:
        truths.setdefault(annotation["image_id"], []).append({**annotation, "score": 0.0})
    import torch
    from pycocotools.coco import COCO

    coco = COCO(str(case.truth_file))
    for image in case.truth()["images"]:
        listed = truths.get(image["id"], [])
        for record in listed if case.kind == "segm" else ():
            record["segmentation"] = coco.annToRLE(record)
        target = tensors(listed, case.kind)
        target["iscrowd"] = torch.tensor([record["iscrowd"] for record in listed])
        target["area"] = torch.tensor([record["area"] for record in listed])
        del target["scores"]
        prediction = tensors(detections.get(image["id"], []), case.kind)
        for given in (prediction, target) if case.kind == "segm" else ():
            given["masks"] = given["masks"].bool()
        metric.update([prediction], [target])
    with contextlib.redirect_stdout(io.StringIO()):
        result = metric.compute()
    return {name: _plain(value) for name, value in result.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return value.numpy() if hasattr(value, "numpy") else value


def faster_coco_eval(folder: Path, case: Case) -> Seen:
    """Run the tests of faster-coco-eval that use only what pycocotools has."""
    from pycocotools import mask
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def keyed(coco: Any, results: Any) -> Any:
        return load(coco, str(results) if isinstance(results, Path) else results)

    load = COCO.loadRes

    def shown(evaluator: Any) -> str:
        evaluator.summarize()
        return ""

    kind = type("COCO", (COCO,), {"loadRes": keyed})
    faster = type("COCOeval", (COCOeval,), {"__str__": shown})
    stub("faster_coco_eval", COCO=kind, COCOeval_faster=faster)
    stub("faster_coco_eval.core", mask=mask)
    sys.modules["faster_coco_eval.core.mask"] = mask
    suite = unittest.TestSuite()
    stub("faster_coco_eval.mask_api_new_cpp", **vars(mask))
    sys.modules["faster_coco_eval"].mask_api_new_cpp = sys.modules[  # type: ignore[attr-defined]
        "faster_coco_eval.mask_api_new_cpp"
    ]
    for name in (
        "test_cocoapi_fake_data",
        "test_extensive_pycocotools_comparison",
        "test_keypoints",
        "test_mask_api",
    ):
        module = _module(folder / "tests" / f"{name}.py")
        for test in _flat(unittest.defaultTestLoader.loadTestsFromModule(module)):
            if not any(word in test.id() for word in ADDITIONS):
                suite.addTest(test)
    outcome = unittest.TextTestRunner(stream=sys.stderr, verbosity=2).run(suite)
    bad = [*outcome.failures, *outcome.errors]
    return {"run": outcome.testsRun, "failed": [(test.id(), why) for test, why in bad]}


ADDITIONS = (
    *("bad_config", "frString", "test_rles", "frBbox", "frPoly", "frUncompressedRLE"),
    *("testSegmToRle", "testAnnToRLE"),
)
"""Tests of functions that pycocotools lacks, or names differently."""


def _flat(suite: Any) -> Any:
    for test in suite:
        yield from _flat(test) if isinstance(test, unittest.TestSuite) else [test]


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Client:
    """A client: where its sources are, what runs it, and on what."""

    folder: str
    run: Callable[[Path, Case], Seen]
    kind: str = "bbox"


CLIENTS = {
    "DETR coco_eval.py": Client("detr", detr),
    "torchvision references/detection/coco_eval.py": Client("vision", torchvision),
    "mmdetection CocoMetric": Client("mmdet", mmdetection),
    "mmdetection CocoMetric, use_mp_eval": Client("mmdet", mmdetection_processes),
    "Detectron2 COCOEvaluator": Client("detectron2", detectron2),
    "RF-DETR OnePassCocoMeanAveragePrecision": Client("rfdetr", rf_detr),
    "torchmetrics MeanAveragePrecision": Client(".", torchmetrics),
    "faster-coco-eval tests": Client("faster_coco_eval", faster_coco_eval),
    "DETR coco_eval.py, masks": Client("detr", detr, "segm"),
    "torchvision references/detection/coco_eval.py, masks": Client("vision", torchvision, "segm"),
    "mmdetection CocoMetric, masks": Client("mmdet", mmdetection, "segm"),
    "mmdetection CocoMetric, masks, use_mp_eval": Client("mmdet", mmdetection_processes, "segm"),
    "Detectron2 COCOEvaluator, masks": Client("detectron2", detectron2, "segm"),
    "torchmetrics MeanAveragePrecision, masks": Client(".", torchmetrics, "segm"),
    "DETR coco_eval.py, keypoints": Client("detr", detr, "keypoints"),
    "torchvision references/detection/coco_eval.py, keypoints": Client(
        "vision", torchvision, "keypoints"
    ),
    "Detectron2 COCOEvaluator, keypoints": Client("detectron2", detectron2, "keypoints"),
}

FILES = {
    "bbox": (
        "coco-val2014-100/instances_val2014_100.json",
        "coco-val2014-100/instances_val2014_fakebbox100_results.json",
    ),
    "segm": (
        "coco-val2014-100/instances_val2014_100.json",
        "coco-val2014-100/instances_val2014_fakesegm100_results.json",
    ),
    "keypoints": ("keypoints/coco79_gt.json", "keypoints/coco79_dt.json"),
}


def run_here(name: str, folder: Path, case: Case, out: Path, *, drop_in: bool) -> None:
    """Run a client in this process, and write its output to a file."""
    if drop_in:
        from detap.compat.pycocotools import init_as_pycocotools

        init_as_pycocotools()
    shown = CLIENTS[name].run(folder, case)
    import pycocotools.cocoeval

    assert ("detap" in pycocotools.cocoeval.COCOeval.__module__) == drop_in
    out.write_bytes(pickle.dumps(shown))


def compare(name: str, arguments: argparse.Namespace, case: Case, work: Path) -> str:
    """Run a client on both packages; return the outcome."""
    folder = arguments.sources / CLIENTS[name].folder
    if not folder.is_dir():
        return f"cannot run: no folder {folder}"
    seen = []
    for drop_in in (False, True):
        out = work / f"{drop_in}.pickle"
        command = [arguments.python, __file__, str(arguments.sources), "--child", name]
        command += ["--case", str(case.truth_file), str(case.results_file), "--out", str(out)]
        done = finished([*command, *(["--drop-in"] if drop_in else [])], None)
        if done.returncode:
            which = "the drop-in" if drop_in else "pycocotools"
            why = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return f"{'differs' if drop_in else 'cannot run'}: on {which}: {why}"
        printed = LOG_TIME.sub("", done.stdout).splitlines()
        seen.append({"shown": pickle.loads(out.read_bytes()), "printed": printed})
    differing = differences(seen[1], seen[0])
    return f"differs: {differing[:3]!r:.300}" if differing else f"the same{_extent(seen[0])}"


def _extent(seen: dict[str, Any]) -> str:
    shown = seen["shown"]
    if "run" in shown:
        return f" ({shown['run']} tests, {len(shown['failed'])} failed on both)"
    return f" ({', '.join(shown)}; {len(seen['printed'])} lines printed)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--child")
    parser.add_argument("--case", nargs=2, type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--drop-in", action="store_true")
    parser.add_argument("--only", action="append", choices=CLIENTS)
    arguments = parser.parse_args()
    if arguments.child:
        folder = arguments.sources / CLIENTS[arguments.child].folder
        truth, results = arguments.case
        case = Case(truth, results, CLIENTS[arguments.child].kind)
        run_here(arguments.child, folder, case, arguments.out, drop_in=arguments.drop_in)
        return 0
    bad = 0
    with tempfile.TemporaryDirectory() as work:
        for name in arguments.only or CLIENTS:
            truth, results = FILES[CLIENTS[name].kind]
            case = Case(arguments.data / truth, arguments.data / results)
            outcome = compare(name, arguments, case, Path(work))
            bad += outcome.startswith("differs")
            print(f"{name}: {outcome}", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
