"""Run detap eval with the inputs of the action, and set the outputs of the step."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from service import given, put

ONE = ("format", "protocol", "baseline", "baseline-detections", "confidence", "target")
ONE_A_LINE = ("gt", "dt", "fail-under", "max-drop")
STATUSES = {0: "passed", 1: "failed"}


def arguments(folder: Path) -> list[str]:
    """Return the command line."""
    words = ["eval", "--output-format", "github"]
    for name in ONE:
        if given(name):
            words += [f"--{name}", given(name)]
    for name in ONE_A_LINE:
        for line in given(name).splitlines():
            if line.strip():
                words += [f"--{name}", line.strip()]
    for file in ("report.json", "summary.md", *(["report.html"] * (given("page") == "true"))):
        words += ["-o", str(folder / file)]
    return [*words, *shlex.split(given("args"))]


def outcome(status: int, record: dict[str, Any] | None) -> str:
    """Return "passed" or "failed" if the report says the same as the exit status, else "error"."""
    if record is None or status not in STATUSES:
        return "error"
    passed = record.get("gates", {"passed": True})["passed"]
    return STATUSES[status] if passed == (status == 0) else "error"


def primary_metric(record: dict[str, Any]) -> tuple[str, str]:
    """Return the first metric of a report with its name, rounded, and its exact value."""
    name, value = next(iter(record["summary"].items()))
    if value is None:
        return f"{name} undefined", ""
    text = f"{value:.4f}"
    if text == "1.0000" and value < 1 - 1e-9:  # a perfect detector lacks some 1e-16 of 1
        text = "0.9999"
    return f"{name} {text}", repr(value)


def main() -> int:
    """Return the exit status of detap, or 2 if it is 0 or 1 and no report confirms it."""
    folder = Path(tempfile.mkdtemp(prefix="report-", dir=os.environ.get("RUNNER_TEMP")))
    try:
        line = arguments(folder)
    except ValueError as error:
        put(status="error")
        print(f"::error title=detap::args: {error}")
        return 2
    command = [sys.executable, "-I", "-m", "detap", *line]
    status = subprocess.run(command, check=False).returncode
    report, page = folder / "report.json", folder / "report.html"
    record = json.loads(report.read_text("utf-8")) if report.is_file() else None
    result = outcome(status, record)
    put(status=result)
    if record is not None:
        title, value = primary_metric(record)
        put(primary_metric=title, value=value, folder=str(folder), report=str(report))
        put(summary=str(folder / "summary.md"), page=str(page) if page.exists() else "")
    if result == "error" and status in STATUSES:
        print(
            f"::error title=detap::detap ended with status {status} and without a report that says "
            "so: no result; remove options such as --help from args"
        )
        return 2
    return status
