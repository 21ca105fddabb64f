"""Checks of the outcome of a run."""

import json
import math
import re
from typing import Any

from tests.reliability.cases import Case, Refused, Scored
from tests.reliability.runner import OLD, SANITIZED, Outcome

TOLERANCE = 1e-9
MOST_SECONDS = 20
MOST_BYTES = 700 << 20


def problems_of_run(case: Case, outcome: Outcome) -> list[str]:
    """Return the problems of a run of ``detap eval``; none if all is well."""
    problems = universal_problems(outcome)
    if isinstance(case.expect, Refused):
        problems += _refused_problems(case, case.expect, outcome)
    else:
        problems += _scored_problems(case.expect, outcome)
    return problems


def universal_problems(outcome: Outcome) -> list[str]:
    """Return the problems that no run may have, whatever its input."""
    problems = []
    if outcome.late:
        problems.append("it hangs")
    elif outcome.seconds > MOST_SECONDS:
        problems.append(f"it takes {outcome.seconds:.0f} s")
    if outcome.peak > MOST_BYTES and not SANITIZED:
        problems.append(f"it takes {outcome.peak >> 20} MiB")
    if outcome.status not in (0, 2):
        problems.append(f"its status is {outcome.status}")
    for name, said in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        problems += [f"{name} {problem}" for problem in text_problems(said)]
    if b"Traceback (most recent call last)" in outcome.stderr + outcome.stdout:
        problems.append("there is a traceback")
    if outcome.new_files:
        problems.append(f"it leaves {outcome.new_files} behind")
    return problems


def text_problems(said: bytes) -> list[str]:
    """Return the characters that a terminal or log could take for control codes."""
    try:
        text = said.decode()
    except UnicodeDecodeError:
        return ["is not UTF-8"]
    bad = sorted({c for c in text if c != "\n" and not c.isprintable()})
    return [f"has the characters {bad!r}"] if bad else []


def _refused_problems(case: Case, expect: Refused, outcome: Outcome) -> list[str]:
    problems = []
    said = outcome.stderr.decode("utf-8", "replace")
    if outcome.status != 2:
        problems.append(f"its status is {outcome.status} , expected 2")
    if outcome.stdout:
        problems.append("it says something on stdout")
    if case.row != "target" and outcome.report != OLD:
        problems.append("the old report is not what it was")
    if not said.startswith("Error: "):
        problems.append("it does not say `Error: `")
    name = re.escape(expect.file)
    if not re.search(rf"{name}\S*: {expect.location}", said):
        problems.append(f"the message does not say {expect.file!r} and then {expect.location!r}")
    if not re.search(expect.says, said, re.DOTALL):
        problems.append(f"the message does not say {expect.says!r}")
    return problems


def _scored_problems(expect: Scored, outcome: Outcome) -> list[str]:
    if outcome.status != 0:
        return [f"its status is {outcome.status} , expected 0"]
    try:
        report = strict_json(outcome.report or b"")
    except ValueError as error:
        return [f"the report is not strict JSON: {error}"]
    problems = []
    classes = {row["name"]: row["AP"] for row in report["classes"]}
    for expected, have in ((expect.summary, report["summary"]), (expect.classes, classes)):
        for name, value in expected.items():
            if name not in have:
                problems.append(f"{name} is not there, but {list(have)} are")
            elif not same(value, have[name]):
                problems.append(f"{name} is {have[name]} , expected {value}")
    codes = {note["code"]: note for note in report["notes"]}
    problems += [f"the note {code} is missing" for code in expect.notes if code not in codes]
    problems += [
        f"the note {code} is not expected"
        for code, note in codes.items()
        if note["severity"] == "warning" and code not in expect.notes
    ]
    said = outcome.stderr.decode("utf-8", "replace")
    problems += [
        f"stderr does not say {code}" for code in expect.notes if code in codes and code not in said
    ]
    return problems


def same(expected: float | None, have: Any) -> bool:
    """Return True if a metric of a report has the expected value."""
    if expected is None or have is None:
        return expected is None and have is None
    return math.isclose(expected, have, rel_tol=0, abs_tol=TOLERANCE)


def strict_json(data: bytes) -> Any:
    """Parse JSON strictly: no NaN, no duplicate key, UTF-8 only."""

    def unite(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError(f"duplicate key among {[key for key, _ in pairs]}")
        return dict(pairs)

    def refuse(name: str) -> Any:
        raise ValueError(f"it holds {name}")

    return json.loads(data.decode(), object_pairs_hook=unite, parse_constant=refuse)
