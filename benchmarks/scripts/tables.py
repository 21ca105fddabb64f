"""Write detections as Parquet, and time how detap reads a file of them.

    tables.py write RESULTS.json TARGET.parquet float32|float64
    tables.py read GROUND_TRUTH DETECTIONS

``read`` prints the seconds; the ground truth is read before, and what either format needs imported.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from time import perf_counter

import numpy as np

from detap.formats import read_detections, read_ground_truth


def write(source, target, kind):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    records = json.loads(Path(source).read_bytes())
    box = np.array([record["bbox"] for record in records], kind)
    columns = {
        "image_id": np.array([record["image_id"] for record in records], np.int64),
        "category_id": np.array([record["category_id"] for record in records], np.int32),
        "score": np.array([record["score"] for record in records], kind),
        **dict(zip(("x", "y", "width", "height"), box.T, strict=True)),
    }
    parquet.write_table(pa.table(columns), target)


def read(truth_path, path):
    truth = read_ground_truth(truth_path)
    if path.endswith(".parquet"):  # JSON needs no more than the ground truth did
        import_module("pyarrow.parquet")
        import_module("detap.formats.arrow.gather")
        import_module("detap.formats.arrow.tables")
    start = perf_counter()
    read_detections(path, truth)
    print(json.dumps(perf_counter() - start))


{"write": write, "read": read}[sys.argv[1]](*sys.argv[2:])
