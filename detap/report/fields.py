"""Types of the values in a JSON report, from which its schema derives.

A description of a field is a string in ``Annotated``; that of an object is its docstring.
"""

from collections.abc import Callable
from math import isinf
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

from detap import metrics


class Limits(NamedTuple):
    """Bounds of a value: of a number, the text of a string, or the length of an array or object."""

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None


_Declared = TypeVar("_Declared")

EXTRA_ITEMS: dict[object, object] = {}
"""The type of the values under undeclared keys, by type of object."""


def extra_items(kind: object) -> Callable[[_Declared], _Declared]:
    """Allow undeclared keys in an object, with values of this type."""

    def mark(declared: _Declared) -> _Declared:
        EXTRA_ITEMS[declared] = kind
        return declared

    return mark


Fraction = Annotated[
    float | None,
    "A number from 0 to 1, not rounded; null is undefined. Eleven elevenths sum to "
    "1.0000000000000002 in floating point, as in the implementations that 11-point AP follows.",
    Limits(minimum=0, maximum=1.000000001),
]
Count = Annotated[int, Limits(minimum=0)]


def limits_of_metrics() -> Limits:
    """Return bounds that hold for every metric, with a tolerance for rounding."""
    bounds = [metric.bounds for metric in metrics.METRICS]
    lowest, largest = min(low for low, _ in bounds), max(high for _, high in bounds)
    return Limits(
        minimum=None if isinf(lowest) else lowest,
        maximum=None if isinf(largest) else largest + 1e-9,
    )


MetricValue = Annotated[
    float | None,
    "The value of a metric, not rounded; null is undefined. Eleven elevenths sum to "
    "1.0000000000000002 in floating point, as in the implementations that 11-point AP follows.",
    limits_of_metrics,
]
Gap = Annotated[
    float | None,
    "An absolute difference; null where only one of the two numbers is defined.",
    Limits(minimum=0),
]
Change = Annotated[
    float | None,
    "A difference of two fractions; null where either is undefined.",
    Limits(minimum=-1.000000001, maximum=1.000000001),
]
ClassId = Annotated[
    int | str | None,
    "The COCO category id, or the name again; null where classes are scored as one.",
]


@extra_items(Any)
class Input(TypedDict):
    """A file or folder that was read."""

    role: Literal["ground_truth", "detections"]
    path: Annotated[str, "As it was given."]
    sha256: Annotated[
        str | None,
        "Of the file as it lies on the disk; of a folder, over the lines "
        "'<sha256>  <name>' of the files that were read, sorted by name. Null "
        "for stdin.",
        Limits(pattern=r"^[0-9a-f]{64}$"),
    ]
    files: Annotated[int, "How many files were read.", Limits(minimum=1)]
    records: Annotated[Count, "How many records were in them, before any was left out."]
    images: NotRequired[
        Annotated[Count, "Ground truth: how many images there are, before any selection."]
    ]
    reading: NotRequired[
        Annotated[
            dict[str, str],
            "The options that changed how it was read, and their values; absent without any.",
        ]
    ]


class NoteEntry(TypedDict):
    """Something that was noticed on the way."""

    code: Annotated[str, Limits(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    message: str
    count: Annotated[int, Limits(minimum=1)]
    severity: Literal["warning", "info"]


@extra_items(MetricValue)
class ClassRow(TypedDict):
    """The numbers of a class."""

    name: str
    id: ClassId
    AP: Fraction
    recall: NotRequired[
        Annotated[Fraction, "VOC: the final recall, a mean over the IoU thresholds."]
    ]
    ground_truths: Annotated[
        Count,
        "Ground truths that are not ignored. The counts are at the lowest IoU threshold, all "
        "areas and the largest number of detections per image.",
    ]
    ignored: Annotated[Count, "Ignored ground truths: neither TP nor FN."]
    detections: Annotated[Count, "All detections."]
    within_max_dets: Annotated[Count, "Detections within the maximum per image."]
    true_positives: Count
    false_positives: Count
    duplicates: Annotated[
        Count, "False positives whose ground truth is matched by another detection."
    ]
