"""Run detap eval with the inputs of the action; tell its outcome as outputs of the step."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from service import given, put

ONE = ("format", "protocol", "baseline", "baseline-detections", "confidence", "target")
ONE_A_LINE = ("gt", "dt", "fail-under", "max-drop")
STATUSES = {0: "passed", 1: "failed"}


def arguments(folder: Path) -> list[str]:
    """Return the command line."""
    found = ["eval", "--output-format", "github"]
    for name in ONE:
        if given(name):
            found += [f"--{name}", given(name)]
    for name in ONE_A_LINE:
        for line in given(name).splitlines():
            if line.strip():
                found += [f"--{name}", line.strip()]
    for file in ("report.json", "summary.md", *(["report.html"] * (given("page") == "true"))):
        found += ["-o", str(folder / file)]
    return [*found, *shlex.split(given("args"))]


def headline(report: Path) -> tuple[str, str]:
    """Return the first number of a report with its name, rounded, and alone as it is."""
    name, value = next(iter(json.loads(report.read_text("utf-8"))["summary"].items()))
    if value is None:
        return f"{name} undefined", ""
    text = f"{value:.4f}"
    if text == "1.0000" and value < 1 - 1e-9:  # a perfect detector lacks some 1e-16 of 1
        text = "0.9999"
    return f"{name} {text}", repr(value)


def main() -> int:
    """Return the exit status of detap."""
    folder = Path(tempfile.mkdtemp(prefix="report-", dir=os.environ.get("RUNNER_TEMP")))
    try:
        line = arguments(folder)
    except ValueError as error:
        put(status="error")
        print(f"::error title=detap::args: {error}")
        return 2
    status = subprocess.run([sys.executable, "-m", "detap", *line], check=False).returncode
    put(status=STATUSES.get(status, "error"))
    report, page = folder / "report.json", folder / "report.html"
    if report.exists():
        told, value = headline(report)
        put(headline=told, value=value, folder=str(folder), report=str(report))
        put(summary=str(folder / "summary.md"), page=str(page) if page.exists() else "")
    return status


if __name__ == "__main__":
    sys.exit(main())
