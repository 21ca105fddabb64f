"""Untrusted class names are escaped in every output."""

import csv
import html
import json
import re
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import junitparser
import pytest
from jsonschema import Draft202012Validator
from lxml import etree
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from detap.escaping import escape
from detap.report import schema
from detap.report.writers.github import MOST_ANNOTATIONS
from detap.report.writers.registry import WRITERS
from tests.cli.conftest import Run
from tests.gate.detectors import coco

NAMES = [
    *("plain", "std::vector", "::error::forged", "  ::warning title=x::forged", "##[error]forged"),
    *("##vso[task.complete result=Succeeded;]", "line\nbreak", "line\r\n::error::forged", "a|b"),
    *("| x | **passed** |", "<script>alert(1)</script>", "</code><img src=x onerror=alert(1)>"),
    *("<!-- -->", "]]>", "]]></failure><failure>", "%0A::error::forged", "50%", 'quo"te', "quo'te"),
    *('x"} 1\nforged_metric{a="b', "back\\slash", "`tick`", "```", "[link](https://example.org)"),
    *("www.example.org", "https://example.org/x", "@everyone", "#1", "=HYPERLINK(1)", "*", "\\*"),
    *("__proto__", "a,b:c;d", "\x1b[31mred\x1b[0m", "nul\x00byte", "bell\x07"),
    *("\u202eright to left", "\ufeffmark", "zero\u200bwidth", "caf\u00e9 \u732b", "&amp; &lt;"),
    *("section_start:0:x\r\x1b[0K", "# heading", "- item", " leading and trailing ", "e\u0301"),
    *("AP50", "class:x.AP", "x" * 300),
]

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff]")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the output of every format for a run in which each class fails a gate."""
    from detap.cli import main

    folder = tmp_path_factory.mktemp("hostile")
    truth, results = coco(NAMES, matched=False)
    _, detections = coco(NAMES)
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps(results))
    (folder / "before.json").write_text(json.dumps(detections))
    (folder / "tags.json").write_text(json.dumps({name: [0, 1] for name in NAMES}))
    targets = [part for name in WRITERS for part in ("-o", f"{name}={folder / name}")]
    status = main(
        [
            *("eval", "--gt", str(folder / "gt.json"), "--dt", str(folder / "dt.json")),
            *("--baseline-detections", str(folder / "before.json")),
            *("--max-drop", "class:*.AP=0.5", "--fail-under", "min-class.AP=0.5"),
            *("--slices", str(folder / "tags.json")),
            *targets,
        ]
    )
    assert status == 1
    return {name: (folder / name).read_bytes().decode() for name in WRITERS}


@pytest.mark.parametrize("name", WRITERS)
def test_no_format_has_control_characters(outputs: dict[str, str], name: str) -> None:
    assert CONTROL.search(outputs[name]) is None


def test_json_preserves_every_name(outputs: dict[str, str]) -> None:
    report = json.loads(outputs["json"])
    assert [row["name"] for row in report["classes"]] == NAMES
    checks = {check["name"] for check in report["gates"]["checks"]}
    assert checks == {"min-class.AP", *(f"class:{name}.AP" for name in NAMES)}
    assert list(report["slices"]) == NAMES
    Draft202012Validator(schema()).validate(report)


def test_csv_has_a_row_per_class(outputs: dict[str, str]) -> None:
    rows = list(csv.DictReader(StringIO(outputs["csv"])))
    assert len(rows) == len(NAMES)
    assert not any(row["name"].startswith(tuple("=+-@\t\r")) for row in rows)


def test_junit_parses_and_matches_its_schema(outputs: dict[str, str]) -> None:
    root = etree.fromstring(outputs["junit"].encode())
    assert isinstance(root, etree._Element)
    path = Path(__file__).with_name("junit.xsd")
    etree.XMLSchema(etree.parse(path)).assertValid(root)
    suites = junitparser.JUnitXml.fromstring(outputs["junit"].encode())
    (suite,) = suites
    assert suite.tests == suite.failures == len(NAMES) + 1
    names = [case.name for case in suite if case.name]
    assert set(names) == {
        "min-class.AP >= 0.5",
        *(escape(f"class:{name}.AP drop <= 0.5") for name in NAMES),
    }
    assert all(len(case.result) == 1 for case in suite)


def workflow_command(line: str) -> tuple[str, dict[str, str], str] | None:
    """Parse a line as GitHub's runner parses a workflow command: name, properties, message.

    As in actions/runner, src/Runner.Common/ActionCommand.cs: leading white space is skipped, and
    the older syntax is searched anywhere in the line.
    """
    if "##[" in line:
        return ("old form", {}, line)
    line = line.lstrip()
    if not line.startswith("::") or "::" not in line[2:]:
        return None
    head, _, message = line[2:].partition("::")
    name, _, rest = head.partition(" ")
    properties = dict(part.split("=", 1) for part in rest.split(",") if "=" in part)
    return name, properties, message


def test_github_sees_the_annotations_and_no_other_command(outputs: dict[str, str]) -> None:
    lines = outputs["github"].splitlines()
    commands = [workflow_command(line) for line in lines]
    assert all(command is not None for command in commands)
    kinds = [command[0] for command in commands if command is not None]
    assert set(kinds) <= {"error", "warning", "notice"}
    assert all(kinds.count(kind) <= MOST_ANNOTATIONS for kind in kinds)
    assert kinds.count("error") == MOST_ANNOTATIONS
    assert all(command is not None and list(command[1]) == ["title"] for command in commands)
    assert f"{len(NAMES) + 1 - 9} more in the report" in outputs["github"]


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "github"])
def test_no_other_output_is_a_command_to_a_ci_system(outputs: dict[str, str], name: str) -> None:
    for line in outputs[name].splitlines():
        assert workflow_command(line) is None, line
        assert "##vso[" not in line


class Page(HTMLParser):
    """Tags and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[Any] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def test_markdown_has_no_markup_from_names(outputs: dict[str, str]) -> None:
    parser = MarkdownIt("gfm-like", {"html": True, "linkify": False}).enable("table")
    page = Page()
    page.feed(parser.render(outputs["markdown"]))
    allowed = "h2 h3 table thead tbody tr th td p ul li code strong sub details summary"
    assert page.tags <= set(allowed.split())
    assert {key for key, _ in page.attributes} <= {"style"}
    cells = [line.count("|") for line in outputs["markdown"].splitlines() if line[:1] == "|"]
    assert len(set(cells)) <= 4  # one shape per table: gates, summary, slices, classes
    rows = re.findall(r"<tr>\s*<td[^>]*><strong>FAILED</strong></td>", page.rawdata) or None
    assert rows is None or len(rows) <= len(NAMES) + 1
    # A mention works in the finished page, but not in code.
    bare = re.sub(r"<code>.*?</code>", "", html.unescape(outputs["markdown"]))
    bare = re.sub(r"`[^`]*`", "", bare)
    assert "@everyone" not in bare
    assert "https://" not in bare


def test_openmetrics_parses(outputs: dict[str, str]) -> None:
    parsed = text_string_to_metric_families(outputs["gitlab"])  # type: ignore[no-untyped-call]
    families = {family.name: family for family in parsed}
    assert set(families) == {"detap_summary", "detap_class", "detap_gate_passed"}
    classes = {sample.labels["class"] for sample in families["detap_class"].samples}
    assert classes == {escape(name) for name in NAMES}
    gates = families["detap_gate_passed"].samples
    assert len(gates) == len(NAMES) + 1
    assert {sample.value for sample in gates} == {0.0}


CODE_QUALITY = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "additionalProperties": False,
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^.]"},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
    },
}
"""Code-quality report as documented by GitLab."""


def test_code_quality_matches_gitlabs_documentation(outputs: dict[str, str]) -> None:
    issues = json.loads(outputs["codequality"])
    Draft202012Validator(CODE_QUALITY).validate(issues)
    assert len({entry["fingerprint"] for entry in issues}) == len(issues) == len(NAMES) + 1


def test_nothing_on_stdout_or_stderr_is_a_command(tmp_path: Path, detap: Run) -> None:
    truth, results = coco(NAMES, matched=False)
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    (tmp_path / "dt.json").write_text(json.dumps(results))
    ended = detap(
        *("eval", "--gt", tmp_path / "gt.json", "--dt", tmp_path / "dt.json"),
        *("--fail-under", "class:*.AP=0.5"),
    )
    for line in (ended.out + ended.err).splitlines():
        assert workflow_command(line) is None, line
        assert "##vso[" not in line
    assert CONTROL.search(ended.out + ended.err) is None
