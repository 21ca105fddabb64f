"""The Jaccard index by trying every matching of each image.

Source: Chu et al., Detection in Crowded Scenes, CVPR 2020; JIToolkits of CrowdDet.
"""

from itertools import product
from math import nan

from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth
from tests.oracle.overlap import Box, overlap
from tests.oracle.score import _OneClass, counted_detections, with_area

SCORES = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
SAME = 1e-9

Bounds = tuple[float, float]


def jaccard_index(
    truth: GroundTruth, detections: Detections, protocol: Protocol, label: int, threshold: int
) -> Bounds:
    """Return bounds of the index of a class: several matchings may have the largest total IoU."""
    detections, truth = counted_detections(detections, protocol), with_area(truth, protocol)
    one = _OneClass(truth, detections, protocol, label, protocol.area_ranges[0])
    if not one.positives:
        return nan, nan
    max_dets = protocol.max_dets[-1]
    rows = [row for row in one.ranked if max_dets is None or one.places[row] < max_dets]
    means = []
    for score in SCORES:
        above = [row for row in rows if detections.score[row] > score]
        images = [_image(one, above, image, threshold) for image in range(len(truth.images))]
        known = [bounds for bounds in images if bounds is not None]
        if known:
            means.append([sum(side) / len(known) for side in zip(*known, strict=True)])
    if not means:
        return nan, nan
    return max(low for low, _ in means), max(high for _, high in means)


def _image(one: _OneClass, above: list[int], image: int, threshold: int) -> Bounds | None:
    """Return bounds of the index of an image; None if nothing is left of it."""
    rows = [row for row in above if one.detections.image[row] == image]
    all_objects = [row for row in one.truth_rows if one.truth.image[row] == image]
    objects = [row for row in all_objects if not one.ignored(row)]
    regions = [row for row in all_objects if one.ignored(row)]
    iou = {
        (row, gt): value
        for row in rows
        for gt in objects
        if _reaches(one, value := _overlap(one, row, gt), threshold)
    }
    free = {row for row in rows if _in_region(one, one.detection_boxes[row], regions)}
    free_objects = {gt for gt in objects if _in_region(one, one.truth_boxes[gt], regions)}
    totals: dict[tuple[int, int], float] = {}
    # Detections choose in turn; None stands for no ground truth.
    for chosen in product([*objects, None], repeat=len(rows)):
        pairs = [(row, gt) for row, gt in zip(rows, chosen, strict=True) if gt is not None]
        gts = {gt for _, gt in pairs}
        if len(gts) < len(pairs) or any(pair not in iou for pair in pairs):
            continue
        union = len(pairs) + len({*rows} - free - {row for row, _ in pairs})
        union += len({*objects} - free_objects - gts)
        total = sum(iou[pair] for pair in pairs)
        totals[(len(pairs), union)] = max(total, totals.get((len(pairs), union), 0.0))
    best = max(totals.values())
    indices = [k / (n + 1e-6) for (k, n), total in totals.items() if total >= best - SAME if n]
    return (min(indices), max(indices)) if indices else None


def _overlap(one: _OneClass, row: int, gt: int) -> float:
    return overlap(one.detection_boxes[row], one.truth_boxes[gt], one.protocol, crowd=False)


def _reaches(one: _OneClass, iou: float, threshold: int) -> bool:
    lowest = one.protocol.search_thresholds[threshold]
    return iou > lowest if one.protocol.strict_iou else iou >= lowest


def _in_region(one: _OneClass, box: Box, regions: list[int]) -> bool:
    shares = (overlap(box, one.truth_boxes[row], one.protocol, crowd=True) for row in regions)
    return any(share > 0.5 for share in shares)
