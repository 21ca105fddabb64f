"""Score an Ultralytics model by any protocol: python ultralytics_val.py yolo11n.pt coco8.yaml."""

import sys

from ultralytics import YOLO

from detap.torch import UltralyticsEvaluator

if __name__ == "__main__":
    model = YOLO(sys.argv[1])
    evaluator = UltralyticsEvaluator(model, protocol="coco")
    model.val(data=sys.argv[2])
    assert evaluator.result is not None
    print(evaluator.result.summary)
