"""The pytest plugin, tested with pytester."""

import json
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.cli.conftest import write_coco
from tests.conftest import ROOT
from tests.processes import finished

pytest_plugins = ["pytester"]

PLUGIN = "detap.pytest_plugin"
INSTALLED = any(entry_point.value == PLUGIN for entry_point in entry_points(group="pytest11"))
PLAIN = ["-p", "no:cacheprovider", *([] if INSTALLED else ["-p", PLUGIN])]

TESTS = """
def test_good(detap_gate):
    result = detap_gate("instances.json", "results.json", fail_under={"AP50": 0.7})
    assert result.summary["AP50"] > 0.75

def test_bad(detap_gate):
    detap_gate("instances.json", "results.json", fail_under={"class:cat.AP": 0.6})

def test_broken(detap_gate):
    detap_gate("instances.json", "absent.json", fail_under=0.1)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    write_coco(pytester.path)
    pytester.makepyfile(test_detector=TESTS)
    pytester.syspathinsert(ROOT)
    return pytester


def test_a_failure_shows_the_test_and_regressions_and_no_source(suite: pytest.Pytester) -> None:
    ended = suite.runpytest_subprocess(*PLAIN)
    ended.assert_outcomes(passed=1, failed=2)
    text, _, _ = ended.stdout.str().partition("warnings summary")
    # One of two cats is missed, one is found twice: AP at recall 1/2, 51 of 101 levels.
    ended.stdout.fnmatch_lines(
        [
            '>*detap_gate("instances.json", "results.json", fail_under={"class:cat.AP": 0.6})',
            "E*AssertionError: Gates: 1 of 1 failed",
            "E*FAILED*class:cat.AP 0.5050, required >= 0.6",
            "E*Worst classes and images*",
            "E*cat*",
        ]
    )
    ended.stdout.fnmatch_lines(["E*InputError: absent.json: *"])
    for source in ("pytest_plugin.py", "testing.py", "detap/"):
        assert source not in text
    assert "= detap =" not in text


def test_the_function_without_the_plugin_shows_no_source_either(suite: pytest.Pytester) -> None:
    body = TESTS.replace("(detap_gate)", "()").replace("detap_gate", "assert_detections")
    head = "from detap.testing import assert_detections\n"
    suite.makepyfile(test_detector=f"{head}{body}")
    ended = suite.runpytest_subprocess(*PLAIN, "-k", "bad")
    ended.stdout.fnmatch_lines(["E*FAILED*class:cat.AP 0.5050, required >= 0.6"])
    assert "testing.py" not in ended.stdout.str().partition("warnings summary")[0]


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_the_summary_lists_assertions(workers: list[str], suite: pytest.Pytester) -> None:
    if workers:
        pytest.importorskip("xdist")
    suite.makeini("[pytest]\ndetap_summary = true\n")
    ended = suite.runpytest_subprocess(*PLAIN, "--junitxml=junit.xml", *workers)
    ended.stdout.fnmatch_lines_random(
        [
            "=* detap =*",
            # (51/101 + 1) / 2, over ten thresholds all alike
            "passed  AP 0.7525  test_detector.py::test_good",
            "FAILED  1 of 1 failed  test_detector.py::test_bad",
            "FAILED  absent.json: *  test_detector.py::test_broken",
        ]
    )
    assert 'name="detap" value="passed  AP 0.7525"' in (suite.path / "junit.xml").read_text()


def test_without_the_fixture_there_is_no_summary(suite: pytest.Pytester) -> None:
    suite.makeini("[pytest]\ndetap_summary = true\n")
    suite.makepyfile(test_detector="def test_nothing(): pass")
    assert "detap =" not in suite.runpytest_subprocess(*PLAIN).stdout.str()


def test_pytest_finds_it_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"detap": PLUGIN}


def test_nothing_is_imported_until_used(tmp_path: Path) -> None:
    """Of detap only the top-level package is imported; pytest's own modules do not count."""
    code = (
        "import json, sys, pytest\n"
        "before = set(sys.modules)\n"
        f"import {PLUGIN}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))\n"
    )
    ended = finished(
        [sys.executable, "-X", "importtime", "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
    )
    expected = {"detap", "detap._version", PLUGIN}
    assert set(json.loads(ended.stdout)) == expected
    timed = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert expected <= timed
    assert not {"numpy", "click"} & timed
