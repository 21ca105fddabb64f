"""The metrics of slices of the images."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from detap.gates.detection import SliceMetrics
from detap.report.fields import ClassRow, Count, MetricValue, Object, dict_of, field, list_of
from detap.report.model import Block, Cell, Column, Table, columns_of, name_column

SliceEntry = Object(
    "SliceEntry",
    "The metrics of a slice.",
    images=Count,
    images_sha256=field(str, "Of their names, one per line.", pattern="^[0-9a-f]{64}$"),
    ground_truths=Count,
    summary=dict_of(MetricValue),
    classes=list_of(ClassRow),
)


def slices_block(
    slices: Sequence[SliceMetrics], by_metric: Mapping[str, Column] = MappingProxyType({})
) -> Block:
    """Return the block of slices; there must be at least one."""
    names = list(slices[0].summary)
    columns = [name_column("slice")]
    for index, name in enumerate(names):  # with the full name as heading
        column = by_metric.get(name) or Column(name, name, name, "fraction")
        columns.append(column._replace(short=name, priority=min(index, 2)))
    columns += columns_of("count", "images", "ground_truths")
    rows: list[dict[str, Cell]] = [
        {"name": one.tag, "images": one.images, "ground_truths": one.ground_truths, **one.summary}
        for one in slices
    ]
    data = {one.tag: SliceEntry(one) for one in slices}
    return Block("slices", "Slices", data, table=Table(tuple(columns), tuple(rows)))
