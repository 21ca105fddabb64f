from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.formats.reading._id_tables import IdTable

_Integers = NDArray[np.int32]
_Floats = NDArray[np.float64]

class Columns:
    rows: int
    ids: list[int]
    scores: list[Any]
    records: list[dict[str, Any]]
    aside: list[dict[str, Any]]
    def __init__(
        self,
        images: dict[Any, int],
        categories: dict[Any, int],
        room: int,
        scored: bool,
        band: tuple[float, float],
        kind: str,
        by_category: bool,
    ) -> None: ...
    def columns(
        self,
    ) -> tuple[
        _Integers,
        _Integers,
        _Floats,
        _Floats,
        _Floats,
        _Floats,
        NDArray[np.uint8],
        NDArray[np.uint8],
    ]: ...
    def take_all(self, records: list[dict[str, Any]]) -> bool: ...
    def take_in_order(
        self,
        records: list[dict[str, Any]],
        index: Mapping[Any, list[dict[str, Any]]],
        annotations: dict[Any, dict[str, Any]],
        by_category: bool,
    ) -> bool: ...
    def take_indexed(
        self,
        images: Iterable[Any],
        index: Mapping[Any, list[dict[str, Any]]],
        annotations: Mapping[Any, dict[str, Any]],
        by_category: bool,
    ) -> bool: ...

def all_of(records: list[dict[str, Any]], images: set[Any]) -> bool: ...
def extent(keypoints: list[Any]) -> tuple[list[np.float64], np.float64] | None: ...
def complete_boxes(records: list[dict[str, Any]]) -> bool: ...
def fill_scores(
    begin: int,
    end: int,
    start: _Integers,
    ranked: _Integers,
    limit: NDArray[np.uint8],
    score: _Floats,
    found: NDArray[np.uint8],
    positives: NDArray[np.int64],
    levels: _Floats,
    out: _Floats,
) -> None: ...
def take_rows(
    rows: NDArray[Any],
    images: IdTable,
    categories: IdTable,
    stranger: int,
    image: _Integers,
    label: _Integers,
    corners: _Floats,
    box_area: _Floats,
    area: _Floats,
    score: _Floats,
) -> bool: ...
