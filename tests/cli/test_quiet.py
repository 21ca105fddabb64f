"""A successful --quiet run prints nothing; failures and requested output are printed."""

import pytest

from tests.cli.conftest import Ended, Files, Run


@pytest.mark.parametrize("command", ["eval", "check"])
def test_success_prints_nothing(command: str, coco: Files, detap: Run) -> None:
    line = (command, *coco.arguments[1:])
    assert detap(*line).out
    assert detap(*line, "-q") == Ended(0, "", "")


def test_a_gate_that_fails_is_printed_once(coco: Files, detap: Run) -> None:
    assert detap(*coco.arguments, "-q", "--fail-under", "0.1") == Ended(0, "", "")
    ended = detap(*coco.arguments, "-q", "--fail-under", "0.99")
    assert ended == Ended(1, "", "gate failed: AP 0.7525, required >= 0.99\n")


def test_requested_output_is_written(coco: Files, detap: Run) -> None:
    plain = detap(*coco.arguments).out
    assert detap(*coco.arguments, "-q", "--output-format", "table").out == plain
    assert detap(*coco.arguments, "-q", "-o", "table=-").out == plain
