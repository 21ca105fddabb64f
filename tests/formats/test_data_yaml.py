"""The reader of data.yaml: words stay text, and faults have their line."""

from contextlib import suppress
from pathlib import Path

import pytest

import detap
from detap.errors import InputError
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from detap.formats.text.class_names import read_data_yaml
from tests.raised import raised

ROBOFLOW = """\
train: ../train/images
val: ../valid/images
test: ../test/images

nc: 3
names: ['traffic light', 'it''s', c]

roboflow:
  workspace: some
  version: 1
  url: https://a.b/c
"""
ULTRALYTICS = """\
# A comment: with a colon
path: ../datasets/coco8 # the root
train: images/train
val: images/val # 4 images
test: # optional

# Classes
names:
  0: person
  # between
  1: men's shoes  # behind
  2: "a: b \\"c\\""

download: |
  from x import y
  names: [
  a: {1: [2
"""


@pytest.mark.parametrize(
    ("text", "names", "path", "splits"),
    [
        (
            ROBOFLOW, ("traffic light", "it's", "c"), "",
            {"train": ("../train/images",), "val": ("../valid/images",),
             "test": ("../test/images",)},
        ),
        (
            ULTRALYTICS, ("person", "men's shoes", 'a: b "c"'), "../datasets/coco8",
            {"train": ("images/train",), "val": ("images/val",)},
        ),
        ("names:\n- a\n- 'b'\nval:\n  - x/a\n  - y/b\n", ("a", "b"), "", {"val": ("x/a", "y/b")}),
        (
            "names: [\n  'a', # one\n  traffic\n  light, \"c\",\n]\nval: x",
            ("a", "traffic light", "c"), "", {"val": ("x",)},
        ),
        ("names: {1: 'b c', 0: a}\nval: [a, b]", ("a", "b c"), "", {"val": ("a", "b")}),
        ("---\nnames:\n  1: b\n  0: 'a'\nnc: 2\nval: ~", ("a", "b"), "", {}),
        ("names: [no, 0, 1.5, a:b, x#y]\n", ("no", "0", "1.5", "a:b", "x#y"), "", {}),
        ("val: \"a b\"\n'names': [a]\n\"nc\": 1", ("a",), "", {"val": ("a b",)}),
        ("{names: &x [a], val: *x}", ("a",), "", {"val": ("a",)}),
        ('path: x\n  y\nnames: ["\\x41"]', ("A",), "x y", {}),
        ("", (), "", {}),
        ("# nothing\n\n", (), "", {}),
    ],
)  # fmt: skip
def test_valid_files(
    text: str,
    names: tuple[str, ...],
    path: str,
    splits: dict[str, tuple[str, ...]],
    tmp_path: Path,
) -> None:
    for ending in ("\n", "\r\n"):
        file = tmp_path / "data.yaml"
        file.write_bytes(text.replace("\n", ending).encode())
        content = read_data_yaml(file)
        assert (content.names, content.path, content.splits) == (names, path, splits)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a", "line 1: is not `key: value`"),
        ("names a", "line 1: is not `key: value`"),
        ("names:\n\t0: a", "line 2: invalid YAML: "),
        ("names: a b", "line 1: 'a b' is not a list or mapping"),
        ("val: x\nnames: |\n  a", "line 2: 'a' is not a list or mapping"),
        ("names: [a", "line 2: invalid YAML: "),
        ("names: [a, [b]]", "line 1: a list is not a word"),
        ("names: [a, '']", "line 1: empty name"),
        ("names: []", "line 1: no class names"),
        ("names:\nval: x", "line 1: no class names"),
        ("names:\n  0: a\n  2: b", "line 2: names are not numbered from 0 without gaps"),
        ("names:\n  a: 0\n", "line 2: names are not numbered from 0"),
        ("names:\n  - a: b", "line 2: a mapping is not a word; put the name in quotes"),
        ('names:\n  - "\\y"', "line 2: invalid YAML: "),
        ("names:\n  - a\n  - a", "line 2: duplicate class 'a'"),
        ("names:\n  -\n  - a", "line 2: empty name"),
        (
            "names: [a]\nval: x\nnames: [b]",
            "line 3: duplicate key 'names'",
        ),
        ("nc: 3\nnames: [a]", "line 1: nc is '3', expected the number of names: 1"),
        ("val: *x", "line 1: invalid YAML: "),
        ("val: {a: b}", "line 1: val is a mapping"),
        ("path: [x, y]\n", "line 1: path is a list or mapping"),
        ("names: {a}", "line 1: names are not numbered from 0"),
        ("val: " + "[" * 5000, "line 1: invalid YAML: "),
        ("\x89PNG", "looks like an image"),
        ("val: x\nnames: [caf\xe9]", "line 2: b'names: [caf\\xe9]' is not UTF-8; save it as UTF-8"),
        ("val: x\0", "looks like binary data"),
        ("val: x\x01", "line 1: contains control character '\\x01'"),
    ],
)
def test_invalid_files(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "data.yaml"
    file.write_bytes(text.encode("latin-1"))
    assert message in str(raised(InputError, read_data_yaml, file))


def test_long_files_take_linear_time(tmp_path: Path) -> None:
    """In quadratic time each of these would take an hour."""
    file = tmp_path / "data.yaml"
    for text in (
        "a" + " " * 500_000 + "b",
        "names: [a" + " " * 500_000 + "b]",
        "names: [\n" + "a,\n" * 100_000 + "b]",
        "names: ['" + "''" * 200_000,
    ):
        file.write_text(text)
        with suppress(InputError):
            read_data_yaml(file)


# --- obj.data of CVAT's "YOLO 1.1" exports


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
def test_invalid_exports(tmp_path: Path, name: str) -> None:
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
