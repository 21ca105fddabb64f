"""Files that Ultralytics 8.4.190 wrote, with the numbers of pycocotools 2.0.11 and shapely 2.2.0.

The presets `ultralytics-pose` and `coco-polygon` have their reference values here.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import detap
from detap.errors import UsageError
from detap.formats.catalogue import FORMATS, default_protocol
from tests.cli.conftest import Run
from tests.formats.helpers import codes, png
from tests.formats.voc_files import write

JSON, TXT = "predictions/predictions.json", "predictions/labels"

CASES = [
    ("pose", TXT, "txt predictions, area 0.53 x box", "ultralytics-pose"),
    ("pose", JSON, "predictions.json, area 0.53 x box", "ultralytics-pose"),
    ("segment", TXT, "labels coco, txt polygons fillPoly(rounded)", "coco-segm"),
    ("segment", JSON, "labels coco-rasterised, predictions.json RLE", "coco-segm"),
    ("obb", TXT, "quadrilaterals, txt", "coco-polygon"),
    ("obb", JSON, "quadrilaterals, predictions.json poly", "coco-polygon"),
]
"""Task, predictions, block of expected.json, and preset."""


def data_of(real_data: Path, task: str) -> Path:
    folder = real_data / "formats2" / f"ultralytics-{task}"
    if not folder.is_dir():
        pytest.skip(f"real data is absent: no folder {folder}")
    return folder


def expected_of(folder: Path, block: str) -> dict[str, float]:
    numbers = json.loads((folder / "expected.json").read_text())[block]
    return {name: value for name, value in numbers.items() if value >= 0}


def with_images(folder: Path, to: Path) -> Path:
    """Write headers of images of the right sizes next to the labels; return the data.yaml."""
    write(to, {"data.yaml": (folder / "data.yaml").read_text()})
    (to / "labels").symlink_to(folder / "labels")
    for line in (folder / "sizes.csv").read_text().split()[1:]:
        name, width, height = line.split(",")
        stem = name.removesuffix(".jpg")
        write(to, {f"images/val/{stem}.png": png(int(width), int(height))})
    return to / "data.yaml"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sizes", ["table", "images"])
def test_by_command(
    sizes: str,
    case: tuple[str, str, str, str],
    real_data: Path,
    tmp_path: Path,
    command: Run,
) -> None:
    task, predictions, block, preset = case
    folder = data_of(real_data, task)
    words = ["eval", str(folder / "data.yaml"), str(folder / predictions)]
    if sizes == "table":
        words += ["--image-sizes", str(folder / "sizes.csv")]
    else:
        words[1] = str(with_images(folder, tmp_path))
    if task == "segment":
        # The reference used the pixels of masks; rows of predictions.json have boxes too.
        words += ["--iou-type", "segm", "--detection-area", "pixels"]
        preset += "|detection-area:pixels"
    report = json.loads(command(*words, "--output-format", "json").out)
    assert report["signature"].startswith(f"protocol:{preset}|detap:")
    assert report["summary"] == pytest.approx(expected_of(folder, block), abs=1e-9)


def test_pose_with_other_areas_and_sigmas(real_data: Path, tmp_path: Path) -> None:
    folder = data_of(real_data, "pose")
    data = with_images(folder, tmp_path)

    def summary(protocol: Any) -> dict[str, float]:
        return detap.evaluate(data, folder / TXT, protocol).summary

    # coco-keypoints uses 0.53 of the box too, since labels have no area.
    expected = expected_of(folder, "txt predictions, area 0.53 x box")
    assert summary("coco-keypoints") == pytest.approx(expected, abs=1e-9)
    whole = detap.protocol("coco-keypoints").with_changes(area_source="box")
    expected = expected_of(folder, "txt predictions, area 1 x box")
    assert summary(whole) == pytest.approx(expected, abs=1e-9)
    expected = expected_of(folder, "sigmas 1/17, area .53 x box, txt")
    data.write_text(f"{data.read_text()}kpt_oks_sigmas: [{', '.join([repr(1 / 17)] * 17)}]\n")
    assert summary(None) == pytest.approx(expected, abs=1e-9)
    expected = expected_of(folder, "boxes of the same files")
    boxes = summary("coco")
    assert {name: boxes[name] for name in expected} == pytest.approx(expected, abs=1e-9)


def test_predicted_polygons_as_outlines(real_data: Path, tmp_path: Path) -> None:
    """Vertices that are not pixels: polygons as pycocotools draws them, AP .306221."""
    folder = data_of(real_data, "segment")
    for file in (folder / TXT).glob("*.txt"):
        write(tmp_path, {f"run/{file.name}": file.read_text()})
    line = "0 .1001 .1003 .2007 .1003 .2007 .3001 .1001 .3001 0\n"  # last in the ranking
    first = min((tmp_path / "run").iterdir())
    first.write_text(first.read_text() + line)
    data = with_images(folder, tmp_path)
    result = detap.evaluate(data, tmp_path / "run", "coco-segm", format="yolo")
    expected = expected_of(folder, "labels coco-rasterised, txt polygons coco-rasterised")
    assert result.summary["AP50"] == pytest.approx(expected["AP50"], abs=1e-4)
    assert result.summary["AP"] == pytest.approx(expected["AP"], abs=1e-4)
    assert codes(result.detections)["outlines"] == 312


def test_predicted_polygons_are_the_masks(real_data: Path, tmp_path: Path) -> None:
    """Bit for bit in 257 of 311, those of one part and without holes."""
    folder = data_of(real_data, "segment")
    truth = detap.read_ground_truth(with_images(folder, tmp_path), masks=True)
    by_text = detap.read_detections(folder / TXT, truth, masks=True)
    exact = detap.read_detections(folder / JSON, truth, masks=True)
    assert by_text.masks is not None
    assert exact.masks is not None
    masks = set()
    for row, number in enumerate(exact.image.tolist()):
        start, end = exact.masks.run_start[row : row + 2].tolist()
        masks.add((number, exact.masks.runs[start:end].tobytes()))
    equal = 0
    for row, number in enumerate(by_text.image.tolist()):
        start, end = by_text.masks.run_start[row : row + 2].tolist()
        equal += (number, by_text.masks.runs[start:end].tobytes()) in masks
    assert equal >= 257
    (note,) = (note for note in by_text.notes if note.code == "contours")
    assert note.count == 311
    assert "predictions.json has exact masks" in note.message


# --- traps


@pytest.mark.parametrize("predictions", [TXT, JSON])
@pytest.mark.parametrize("task", [None, "obb"])
def test_bounding_boxes_of_oriented_boxes(
    predictions: str, task: str | None, real_data: Path, tmp_path: Path
) -> None:
    """AP is .5320, that of oriented boxes .4980."""
    folder = data_of(real_data, "obb")
    data = with_images(folder, tmp_path)
    with pytest.raises(UsageError, match="protocol coco compares boxes, but there are oriented"):
        detap.evaluate(data, folder / predictions, "coco", task=task)
    result = detap.evaluate(data, folder / predictions, shapes="bbox", task=task)
    assert result.protocol.name == "coco"
    expected = expected_of(folder, "boxes around them, txt (what is scored today)")
    # Areas are those of the bounding boxes, as if these had been annotated; the expected ones of
    # area ranges are of quadrilaterals.
    for name in ("AP", "AP50", "AP75", "AR1", "AR10", "AR100"):
        assert result.summary[name] == pytest.approx(expected[name], abs=1e-9), name


def test_a_pose_model_needs_keypoints(real_data: Path, tmp_path: Path) -> None:
    folder = data_of(real_data, "pose")
    truth = detap.read_ground_truth(with_images(folder, tmp_path))
    with pytest.raises(UsageError, match="pass keypoints=True to read_detections"):
        detap.evaluate(truth, detap.read_detections(folder / JSON, truth))


# --- recognition of the task


DATA_SETS = [
    ("yolo-voc-100", "data.yaml", ""),
    ("formats2/supervision", "yolo", ""),
    ("formats2/label-studio/YOLO", "labels", ""),
    ("formats2/cvat-exports/yolov8_detection", "data.yaml", ""),
    ("formats2/ultralytics-segment", "data.yaml", ""),
    ("formats2/ultralytics-pose", "data.yaml", "keypoints"),
    ("formats2/ultralytics-pose", "labels/val", "keypoints"),  # by the data.yaml above
    ("formats2/ultralytics-obb", "data.yaml", "polygons"),
    ("formats2/ultralytics-obb", "labels/val", "polygons"),
    ("formats2/label-studio/YOLO_OBB", "labels", "polygons"),
    ("formats2/cvat-exports/yolov8_oriented_boxes", "data.yaml", ""),  # val has upright boxes
]


@pytest.mark.parametrize(("folder", "name", "expected"), DATA_SETS)
def test_the_geometry_of_real_labels(
    folder: str, name: str, expected: str, real_data: Path
) -> None:
    path = real_data / folder / name
    if not path.exists():
        pytest.skip(f"real data is absent: no {path}")
    assert FORMATS["yolo"].geometry(str(path), {}) == expected
    truth = detap.read_ground_truth(path, format="yolo", image_size="500x400")
    assert (truth.keypoints is not None) == (expected == "keypoints")
    assert (truth.polygons is not None) == (expected == "polygons")
    split = "val"
    if name == "data.yaml" and "cvat" in folder:
        split = "train"
        truth = detap.read_ground_truth(path, split=split, image_size="500x400")
        assert FORMATS["yolo"].geometry(str(path), {"split": split}) == (
            "polygons" if "orien" in folder else ""
        )
    unexpected = {"track-ids", "keypoints-at-zero", "keypoints-zeroed"}
    assert not unexpected & codes(truth).keys()
    presets = {"keypoints": "ultralytics-pose", "polygons": "coco-polygon", "": "coco"}
    assert default_protocol(truth) == presets[FORMATS["yolo"].geometry(str(path), {"split": split})]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "polygons"),
        ({"task": "segment"}, ""),
        ({"task": "detect"}, ""),
        ({"task": "pose"}, "keypoints"),
        ({"task": "obb"}, "polygons"),
        ({"task": "obb", "shapes": "bbox"}, ""),
        ({"shapes": "bbox"}, ""),
        ({"shapes": "reject"}, "polygons"),
        ({"task": "pose", "shapes": "bbox"}, "keypoints"),
        ({"split": "train"}, ""),
        ({"split": "test"}, ""),
        ({"class_names": "other.yaml"}, "keypoints"),
    ],
)
@pytest.mark.parametrize("listed", ["val.txt", "images/val", "../set/images/val"])
def test_the_geometry_by_options(
    listed: str, options: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    folder = tmp_path / "set"
    write(
        folder,
        {
            "data.yaml": f"val: {listed}\ntrain: images/train\nnames: [a]\n",
            "other.yaml": "names: [a]\nkpt_shape: [2, 2]\n",
            "val.txt": "./images/val/1.jpg\n",
            "labels/val/1.txt": "0 .5 .2 .8 .5 .5 .8 .2 .5\n",
            "labels/train/1.txt": "0 .5 .5 .2 .2\n",
            "images/val/1.jpg": b"",
            "images/train/1.jpg": b"",
        },
    )
    given = dict(options)
    if "class_names" in given:
        given["class_names"] = str(folder / given["class_names"])
    assert FORMATS["yolo"].geometry(str(folder / "data.yaml"), given) == expected
    assert FORMATS["yolo"].geometry(str(folder), given) == expected


@pytest.mark.parametrize("text", ["names: [", "val: \x00", "val: nowhere\nnames: [a]\n", ""])
def test_the_geometry_of_an_invalid_data_yaml(text: str, tmp_path: Path) -> None:
    """The reader reports it."""
    write(tmp_path, {"data.yaml": text})
    assert not FORMATS["yolo"].geometry(str(tmp_path / "data.yaml"), {})
    assert not FORMATS["yolo"].geometry(str(tmp_path / "missing"), {})
