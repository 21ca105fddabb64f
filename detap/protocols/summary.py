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


class MetricParams(NamedTuple):
    """The parameters of a metric as a summary shows them."""

    iou: str
    area: str
    max_dets: str
    classes: str = "all"


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
    params : MetricParams
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
    params: MetricParams
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
        iou = ", ".join(map(_two_decimals, sorted({value for _, value in protocol.class_iou})))
    else:
        iou = ":".join(map(_two_decimals, dict.fromkeys((thresholds[0], thresholds[-1]))))
    max_dets = protocol.max_dets[limit]
    params = MetricParams(
        iou, protocol.area_ranges[area].name, "any" if max_dets is None else str(max_dets)
    )
    return MetricSpec(name, metric, *indices, params, class_name=name)


def _two_decimals(threshold: float) -> str:
    """Return a threshold with two decimals as in pycocotools, or more if it has more."""
    short = format(threshold, ".2f")
    return short if float(short) == float(format(threshold, ".6g")) else format(threshold, ".6g")


def percent(threshold: float) -> str:
    """Return a threshold in percent, as names of measures have it, no other one being meant."""
    short = format(100 * threshold, ".6g")
    near = abs(float(short) / 100 - threshold) < SAME_THRESHOLD / 2
    return short if near else format(100 * threshold, ".12g")
