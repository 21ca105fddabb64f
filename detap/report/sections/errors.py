"""Which errors a detector makes, and what each type of them costs, as parts of a report."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np

from detap.analysis.errors import ACROSS, TYPES, Convention, Errors, errors
from detap.report.fields import Change, ClassId, Count, Share
from detap.report.model import Block, Cell, Column, Table
from detap.report.numbers import plain
from detap.report.sections.analysis import Analysis


class ErrorTypeEntry(TypedDict):
    """What AP gains where the errors of a type are repaired, and how many there are."""

    change: Change
    count: Count


class ErrorTypes(TypedDict):
    """What AP gains where the errors of a type are repaired, and how many there are."""

    classification: ErrorTypeEntry
    localisation: ErrorTypeEntry
    both: ErrorTypeEntry
    duplicate: ErrorTypeEntry
    background: ErrorTypeEntry
    missed: ErrorTypeEntry
    false_positives: ErrorTypeEntry
    false_negatives: ErrorTypeEntry


class ClassErrors(TypedDict):
    """The types of errors of a class."""

    name: str
    id: ClassId
    AP: Share
    types: ErrorTypes


class ErrorsData(TypedDict):
    """The types of errors, of --errors."""

    convention: Literal["protocol", "tidecv"]
    iou: float
    AP: Share
    types: ErrorTypes
    classes: list[ClassErrors]


DATA = ErrorsData


def blocks(analysis: Analysis, value: Convention) -> Iterator[Block]:
    """Yield the types of errors, the costliest first, and what they cost each class."""
    result = analysis.errors if value == "protocol" else errors(analysis.result, value)
    names, order = analysis.names, (*result.by_delta_ap(), *ACROSS)
    yield Block(
        "errors",
        f"Errors at IoU {result.iou:.6g}, convention {result.convention}: "
        f"AP {result.average_precision:.4f}, and what it gains where each is repaired",
        {
            "convention": result.convention,
            "iou": result.iou,
            "AP": result.average_precision,
            "types": _types(result.delta_ap, result.count),
            "classes": [
                {
                    **name,
                    "AP": float(result.average_precision_by_class[label]),
                    "types": _types(
                        result.delta_ap_by_class[:, label], result.count_by_class[:, label]
                    ),
                }
                for label, name in enumerate(names)
            ],
        },
        table=_table(result, order),
    )
    if len(names) > 1:
        yield Block("", "The same by class", {}, table=_class_table(result, order, names))


def page_data(analysis: Analysis) -> dict[str, Any]:
    """Return what each type of error costs, and how many there were before."""
    result, before = analysis.errors, analysis.before
    rows = [
        {
            "name": name,
            "change": float(result.delta_ap[k]),
            "change_by_class": result.delta_ap_by_class[k].tolist(),
            "count": int(result.count[k]),
            "count_by_class": result.count_by_class[k].tolist(),
            "before": None if before is None else int(before.errors.count[k]),
        }
        for k, name in enumerate(TYPES)
    ]
    return {
        "average_precision": plain(result.average_precision),
        "average_precision_by_class": plain(result.average_precision_by_class.tolist()),
        "errors": plain({"convention": result.convention, "types": rows}),
    }


def _types(change: np.ndarray[Any, Any], count: np.ndarray[Any, Any]) -> dict[str, Any]:
    pairs = zip(TYPES, change.tolist(), count.tolist(), strict=True)
    return {name: {"change": gain, "count": how_many} for name, gain, how_many in pairs}


def words(name: str) -> str:
    """Return what people call a type of error."""
    return f"all {name.replace('_', ' ')}" if name in ACROSS else name


def _table(result: Errors, order: Sequence[str]) -> Table:
    columns = (
        Column("name", "error", "error", "name"),
        Column("change", "change of AP", "AP", "change"),
        Column("count", "count", "count", "count"),
    )
    rows: list[dict[str, Cell]] = []
    for name in order:
        change, count = result.of_type(name)
        rows.append({"name": words(name), "change": change, "count": count})
    return Table(columns, tuple(rows))


def _class_table(
    result: Errors, order: Sequence[str], names: Sequence[Mapping[str, Cell]]
) -> Table:
    """Return the change of each class's AP, a column a type; the classes as the report has them."""
    columns = (
        Column("name", "class", "class", "name"),
        Column("AP", f"AP{100 * result.iou:.6g}", "AP", "share", graded=True),
        *(
            Column(name, words(name), _SHORT[name], "change", 1 if name in ACROSS else 0)
            for name in order
        ),
    )
    places = {name: TYPES.index(name) for name in order}
    rows: list[dict[str, Cell]] = [
        {
            "name": name["name"],
            "AP": float(result.average_precision_by_class[label]),
            **{which: float(result.delta_ap_by_class[k, label]) for which, k in places.items()},
        }
        for label, name in enumerate(names)
    ]
    return Table(columns, tuple(rows))


_SHORT = {
    "classification": "class",
    "localisation": "loc",
    "both": "both",
    "duplicate": "dup",
    "background": "bkg",
    "missed": "miss",
    "false_positives": "FP",
    "false_negatives": "FN",
}
