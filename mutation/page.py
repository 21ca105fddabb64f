"""mutation/README.md, from what was kept of the last run of each group."""

from collections.abc import Collection, Sequence
from pathlib import Path

from mutation.table import ROOT, Lines, Outcome, reasons, settings

PAGE = ROOT / "mutation" / "README.md"
HEAD = """# Mutation testing

`make mutate` (extra `mutate`) makes one change at a time and runs the tests of the changed module.
A change is *killed* if a test fails.

- Python modules: [mutmut](https://mutmut.readthedocs.io) draws {sample} changes per module, the
  same ones as long as the function stays the same; `make mutate ALL=1` makes all. Module constants
  and decorated functions are not changed, nor is `strict` of `zip`, which only guards against
  later changes.
- Compiled modules: the hand-written changes of `mutation/changes.toml`.
- `mutation/modules.toml` lists the modules and their tests. Real data is not used.

Each module needs {share:.0%} killed, and each survivor a reason in `mutation/survivors.toml`;
otherwise `make mutate` exits with 1. It writes this page. A timeout is a change that makes the
tests take many times as long, or exhaust memory.

{covered}

*Lines run* is the share of a module's lines of code that the tests named for it execute.

| module | lines run | tried | killed | timeouts | kill rate |
|---|---:|---:|---:|---:|---:|
"""
SURVIVORS = """
## Survivors

"""


def by_module(outcomes: list[Outcome]) -> dict[str, list[Outcome]]:
    """Return the outcomes by module, in their order."""
    grouped: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        grouped.setdefault(outcome.module, []).append(outcome)
    return grouped


def kill_rate(outcomes: list[Outcome]) -> float:
    """Return the share of changes that a test noticed."""
    return sum(outcome.killed for outcome in outcomes) / len(outcomes)


def write(
    outcomes: list[Outcome], lines: Lines, page: Path = PAGE, untried: Sequence[str] = ()
) -> bool:
    """Write the page; return whether enough was killed and every survivor has its reason.

    `lines` has the lines that the tests run of each module. `untried` are groups without a result.
    """
    limits = settings("modules")
    known = reasons()
    modules = by_module(outcomes)
    rows = [_row(module, tried, lines) for module, tried in modules.items()]
    rows.append(_row("**all**", outcomes, {}))
    rows += [f"| group `{name}` | | not tried yet | | | |" for name in untried]
    text = HEAD.format(**limits, covered=_covered(modules)) + "\n".join(rows) + "\n" + SURVIVORS
    survivors = [outcome for outcome in outcomes if not outcome.killed]
    for one in sorted(survivors, key=lambda one: (one.module, one.key)):
        text += f"- {one.module}, `{one.function}`: {_code(one.change)}\n"
        text += f"  {known.get(one.key, '**no reason yet**')}\n"
    page.write_text(text, encoding="utf-8")
    enough = all(kill_rate(tried) >= limits["share"] for tried in modules.values())
    return enough and not untried and all(one.key in known for one in survivors)


def _covered(modules: Collection[str]) -> str:
    """Return a sentence on the share of the program that the table covers."""
    shares = []
    for kind, suffixes in (("Python", {".py"}), ("Cython", {".pyx", ".pxd"})):
        sizes = {
            str(file.relative_to(ROOT)): len(file.read_bytes().splitlines())
            for file in (ROOT / "detap").rglob("*")
            if file.suffix in suffixes and "vendor" not in file.parts
        }
        total = sum(sizes.values())
        covered = sum(size for name, size in sizes.items() if name in modules)
        shares.append(f"{covered:,} of the {total:,} lines of {kind} ({covered / total:.0%})")
    return f"The table covers modules with {' and '.join(shares)}."


def _row(module: str, tried: list[Outcome], lines: Lines) -> str:
    run, total = lines.get(module, (0, 0))
    killed, endless = sum(one.killed for one in tried), sum(one.endless for one in tried)
    share = f"{run / total:.0%}" if total else ""
    return f"| {module} | {share} | {len(tried)} | {killed} | {endless} | {kill_rate(tried):.0%} |"


def _code(change: str) -> str:
    """Return the change as code, whatever backquotes it holds."""
    return f"`` {change} ``"
