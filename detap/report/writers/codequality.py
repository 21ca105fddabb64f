"""Failed and doubtful gates as a GitLab code-quality report: a JSON array of findings.

The fingerprint of a finding is made of the gate alone, not of the number, so that GitLab knows it
again from one run to the next.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from detap.escaping import escape
from detap.report.model import Report
from detap.report.sections.gates import FAILURES, checks_of
from detap.report.writers.registry import Style


def render(report: Report, style: Style) -> str:
    """Return one finding per gate that did not simply pass."""
    checks = checks_of(report)
    # The file that findings point to: the detections, as their path was given.
    paths = [entry["path"] for entry in report.inputs if entry.get("role") == "detections"]
    path = escape(paths[0]).removeprefix("./") if paths else "detections"
    found = [_finding(check, path) for check in [*checks.failed, *checks.warned]]
    return json.dumps(found, indent=2, allow_nan=False) + "\n"


def _finding(check: Mapping[str, Any], path: str) -> dict[str, Any]:
    identity = "\n".join((check["kind"], check["name"], check["limit"]))
    return {
        "description": escape(check["message"]),
        "check_name": f"detap/{check['kind']}",
        "fingerprint": sha256(identity.encode("utf-8", "backslashreplace")).hexdigest(),
        "severity": "major" if check["status"] in FAILURES else "minor",
        "location": {"path": path, "lines": {"begin": 1}},
    }
