"""Text computed in a background thread."""

import os
import sys
from collections import UserString
from collections.abc import Callable
from threading import Thread, get_native_id
from typing import Any

from detap.core.threads import memory_is_tight

_NICENESS = 10
"""Niceness of the thread on Linux, about a tenth of a shared core."""


class BackgroundText(UserString):
    """A text computed in a thread; every access waits for it.

    A copy, also in another process, is a plain str. If memory is tight, no thread is started.

    Raises
    ------
    BaseException
        On access, the error of the computation.
    """

    def __init__(self, make: Callable[[], str]) -> None:
        self._text = ""
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, args=(make,), daemon=True)
        if memory_is_tight():
            self._thread.run()
        else:
            self._thread.start()

    def _run(self, make: Callable[[], str]) -> None:
        if sys.platform == "linux" and self._thread.ident is not None:
            os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICENESS)
        try:
            self._text = make()
        except BaseException as error:
            self._error = error

    @property
    def data(self) -> str:  # type: ignore[override]
        """The text."""
        if self._thread.ident is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._text

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)
