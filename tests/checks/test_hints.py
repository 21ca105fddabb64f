"""Hints on box formats and sizes, and exchanged corners, which no option reads."""

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detap.errors import InputError
from detap.tables.detection import Detections, GroundTruth
from detap.tables.notes import exchanged as described
from tests.cli.conftest import Run
from tests.coco import results_of, saved, truth_of
from tests.formats.helpers import png
from tests.formats.voc_files import write

WIDTH, HEIGHT = 640, 480
NAMES = ("cat", "dog")
ORDERS = {
    "xyxy": (0, 1, 2, 3),
    "y exchanged": (0, 3, 2, 1),
    "x exchanged": (2, 1, 0, 3),
    "both exchanged": (2, 3, 0, 1),
    "x1 x2 y1 y2": (0, 2, 1, 3),
}


def made(seed: int = 1) -> tuple[list[list[float]], list[list[float]]]:
    """Return ground truths and detections: image, class, score, x1, y1, x2, y2.

    Eight images have four objects each. Half of the detections are moved by a sixth.
    """
    random = np.random.default_rng(seed)
    truths: list[list[float]] = []
    detected: list[list[float]] = []
    for image in range(8):
        for k in range(4):
            x, y = (int(v) for v in random.integers(20, (480, 320)))
            w, h = (int(v) for v in random.integers(40, 120, 2))
            truths.append([image, k % 2, 1, x, y, x + w, y + h])
            shift = w // 6 * (k // 2)
            score = float(random.integers(100, 900)) / 1000 + len(detected) / 1e5
            detected.append([image, k % 2, score, x + shift, y, x + w + shift, y + h])
    return truths, detected


TRUTHS, FOUND = made()
Rows = Sequence[Sequence[float]]


def in_format(row: Sequence[float], order: str) -> list[float]:
    box = list(row[3:])
    x1, y1, x2, y2 = box
    if order == "xywh":
        return [x1, y1, x2 - x1, y2 - y1]
    return [box[k] for k in ORDERS[order]]


def coco(folder: Path, gt: str = "xywh", dt: str = "xywh") -> list[str]:
    rows = [(int(row[0]), int(row[1]) + 1, in_format(row, gt)) for row in TRUTHS]
    names, files = dict(enumerate(NAMES, 1)), {k: f"{k}.png" for k in range(8)}
    truth = truth_of(rows, names, files, size=(WIDTH, HEIGHT))
    for annotation, row in zip(truth["annotations"], TRUTHS, strict=True):
        annotation["area"] = (row[5] - row[3]) * (row[6] - row[4])
    results = results_of(
        (int(row[0]), int(row[1]) + 1, in_format(row, dt), row[2]) for row in FOUND
    )
    return [str(path) for path in saved(folder, truth, results)]


def text(folder: Path, gt: str = "xyxy", dt: str = "xyxy") -> list[str]:
    """Write text files, `class [score] box`, in these box formats."""
    files: dict[str, str | bytes] = {
        f"{part}/{k}.txt": "" for part in ("gt", "dt") for k in range(8)
    }
    for part, rows, order in (("gt", TRUTHS, gt), ("dt", FOUND, dt)):
        for row in rows:
            score = [row[2]] if part == "dt" else []
            numbers = " ".join(f"{value:g}" for value in (*score, *in_format(row, order)))
            files[f"{part}/{int(row[0])}.txt"] += f"{NAMES[int(row[1])]} {numbers}\n"  # type: ignore[operator]
    write(folder, files)
    return [str(folder / "gt"), str(folder / "dt")]


def lines(folder: Path, gt: str = "xywh", dt: str = "xywh") -> list[str]:
    for part, rows, order in (("gt", TRUTHS, gt), ("dt", FOUND, dt)):
        records = []
        for k in range(8):
            own = [row for row in rows if row[0] == k]
            objects: dict[str, Any] = {"bbox": [in_format(row, order) for row in own]}
            objects |= {"category": [NAMES[int(row[1])] for row in own]}
            if part == "dt":
                objects["score"] = [row[2] for row in own]
            record = {"file_name": f"{k}.png", "objects": objects}
            records.append(record | {"width": WIDTH, "height": HEIGHT})
        write(folder, {f"{part}.jsonl": "".join(f"{json.dumps(r)}\n" for r in records)})
    return [str(folder / "gt.jsonl"), str(folder / "dt.jsonl")]


def csv_files(folder: Path, gt: str = "xyxy", dt: str = "xyxy") -> list[str]:
    """Write TensorFlow CSV, whose columns have names, with columns in these orders."""
    for part, rows, order in (("gt", TRUTHS, gt), ("dt", FOUND, dt)):
        with (folder / f"{part}.csv").open("w", newline="") as stream:
            scored = ["score"] if part == "dt" else []
            head = ["filename", "width", "height", "class", "xmin", "ymin", "xmax", "ymax", *scored]
            table = csv.writer(stream)
            table.writerow(head)
            for row in rows:
                values = [
                    f"{row[0]}.png",
                    WIDTH,
                    HEIGHT,
                    NAMES[int(row[1])],
                    *in_format(row, order),
                ]
                table.writerow([*values, *([row[2]] if scored else [])])
    return [str(folder / "gt.csv"), str(folder / "dt.csv")]


def coco_ids(folder: Path) -> list[str]:
    """Write COCO files whose results count the classes from 0."""
    given = coco(folder)
    results = json.loads((folder / "dt.json").read_text())
    changed = [{**record, "category_id": record["category_id"] - 1} for record in results]
    write(folder, {"dt.json": json.dumps(changed), "names.txt": "\n".join(NAMES)})
    return given


def yolo_changed(folder: Path, part: str, change: Callable[..., tuple[float, ...]]) -> list[str]:
    """Write YOLO files with images; change the numbers after the class of one side."""
    given = yolo(folder, images=True)[:2]
    for path in (folder / part).iterdir():
        rows = [line.split() for line in path.read_text().splitlines()]
        lines = [" ".join([row[0], *map(repr, change(*map(float, row[1:])))]) for row in rows]
        path.write_text("\n".join(lines))
    return [str(folder / "data.yaml"), given[1]]


def corners_of(x: float, y: float, w: float, h: float, *score: float) -> tuple[float, ...]:
    return (x - w / 2, y - h / 2, x + w / 2, y + h / 2, *score)


def top_left(x: float, y: float, *rest: float) -> tuple[float, ...]:
    return (x - rest[0] / 2, y - rest[1] / 2, *rest)


def percent(*numbers: float) -> tuple[float, ...]:
    return (*numbers[:4], 100 * numbers[4])


def yolo(folder: Path, *, images: bool = False) -> list[str]:
    """Write YOLO labels, and predictions with the confidence last."""
    files: dict[str, str | bytes] = {f"run/{k}.txt": "" for k in range(8)}
    files |= {f"labels/{k}.txt": "" for k in range(8)}
    for part, rows in (("labels", TRUTHS), ("run", FOUND)):
        for row in rows:
            x, y, w, h = in_format(row, "xywh")
            box = [(x + w / 2) / WIDTH, (y + h / 2) / HEIGHT, w / WIDTH, h / HEIGHT]
            score = [row[2]] if part == "run" else []
            line = " ".join(map(repr, [*box, *score]))
            files[f"{part}/{int(row[0])}.txt"] += f"{int(row[1])} {line}\n"  # type: ignore[operator]
    if images:
        files |= {f"images/{k}.png": png(WIDTH, HEIGHT) for k in range(8)}
    files["data.yaml"] = "val: images\nnames: [cat, dog]\n"
    files["sizes.csv"] = "image,width,height\n" + "".join(
        f"{k}.png,{WIDTH},{HEIGHT}\n" for k in range(8)
    )
    write(folder, files)
    return [str(folder / "labels"), str(folder / "run"), "--class-names", str(folder / "data.yaml")]


HINTS: dict[str, tuple[Callable[[Path], list[str]], str, list[str]]] = {
    "corners, COCO": (lambda f: coco(f, "xyxy", "xyxy"), "pass --boxes xyxy", ["--boxes", "xyxy"]),
    "corners, COCO's ground truth": (
        lambda f: coco(f, gt="xyxy"), "pass --gt-boxes xyxy", ["--gt-boxes", "xyxy"]
    ),
    "corners, COCO's results": (
        lambda f: coco(f, dt="xyxy"), "pass --dt-boxes xyxy", ["--dt-boxes", "xyxy"]
    ),
    "corners, JSON Lines": (
        lambda f: lines(f, "xyxy", "xyxy"), r"'xyxy' \(--boxes\)", ["--boxes", "xyxy"]
    ),
    "corners, results in JSON Lines": (
        lambda f: lines(f, dt="xyxy"), r"'xyxy' \(--boxes\)", ["--dt-boxes", "xyxy"]
    ),
    "sides, text": (
        lambda f: text(f, gt="xywh"), r"\(--gt-boxes xywh\)", ["--gt-boxes", "xywh"]
    ),
    "sides, text of detections": (
        lambda f: text(f, dt="xywh"), r"\(--dt-boxes xywh\)", ["--dt-boxes", "xywh"]
    ),
    "sides, COCO as corners": (
        lambda f: [*coco(f, dt="xyxy"), "--dt-boxes", "xyxy", "--gt-boxes", "xyxy"],
        r"for \[x, y, width, height\] use --gt-boxes xywh", ["--gt-boxes", "xywh"],
    ),
    "sizes of images": (yolo, "pass --image-sizes FILE", ["--image-sizes", "sizes.csv"]),
    "one size": (yolo, "or --image-size WxH", ["--image-size", f"{WIDTH}x{HEIGHT}"]),
    "corners, YOLO's predictions": (
        lambda f: yolo_changed(f, "run", corners_of),
        "for YOLO files pass --dt-boxes xyxy", ["--dt-boxes", "xyxy"],
    ),
    "top left, YOLO's predictions": (
        lambda f: yolo_changed(f, "run", top_left),
        "for YOLO files pass --dt-boxes xywh", ["--dt-boxes", "xywh"],
    ),
    "percent, YOLO's predictions": (
        lambda f: yolo_changed(f, "run", percent),
        "for YOLO text files use --dt-format yolo", ["--dt-format", "yolo"],
    ),
    "ids of COCO's results from 0": (
        coco_ids, "pass --dt-class-names FILE", ["--dt-class-names", "names.txt"]
    ),
    "YOLO read as VOC": (
        lambda f: [*yolo(f, images=True)[:1], text(f)[1], *yolo(f)[2:], "--gt-format", "voc"],
        "use --gt-format yolo", ["--gt-format", "yolo"],
    ),
    "YOLO detections read as VOC": (
        lambda f: [text(f)[0], yolo(f)[1], "--dt-class-names", yolo(f)[3], "--dt-format", "voc"],
        "use --dt-format yolo", ["--dt-format", "yolo", "--image-size", f"{WIDTH}x{HEIGHT}"],
    ),
}  # fmt: skip
"""The arguments, the hint, and the options that it names: `test_hints_of_options` follows it."""


# --- exchanged corners: no option reads them


def _arrays(boxes: Rows, **more: Any) -> dict[str, Any]:
    return {
        "image": [int(row[0]) for row in boxes],
        "label": [NAMES[int(row[1])] for row in boxes],
        **more,
    }


def exchanged(order: str, names: str = "x1 y1 x2 y2") -> str:
    """Return the description of an order in the message."""
    x1, y1, x2, y2 = names.split()
    count = {"y exchanged": (0, 32), "x exchanged": (32, 0), "both exchanged": (32, 32)}
    if order == "x1 x2 y1 y2":
        return f"they look like {x1}, {x2}, {y1}, {y2} or {y1}, {y2}, {x1}, {x2} (in all 32)"
    x, y = count[order]
    pairs = ", ".join(f"{a} and {b}" for a, b, n in ((x1, x2, x), (y1, y2, y)) if n)
    return f"{pairs} look exchanged ({x1} > {x2} in {x} of 32, {y1} > {y2} in {y} of 32)"


EXCHANGED = [order for order in ORDERS if order != "xyxy"]


@pytest.mark.parametrize("order", EXCHANGED)
@pytest.mark.parametrize("side", ["gt", "dt"])
@pytest.mark.parametrize("make", [text, csv_files, coco, lines])
def test_exchanged_corners(
    make: Callable[..., list[str]],
    side: str,
    order: str,
    tmp_path: Path,
    command: Run,
) -> None:
    """The error names what is exchanged, and no option that leads to another number."""
    given = make(tmp_path, **{side: order})
    if make in (coco, lines):
        given += [f"--{side}-boxes", "xyxy"]
    messages = command("eval", *given, "--protocol", "coco").refused()
    names = "xmin ymin xmax ymax" if make is csv_files else "x1 y1 x2 y2"
    looks = exchanged(order, names)
    assert re.search(
        rf"\d+ of 32 boxes have negative width or height: {re.escape(looks)}; ", messages
    )
    if make is not text or order != "both exchanged":
        assert "x, y, width and height" not in messages
    assert "-boxes" not in messages


@pytest.mark.parametrize("order", EXCHANGED)
@pytest.mark.parametrize("make", [coco, lines])
@pytest.mark.parametrize("sides", [("gt",), ("dt",), ("gt", "dt")])
def test_exchanged_corners_read_as_sides(
    make: Callable[..., list[str]],
    sides: tuple[str, ...],
    order: str,
    tmp_path: Path,
    command: Run,
) -> None:
    """None of the numbers is negative then."""
    given = make(tmp_path, **dict.fromkeys(sides, order))
    for role in ("gt", "dt"):
        given += [f"--{role}-boxes", "xywh"]
    messages = command("eval", *given, "--protocol", "coco").refused()
    for side in sides:
        looks = exchanged(order).replace("32", r"\d+") if side == "dt" else exchanged(order)
        pattern = re.escape(looks).replace(re.escape(r"\d+"), r"\d+")
        assert re.search(
            rf"{side}\.jsonl?: boxes look like corners taken as \[x, y, width, height\]: {pattern}",
            messages,
        )
    assert "-boxes" not in messages


@pytest.mark.parametrize("order", EXCHANGED)
def test_exchanged_corners_of_arrays(order: str) -> None:
    boxes = [in_format(row, order) for row in TRUTHS]
    with pytest.raises(InputError, match=re.escape(f"height ({exchanged(order)}); or pass")):
        GroundTruth.from_arrays(**_arrays(TRUTHS), boxes=boxes)
    boxes = [in_format(row, order) for row in FOUND]
    with pytest.raises(InputError, match=re.escape(f"height ({exchanged(order)}); or pass")):
        Detections.from_arrays(**_arrays(FOUND), boxes=boxes, score=[row[2] for row in FOUND])


@pytest.mark.parametrize("kind", ["lines of text", "small objects", "people"])
def test_sides_are_not_taken_for_corners(kind: str) -> None:
    """Position and size do not rise together, even where x < width or y > height in all rows."""
    random = np.random.default_rng(3)
    x, y = random.uniform(200, 500, (2, 40))
    w, h = random.uniform(5, 50, (2, 40))
    if kind == "lines of text":  # as wide as the page
        x, w = np.full(40, 60.0), np.full(40, 500.0)
    if kind == "people":
        y, h = random.uniform(100, 130, 40), random.uniform(200, 400, 40)
    looks, same = described(np.column_stack((x, y, w, h)))
    assert looks == ""
    assert same.shape == (40, 4)
