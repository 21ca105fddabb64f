"""Patterns of real code that uses pycocotools; each runs on any package with its interface.

A pattern takes the package and a data set, and returns all visible results.
"""

import contextlib
import copy
import io
import json
import pickle
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.compat.made import Made

Seen = dict[str, Any]


@dataclass(frozen=True)
class Package:
    """Classes imported from pycocotools or from the drop-in."""

    COCO: Any
    COCOeval: Any
    Params: Any
    mask: Any


@dataclass(frozen=True)
class Case:
    """A data set, as files and as what is in them, made anew at each call."""

    truth_file: Path
    results_file: Path
    kind: str = "bbox"  # or "segm", "keypoints"
    by_file: bool = False  # patterns that may have the data in any way load the files

    @classmethod
    def write(
        cls, data: Made, folder: Path, kind: str = "bbox", *, by_file: bool = False
    ) -> "Case":
        files = folder / "truth.json", folder / "results.json"
        for path, content in zip(files, data, strict=True):
            path.write_text(json.dumps(content), encoding="utf-8")
        return cls(*files, kind, by_file)

    def truth(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.truth_file.read_text(encoding="utf-8"))
        return content

    def results(self) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = json.loads(self.results_file.read_text(encoding="utf-8"))
        return content

    def rows(self, kind: Any = np.float64) -> Any:
        return np.array(
            [
                [r["image_id"], *r.get("bbox", [8, 8, 32, 32]), r["score"], r["category_id"]]
                for r in self.results()
            ],
            kind,
        )


def loaded(package: Package, case: Case) -> tuple[Any, Any]:
    if case.by_file:
        truth = package.COCO(str(case.truth_file))
        return truth, truth.loadRes(str(case.results_file))
    truth = package.COCO()
    truth.dataset = case.truth()
    truth.createIndex()
    return truth, truth.loadRes(case.results())


def seen_of(evaluator: Any) -> Seen:
    """Return all results of an evaluator."""
    return {
        "eval": {key: value for key, value in evaluator.eval.items() if key != "date"},
        "stats": evaluator.stats,
        "evalImgs": evaluator.evalImgs,
        "ious": dict(evaluator.ious),
        "params": evaluator.params,
        "_paramsEval": evaluator._paramsEval,
        "_gts": dict(evaluator._gts),
        "_dts": dict(evaluator._dts),
    }


def shown_by(coco: Any) -> Seen:
    """Return the contents of a data set."""
    return {
        "dataset": coco.dataset,
        "anns": coco.anns,
        "imgs": coco.imgs,
        "cats": coco.cats,
        "imgToAnns": dict(coco.imgToAnns),
        "catToImgs": dict(coco.catToImgs),
    }


def run(evaluator: Any) -> Any:
    evaluator.evaluate()
    evaluator.accumulate()
    evaluator.summarize()
    return evaluator


def demo(package: Package, case: Case) -> Seen:
    """The pycocotools demo: its calls, and all results."""
    truth = package.COCO(str(case.truth_file))
    detections = truth.loadRes(str(case.results_file))
    evaluator = run(package.COCOeval(truth, detections, case.kind))
    return {
        **seen_of(evaluator),
        "ground_truth": shown_by(truth),
        "detections": shown_by(detections),
    }


def loading(package: Package, case: Case) -> Seen:
    """`dataset` assigned and indexed; results of a path, of records, of an array."""
    truth, detections = loaded(package, case)
    given = case.results()
    others = {
        "path": truth.loadRes(str(case.results_file)),
        "records": truth.loadRes(given),
        "array": truth.loadRes(case.rows()),
        "float32": truth.loadRes(case.rows(np.float32)),
    }
    return {
        "given": given,
        "detections": shown_by(detections),
        **{name: shown_by(coco) for name, coco in others.items()},
    }


def subclass(package: Package, case: Case) -> Seen:
    """A subclass with method names in its own style, as in mmdetection."""

    class Ours(package.COCO):  # type: ignore[misc, name-defined]
        def __init__(self, annotation_file: Any = None) -> None:
            super().__init__(annotation_file=annotation_file)
            self.img_ann_map = self.imgToAnns
            self.cat_img_map = self.catToImgs

        def get_ann_ids(
            self, img_ids: Any = (), cat_ids: Any = (), area_rng: Any = (), iscrowd: Any = None
        ) -> Any:
            return self.getAnnIds(img_ids, cat_ids, area_rng, iscrowd)

        def get_cat_ids(self, cat_names: Any = (), sup_names: Any = (), cat_ids: Any = ()) -> Any:
            return self.getCatIds(cat_names, sup_names, cat_ids)

        def get_img_ids(self, img_ids: Any = (), cat_ids: Any = ()) -> Any:
            return self.getImgIds(img_ids, cat_ids)

        def load_anns(self, ids: Any) -> Any:
            return self.loadAnns(ids)

    truth = Ours(str(case.truth_file))
    detections = truth.loadRes(case.results())
    evaluator = package.COCOeval(truth, detections, case.kind)
    evaluator.params.catIds = truth.get_cat_ids(cat_names=["class 1", "class 3", "person", "dog"])
    evaluator.params.imgIds = truth.get_img_ids()
    evaluator.params.maxDets = [100, 300, 1000]
    evaluator.params.iouThrs = np.linspace(0.5, 0.95, 10, endpoint=True)
    run(evaluator)
    return {
        **seen_of(evaluator),
        "maps": [dict(truth.img_ann_map), dict(truth.cat_img_map)],
        "ids": truth.get_ann_ids(img_ids=truth.get_img_ids()[:2]),
        "annotations": truth.load_anns(truth.get_ann_ids(cat_ids=truth.get_cat_ids()[0])),
        "kind of results": type(detections).__name__,
    }


def copies(package: Package, case: Case) -> Seen:
    """Copies of everything at every stage, and pickles."""
    truth = package.COCO(str(case.truth_file))
    detections = truth.loadRes(str(case.results_file))
    seen: Seen = {}
    for name, twin in (("deepcopy", copy.deepcopy), ("pickle", _through_pickle)):
        evaluator = package.COCOeval(twin(truth), twin(detections), case.kind)
        evaluator.evaluate()
        evaluator = twin(evaluator)
        evaluator.accumulate()
        evaluator = twin(evaluator)
        evaluator.summarize()
        seen[name] = seen_of(evaluator)
        seen[f"{name} of results"] = shown_by(twin(detections))
        seen[f"{name} of parameters"] = twin(evaluator.params)
    return seen


def _through_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def detections_later(package: Package, case: Case) -> Seen:
    """One evaluator, with `cocoDt` and `imgIds` assigned batch by batch."""
    truth = package.COCO(str(case.truth_file))
    evaluator = package.COCOeval(truth, iouType=case.kind)
    seen: Seen = {}
    for number, batch in enumerate(batches(truth, len(truth.imgs) // 3)):
        records = [r for r in case.results() if r["image_id"] in batch]
        evaluator.cocoDt = truth.loadRes(records) if records else package.COCO()
        evaluator.params.imgIds = list(batch)
        evaluator.evaluate()
        evaluator.accumulate()
        seen[str(number)] = copy.deepcopy(seen_of(evaluator))
    return seen


def batches(truth: Any, size: int) -> list[list[Any]]:
    images = truth.getImgIds()
    return [images[start : start + size] for start in range(0, len(images), size)]


def images_by_name(package: Package, case: Case) -> Seen:
    """`imgIds` from file names, in any order and twice; `catIds` of a few classes."""
    truth, detections = loaded(package, case)
    names = {image["file_name"]: image["id"] for image in truth.loadImgs(truth.getImgIds())}
    evaluator = package.COCOeval(truth, detections, case.kind)
    evaluator.params.imgIds = [names[name] for name in [*sorted(names, reverse=True)[:5]] * 2]
    evaluator.params.catIds = truth.getCatIds()[1:3]
    return seen_of(run(evaluator))


def other_params(package: Package, case: Case) -> Seen:
    """User-defined max dets, thresholds, recall levels and area ranges."""
    truth, detections = loaded(package, case)
    evaluator = package.COCOeval(truth, detections, case.kind)
    evaluator.params.maxDets = [300, 2, 100]
    evaluator.params.iouThrs = np.array([0.3, 0.5, 0.75, 1.0])
    evaluator.params.recThrs = np.linspace(0, 1, 11)
    evaluator.params.areaRng = [[0, 1e10], [0, 1024], [500.5, 9216.0]]
    evaluator.params.areaRngLbl = ["all", "small", "middling"]
    seen = {"all": copy.deepcopy(seen_of(run(evaluator)))}
    evaluator.params.maxDets = [1, 10]
    evaluator.evaluate()
    evaluator.accumulate()
    seen["two limits"] = copy.deepcopy(seen_of(evaluator))
    evaluator.params.iouThrs = np.array([0.9, 0.5])
    evaluator.params.maxDets = [100, 300, 1000]
    seen["falling thresholds"] = seen_of(run(evaluator))
    return seen


def shown_after(package: Package, case: Case) -> Seen:
    """Contents of the records after evaluating some images, some classes, and without classes."""
    truth, detections = loaded(package, case)
    images = truth.getImgIds()
    evaluator = package.COCOeval(truth, detections, case.kind)
    evaluator.params.imgIds = images[: len(images) // 2]
    run(evaluator)
    evaluator.params.catIds = truth.getCatIds()[1:]
    evaluator.params.areaRng = [[0, 1e10], [0, 1e10], [0, 1e10], [0, 700]]
    evaluator.params.imgIds = images[len(images) // 3 :]
    run(evaluator)
    if case.kind != "keypoints":
        evaluator.params.useCats = 0
        evaluator.params.imgIds = images[-1:]
        evaluator.evaluate()
    return {"ground_truth": shown_by(truth), "detections": shown_by(detections)}


def without_categories(package: Package, case: Case) -> Seen:
    """`useCats = 0`, as for proposals; twice, since accumulate() changes `catIds`."""
    truth, detections = loaded(package, case)
    evaluator = package.COCOeval(truth, detections, case.kind)
    evaluator.params.useCats = 0
    evaluator.params.maxDets = [1, 10, 1000]
    seen = {"first": copy.deepcopy(seen_of(run(evaluator)))}
    evaluator.accumulate()
    seen["accumulated again"] = copy.deepcopy(evaluator.eval["precision"])
    seen["second"] = seen_of(run(evaluator))
    return seen


def step_by_step(package: Package, case: Case) -> Seen:
    """DETR's own evaluate(): the steps one by one on a copied data set."""
    truth = copy.deepcopy(package.COCO(str(case.truth_file)))
    evaluator = package.COCOeval(truth, iouType=case.kind)
    all_entries, all_images = [], []
    for batch in batches(truth, 3):
        records = [r for r in case.results() if r["image_id"] in batch]
        with contextlib.redirect_stdout(io.StringIO()):
            evaluator.cocoDt = truth.loadRes(records) if records else package.COCO()
        evaluator.params.imgIds = list(batch)
        p = evaluator.params
        p.imgIds = list(np.unique(p.imgIds))
        p.catIds = list(np.unique(p.catIds))
        p.maxDets = sorted(p.maxDets)
        evaluator.params = p
        evaluator._prepare()
        evaluator.ious = {(i, c): evaluator.computeIoU(i, c) for i in p.imgIds for c in p.catIds}
        entries = [
            evaluator.evaluateImg(i, c, area, p.maxDets[-1])
            for c in p.catIds
            for area in p.areaRng
            for i in p.imgIds
        ]
        evaluator._paramsEval = copy.deepcopy(evaluator.params)
        shape = len(p.catIds), len(p.areaRng), len(p.imgIds)
        all_entries.append(np.asarray(entries).reshape(shape))
        all_images += p.imgIds
    images, order = np.unique(all_images, return_index=True)
    evaluator.evalImgs = list(np.concatenate(all_entries, 2)[..., order].flatten())
    evaluator.params.imgIds = list(images)
    evaluator._paramsEval = copy.deepcopy(evaluator.params)
    evaluator.accumulate()
    evaluator.summarize()
    return seen_of(evaluator)


def batch_by_batch(package: Package, case: Case) -> Seen:
    """evaluate() for each batch, `evalImgs` merged: the last batch must not be the result."""
    truth = package.COCO(str(case.truth_file))
    detections = truth.loadRes(str(case.results_file))
    evaluator = package.COCOeval(truth, detections, case.kind)
    by_cell: dict[int, list[Any]] = defaultdict(list)
    images: list[Any] = []
    for batch in batches(truth, 2):
        evaluator.params.imgIds = sorted(batch)
        evaluator.evaluate()
        images += evaluator.params.imgIds
        for cell, start in enumerate(range(0, len(evaluator.evalImgs), len(batch))):
            by_cell[cell] += evaluator.evalImgs[start : start + len(batch)]
    evaluator.evalImgs = [entry for entries in by_cell.values() for entry in entries]
    evaluator.params.imgIds = images
    evaluator._paramsEval = copy.deepcopy(evaluator.params)
    evaluator.accumulate()
    evaluator.summarize()
    return seen_of(evaluator)


def overridden(package: Package, case: Case) -> Seen:
    """Overridden methods, on the class and on the object, take effect."""
    truth, detections = loaded(package, case)
    calls: list[Any] = []

    class Larger(package.COCOeval):  # type: ignore[misc, name-defined]
        def computeIoU(self, imgId: Any, catId: Any) -> Any:
            calls.append((imgId, catId))
            values = super().computeIoU(imgId, catId)
            return values if len(values) == 0 else values * 0.9

    class Fewer(package.COCOeval):  # type: ignore[misc, name-defined]
        def evaluateImg(self, imgId: Any, catId: Any, aRng: Any, maxDet: Any) -> Any:
            entry = super().evaluateImg(imgId, catId, aRng, maxDet)
            if entry is not None and len(entry["dtIds"]) == 1:
                entry["dtMatches"][:] = 0
            return entry

    class Marking(package.COCOeval):  # type: ignore[misc, name-defined]
        def _prepare(self) -> None:
            super()._prepare()
            for entries in self._gts.values():
                for entry in entries[::3]:
                    entry["ignore"] = 1

    class OfAnyName(package.COCOeval):  # type: ignore[misc, name-defined]
        def _summarize(self) -> None:
            raise AssertionError("a name that is the subclass's own")

        _images = _overlaps = _check_type = _open = _left = _of = _summarize

    seen = {
        kind.__name__: copy.deepcopy(seen_of(run(kind(truth, detections, case.kind))))
        for kind in (Larger, Fewer, Marking, OfAnyName)
    }
    evaluator = package.COCOeval(truth, detections, case.kind)
    evaluator.computeIoU = lambda image, category: []
    seen["of the object"] = seen_of(run(evaluator))
    return {**seen, "calls": calls}


def read_and_changed(package: Package, case: Case) -> Seen:
    """Results of evaluate() are read, changed in place, and accumulated with other parameters."""
    truth, detections = loaded(package, case)
    evaluator = package.COCOeval(truth, detections, case.kind)
    evaluator.evaluate()
    first = next(entry for entry in evaluator.evalImgs if entry is not None)
    first["dtIgnore"][:] = True
    evaluator.accumulate()
    seen = {"changed": copy.deepcopy(seen_of(evaluator))}
    evaluator.evaluate()
    evaluator.params.maxDets = [10]
    evaluator.params.recThrs = [0.5, 0.25, 0.75]
    evaluator.accumulate()
    seen["later parameters"] = copy.deepcopy(seen_of(evaluator))
    other = package.Params(iouType=case.kind)
    other.imgIds, other.catIds = evaluator._paramsEval.imgIds, evaluator._paramsEval.catIds[:2]
    other.areaRng = other.areaRng[::2]
    evaluator.accumulate(other)
    seen["parameters given"] = copy.deepcopy(seen_of(evaluator))
    image, category = evaluator._paramsEval.imgIds[0], evaluator._paramsEval.catIds[0]
    seen["overlaps"] = evaluator.computeIoU(image, category)
    return seen


def edited(package: Package, case: Case) -> Seen:
    """Indices and records edited by hand after creation take effect."""
    truth, detections = loaded(package, case)
    images = [image for image, entries in truth.imgToAnns.items() if len(entries) > 1]
    seen = {}
    truth.dataset["annotations"].remove(truth.imgToAnns[images[1]][-1])
    seen["still indexed"] = copy.deepcopy(
        seen_of(run(package.COCOeval(truth, detections, case.kind)))
    )
    truth.imgToAnns[images[0]].reverse()
    seen["another order"] = copy.deepcopy(
        seen_of(run(package.COCOeval(truth, detections, case.kind)))
    )
    name = truth.imgToAnns[images[-1]][0]["id"]
    moved = {"bbox": [0.0, 0.0, 5.0, 5.0], "segmentation": [[0, 0, 0, 5, 5, 5, 5, 0]]}
    truth.anns[name] = {**truth.anns[name], **moved}
    seen["another record"] = copy.deepcopy(
        seen_of(run(package.COCOeval(truth, detections, case.kind)))
    )
    truth.imgToAnns[images[-1]].pop()
    detections.imgToAnns[images[0]].pop()
    seen["one less"] = copy.deepcopy(seen_of(run(package.COCOeval(truth, detections, case.kind))))
    results = case.results()
    detections = truth.loadRes(results)
    for record in results[::3]:
        record["category_id"] = truth.getCatIds()[0]
    for record in results[1::3]:
        record["score"] = record["score"] / 2
    seen["records"] = seen_of(run(package.COCOeval(truth, detections, case.kind)))
    return seen


PATTERNS: dict[str, Callable[[Package, Case], Seen]] = {
    pattern.__name__: pattern
    for pattern in (
        *(demo, loading, subclass, copies, detections_later, images_by_name, other_params),
        *(without_categories, step_by_step, batch_by_batch, overridden, read_and_changed, edited),
        shown_after,
    )
}
