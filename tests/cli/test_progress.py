"""The progress bar: only for long runs, only at a terminal, erased before other output."""

import os
import pty
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from detap.cli.progress import Progress
from detap.cli.session import Session
from detap.errors import InputError
from detap.formats.coco.results import ResultsFile
from detap.formats.json.document import JsonFile
from detap.io.limits import DEFAULT_LIMITS

SLOW = """
import threading
from detap.cli.progress import Progress
drawn = threading.Event()
progress = Progress(delay={delay})
progress.show("Reading", lambda: drawn.set() or 0.5)
drawn.wait({patience})
progress.stop()
print("end", flush=True)
"""


def at_terminal(code: str) -> str:
    """Run code with a terminal as its stdout and stderr; return the output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:  # Linux: the other side is closed
            break
        if not block:
            break
        shown += block
    os.close(ours)
    assert process.wait() == 0
    return shown.decode()


def test_long_work_shows_its_step() -> None:
    shown = at_terminal(SLOW.format(delay=0.1, patience=60))
    assert "Reading" in shown
    assert "━" in shown
    assert shown.endswith("end\r\n")


def test_short_work_shows_nothing() -> None:
    assert at_terminal(SLOW.format(delay=600, patience=0.3)) == "end\r\n"


def test_nothing_is_drawn_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("detap.cli.progress.Progress", partial(Progress, delay=0))
    session = Session()
    session.start_progress("Reading")
    time.sleep(0.05)
    session.stop_progress()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["[]", '{"images": [}'])
def test_reading_shows_its_progress(text: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    file = JsonFile(path)
    assert file.fraction() == 0
    with suppress(InputError), file.opened(DEFAULT_LIMITS) as document:
        ResultsFile().read(document)
    assert file.fraction() == 1
