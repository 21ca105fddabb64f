"""Options that ask where a detector errs."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from detap.cli.options import Decorator, option, stack
from detap.cli.values import Text, Whole
from detap.report.sections import SECTIONS, Section

_analysis = partial(option, group="Analysis (where the detector errs, at IoU .5)")


def _option_of(section: Section) -> Decorator[Any]:
    values, attributes = section.values, dict[str, Any]()
    if values is None:
        attributes = {"is_flag": True}
    elif isinstance(values, tuple):
        attributes["type"] = click.Choice(values)
    elif isinstance(values, range):
        attributes["type"] = Whole(values[0], values[-1])
    else:
        attributes["type"] = Text(values)
    if section.flag_value is not None:
        attributes |= {"is_flag": False, "flag_value": section.flag_value}
    return _analysis(section.spelling, metavar=section.metavar, help=section.help, **attributes)


analysis_options = stack(
    *map(_option_of, SECTIONS),
    _analysis("--analysis", "all_analyses", is_flag=True, help="All of these."),
)


def requested_sections(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the options that request sections, by the names of the sections."""
    values = {section.name: options[section.key] for section in SECTIONS}
    # A score threshold of 0 equals False.
    requested = {name: v for name, v in values.items() if v is not None and v is not False}
    if options["all_analyses"]:
        return {section.name: section.flag_value for section in SECTIONS} | requested
    return requested
