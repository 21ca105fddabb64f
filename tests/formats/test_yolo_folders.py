"""YOLO data sets with equal file names in several folders, such as the frames of videos."""

from pathlib import Path

import pytest

import detap
from detap.errors import InputError
from tests.formats.helpers import png

SIZE = (640, 480)
ROW = "0 0.5 0.5 0.25 0.5"
LAYOUTS = {
    "a folder": ("val: images/val", "images/val/{}"),
    "a list": ("val: val.txt", "images/val/{}"),
    "several folders": ("val: [first/images, second/images]", ""),
}


def data_set(folder: Path, layout: str, labels: dict[str, str]) -> Path:
    """Write the labels of images ``video/name`` and return the data.yaml."""
    entry, pattern = LAYOUTS[layout]
    images = []
    for name, rows in labels.items():
        video, _, frame = name.partition("/")
        image = f"{pattern.format(name) or f'{video}/images/{frame}'}.png"
        label = image.replace("images", "labels").replace(".png", ".txt")
        for path, content in ((folder / image, png(*SIZE)), (folder / label, rows.encode())):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        images.append(image)
    (folder / "val.txt").write_text("".join(f"./{image}\n" for image in images))
    (folder / "data.yaml").write_text(f"{entry}\nnames: [cat, dog, car]\n")
    return folder / "data.yaml"


def predictions(folder: Path, names: list[str]) -> Path:
    """Write a right prediction for each name."""
    for name in names:
        path = folder / "run" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{ROW} 0.9\n")
    return folder / "run"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_names_have_their_folder_if_the_stem_is_not_unique(tmp_path: Path, layout: str) -> None:
    names = ["first/0", "second/0", "second/1"]
    truth = detap.read_ground_truth(data_set(tmp_path, layout, dict.fromkeys(names, f"{ROW}\n")))
    labels = "/labels" if layout == "several folders" else ""
    first, second = f"first{labels}/0", f"second{labels}/0"
    assert truth.images == ("1", first, second)
    run = predictions(tmp_path, [first, second, second.replace("0", "1")])
    detections = detap.read_detections(run, truth, format="yolo")
    assert detap.evaluate(truth, detections, "coco").summary["AP"] == pytest.approx(1)
    flat = predictions(tmp_path / "flat", ["0", "1"])
    with pytest.raises(InputError, match="image '0' is not in the ground truth"):
        detap.read_detections(flat, truth, format="yolo")


def test_predictions_named_by_the_path_of_their_image(tmp_path: Path) -> None:
    labels = {"first/0": f"{ROW}\n", "second/0": ""}
    truth = detap.read_ground_truth(data_set(tmp_path, "a folder", labels))
    detections = detap.read_detections(predictions(tmp_path, ["first_0"]), truth, format="yolo")
    assert detections.images == ("first/0", "second/0")
    assert detections.image.tolist() == [0]
    assert {note.code for note in detections.notes} >= {"paths-flattened"}


def test_two_images_of_one_label_file(tmp_path: Path) -> None:
    path = data_set(tmp_path, "a folder", {"first/0": ROW, "second/0": ROW})
    (tmp_path / "images/val/second/0.jpg").write_bytes(png(*SIZE))
    with pytest.raises(InputError, match=r"duplicate image name '0' \(also .*second/0\.jpg\)"):
        detap.read_ground_truth(path)
    (tmp_path / "images/val/second/0.jpg").unlink()
    (tmp_path / "images/val/first/0.png").unlink()
    with pytest.raises(InputError, match=r"labels/val/first/0\.txt: no image '0' in "):
        detap.read_ground_truth(path)
