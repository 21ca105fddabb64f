"""Programs that tests run in a process of their own."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def finished(
    command: Sequence[str | Path], status: int | None = 0, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program until it exits, with this status unless it is None; return what it wrote."""
    options = {"capture_output": True, "text": True, "timeout": 300} | options
    done: subprocess.CompletedProcess[str] = subprocess.run(command, check=False, **options)
    assert status in (None, done.returncode), done.stderr or done.stdout
    return done
