import numpy as np
from numpy.typing import NDArray

def rank_rows(
    label: NDArray[np.int32],
    image: NDArray[np.int32],
    place: NDArray[np.int32],
    score: NDArray[np.float64],
    left_out: NDArray[np.uint8],
    ties_by_image: bool,
    start: NDArray[np.int32],
    ranked: NDArray[np.int32],
) -> None: ...
def find_places(
    image: NDArray[np.int32],
    place: NDArray[np.int32],
    score: NDArray[np.float64],
    ties_by_image: bool,
    start: NDArray[np.int32],
    ranked: NDArray[np.int32],
    rows: NDArray[np.int32],
    label: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None: ...
