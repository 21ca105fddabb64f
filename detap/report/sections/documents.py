"""What the JSON report of each command holds, as types."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from detap.protocols import Protocol
from detap.report.fields import ClassRow, Input, Limits, MetricValue, NoteEntry, extra_items
from detap.report.sections.comparison import (
    ChangedClasses,
    ChangedImages,
    ComparedInput,
    MistakesData,
    NumberPair,
)
from detap.report.sections.crosscheck import CrossCheckData
from detap.report.sections.data_checks import CheckedClass, CheckedInput, CheckNote, ProblemsData
from detap.report.sections.explanation import (
    AccountNumbers,
    AttributionData,
    AxisPair,
    CauseEntry,
    ContextsData,
    DifferenceNumbers,
    ExplainedInput,
    OriginRow,
    PortionRow,
    RemarksData,
    SearchData,
    StepRow,
)
from detap.report.sections.gates import GatesData
from detap.report.sections.history import ApartData, HistoryEntry
from detap.report.sections.image import ImageData, ShownDetection
from detap.report.sections.power import ResolutionData
from detap.report.sections.ranking import (
    DecomposabilityData,
    LossesData,
    QueryRow,
    RankedClassRow,
    RankingCurve,
    RankingInput,
    RankingProtocol,
)
from detap.report.sections.regressions import CulpritsData
from detap.report.sections.selection import SelectionData
from detap.report.sections.slices import SliceEntry
from detap.report.sections.tie_range import TieRangeEntry


class ReproducesData(TypedDict):
    """Which implementation's numbers these are, where they may differ from its own.

    Absent where they are equal, where that could not be tried, and where the protocol departs from
    its preset.
    """

    source: str
    tolerance: Annotated[float, "By how much a number may differ.", Limits(above=0)]
    residue: Annotated[str, "What the difference comes from."]


@extra_items(Any)
class DetectionReport(TypedDict):
    """What detap writes with --output-format json.

    Undefined numbers are null. Keys may be added without a new schema_version; none goes or changes
    its meaning.
    """

    # The schema also has the sections of `sections.SECTIONS`.
    schema_version: Literal[1]
    detap_version: Annotated[str, Limits(pattern=r"^[0-9]+\.[0-9]+")]
    kind: Literal["detection"]
    signature: Annotated[
        str,
        "The preset, each field that departs from it, the selection of "
        "classes and images, and detap's version. Numbers may be compared "
        "only where signatures are equal.",
        Limits(pattern=r"^protocol:"),
    ]
    protocol: Protocol
    inputs: Annotated[list[Input], "What was read; empty where the tables were made from arrays."]
    summary: Annotated[
        dict[str, MetricValue],
        "The numbers that people quote, the headline first: means over classes.",
        Limits(min_length=1),
    ]
    classes: Annotated[
        list[ClassRow],
        "One entry per class, in the order of the ground truth (or of "
        "--sort); classes that only the detections have come last.",
    ]
    notes: Annotated[list[NoteEntry], "What was noticed on the way; the codes are stable."]
    tie_range: NotRequired[
        Annotated[
            dict[str, TieRangeEntry],
            "Bounds of the numbers of the summary that no order of equally scored "
            "detections goes beyond.",
        ]
    ]
    cross_check: NotRequired[CrossCheckData]
    gates: NotRequired[GatesData]
    culprits: NotRequired[CulpritsData]
    resolution: NotRequired[ResolutionData]
    slices: NotRequired[
        Annotated[dict[str, SliceEntry], "The same numbers of parts of the images, by tag."]
    ]
    selection: NotRequired[SelectionData]
    kept: NotRequired[
        Annotated[
            list[str],
            "Of a baseline: the numbers that detap baseline update kept, because "
            "the newer report's were worse.",
        ]
    ]
    reproduces: NotRequired[ReproducesData]


@extra_items(Any)
class ComparisonReport(TypedDict):
    """What detap compare writes with --output-format json. Undefined numbers are null."""

    schema_version: Literal[1]
    detap_version: str
    kind: Literal["comparison"]
    signature: Annotated[str, Limits(pattern=r"^protocol:")]
    protocol: dict[str, Any]
    inputs: list[ComparedInput]
    summary: Annotated[dict[str, Any], Limits(max_length=0)]
    numbers: Annotated[list[NumberPair], "Each number of the summary."]
    classes: ChangedClasses
    images: NotRequired[ChangedImages]
    mistakes: NotRequired[MistakesData]
    resolution: NotRequired[ResolutionData]
    notes: list[Any]
    selection: NotRequired[dict[str, Any]]


@extra_items(Any)
class CheckReport(TypedDict):
    """What detap check writes with --output-format json.

    Keys may be added without a new schema_version; none goes or changes its meaning.
    """

    schema_version: Literal[1]
    detap_version: Annotated[str, Limits(pattern=r"^[0-9]+\.[0-9]+")]
    kind: Literal["check"]
    inputs: Annotated[list[CheckedInput], "What could be read."]
    errors: ProblemsData
    notes: list[CheckNote]
    statistics: Annotated[
        dict[str, float | list[str] | None],
        "What is there, by key: a count, a number, or names; null where nothing could have it.",
    ]
    classes: list[CheckedClass]


@extra_items(Any)
class RankingReport(TypedDict):
    """What detap rank writes with --output-format json.

    The document of detap eval, with rows of queries or classes. Undefined numbers are null. Keys
    may be added without a new schema_version; none goes or changes its meaning.
    """

    schema_version: Literal[1]
    detap_version: Annotated[str, Limits(pattern=r"^[0-9]+\.[0-9]+")]
    kind: Literal["retrieval", "classification"]
    signature: Annotated[
        str,
        "The preset, the rules that change numbers without changing their "
        "names, each field that departs, and detap's version.",
        Limits(pattern=r"^protocol:"),
    ]
    protocol: RankingProtocol
    inputs: list[RankingInput]
    summary: Annotated[
        dict[str, float | None],
        "Means over queries or classes, the headline first; in a "
        "classification AP@k is a mean over samples.",
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
    """What detap show writes with --output-format json.

    What became of every detection and ground truth of one image. Undefined is null.
    """

    schema_version: Literal[1]
    detap_version: str
    kind: Literal["image"]
    signature: str
    protocol: Annotated[dict[str, Any], "Every field of the protocol."]
    inputs: list[dict[str, Any]]
    summary: NotRequired[Annotated[dict[str, Any], Limits(max_length=0)]]
    detections: Annotated[list[ShownDetection], "By falling score."]
    notes: list[dict[str, Any]]
    image: ImageData


@extra_items(Any)
class ExplanationReport(TypedDict):
    """What detap explain writes with --output-format json. Undefined numbers are null."""

    schema_version: Literal[1]
    detap_version: str
    kind: Annotated[
        Literal["difference", "origin", "account"], "Of two protocols; of a number; of two reports."
    ]
    signature: Annotated[Literal[""], "An explanation is of no one protocol."]
    protocol: Annotated[dict[str, Any], Limits(max_length=0)]
    inputs: list[ExplainedInput]
    answer: Annotated[str, "What it comes to, in a sentence."]
    summary: Annotated[dict[str, Any], Limits(max_length=0)]
    notes: list[Any]
    selection: NotRequired[dict[str, Any]]


@extra_items(Any)
class HistoryReport(TypedDict):
    """What detap history writes with --output-format json. Undefined numbers are null."""

    schema_version: Literal[1]
    detap_version: str
    kind: Literal["history"]
    signature: Annotated[str, Limits(pattern=r"^protocol:")]
    protocol: dict[str, Any]
    inputs: Annotated[list[Any], "The ground truth of the latest report."]
    summary: Annotated[dict[str, Any], Limits(max_length=0)]
    reports: Annotated[
        list[HistoryEntry],
        "Those of the latest report's case, in their order.",
        Limits(min_length=1),
    ]
    notes: list[Any]
    apart: NotRequired[ApartData]


@extra_items(Any)
class DifferenceParts(TypedDict):
    """What an explanation of two protocols has besides."""

    steps: Annotated[list[StepRow], Limits(min_length=1)]
    numbers: DifferenceNumbers
    contexts: ContextsData
    axes: dict[str, AxisPair]


@extra_items(Any)
class OriginParts(TypedDict):
    """What an explanation of a number has besides."""

    protocols: list[OriginRow]
    search: SearchData


@extra_items(Any)
class AccountParts(TypedDict):
    """What an explanation of two reports has besides."""

    portions: list[PortionRow]
    numbers: AccountNumbers
    causes: dict[str, CauseEntry]
    remarks: NotRequired[RemarksData]
    attribution: NotRequired[AttributionData]
    contexts: NotRequired[ContextsData]
    axes: NotRequired[dict[str, AxisPair]]


@extra_items(Any)
class RetrievalParts(TypedDict):
    """What a report of a retrieval has besides."""

    queries: Any


@extra_items(Any)
class ClassificationParts(TypedDict):
    """What a report of a classification has besides."""

    classes: Any
