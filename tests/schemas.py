"""Reports that tests validate against their schema."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from detap.report import schema
from tests.cli.conftest import Ended, Run


def valid(report: Any, kind: str = "report") -> Any:
    """Return a report after validating it against the schema of its kind."""
    Draft202012Validator(schema(kind)).validate(report)
    return report


def saved(
    detap: Run, *arguments: str, kind: str = "report", statuses: Collection[int] = (0,)
) -> tuple[dict[str, Any], Ended]:
    """Return the valid report that a run writes to r.json, and how the run ended."""
    ended = detap(*arguments, "-o", "r.json")
    assert ended.status in statuses, ended.err
    return valid(json.loads(Path("r.json").read_text()), kind), ended
