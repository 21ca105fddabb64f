import numpy as np
from numpy.typing import NDArray

def hits_of(relevant: NDArray[np.uint8]) -> list[int]: ...
def fill_precision(
    false_positives: NDArray[np.int32], guard: float, envelope: bool, out: NDArray[np.float64]
) -> None: ...
def fill_levels(
    envelope: NDArray[np.float64],
    positives: float,
    due: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def average_precision(
    values: NDArray[np.float64], levels: NDArray[np.float64], summing: int
) -> float: ...
def area(precision: NDArray[np.float64], positives: float) -> float: ...
def count_above(
    kind: NDArray[np.int8],
    start: NDArray[np.int32],
    begin: NDArray[np.int32],
    place: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None: ...
def fill_averages(
    false_positives: NDArray[np.int32],
    begin: NDArray[np.int32],
    positives: NDArray[np.int64],
    levels: NDArray[np.float64],
    due: NDArray[np.float64],
    guard: float,
    summing: int,
    out: NDArray[np.float64],
) -> None: ...
