from typing import Any

from numpy.typing import NDArray

def interleave(
    first: NDArray[Any],
    second: NDArray[Any],
    third: NDArray[Any],
    fourth: NDArray[Any],
    rows: NDArray[Any],
    large: float,
) -> bool: ...
def number(
    values: NDArray[Any],
    at: int,
    low: int,
    table: NDArray[Any],
    out: NDArray[Any],
    count: int,
) -> tuple[int, int]: ...
def translate(codes: NDArray[Any], numbers: NDArray[Any], out: NDArray[Any]) -> None: ...
