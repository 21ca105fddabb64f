"""Imports run only downward: the house of docs/architecture.md is kept by reading them."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "detap"

# Every room, from the roof to the ground: a folder, or a file that stands by itself. A file may
# import from its own room, from the rooms of its floor that stand after it, and from lower ones.
FLOORS = (
    ("__main__", "cli.commands"),
    ("cli", "pytest_plugin", "testing", "torch"),
    ("compat.pycocotools", "compat"),
    ("engines",),
    ("report.page", "report.writers", "report.sections", "report"),
    ("gates",),
    ("ranking", "analysis.explanation", "analysis"),
    ("evaluation.loop", "evaluation.partial", "evaluation", "evaluation.overlaps"),
    ("metrics",),
    (
        "formats.writing",
        "formats.jsonl",
        "formats.ranking",
        "formats.cvat",
        "formats.labelme",
        "formats.shapes",
        "formats.openimages",
        "formats.voc",
        "formats.yolo",
        "formats.kitti",
        "formats.dota",
        "formats.arrow",
        "formats.coco",
        "formats",
    ),
    ("formats.text", "formats.by_name", "formats.json", "formats.reading"),
    ("checks",),
    ("core",),
    ("tables", "protocols"),
    ("io",),
    ("errors", "records", "escaping", "decimals", "text_input", "_version"),
)
PLACE = {room: place for place, room in enumerate(room for floor in FLOORS for room in floor)}

WINDOWS = {
    "__init__": tuple(PLACE),
    "evaluation.results": ("analysis", "report.writers"),
    "report.__init__": ("report.sections",),
}
"""Files that answer questions of higher rooms by asking these, which are imported when called."""

_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?: +.+\n)+", re.MULTILINE)
_CIMPORT = re.compile(r"^\s*(?:from\s+(\S+)\s+)?c?import\s+(.+?)\s*(?:#.*)?$")


def sources() -> list[Path]:
    return sorted(p for kind in ("*.py", "*.pyi", "*.pyx", "*.pxd") for p in PACKAGE.rglob(kind))


@cache
def imports_of(path: Path, *, running: bool = False) -> set[str]:
    """Return the dotted names that a source file imports, those under a function too.

    With `running`, those that only a type checker sees are left out.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix in {".pyx", ".pxd"}:
        return _cython_imports(_FOR_TYPES.sub("", text) if running else text)
    found = set()
    tree = ast.parse(text)
    if running:
        tree.body = [node for node in tree.body if not _for_types(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            module = node.module or ""
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def _for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


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


def file_of(dotted: str) -> str:
    """Return the file of detap that a dotted name lies in, without ``detap.``; empty for none."""
    parts = dotted.split(".")[1:] if dotted.split(".", maxsplit=1)[0] == "detap" else []
    while parts and not list(PACKAGE.joinpath(*parts[:-1]).glob(f"{parts[-1]}.*")):
        if (PACKAGE.joinpath(*parts) / "__init__.py").is_file():
            return ".".join([*parts, "__init__"])
        parts = parts[:-1]
    return ".".join(parts)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def room_of(file: str) -> str:
    """Return the room that a file lies in: ``formats.coco`` for ``formats.coco.tables``."""
    return file.rpartition(".")[0] or file


def neighbours(path: Path) -> set[str]:
    """Return the files of detap that running a file can import, but through its windows."""
    found = {file_of(dotted) for dotted in imports_of(path, running=True)}
    seen_from_here = WINDOWS.get(name_of(path), ())
    own = {"", "__init__", name_of(path)}
    return {other for other in found - own if room_of(other) not in seen_from_here}


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_only_downward(path: Path) -> None:
    room = room_of(name_of(path))
    if room == "__init__":
        return
    assert room in PLACE, f"{room} has no place in the house: give it one in this test"
    for other in neighbours(path):
        assert PLACE[room] <= PLACE[room_of(other)], f"{path} imports {other}, which lies higher"


def test_every_room_is_there() -> None:
    assert set(PLACE) == {room_of(name_of(path)) for path in sources()} - {"__init__"}


def test_no_files_import_each_other_in_a_circle() -> None:
    imports: dict[str, set[str]] = {}
    for path in sources():
        if path.suffix != ".pyi":
            imports.setdefault(name_of(path), set()).update(neighbours(path))
    while imports:
        # What imports nothing that is left is in no circle.
        free = {file for file, others in imports.items() if not others & set(imports)}
        assert free, f"a circle among {sorted(imports)}"
        imports = {file: others for file, others in imports.items() if file not in free}


def test_core_knows_arrays_only() -> None:
    """No function of core knows a file, the name of a class, or a protocol.

    Words of bits, the runs of masks and the memory of columns, arrays too, are below it: tables are
    made of them.
    """
    below = {"tables._columns", "tables._runs", "tables._words"}
    core = [path for path in sources() if name_of(path).startswith("core.")]
    assert core
    for path in core:
        for other in neighbours(path):
            assert other.startswith("core.") or other in below, f"{path} imports {other}"
        for dotted in imports_of(path):
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
        ("lxml", {"formats/voc/annotations.py"}),
        ("rich", {"report/writers/text.py", "cli/progress.py"}),
        ("click", {"cli"}),
        ("pyarrow", {f"formats/arrow/{file}.py" for file in ("files", "gather", "shape")}),
        ("fsspec", {"io/remote.py"}),
        ("jinja2", {"report/page/assembly.py"}),
        ("PIL", {"report/page/pictures.py"}),
        ("pycocotools", {"analysis/crosscheck.py"}),
        ("matplotlib", {"report/writers/plots.py", "evaluation/results.py"}),
        ("pandas", {"report/writers/notebook.py", "evaluation/results.py"}),
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
        "cimport numpy as cnp  # arrays\nfrom detap.formats.voc.tables import read\n",
        "utf-8",
    )
    assert imports_of(cython) == {
        "cython",
        "libc.math.fmin",
        "libc.math.fmax",
        "numpy",
        "detap.formats.voc.tables.read",
    }
    plain = tmp_path / "a.py"
    plain.write_text("def f():\n    from detap.cli import run\n    import os.path\n", "utf-8")
    assert imports_of(plain) == {"detap.cli.run", "os.path"}
