"""mutation/README.md, from what was kept of the last run of each group."""

from collections.abc import Sequence
from pathlib import Path

from mutation.table import ROOT, Outcome, reasons, settings

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

Modules that are not in the table are not tested. Each module needs {share:.0%} killed, and each
survivor a reason in `mutation/survivors.toml`; otherwise `make mutate` exits with 1. It writes this
page. A timeout is a change that makes the tests take many times as long, or exhaust memory.

| module | tried | killed | timeouts | fraction |
|---|---:|---:|---:|---:|
"""
SURVIVORS = """
## Survivors

"""


def modules_of(outcomes: list[Outcome]) -> dict[str, list[Outcome]]:
    """Return the outcomes by module, in their order."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.module, []).append(outcome)
    return found


def share_killed(outcomes: list[Outcome]) -> float:
    """Return the share of changes that a test noticed."""
    return sum(outcome.killed for outcome in outcomes) / len(outcomes)


def write(outcomes: list[Outcome], page: Path = PAGE, untried: Sequence[str] = ()) -> bool:
    """Write the page; return whether enough was killed and every survivor has its reason.

    `untried` are groups of which nothing is known: the page says so.
    """
    limits = settings("modules")
    known = reasons()
    by_module = modules_of(outcomes)
    lines = [_line(module, tried) for module, tried in by_module.items()]
    lines.append(_line("**all**", outcomes))
    lines += [f"| group `{name}` | not tried yet | | | |" for name in untried]
    text = HEAD.format(**limits) + "\n".join(lines) + "\n" + SURVIVORS
    survivors = [outcome for outcome in outcomes if not outcome.killed]
    for one in sorted(survivors, key=lambda one: (one.module, one.key)):
        text += f"- {one.module}, `{one.function}`: {_code(one.change)}\n"
        text += f"  {known.get(one.key, '**no reason yet**')}\n"
    page.write_text(text, encoding="utf-8")
    enough = all(share_killed(tried) >= limits["share"] for tried in by_module.values())
    return enough and not untried and all(one.key in known for one in survivors)


def _line(module: str, tried: list[Outcome]) -> str:
    killed, endless = sum(one.killed for one in tried), sum(one.endless for one in tried)
    return f"| {module} | {len(tried)} | {killed} | {endless} | {share_killed(tried):.1%} |"


def _code(change: str) -> str:
    """Return the change as code, whatever backquotes it holds."""
    return f"`` {change} ``"
