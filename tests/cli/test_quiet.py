"""A successful --quiet run prints nothing; failures and requested output are printed."""

from collections.abc import Callable

import pytest

from tests.cli.conftest import Ended, Files, coco, detap

__all__ = ["coco", "detap"]

Run = Callable[..., Ended]


@pytest.mark.parametrize("command", ["eval", "check"])
def test_success_prints_nothing(command: str, coco: Files, detap: Run) -> None:
    line = (command, *coco.arguments[1:])
    assert detap(*line).out
    assert detap(*line, "-q") == Ended(0, "", "")


def test_a_gate_that_fails_shows_the_table(coco: Files, detap: Run) -> None:
    assert detap(*coco.arguments, "-q", "--fail-under", "0.1") == Ended(0, "", "")
    ended = detap(*coco.arguments, "-q", "--fail-under", "0.99")
    assert ended.status == 1
    assert ended.out.startswith("class ")
    assert "FAILED   AP " in ended.out
    assert ended.err.startswith("gate failed: AP ")


def test_requested_output_is_written(coco: Files, detap: Run) -> None:
    plain = detap(*coco.arguments).out
    assert detap(*coco.arguments, "-q", "--output-format", "table").out == plain
    assert detap(*coco.arguments, "-q", "-o", "table=-").out == plain
