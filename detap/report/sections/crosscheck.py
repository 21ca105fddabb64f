"""The same boxes through pycocotools, number by number."""

from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, TypedDict

from detap.report.fields import Count, Gap, Share, extra_items
from detap.report.model import Block, Cell, Column, Table

if TYPE_CHECKING:
    from detap.analysis.crosscheck import CrossCheck


class CheckedNumber(TypedDict):
    """A number of both implementations."""

    name: str
    detap: Share
    reference: Share
    difference: Gap


class CheckedArray(TypedDict):
    """An array of both implementations."""

    name: Literal["precision", "recall"]
    entries: Count
    differing: Count
    largest_difference: Gap


@extra_items(Any)
class CrossCheckData(TypedDict):
    """The numbers of both implementations, and how far they are apart."""

    reference: str
    equal: bool
    largest_difference: Gap
    inexact_boxes: Annotated[
        Count, "Boxes that have no width and height giving their very corners and area."
    ]
    as_it_is: NotRequired[
        Annotated[
            dict[str, Share] | None,
            "What pycocotools says of the file with its annotation of id 0, where "
            "that is anything else.",
        ]
    ]
    numbers: list[CheckedNumber]
    arrays: list[CheckedArray]


_COLUMNS = (
    Column("name", "number", "number", "name"),
    Column("detap", "detap", "detap", "exact"),
    Column("reference", "pycocotools", "pycocotools", "exact"),
    Column("difference", "difference", "difference", "exact"),
)


def cross_check_block(check: "CrossCheck") -> Block:
    """Return the cross-check as a part of a report."""
    rows: list[dict[str, Cell]] = [
        {"name": name, "detap": ours, "reference": theirs, "difference": check.differences[name]}
        for name, (ours, theirs) in check.numbers.items()
    ]
    data = {
        "reference": check.reference,
        "equal": check.equal,
        "largest_difference": _finite(check.largest),
        "inexact_boxes": check.inexact,
        "as_it_is": check.unmodified_file,
        "numbers": [
            {**row, "difference": _finite(check.differences[name])}
            for name, row in zip(check.numbers, rows, strict=True)
        ],
        "arrays": [
            {
                "name": name,
                "entries": entries,
                "differing": differing,
                "largest_difference": _finite(worst),
            }
            for name, (entries, differing, worst) in check.arrays.items()
        ],
    }
    return Block(
        "cross_check",
        f"cross-check against {check.reference}",
        data,
        (check.verdict,),
        Table(_COLUMNS, tuple(rows)),
    )


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
