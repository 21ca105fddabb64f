"""The JSON reports of the commands, as types."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from detap.protocols import Protocol
from detap.report.fields import ClassRow, Input, Limits, MetricValue, NoteEntry, extra_items
from detap.report.sections.comparison import (
    ChangedClasses,
    ChangedImages,
    ComparedInput,
    ErrorPairs,
    MetricPair,
)
from detap.report.sections.crosscheck import CrossCheckData
from detap.report.sections.data_checks import CheckedClass, CheckedInput, CheckNote, ProblemsData
from detap.report.sections.data_sets import (
    DataSetInput,
    DataSetIntervals,
    DataSetRow,
    GroupEntry,
    StatisticsEntry,
)
from detap.report.sections.explanation import (
    AttributionData,
    CauseEntry,
    CombinationsData,
    ContributionRow,
    ExplainedInput,
    FieldPair,
    ProtocolDiffMetrics,
    ProtocolRow,
    RemarksData,
    ReportDiffMetrics,
    SearchData,
    StepRow,
)
from detap.report.sections.gates import GatesData
from detap.report.sections.history import HistoryEntry, NotComparableData
from detap.report.sections.image import ImageData, ShownDetection
from detap.report.sections.intervals import IntervalsData
from detap.report.sections.metric_details import DetailsData
from detap.report.sections.power import PowerData
from detap.report.sections.ranking import (
    DecomposabilityData,
    LossesData,
    QueryRow,
    RankedClassRow,
    RankingCurve,
    RankingInput,
    RankingProtocol,
)
from detap.report.sections.regressions import RegressionsData
from detap.report.sections.selection import SelectionData
from detap.report.sections.slices import SliceEntry
from detap.report.sections.tie_range import TieRangeEntry


class ReproducesData(TypedDict):
    """The implementation that the preset reproduces, and the tolerance.

    Absent if the metrics are equal, if that could not be tested, and if the protocol departs from
    its preset.
    """

    source: str
    tolerance: Annotated[float, "The largest possible difference of a metric.", Limits(above=0)]
    residue: Annotated[str, "The cause of the difference."]


@extra_items(Any)
class DetectionReport(TypedDict):
    """The JSON report of detap eval.

    Undefined metrics are null. New keys do not change schema_version; removed or changed keys do.
    """

    # The schema also has the sections of `sections.SECTIONS`.
    schema_version: Literal[2]
    detap_version: Annotated[str, Limits(pattern=r"^[0-9]+\.[0-9]+")]
    kind: Literal["detection"]
    signature: Annotated[
        str,
        "The preset, each changed field, the selection of classes and images, and detap's "
        "version. Metrics are comparable only if signatures are equal.",
        Limits(pattern=r"^protocol:"),
    ]
    protocol: Protocol
    inputs: Annotated[list[Input], "The input files; empty for tables made from arrays."]
    summary: Annotated[
        dict[str, MetricValue],
        "The summary metrics, primary metric first: means over classes.",
        Limits(min_length=1),
    ]
    classes: Annotated[
        list[ClassRow],
        "One entry per class, in the order of the ground truth (or of "
        "--sort); classes that occur only in the detections come last.",
    ]
    notes: Annotated[list[NoteEntry], "Notes of the run; codes are stable."]
    tie_range: NotRequired[
        Annotated[
            dict[str, TieRangeEntry],
            "Bounds of the summary metrics over all orders of tied scores.",
        ]
    ]
    cross_check: NotRequired[CrossCheckData]
    intervals: NotRequired[IntervalsData]
    gates: NotRequired[GatesData]
    regressions: NotRequired[RegressionsData]
    power: NotRequired[PowerData]
    slices: NotRequired[
        Annotated[dict[str, SliceEntry], "The same metrics for subsets of the images, by tag."]
    ]
    selection: NotRequired[SelectionData]
    retained_metrics: NotRequired[
        Annotated[
            list[str],
            "Of a baseline: metrics that detap baseline update retained from older reports, "
            "because the newer values were worse.",
        ]
    ]
    reproduces: NotRequired[ReproducesData]
    metric_details: NotRequired[
        Annotated[
            dict[str, DetailsData],
            "The points of the curve, or the score threshold, behind metrics of --metrics.",
        ]
    ]


@extra_items(Any)
class ComparisonReport(TypedDict):
    """The JSON report of detap compare. Undefined metrics are null."""

    schema_version: Literal[2]
    detap_version: str
    kind: Literal["comparison"]
    signature: Annotated[str, Limits(pattern=r"^protocol:")]
    protocol: dict[str, Any]
    inputs: list[ComparedInput]
    summary: Annotated[dict[str, Any], Limits(max_length=0)]
    metrics: Annotated[list[MetricPair], "The summary metrics."]
    classes: ChangedClasses
    images: NotRequired[ChangedImages]
    errors: NotRequired[ErrorPairs]
    power: NotRequired[PowerData]
    notes: list[Any]
    selection: NotRequired[dict[str, Any]]


@extra_items(Any)
class CheckReport(TypedDict):
    """The JSON report of detap check.

    New keys do not change schema_version; removed or changed keys do.
    """

    schema_version: Literal[2]
    detap_version: Annotated[str, Limits(pattern=r"^[0-9]+\.[0-9]+")]
    kind: Literal["check"]
    inputs: Annotated[list[CheckedInput], "The readable inputs."]
    errors: ProblemsData
    notes: list[CheckNote]
    statistics: Annotated[
        dict[str, float | list[str] | None],
        "Data set statistics by key: a count, a number or names; null if not applicable.",
    ]
    classes: list[CheckedClass]


@extra_items(Any)
class RankingReport(TypedDict):
    """The JSON report of detap rank: like detap eval, with rows of queries or classes.

    Undefined metrics are null. New keys do not change schema_version; removed or changed keys do.
    """

    schema_version: Literal[2]
    detap_version: Annotated[str, Limits(pattern=r"^[0-9]+\.[0-9]+")]
    kind: Literal["retrieval", "classification"]
    signature: Annotated[
        str,
        "The preset, the options that change metrics but not their names, each changed field, "
        "and detap's version.",
        Limits(pattern=r"^protocol:"),
    ]
    protocol: RankingProtocol
    inputs: list[RankingInput]
    summary: Annotated[
        dict[str, float | None],
        "Means over queries or classes, primary metric first; AP@k of a classification is a "
        "mean over samples.",
        Limits(min_length=1),
    ]
    queries: NotRequired[list[QueryRow]]
    classes: NotRequired[list[RankedClassRow]]
    notes: list[NoteEntry]
    curve: RankingCurve
    samples: NotRequired[
        Annotated[
            dict[str, dict[str, float | None]],
            "Classification with cutoffs: the AP@k of each sample.",
        ]
    ]
    losses: NotRequired[LossesData]
    decomposability: NotRequired[DecomposabilityData]


@extra_items(Any)
class ImageReport(TypedDict):
    """The JSON report of detap show: the detections and ground truths of one image.

    Undefined values are null.
    """

    schema_version: Literal[2]
    detap_version: str
    kind: Literal["image"]
    signature: str
    protocol: Annotated[dict[str, Any], "The fields of the protocol."]
    inputs: list[dict[str, Any]]
    summary: NotRequired[Annotated[dict[str, Any], Limits(max_length=0)]]
    detections: Annotated[list[ShownDetection], "By descending score."]
    notes: list[dict[str, Any]]
    image: ImageData


@extra_items(Any)
class ExplanationReport(TypedDict):
    """The JSON report of detap explain. Undefined metrics are null."""

    schema_version: Literal[2]
    detap_version: str
    kind: Annotated[
        Literal["protocol_diff", "protocol_search", "report_diff"],
        "Two protocols; protocols that give a value; two reports.",
    ]
    signature: Annotated[Literal[""], "Empty: an explanation has no single protocol."]
    protocol: Annotated[dict[str, Any], Limits(max_length=0)]
    inputs: list[ExplainedInput]
    conclusion: Annotated[str, "The conclusion in one sentence."]
    summary: Annotated[dict[str, Any], Limits(max_length=0)]
    notes: list[Any]
    selection: NotRequired[dict[str, Any]]


@extra_items(Any)
class HistoryReport(TypedDict):
    """The JSON report of detap history. Undefined metrics are null."""

    schema_version: Literal[2]
    detap_version: str
    kind: Literal["history"]
    signature: Annotated[str, Limits(pattern=r"^protocol:")]
    protocol: dict[str, Any]
    inputs: Annotated[list[Any], "The ground truth of the latest report."]
    summary: Annotated[dict[str, Any], Limits(max_length=0)]
    reports: Annotated[
        list[HistoryEntry],
        "Reports comparable with the latest, in order.",
        Limits(min_length=1),
    ]
    notes: list[Any]
    not_comparable: NotRequired[NotComparableData]


@extra_items(Any)
class DataSetsReport(TypedDict):
    """The JSON report of detap eval --data-sets. Undefined metrics are null."""

    schema_version: Literal[2]
    detap_version: str
    kind: Literal["data_sets"]
    signature: Annotated[str, "The common parts of the signatures.", Limits(pattern=r"^protocol:")]
    protocol: dict[str, Any]
    inputs: list[DataSetInput]
    conclusion: str
    summary: Annotated[
        dict[str, MetricValue],
        "Unweighted means over the data sets where the metric is defined, primary metric first.",
        Limits(min_length=1),
    ]
    data_sets: Annotated[list[DataSetRow], "In the order given.", Limits(min_length=1)]
    notes: list[NoteEntry]
    statistics: dict[str, StatisticsEntry]
    groups: NotRequired[Annotated[dict[str, GroupEntry], "By name, in the order given."]]
    missing: NotRequired[Annotated[list[str], "Data sets left out by --allow-missing."]]
    intervals: NotRequired[DataSetIntervals]
    gates: NotRequired[GatesData]


@extra_items(Any)
class ProtocolDiffParts(TypedDict):
    """Further keys of a protocol diff."""

    steps: Annotated[list[StepRow], Limits(min_length=1)]
    metrics: ProtocolDiffMetrics
    combinations: CombinationsData
    fields: dict[str, FieldPair]


@extra_items(Any)
class ProtocolSearchParts(TypedDict):
    """Further keys of a protocol search."""

    protocols: list[ProtocolRow]
    search: SearchData


@extra_items(Any)
class ReportDiffParts(TypedDict):
    """Further keys of a report diff."""

    contributions: list[ContributionRow]
    metrics: ReportDiffMetrics
    causes: dict[str, CauseEntry]
    remarks: NotRequired[RemarksData]
    attribution: NotRequired[AttributionData]
    combinations: NotRequired[CombinationsData]
    fields: NotRequired[dict[str, FieldPair]]


@extra_items(Any)
class RetrievalParts(TypedDict):
    """Further keys of a retrieval report."""

    queries: Any


@extra_items(Any)
class ClassificationParts(TypedDict):
    """Further keys of a classification report."""

    classes: Any
