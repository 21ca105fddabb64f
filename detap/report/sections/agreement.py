"""The report of the agreement of two annotators."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, Literal

import numpy as np

from detap.analysis.agreement import Agreement, Counts, f1
from detap.analysis.confusion import off_diagonal
from detap.report.fields import Count, Fraction, Object, each, field, list_of, report_of
from detap.report.model import Block, Cell, Column, Report, Table, columns_of, name_column
from detap.report.numbers import rows_of
from detap.report.sections.comparison import top_rows

_MOST_CLASSES = 10  # in a table of classes by classes; JSON has all

AgreementRow = Object(
    "AgreementRow",
    "F1 and boxes of a class or image; the boxes of a pair are of equal class.",
    name=int | str,
    F1=Fraction,
    **each(Count, "first", "second", "pairs"),
)

PairedClasses = Object(
    "PairedClasses",
    "The classes of boxes paired without regard to class. Rows are of the first, columns of the "
    "second; the last row and column are of boxes without a partner.",
    iou=float,
    classes=list[str],
    matrix=list_of(list_of(Count)),
    **each(Count, "matched", "only_first", "only_second"),
)

Summary = Object(
    "AgreementSummary",
    **each(Fraction, "F1", "mean IoU"),
    **each(field(float | None, minimum=-1, maximum=1), "kappa", "kappa of matched"),
)

AgreementReport = report_of(
    Literal["agreement"],
    "AgreementReport",
    "The JSON report of detap compare --agreement. Undefined figures are null.",
    summary=Summary,
    classes=list_of(AgreementRow),
    notes=list[Any],
    pairs=PairedClasses,
    images=Object(
        "ImagesByF1",
        all=field(list_of(AgreementRow), "By F1, the worst first; without boxes last."),
    ),
    gates=field(dict[str, Any], required=False),
)


def agreement_report(
    agreement: Agreement, *, inputs: Sequence[Mapping[str, Any]] = (), max_rows: int | None = 10
) -> Report:
    """Return the report of two annotators."""
    rows = _rows(agreement.classes, agreement.class_counts)
    (totals,) = _rows(["all classes"], agreement.class_counts.sum(axis=0, keepdims=True))
    images = sorted(  # the worst first
        _rows(agreement.images, agreement.image_counts),
        key=lambda r: (isnan(r["F1"]), r["F1"], 2 * r["pairs"] - r["first"] - r["second"]),
    )
    table, title = _table("image", images), "Images by F1, worst first"
    return Report(
        kind="agreement",
        title=f"Agreement at IoU {agreement.iou:g}",
        inputs=tuple(inputs),
        summary=agreement.summary,
        table=_table("class", rows)._replace(totals=totals),
        rows=rows,
        notes=agreement.notes,
        blocks=(
            _pairs(agreement, max_rows),
            top_rows("images", title, {"all": images}, table, max_rows),
        ),
    )


def _rows(names: Sequence[Any], counts: Counts) -> tuple[dict[str, Any], ...]:
    """Return F1 and boxes of each class or image."""
    columns = zip(("first", "second", "pairs"), counts.T, strict=True)
    return rows_of({"name": names, "F1": f1(counts), **dict(columns)})


def _table(heading: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of the rows with boxes."""
    counts = columns_of("count", "first", "second", "pairs")
    columns = (name_column(heading), *columns_of("fraction", "F1"), *counts)
    return Table(columns, tuple(row for row in rows if row["first"] or row["second"]))


def _pairs(agreement: Agreement, max_rows: int | None) -> Block:
    """Return the table of classes by classes; of many classes, the largest disagreements."""
    matrix, count = agreement.matrix, len(agreement.classes)
    data = PairedClasses(
        iou=agreement.iou,
        classes=list(agreement.classes),
        matrix=matrix,
        matched=int(matrix[:-1, :-1].sum()),
        only_first=int(matrix[:-1, -1].sum()),
        only_second=int(matrix[-1, :-1].sum()),
    )
    names = (*agreement.classes, "none")
    used = np.flatnonzero(matrix.any(axis=0) | matrix.any(axis=1)).tolist()
    shown = sorted({*used, count})
    rows: tuple[dict[str, Cell], ...]
    if len(shown) - 1 > _MOST_CLASSES:
        counts = columns_of("count", "boxes")
        columns = (name_column("first"), *columns_of("name", "second"), *counts)
        rows = tuple(
            {"name": names[row], "second": names[k], "boxes": boxes}
            for row, k, boxes in off_diagonal(matrix)
        )
        table = Table(columns, rows)
        return top_rows("pairs", "Boxes of different classes", data, table, max_rows)
    columns = (name_column("class"), *(Column(f"{k}", names[k], names[k], "count") for k in shown))
    rows = tuple(
        {"name": names[row], **{f"{k}": int(matrix[row, k]) for k in shown}} for row in shown
    )
    title = "Boxes by their class in the first (rows) and in the second (columns)"
    return Block("pairs", title, data, table=Table(columns, rows))
