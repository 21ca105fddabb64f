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


def run_kills(count: int, seed: int) -> int:
    """Kill the command that many times, and print the outcomes."""
    began = time.monotonic()
    for run, what in ((kills.run_writes, "while writing"), (kills.run, "of whole runs")):
        with tempfile.TemporaryDirectory() as folder:
            result = run(Path(folder), count, seed)
        seconds = time.monotonic() - began
        print(
            f"{count} kills {what}, {seconds:.0f} s: {dict(result.reports)}; statuses "
            f"{dict(result.statuses)}; {result.leftovers} unfinished files next to it",
            flush=True,
        )
    return 0


def write_between(name: str, text: str) -> None:
    """Write text between the two markers of that name in the page."""
    page = PAGE.read_text("utf-8")
    first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    pattern = re.compile(f"{re.escape(first)}.*?{re.escape(last)}", re.DOTALL)
    assert pattern.search(page), f"{PAGE.name} has no place for {name}"
    PAGE.write_text(pattern.sub(lambda _: f"{first}\n{text}\n\n{last}", page), "utf-8")


def run_comparison(part: str, keep: Path | None) -> int:
    """Run a part of the corpus with every evaluator and write its table."""
    from benchmarks import peers
    from tests.reliability import comparison

    verdicts = comparison.compare(part, lambda line: print(line, file=sys.stderr, flush=True))
    if keep is not None:
        keep.write_text(json.dumps(verdicts, indent=1))
    versions = peers.versions() | {"detap": __version__}
    lines = "\n".join(comparison.table(verdicts, versions))
    write_between(f"comparison of {part}", lines)
    print(lines)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    killing = commands.add_parser("kills", help="kill -9 at random moments of eval")
    killing.add_argument("--count", type=int, default=1000)
    killing.add_argument("--seed", type=int, default=1)
    comparing = commands.add_parser("compare", help="other evaluators on the same corpus")
    comparing.add_argument("part", choices=["boxes", "masks"])
    comparing.add_argument("--keep", type=Path, help="write every verdict here, as JSON")
    options = parser.parse_args()
    if options.command == "kills":
        return run_kills(options.count, options.seed)
    return run_comparison(options.part, options.keep)


if __name__ == "__main__":
    sys.exit(main())
