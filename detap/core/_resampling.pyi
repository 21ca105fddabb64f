import numpy as np
from numpy.typing import NDArray

WIDTH: int

def count_draws(raw: NDArray[np.uint64], weights: NDArray[np.uint8], lane: int) -> bool: ...
def rank_rows(
    image: NDArray[np.int32],
    label: NDArray[np.int32],
    score: NDArray[np.float64],
    counted: NDArray[np.uint8],
    rank_in_image: NDArray[np.int32],
    limits: NDArray[np.int64],
    images: int,
    ties_by_image: bool,
    start: NDArray[np.int32],
    ranked: NDArray[np.int32],
    bucket: NDArray[np.uint8],
) -> None: ...
def pack_thresholds(
    truth: NDArray[np.int32],
    neutral: NDArray[np.uint8],
    wanted: NDArray[np.int64],
    good: NDArray[np.uint64],
    wrong: NDArray[np.uint64],
) -> None: ...

class Resampler:
    def __init__(
        self,
        *,
        image: NDArray[np.int32],
        start: NDArray[np.int32],
        ranked: NDArray[np.int32],
        bucket: NDArray[np.uint8],
        good: NDArray[np.uint64],
        wrong: NDArray[np.uint64],
        truth_image: NDArray[np.int32],
        truth_label: NDArray[np.int32],
        weights: NDArray[np.uint8],
        heaviest: int,
        thresholds: int,
        levels: NDArray[np.float64],
        guard: float,
        precision_bits: NDArray[np.uint64],
        recall_bits: NDArray[np.uint64],
        recall_bucket: NDArray[np.uint8],
        precision_out: NDArray[np.float64],
        recall_out: NDArray[np.float64],
    ) -> None: ...
    def work(self) -> None: ...
