"""`make mutate`: python -m mutation [--all] [GROUP ...]; a group is one of modules.toml."""

import argparse
import sys
from collections.abc import Iterable

from mutation import compiled, page, python
from mutation.table import Group, Outcome, groups, keep, keep_lines, kept, kept_lines


def main() -> int:
    """Try the changes, keep the outcomes, write the page; 1 if too many survive."""
    by_name = {group.name: group for group in groups()}
    names = [*by_name, compiled.NAME]
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(names)}")
    parser.add_argument("--all", action="store_true", help="every change, not a sample of them")
    parser.add_argument("--survivors", action="store_true", help="none that the last run killed")
    parser.add_argument(
        "--only", action="append", default=[], metavar="FILE", help="of the compiled files, this"
    )
    chosen = parser.parse_args()
    if unknown := set(chosen.groups) - set(names):
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    if unknown := set(chosen.only) - set(compiled.files()):
        parser.error(f"no such file: {', '.join(sorted(unknown))}")
    for name in chosen.groups or ([compiled.NAME] if chosen.only else names):
        outcomes = [one for one in kept(name) if chosen.only and one.module not in chosen.only]
        known = kept(name) if chosen.survivors else []
        for outcome in _tried(by_name.get(name), known, everything=chosen.all, only=chosen.only):
            outcomes.append(outcome)
            if not outcome.killed:
                print(f"survived: {outcome.module}, {outcome.function}: {outcome.change}")
                sys.stdout.flush()
            keep(name, outcomes)
        for module, tried in page.by_module(outcomes).items():
            print(f"{module}: {sum(one.killed for one in tried)} of {len(tried)} killed")
    lines = {module: count for name in names for module, count in kept_lines(name).items()}
    outcomes = [outcome for name in names for outcome in kept(name)]
    untried = [name for name in names[:-1] if not kept(name)]
    if left := compiled.count() - len(kept(compiled.NAME)):
        untried.append(f"{compiled.NAME}, {left} of its {compiled.count()} changes")
    return 0 if page.write(outcomes, lines, untried=untried) else 1


def _tried(
    group: Group | None, known: list[Outcome], *, everything: bool, only: list[str]
) -> Iterable[Outcome]:
    """Try changes of a group, or of the compiled modules without one."""
    if group is None:
        return compiled.try_changes(only)
    if not known:
        keep_lines(group.name, python.lines_run(group))
    return python.try_group(group, known, everything=everything)


if __name__ == "__main__":
    sys.exit(main())
