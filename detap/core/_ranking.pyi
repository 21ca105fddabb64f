import numpy as np
from numpy.typing import NDArray

class Relevance:
    queries: int
    items: int
    def __init__(
        self,
        query_classes: NDArray[np.int32],
        gallery_classes: NDArray[np.int32],
        query_labels: NDArray[np.uint64],
        gallery_labels: NDArray[np.uint64],
        itself: NDArray[np.int32],
    ) -> None: ...
    def part(self, low: int, high: int) -> Relevance: ...

def use_plain_loops(plain: bool) -> None: ...
def fill_sums(
    queries: NDArray[np.float64],
    panels: NDArray[np.float32] | NDArray[np.float64],
    low: int,
    high: int,
    out: NDArray[np.float32] | NDArray[np.float64],
    products: bool,
    single: bool,
) -> None: ...
def count_relevant(relevance: Relevance, low: int, high: int, out: NDArray[np.int64]) -> None: ...
def rank_codes(
    queries: NDArray[np.uint64],
    gallery: NDArray[np.uint64],
    relevance: Relevance,
    low: int,
    high: int,
    start: NDArray[np.int64],
    hits: NDArray[np.int32],
    above: NDArray[np.int32],
    level: NDArray[np.int32],
) -> None: ...
def nearest_codes(
    queries: NDArray[np.uint64],
    gallery: NDArray[np.uint64],
    itself: NDArray[np.int32],
    low: int,
    high: int,
    out: NDArray[np.int32],
) -> None: ...
def nearest_scores(
    scores: NDArray[np.float32] | NDArray[np.float64],
    itself: NDArray[np.int32],
    row: int,
    out: NDArray[np.int32],
) -> None: ...
def rank_scores(
    scores: NDArray[np.float32] | NDArray[np.float64],
    relevance: Relevance,
    row: int,
    query: int,
    hits: NDArray[np.int32],
    above: NDArray[np.int32],
    level: NDArray[np.int32],
) -> None: ...
