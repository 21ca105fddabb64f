import numpy as np
from numpy.typing import NDArray

def fill_areas(polygons: NDArray[np.float64], out: NDArray[np.float64]) -> None: ...
def fill_shares(
    detections: NDArray[np.float64],
    truths: NDArray[np.float64],
    absorbing: NDArray[np.uint8],
    out: NDArray[np.float64],
) -> None: ...
def fill_meeting(
    detections: NDArray[np.float64],
    truths: NDArray[np.float64],
    order: NDArray[np.int32],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    start: NDArray[np.int64],
    found: NDArray[np.int32],
) -> None: ...
