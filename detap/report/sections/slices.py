"""The metrics of slices of the images."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from detap.gates.detection import SliceMetrics
from detap.report.fields import ClassRow, Count, MetricValue, Object, dict_of, field, list_of
from detap.report.model import Block, Cell, Column, Table

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
    slices: Sequence[SliceMetrics], columns_of: Mapping[str, Column] = MappingProxyType({})
) -> Block:
    """Return the block of slices; there must be at least one."""
    names = list(slices[0].summary)
    columns = [Column("name", "slice", "slice", "name")]
    for index, name in enumerate(names):  # with the full name as heading
        column = columns_of.get(name) or Column(name, name, name, "fraction")
        columns.append(replace(column, short=name, priority=min(index, 2)))
    columns += [
        Column("images", "images", "img", "count"),
        Column("ground_truths", "ground truths", "GT", "count"),
    ]
    rows: list[dict[str, Cell]] = [
        {"name": one.tag, "images": one.images, "ground_truths": one.ground_truths, **one.summary}
        for one in slices
    ]
    data = {one.tag: SliceEntry(one) for one in slices}
    return Block("slices", "Slices", data, table=Table(tuple(columns), tuple(rows)))
