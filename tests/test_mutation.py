"""The tables of the mutation check refer to existing code; `make mutate` runs it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mutation import page
from mutation.table import ROOT, Outcome, groups, reasons, settings


def named() -> Iterator[str]:
    for group in groups():
        yield from group.tests
        yield from group.files
        yield from group.without
    for module in settings("changes")["module"]:
        yield module["file"]
        yield from module["tests"]


@pytest.mark.parametrize("path", sorted(set(named())))
def test_names_in_the_tables_exist(path: str) -> None:
    assert list(ROOT.glob(path)), f"mutation/*.toml names {path}: name what took its place"


def test_each_module_that_computes_or_decides_is_in_one_group() -> None:
    packages = (
        *("analysis", "checks", "core", "evaluation", "formats"),
        *("gates", "metrics", "protocols", "ranking", "tables"),
    )
    listed = [module for group in groups() for module in group.modules(ROOT)]
    modules = {
        str(file.relative_to(ROOT))
        for package in packages
        for file in (ROOT / "detap" / package).rglob("*.py")
    }
    without = {module for group in groups() for module in group.without}
    assert modules <= {*listed, *without}, "name the new ones in mutation/modules.toml"
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("module", settings("changes")["module"], ids=lambda one: one["file"])
def test_a_selected_change_has_its_line(module: dict[str, list[list[str]]]) -> None:
    text = (ROOT / str(module["file"])).read_text("utf-8")
    for old, new in module["changes"]:
        assert text.count(old) == 1, f"mutation/changes.toml: {old!r} is to stand there once"
        assert old != new


def test_a_low_kill_rate_or_an_unexplained_survivor_fails(tmp_path: Path) -> None:
    (function, change), reason = next(iter(reasons().items()))
    killed = [Outcome("m", "f", str(number), True) for number in range(9)]
    known = Outcome("m", function, change, False)
    file = tmp_path / "page.md"
    assert page.write([*killed, known], {"m": (19, 20)}, file)
    text = file.read_text()
    assert "| m | 95% | 10 | 9 | 0 | 90% |" in text
    assert change in text
    assert reason in text
    assert not page.write([*killed[1:], known], {}, file)  # 8 of 9
    assert not page.write([*killed, known], {}, file, untried=["gates"])
    assert "| group `gates` | | not tried yet |" in file.read_text()
    assert not page.write([*killed, Outcome("m", "f", "unknown", False)], {}, file)
    assert "**no reason yet**" in file.read_text()
