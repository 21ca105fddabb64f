"""What one run of a command knows besides its own options: how much to say, and where."""

import sys
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING

from detap.errors import Note, UsageError
from detap.escaping import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from detap.cli.progress import Progress


class Session:
    """How talkative a run is.

    Attributes
    ----------
    debug : bool
        Whether a traceback goes with an error.
    verbosity : int
        -1 says nothing but errors, 0 warnings and notes, 1 also how long each step took.
    strict : bool
        Whether warnings are errors.
    refused : bool
        Whether this run is strict, and has had a warning.
    """

    def __init__(self) -> None:
        self.debug = False
        self.verbosity = 0
        self.strict = False
        self.refused = False
        self._warnings = 0
        self._since = perf_counter()
        self._progress: Progress | None = None

    @property
    def quiet(self) -> bool:
        """Whether only errors are to be said."""
        return self.verbosity < 0

    def doing(self, what: str, fraction: "Callable[[], float | None] | None" = None) -> None:
        """Say at a terminal what goes on, should it take long; :meth:`done` ends that."""
        if not _is_watched() or self.quiet:
            return
        if self._progress is None:
            from detap.cli.progress import Progress  # only at a terminal

            self._progress = Progress()
        self._progress.doing(what, fraction)

    def done(self) -> None:
        """Take the progress bar away, so that something can be said."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def say(self, text: str) -> None:
        """Write a line to stderr; where nobody listens, that is all right."""
        self.done()
        if sys.stderr is None:
            return
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def note(self, note: Note) -> None:
        """Say a note, if this run is to hear it."""
        warning = note.severity == "warning"
        self._warnings += warning
        self.refused |= self.strict and warning
        if self.verbosity >= 0 or (self.strict and warning):
            self.say(_fitted(f"{note.severity}: {escape(str(note))}"))

    def tell(self, notes: "Iterable[Note]") -> None:
        """Say notes, likewise."""
        for note in notes:
            self.note(note)

    def check_warnings(self) -> None:
        """End a strict run that has had a warning.

        Raises
        ------
        UsageError
            Which counts them; each has been said.
        """
        if self.refused:
            kinds = f"{self._warnings} kind{'s' * (self._warnings != 1)} of warning"
            raise UsageError(f"{kinds}, and --strict")

    def timed(self, step: str) -> None:
        """Say how long the step took that now ends, to those who want to hear it."""
        now = perf_counter()
        if self.verbosity > 0:
            self.say(f"{step}: {now - self._since:.3f} s")
        self._since = now


def _is_watched() -> bool:
    """Tell whether stderr is a terminal."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _fitted(text: str) -> str:
    """Return a sentence in lines that a terminal need not break inside words."""
    if not _is_watched():
        return text
    from shutil import get_terminal_size  # only at a terminal
    from textwrap import fill  # only at a terminal

    width = max(get_terminal_size().columns, 20)
    return fill(text, width, subsequent_indent="  ", break_on_hyphens=False)
