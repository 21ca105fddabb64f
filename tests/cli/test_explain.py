"""``detap explain``: the command."""

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.conftest import ROOT
from tests.schemas import valid

CASE = ROOT / "fixtures" / "difficult" / "voc"
DATA = ("--gt", CASE / "Annotations", "--dt", CASE / "detections")
PROTOCOLS = ("--from", "voc2012", "--to", "coco", "--metric", "AP50")


def record(detap: Run, *arguments: str | Path) -> Any:
    return valid(detap("explain", *arguments, "--output-format", "json").report(), "explanation")


def report(detap: Run, path: Path, *arguments: str | Path) -> Path:
    assert detap("eval", *DATA, *arguments, "-o", path).status == 0
    return path


def test_a_sentence_first(detap: Run) -> None:
    """fixtures/difficult by hand: the ignored cat accounts for (1/6 + 16/101) / 2 of -.16337."""
    lines = detap("explain", *DATA, *PROTOCOLS).out.splitlines()
    assert lines[0] == "Main cause: difficult objects count (99% of the difference)"
    assert lines[2].split()[:4] == ["field", "share", "of", "difference"]
    assert ["ignore", "flags", "difficult", "crowd"] in [line.split() for line in lines]


def test_the_json_has_all(detap: Run) -> None:
    report = record(detap, *DATA, *PROTOCOLS)
    assert report["kind"] == "protocol_diff"
    assert report["metrics"]["first"]["value"] == 0.5
    assert report["metrics"]["first"]["metric"] == "mAP50"
    assert report["metrics"]["second"]["value"] == pytest.approx(67 / 101)
    assert report["combinations"] == {"scored": 256, "all": True}
    assert report["fields"]["ignore_flags"] == {"first": ["difficult"], "second": ["crowd"]}
    assert [step["name"] for step in report["steps"]][:2] == [
        "inclusive pixels",
        "ignore flags, crowd flags",
    ]
    assert sum(step["shapley"] for step in report["steps"]) == pytest.approx(67 / 101 - 1 / 2)
    assert [entry["role"] for entry in report["inputs"]] == ["ground_truth", "detections"]
    assert all(len(entry["sha256"]) == 64 for entry in report["inputs"])


def test_csv_has_the_steps(detap: Run) -> None:
    ended = detap("explain", *DATA, *PROTOCOLS, "--output-format", "csv")
    rows = list(csv.DictReader(StringIO(ended.out)))
    assert len(rows) == 8
    assert float(rows[1]["min"]) == pytest.approx(16 / 101, abs=1e-9)


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_all_values_are_shown_at_any_width(
    columns: str, detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = detap("explain", *DATA, *PROTOCOLS).out
    assert max(map(len, text.splitlines())) <= int(columns)
    for step in record(detap, *DATA, *PROTOCOLS)["steps"][:2]:
        for key in ("shapley", "in_order", "reversed", "min", "max"):
            assert f"{step[key]:+.9f}" in text or step[key] == 0


def test_scoring_in_order_only_is_reported(detap: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("detap.analysis.explanation.protocol_diff.MAX_STEPS", 7)
    text = detap("explain", *DATA, *PROTOCOLS).out
    assert "Shapley" not in text
    assert (
        "8 changed fields have 256 combinations, too many to score: only the effects in order and "
        "reversed are given"
    ) in " ".join(text.split())
    report = record(detap, *DATA, *PROTOCOLS)
    assert report["combinations"] == {"scored": 16, "all": False}
    assert [step["shapley"] for step in report["steps"]] == [None] * 8
    # In order, the ignored cat accounts for 1/6 of 67/101 - 1/2, which is 102 %.
    assert report["conclusion"] == (
        "Main cause: difficult objects count (102% of the difference; other fields "
        "\N{MINUS SIGN}2%)"
    )


def test_a_number(detap: Run) -> None:
    ended = detap("explain", *DATA, "--value", "66.34", "--metric", "AP50")
    assert ended.out.startswith(f"coco gives AP50 {67 / 101!r}"[:-3])
    assert "equal in all 4 digits" in ended.out
    assert " is 66.34" not in ended.out
    report = record(detap, *DATA, "--value", "66.34", "--metric", "AP50", "--top", "1")
    assert len(report["protocols"]) == 1
    assert report["protocols"][0]["digits"] == 4
    assert report["search"]["scored"]["one_field"] == 0


def test_a_value_that_no_protocol_gives(detap: Run) -> None:
    text = " ".join(detap("explain", *DATA, "--value", "0.7777").passed().out.split())
    assert text.startswith("No searched preset, also with one or two changed fields, ")
    assert " gives 0.7777; nearest: " in text


def test_all_presets_that_give_a_value_are_listed(detap: Run) -> None:
    """fixtures/difficult: 1/2 by all points; the last point is at recall 1/2."""
    ended = detap("explain", *DATA, "--value", "0.500", "--metric", "mAP")
    equal = "voc2012 gives mAP 0.5, equal in all 3 digits; so do voc2012-py, cartucho and"
    assert " ".join(ended.out.split()).startswith(equal)
    report = record(detap, *DATA, "--value", "66.337", "--metric", "AP50", "--top", "1")
    for name in ("coco-strict", "globox", "torchmetrics"):
        assert f" {name}" in report["conclusion"], name


@pytest.mark.parametrize(
    ("options", "rejecting"),
    [
        (["--max-dets", "5"], ["kitti", "kitti-r11"]),
        (["--interpolation", "all-point"], ["kitti", "kitti-r11"]),
        (["--area-ranges", "none"], ["kitti", "kitti-r11"]),
        (
            ["--class-agnostic"],
            ["lvis", "lvis-fixed", "kitti", "kitti-r11", "open-images-challenge"],
        ),
    ],
)
def test_presets_that_reject_an_option_are_listed_as_skipped(
    detap: Run, options: list[str], rejecting: list[str]
) -> None:
    """fixtures/difficult by voc2012: 1/2 for any value of these options."""
    report = record(detap, *DATA, "--value", "0.500", "--metric", "mAP", *options)
    assert "voc2012" in [entry["name"] for entry in report["protocols"]]
    skipped = {group["reason"]: group["presets"] for group in report["search"]["not_searched"]}
    assert skipped["reject the options given"] == rejecting
    text = " ".join(detap("explain", *DATA, "--value", "0.500", *options).out.split())
    masks = "coco-segm, lvis-segm, lvis-fixed-segm (compare masks: --iou-type segm)"
    assert f"Not searched: {masks}; " in text
    assert f"{', '.join(rejecting)} (reject the options given)" in text


def test_options_that_all_presets_reject(detap: Run) -> None:
    said = detap("explain", *DATA, "--value", "0.500", "--sigmas", "coco").refused()
    assert "sigmas has no effect with iou_type bbox; leave out --sigmas" in said
    said = detap("explain", *DATA, "--value", "0.500", "--class-iou", "cat=0.5").refused()
    assert "protocol kitti requires the column 'occluded' of the ground truth" in said


def test_field_options_apply_to_both_protocols(detap: Run) -> None:
    """Difficult objects count in both, so ignore_flags is not a step: 2/3 and 67/101."""
    report = record(detap, *DATA, *PROTOCOLS, "--ignore-flags", "none", "--classes", "cat")
    assert report["selection"]["classes"] == ["cat"]
    report = record(detap, *DATA, *PROTOCOLS, "--ignore-flags", "none")
    assert report["metrics"]["first"]["value"] == pytest.approx(2 / 3)
    assert "ignore flags, crowd flags" not in [step["name"] for step in report["steps"]]
    ended = detap("explain", *DATA, "--value", "0.63636", "--ignore-flags", "none")
    assert ended.out.startswith("voc2007 gives mAP 0.63636363")


def test_a_protocol_may_be_a_signature_or_a_report(detap: Run, tmp_path: Path) -> None:
    path = report(detap, tmp_path / "a.json", "--ignore-flags", "none")
    output = record(detap, *DATA, "--from", "voc2012", "--to", path)
    assert output["conclusion"] == "Main cause: difficult objects count (100% of the difference)"
    signature = json.loads(path.read_text("utf-8"))["signature"]
    again = record(detap, *DATA, "--from", "voc2012", "--to", signature)
    assert again == output


def test_two_reports_alone(detap: Run, tmp_path: Path) -> None:
    first = report(detap, tmp_path / "a.json")
    second = report(detap, tmp_path / "b.json", "--protocol", "coco")
    ended = detap("explain", first, second, "--metric", "AP50")
    assert ended.out.startswith("Main cause: different protocols (100% of the difference)\n")
    assert "Pass the inputs of one report with --gt and --dt" in ended.out
    output = record(detap, first, second, "--metric", "AP50")
    assert output["kind"] == "report_diff"
    assert output["inputs"] == []
    assert output["causes"]["protocol"]["differs"] is True
    assert output["contributions"][0]["name"] == "protocol"
    assert output["contributions"][0]["fraction"] == 1
    ended = detap("explain", first, first)
    assert ended.out.startswith("The reports are equal: mAP 0.5 and 0.5\n")


def test_two_reports_with_their_inputs(detap: Run, tmp_path: Path) -> None:
    """As the hint for reports without inputs advises."""
    first = report(detap, tmp_path / "a.json")
    second = report(detap, tmp_path / "b.json", "--protocol", "coco")
    output = record(detap, first, second, "--metric", "AP50", *DATA)
    assert output["conclusion"] == "Main cause: difficult objects count (99% of the difference)"
    steps = record(detap, *DATA, *PROTOCOLS)["steps"]
    assert output["attribution"]["steps"] == steps


def test_settings_of_a_file(detap: Run, cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields in settings apply to named protocols, not to those of reports."""
    first = report(detap, cwd / "a.json")
    second = report(detap, cwd / "b.json", "--protocol", "coco")
    (cwd / "detap.toml").write_text('ignore-flags = "none"\nprotocol = "voc2007"\n', "utf-8")
    output = record(detap, *DATA, *PROTOCOLS)
    assert output["metrics"]["first"]["value"] == pytest.approx(2 / 3)
    assert record(detap, first, second, "--metric", "AP50")["metrics"]["first"]["value"] == 0.5
    monkeypatch.setenv("DETAP_FROM", "coco")
    assert "use exactly one of" in detap("explain", first, second).err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "use exactly one of: two reports, --from and --to, or --value"),
        ((*PROTOCOLS, "--value", ".5"), "use exactly one of: two reports, --from"),
        (("a.json", "b.json", "--value", ".5"), "use exactly one of"),
        (("a.json",), "expected two reports, got 1"),
        (("a.json", "b.json", "c.json"), "expected two reports, got 3"),
        (("--from", "coco"), "--to is missing; --from and --to are used together"),
        (("--to", "coco"), "--from is missing"),
        (("a.json", "b.json", "--ignore-flags", "none"), "reports contain their protocols; remove"),
        (PROTOCOLS, "--gt is missing; explain needs ground truth and detections"),
        (("a.json", "b.json", *DATA[:2]), "--dt is missing"),
        ((*DATA, "--from", "coco", "--to", "coco"), "coco and coco do not differ in any field"),
        ((*DATA, *PROTOCOLS[:4], "--metric", "AP99"), "has no metric 'AP99'"),
        (
            (*DATA, "--value", "0.67"),
            "--value 0.67 has too few digits and matches many protocols; use 3 decimals",
        ),
        ((*DATA, "--value", "67"), "--value 67 has too few digits"),
        ((*DATA, "--value", "-0.5"), "--value -0.5 is outside [0, 1] and not a percentage"),
        ((*DATA, "--value", "101.25"), "--value 101.25 is outside [0, 1] and not a percentage"),
        ((*DATA, "--value", "nan"), "--value: 'nan' is not a number"),
        (("--gt", "no.json", "--dt", "no", "--value", "x"), "--value: 'x' is not a number"),
        ((*DATA, *PROTOCOLS, "--output-format", "junit"), "cannot be written as junit"),
        (
            (*DATA, "--from", "coco", "--to", "nothing.json"),
            "nothing.json: no such file or directory",
        ),
    ],
)
def test_inputs_that_cannot_be_explained(
    arguments: tuple[str | Path, ...], message: str, detap: Run
) -> None:
    assert message in detap("explain", *arguments).refused()


def test_two_protocols_with_the_same_value(detap: Run) -> None:
    """COCO's eps turns 1/2 into 0.4999999999999999: equal up to rounding, no contributions."""
    guarded = "voc2012|precision-eps:2.220446049250313e-16"
    report = record(detap, "--from", "voc2012", "--to", guarded, *DATA)
    assert report["conclusion"] == f"voc2012 and {guarded} give the same mAP"
    assert report["metrics"]["second"]["value"] == pytest.approx(0.5, abs=1e-15)
    assert report["metrics"]["second"]["value"] != 0.5
    assert [step["fraction"] for step in report["steps"]] == [None]


def test_a_report_of_another_kind(detap: Run, tmp_path: Path) -> None:
    run, qrels = (ROOT / "fixtures" / "ranking-list" / name for name in ("run.txt", "qrels.txt"))
    path = tmp_path / "ranked.json"
    assert detap("rank", "retrieval", "--run", run, "--qrels", qrels, "-o", path).status == 0
    for line in ((path, path), (*DATA, "--from", "coco", "--to", path)):
        said = detap("explain", *line).refused()
        assert f"{path} is a retrieval report, expected a detection report" in said
    path.write_text("{}", "utf-8")
    assert "not a detap report; create it with detap eval" in detap("explain", path, path).err
    explained = tmp_path / "why.json"
    assert detap("explain", *DATA, *PROTOCOLS, "-o", explained).status == 0
    assert "report with missing or invalid values" in detap("explain", explained, path).err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": {"name": ["coco"]}}, "b.json: invalid protocol: "),
        (
            {"protocol": {"name": "coco", "area_ranges": 3}},
            "area_ranges: 3 is not a tuple; regenerate",
        ),
        ({"protocol": {"name": "coco", "colour": 3}}, "b.json: protocol field 'colour' is unknown"),
        ({"summary": {"mAP77": 0.5}}, "protocol voc2012 has no metric 'mAP77'"),
    ],
)
def test_a_report_edited_by_hand(
    changes: dict[str, Any], message: str, detap: Run, tmp_path: Path
) -> None:
    first, second = (report(detap, tmp_path / name) for name in ("a.json", "b.json"))
    second.write_text(json.dumps({**json.loads(second.read_text("utf-8")), **changes}), "utf-8")
    assert message in detap("explain", first, second).refused()


def test_the_number_of_threads_changes_no_byte(detap: Run) -> None:
    texts = {
        detap("explain", *DATA, *PROTOCOLS, "--threads", threads, "-o", "json=-").out
        for threads in ("1", "2", "7")
    }
    assert len(texts) == 1
