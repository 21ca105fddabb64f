import numpy as np
from numpy.typing import NDArray

class Ground:
    def __init__(
        self,
        *,
        start: NDArray[np.int32],
        order: NDArray[np.int32],
        label: NDArray[np.int32],
        corners: NDArray[np.float64],
        area: NDArray[np.float64],
        absorbing: NDArray[np.uint8],
        taken: NDArray[np.uint8],
        edge: float,
    ) -> None: ...
    def fill(
        self,
        rows: NDArray[np.int32],
        image: NDArray[np.int32],
        label: NDArray[np.int32],
        corners: NDArray[np.float64],
        area: NDArray[np.float64],
        begin: int,
        end: int,
        truth: NDArray[np.int32],
        value: NDArray[np.float64],
    ) -> None: ...
    def claim(
        self,
        rows: NDArray[np.int32],
        image: NDArray[np.int32],
        label: NDArray[np.int32],
        corners: NDArray[np.float64],
        area: NDArray[np.float64],
        threshold: float,
        strict: bool,
        last_of_equal: bool,
        others_only: bool,
        free: NDArray[np.uint8],
        truth: NDArray[np.int32],
    ) -> None: ...
