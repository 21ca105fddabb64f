"""Base class of the metrics: ``torchmetrics.Metric`` if installed, else its main methods."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, distributed


class PlainMetric:
    """A metric with list states and the main methods of ``torchmetrics.Metric``.

    Parameters
    ----------
    sync_on_compute : bool
        If True, ``compute`` gathers the states of all processes.
    process_group : torch.distributed.ProcessGroup, optional
        The processes to gather from; all by default.
    """

    def __init__(self, *, sync_on_compute: bool = True, process_group: Any = None) -> None:
        self.sync_on_compute = sync_on_compute
        self.process_group = process_group
        self.device = torch.device("cpu")
        self._defaults: dict[str, list[Tensor]] = {}
        self._persistent = False
        self._is_synced = False

    @property
    def _to_sync(self) -> bool:
        return self.sync_on_compute

    def add_state(self, name: str, default: list[Tensor], dist_reduce_fx: Any = None) -> None:
        """Add a list state with the attribute `name`."""
        del dist_reduce_fx
        self._defaults[name] = default
        setattr(self, name, [])

    def reset(self) -> None:
        """Remove all updates."""
        for name in self._defaults:
            setattr(self, name, [])

    def forward(self, *batch: Any) -> Any:
        """Add a batch and return its metrics, of this process only."""
        batch_metric = copy(self)
        batch_metric.sync_on_compute = False
        batch_metric.reset()
        batch_metric.update(*batch)
        self.update(*batch)
        return batch_metric.compute()

    __call__ = forward

    def update(self, *batch: Any) -> None:
        """Add a batch."""
        raise NotImplementedError

    def compute(self) -> Any:
        """Return the metrics of all updates."""
        raise NotImplementedError

    def to(self, device: Any) -> Self:
        """Move the states, and set the device of the tensors that :meth:`compute` returns."""
        self.device = torch.device(device)
        for name in self._defaults:
            setattr(self, name, [state.to(self.device) for state in getattr(self, name)])
        return self

    def persistent(self, mode: bool = False) -> None:
        """Set whether :meth:`state_dict` has the states."""
        self._persistent = mode

    def state_dict(self) -> dict[str, list[Tensor]]:
        """Return the states, if they are :meth:`persistent`."""
        return {name: getattr(self, name) for name in self._defaults if self._persistent}

    def load_state_dict(self, state: Mapping[str, list[Tensor]]) -> None:
        """Replace the states by those of :meth:`state_dict`."""
        for name in self._defaults:
            setattr(self, name, [*state.get(name, ())])

    @contextmanager
    def sync_context(
        self, *, should_sync: bool = True, should_unsync: bool = True
    ) -> Iterator[None]:
        """Gather the states of all processes for the time of a block."""
        del should_unsync
        if not (should_sync and distributed.is_available() and distributed.is_initialized()):
            yield
            return
        own = {name: getattr(self, name) for name in self._defaults}
        self._sync_dist()
        self._is_synced = True
        try:
            yield
        finally:
            self._is_synced = False
            vars(self).update(own)

    def _sync_dist(self) -> None:
        raise NotImplementedError


if TYPE_CHECKING:
    Metric = PlainMetric
else:
    try:
        from torchmetrics import Metric
    except ImportError:
        Metric = PlainMetric
