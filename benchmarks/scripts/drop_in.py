"""Time pycocotools' classes, or detap's drop-in, from loading to summarize.

    drop_in.py detap|pycocotools path|annotations GROUND_TRUTH DETECTIONS

``annotations`` is a client that first reads the annotations of each image. Prints the seconds and
the AP as a JSON object.
"""

import contextlib
import json
import os
import sys
from importlib import import_module
from time import perf_counter


def main(words):
    tool, what, truth_path, results_path = words
    if tool == "detap":
        import_module("detap.compat.pycocotools").install()
    coco, cocoeval = import_module("pycocotools.coco"), import_module("pycocotools.cocoeval")
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        start = perf_counter()
        truth = coco.COCO(truth_path)
        if what == "annotations":
            for image in truth.getImgIds():
                truth.loadAnns(truth.getAnnIds(imgIds=[image]))
        evaluator = cocoeval.COCOeval(truth, truth.loadRes(results_path), "bbox")
        evaluator.evaluate()
        evaluator.accumulate()
        evaluator.summarize()
        taken = perf_counter() - start
    print(json.dumps({"updates": 0.0, "rest": taken, "AP": float(evaluator.stats[0])}))


main(sys.argv[1:])
