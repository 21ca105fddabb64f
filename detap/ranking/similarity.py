"""How alike queries and items are, a block of queries at a time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.ranking import nearness, products
from detap.errors import InputError, Problem
from detap.protocols.ranking import Retrieval
from detap.tables.ranking import Gallery

Scores = NDArray[np.float32] | NDArray[np.float64]


class Similarities:
    """The scores of a gallery's items, higher being better.

    Cosines and products are added up in float64 and rounded to the embeddings' own precision
    (float32 where they are float32, else float64); Euclidean distances are made in float64 from
    differences, which do not cancel far from the origin as products would. Equal items get equal
    scores.

    Parameters
    ----------
    table : Gallery
        Of embeddings or scores.
    rules : Retrieval
        Its `similarity`, and whether ties are trec_eval's (single precision).
    order : (N,) int64, optional
        Another order of the items.
    threads : int, optional
        As many as the machine has, by default.

    Raises
    ------
    InputError
        Where an embedding has the length 0, which has no cosine, or products overflow.
    """

    def __init__(
        self,
        table: Gallery,
        rules: Retrieval,
        order: NDArray[np.int64] | None = None,
        threads: int | None = None,
    ) -> None:
        self.threads = threads
        self.single = rules.ties == "trec"
        self.order = order
        self.items = len(table.gallery_labels)
        self.euclidean = table.kind == "embeddings" and rules.similarity == "euclidean"
        self.query: NDArray[Any] = table.query
        self.gallery: NDArray[Any] | None = None
        if table.kind == "scores":
            return
        gallery = table.gallery if order is None else table.gallery[order]
        self.file = table.files[0].path if table.files else "embeddings"
        if rules.similarity == "cosine":
            self.query = self._unit(table.query, "query")
            self.gallery = np.ascontiguousarray(self._unit(gallery, "item"))
        else:
            self._check_size(table.query, gallery)
            self.query, self.gallery = table.query, np.ascontiguousarray(gallery)

    def rows(self, memory: int) -> int:
        """Return how many queries' scores fit into so many bytes; at least 2, at most 256."""
        size = self.query.dtype.itemsize if self.gallery is None else 8
        return max(2, min(256, memory // max(1, self.items * size)))

    def block(self, low: int, high: int) -> Scores:
        """Return the scores of the queries from `low` to `high`, (B, N)."""
        if self.gallery is None:
            scores = self.query[low:high]
            scores = scores if self.order is None else scores[:, self.order]
        elif self.euclidean:
            scores = nearness(self.query[low:high], self.gallery, self.threads)
        else:
            scores = products(self.query[low:high], self.gallery, self.threads)
            scores = scores.astype(self.query.dtype, copy=False)
        if self.single:
            scores = scores.astype(np.float32, copy=False)
        return np.ascontiguousarray(scores)

    def _unit(self, vectors: NDArray[Any], what: str) -> NDArray[Any]:
        # By the largest component first, so that no square overflows or vanishes.
        largest = np.abs(vectors).max(axis=1, initial=0.0)
        if not (largest > 0).all():
            self._refuse(
                f"{what} {int(np.argmin(largest > 0))}",
                "is a vector of length 0, which has no cosine",
                "leave it out, or rank by --similarity dot or euclidean",
            )
        scaled: NDArray[Any] = vectors / largest[:, None]
        length = np.sqrt(np.einsum("nd,nd->n", scaled, scaled, dtype=np.float64))
        scaled /= length[:, None].astype(vectors.dtype)  # in place: a gallery may be large
        return scaled

    def _check_size(self, query: NDArray[Any], gallery: NDArray[Any]) -> None:
        made = np.float64 if self.euclidean else query.dtype
        most = float(np.finfo(np.float32 if self.single else made).max) / 8
        sizes = [float(np.abs(x).max(initial=0.0)) for x in (query, gallery)]
        factors = [max(sizes)] * 2 if self.euclidean else sizes
        if factors[0] * factors[1] * query.shape[1] > most:
            self._refuse(
                "", f"has components up to {max(sizes):g}, whose products overflow", "scale them"
            )

    def _refuse(self, place: str, message: str, remedy: str) -> None:
        raise InputError(Problem(self.file, place, message, remedy))
