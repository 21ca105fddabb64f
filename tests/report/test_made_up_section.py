"""A report section registered in one line appears in every format."""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import jsonschema
import pytest

from detap.report import schema
from detap.report.fields import Count, Object, list_of
from detap.report.model import Block, Column, Table
from detap.report.sections import SECTIONS, Section
from detap.report.sections.analysis import Analysis
from tests.cli.conftest import Run

DATA = Object(
    "CrowdedData", "Ground-truth counts of the most crowded images.", counts=list_of(Count)
)


def blocks(analysis: Analysis, value: int) -> Iterator[Block]:
    truth = analysis.result.ground_truth
    counts = {name: (truth.image == n).sum().item() for n, name in enumerate(truth.images)}
    rows = [
        {"name": str(name), "count": counts[name]}
        for name in sorted(counts, key=lambda name: -counts[name])[:value]
    ]
    columns = Column("name", "image", "image", "name"), Column("count", "objects", "GT", "count")
    data = {"counts": [row["count"] for row in rows]}
    yield Block("crowded", "Crowded images", data, ("fullest first",), Table(columns, tuple(rows)))


@pytest.fixture
def case(fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Register the section before the command creates its options.

    By hand: image 1 has three ground truths, image 2 two, image 3 none.
    """
    import_module("detap.cli.commands.eval")  # to be restored after the test
    for name in ("run_reports", "commands.eval"):
        monkeypatch.delattr(f"detap.cli.{name}")
        monkeypatch.delitem(sys.modules, f"detap.cli.{name}")
    SECTIONS.append(
        Section("crowded", "The fullest images.", range(1, 10), 1, "[N]", module=__name__)
    )
    folder = fixtures / "error-types" / "coco"
    files = ["--gt", str(folder / "instances.json"), "--dt", str(folder / "results.json")]
    yield ["eval", "--isolated", *files]
    SECTIONS.pop()


def test_the_help_and_the_text_have_it(detap: Run, case: list[str]) -> None:
    assert "--crowded [N]" in detap("eval", "--help-all").out
    output = detap(*case, "--crowded", "2").out
    assert "Crowded images\nimage  objects\n" in output
    assert "\n1            3\n2            2\n" in output
    assert "fullest first" in output
    assert "Crowded" not in detap(*case).out
    assert "Crowded" in detap(*case, "--analysis").out


def test_json_matches_the_schema_derived_from_its_type(detap: Run, case: list[str]) -> None:
    record = json.loads(detap(*case, "--crowded", "--output-format", "json").out)
    assert record["crowded"] == {"counts": [3]}
    validator = jsonschema.Draft202012Validator(schema())
    validator.validate(record)
    assert not validator.is_valid(record | {"crowded": {"counts": [-3]}})


def test_markdown_and_the_page_have_it(detap: Run, case: list[str]) -> None:
    pytest.importorskip("jinja2", reason="the extra detap[report] is not installed")
    text = detap(*case, "--crowded", "--output-format", "markdown").out
    assert "### Crowded images" in text
    assert "| `1` | 3 |" in text
    page = detap(*case, "--crowded", "--output-format", "html").out
    assert "<h2>Crowded images</h2>" in page
    assert '<th scope="row" class="name">1</th><td class="count">3</td>' in page


def test_an_engine_cannot_compute_it_without_boxes(detap: Run, case: list[str]) -> None:
    said = detap(*case, "--crowded", "--engine", "dask").refused()
    assert "--crowded needs all boxes in one process; remove --engine" in said
