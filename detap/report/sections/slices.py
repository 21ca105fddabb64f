"""The metrics of slices of the images."""

from collections.abc import Mapping
from math import nan
from types import MappingProxyType

from detap.evaluation.results import Result, class_rows
from detap.io.digest import sha256_of_names
from detap.report.fields import ClassRow, Count, MetricValue, Object, dict_of, field, list_of
from detap.report.model import Block, Column, Table, columns_of, name_column

SliceEntry = Object(
    "SliceEntry",
    images=Count,
    images_sha256=field(str, "Of their names, one per line.", pattern="^[0-9a-f]{64}$"),
    ground_truths=Count,
    summary=dict_of(MetricValue),
    classes=list_of(ClassRow),
)


def slices_block(
    overall: Result,
    slices: Mapping[str, Result | None],
    by_metric: Mapping[str, Column] = MappingProxyType({}),
) -> Block:
    """Return the block of slices; None is one without images."""
    names = list(overall.summary)
    columns = [name_column("slice")]
    for index, name in enumerate(names):  # with the full name as heading
        column = by_metric.get(name) or Column(name, name, name, "fraction")
        columns.append(column._replace(short=name, priority=min(index, 2)))
    columns += columns_of("count", "images", "ground_truths")
    data = {}
    for tag, result in slices.items():
        images = () if result is None else result.images
        data[tag] = SliceEntry(
            images=len(images),
            images_sha256=sha256_of_names(images),  # to detect a baseline of others
            ground_truths=0 if result is None else int(result.ground_truths.sum()),
            summary=dict.fromkeys(names, nan) if result is None else result.summary,
            classes=() if result is None else class_rows(result),
        )
    rows = tuple({"name": tag, **entry, **entry["summary"]} for tag, entry in data.items())
    return Block("slices", "Slices", data, table=Table(tuple(columns), rows))
