"""Gates that fail or warn as a GitLab code-quality report: a JSON array of findings.

The fingerprint of a finding depends on the gate only, so that GitLab recognizes it in later runs.
"""

import json
from hashlib import sha256

from detap.escaping import escape
from detap.report.checks import FAILURES, checks_of
from detap.report.model import Report
from detap.report.writers.registry import Style


def render(report: Report, style: Style) -> str:
    """Return one finding per gate that fails or warns."""
    checks = checks_of(report)
    # Findings point to the file of detections.
    paths = [item["path"] for item in report.inputs if item.get("role") == "detections"]
    path = escape(paths[0]).removeprefix("./") if paths else "detections"
    findings = []
    for check in [*checks.failed, *checks.warned]:
        identity = "\n".join((check["kind"], check["name"], check["limit"]))
        findings.append(
            {
                "description": escape(check["message"]),
                "check_name": f"detap/{check['kind']}",
                "fingerprint": sha256(identity.encode("utf-8", "backslashreplace")).hexdigest(),
                "severity": "major" if check["status"] in FAILURES else "minor",
                "location": {"path": path, "lines": {"begin": 1}},
            }
        )
    return json.dumps(findings, indent=2, allow_nan=False) + "\n"
