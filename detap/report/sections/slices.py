"""The numbers of parts of the images."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from detap.report.model import Block, Cell, Column, Table

if TYPE_CHECKING:
    from detap.gates.scored import SliceNumbers


def slices_block(slices: "Sequence[SliceNumbers]") -> Block:
    """Return the slices, of which there is at least one, as a part of a report."""
    names = list(slices[0].summary)
    columns = (
        Column("name", "slice", "slice", "name"),
        *(Column(name, name, name, "share", min(place, 2)) for place, name in enumerate(names)),
        Column("images", "images", "img", "count"),
        Column("ground_truths", "ground truths", "GT", "count"),
    )
    rows: list[Mapping[str, Cell]] = [
        {
            "name": part.tag,
            "images": part.images,
            "ground_truths": part.ground_truths,
            **part.summary,
        }
        for part in slices
    ]
    data = {
        part.tag: {
            "images": part.images,
            "images_sha256": part.images_sha256,
            "ground_truths": part.ground_truths,
            "summary": part.summary,
            "classes": part.classes,
        }
        for part in slices
    }
    return Block("slices", "Slices", data, table=Table(columns, tuple(rows)))
