"""The corpus through the command: status, message, metrics, bytes, and checks of every run."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.depth import some
from tests.reliability import coco_cases, keypoint_cases, mask_cases, voc_cases
from tests.reliability.cases import ROWS, Case, Refused, Scored
from tests.reliability.judge import problems_of_run, universal_problems
from tests.reliability.runner import OLD, Worker, run_command

CASES = [
    case for part in (coco_cases, mask_cases, keypoint_cases, voc_cases) for case in part.CASES
]

FIRST_OF_ROW = list({(case.format, case.row, type(case.expect)): case for case in CASES}.values())

SOME = some(CASES)
"""Cases that are also run in other ways: a sample in the suite, all in `.ci/run`."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    started = Worker()
    yield started
    started.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case, worker: Worker, tmp_path: Path) -> None:
    outcome = worker.run(case, tmp_path)
    assert problems_of_run(case, outcome) == [], outcome.stderr.decode("utf-8", "replace")[:2000]


@pytest.mark.parametrize("case", some(FIRST_OF_ROW), ids=lambda case: case.id)
def test_case_in_a_process_of_its_own(case: Case, tmp_path: Path) -> None:
    outcome = run_command(case, tmp_path)
    assert problems_of_run(case, outcome) == [], outcome.stderr.decode("utf-8", "replace")[:2000]


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.id)
def test_check_agrees_with_eval(case: Case, worker: Worker, tmp_path: Path) -> None:
    """check refuses what eval refuses, and nothing else, whatever the report's target."""
    outcome = worker.run(case, tmp_path, "check")
    assert universal_problems(outcome) == [], outcome.stderr.decode("utf-8", "replace")[:2000]
    refused = isinstance(case.expect, Refused)
    assert outcome.status == (2 if refused else 0)
    if refused:
        assert outcome.stderr.startswith(b"Error: ") or b"\nError: " in outcome.stderr


@pytest.mark.parametrize("case", SOME, ids=lambda case: case.id)
def test_compare_agrees_with_eval(case: Case, worker: Worker, tmp_path: Path) -> None:
    """A detector compared with itself; standard input cannot be read twice."""
    outcome = worker.run(case, tmp_path, "compare")
    assert universal_problems(outcome) == [], outcome.stderr.decode("utf-8", "replace")[:2000]
    refused = isinstance(case.expect, Refused) and case.row != "target"
    assert outcome.status == (2 if refused or case.dt == "-" else 0)


@pytest.mark.parametrize(
    "case", [case for case in SOME if isinstance(case.expect, Scored)], ids=lambda case: case.id
)
def test_strict_refuses_each_warning_and_nothing_else(
    case: Case, worker: Worker, tmp_path: Path
) -> None:
    strict = replace(case, options=(*case.options, "--strict"))
    outcome = worker.run(strict, tmp_path)
    said = outcome.stderr.decode("utf-8", "replace")
    assert universal_problems(outcome) == [], said[:2000]
    if not any(line.startswith("warning: ") for line in said.splitlines()):
        assert problems_of_run(case, outcome) == [], said[:2000]
        return
    assert (outcome.status, outcome.stdout, outcome.report) == (2, b"", OLD)
    assert said.splitlines()[-1].endswith(" and --strict")
    # What a case says must be noted is refused by that very warning, or is a mere fact.
    assert isinstance(case.expect, Scored)
    assert [code for code in case.expect.notes if f"[{code}]" not in said] == []


def test_every_row_has_a_case_for_each_format_it_applies_to() -> None:
    expected = {(row, name) for row, (_, formats) in ROWS.items() for name in formats}
    assert expected == {(case.row, case.format) for case in CASES}


def test_names_are_unique() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
