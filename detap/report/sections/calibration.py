"""How far scores are from what they claim, as a part of a report."""

from collections.abc import Iterator
from itertools import pairwise
from math import isnan
from typing import Any, TypedDict

import numpy as np

from detap.analysis.calibration import Reliability, calibration
from detap.errors import UsageError
from detap.report.fields import ClassId, Count, Share
from detap.report.model import Block, Column, Table
from detap.report.numbers import UNDEFINED
from detap.report.sections.analysis import Subject
from detap.report.values import plain, rows_of


class ClassCalibration(TypedDict):
    """The calibration errors of a class."""

    name: str
    id: ClassId
    ECE: Share
    MCE: Share
    LaECE: Share


class CalibrationData(TypedDict):
    """Of --calibration, by bins of the score.

    Each bin includes its lower edge, the last both.
    """

    iou: float
    ECE: Share
    MCE: Share
    LaECE: Share
    edges: list[float]
    count: list[Count]
    mean_score: list[Share]
    true_share: list[Share]
    classes: list[ClassCalibration]


DATA = CalibrationData


def blocks(subject: Subject, value: bool | None) -> Iterator[Block]:
    """Yield the reliability of the scores by bins, and the errors that sum it up.

    Scores that are no shares are refused only where the section is asked for by name.
    """
    try:
        found = calibration(subject.outcome)
    except UsageError as error:
        if value:
            raise
        yield Block("", "Calibration of the scores", {}, (str(error),))
        return
    classes = [
        {
            **name,
            "ECE": one.expected_error,
            "MCE": one.largest_error,
            "LaECE": localised.expected_error,
        }
        for name, one, localised in zip(subject.names, found.by_class, found.localised, strict=True)
    ]
    whole = found.overall
    errors = {
        "ECE": found.expected_error,
        "MCE": found.largest_error,
        "LaECE": found.localised_error,
    }
    told = ", ".join(
        f"{name} {UNDEFINED if isnan(value) else f'{value:.4f}'}" for name, value in errors.items()
    )
    localised_bins = f"{len(found.localised[0].count)} " if found.localised else ""
    yield Block(
        "calibration",
        f"Calibration of the scores at IoU {found.iou:.6g}",
        {"iou": found.iou, **errors, **_columns(whole), "classes": classes},
        (f"{told}; {len(whole.count)} bins, {localised_bins}for LaECE",),
        _table(whole),
    )


def page_data(subject: Subject) -> dict[str, Any]:
    """Return the reliability of the scores, overall and by class, or why there is none."""
    try:
        found = calibration(subject.outcome)
    except UsageError as error:
        return {"calibration": {"refused": str(error)}}
    data = {
        "edges": found.overall.edges.tolist(),
        "overall": _reliability(found.overall),
        "by_class": [_reliability(entry) for entry in found.by_class],
        "localised": found.localised_error,
        "localised_by_class": [entry.expected_error for entry in found.localised],
    }
    return {"calibration": plain(data)}


def _reliability(entry: Reliability) -> dict[str, Any]:
    # Only drawings take the means: to the precision of a pixel.
    return {
        "count": entry.count.tolist(),
        "score": np.round(entry.mean_score, 4).tolist(),
        "value": np.round(entry.mean_value, 4).tolist(),
        "expected": entry.expected_error,
        "largest": entry.largest_error,
    }


def _columns(whole: Reliability) -> dict[str, Any]:
    return {
        "edges": whole.edges.tolist(),
        "count": whole.count.tolist(),
        "mean_score": whole.mean_score.tolist(),
        "true_share": whole.mean_value.tolist(),
    }


def _table(whole: Reliability) -> Table:
    columns = (
        Column("name", "score", "score", "name"),
        Column("mean_score", "mean score", "mean", "share"),
        Column("true_share", "share that is right", "right", "share"),
        Column("gap", "gap", "gap", "change"),
        Column("count", "detections", "det", "count"),
    )
    rows = {
        "name": [f"{low:.6g} to {high:.6g}" for low, high in pairwise(whole.edges.tolist())],
        "mean_score": whole.mean_score.tolist(),
        "true_share": whole.mean_value.tolist(),
        "gap": whole.gap.tolist(),
        "count": whole.count.tolist(),
    }
    return Table(columns, rows_of(rows))
