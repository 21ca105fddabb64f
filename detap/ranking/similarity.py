"""Similarities of queries and gallery items, computed in blocks of queries."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.core.ranking import PANEL, QUERIES, Panels, make_panels, negative_distances, products
from detap.io.stream import refuse
from detap.protocols.ranking import Retrieval
from detap.tables.ranking import Gallery

Scores = NDArray[np.float32] | NDArray[np.float64]

_BLOCK = 128 * PANEL
"""Number of vectors that are normalized and transposed at a time."""


class Similarities:
    """Scores of gallery items for queries; higher is better."""

    # Cosines and dot products are summed in float64, then rounded to the type of the embeddings.
    # Negative squared Euclidean distances are summed in float64 from differences: the shorter
    # formula with dot products loses digits far from the origin. Equal items have equal scores.

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
        self.buffer: NDArray[Any] = np.empty((0, self.items), self.scored)
        if table.kind == "scores":
            return
        self.file = table.files[0].path if table.files else "embeddings"
        self.cosine = protocol.similarity == "cosine"
        if self.cosine:
            indices = np.arange(len(table.query))
            blocks = [block.T for block in self._columns(table.query, indices, "query")]
            self.query = np.concatenate(blocks) if blocks else table.query
        else:
            self._check_size(table.query, table.gallery)
        indices = np.arange(self.items) if order is None else order
        columns = self._columns(table.gallery, indices, "item")
        width, kind = table.query.shape[1], table.gallery.dtype
        self.gallery = make_panels(columns, width, self.items, kind)

    def rows(self, memory: int) -> int:
        """Return the number of queries whose scores fit into `memory` bytes, 2 to 256."""
        max_rows = max(2, min(256, memory // max(1, self.items * self.scored.itemsize)))
        return max_rows // QUERIES * QUERIES or max_rows

    def block(self, low: int, high: int) -> Scores:
        """Return the scores of queries ``low:high``, (B, N)."""
        scores = self.query[low:high]
        if self.gallery is None:
            scores = scores if self.order is None else scores[:, self.order]
        else:
            # Reuse the buffer: new memory costs page faults.
            if len(self.buffer) < high - low:
                self.buffer = np.empty((high - low, self.items), self.scored)
            out = self.buffer[: high - low]
            (negative_distances if self.euclidean else products)(
                scores, self.gallery, out, self.threads
            )
            scores = out
        if self.single:
            scores = scores.astype(np.float32, copy=False)
        contiguous: Scores = np.ascontiguousarray(scores)
        return contiguous

    def _columns(
        self, vectors: NDArray[Any], indices: NDArray[np.int64], subject: str
    ) -> Iterator[NDArray[Any]]:
        """Yield the vectors at `indices` as columns, in blocks; normalized for cosines."""
        for low in range(0, len(indices), _BLOCK):
            block = indices[low : low + _BLOCK]
            columns = np.ascontiguousarray(vectors[block].T)
            yield self._unit(columns, block, subject) if self.cosine else columns

    def _unit(
        self, columns: NDArray[Any], indices: NDArray[np.int64], subject: str
    ) -> NDArray[Any]:
        """Normalize columns in place."""
        # Divide by the largest component first, so that squares neither overflow nor underflow.
        largest = np.abs(columns).max(axis=0, initial=0.0)
        if not (largest > 0).all():
            message, where = "vector of length 0 has no cosine", indices[np.argmin(largest > 0)]
            hint = "remove it, or use --similarity dot or euclidean"
            refuse(self.file, message, hint, f"{subject} {where}")
        columns /= largest
        # Sum in the order of components, as for products.
        squares = np.zeros(len(indices))
        for column in columns:
            squares += np.square(column, dtype=np.float64)
        columns /= np.sqrt(squares).astype(columns.dtype)
        return columns

    def _check_size(self, query: NDArray[Any], gallery: NDArray[Any]) -> None:
        """Raise InputError if products or squares could overflow."""
        scored = np.float64 if self.euclidean else query.dtype
        limit = float(np.finfo(np.float32 if self.single else scored).max) / 8
        sizes = [float(np.abs(x).max(initial=0.0)) for x in (query, gallery)]
        factors = [max(sizes)] * 2 if self.euclidean else sizes
        if factors[0] * factors[1] * query.shape[1] > limit:
            message = f"products of components up to {max(sizes):g} overflow"
            refuse(self.file, message, "divide all vectors by the same number")
