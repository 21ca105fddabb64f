import numpy as np
from numpy.typing import NDArray

class Store:
    def __init__(
        self,
        sizes: NDArray[np.int32],
        run_start: NDArray[np.int64],
        runs: NDArray[np.uint32],
        ring_start: NDArray[np.int64],
        ring_end: NDArray[np.int64],
        points: NDArray[np.float64],
    ) -> None: ...
    def most_runs(self) -> NDArray[np.int64]: ...
    def areas(self) -> NDArray[np.int64]: ...
    def measured(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
    def runs_of(self, mask: int) -> NDArray[np.uint32]: ...

class Pairing:
    def __init__(
        self,
        claims: Store,
        truths: Store,
        claim_mask: NDArray[np.int32],
        truth_mask: NDArray[np.int32],
        cells: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]],
        absorbing: NDArray[np.uint8],
        lowest: float,
        ratio: float,
        counts: NDArray[np.int64],
    ) -> None: ...
    def work(self) -> None: ...
    def gather(
        self,
        start: NDArray[np.int64],
        truth: NDArray[np.int32],
        overlap: NDArray[np.float64],
    ) -> None: ...
