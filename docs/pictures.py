"""Pictures of the terminal for the pages: ``python -m docs.pictures`` runs the commands and draws.

Each is what the command prints at a terminal of 80 columns, colors and all, as SVG.
"""

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "terminal"
QUICKSTART = ROOT / "fixtures" / "quickstart"
WIDTH = 80

PICTURES = {
    "eval": "detap eval voc voc/detections",
    "gate": (
        "detap eval voc voc/detections-worse --baseline-detections voc/detections --max-drop 0.02"
    ),
}
"""What each picture shows, run in the folder of the quick start."""


def shown(line: str) -> str:
    """Return what a command prints at a terminal, with its colors."""
    parent, child = pty.openpty()
    place = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color", "DETAP_ISOLATED": "1"}
    place.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", *shlex.split(line)],
        cwd=QUICKSTART,
        env=place,
        stdin=subprocess.DEVNULL,
        stdout=child,
        stderr=subprocess.DEVNULL,
    )
    os.close(child)
    pieces = []
    try:
        while piece := os.read(parent, 65536):
            pieces.append(piece)
    except OSError:  # how Linux says that the other end is closed
        pass
    finally:
        os.close(parent)
        process.wait()
    return b"".join(pieces).decode().replace("\r\n", "\n")


def drawn(line: str) -> str:
    """Return the picture of a command and of what it prints."""
    from rich.console import Console  # noqa: PLC0415 - only to draw
    from rich.text import Text  # noqa: PLC0415

    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text(f"$ {line}\n", style="bold"))
        console.print(Text.from_ansi(shown(line)))
        text = console.export_svg(title="detap", unique_id="detap")
    # Fonts from another machine: whoever reads has one of their own.
    return re.sub(r"@font-face \{.*?\}\s*", "", text, flags=re.DOTALL)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, line in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(drawn(line), "utf-8")
