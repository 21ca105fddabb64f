"""Compare random cases with references: python -m tests.parity.sweep lvis --count 3000."""

import argparse
import contextlib
import io
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from tests.parity.sweep import SWEEPS, sweep_of


def main() -> int:
    """Run the sweeps, print how many cases differ, and return 1 if any does."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.sweep", description=__doc__)
    parser.add_argument(
        "sweeps", nargs="*", default=list(SWEEPS), metavar="SWEEP", help=", ".join(SWEEPS)
    )
    parser.add_argument("--count", type=int, default=1000, help="cases of each (1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the first case (0)")
    options = parser.parse_args()
    different = 0
    for name in options.sweeps:
        different += run(name, options.count, options.seed)
    return int(different > 0)


def run(name: str, count: int, seed: int) -> int:
    """Return the number of cases of a sweep that differ; report the first."""
    check, began, different = sweep_of(name), time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(seed, seed + count):
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    check(np.random.default_rng(number), Path(folder))
            except pytest.skip.Exception as absent:
                print(f"{name}: not run: {absent}", flush=True)
                return 0
            except AssertionError as error:
                different += 1
                if different <= 3:
                    print(f"{name}: seed {number}: {error}", file=sys.stderr)
    print(
        f"{name}: {count} cases, {different} differ, {time.monotonic() - began:.0f} s", flush=True
    )
    return different


if __name__ == "__main__":
    sys.exit(main())
