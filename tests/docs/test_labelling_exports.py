"""The examples of docs/formats/labelling-exports.md: one cat each."""

import re
from pathlib import Path

import pytest

import detap
from detap.formats.registry import detect_format
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
