"""How far scores are from what they claim, as a part of a report."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

from detap.analysis.calibration import Calibration, Reliability
from detap.report.model import Block, Cell, Column, Table
from detap.report.numbers import UNDEFINED


def calibration_block(found: Calibration, names: Sequence[Mapping[str, Cell]]) -> Block:
    """Return the reliability of the scores by bins, and the errors that sum it up."""
    classes = [
        {
            **name,
            "ECE": one.expected_error,
            "MCE": one.largest_error,
            "LaECE": localised.expected_error,
        }
        for name, one, localised in zip(names, found.by_class, found.localised, strict=True)
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
    return Block(
        "calibration",
        f"Calibration of the scores at IoU {found.iou:.6g}",
        {"iou": found.iou, **errors, **_columns(whole), "classes": classes},
        (f"{told}; {len(whole.count)} bins, {_localised_bins(found)}for LaECE",),
        _table(whole),
    )


def _localised_bins(found: Calibration) -> str:
    return f"{len(found.localised[0].count)} " if found.localised else ""


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
    edges = whole.edges.tolist()
    rows: list[dict[str, Cell]] = [
        {
            "name": f"{edges[k]:.6g} to {edges[k + 1]:.6g}",
            "mean_score": float(whole.mean_score[k]),
            "true_share": float(whole.mean_value[k]),
            "gap": float(whole.gap[k]),
            "count": int(whole.count[k]),
        }
        for k in range(len(whole.count))
    ]
    return Table(columns, tuple(rows))
