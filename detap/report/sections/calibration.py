"""Score calibration: confidence and accuracy by score bin."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import isnan
from typing import Any

import numpy as np

from detap.analysis.calibration import Calibration, Reliability, calibration
from detap.errors import UsageError
from detap.report.fields import ClassId, Count, Fraction, Object, each, list_of
from detap.report.model import Block, Cell, Column, Table, columns_of
from detap.report.numbers import UNDEFINED, plain, rows_of
from detap.report.sections.analysis import Analysis

_ERRORS = each(Fraction, "ECE", "MCE", "LaECE")

DATA = Object(
    "CalibrationData",
    "The data of --calibration, by score bin. A bin includes its lower edge, the last one both.",
    iou=float,
    **_ERRORS,
    edges=list[float],
    count=list_of(Count),
    **each(list_of(Fraction), "confidence", "accuracy"),
    classes=list_of(Object("ClassCalibration", name=str, id=ClassId, **_ERRORS)),
)


def blocks(analysis: Analysis, value: bool | None) -> Iterator[Block]:
    """Yield the reliability of the scores by bins, and the errors that sum it up."""
    # Scores outside 0 to 1 are an error only if --calibration is given.
    try:
        result = calibration(analysis.match_results)
    except UsageError as error:
        if value:
            raise
        yield Block("", "Score calibration", {}, (str(error),))
        return
    yield block_of(result, analysis.names)


def block_of(result: Calibration, names: Sequence[Mapping[str, Cell]]) -> Block:
    """Return the reliability of the scores; `names` has a row per class."""
    classes = [
        {**name, **_errors(one, localized.expected_error)}
        for name, one, localized in zip(names, result.by_class, result.localized, strict=True)
    ]
    overall = result.overall
    errors = _errors(result, result.localized_error)
    text = ", ".join(
        f"{name} {UNDEFINED if isnan(value) else f'{value:.4f}'}" for name, value in errors.items()
    )
    localized_bins = f"{len(result.localized[0].count)} " if result.localized else ""
    bins = [f"{low:.6g} to {high:.6g}" for low, high in pairwise(overall.edges.tolist())]
    values = (bins, overall.mean_score, overall.mean_value, overall.gap, overall.count)
    rows = rows_of(dict(zip((column.key for column in _COLUMNS), values, strict=True)))
    return Block(
        "calibration",
        f"Score calibration at IoU {result.iou:.6g}",
        DATA(
            overall,
            iou=result.iou,
            **errors,
            confidence=overall.mean_score,
            accuracy=overall.mean_value,
            classes=classes,
        ),
        (f"{text} ({len(overall.count)} bins; {localized_bins}bins for LaECE)",),
        Table(_COLUMNS, rows),
    )


def _errors(of: Calibration | Reliability, localized: float) -> dict[str, float]:
    return {"ECE": of.expected_error, "MCE": of.largest_error, "LaECE": localized}


def page_data(analysis: Analysis) -> dict[str, Any]:
    """Return the reliability of the scores, overall and by class, or the error."""
    try:
        result = calibration(analysis.match_results)
    except UsageError as error:
        return {"calibration": {"refused": str(error)}}
    data = {
        "edges": result.overall.edges.tolist(),
        "overall": _reliability(result.overall),
        "by_class": [_reliability(entry) for entry in result.by_class],
        "localized": result.localized_error,
        "localized_by_class": [entry.expected_error for entry in result.localized],
    }
    return {"calibration": plain(data)}


def _reliability(entry: Reliability) -> dict[str, Any]:
    # Only drawings take the means: to the precision of a pixel.
    return {
        "count": entry.count.tolist(),
        "confidence": np.round(entry.mean_score, 4).tolist(),
        "accuracy": np.round(entry.mean_value, 4).tolist(),
        "expected": entry.expected_error,
        "largest": entry.largest_error,
    }


_COLUMNS = (
    Column("name", "score bin", "score", "name"),
    *columns_of("fraction", "confidence", "accuracy"),
    *columns_of("change", "gap"),
    Column("count", "detections", "det", "count"),
)
