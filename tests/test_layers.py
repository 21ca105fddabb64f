"""Imports run only downward: the house of docs/design.md is kept by reading them."""

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "detap"

# From the roof to the ground. A module may import from its own floor and from lower ones.
FLOORS = (
    {"__main__"},
    {"cli", "testing"},
    {
        "report",
        "gate",
        "gating",
        "culprits",
        "gating_rankings",
        "judging",
        "baseline",
        "crosscheck",
    },
    {
        "detection",
        "checking",
        "results",
        "scene",
        "comparison",
        "bootstrap",
        "slices",
        "ranking",
        "tie_range",
        "analysis",
    },
    {"formats", "config"},
    {"core"},
    {"protocols", "tables", "ranking_tables", "columns", "doubts"},
    {"errors", "spelling", "_version", "decimals"},
)
# The floors within a room, likewise: what is said stands below the forms that it is said in.
INNER_FLOORS = {
    "report": (
        {"sinks"},
        {"sections"},
        {"inputs", "values", "writing"},
        {"model", "names", "numbers"},
    ),
}
LEVEL = {name: len(FLOORS) - n for n, names in enumerate(FLOORS) for name in names}

_CIMPORT = re.compile(r"^\s*(?:from\s+(\S+)\s+)?c?import\s+(.+?)\s*(?:#.*)?$")


def sources() -> list[Path]:
    return sorted(p for kind in ("*.py", "*.pyi", "*.pyx", "*.pxd") for p in PACKAGE.rglob(kind))


def imports_of(path: Path) -> set[str]:
    """Return the dotted names that a source file imports, those under a function too."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in {".pyx", ".pxd"}:
        return _cython_imports(text)
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            module = node.module or ""
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def _cython_imports(text: str) -> set[str]:
    found = set()
    # An import in brackets over several lines is one line to this.
    text = re.sub(r"\(([^()]*)\)", lambda m: m.group(1).replace("\n", " "), text)
    for line in text.splitlines():
        match = _CIMPORT.match(line)
        if match:
            module, names = match.groups()
            for name in names.split(","):
                plain = name.split(" as ")[0].strip()
                if plain:  # nothing stands behind a last comma
                    found.add(f"{module}.{plain}" if module else plain)
    return found


def room_of(dotted: str) -> str:
    """Return the room of the house that a name of detap lies in: ``detap.core.curves`` in core."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 else ""


def own_room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].split(".")[0]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_only_downward(path: Path) -> None:
    room = own_room(path)
    if room == "__init__":  # the public API: a window to every floor
        return
    assert room in LEVEL, f"{room} has no floor in the house: give it one in this test"
    for dotted in imports_of(path):
        other = room_of(dotted)
        if not dotted.startswith("detap") or other == room:
            continue
        if not (PACKAGE / other).is_dir() and not list(PACKAGE.glob(f"{other}.*")):
            continue  # a name of detap/__init__.py itself, such as its version
        assert other in LEVEL, f"{path}: {dotted}"
        assert LEVEL[room] >= LEVEL[other], f"{path} imports {dotted}, which lies higher"


@pytest.mark.parametrize("room", INNER_FLOORS)
def test_imports_within_a_room_run_only_downward(room: str) -> None:
    floors = INNER_FLOORS[room]
    level = {name: len(floors) - n for n, names in enumerate(floors) for name in names}
    for path in sources():
        inner = path.relative_to(PACKAGE).parts[1:2]
        if own_room(path) != room or inner == ("__init__.py",):
            continue
        own = inner[0].split(".")[0]
        assert own in level, f"{path} has no floor in {room}: give it one in this test"
        for dotted in imports_of(path):
            if room_of(dotted) == room and dotted.startswith("detap."):
                other = dotted.split(".")[2]
                assert level[own] >= level[other], f"{path} imports {dotted}, which lies higher"


def test_numbers_are_made_without_the_text_of_a_report() -> None:
    """What is computed or judged knows no report; the commands compose one, of its sections."""
    for path in sources():
        room = own_room(path)
        if room == "report" or path.suffix != ".py":
            continue
        if room not in {"cli", "testing", "__init__"}:
            known = {dotted for dotted in imports_of(path) if dotted.startswith("detap.report.")}
            assert known <= {"detap.report.names.printable"}, f"{path} imports {known}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"Block", "Column"}, f"{path} builds a {node.func.id}"


def test_rooms_of_one_floor_that_do_not_know_each_other() -> None:
    """report and gate are side by side; so are the readers of the formats and ranking."""
    for path in sources():
        rooms = {room_of(dotted) for dotted in imports_of(path) if dotted.startswith("detap.")}
        if own_room(path) in {"detection", "results", "scene"}:
            assert "ranking" not in rooms
        if own_room(path) == "ranking":
            assert not rooms & {"detection", "results", "scene"}


def test_core_knows_arrays_only() -> None:
    """No function of core knows a file, the name of a class, or a protocol."""
    core = [path for path in sources() if own_room(path) == "core"]
    assert core
    for path in core:
        for dotted in imports_of(path):
            if dotted.startswith("detap"):
                assert room_of(dotted) == "core", f"{path} imports {dotted}"
            assert dotted.split(".")[0] not in {"pathlib", "io", "json", "lxml", "click", "rich"}
        if path.suffix == ".py":
            _reads_no_file(path)


def _reads_no_file(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "open", f"{path} opens a file"
        if isinstance(node, ast.arg):
            assert node.arg not in {"path", "file", "protocol", "class_names"}, (
                f"{path}: {node.arg}"
            )


@pytest.mark.parametrize(
    ("library", "only"),
    [
        ("lxml", {"formats/voc.py"}),
        ("rich", {"report/sinks/text.py", "cli/progress.py"}),
        ("click", {"cli"}),
        ("pycocotools", {"crosscheck.py"}),
    ],
)
def test_a_library_is_imported_in_one_place(library: str, only: set[str]) -> None:
    for path in sources():
        if any(dotted.split(".")[0] == library for dotted in imports_of(path)):
            place = path.relative_to(PACKAGE)
            assert {str(place), place.parts[0]} & only, f"{place} imports {library}"


def test_the_reading_of_imports_sees_what_is_there(tmp_path: Path) -> None:
    cython = tmp_path / "a.pyx"
    cython.write_text(
        "import cython\nfrom libc.math cimport (\n    fmin,\n    fmax as most,\n)\n"
        "cimport numpy as cnp  # arrays\nfrom detap.formats.voc import read\n",
        "utf-8",
    )
    assert imports_of(cython) == {
        "cython",
        "libc.math.fmin",
        "libc.math.fmax",
        "numpy",
        "detap.formats.voc.read",
    }
    plain = tmp_path / "a.py"
    plain.write_text("def f():\n    from detap.cli import run\n    import os.path\n", "utf-8")
    assert imports_of(plain) == {"detap.cli.run", "os.path"}
