"""Types of option values: text from the command line into what a protocol holds."""

import os
import re
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from detap.protocols import ALL_AREAS, ANY_AREA, COCO_AREAS, PROPOSAL_AREAS, AreaRange, linspace
from detap.report.sinks import SINKS, Sink, sink_for_path

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MOST_THRESHOLDS = 1000
_AREA_NAME = re.compile(r"\w[\w.+-]*")
NO_ROUNDING = object()
"""What ``none`` decimals become; None itself is an option that was not given."""
_SUFFIXES = {"small": "s", "medium": "m", "large": "l"}
_NAMED_AREAS = {"coco": COCO_AREAS, "proposals": PROPOSAL_AREAS, "none": (ANY_AREA,)}


def number(text: str) -> float:
    """Return a finite number; Python's own float() would also take ``1_0`` and ``nan``.

    Raises
    ------
    ValueError
        Where the text is none.
    """
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is not a number")
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text!r} is too large")
    return value


# click's types take a parameter to mypy, but not in every version that runs.
if TYPE_CHECKING:
    Type = click.ParamType[Any]
else:
    Type = click.ParamType


class _Parsed(Type):
    """A type whose `parse` raises ValueError with the message."""

    def parse(self, text: str) -> Any:
        """Return the value that the text stands for."""
        raise NotImplementedError  # pragma: no cover - every subclass answers

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Thresholds(_Parsed):
    """IoU thresholds: ``0.5``, ``0.5,0.75`` or ``0.5:0.95:0.05``."""

    name = "iou"

    def parse(self, text: str) -> tuple[float, ...]:
        """Return the thresholds, as given."""
        return tuple(value for part in text.split(",") for value in self._part(part))

    def _part(self, text: str) -> tuple[float, ...]:
        if ":" not in text:
            return (number(text),)
        parts = text.split(":")
        if len(parts) != 3:
            raise ValueError(f"{text!r} is not start:stop:step")
        start, stop, step = map(number, parts)
        if not (start < stop and step > 0):
            raise ValueError(f"{text!r} does not ascend")
        steps = (stop - start) / step
        if steps > _MOST_THRESHOLDS:
            raise ValueError(f"{text!r} has more than {_MOST_THRESHOLDS} steps")
        if abs(steps - round(steps)) > 1e-6:
            raise ValueError(f"{text!r} does not reach {parts[1]} in whole steps")
        # As numpy.linspace, so that 0.5:0.95:0.05 is COCO's list to the last bit.
        return linspace(start, stop, round(steps) + 1)


class Limits(_Parsed):
    """Detection limits: ``1,10,100``; ``none`` is no limit."""

    name = "limits"

    def parse(self, text: str) -> tuple[int | None, ...]:
        """Return the limits, None for no limit."""
        return tuple(self._limit(part.strip()) for part in text.split(","))

    def _limit(self, text: str) -> int | None:
        if text == "none":
            return None
        if not (text.isascii() and text.isdigit()):
            raise ValueError(f"{text!r} is neither a whole number nor 'none'")
        return int(text[:18])


class Flags(_Parsed):
    """Flags of ground truths, separated by commas, or ``none``."""

    name = "flags"

    def parse(self, text: str) -> tuple[str, ...]:
        """Return the flags as tables call them."""
        if text == "none":
            return ()
        return tuple(part.strip().replace("-", "_") for part in text.split(","))


class Areas(_Parsed):
    """Area ranges: ``coco``, ``proposals``, ``none``, or ``small=0:1024,large=1024:1e10``."""

    name = "areas"

    def parse(self, text: str) -> tuple[AreaRange, ...]:
        """Return the ranges, all areas first."""
        if text in _NAMED_AREAS:
            return _NAMED_AREAS[text]
        bands = [self._band(part.strip()) for part in text.split(",")]
        # The headline is taken over all areas: these always come first.
        return (ALL_AREAS, *(band for band in bands if band != ALL_AREAS))

    def _band(self, text: str) -> AreaRange:
        if text == "all":
            return ALL_AREAS
        name, _, ends = text.partition("=")
        low, colon, high = ends.partition(":")
        if not (_AREA_NAME.fullmatch(name) and colon):
            known = ", ".join(_NAMED_AREAS)
            raise ValueError(f"{text!r} is neither name=low:high nor one of {known}, all")
        if name == "all":
            raise ValueError("'all' always means all areas; give the range another name")
        suffix = _SUFFIXES.get(name, f"-{name}")
        return AreaRange(name, number(low), number(high) if high else ALL_AREAS.high, suffix)


class Number(_Parsed):
    """A number from `low` to `high`."""

    name = "number"

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high

    def parse(self, text: str) -> float:
        """Return the number."""
        value = number(text)
        if not self.low <= value <= self.high:
            raise ValueError(f"{text!r} is not from {self.low:g} to {self.high:g}")
        return value


class Decimals(_Parsed):
    """A number of decimals, or ``none``."""

    name = "decimals"

    def parse(self, text: str) -> object:
        """Return the number of decimals, or :data:`NO_ROUNDING`."""
        if text == "none":
            return NO_ROUNDING
        if not (text.isascii() and text.isdigit() and len(text) <= 2):
            raise ValueError(f"{text!r} is neither a small whole number nor 'none'")
        return int(text)


class Target(_Parsed):
    """Where a report goes and in which format: ``PATH`` by its extension, or ``FORMAT=PATH``."""

    name = "[format=]path"
    envvar_list_splitter = os.pathsep

    def parse(self, text: str) -> tuple[Sink | None, str]:
        """Return the sink, None where nothing tells which, and the path."""
        name, equals, path = text.partition("=")
        if equals and name == "gitlab" and path.endswith(".json"):
            # GitLab takes two reports; the one in JSON is the code-quality report.
            return SINKS["codequality"], path
        if equals and name in SINKS:
            return SINKS[name], path
        return sink_for_path(text), text
