import numpy as np
from numpy.typing import NDArray

def fill_slots(due: NDArray[np.float64], out: NDArray[np.int32]) -> None: ...
def fill_dense(
    values: NDArray[np.float64],
    start: NDArray[np.int64],
    positives: NDArray[np.int64],
    slots: NDArray[np.int32],
    out: NDArray[np.float64],
) -> None: ...

class Levels:
    def __init__(
        self,
        values: NDArray[np.float64],
        start: NDArray[np.int64],
        positives: NDArray[np.int64],
        slots: NDArray[np.int32],
    ) -> None: ...
    def mean(self, labels: NDArray[np.int64]) -> float: ...
    def fill_means(self, out: NDArray[np.float64]) -> None: ...
