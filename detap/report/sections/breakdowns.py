"""Breakdowns: recall and precision by size, aspect ratio, crowding and position."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from detap.analysis.breakdowns import (
    Breakdowns,
    breakdowns,
    breakdowns_by_score,
    iou_histogram,
    iou_histogram_by_score,
    score_histogram,
)
from detap.report.fields import Count, Fraction, Object, each, field, list_of
from detap.report.model import Block, Table, columns_of, name_column
from detap.report.numbers import at_score, rows_of
from detap.report.sections.analysis import Analysis, added_at_steps

_COUNTS = ("ground_truths", "matched", "detections", "true_positives")

BreakdownRow = Object(
    "BreakdownRow", name=str, **each(Fraction, "recall", "precision"), **each(Count, *_COUNTS)
)

HistogramData = Object(
    "HistogramData", edges=list[float], **each(list_of(Count), "true_positives", "false_positives")
)

DATA = Object(
    "BreakdownsData",
    "The data of --breakdowns; `position` requires image sizes.",
    iou=float,
    score_threshold=field(float | None, "Minimum score; null if all detections count."),
    **each(list_of(BreakdownRow), "size", "aspect_ratio", "crowding"),
    position=field(list_of(BreakdownRow), required=False),
    **each(HistogramData, "score_histogram", "iou_histogram"),
)

_LABELS = {
    "size": "size {} px",
    "aspect_ratio": "width/height {}",
    "crowding": "{} objects in image",
    "position": "{}",
}


def blocks(analysis: Analysis, value: bool | None) -> Iterator[Block]:
    """Yield the breakdowns; the histograms are in JSON only."""
    match_results = analysis.match_results
    result = breakdowns(match_results, score=analysis.score)
    histograms = {
        "score_histogram": HistogramData(score_histogram(match_results)),
        "iou_histogram": HistogramData(iou_histogram(match_results, score=analysis.score)),
    }
    yield block_of(result, histograms)


def block_of(result: Breakdowns, histograms: Mapping[str, Any]) -> Block:
    """Return the block of breakdowns, with histograms in JSON."""
    parts = {
        name: rows_of(BreakdownRow(part, name=part.groups))
        for name in _LABELS
        if (part := getattr(result, name)) is not None
    }
    return Block(
        "breakdowns",
        f"Breakdowns at IoU {result.iou:.6g}{at_score(result.score_threshold)}",
        {"iou": result.iou, "score_threshold": result.score_threshold, **parts, **histograms},
        () if "position" in parts else ("No breakdown by position: image sizes are unknown",),
        Table(
            _COLUMNS,
            tuple(
                {**row, "name": _group_label(name, str(row["name"]))}
                for name, rows in parts.items()
                for row in rows
            ),
        ),
    )


def page_data(analysis: Analysis) -> dict[str, Any]:
    """Return the breakdowns and the IoU histogram at each score step, and the score histogram."""
    match_results, steps = analysis.match_results, analysis.steps
    parts = [
        {
            "name": name,
            "groups": list(part.groups),
            "truths": part.ground_truths.tolist(),
            "matched": added_at_steps(part.matched),
            "detections": added_at_steps(part.detections),
            "true_positives": added_at_steps(part.true_positives),
        }
        for name, part in breakdowns_by_score(match_results, steps).items()
    ]
    by_score, by_iou = score_histogram(match_results), iou_histogram_by_score(match_results, steps)
    return {
        "breakdowns": parts,
        "histograms": {
            "score": HistogramData(by_score, edges=np.round(by_score.edges, 4)),
            "iou": HistogramData(
                edges=np.round(by_iou.edges, 4),
                true_positives=added_at_steps(by_iou.true_positives),
                false_positives=added_at_steps(by_iou.false_positives),
            ),
        },
    }


def _group_label(breakdown: str, group: str) -> str:
    """Return the label of a group; a range of counts includes its upper end."""
    if breakdown == "position":
        return group
    low, _, high = group.partition("-")
    if not high:
        group = f"{low}+"
    elif breakdown == "crowding":
        last = int(high) - 1
        if last == 1:
            return "1 object in image"
        group = low if last == int(low) else f"{low}-{last}"
    return _LABELS[breakdown].format(group)


_COLUMNS = (
    name_column("group"),
    *columns_of("fraction", "recall", "precision"),
    *columns_of("count", *_COUNTS),
)
