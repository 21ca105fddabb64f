"""Types of the values in a JSON report, from which its schema derives."""

from collections.abc import Callable, Mapping
from math import isinf
from types import GenericAlias
from typing import Any, Literal, NamedTuple

import numpy as np

from detap import metrics
from detap._version import SCHEMA_VERSION


class Field(NamedTuple):
    """A type, or null, with a description and keywords of JSON Schema."""

    kind: Any
    description: str
    required: bool
    null: bool
    limits: Mapping[str, Any] | Callable[[], Mapping[str, Any]]  # a function: when used


def field(
    kind: Any, description: str = "", /, *, required: bool = True, null: bool = False, **limits: Any
) -> Any:
    """Return a type with a description and limits."""
    return Field(kind, description, required, null, limits)


def list_of(kind: Any) -> Any:
    """Return the type of an array."""
    return GenericAlias(list, (kind,))


def dict_of(kind: Any) -> Any:
    """Return the type of an object with any keys."""
    return GenericAlias(dict, (str, kind))


def each(kind: Any, *names: str) -> dict[str, Any]:
    """Return fields of the same type."""
    return dict.fromkeys(names, kind)


class Object:
    """A type of objects in a JSON report; calling it returns one."""

    def __init__(
        self, name: str, description: str = "", /, *, others: Any = None, **fields: Any
    ) -> None:
        self.name, self.description, self.fields = name, description, fields
        self.others = others  # the type of values under undeclared keys, which None forbids

    def is_required(self, name: str) -> bool:
        """Return False if a field may be absent."""
        kind = self.fields[name]
        return not isinstance(kind, Field) or kind.required

    def __call__(self, source: object = None, /, **values: Any) -> dict[str, Any]:
        """Return the values given, and those of the remaining fields from attributes."""
        data = {
            name: values[name] if name in values else getattr(source, name)
            for name in self.fields
            if name in values or self.is_required(name)
        }
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in (data | values).items()
        }


_UNROUNDED = (
    ", not rounded; null is undefined. Eleven elevenths sum to 1.0000000000000002 in floating "
    "point, as in the implementations that 11-point AP follows."
)
Fraction = field(float | None, f"A number from 0 to 1{_UNROUNDED}", minimum=0, maximum=1.000000001)
Count = field(int, minimum=0)
Signature = field(str, pattern="^protocol:")


Version = field(str, pattern=r"^[0-9]+\.[0-9]+")

Empty = field(dict[str, Any], maxProperties=0)


def limits_of_metrics() -> dict[str, float]:
    """Return bounds that hold for every metric, with a tolerance for rounding."""
    bounds = [metric.bounds for metric in metrics.METRICS]
    lowest, largest = min(low for low, _ in bounds), max(high for _, high in bounds)
    limits = {"minimum": lowest, "maximum": largest + 1e-9}
    return {key: limit for key, limit in limits.items() if not isinf(limit)}


_VALUE = f"The value of a metric{_UNROUNDED}"
MetricValue = Field(float | None, _VALUE, required=True, null=False, limits=limits_of_metrics)

Gap = field(float | None, "Null if only one of the two numbers is defined.", minimum=0)

Change = field(
    float | None, "Null if either is undefined.", minimum=-1.000000001, maximum=1.000000001
)

_Role = Literal["ground_truth", "detections", "first", "second", "run", "qrels", "scores", "labels"]

ClassId = field(
    int | str | None, "The COCO category id, or the name again; null if classes are scored as one."
)

Input = Object(
    "Input",
    "A file or folder that was read.",
    others=Any,
    role=_Role,
    path=field(str, "The path as given."),
    data_set=field(str, "Its name, in a report of several.", required=False),
    sha256=field(
        str | None,
        "Of the file, not decompressed; of a folder, of the lines '<sha256>  <name>' of its input "
        "files, sorted by name; of the labels in an archive, of their arrays. Null for stdin.",
        pattern="^[0-9a-f]{64}$",
    ),
    files=field(int, minimum=1),
    records=field(Count, "Before any is left out."),
    images=field(Count, "Of the ground truth, before any selection.", required=False),
    reading=field(dict[str, str], "Reader options other than the defaults.", required=False),
)

NoteEntry = Object(
    "NoteEntry",
    code=field(str, pattern="^[a-z0-9]+(-[a-z0-9]+)*$"),
    message=str,
    count=field(int, minimum=1),
    severity=Literal["warning", "info"],
)

ClassRow = Object(
    "ClassRow",
    "The metrics and counts of a class: these at the lowest IoU threshold, all areas and the "
    "largest number of detections per image.",
    others=MetricValue,
    name=str,
    id=ClassId,
    AP=Fraction,
    recall=field(
        Fraction, "VOC: the final recall, a mean over the IoU thresholds.", required=False
    ),
    ground_truths=field(Count, "That are not ignored."),
    ignored=field(Count, "Ignored ground truths: neither TP nor FN."),
    detections=Count,
    within_max_dets=field(Count, "Detections within the maximum per image."),
    **each(Count, "true_positives", "false_positives"),
    duplicates=field(Count, "False positives whose ground truth is matched by another detection."),
)


def report_of(
    kind: Any, name: str, description: str, /, *, version: Any = str, **fields: Any
) -> Object:
    """Return the type of a JSON report, with inputs and notes; it may have further keys."""
    head = {"schema_version": Literal.__getitem__(SCHEMA_VERSION), "detap_version": version}
    parts = {"inputs": list_of(Input), "notes": list_of(NoteEntry)} | fields
    return Object(name, description, others=Any, **head, kind=kind, **parts)
