"""The obj.data of CVAT's "YOLO 1.1" exports."""

from pathlib import Path

import pytest

import detap
from detap.errors import InputError
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format

DATA = "classes = 2\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n"


def export(folder: Path, data: str = DATA, prefix: str = "data/", **files: str) -> Path:
    """Write an export of the images a and b; ``__`` in file names is a point."""
    labels = folder / "obj_train_data/day"
    labels.mkdir(parents=True, exist_ok=True)
    (labels / "a.txt").write_text("1 0.5 0.5 0.2 0.4\n")
    (labels / "b.txt").write_text("")
    (folder / "obj.data").write_text(data)
    (folder / "obj.names").write_text("dog\ncat\n")
    lines = (f"{prefix}obj_train_data/day/{name}.jpg\n" for name in "ab")
    (folder / "train.txt").write_text("".join(lines))
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


@pytest.mark.parametrize("prefix", ["data/", "", "./"])
@pytest.mark.parametrize("file", ["", "obj.data"])
def test_an_export(tmp_path: Path, prefix: str, file: str) -> None:
    path = export(tmp_path, prefix=prefix) / file
    assert detect_format(path).name == "yolo"
    truth = detap.read_ground_truth(path, image_size="100x50")
    assert truth.images == ("a", "b")
    assert truth.classes == ("dog", "cat")
    assert truth.corners.tolist() == [[40, 15, 60, 35]]
    assert truth.label.tolist() == [1]


def test_images_next_to_labels(tmp_path: Path) -> None:
    """Their sizes are read, and an image that the list names must exist."""
    truth = detap.read_ground_truth(export(tmp_path), image_size="100x50")
    folders, _ = FORMATS["yolo"].image_files(truth)
    assert str(tmp_path / "obj_train_data/day") in {folder.path for folder in folders}
    (tmp_path / "obj_train_data/day/a.jpg").write_bytes(b"")
    with pytest.raises(InputError, match=r"train.txt: line 2: no such file or directory .*b.jpg"):
        detap.read_ground_truth(tmp_path, image_size="100x50")


def test_names_next_to_folders_of_labels_and_images(tmp_path: Path) -> None:
    """Label Studio's layout: classes.txt, labels/ and images/."""
    for folder in ("labels", "images"):
        (tmp_path / folder).mkdir()
    (tmp_path / "classes.txt").write_text("dog\ncat\n")
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "labels/a.txt").write_text("1 0.5 0.5 0.2 0.4\n")
    for name in "ab":
        (tmp_path / f"images/{name}.jpg").write_bytes(b"")
    truth = detap.read_ground_truth(tmp_path, image_size="100x50", format="yolo")
    assert truth.images == ("a", "b")
    assert truth.classes == ("dog", "cat")


BAD = {
    "no equals sign": ("classes 2\n", "obj.data: line 1: 'classes 2' is not `key = value`"),
    "no key": ("= 2\n", "obj.data: line 1: '= 2' is not `key = value`; correct it"),
    "no value": ("train =\n", "obj.data: line 1: 'train =' is not `key = value`"),
    "twice": (DATA + "train = x.txt\n", "obj.data: line 5: duplicate key 'train'; keep one"),
    "no names": ("train = data/train.txt\n", "obj.data: has no `names =`; add the file with"),
    "no such names": ("names = data/x.names\n", "x.names: no such file or directory"),
    "names elsewhere": (
        "names = ../../etc/passwd\n",
        "obj.data: names = '../../etc/passwd' is outside its folder; move it",
    ),
    "absolute names": (
        "names = /etc/passwd\n",
        "obj.data: names = '/etc/passwd' is outside its folder; move it",
    ),
    "names in parts": ("names = \0\n", "obj.data"),
    "other count": (
        DATA.replace("= 2", "= 3"),
        "obj.names has 2 names; correct one of them",
    ),
    "count is text": (DATA.replace("= 2", "= two"), "classes is 'two', but "),
    "no subset": ("names = data/obj.names\n", "obj.data: no list of images; add one, such as"),
    "no such list": (
        "names = data/obj.names\nval = data/val.txt\n",
        "obj.data: val: no such file or directory 'data/val.txt' (tried ",
    ),
    "JSON": ('{"names": []}', "obj.data: looks like JSON"),
    "empty": ("", "obj.data: has no `names =`"),
    "two subsets": (
        DATA + "valid = data/train.txt\n",
        "obj.data: several subsets: 'train', 'valid'; choose one with --split (split=)",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_files(tmp_path: Path, name: str) -> None:
    data, expected = BAD[name]
    with pytest.raises(InputError) as caught:
        detap.read_ground_truth(export(tmp_path, data), image_size="100x50")
    assert expected in str(caught.value)


def test_a_subset_of_another_name(tmp_path: Path) -> None:
    data = DATA + "Valid = data/train.txt\nvalid = data/empty.txt\n"
    export(tmp_path, data)
    assert len(detap.read_ground_truth(tmp_path, split="Valid", image_size="100x50")) == 1
    with pytest.raises(InputError, match=r"no subset 'test' \(available: 'train', 'Valid', "):
        detap.read_ground_truth(tmp_path, split="test", image_size="100x50")
    with pytest.raises(InputError, match=r"valid: no such file or directory 'data/empty.txt'"):
        detap.read_ground_truth(tmp_path, split="val", image_size="100x50")
