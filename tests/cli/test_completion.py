"""Completion in real shells; each test is skipped if its shell is missing."""

import os
import pty
import select
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.processes import finished

WANTED = [
    ("detap ev", "eval"),
    ("detap rank retr", "retrieval"),
    ("detap eval --baseline-d", "--baseline-detections"),
    ("detap eval --format vo", "voc"),
    ("detap eval --protocol voc2007-", "voc2007-py"),
]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return environment variables whose `detap` is the program under test."""
    program = tmp_path / "detap"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m detap "$@"\n')
    program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DETAP_")}
    python = os.pathsep.join(filter(None, [os.getcwd(), kept.get("PYTHONPATH")]))
    return kept | {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": python,
        "TERM": "dumb",
    }


def needs(shell: str) -> str:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not here")
    return path


def ran(shell: str, script: str, environment: dict[str, str]) -> str:
    """Return the output of a shell script."""
    ended = finished([needs(shell), "-c", script], env=environment)
    return ended.stdout


@pytest.mark.parametrize(("line", "expected"), WANTED)
def test_bash(line: str, expected: str, environment: dict[str, str]) -> None:
    words = " ".join(line.split())
    script = f"""
        eval "$(detap completion bash)"
        COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        _detap_completion detap
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    assert expected in ran("bash", script, environment).split()


@pytest.mark.parametrize(("line", "expected"), WANTED)
def test_fish(line: str, expected: str, environment: dict[str, str]) -> None:
    script = f"detap completion fish | source; complete -C '{line}'"
    assert expected in [
        line_shown.split("\t")[0] for line_shown in ran("fish", script, environment).splitlines()
    ]


@pytest.mark.parametrize(("line", "expected"), WANTED)
def test_zsh(line: str, expected: str, environment: dict[str, str]) -> None:
    """zsh completes only at a terminal."""
    shell = needs("zsh")
    child, terminal = pty.fork()
    if child == 0:
        os.execve(shell, [shell, "-f", "-i"], environment | {"PS1": "ready ", "TERM": "xterm"})
    try:
        setup = (
            'autoload -Uz compinit; compinit -u -D; eval "$(detap completion zsh)"; print go""ne'
        )
        os.write(terminal, f"{setup}\n".encode())
        assert seen(terminal, "gone")
        os.write(terminal, f"{line}\t".encode())
        assert seen(terminal, expected)
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def seen(terminal: int, text: str) -> bool:
    """Return True if a terminal shows a text within a minute."""
    shown = ""
    end = time.monotonic() + 60
    while text not in shown and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
    return text in shown


def test_a_path_is_left_to_the_shell(environment: dict[str, str]) -> None:
    words = {
        "_DETAP_COMPLETE": "bash_complete",
        "COMP_WORDS": "detap eval --gt in",
        "COMP_CWORD": "3",
    }
    asked = finished([sys.executable, "-m", "detap"], env=environment | words)
    assert asked.stdout == "file,in\n"
