"""The images of the page and their boxes.

An entry has an image and the reason to show it: a worst image, a confident error, a possible label
error or a regression. Each image is stored once.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.analysis.confusion import confusion
from detap.analysis.errors import TYPES, Errors
from detap.analysis.examples import REASONS, confident_errors, label_errors, worst_images
from detap.analysis.image_results import ImageResults, results_of_images
from detap.analysis.match_results import MatchResults
from detap.analysis.operating import sweeps
from detap.escaping import escape
from detap.report.page.svg_shapes import svg_paths

MOST_IMAGES = 100
_MOST_OF_A_LIST = 24
_MOST_LABEL_ERRORS = 8
_MOST_PAIRS = 30
_MOST_BOXES = 50
_RANKED_FOR_CLASSES = 4000


class Changed(NamedTuple):
    """Images with more errors than an earlier detector, the worst first.

    Attributes
    ----------
    image, before, after : (n,) int64
        Index, and false positives and negatives of each detector at its best F1.
    """

    image: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]


def changed_images(results: MatchResults, baseline: MatchResults) -> Changed:
    """Return the images that got worse."""
    after, before = _wrong_by_image(results), _wrong_by_image(baseline)
    order = np.argsort(before - after, kind="stable")[:_MOST_OF_A_LIST]
    order = order[after[order] > before[order]]
    return Changed(order, before[order], after[order])


def _wrong_by_image(results: MatchResults) -> NDArray[np.int64]:
    best = sweeps(results).best.overall.score
    worst = worst_images(results, score=None if np.isnan(best) else best, max_count=results.images)
    wrong = np.zeros(results.images, np.int64)
    wrong[worst.image] = worst.false_positives + worst.false_negatives
    return wrong


def gallery(
    results: MatchResults, types: Errors, best: float, changed: Changed | None
) -> dict[str, Any]:
    """Return the images and the entries of the gallery.

    Parameters
    ----------
    results : MatchResults
    types : Errors
    best : float
        The score of the best F1, the threshold of the images; NaN if there is none.
    changed : Changed or None
        Images with more errors than an earlier detector.
    """
    score = None if np.isnan(best) else best
    reasons = list(_entries(results, types, score, changed))
    chosen = list(dict.fromkeys(int(entry["image"]) for entry in reasons))[:MOST_IMAGES]
    entries = [entry for entry in reasons if entry["image"] in chosen]
    focal = {entry["detection"] for entry in entries}
    image_results = results_of_images(
        results, chosen, types, max_detections=_MOST_BOXES, include=focal
    )
    counts = np.bincount(results.boxes[0].image, minlength=results.images)
    index_by_row = {}
    images = []
    for number, result in zip(chosen, image_results, strict=True):
        record, index_by_row[number] = _image(results, number, result)
        images.append(record | {"omitted": int(counts[number]) - len(result.detections)})
    for entry in entries:
        detections, ground_truths = index_by_row[entry["image"]]
        entry["image"] = chosen.index(entry["image"])
        entry["detection"] = detections.get(entry["detection"], -1)
        entry["truth"] = ground_truths.get(entry["truth"], -1)
    return {"score": score, "images": images, "entries": entries}


def _entries(
    results: MatchResults, types: Errors, score: float | None, changed: Changed | None
) -> Iterator[dict[str, Any]]:
    """Yield the entries, the most important lists first."""
    worst = worst_images(results, score=score, max_count=_MOST_OF_A_LIST)
    columns = (worst.image, worst.false_positives, worst.false_negatives)
    for image, wrong, lost in zip(*(column.tolist() for column in columns), strict=True):
        yield _entry("worst", image, false_positives=wrong, false_negatives=lost)
    if changed is not None:
        for image, before, after in zip(*(column.tolist() for column in changed), strict=True):
            yield _entry("changed", image, before=before, now=after)
    yield from _label_errors(results, types)
    detections, ground_truths = results.boxes
    for row in _confident_errors(results, types, score):
        target = int(types.target[row])
        yield _entry(
            "errors",
            int(detections.image[row]),
            detection=row,
            truth=target,
            kind=TYPES[types.kind[row]] if types.kind[row] >= 0 else "true-positive",
            score=float(detections.score[row]),
            label=int(detections.label[row]),
            truth_label=int(ground_truths.label[target]) if target >= 0 else None,
        )


def _entry(name: str, image: int, **values: Any) -> dict[str, Any]:
    return {"list": name, "image": image, "detection": -1, "truth": -1, **values}


def _label_errors(results: MatchResults, types: Errors) -> Iterator[dict[str, Any]]:
    suspected = label_errors(results, types, max_count=_MOST_LABEL_ERRORS)
    detections, ground_truths = results.boxes
    columns = (suspected.reason, suspected.detection, suspected.ground_truth, suspected.weight)
    for reason, row, truth, weight in zip(*(c.tolist() for c in columns), strict=True):
        table, index = (detections, row) if row >= 0 else (ground_truths, truth)
        yield _entry(
            "label_errors",
            int(table.image[index]),
            detection=row,
            truth=truth,
            reason=REASONS[reason],
            weight=weight,
            label=int(table.label[index]),
            truth_label=int(ground_truths.label[truth]) if truth >= 0 else None,
        )


def _confident_errors(results: MatchResults, types: Errors, score: float | None) -> list[int]:
    """Return the rows of confident errors: overall, by class and type, by confusion."""
    rows: dict[int, None] = dict.fromkeys(
        confident_errors(results, types, max_count=_MOST_OF_A_LIST).detection.tolist()
    )
    for row in _of_pairs(results, score):
        rows.setdefault(row)
    ranked = results.by_score
    ranked = ranked[results.false_positive[ranked]][:_RANKED_FOR_CLASSES]
    seen: set[tuple[int, int]] = set()
    labels, kinds = results.boxes[0].label[ranked].tolist(), types.kind[ranked].tolist()
    for row, label, kind in zip(ranked.tolist(), labels, kinds, strict=True):
        if (label, kind) not in seen:
            seen.add((label, kind))
            rows.setdefault(row)
    return list(rows)


def _of_pairs(results: MatchResults, score: float | None) -> Iterator[int]:
    """Yield the two most confident detections of each of the largest confusions."""
    matrix = confusion(results, score=score)
    detections, ground_truths = results.boxes
    both = (matrix.detection >= 0) & (matrix.ground_truth >= 0)
    pairs = matrix.detection[both], matrix.ground_truth[both]
    taken = detections.label[pairs[0]], ground_truths.label[pairs[1]]
    order = np.argsort(-detections.score[pairs[0]], kind="stable")
    for cell in matrix.largest(_MOST_PAIRS):
        of_cell = (taken[0][order] == cell.prediction) & (taken[1][order] == cell.ground_truth)
        yield from pairs[0][order][of_cell][:2].tolist()


_IndexByRow = tuple[dict[int, int], dict[int, int]]


def _image(
    results: MatchResults, number: int, image_results: ImageResults
) -> tuple[dict[str, Any], _IndexByRow]:
    """Return the boxes of an image, and their indices by table row."""
    detections, ground_truths = results.boxes
    detection_index = {result.row: n for n, result in enumerate(image_results.detections)}
    truth_index = {truth.row: n for n, truth in enumerate(image_results.ground_truths)}
    record = {
        "number": number,
        "name": escape(image_results.image),
        "size": _size(results, number),
        "detections": [
            [
                result.label,
                round(result.score, 4),
                *box,
                result.result,
                truth_index.get(result.ground_truth, -1),
                round(result.similarity, 3),
            ]
            for result, box in zip(
                image_results.detections,
                _boxes(detections.corners[list(detection_index)]),
                strict=True,
            )
        ],
        "truths": [
            [truth.label, *box, truth.result, detection_index.get(truth.detection, -1)]
            for truth, box in zip(
                image_results.ground_truths,
                _boxes(ground_truths.corners[list(truth_index)]),
                strict=True,
            )
        ],
        "outlines": _outlines(results, [*detection_index], [*truth_index]),
        "picture": None,
    }
    return record, (detection_index, truth_index)


def _boxes(corners: NDArray[np.float64]) -> list[list[float]]:
    """Return left, top, width and height of each box, to a tenth of a pixel."""
    ends = np.round(corners, 1)
    width_height = np.round(np.maximum(ends[:, 2:] - ends[:, :2], 0.0), 1)
    return [
        [int(value) if value.is_integer() else value for value in box]
        for box in np.hstack([ends[:, :2], width_height]).tolist()
    ]


def _outlines(
    results: MatchResults, detections: list[int], ground_truths: list[int]
) -> dict[str, list[str]] | None:
    """Return the SVG paths of rows; None for boxes."""
    run, iou_type = results.run, results.protocol.iou_type
    detection_paths = svg_paths(iou_type, run.detections, detections)
    truth_paths = svg_paths(iou_type, run.ground_truth, ground_truths)
    if detection_paths is None or truth_paths is None:
        return None
    return {"detections": detection_paths, "truths": truth_paths}


def _size(results: MatchResults, number: int) -> list[float] | None:
    """Return the annotated width and height, or None if unknown."""
    sizes = results.run.ground_truth.image_sizes
    if sizes is None or not np.all(sizes[number] > 0):
        return None
    width, height = sizes[number].tolist()
    return [width, height]
