"""The corpus for masks of COCO files: the pair of `coco_cases`, each box drawn as a mask.

Ground truths are polygons and detections compressed run lengths, with their boxes, on images of
80 x 100 pixels, so that a size the wrong way round shows. Masks that fill their boxes overlap as
these do, so that every number is that of the boxes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.reliability import coco_cases
from tests.reliability.cases import Case
from tests.reliability.coco_cases import (
    BASE,
    DT,
    GT,
    NOT_FINITE,
    Results,
    Truth,
    edit,
    edit_all,
    edit_result,
    replaced,
)

HIGH, WIDE = 80, 100
CASES: list[Case] = []


def polygon(box: list[Any]) -> list[Any]:
    x, y, width, height = box
    return [[x, y, x, y + height, x + width, y + height, x + width, y]]


def runs(box: list[Any], high: int = HIGH, wide: int = WIDE) -> list[int]:
    """Return the run lengths of a box, column by column, background first."""
    x, y, width, height = box
    gap = high - height
    inside = [height, gap] * width
    inside[-1] = high * wide - (x * high + y) - width * height - (width - 1) * gap
    return [x * high + y, *inside]


def packed(counts: list[int]) -> str:
    """Write run lengths as COCO's API does: five bits a character, from the third on the
    difference to the last but one.
    """
    text = ""
    for i, count in enumerate(counts):
        value = count - counts[i - 2] if i > 2 else count
        while True:
            digit, value = value & 31, value >> 5
            more = value != (-1 if digit & 16 else 0)
            text += chr(48 + (digit | 32 * more))
            if not more:
                break
    return text


def listed(box: list[Any], high: int = HIGH, wide: int = WIDE) -> dict[str, Any]:
    return {"size": [high, wide], "counts": runs(box, high, wide)}


def squeezed(box: list[Any], high: int = HIGH, wide: int = WIDE) -> dict[str, Any]:
    return {"size": [high, wide], "counts": packed(runs(box, high, wide))}


def truth() -> Truth:
    value = coco_cases.truth()
    for image in value["images"]:
        image["height"] = HIGH
    for annotation in value["annotations"]:
        annotation["segmentation"] = polygon(annotation["bbox"])
    return value


def results() -> Results:
    return [row | {"segmentation": squeezed(row["bbox"])} for row in coco_cases.results()]


MORE: dict[str, Any] = {"cases": CASES, "usual": (truth, results), "iou_type": "segm"}
refused: Callable[..., None] = partial(coco_cases.refused, **MORE)
scored: Callable[..., None] = partial(coco_cases.scored, **MORE)
both = coco_cases.Both("segmentation", (0, 0), **MORE)


def without_boxes(rows: Results) -> None:
    for row in rows:
        del row["bbox"]


each = partial(coco_cases.each, "segmentation")

BOX = [10, 10, 20, 20]
"""Segmentation of the record that cases change: the first of both files."""
OUTSIDE = [1000, 1000, 20, 20]
COUNTS = runs(BOX)
PIXELS = HIGH * WIDE
SIZE = [HIGH, WIDE]


def with_counts(counts: Any) -> dict[str, Any]:
    return {"size": SIZE, "counts": counts}


# --- what is right, in every form

scored("mask-forms", "usual", BASE)
scored("mask-forms", "results-without-boxes", BASE, dt=without_boxes)
scored("mask-forms", "truth-without-boxes", BASE, gt=edit_all("annotations", bbox=...))
scored("mask-forms", "truth-of-lists", BASE, gt=each(listed))
scored("mask-forms", "truth-of-strings", BASE, gt=each(squeezed))
scored("mask-forms", "results-of-lists", BASE, dt=each(listed))
scored("mask-forms", "results-of-polygons", BASE, dt=each(polygon))
for _name, _mask in (
    ("halves", polygon([10, 10, 20, 7]) + polygon([10, 17, 20, 13])),
    ("parts-overlap", polygon([10, 10, 20, 12]) + polygon([10, 17, 20, 13])),
    ("ring-in-a-ring", polygon(BOX) + polygon([15, 15, 5, 5])),
    # Two points have no pixel, as pycocotools draws them.
    ("part-of-two-points", [*polygon(BOX), [1, 2, 30, 40]]),
    ("whole-floats", polygon([10.0, 10.0, 20.0, 20.0])),
    ("empty-runs", with_counts([100, 0, COUNTS[0] - 100, *COUNTS[1:]])),
):
    scored("mask-forms", _name, BASE, gt=edit("annotations", 0, segmentation=_mask))

# A crowd matches the detection on it, so that of cat one ground truth remains, matched after a
# false positive: AP 1/2; dog has 1.
for _name, _kind in (("polygon", polygon), ("list", listed), ("string", squeezed)):
    _crowd = edit("annotations", 0, segmentation=_kind(BOX), iscrowd=1)
    scored("mask-crowd", _name, 0.75, gt=_crowd)

# --- run lengths

for _name, _counts, _says in (
    ("too-short", COUNTS[:-1], f"counts sum to .*, expected {PIXELS} for .*; size is .height, w"),
    ("too-long", [*COUNTS, 1], f"counts sum to {PIXELS + 1}"),
    ("much-too-long", [*COUNTS, 10**6], f"counts sum to {PIXELS + 10**6}"),
    ("one-short", [*COUNTS[:-1], COUNTS[-1] - 1], f"counts sum to {PIXELS - 1}"),
    ("none", [], "counts sum to 0"),
    ("zero", [0], "counts sum to 0"),
    ("round-again", [*COUNTS, 0, 2**32 - 1, 0, 1], f"counts sum to {PIXELS + 2**32}"),
):
    both("mask-counts", f"{_name}-list", with_counts(_counts), _says)
    beyond = sum(_counts) >= 2**32
    _says = "counts runs beyond the mask" if beyond else _says
    both("mask-counts", f"{_name}-string", with_counts(packed(_counts)), _says)

for _name, _count, _says in (
    ("negative", -5, r"counts\[1\] is -5, expected an integer >= 0"),
    ("fraction", 20.5, r"counts\[1\] is 20.5"),
    ("huge", 2**40, rf"counts\[1\] is {2**40}"),
    ("beyond-int64", 2**70, rf"counts\[1\] is {2**70}"),
    ("1e300", 1e300, r"counts\[1\] is 1e\+?300"),
    ("bool", True, r"counts\[1\] is true"),
    ("null", None, r"counts\[1\] is null"),
    ("text", "20", r'counts\[1\] is "20"'),
    ("nested", [20], r"counts\[1\] is \[20\]"),
):
    both("mask-counts", _name, with_counts([COUNTS[0], _count, *COUNTS[2:]]), _says)
for _name, _value in (("null", None), ("number", 5), ("object", {}), ("false", False)):
    _says = "counts is .*, expected a list or a string"
    both("mask-counts", f"counts-{_name}", with_counts(_value), _says)
both("mask-counts", "counts-missing", {"size": SIZE}, "no counts")

# --- strings

STRING = packed(COUNTS)
for _name, _text, _says in (
    ("blank", STRING[:3] + " " + STRING[3:], "counts holds .* no digit .*; encode the mask again"),
    ("beyond-the-alphabet", STRING[:3] + "z" + STRING[3:], "no digit"),
    ("nul", STRING[:3] + "\0" + STRING[3:], "no digit"),
    ("newline", STRING + "\n", "no digit"),
    ("accent", STRING[:3] + "\u00e9" + STRING[3:], "no digit"),
    ("python-bytes", f"b'{STRING}'", "no digit"),
    ("numbers", " ".join(map(str, COUNTS)), "no digit"),
    ("base64", "eJzLSM3JyQcABiwCFQ==", "counts holds"),
    ("unterminated", STRING + "o", "counts ends within a number; encode the mask again"),
    ("overflow", "o" * 40 + "0", "counts "),
    ("negative-run", "O" + STRING, "negative run"),
    ("cut", STRING[: len(STRING) // 2], "counts (sum to|ends)"),
    ("empty", "", "counts sum to 0"),
):
    both("mask-string", _name, with_counts(_text), _says)

# --- sizes

_swapped = r"has size \[100, 80\], expected \[80, 100\] of image 1; size is \[height, width\]"
both("mask-size", "transposed", listed(BOX, WIDE, HIGH), _swapped)
both("mask-size", "transposed-string", squeezed(BOX, WIDE, HIGH), r"size \[100, 80\]")
both("mask-size", "transposed-alone", {"size": [WIDE, HIGH], "counts": STRING}, r"size \[100, 80\]")
both("mask-size", "smaller", squeezed(BOX, 40, 50), r"size \[40, 50\], expected \[80, 100\]")
both("mask-size", "larger", squeezed(BOX, 160, 200), r"size \[160, 200\]")
for _name, _size in (
    ("zero", [0, WIDE]),
    ("negative", [-HIGH, -WIDE]),
    ("fraction", [80.5, WIDE]),
    ("one", [HIGH]),
    ("three", [HIGH, WIDE, 1]),
    ("text", "80x100"),
    ("texts", ["80", "100"]),
    ("null", None),
    ("object", {"height": HIGH, "width": WIDE}),
    ("bools", [True, True]),
    ("huge", [2**20, 2**20]),
    ("overflow", [2**32, 2**32]),
):
    _says = "4294967295" if _name == "huge" else "expected .height, width. as integers|pixels"
    both("mask-size", f"size-{_name}", {"size": _size, "counts": STRING}, f"size is .*({_says})")
both("mask-size", "missing", {"counts": STRING}, "no size")
UNSIZED = edit_all("images", width=..., height=...)


def unsized_runs(value: Truth) -> None:
    each(squeezed)(value)
    UNSIZED(value)


refused(
    "mask-size",
    "other-than-the-truth-s",
    DT,
    r"\[0\]",
    r"size \[100, 80\], expected \[80, 100\]",
    gt=unsized_runs,
    dt=edit_result(0, segmentation=squeezed(BOX, WIDE, HIGH)),
)
scored("unsized-image", "run-lengths", BASE, gt=unsized_runs)
for _name, _edit in (
    ("polygons", UNSIZED),
    ("nulls", edit("images", 0, width=None, height=None)),
):
    _says = "image has no width and height"
    refused("unsized-image", _name, GT, r"annotations\[0\]", _says, gt=_edit)

# --- polygons

for _name, _rings, _says in (
    ("four-numbers", [[10, 10, 30, 30]], r"\[0\] has 4 values, expected three points or more"),
    ("two-numbers", [[10, 10]], r"segmentation\[0\] has 2 values"),
    ("no-numbers", [[]], r"segmentation\[0\] has 0 values"),
    ("odd", [[10, 10, 10, 30, 30, 30, 30]], r"\[0\] has 7 values, expected x and y of each point"),
    ("odd-second-part", [*polygon(BOX), [1, 2, 3]], r"segmentation\[1\] has 3 values"),
    ("flat", polygon(BOX)[0], r"segmentation\[0\] is 10"),
    ("points", [[[10, 10], [10, 30], [30, 30], [30, 10]]], r"segmentation\[0\]\[0\] is \[10"),
    ("text", [[10, 10, 10, "30", 30, 30]], r'segmentation\[0\]\[3\] is "30"'),
    ("null", [[10, 10, 10, None, 30, 30]], r"segmentation\[0\]\[3\] is null"),
    ("bool", [[10, 10, 10, True, 30, 30]], r"segmentation\[0\]\[3\] is true, expected a number"),
    ("objects", [{"x": 10, "y": 10}], r"segmentation\[0\] is \{"),
    ("texts", ["10,10,10,30,30,30"], r'segmentation\[0\] is "10'),
    ("null-part", [None], r"segmentation\[0\] is null"),
    ("farther-than-pixels", [[10, 10, 10, 1e12, 30, 30]], r"\[0\]\[3\] is 1.*, expected pixels"),
    ("huge", [[10, 10, 10, 10**400, 30, 30]], r"segmentation\[0\]\[3\]"),
):
    both("mask-polygon", _name, _rings, _says)
for _name, _text in NOT_FINITE.items():
    _data = replaced("[[10, 10, 10, 30,", f"[[10, 10, {_text}, 30,", truth)
    _says = r"segmentation\[0\]\[2\]|NaN"
    refused("mask-polygon", f"{_name}-in-truth", GT, r"annotations\[0\]", _says, gt=_data)
_data = replaced(
    "[[10, 10, 10, 30, 30, 30, 30, 10]]", '{"size": [80, 100], "counts": [NaN]}', truth
)
refused("mask-polygon", "counts-nan", GT, r"annotations\[0\]", "counts|NaN", gt=_data)

# --- no mask at all

_nothing: Any
for _name, _nothing, _says in (
    ("empty-list", [], r"segmentation is empty, expected polygons \[\[x, y, x"),
    ("empty-object", {}, "no size"),
    ("number", 5, "segmentation is 5"),
    ("true", True, "segmentation is true"),
    ("empty-text", "", 'segmentation is ""'),
    ("string-alone", STRING, 'segmentation is "'),
):
    both("no-mask", _name, _nothing, _says)
_none = edit("annotations", 0, segmentation=None)
refused("no-mask", "null-in-truth", GT, r"annotations\[0\]", "segmentation is null", gt=_none)
_missing = "segmentation is missing; add it, or use --iou-type bbox"
for _name, _edit in (
    ("missing-in-truth", edit("annotations", 0, segmentation=...)),
    ("missing-in-all-truths", edit_all("annotations", segmentation=...)),
):
    refused("no-mask", _name, GT, r"annotations\[0\]", _missing, gt=_edit)
_neither = edit_result(1, segmentation=..., bbox=...)
_missing = "segmentation is missing; add it"
refused("no-mask", "neither-in-results", DT, r"\[1\]", _missing, dt=_neither)
for _name, _change in (
    ("box-in-results", edit_result(0, segmentation=...)),
    ("null-in-results", edit_result(0, segmentation=None)),
    ("boxes-alone", lambda rows: [row.pop("segmentation") for row in rows] and None),
    (
        "box-here-mask-there",
        lambda rows: (rows[0].pop("segmentation"), rows[2].pop("bbox"), None)[2],
    ),
):
    scored("mask-mixed", _name, BASE, ("boxes-as-masks",), dt=_change)
scored("mask-mixed", "first-without-box", BASE, dt=edit_result(0, bbox=...))
scored("mask-mixed", "first-alone-with-box", BASE, dt=lambda rows: without_boxes(rows[1:]))
# The mask counts: what its box says decides nothing but ranges of area.
scored("mask-mixed", "box-elsewhere", BASE, dt=edit_result(0, bbox=[60, 50, 20, 20]))

# --- beyond the image: cut off

scored(
    "mask-beyond-image",
    "in-part",
    BASE,
    gt=edit("annotations", 2, segmentation=polygon([50, 50, 300, 300])),
    dt=edit_result(3, segmentation=squeezed([50, 50, 50, 30])),
)
# Nothing is left of the first ground truth: the detection in its place is wrong, as the next is,
# and the third finds one of two at a precision of 1/3.
NOWHERE = (51 / 101 / 3 + 1) / 2
for _row, _name, _mask, _box in (
    ("mask-beyond-image", "wholly", polygon(OUTSIDE), OUTSIDE),
    ("mask-beyond-image", "wholly-negative", polygon([-90, -90, 20, 20]), [-90, -90, 20, 20]),
    ("mask-empty", "truth", with_counts([PIXELS]), [0, 0, 0, 0]),
    ("mask-empty", "string", with_counts(packed([PIXELS])), [0, 0, 0, 0]),
):
    _empty = {"area": 0} if _row == "mask-empty" else {}
    _note = "zero-area-ground-truth" if _empty else "ground-truth-beyond-image"
    _gone = edit("annotations", 0, segmentation=_mask, bbox=_box, **_empty)
    scored(_row, _name, NOWHERE, (_note,), gt=_gone)
for _name, _boxes in (("detection", {}), ("detection-without-box", {"bbox": ...})):
    _nowhere = edit_result(0, segmentation=with_counts(packed([PIXELS])), **_boxes)
    scored("mask-empty", _name, NOWHERE, dt=_nowhere)

# --- JSON

refused(
    *("duplicate-key", "counts", DT, r"\[0\]", "counts"),
    dt=replaced('"counts": ', '"counts": [8000], "counts": ', results),
)
