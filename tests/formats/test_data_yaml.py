"""The reader of data.yaml: words stay text, and faults have their line."""

from contextlib import suppress
from pathlib import Path

import pytest

from detap.errors import InputError
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
        ("names: [a, b\nval: x", "line 2: invalid YAML: "),
        ("names: [a, [b]]", "line 1: a list is not a word"),
        ("names: [a,, b]", "line 1: invalid YAML: "),
        ("names: [a, '']", "line 1: empty name"),
        ("names: []", "line 1: no class names"),
        ("names:\nval: x", "line 1: no class names"),
        ("names: [a, 'b]", "line 1: invalid YAML: "),
        ("names:\n  0: a\n  2: b", "line 2: names are not numbered from 0 without gaps"),
        ("names:\n  0: a\n  00: b", "line 2: names are not numbered from 0 without gaps"),
        ("names:\n  a: 0\n", "line 2: names are not numbered from 0"),
        ("names:\n  0: a\n   1: b", "line 3: invalid YAML: "),
        ("names:\n  - a\n  1: b", "line 3: invalid YAML: "),
        ("names:\n  - a: b", "line 2: a mapping is not a word; put the name in quotes"),
        ("names:\n  - 'a' b", "line 2: invalid YAML: "),
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
