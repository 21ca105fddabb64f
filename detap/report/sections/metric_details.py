"""The points of a curve behind each metric of the ranking that a report lists."""

from collections.abc import Iterator
from typing import Any

from detap import metrics
from detap.evaluation.results import Result
from detap.metrics.metric import MetricSpec
from detap.metrics.ranked import Ranked
from detap.report.fields import ClassId, Count, Object, field, list_of
from detap.report.model import Block
from detap.report.numbers import names_of_classes

Points = Object(
    "Points",
    "The points behind a value. Of a miss rate or FROC: `fppi`, with `miss_rate` or "
    "`recall` there. At the best threshold: its `score`, and `precision` and `recall` "
    "there; null if no threshold qualifies.",
    others=Any,
)

ClassPoints = Object(
    "ClassPoints",
    "The points behind the value of a class with ground truth.",
    others=Any,
    name=str,
    id=ClassId,
)

DetailsData = Object(
    "DetailsData",
    "The points behind a metric.",
    classes=field(Count, "Classes with ground truth: the mean is over these."),
    by_class=field(list_of(ClassPoints), required=False),
    pooled=field(Points, "Of all classes ranked together.", required=False),
)


def metric_details(result: Result) -> Iterator[Block]:
    """Yield a block on the metrics of the ranking that the summary lists, if there are any."""
    specs = [spec for spec in metrics.summary(result.protocol) if isinstance(spec.metric, Ranked)]
    if specs:
        data, lines = {}, []
        for spec in specs:
            data[spec.name], line = _details(result, spec)
            lines.append(line)
        yield Block("metric_details", "", data, tuple(lines))


def _details(result: Result, spec: MetricSpec) -> tuple[dict[str, Any], str]:
    """Return the entry of a metric and its line of text."""
    metric: Any = spec.metric
    details = metric.details_by_class(result, spec)
    count = int((result.ground_truth_counts_of(spec) > 0).sum())
    data: dict[str, Any] = {"classes": count}
    if spec.pooled:
        data["pooled"] = details.get(0, {})
        over = f"{count} classes ranked together"
    else:
        names = names_of_classes(result)
        data["by_class"] = [{**names[label], **points} for label, points in details.items()]
        of_all = "" if count == len(result.classes) else f" of {len(result.classes)}"
        over = "of 1 class" if len(result.classes) == 1 else f"mean over {count}{of_all} classes"
    remarks = metric.remarks(spec, [*details.values()], result.protocol) if details else []
    parts = remarks if len(result.classes) == 1 and remarks else [over, *remarks]
    return data, f"{spec.name}: {'; '.join(parts)}"
