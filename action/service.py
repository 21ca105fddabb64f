"""What the service tells a step, and is told by it."""

import os
from uuid import uuid4


def given(name: str) -> str:
    """Return an input of the action, without white space around it."""
    return os.environ.get(f"INPUT_{name.upper().replace('-', '_')}", "").strip()


def put(**outputs: str) -> None:
    """Set outputs of the step, whose values cannot pose as further ones."""
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
        for name, value in outputs.items():
            end = uuid4().hex
            file.write(f"{name}<<{end}\n{value}\n{end}\n")


def warn(message: str) -> None:
    """Show a warning on the run, in one line."""
    print(f"::warning title=detap::{' '.join(message.replace('%', '%25').split())}")
