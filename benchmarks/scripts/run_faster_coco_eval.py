"""faster-coco-eval, as its README's quick start does it, without the optional extra counting."""

import json
import sys

from faster_coco_eval import COCO, COCOeval_faster

NUMBERS = {"bbox": 12, "segm": 12, "keypoints": 10}  # those of pycocotools; more follow

truth = COCO(sys.argv[1])
results = truth.loadRes(sys.argv[2])
evaluator = COCOeval_faster(truth, results, sys.argv[3])
evaluator.evaluate()
evaluator.accumulate()
evaluator.summarize()
print(json.dumps([float(value) for value in evaluator.stats[: NUMBERS[sys.argv[3]]]]))
