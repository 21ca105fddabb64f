"""How Sphinx makes a site of these pages: ``make site``."""

import re
from pathlib import Path
from typing import Any

from detap._version import __version__

project = "detap"
author = "the authors of detap"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["performance", "report"]
myst_heading_anchors = 6

html_theme = "furo"
html_title = "detap"
html_static_path: list[str] = []

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it
autodoc_preserve_defaults = True
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # an attribute that is documented twice is one

# PyTorch is 200 MB that a page of docs does not need.
autodoc_mock_imports = ["torch"]

_HERE = Path(__file__).parent
_LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)#]*\.md)(#[^)]*)?\)")


def _name_what_is_no_page(app: Any, name: str, source: list[str]) -> None:
    """Name a text elsewhere in the repository instead of linking to it: it is not on the site."""
    folder = (_HERE / name).parent

    def named(match: re.Match[str]) -> str:
        goal = (folder / match[2]).resolve()
        if goal.is_relative_to(_HERE):
            return match[0]
        return f"{match[1]} (`{goal.relative_to(_HERE.parent)}` in the repository)"

    source[0] = _LINK.sub(named, source[0])


def setup(app: Any) -> None:
    """Tell Sphinx of it."""
    app.connect("source-read", _name_what_is_no_page)
