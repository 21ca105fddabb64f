"""The compiled modules; everything else about the package is in pyproject.toml."""

import multiprocessing
import os
import shutil
import subprocess
import sys
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError, PlatformError

# Fused multiply-add rounds once where the references round twice: it would change last bits.
EXACT = [] if sys.platform == "win32" else ["-O3", "-g0", "-ffp-contract=off"]

# `make sanitize` builds with -fsanitize=... through this variable; it is empty otherwise.
EXTRA = os.environ.get("DETAP_BUILD_FLAGS", "").split()

MODULES = sorted(str(path) for path in Path("detap").rglob("*.pyx"))

SHARED = "detap._cyutility"
"""Memoryviews, compiled once for all modules: they are most of what there is to compile."""

CORES = os.cpu_count() or 1

_NO_COMPILER = """\
detap is compiled as it is installed, and no C compiler could be run: install one \
(Debian and Ubuntu: apt install build-essential; Fedora: dnf install gcc; macOS: \
xcode-select --install; Windows: Build Tools for Visual Studio) and try again."""


def extension(name: str, source: str) -> Extension:
    """Return how one module is compiled."""
    return Extension(name, [source], extra_compile_args=EXACT + EXTRA, extra_link_args=EXTRA)


def shared() -> Extension:
    """Return the module of what the others share, made anew where another Cython made it."""
    source = Path("detap", "_cyutility.c")
    made = source.read_bytes()[:200] if source.exists() else b""
    if f"Cython {Cython.__version__} ".encode() not in made:
        command = [sys.executable, "-m", "cython", f"--generate-shared={source.as_posix()}"]
        subprocess.run(command, check=True)
    return extension(SHARED, str(source))


class BuildInPlaceToo(build_ext):
    """Leave the compiled modules in the checkout as well as in what is built.

    Python started in a checkout imports detap from there, wherever else it is installed: without
    them ``pip install .`` and then ``python -m detap`` would fail in that one folder.
    """

    def run(self) -> None:
        """Build, and copy."""
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


setup(
    cmdclass={"build_ext": BuildInPlaceToo},
    options={"build_ext": {"parallel": CORES}},
    ext_modules=cythonize(
        [
            shared(),
            *(extension(str(Path(p).with_suffix("")).replace(os.sep, "."), p) for p in MODULES),
        ],
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
        },
    ),
)
