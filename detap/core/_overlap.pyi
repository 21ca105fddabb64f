import numpy as np
from numpy.typing import NDArray

def fill_overlaps(
    detections: NDArray[np.float64],
    detection_areas: NDArray[np.float64],
    truths: NDArray[np.float64],
    truth_areas: NDArray[np.float64],
    absorbing: NDArray[np.uint8],
    edge: float,
    out: NDArray[np.float64],
) -> None: ...
