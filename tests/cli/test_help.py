"""Help: one screen first, everything on request; typos get a suggestion."""

import shlex

import click
import pytest

from detap import cli
from detap.cli import group
from detap.cli.command import Command, full_help
from tests.cli.conftest import Run

_SCREEN = 46
"""Lines, at 80 columns: a window of ordinary height."""


def commands(of: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, Command]]:
    """Return every command that has options, with its path."""
    paths: list[tuple[str, Command]] = []
    context = click.Context(of)
    for name in of.list_commands(context):
        inner = of.get_command(context, name)
        if isinstance(inner, click.Group):
            paths += commands(inner, (*path, name))
        elif isinstance(inner, Command):
            paths.append((" ".join((*path, name)), inner))
    return paths


COMMANDS = commands(group)


def test_the_list_of_commands_has_their_first_lines() -> None:
    for name, text in cli.COMMANDS.items():
        command = group.get_command(click.Context(group), name)
        assert command is not None
        assert command.get_short_help_str(100) == text


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_the_first_help_is_one_screen_with_an_example(name: str, command: Command) -> None:
    context = click.Context(command, info_name=f"detap {name}", terminal_width=80)
    lines = command.get_help(context).splitlines()
    assert len(lines) <= _SCREEN
    assert max(map(len, lines)) <= 80
    assert command.examples
    assert "Examples:" in lines


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_help_all_has_what_the_first_screen_omits(name: str, command: Command) -> None:
    whole = full_help(click.Context(command, info_name=name))
    names = {word for parameter in command.params for word in parameter.opts if word[0] == "-"}
    assert names <= set(whole.replace(",", " ").replace("/", " ").split())
    assert set(command.first) <= names


def test_an_environment_variable_sets_options_of_one_name() -> None:
    variables: dict[str, str] = {}
    for _, command in COMMANDS:
        for parameter in command.params:
            if isinstance(parameter.envvar, str):
                assert parameter.opts[-1] == variables.setdefault(
                    parameter.envvar, parameter.opts[-1]
                )


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_examples_are_valid_command_lines(name: str, command: Command) -> None:
    for line in command.examples.values():
        if name == "completion":
            assert f"detap {name} " in line
            continue
        words = shlex.split(line.replace("\\\n", " "))
        assert words[: 1 + len(name.split())] == ["detap", *name.split()]
        command.make_context(name, words[1 + len(name.split()) :])


def test_help_all_is_longer_than_the_first_screen(detap: Run) -> None:
    first, whole = (
        " ".join(detap("eval", word).passed().out.split()) for word in ("--help", "--help-all")
    )
    assert "--precision-eps" in whole
    assert "--precision-eps" not in first
    for brief, more in (
        ("a file, a folder, or - for stdin.", "a pattern of several files, or - for stdin."),
        ("Preset; by default voc2012 for VOC", "Preset: voc2007, voc2012, "),
        ("below X: 0.5 for the primary metric, AP50=0.7.", "AP50=0.7, 'class:person.AP=0.6'"),
        ("these classes, separated by commas.", "these classes, separated by commas."),
    ):
        assert brief in first
        assert more in whole
        assert brief == more or more not in first


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["evl"], "No such command 'evl'. Did you mean eval?"),
        (["rank", "retreival"], "No such command 'retreival'. Did you mean retrieval?"),
        (["xyzzy"], "No such command 'xyzzy'. They are eval, check,"),
        (["eval", "--groundtruth", "a"], "No such option '--groundtruth'. Did you mean '--gt'?"),
        (["eval", "--predictions", "a"], "No such option '--predictions'. Did you mean '--dt'?"),
        (["eval", "--protocl", "a"], "No such option '--protocl'. Did you mean '--protocol'?"),
        (["eval", "--protocol", "COCOO"], "did you mean coco"),
        (["eval", "--format", "COCO"], "Did you mean 'coco'?"),
        (["eval", "--format", "zzz"], "'zzz' is not one of 'coco', "),
    ],
)
def test_a_typo_gets_a_suggestion(line: list[str], message: str, detap: Run) -> None:
    given = ["--gt", "a.json", "--dt", "b.json"] if "--protocol" in line else []
    assert message in detap(*line, *given).refused()
