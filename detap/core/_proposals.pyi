import numpy as np
from numpy.typing import NDArray

def fill_coverage(
    *,
    dt_image: NDArray[np.int32],
    dt_score: NDArray[np.float64],
    dt_corners: NDArray[np.float64],
    dt_areas: NDArray[np.float64],
    gt_image: NDArray[np.int32],
    gt_corners: NDArray[np.float64],
    gt_areas: NDArray[np.float64],
    counted: NDArray[np.uint8],
    images: int,
    limits: NDArray[np.int64],
    edge: float,
    out: NDArray[np.float64],
) -> None: ...
