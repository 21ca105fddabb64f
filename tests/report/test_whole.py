"""A complete report in each format, with every kind of metric, status and block."""

import json
from dataclasses import replace
from hashlib import sha256
from math import nan
from typing import Any

import pytest

from detap.errors import Note
from detap.report.model import Block, Cell, Column, Report, Table
from detap.report.writers.registry import WRITERS, Style
from detap.report.writers.text import table_lines

DASH = "\N{EN DASH}"


def check(kind: str, name: str, verdict: str, limit: str, message: str) -> dict[str, Any]:
    return {"kind": kind, "name": name, "status": verdict, "limit": limit, "message": message}


CHECKS = [
    check("minimum", "AP", "failed", "0.6", "AP 0.5000, required >= 0.6"),
    check("maximum", "class:a&b.FP", "undefined", "3", "class:a&b.FP undefined"),
    check("drop", "AP50", "inconclusive", "0.1", "AP50 fell by 0.2000: inconclusive"),
    check("rise", "class:*.dup", "passed", "1", "class:*.dup unchanged (2)"),
]
COLUMNS = (
    Column("name", "class", "class", "name"),
    Column("AP", "AP", "AP", "fraction"),
    Column("change", "since", "since", "change"),
    Column("more", "more FP", "more", "count_change"),
    Column("score", "score", "score", "exact"),
    Column("why", "why", "why", "text"),
    Column("count", "count", "n", "count"),
)
ROW: dict[str, Cell] = {
    "name": "a|b",
    "id": 1,
    "AP": 1 / 3,
    "change": -0.00001,
    "more": 2,
    "score": 0.1 + 0.2,
}
OTHER: dict[str, Cell] = {
    "name": "cat",
    "id": 2,
    "AP": nan,
    "change": 0.0,
    "more": 0,
    "score": None,
    "why": None,
}
TOTALS: dict[str, Cell] = {"name": "all", "AP": 1 / 3, "change": nan, "more": -2, "count": 7}


def report(checks: list[dict[str, Any]] = CHECKS, **changes: Any) -> Report:
    gates = Block("gates", "Gates: 2 of 4 failed", {"passed": False, "checks": checks})
    few = Table((COLUMNS[0], COLUMNS[6]), ({"name": "x", "count": 1},))
    made = Report(
        kind="detection",
        version="1.2.3",
        signature="detap 1.2.3 | coco",
        protocol={"name": "coco"},
        inputs=(
            {"role": "ground_truth", "path": "gt.json"},
            {"role": "detections", "path": "./runs/dt.json"},
        ),
        summary={"AP": 0.5, "AP50": nan},
        param_columns=(Column("iou", "IoU", "IoU", "text"),),
        params={"AP": ("0.50:0.95",), "AP50": ("0.50",)},
        table=Table(COLUMNS, ({**ROW, "why": "<low>", "count": 3}, {**OTHER, "count": 4}), TOTALS),
        notes=(
            Note("missing-area", "areas are missing", 3),
            Note("an-info", "an info", 1, severity="info"),
        ),
        blocks=(gates, Block("more", "More of it", {"x": nan}, ("one line",), few)),
    )
    return replace(made, **changes)


def render(name: str, of: Report) -> str:
    return WRITERS[name].render(of, Style())


MARKDOWN = f"""\
## detap: 2 of 4 gates failed

|  | gate |  |
| :--- | :--- | :--- |
| **FAILED** | `AP` | 0.5000, required &#62;= 0.6 |
| **FAILED** | <code>class&#58;a&#38;b&#46;FP</code> | undefined |
| **warning** | `AP50` | fell by 0.2000: inconclusive |
| passed | `class:*.dup` | unchanged (2) |

| metric | value | IoU |
| :--- | ---: | :--- |
| `AP` | 0.5000 | 0.50:0.95 |
| `AP50` | {DASH} | 0.50 |

### More of it

- one line

| class | count |
| :--- | ---: |
| `x` | 1 |

<details>
<summary>2 rows</summary>

| class | AP | since | more FP | score | why | count |
| :--- | ---: | ---: | ---: | ---: | :--- | ---: |
| <code>a&#124;b</code> | 0.3333 | -0.0001 | +2 | 0.30000000000000004 | &#60;low&#62; | 3 |
| `cat` | {DASH} | 0.0000 | 0 | {DASH} | {DASH} | 4 |
| `all` | 0.3333 | {DASH} | -2 | {DASH} | {DASH} | 7 |

</details>

- **warning**: areas are missing (3)
- info: an info

<sub><code>detap 1&#46;2&#46;3 &#124; coco</code></sub>
"""

JUNIT = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="detap" tests="4" failures="1" errors="1" disabled="0" time="0">
  <testsuite name="detap gates" tests="4" failures="1" errors="1" skipped="0" time="0">
    <properties>
      <property name="signature" value="detap 1.2.3 | coco"/>
      <property name="AP" value="0.5"/>
      <property name="AP50" value="undefined"/>
    </properties>
    <testcase classname="detap.minimum" name="AP &gt;= 0.6" time="0">
      <failure type="failed" message="AP 0.5000, required &gt;= 0.6">\
AP 0.5000, required &gt;= 0.6</failure>
      <system-out>failed: AP 0.5000, required &gt;= 0.6</system-out>
    </testcase>
    <testcase classname="detap.maximum" name="class:a&amp;b.FP &lt;= 3" time="0">
      <error type="undefined" message="class:a&amp;b.FP undefined">\
class:a&amp;b.FP undefined</error>
      <system-out>undefined: class:a&amp;b.FP undefined</system-out>
    </testcase>
    <testcase classname="detap.drop" name="AP50 drop &lt;= 0.1" time="0">
      <system-out>inconclusive: AP50 fell by 0.2000: inconclusive</system-out>
    </testcase>
    <testcase classname="detap.rise" name="class:*.dup rise &lt;= 1" time="0">
      <system-out>passed: class:*.dup unchanged (2)</system-out>
    </testcase>
  </testsuite>
</testsuites>
"""

GITHUB = """\
::error title=detap%3A AP::AP 0.5000, required >= 0.6
::error title=detap%3A class%3Aa&b.FP::class:a&b.FP undefined
::warning title=detap%3A AP50::AP50 fell by 0.2000: inconclusive
::warning title=detap%3A missing-area::areas are missing (3)
::notice title=detap%3A detap::2 of 4 gates failed; AP 0.5000, AP50 \N{EN DASH}
"""

GITLAB = """\
# TYPE detap_summary gauge
# HELP detap_summary Summary metrics.
detap_summary{metric="AP"} 0.5
# TYPE detap_class gauge
# HELP detap_class Metrics by class.
detap_class{class="a|b",index="0",metric="AP"} 0.3333333333333333
detap_class{class="a|b",index="0",metric="change"} -1e-05
detap_class{class="a|b",index="0",metric="more"} 2.0
detap_class{class="a|b",index="0",metric="score"} 0.30000000000000004
detap_class{class="a|b",index="0",metric="count"} 3.0
detap_class{class="cat",index="1",metric="change"} 0.0
detap_class{class="cat",index="1",metric="more"} 0.0
detap_class{class="cat",index="1",metric="count"} 4.0
# TYPE detap_gate_passed gauge
# HELP detap_gate_passed 1 if the gate passed, else 0.
detap_gate_passed{gate="AP",kind="minimum",index="0"} 0.0
detap_gate_passed{gate="class:a&b.FP",kind="maximum",index="1"} 0.0
detap_gate_passed{gate="AP50",kind="drop",index="2"} 1.0
detap_gate_passed{gate="class:*.dup",kind="rise",index="3"} 1.0
# EOF
"""

CSV = """\
name,id,AP,change,more,score,why,count
a|b,1,0.3333333333333333,-1e-05,2,0.30000000000000004,<low>,3
cat,2,,0.0,0,,,4
"""


RULE = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
BELOW = f"""
metric   value  IoU
AP      0.5000  0.50:0.95
AP50         {DASH}  0.50

Gates: 2 of 4 failed

More of it
class  count
{RULE * 12}
x          1
one line

detap 1.2.3 | coco
"""

WIDE = f"""\
class      AP    since  more FP                score  why    count
{RULE * 66}
a|b    0.3333  -0.0001       +2  0.30000000000000004  <low>      3
cat         {DASH}   0.0000        0                    {DASH}  {DASH}          4
{RULE * 66}
all    0.3333        {DASH}       -2                    {DASH}  {DASH}          7
{BELOW}"""

# Short headings, three digits, one blank between; columns that do not fit go below the name.
NARROW = f"""\
class    AP  since more               score
{RULE * 43}
a|b   0.333 -0.001   +2 0.30000000000000004
cat       {DASH}  0.000    0                   {DASH}
{RULE * 43}
all   0.333      {DASH}   -2                   {DASH}

class why   n
{RULE * 13}
a|b   <low> 3
cat   {DASH}     4
{RULE * 13}
all   {DASH}     7
{BELOW}"""


@pytest.mark.parametrize(("width", "text"), [(80, WIDE), (66, WIDE), (44, NARROW), (43, NARROW)])
def test_a_whole_report_as_text(width: int, text: str) -> None:
    assert WRITERS["table"].render(report(), Style(width, fold=True)) == text


def test_dvc_metrics_are_nested_fractions() -> None:
    """Counts, changes and texts are left out; undefined is null."""
    record = json.loads(render("dvc", report(summary={"AP": 0.5, "AP75": nan})))
    assert record == {"AP": 0.5, "AP75": None, "class": {"a|b": {"AP": 1 / 3}, "cat": {"AP": None}}}
    ranking = report(summary={"MAP": 0.5}, kind="retrieval")
    assert json.loads(render("dvc", ranking)) == {"MAP": 0.5}


def test_a_row_excluded_from_the_means_is_dim() -> None:
    plain, unknown, totals = (table_lines(report().table, Style())[n] for n in (2, 3, 5))
    assert [part for _, part in plain] == [""] * 7
    assert [part for _, part in unknown] == ["dim"] * 7
    assert [part for _, part in totals] == ["total"] * 7


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("markdown", MARKDOWN),
        ("junit", JUNIT),
        ("github", GITHUB),
        ("gitlab", GITLAB),
        ("csv", CSV),
    ],
)
def test_a_whole_report(name: str, text: str) -> None:
    assert render(name, report()) == text


def test_code_quality_lists_only_gates_that_did_not_pass() -> None:
    issues = json.loads(render("codequality", report()))
    assert issues == [
        {
            "description": message,
            "check_name": f"detap/{kind}",
            "fingerprint": sha256(f"{kind}\n{name}\n{limit}".encode()).hexdigest(),
            "severity": severity,
            "location": {"path": "runs/dt.json", "lines": {"begin": 1}},
        }
        for kind, name, limit, message, severity in (
            ("minimum", "AP", "0.6", "AP 0.5000, required >= 0.6", "major"),
            ("maximum", "class:a&b.FP", "3", "class:a&b.FP undefined", "major"),
            ("drop", "AP50", "0.1", "AP50 fell by 0.2000: inconclusive", "minor"),
        )
    ]
    (issues,) = json.loads(render("codequality", report(CHECKS[:1], inputs=())))
    assert issues["location"]["path"] == "detections"


def test_the_record_is_complete() -> None:
    text = render("json", report())
    assert text.endswith("}\n")
    record = json.loads(text)
    assert record == {
        "schema_version": 2,
        "detap_version": "1.2.3",
        "kind": "detection",
        "signature": "detap 1.2.3 | coco",
        "protocol": {"name": "coco"},
        "inputs": [
            {"role": "ground_truth", "path": "gt.json"},
            {"role": "detections", "path": "./runs/dt.json"},
        ],
        "summary": {"AP": 0.5, "AP50": None},
        "classes": [{**ROW, "why": "<low>", "count": 3}, {**OTHER, "AP": None, "count": 4}],
        "notes": [
            {
                "code": "missing-area",
                "message": "areas are missing",
                "count": 3,
                "severity": "warning",
            },
            {"code": "an-info", "message": "an info", "count": 1, "severity": "info"},
        ],
        "gates": {"passed": False, "checks": CHECKS},
        "more": {"x": None},
    }
    head = "schema_version detap_version kind signature protocol inputs summary classes notes"
    assert list(record) == [*head.split(), "gates", "more"]


def test_the_record_has_no_ci_command() -> None:
    text = render("json", report(signature="a ##[group]b ##vso[c] ###"))
    assert '"a #\\u0023[group]b #\\u0023vso[c] #\\u0023#"' in text
    assert json.loads(text)["signature"] == "a ##[group]b ##vso[c] ###"


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([], "AP 0.5000"),
        (CHECKS[:1], "1 of 1 gates failed"),
        (CHECKS[2:3], "1 of 1 gates passed, 1 with a warning"),
        (CHECKS[3:], "1 of 1 gates passed"),
        (CHECKS[:2], "2 of 2 gates failed"),
        (CHECKS[2:], "2 of 2 gates passed, 1 with a warning"),
    ],
)
def test_the_short_outcome(checks: list[dict[str, Any]], verdict: str) -> None:
    assert render("markdown", report(checks)).splitlines()[0] == f"## detap: {verdict}"


@pytest.mark.parametrize(("count", "shown"), [(10, 10), (11, 11), (12, 10), (30, 10)])
def test_only_the_first_of_many_passed_gates_are_shown(count: int, shown: int) -> None:
    checks = [check("minimum", f"n{n}", "passed", "0", f"n{n} is 1") for n in range(count)]
    lines = render("markdown", report(checks)).splitlines()
    assert sum(line.startswith("| passed |") for line in lines) == shown
    assert (f"{count - shown} more gates passed." in lines) == (shown < count)


def test_many_failed_gates_are_truncated_and_counted() -> None:
    # LVIS has 1,203 categories
    failed = [
        check("minimum", f"class:{n}.AP", "failed", "0.6", "is 0.5 < 0.6") for n in range(1203)
    ]
    text = render("markdown", report([*failed, *CHECKS[3:]]))
    shown = sum(line.startswith("| **FAILED** |") for line in text.splitlines())
    assert 500 < shown < 1203
    assert f"{1204 - shown} more gates in the JSON report: {1203 - shown} FAILED, 1 passed." in text
    assert len(text) <= 65_000
    assert "### More of it" in text


@pytest.mark.parametrize("count", [10, 11])
def test_many_warnings_are_truncated_and_counted(count: int) -> None:
    notes = tuple(Note(f"n{n}", "text") for n in range(count))
    lines = render("github", report([], notes=notes)).splitlines()
    assert len(lines) == 11
    last = "n9::text" if count == 10 else "more::2 more in the report"
    assert lines[9] == f"::warning title=detap%3A {last}"
    assert lines[10].startswith("::notice title=detap%3A detap::AP 0.5000, ")


def test_a_long_annotation_is_truncated() -> None:
    for size, end in ((4000, "xxx"), (4001, "...")):
        line = render("github", report([], notes=(Note("c", "x" * size),))).splitlines()[0]
        message = line.removeprefix("::warning title=detap%3A c::")
        assert (len(message), message[-3:]) == (4000, end)


def test_a_report_without_a_summary_begins_with_its_table() -> None:
    plain = report([], summary={}, blocks=(), notes=(), kind="check")
    lines = render("markdown", plain).splitlines()
    assert lines[:3] == [
        "## detap: check",
        "",
        "| class | AP | since | more FP | score | why | count |",
    ]
    assert "<details>" not in lines


def test_omitted_rows_are_counted() -> None:
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"name": f"class number {n:06}", "count": n} for n in range(3000)
    )
    text = render("markdown", report([], table=Table((COLUMNS[0], COLUMNS[6]), rows)))
    assert 64_000 < len(text) <= 65_000
    shown = text.count("| `class number ")
    assert f"\n{3000 - shown} more rows in the JSON report.\n" in text
    assert f"| `class number {shown - 1:06}` | {shown - 1} |" in text
