"""Lines of the compiled modules that their tests of `changes.toml` execute.

``python -m mutation.coverage [FILE ...]`` compiles a copy for gcov, with the lines of the Cython
files, and runs the tests of each file alone.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from mutation.compiled import NAME, environment, files, tests_of
from mutation.table import copy_checkout, keep_lines, kept_lines


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
    """Return the numbers of lines of a file: those that its tests execute, and all."""
    for old in copy.glob("build/**/*.gcda"):
        old.unlink()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests_of(file)]
    subprocess.run(command, cwd=copy, env=environment(copy), check=True, capture_output=True)
    counts: dict[int, int] = defaultdict(int)
    for data in copy.glob("build/**/*.gcda"):
        gcov = ["gcov", "--json-format", "--stdout", str(data)]
        text = subprocess.run(gcov, cwd=copy, check=True, capture_output=True).stdout
        for source in json.loads(text)["files"]:
            if source["file"].endswith(file):
                for line in source["lines"]:
                    counts[line["line_number"]] += line["count"]
    return sum(count > 0 for count in counts.values()), len(counts)


if __name__ == "__main__":
    copy = build()
    for file in sys.argv[1:] or files():
        run, total = measure(file, copy)
        keep_lines(NAME, kept_lines(NAME) | {file: (run, total)})
        print(f"{file}: {run} of {total} lines, {run / total:.1%}")
