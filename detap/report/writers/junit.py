"""The gates as JUnit XML: a test case per gate.

A failed gate is a failure, one with an undefined metric an error. A warning passes, with its text
in the output. Characters that are invalid in XML are escaped.
"""

from collections.abc import Iterator, Mapping
from math import isnan
from typing import Any

from detap.escaping import escape
from detap.gates.config import RULES
from detap.report.checks import checks_of
from detap.report.model import Report
from detap.report.writers.registry import Style

_ENTITIES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", "\n": "&#10;"}
)


def render(report: Report, style: Style) -> str:
    """Return the gates as one test suite."""
    checks = checks_of(report)
    errors = sum(check["status"] == "undefined" for check in checks.all)
    counts = (
        f'tests="{len(checks.all)}" failures="{len(checks.failed) - errors}" '
        f'errors="{errors}" skipped="0" time="0"'
    )
    properties = {"signature": report.signature}
    for name, value in report.summary.items():
        properties[name] = "undefined" if isnan(value) else repr(value)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="detap" {counts.replace(" skipped=", " disabled=")}>',
        f'  <testsuite name="detap gates" {counts}>',
        "    <properties>",
        *(
            f"      <property name={quoted(name)} value={quoted(text)}/>"
            for name, text in properties.items()
        ),
        "    </properties>",
        *(line for check in checks.all for line in _case(check)),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(check: Mapping[str, Any]) -> Iterator[str]:
    relation = RULES[check["kind"]].relation
    name = f"{escape(check['name'])} {relation} {check['limit']}"
    kind = {"failed": "failure", "undefined": "error"}.get(check["status"])
    message = check["message"]
    yield f'    <testcase classname="detap.{check["kind"]}" name={quoted(name)} time="0">'
    if kind is not None:
        yield (
            f"      <{kind} type={quoted(check['status'])} message={quoted(message)}>"
            f"{escaped(message)}</{kind}>"
        )
    output = f"{check['status']}: {message}"
    yield f"      <system-out>{escaped(output)}</system-out>"
    yield "    </testcase>"


def escaped(text: str) -> str:
    """Escape text for XML."""
    return escape(text).translate(_ENTITIES)


def quoted(text: str) -> str:
    """Return text as a quoted attribute value."""
    return f'"{escaped(text)}"'
