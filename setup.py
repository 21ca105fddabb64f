"""The compiled modules; everything else about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# Fused multiply-add rounds once where the references round twice: it would change last bits.
EXACT = [] if sys.platform == "win32" else ["-O3", "-g0", "-ffp-contract=off"]

# `make sanitize` builds with -fsanitize=... through this variable; it is empty otherwise.
EXTRA = os.environ.get("DETAP_BUILD_FLAGS", "").split()

MODULES = sorted(str(path) for path in Path("detap").rglob("*.pyx"))


class BuildInPlaceToo(build_ext):
    """Leave the compiled modules in the checkout as well as in what is built.

    Python started in a checkout imports detap from there, wherever else it is installed: without
    them ``pip install .`` and then ``python -m detap`` would fail in that one folder.
    """

    def run(self) -> None:
        """Build, and copy."""
        super().run()
        if not self.inplace:
            self.copy_extensions_to_source()


setup(
    cmdclass={"build_ext": BuildInPlaceToo},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
    ext_modules=cythonize(
        [
            Extension(
                str(Path(source).with_suffix("")).replace(os.sep, "."),
                [source],
                extra_compile_args=EXACT + EXTRA,
                extra_link_args=EXTRA,
            )
            for source in MODULES
        ],
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
