"""Declaration of protocol fields, from which checks, options, signature, schema and docs derive."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from itertools import pairwise
from math import inf, isfinite, isinf, nan
from struct import pack, unpack
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

from detap.errors import UsageError
from detap.protocols import conditions
from detap.text_input import number, parse_int, suggest

FLAGS = ("difficult", "crowd", "ignore", "group_of", "no_keypoints")
"""Flags of ground truths."""

SAME_THRESHOLD = 1e-9
"""Minimum difference of two IoU thresholds of a protocol."""

MAX_MAX_DETS = 254
"""Maximum number of `max_dets` values: the core stores an index of them in one byte."""

MAX_THRESHOLDS = 64
"""Maximum number of IoU thresholds: the core stores one bit per threshold in a 64-bit word."""


def linspace(start: float, stop: float, count: int) -> tuple[float, ...]:
    """Return the floats of ``numpy.linspace(start, stop, count)`` without importing NumPy.

    With its order of operations: linspace(.5, .95, 10)[8] is 0.8999999999999999,
    linspace(0, 1, 101)[35] one ulp above 35/100.
    """
    step = (stop - start) / (count - 1)
    return (*(i * step + start for i in range(count - 1)), stop)


def float32(value: float) -> float:
    """Return the nearest float32."""
    nearest: float = unpack("f", pack("f", value))[0]
    return nearest


def linspace32(start: float, stop: float, count: int) -> tuple[float, ...]:
    """Return the floats of ``torch.linspace(start, stop, count)``.

    It counts up from the left and down from the right, in float32, rounding once.
    """
    step = float32((stop - start) / (count - 1))
    half = count // 2
    up = (float32(start + i * step) for i in range(half))
    return (*up, *(float32(stop - (count - 1 - i) * step) for i in range(half, count)))


RECALL_GRIDS: dict[str, tuple[float, ...]] = {
    # MATLAB's 0:0.1:1 counts up from the left to the middle and down from the right after it:
    # .3 = 3 * .1 is one ulp above 3/10, all others are the nearest floats to k/10.
    "matlab": tuple(i * 0.1 if i <= 5 else 1.0 - (10 - i) * 0.1 for i in range(11)),
    # numpy.arange(0, 1.1, .1): .3, .6 and .7 are one ulp above k/10.
    "arange": tuple(i * 0.1 for i in range(11)),
    "linspace": linspace(0.0, 1.0, 101),
    "hundredths": tuple(i / 100 for i in range(101)),
    # torch.linspace(0, 1, 101), as in torchmetrics.
    "float32": linspace32(0.0, 1.0, 101),
    # The points of the KITTI benchmark without the first.
    "fortieths": tuple(i / 40 for i in range(1, 41)),
}
"""Recall levels at which interpolated precision is read, by name."""


class AreaRange(NamedTuple):
    """Areas from `low` to `high` in square pixels or percent of the image, both ends included.

    The suffix is that of its metrics: ``"s"`` in ``APs``.
    """

    name: str
    low: float
    high: float
    suffix: str = ""
    unit: Literal["px", "%"] = "px"

    @property
    def text(self) -> str:
        """The bounds as :class:`Areas` reads them: ``0-1024`` or ``0.1-1%``."""
        unit = "%" if self.unit == "%" else ""
        unbounded = (self.low, self.high) == (-inf, inf)
        return "any" if unbounded else f"{exact(self.low)}-{exact(self.high)}{unit}"


ANY_AREA = AreaRange("all", -inf, inf)
"""All areas, without bounds: negative ones (of boxes clipped away) and huge ones too."""

ALL_AREAS = AreaRange("all", 0.0, 1e10)
"""pycocotools' range of all areas: an unmatched detection outside it is ignored."""

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
"""KITTI's difficulty levels, the quoted one first; their other limits differ, not their areas."""


NO_FIELDS = ("detap", "classes", "images", "extra-images", "class-map", "max-pixels", "min-pixels")
"""Parts of a signature that are no fields: what is evaluated, how it is read, the version."""


def _thousandths(values: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(value / 1000 for value in values)


_HEAD = (0.26, 0.25, 0.25, 0.35, 0.35)
_LIMBS = (0.79, 0.79, 0.72, 0.72, 0.62, 0.62, 1.07, 1.07, 0.87, 0.87, 0.89, 0.89)
_CROWD_POSE = (79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89, 79, 79)
_FOOT = (68, 66, 66, 92, 94, 94)
_FACE = (
    *(42, 43, 44, 43, 40, 35, 31, 25, 20, 23, 29, 32, 37, 38, 43, 41, 45, 13, 12, 11, 11, 12, 12),
    *(11, 11, 13, 15, 9, 7, 7, 7, 12, 9, 8, 16, 10, 17, 11, 9, 11, 9, 7, 13, 8, 11, 12, 10, 34, 8),
    *(8, 9, 8, 8, 7, 10, 8, 9, 9, 9, 7, 7, 8, 11, 8, 8, 8, 10, 8),
)
_HAND = (29, 22, 35, 37, 47, 26, 25, 24, 35, 18, 24, 22, 26, 17, 21, 21, 32, 20, 19, 22, 31)
SIGMAS: dict[str, tuple[float, ...]] = {
    # Tenths, divided as pycocotools does: 0.26 / 10 is not the float 0.026.
    "coco": tuple(tenth / 10 for tenth in (*_HEAD, *_LIMBS)),
    "crowdpose": _thousandths(_CROWD_POSE),
    "foot": _thousandths(_FOOT),
    "face": _thousandths(_FACE),
    "hand": _thousandths(_HAND),
}
SIGMAS["wholebody"] = sum((SIGMAS[part] for part in ("coco", "foot", "face", "hand", "hand")), ())
"""OKS sigmas by the name of the skeleton."""


def default_sigmas(count: int, *, visibility: bool = True) -> tuple[float, ...]:
    """Return Ultralytics' sigmas of `count` keypoints with or without visibility."""
    if visibility and count == len(SIGMAS["coco"]):
        return SIGMAS["coco"]
    return (1 / count,) * count if count else ()


# --- kinds of values


class Kind:
    """The values of a field: its check, command-line text, signature, JSON schema and docs."""

    metavar: str | None = None  # placeholder in the help; None if the choices are shown
    repeatable = False  # whether the option may be repeated; the values form one list
    choices: tuple[str, ...] = ()
    values = ""  # for the docs, as the option takes them

    def accept(self, value: Any) -> Any:
        """Return a value as plain Python, or raise ValueError if it is invalid."""
        return value

    def parse(self, text: str) -> Any:
        """Return the value of a command-line text, which :meth:`accept` checks, or ValueError."""
        return text

    def format(self, value: Any) -> str:
        """Format a value for the signature, with exact numbers."""
        return "none" if value in (None, "", ()) else str(value)

    def format_short(self, value: Any) -> str:
        """Format a value for people, without the middle of a long list."""
        parts = self.format(value).split(",")
        return ",".join(parts if len(parts) < 4 else [*parts[:2], "...", parts[-1]])

    def describe_change(self, name: str, before: Any, after: Any) -> str:
        """Describe a change of the value as a noun phrase."""
        short = self.format_short
        return f"{display_name(name)} {short(after)} instead of {short(before)}"

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of a value."""
        return {"type": "string"}


def _invalid(value: object, why: str) -> ValueError:
    return ValueError(f"{value!r} {why}")


class YesNo(Kind):
    """True or false."""

    choices = ("yes", "no")
    values = "`yes`, `no`"

    def accept(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise _invalid(value, "is not True or False")
        return value

    def parse(self, text: str) -> Any:
        return {"yes": True, "no": False}.get(text, text)

    def format(self, value: Any) -> str:
        return "yes" if value else "no"

    def describe_change(self, name: str, before: Any, after: Any) -> str:
        return f"that {display_name(name)} is {'on' if after else 'off'}"

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Choice(Kind):
    """One of a few names."""

    def __init__(self, *choices: str) -> None:
        self.choices = choices
        self.values = ", ".join(f"`{choice}`" for choice in choices)

    def accept(self, value: Any) -> Any:
        if value not in self.choices:
            raise _invalid(value, f"is unknown; choose from {', '.join(self.choices)}")
        return value

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.choices)}


class Word(Kind):
    """A name."""

    metavar = "NAME"

    def accept(self, value: Any) -> str:
        if not (isinstance(value, str) and value):
            raise _invalid(value, "is not a name")
        return value

    def parse(self, text: str) -> str:
        return text.strip()


class Condition(Kind):
    """A condition on attributes: ``height<50 or vis_ratio<0.65``; empty for none."""

    metavar = "CONDITION"
    values = "`height<50 or vis_ratio<0.65`; `none`"

    def accept(self, value: Any) -> str:
        if not isinstance(value, str):
            raise _invalid(value, "is not text")
        return conditions.canonical(value) if value else ""

    def parse(self, text: str) -> str:
        return "" if text.strip() == "none" else text

    def format_short(self, value: Any) -> str:
        return self.format(value)


class Number(Kind):
    """A finite number from `low`, or above it, to `high`; None too if it has a meaning."""

    def __init__(
        self,
        low: float = -inf,
        high: float = inf,
        *,
        above: bool = False,
        or_none: bool = False,
        metavar: str = "X",
    ) -> None:
        self.low, self.high, self.above = low, high, above
        self.or_none, self.metavar = or_none, metavar
        ends = (f"above {low:g}" if above else f"{low:g}", f"{high:g}")
        values = ends[0] if high == inf else " to ".join(ends)
        self.values = ("number" if low == -inf else values) + ", or `none`" * or_none

    def accept(self, value: Any) -> float | None:
        if value is None and self.or_none:
            return None
        result = _real(value)
        above_low = result > self.low if self.above else result >= self.low
        if above_low and result <= self.high and isfinite(result):
            return result
        begin = "(" if self.above or self.low == -inf else "["
        end = ")" if self.high == inf else "]"
        raise _invalid(result, f"is outside {begin}{self.low:g}, {self.high:g}{end}")

    def parse(self, text: str) -> float | None:
        return None if self.or_none and text.strip() == "none" else number(text)

    def format(self, value: Any) -> str:
        return "none" if value is None else exact(value)

    def schema(self) -> dict[str, Any]:
        ends = {"exclusiveMinimum" if self.above else "minimum": self.low, "maximum": self.high}
        finite = {name: end for name, end in ends.items() if isfinite(end)}
        return {"type": ["number", "null"] if self.or_none else "number", **finite}


_MAX = 2**63 - 1


class Whole(Kind):
    """An integer from `low` to `high`; also None if it has a meaning."""

    metavar = "N"

    def __init__(self, low: int, high: int = _MAX, *, or_none: bool = True) -> None:
        self.low, self.high, self.or_none = low, high, or_none
        self.values = f"{low} to {high}, or `none`"

    def accept(self, value: Any) -> int | None:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if (value is None and self.or_none) or (is_whole and self.low <= value <= self.high):
            result: int | None = value
            return result
        kind = "None or an integer" if self.or_none else "an integer"
        ends = f"from {self.low} to {self.high}" if self.high < _MAX else f"of at least {self.low}"
        raise _invalid(value, f"is not {kind} {ends}")

    def parse(self, text: str) -> int | None:
        return None if self.or_none and text.strip() == "none" else parse_int(text)

    def schema(self) -> dict[str, Any]:
        return {"type": ["integer", "null"] if self.or_none else "integer", "minimum": self.low}


class Ratio(Number):
    """A number, also as a fraction: ``1/8``."""

    def parse(self, text: str) -> float:
        upper, slash, lower = text.partition("/")
        # A division by 0 gives NaN, which is refused.
        return number(upper) / (number(lower) or nan if slash else 1)


class Several(Kind):
    """Values of one kind, separated by commas; ``none`` is an empty list."""

    required = False  # whether at least one is

    def __init__(self, one: Kind, values: str, metavar: str = "LIST") -> None:
        self.one, self.values, self.metavar = one, values, metavar

    def accept(self, value: Any) -> tuple[Any, ...]:
        return tuple(self.one.accept(item) for item in _listed(value))

    def parse(self, text: str) -> tuple[Any, ...]:
        if text == "none" and not self.required:
            return ()
        return tuple(self.one.parse(part) for part in text.split(","))

    def format(self, value: Any) -> str:
        return ",".join(map(self.one.format, value)) or "none"

    def schema(self) -> dict[str, Any]:
        at_least_one = {"minItems": 1} if self.required else {}
        return {"type": "array", **at_least_one, "items": self.one.schema()}


class Sigmas(Several):
    """OKS sigmas, one per keypoint, or the name of a skeleton; or none."""

    def parse(self, text: str) -> tuple[float, ...]:
        return SIGMAS[text] if text in SIGMAS else super().parse(text)


class Names(Several):
    """Several names, without repeats: ``MR-2,recall@fppi=0.1``; or none."""

    def __init__(self, example: str) -> None:
        super().__init__(Word(), f"`{example}`; `none`", "NAMES")

    def accept(self, value: Any) -> tuple[str, ...]:
        return tuple(dict.fromkeys(super().accept(value)))


class Flags(Several):
    """Several of :data:`FLAGS`, or none.

    `having` and `without` describe ground truths of a flag that is listed, or is not.
    """

    def __init__(self, without: str, having: str) -> None:
        one = Choice(*FLAGS)
        super().__init__(one, f"{one.values}; `none`", "FLAGS")
        self._does = {False: without, True: having}

    def parse(self, text: str) -> tuple[str, ...]:
        return tuple(name.strip().replace("-", "_") for name in super().parse(text))

    def describe_change(self, name: str, before: Any, after: Any) -> str:
        changed = [flag for flag in (*before, *after) if (flag in before) != (flag in after)]
        return "that " + " and ".join(
            f"{display_name(flag)} objects {self._does[flag in after]}" for flag in changed
        )


class _ClassValue(Kind):
    """A class and its value: ``Car=0.7``."""

    def __init__(self, value: Kind) -> None:
        self.value = value

    def accept(self, value: Any) -> tuple[str, Any]:
        pair = _listed(value)
        if len(pair) != 2:
            raise _invalid(value, "is not a pair of a class and a value")
        return Word().accept(pair[0]), self.value.accept(pair[1])

    def parse(self, text: str) -> tuple[str, Any]:
        name, equals, value = text.rpartition("=")
        if not (name and equals and value):
            raise ValueError(f"{text!r} is not class=value")
        return name, self.value.parse(value)

    def format(self, value: Any) -> str:
        return f"{value[0]}={self.value.format(value[1])}"

    def schema(self) -> dict[str, Any]:
        items = [{"type": "string"}, self.value.schema()]
        return {"type": "array", "prefixItems": items, "minItems": 2, "maxItems": 2}


class ByClass(Several):
    """A value for each of some classes, by name: ``Car=0.7,Cyclist=0.5``; or none."""

    def __init__(self, one: Kind, example: str) -> None:
        super().__init__(_ClassValue(one), f"`{example}`; `none`", "CLASS=...")

    def accept(self, value: Any) -> tuple[tuple[str, Any], ...]:
        return super().accept(value.items() if hasattr(value, "items") else value)


class Ascending(Several):
    """At least one value, or several in ascending order; None comes last."""

    required = True
    maximum = inf  # number of values

    def accept(self, value: Any) -> tuple[Any, ...]:
        values = super().accept(value)
        if self.required and not values:
            raise ValueError("at least one value is required")
        if len(values) > self.maximum:
            raise ValueError(f"{len(values)} values; the maximum is {self.maximum}")
        sizes = [inf if item is None else item for item in values]
        if sizes != sorted(set(sizes)):
            raise ValueError("the values must be in ascending order without duplicates")
        return values


class Limits(Ascending):
    """Values of `max_dets`: ``1,10,100``; ``none`` is no limit."""

    maximum = MAX_MAX_DETS


class Cutoffs(Ascending):
    """Several k of metrics at k: ``1,5,10``."""

    required, repeatable = False, True


class Thresholds(Ascending):
    """IoU thresholds: ``0.5``, ``0.5,0.75`` or ``0.5:0.95:0.05``."""

    repeatable = True
    maximum = MAX_THRESHOLDS
    _max_steps = 1000

    def accept(self, value: Any) -> tuple[float, ...]:
        thresholds = super().accept(value)
        for lower, upper in pairwise(thresholds):
            if upper - lower < SAME_THRESHOLD:
                raise ValueError(
                    f"IoU thresholds {lower!r} and {upper!r} differ by less than {SAME_THRESHOLD}"
                )
        return thresholds

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
            raise ValueError(f"{text!r} is not in ascending order")
        steps = (stop - start) / step
        if steps > self._max_steps:
            raise ValueError(f"{text!r} has more than {self._max_steps} steps")
        if abs(steps - round(steps)) > 1e-6:
            raise ValueError(f"{text!r} does not reach {parts[1]} in equal steps")
        # As numpy.linspace: 0.5:0.95:0.05 equals COCO's list to the last bit.
        return linspace(start, stop, round(steps) + 1)


_END = {"description": "In the unit, included; null is unbounded.", "type": ["number", "null"]}
_AREA_FIELDS = {"name": {"type": "string"}, "low": _END, "high": _END, "suffix": {"type": "string"}}
_AREA_UNIT = {
    "description": "Percent of the area of the image; without it, square pixels.",
    "const": "%",
}
_AREA = {
    "type": "object",
    "required": list(_AREA_FIELDS),
    "additionalProperties": False,
    "properties": {**_AREA_FIELDS, "unit": _AREA_UNIT},
}


class Areas(Kind):
    """Area ranges: a named set, ``small=0:1024,large=1024:1e10``, or ``small=0:1%``."""

    metavar = "RANGES"
    values = (
        "`coco`, `proposals`, `kitti`, `none`, `small=0:1024,large=1024:`, or "
        "`small=0:1%,large=1%:100%`"
    )
    named: ClassVar[dict[str, tuple[AreaRange, ...]]] = {
        "coco": COCO_AREAS,
        "proposals": PROPOSAL_AREAS,
        "kitti": KITTI_LEVELS,
        "none": (ANY_AREA,),
    }
    _suffixes: ClassVar[dict[str, str]] = {"small": "s", "medium": "m", "large": "l"}

    def accept(self, value: Any) -> tuple[AreaRange, ...]:
        area_ranges = tuple(map(_area_range, _listed(value)))
        if not area_ranges:
            raise ValueError("at least one area range is required")
        for part in ("name", "suffix"):
            if len({getattr(area_range, part) for area_range in area_ranges}) < len(area_ranges):
                raise ValueError(f"two area ranges have the same {part}")
        if len({r.unit for r in area_ranges if r not in (ANY_AREA, ALL_AREAS)}) > 1:
            raise ValueError(
                "area ranges are in square pixels and in percent; use one unit for all of them"
            )
        return area_ranges

    def parse(self, text: str) -> tuple[AreaRange, ...]:
        for name, ranges in self.named.items():
            if text in (name, self.format(ranges)):
                return ranges
        area_ranges = [self._parse_range(part.strip()) for part in text.split(",")]
        # The primary metric uses all areas: they always come first.
        return (ALL_AREAS, *(area_range for area_range in area_ranges if area_range != ALL_AREAS))

    def _parse_range(self, text: str) -> AreaRange:
        if text in ("all", self.format((ALL_AREAS,))):
            return ALL_AREAS
        name, _, ends = text.partition("=")
        low, between, high = ends.partition(":" if ":" in ends else "-")
        if not (re.fullmatch(r"\w[\w.+-]*", name) and between):
            known = ", ".join(self.named)
            raise ValueError(f"{text!r} is not name=low:high or one of {known}, all")
        if name == "all":
            raise ValueError("'all' means all areas; give the range another name")
        suffix = self._suffixes.get(name, f"-{name}")
        if "%" in ends:
            if not high.endswith("%"):
                raise ValueError(f"{text!r}: add % to the upper end, or use square pixels for both")
            ends_in_percent = number(low.removesuffix("%")), number(high.removesuffix("%"))
            return AreaRange(name, *ends_in_percent, suffix, "%")
        return AreaRange(name, number(low), number(high) if high else ALL_AREAS.high, suffix)

    def format(self, value: Any) -> str:
        return ",".join(
            "any" if area_range == ANY_AREA else f"{area_range.name}={area_range.text}"
            for area_range in value
        )

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "minItems": 1, "items": _AREA}


def _area_range(value: Any) -> AreaRange:
    """Return a valid area range, also of the JSON of a protocol."""
    if isinstance(value, dict):
        ends = {key: value[key] for key in ("low", "high") if value[key] is not None}
        value = AreaRange(**{**value, "low": -inf, "high": inf, **ends})
    if not isinstance(value, AreaRange):
        raise ValueError(f"area range {value!r} is not an AreaRange")
    for part in ("name", "suffix"):
        if not isinstance(getattr(value, part), str):
            raise ValueError(f"area range {value!r}: the {part} is not a string")
    subject = f"area range {value.name!r}"
    low, high = _real(value.low), _real(value.high)
    if (low, high) != (-inf, inf) and not 0 <= low <= high:
        raise ValueError(
            f"{subject} goes from {exact(low)} to {exact(high)}; it must be ascending and not "
            "negative"
        )
    if value.unit not in ("px", "%"):
        raise ValueError(f"{subject} has the unit {value.unit!r}, which is neither 'px' nor '%'")
    return value


def exact(value: float) -> str:
    """Format a number so that only equal numbers have equal texts."""
    # float's own repr: NumPy's subclasses include their type.
    return float.__repr__(float(value)).removesuffix(".0")


def display_name(name: str) -> str:
    """Return the name of a field or value for people."""
    return name.replace("_", " ")


def _real(value: Any) -> float:
    """Return a plain float, also of NumPy's types: the signature prints it."""
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise _invalid(value, "is not a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("the number is too large for a float") from None


def _listed(value: Any) -> tuple[Any, ...]:
    """Return a sequence as a tuple; text does not count as a sequence."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise _invalid(value, "is not a tuple")
    return tuple(value)


# --- fields


class ProtocolField(NamedTuple):
    """One field of a protocol."""

    name: str
    default: Any
    kind: Kind
    option: str  # empty if the data decides the value
    compared: bool  # False if it changes no value, and is not in the signature
    help: str
    more: str  # what the docs add to the help
    always_reported: bool = True  # False if reports name only values other than the default

    @property
    def meaning(self) -> str:
        """The text for the docs."""
        return f"{self.help} {self.more}".rstrip()


def protocol_field(
    default: Any, help: str, more: str = "", *, compared: bool = True, **declared: Any
) -> Any:
    """Declare a field of a protocol, with parts of its :class:`ProtocolField`.

    By default the kind is that of its type, and the option has its name.
    """
    metadata = {"help": help, "more": more, **declared}
    return field(default=default, compare=compared, metadata=metadata)


_FIELDS: "dict[type[ProtocolBase], tuple[ProtocolField, ...]]" = {}


def protocol_fields(protocol: "type[ProtocolBase]") -> tuple[ProtocolField, ...]:
    """Return the fields of a kind of protocol, in order."""
    if protocol not in _FIELDS:
        _FIELDS[protocol] = tuple(_declared(item) for item in fields(protocol) if item.metadata)
    return _FIELDS[protocol]


def _declared(item: "Field[Any]") -> ProtocolField:
    of_item: dict[str, Any] = {
        "kind": YesNo() if item.type is bool else Choice(*get_args(item.type)),
        "option": f"--{item.name.replace('_', '-')}",
        **item.metadata,
    }
    return ProtocolField(item.name, item.default, compared=item.compare, **of_item)


def compared_fields(protocol: "type[ProtocolBase]") -> tuple[ProtocolField, ...]:
    """Return the fields that change values, in order."""
    return tuple(item for item in protocol_fields(protocol) if item.compared)


@dataclass(frozen=True, repr=False, kw_only=True)
class ProtocolBase:
    """Base of detection and ranking protocols: fields with presets and a signature.

    Attributes
    ----------
    name : str
        The preset, or the preset that this protocol was derived from.
    source : str
        The implementation that the preset reproduces.
    tolerance : float or None
        Largest difference from the source's numbers, 0 for the same bits; None if the source was
        read and could not be run.
    residue : str
        The cause of that difference.
    """

    presets: ClassVar[Mapping[str, Any]] = {}
    """The presets of this kind of protocol, by name."""

    preset_by_iou_type: ClassVar[Mapping[str, str]] = {}
    """The preset that pycocotools' `iouType` means, for the error of an unknown preset."""

    together: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Fields that are changed together when two protocols are compared, in order."""

    name: str
    source: str = field(default="", compare=False)
    tolerance: float | None = field(default=None, compare=False)
    residue: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for declared in protocol_fields(type(self)):
            value = getattr(self, declared.name)
            # Defaults need no check: skipping them saves time at every start.
            if value is not declared.default:
                try:
                    accepted = declared.kind.accept(value)
                except ValueError as error:
                    raise UsageError(f"{declared.name}: {error}") from None
                object.__setattr__(self, declared.name, accepted)

    def __repr__(self) -> str:
        text = self.text if self.name in self.presets else self.name
        return f"{type(self).__name__}({text!r})"

    def as_dict(self) -> dict[str, Any]:
        """Return every field by name, ready for JSON."""
        values = {item: getattr(self, item.name) for item in protocol_fields(type(self))}
        return {"name": self.name} | {
            item.name: _plain(value)
            for item, value in values.items()
            if item.always_reported or value != item.default
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """Return the protocol of :meth:`as_dict`."""
        declared = {item.name: item for item in protocol_fields(cls)}
        omitted = (item for item in declared.values() if not item.always_reported)
        record = {item.name: item.default for item in omitted} | record
        wrong = {"name", *declared}.symmetric_difference(record)
        if wrong:
            raise UsageError(f"protocol field {min(wrong)!r} is unknown or missing")
        return replace(cls.preset(record["name"]), **record)

    @classmethod
    def from_report(cls, record: dict[str, Any]) -> Self:
        """Return the protocol of a report; fields that the report lacks have their defaults."""
        defaults = {item.name: _plain(item.default) for item in protocol_fields(cls)}
        try:
            return cls.from_dict({**defaults, **record})
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise UsageError(f"invalid protocol: {error}") from None

    def always_in_signature(self) -> tuple[str, ...]:
        """Return the fields that the signature names even if they equal the preset's."""
        return ()

    def signature(self, version: str, selected: Iterable[str] = ()) -> str:
        """Return the line that makes a metric reproducible."""
        return "|".join((f"protocol:{self.text}", *selected, f"detap:{version}"))

    @property
    def text(self) -> str:
        """The preset and the changed fields, as :meth:`parse` reads them."""
        kinds = {item.name: item.kind for item in compared_fields(type(self))}
        preset = self.comparable(self.preset(self.name))
        changed = (name for name in kinds if getattr(self, name) != getattr(preset, name))
        names = dict.fromkeys((*self.always_in_signature(), *changed))
        parts = [f"{n.replace('_', '-')}:{kinds[n].format(getattr(self, n))}" for n in names]
        return "|".join([self.name, *parts])

    def comparable(self, preset: Self) -> Self:
        """Return a preset without the fields that have no effect here, for the signature."""
        return preset

    def _idle(self) -> dict[str, str]:
        """Return the fields that affect no metric, with the reason."""
        return {}

    def check_effect(self, changed: Iterable[str]) -> None:
        """Raise if a changed field affects no metric.

        Parameters
        ----------
        changed : iterable of str
            Names of fields.

        Raises
        ------
        UsageError
        """
        idle = self._idle()
        for name in changed:
            if name in idle:
                option = self._option_of(name)
                raise UsageError(f"{option} has no effect: {idle[name]}; leave out {option}")

    @classmethod
    def _option_of(cls, name: str) -> str:
        """Return the option that sets a field."""
        return next(item.option for item in protocol_fields(cls) if item.name == name)

    def with_changes(self, **changes: Any) -> Self:
        """Return a copy with changed fields and the fields that depend on them."""
        return replace(self, **changes)

    @classmethod
    def preset(cls, name: str) -> Self:
        """Return the preset of a name."""
        if name not in cls.presets:
            meant = cls.preset_by_iou_type.get(name)
            hint = f"did you mean {meant}?" if meant else suggest(name, cls.presets)
            hint = hint or f"choose from {', '.join(cls.presets)}"
            raise UsageError(f"unknown protocol {name!r}; {hint}")
        preset: Self = cls.presets[name]
        return preset

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the protocol of a signature: ``coco`` or ``coco|ignore-flags:none``.

        Fields may have the names of their options. ``protocol:`` in front and the parts of
        `NO_FIELDS` are ignored.
        """
        preset, *parts = text.removeprefix("protocol:").split("|")
        declared = {item.name.replace("_", "-"): item for item in protocol_fields(cls)}
        declared |= {item.option.removeprefix("--"): item for item in protocol_fields(cls)}
        changes = {}
        for part in parts:
            name, _, value = part.partition(":")
            if name in NO_FIELDS:
                continue
            if name not in declared:
                hint = suggest(name, declared) or "the syntax is preset|field:value"
                raise UsageError(f"protocol {text!r}: unknown field {name!r}; {hint}")
            item = declared[name]
            try:
                changes[item.name] = item.kind.parse(value)
            except ValueError as error:
                raise UsageError(f"protocol {text!r}: {name}: {error}") from None
        return cls.preset(preset).with_changes(**changes)

    @classmethod
    def of(cls, given: Self | str) -> Self:
        """Return a protocol unchanged, or the preset of a name."""
        if not isinstance(given, cls | str):
            kind = cls.__name__
            raise UsageError(f"protocol {given!r} is not a {kind} or the name of a preset")
        return cls.preset(given) if isinstance(given, str) else given


def _plain(value: Any) -> Any:
    """Return a value for JSON; null is unbounded."""
    if isinstance(value, AreaRange):
        items = value._asdict()
        if value.unit == "px":  # square pixels need no unit
            del items["unit"]
        return {key: _plain(item) for key, item in items.items()}
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return None if isinstance(value, float) and isinf(value) else value
