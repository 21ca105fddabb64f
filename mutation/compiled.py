"""Changes of the compiled modules, chosen by hand: `changes.toml`.

Each is made in a copy of the checkout, where only its module is compiled again, without
optimization; then one of the module's tests must fail.
"""

import os
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from mutation.table import Outcome, copy_checkout, settings

NAME = "compiled"
QUICKLY = "-O0 -w"
LONGEST = 600  # seconds; a change that never ends is noticed, too


def count() -> int:
    """Return the number of changes to try."""
    return sum(len(module["changes"]) for module in settings("changes")["module"])


def files() -> list[str]:
    """Return the files that have changes."""
    return list(dict.fromkeys(module["file"] for module in settings("changes")["module"]))


def try_changes(only: Collection[str] = ()) -> Iterator[Outcome]:
    """Make the changes of `changes.toml`, of all files or only some, and run their tests."""
    copy = copy_checkout(NAME)
    _compile(copy)
    modules = [one for one in settings("changes")["module"] if not only or one["file"] in only]
    for tests in {tuple(module["tests"]) for module in modules}:
        if not _passes(tests, copy):
            raise SystemExit(f"{' '.join(tests)}: fail without any change")
    for module in modules:
        yield from _try(module, copy)


def tests_of(file: str) -> list[str]:
    """Return the tests of a file, each once."""
    chosen = [module["tests"] for module in settings("changes")["module"] if module["file"] == file]
    return list(dict.fromkeys(test for tests in chosen for test in tests))


def environment(copy: Path) -> dict[str, str]:
    """Return the environment in which the tests of a copy run."""
    set_here = {"DETAP_DATA": os.devnull, "DETAP_HYPOTHESIS": "unshrunk", "PYTHONPATH": str(copy)}
    return {**os.environ, **set_here}


def _try(module: dict[str, Any], copy: Path) -> Iterator[Outcome]:
    file = copy / module["file"]
    text = file.read_text(encoding="utf-8")
    for old, new in module["changes"]:
        if text.count(old) != 1:
            raise SystemExit(f"{module['file']}: {text.count(old)} times, not once: {old!r}")
        file.write_text(text.replace(old, new), encoding="utf-8")
        _compile(copy)
        change = f"- {' '.join(old.split())} + {' '.join(new.split())}"
        killed = not _passes(module["tests"], copy)
        yield Outcome(module["file"], file.stem, change, killed)
    # It is compiled again with the next change.
    file.write_text(text, encoding="utf-8")


def _compile(copy: Path) -> None:
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    environment = dict(os.environ, DETAP_BUILD_FLAGS=QUICKLY)
    subprocess.run(command, cwd=copy, env=environment, check=True, stdout=subprocess.DEVNULL)


def _passes(tests: Iterable[str], copy: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment(copy),
            timeout=LONGEST,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
