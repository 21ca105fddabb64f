"""Let libraries that import pycocotools, or choose a backend by name, use detap.

    python examples/loops/coco_backends.py

SAHI imports pycocotools, or ``ultrafast_pycocotools`` as its backend ``ultrafast``. RF-DETR does
for ``eval_backend="ufcoco"``. torchvision's reference ``CocoEvaluator`` imports pycocotools.
"""

import json
import tempfile

from detap.compat.pycocotools import install, uninstall

FOLDER = "fixtures/quickstart/coco"

if __name__ == "__main__":
    install()  # before SAHI imports pycocotools
    install("ultrafast_pycocotools")  # for RF-DETR
    from sahi.scripts.coco_evaluation import evaluate

    with tempfile.TemporaryDirectory() as out:
        given = f"{FOLDER}/instances.json", f"{FOLDER}/results.json", out
        values = evaluate(*given, max_detections=100, return_dict=True)
    print(json.dumps(values["eval_results"]))
    uninstall()
