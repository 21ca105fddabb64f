"""Sections of a report, one file each.

A section that an option of ``detap eval`` requests is one file and one line of :data:`SECTIONS`.
The line declares the option, which every start needs. The file is imported when requested. It has

``DATA``
    the type of its data in the JSON report, from which the schema derives;
``blocks(analysis, value)``
    a function that returns blocks for tables and text, the first with those data; it takes an
    :class:`detap.report.sections.analysis.Analysis` and the value of the option, or `flag_value`
    if only ``--analysis`` is given;
``page_data(analysis)``
    only if the template and script of the HTML page draw the section: a function that returns its
    entries of ``analysis`` in the page's model. The page shows the blocks of all other sections.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from detap.text_input import score_or_best


class Section(NamedTuple):
    """A section that an option requests."""

    name: str  # the key of its data in the JSON report, and its file
    help: str
    # Words, whole numbers, or texts that the function reads; None is a flag.
    values: tuple[str, ...] | range | Callable[[str], Any] | None = None
    flag_value: object = None  # without an argument; None if the option needs one
    metavar: str | None = None
    option: str = ""  # by default the name with two dashes
    module: str = ""  # by default that of the name in this package
    needs_scores: bool = True  # False if detections may lack scores

    @property
    def flag(self) -> str:
        """The option of the command line."""
        return self.option or f"--{self.name.replace('_', '-')}"

    @property
    def key(self) -> str:
        """The key of the option in the options of a command."""
        return self.flag.lstrip("-").replace("-", "_")

    def load(self) -> Any:
        """Import its file."""
        return import_module(self.module or f"{__name__}.{self.name}")

    @property
    def page_data(self) -> Callable[[Any], dict[str, Any]] | None:
        """The function of the file; None if the page shows the blocks."""
        return getattr(self.load(), "page_data", None)


SECTIONS: list[Section] = [
    Section(
        "errors",
        "TIDE errors and the AP gained by fixing each type; matching by the protocol or as tidecv.",
        ("protocol", "tidecv"),
        flag_value="protocol",
    ),
    Section(
        "operating_point",
        "Precision, recall, F1 and false positives per image at a threshold or the best F1.",
        score_or_best,
        metavar="X|best",
        option="--score-threshold",
    ),
    Section(
        "confusion",
        "Confusion matrix, from the protocol's matches or class-agnostic ones.",
        ("protocol", "class-agnostic"),
        flag_value="protocol",
        needs_scores=False,
    ),
    Section(
        "calibration", "Score calibration: confidence and accuracy by score bin, ECE, MCE, LaECE."
    ),
    Section(
        "breakdowns",
        "Recall and precision by size, aspect ratio, crowding and position.",
        needs_scores=False,
    ),
    Section(
        "examples",
        "Worst images, most confident errors and possible label errors. [default: 10]",
        range(1, 100_001),
        flag_value=10,
        metavar="[N]",
    ),
]
"""All sections that options request, in the order of a report."""
