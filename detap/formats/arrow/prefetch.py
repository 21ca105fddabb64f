"""Prefetch of Parquet and Arrow files in a thread."""

import os
import threading
from typing import TYPE_CHECKING

from detap.core.threads import memory_is_tight
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path

if TYPE_CHECKING:
    from detap.formats.arrow.table import Table


class Prefetched:
    """A file being read.

    Attributes
    ----------
    path : str
    """

    def __init__(self, path: Path, scored: bool, boxes: str | None, limits: Limits) -> None:
        self.path = os.fspath(path)
        self._options = scored, boxes, limits
        self._table: Table | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        if self.path != STDIN and not memory_is_tight():
            # Standard input may block, so result() reads it.
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            from detap.formats.arrow.table import Table

            self._table = Table(self.path, *self._options)
        except BaseException as error:
            self._error = error

    def fraction(self) -> float:
        """Return 1 if the file has been read, else 0."""
        return float(self._table is not None)

    def result(self) -> "Table":
        """Wait for the table and return it, once.

        Raises
        ------
        UsageError, InputError
            As :func:`detap.formats.arrow.tables.read_detections`.
        """
        if self._thread is not None:
            self._thread.join()
        else:
            self._run()
        if self._error is not None:
            raise self._error
        table, self._table = self._table, None
        assert table is not None  # otherwise an error was raised
        return table


def ground_truth(
    path: Path, *, boxes: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> Prefetched:
    """Start to read ground truth."""
    return Prefetched(path, False, boxes, limits)


def detections(
    path: Path, *, boxes: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> Prefetched:
    """Start to read detections."""
    return Prefetched(path, True, boxes, limits)
