"""Gates for several data sets: their metrics and means, also of reports already made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, NoReturn

from detap.analysis.data_sets import DataSet, DataSets
from detap.errors import UsageError
from detap.gates.baseline import protocol_differences, protocol_text
from detap.gates.checks import Interval, Intervals
from detap.gates.config import GateConfig
from detap.gates.evaluate import Subject
from detap.gates.metric_names import MEAN, MetricName, Metrics, absent
from detap.io.stream import refuse
from detap.metrics import metric_named


@dataclass(frozen=True, slots=True, eq=False)
class GatedSets(Subject):
    """Data sets; a mean over them is named ``mean-set.AP`` or ``AP``."""

    data: DataSets

    def metrics(self) -> Metrics:
        """Return the metrics that gates can name."""
        data = self.data
        rows = [
            {"name": one.name, **{name: data.values(name)[one.name] for name in data.names}}
            for one in data.sets
        ]
        return Metrics(
            data.names[0],
            data.summary,
            rows,
            unit="set",
            compute_overall=lambda name: data.mean(name.removeprefix(MEAN)),
            compute_rows=lambda name: list(data.values(name).values()),
            metric_of=lambda name: metric_named(data.protocol, name.removeprefix(MEAN)),
        )

    def resample(self, baseline: "GatedSets | None", config: GateConfig) -> NoReturn:
        """Raise UsageError: drops have no interval, since there is one detector per data set."""
        raise UsageError("data sets have no intervals of drops; remove --confidence")

    def intervals(self, config: GateConfig) -> Intervals:
        """Return the confidence intervals of the means and of each data set."""
        assert config.confidence is not None

        def interval(name: MetricName) -> Interval | None:
            if name.extreme is not None:
                return None
            of = None if name.row is None else self.data.sets[name.row].name
            low, high = self.data.interval(name.metric.removeprefix(MEAN), of)
            return None if isnan(low) else (low, high)

        return Intervals(config.confidence, interval)


def data_set_of_report(name: str, path: str, record: Mapping[str, Any], group: str) -> DataSet:
    """Return the metrics of a JSON report of ``detap eval``."""
    if record["kind"] != "detection":
        kind = str(record["kind"]).replace("_", " ")
        refuse(path, f"a report of kind {kind}", "use the JSON report of detap eval")
    selection = record.get("selection") or {}
    truth = [item for item in record["inputs"] if item.get("role") == "ground_truth"]
    images = selection.get("images")
    if images is None:
        counts = [item.get("images") for item in truth]
        images = None if not counts or None in counts else sum(counts)
    rows = record["classes"]
    return DataSet(
        name,
        {key: nan if value is None else float(value) for key, value in record["summary"].items()},
        group,
        images,
        sum(int(row.get("ground_truths") or 0) for row in rows),
        sum(int(row.get("detections") or 0) for row in rows),
        absent,
    )


def require_same_protocol(reports: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Raise UsageError if data sets were evaluated by different protocols."""
    (first, record), *others = reports
    for name, other in others:
        if protocol_differences(other, record):
            texts = [protocol_text(each) for each in (record, other)]
            if texts[0] == texts[1]:  # reports of two versions, of which the preset changed
                texts = [
                    f"{text}|detap:{each['detap_version']}"
                    for text, each in zip(texts, (record, other), strict=True)
                ]
            raise UsageError(
                f"data sets {first!r} ({texts[0]}) and {name!r} ({texts[1]}) have different "
                "protocols; evaluate all with one --protocol"
            )
