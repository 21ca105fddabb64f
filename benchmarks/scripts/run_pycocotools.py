"""pycocotools, as its own demo does it."""

import contextlib
import json
import os
import sys

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    truth = COCO(sys.argv[1])
    results = truth.loadRes(sys.argv[2])
    evaluator = COCOeval(truth, results, sys.argv[3])
    evaluator.evaluate()
    evaluator.accumulate()
    evaluator.summarize()
print(json.dumps([float(value) for value in evaluator.stats]))
