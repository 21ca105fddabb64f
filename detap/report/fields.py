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
    "An absolute difference; null if only one of the two numbers is defined.",
    Limits(minimum=0),
]
Change = Annotated[
    float | None,
    "A difference of two fractions; null if either is undefined.",
    Limits(minimum=-1.000000001, maximum=1.000000001),
]
ClassId = Annotated[
    int | str | None,
    "The COCO category id, or the name again; null if classes are scored as one.",
]


@extra_items(Any)
class Input(TypedDict):
    """A file or folder that was read."""

    role: Literal["ground_truth", "detections"]
    path: Annotated[str, "The path as given."]
    sha256: Annotated[
        str | None,
        "Digest of the file, not decompressed; of a folder, digest of the lines "
        "'<sha256>  <name>' of its input files, sorted by name. Null for stdin.",
        Limits(pattern=r"^[0-9a-f]{64}$"),
    ]
    files: Annotated[int, "Number of files.", Limits(minimum=1)]
    records: Annotated[Count, "Number of records, before any is left out."]
    images: NotRequired[
        Annotated[Count, "Number of images of the ground truth, before any selection."]
    ]
    reading: NotRequired[
        Annotated[
            dict[str, str],
            "Reader options other than the defaults, with their values; absent if there are none.",
        ]
    ]


class NoteEntry(TypedDict):
    """A note on the input or the result."""

    code: Annotated[str, Limits(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
    message: str
    count: Annotated[int, Limits(minimum=1)]
    severity: Literal["warning", "info"]


@extra_items(MetricValue)
class ClassRow(TypedDict):
    """The metrics and counts of a class."""

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
