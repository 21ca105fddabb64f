"""YOLO data sets with equal file names in several folders, such as the frames of videos."""

import re
from pathlib import Path

import pytest

import detap
from detap.errors import InputError
from tests.formats.helpers import png
from tests.formats.test_yolo import BOX, truth_of
from tests.formats.voc_files import write

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


# --- lists of images, whose paths are those of another machine


ELSEWHERE = "/nowhere/data/images/val"
FIX = "correct the list, or name the folder of the images in"


def listed_set(folder: Path, *lines: str, val: str = "val.txt") -> Path:
    """Write a data set of the images a to d of 10x10 pixels, and a list of the given lines."""
    files: dict[str, str | bytes] = {
        "data.yaml": f"val: {val}\nnames: [cat]\n",
        "val.txt": "".join(f"{line}\n" for line in lines),
    }
    for stem in "abcd":
        files |= {f"images/val/{stem}.png": png(10, 10), f"labels/val/{stem}.txt": BOX}
    write(folder, files)
    return folder / "data.yaml"


def refused(path: Path) -> str:
    with pytest.raises(InputError) as error:
        truth_of(path)
    (problem,) = error.value.problems
    assert error.value.omitted == 0
    return str(problem)


def test_half_of_the_images(tmp_path: Path) -> None:
    """The missing ones are no images without objects of unknown size."""
    lines = [*(f"images/val/{stem}.png" for stem in "ab"), *(f"{ELSEWHERE}/{s}.png" for s in "cd")]
    for given in (lines, lines[::-1]):
        path = listed_set(tmp_path, *given)
        number, image = next((n, s) for n, s in enumerate(given, 1) if s.startswith("/"))
        assert f"val.txt: line {number}: no such file or directory '{image}'" in refused(path)
        assert "; 2 of 4 images are missing); correct the list, or" in refused(path)
    # The first line decides no longer where relative paths begin.
    path = listed_set(tmp_path, "images/test/x.png", *lines[:2])
    assert f"line 1: no such file or directory 'images/test/x.png' (tried {tmp_path}" in (
        refused(path)
    )
    assert "of 3 images" not in refused(path)


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["images/train/a.png", "images/train/b.png"], 1),
        (["./images/train/a.png", "./images/train/b.png"], 1),
        (["images/val/a.png", "images/val/x.png", "images/val/y.png"], 2),
        (["C:\\data\\images\\val\\a.png", "C:\\data\\images\\val\\b.png"], 1),
        (["images\\val\\a.png", "images\\val\\b.png"], 1),
        (["C:/data/images/val/a.png", "C:/data/images/val/b.png"], 1),
    ],
)
def test_missing_paths(lines: list[str], line: int, tmp_path: Path) -> None:
    """Folders that do not exist, relative paths, and paths of Windows."""
    message = refused(listed_set(tmp_path, *lines))
    assert message.startswith(
        f"{tmp_path}/val.txt: line {line}: no such file or directory {lines[line - 1]!r} (tried "
    )
    assert f"; 2 of {len(lines)} images are missing); {FIX} {tmp_path}/data.yaml" in message


def test_several_lists(tmp_path: Path) -> None:
    """The list with missing images is named, whether it is the first or the last."""
    for val in ("[val.txt, more.txt]", "[more.txt, val.txt]"):
        path = listed_set(tmp_path, "images/val/a.png", val=val)
        write(tmp_path, {"more.txt": f"images/val/b.png\n{ELSEWHERE}/c.png\n"})
        assert refused(path) == (
            f"{tmp_path}/more.txt: line 2: no such file or directory '{ELSEWHERE}/c.png' (tried "
            f"{ELSEWHERE}/c.png); {FIX} {path}"
        )


def test_darknet(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "obj.data": "classes = 1\nvalid = data/test.txt\nnames = data/obj.names\n",
            "obj.names": "cat\n",
            "test.txt": "/x/data/obj/a.jpg\n/x/data/obj/b.jpg\ndata/obj/c.jpg\n",
            "obj/a.txt": BOX,
            "obj/c.txt": BOX,
        },
    )
    assert refused(tmp_path / "obj.data") == (
        f"{tmp_path}/test.txt: line 1: no such file or directory '/x/data/obj/a.jpg' (tried "
        f"/x/data/obj/a.jpg; 2 of 3 images are missing); {FIX} {tmp_path}/obj.data"
    )
    # Following the hint: labels next to images, whose files are not here.
    lines = "".join(f"data/obj/{stem}.jpg\n" for stem in "abc")
    write(tmp_path, {"test.txt": lines})
    assert truth_of(tmp_path, image_size="10x10").images == ("a", "b", "c")
    write(tmp_path, {"obj.data": "classes = 1\nvalid = data/obj\nnames = data/obj.names\n"})
    assert truth_of(tmp_path, image_size="10x10").images == ("a", "c")


def test_labels_hold_for_images_that_exist(tmp_path: Path) -> None:
    """Next to images without a folder `images`; an image without labels has no objects."""
    files = {f"day/{stem}.jpg": png(10, 10) for stem in "ab"}
    write(tmp_path, {**files, "day/a.txt": BOX, "v.txt": "day/a.jpg\nday/b.jpg\n"})
    write(tmp_path, {"data.yaml": "val: v.txt\nnames: [cat]\n"})
    truth = truth_of(tmp_path / "data.yaml")
    assert truth.images == ("a", "b")
    assert truth.corners.tolist() == [[3.75, 2.5, 6.25, 7.5]]
    write(tmp_path, {"v.txt": "day/a.jpg\nday/b.jpg\nday/c.jpg\n", "day/c.txt": BOX})
    assert re.search(r"v.txt: line 3: no such file or directory 'day/c.jpg'",
                     refused(tmp_path / "data.yaml"))  # fmt: skip
