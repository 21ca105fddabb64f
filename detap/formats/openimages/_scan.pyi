import numpy as np
from numpy.typing import NDArray

class Scanner:
    def __init__(self, columns: list[int], numbers: int, low: float, high: float) -> None: ...
    def scan(self, lines: bytes) -> bool: ...
    def add(self, image: bytes, label: bytes, numbers: list[float], group: int) -> None: ...
    def __len__(self) -> int: ...
    @property
    def has_points(self) -> bool: ...
    def columns_of_rows(
        self,
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int32],
        list[bytes],
        list[bytes],
        NDArray[np.uint8],
        NDArray[np.float64],
    ]: ...
