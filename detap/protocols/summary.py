"""The numbers that a protocol has: each one's name and title, once."""

from typing import TYPE_CHECKING, NamedTuple

from detap.protocols.fields import SAME_THRESHOLD

if TYPE_CHECKING:
    from detap.metrics import Metric
    from detap.protocols.detection import Protocol


DEFAULT_MIN_GROUND_TRUTHS = 20
"""Ground truths; numbers that count fewer have no interval, unless asked otherwise."""


FREQUENCIES = {"r": "rare", "c": "common", "f": "frequent"}
"""The groups of classes by `frequency`, as LVIS's categories spell it."""


class MetricSpec(NamedTuple):
    """One number of the summary: what it is called, and where in the arrays it is read.

    Attributes
    ----------
    name : str
        ``"AP50"``, ``"AR100"``, ``"mAP"`` ...
    metric : Metric
        What it is a number of.
    threshold : int or None
        Index of the IoU threshold; None for the mean over all.
    area : int
        Index of the area range.
    max_dets_index : int
        Index of the detection limit.
    title : tuple of str
        The name written out, in parts that line up under one another: what, at which IoU, over
        which areas or classes, of which detections.
    group : str
        The group of classes that the mean is over; empty for all.
    class_name : str
        What the number of one class is called: ``"AP50"`` where the mean is ``"mAP50"``.
    heading : str
        A shorter name for the column of a table; empty for none.
    """

    name: str
    metric: "Metric"
    threshold: int | None
    area: int
    max_dets_index: int
    title: tuple[str, ...]
    group: str = ""
    class_name: str = ""
    heading: str = ""

    @property
    def thresholds(self) -> slice:
        """Which rows of an array over IoU thresholds it is the mean of."""
        return slice(None) if self.threshold is None else slice(self.threshold, self.threshold + 1)


def metric_spec(
    protocol: "Protocol", metric: "Metric", name: str, indices: tuple[int | None, int, int]
) -> MetricSpec:
    """Return a number of a metric.

    Parameters
    ----------
    protocol : Protocol
    metric : Metric
    name : str
    indices : (int or None, int, int)
        The indices of the threshold, the area range and the detection limit.
    """
    threshold, area, limit = indices
    thresholds = (
        protocol.iou_thresholds if threshold is None else (protocol.iou_thresholds[threshold],)
    )
    if protocol.class_iou:
        thresholds = tuple(sorted({value for _, value in protocol.class_iou}))
    ends = dict.fromkeys((thresholds[0], thresholds[-1]))
    most = protocol.max_dets[limit]
    by_image = protocol.max_dets_scope == "image" or protocol.class_agnostic
    of_objects = any((protocol.min_height, protocol.max_occlusion, protocol.max_truncation))
    title = (
        f"mean {metric.title}" if protocol.primary_metric == "mAP" else metric.title,
        f"{'OKS' if protocol.iou_type == 'keypoints' else 'IoU'} "
        + "\N{EN DASH}".join(map("{:.6g}".format, ends)),
        f"{protocol.area_ranges[area].name} {'objects' if of_objects else 'areas'}",
        "all detections"
        if most is None
        else f"at most {most} per {'image' if by_image else 'image and class'}",
    )
    return MetricSpec(name, metric, *indices, title, class_name=name)


def percent(threshold: float) -> str:
    """Return a threshold in percent, as names of measures have it, no other one being meant."""
    short = format(100 * threshold, ".6g")
    near = abs(float(short) / 100 - threshold) < SAME_THRESHOLD / 2
    return short if near else format(100 * threshold, ".12g")
