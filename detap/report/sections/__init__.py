"""Sections of a report: what a command says of a result, a file each.

A section that an option of ``detap eval`` asks for is a file and a line of :data:`SECTIONS`. The
line declares the option, which every start needs; the file is imported when it is asked for. It has

``DATA``
    the type of what the JSON report says under the name of the section; the schema derives from it;
``blocks(subject, value)``
    which returns the blocks of a :class:`detap.report.sections.analysis.Subject` for tables and
    text, the first of them with those data; `value` is the option's, and `alone` where the option
    is left out and ``--analysis`` asks for all;
``page_data(subject)``
    only where the HTML page draws the section by its template and script: which returns what the
    page's model has of it under ``analysis``. Of others the page shows the blocks, as text does.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from detap.records import Record
from detap.spelling import score_or_best


class Section(Record):
    """A section that an option asks for.

    Attributes
    ----------
    name : str
        The key of its data in the JSON report.
    help : str
        Of the option.
    values : tuple of str, range or function, optional
        What the option takes: one of these words, a whole number of this range, or text, of which
        the function returns the value or raises ValueError. None is a flag.
    alone : object
        The value of an option without one; None if there is no such option.
    metavar : str, optional
        What the help shows for a value, where there are no words.
    option : str
        The name with two dashes where left out.
    module : str
        Its file: that of its name where left out.
    needs_boxes : bool
        Whether it cannot be answered from partials, as engines and ``detap merge`` have.
    """

    name: str
    help: str
    values: tuple[str, ...] | range | Callable[[str], Any] | None = None
    alone: object = None
    metavar: str | None = None
    option: str = ""
    module: str = ""
    needs_boxes: bool = True

    @property
    def spelling(self) -> str:
        """The option of the command line."""
        return self.option or f"--{self.name.replace('_', '-')}"

    @property
    def key(self) -> str:
        """The name of the option among the options of a command."""
        return self.spelling.lstrip("-").replace("-", "_")

    def load(self) -> Any:
        """Return its file."""
        return import_module(self.module or f"{__name__}.{self.name}")

    @property
    def page_data(self) -> Callable[[Any], dict[str, Any]] | None:
        """The function of its file; None if the page shows its blocks."""
        return getattr(self.load(), "page_data", None)


SECTIONS: list[Section] = [
    Section(
        "errors",
        "The types of errors and the AP that each costs: by the protocol, or as tidecv.",
        ("protocol", "tidecv"),
        alone="protocol",
    ),
    Section(
        "operating_point",
        "Precision, recall, F1 and false positives per image at this score, or where F1 is best.",
        score_or_best,
        metavar="X|best",
        option="--score-threshold",
        needs_boxes=False,
    ),
    Section(
        "confusion",
        "Which classes are taken for which: the protocol's matches first, or by score alone.",
        ("protocol", "class-agnostic"),
        alone="protocol",
    ),
    Section("calibration", "Whether scores are what they claim."),
    Section("breakdowns", "Recall and precision by size, aspect ratio, crowding and position."),
    Section(
        "examples",
        "The worst images, most confident mistakes and doubtful annotations. [default: 10]",
        range(1, 100_001),
        alone=10,
        metavar="[N]",
    ),
]
"""All sections that an option asks for, in the order of a report."""
