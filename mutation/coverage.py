"""Lines of the compiled modules that their tests of `changes.toml` run.

``python -m mutation.coverage [FILE ...]`` compiles a copy for gcov and runs the tests of each file.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from mutation.compiled import NAME, environment, files, tests_of
from mutation.table import copy_checkout, keep_lines, kept_lines

LINE = re.compile(r' */\* "(detap/[\w/]+\.p[yx][xd])":(\d+)$')
"""The comment of Cython before the C code of a line."""


def build() -> Path:
    """Compile all modules of a copy for gcov."""
    copy = copy_checkout("coverage")
    for file in [*copy.glob("detap/**/_*.c"), *copy.glob("detap/**/*.so")]:
        file.unlink()
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    flags = dict(os.environ, DETAP_BUILD_FLAGS="-O0 -w --coverage")
    subprocess.run(command, cwd=copy, env=flags, check=True, stdout=subprocess.DEVNULL)
    return copy


def measure(file: str, copy: Path) -> tuple[int, int]:
    """Return the numbers of lines of a file: those that its tests run, and all lines of code."""
    for old in copy.glob("build/**/*.gcda"):
        old.unlink()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests_of(file)]
    subprocess.run(command, cwd=copy, env=environment(copy), check=True, capture_output=True)
    run: dict[str, bool] = {}
    for data in copy.glob("build/**/*.gcda"):
        gcov = ["gcov", "--json-format", "--stdout", str(data)]
        text = subprocess.run(gcov, cwd=copy, check=True, capture_output=True).stdout
        for source in json.loads(text)["files"]:
            if not source["file"].endswith(".c"):
                continue
            counts = {line["line_number"]: line["count"] for line in source["lines"]}
            here = None
            for number, line in enumerate((copy / source["file"]).read_text().splitlines(), 1):
                if begins := LINE.match(line):
                    here = begins[2] if begins[1] == file else None
                elif here and number in counts:
                    run[here] = run.get(here, False) or counts[number] > 0
    return sum(run.values()), len(run)


if __name__ == "__main__":
    copy = build()
    for file in sys.argv[1:] or files():
        lines = measure(file, copy)
        if not lines[1]:
            continue  # only declarations: its C code is a string in them
        keep_lines(NAME, kept_lines(NAME) | {file: lines})
        print(f"{file}: {lines[0]} of {lines[1]} lines, {lines[0] / lines[1]:.1%}")
