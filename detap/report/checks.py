"""The gates of a report, as writers show them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from detap.report.model import Report

KEY = "gates"

MARKS = {
    "passed": "passed",
    "failed": "FAILED",
    "undefined": "FAILED",
    "inconclusive": "warning",
    "too-few-ground-truths": "warning",
}
_MOST_SHOWN = 10
FAILURES = ("failed", "undefined")


class Checks(NamedTuple):
    """The gates of a report, as mappings; see ``GateEntry`` in `sections/gates.py`."""

    all: Sequence[Mapping[str, Any]]

    @property
    def failed(self) -> list[Mapping[str, Any]]:
        """Those that fail the run."""
        return [check for check in self.all if check["status"] in FAILURES]

    @property
    def warned(self) -> list[Mapping[str, Any]]:
        """Those that only warn."""
        return [check for check in self.all if MARKS[check["status"]] == "warning"]

    @property
    def conclusion(self) -> str:
        """The counts in a few words; empty without gates."""
        count = len(self.all)
        if not count:
            return ""
        if self.failed:
            return f"{len(self.failed)} of {count} gates failed"
        passed = f"{count} of {count} gates passed"
        return f"{passed}, {len(self.warned)} with a warning" if self.warned else passed


def checks_of(report: Report) -> Checks:
    """Return the gates of a report; empty without gates."""
    return Checks(next((block.data["checks"] for block in report.blocks if block.key == KEY), ()))


def shortened(checks: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the checks to show: all that did not pass, and the first that passed."""
    notable = sum(MARKS[check["status"]] != "passed" for check in checks)
    most = max(notable, _MOST_SHOWN)
    return checks if len(checks) <= most + 1 else checks[:most]
