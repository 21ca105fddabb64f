"""``python -m fuzz``: seeded mutations through each reader of `targets`."""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from fuzz.mutate import Mutator
from fuzz.targets import TARGETS

BATCH = 500


def run(
    target: str, mutations: int, seed: int, keep: Path | None = None
) -> tuple[Counter[str], int]:
    """Run so many mutations through a target.

    Returns
    -------
    Counter, int
        How many were valid and how many refused; how many went wrong.
    """
    mutator = Mutator(target, seed)
    counts: Counter[str] = Counter()
    wrong = 0
    for start in range(0, mutations, BATCH):
        inputs = [mutator.next() for _ in range(min(BATCH, mutations - start))]
        try:
            counts.update(TARGETS[target](inputs))
        except Exception:
            # Once more, one by one, so that each is seen.
            for data in inputs:
                try:
                    counts.update(TARGETS[target]([data]))
                except Exception as error:
                    wrong += 1
                    counts["wrong"] += 1
                    print(f"{target}: {type(error).__name__}: {error}\n  {data!r}", flush=True)
                    if keep is not None:
                        keep.mkdir(parents=True, exist_ok=True)
                        (keep / f"{target}-{seed}-{start}-{wrong}").write_bytes(data)
    return counts, wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--mutations", type=int, default=2_000_000, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="write inputs that go wrong into this folder")
    options = parser.parse_args()
    failed = 0
    for target in options.targets or TARGETS:
        started = time.monotonic()
        done: Counter[str] = Counter()
        part = 50_000
        for number, first in enumerate(range(0, options.mutations, part)):
            size = min(part, options.mutations - first)
            counts, wrong = run(target, size, options.seed * 1_000_000 + number, options.keep)
            done += counts
            failed += wrong
            seconds = time.monotonic() - started
            print(f"{target}: {first + size} mutations, {dict(done)}, {seconds:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
