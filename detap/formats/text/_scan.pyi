import numpy as np
from numpy.typing import NDArray

def scan_files(
    folder: int,
    members: list[bytes | None],
    known: list[bytes],
    *,
    grow: bool,
    width: int,
    sides: bool,
    fractions: bool,
    file_bytes: int,
    records: int,
    scored: bool = False,
    counts: tuple[int, ...] = (),
    polygons: set[int] | None = None,
    digests: dict[int, str] | None = None,
    contents: bool = False,
) -> tuple[
    list[int],
    NDArray[np.int32],
    NDArray[np.int32],
    NDArray[np.bool_],
    NDArray[np.float64],
    list[bytes],
]: ...
