"""From two detectors to a report: numbers side by side, and the classes and images that changed."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from detap import metrics
from detap.analysis.comparison import KINDS, difference
from detap.analysis.power import resolution
from detap.errors import Note
from detap.evaluation.results import class_rows
from detap.report.fields import ClassId, Count, extra_items
from detap.report.model import Block, Cell, Column, Report, Table
from detap.report.sections.power import resolution_block
from detap.report.sections.selection import selection_blocks

if TYPE_CHECKING:
    from detap.analysis.comparison import Comparison, ErrorCounts


@extra_items(Any)
class ComparedInput(TypedDict):
    """A file that was read."""

    role: Literal["ground_truth", "first", "second"]
    path: str
    sha256: str | None


class NumberPair(TypedDict):
    """A number of both detectors, and its difference."""

    name: str
    first: float | None
    second: float | None
    difference: float | None
    low: Annotated[float | None, "The lower end of the interval of the difference."]
    high: float | None


@extra_items(Any)
class ClassPair(TypedDict):
    """The primary metric of a class, of both detectors, and its difference."""

    name: str
    id: ClassId
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    ground_truths: Count


class ChangedClasses(TypedDict):
    """The classes, and how many of them changed."""

    changed: Count
    all: Annotated[list[ClassPair], "Those whose primary metric changed most first."]


@extra_items(Any)
class ImageChange(TypedDict):
    """How many more mistakes the second detector makes on an image."""

    name: int | str
    mistakes: int
    missed: int
    mislocated: int
    duplicate: int
    confused: int
    background: int


class ChangedImages(TypedDict):
    """The images, and how many of them changed."""

    changed: Count
    all: Annotated[
        list[ImageChange],
        "Those whose mistakes changed, most first: how many more the second makes.",
    ]


@extra_items(Any)
class MistakeCounts(TypedDict):
    """How many mistakes of a kind each detector makes."""

    first: Count
    second: Count
    difference: int


@extra_items(MistakeCounts)
class MistakesData(TypedDict):
    """How many of each kind each makes.

    Absent, as images are, of results that were merged from partials.
    """

    missed: MistakeCounts
    mislocated: MistakeCounts
    duplicate: MistakeCounts
    confused: MistakeCounts
    background: MistakeCounts


def comparison_report(
    comparison: "Comparison",
    *,
    inputs: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[Note] = (),
    most: int | None = 10,
    drop: float | None = None,
) -> Report:
    """Return the report of two detectors side by side.

    Parameters
    ----------
    comparison : Comparison
        Of :func:`detap.analysis.comparison.compare`.
    inputs : sequence of mapping
        What was read.
    notes : sequence of Note
        What is to be said besides.
    most : int or None
        How many classes and images people are shown; JSON always has all that changed.
    drop : float, optional
        Of which it is said how many images tell it from noise.
    """
    protocol = comparison.first.protocol
    numbers = tuple(_number(comparison, name) for name in comparison.names)
    return Report(
        kind="comparison",
        signature=comparison.second.signature,
        protocol=protocol.as_dict(),
        inputs=tuple(inputs),
        table=Table(_columns("number", "number", comparison), numbers),
        notes=tuple(notes),
        blocks=(
            _classes(comparison, most),
            *_of_mistakes(comparison, most),
            *_resolution(comparison, most, drop),
            *selection_blocks(comparison.second.selection),
        ),
    )


def _resolution(
    comparison: "Comparison", most: int | None, drop: float | None
) -> tuple[Block, ...]:
    """Return what the images can show, where they were resampled."""
    found = resolution(comparison, drop)
    return () if found is None else (resolution_block(found, most),)


def _columns(key: str, heading: str, comparison: "Comparison") -> tuple[Column, ...]:
    columns = [
        Column("name", heading, key, "name"),
        Column("first", "first", "first", "share"),
        Column("second", "second", "second", "share"),
        Column("difference", "difference", "diff", "change"),
    ]
    if comparison.resamples is not None:
        level = f"{100 * comparison.confidence:g} %"
        columns += [
            Column("low", f"{level} CI low", f"{level} low", "change"),
            Column("high", f"{level} CI high", f"{level} high", "change"),
        ]
    return tuple(columns)


def _number(comparison: "Comparison", name: str) -> dict[str, Cell]:
    low, high = comparison.interval(name)
    return {
        "name": name,
        "first": comparison.first.summary[name],
        "second": comparison.second.summary[name],
        "difference": comparison.difference(name),
        "low": low,
        "high": high,
    }


def _classes(comparison: "Comparison", most: int | None) -> Block:
    """Return the classes, those whose primary metric changed most first."""
    before, after = class_rows(comparison.first), class_rows(comparison.second)
    primary = metrics.summary(comparison.first.protocol)[0]
    key = primary.class_name
    changes = None if comparison.errors is None else comparison.changed_by_class
    rows = []
    for label, (then, now) in enumerate(zip(before, after, strict=True)):
        low, high = comparison.interval(primary.name, label)
        kinds = {} if changes is None else dict(zip(KINDS, changes[label].tolist(), strict=True))
        rows.append(
            {
                "name": now["name"],
                "id": now["id"],
                "first": then[key],
                "second": now[key],
                "difference": _difference(then[key], now[key]),
                "low": low,
                "high": high,
                "ground_truths": now["ground_truths"],
                **kinds,
            }
        )
    rows.sort(key=lambda row: -_size(row["difference"]))
    changed = [row for row in rows if _size(row["difference"]) > 0]
    columns = (
        *_columns("class", "class", comparison),
        Column("ground_truths", "ground truths", "GT", "count", 1),
    )
    title = _title("class", "classes", len(changed), len(rows), most)
    return Block(
        "classes",
        title,
        {"changed": len(changed), "all": rows},
        table=_shown(columns, changed, most),
    )


def _difference(then: Cell, now: Cell) -> float:
    assert isinstance(then, int | float)
    assert isinstance(now, int | float)
    return difference(float(then), float(now))


def _size(difference: Cell) -> float:
    return abs(difference) if isinstance(difference, float) and not isnan(difference) else 0.0


def _of_mistakes(comparison: "Comparison", most: int | None) -> tuple[Block, ...]:
    """Return what the boxes of both tell, where they are at hand."""
    if comparison.errors is None:
        return ()
    return _images(comparison, most), _mistakes(*comparison.errors)


def _images(comparison: "Comparison", most: int | None) -> Block:
    """Return the images, those whose mistakes changed most first, worse ones before better."""
    changed = comparison.changed.tolist()
    names = comparison.first.images
    found = [(sum(counts), image, counts) for image, counts in enumerate(changed) if any(counts)]
    found.sort(key=lambda entry: (abs(entry[0]), entry[0]), reverse=True)
    rows: list[dict[str, Cell]] = [
        {"name": names[image], "mistakes": total, **dict(zip(KINDS, counts, strict=True))}
        for total, image, counts in found
    ]
    columns = (
        Column("name", "image", "image", "name"),
        Column("mistakes", "mistakes", "all", "more"),
        *(Column(kind, kind, kind[:4], "more") for kind in KINDS),
    )
    title = _title("image", "images", len(rows), len(names), most)
    data = {"changed": len(rows), "all": rows}
    return Block("images", title, data, table=_shown(columns, rows, most))


def _mistakes(*both: "ErrorCounts") -> Block:
    first, second = (found.by_image.sum(axis=0).tolist() for found in both)
    rows: list[dict[str, Cell]] = [
        {"name": kind, "first": then, "second": now, "difference": now - then}
        for kind, then, now in zip(KINDS, first, second, strict=True)
    ]
    columns = (
        Column("name", "mistakes", "mistakes", "name"),
        Column("first", "first", "first", "count"),
        Column("second", "second", "second", "count"),
        Column("difference", "difference", "diff", "more"),
    )
    data = {str(row["name"]): {k: v for k, v in row.items() if k != "name"} for row in rows}
    return Block("mistakes", "Mistakes, by kind", data, table=Table(columns, tuple(rows)))


def _title(one: str, many: str, changed: int, count: int, most: int | None) -> str:
    if not changed:
        return f"No {one} changed"
    told = f"{changed} of {count} {many} changed"
    return told if most is None or changed <= most else f"{told}, the {most} that changed most"


def _shown(
    columns: tuple[Column, ...], rows: Sequence[Mapping[str, Cell]], most: int | None
) -> Table | None:
    return Table(columns, tuple(rows if most is None else rows[:most])) if rows else None
