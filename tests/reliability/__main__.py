"""``python -m tests.reliability``: the long runs behind docs/reliability.md."""

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path

from detap import __version__
from tests.reliability import kills
from tests.reliability.runner import ROOT

PAGE = ROOT / "docs" / "reliability.md"
MARKS = ("<!-- comparison -->\n", "<!-- end of comparison -->")


def run_kills(count: int, seed: int) -> int:
    """Kill the command so often, and say what came of it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = kills.run(Path(folder), count, seed)
    seconds = time.monotonic() - began
    print(
        f"{count} kills in {seconds:.0f} s: {dict(found.reports)}; statuses "
        f"{dict(found.statuses)}; {found.leftovers} unfinished files beside it"
    )
    return 0


def run_comparison(keep: Path | None) -> int:
    """Run the corpus through every evaluator and write the table."""
    from benchmarks import peers
    from tests.reliability import comparison

    found = comparison.compare(lambda line: print(line, file=sys.stderr, flush=True))
    if keep is not None:
        keep.write_text(json.dumps(found, indent=1))
    versions = peers.versions() | {"detap": __version__}
    lines = "\n".join(comparison.table(found, versions))
    page = PAGE.read_text("utf-8")
    pattern = re.compile(f"{re.escape(MARKS[0])}.*?{re.escape(MARKS[1])}", re.DOTALL)
    assert pattern.search(page), f"{PAGE.name} has no place for the table"
    PAGE.write_text(pattern.sub(lambda _: f"{MARKS[0]}\n{lines}\n\n{MARKS[1]}", page), "utf-8")
    print(lines)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    killing = commands.add_parser("kills", help="kill -9 at random moments of eval")
    killing.add_argument("--count", type=int, default=1000)
    killing.add_argument("--seed", type=int, default=1)
    comparing = commands.add_parser("compare", help="other evaluators on the same corpus")
    comparing.add_argument("--keep", type=Path, help="write every verdict here, as JSON")
    options = parser.parse_args()
    if options.command == "kills":
        return run_kills(options.count, options.seed)
    return run_comparison(options.keep)


if __name__ == "__main__":
    sys.exit(main())
