"""The dialects of vision-language models: how they write boxes, and in which unit."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from detap.errors import UsageError
from detap.formats.responses import answer as answers
from detap.formats.responses.answer import Answer, JsonDialect, TokenDialect
from detap.io.problems import FaultError, check_choice
from detap.text_input import number, parse_int

Size = tuple[float, float]
"""Width and height."""

MAX_PIXELS, MIN_PIXELS = 12845056, 3136
_PATCH = 28
"""Sides of the resized input are multiples of it."""
_MAX_RATIO = 200


class Dialect(NamedTuple):
    """Keys, order and unit of the boxes of a model."""

    form: JsonDialect | TokenDialect
    order: str = "xyxy"
    divisor: float = 1000.0  # the width and height of the image; 0 for pixels
    offset: float = 0.0  # 0.5 where numbers are those of bins, whose centers count
    is_resized: bool = False  # True for pixels of the resized input
    pixels: tuple[float, float] = (MIN_PIXELS, MAX_PIXELS)  # limits of the resized input
    blank_is_empty: bool = False  # True if a blank answer says that there are no objects
    has_labels: bool = True  # False if the label is that of the line

    @property
    def has_pixels(self) -> bool:
        """True if boxes are in pixels of the image, so that its size does not matter."""
        return not self.divisor and not self.is_resized

    def read(self, text: str, line_label: str = "") -> Answer:
        """Return the boxes of an answer."""
        answer = Answer(line_label)
        text = text.rpartition("</think>")[2]
        if "<think>" in text:
            answer.notes.add("unfinished-thinking")
            text = ""
        if isinstance(self.form, TokenDialect):
            text = answers.TAGS.sub("", text)
        if not text.strip():
            answer.is_empty = self.blank_is_empty and not answer.notes
        elif isinstance(self.form, TokenDialect):
            answers.read_tokens(text, self.form, answer)
        else:
            answers.read_json(text, self.form, answer)
        return answer

    def corners(
        self, numbers: tuple[float, ...], size: Size, input_size: Size | None = None
    ) -> list[float]:
        """Return x1, y1, x2, y2 in pixels of the image."""
        first, second, third, fourth = (number + self.offset for number in numbers)
        if self.order == "yxyx":
            first, second, third, fourth = second, first, fourth, third
        elif self.order == "xywh":
            third, fourth = first + third, second + fourth
        if self.has_pixels:
            return [first, second, third, fourth]
        width = height = self.divisor
        if self.is_resized:
            width, height = input_size or resized(size, *self.pixels)
        x, y = size[0] / width, size[1] / height
        return [first * x, second * y, third * x, fourth * y]


def resized(size: Size, min_pixels: float = MIN_PIXELS, max_pixels: float = MAX_PIXELS) -> Size:
    """Return the size at which Qwen2.5-VL sees an image; raise FaultError for a long one."""
    if max(size) / min(size) > _MAX_RATIO:
        message = f"image is {size[0]:g} x {size[1]:g}, a ratio above {_MAX_RATIO}"
        raise FaultError(message, "write input_width and input_height in its line")
    width, height = _in_patches(size, 1, round)
    if width * height > max_pixels:
        return _in_patches(size, 1 / math.sqrt(size[0] * size[1] / max_pixels), math.floor)
    if width * height < min_pixels:
        return _in_patches(size, math.sqrt(min_pixels / (size[0] * size[1])), math.ceil)
    return width, height


def _in_patches(size: Size, factor: float, whole: Callable[[float], int]) -> Size:
    width, height = (max(_PATCH, whole(side * factor / _PATCH) * _PATCH) for side in size)
    return width, height


_QWEN = JsonDialect("bbox_2d")
DIALECTS = {
    "qwen2.5-vl": Dialect(_QWEN, divisor=0, is_resized=True),
    "qwen3-vl": Dialect(_QWEN),
    "gemini": Dialect(JsonDialect("box_2d"), "yxyx"),
    "json": Dialect(JsonDialect("bbox"), divisor=0),
    "paligemma": Dialect(answers.PALIGEMMA, "yxyx", 1024, blank_is_empty=True),
    "florence-2": Dialect(answers.FLORENCE_2, offset=0.5, blank_is_empty=True),
    "kosmos-2": Dialect(answers.KOSMOS_2, divisor=1, blank_is_empty=True),
    "rex-omni": Dialect(answers.REX_OMNI, divisor=999, blank_is_empty=True),
    "qwen2-vl": Dialect(answers.QWEN2_VL),
    "internvl": Dialect(answers.INTERNVL),
    "deepseek-vl2": Dialect(answers.DEEPSEEK_VL2, divisor=999),
    "cogvlm": Dialect(answers.COGVLM, has_labels=False),
}


_OPTIONS_OF = {
    "json": ("box-key", "label-key", "box-order", "box-scale"),
    "qwen2.5-vl": ("max-pixels", "min-pixels"),
}
"""Options of one dialect; the others are of all in JSON."""


def dialect_of(name: str | None, **options: Any) -> Dialect:
    """Return the dialect of a name with its options; raise UsageError if they do not fit."""
    if name is None:
        message = "answers of models need a dialect, which is not guessed"
        raise UsageError(f"{message}; use --dialect {' or '.join(DIALECTS)} (dialect= in Python)")
    check_choice("--dialect", name, [*DIALECTS])
    dialect = DIALECTS[name]
    given = {k.replace("_", "-"): value for k, value in options.items() if value is not None}
    for of, names in _OPTIONS_OF.items():
        for option in names if name != of else ():
            if option in given:
                raise UsageError(f"--{option} is for --dialect {of}; this is --dialect {name}")
    if isinstance(dialect.form, JsonDialect):
        keys = {key: options[key] for key in JsonDialect._fields if options.get(key) is not None}
        dialect = dialect._replace(form=dialect.form._replace(**keys))
    elif "score-key" in given:
        raise UsageError(f"--score-key is for dialects in JSON; this is --dialect {name}")
    if given.get("box-scale", "pixels") != "pixels":
        expected = "pixels or a number above 0"
        dialect = dialect._replace(divisor=_positive("box-scale", given, number, expected))
    pixels = {"min-pixels": MIN_PIXELS, "max-pixels": MAX_PIXELS} | given
    least, most = (
        _positive(option, pixels, parse_int, "a whole number above 0")
        for option in ("min-pixels", "max-pixels")
    )
    return dialect._replace(order=given.get("box-order", dialect.order), pixels=(least, most))


def _positive(
    option: str, given: Mapping[str, Any], parse: Callable[[str], float], expected: str
) -> float:
    """Return an option that is a number above 0."""
    try:
        value = parse(str(given[option]))
    except ValueError:
        value = 0
    if value <= 0:
        raise UsageError(f"--{option} {given[option]!r} is not {expected}")
    return value
