from typing import Any

from numpy.typing import NDArray

def encode(boxes: NDArray[Any], areas: NDArray[Any], corners: bool) -> None: ...
