"""The examples of docs/formats/labelling-exports.md: one cat each."""

import re
from pathlib import Path

import pytest

import detap
from detap.formats.detection import detect_format
from tests.conftest import ROOT

PAGE = (ROOT / "docs/formats/labelling-exports.md").read_text("utf-8")
EXAMPLES = dict(
    re.findall(r"^`(\w+)`: .*?^```(?:json)?\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL)
)
FILES = dict.fromkeys(EXAMPLES, "gt.json") | {"tfcsv": "gt.csv", "supervisely": "a.jpg.json"}


def test_every_section_has_an_example() -> None:
    assert {*EXAMPLES} == {"tfcsv", "createml", "via", "datumaro", "supervisely"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_is_one_cat(name: str, tmp_path: Path) -> None:
    path = tmp_path / FILES[name]
    path.write_text(EXAMPLES[name], "utf-8")
    assert detect_format(path).name == name
    truth = detap.read_ground_truth(path)
    assert (truth.images, truth.classes) == (("a",), ("cat",))
    assert truth.corners.tolist() == [[10, 20, 40, 60]]


def example(page: str) -> str:
    text = (ROOT / "docs/formats" / page).read_text("utf-8")
    blocks: list[str] = re.findall(r"^```json\n(.+?)^```", text, re.MULTILINE | re.DOTALL)
    return blocks[0]


def test_the_example_of_label_studio_is_one_cat(tmp_path: Path) -> None:
    path = tmp_path / "project.json"
    path.write_text(example("label-studio.md"), "utf-8")
    assert detect_format(path).name == "labelstudio"
    truth = detap.read_ground_truth(path)
    assert (truth.images, truth.classes) == (("a",), ("cat",))
    assert truth.corners.tolist() == [[10, 20, 40, 60]]


def test_the_example_of_roboflow_is_one_cat(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(example("roboflow.md"), "utf-8")
    assert detect_format(None, path).name == "roboflow"
    truth = detap.GroundTruth.from_arrays(image=["a"], label=["cat"], boxes=[[10, 20, 40, 60]])
    assert detap.read_detections(path, truth).corners.tolist() == [[10, 20, 40, 60]]
