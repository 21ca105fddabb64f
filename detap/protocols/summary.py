"""Names and titles of metrics."""

from typing import TYPE_CHECKING, NamedTuple

from detap.protocols.fields import SAME_THRESHOLD

if TYPE_CHECKING:
    from detap.metrics import Metric
    from detap.protocols.detection import Protocol


DEFAULT_MIN_GROUND_TRUTHS = 20
"""Default minimum of ground truths behind a metric with a confidence interval."""


FREQUENCIES = {"r": "rare", "c": "common", "f": "frequent"}
"""Class groups of LVIS by the suffix of their metrics."""


class MetricParams(NamedTuple):
    """The parameters of a metric as a summary shows them."""

    iou: str
    area: str
    max_dets: str
    classes: str = "all"


class MetricSpec(NamedTuple):
    """A metric at an IoU threshold, area range and `max_dets` value.

    Attributes
    ----------
    name : str
        ``"AP50"``, ``"AR100"``, ``"mAP"`` ...
    metric : Metric
    threshold : int or None
        Index of the IoU threshold; None for the mean over all of them.
    area : int
        Index of the area range.
    max_dets_index : int
        Index into `max_dets`.
    params : MetricParams
    group : str
        The class group of the mean; empty for all classes.
    class_name : str
        The name for one class: ``"AP50"`` if the mean is ``"mAP50"``.
    heading : str
        A shorter column header; empty for none.
    argument : float or None
        The number in a name such as ``"recall@fppi=0.1"``.
    pooled : bool
        True if all classes are ranked together; the value is no mean over classes.
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
    argument: float | None = None
    pooled: bool = False

    @property
    def thresholds(self) -> slice:
        """The rows of an array over IoU thresholds that are averaged."""
        return slice(None) if self.threshold is None else slice(self.threshold, self.threshold + 1)


def metric_spec(
    protocol: "Protocol", metric: "Metric", name: str, indices: tuple[int | None, int, int]
) -> MetricSpec:
    """Return a metric with its parameters."""
    threshold, area, limit = indices
    thresholds = (
        protocol.iou_thresholds if threshold is None else (protocol.iou_thresholds[threshold],)
    )
    if protocol.class_iou:
        iou = ", ".join(map(_two_decimals, sorted({value for _, value in protocol.class_iou})))
    else:
        iou = ":".join(map(_two_decimals, dict.fromkeys((thresholds[0], thresholds[-1]))))
    max_dets = protocol.max_dets[limit]
    area_range = protocol.area_ranges[area]
    area_text = (
        f"{area_range.name} {area_range.text}" if area_range.unit == "%" else area_range.name
    )
    params = MetricParams(iou, area_text, "any" if max_dets is None else str(max_dets))
    return MetricSpec(name, metric, *indices, params, class_name=name)


def _two_decimals(threshold: float) -> str:
    """Format a threshold with two decimals as pycocotools does, or more if needed."""
    short, long = format(threshold, ".2f"), format(threshold, ".6g")
    return short if float(short) == float(long) else long


def percent(threshold: float) -> str:
    """Format a threshold in percent as in metric names, with enough digits to be unique."""
    short = format(100 * threshold, ".6g")
    unique = abs(float(short) / 100 - threshold) < SAME_THRESHOLD / 2
    return short if unique else format(100 * threshold, ".12g")
