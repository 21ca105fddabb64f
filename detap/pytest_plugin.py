"""pytest plugin: a fixture for gates, and a summary of its assertions.

pytest imports this module at every start, so it imports detap only when the fixture is used.
"""

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

import pytest

_PROPERTY = "detap"
_INI = "detap_summary"
_FAILED = "FAILED"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting of the summary."""
    text = "List the assertions of the detap_gate fixture at the end."
    parser.addini(_INI, text, type="bool", default=False)


@pytest.fixture
def detap_gate(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return :func:`detap.testing.assert_detections`, recording outcomes for the summary.

    Tracebacks of its errors contain the line of the test and none of detap's source.
    """
    from detap.testing import recorded

    return recorded(partial(_record, request))


def _record(request: pytest.FixtureRequest, text: str, *, passed: bool) -> None:
    """Store an outcome as a user property, which pytest-xdist and JUnit files pass on."""
    outcome = f"{'passed' if passed else _FAILED}  {text}"
    request.node.user_properties.append((_PROPERTY, outcome))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """List the assertions, if the setting is on."""
    outcomes = {}
    for report in chain.from_iterable(terminalreporter.stats.values()):
        properties = getattr(report, "user_properties", ())
        values = [str(value) for name, value in properties if name == _PROPERTY]
        if values:
            outcomes[report.nodeid] = values  # the last report of a test has all of them
    if not outcomes or not config.getini(_INI):
        return
    terminalreporter.section("detap")
    for test, lines in outcomes.items():
        for outcome in lines:
            failed = outcome.startswith(_FAILED)
            terminalreporter.write_line(f"{outcome}  {test}", red=failed, green=not failed)
