"""YOLO's format on real data: the published metrics, for every way to give the files."""

import json
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import detap
from tests.cli.conftest import Ended
from tests.cli.conftest import detap as command_fixture
from tests.formats.voc_files import write

command = command_fixture


@pytest.fixture
def folder(real_data: Path) -> Path:
    path = real_data / "yolo-voc-100"
    if not path.is_dir():
        pytest.skip(f"real data is absent: no folder {path}")
    return path


@pytest.fixture
def voc(real_data: Path) -> Path:
    return real_data / "voc-100"


def summary_of(
    truth: Path, predictions: Path, for_truth: Any, for_found: Any
) -> Mapping[str, float]:
    table = detap.read_ground_truth(truth, **for_truth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detections = detap.read_detections(predictions, table, **for_found)
        return detap.evaluate(table, detections, protocol="coco").summary


def known(folder: Path) -> Any:
    numbers = json.loads((folder / "expected_coco.json").read_text())
    return pytest.approx(numbers, rel=0, abs=1e-12)


def test_the_known_metrics(folder: Path) -> None:
    sizes = {"image_sizes": folder / "sizes.csv"}
    detections = folder / "predictions"
    expected = known(folder)
    assert summary_of(folder / "data.yaml", detections, sizes, {}) == expected
    assert summary_of(folder / "labels" / "val", detections / "labels", sizes, sizes) == expected


def test_any_ground_truth_format(folder: Path, voc: Path, tmp_path: Path) -> None:
    numbers = json.loads((voc / "expected_coco_all_encodings.json").read_text())
    expected = pytest.approx(numbers, rel=0, abs=1e-12)
    names = {"class_names": folder / "data.yaml"}
    detections = folder / "predictions"
    assert summary_of(voc / "gt" / "voc_xml", detections, {}, names) == expected
    coco = voc / "gt" / "coco_v2" / "instances_v2.json"
    assert summary_of(coco, detections, {}, names) == expected


def test_images_have_the_sizes_of_the_table(folder: Path, tmp_path: Path) -> None:
    """The images are not part of the data: headers of their sizes are written instead."""
    image = pytest.importorskip("PIL.Image", reason="Pillow writes the images")
    table = detap.read_ground_truth(folder / "data.yaml", image_sizes=folder / "sizes.csv")
    assert table.image_sizes is not None
    write(tmp_path, {"data.yaml": (folder / "data.yaml").read_text(), "images/val/x.txt": ""})
    (tmp_path / "labels").mkdir()
    os.symlink(folder / "labels" / "val", tmp_path / "labels" / "val")
    for name, size in zip(table.images, table.image_sizes.astype(int).tolist(), strict=True):
        image.new("L", size).save(tmp_path / "images" / "val" / f"{name}.jpg", quality=1)
    data = tmp_path / "data.yaml"
    assert summary_of(data, folder / "predictions", {}, {}) == known(folder)


def test_an_image_size_changes_only_areas(folder: Path) -> None:
    detections = summary_of(
        folder / "data.yaml", folder / "predictions", {"image_size": "640x640"}, {}
    )
    assert detections["AP"] == pytest.approx(0.3469, abs=1e-4)  # one overlap lies on a threshold
    assert detections["APs"] == pytest.approx(0.0154, abs=5e-5)


def test_columns_of_padillas_tools(folder: Path, voc: Path) -> None:
    """The same detections in their column order, numbered by VOC's own class list."""
    padilla = voc / "dt" / "rel_xywh"
    sizes = {"image_sizes": folder / "sizes.csv"}
    data = folder / "data.yaml"
    right = {"dt_class_names": voc / "voc.names"}
    assert summary_of(data, padilla, sizes, right) == known(folder)
    # As if they were Ultralytics', which none of them suggests:
    wrong = summary_of(data, padilla, sizes, {**right, "columns": "conf-last"})
    assert wrong["AP"] == pytest.approx(0.0137, abs=5e-5)


@pytest.mark.parametrize("box_format", ["xywh", "xyxy"])
def test_boxes_in_another_format(folder: Path, tmp_path: Path, box_format: str) -> None:
    """The same boxes as top-left xywh, or xyxy, give the known metrics."""
    for side, path in (("labels", "labels/val"), ("found", "predictions/labels")):
        for file in (folder / path).iterdir():
            lines = [line.split() for line in file.read_text().splitlines()]
            text = "".join(f"{_by_corner(line, box_format)}\n" for line in lines)
            write(tmp_path, {f"{side}/{file.name}": text})
    reading: Any = {"image_sizes": folder / "sizes.csv", "boxes": box_format, "format": "yolo"}
    names = {"class_names": folder / "data.yaml"}
    actual = summary_of(tmp_path / "labels", tmp_path / "found", reading | names, reading)
    expected = json.loads((folder / "expected_coco.json").read_text())
    assert actual["AP"] == pytest.approx(expected["AP"], abs=1e-4)  # last bits at a threshold
    assert actual["AP50"] == pytest.approx(expected["AP50"], abs=1e-12)


def _by_corner(line: list[str], box_format: str) -> str:
    name, *box = line
    x, y, width, height = map(float, box[:4])
    low = [x - width / 2, y - height / 2]
    second = [width, height] if box_format == "xywh" else [x + width / 2, y + height / 2]
    return " ".join([name, *(repr(value) for value in [*low, *second]), *box[4:]])


# --- the command


def test_the_former_hint_gave_a_wrong_metric(
    folder: Path, voc: Path, command: Callable[..., Ended]
) -> None:
    """Fractions taken for pixels gave mAP .4002, status 0 and no warning."""
    names = str(voc / "gt" / "yolo" / "obj.names")
    labels, detections = str(folder / "labels" / "val"), str(folder / "predictions" / "labels")
    words = ("eval", "--gt", labels, "--dt", detections, "--class-names", names)
    insisted = command(*words, "--boxes", "xywh", "--format", "voc")
    assert insisted.status == 2
    assert "look normalized" in insisted.err
    for remedy in ("--gt-format yolo", "--dt-format yolo"):
        assert remedy in insisted.err
    annotations = str(voc / "gt" / "voc_xml")
    mixed = ("eval", "--gt", annotations, *words[3:-2], "--class-names", str(folder / "data.yaml"))
    as_pixels = (*mixed, "--dt-format", "voc", "--dt-boxes", "xywh")
    assert "--dt-format yolo" in command(*as_pixels).err
    done = command(*mixed, "--dt-format", "yolo", "--protocol", "coco", "--output-format", "json")
    assert json.loads(done.out)["summary"]["AP"] == pytest.approx(0.3469581862666092, abs=1e-12)


def test_the_hint_gives_the_right_metric(
    folder: Path, voc: Path, command: Callable[..., Ended]
) -> None:
    labels, detections = str(folder / "labels" / "val"), str(folder / "predictions" / "labels")
    sizes = ("--image-sizes", str(folder / "sizes.csv"))
    done = command(
        "eval", "--gt", labels, "--dt", detections, "--format", "yolo", *sizes,
        "--protocol", "voc2012", "--output-format", "json",
    )  # fmt: skip
    assert done.status == 0
    assert json.loads(done.out)["summary"]["mAP"] == pytest.approx(0.6109, abs=5e-5)


def test_check_of_either_input(folder: Path, command: Callable[..., Ended]) -> None:
    sizes = ("--image-sizes", str(folder / "sizes.csv"))
    truth = command("check", "--gt", str(folder / "data.yaml"), *sizes)
    assert truth.status == 0
    assert "273" in truth.out
    detections = command("check", "--dt", str(folder / "predictions"), *sizes)
    assert detections.status == 0
    assert "452" in detections.out
    unsized = command("check", "--gt", str(folder / "data.yaml"))
    assert unsized.status == 2
    assert "--image-size WxH" in unsized.out + unsized.err
