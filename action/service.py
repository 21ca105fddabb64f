"""Inputs and outputs of a step."""

import os
from uuid import uuid4


def given(name: str) -> str:
    """Return an input of the action without surrounding white space."""
    return os.environ.get(f"INPUT_{name.upper().replace('-', '_')}", "").strip()


def put(**outputs: str) -> None:
    """Set outputs of the step; a value cannot inject further outputs."""
    with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as file:
        for name, value in outputs.items():
            end = uuid4().hex
            file.write(f"{name}<<{end}\n{value}\n{end}\n")


def warn(message: str) -> None:
    """Show a one-line warning on the run."""
    print(f"::warning title=detap::{' '.join(message.replace('%', '%25').split())}")
