"""The cross-check against pycocotools."""

from typing import Any, Literal

from detap.analysis.crosscheck import CrossCheck
from detap.report.fields import Count, Fraction, Gap, Object, dict_of, each, field, list_of
from detap.report.model import Block, Table, columns_of, name_column

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
        dict_of(Fraction) | None, "pycocotools' values with annotation id 0.", required=False
    ),
    metrics=list_of(CheckedMetric),
    arrays=list_of(CheckedArray),
)

_COLUMNS = (
    name_column("metric"),
    *columns_of("exact", detap="detap", reference="pycocotools", difference="difference"),
)


def cross_check_block(check: CrossCheck) -> Block:
    """Return the cross-check as a part of a report."""
    rows = [
        CheckedMetric(name=name, detap=ours, reference=theirs, difference=check.differences[name])
        for name, (ours, theirs) in check.metrics.items()
    ]
    data = CrossCheckData(
        check,
        largest_difference=check.largest,
        inexact_boxes=check.inexact,
        unmodified_file=check.unmodified_file,
        metrics=rows,
        arrays=[
            CheckedArray(name=name, entries=entries, differing=differing, largest_difference=worst)
            for name, (entries, differing, worst) in check.arrays.items()
        ],
    )
    title = f"Cross-check against {check.reference}"
    return Block("cross_check", title, data, (check.conclusion,), Table(_COLUMNS, tuple(rows)))
