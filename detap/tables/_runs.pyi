import numpy as np
from numpy.typing import NDArray

FAULTS: dict[int, str]

def decoded(text: bytes, pixels: int) -> NDArray[np.uint32] | str: ...
def encoded(bits: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.uint32]] | None: ...
def measured(
    sizes: NDArray[np.int32], start: NDArray[np.int64], runs: NDArray[np.uint32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
