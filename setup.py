"""The compiled modules; everything else about the package is in pyproject.toml."""

import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import Cython
from Cython.Build import cythonize
from Cython.Compiler import Nodes
from Cython.Compiler.ExprNodes import AnnotationNode
from Cython.Compiler.TreeFragment import parse_from_strings
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError, PlatformError

# Fused multiply-add rounds once where the references round twice: it would change last bits.
EXACT = [] if sys.platform == "win32" else ["-g0", "-ffp-contract=off"]

FAST = {"detap.core._masks", "detap.core._ranking", "detap.core._resampling"}
"""Modules that -O3 makes a tenth faster in a whole run, or more; others are compiled by -O1."""

# `make sanitize` builds with -fsanitize=... through this variable; it is empty otherwise.
EXTRA = os.environ.get("DETAP_BUILD_FLAGS", "").split()

MODULES = sorted(str(path) for path in Path("detap").rglob("*.pyx"))

SHARED = "detap._cyutility"
"""Memoryviews, compiled once for all modules: they are most of what there is to compile."""

SHARED_SOURCE = Path("detap", "_cyutility.c")

CORES = os.cpu_count() or 1

STUB = """\
# Written by setup.py from the .pyx file.
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
"""
"""The beginning of each .pyi file. Annotations in a .pyx file may use these names unimported."""

PYTHON_TYPES = {"bint": "bool", "double": "float", "Py_ssize_t": "int", "size_t": "int"}
PYTHON_TYPES |= {"int32_t": "int", "int64_t": "int", "uint64_t": "int"}
DTYPES = {"double": "float64", "float": "float32"}

_NO_COMPILER = """\
detap is compiled as it is installed, and no C compiler could be run: install one \
(Debian and Ubuntu: apt install build-essential; Fedora: dnf install gcc; macOS: \
xcode-select --install; Windows: Build Tools for Visual Studio) and try again."""


def extension(name: str, source: str) -> Extension:
    """Return how one module is compiled."""
    level = [] if sys.platform == "win32" else ["-O3" if name in FAST else "-O1"]
    return Extension(
        name, [source], extra_compile_args=level + EXACT + EXTRA, extra_link_args=EXTRA
    )


def make_shared() -> None:
    """Make the source of what the modules share anew where another Cython made it."""
    made = SHARED_SOURCE.read_bytes()[:200] if SHARED_SOURCE.exists() else b""
    if f"Cython {Cython.__version__} ".encode() not in made:
        option = f"--generate-shared={SHARED_SOURCE.as_posix()}"
        subprocess.run([sys.executable, "-m", "cython", option], check=True)


class Stub:
    """The .pyi file of a module: what a type checker knows of it.

    A type is an annotation of the .pyx file, or else what stands for the C type in Python: an array
    for a memoryview.
    """

    def __init__(self, source: str) -> None:
        self.imports: dict[str, str] = {}
        self.fused: dict[str, list[str]] = {}
        self.members: dict[str, str] = {}
        self.declared: dict[str, Nodes.Node] = {}
        declarations = Path(source).with_suffix(".pxd")
        if declarations.exists():
            self.add_declarations(declarations)
        self.add(parse_from_strings(source, Path(source).read_text(encoding="utf-8")).body)

    def __str__(self) -> str:
        members = "".join(self.members.values())
        named = self.imports.keys() & set(re.findall(r"\b[A-Z]\w+", members))
        return "".join([STUB, *(self.imports[name] for name in sorted(named)), members])

    def add_declarations(self, path: Path) -> None:
        """Add the classes whose attributes the .pxd file declares."""
        text = path.read_text(encoding="utf-8")
        body = parse_from_strings(str(path), text, level="module_pxd").body
        for node in getattr(body, "stats", [body]):
            if isinstance(node, Nodes.CClassDefNode):
                self.declared[node.class_name] = node.body

    def add(self, body: Nodes.Node) -> None:
        """Add what statements import and declare."""
        for node in getattr(body, "stats", [body]):
            match node:
                case Nodes.FromImportStatNode():
                    names = [name for name, _ in node.items]
                    self.add_imports(node.module.module_name.value, names)
                case Nodes.FromCImportStatNode():
                    self.add_imports(node.module_name, [name for _, name, _ in node.imported_names])
                case Nodes.FusedTypeNode():
                    self.fused[node.name] = [each.name for each in node.types]
                case Nodes.CVarDefNode(visibility="readonly" | "public"):
                    kind = self.type_of(None, node.base_type)
                    names = [each.name for each in node.declarators]
                    self.members |= {name: f"{name}: {kind}\n" for name in names}
                case Nodes.SingleAssignmentNode(lhs=left) | Nodes.ExprStatNode(expr=left):
                    if getattr(left, "annotation", None):
                        self.members[left.name] = f"{left.name}: {self.type_of(left.annotation)}\n"
                case Nodes.CClassDefNode():
                    self.add_class(node)
                case Nodes.DefNode() if node.name != "__dealloc__":
                    self.add_function(node)

    def add_imports(self, module: str, names: list[str]) -> None:
        """Add names that a type may have."""
        self.imports |= {name: f"from {module} import {name}\n" for name in names}

    def add_class(self, node: Nodes.CClassDefNode) -> None:
        """Add a class with its public members."""
        outside, self.members = self.members, {}
        if node.class_name in self.declared:
            self.add(self.declared[node.class_name])
        self.add(node.body)
        body = indent("".join(self.members.values()) or "...\n", "    ")
        self.members = outside
        bases = ", ".join(base.name for base in node.bases.args)
        head = f"{decorators(node)}class {node.class_name}({bases})"
        self.members[node.class_name] = f"{head}:\n{body}"

    def add_function(self, node: Nodes.DefNode) -> None:
        """Add a function, a method or a property."""
        arguments = []
        for each in node.args:
            kind = self.type_of(each.annotation, each.base_type)
            argument = f"{each.declarator.name}: {kind}" if kind else each.declarator.name
            arguments.append(f"{argument} = ..." if each.default else argument)
        if node.num_kwonly_args:
            arguments.insert(-node.num_kwonly_args, "*")
        name = "__init__" if node.name == "__cinit__" else node.name
        result = "None" if name == "__init__" else self.type_of(node.return_type_annotation)
        head = f"{decorators(node)}def {name}({', '.join(arguments)})"
        self.members[name] = f"{head} -> {result}: ...\n" if result else f"{head}: ...\n"

    def type_of(
        self, annotation: AnnotationNode | None, kind: Nodes.CBaseTypeNode | None = None
    ) -> str:
        """Return a type as Python has it; empty for what has none."""
        if annotation:
            return annotation.string.value.strip("'")
        if not isinstance(kind, Nodes.MemoryViewSliceTypeNode):
            name = kind.name if kind else None
            return PYTHON_TYPES.get(name, name or "")
        item = kind.base_type_node
        name = getattr(item, "base_type", item).name  # without `const`
        items = [DTYPES.get(each, each.removesuffix("_t")) for each in self.fused.get(name, [name])]
        return " | ".join(f"NDArray[np.{each}]" for each in items)


def decorators(node: Nodes.Node) -> str:
    """Return the lines of those that concern a type checker."""
    names = [getattr(each.decorator, "name", "") for each in node.decorators or ()]
    return "".join(f"@{name}\n" for name in names if name in ("final", "property"))


class Build(build_ext):
    """Translate the .pyx files to C, only here since pip runs this file twice before, and compile.

    Compiled modules stay in the checkout as well as in what is built: Python started in a checkout
    imports detap from there, wherever else it is installed. Without them ``pip install .`` and then
    ``python -m detap`` would fail in that one folder.
    """

    def run(self) -> None:
        """Build, and copy."""
        sources = translated(self.extensions)
        for module in self.extensions:
            module.sources = sources[module.name]
        try:
            super().run()
        except PlatformError as error:
            raise PlatformError(f"{error}\n\n{_NO_COMPILER}") from None
        except (CCompilerError, CompileError) as error:
            if self.compiler_runs():
                raise
            raise PlatformError(f"{error}\n\n{_NO_COMPILER}") from None
        if not self.inplace:
            self.copy_extensions_to_source()

    def compiler_runs(self) -> bool:
        """Return whether there is a compiler at all, whatever it makes of the sources."""
        command = getattr(self.compiler, "compiler", None)
        return not command or shutil.which(command[0]) is not None


def translated(modules: list[Extension]) -> dict[str, list[str]]:
    """Translate the .pyx files that changed to C, and return the sources by module."""
    make_shared()
    extensions = cythonize(
        modules,
        # Processes that are not forked would run this file again.
        nthreads=CORES if multiprocessing.get_start_method() == "fork" else 0,
        shared_utility_qualified_name=SHARED,
        language_level=3,
        compiler_directives={
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "embedsignature": True,
            "annotation_typing": False,
        },
    )
    return {extension.name: extension.sources for extension in extensions}


for source in map(Path, MODULES):
    stub, inputs = source.with_suffix(".pyi"), (source, Path("setup.py"))
    if not stub.exists() or stub.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
        stub.write_text(str(Stub(str(source))), encoding="utf-8")

setup(
    cmdclass={"build_ext": Build},
    options={"build_ext": {"parallel": CORES}},
    ext_modules=[
        extension(SHARED, str(SHARED_SOURCE)),
        *(extension(str(Path(p).with_suffix("")).replace(os.sep, "."), p) for p in MODULES),
    ],
)
