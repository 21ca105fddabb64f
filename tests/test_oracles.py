"""Each compiled module is tested against a second implementation."""

import ast
import importlib.util
from functools import cache
from pathlib import Path

import pytest

from tests.oracle.register import NO_NUMBERS, ORACLES

ROOT = Path(__file__).parents[1]


def file_of(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


@cache
def imported(module: str) -> frozenset[str]:
    """Return the modules that a test module imports, directly or through other test modules."""
    names = {module}
    for node in ast.walk(ast.parse(file_of(module).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    for name in [*names]:
        if name.startswith("tests.") and name != module and file_of(name).is_file():
            names |= imported(name)
    return frozenset(names)


def test_every_compiled_module_is_registered() -> None:
    sources = [path.relative_to(ROOT) for path in (ROOT / "detap").rglob("*.pyx")]
    assert {".".join(path.with_suffix("").parts) for path in sources} == {*ORACLES, *NO_NUMBERS}
    assert all(file_of(test).is_file() for test in NO_NUMBERS.values())


@pytest.mark.parametrize("module", ORACLES)
def test_its_test_imports_the_second_implementation(module: str) -> None:
    oracle, test = ORACLES[module]
    reached = imported(test)
    assert any(name == oracle or name.startswith(f"{oracle}.") for name in reached)
    assert importlib.util.find_spec(oracle) is not None
    # Nor is it what it is to check: no module of the oracle imports a compiled one.
    if oracle.startswith("tests.oracle."):
        assert not [name for name in imported(oracle) if name.startswith("detap.core")]
