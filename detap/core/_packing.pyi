from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def distinct(
    tables: Sequence[NDArray[np.uint8]], code: NDArray[np.uint32]
) -> NDArray[np.int64]: ...
def in_order(label: NDArray[np.int32], group: NDArray[np.int32]) -> bool: ...
def group_rows(
    group: NDArray[np.int32],
    start: NDArray[np.int64],
    rows: NDArray[np.int64],
    order: NDArray[np.int64],
) -> None: ...
