from collections.abc import Callable

from detap.formats._columns import Column
from detap.formats._id_tables import IdTable

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

def nesting(text: bytes) -> int: ...
