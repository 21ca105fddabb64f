import numpy as np
from numpy.typing import NDArray

def survey_boxes(
    corners: NDArray[np.float64],
    image: NDArray[np.int32],
    sizes: NDArray[np.float64],
    margin: float,
) -> tuple[int, int]: ...
def survey_values(values: NDArray[np.float64]) -> tuple[float, float, int, int]: ...
def found_classes(
    truths: NDArray[np.float64],
    truth_image: NDArray[np.int32],
    truth_label: NDArray[np.int32],
    corners: NDArray[np.float64],
    image: NDArray[np.int32],
    label: NDArray[np.int32],
    wanted: NDArray[np.uint8],
    threshold: float,
) -> list[tuple[int, int]]: ...
