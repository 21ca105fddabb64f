"""Read answers that write boxes by tokens of the model, or in brackets between its tags."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from detap.formats.responses.answer import Answer
from detap.text_input import quote

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_TAGS = re.compile(r"</?s>|<pad>|<\|im_end\|>")
"""Tags around an answer."""
_UNFINISHED = re.compile(r"<[|/\w]*\Z|<\|?(?:object_ref_start|ref|phrase)\|?>[^<]*\Z")
_PART_OF_TAG = re.compile(r"\s*(?:<[^<>]*)?\Z")


class TokenDialect(NamedTuple):
    """The regular expressions of boxes."""

    boxes: str
    """Boxes of one label: groups ``boxes``, ``end`` if they have one, and ``label``.

    Without the group ``label``, it is the text before.
    """
    box: str = r".+"  # one of the boxes; it ends with > or ] or ) or is broken off
    numbers: int = 4
    corners: Callable[[Sequence[float]], tuple[float, ...] | None] | None = None
    """Returns x1, y1, x2, y2 as fractions of the image, None for a bad box."""
    by_line: bool = False  # True if the label is that of the line
    box_key: str = ""  # JSON dialects have one


def _between(begin: str, end: str, characters: str, label: str = "") -> str:
    """Return the expression of boxes between tags, after a label."""
    label = f"(?:{label})?" if label else ""
    return rf"{label}{begin}(?P<boxes>(?:{characters})*)(?P<end>{end})?"


def _tag(name: str) -> str:
    return rf"<\|{name}\|>"


_BRACKETS, _IN_BRACKETS = r"[\[\]\d\s,.-]", r"\[[^\[\]]*\d[^\[\]]*\]?"
_REF = rf"{_tag('object_ref_start')}(?P<label>[^<]*){_tag('object_ref_end')}\s*"
_OF_REF = _tag("box_start"), _tag("box_end")


def cells(pair: Sequence[float]) -> tuple[float, ...] | None:
    """Return the corners of two cells of 32 by 32, as fractions of the image."""
    if max(pair) > 1023:
        return None
    (row1, column1), (row2, column2) = (divmod(cell, 32) for cell in pair)
    if row1 == row2 or column1 == column2:
        return column1 / 32, row1 / 32, (column2 + 1) / 32, (row2 + 1) / 32
    return tuple((cell + 0.5) / 32 for cell in (column1, row1, column2, row2))


PALIGEMMA = TokenDialect(
    r"(?P<boxes>(?:<loc\d{4}>\s*)+)(?:<seg\d{3}>\s*)*(?P<end>(?P<label>[^<;]*))"
)
FLORENCE_2 = TokenDialect(r"(?P<boxes>(?:<loc_\d+>)+)", r"(?:<loc_\d+>){1,4}")
KOSMOS_2 = TokenDialect(
    _between(
        "<object>",
        "</object>",
        r"<patch_index_\d+>|</delimiter_of_multi_objects/>",
        r"<phrase>(?P<label>[^<]*)</phrase>\s*",
    ),
    r"(?:<patch_index_\d+>)+",
    2,
    cells,
)
REX_OMNI = TokenDialect(_between(*_OF_REF, r"<\d+>|[,\s]|None", _REF), r"[^,\s][^,]*")
QWEN2_VL = TokenDialect(_between(*_OF_REF, r"[()\d\s,.-]", _REF), r"\(.+")
INTERNVL = TokenDialect(
    _between("<box>", "</box>", _BRACKETS, r"<ref>(?P<label>[^<]*)</ref>\s*"), _IN_BRACKETS
)
DEEPSEEK_VL2 = TokenDialect(
    _between(
        _tag("det"), _tag("/det"), _BRACKETS, rf"{_tag('ref')}(?P<label>[^<]*){_tag('/ref')}\s*"
    ),
    _IN_BRACKETS,
)
COGVLM = TokenDialect(
    r"\[\[(?=[\d\s\]])(?P<boxes>[\d\s,;.-]*)(?P<end>\]\])?", r"[^;]*\d[^;]*", by_line=True
)


def without_tags(text: str) -> str:
    """Return an answer without the tags that begin and end every answer."""
    return _TAGS.sub("", text)


def read_tokens(text: str, dialect: TokenDialect, answer: Answer) -> None:
    """Add the boxes of an answer in tokens."""
    end = 0
    last_label = ""
    for match in re.finditer(dialect.boxes, text):
        groups = match.groupdict()
        between = text[end : match.start()].rpartition(">")[2]
        label = groups.get("label", between) or ""
        if not label and not between.strip(" ,\n"):
            label = last_label  # several boxes of one label
        _add(match, "" if dialect.by_line else label, dialect, answer)
        end, last_label = match.end(), label
    if _UNFINISHED.search(text[end:]):
        answer.notes.add("truncated")


def _add(match: re.Match[str], label: str, dialect: TokenDialect, answer: Answer) -> None:
    """Add the boxes of a label."""
    groups, text = match.groupdict(), quote(match[0])
    boxes = re.findall(dialect.box, groups["boxes"].strip(), re.DOTALL)
    has_end = bool((groups.get("end") or "").strip())
    at_end = not has_end and _PART_OF_TAG.match(match.string, match.end()) is not None
    if at_end and "end" in groups:
        answer.notes.add("truncated")
    if has_end and boxes in ([], ["None"]):
        answer.is_empty = True
        return
    for index, box in enumerate(boxes):
        numbers = [float(number) for number in _NUMBER.findall(box)]
        is_last = index == len(boxes) - 1
        is_cut = is_last and not has_end and box.strip()[-1] not in ">)]"
        is_whole = len(numbers) == dialect.numbers and not is_cut
        if at_end and is_last and not is_whole:
            answer.notes.add("truncated")
        elif box.strip() == "None":
            continue
        elif is_whole and dialect.corners is not None:
            corners = dialect.corners(numbers)
            answer.add(label, None if corners is None else list(corners), text)
        else:
            answer.add(label, numbers if is_whole else None, text)
