"""The images of a page and the boxes drawn on them.

An entry names an image and the reason to show it: a worst image, a confident error, a possible
label error or a regression. Each image is stored once.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.analysis.confusion import confusion
from detap.analysis.errors import TYPES, Errors
from detap.analysis.examples import REASONS, confident_mistakes, label_errors, worst_images
from detap.analysis.image_results import ImageResults, results_of_images
from detap.analysis.match_results import MatchResults
from detap.analysis.operating import sweeps
from detap.escaping import escape
from detap.report.page.svg_shapes import outlines

MOST_IMAGES = 100
_MOST_OF_A_LIST = 24
_MOST_LABEL_ERRORS = 8
_MOST_PAIRS = 30
_MOST_BOXES = 50
_RANKED_FOR_CLASSES = 4000


class Changed(NamedTuple):
    """Images on which a detector makes more mistakes than an earlier one, the worst first.

    Attributes
    ----------
    image, then, now : (n,) int64
        The image's index, and its false positives and negatives, each detector at its best F1.
    """

    image: NDArray[np.int64]
    then: NDArray[np.int64]
    now: NDArray[np.int64]


def changed_images(outcome: MatchResults, before: MatchResults) -> Changed:
    """Return the images that got worse."""
    now, then = _wrong_by_image(outcome), _wrong_by_image(before)
    order = np.argsort(then - now, kind="stable")[:_MOST_OF_A_LIST]
    order = order[now[order] > then[order]]
    return Changed(order, then[order], now[order])


def _wrong_by_image(outcome: MatchResults) -> NDArray[np.int64]:
    best = sweeps(outcome).best.overall.score
    found = worst_images(outcome, score=None if np.isnan(best) else best, most=outcome.images)
    wrong = np.zeros(outcome.images, np.int64)
    wrong[found.image] = found.false_positives + found.false_negatives
    return wrong


def gallery(
    outcome: MatchResults, types: Errors, best: float, changed: Changed | None
) -> dict[str, Any]:
    """Return the images and the entries of the gallery.

    Parameters
    ----------
    outcome : MatchResults
    types : Errors
        Of this outcome.
    best : float
        The score of the largest F1, at which images are judged; NaN where there is none.
    changed : Changed or None
        Images that got worse than an earlier detector's.
    """
    score = None if np.isnan(best) else best
    reasons = list(_entries(outcome, types, score, changed))
    chosen = list(dict.fromkeys(int(entry["image"]) for entry in reasons))[:MOST_IMAGES]
    entries = [entry for entry in reasons if entry["image"] in chosen]
    focal = {entry["detection"] for entry in entries}
    judged = results_of_images(outcome, chosen, types, most=_MOST_BOXES, always=focal)
    counts = np.bincount(outcome.boxes[0].image, minlength=outcome.images)
    places = {}
    images = []
    for number, found in zip(chosen, judged, strict=True):
        record, places[number] = _image(outcome, number, found)
        images.append(record | {"omitted": int(counts[number]) - len(found.detections)})
    for entry in entries:
        detections, truths = places[entry["image"]]
        entry["image"] = chosen.index(entry["image"])
        entry["detection"] = detections.get(entry["detection"], -1)
        entry["truth"] = truths.get(entry["truth"], -1)
    return {"score": score, "images": images, "entries": entries}


def _entries(
    outcome: MatchResults, types: Errors, score: float | None, changed: Changed | None
) -> Iterator[dict[str, Any]]:
    """Yield the reasons to look, the most important lists first."""
    worst = worst_images(outcome, score=score, most=_MOST_OF_A_LIST)
    columns = (worst.image, worst.false_positives, worst.false_negatives)
    for image, wrong, lost in zip(*(column.tolist() for column in columns), strict=True):
        yield _entry("worst", image, false_positives=wrong, false_negatives=lost)
    if changed is not None:
        for image, then, now in zip(*(column.tolist() for column in changed), strict=True):
            yield _entry("changed", image, before=then, now=now)
    yield from _label_errors(outcome, types)
    detections, truths = outcome.boxes
    for row in _confident_errors(outcome, types, score):
        target = int(types.target[row])
        yield _entry(
            "errors",
            int(detections.image[row]),
            detection=row,
            truth=target,
            kind=TYPES[types.kind[row]] if types.kind[row] >= 0 else "true-positive",
            score=float(detections.score[row]),
            label=int(detections.label[row]),
            truth_label=int(truths.label[target]) if target >= 0 else None,
        )


def _entry(which: str, image: int, **more: Any) -> dict[str, Any]:
    return {"list": which, "image": image, "detection": -1, "truth": -1, **more}


def _label_errors(outcome: MatchResults, types: Errors) -> Iterator[dict[str, Any]]:
    found = label_errors(outcome, types, most=_MOST_LABEL_ERRORS)
    detections, truths = outcome.boxes
    columns = (found.reason, found.detection, found.ground_truth, found.weight)
    for reason, row, truth, weight in zip(*(c.tolist() for c in columns), strict=True):
        table, place = (detections, row) if row >= 0 else (truths, truth)
        yield _entry(
            "label_errors",
            int(table.image[place]),
            detection=row,
            truth=truth,
            reason=REASONS[reason],
            weight=weight,
            label=int(table.label[place]),
            truth_label=int(truths.label[truth]) if truth >= 0 else None,
        )


def _confident_errors(outcome: MatchResults, types: Errors, score: float | None) -> list[int]:
    """Return the rows of confident mistakes: overall, of each class and type, of each confusion."""
    rows: dict[int, None] = dict.fromkeys(
        confident_mistakes(outcome, types, most=_MOST_OF_A_LIST).detection.tolist()
    )
    for row in _of_pairs(outcome, score):
        rows.setdefault(row)
    ranked = outcome.by_score
    ranked = ranked[outcome.false[ranked]][:_RANKED_FOR_CLASSES]
    seen: set[tuple[int, int]] = set()
    labels, kinds = outcome.boxes[0].label[ranked].tolist(), types.kind[ranked].tolist()
    for row, label, kind in zip(ranked.tolist(), labels, kinds, strict=True):
        if (label, kind) not in seen:
            seen.add((label, kind))
            rows.setdefault(row)
    return list(rows)


def _of_pairs(outcome: MatchResults, score: float | None) -> Iterator[int]:
    """Yield two detections, the most confident, of each of the largest confusions."""
    found = confusion(outcome, score=score)
    detections, truths = outcome.boxes
    both = (found.detection >= 0) & (found.ground_truth >= 0)
    pairs = found.detection[both], found.ground_truth[both]
    taken = detections.label[pairs[0]], truths.label[pairs[1]]
    order = np.argsort(-detections.score[pairs[0]], kind="stable")
    for cell in found.largest(_MOST_PAIRS):
        of_cell = (taken[0][order] == cell.prediction) & (taken[1][order] == cell.ground_truth)
        yield from pairs[0][order][of_cell][:2].tolist()


_Places = tuple[dict[int, int], dict[int, int]]


def _image(
    outcome: MatchResults, number: int, judged: ImageResults
) -> tuple[dict[str, Any], _Places]:
    """Return what is drawn on an image, and where in it each row of the tables is."""
    detections, truths = outcome.boxes
    place_of = {found.row: place for place, found in enumerate(judged.detections)}
    truth_of = {truth.row: place for place, truth in enumerate(judged.ground_truths)}
    record = {
        "number": number,
        "name": escape(judged.image),
        "size": _size(outcome, number),
        "detections": [
            [
                found.label,
                round(found.score, 4),
                *box,
                found.result,
                truth_of.get(found.ground_truth, -1),
                round(found.similarity, 3),
            ]
            for found, box in zip(
                judged.detections, _boxes(detections.corners[list(place_of)]), strict=True
            )
        ],
        "truths": [
            [truth.label, *box, truth.result, place_of.get(truth.detection, -1)]
            for truth, box in zip(
                judged.ground_truths, _boxes(truths.corners[list(truth_of)]), strict=True
            )
        ],
        "outlines": _outlines(outcome, [*place_of], [*truth_of]),
        "picture": None,
    }
    return record, (place_of, truth_of)


def _boxes(corners: NDArray[np.float64]) -> list[list[float]]:
    """Return left, top, width and height of each, to a tenth of a pixel."""
    ends = np.round(corners, 1)
    sides = np.round(np.maximum(ends[:, 2:] - ends[:, :2], 0.0), 1)
    return [
        [int(value) if value.is_integer() else value for value in box]
        for box in np.hstack([ends[:, :2], sides]).tolist()
    ]


def _outlines(
    outcome: MatchResults, detections: list[int], truths: list[int]
) -> dict[str, list[str]] | None:
    """Return the shapes of rows, where they are not boxes."""
    run, overlap = outcome.run, outcome.protocol.iou_type
    claims = outlines(overlap, run.detections, detections)
    objects = outlines(overlap, run.ground_truth, truths)
    if claims is None or objects is None:
        return None
    return {"detections": claims, "truths": objects}


def _size(outcome: MatchResults, number: int) -> list[float] | None:
    """Return width and height as annotated, or None where no file says them."""
    sizes = outcome.run.ground_truth.image_sizes
    if sizes is None or not np.all(sizes[number] > 0):
        return None
    width, height = sizes[number].tolist()
    return [width, height]
