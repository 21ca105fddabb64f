"""``detap completion``: the script with which a shell completes commands, options and values."""

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
    found = get_completion_class(shell)
    assert found is not None  # of click itself
    click.echo(found(ctx.find_root().command, {}, "detap", COMPLETE).source())
