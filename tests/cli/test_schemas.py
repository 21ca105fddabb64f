"""Schemas printed by the command: of reports and of detap.toml."""

import json
import tomllib
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from detap.report import schema
from detap.report.schemas import NAMES, PAGES
from detap.report.sections.schema import DOCUMENTS
from tests.cli.conftest import Run
from tests.conftest import ROOT


@pytest.mark.parametrize("name", NAMES)
def test_each_schema_has_an_address_and_can_be_printed(name: str, detap: Run) -> None:
    ended = detap("config", "--schema", name)
    report = json.loads(ended.out)
    Draft202012Validator.check_schema(report)
    assert (ended.status, report) == (0, schema(name))
    version = report["properties"]["schema_version"]["const"]
    assert report["$id"] == f"{PAGES}/schemas/{name}-{version}.json"


def test_every_schema_has_a_name() -> None:
    assert sorted(DOCUMENTS) == sorted(NAMES)


@pytest.fixture
def settings(detap: Run) -> Draft202012Validator:
    report: Any = json.loads(detap("config", "--schema", "settings").out)
    Draft202012Validator.check_schema(report)
    assert report["$id"] == f"{PAGES}/schemas/settings-1.json"
    return Draft202012Validator(report)


TAKEN = """
gt = ["a.json", "b.json"]
protocol = "coco"
max-dets = [1, 10]
iou = 0.5
fail-under = 0.3
strict = true
errors = true
output = ["report.json", "summary.md"]

[max-drop]
AP = 0.01
"class:*.AP" = "5%"

[targets.night]
dt = "night.json"

[rank-retrieval]
k = 10

[rank-retrieval.targets.day]
run = "day.txt"
"""


@pytest.mark.parametrize(
    "text", [TAKEN, (ROOT / "examples" / "ci" / "detap.toml").read_text("utf-8"), ""]
)
def test_the_schema_of_settings_accepts_valid_settings(
    text: str, settings: Draft202012Validator
) -> None:
    settings.validate(tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        "grund-truth = 'a.json'",
        "strict = 'yes'",
        "protocol = 'kokoko'\niou = true",
        "output-format = 'tabel'",
        "[targets.night]\ndtt = 'a'",
        "[targets.night.targets.deep]\ndt = 'a'",
        "[rank-retrieval]\niou = 0.5",
        "[max-drop]\nAP = true",
    ],
)
def test_the_schema_of_settings_rejects_what_detap_rejects(
    text: str, settings: Draft202012Validator
) -> None:
    with pytest.raises(ValidationError):
        settings.validate(tomllib.loads(text))
