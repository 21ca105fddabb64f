"""pytest's plugin: a fixture that holds detectors to gates, and a summary of what it asserted.

pytest loads it at every start, wherever detap is installed: until a test asks for the fixture it
imports nothing.
"""

from collections.abc import Callable, Iterator

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from detap.evaluation.results import Result

_PROPERTY = "detap"
_INI = "detap_summary"
_FAILED = "FAILED"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the one setting."""
    told = "Whether to list at the end what the fixture detap_gate asserted."
    parser.addini(_INI, told, type="bool", default=False)


@pytest.fixture
def detap_gate(request: pytest.FixtureRequest) -> "Callable[..., Result]":
    """Return :func:`detap.testing.assert_detections`, which notes its outcome for the summary.

    What it raises shows the line of the test and the culprits, and nothing of detap's own source.
    """
    from detap.errors import DetapError  # only where it is used, as all of detap
    from detap.report.numbers import share
    from detap.testing import assert_detections

    def gate(*arguments: "Any", **named: "Any") -> "Result":
        __tracebackhide__ = True
        try:
            result = assert_detections(*arguments, **named)
        except (AssertionError, DetapError) as error:
            told = str(error).partition("\n")[0].removeprefix("Gates: ")
            _note(request, f"{_FAILED}  {told}")
            raise error.with_traceback(None) from None
        name, value = next(iter(result.summary.items()))
        _note(request, f"passed  {name} {share(value, 4)}")
        return result

    return gate


def _note(request: pytest.FixtureRequest, outcome: str) -> None:
    """Keep an outcome where workers of pytest-xdist and JUnit's file will find it."""
    request.node.user_properties.append((_PROPERTY, outcome))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """List what was asserted, where the settings ask for it."""
    outcomes = dict(_outcomes(terminalreporter)) if config.getini(_INI) else {}
    if not outcomes:
        return
    terminalreporter.section("detap")
    for test, found in outcomes.items():
        for outcome in found:
            failed = outcome.startswith(_FAILED)
            terminalreporter.write_line(f"{outcome}  {test}", red=failed, green=not failed)


def _outcomes(terminalreporter: pytest.TerminalReporter) -> Iterator[tuple[str, list[str]]]:
    """Yield each test with its outcomes; later reports of a test have all that earlier ones had."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            properties = getattr(report, "user_properties", ())
            found = [str(value) for name, value in properties if name == _PROPERTY]
            if found:
                yield report.nodeid, found
