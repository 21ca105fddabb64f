import numpy as np
from numpy.typing import NDArray

WIDTH: int

def count_draws(raw: NDArray[np.uint64], weights: NDArray[np.uint8], lane: int) -> bool: ...

class Resampler:
    def __init__(
        self,
        *,
        image: NDArray[np.int32],
        start: NDArray[np.int32],
        bucket: NDArray[np.uint8],
        good: NDArray[np.uint64],
        neutral: NDArray[np.uint64],
        truth_image: NDArray[np.int32],
        truth_label: NDArray[np.int32],
        weights: NDArray[np.uint8],
        heaviest: int,
        thresholds: int,
        due: NDArray[np.float64],
        trapezoid: bool,
        guard: float,
        precision_bits: NDArray[np.uint64],
        recall_bits: NDArray[np.uint64],
        recall_bucket: NDArray[np.uint8],
        precision_out: NDArray[np.float64],
        recall_out: NDArray[np.float64],
    ) -> None: ...
    def work(self) -> None: ...
