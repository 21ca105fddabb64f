"""The contents of a report, independent of what was evaluated and of the output format.

Undefined numbers are NaN. Names are not escaped: each writer escapes them for its format.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from detap._version import __version__
from detap.errors import Note
from detap.evaluation.results import Result
from detap.formats.image_folders import ImageFolder

Cell = str | int | float | None  # a value of a table
# `text` is of detap. A `fraction` is a metric, mostly from 0 to 1; `exact` has every digit;
# a `threshold` is of scores; a `change` is the difference of two fractions or counts.
Kind = Literal[
    "name",
    "text",
    "fraction",
    "threshold",
    "count",
    "exact",
    "change",
    "precise_change",
    "count_change",
]


class Column(NamedTuple):
    """A column of a table."""

    key: str  # in rows, JSON and CSV
    heading: str
    short: str  # the heading in narrow tables
    kind: Kind
    priority: int = 0  # 0 is always shown; narrow tables drop columns of the highest first
    higher_is_better: bool = True


_SHORT = {
    "ground truths": "GT",
    "detections": "det",
    "true positives": "TP",
    "false positives": "FP",
    "false negatives": "FN",
    "duplicates": "dup",
    "misclassified": "misclass.",
    "images": "img",
    "precision": "prec",
    "confidence": "conf",
    "accuracy": "acc",
    "ground truth": "GT",
    "relevant": "rel",
    "ranked": "rank",
    "undefined": "undef",
    "positives": "pos",
    "negatives": "neg",
    "difficult": "dif",
    "unscored": "uns",
    "background FN": "bkg FN",
    "background FP": "bkg FP",
    "matched by": "by",
    "adjusted p": "adj. p",
    "matching digits": "digits",
    "gate fails from": "fails from",
    "data sets": "sets",
}


def columns_of(kind: Kind, *keys: str, priority: int = 0, **headings: str) -> tuple[Column, ...]:
    """Return columns of a kind by their keys; headings are those given, or the keys."""
    words = {key: key.replace("_", " ") for key in keys} | headings
    return tuple(
        Column(key, text, _SHORT.get(text, text), kind, priority) for key, text in words.items()
    )


def name_column(heading: str) -> Column:
    """Return the first column of most tables: the names of the rows."""
    return Column("name", heading, heading, "name")


class Table(NamedTuple):
    """Columns, rows and an optional last row of means and sums."""

    columns: tuple[Column, ...]  # the first is the name
    rows: tuple[Mapping[str, Cell], ...]  # values by key, also of keys without a column
    totals: Mapping[str, Cell] | None = None
    best: tuple[str, ...] = ()  # columns whose best value is emphasized
    # A difference and the ends of its interval: emphasized where the interval excludes 0.
    interval: tuple[str, ...] = ()
    shown: int | None = None  # rows on a terminal; None for all


class Block(NamedTuple):
    """A further part of a report, such as gates or a cross-check."""

    key: str  # of the data in the JSON report; empty if another block has the data
    title: str
    data: Mapping[str, Any]
    lines: tuple[str, ...] = ()
    table: Table | None = None
    verdicts: tuple[str, ...] = ()  # of each line: `passed`, `failed` or `warning`


class DataFolder(NamedTuple):
    """A folder with the images' data of an HTML page."""

    path: str
    address: str  # its URL, relative to the page


@dataclass(frozen=True, slots=True, eq=False)
class PageSource:
    """The result behind a report, for the HTML page."""

    result: Result
    before: Result | None = None  # of an earlier detector on the same ground truth
    record: Mapping[str, Any] | None = None  # an earlier JSON report
    earlier: str = ""  # the name of the earlier detector or report
    pictures: ImageFolder | None = None
    file_names: Mapping[str, str] = field(default_factory=dict)  # by image name
    data_folder: DataFolder | None = None  # None to embed the images' data


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """A report, for any writer."""

    kind: str  # a key of `writers.json.ROWS`
    table: Table  # one row per class (or query, ...)
    version: str = __version__
    signature: str = ""
    protocol: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Mapping[str, Any], ...] = ()
    summary: Mapping[str, float] = field(default_factory=dict)  # the primary metric first
    # The columns of the summary behind name and value (IoU, area, ...), and their texts by metric.
    param_columns: tuple[Column, ...] = ()
    params: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)  # by metric, in other tables
    notes: tuple[Note, ...] = ()
    blocks: tuple[Block, ...] = ()
    rows: tuple[Mapping[str, Cell], ...] = ()  # of JSON, if those of the table have further cells
    title: str = ""  # of the main table
    conclusion: str = ""  # one sentence, shown first
    page_source: PageSource | None = None  # for detectors only

    def with_blocks(self, blocks: tuple[Block, ...], notes: tuple[Note, ...]) -> "Report":
        """Return the report with blocks before the others, and notes after the others."""
        return replace(self, blocks=(*blocks, *self.blocks), notes=(*self.notes, *notes))
