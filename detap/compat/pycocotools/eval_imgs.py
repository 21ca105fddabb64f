"""What pycocotools keeps of each image, from what the core matched: `evalImgs` and `ious`.

Axes: T thresholds, K classes, A area ranges, I images, N detections and G ground truths in all; of
one image and class there are D and G.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools.fast_path import Evaluated, matched
from detap.core.matching import Boxes, Pairs
from detap.core.overlap import overlaps

Rows = NDArray[np.intp]
Record = dict[str, Any]


class _Groups:
    """Rows by class, image and then by a key, and where each class and image has its own.

    Attributes
    ----------
    rows : (n,) int
        Rows in this order.
    start : (K * I + 1,) int
        Where those of each class and image begin.
    """

    def __init__(self, boxes: Boxes, rows: Rows, key: NDArray[Any], shape: tuple[int, int]) -> None:
        classes, images = shape
        group = boxes.label[rows].astype(np.int64) * images + boxes.image[rows]
        order = np.lexsort((key[rows], group))
        self.rows = rows[order]
        self.start = np.searchsorted(group[order], np.arange(classes * images + 1))

    def of(self, group: int) -> slice:
        """Return where in `rows` those of a group are."""
        return slice(self.start[group], self.start[group + 1])


def _ranked(evaluated: Evaluated) -> _Groups:
    """Return the detections within the largest limit, of each class and image by falling score."""
    claims, most = evaluated.claims.boxes, evaluated.rules.max_dets[-1]
    assert most is not None
    groups = _Groups(claims, np.arange(len(claims.score)), -claims.score, evaluated.shape)
    place = np.arange(len(groups.rows)) - np.repeat(groups.start[:-1], np.diff(groups.start))
    return _Groups(claims, groups.rows[place < most], -claims.score, evaluated.shape)


def images(evaluated: Evaluated) -> list[Record | None]:
    """Return ``COCOeval.evalImgs``: K * A * I entries, None where there is no box."""
    params, match_table = evaluated.params, matched(evaluated)
    claims = _ranked(evaluated)
    made: list[Record | None] = [None] * (np.prod(evaluated.shape).item() * len(params.areaRng))
    truths = np.split(match_table.matched_gt, len(params.areaRng))
    for a, truth in enumerate(truths):
        for group, entry in _of_area(evaluated, claims, truth[:, claims.rows], a):
            label, image = divmod(group, evaluated.shape[1])
            made[(label * len(params.areaRng) + a) * evaluated.shape[1] + image] = entry
    return made


def _of_area(
    evaluated: Evaluated, claims: _Groups, truth: NDArray[np.int32], a: int
) -> Iterator[tuple[int, Record]]:
    """Yield the entries of an area range, each with the number of its class and image.

    Parameters
    ----------
    truth : (T, n) int32
        The ground truth that each of the ranked detections matched, or -1.
    """
    params, truths = evaluated.params, evaluated.truths
    low, high = evaluated.rules.area_ranges[a]
    ignored = truths.ignored | (truths.boxes.area < low) | (truths.boxes.area > high)
    rest = _Groups(truths.boxes, np.arange(len(ignored)), ignored, evaluated.shape)
    area = evaluated.claims.boxes.area[claims.rows]
    outside = (area < low) | (area > high)
    ids, rows = evaluated.claims.ids, evaluated.claims.rows[claims.rows]
    claim_ids = [ids[row] for row in rows.tolist()]
    truth_ids = truths.ids[rest.rows].tolist()
    scores = [evaluated.scores[row] for row in claims.rows.tolist()]
    flags = ignored[rest.rows].astype(np.int64)
    place = np.empty(len(ignored) + 1, np.intp)  # the last is that of no ground truth
    place[rest.rows], place[-1] = np.arange(len(ignored)), len(ignored)
    found = place[truth]
    matches = np.array([*truth_ids, 0], np.float64)[found]
    excused = np.append(ignored[rest.rows], False)[found] | ((matches == 0) & outside)
    taken = np.zeros((len(truth), len(ignored) + 1))
    for t, of_claims in enumerate(found):
        taken[t, of_claims] = claim_ids  # of several that match a crowd the last stays
    for group in np.flatnonzero(np.diff(claims.start) + np.diff(rest.start)).tolist():
        of, by = claims.of(group), rest.of(group)
        label, image = divmod(group, evaluated.shape[1])
        yield (
            group,
            {
                "image_id": params.imgIds[image],
                "category_id": params.catIds[label] if params.useCats else -1,
                "aRng": params.areaRng[a],
                "maxDet": params.maxDets[-1],
                "dtIds": claim_ids[of],
                "gtIds": truth_ids[by],
                "dtMatches": matches[:, of].copy(),
                "gtMatches": taken[:, by].copy(),
                "dtScores": scores[of],
                "gtIgnore": flags[by].copy() if truth_ids[by] else np.array([]),
                "dtIgnore": excused[:, of].copy(),
            },
        )


def overlaps_by_image(evaluated: Evaluated) -> dict[tuple[Any, Any], Any]:
    """Return ``COCOeval.ious``: the overlaps (D, G) by image id and category id.

    An empty list stands where there is no detection or no ground truth.
    """
    params, count = evaluated.params, evaluated.shape[1]
    names = params.catIds if params.useCats else [-1]
    ranked = _ranked(evaluated)
    order = np.arange(len(evaluated.truths.ignored))
    rest = _Groups(evaluated.truths.boxes, order, np.zeros(len(order)), evaluated.shape)
    pairs = evaluated.overlaps()
    made: dict[tuple[Any, Any], Any] = {}
    for image, image_id in enumerate(params.imgIds):
        for label, category_id in enumerate(names):
            group = label * count + image
            of, by = ranked.rows[ranked.of(group)], rest.rows[rest.of(group)]
            made[image_id, category_id] = (
                []
                if len(of) == 0 or len(by) == 0
                else _of_boxes(evaluated, of, by)
                if pairs is None
                else _of_pairs(pairs, of, by)
            )
    return made


def _of_boxes(evaluated: Evaluated, of: Rows, by: Rows) -> NDArray[np.float64]:
    truths, claims = evaluated.truths, evaluated.claims.boxes
    return np.asfortranarray(
        overlaps(
            claims.corners[of],
            truths.boxes.corners[by],
            detection_areas=claims.overlap_area[of],
            truth_areas=truths.boxes.overlap_area[by],
            crowd=truths.crowd[by],
        )
    )


def _of_pairs(pairs: Pairs, of: Rows, by: Rows) -> NDArray[np.float64]:
    """Return the overlaps of detections with all ground truths of their image and class."""
    found = np.zeros((len(of), len(by)), order="F")
    for place, row in enumerate(of.tolist()):
        listed = slice(pairs.start[row], pairs.start[row + 1])
        found[place, np.searchsorted(by, pairs.truth[listed])] = pairs.similarity[listed]
    return found
