"""Settings files: search, precedence and errors."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, summary, write_coco

BASE = """
gt = "instances.json"
dt = "results.json"
"""


@pytest.fixture
def folder(cwd: Path) -> Path:
    write_coco(cwd)
    return cwd


def own(folder: Path, text: str) -> None:
    (folder / "detap.toml").write_text(BASE + text)


NIGHT = '[targets.night]\ngt = "instances.json"'


def test_eval_without_options_uses_pyproject(folder: Path, detap: Run) -> None:
    (folder / "pyproject.toml").write_text(
        f"""
[project]
name = "x"

[tool.detap]{BASE}
protocol = "voc2012"
iou = 0.3
fail-under = 0.9
output = ["out.json", "junit=out.log"]
"""
    )
    ended = detap("eval")
    assert ended.status == 1
    assert "gate failed: mAP 0.7500, required >= 0.9" in ended.err
    assert json.loads((folder / "out.json").read_text())["protocol"]["iou_thresholds"] == [0.3]
    assert (folder / "out.log").read_text().startswith("<?xml")


def test_limits_may_be_a_table_a_list_or_a_number(folder: Path, detap: Run) -> None:
    for text, names in (
        ("fail-under = 0.1", ["AP"]),
        ('fail-under = ["AP50=0.1", "class:cat.AP=0.1"]', ["AP50", "class:cat.AP"]),
        ('fail-under = {AP50 = 0.1, "class:cat.AP" = 0.1}', ["AP50", "class:cat.AP"]),
    ):
        own(folder, text)
        report = json.loads(detap("eval", "--output-format", "json").out)
        assert [check["name"] for check in report["gates"]["checks"]] == names


def test_command_line_over_environment_over_file(
    folder: Path, detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(folder, "max-dets = [1, 10]\nstrict-iou = true")
    call = ("eval", "--output-format", "json")
    assert "AR10" in summary(detap(*call))
    monkeypatch.setenv("DETAP_MAX_DETS", "1,20")
    assert "AR20" in summary(detap(*call))
    assert "AR30" in summary(detap(*call, "--max-dets", "1,30"))
    report = json.loads(detap(*call).out)
    assert report["protocol"]["strict_iou"] is True
    report = json.loads(detap(*call, "--no-strict-iou").out)
    assert report["protocol"]["strict_iou"] is False


def test_the_settings_that_apply(folder: Path, detap: Run) -> None:
    """Targets replace settings, detap.toml those of pyproject.toml; compare has the shared ones."""

    def protocol(*words: str) -> Any:
        return detap(*words, "--output-format", "json").report()["protocol"]

    own(folder, "max-dets = 5\niou = 0.5\n[targets.strict]\niou = 0.75\n[targets.loose]\niou = 0.1")
    of_target = protocol("eval", "--target", "strict")
    assert (of_target["iou_thresholds"], of_target["max_dets"]) == ([0.75], [5])
    own(folder, "iou = 0.2\nfail-under = 0.1")
    (folder / "pyproject.toml").write_text(f"[tool.detap]{BASE}\niou = 0.9")
    for words in (["eval"], ["compare", "results.json", "results.json"]):
        assert protocol(*words)["iou_thresholds"] == [0.2]
    (folder / "other.toml").write_text(BASE + "iou = 0.4")
    assert protocol("eval", "--config", "other.toml")["iou_thresholds"] == [0.4]


def test_the_nearest_file_above_is_taken_and_paths_are_relative_to_it(
    folder: Path, detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(folder, 'output = "out.json"')
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    (below / "pyproject.toml").write_text("[project]\nname = 'x'\n")  # it has no [tool.detap]
    monkeypatch.chdir(below)
    assert detap("eval").status == 0
    assert (folder / "out.json").exists()


def test_isolated_reads_no_file(folder: Path, detap: Run) -> None:
    own(folder, "unknown = 1")
    assert detap("eval", "--isolated", "--gt", "instances.json", "--dt", "results.json").status == 0
    assert detap("eval", "--isolated").status == 2
    assert detap("eval", "--isolated", "--target", "x").status == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max-det = 1", "detap.toml: unknown setting 'max-det'; did you mean max-dets"),
        ("max_dets = 1", "unknown setting 'max_dets'; did you mean max-dets"),
        ("[targets.x]\nfail-unter = 1", "[targets.x]: unknown setting 'fail-unter'; did you mean"),
        ('iou = "x"', "detap.toml: iou: 'x' is not a number"),
        ('iou = "1.5"', "detap.toml: iou: 1.5 is outside (0, 1]"),
        ("max-dets = 0", "detap.toml: max-dets: 0 is not None or an integer of at least 1"),
        ('ignore-where = "height<"', "detap.toml: ignore-where: 'height<' is not a condition"),
        ('[targets.x]\niou = "x"', ""),
        ('interpolation = "9-point"', "detap.toml: interpolation: '9-point' is not one of"),
        ("reverse = 1", "detap.toml: reverse: 1 is not true or false"),
        ("gt = true", "detap.toml: gt: True is not text or a number"),
        ("gt = {}", "detap.toml: gt: {} is not text or a number"),
        ("fail-under = {AP50 = 'x'}", "detap.toml: fail-under: 'x' is not a number"),
        ("targets = 1", "detap.toml: 'targets' is not a table"),
        ("gt = ", "detap.toml: is not TOML: "),
        ("gt = '\ud800'", "detap.toml: is not TOML: "),
        ("config = 'x'", "unknown setting 'config'"),
        ("debug = true", "unknown setting 'debug'"),
    ],
)
def test_errors_of_a_settings_file(folder: Path, detap: Run, text: str, message: str) -> None:
    lines = [line for line in BASE.strip().splitlines() if line[:2] != text[:2]]
    content = "\n".join([*([] if "gt = " in text else lines), text])
    (folder / "detap.toml").write_bytes(content.encode("utf-8", "surrogatepass"))
    ended = detap("eval")
    if not message:  # a target that is not chosen is read only so far as its names
        assert ended.status == 0
        return
    assert ended.status == 2
    assert message in ended.err


DIGITS = 5000
"""More than Python converts: see sys.set_int_max_str_digits."""


@pytest.mark.parametrize("name", ["detap.toml", "pyproject.toml"])
@pytest.mark.parametrize("number", ["9" * DIGITS, "0x" + "f" * DIGITS])
def test_a_number_of_many_digits(folder: Path, detap: Run, name: str, number: str) -> None:
    table = "[tool.detap]\n" if name == "pyproject.toml" else ""
    (folder / name).write_text(f"{table}{BASE}fail-under = {number}\n")
    for command in ("eval", "config"):
        said = detap(command).refused()
        assert said.startswith(f"Error: {name}: ")
        assert "(4300 digits)" in said


@pytest.mark.parametrize("command", ["eval", "config"])
def test_only_a_regular_file_has_settings(folder: Path, detap: Run, command: str) -> None:
    os.mkfifo(folder / "pipe.toml")
    for path, kind in (("pipe.toml", "a FIFO"), ("/dev/zero", "a device"), (".", "a folder")):
        assert f"{path}: is {kind}" in detap(command, "--config", path).refused()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('protocol = "cocoo"', "unknown protocol 'cocoo'; did you mean coco?"),
        ('protocol = "coco"\nfail-under = {APP = 0.1}', "unknown metric 'APP'"),
        ('format = "coco"\nfail-under = {"class:cat.AP51" = 0.1}', "unknown class metric 'AP51'"),
        ('format = "coco"\nfail-under = {"min-class.APP" = 0.1}', "unknown class metric 'APP'"),
        ('protocol = "voc2012"\nfail-under = {AP = 0.1}', "did you mean class:NAME.AP"),
        ('protocol = "proposals"\nfail-under = {F1 = 0.1}', "F1: protocol proposals uses matching"),
        ('protocol = "coco"\nfail-under = {"class:*.duplicates" = 1}', "; use --fail-over"),
        ('format = "coco"\nfail-under = {false-positives-per-image = 1}', "; use --fail-over"),
    ],
)
def test_config_rejects_what_eval_rejects(
    folder: Path, detap: Run, text: str, message: str
) -> None:
    own(folder, text)
    for command in ("config", "eval"):
        assert message in detap(command).refused()


@pytest.mark.parametrize(
    ("protocol", "limit", "names"),
    [
        (
            *("coco", "fail-under"),
            ["AP", "AP90", "AR10", "class:cat.APm", "min-class.recall", "F1", "class:*.precision"],
        ),
        (
            *("coco", "fail-under"),
            ["class:*.detections", "class:cat.AR100", "min-class.F1", "recall"],
        ),
        ("voc2012", "fail-under", ["mAP", "class:cat.AP", "class:*.recall"]),
        ("proposals", "fail-under", ["AR100", "AR1000s"]),
        ("voc2012", "fail-over", ["class:*.duplicates", "false-positives-per-image"]),
    ],
)
def test_config_accepts_every_metric_that_eval_accepts(
    folder: Path, detap: Run, protocol: str, limit: str, names: list[str]
) -> None:
    limits = ", ".join(f'"{name}" = 0' for name in names)
    own(folder, f'protocol = "{protocol}"\n{limit} = {{{limits}}}')
    for command in ("config", "eval"):
        assert detap(command).status in (0, 1), command


def test_config_does_not_check_what_depends_on_inputs(folder: Path, detap: Run) -> None:
    own(folder, "fail-under = {mAP = 0.1}")  # of VOC's files, say
    assert detap("config").status == 0
    own(folder, 'protocol = "coco"\nfail-under = {"slice:day.class:x.y.AP" = 0.1}')
    assert detap("config").status == 0


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (NIGHT, ["--target", "nigth"], "unknown target 'nigth'; did you mean night?"),
        (NIGHT, ["--target", "x"], "unknown target 'x'; available: 'night'"),
        (NIGHT, ["--config", "absent.toml"], "absent.toml: no such file or directory"),
        (NIGHT, [], "Did you mean --target night?"),
        (None, ["--target", "night"], "--target night: no detap.toml and no [tool.detap]"),
    ],
)
def test_missing_files_and_targets(
    folder: Path, detap: Run, text: str | None, arguments: list[str], message: str
) -> None:
    if text is not None:
        (folder / "detap.toml").write_text(text)
    assert message in detap("eval", *arguments).refused()


def test_a_run_has_one_target(folder: Path, detap: Run) -> None:
    own(folder, "[targets.a]\nfail-under = 0.9\n[targets.b]\nfail-under = 0.1")
    said = detap("eval", "--target", "a", "--target", "b").refused()
    assert "--target: a run takes one target, got 'a' and 'b'" in said
    assert detap("eval", "--target", "a").status == 1
    assert detap("eval", "--target", "b").status == 0


@pytest.mark.parametrize("target", [[], ["--target", "x"]])
def test_a_limit_of_17_digits_is_exact(folder: Path, detap: Run, target: list[str]) -> None:
    # Of two cats one is found. As a float the second limit is 0.5.
    for digits, status in (("0.50000000000000000", 0), ("0.50000000000000001", 1)):
        limit = f"fail-under = {{'class:cat.AR100' = {digits}}}"
        own(folder, f"[targets.x]\n{limit}" if target else limit)
        ended = detap("eval", *target, "--output-format", "json")
        (gate,) = json.loads(ended.out)["gates"]["checks"]
        assert (ended.status, gate["limit"]) == (status, digits)


def test_config_shows_values_and_their_sources(
    folder: Path, detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(folder, "fail-under = {AP50 = 0.5}\n[targets.night]\niou = 0.75\n")
    monkeypatch.setenv("DETAP_THREADS", "2")
    ended = detap("config", "--target", "night").passed()
    lines = [line.split() for line in ended.out.splitlines()]
    assert ["file:", "detap.toml"] in lines
    assert ["targets:", "night"] in lines
    assert ["gt", "instances.json", "detap.toml"] in lines
    assert ["fail-under", "AP50=0.5", "detap.toml"] in lines
    assert ["iou", "0.75", "detap.toml", "[targets.night]"] in lines
    assert ["threads", "2", "$DETAP_THREADS"] in lines
    record = json.loads(detap("config", "--output-format", "json").out)
    assert record["file"] == "detap.toml"
    assert record["settings"]["dt"] == {"value": ["results.json"], "source": "detap.toml"}
    assert "iou" not in record["settings"]
    record = json.loads(detap("config", "--all", "--output-format", "json").out)
    assert record["settings"]["sort"] == {"value": None, "source": "default"}
    (folder / "detap.toml").unlink()
    assert detap("config").out.startswith("no file: neither detap.toml nor [tool.detap]")


def test_help_reads_no_settings(folder: Path, detap: Run) -> None:
    (folder / "detap.toml").write_text("this is no TOML")
    for line in (["--help"], ["--config", "absent.toml", "--help"]):
        assert detap("eval", *line).status == 0
