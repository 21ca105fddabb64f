"""ultrafast-pycocotools, as its README does it; it uses every core by itself."""

import contextlib
import json
import os
import sys

from ultrafast_pycocotools import COCO, COCOeval

with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    truth = COCO(sys.argv[1], verbose=False)
    results = truth.loadRes(sys.argv[2])
    evaluator = COCOeval(truth, results, sys.argv[3])
    evaluator.run()
print(json.dumps([float(value) for value in evaluator.stats]))
