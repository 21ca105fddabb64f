"""Real exports of labelling tools: the known metrics, and no false alarm on other data.

The twenty images are `voc-100`'s; their owner publishes pycocotools' metrics on each layout.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import detap
from detap.cli import main
from detap.errors import InputError, UsageError
from detap.formats.detection import matching_formats
from tests.formats.exports import write

OURS = ("tfcsv", "createml", "via", "datumaro", "supervisely")
LAYOUTS = {
    "other-layouts/tensorflow-csv": "TensorFlow CSV (only images with boxes are in it)",
    "other-layouts/tensorflow-csv/_annotations.csv": (
        "TensorFlow CSV (only images with boxes are in it)"
    ),
    "other-layouts/createml": "CreateML JSON (x and y are the centre)",
    "other-layouts/createml/_annotations.createml.json": "CreateML JSON (x and y are the centre)",
    "other-layouts/via/via_region_data.json": "VIA JSON, project and CSV",
    "other-layouts/via/via_project.json": "VIA JSON, project and CSV",
    "other-layouts/via/via_region_data.csv": "VIA JSON, project and CSV",
    "other-layouts/supervisely": "Supervisely",
    "other-layouts/supervisely/ds0": "Supervisely",
    "cvat-exports/datumaro/annotations/val.json": "datumaro JSON, val",
}
"""The key of the expected metrics by path."""


def results(formats2: Path, images: set[str], folder: Path) -> Path:
    """Write the detections of some images as COCO results that name images and categories."""
    records = json.loads((formats2 / "detections_20.json").read_text())
    classes = {name: n for n, name in enumerate(sorted({r["category"] for r in records}), 1)}
    rows = [
        {
            "image_id": record["image"],
            "category_id": classes[record["category"]],
            "bbox": record["bbox"],
            "score": record["score"],
        }
        for record in records
        if record["image"] in images
    ]
    categories = [{"id": n, "name": name} for name, n in classes.items()]
    return write(folder / "results.json", {"annotations": rows, "categories": categories})


def expected(formats2: Path, key: str) -> Any:
    record = json.loads((formats2 / "expected_layouts.json").read_text())[key]
    return pytest.approx({k: record[k] for k in ("AP", "AP50", "AP75")}, rel=0, abs=1e-9)


@pytest.mark.parametrize("path", LAYOUTS)
def test_the_known_metrics(
    formats2: Path, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = expected(formats2, LAYOUTS[path])
    truth = detap.read_ground_truth(formats2 / path)
    detections = results(formats2, set(map(str, truth.images)), tmp_path)
    table = detap.read_detections(detections, truth)
    summary = detap.evaluate(truth, table, "coco").summary
    assert {name: summary[name] for name in ("AP", "AP50", "AP75")} == known
    call = [
        "eval",
        "--gt",
        str(formats2 / path),
        "--dt",
        str(detections),
        "--output-format",
        "json",
    ]
    assert main(call) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert {name: summary[name] for name in ("AP", "AP50", "AP75")} == known


def test_a_subset_of_datumaro_is_chosen(formats2: Path, tmp_path: Path) -> None:
    folder = formats2 / "cvat-exports/datumaro"
    with pytest.raises(InputError, match=r"several subsets: 'train', 'val'; choose one"):
        detap.read_ground_truth(folder)
    truth = detap.read_ground_truth(folder, split="val")
    table = detap.read_detections(results(formats2, set(map(str, truth.images)), tmp_path), truth)
    summary = detap.evaluate(truth, table, "coco").summary
    known = expected(formats2, "datumaro JSON, val")
    assert {name: summary[name] for name in ("AP", "AP50", "AP75")} == known
    # One box of the other subset is rotated by 30 degrees about its center.
    train = detap.read_ground_truth(folder, split="train")
    images = set(map(str, train.images))
    table = detap.read_detections(results(formats2, images, tmp_path), train)
    with pytest.raises(UsageError, match="use --iou-type polygon for their IoU, or --shapes bbox"):
        detap.evaluate(train, table, "coco")
    assert detap.evaluate(train, table, "coco-polygon").summary["AP"] > 0
    assert len(detap.read_ground_truth(folder, split="train", shapes="bbox")) == 26


@pytest.mark.parametrize("target", ["tfcsv", "createml", "datumaro"])
def test_converted_files_give_the_known_metrics(
    formats2: Path, target: str, tmp_path: Path
) -> None:
    truth = detap.read_ground_truth(formats2 / "other-layouts/supervisely")
    table = detap.read_detections(results(formats2, set(map(str, truth.images)), tmp_path), truth)
    detap.convert(tmp_path / "out", truth, table, to=target)
    files = {"tfcsv": "{}.csv", "createml": "{}.json", "datumaro": "{}/default.json"}[target]
    again = detap.read_ground_truth(tmp_path / "out" / files.format("annotations"))
    read = detap.read_detections(tmp_path / "out" / files.format("detections"), again)
    assert (again.format, len(again), len(read)) == (target, 62, len(table))
    summary = detap.evaluate(again, read, "coco").summary
    known = expected(formats2, "Supervisely")
    assert {name: summary[name] for name in ("AP", "AP50", "AP75")} == known


def test_supervision_writes_its_ground_truth_as_detections(formats2: Path) -> None:
    """Every detection of the file is an object of the three images."""
    truth = detap.read_ground_truth(formats2 / "other-layouts/createml")
    names = formats2 / "supervision/data.yaml"
    table = detap.read_detections(
        formats2 / "supervision/detections.csv", truth, dt_class_names=names
    )
    assert len(table) > 0
    rows = [*zip(truth.image.tolist(), truth.label.tolist(), truth.corners.tolist(), strict=True)]
    images = set(table.image.tolist())
    detected = zip(table.image.tolist(), table.label.tolist(), table.corners.tolist(), strict=True)
    assert sorted(detected) == sorted(row for row in rows if row[0] in images)


def test_no_false_alarm_on_other_data(real_data: Path) -> None:
    """No file or folder of another format looks like one of these."""
    for folder in (real_data, *(p for p in real_data.rglob("*") if p.is_dir())):
        files = [*folder.glob("*.json"), *folder.glob("*.csv")][:50]
        of_these = "formats2" in str(folder) and any(
            part in str(folder) for part in ("other-layouts", "datumaro", "supervision")
        )
        for path in () if of_these else (folder, *files):
            assert set(matching_formats(str(path))).isdisjoint(OURS), path
