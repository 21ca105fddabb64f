"""Texts that are not needed before the end, made meanwhile."""

import os
import sys
from collections import UserString
from collections.abc import Callable
from threading import Thread, get_native_id
from typing import Any

from detap.core.threads import memory_is_tight

_NICENESS = 10
"""Of such a thread on Linux: what else shares its core has nine tenths of that."""


class BackgroundText(UserString):
    """A text that a thread makes while others work; who looks at it waits for it.

    A copy, also of another process, is a plain str.

    Where memory is tight no thread is begun: it is made at once.

    Raises
    ------
    BaseException
        Whenever it is looked at, what making it ended with.
    """

    def __init__(self, make: Callable[[], str]) -> None:
        self._made = ""
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
            self._made = make()
        except BaseException as error:
            self._error = error

    @property
    def data(self) -> str:  # type: ignore[override]
        """The text itself."""
        if self._thread.ident is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._made

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)
