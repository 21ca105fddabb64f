"""Similarities of queries and items, in blocks of queries."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.ranking import PANEL, QUERIES, Panels, make_panels, negative_distances, products
from detap.errors import InputError, Problem
from detap.protocols.ranking import Retrieval
from detap.tables.ranking import Gallery

Scores = NDArray[np.float32] | NDArray[np.float64]

_BLOCK = 128 * PANEL
"""Vectors that are made ready at a time."""


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
    protocol : Retrieval
        Its `similarity`, and whether ties are trec_eval's (single precision).
    order : (N,) int64, optional
        Another order of the items.
    threads : int, optional
        As many as the machine has, by default.

    Raises
    ------
    InputError
        If an embedding has the length 0, which has no cosine, or products overflow.
    """

    def __init__(
        self,
        table: Gallery,
        protocol: Retrieval,
        order: NDArray[np.int64] | None = None,
        threads: int | None = None,
    ) -> None:
        self.threads = threads
        self.single = protocol.tie_break == "trec"
        self.order = order
        self.items = len(table.gallery_labels)
        self.euclidean = table.kind == "embeddings" and protocol.similarity == "euclidean"
        self.query: NDArray[Any] = table.query
        self.gallery: Panels | None = None
        self.scored: np.dtype[Any] = np.dtype(np.float64 if self.euclidean else table.query.dtype)
        self.made: NDArray[Any] = np.empty((0, self.items), self.scored)
        if table.kind == "scores":
            return
        self.file = table.files[0].path if table.files else "embeddings"
        self.cosine = protocol.similarity == "cosine"
        if self.cosine:
            own = np.arange(len(table.query))
            blocks = [block.T for block in self._columns(table.query, own, "query")]
            self.query = np.concatenate(blocks) if blocks else table.query
        else:
            self._check_size(table.query, table.gallery)
        indices = np.arange(self.items) if order is None else order
        columns = self._columns(table.gallery, indices, "item")
        width, kind = table.query.shape[1], table.gallery.dtype
        self.gallery = make_panels(columns, width, self.items, kind)

    def rows(self, memory: int) -> int:
        """Return the number of queries whose scores fit into `memory` bytes, from 2 to 256."""
        max_rows = max(2, min(256, memory // max(1, self.items * self.scored.itemsize)))
        return max_rows // QUERIES * QUERIES or max_rows

    def block(self, low: int, high: int) -> Scores:
        """Return the scores of the queries from `low` to `high`, (B, N), until the next block."""
        scores = self.query[low:high]
        if self.gallery is None:
            scores = scores if self.order is None else scores[:, self.order]
        else:
            # In the memory of the last block: what is new, the system brings page by page.
            if len(self.made) < high - low:
                self.made = np.empty((high - low, self.items), self.scored)
            made = self.made[: high - low]
            (negative_distances if self.euclidean else products)(
                scores, self.gallery, made, self.threads
            )
            scores = made
        if self.single:
            scores = scores.astype(np.float32, copy=False)
        contiguous: Scores = np.ascontiguousarray(scores)
        return contiguous

    def _columns(
        self, vectors: NDArray[Any], indices: NDArray[np.int64], subject: str
    ) -> Iterator[NDArray[Any]]:
        """Give the vectors at some places as columns, block by block; of length 1 for cosines."""
        for low in range(0, len(indices), _BLOCK):
            block = indices[low : low + _BLOCK]
            columns = np.ascontiguousarray(vectors[block].T)
            yield self._unit(columns, block, subject) if self.cosine else columns

    def _unit(
        self, columns: NDArray[Any], indices: NDArray[np.int64], subject: str
    ) -> NDArray[Any]:
        # By the largest component first, so that no square overflows or vanishes.
        largest = np.abs(columns).max(axis=0, initial=0.0)
        if not (largest > 0).all():
            self._refuse(
                f"{subject} {indices[np.argmin(largest > 0)]}",
                "is a vector of length 0, which has no cosine",
                "leave it out, or rank by --similarity dot or euclidean",
            )
        columns /= largest
        # Added up in order, as products are.
        squares = np.zeros(len(indices))
        for column in columns:
            squares += np.square(column, dtype=np.float64)
        columns /= np.sqrt(squares).astype(columns.dtype)
        return columns

    def _check_size(self, query: NDArray[Any], gallery: NDArray[Any]) -> None:
        made = np.float64 if self.euclidean else query.dtype
        most = float(np.finfo(np.float32 if self.single else made).max) / 8
        sizes = [float(np.abs(x).max(initial=0.0)) for x in (query, gallery)]
        factors = [max(sizes)] * 2 if self.euclidean else sizes
        if factors[0] * factors[1] * query.shape[1] > most:
            self._refuse(
                "", f"has components up to {max(sizes):g}, whose products overflow", "scale them"
            )

    def _refuse(self, location: str, message: str, hint: str) -> None:
        raise InputError(Problem(self.file, location, message, hint))
