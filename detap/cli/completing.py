"""Answering a shell that completes a line: it runs detap with this variable set."""

import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VARIABLE = "_DETAP_COMPLETE"


def files(ctx: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem[Any]]":
    """Let the shell complete the name of a file."""
    from click.shell_completion import CompletionItem  # only then

    return [CompletionItem(incomplete, type="file")]


def answer(group: click.Command) -> int | None:
    """Print what may stand at the cursor where a shell asks; return the status, or None.

    The script of ``detap completion`` sets :data:`VARIABLE`, and with it the words of the line.
    """
    instruction = os.environ.pop(VARIABLE, None)
    if instruction is None:
        return None
    from click.shell_completion import shell_complete  # only then

    return shell_complete(group, {}, "detap", VARIABLE, instruction)
