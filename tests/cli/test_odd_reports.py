"""Edited reports: detap gives a result or one error message, and never crashes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detap.cli import main
from tests.cli.conftest import write_coco
from tests.depth import sampled

ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0.5, 10**400, "", "x", [], {}, [None], {"a": 1}, [[]], [{}]]
)


def places(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to each value of a record."""
    inner = record.items() if isinstance(record, dict) else enumerate(record)
    for key, value in inner:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report with gates, slices and an operating point."""
    folder = tmp_path_factory.mktemp("odd")
    files = write_coco(folder)
    (folder / "slices.csv").write_text("image,tag\n1,day\n2,night\n")
    path = folder / "report.json"
    line = [*files.arguments, "--slices", str(folder / "slices.csv"), "--score-threshold", "0.5"]
    assert main([*line, "--isolated", "-q", "--fail-under", "0.1", "-o", str(path)]) == 0
    return path


@settings(suppress_health_check=[*HealthCheck], max_examples=sampled(300))
@given(st.data())
def test_an_edited_report_is_accepted_or_reported(report: Path, data: st.DataObject) -> None:
    record = json.loads(report.read_text())
    way = data.draw(st.sampled_from(list(places(record))))
    inner = record
    for key in way[:-1]:
        inner = inner[key]
    if data.draw(st.booleans()) and isinstance(inner, dict):
        del inner[way[-1]]
    else:
        inner[way[-1]] = data.draw(ODD)
    changed = report.with_name("changed.json")
    changed.write_text(json.dumps(record))
    for line in (
        ["badge", str(changed)],
        ["badge", str(changed), "--metric", "slice:day.class:cat.AP"],
        ["badge", str(changed), "--metric", "F1"],
        ["history", str(report), str(changed), "-q"],
        ["history", str(changed), str(report), "-q", "--metric", "slice:day.AP", "--metric", "F1"],
        ["baseline", "update", str(report), str(changed), "--dry-run"],
        ["baseline", "update", str(changed), str(report), "--dry-run"],
    ):
        assert main(line) in (0, 2), (way, line)
