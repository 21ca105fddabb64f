"""Parameter types: convert option texts to values."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from detap.report.writers.registry import WRITERS, Writer, writer_for_path
from detap.text_input import parse_int


class Given(NamedTuple):
    """A given value, which may be None; None itself is an option not given."""

    value: Any


# Generic in the stubs of click, but not at run time in every version.
class Text(click.ParamType):  # type: ignore[type-arg]
    """A text parsed by a function, which raises ValueError."""

    name = "text"

    def __init__(self, read: Callable[[str], Any]) -> None:
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a text; return other values unchanged."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Integer(click.IntRange):
    """An integer in a range; ``N`` in the help."""

    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse an integer."""
        if isinstance(value, str):
            try:
                value = parse_int(value)
            except ValueError as error:
                self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx)


class Path(click.types.StringParamType):
    """A path or pattern; in the environment, one per line."""

    envvar_list_splitter = "\n"


class Target(Text):
    """A report destination; in the environment, separated as in ``PATH``."""

    envvar_list_splitter = os.pathsep


def target(text: str) -> tuple[Writer | None, str]:
    """Parse ``[FORMAT=]PATH`` into a writer and a path.

    Without a format the extension selects the writer; it is None if the extension is unknown.
    """
    name, equals, path = text.partition("=")
    if equals and name == "gitlab" and path.endswith(".json"):
        # GitLab's JSON report is the code-quality report.
        return WRITERS["codequality"], path
    if equals and name in WRITERS:
        return WRITERS[name], path
    return writer_for_path(text), text
