"""``explain --value`` lists the presets that give a value."""

import random
import re
from math import isnan
from pathlib import Path
from typing import Any

import pytest

import detap
from detap.analysis.explanation.numbers import Tables, is_applicable
from detap.analysis.explanation.protocol_search import TargetValue, protocol_search
from detap.evaluation.scoring import score_tables
from detap.protocols import PRESETS, Protocol
from detap.report.sections.explanation import protocol_search_report
from tests.formats.voc_files import write

_COCO = "coco-val2014-100/instances_val2014"
_OBB = "formats2/ultralytics-obb"
DATA: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "coco": (f"{_COCO}_100.json", f"{_COCO}_fakebbox100_results.json", "bbox", {}),
    "cartucho": ("cartucho-85/ground-truth", "cartucho-85/detection-results", "bbox", {}),
    "kitti": ("kitti-from-voc/label_2", "kitti-from-voc/results", "bbox", {}),
    "masks": (f"{_COCO}_100.json", f"{_COCO}_fakesegm100_results.json", "segm", {"masks": True}),
    "boundaries": (
        f"{_COCO}_100.json",
        f"{_COCO}_fakesegm100_results.json",
        "boundary",
        {"masks": True},
    ),
    "keypoints": (
        "keypoints/coco79_gt.json",
        "keypoints/coco79_dt.json",
        "keypoints",
        {"keypoints": True},
    ),
    "rotated": (f"{_OBB}/data.yaml", f"{_OBB}/predictions", "polygon", {}),
}
SAMPLE = 6
"""Numbers planted of each data set, of some 10 to 150 that there are."""


def tables_of(folder: Path, name: str) -> Tables:
    gt, dt, overlap, reading = DATA[name]
    if overlap == "polygon":
        reading = {"image_sizes": folder / _OBB / "sizes.csv"}
    truth = detap.read_ground_truth(folder / gt, **reading)
    return truth, detap.read_detections(folder / dt, truth, **reading)


def answer(tables: Tables, value: float, at: str | None, overlap: str) -> str:
    changes = {} if overlap == "bbox" else {"iou_type": overlap}
    return str(
        protocol_search_report(
            protocol_search(tables, TargetValue.of(f"{value:.6f}"), at, changes=changes)
        ).conclusion
    )


def names(text: str, preset: str) -> bool:
    return re.search(rf"(?<![-\w]){re.escape(preset)}(?![-\w])", text) is not None


@pytest.mark.filterwarnings("ignore::detap.DetapWarning")
@pytest.mark.parametrize("name", DATA)
def test_the_preset_of_a_value_is_listed(real_data: Path, name: str) -> None:
    """All 1,032 values tried once were found: as .6f and .4f, with --metric and without."""
    overlap, tables = DATA[name][2], tables_of(real_data, name)
    presets = [
        protocol
        for protocol in PRESETS.values()
        if protocol.iou_type == overlap and is_applicable(protocol, tables)
        if not protocol.keys  # others read other keypoints, and are not searched
    ]
    assert presets
    draw = random.Random(32)
    for protocol in draw.sample(presets, min(SAMPLE, len(presets))):
        summary = score_tables(*tables, protocol).summary
        metric = draw.choice([name for name, value in summary.items() if not isnan(value)])
        for at in (None, metric):
            text = answer(tables, summary[metric], at, overlap)
            assert names(text, protocol.name), (protocol.name, metric, at, text)
            assert "No preset" not in text


def test_presets_of_other_iou_types_are_reported_as_skipped(
    real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pycocotools 2.0.11's AP50 of masks is that of coco-segm, and no box preset gives it."""
    tables = tables_of(real_data, "masks")
    target = TargetValue.of("0.562288")
    monkeypatch.setattr("detap.analysis.explanation.protocol_search.MAX_PAIRS", 10)
    search = protocol_search(tables, target, "AP50")
    assert not search.equal
    text = str(protocol_search_report(search).conclusion)
    assert text.startswith("No searched preset")
    skipped = {name for names in search.skipped.values() for name in names}
    others = {name for name, protocol in PRESETS.items() if protocol.iou_type != "bbox"}
    assert others == skipped & others
    again = answer(tables, 0.3195452758576433, None, "segm")
    assert again.startswith("coco-segm gives AP 0.3195452758576433, equal in all 6 digits")
    assert again.endswith(" (all with iou type segm)")  # also coco, which itself compares boxes


def test_presets_in_pixels_are_skipped_for_normalized_boxes(tmp_path: Path) -> None:
    """Normalized boxes of images of unknown size: 1 of 1 matches by presets without pixels."""
    write(
        tmp_path,
        {
            "gt.csv": "ImageID,LabelName,XMin,XMax,YMin,YMax\na,/m/0bt9lr,0.1,0.5,0.1,0.5\n",
            "dt.csv": "ImageID,LabelName,Score,XMin,XMax,YMin,YMax\n"
            "a,/m/0bt9lr,0.9,0.1,0.5,0.1,0.5\n",
        },
    )
    truth = detap.read_ground_truth(tmp_path / "gt.csv")
    search = protocol_search(
        (truth, detap.read_detections(tmp_path / "dt.csv", truth)), TargetValue.of("1.000")
    )
    assert "open-images-v2" in {entry.protocol.name for entry in search.equal}
    (reason,) = (reason for reason, names in search.skipped.items() if "voc2007" in names)
    assert reason == "need data that the ground truth lacks"
    assert Protocol.presets["voc2007"].inclusive_pixels
