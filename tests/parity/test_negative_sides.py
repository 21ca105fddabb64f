"""Boxes with negative width or height count as in pycocotools, to the last bit."""

from pathlib import Path

import numpy as np

from detap.evaluation.detection import evaluate
from detap.formats.voc import tables as voc
from tests.coco import read, saved
from tests.depth import on_some_images
from tests.parity import reference
from tests.parity.compare import assert_same_bits


def test_a_real_detector_with_negative_sizes(real_data: Path, tmp_path: Path) -> None:
    """VOC 2007 test as COCO, w = xmax - xmin, with its 1,970 negative widths and heights."""
    tree = real_data / "voc2007-test"
    truth = voc.read_ground_truth(tree, image_set="test")
    dt = voc.read_detections(tree / "detections", truth)
    instances, results, *_ = reference.as_coco(truth, dt)
    for number, annotation in enumerate(instances["annotations"], 1):
        annotation["id"] = number
    _, detections = read(saved(tmp_path, instances, results))
    counted = {note.code: note.count for note in detections.notes}
    assert counted["detections-negative-size"] == 1970
    assert int(np.count_nonzero(detections.box_area < 0)) > 1000
    instances, results = on_some_images(instances, results)
    ours = evaluate(*read(saved(tmp_path, instances, results)), "coco")
    theirs = reference.run(instances, results)
    assert_same_bits(ours.full_precision(), theirs.precision, "precision")
    assert_same_bits(ours.recall, theirs.recall, "recall")
    for name, value in theirs.summary.items():
        assert_same_bits(ours.metric(name), value, name)
