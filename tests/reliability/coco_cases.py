"""The corpus for COCO files: variations of one small pair of files, worked by hand.

The pair: two images, two classes. Of class cat two ground truths; by falling score the detections
are TP, FP, TP. Precision at recall 1/2 is 1, at recall 1 it is 2/3, so that over 101
recall levels AP = (51 * 1 + 50 * 2/3) / 101. Of class dog one ground truth, matched: AP = 1. Every
overlap is 1 or 0, so that AP is the same at each threshold.
"""

import copy
import gzip
import json
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.reliability.cases import NAMES, Case, Refused, Scored, make_socket, replacing

Truth = dict[str, Any]
Results = list[dict[str, Any]]
Build = Callable[[Path], None]

CAT = (51 + 50 * 2 / 3) / 101
BASE = (CAT + 1) / 2

GT, DT = "gt.json", "dt.json"


def truth() -> Truth:
    return {
        "images": [
            {"id": 1, "width": 100, "height": 100, "file_name": "a.jpg"},
            {"id": 2, "width": 100, "height": 100, "file_name": "b.jpg"},
        ],
        "annotations": [
            annotation(1, 1, 1, [10, 10, 20, 20]),
            annotation(2, 2, 1, [10, 10, 20, 20]),
            annotation(3, 1, 2, [50, 50, 30, 30]),
        ],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    }


def annotation(identifier: Any, image: Any, category: Any, box: list[Any]) -> dict[str, Any]:
    return {
        "id": identifier,
        "image_id": image,
        "category_id": category,
        "bbox": box,
        "area": box[2] * box[3],
        "iscrowd": 0,
    }


def detection(image: Any, category: Any, box: list[Any], score: Any) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": box, "score": score}


def results() -> Results:
    return [
        detection(1, 1, [10, 10, 20, 20], 0.9),
        detection(1, 1, [60, 10, 20, 20], 0.8),
        detection(2, 1, [10, 10, 20, 20], 0.7),
        detection(1, 2, [50, 50, 30, 30], 0.6),
    ]


def write(path: Path, value: Any) -> None:
    """Write the contents of a case: bytes unchanged, anything else as JSON."""
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())


def files(
    gt: Any = None,
    dt: Any = None,
    gt_name: str = GT,
    dt_name: str = DT,
    usual: tuple[Callable[[], Truth], Callable[[], Results]] = (truth, results),
) -> Any:
    """Return a function that builds the two files; a function edits the usual content."""

    def build(folder: Path) -> None:
        for path, given, make in ((gt_name, gt, usual[0]), (dt_name, dt, usual[1])):
            value: Any = copy.deepcopy(make())
            if callable(given):
                value = given(value) or value
            elif given is not None:
                value = given
            write(folder / path, value)

    return build


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def replaced(old: str, new: str, value: Callable[[], Any], count: int = 1) -> bytes:
    """Return the usual text with a part of it replaced; the part must be there."""
    text = json.dumps(value())
    assert old in text, old
    return text.replace(old, new, count).encode("utf-8", "surrogatepass")


CASES: list[Case] = []


def _add(
    row: str, name: str, expect: Refused | Scored, edits: tuple[Any, Any], more: dict[str, Any]
) -> None:
    """Add a case; `more` may have its list, and the usual files, if they are not those here."""
    cases, usual = more.pop("cases", CASES), more.pop("usual", (truth, results))
    build = more.pop("build", None) or files(edits[0], edits[1], usual=usual)
    paths = {"gt": more.pop("gt_path", GT), "dt": more.pop("dt_path", DT)}
    cases.append(Case(row, name, "coco", build, expect, **paths, **more))


def refused(
    row: str,
    name: str,
    file: str,
    location: str,
    says: str,
    *,
    gt: Any = None,
    dt: Any = None,
    **more: Any,
) -> None:
    _add(row, name, Refused(file, location, says), (gt, dt), more)


def scored(
    row: str,
    name: str,
    ap: float | None,
    notes: tuple[str, ...] = (),
    classes: dict[str, float | None] | None = None,
    *,
    gt: Any = None,
    dt: Any = None,
    **more: Any,
) -> None:
    _add(row, name, Scored({"AP": ap, "AP50": ap}, notes, classes or {}), (gt, dt), more)


def edit(part: str, number: int, /, **values: Any) -> Callable[[Truth], None]:
    """Return a function that changes values of one ground-truth record; ... removes a key."""

    def change(value: Truth) -> None:
        _update(value[part][number], values)

    return change


def edit_result(number: int, **values: Any) -> Callable[[Results], None]:
    def change(value: Results) -> None:
        _update(value[number], values)

    return change


def _update(record: dict[str, Any], values: dict[str, Any]) -> None:
    for key, entry in values.items():
        if entry is ...:
            del record[key]
        else:
            record[key] = entry


def wrong(row: str, name: str, part: str, number: int, says: str, /, **values: Any) -> None:
    """Add a ground truth of which one record has these values."""
    location = rf"{part}\[{number}\]"
    refused(row, name, GT, location, says, gt=edit(part, number, **values))


def wrong_result(row: str, name: str, number: int, says: str, **values: Any) -> None:
    """Add results of which one record has these values."""
    refused(row, name, DT, rf"\[{number}\]", says, dt=edit_result(number, **values))


def edit_all(part: str, **values: Any) -> Callable[[Truth], None]:
    def change(value: Truth) -> None:
        for record in value[part]:
            _update(record, values)

    return change


def each(key: str, make: Callable[[list[Any]], Any]) -> Callable[[Any], None]:
    """Return a function that gives every record of a file a value made of its box."""

    def change(value: Any) -> None:
        for row in value["annotations"] if isinstance(value, dict) else value:
            row[key] = make(row["bbox"])

    return change


class Both:
    """Adds two cases of an invalid value of a key: of a ground truth and of a detection."""

    def __init__(self, key: str, numbers: tuple[int, int], **more: Any) -> None:
        self.key = key
        self.numbers = numbers
        self.more = more

    def __call__(self, row: str, name: str, value: Any, says: str) -> None:
        one, other = self.numbers
        gt = edit("annotations", one, **{self.key: value})
        refused(row, f"{name}-in-truth", GT, rf"annotations\[{one}\]", says, gt=gt, **self.more)
        dt = edit_result(other, **{self.key: value})
        refused(row, f"{name}-in-results", DT, rf"\[{other}\]", says, dt=dt, **self.more)


def appended(part: str, record: dict[str, Any]) -> Callable[[Truth], None]:
    return lambda value: value[part].append(record)


# --- ids

scored("any-annotation-id", "plain", BASE, classes={"cat": CAT, "dog": 1.0})
scored("any-annotation-id", "zero", BASE, gt=edit("annotations", 0, id=0))
scored("any-annotation-id", "negative", BASE, gt=edit("annotations", 0, id=-5))
scored("any-annotation-id", "huge", BASE, gt=edit("annotations", 0, id=2**80))
scored("any-annotation-id", "beyond-int64", BASE, gt=edit("annotations", 0, id=2**63))

_twice = {"id": 1, "image_id": 1, "category_id": 2}
for part, values in (("annotations", _twice), ("images", {"id": 1}), ("categories", {"id": 1})):
    says = rf"duplicate id 1 \(also at {part}\[0\]\)"
    wrong("equal-ids", part, part, 1, says, **values)
crowd = appended("annotations", annotation(1, 1, 1, [10, 10, 20, 20]) | {"iscrowd": 1})
name = "annotation-differs-in-crowd-only"
refused("equal-ids", name, GT, r"annotations\[3\]", "id 1", gt=crowd)

for part, name in (
    ("annotations", "annotation"),
    ("images", "image"),
    ("categories", "category"),
):
    again = appended(part, truth()[part][0])
    scored("repeated-record", name, BASE, (f"repeated-{part}",), gt=again)
without = edit_all("annotations", id=...)
scored("no-annotation-ids", "none", BASE, ("missing-annotation-ids",), gt=without)
without = edit("annotations", 0, id=None)
scored("no-annotation-ids", "null", BASE, ("missing-annotation-ids",), gt=without)

wrong_result("unknown-image", "one", 1, "image_id 99 is not in the ground truth", image_id=99)
wrong_result("unknown-image", "negative", 1, "image_id -1", image_id=-1)
wrong_result("unknown-image", "huge", 1, f"image_id {2**70}", image_id=2**70)


def every(key: str, function: Callable[[Any], Any]) -> Callable[[Results], Results]:
    """Return a function that changes one value of every result."""
    return lambda r: [entry | {key: function(entry[key])} for entry in r]


def _shift(by: int, key: str = "category_id") -> Callable[[Results], Results]:
    return every(key, lambda value: value + by)


extra = [*results(), detection(1, 7, [1, 1, 5, 5], 0.95)]
scored("unknown-category", "extra", BASE, ("unknown-categories",), dt=extra)
OTHERS = r"no {}_id of the results is in the ground truth \(results: {}; ground truth: 1\S2\); use"
OFF = r"every category_id looks off by {} \(e.g. {} overlaps class 1\); use the ground truth's ids"
for row, name, says, shifted in (
    ("unknown-category", "all", OTHERS.format("category", "101\\S102"), _shift(100)),
    ("nothing-in-common", "categories-up-by-one", OFF.format("\\+1", 2), _shift(1)),
    ("nothing-in-common", "categories-down-by-one", OFF.format("-1", 0), _shift(-1)),
    ("nothing-in-common", "images", OTHERS.format("image", "11\\S12"), _shift(10, "image_id")),
):
    refused(row, name, DT, "", says, dt=shifted)
for key, part in (("image_id", "images"), ("category_id", "categories")):
    wrong("dangling-truth", part, "annotations", 1, f"{key} 9 is not in {part}", **{key: 9})

# --- nothing there

scored("no-detections", "list", 0.0, ("no-detections",), dt=[])
scored("no-detections", "object", 0.0, ("no-detections",), dt={"annotations": []})
scored("no-detections", "predictions", 0.0, ("no-detections",), dt={"predictions": []})
refused("no-detections", "empty-file", DT, "", "empty", dt=b"")
refused("no-detections", "blank-file", DT, "", "empty", dt=b" \n\t")
for name, says, edited in (
    ("no-annotations", "no annotations", {"annotations": []}),
    ("no-images", "image", {"images": []}),
    ("no-categories", "categor", {"categories": []}),
    ("images-null", "images is null, expected an array", {"images": None}),
):
    refused("no-truth", name, GT, "", says, gt=truth() | edited)
refused("no-truth", "empty-object", GT, "", "no images", gt={})
bare = {key: value for key, value in truth().items() if key != "annotations"}
says = "no annotations; expected an object with images, annotations, categories"
refused("no-truth", "annotations-key-missing", GT, "", says, gt=bare)
refused("no-truth", "empty-file", GT, "", "empty", gt=b"")
refused("same-file", "twice", GT, "", "ground.truth", dt_path=GT, build=files())
link = "link.json"
linked = replacing(files(), lambda path: path.symlink_to(GT), link)
refused("same-file", "by-a-link", link, "", "ground.truth", dt_path=link, build=linked)
says = r"is a JSON list \(results\?\); expected an object"
refused("same-file", "results-as-truth", GT, "", says, gt=results())
says = r"no images and no categories \(records have scores: results\?\)"
refused("same-file", "results-object-as-truth", GT, "", says, gt={"annotations": results()})

# --- numbers

NOT_FINITE = {"nan": "NaN", "infinity": "Infinity", "minus": "-Infinity", "1e999": "1e999"}
for name, text in {**NOT_FINITE, "401-digits": "9" * 401, "5000-digits": "9" * 5000}.items():
    corners = f"[10, 10, {text}, 20]"
    for part, file, location, says, old, new, content in (
        ("score", DT, r"\[1\]", "score", '"score": 0.8', f'"score": {text}', results),
        ("box", DT, r"\[0\]", r"bbox\[2\]", "[10, 10, 20, 20]", corners, results),
        ("truth-box", GT, r"annotations\[0\]", r"bbox\[2\]", "[10, 10, 20, 20]", corners, truth),
        ("area", GT, r"annotations\[0\]", "area", '"area": 400', f'"area": {text}', truth),
    ):
        given = {"dt" if file == DT else "gt": replaced(old, new, content)}
        fault = f"{says} is (NaN|infinite), expected a finite number"
        refused("not-finite", f"{part}-{name}", file, location, fault, **given)
says = "score is missing; 1 of 4 records has none: give all records a score, or none"
wrong_result("no-score", "missing", 1, says, score=...)
wrong_result("no-score", "null", 1, says, score=None)
wrong_result("no-score", "string", 1, 'score is "0.8"', score="0.8")
wrong_result("no-score", "bool", 1, "score is true, expected a number", score=True)
wrong_result("no-score", "list", 1, r"score is \[0.8\]", score=[0.8])

for name, scale in (
    ("percent", lambda score: 100 * score),
    ("negative", lambda score: score - 1),
    ("logits", lambda score: 20 * score - 13),
    ("huge", lambda score: score * 1e308),
    ("integers", lambda score: round(10 * score)),
    ("denormal", lambda score: score * 1e-310),
):
    scored("any-score", name, BASE, dt=every("score", scale))

for name, box in (("width", [30, 10, -20, 20]), ("height", [10, 30, 20, -20])):
    says = rf"bbox has a negative {name}: \["
    wrong_result("negative-size", name, 0, says, bbox=box)
    wrong("negative-size", f"truth-{name}", "annotations", 0, says, bbox=box)

BACKWARD = [30, 10, -20, 20]
TURNED = [30, 30, -20, -20]
BIRDS = [[4 * n, 80, 3, 3] for n in range(20)]


def _with_birds(
    more_gt: list[list[Any]] = [],  # noqa: B006 - never changed
    more_dt: list[tuple[int, list[Any], float]] = [],  # noqa: B006
    count: int = 20,
) -> dict[str, Any]:
    """Return both files with a third class, detected perfectly, with many ground truths."""

    def gt(value: Truth) -> None:
        value["categories"].append({"id": 3, "name": "bird"})
        for number, box in enumerate([*BIRDS[:count], *more_gt], 4):
            value["annotations"].append(annotation(number, 2, 3, box) | {"area": 9})

    def dt(value: Results) -> None:
        value += [detection(2, 3, box, 0.5) for box in BIRDS[:count]]
        value += [detection(1, category, box, score) for category, box, score in more_dt]

    return {"gt": gt, "dt": dt}


# One of 25 detections. Its area is negative, outside every range: it is ignored.
scored(
    "negative-size",
    "one-of-25",
    (CAT + 2) / 3,
    ("detections-negative-size",),
    {"cat": CAT, "bird": 1.0},
    **_with_birds(more_dt=[(1, BACKWARD, 0.95)]),
)
# Where both sides are negative its area is positive, and it is the first of four, and false: of
# cats one of two, then two of four.
scored(
    "negative-size",
    "both-of-one-of-25",
    2.5 / 3,
    ("detections-negative-size",),
    {"cat": 0.5, "bird": 1.0},
    **_with_birds(more_dt=[(1, TURNED, 0.95)]),
)
# One of 24 ground truths: 20 of 21 birds are found, which is 96 of 101 levels.
for name, box in (("width", BACKWARD), ("both", TURNED)):
    scored(
        "negative-size",
        f"truth-{name}-one-of-24",
        (CAT + 1 + 96 / 101) / 3,
        ("ground-truth-negative-size",),
        {"cat": CAT, "bird": 96 / 101},
        **_with_birds(more_gt=[box]),
    )
few = _with_birds(more_dt=[(1, BACKWARD, 0.95)], count=15)
refused("negative-size", "one-of-20", DT, r"\[19\]", "negative width", **few)
few = _with_birds(more_gt=[BACKWARD], count=16)
name = "truth-one-of-20"
refused("negative-size", name, GT, r"annotations\[19\]", "negative width", **few)


def _hundredths(records: Any) -> Any:
    for record in records:
        record["bbox"] = [value / 100 for value in record["bbox"]]
    return records


FRACTIONS = "look normalized"
refused("fractions", "detections", DT, "", FRACTIONS, dt=_hundredths)
fractions = {"gt": lambda t: _hundredths(t["annotations"]) and None}
refused("fractions", "truth", GT, "", FRACTIONS, **fractions)
refused("fractions", "both", GT, "", FRACTIONS, **fractions, dt=_hundredths)
for name, ap, notes, odd in (
    ("fractions", 0.0, ("normalized-boxes",), _hundredths),
    # Cats are unknown, the dog is a cat elsewhere.
    ("shifted-categories", 0.0, ("unknown-categories", "category-id-offset"), _shift(-1)),
    # Of a width and a height below 0, the area is not: false as it was.
    (
        *("negative-size", BASE, ("detections-negative-size",)),
        edit_result(1, bbox=[80, 30, -20, -20]),
    ),
):
    scored("as-is", name, ap, notes, dt=odd, options=("--as-is",))

BOXES: dict[str, tuple[Any, str]] = {
    "missing": (..., r"bbox is missing, expected \[x, y, width, height"),
    "null": (None, "bbox is null"),
    "three": ([10, 10, 20], r"bbox has 3 values, expected 4: \[x, y"),
    "five": ([10, 10, 20, 20, 1], "bbox has 5 values"),
    "empty": ([], "bbox has 0 values"),
    "string": ("10,10,20,20", 'bbox is "10,10,20,20"'),
    "strings": (["10", "10", "20", "20"], r'bbox\[0\] is "10", expected'),
    "nulls": ([None, 10, 20, 20], r"bbox\[0\] is null"),
    "bools": ([True, 10, 20, 20], r"bbox\[0\] is true"),
    "nested": ([[10, 10, 20, 20]], "bbox has 1 value"),
    "object": ({"x": 10, "y": 10, "w": 20, "h": 20}, 'bbox is {"x": 10'),
    "number": (10, "bbox is 10"),
}
for name, (value, says) in BOXES.items():
    wrong_result("no-box", name, 0, says, bbox=value)
    wrong("no-box", f"truth-{name}", "annotations", 0, says, bbox=value)

# Read as x y w h the boxes begin at 60 and end at 140, 40 beyond their image: overlap 400 / 6400.
for name, side, others in (
    ("detections", "detections", ([60, 60, 20, 20], [60, 60, 80, 80])),
    ("truth", "ground-truth", ([60, 60, 80, 80], [60, 60, 20, 20])),
):
    annotations = [annotation(image, image, 1, others[0]) for image in (1, 2)]
    answers = [detection(1, 1, others[1], 0.9), detection(2, 1, others[1], 0.8)]
    notes = (f"{side}-look-xyxy", f"{side}-beyond-image")
    gt = truth() | {"annotations": annotations}
    scored("xyxy-for-xywh", name, 0.0, notes, gt=gt, dt=answers)

scored("empty-detection", "elsewhere", BASE, dt=edit_result(1, bbox=[60, 10, 0, 20]))
# The second detection now lies on the ground truth and still finds nothing.
scored("empty-detection", "inside", BASE, dt=edit_result(1, bbox=[15, 15, 0, 0]))
scored(
    "empty-truth",
    "point",
    CAT / 2,
    ("zero-area-ground-truth",),
    {"cat": CAT, "dog": 0.0},
    gt=edit("annotations", 2, bbox=[50, 50, 0, 0], area=0),
    dt=edit_result(3, bbox=[50, 50, 0, 0]),
)
BEYOND = ("ground-truth-beyond-image", "detections-beyond-image")
for name, ap, notes, boxes in (
    ("not-clipped", BASE, BEYOND, ([80, 80, 40, 40], [80, 80, 40, 40])),
    # Clipped, the detection would be right; as it is, its overlap is 400 / 1600.
    ("detection-only", CAT / 2, BEYOND[1:], ([80, 80, 20, 20], [80, 80, 40, 40])),
    ("negative-corner", BASE, BEYOND, ([-20, -20, 30, 30], [-20, -20, 30, 30])),
):
    area = boxes[0][2] * boxes[0][3]
    dogs = edit("annotations", 2, bbox=boxes[0], area=area), edit_result(3, bbox=boxes[1])
    dog_scores = {"dog": 1.0 if ap == BASE else 0.0}
    scored("beyond-image", name, ap, notes, {**dog_scores}, gt=dogs[0], dt=dogs[1])

scored("defaults", "no-crowd", BASE, ("missing-iscrowd",), gt=edit_all("annotations", iscrowd=...))
scored("defaults", "no-area", BASE, ("missing-area",), gt=edit_all("annotations", area=...))
wrong("defaults", "crowd-2", "annotations", 0, "iscrowd is 2, expected 0 or 1", iscrowd=2)
wrong("defaults", "crowd-string", "annotations", 0, 'iscrowd is "1"', iscrowd="1")
without = edit("annotations", 0, iscrowd=None)
scored("defaults", "crowd-null", BASE, ("missing-iscrowd",), gt=without)
scored("defaults", "area-null", BASE, ("missing-area",), gt=edit("annotations", 0, area=None))
wrong(
    "negative-area", "annotation", "annotations", 0, "area is -1, expected a number >= 0", area=-1
)
scored("ignore", "one", BASE, ("ignore-without-effect",), gt=edit("annotations", 0, ignore=1))
wrong("ignore", "string", "annotations", 0, 'ignore is "no", expected 0 or 1', ignore="no")

scored("whole-float-id", "image", BASE, dt=edit_result(0, image_id=1.0))
scored("whole-float-id", "truth", BASE, gt=edit("images", 0, id=1.0))
scored("whole-float-id", "category", BASE, gt=edit("categories", 0, id=1.0))
scored("whole-float-id", "exponent", BASE, dt=replaced('"image_id": 1', '"image_id": 1E0', results))
wrong_result("wrong-id", "float-beyond-2-53", 0, "image_id is", image_id=1e17)
for name, value in {"bool": True, "fraction": 1.5, "null": None, "list": [1], "object": {}}.items():
    says = re.escape(f"id is {json.dumps(value)}, expected an integer")
    wrong_result("wrong-id", f"image-{name}", 0, f"image_{says}", image_id=value)
    wrong_result("wrong-id", f"category-{name}", 0, f"category_{says}", category_id=value)
    wrong("wrong-id", f"truth-{name}", "images", 0, says, id=value)
wrong_result("wrong-id", "image-missing", 0, "image_id is missing", image_id=...)
wrong("wrong-id", "truth-missing", "images", 0, "id is missing", id=...)
wrong("wrong-id", "truth-image-missing", "annotations", 0, "image_id is missing", image_id=...)
says = r'image_id "1" is not in the ground truth \(ids are numbers\)'
wrong_result("wrong-id", "string-image", 0, says, image_id="1")
says = r'image_id "1" is not in images \(ids are numbers\)'
wrong("wrong-id", "string-truth-image", "annotations", 0, says, image_id="1")
says = 'category_id is "1", expected a number as in the ground truth'
wrong_result("wrong-id", "string-category", 0, says, category_id="1")
strings = every("image_id", str)
scored("wrong-id", "all-images-strings", BASE, dt=strings)
for part in ("images", "categories"):
    says = f"ids of {part} mix numbers and strings; use one type"
    refused("wrong-id", f"mixed-{part}", GT, "", says, gt=edit(part, 0, id="1"))


def _string_truth(value: Truth) -> None:
    for image in value["images"]:
        image["id"] = f"00{image['id']}"
    for entry in value["annotations"]:
        entry["image_id"] = f"00{entry['image_id']}"


padded = every("image_id", lambda image: f"00{image}")
scored("string-ids", "images", BASE, gt=_string_truth, dt=padded)
says = r'"1"\S"2".*"001"\S"002"'
refused("string-ids", "to-the-letter", DT, "", says, gt=_string_truth, dt=strings)
TWICE = 'duplicate key "{}" in one object; keep one of them'
for name, location, key, old, new in (
    ("result", r"\[0\]", "score", '"score": 0.9', '"score": 0.1, "score": 0.9'),
    ("escaped", r"\[0\]", "score", '"score": 0.9', r'"sc\u006fre": 0.1, "score": 0.9'),
):
    data = replaced(old, new, results)
    refused("duplicate-key", name, DT, location, TWICE.format(key), dt=data)
for name, location, key, old, new in (
    ("annotation", r"annotations\[0\]", "bbox", '"bbox"', '"bbox": [0, 0, 1, 1], "bbox"'),
    ("top", "", "annotations", '"annotations"', '"annotations": [], "annotations"'),
):
    data = replaced(old, new, truth)
    refused("duplicate-key", name, GT, location, TWICE.format(key), gt=data)
data = replaced('"score": 0.9', r'"sc\u006fre": 0.9', results)
scored("duplicate-key", "escaped-once", BASE, dt=data)

# --- bytes

BOM = b"\xef\xbb\xbf"
marked = BOM + dumped(truth()), BOM + dumped(results())
scored("encoding", "byte-order-mark", BASE, gt=marked[0], dt=marked[1])
for name in ("utf-16", "utf-16-le", "utf-32"):
    says, data = "is UTF-16 or UTF-32 text, expected UTF-8", json.dumps(truth()).encode(name)
    refused("encoding", name, GT, "", says, gt=data)
latin = json.dumps(truth()).replace("cat", "chät").encode("latin-1")
refused("encoding", "latin-1", GT, r"byte \d+", "0xe4 is not UTF-8; save it as UTF-8", gt=latin)
for name, says, data in (
    (
        "trailing-comma",
        'invalid JSON at "]": trailing comma; write valid JSON',
        dumped(results())[:-1] + b",]",
    ),
    ("trailing-bytes", 'unexpected text after the JSON value: "xyz"', dumped(results()) + b"xyz"),
    ("two-values", "unexpected text", dumped(results()) + dumped(results())),
    ("truncated", "truncated", dumped(results())[:-30]),
    ("truncated-after-record", "truncated|expected", dumped(results())[:-1]),
    ("leading-zero", "JSON|expected", replaced("[10,", "[010,", results)),
    ("plus-sign", "JSON|expected", replaced('"score": 0.9', '"score": +0.9', results)),
    ("bare-point", "JSON|expected", replaced('"score": 0.9', '"score": .9', results)),
    ("hexadecimal", "JSON|expected", replaced("[10,", "[0x10,", results)),
    ("comment", "JSON|expected", replaced("[{", "[/* one */{", results)),
):
    refused("encoding", name, DT, r"line 1, column \d+", says, dt=data)
nul = dumped(results()) + b"\0"
refused("encoding", "trailing-nul", DT, r"line 1, column \d+|", "unexpected text|binary", dt=nul)
data = dumped(truth())[:300]
refused("encoding", "truncated-truth", GT, r"line 1, column \d+", "truncated", gt=data)
says = "looks like Python text, not JSON; write it with json"
refused("encoding", "single-quotes", DT, "", says, dt=str(results()).encode())
data = replaced('"cat"', '"c\tat"', truth).replace(b"\\t", b"\t")
refused(
    "encoding", "control-in-string", GT, r"line \d+, column \d+", "nvalid control char", gt=data
)
data = replaced('"cat"', r'"\ud800"', truth)
says = "has an unpaired surrogate; write it as UTF-8"
refused("encoding", "lone-surrogate", GT, r"categories\[0\]", f"name {says}", gt=data)
half = edit("images", 0, id="\ud800")
refused("encoding", "lone-surrogate-id", GT, r"images\[0\]", f"id {says}", gt=half)
scored(
    "encoding",
    "spread-out",
    BASE,
    gt=json.dumps(truth(), indent=3).encode(),
    dt=json.dumps(results(), indent="\t").replace("\n", "\r\n").encode(),
)
scored(
    "encoding",
    "extra-keys",
    BASE,
    gt=lambda t: t | {"info": {"a": [1, {"b": None}]}, "licenses": []},
    dt=lambda r: [e | {"segmentation": [[1, 2]], "id": i, "area": 3} for i, e in enumerate(r)],
)

paths = "gt.json.gz", "dt.json.gz"
build = files(gzip.compress(dumped(truth())), gzip.compress(dumped(results())), *paths)
gzipped: dict[str, Any] = {"build": build, "gt_path": paths[0], "dt_path": paths[1]}
scored("gzip", "both", BASE, for_peers=False, **gzipped)
scored("gzip", "other-name", BASE, dt=gzip.compress(dumped(results())), for_peers=False)
packed = gzip.compress(dumped(results()))
for name, data in (
    ("truncated", packed[:-12]),
    ("damaged", packed[:-8] + b"\1" * 8),
    ("flipped", packed[:40] + bytes((packed[40] ^ 255,)) + packed[41:]),
    ("header-only", packed[:2]),
):
    refused("gzip", name, DT, "", "damaged gzip: ", dt=data)
BOMB = "expands to more than 16777216 bytes, 200 times its"
refused("gzip", "bomb", DT, "", BOMB, dt=gzip.compress(b"[" + b" " * (40 << 20) + b"]"))
data = gzip.compress(b"[" + b"{}," * (20 << 20) + b"{}]")
refused("gzip", "bomb-of-records", DT, "", BOMB, dt=data)
says = "looks like gzip inside gzip; decompress it once"
refused("gzip", "twice", DT, "", says, dt=gzip.compress(packed))

DEEP = "JSON is nested {} levels deep"
refused("nesting", "brackets", DT, "", DEEP.format(5_000_000), dt=b"[" * 5_000_000)
refused("nesting", "objects", DT, "", DEEP.format(2_000_000), dt=b'{"a":' * 2_000_000)
nested = '"x": ' + "[" * 200_000 + "]" * 200_000
deep = replaced('"score": 0.9', f'"score": 0.9, {nested}', results)
refused("nesting", "in-a-record", DT, "", "nest", dt=deep)
deep = replaced('{"images"', f'{{{nested}, "images"', truth)
says = DEEP.format(200_001) + ", the limit is 100"
refused("nesting", "in-the-truth", GT, "", says, gt=deep)
deep = replaced("[10, 10, 20, 20]", "[" * 300 + "]" * 300, results)
refused("nesting", "bbox", DT, "", "bbox|nest", dt=deep)

# Two detections of equal score: the right one first gives precision 1, the wrong one first 1/2.
TIE: dict[str, Any] = {
    "gt": lambda t: t | {"annotations": [annotation(1, 1, 1, [10, 10, 20, 20])]},
}
RIGHT, WRONG = [10, 10, 20, 20], [60, 60, 20, 20]
for name, ap, pair in (  # the image and box of each
    ("file-order-right-first", 1.0, ((1, RIGHT), (1, WRONG))),
    ("file-order-wrong-first", 0.5, ((1, WRONG), (1, RIGHT))),
    ("image-before-file", 1.0, ((2, WRONG), (1, RIGHT))),
):
    _tied = [detection(image, 1, box, 0.5) for image, box in pair]
    scored("ties", name, ap, ("one-score",), dt=_tied, **TIE)
# dog is all crowd: its detection is absorbed and its AP undefined.
scored(
    "only-ignored",
    "all-crowd",
    CAT,
    (),
    {"cat": CAT, "dog": None},
    gt=edit("annotations", 2, iscrowd=1),
)
scored(
    "only-ignored",
    "nothing-left",
    None,
    (),
    {"cat": None, "dog": None},
    gt=edit_all("annotations", iscrowd=1),
)

scored(
    "case-of-names",
    "two",
    BASE,
    ("names-differ-in-case",),
    {"Dog": CAT, "dog": 1.0},
    gt=edit("categories", 0, name="Dog"),
)
scored(
    "case-of-names", "equal", BASE, ("equal-category-names",), gt=edit("categories", 0, name="dog")
)
wrong("case-of-names", "number", "categories", 0, "name is 5, expected", name=5)

LFS = "looks like a Git LFS pointer; download the file with `git lfs pull`"
MERGE = "looks like a file with unresolved merge conflicts"
CONTENT = {
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", LFS),
    "html": (b"<!DOCTYPE html><html><body>404</body></html>", "looks like an HTML page"),
    "xml": (b"<annotation/>", "looks like XML; for PASCAL VOC annotations use --format voc"),
    "pickle": (pickle.dumps(results()), "looks like a Python pickle; save it as JSON"),
    "zip": (b"PK\x03\x04" + bytes(30), "zip"),
    "numpy": (b"\x93NUMPY\x01\0v\0{'descr': '<f8'}\n", "NumPy"),
    "image": (b"\x89PNG\r\n\x1a\n" + bytes(20), "image"),
    "json-lines": (b"\n".join(dumped(entry) for entry in results()), "looks like JSON Lines"),
    "python": (repr(results()).encode(), "Python"),
    "merge": (b"<<<<<<< HEAD\n" + dumped(results()) + b"\n=======\n[]\n>>>>>>> b\n", MERGE),
    "merge-inside": (
        b"[\n<<<<<<< HEAD\n"
        + dumped(results()[0])
        + b"\n=======\n"
        + dumped(results()[1])
        + b"\n>>>>>>> b\n]\n",
        MERGE,
    ),
    "number": (b"5", "array|list|object"),
    "null": (b"null", "array|list|object"),
    "string": (b'"[]"', "array|list|object"),
    "nul-bytes": (bytes(500), "binary|UTF"),
    "noise": (bytes(range(128, 256)) * 4, "."),
    "words": (b"no results today\n", "."),
    "csv": (b"image_id,category_id,x,y,w,h,score\n1,1,10,10,20,20,0.9\n", "."),
}
for name, (data, looks) in CONTENT.items():
    refused("other-content", f"results-{name}", DT, "", looks, dt=data)
    if name not in {"python", "merge-inside"}:  # lists, as results are: what they hold comes second
        refused("other-content", f"truth-{name}", GT, "", looks, gt=data)
refused("other-content", "truth-python", GT, "", "Python", gt=repr(truth()).encode())
refused(
    "other-content",
    "record-list",
    DT,
    "",
    "has 1 list, such as one per image, expected one of all detections; expected a results",
    dt=[[1, 1, 10, 10, 20, 20, 0.9]],
)
says = "is null, expected an object"
refused("other-content", "record-null", DT, r"\[1\]", says, dt=lambda r: r.insert(1, None))
given = truth() | {"images": [1]}
refused("other-content", "image-number", GT, r"images\[0\]", "is 1, expected an object", gt=given)
for name, key in (("other-object", "results"), ("by-image", "1")):
    says = "is an object without a list of annotations or predictions"
    refused("other-content", name, DT, "", says, dt={key: results()})

says = r"bbox \[0, 0, 1e\+200, 1e\+200\] overflows"
wrong_result("overflow", "detection", 0, says, bbox=[0, 0, 1e200, 1e200])
wrong("overflow", "truth", "annotations", 0, says, bbox=[0, 0, 1e200, 1e200], area=1)
wrong_result("overflow", "corner", 0, "overflow", bbox=[1.7e308, 0, 1.7e308, 1e-300])

# --- what is no file


ABSENT = "no such file or directory"
for which, side in ((DT, "results"), (GT, "truth")):
    for name, says, put, for_peers in (
        ("absent", ABSENT, lambda _: None, True),
        ("fifo", "FIFO", os.mkfifo, False),
        ("socket", "socket", make_socket, True),
        ("folder", "folder", Path.mkdir, True),
        ("link-loop", "symbolic links", lambda path: path.symlink_to(path.name), True),
        ("dangling-link", ABSENT, lambda path: path.symlink_to("gone"), True),
        ("device", "device", lambda path: path.symlink_to("/dev/zero"), False),
        ("null-device", "device", lambda path: path.symlink_to("/dev/null"), True),
    ):
        build = replacing(files(), put, which)
        refused("no-file", f"{side}-{name}", which, "", says, build=build, for_peers=for_peers)
    below = {"gt_path" if which == GT else "dt_path": f"{which}/x"}
    says = f"no folder|{ABSENT}"
    refused("no-file", f"{side}-below-a-file", f"{which}/x", "", says, build=files(), **below)
refused("no-file", "long-name", "x" * 300, "", "too long", dt_path="x" * 300, build=files())
scored("no-file", "stdin", BASE, dt_path="-", stdin=DT, build=files(), for_peers=False)
refused(
    "no-file",
    "stdin-truncated",
    "<stdin>",
    "line 1",
    "truncated",
    dt_path="-",
    stdin=DT,
    build=files(dt=dumped(results())[:-20]),
    for_peers=False,
)
scored(
    "no-file",
    "through-a-link",
    BASE,
    build=lambda folder: (
        files()(folder),
        (folder / DT).rename(folder / "there.json"),
        (folder / DT).symlink_to("there.json"),
    )[0],
)

# --- targets


def target(name: str, says: str, make: Callable[[Path], object] | None, output: str) -> None:
    def build(folder: Path) -> None:
        files()(folder)
        if make:
            make(folder / output)

    refused(
        "target",
        name,
        output.removeprefix("json="),
        "",
        says,
        build=build,
        output=output,
        for_peers=False,
    )


target("no-folder", "no such folder", None, "absent/report.json")
for label, problem, put in (
    ("is-folder", "folder", Path.mkdir),
    ("fifo", "pipe", os.mkfifo),
    ("link-to-input", "is an input", lambda path: path.symlink_to(DT)),
    ("hard-link-to-input", "is an input", lambda path: os.link(path.with_name(DT), path)),
):
    target(label, problem, put, "out.json")
target("the-truth", "is an input", None, GT)
target("the-results", "is an input", None, DT)
if Path("/dev/full").is_char_device():
    target("full-device", "No space left", None, "json=/dev/full")

# --- names

for label, class_name in NAMES.items():
    scored("names", label, BASE, (), {class_name: CAT}, gt=edit("categories", 0, name=class_name))
