"""An axis, once: what values a field of a protocol takes, and what is said of it.

A field of a protocol is declared by :func:`protocol_field`. Its name, choices, default and texts
stand there and nowhere else: the check of its value, the option of the command line, its spelling
in the signature, its line of the JSON schema and its row of the docs all derive from it
(``python -m docs.derive`` writes the last).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, field, fields, replace
from functools import partial
from itertools import pairwise
from math import inf, isfinite, isinf
from struct import pack, unpack
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args, get_origin

from detap.errors import UsageError
from detap.records import Record, Value
from detap.text_input import is_whole, number, suggest

FLAGS = ("difficult", "crowd", "ignore", "group_of", "no_keypoints")
"""What a ground truth can be marked with."""

SAME_THRESHOLD = 1e-9
"""IoU thresholds nearer than this are one: no two of a protocol may be."""

MOST_LIMITS = 254
"""core holds the first limit that admits a detection as one byte."""

MOST_THRESHOLDS = 64
"""core holds what happens at each threshold as the bits of one word."""


def linspace(start: float, stop: float, count: int) -> tuple[float, ...]:
    """Return `count` numbers from `start` to `stop`, the very floats of ``numpy.linspace``.

    Its order of operations, without importing it: linspace(.5, .95, 10)[8] is 0.8999999999999999,
    linspace(0, 1, 101)[35] one ulp above 35/100.
    """
    step = (stop - start) / (count - 1)
    return (*(i * step + start for i in range(count - 1)), stop)


def float32(value: float) -> float:
    """Return the nearest float32."""
    nearest: float = unpack("f", pack("f", value))[0]
    return nearest


def linspace32(start: float, stop: float, count: int) -> tuple[float, ...]:
    """Return `count` numbers from `start` to `stop`, the very floats of ``torch.linspace``.

    It counts up from the left and down from the right, in float32, rounding once.
    """
    step = float32((stop - start) / (count - 1))
    half = count // 2
    up = (float32(start + i * step) for i in range(half))
    return (*up, *(float32(stop - (count - 1 - i) * step) for i in range(half, count)))


RECALL_GRIDS: dict[str, tuple[float, ...]] = {
    # MATLAB's 0:0.1:1 counts up from the left to the middle and down from the right behind it:
    # .3 = 3 * .1 is one ulp above 3/10, all others are the nearest floats to k/10.
    "matlab": tuple(i * 0.1 if i <= 5 else 1.0 - (10 - i) * 0.1 for i in range(11)),
    # numpy.arange(0, 1.1, .1): .3, .6 and .7 are one ulp above k/10.
    "arange": tuple(i * 0.1 for i in range(11)),
    "linspace": linspace(0.0, 1.0, 101),
    "hundredths": tuple(i / 100 for i in range(101)),
    # torch.linspace(0, 1, 101), as torchmetrics has it.
    "float32": linspace32(0.0, 1.0, 101),
    # The points of the KITTI benchmark but the first.
    "fortieths": tuple(i / 40 for i in range(1, 41)),
}
"""The recall levels at which interpolated precision is read, by the name of who makes them so."""


class AreaRange(NamedTuple):
    """Areas from `low` to `high` square pixels, both ends included.

    `suffix` is what the range adds to the name of a measure: ``"s"`` in ``APs``.
    """

    name: str
    low: float
    high: float
    suffix: str = ""


ANY_AREA = AreaRange("all", -inf, inf)
"""Where a protocol knows no ranges: negative areas (of boxes clipped away) and huge ones count."""

ALL_AREAS = AreaRange("all", 0.0, 1e10)
"""pycocotools' range of all areas: an unmatched detection beyond it counts neither way."""

COCO_AREAS = (
    ALL_AREAS,
    AreaRange("small", 0.0, 32.0**2, "s"),
    AreaRange("medium", 32.0**2, 96.0**2, "m"),
    AreaRange("large", 96.0**2, 1e10, "l"),
)
PROPOSAL_AREAS = (
    *COCO_AREAS,
    AreaRange("96-128", 96.0**2, 128.0**2, "-96-128"),
    AreaRange("128-256", 128.0**2, 256.0**2, "-128-256"),
    AreaRange("256-512", 256.0**2, 512.0**2, "-256-512"),
    AreaRange("512-inf", 512.0**2, 1e10, "-512-inf"),
)
KITTI_LEVELS = tuple(AreaRange(n, -inf, inf, f"-{n}") for n in ("moderate", "easy", "hard"))
"""KITTI's levels, the quoted one first: of any area; what else is asked of objects differs."""

_HEAD = (0.26, 0.25, 0.25, 0.35, 0.35)
_LIMBS = (0.79, 0.79, 0.72, 0.72, 0.62, 0.62, 1.07, 1.07, 0.87, 0.87, 0.89, 0.89)
_CROWD_POSE = (79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89, 79, 79)
SIGMAS: dict[str, tuple[float, ...]] = {
    # Tenths, divided as pycocotools does: 0.26 / 10 is not the float 0.026.
    "coco": tuple(tenth / 10 for tenth in (*_HEAD, *_LIMBS)),
    "crowdpose": tuple(thousandth / 1000 for thousandth in _CROWD_POSE),
}
"""What one distance means at each keypoint, by the name of the skeleton."""


# --- kinds of values


class Kind:
    """What values an axis takes.

    Attributes
    ----------
    metavar : str or None
        What the help shows for a value; None where the choices say it.
    repeatable : bool
        Whether the option may be repeated; the values are then one list.
    choices : tuple of str
        Where there are a few.
    says, forms : str
        The values, as the docs tell them; and how an option is given them, where that differs.
    """

    metavar: str | None = None
    repeatable = False
    choices: tuple[str, ...] = ()
    says = ""
    forms = ""

    def accept(self, name: str, value: Any) -> Any:
        """Return the value as plain Python, or raise UsageError where an axis cannot have it."""
        del name
        return value

    def parse(self, text: str) -> Any:
        """Return the value that a text of the command line stands for, or raise ValueError."""
        if text not in self.choices:
            raise ValueError(f"{text!r} is none of {', '.join(self.choices)}")
        return text

    def spell(self, value: Any) -> str:
        """Return a value as the signature has it, every number exact."""
        return str(value)

    def brief(self, value: Any) -> str:
        """Return a value as people are shown it: the middle of a long list is left out."""
        parts = self.spell(value).split(",")
        return ",".join(parts if len(parts) < 4 else [*parts[:2], "...", parts[-1]])

    def told(self, name: str, before: Any, after: Any) -> str:
        """Return what a change of the value is, behind "the difference is"."""
        return f"{worded(name)} {self.brief(after)} instead of {self.brief(before)}"

    def revive(self, value: Any) -> Any:
        """Return a value that was plain JSON as :meth:`accept` takes it."""
        return value

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of a value."""
        raise NotImplementedError  # pragma: no cover - every kind answers


def _refuse(name: str, value: object, what: str) -> UsageError:
    return UsageError(f"{worded(name)} {value!r} {what}")


class YesNo(Kind):
    """True or false."""

    choices = ("yes", "no")
    says = "`yes`, `no`"

    def accept(self, name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise _refuse(name, value, "is not True or False")
        return value

    def parse(self, text: str) -> bool:
        return bool(super().parse(text) == "yes")

    def spell(self, value: Any) -> str:
        return "yes" if value else "no"

    def told(self, name: str, before: Any, after: Any) -> str:
        return f"that {worded(name)} is {'on' if after else 'off'}"

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Choice(Kind):
    """One of a few names."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices
        self.says = ", ".join(f"`{choice}`" for choice in choices)

    def accept(self, name: str, value: Any) -> Any:
        if value not in self.choices:
            raise _refuse(name, value, f"is unknown; choose from {', '.join(self.choices)}")
        return value

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.choices)}


class Flags(Choice):
    """Several of :data:`FLAGS`, or none.

    `without` and `having` say what ground truths of a flag do that is not among them, or is.
    """

    metavar = "FLAGS"

    def __init__(self, without: str, having: str) -> None:
        super().__init__(*FLAGS)
        self.forms = f"{self.says}; `none`"
        self._does = {False: without, True: having}

    def accept(self, name: str, value: Any) -> Any:
        return tuple(super(Flags, self).accept(name, flag) for flag in _listed(name, value))

    def parse(self, text: str) -> tuple[str, ...]:
        if text == "none":
            return ()
        return tuple(part.strip().replace("-", "_") for part in text.split(","))

    def spell(self, value: Any) -> str:
        return ",".join(value) or "none"

    def told(self, name: str, before: Any, after: Any) -> str:
        changed = [flag for flag in (*before, *after) if (flag in before) != (flag in after)]
        return "that " + " and ".join(
            f"{worded(flag)} objects {self._does[flag in after]}" for flag in changed
        )

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": super().schema()}


class Number(Kind):
    """A number from `low`, or above it, to `high`."""

    def __init__(
        self, low: float, high: float = inf, *, above: bool = False, metavar: str = "X"
    ) -> None:
        self.low, self.high, self.above, self.metavar = low, high, above, metavar
        ends = (f"above {low:g}" if above else f"{low:g}", f"{high:g}")
        self.says = ends[0] if high == inf else " to ".join(ends)

    def accept(self, name: str, value: Any) -> float:
        found = _real(name, value)
        if fault := self._fault(found):
            raise _refuse(name, found, fault)
        return found

    def _fault(self, value: float) -> str:
        """Return what is wrong about a number, or nothing; NaN is within nothing."""
        reaches = value > self.low if self.above else value >= self.low
        if reaches and value <= self.high:
            return ""
        if not self.above:
            return f"is not from {self.low:g} to {self.high:g}"
        return f"is not above {self.low:g}" + f" and at most {self.high:g}" * (self.high < inf)

    def parse(self, text: str) -> float:
        value = number(text)
        if fault := self._fault(value):
            raise ValueError(f"{text!r} {fault}")
        return value

    def spell(self, value: Any) -> str:
        return exact(value)

    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "number"}
        found["exclusiveMinimum" if self.above else "minimum"] = self.low
        if self.high != inf:
            found["maximum"] = self.high
        return found


class NumberList(Kind):
    """Several numbers, none of which need be whole or ascend: ``25,40,25``; or none."""

    metavar = "LIST"
    says = "numbers, or `none`"
    forms = "`25`; `25,40,25`; `none`"
    _one = Number(0)

    def accept(self, name: str, value: Any) -> tuple[float, ...]:
        return tuple(self._one.accept(name, entry) for entry in _listed(name, value))

    def parse(self, text: str) -> tuple[float, ...]:
        return () if text == "none" else tuple(map(self._one.parse, text.split(",")))

    def spell(self, value: Any) -> str:
        return ",".join(map(exact, value)) or "none"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self._one.schema()}


class Sigmas(NumberList):
    """What one distance means at each keypoint, or the name of a skeleton; or none."""

    says = "numbers above 0, or `none`"
    forms = "`coco`, `crowdpose`, `0.026,0.025,...`; `none`"
    _one = Number(0, above=True)

    def parse(self, text: str) -> tuple[float, ...]:
        return SIGMAS[text] if text in SIGMAS else super().parse(text)


class Word(Kind):
    """A name."""

    def accept(self, name: str, value: Any) -> str:
        if not (isinstance(value, str) and value):
            raise _refuse(name, value, "is no name")
        return value

    def parse(self, text: str) -> str:
        return text

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


class ByClass(Kind):
    """A value for each of some classes, by name: ``Car=0.7,Cyclist=0.5``; or none."""

    metavar = "CLASS=..."

    def __init__(self, one: Kind, says: str, example: str) -> None:
        self.one, self.says = one, says
        self.forms = f"`{example}`; `none`"

    def accept(self, name: str, value: Any) -> tuple[tuple[str, Any], ...]:
        given = value.items() if hasattr(value, "items") else _listed(name, value)
        pairs = [_listed(name, pair) for pair in given]
        if any(len(pair) != 2 for pair in pairs):
            raise _refuse(name, value, "is no pairs of a class and what it has")
        word = Word()
        return tuple((word.accept(name, k), self.one.accept(name, v)) for k, v in pairs)

    def parse(self, text: str) -> tuple[tuple[str, Any], ...]:
        return () if text == "none" else tuple(self._pair(part) for part in text.split(","))

    def _pair(self, text: str) -> tuple[str, Any]:
        name, equals, value = text.rpartition("=")
        if not (name and equals and value):
            raise ValueError(f"{text!r} is not class=value")
        return name, self.one.parse(value)

    def spell(self, value: Any) -> str:
        return ",".join(f"{name}={self.one.spell(entry)}" for name, entry in value) or "none"

    def schema(self) -> dict[str, Any]:
        pair = {"type": "array", "prefixItems": [{"type": "string"}, self.one.schema()]}
        return {"type": "array", "items": pair | {"minItems": 2, "maxItems": 2}}


class Decimals(Kind):
    """A number of decimals; None does not round."""

    metavar = "N"
    says = "number, or `none`"
    _most = 99

    def accept(self, name: str, value: Any) -> int | None:
        if value is None or (_is_whole(value) and 0 <= value <= self._most):
            found: int | None = value
            return found
        raise _refuse(name, value, f"is not None or a whole number to {self._most}")

    def parse(self, text: str) -> int | None:
        if text == "none":
            return None
        if not (is_whole(text) and len(text) <= 2):
            raise ValueError(f"{text!r} is neither a small whole number nor 'none'")
        return int(text)

    def spell(self, value: Any) -> str:
        return "none" if value is None else str(value)

    def schema(self) -> dict[str, Any]:
        return {"type": ["integer", "null"], "minimum": 0}


class Weight(Decimals):
    """What something counts: 0 or 1; None where nothing is made of it."""

    says = "`none`, `0` or `1`"
    _most = 1

    def schema(self) -> dict[str, Any]:
        return {"enum": [None, 0, 1]}


class Floor(Kind):
    """A least number, of any sign; None is none."""

    metavar = "X"
    says = "number, or `none`"

    def accept(self, name: str, value: Any) -> float | None:
        found = None if value is None else _real(name, value)
        if found is not None and not isfinite(found):
            raise _refuse(name, found, "is not None or a finite number")
        return found

    def parse(self, text: str) -> float | None:
        return None if text == "none" else number(text)

    def spell(self, value: Any) -> str:
        return "none" if value is None else exact(value)

    def schema(self) -> dict[str, Any]:
        return {"type": ["number", "null"]}


class Thresholds(Kind):
    """IoU thresholds: ``0.5``, ``0.5,0.75`` or ``0.5:0.95:0.05``."""

    metavar = "LIST"
    repeatable = True
    says = "from above 0 to 1, ascending"
    forms = "`0.5`; `0.5,0.75`; `0.5:0.95:0.05`"
    _most_steps = 1000
    _one = Number(0, 1, above=True)

    def accept(self, name: str, value: Any) -> tuple[float, ...]:
        found = tuple(self._one.accept("IoU threshold", entry) for entry in _listed(name, value))
        if not found:
            raise UsageError("at least one IoU threshold is needed")
        if len(found) > MOST_THRESHOLDS:
            raise UsageError(f"{len(found)} IoU thresholds; at most {MOST_THRESHOLDS} are possible")
        if list(found) != sorted(set(found)):
            raise UsageError("IoU thresholds must ascend, each given once")
        for lower, upper in pairwise(found):
            if upper - lower < SAME_THRESHOLD:
                raise UsageError(
                    f"IoU thresholds {lower!r} and {upper!r} are too near each other: numbers are "
                    f"named by thresholds that differ by {SAME_THRESHOLD} at least"
                )
        return found

    def parse(self, text: str) -> tuple[float, ...]:
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
        if steps > self._most_steps:
            raise ValueError(f"{text!r} has more than {self._most_steps} steps")
        if abs(steps - round(steps)) > 1e-6:
            raise ValueError(f"{text!r} does not reach {parts[1]} in whole steps")
        # As numpy.linspace, so that 0.5:0.95:0.05 is COCO's list to the last bit.
        return linspace(start, stop, round(steps) + 1)

    def spell(self, value: Any) -> str:
        return ",".join(exact(threshold) for threshold in value)

    def schema(self) -> dict[str, Any]:
        item = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
        return {"type": "array", "minItems": 1, "items": item}


class Limits(Kind):
    """Detection limits: ``1,10,100``; ``none`` is no limit."""

    metavar = "LIST"
    says = "numbers, ascending, or `none`"
    _most = 2**63 - 1
    forms = "`1,10,100`; `none`"

    def accept(self, name: str, value: Any) -> tuple[int | None, ...]:
        found: tuple[int | None, ...] = _listed(name, value)
        if not found:
            raise UsageError("at least one detection limit is needed")
        for limit in found:
            if limit is not None and not _is_whole(limit):
                raise UsageError(f"detection limit {limit!r} is not None or a whole number")
        sizes = [inf if limit is None else limit for limit in found]
        if any(size < 1 for size in sizes):
            raise UsageError("a detection limit must be at least 1")
        if any(self._most < size < inf for size in sizes):
            raise UsageError(f"a detection limit is above {self._most}; None is no limit")
        if sizes != sorted(set(sizes)):
            raise UsageError("detection limits must ascend, each given once")
        if len(found) > MOST_LIMITS:
            raise UsageError(f"{len(found)} detection limits; at most {MOST_LIMITS} are possible")
        return found

    def parse(self, text: str) -> tuple[int | None, ...]:
        return tuple(self._limit(part.strip()) for part in text.split(","))

    def _limit(self, text: str) -> int | None:
        if text == "none":
            return None
        if not is_whole(text):
            raise ValueError(f"{text!r} is neither a whole number nor 'none'")
        return int(text[:18])

    def spell(self, value: Any) -> str:
        return ",".join("none" if limit is None else str(limit) for limit in value)

    def schema(self) -> dict[str, Any]:
        return {
            "type": "array",
            "minItems": 1,
            "items": {"type": ["integer", "null"], "minimum": 1},
        }


class Cutoffs(Kind):
    """The k of measures at k: ``1,5,10``."""

    metavar = "LIST"
    repeatable = True
    says = "whole numbers from 1, ascending"
    forms = "`5`; `1,5,10`"

    def accept(self, name: str, value: Any) -> tuple[int, ...]:
        found: tuple[int, ...] = _listed(name, value)
        for k in found:
            if not _is_whole(k) or k < 1:
                raise UsageError(f"k is {k!r}; it must be 1 or more, and whole")
        if list(found) != sorted(set(found)):
            raise UsageError("the k do not ascend")
        return found

    def parse(self, text: str) -> tuple[int, ...]:
        parts = [part.strip() for part in text.split(",")]
        if not all(is_whole(part) and 0 < int(part[:12]) < 10**9 for part in parts):
            raise ValueError(f"{text!r} is no list of whole numbers from 1")
        return tuple(map(int, parts))

    def spell(self, value: Any) -> str:
        return ",".join(map(str, value)) or "none"

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "integer", "minimum": 1}}


class Areas(Kind):
    """Area ranges: those of a name, or ``small=0:1024,large=1024:1e10``."""

    metavar = "RANGES"
    says = "ranges"
    forms = "`coco`, `proposals`, `kitti`, `none`, or `small=0:1024,large=1024:`"
    named: ClassVar[dict[str, tuple[AreaRange, ...]]] = {
        "coco": COCO_AREAS,
        "proposals": PROPOSAL_AREAS,
        "kitti": KITTI_LEVELS,
        "none": (ANY_AREA,),
    }
    _suffixes: ClassVar[dict[str, str]] = {"small": "s", "medium": "m", "large": "l"}

    def accept(self, name: str, value: Any) -> tuple[AreaRange, ...]:
        found: tuple[AreaRange, ...] = _listed(name, value)
        if not found:
            raise UsageError("at least one area range is needed")
        for band in found:
            if not isinstance(band, AreaRange):
                raise UsageError(f"area range {band!r} is not an AreaRange")
            what = "suffix" if isinstance(band.name, str) else "name"
            if not isinstance(getattr(band, what), str):
                raise UsageError(f"area range {band!r}: the {what} is not a string")
            end = f"end of area range {band.name!r}"
            low, high = _real(end, band.low), _real(end, band.high)
            if (low, high) != (-inf, inf) and not 0 <= low <= high:
                raise UsageError(
                    f"area range {band.name!r} goes from {exact(low)} to {exact(high)}; "
                    "it must ascend from 0 or more"
                )
        for what in ("name", "suffix"):
            if len({getattr(band, what) for band in found}) < len(found):
                raise UsageError(f"two area ranges have the same {what}")
        return found

    def parse(self, text: str) -> tuple[AreaRange, ...]:
        for name, ranges in self.named.items():
            if text in (name, self.spell(ranges)):
                return ranges
        bands = [self._band(part.strip()) for part in text.split(",")]
        # The headline is taken over all areas: these always come first.
        return (ALL_AREAS, *(band for band in bands if band != ALL_AREAS))

    def _band(self, text: str) -> AreaRange:
        if text == "all":
            return ALL_AREAS
        name, _, ends = text.partition("=")
        low, between, high = ends.partition(":" if ":" in ends else "-")
        if not (_is_name(name) and between):
            known = ", ".join(self.named)
            raise ValueError(f"{text!r} is neither name=low:high nor one of {known}, all")
        if text == self.spell((ALL_AREAS,)):
            return ALL_AREAS
        if name == "all":
            raise ValueError("'all' always means all areas; give the range another name")
        suffix = self._suffixes.get(name, f"-{name}")
        return AreaRange(name, number(low), number(high) if high else ALL_AREAS.high, suffix)

    def revive(self, value: Any) -> Any:
        found = []
        for band in value:
            ends = {key: band[key] for key in ("low", "high") if band[key] is not None}
            found.append(AreaRange(**{**band, "low": -inf, "high": inf, **ends}))
        return found

    def spell(self, value: Any) -> str:
        return ",".join(
            "any" if band == ANY_AREA else f"{band.name}={_ends(band)}" for band in value
        )

    def schema(self) -> dict[str, Any]:
        end = {
            "description": "In square pixels, included; null is without end.",
            "type": ["number", "null"],
        }
        ends = {"name": {"type": "string"}, "low": end, "high": end, "suffix": {"type": "string"}}
        item = {
            "type": "object",
            "required": list(ends),
            "additionalProperties": False,
            "properties": ends,
        }
        return {"type": "array", "minItems": 1, "items": item}


def _ends(band: AreaRange) -> str:
    any_area = (band.low, band.high) == (-inf, inf)
    return "any" if any_area else f"{exact(band.low)}-{exact(band.high)}"


def exact(value: float) -> str:
    """Return a number so that two are spelt alike only where they are equal."""
    # Of float, not of what is derived from it: numpy's own repr names its type.
    return float.__repr__(float(value)).removesuffix(".0")


def worded(name: str) -> str:
    """Return the name of an axis, or of what it can hold, as people are told it."""
    return name.replace("_", " ")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _real(name: str, value: Any) -> float:
    """Return a plain float, also for numpy's: signatures spell it."""
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise _refuse(name, value, "is not a number")
    try:
        return float(value)
    except OverflowError:
        raise UsageError(f"{worded(name)} is too large for a number") from None


def _listed(name: str, value: Any) -> tuple[Any, ...]:
    """Return a sequence as a tuple; text is none, although it has letters."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise _refuse(name, value, "is not a tuple")
    return tuple(value)


def _is_name(text: str) -> bool:
    return text[:1].replace("_", "a").isalnum() and all(
        letter.isalnum() or letter in "_.+-" for letter in text
    )


# --- axes


class ProtocolField(Record):
    """One axis of a protocol.

    Attributes
    ----------
    name : str
        Of the field.
    kind : Kind
        What values it takes.
    default : object
    option : str
        Of the command line.
    help : str
        What it says, in a line of the help.
    meaning : str
        The same at length, for the docs.
    """

    name: str
    kind: Kind
    default: Any
    option: str
    help: str
    meaning: str


def protocol_field(
    default: Any,
    help: str,
    meaning: str = "",
    *,
    kind: Kind | None = None,
    option: str | None = None,
) -> Any:
    """Declare a field of a protocol.

    Parameters
    ----------
    default : object
    help : str
        A line of the help.
    meaning : str, optional
        The same at length; the line itself where left out.
    kind : Kind, optional
        By default the field's type says it: bool, or a Literal of names.
    option : str, optional
        By default the field's name with dashes.
    """
    return field(default=default, metadata={"axis": (kind, option, help, meaning or help)})


def protocol_fields(rules: "type[ProtocolBase]") -> tuple[ProtocolField, ...]:
    """Return the axes of a kind of protocol, in order."""
    if rules not in _AXES:
        declared = (entry for entry in fields(rules) if "axis" in entry.metadata)
        _AXES[rules] = tuple(_axis(entry) for entry in declared)
    return _AXES[rules]


_AXES: "dict[type[ProtocolBase], tuple[ProtocolField, ...]]" = {}


def _axis(entry: "Field[Any]") -> ProtocolField:
    kind, option, help_text, meaning = entry.metadata["axis"]
    option = option or f"--{entry.name.replace('_', '-')}"
    return ProtocolField(
        entry.name, kind or _kind_of(entry), entry.default, option, help_text, meaning
    )


def _kind_of(entry: "Field[Any]") -> Kind:
    if entry.type is bool:
        return YesNo()
    if get_origin(entry.type) is Literal:
        return Choice(*get_args(entry.type))
    raise TypeError(f"axis {entry.name} needs a kind")  # pragma: no cover - a slip of ours


class Presets(Mapping[str, Any]):
    """Presets by name, each made when it is first asked for: a run wants one of them.

    Parameters
    ----------
    *recipes : functools.partial
        Each makes one; its keyword `name` is what it is called. That of a preset which departs from
        another is a partial of the other's.
    """

    def __init__(self, *recipes: partial[Any]) -> None:
        self._recipes = {recipe.keywords["name"]: recipe for recipe in recipes}
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._recipes[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._recipes)

    def __len__(self) -> int:
        return len(self._recipes)


class ProtocolBase(Value, kw_only=True):
    """What detection and ranking protocols share: axes with values, and a signature.

    Attributes
    ----------
    name : str
        The preset that this is, or departs from.
    source : str
        What the preset reproduces.
    tolerance : float or None
        By how much its numbers may differ from those of the source, 0 being to the last bit; None
        where the source was read and could not be run.
    residue : str
        What the difference comes from.
    """

    presets: ClassVar[Mapping[str, Any]] = {}
    """The presets of this kind of protocol, by name."""

    together: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Axes that only make sense together, in the order in which differences are walked through."""

    name: str
    source: str = field(default="", compare=False)
    tolerance: float | None = field(default=None, compare=False)
    residue: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for entry in protocol_fields(type(self)):
            value = getattr(self, entry.name)
            # What is as by default needs no check: most of every preset is, at every start.
            if value is not entry.default:
                object.__setattr__(self, entry.name, entry.kind.accept(entry.name, value))

    def as_dict(self) -> dict[str, Any]:
        """Return every field under its own name, ready for JSON."""
        record = {"name": self.name}
        return record | {
            entry.name: _plain(getattr(self, entry.name)) for entry in protocol_fields(type(self))
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """Return the rules that :meth:`as_dict` gave.

        Raises
        ------
        UsageError
            Where the preset is unknown, or a field is missing or has a value that it cannot have.
        TypeError, ValueError, AttributeError
            Where a value is not even of the right shape.
        """
        known = {entry.name: entry for entry in protocol_fields(cls)}
        strange = {"name", *known}.symmetric_difference(record)
        if strange:
            raise UsageError(f"protocol field {min(strange)!r} is unknown, or missing")
        values = {name: entry.kind.revive(record[name]) for name, entry in known.items()}
        return replace(cls.preset(record["name"]), **values)

    @classmethod
    def recorded(cls, record: dict[str, Any]) -> Self:
        """Return the rules of a report; axes that its version did not have are as they were.

        Raises
        ------
        UsageError
            Where the record is none of such rules.
        """
        defaults = {entry.name: _plain(entry.default) for entry in protocol_fields(cls)}
        try:
            return cls.from_dict({**defaults, **record})
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise UsageError(f"the protocol cannot be read: {error}") from None

    def always_said(self) -> tuple[str, ...]:
        """Return the axes that the signature names even where they are the preset's."""
        return ()

    def signature(self, version: str, selected: Iterable[str] = ()) -> str:
        """Return the one line that makes a number reproducible.

        Parameters
        ----------
        version : str
            detap's own.
        selected : iterable of str
            The selection of classes and images, as ``classes:2-of-80-0c1f2a3b``.
        """
        return "|".join((f"protocol:{self.spelling}", *selected, f"detap:{version}"))

    @property
    def spelling(self) -> str:
        """The preset and what departs from it, as :meth:`spelt` takes them."""
        kinds = {entry.name: entry.kind for entry in protocol_fields(type(self))}
        base = self.preset(self.name)
        departing = (name for name in kinds if getattr(self, name) != getattr(base, name))
        said = dict.fromkeys((*self.always_said(), *departing))
        parts = [f"{n.replace('_', '-')}:{kinds[n].spell(getattr(self, n))}" for n in said]
        return "|".join([self.name, *parts])

    def check_effect(self, changed: Iterable[str]) -> None:
        """Refuse fields that were changed and have no effect on any number."""

    def with_changes(self, **changes: Any) -> Self:
        """Return these rules with other values in some fields, and with what goes with them."""
        return replace(self, **changes)

    @classmethod
    def preset(cls, name: str) -> Self:
        """Return the preset of that name.

        Raises
        ------
        UsageError
            Where there is none; the message lists near ones.
        """
        if name not in cls.presets:
            hint = suggest(name, cls.presets) or f"choose from {', '.join(cls.presets)}"
            raise UsageError(f"protocol {name!r} is unknown; {hint}")
        found: Self = cls.presets[name]
        return found

    @classmethod
    def spelt(cls, text: str) -> Self:
        """Return the rules of a signature: ``coco``, ``coco|neutral:none``, as reports show it.

        Axes may be called as their options too; ``protocol:`` in front, the selection and detap's
        version are ignored.

        Raises
        ------
        UsageError
            Where the preset or an axis is unknown, or a value is none of the axis.
        """
        name, *parts = text.removeprefix("protocol:").split("|")
        known = {entry.name.replace("_", "-"): entry for entry in protocol_fields(cls)}
        known |= {entry.option.removeprefix("--"): entry for entry in protocol_fields(cls)}
        changes = {}
        for part in parts:
            called, _, value = part.partition(":")
            if called in ("detap", "classes", "images"):
                continue
            if called not in known:
                hint = suggest(called, known) or "write an axis as preset|axis:value"
                raise UsageError(f"protocol {text!r} has no axis {called!r}; {hint}")
            axis = known[called]
            try:
                changes[axis.name] = axis.kind.parse(value)
            except ValueError as error:
                raise UsageError(f"protocol {text!r}: {called}: {error}") from None
        return cls.preset(name).with_changes(**changes)

    @classmethod
    def of(cls, given: Self | str) -> Self:
        """Return rules as they are, or the preset of a name.

        Raises
        ------
        UsageError
            Where it is neither, or there is no such preset.
        """
        if not isinstance(given, cls | str):
            kind = cls.__name__
            raise UsageError(f"protocol {given!r} is neither a {kind} nor the name of a preset")
        return cls.preset(given) if isinstance(given, str) else given


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: null is without end."""
    if isinstance(value, AreaRange):
        return {key: _plain(entry) for key, entry in value._asdict().items()}
    if isinstance(value, tuple):
        return tuple(_plain(entry) for entry in value)
    return None if isinstance(value, float) and isinf(value) else value
