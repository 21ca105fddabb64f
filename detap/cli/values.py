"""Types of option values: text from the command line into what the program holds."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from detap.records import Record
from detap.report.writers.registry import WRITERS, Writer, writer_for_path
from detap.text_input import parse_int

# click's types take a parameter to mypy, but not in every version that runs.
if TYPE_CHECKING:
    Type = click.ParamType[Any]
else:
    Type = click.ParamType


class Given(Record):
    """A value that was given, though it may be None; None itself is an option left out."""

    value: Any


class Text(Type):
    """A text, as a function reads it; that raises ValueError with the message."""

    name = "text"

    def __init__(self, read: Callable[[str], Any]) -> None:
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of a text; what is none is one already."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Whole(click.IntRange):
    """A whole number in a range, written as every number is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        if isinstance(value, str):
            try:
                value = parse_int(value)
            except ValueError as error:
                self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)


class Path(click.types.StringParamType):
    """A path or a pattern; in the environment, several stand on a line each."""

    envvar_list_splitter = "\n"


class Target(Text):
    """Where a report goes; in the environment, several stand as in ``PATH``."""

    envvar_list_splitter = os.pathsep


def target(text: str) -> tuple[Writer | None, str]:
    """Return the sink of ``PATH``, by its extension, or of ``FORMAT=PATH``, and the path.

    The sink is None where nothing tells which.
    """
    name, equals, path = text.partition("=")
    if equals and name == "gitlab" and path.endswith(".json"):
        # GitLab takes two reports; the one in JSON is the code-quality report.
        return WRITERS["codequality"], path
    if equals and name in WRITERS:
        return WRITERS[name], path
    return writer_for_path(text), text
