"""Messages of a run on stderr: verbosity, notes, timings and progress."""

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from shutil import get_terminal_size
from textwrap import fill
from time import perf_counter

from detap.cli import progress
from detap.errors import Note, UsageError
from detap.escaping import escape


class Session:
    """Message settings and state of a run."""

    def __init__(self) -> None:
        self.debug = False  # whether errors include a traceback
        self.verbosity = 0  # -1 prints errors only, 0 also warnings and notes, 1 also timings
        self.strict = False  # whether warnings are errors
        self.strict_failed = False  # whether a strict run has printed a warning
        self._warnings = 0
        self._started = perf_counter()
        self._progress: progress.Progress | None = None

    @property
    def quiet(self) -> bool:
        """True if only errors are printed."""
        return self.verbosity < 0

    def start_progress(self, step: str, fraction: Callable[[], float | None] | None = None) -> None:
        """Show a step at a terminal if it takes long."""
        if not _is_watched() or self.quiet:
            return
        if self._progress is None:
            self._progress = progress.Progress()
        self._progress.show(step, fraction)

    def stop_progress(self) -> None:
        """Remove the progress bar."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def print_line(self, text: str) -> None:
        """Write a line to stderr, if it is open."""
        self.stop_progress()
        if sys.stderr is None:
            return
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def print_note(self, note: Note) -> None:
        """Print a note unless the run is quiet."""
        warning = note.severity == "warning"
        self._warnings += warning
        self.strict_failed |= self.strict and warning
        if self.verbosity >= 0 or (self.strict and warning):
            text = f"{note.severity}: {escape(str(note))}"
            if _is_watched():
                columns = max(get_terminal_size().columns, 20)
                text = fill(text, columns, subsequent_indent="  ", break_on_hyphens=False)
            self.print_line(text)

    def print_notes(self, notes: Iterable[Note]) -> None:
        """Print notes unless the run is quiet."""
        for note in notes:
            self.print_note(note)

    def check_warnings(self) -> None:
        """Raise UsageError if a strict run has printed a warning."""
        if self.strict_failed:
            types = f"{self._warnings} warning type{'s' * (self._warnings != 1)}"
            raise UsageError(f"{types} and --strict")

    def print_time(self, step: str) -> None:
        """Print the duration of the finished step if the run is verbose."""
        now = perf_counter()
        if self.verbosity > 0:
            self.print_line(f"{step}: {now - self._started:.3f} s")
        self._started = now


def _is_watched() -> bool:
    """Return True if stderr is a terminal."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False
