"""Changes of the Python modules, made and run by mutmut.

mutmut stores every change of a function next to it and chooses one at the call, so that one import
serves them all: a change costs a fork and the tests that call that function. Module constants and
decorated functions, including properties, are not changed.
"""

import contextlib
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import ndiff
from hashlib import sha256
from pathlib import Path

from mutation.table import Group, Lines, Outcome, copy_checkout, settings

MEMORY = 8 << 30  # a change may ask for all there is
KILLED = {1, 2, 3, -11}  # a test failed, or could not be collected, or Python ended
ENDLESS = {-24, 24, 152, 36, -9}  # much longer than the tests take, or out of memory
UNRUN = 255  # pytest itself gave up, which mutmut calls a timeout
# `zip(..., strict=True)` guards against a later change: nothing that runs today depends on it.
_STRICT = re.compile(r", (strict=\w+)?\s*(?=\))")
QUICKLY = {"DETAP_HYPOTHESIS": "unshrunk"}
MUTMUT = [sys.executable, "-c", "from mutmut.__main__ import cli; cli()"]
CONFIGURATION = """[mutmut]
source_paths=detap
only_mutate=
    {files}
pytest_add_cli_args_test_selection=
    {tests}
pytest_add_cli_args=
    -pno:cacheprovider
    -pno:xdist
    --assert=plain
    -k{selected}
also_copy=
    fixtures
    docs
    fuzz
    benchmarks
    README.md
    CHANGELOG.md
process_isolation=forkserver
forkserver_warmup=import
preload_modules_file=preload.txt
timeout_constant=20
timeout_multiplier=6
use_setproctitle=false
use_git_change_detection=false
"""


@dataclass(frozen=True)
class Mutant:
    """A change as mutmut numbers it, and as people read it."""

    name: str
    file: str
    function: str
    change: str

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of its outcome."""
        return self.file, self.function, self.change


def try_group(group: Group, known: list[Outcome], *, everything: bool) -> list[Outcome]:
    """Make changes of a group's modules and run its tests for each of them.

    A sample of the changes of each module, or every change. Those that were killed according to
    `known` are not tried again.
    """
    copy = copy_checkout(group.name)
    with contextlib.chdir(copy):
        files = group.modules(copy)
        text = CONFIGURATION.format(
            files="\n    ".join(files),
            tests="\n    ".join(group.tests),
            selected=settings("modules")["selected"],
        )
        Path("setup.cfg").write_text(text)
        Path("preload.txt").write_text("".join(f"{name}\n" for name in _test_modules(group.tests)))
        mutants = [
            mutant for file in files for mutant in _drawn(list(_mutants_of(file)), everything)
        ]
        killed = {(one.module, *one.key): one for one in known if one.killed}
        tried = [one for one in mutants if one.key not in killed]
        _run([mutant.name for mutant in tried])
        if again := [one.name for one in tried if _status(one) in (None, UNRUN)]:
            _run(again)  # pytest gives up where memory is short for a moment
        return [killed.get(one.key) or _outcome(one, group.name) for one in mutants]


def lines_run(group: Group) -> Lines:
    """Run a group's tests without any change; return the lines that they run of its modules."""
    copy = copy_checkout(group.name)
    files = group.modules(copy)
    environment = dict(os.environ, DETAP_DATA=os.devnull, PYTHONPATH=str(copy), **QUICKLY)
    coverage = [sys.executable, "-m", "coverage"]
    tests = ["-m", "pytest", "-q", "-pno:cacheprovider", *group.tests]
    tests += ["-k", settings("modules")["selected"]]
    commands = [
        [*coverage, "run", f"--include={','.join(files)}", *tests],
        [*coverage, "json", "-q", "-o", "coverage.json"],
    ]
    for command in commands:
        subprocess.run(command, cwd=copy, env=environment, check=True, stdout=subprocess.DEVNULL)
    measured = json.loads((copy / "coverage.json").read_text())["files"]
    return {
        file: (summary["covered_lines"], summary["num_statements"])
        for file, summary in (
            (file, measured[file]["summary"]) for file in files if file in measured
        )
    }


def _test_modules(tests: list[str]) -> Iterator[str]:
    """Give the modules of tests, imported once for all changes.

    They are not collected for all: pytest escapes ids that a test lists a second time when it
    collects a second time, and then does not find the tests that it is to run.
    """
    for path in map(Path, tests):
        for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
            yield ".".join(file.with_suffix("").parts)


def _drawn(mutants: list[Mutant], everything: bool) -> list[Mutant]:
    """Draw a sample that stays the same while other functions change, and files move."""
    chosen = settings("modules")

    def draw_key(one: Mutant) -> bytes:
        return sha256(f"{chosen['seed']} {one.function} {one.change}".encode()).digest()

    mutants.sort(key=draw_key)
    return mutants if everything else mutants[: chosen["sample"]]


def _mutants_of(file: str) -> Iterator[Mutant]:
    # Imported here: mutmut reads its configuration from the folder at hand.
    from mutmut.mutation.file_mutation import mutate_file_contents  # noqa: PLC0415
    from mutmut.utils.format_utils import (  # noqa: PLC0415
        get_mutant_name,
        orig_function_and_class_names_from_key,
    )

    mutated = mutate_file_contents(file, Path(file).read_text(encoding="utf-8"))
    lines = mutated.code.splitlines()
    for key in mutated.mutant_names:
        function, owner = orig_function_and_class_names_from_key(key)
        original = key.partition("__mutmut_")[0] + "__mutmut_orig"
        before, after = (
            [line.replace(name, function) for line in lines[span.start - 1 : span.end]]
            for name in (original, key)
            for span in [mutated.line_span_by_function_name[name]]
        )
        if list(map(_unguarded, before)) == list(map(_unguarded, after)):
            continue
        title = f"{owner}.{function}" if owner else function
        change = " ".join(_change(before, after))
        yield Mutant(get_mutant_name(Path(file), key), file, title, change)


def _unguarded(line: str) -> str:
    return _STRICT.sub("", line) if "zip(" in line else line


def _change(before: list[str], after: list[str]) -> Iterator[str]:
    for line in ndiff(before, after):
        if line[0] in "-+":
            yield f"{line[0]} {line[2:].strip()}"


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _run(names: list[str]) -> None:
    environment = dict(os.environ, DETAP_DATA=os.devnull, **QUICKLY)
    environment.pop("MUTANT_UNDER_TEST", None)
    processes = str(settings("modules")["processes"])
    command = [*MUTMUT, "run", "--max-children", processes, *names]
    with Path("mutmut.log").open("w") as log:
        done = subprocess.run(
            command, env=environment, stdout=log, stderr=log, preexec_fn=_limit_memory, check=False
        )
    if done.returncode:
        raise SystemExit(f"mutmut ended with status {done.returncode}: see {Path.cwd()}/mutmut.log")


def _status(mutant: Mutant) -> int | None:
    results = json.loads(Path("mutants", f"{mutant.file}.meta").read_text())
    status: int | None = results["exit_code_by_key"][mutant.name]
    return status


def _outcome(mutant: Mutant, group: str) -> Outcome:
    status = _status(mutant)
    if status is None or status == UNRUN:
        raise SystemExit(f"{group}: {mutant.name} was not tried: see {Path.cwd()}/mutmut.log")
    killed = status in KILLED | ENDLESS
    return Outcome(mutant.file, mutant.function, mutant.change, killed, status in ENDLESS)
