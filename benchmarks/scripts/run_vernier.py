"""vernier, by the native interface that its README recommends, on every core."""

import json
import os
import sys
from pathlib import Path

from vernier.instance import Bbox, CocoDataset, Evaluator, Keypoints, Segm

KERNELS = {"bbox": Bbox, "segm": Segm, "keypoints": Keypoints}

truth = CocoDataset.from_json(Path(sys.argv[1]).read_bytes())
evaluator = Evaluator(iou=KERNELS[sys.argv[3]](), parity_mode="strict")
summary = evaluator.evaluate(truth, Path(sys.argv[2]).read_bytes(), num_threads=os.cpu_count())
print(json.dumps([float(value) for value in summary.stats]))
