"""The corpus for keypoints of COCO files: the pair of `coco_cases`, each box with a skeleton in it.

All 17 keypoints are labeled. Those of a detection on its object are the object's own, so that
object keypoint similarity is 1, and of any other some 50 pixels off, so that it is 0: every number
is that of the boxes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.reliability import coco_cases, mask_cases
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
    replaced,
)

KEYPOINTS = 17
CASES: list[Case] = []


def pose(box: list[Any], v: Any = 2, *, count: int = KEYPOINTS) -> list[Any]:
    """Return keypoints inside a box."""
    x, y, width, height = box
    return [
        value
        for i in range(count)
        for value in (x + width * (i % 4) // 4, y + height * (i // 4) // 5, v)
    ]


def truth() -> Truth:
    value = coco_cases.truth()
    for annotation in value["annotations"]:
        annotation["keypoints"] = pose(annotation["bbox"])
        annotation["num_keypoints"] = KEYPOINTS
    return value


def results() -> Results:
    return [row | {"keypoints": pose(row["bbox"])} for row in coco_cases.results()]


MORE: dict[str, Any] = {"cases": CASES, "usual": (truth, results), "iou_type": "keypoints"}
refused: Callable[..., None] = partial(coco_cases.refused, **MORE)
scored: Callable[..., None] = partial(coco_cases.scored, **MORE)
both = coco_cases.Both("keypoints", (1, 2), **MORE)


each = partial(coco_cases.each, "keypoints")

BOX = [10, 10, 20, 20]
"""Keypoints of the records that cases change: the second ground truth and its detection."""
POSE = pose(BOX)


def seen(v: Any) -> Callable[[Any], None]:
    """Return a function that gives every keypoint of a file this v."""
    return each(lambda box: pose(box, v))


# --- what is right, in every form

scored("pose-forms", "usual", BASE)
scored("pose-forms", "results-without-boxes", BASE, dt=mask_cases.without_boxes)
scored("pose-forms", "hidden", BASE, gt=seen(1))
scored("pose-forms", "floats", BASE, gt=each(lambda box: [*map(float, pose(box))]))
# Of a detection v is not looked at, be it a score or nothing at all.
for _name, _v in (("zero", 0), ("score", 0.93), ("negative", -1), ("large", 50)):
    scored("pose-forms", f"v-of-results-{_name}", BASE, dt=seen(_v))
# One keypoint that is not labeled may lie anywhere.
_edit = edit("annotations", 1, keypoints=[0, 0, 0, *POSE[3:]], num_keypoints=16)
scored("pose-forms", "unlabeled-anywhere", BASE, gt=_edit)

# --- of another length

for _name, _pose, _says in (
    ("empty", [], "keypoints is empty"),
    ("one-number", POSE[:1], "keypoints has 1 values"),
    ("without-last-v", POSE[:-1], r"keypoints has 50 values, expected \[x, y, v"),
    ("without-v", [x for i, x in enumerate(POSE) if i % 3 < 2], "keypoints has 34 values"),
    ("fewer", POSE[:-3], "keypoints has 16 keypoints, expected 17"),
    ("more", [*POSE, 1, 1, 2], "keypoints has 18 keypoints, expected 17"),
    ("triples", [POSE[i : i + 3] for i in range(0, 51, 3)], r"keypoints\[0\] is \[10, 10, 2\]"),
):
    both("pose-length", _name, _pose, _says)
_five = each(lambda box: pose(box, count=5))
_says = "keypoints has 5 keypoints, expected 17"
refused("pose-length", "skeleton-of-the-truth", DT, r"4 records \(\[0\]", _says, dt=_five)

# --- of what is no number of pixels

for _name, _value, _says in (
    ("null", None, r"keypoints\[1\] is null"),
    ("bool", True, r"keypoints\[1\] is true, expected a number"),
    ("text", "10", r'keypoints\[1\] is "10"'),
    ("nested", [10], r"keypoints\[1\] is \[10\], expected a number"),
    ("huge", 10**400, r"keypoints\[1\]"),
    ("farther-than-pixels", 1e12, r"keypoints\[1\] is 1.*, expected pixels"),
):
    both("pose-number", _name, [POSE[0], _value, *POSE[2:]], _says)
both("pose-number", "v-null", [*POSE[:2], None, *POSE[3:]], r"keypoints\[2\] is null")
for _name, _text in NOT_FINITE.items():
    for _file, _make in ((GT, truth), (DT, results)):
        for _what, _old, _new in (
            ("x", '"keypoints": [10,', f'"keypoints": [{_text},'),
            ("v", '"keypoints": [10, 10, 2,', f'"keypoints": [10, 10, {_text},'),
        ):
            _given = {_file[:2]: replaced(_old, _new, _make)}
            _case = f"{_what}-{_name}-in-{_file[:2]}"
            _where, _says = r"(annotations)?\[0\]", r"keypoints\[[02]\] is "
            refused("pose-number", _case, _file, _where, _says, **_given)

# --- no keypoints at all

for _name, _nothing, _says in (
    ("missing", ..., "keypoints is missing; add it, or use --iou-type bbox"),
    ("null", None, r"keypoints is null, expected \[x, y, v, x, y, v, \.\.\.\]"),
    ("number", 5, "keypoints is 5"),
    ("object", {}, r"keypoints is \{"),
    ("text", "10,10,2", 'keypoints is "10'),
):
    both("no-pose", _name, _nothing, _says)
_boxes = edit_all("annotations", keypoints=..., num_keypoints=...)
_says = "keypoints is missing.*--iou-type bbox"
refused("no-pose", "of-boxes-alone", GT, r"annotations\[0\]", _says, gt=_boxes)
_boxless = edit("annotations", 1, bbox=...)
refused("no-pose", "no-box-in-truth", GT, r"annotations\[1\]", "bbox", gt=_boxless)

# --- v that is none

for _name, _v in (("three", 3), ("fraction", 0.5), ("score", 0.93)):
    scored("pose-visibility", _name, BASE, ("odd-visibility",), gt=seen(_v))
# Below 0 none is labeled, as 0 is none: the object is 17 other keypoints, of which one is off.
_none = edit("annotations", 1, keypoints=[90, 90, -1, *POSE[3:]], num_keypoints=16)
scored("pose-visibility", "negative", BASE, ("odd-visibility",), gt=_none)

# --- num_keypoints

for _name, _count in (
    ("negative", -1),
    ("fraction", 1.5),
    ("text", "17"),
    ("bool", True),
    ("list", []),
):
    _edit = edit("annotations", 1, num_keypoints=_count)
    refused("pose-count", _name, GT, r"annotations\[1\]", "num_keypoints is ", gt=_edit)
for _text in ("NaN", "1e999"):
    _data = replaced('"num_keypoints": 17', f'"num_keypoints": {_text}', truth)
    refused("pose-count", _text, GT, r"annotations\[0\]", "num_keypoints is ", gt=_data)
_null = edit("annotations", 1, num_keypoints=None)
scored("pose-count", "null", BASE, ("missing-num-keypoints",), gt=_null)
_missing = edit_all("annotations", num_keypoints=...)
scored("pose-count", "missing", BASE, ("missing-num-keypoints",), gt=_missing)
scored("pose-count", "fewer", BASE, gt=edit("annotations", 1, num_keypoints=3))
scored("pose-count", "more", BASE, gt=edit("annotations", 1, num_keypoints=18))
# num_keypoints decides. With 0 the object is ignored, and so is the detection on it: of cat one
# ground truth remains, matched first: AP 1.
_ignored = edit("annotations", 1, num_keypoints=0)
scored("pose-count", "none-of-17", 1.0, ("num-keypoints-disagrees",), gt=_ignored)
# The other way round it is an object without a labeled keypoint: what lies within the box with its
# own width and height added on every side is on it.
_hidden = edit("annotations", 1, keypoints=pose(BOX, 0))
scored("pose-count", "17-of-none", BASE, ("num-keypoints-disagrees",), gt=_hidden)
