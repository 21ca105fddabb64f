"""Former options and settings are rejected with their new names."""

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from detap.cli import group
from detap.cli.former_names import FORMER_OPTIONS, present_name
from tests.cli.conftest import Ended, Files

Run = Callable[..., Ended]


def options_of(name: str) -> set[str]:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    return {word.lstrip("-") for option in command.params for word in option.opts}


EVERY = set.union(*map(options_of, ("eval", "explain", "history", "baseline", "compare")))


@pytest.mark.parametrize("former", FORMER_OPTIONS)
def test_former_names_are_gone_and_new_names_are_options(former: str) -> None:
    assert former not in EVERY
    assert set(FORMER_OPTIONS[former]) <= EVERY


def test_the_new_name_is_an_option_of_the_command() -> None:
    assert present_name("number", options_of("explain")) == "value"
    assert present_name("number", options_of("history")) == "metric"
    assert present_name("pixel_edge", options_of("eval")) == "inclusive-pixels"
    assert not present_name("number", options_of("eval"))
    assert not present_name("iou", options_of("eval"))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--neutral", "none"], "--ignore-flags"),
        (["--overlap", "mask"], "--iou-type"),
        (["--no-pixel-edge"], "--no-inclusive-pixels"),
        (["--ap", "11-point"], "--interpolation"),
    ],
)
def test_a_former_option_suggests_the_new_one(
    detap: Run, coco: Files, given: list[str], meant: str
) -> None:
    ended = detap(*coco.arguments, *given)
    assert ended.status == 2
    assert f"No such option '{given[0]}'. Did you mean '{meant}'?" in ended.err


def test_a_former_setting_suggests_the_new_one(detap: Run, coco: Files, tmp_path: Path) -> None:
    settings = tmp_path / "old.toml"
    settings.write_text('neutral = "none"\n', "utf-8")
    ended = detap(*coco.arguments, "--config", settings)
    assert ended.status == 2
    assert "old.toml: unknown setting 'neutral'; it is named ignore-flags now" in ended.err
