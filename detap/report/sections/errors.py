"""TIDE errors: the types, their counts and the AP gained by fixing each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from detap.analysis.errors import ACROSS, TYPES, Convention, Errors, errors
from detap.report.fields import Change, ClassId, Count, Fraction, Object, each, field, list_of
from detap.report.model import Block, Cell, Column, Table, columns_of, name_column
from detap.report.numbers import plain, threshold
from detap.report.sections.analysis import Analysis

ErrorTypeEntry = Object(
    "ErrorTypeEntry",
    "The AP gained if all errors of a type are fixed, and their count.",
    delta_ap=Change,
    count=Count,
    count_at_score=field(Count, "At score_threshold; not of a class.", required=False),
)

ErrorTypes = Object("ErrorTypes", **each(ErrorTypeEntry, *TYPES))

DATA = Object(
    "ErrorsData",
    "The types of errors, of --errors.",
    convention=Literal["protocol", "tidecv"],
    iou=float,
    score_threshold=field(float | None, "Minimum score of count_at_score."),
    AP=Fraction,
    types=ErrorTypes,
    classes=list_of(Object("ClassErrors", name=str, id=ClassId, AP=Fraction, types=ErrorTypes)),
)


SHORT = {
    "classification": "Cls",
    "localization": "Loc",
    "both": "Both",
    "duplicate": "Dupe",
    "background": "Bkg",
    "missed": "Miss",
    "false_positives": "FP",
    "false_negatives": "FN",
}


def blocks(analysis: Analysis, value: Convention) -> Iterator[Block]:
    """Return the dAP of each type of error, the largest first, overall and by class."""
    score = analysis.score
    if value == "protocol":
        result, at_score = analysis.errors, analysis.above.errors
    else:
        result = errors(analysis.result, value)
        at_score = result if score is None else errors(analysis.result, value, score=score)
    return blocks_of(result, analysis.names, score, at_score)


def blocks_of(
    result: Errors,
    names: Sequence[Mapping[str, Cell]],
    score: float | None = None,
    at_score: Errors | None = None,
) -> Iterator[Block]:
    """Yield the dAP of each type of error, and the counts at a score; `names` has all classes."""
    order, ap = (*result.by_delta_ap(), *ACROSS), result.average_precision
    classes: list[dict[str, Any]] = [
        {
            **name,
            "AP": float(result.average_precision_by_class[label]),
            "types": _types(result.delta_ap_by_class[:, label], result.count_by_class[:, label]),
        }
        for label, name in enumerate(names)
    ]
    types, counts = _types(result.delta_ap, result.count), columns_of("count", "count")
    if score is not None and at_score is not None:
        for name, count in zip(TYPES, at_score.count.tolist(), strict=True):
            types[name]["count_at_score"] = count
        at = f"score >= {threshold(score)}"
        counts = (
            Column("count", "count, all scores", "all scores", "count"),
            Column("count_at_score", f"count, {at}", at, "count"),
        )
    columns = (name_column("error"), Column("delta_ap", "dAP if fixed", "dAP", "change"), *counts)
    yield Block(
        "errors",
        f"TIDE errors at IoU {result.iou:.6g} (matching: {result.convention}), AP {ap:.4f}",
        DATA(result, score_threshold=score, AP=ap, types=types, classes=classes),
        table=Table(columns, tuple({"name": words(name), **types[name]} for name in order)),
    )
    if len(names) > 1:
        columns = (
            name_column("class"),
            Column("AP", f"AP{100 * result.iou:.6g}", "AP", "fraction"),
            *(
                Column(name, words(name), SHORT[name], "change", 1 if name in ACROSS else 0)
                for name in order
            ),
        )
        rows = tuple(
            {**row, **{name: row["types"][name]["delta_ap"] for name in order}} for row in classes
        )
        yield Block("", "dAP by class", {}, table=Table(columns, rows))


def page_data(analysis: Analysis) -> dict[str, Any]:
    """Return the dAP and count of each type of error, and the count and AP of the baseline."""
    result = analysis.errors
    before = None if analysis.before is None else analysis.before.errors
    rows = [
        {
            "name": name,
            "delta_ap": float(result.delta_ap[k]),
            "delta_ap_by_class": result.delta_ap_by_class[k].tolist(),
            "count": int(result.count[k]),
            "count_by_class": result.count_by_class[k].tolist(),
            "before": None if before is None else int(before.count[k]),
            "before_by_class": None if before is None else before.count_by_class[k].tolist(),
        }
        for k, name in enumerate(TYPES)
    ]
    data: dict[str, Any] = {}
    for suffix, side in (("", result), ("_before", before)):
        by_class = None if side is None else side.average_precision_by_class.tolist()
        data[f"average_precision{suffix}"] = None if side is None else side.average_precision
        data[f"average_precision{suffix}_by_class"] = by_class
    data["errors"] = {"convention": result.convention, "types": rows}
    return plain(data)  # type: ignore[no-any-return]


def _types(change: np.ndarray[Any, Any], count: np.ndarray[Any, Any]) -> dict[str, Any]:
    pairs = zip(TYPES, change.tolist(), count.tolist(), strict=True)
    return {name: {"delta_ap": gain, "count": how_many} for name, gain, how_many in pairs}


def words(name: str) -> str:
    """Return the label of a type of error."""
    if name == "missed":
        return "missed (TIDE)"
    return f"all {SHORT[name]}" if name in ACROSS else name
