"""Run a corpus of commands with two builds of detap and compare every byte that they write.

The outputs of the base are never stored: both builds run, one after the other, in the same folder
on the same input. A difference is printed as a short diff and makes the exit status 1.
"""

import argparse
import difflib
import hashlib
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

from tests.golden.corpus import inputs
from tests.golden.corpus.commands import Case, cases

ROOT = Path(__file__).resolve().parents[3]
SHOWN_LINES, SHOWN_WIDTH = 12, 150
TIMEOUT = 600
VARIABLE = [
    (re.compile(rb"\(t=\d+\.\d+s\)"), b"(t=TIME)"),  # interface of pycocotools
    (re.compile(rb"\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d"), b"DATE"),
    (re.compile(rb"\b\d+\.\d+ s\b"), b"TIME s"),  # --verbose
    (re.compile(rb"0x[0-9a-f]{8,}"), b"ADDRESS"),
]
"""Patterns that differ between two runs of one build, and their replacement."""

Outputs = dict[str, bytes]
"""Every output of a case by its name: `1: stdout`, `file report.json`."""


class Accepted(NamedTuple):
    """Differences that are intended: regular expressions of the command and of changed lines."""

    command: re.Pattern[str]
    line: re.Pattern[str]
    reason: str


class Difference(NamedTuple):
    """An output that differs, its changed lines and why they are accepted, if they are."""

    output: str
    lines: list[str]
    reasons: set[str] | None


class Runner:
    """Run the commands of a case with one build after the other."""

    def __init__(self, base: Path, scratch: Path, data: Path, jobs: int) -> None:
        self.scratch = scratch
        self.idle: Queue[tuple[Server, ...]] = Queue()
        for _ in range(jobs):
            self.idle.put(tuple(Server(tree, scratch) for tree in (base, ROOT)))
        self.paths = {
            "FIXTURES": str(ROOT / "fixtures"),
            "DATA": str(data),
            "ODD": str(scratch / "odd"),
            "API": str(Path(__file__).with_name("api.py")),
        }

    def missing(self, case: Case) -> str | None:
        """Return the data set that a case needs and that is absent."""
        names = re.findall(r"\$(?:DATA|ODD)(?:/[\w.-]+)?", case.text)
        return next((name for name in names if not Path(self.filled(name)).exists()), None)

    def run(self, case: Case, number: int) -> tuple[Outputs, Outputs]:
        """Return all outputs of the base and of this checkout."""
        folder = self.scratch / "cases" / f"{number:04d}"
        servers = self.idle.get()
        both = []
        for server in servers:
            folder.mkdir(parents=True)
            outputs = self.run_commands(case, folder, server)
            shutil.rmtree(folder)
            both.append(outputs)
        self.idle.put(servers)
        return both[0], both[1]

    def run_commands(self, case: Case, folder: Path, server: "Server") -> Outputs:
        """Run the commands in order in one folder, and read what they left there."""
        outputs = {}
        for number, line in enumerate(case.commands, 1):
            program, *words = [self.filled(word) for word in shlex.split(line)]
            stdin = os.devnull
            if "<" in words:
                stdin = words.pop(words.index("<") + 1)
                words.remove("<")
            captured = {name: f"{folder}.{name}" for name in ("stdout", "stderr")}
            status = server.run(
                arguments=[program if program == "detap" else self.paths["API"], *words],
                folder=str(folder),
                columns=case.columns,
                timeout=TIMEOUT,
                stdin=stdin,
                **captured,
            )
            outputs[f"{number}: exit status"] = status.encode()
            for name, path in captured.items():
                outputs[f"{number}: {name}"] = Path(path).read_bytes()
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                outputs[f"file {file.relative_to(folder)}"] = file.read_bytes()
        return outputs

    def filled(self, word: str) -> str:
        """Return a word with `$DATA` and the like replaced by their paths."""
        return re.sub(r"\$([A-Z]+)\b", lambda match: self.paths[match[1]], word)

    def close(self) -> None:
        """End the processes."""
        while not self.idle.empty():
            for server in self.idle.get():
                server.process.communicate()


class Server:
    """A process of `server.py` that imports detap from a tree."""

    def __init__(self, tree: Path, home: Path) -> None:
        self.tree = tree
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=home,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(tree),
                "PYTHONHASHSEED": "0",
                "HOME": str(home),
                "MPLCONFIGDIR": str(home / "matplotlib"),
                "OPENBLAS_NUM_THREADS": "1",
                "LC_ALL": "C.UTF-8",
                "TZ": "UTC",
            },
        )
        source = self.answer()
        if not Path(source).is_relative_to(tree):
            raise SystemExit(f"detap is imported from {source or 'nowhere'}, not from {tree}")

    def answer(self) -> str:
        """Wait for a line; empty if the process ended."""
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def run(self, **request: Any) -> str:
        """Run a command, and return its exit status."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.answer()


def normalized(content: bytes) -> bytes:
    """Return an output without what differs between two runs of one build."""
    for pattern, replacement in VARIABLE:
        content = pattern.sub(replacement, content)
    return content


def changed_lines(before: bytes | None, after: bytes | None) -> list[str]:
    """Return the removed (-) and the added (+) lines; of binary content its size and digest."""
    if before is None or after is None:
        return ["+ absent before" if before is None else "- absent now"]
    removed, added = lines_of(before), lines_of(after)
    if removed == added:
        return ["~ other line ends"]
    if max(len(removed), len(added)) > 20_000:  # difflib takes quadratic time
        pairs = [pair for pair in zip_longest(removed, added, fillvalue="") if pair[0] != pair[1]]
        return [f"{sign}{line}" for pair in pairs for sign, line in zip("-+", pair, strict=True)]
    diff = difflib.unified_diff(removed, added, lineterm="", n=0)
    return [line for line in diff if not line.startswith(("---", "+++", "@@"))]


def lines_of(content: bytes) -> list[str]:
    """Return the lines of text, or a line that describes binary content."""
    try:
        return content.decode().splitlines()
    except UnicodeDecodeError:
        digest = hashlib.sha256(content).hexdigest()
        return [f"{len(content)} bytes, SHA-256 {digest[:16]}"]


def differences(
    case: Case, before: Outputs, after: Outputs, accepted: list[Accepted]
) -> list[Difference]:
    """Return the outputs that differ."""
    entries = [entry for entry in accepted if entry.command.search(case.text)]
    differing = []
    for output in sorted(before.keys() | after.keys()):
        old, new = before.get(output), after.get(output)
        if old == new or (old and new and normalized(old) == normalized(new)):
            continue
        lines = changed_lines(old and normalized(old), new and normalized(new))
        by_line = [{e.reason for e in entries if e.line.search(line[1:])} for line in lines]
        reasons = set().union(*by_line) if all(by_line) else None
        differing.append(Difference(output, lines, reasons))
    return differing


def clipped(lines: list[str]) -> list[str]:
    """Return the first lines, long ones from shortly before the first difference."""
    old, new = (*lines[:2], "", "")[:2]
    pairs = zip(old[1:], new[1:], strict=False)
    first = next((at for at, (one, other) in enumerate(pairs) if one != other), 0)
    start = max(0, first - SHOWN_WIDTH // 3)
    shown = [
        line if len(line) <= SHOWN_WIDTH else f"{line[0]}...{line[1:][start:][:SHOWN_WIDTH]}..."
        for line in lines[:SHOWN_LINES]
    ]
    more = len(lines) - len(shown)
    return [*shown, f"({more} more lines)"] if more else shown


def read_accepted(path: Path) -> list[Accepted]:
    """Read the list of intended differences."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("accepted", [])
    return [
        Accepted(re.compile(entry["command"]), re.compile(entry["line"]), entry["reason"])
        for entry in entries
    ]


def build(commit: str) -> Path:
    """Return a built checkout of a commit; it is kept in `build/corpus` for the next time."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run(
        [*git, "rev-parse", "--verify", f"{commit}^{{commit}}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    folder = ROOT / "build" / "corpus" / commit
    finished = folder / ".built"
    if not finished.exists():
        print(f"building {commit[:10]} in {folder}", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        archive = subprocess.run([*git, "archive", commit], check=True, capture_output=True)
        subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
        subprocess.run(command, cwd=folder, check=True)
        finished.touch()
    return folder


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="tests.golden.corpus", description=__doc__)
    base = parser.add_mutually_exclusive_group(required=True)
    base.add_argument("--base", metavar="COMMIT", help="build this commit and compare with it")
    base.add_argument("--base-checkout", type=Path, help="compare with this checkout, built")
    base.add_argument("--list", action="store_true", help="print the commands only")
    parser.add_argument("--only", metavar="PATTERN", default="", help="cases that it matches")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--accepted",
        type=Path,
        default=Path(__file__).with_name("accepted.toml"),
        help="intended differences: TOML tables with command, line and reason",
    )
    parser.add_argument("--show-accepted", action="store_true", help="print those too")
    return parser.parse_args()


def main() -> int:
    """Compare, and return the exit status."""
    options = arguments()
    if options.list:
        base = ROOT
    elif options.base_checkout:
        base = options.base_checkout.resolve()
    else:
        base = build(options.base)
    data = Path(os.environ.get("DETAP_DATA") or ROOT.parent / "shared" / "data").resolve()
    accepted = read_accepted(options.accepted)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="corpus-") as name:
        scratch = Path(name)
        inputs.write(scratch / "odd", data)
        every = dict.fromkeys(cases(scratch / "odd", data))
        chosen = [case for case in every if re.search(options.only, case.text)]
        if options.list:
            print("\n".join(case.text for case in chosen))
            return 0
        runner = Runner(base, scratch, data, options.jobs)
        absent = Counter(needed for case in chosen if (needed := runner.missing(case)))
        todo = [case for case in chosen if not runner.missing(case)]

        def compare(case: Case, number: int) -> tuple[int, list[Difference]]:
            before, after = runner.run(case, number)
            return len(before.keys() | after.keys()), differences(case, before, after, accepted)

        with ThreadPoolExecutor(options.jobs) as pool:
            compared = pool.map(compare, todo, range(len(todo)))
            for case, (outputs, differing) in zip(todo, compared, strict=True):
                report(case, differing, options.show_accepted)
                intended = all(difference.reasons is not None for difference in differing)
                counts["outputs"] += outputs
                counts["accepted" if intended else "different"] += bool(differing)
        runner.close()
    for needed, number in absent.items():
        print(f"skipped {number} cases: no {needed}")
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{len(todo)} cases with {counts['outputs']} outputs: {counts['different']} differ, "
        f"{counts['accepted']} differ as accepted, {absent.total()} skipped; "
        f"{usage.ru_utime + usage.ru_stime:.0f} s of processor time"
    )
    return 1 if counts["different"] else 0


def report(case: Case, differing: list[Difference], show_accepted: bool) -> None:
    """Print the differences of a case."""
    shown = [d for d in differing if d.reasons is None or show_accepted]
    if not shown:
        return
    print(f"$ {case.text}")
    for difference in shown:
        reasons = (
            f" (accepted: {'; '.join(sorted(difference.reasons))})" if difference.reasons else ""
        )
        print(f"  {difference.output}{reasons}")
        print("\n".join(f"    {line}" for line in clipped(difference.lines)))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
