"""detap badge: the number, and the color that its gates allow."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import Ended, Files, Run, results


@pytest.fixture
def report(coco: Files, detap: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that writes report.json with further options."""
    monkeypatch.chdir(coco.folder)

    def write(*options: str) -> None:
        assert detap(*coco.arguments, "-q", "-o", "report.json", *options).status in (0, 1)

    return write


def made(detap: Run, *options: str) -> Any:
    ended = detap("badge", "report.json", *options)
    assert (ended.status, ended.err) == (0, "")
    return json.loads(ended.out)


def test_a_metric_without_gates_is_blue(report: Callable[..., None], detap: Run) -> None:
    report()
    # (51/101 + 1) / 2: one of two cats is found, and the dog.
    expected = {"schemaVersion": 1, "label": "AP", "message": "0.7525", "color": "blue"}
    assert made(detap) == expected
    assert made(detap, "--metric", "class:cat.AP", "--label", "cats")["message"] == "0.5050"
    assert made(detap, "--metric", "class:cat.AP", "--label", "cats")["label"] == "cats"
    # Of three cats that are seen, two are none.
    assert made(detap, "--metric", "class:cat.false_positives")["message"] == "2"


@pytest.mark.parametrize(
    ("limit", "color"), [("AP=0.5", "brightgreen"), ("class:cat.AP=0.9", "red")]
)
def test_it_is_green_only_if_every_gate_passed(
    limit: str, color: str, report: Callable[..., None], detap: Run
) -> None:
    report("--fail-under", limit, "--fail-under", "AP50=0.1")
    assert made(detap)["color"] == color


def test_a_gate_with_a_warning_is_yellow(
    report: Callable[..., None], detap: Run, coco: Files
) -> None:
    earlier = coco.folder / "earlier.json"
    earlier.write_text(coco.dt.read_text())
    coco.dt.write_text(
        json.dumps([detection for detection in results() if detection["category_id"] != 2])
    )
    report(
        "--baseline-detections", str(earlier), "--max-drop", "class:*.AP=0.1", "--confidence", ".9"
    )
    assert made(detap)["color"] == "yellow"  # the dog is lost: one is too few to fail on


def test_an_undefined_metric_is_gray(report: Callable[..., None], detap: Run) -> None:
    report("--fail-under", "0.1")
    badge = made(detap, "--metric", "class:bird.AP")
    assert (badge["message"], badge["color"]) == ("undefined", "lightgrey")


def test_it_is_written_to_a_file(report: Callable[..., None], detap: Run, coco: Files) -> None:
    report()
    assert detap("badge", "report.json", "-o", "badge.json") == Ended(0, "", "")
    assert json.loads((coco.folder / "badge.json").read_text())["label"] == "AP"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--metric", "AP5O"], "unknown metric 'AP5O'; did you mean 'AP75' or 'AP50'"),
        (["--metric", "class:*.AP"], "'class:*.AP' selects 2 metrics; a badge shows one"),
        (["-o", "report.json"], "is an input"),
        (["-o", "b.svg"], "b.svg: a badge is JSON for shields.io, not an image; use a .json file"),
    ],
)
def test_errors_are_reported(
    options: list[str], message: str, report: Callable[..., None], detap: Run
) -> None:
    report()
    assert message in detap("badge", "report.json", *options).refused()
