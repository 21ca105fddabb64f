import numpy as np
from numpy.typing import NDArray

def fill_extents(keypoints: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...

class Likeness:
    def __init__(
        self,
        claims: NDArray[np.float64],
        first: NDArray[np.int64],
        keypoint: NDArray[np.int32],
        places: NDArray[np.float64],
        spreads: NDArray[np.float64],
        boxes: NDArray[np.float64],
        areas: NDArray[np.float64],
        variances: NDArray[np.float64],
        start: NDArray[np.int64],
        truth: NDArray[np.int32],
        lowest: float,
        overlap: NDArray[np.float64],
    ) -> None: ...
    def exponents(self, begin: int, end: int, out: NDArray[np.float64]) -> int: ...
    def means(self, begin: int, end: int, values: NDArray[np.float64]) -> None: ...
