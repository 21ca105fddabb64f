"""Install detap into a separate environment."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from service import given, put

HERE = Path(__file__).resolve().parents[1]


def requirement(version: str, page: bool) -> str:
    """Return the requirement for pip, by default the action's own version."""
    extra = "[report]" if page else ""
    if version == "source":
        return f"{HERE}{extra}"
    if not version:
        text = (HERE / "detap" / "_version.py").read_text(encoding="utf-8")
        version = re.findall(r'__version__ = "(.+)"', text)[0]
    return f"detap{extra}=={version}"


def main() -> None:
    """Create the environment and output the path of its Python."""
    folder = Path(tempfile.mkdtemp(prefix="detap-", dir=os.environ.get("RUNNER_TEMP")))
    subprocess.run([sys.executable, "-I", "-m", "venv", str(folder)], check=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    what = requirement(given("version"), given("page") == "true")
    pip = [str(python), "-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    ended = subprocess.run([*pip, what], check=False)
    if ended.returncode:
        sys.exit(f"::error title=detap::pip could not install {what}; see above")
    put(python=str(python))
