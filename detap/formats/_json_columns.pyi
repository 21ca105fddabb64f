from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

class Column:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class IdTable:
    def __init__(self, ids: Iterable[int]) -> None: ...

class _Scan:
    regular: bool
    @property
    def count(self) -> int: ...
    @property
    def given(self) -> int: ...
    def __init__(
        self,
        descriptor: int,
        reader: Callable[[int], bytes] | None,
        most_bytes: int,
        most_records: int,
        nesting: int,
    ) -> None: ...
    def run(self) -> bool: ...

CAN_SPLIT: bool

def find_record(block: bytes) -> int: ...

class ResultsScan(_Scan):
    paused: bool
    def run_rest(self, start: int) -> bool: ...
    def split_at(self, stop: int) -> None: ...
    def resume(self) -> bool: ...
    def append(self, rest: ResultsScan) -> bool: ...
    def cancel(self) -> None: ...
    def columns(
        self, images: IdTable, categories: list[int]
    ) -> tuple[Column, Column, Column, Column, Column, dict[int | str, int]] | None: ...

class TruthScan(_Scan):
    without_id: int
    id_zero: int
    zero_row: int
    without_area: int
    without_crowd: int
    @property
    def categories(self) -> bytes: ...
    def columns(self, categories: IdTable) -> tuple[list[int], *tuple[Column, ...]] | None: ...

def parse_number(text: bytes) -> float | None: ...
def nesting(data: bytes) -> int: ...
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
