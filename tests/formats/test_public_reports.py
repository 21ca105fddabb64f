"""Data of public reports, rebuilt: the metrics of pycocotools and of other evaluators."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import detap

AP, MAP = 0.451418, 0.762593
"""Of the same boxes in their right form, by pycocotools and by an independent VOC evaluator."""


class Report(NamedTuple):
    """A folder with its two inputs, the metrics, and notes that tell what is odd."""

    folder: str
    truth: str
    detections: str
    summary: dict[str, float]
    notes: tuple[str, ...] = ()
    protocol: Any = "coco"
    options: Mapping[str, Any] = {}


def by_box(name: str) -> detap.Protocol:
    return detap.protocol(name).with_changes(area_source="box")


JSON = ("gt.json", "dt.json")
ALIKE = "exported-names-matched"
SIZES = {"APs": 0.651485, "APm": 0.483014, "APl": 0.291089}
HALF_IMAGE = {"AP": AP, "APs": 0.552805, "APm": 0.319327}
MORE_IMAGES = {"AP": 0.604279, "AP50": 0.866227}
WRONG_AREAS = ("areas-look-wrong",)
DROP = {"extra_images": "drop"}
REPORTS = [
    Report("unicode-form-of-names", *JSON, {"AP": AP}, ("names-in-unicode-form",)),
    Report("label-studio-uploaded-names", "gt.json", "dt", {"AP": AP}, (ALIKE,)),
    Report("detections-in-folders", "gt.json", "dt", {"AP": AP}),
    Report("annotation-ids-by-image", *JSON, {"AP": AP}, ("annotation-ids-by-image",)),
    Report("yolo-track-ids", "data.yaml", "pred", {"AP": AP}, ("track-ids",)),
    Report("yolo-float-class", "data.yaml", "pred", {"AP": AP}),
    # 16 of the 28 detections match one of the 20 objects, as with confidences.
    Report("yolo-track-ids-no-conf", "data.yaml", "pred", {"F1": 32 / 48}, ("track-ids",)),
    Report("voc-truncated-fraction", "", "dt", {"mAP": MAP}, (), "voc2012"),
    Report("voc-difficult-empty", "", "dt", {"mAP": MAP}, ("empty-difficult",), "voc2012"),
    Report("coco-null-area", *JSON, {"AP": AP, "APs": 0.651485}),
    Report("box-area-of-image", *JSON, {"AP": AP, "APl": 0.528977}, WRONG_AREAS),
    Report("box-area-of-image", *JSON, SIZES, (), by_box("coco")),
    Report("box-area-of-half-image", *JSON, HALF_IMAGE, WRONG_AREAS),
    Report("box-area-of-half-image", *JSON, SIZES, (), by_box("coco")),
    Report("kp-area-zero", *JSON, {"AP": 0}, WRONG_AREAS, "coco-keypoints"),
    Report("kp-area-zero", *JSON, {"AP": 0.873276}, (), by_box("coco-keypoints")),
    Report("constant-scores", *JSON, {"AP": 0.399627}, ("one-score",)),
    Report("coco-ground-truth-twice", *JSON, {"AP": 0.228720}, ("repeated-objects",)),
    Report("results-of-more-images", *JSON, MORE_IMAGES, ("extra-images",), options=DROP),
    Report("results-of-more-images", *JSON, MORE_IMAGES, options={"images": [1, 2, 3]}),
]


@pytest.mark.parametrize("report", REPORTS, ids=lambda r: f"{r.folder} {[*r.summary]}")
@pytest.mark.filterwarnings("ignore::detap.DetapWarning")
def test_a_report_has_its_metrics(real_data: Path, report: Report) -> None:
    folder = real_data / "reports4" / report.folder
    if not folder.is_dir():
        pytest.skip(f"the rebuilt reports are absent: no folder {folder}")
    paths = folder / report.truth, folder / report.detections
    result = detap.evaluate(*paths, report.protocol, **report.options)
    for name, value in report.summary.items():
        assert result.summary[name] == pytest.approx(value, abs=1e-6), name
    assert {*report.notes} <= {note.code for note in result.notes}
