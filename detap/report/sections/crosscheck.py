"""The cross-check against pycocotools."""

from math import isfinite
from typing import Any, Literal

from detap.analysis.crosscheck import CrossCheck
from detap.report.fields import Count, Fraction, Gap, Object, dict_of, each, field, list_of
from detap.report.model import Block, Column, Table, columns_of, name_column

CheckedMetric = Object(
    "CheckedMetric", name=str, **each(Fraction, "detap", "reference"), difference=Gap
)

CheckedArray = Object(
    "CheckedArray",
    name=Literal["precision", "recall"],
    **each(Count, "entries", "differing"),
    largest_difference=Gap,
)

CrossCheckData = Object(
    "CrossCheckData",
    "The metrics of both implementations and their differences.",
    others=Any,
    reference=str,
    equal=bool,
    largest_difference=Gap,
    inexact_boxes=field(Count, "Boxes whose corners and area no width and height give exactly."),
    unmodified_file=field(
        dict_of(Fraction) | None,
        "pycocotools' values for the unmodified file, if its annotation id 0 changes them.",
        required=False,
    ),
    metrics=list_of(CheckedMetric),
    arrays=list_of(CheckedArray),
)

_COLUMNS = (
    name_column("metric"),
    *columns_of("exact", "detap"),
    Column("reference", "pycocotools", "pycocotools", "exact"),
    *columns_of("exact", "difference"),
)


def cross_check_block(check: CrossCheck) -> Block:
    """Return the cross-check as a part of a report."""
    rows = [
        CheckedMetric(name=name, detap=ours, reference=theirs, difference=check.differences[name])
        for name, (ours, theirs) in check.metrics.items()
    ]
    data = CrossCheckData(
        check,
        largest_difference=_finite(check.largest),
        inexact_boxes=check.inexact,
        unmodified_file=check.unmodified_file,
        metrics=[{**row, "difference": _finite(row["difference"])} for row in rows],
        arrays=[
            CheckedArray(
                name=name,
                entries=entries,
                differing=differing,
                largest_difference=_finite(worst),
            )
            for name, (entries, differing, worst) in check.arrays.items()
        ],
    )
    return Block(
        "cross_check",
        f"Cross-check against {check.reference}",
        data,
        (check.conclusion,),
        Table(_COLUMNS, tuple(rows)),
    )


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
