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
    place = copy_checkout("coverage")
    for file in [*place.glob("detap/**/_*.c"), *place.glob("detap/**/*.so")]:
        file.unlink()
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    flags = dict(os.environ, DETAP_BUILD_FLAGS="-O0 -w --coverage")
    subprocess.run(command, cwd=place, env=flags, check=True, stdout=subprocess.DEVNULL)
    return place


def measure(file: str, place: Path) -> tuple[int, int]:
    """Return how many lines of a file its tests run, and how many lines of code it has."""
    for old in place.glob("build/**/*.gcda"):
        old.unlink()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests_of(file)]
    subprocess.run(command, cwd=place, env=environment(place), check=True, capture_output=True)
    run: dict[str, bool] = {}
    for data in place.glob("build/**/*.gcda"):
        gcov = ["gcov", "--json-format", "--stdout", str(data)]
        text = subprocess.run(gcov, cwd=place, check=True, capture_output=True).stdout
        for source in json.loads(text)["files"]:
            if not source["file"].endswith(".c"):
                continue
            counts = {line["line_number"]: line["count"] for line in source["lines"]}
            here = None
            for number, line in enumerate((place / source["file"]).read_text().splitlines(), 1):
                if begins := LINE.match(line):
                    here = begins[2] if begins[1] == file else None
                elif here and number in counts:
                    run[here] = run.get(here, False) or counts[number] > 0
    return sum(run.values()), len(run)


if __name__ == "__main__":
    place = build()
    for file in sys.argv[1:] or files():
        lines = measure(file, place)
        keep_lines(NAME, kept_lines(NAME) | {file: lines})
        print(f"{file}: {lines[0]} of {lines[1]} lines, {lines[0] / lines[1]:.1%}")
