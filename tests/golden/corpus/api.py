"""Call the Python interface and print what it returns: `api.py NAME FIXTURES DATA ODD`."""

import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import detap
from detap.compat.pycocotools import COCO, COCOeval
from detap.ranking import losses
from detap.testing import assert_detections

FIXTURES, DATA, ODD = (Path(word) for word in sys.argv[2:5])
QUICKSTART = FIXTURES / "quickstart/coco"
REFUSALS = (detap.DetapError, ValueError, TypeError, LookupError, AssertionError, AttributeError)
VALUES = (
    "signature summary by_class classes images notes precision recall true_positives "
    "false_positives duplicates ignored average_precision ground_truth_counts iou_thresholds "
    "recall_levels area_ranges max_dets detections_count within_max_dets"
)
METHODS = (
    "to_dict table curves errors confusion calibration operating_point matches_table full_precision"
)
MATCHES = "score image label true_positive ignored matched_gt max_iou positive"
LOSSES = (
    "ap_loss calibration_loss fast_ap_loss quantized_ap_loss roadmap_loss smooth_ap_loss "
    "sup_ap_loss"
)


def show(label: str, value: Any) -> None:
    """Print a value: arrays as digests, containers entry by entry, text of many lines too."""
    if isinstance(value, np.ndarray):
        raw = repr(value.tolist()).encode() if value.dtype == object else value.tobytes()
        digest = hashlib.sha256(raw).hexdigest()[:16]
        print(f"{label}: {value.dtype} {value.shape} {digest} {value.ravel()[:4].tolist()!r}")
    elif isinstance(value, Mapping):
        print(f"{label}: {len(value)} entries")
        for key, entry in value.items():
            show(f"{label}[{key!r}]", entry)
    elif isinstance(value, list | tuple) and any(isinstance(v, np.ndarray | dict) for v in value):
        for at, entry in enumerate(value):
            show(f"{label}[{at}]", entry)
    elif type(value).__module__.startswith("detap."):
        print(f"{label}: {value!r}\n{value}")
    else:
        print(f"{label}: {value!r}")


def attempt(label: str, call: Callable[..., Any], /, *arguments: Any, **options: Any) -> None:
    """Show what a call returns or raises, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = call(*arguments, **options)
        except REFUSALS as error:
            print(f"{label}: {type(error).__name__}: {error}")
        else:
            show(label, value)
    for warning in caught:
        print(f"{label}: {warning.category.__name__}: {warning.message}")


def summary(*arguments: Any, **options: Any) -> dict[str, float]:
    """Evaluate, and return the summary."""
    return dict(detap.evaluate(*arguments, **options).summary)


def summary_of_arrays(truth: detap.GroundTruth, **values: Any) -> dict[str, float]:
    """Evaluate arrays of detections, and return the summary."""
    return summary(truth, detap.Detections.from_arrays(**values))


def to_dict(*arguments: Any, **options: Any) -> dict[str, Any]:
    """Evaluate, and return the content of the JSON report."""
    return dict(detap.evaluate(*arguments, **options).to_dict())


def show_result(label: str, result: detap.Result) -> None:
    """Show everything that a result has."""
    for name in VALUES.split():
        attempt(f"{label}.{name}", getattr, result, name)
    for name in METHODS.split():
        attempt(f"{label}.{name}()", getattr(result, name))
    attempt(f"{label}.intervals", result.intervals, 0.95, resamples=100)
    attempt(f"{label}.to_page", result.to_page)
    show(label, result)


def tables() -> tuple[detap.GroundTruth, detap.Detections]:
    """Read the large set."""
    truth = detap.read_ground_truth(ODD / "large/gt.json")
    return truth, detap.read_detections(ODD / "large/dt.json", truth)


def evaluate() -> None:
    """Show results of paths, of tables and of other protocols."""
    for name in ("quickstart", "crowd", "ties", "absent-class"):
        folder = FIXTURES / name / "coco"
        files = folder / "instances.json", folder / "results.json"
        for protocol in ("coco", "voc2012", "lvis", "ultralytics", "proposals"):
            attempt(f"{name} {protocol}", summary, *files, protocol)
        show_result(name, detap.evaluate(*files))
    truth, detections = tables()
    show("truth", columns(truth))
    show("detections", {name: getattr(detections, name) for name in ("image", "label", "score")})
    show_result("large", detap.evaluate(truth, detections))
    choices: list[dict[str, Any]] = [
        {"classes": ["class 1", "class 7"]},
        {"images": list(truth.images[:40])},
        {"threads": 1},
        {"classes": ["none"]},
        {"images": [9999]},
    ]
    for options in choices:
        attempt(f"{sorted(options)}", summary, truth, detections, **options)
    table = detap.evaluate(truth, detections, match_table=True).match_table
    for name in MATCHES.split():
        attempt(f"match_table.{name}", getattr, table, name)
    attempt("ground truth as detections", summary, truth, truth)


def columns(table: Any) -> dict[str, Any]:
    """Return everything of a ground truth."""
    about = {name: getattr(table, name) for name in ("classes", "images", "notes", "format")}
    return {**about, **table.columns()}


def columns_of_file(path: Path) -> dict[str, Any]:
    """Read a ground truth, and return everything of it."""
    return columns(detap.read_ground_truth(path))


def arrays() -> None:
    """Show tables from arrays: boxes, masks, keypoints, polygons, and what is refused."""
    generator = np.random.default_rng(8)
    image = np.repeat(np.arange(6), 5)
    label = np.array(["cat", "dog", "bird"])[generator.integers(0, 3, 30)]
    corners = generator.uniform(0, 60, (30, 2))
    boxes = np.hstack([corners, corners + generator.uniform(1, 30, (30, 2))])
    score = generator.random(30).round(1)
    objects: dict[str, Any] = {"image": image, "label": label}
    scored = {**objects, "score": score}
    moved = boxes + generator.normal(0, 1, boxes.shape)
    truth = detap.GroundTruth.from_arrays(**objects, boxes=boxes, images=range(8))
    detections = detap.Detections.from_arrays(**scored, boxes=moved)
    show_result("boxes", detap.evaluate(truth, detections))
    masks = np.zeros((30, 100, 100), np.uint8)
    for at, (x1, y1, x2, y2) in enumerate(boxes.astype(int)):
        masks[at, y1:y2, x1:x2] = 1
    points = generator.uniform(0, 60, (30, 17, 3))
    points[:, :, 2] = generator.integers(0, 3, (30, 17))
    quads = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]]
    shapes: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "coco-segm": ({"masks": masks}, {"masks": np.roll(masks, 1, axis=1)}),
        "coco-boundary": ({"masks": masks}, {"masks": np.roll(masks, 1, axis=2)}),
        "coco-keypoints": ({"keypoints": points, "boxes": boxes}, {"keypoints": points + 0.5}),
        "coco-polygon": ({"polygons": quads}, {"polygons": quads + 1}),
        "dota": ({"polygons": quads}, {"polygons": quads + 1}),
    }
    for protocol, (of_truth, of_found) in shapes.items():
        attempt(
            protocol,
            to_dict,
            detap.GroundTruth.from_arrays(**objects, **of_truth),
            detap.Detections.from_arrays(**scored, **of_found),
            protocol,
        )
    changes: dict[str, dict[str, Any]] = {
        "nan": {"boxes": boxes * np.nan},
        "ragged": {"boxes": [[1, 2], [3]]},
        "short": {"score": score[:3]},
        "text": {"score": ["a"] * 30},
        "format": {"box_format": "yxyx"},
        "negative": {"boxes": -boxes},
        "unit": {"boxes": boxes / 100},
        "xywh": {"box_format": "xywh"},
        "other image": {"image": image + 50},
        "other class": {"label": np.array(["lion"] * 30)},
    }
    for name, change in changes.items():
        values = {**scored, "boxes": boxes, **change}
        attempt(name, summary_of_arrays, truth, **values)
    kept, chosen = detap.select(truth, detections, classes=["cat"])
    show("selected", [kept.label, chosen.score])
    attempt("convert", detap.convert, "out", truth, detections, to="coco")


def evaluator() -> None:
    """Show results of batches in both orders, with and without ground truth."""
    truth, detections = tables()
    image, score = np.asarray(detections.image), np.asarray(detections.score)
    names = np.asarray(detections.classes, dtype=object)[np.asarray(detections.label)]
    boxes = np.asarray(detections.corners)
    for order in (1, -1):
        collector = detap.Evaluator(truth, protocol="coco", boxes="xyxy")
        for at in range(len(truth.images))[::order]:
            rows = np.flatnonzero(image == at)
            labels = names[rows].tolist()
            collector.update([truth.images[at]], [boxes[rows]], [score[rows]], [labels])
        show_result(f"order {order}", collector.compute())
    own = detap.Evaluator(protocol="coco-strict", boxes="xywh")
    for name in ("a", "b", "c"):
        own.update(
            [name],
            [[[1, 2, 30, 40], [5, 5, 9, 9]]],
            [[0.9, 0.5]],
            [["x", "y"]],
            ground_truth={"boxes": [[[1, 3, 30, 40]]], "labels": [["x"]]},
        )
    show_result("own", own.compute())
    attempt("repeated", own.update, ["a"], [[]], [[]], [[]])
    attempt("lengths", own.update, ["d"], [[[1, 2, 3, 4]]], [[]], [[]])
    own.reset()
    attempt("reset", own.compute)
    records = detap.Evaluator(detap.read_ground_truth(QUICKSTART / "instances.json"), images="seen")
    rows = json.loads((QUICKSTART / "results.json").read_text())
    records.update_records([1, 2], [record for record in rows if record["image_id"] < 3])
    attempt("records", lambda: records.compute().to_dict())


def gates() -> None:
    """Show the messages of `assert_detections`."""
    choices: list[dict[str, Any]] = [
        {"fail_under": 0.5},
        {"fail_under": 0.9},
        {"fail_under": {"AP50": 0.99, "class:cat.AP": 0.1}},
        {"fail_over": {"class:*.false_positives": 3}},
        {"fail_under": {"nothing": 1}},
        {"max_drop": 0.1},
        {"baseline": QUICKSTART / "results-worse.json", "max_drop": 0.1},
        {"fail_under": 0.9, "classes": ["cat"], "protocol": "voc2012"},
        {},
    ]
    for number, options in enumerate(choices):
        files = QUICKSTART / "instances.json", QUICKSTART / "results.json"
        attempt(f"{number} {sorted(options)}", assert_detections, *files, **options)


def rankings() -> None:
    """Show the losses and their gradients, and the decomposability gap."""
    generator = np.random.default_rng(4)
    scores = generator.normal(size=(5, 20)).round(1)
    relevant = generator.random((5, 20)) < 0.3
    relevant[:, 0] = True
    for name in LOSSES.split():
        value = getattr(losses, name)(scores, relevant)
        show(name, [value.value, value.gradient])
        attempt(f"{name} nan", getattr(losses, name), scores * np.nan, relevant)
    gap = losses.decomposability_gap(scores[0], relevant[0], np.arange(20) % 4)
    for name in ("applies", "bound", "calibrated_bound", "gap", "worst_bound"):
        show(f"gap {name}", getattr(gap, name))


def formats() -> None:
    """Show the columns that readers give, and the fields of every preset."""
    tools = DATA / "formats2/other-layouts"
    for path in (
        QUICKSTART / "instances.json",
        FIXTURES / "quickstart/voc/Annotations",
        FIXTURES / "labelling-tools/annotations.xml",
        FIXTURES / "kitti-levels/kitti/label_2",
        ODD / "jsonl/gt.jsonl",
        ODD / "dota/gt",
        ODD / "arrow/gt.parquet",
        tools / "createml",
        tools / "supervisely",
        tools / "tensorflow-csv",
        tools / "via/via_project.json",
        DATA / "bccd/Annotations",
        DATA / "lvis-val-100/lvis_val_100.json",
        DATA / "keypoints/coco79_gt.json",
    ):
        attempt(path.name, columns_of_file, path)
    for preset in detap.PRESETS:
        show(preset, detap.protocol(preset).as_dict())


def pycocotools() -> None:
    """Show the drop-in's results on boxes, masks and keypoints."""
    coco, keypoints, large = DATA / "coco-val2014-100", DATA / "keypoints", ODD / "large"
    results = "instances_val2014_fake{}100_results.json"
    sets = {
        "bbox": (coco / "instances_val2014_100.json", coco / results.format("bbox")),
        "segm": (coco / "instances_val2014_100.json", coco / results.format("segm")),
        "keypoints": (keypoints / "coco79_gt.json", keypoints / "coco79_dt.json"),
        "large bbox": (large / "gt.json", large / "dt.json"),
    }
    changes: dict[str, dict[str, Any]] = {
        "default": {},
        "classes": {"catIds": [1, 3]},
        "images": {"imgIds": [136, 42, 1, 2, 3]},
        "agnostic": {"useCats": 0},
        "limits": {"maxDets": [1, 5, 20]},
        "thresholds": {"iouThrs": np.array([0.3, 0.6])},
        "recall": {"recThrs": np.linspace(0, 1, 11)},
        "areas": {"areaRng": [[0, 1e10]], "areaRngLbl": ["all"]},
    }
    for name, (truth_file, results_file) in sets.items():
        truth = COCO(str(truth_file))
        detections = truth.loadRes(str(results_file))
        for kind, values in changes.items():
            coco_eval = COCOeval(truth, detections, name.split()[-1])
            for key, value in values.items():
                setattr(coco_eval.params, key, value)
            attempt(f"{name} {kind}", run, coco_eval)
        show(f"{name} ids", truth.getAnnIds(catIds=[1], areaRng=[0, 5000], iscrowd=False))
        show(f"{name} loaded", detections.loadAnns(detections.getAnnIds()[:3]))


def run(coco_eval: Any) -> dict[str, Any]:
    """Evaluate, and return what clients read."""
    coco_eval.evaluate()
    coco_eval.accumulate()
    coco_eval.summarize()
    images = [image for image in coco_eval.evalImgs if image is not None]
    ious = [np.asarray(iou) for iou in coco_eval.ious.values()]
    return {
        "stats": list(map(float, coco_eval.stats)),
        **{name: coco_eval.eval[name] for name in ("counts", "precision", "recall", "scores")},
        "images": digest(images),
        "ious": digest([iou for iou in ious if iou.size]),
    }


def digest(value: Any) -> str:
    """Return a digest of nested values, the same for equal values of any sequence type."""
    return hashlib.sha256(json.dumps(plain(value)).encode()).hexdigest()[:16]


def plain(value: Any) -> Any:
    """Return nested values as JSON's types, numbers as floats."""
    if isinstance(value, Mapping):
        return {str(key): plain(value[key]) for key in sorted(value)}
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value, dtype=float).tolist()
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return float(value) if isinstance(value, int | float) else value


CALLS = (evaluate, arrays, evaluator, gates, rankings, formats, pycocotools)


def print_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning without its file and line, which change without meaning."""
    print(f"{category.__name__}: {message}")


if __name__ == "__main__":
    warnings.showwarning = print_warning
    next(call for call in CALLS if call.__name__ == sys.argv[1])()
