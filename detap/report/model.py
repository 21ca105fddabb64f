"""What a report holds, whatever was evaluated and however it will be written.

Pure data: strings, numbers, and NaN where a number is undefined. Names are as the outside world
gave them; each sink makes them harmless in its own way. The records are NamedTuples and not
dataclasses, each of which costs 0.0004 s of every start.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from detap._version import __version__
from detap.errors import Note
from detap.records import Value

if TYPE_CHECKING:
    from detap.evaluation.results import Result

Cell = str | int | float | None
"""One value of a table: a name, a count, or a fraction that may be NaN."""


class Column(Value):
    """One column of the table.

    Attributes
    ----------
    key : str
        What the rows call it, and what JSON and CSV do.
    heading : str
        What people read above it.
    short : str
        The heading where there is little room.
    kind : str
        ``name``; ``text`` of detap; ``fraction``, a metric, mostly from 0 to 1; ``count``;
        ``exact``, with every digit; ``change``, the difference of two fractions, and
        ``precise_change``, with more digits; ``count_change``, the difference of two counts.
    priority : int
        0 is always shown; of the others, the highest go first when there is little room.
    graded : bool
        Whether a terminal colours a fraction by how good it is.
    higher_is_better : bool
        Whether larger values are better.
    """

    key: str
    heading: str
    short: str
    kind: Literal[
        "name", "text", "fraction", "count", "exact", "change", "precise_change", "count_change"
    ]
    priority: int = 0
    graded: bool = False
    higher_is_better: bool = True


class Table(Value):
    """Rows under columns, and perhaps a last row of means and sums.

    Attributes
    ----------
    columns : tuple of Column
        In the order of showing; the first is the name.
    rows : tuple of mapping
        From key to value. A row may hold keys that no column shows.
    totals : mapping or None
        The last row, set apart.
    """

    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Cell], ...]
    totals: Mapping[str, Cell] | None = None


class Block(Value):
    """Something a report has besides its main table: a cross-check, gates, ...

    Attributes
    ----------
    key : str
        The key of `data` in the JSON report; empty where what is told is part of another block's.
    title : str
        A heading for people.
    data : mapping
        What the JSON report says.
    lines : tuple of str
        Sentences for people.
    table : Table or None
        Numbers for people.
    verdicts : tuple of str
        ``passed``, ``failed`` or ``warning`` for each line that begins with the word of one.
    """

    key: str
    title: str
    data: Mapping[str, Any]
    lines: tuple[str, ...] = ()
    table: Table | None = None
    verdicts: tuple[str, ...] = ()


class PageSource(Value):
    """What a report of a detector was made from, for a sink that asks more of it.

    Attributes
    ----------
    result : Result
    before : Result or None
        An earlier detector's, on the same ground truth.
    record : mapping or None
        An earlier JSON report.
    earlier : str
        What either is called.
    pictures : str or None
        A folder of the images themselves.
    file_names : mapping
        From an image's name to what its file is called.
    """

    result: "Result"
    before: "Result | None" = None
    record: Mapping[str, Any] | None = None
    earlier: str = ""
    pictures: str | None = None
    file_names: Mapping[str, str] = field(default_factory=dict)


class Report(Value):
    """All that any sink needs.

    Attributes
    ----------
    kind : {"detection", "retrieval", "classification"}
        What was evaluated.
    table : Table
        One row per class (or query, ...).
    version : str
        detap's.
    signature : str
        The line that makes the numbers reproducible; empty where no protocol was in force.
    protocol : mapping
        Every field of the protocol.
    inputs : tuple of mapping
        For each input its role, path, sha256 and counts.
    summary : mapping of str to float
        The numbers that people quote, the headline first; NaN is undefined.
    param_columns : tuple of Column
        The columns of the summary behind name and value: IoU, area, ...
    params : mapping of str to tuple of str
        For each metric of the summary its text in those columns.
    columns : mapping of str to Column
        For each number of the summary its column in other tables; empty of a ranking, whose first
        number is graded.
    notes : tuple of Note
        What the readers and the evaluation noticed.
    blocks : tuple of Block
        The rest.
    title : str
        The title of the main table; mostly empty.
    answer : str
        The conclusion in one sentence, shown first.
    material : PageSource or None
        What it was made from; of a detector alone.
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
    title: str = ""
    answer: str = ""
    material: PageSource | None = None
