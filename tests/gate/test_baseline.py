"""The ratchet: stored numbers rise, and never fall unasked."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from detap.report.json import schema
from tests.cli.conftest import Ended, detap, instances, results, write_coco

__all__ = ["detap"]

Run = Callable[..., Ended]


@pytest.fixture
def reports(tmp_path: Path, detap: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the reports of three detectors: good, one without the dog, one without the cat."""
    monkeypatch.chdir(tmp_path)
    write_coco(tmp_path)
    for name, label in (("good", 0), ("no-dog", 2), ("no-cat", 1)):
        kept = [found for found in results() if found["category_id"] != label]
        (tmp_path / "dt.json").write_text(json.dumps(kept))
        call = ("eval", "--gt", "instances.json", "--dt", "dt.json", "-q", "-o", f"{name}.json")
        assert detap(*call).status == 0
    return tmp_path


def load(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def ap_of(record: dict[str, Any]) -> dict[str, float]:
    return {row["name"]: row["AP"] for row in record["classes"]}


def test_a_first_report_becomes_the_baseline(reports: Path, detap: Run) -> None:
    ended = detap("baseline", "update", "base.json", "good.json")
    assert (ended.status, ended.out) == (0, "base.json is new\n")
    assert load(reports / "base.json") == load(reports / "good.json")


def test_numbers_rise_each_by_itself_and_none_falls(reports: Path, detap: Run) -> None:
    detap("baseline", "update", "base.json", "no-dog.json")
    before = load(reports / "base.json")
    ended = detap("baseline", "update", "base.json", "no-cat.json")
    assert ended.status == 0
    record = load(reports / "base.json")
    then, now = load(reports / "no-dog.json"), load(reports / "no-cat.json")
    for name, value in record["summary"].items():
        pair = [other["summary"][name] for other in (then, now)]
        assert value == max((number for number in pair if number is not None), default=None)
    assert ap_of(record)["dog"] == ap_of(now)["dog"] > ap_of(then)["dog"]
    assert ap_of(record)["cat"] == ap_of(then)["cat"] > ap_of(now)["cat"]
    assert "class:cat.AP" in record["kept"]
    assert "class:dog.AP: 0.0 -> 0.9999999999999998 (+1.0000)" in ended.out
    assert "numbers are lower in the new report; the baseline keeps its own" in ended.out
    assert (
        before["classes"][0]["detections"] != record["classes"][0]["detections"]
    )  # counts are new
    Draft202012Validator(schema()).validate(record)


def test_a_raised_baseline_is_a_baseline(reports: Path, detap: Run) -> None:
    for name in ("no-dog.json", "no-cat.json"):
        detap("baseline", "update", "base.json", name)
    (reports / "dt.json").write_text(json.dumps(results()))
    call = ("eval", "--gt", "instances.json", "--dt", "dt.json", "--baseline", "base.json")
    assert detap(*call, "--max-drop", "class:*.AP=0").status == 0
    kept = [found for found in results() if found["category_id"] != 1]
    (reports / "dt.json").write_text(json.dumps(kept))
    assert detap(*call, "--max-drop", "class:*.AP=0").status == 1


def test_falling_takes_asking(reports: Path, detap: Run) -> None:
    detap("baseline", "update", "base.json", "good.json")
    same = (reports / "base.json").read_bytes()
    ended = detap("baseline", "update", "base.json", "good.json")
    assert ended.out == "nothing changed\n"
    ended = detap("baseline", "update", "base.json", "no-dog.json")
    assert ended.out.startswith("no number rose\n")
    assert ap_of(load(reports / "base.json"))["dog"] > 0.9
    ended = detap("baseline", "update", "base.json", "no-dog.json", "--allow-drop", "--dry-run")
    assert "class:dog.AP: 0.9999999999999998 -> 0.0 (-1.0000)" in ended.out
    assert ap_of(load(reports / "base.json"))["dog"] > 0.9
    detap("baseline", "update", "base.json", "no-dog.json", "--allow-drop")
    assert ap_of(load(reports / "base.json"))["dog"] == 0
    assert same != (reports / "base.json").read_bytes()


def test_another_ground_truth_is_refused_and_may_be_insisted_on(reports: Path, detap: Run) -> None:
    detap("baseline", "update", "base.json", "good.json")
    truth = instances()
    truth["annotations"][0]["bbox"] = [0, 0, 99, 100]
    (reports / "instances.json").write_text(json.dumps(truth))
    detap("eval", "--gt", "instances.json", "--dt", "dt.json", "-q", "-o", "other.json")
    ended = detap("baseline", "update", "base.json", "other.json")
    assert ended.status == 2
    assert "ground truth: sha256" in ended.err
    assert load(reports / "base.json") == load(reports / "good.json")
    ended = detap("baseline", "update", "base.json", "other.json", "--allow-different")
    assert ended.out == "replaced: the new report is of another ground truth or protocol\n"
    assert load(reports / "base.json") == load(reports / "other.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is no JSON report"),
        ("[]", "is no report of detap"),
        ("{}", "is no report of detap"),
        ('{"schema_version": 2}', "has schema version 2, not 1"),
        ('{"schema_version": 1, "kind": "detection"}', "lacks its numbers"),
        ('{"schema_version": 1, "summary": {"AP": NaN}}', "NaN is no JSON"),
        ("[" * 100_000, "is no JSON report"),
    ],
)
def test_what_is_no_report_is_refused(
    reports: Path, detap: Run, content: str, message: str
) -> None:
    (reports / "bad.json").write_text(content)
    for call in (("base.json", "bad.json"), ("bad.json", "good.json")):
        ended = detap("baseline", "update", *call)
        assert ended.status == 2
        assert "bad.json" in ended.err
        assert message in ended.err
    assert (reports / "bad.json").read_text() == content


def test_a_baseline_is_no_pipe_and_not_the_report_itself(reports: Path, detap: Run) -> None:
    assert detap("baseline", "update", "-", "good.json").status == 2
    assert detap("baseline", "update", "good.json", "good.json").status == 2
