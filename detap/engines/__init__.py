"""Shards evaluated by other processes: what an engine must do, and which there are."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol

ENGINES = {"dask": "detap.engines.dask"}
"""The engines by name, and the module of each, which has a class ``Engine``."""


class Engine(Protocol):
    """What runs pure functions somewhere, again where a worker is lost.

    Attributes
    ----------
    workers : int
        How many there are.
    threads : int
        How many threads a function may use that runs while no other does.
    """

    workers: int
    threads: int

    def submit(
        self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        """Have a function called with values, or with what :meth:`submit` has returned.

        `name` is what an error calls it.
        """

    def gather(self, submitted: Sequence[Any]) -> list[Any]:
        """Return the values of what was submitted.

        Raises
        ------
        DetapError
            That a function raised; or that says by name which one keeps failing.
        """

    def close(self) -> None:
        """Let the workers go that were begun for this."""


def engine(name: str, scheduler: str | None = None) -> Engine:
    """Begin an engine.

    Parameters
    ----------
    name : str
        One of :data:`ENGINES`.
    scheduler : str, optional
        The address of one that is running; by default workers are begun on this machine.

    Raises
    ------
    UsageError
        Where it is not installed, or there is no scheduler.
    """
    begun: Engine = import_module(ENGINES[name]).Engine(scheduler)
    return begun
