"""Equality to the last bit; undefined equals undefined."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from detap.evaluation.results import Result


def assert_same_bits(ours: ArrayLike, theirs: ArrayLike, what: str) -> None:
    """Fail unless shapes and values are equal to the last bit, NaN equal to NaN."""
    left, right = np.atleast_1d(ours), np.atleast_1d(theirs)
    assert left.shape == right.shape, f"{what}: shape {left.shape}, not {right.shape}"
    if left.dtype.kind == "f" or right.dtype.kind == "f":
        different = ~((left == right) | (np.isnan(left) & np.isnan(right)))
    else:
        different = left != right
    if different.any():
        where = tuple(int(index[0]) for index in np.nonzero(different))
        raise AssertionError(
            f"{what}: {int(different.sum())} of {different.size} differ, the first at {where}: "
            f"{left[where]!r}, not {right[where]!r}"
        )


def assert_same_numbers(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Fail unless names and values are equal to the last bit."""
    assert list(ours) == list(theirs)
    assert_same_bits(list(ours.values()), list(theirs.values()), ", ".join(ours))


def assert_same_arrays(result: Result, evaluator: Any) -> None:
    """Compare precision and recall with those of a pycocotools-like evaluator."""
    for name, ours in (("precision", result.full_precision()), ("recall", result.recall)):
        theirs = evaluator.eval[name]  # that of lvis has no axis of max dets
        defined = np.where(theirs == -1, np.nan, theirs)
        assert_same_bits(ours.reshape(theirs.shape), defined, name)


def assert_numbers(result: Result, expected: dict[str, float | None]) -> None:
    """Fail unless the metrics of the summary have these values; None is undefined."""
    for name, value in expected.items():
        ours = result.summary[name]
        assert np.isnan(ours) if value is None else ours == value, name


class Cell(NamedTuple):
    """A reference's matches of one image and class, by descending score."""

    image: int
    label: int
    area: int
    matches: NDArray[Any]  # (T, N): the id of the annotation, 0 of none
    ignored: NDArray[Any]  # (T, N)


def assert_same_matches(result: Result, cells: Iterable[Cell], annotations: list[int]) -> None:
    """Compare the match of each detection, and whether it is ignored.

    `result` keeps its matches; `annotations` are the ids of its ground truths.
    """
    matches = result.matches
    assert matches is not None
    ours: dict[tuple[Any, Any, int], list[Any]] = {}
    order = np.lexsort((-result.detections.score, result.detections.image))
    for a in range(len(result.protocol.area_ranges)):
        for row in order[matches.counted[order]].tolist():
            image = result.images[result.detections.image[row]]
            label = result.class_ids[result.detections.label[row]]
            taken = matches.ground_truth[a, :, row].tolist()
            ids = [annotations[truth] if truth >= 0 else 0 for truth in taken]
            ignored = matches.ignored[a, :, row].tolist()
            ours.setdefault((image, label, a), []).append((ids, ignored))
    theirs = {}
    for cell in cells:
        columns = zip(cell.matches.T.tolist(), cell.ignored.T.tolist(), strict=True)
        rows = [([int(name) for name in names], flags) for names, flags in columns]
        if rows:
            theirs[cell.image, cell.label, cell.area] = rows
    assert ours == theirs


def cells_of_coco(evaluator: Any) -> Iterable[Cell]:
    """Yield the evalImgs of a pycocotools-like evaluator: image, class and area range."""
    ranges = {tuple(band): a for a, band in enumerate(evaluator.params.areaRng)}
    for each in evaluator.evalImgs:
        if each is not None:
            area = ranges[tuple(each["aRng"])]
            places = each["image_id"], each["category_id"], area
            yield Cell(*places, each["dtMatches"], each["dtIgnore"])
