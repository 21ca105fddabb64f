"""vernier, by the native interface that its README recommends, on every core."""

import json
import os
import sys
from pathlib import Path

from vernier.instance import Bbox, CocoDataset, Evaluator

truth = CocoDataset.from_json(Path(sys.argv[1]).read_bytes())
evaluator = Evaluator(iou=Bbox(), parity_mode="strict")
summary = evaluator.evaluate(truth, Path(sys.argv[2]).read_bytes(), num_threads=os.cpu_count())
print(json.dumps([float(value) for value in summary.stats]))
