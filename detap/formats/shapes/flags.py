"""Shapes that are no boxes, and flags that hide among attributes."""

from collections import Counter
from collections.abc import Sequence

from detap.errors import Note, UsageError
from detap.formats.by_name.notes import told

SHAPES = ("reject", "bbox")
"""Boxes alone, other shapes being an error; or the bounds of other shapes as well."""

BY_ITS_BOUNDS = "give shapes='bbox' (--shapes bbox), and its bounds are taken for a box"
"""The remedy of a shape that is no box."""

_FLAG_OF = {"difficult": "difficult", "crowd": "crowd", "iscrowd": "crowd"}
_FLAGS = ("difficult", "crowd", "ignore")
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def bounds(points: Sequence[Sequence[float]]) -> list[float]:
    """Return x1, y1, x2, y2 of the smallest box around points."""
    across, down = zip(*points, strict=True)
    return [min(across), min(down), max(across), max(down)]


class FlagNames:
    """Which attributes of an object stand for a flag.

    Parameters
    ----------
    text : str or None
        ``NAME`` or ``NAME=FLAG``, several with commas between. Of ``difficult``, ``crowd`` and
        ``iscrowd`` the name says the flag.

    Attributes
    ----------
    unmapped : Counter of str
        How many objects say yes under a name that says a flag, and that is not listed.

    Raises
    ------
    UsageError
        Where a flag is none, or the name does not say it.
    """

    def __init__(self, text: str | None) -> None:
        self.flags: dict[str, str] = {}
        self.unmapped: Counter[str] = Counter()
        for part in filter(None, (text or "").split(",")):
            name, _, flag = part.partition("=")
            flag = flag or _FLAG_OF.get(name.lower(), "")
            if flag not in _FLAGS or not name:
                listed = " or ".join(f"{name or 'NAME'}={flag}" for flag in _FLAGS)
                raise UsageError(f"attribute flag {part!r} does not say which flag; use {listed}")
            self.flags[name] = flag

    def meant(self, name: str, value: str) -> str:
        """Return the flag that an attribute sets, or an empty string.

        Raises
        ------
        ValueError
            Where it should say yes or no, and does not.
        """
        said = _TRUTH.get(value.strip().lower())
        if name in self.flags:
            if said is None:
                raise ValueError
            return self.flags[name] if said else ""
        if said and name.lower() in _FLAG_OF:
            self.unmapped[name] += 1
        return ""

    def notes(self) -> tuple[Note, ...]:
        """Note the attributes that are called like flags, and are not taken for them."""
        names = ",".join(sorted(self.unmapped))
        return told(
            Note(
                "flags-not-mapped",
                "objects bear an attribute that is called like a flag, and count like any other "
                f"(attribute_flags, --attribute-flags {names} makes it one)",
                sum(self.unmapped.values()),
            )
        )
