"""Shapes other than boxes, and flags in attributes."""

import math
from collections import Counter
from collections.abc import Sequence

from detap.errors import Note, UsageError
from detap.formats.by_name.notes import nonzero_notes

BBOX_HINT = "pass shapes='bbox' (--shapes bbox) to read its bounding box"
"""The hint for a shape that is not a box."""

_FLAG_OF = {"difficult": "difficult"} | dict.fromkeys(("crowd", "iscrowd", "is_crowd"), "crowd")
_FLAGS = ("difficult", "crowd", "ignore")
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def bounds(points: Sequence[Sequence[float]]) -> list[float]:
    """Return the smallest box around points, as x1, y1, x2, y2."""
    across, down = zip(*points, strict=True)
    return [min(across), min(down), max(across), max(down)]


def as_xywh(corners: Sequence[float]) -> list[float]:
    """Convert x1, y1, x2, y2 to x, y, width, height."""
    x1, y1, x2, y2 = corners
    return [x1, y1, x2 - x1, y2 - y1]


def rotated_ellipse(x: float, y: float, width: float, height: float, degrees: float) -> list[float]:
    """Return the smallest box around an ellipse rotated about its center, as x1, y1, x2, y2.

    Parameters
    ----------
    x, y : float
        The center.
    width, height, degrees : float
    """
    angle = math.radians(degrees % 360)
    cos, sin = math.cos(angle), math.sin(angle)
    across = math.hypot(width * cos, height * sin) / 2
    down = math.hypot(width * sin, height * cos) / 2
    return [x - across, y - down, x + across, y + down]


def rotated_box(
    x: float, y: float, width: float, height: float, degrees: float, *, about: float = 0.5
) -> list[list[float]]:
    """Return the corners, in order around, of a box rotated clockwise about a point of it.

    Parameters
    ----------
    x, y : float
        The point.
    width, height, degrees : float
    about : float
        Position of the point in the box: 0.5 for the center, 0 for the top-left corner.
    """
    angle = math.radians(degrees % 360)
    cos, sin = math.cos(angle), math.sin(angle)
    before, after = -about, 1 - about
    return [
        [x + i * width * cos - j * height * sin, y + i * width * sin + j * height * cos]
        for i, j in ((before, before), (after, before), (after, after), (before, after))
    ]


class FlagNames:
    """Maps attributes of an object to flags.

    Parameters
    ----------
    text : str or None
        ``NAME`` or ``NAME=FLAG``, separated by commas. ``difficult``, ``crowd`` and ``iscrowd``
        need no flag.

    Attributes
    ----------
    unmapped : Counter of str
        Number of objects with a true attribute that is named like a flag but not mapped.

    Raises
    ------
    UsageError
        If a flag is unknown or missing.
    """

    def __init__(self, text: str | None) -> None:
        self.flags: dict[str, str] = {}
        self.unmapped: Counter[str] = Counter()
        for option in filter(None, (text or "").split(",")):
            name, _, flag = option.partition("=")
            flag = flag or _FLAG_OF.get(name.lower(), "")
            if flag not in _FLAGS or not name:
                choices = " or ".join(f"{name or 'NAME'}={flag}" for flag in _FLAGS)
                raise UsageError(f"attribute flag {option!r} names no flag; use {choices}")
            self.flags[name] = flag

    def flag_of(self, name: str, value: str) -> str:
        """Return the flag that an attribute sets, or "".

        Raises
        ------
        ValueError
            If the value of a flag is neither true nor false.
        """
        if name not in self.flags and name.lower() not in _FLAG_OF:
            return ""
        is_set = _TRUTH.get(value.strip().lower())
        if name in self.flags:
            if is_set is None:
                raise ValueError
            return self.flags[name] if is_set else ""
        if is_set:
            self.unmapped[name] += 1
        return ""

    def notes(self) -> tuple[Note, ...]:
        """Note the attributes that are named like flags but not mapped."""
        names = ",".join(sorted(self.unmapped))
        return nonzero_notes(
            Note(
                "flags-not-mapped",
                "objects have an unmapped attribute named like a flag; map it with "
                f"--attribute-flags {names}",
                sum(self.unmapped.values()),
            )
        )
