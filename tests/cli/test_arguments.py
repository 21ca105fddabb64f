"""Ground truth and detections as positional arguments, and in which cases they are refused."""

import json
from pathlib import Path

import click
import pytest

from detap.cli import group
from tests.cli.conftest import Files, Run, write_coco


@pytest.mark.parametrize(
    "command",
    [
        ["eval", "--output-format", "json"],
        ["check", "--output-format", "json"],
        ["show", "1", "--output-format", "json"],
        ["report", "-o", "-"],
    ],
)
def test_arguments_mean_what_the_options_mean(detap: Run, coco: Files, command: list[str]) -> None:
    by_option = detap(*command, "--gt", coco.gt, "--dt", coco.dt)
    by_argument = detap(*command, coco.gt, coco.dt)
    mixed = detap(*command, coco.gt, "--dt", coco.dt)
    assert by_option.status == 0, by_option.err
    assert by_argument == mixed == by_option


def test_convert_takes_arguments(detap: Run, coco: Files) -> None:
    target = coco.folder / "again.json"
    assert detap("convert", coco.gt, "--to", "coco", "-o", target).status == 0
    assert len(json.loads(target.read_text())["annotations"]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["a.json", "b.json", "--gt", "c.json"],
            "Error: Ground truth given twice: GT 'a.json' and --gt 'c.json'; "
            "use GT DT, or --gt and --dt",
        ),
        (
            ["a.json", "b.json", "--dt", "c.json"],
            "Error: Detections given twice: DT 'b.json' and --dt 'c.json'; "
            "use GT DT, or --gt and --dt",
        ),
        (
            ["a.json", "b.json", "c.json"],
            "Error: unexpected argument 'c.json' after GT DT; for several inputs repeat --gt or "
            "--dt, or quote a pattern",
        ),
        (["a.json"], "Error: Missing option '--dt'."),
    ],
)
def test_what_arguments_cannot_say_is_refused(
    detap: Run, arguments: list[str], message: str
) -> None:
    said = detap("eval", *arguments).refused()
    assert said.splitlines()[-1] == message
    assert said.startswith("Usage: detap eval [OPTIONS] [GT] [DT]\n")


def test_arguments_take_precedence_over_environment_and_file(
    detap: Run, coco: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    other = write_coco(tmp_path / "other", detections=[])
    settings = tmp_path / "detap.toml"
    settings.write_text('gt = "other/instances.json"\n')
    monkeypatch.setenv("DETAP_DT", str(other.dt))
    options = ["--config", settings, "--output-format", "json"]
    files = json.loads(detap("eval", coco.gt, coco.dt, *options).out)["inputs"]
    assert [file["path"] for file in files] == [str(coco.gt), str(coco.dt)]
    files = json.loads(detap("eval", coco.gt, *options).out)["inputs"]
    assert [file["path"] for file in files] == [str(coco.gt), str(other.dt)]


def test_arguments_are_no_options_in_hints_and_counts(detap: Run) -> None:
    command = group.get_command(click.Context(group), "eval")
    assert command is not None
    count = sum(isinstance(parameter, click.Option) for parameter in command.params)
    assert f"Show all {count} options and exit." in detap("eval", "--help").out
    assert detap("eval", "--input-path").err.splitlines()[-1].startswith("Error: No such option")
    assert "input_paths" not in detap("eval", "--input-path").err
