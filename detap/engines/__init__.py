"""Engines: interface and registry of backends that evaluate shards in other processes."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol

ENGINES = {"dask": "detap.engines.dask"}
"""The engines by name, and the module of each, which has a class ``Engine``."""


class Engine(Protocol):
    """Interface of a task runner with retries.

    Attributes
    ----------
    workers : int
        The number of workers.
    threads : int
        The threads of a function that runs alone.
    """

    workers: int
    threads: int

    def submit(
        self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        """Schedule a function call on values or results of :meth:`submit`.

        `name` is used in error messages.
        """

    def gather(self, submitted: Sequence[Any]) -> list[Any]:
        """Return the values of submitted calls.

        Raises
        ------
        DetapError
            The error of a function, or an error that names the failing input.
        """

    def close(self) -> None:
        """Stop the workers that the engine started."""


def engine(name: str, scheduler: str | None = None) -> Engine:
    """Create an engine by name.

    Parameters
    ----------
    name : str
        One of :data:`ENGINES`.
    scheduler : str, optional
        The address of a running scheduler; by default workers start on this machine.

    Raises
    ------
    UsageError
        If the engine is not installed, or no scheduler answers.
    """
    created: Engine = import_module(ENGINES[name]).Engine(scheduler)
    return created
