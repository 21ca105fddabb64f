"""``detap completion``: the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

from detap.cli import COMPLETE
from detap.cli.command import Command

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Command,
    examples={
        "bash, in ~/.bashrc": 'eval "$(detap completion bash)"',
        "zsh, in ~/.zshrc, behind compinit": 'eval "$(detap completion zsh)"',
        "fish": "detap completion fish > ~/.config/fish/completions/detap.fish",
    },
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, /, shell: str) -> None:
    """Print the shell completion script.

    It completes commands, options and choices.
    """
    completion = get_completion_class(shell)
    assert completion is not None  # click has a class for each of _SHELLS
    click.echo(completion(ctx.find_root().command, {}, "detap", COMPLETE).source())
