"""The contents of a report, independent of what was evaluated and of the output format.

Undefined numbers are NaN. Names are not escaped: each writer escapes them for its format.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal

from detap._version import __version__
from detap.errors import Note
from detap.records import Value

if TYPE_CHECKING:
    from detap.analysis.bootstrap import PairedResamples
    from detap.evaluation.results import Result
    from detap.formats.image_folders import ImageFolder

Cell = str | int | float | None
"""A value of a table."""


class Column(Value):
    """A column of a table.

    Attributes
    ----------
    key : str
        Its key in rows, JSON and CSV.
    heading : str
        Its heading in text.
    short : str
        The heading in narrow tables.
    kind : str
        ``name``; ``text`` of detap; ``fraction``, a metric, mostly from 0 to 1; ``count``;
        ``exact``, with every digit; ``change``, the difference of two fractions, and
        ``precise_change``, with more digits; ``count_change``, the difference of two counts.
    priority : int
        0 is always shown; in narrow tables, columns of the highest priority are dropped first.
    higher_is_better : bool
    """

    key: str
    heading: str
    short: str
    kind: Literal[
        "name", "text", "fraction", "count", "exact", "change", "precise_change", "count_change"
    ]
    priority: int = 0
    higher_is_better: bool = True


class Table(Value):
    """Columns, rows and an optional last row of means and sums.

    Attributes
    ----------
    columns : tuple of Column
        The first is the name.
    rows : tuple of mapping
        Values by key. A row may have keys without a column.
    totals : mapping or None
        The last row.
    """

    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Cell], ...]
    totals: Mapping[str, Cell] | None = None


class Block(Value):
    """A further part of a report, such as gates or a cross-check.

    Attributes
    ----------
    key : str
        The key of `data` in the JSON report; empty if another block has the data.
    title : str
        Its heading in text.
    data : mapping
        Its data in JSON.
    lines : tuple of str
        Its sentences in text.
    table : Table or None
        Its table in text.
    verdicts : tuple of str
        ``passed``, ``failed`` or ``warning`` for each line that begins with a gate status.
    """

    key: str
    title: str
    data: Mapping[str, Any]
    lines: tuple[str, ...] = ()
    table: Table | None = None
    verdicts: tuple[str, ...] = ()


class DataFolder(Value):
    """A folder with the images' data of an HTML page.

    Attributes
    ----------
    path : str
    address : str
        Its URL, relative to the page.
    """

    path: str
    address: str


class PageSource(Value):
    """The result behind a report, for the HTML page.

    Attributes
    ----------
    result : Result
    before : Result or None
        The result of an earlier detector on the same ground truth.
    record : mapping or None
        An earlier JSON report.
    earlier : str
        The name of the earlier detector or report.
    resamples : PairedResamples or None
        Metrics of both detectors that were resampled for gates.
    pictures : ImageFolder or None
        The folder of the image files.
    file_names : mapping
        File names by image name.
    data_folder : DataFolder or None
        None to embed the images' data.
    """

    result: "Result"
    before: "Result | None" = None
    record: Mapping[str, Any] | None = None
    earlier: str = ""
    resamples: "PairedResamples | None" = None
    pictures: "ImageFolder | None" = None
    file_names: Mapping[str, str] = field(default_factory=dict)
    data_folder: DataFolder | None = None


class Report(Value):
    """A report, for any writer.

    Attributes
    ----------
    kind : {"detection", "retrieval", "classification"}
    table : Table
        One row per class (or query, ...).
    version : str
        The version of detap.
    signature : str
        Empty without a protocol.
    protocol : mapping
        Every field of the protocol.
    inputs : tuple of mapping
        For each input its role, path, sha256 and counts.
    summary : mapping of str to float
        The metrics, the primary one first; NaN is undefined.
    param_columns : tuple of Column
        The columns of the summary behind name and value: IoU, area, ...
    params : mapping of str to tuple of str
        For each metric of the summary its text in those columns.
    columns : mapping of str to Column
        For each metric of the summary its column in other tables; empty for a ranking.
    notes : tuple of Note
        Notes of the readers and the evaluation.
    blocks : tuple of Block
        Further parts.
    rows : tuple of mapping
        The rows of the JSON report, if those of the table have further cells.
    title : str
        The title of the main table; mostly empty.
    conclusion : str
        The conclusion in one sentence, shown first.
    page_source : PageSource or None
        For detectors only.
    """

    kind: str
    table: Table
    version: str = __version__
    signature: str = ""
    protocol: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[Mapping[str, Any], ...] = ()
    summary: Mapping[str, float] = field(default_factory=dict)
    param_columns: tuple[Column, ...] = ()
    params: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    blocks: tuple[Block, ...] = ()
    rows: tuple[Mapping[str, Cell], ...] = ()
    title: str = ""
    conclusion: str = ""
    page_source: PageSource | None = None

    def with_blocks(self, blocks: tuple[Block, ...], notes: tuple[Note, ...]) -> "Report":
        """Return the report with blocks before the others, and notes after the others."""
        return replace(self, blocks=(*blocks, *self.blocks), notes=(*self.notes, *notes))
