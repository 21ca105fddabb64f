"""Time drop-in replacements of pycocotools from loadRes to summarize.

    drop_in.py TOOL path|records|rows|annotations|categories GROUND_TRUTH DETECTIONS

``path`` passes the results file, ``records`` its content, ``rows`` the same as an (N, 7) array. The
ground truth is loaded before. ``annotations`` and ``categories`` are clients that read the
annotations of each image, or the images of each category, and pass the results file; their time
includes loading the ground truth. Prints the seconds and the AP as a JSON object.
"""

import contextlib
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from time import perf_counter

import numpy as np

CLIENTS = ("annotations", "categories")
PACKAGES = {
    "detap": "detap.compat.pycocotools",
    "ultrafast-pycocotools": "ultrafast_pycocotools",
    "hotcoco": "hotcoco",
    "faster-coco-eval": "faster_coco_eval",
    "pycocotools": "",
}


def results_as(what, path):
    if what in ("path", *CLIENTS):
        return path
    records = json.loads(Path(path).read_bytes())
    if what == "records":
        return records
    return np.array([[r["image_id"], *r["bbox"], r["score"], r["category_id"]] for r in records])


def main(words):
    tool, what, truth_path, results_path = words
    if PACKAGES[tool]:
        import_module(PACKAGES[tool]).init_as_pycocotools()
    coco, cocoeval = import_module("pycocotools.coco"), import_module("pycocotools.cocoeval")
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        start = perf_counter()
        truth = coco.COCO(truth_path)
        results = results_as(what, results_path)
        if what == "annotations":
            for image in truth.getImgIds():
                truth.loadAnns(truth.getAnnIds(imgIds=[image]))
        elif what == "categories":
            for category in truth.getCatIds():
                truth.getImgIds(catIds=[category])
        else:
            start = perf_counter()
        evaluator = cocoeval.COCOeval(truth, truth.loadRes(results), "bbox")
        evaluator.evaluate()
        evaluator.accumulate()
        evaluator.summarize()
        taken = perf_counter() - start
    print(json.dumps({"updates": 0.0, "rest": taken, "AP": float(evaluator.stats[0])}))


main(sys.argv[1:])
