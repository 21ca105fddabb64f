"""Imports point only downward through the layers of docs/architecture.md."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "detap"

# All packages, from the top layer to the bottom: a folder, or a single file. A file may import from
# its own package, from later packages of its layer, and from lower layers.
LAYERS = (
    ("__main__", "cli.commands"),
    ("cli", "pytest_plugin", "testing", "torch"),
    ("compat.pycocotools", "compat"),
    ("engines",),
    ("evaluation.loop", "evaluation.detection"),
    ("report.page", "report.writers", "report.sections", "report"),
    ("gates",),
    ("ranking", "analysis.explanation", "analysis"),
    ("evaluation", "evaluation.overlaps"),
    ("metrics",),
    (
        "formats.jsonl",
        "formats.responses",
        "formats.ranking",
        "formats.cvat",
        "formats.labelme",
        "formats.visdrone",
        "formats.tfcsv",
        "formats.createml",
        "formats.scalabel",
        "formats.crowdhuman",
        "formats.mot",
        "formats.sagemaker",
        "formats.via",
        "formats.datumaro",
        "formats.supervisely",
        "formats.label_studio",
        "formats.roboflow",
        "formats.predictions",
        "formats.openimages",
        "formats.shapes",
        "formats.voc",
        "formats.yolo",
        "formats.arrow",
        "formats.coco",
        "formats",
    ),
    ("formats.text", "formats.by_name", "formats.json", "formats.reading"),
    ("checks",),
    ("core",),
    ("tables", "protocols"),
    ("io",),
    ("errors", "display", "escaping", "decimals", "text_input", "_version"),
)
ORDER = {package: index for index, package in enumerate(sum(LAYERS, ()))}

EXCEPTIONS = {
    "__init__": tuple(ORDER),
    "report.__init__": ("report.sections",),
}
"""Files that may import these packages of higher layers, inside functions."""

_CIMPORT = re.compile(r"^\s*(?:from\s+(\S+)\s+)?c?import\s+(.+?)\s*(?:#.*)?$")


def sources() -> list[Path]:
    return sorted(p for kind in ("*.py", "*.pyi", "*.pyx", "*.pxd") for p in PACKAGE.rglob(kind))


@cache
def imports_of(path: Path) -> set[str]:
    """Return the dotted names that a source file imports, also inside functions or for types."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in {".pyx", ".pxd"}:
        return _cython_imports(text)
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            module = node.module or ""
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def _cython_imports(text: str) -> set[str]:
    imported = set()
    # Join an import in parentheses into one line.
    text = re.sub(r"\(([^()]*)\)", lambda m: m.group(1).replace("\n", " "), text)
    for line in text.splitlines():
        match = _CIMPORT.match(line)
        if match:
            module, names = match.groups()
            for name in names.split(","):
                plain = name.split(" as ")[0].strip()
                if plain:  # after a trailing comma
                    imported.add(f"{module}.{plain}" if module else plain)
    return imported


def file_of(dotted: str) -> str:
    """Return the file of detap that has a dotted name, without ``detap.``, or an empty text."""
    parts = dotted.split(".")[1:] if dotted.split(".", maxsplit=1)[0] == "detap" else []
    while parts and not list(PACKAGE.joinpath(*parts[:-1]).glob(f"{parts[-1]}.*")):
        if (PACKAGE.joinpath(*parts) / "__init__.py").is_file():
            return ".".join([*parts, "__init__"])
        parts = parts[:-1]
    return ".".join(parts)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def package_of(file: str) -> str:
    """Return the package of a file: ``formats.coco`` for ``formats.coco.tables``."""
    return file if file in ORDER else file.rpartition(".")[0] or file


def dependencies(path: Path) -> set[str]:
    """Return the files of detap that a file imports, without its exceptions."""
    imported = {file_of(dotted) for dotted in imports_of(path)}
    allowed = EXCEPTIONS.get(name_of(path), ())
    own = {"", "__init__", name_of(path)}
    return {other for other in imported - own if package_of(other) not in allowed}


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_only_downward(path: Path) -> None:
    package = package_of(name_of(path))
    if package == "__init__":
        return
    assert package in ORDER, f"{package} is missing in LAYERS"
    for other in dependencies(path):
        assert ORDER[package] <= ORDER[package_of(other)], (
            f"{path} imports {other} of a higher layer"
        )


def test_all_packages_are_listed() -> None:
    assert set(ORDER) == {package_of(name_of(path)) for path in sources()} - {"__init__"}


def test_there_are_no_import_cycles() -> None:
    imports: dict[str, set[str]] = {}
    for path in sources():
        imports.setdefault(name_of(path), set()).update(dependencies(path))
    while imports:
        # A file without remaining imports is in no cycle.
        free = {file for file, others in imports.items() if not others & set(imports)}
        assert free, f"an import cycle among {sorted(imports)}"
        imports = {file: others for file, others in imports.items() if file not in free}


def test_core_uses_only_arrays() -> None:
    """No function of core uses files, class names or protocols.

    Bitmasks, RLE and column memory are arrays too and belong to lower layers.
    """
    below = {"tables._columns", "tables._runs", "tables._words"}
    core = [path for path in sources() if name_of(path).startswith("core.")]
    assert core
    for path in core:
        for other in dependencies(path):
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
        ("lxml", {"formats/voc/xml.py", "formats/cvat.py", "report/writers/junit.py"}),
        ("rich", {"report/writers/text.py", "cli/progress.py"}),
        ("click", {"cli"}),
        (
            "pyarrow",
            {f"formats/arrow/{file}.py" for file in ("files", "format", "columns", "schema")}
            | {"report/writers/matches.py"},
        ),
        ("fsspec", {"io/remote.py"}),
        ("jinja2", {"report/page/assembly.py"}),
        ("PIL", {"report/page/pictures.py"}),
        ("pycocotools", {"analysis/crosscheck.py", "compat"}),
        ("matplotlib", {"report/writers/plots.py", "evaluation/detection.py"}),
        ("pandas", {"evaluation/detection.py"}),
    ],
)
def test_a_library_is_imported_in_one_module(library: str, only: set[str]) -> None:
    for path in sources():
        if any(dotted.split(".")[0] == library for dotted in imports_of(path)):
            module = path.relative_to(PACKAGE)
            assert {str(module), module.parts[0]} & only, f"{module} imports {library}"


def test_imports_are_detected(tmp_path: Path) -> None:
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
