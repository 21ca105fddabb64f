"""The gates as JUnit XML: a test case per gate.

A failed gate is a failure, one with an undefined metric an error. A warning passes, with its text
in the output. Characters that are invalid in XML are escaped.
"""

from math import isnan

from lxml import etree

from detap.escaping import escape
from detap.gates.config import RULES
from detap.report.checks import checks_of
from detap.report.model import Report
from detap.report.writers.registry import Style

_FAULTS = {"failed": "failure", "undefined": "error"}


def render(report: Report, style: Style) -> str:
    """Return the gates as one test suite."""
    checks = checks_of(report)
    errors = sum(check["status"] == "undefined" for check in checks.all)
    counts = {"tests": len(checks.all), "failures": len(checks.failed) - errors, "errors": errors}
    root = etree.Element("testsuites", _texts(name="detap", **counts, disabled=0, time=0))
    of_suite = _texts(name="detap gates", **counts, skipped=0, time=0)
    suite = etree.SubElement(root, "testsuite", of_suite)
    properties = etree.SubElement(suite, "properties")
    for name, value in {"signature": report.signature, **report.summary}.items():
        text = "undefined" if isinstance(value, float) and isnan(value) else value
        etree.SubElement(properties, "property", _texts(name=name, value=text))
    for check in checks.all:
        kind, status, message = check["kind"], check["status"], check["message"]
        name = f"{check['name']} {RULES[kind].relation} {check['limit']}"
        of_case = _texts(classname=f"detap.{kind}", name=name, time=0)
        case = etree.SubElement(suite, "testcase", of_case)
        if status in _FAULTS:
            fault = etree.SubElement(case, _FAULTS[status], _texts(type=status, message=message))
            fault.text = escape(message)
        etree.SubElement(case, "system-out").text = escape(f"{status}: {message}")
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return f"{head}\n{etree.tostring(root, encoding='unicode', pretty_print=True)}"


def _texts(**attributes: object) -> dict[str, str]:
    return {name: escape(value) for name, value in attributes.items()}
