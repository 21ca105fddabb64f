"""Tables for tests of the analysis: unchecked ones and those of report_expected.json."""

import json
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.evaluation.detection import Result, evaluate
from detap.tables.detection import Detections, GroundTruth, encode_boxes
from tests.conftest import ROOT

Records = list[dict[str, Any]]

EXPECTED = ROOT.parent / "shared" / "spec" / "report_expected.json"
DATA = ROOT.parent / "shared" / "data"
CASES = (
    "tiny",
    "coco-val2014-100",
    "cartucho-85",
    "voc2007-test",
    "voc2007-test-difficult-as-crowd",
)


def fixture() -> Result:
    """Return the case computed by hand, at IoU .5."""
    folder = ROOT / "fixtures" / "error-types" / "coco"
    return evaluate(
        *raw_tables(
            json.loads((folder / "instances.json").read_text("utf-8")),
            json.loads((folder / "results.json").read_text("utf-8")),
        )
    )


@cache
def expected() -> dict[str, Any]:
    """Return the results of other implementations by case."""
    if not EXPECTED.is_file():
        pytest.skip(f"expected numbers are absent: no file {EXPECTED}")
    return json.loads(EXPECTED.read_text("utf-8"))["cases"]  # type: ignore[no-any-return]


@cache
def scored(case: str) -> Result:
    """Return the result of such a case by the COCO protocol."""
    entry = expected()[case]
    if "ground_truth" in entry:
        return evaluate(*raw_tables(entry["ground_truth"], entry["detections"]))
    folder = DATA / case.removesuffix("-difficult-as-crowd")
    if not folder.is_dir():
        pytest.skip(f"real data is absent: no folder {folder}")
    if case.startswith("voc2007"):
        return evaluate(*_voc2007(folder, difficult_as_crowd="crowd" in case))
    names = ("instances_val2014_100.json", "*fakebbox100*.json")
    if case == "cartucho-85":
        names = ("groundtruths_coco.json", "detections_coco.json")
    truth, detections = (next(folder.rglob(name)) for name in names)
    return evaluate(
        *raw_tables(json.loads(truth.read_text("utf-8")), json.loads(detections.read_text("utf-8")))
    )


def raw_tables(truth: dict[str, Any], detections: Records) -> tuple[GroundTruth, Detections]:
    """Return COCO records as unchecked tables, including boxes of negative size."""
    images = [image["id"] for image in truth["images"]]
    names = {category["id"]: category["name"] for category in truth["categories"]}
    for record in detections:
        names.setdefault(record["category_id"], str(record["category_id"]))
    rows = truth["annotations"]

    def columns(records: Records) -> dict[str, Any]:
        boxes = np.array([record["bbox"] for record in records], np.float64).reshape(-1, 4)
        corners, area = encode_boxes(boxes, "xywh")
        label = [list(names).index(record["category_id"]) for record in records]
        number = {image: index for index, image in enumerate(images)}
        return {
            "image": np.array([number[record["image_id"]] for record in records], np.int32),
            "label": np.array(label, np.int32),
            "corners": corners,
            "box_area": area,
            "images": tuple(images),
            "classes": tuple(names.values()),
            "class_ids": tuple(names),
        }

    sizes = [[image.get("width", np.nan), image.get("height", np.nan)] for image in truth["images"]]
    flags: dict[str, Any] = {
        name: np.zeros(len(rows), np.bool_) for name in ("difficult", "ignore", "group_of")
    }
    return (
        GroundTruth(
            **columns(rows),
            area=np.array([row["area"] for row in rows], np.float64),
            crowd=np.array([row.get("iscrowd", 0) for row in rows], np.bool_),
            image_sizes=np.array(sizes, np.float64).reshape(-1, 2),
            **flags,
        ),
        Detections(
            **columns(detections),
            score=np.array([record["score"] for record in detections], np.float64),
        ),
    )


def _voc2007(folder: Path, *, difficult_as_crowd: bool) -> tuple[GroundTruth, Detections]:
    images: Records = []
    rows: Records = []
    for path in sorted(folder.rglob("*.xml")):
        images.append({"id": path.stem})
        for item in ET.parse(path).getroot().findall("object"):
            box = item.find("bndbox")
            assert box is not None
            x1, y1, x2, y2 = (
                float(box.findtext(end, "")) for end in ("xmin", "ymin", "xmax", "ymax")
            )
            crowd = difficult_as_crowd and item.findtext("difficult") == "1"
            rows.append(
                {
                    "image_id": path.stem,
                    "category_id": item.findtext("name"),
                    "bbox": [x1, y1, x2 - x1, y2 - y1],
                    "area": (x2 - x1) * (y2 - y1),
                    "iscrowd": crowd,
                }
            )
    detections: Records = []
    files = sorted(folder.rglob("comp4_det_test_*.txt"))
    for path in files:
        label = path.stem.removeprefix("comp4_det_test_")
        for line in path.read_text("utf-8").splitlines():
            image, *numbers = line.split()
            score, x1, y1, x2, y2 = map(float, numbers)
            # As a COCO file has them that was made with six decimals.
            xywh = [x1, y1, round(x2 - x1, 6), round(y2 - y1, 6)]
            detections.append(
                {"image_id": image, "category_id": label, "bbox": xywh, "score": score}
            )
    labels = [path.stem.removeprefix("comp4_det_test_") for path in files]
    categories = [{"id": label, "name": label} for label in labels]
    return raw_tables({"images": images, "categories": categories, "annotations": rows}, detections)
