"""Ragged lists of one batch, an entry an image, as columns; refused in the name of the image."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.errors import UsageError
from detap.spelling import near
from detap.tables.columns import Columns, Name, Names
from detap.tables.detection import Flags, Floats

BOX_FORMS = ("xyxy", "xywh", "cxcywh")
FLAGS = ("crowd", "difficult", "ignore", "group_of")
_FRACTION = 2.0
"""A box in fractions of its image may reach beyond the border, hardly by its whole width."""

Ragged = Sequence[Any]
"""An entry for each image of the batch: an array, a tensor, or a list of that image's values."""


class Rows(NamedTuple):
    """The rows of a batch in one table, image by image.

    Attributes
    ----------
    counts : (B,) int
        How many each image has.
    columns : dict of str to (n, ...) array
        What each row has, by name; all but its class.
    labels : Names
        What the rows' classes are called.
    """

    counts: NDArray[np.intp]
    columns: dict[str, NDArray[Any]]
    labels: Names


class Batch(Columns):
    """Reads the ragged columns of one table.

    Parameters
    ----------
    table : str
        What errors call it.
    images : sequence of int or str
        What its B images are called.
    """

    def __init__(self, table: str, images: Sequence[Name]) -> None:
        super().__init__(table)
        self.images = images
        self.counts = np.zeros(len(images), np.intp)

    def place(self, row: int) -> str:
        """Return the image of a row, and its place there."""
        ends = np.cumsum(self.counts)
        at = int(np.searchsorted(ends, row, side="right"))
        return f"image {self.images[at]!r}, row {row - int(ends[at] - self.counts[at])}"

    def boxes(self, parts: Ragged, form: str, sizes: object) -> Floats:
        """Return boxes, (n, 4) float64: corners of ``xyxy``, else x, y, width and height.

        Parameters
        ----------
        parts : sequence of (n, 4) arrays
            The first column to be read: it says how many rows an image has.
        form : {"xyxy", "xywh", "cxcywh"}
        sizes : (B, 2) array or None
            Width and height of each image in pixels, where boxes are fractions of them.
        """
        arrays = self._arrays("boxes", parts)
        self.counts = np.array([len(array) for array in arrays], np.intp)
        for at, array in enumerate(arrays):
            if len(array) and array.shape[1:] != (4,):
                self._refuse_shape("boxes", at, array, f"({len(array)}, 4)")
        column = _joined(arrays, (0, 4))
        boxes = self.numbers("boxes", column, (len(column), 4))
        self._check_finite("boxes", boxes)
        if sizes is not None:
            boxes *= self._scale(boxes, sizes)
        if form == "cxcywh":
            boxes[:, :2] -= boxes[:, 2:] / 2
        return boxes

    def values(self, what: str, parts: Ragged) -> Floats:
        """Return a column of finite numbers, (n,) float64."""
        column = self._column(what, parts)
        values = self.numbers(what, column, (len(column),))
        self._check_finite(what, values)
        return values

    def marks(self, what: str, parts: Ragged) -> Flags:
        """Return a column of flags, (n,) bool."""
        column = self._column(what, parts)
        return self.flags(what, column, len(column))

    def labels(self, parts: Ragged) -> Names:
        """Return what the rows' classes are called."""
        return self.numbered("labels", self._column("labels", parts))

    def _check_finite(self, what: str, values: Floats) -> None:
        finite = np.isfinite(values)
        if not finite.all():
            wrong = ~finite if values.ndim == 1 else np.asarray(~finite.all(axis=1))
            self.refuse(what, values, wrong, "finite")

    def _column(self, what: str, parts: Ragged) -> NDArray[Any]:
        arrays = self._arrays(what, parts)
        for at, (array, due) in enumerate(zip(arrays, self.counts.tolist(), strict=True)):
            if len(array) != due:
                self.fail(
                    f"{due} boxes and {len(array)} {what}",
                    "give one for each box",
                    f"image {self.images[at]!r}",
                )
            if due and array.ndim != 1:
                self._refuse_shape(what, at, array, f"({due},)")
        return _joined(arrays, (0,))

    def _arrays(self, what: str, parts: object) -> list[NDArray[Any]]:
        if not isinstance(parts, Sized):
            kind = type(parts).__name__
            self.fail(f"{what} is a {kind}", "give a list, an entry for each image of the batch")
        if len(parts) != len(self.images):
            self.fail(
                f"{what} has {len(parts)} entries for {len(self.images)} images",
                "give one for each image, an empty one where it has none",
            )
        entries: Iterable[Any] = parts  # type: ignore[assignment]  # of a length, as was seen
        return [self._taken(what, as_array(part)) for part in entries]

    def _taken(self, what: str, values: Any) -> NDArray[Any]:
        # What is an array is one; only masks, lists and the like need a closer look.
        if type(values) is np.ndarray and values.ndim:
            return values
        return super()._taken(what, values)

    def _refuse_shape(self, what: str, at: int, array: NDArray[Any], due: str) -> None:
        place = f"image {self.images[at]!r}"
        self.fail(f"{what} has the shape {array.shape}", f"give {due}", place)

    def _scale(self, boxes: Floats, sizes: object) -> Floats:
        """Return what fractions are multiplied with, (n, 4)."""
        given = self.numbers("sizes", as_array(sizes), (len(self.images), 2))
        wrong = ~(np.isfinite(given) & (given > 0)).all(axis=1)
        if wrong.any():
            at = int(np.argmax(wrong))
            place = f"image {self.images[at]!r}"
            self.fail(f"sizes is {given[at].tolist()}", "give width and height in pixels", place)
        beyond = np.asarray((np.abs(boxes) > _FRACTION).any(axis=1))
        if 2 * np.count_nonzero(beyond) > len(boxes):
            due = "a fraction of the image's size where sizes are given; leave sizes out for pixels"
            self.refuse("boxes", boxes, beyond, due)
        scale: Floats = np.repeat(np.tile(given, 2), self.counts, axis=0)
        return scale


def as_array(values: Any) -> Any:
    """Return what an array library holds as a numpy array, and anything else as it is.

    A tensor of PyTorch is taken from its device and its graph; bfloat16, which numpy does not have,
    becomes float32, which holds each of its values. PyTorch is not imported for that. What offers
    DLPack alone is taken through it.
    """
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        return (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    if not hasattr(values, "__array__") and hasattr(values, "__dlpack__"):
        return np.from_dlpack(values)
    return values


def detection_rows(
    images: Sequence[Name],
    boxes: Ragged,
    scores: Ragged,
    labels: Ragged,
    *,
    form: str,
    sizes: object,
) -> Rows:
    """Return the detections of a batch."""
    batch = Batch("detections", images)
    columns = {"boxes": batch.boxes(boxes, form, sizes), "score": batch.values("scores", scores)}
    return Rows(batch.counts, columns, batch.labels(labels))


def truth_rows(
    images: Sequence[Name], truth: Mapping[str, Any], *, form: str, sizes: object
) -> Rows:
    """Return the ground truths of a batch; an area that is not given is NaN."""
    known = ("boxes", "labels", "area", *FLAGS)
    for name in truth:
        if name not in known:
            hint = near(str(name), known)
            told = f"truth has {name!r}; it can have {', '.join(known)}"
            raise UsageError("; ".join(filter(None, (told, hint))))
    for name in ("boxes", "labels"):
        if name not in truth:
            raise UsageError(f"truth has no {name!r}: give a list of arrays, one for each image")
    batch = Batch("ground truth", images)
    columns: dict[str, NDArray[Any]] = {"boxes": batch.boxes(truth["boxes"], form, sizes)}
    rows = len(columns["boxes"])
    if "area" in truth:
        columns["area"] = batch.values("area", truth["area"])
        batch.refuse("area", columns["area"], columns["area"] < 0, ">= 0")
    else:
        columns["area"] = np.full(rows, np.nan)
    for flag in FLAGS:
        given = truth.get(flag)
        columns[flag] = np.zeros(rows, np.bool_) if given is None else batch.marks(flag, given)
    return Rows(batch.counts, columns, batch.labels(truth["labels"]))


def _joined(arrays: Sequence[NDArray[Any]], empty: tuple[int, ...]) -> NDArray[Any]:
    """Return arrays one after the other; those without rows, of whatever type, do not count."""
    filled = [array for array in arrays if len(array)]
    return np.concatenate(filled) if filled else np.zeros(empty)
