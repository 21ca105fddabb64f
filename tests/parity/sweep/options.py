"""No combination of options ends in an internal error (status 3).

No reference is needed: a run must end with 0 or 1, or reject the options with a message (2).
"""

import contextlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from detap.cli import main
from detap.formats.catalogue import FORMATS
from detap.protocols import PRESETS, Protocol
from detap.protocols.fields import Choice, YesNo, protocol_fields
from tests.cli.conftest import CLASSES, FOUND, write_voc

Random = np.random.Generator

VALUES = {
    "--iou": ("0.5", "0.5:0.95:0.05", "0.3,1"),
    "--max-iou-threshold": ("1", "0.6"),
    "--sigmas": ("coco", ".1,.2"),
    "--dilation-ratio": ("0.5",),
    "--ignore-flags": ("none", "crowd", "crowd,ignore", "difficult", "group_of", "no_keypoints"),
    "--crowd-flags": ("none", "crowd", "ignore"),
    "--ignore-where": ("none", "height<20", "not (area<400 or x1>30)"),
    "--drop-where": ("none", "height<20 or score>0.7"),
    "--group-of-weight": ("none", "0", "1"),
    "--area-ranges": ("coco", "none", "proposals", "kitti", "tiny=0:100", "tiny=0:2%"),
    "--max-dets": ("none", "1", "1,10,100", "300"),
    "--precision-eps": ("0", "1e-9"),
    "--class-iou": ("none", "cat=0.5", "Car=0.7"),
    "--neighbor-classes": ("none", "cat=dog", "*=dog"),
    "--min-height": ("none", "25", "1,2,3", "1,2,3,4"),
    "--max-occlusion": ("none", "1"),
    "--max-truncation": ("none", "0.5"),
    "--min-score": ("none", "0.5", "5"),
    "--score-decimals": ("none", "1"),
    "--box-decimals": ("none", "0"),
    "--metrics": ("none", "MR-2", "CPM,macro-F1", "AP@thresholds=10"),
    "--mr-floor": ("0", "0.1"),
    "--froc-points": ("1/8,1", "0.5"),
}
"""Values of field options without fixed choices."""

ASKED = (
    ["eval"],
    ["eval", "--errors"],
    ["eval", "--errors", "tidecv"],
    ["eval", "--confusion"],
    ["eval", "--analysis"],
    ["eval", "--tie-range"],
    ["eval", "--calibration"],
    ["eval", "--slices", "slices.json"],
    ["eval", "--score-threshold", "0.5"],
    ["eval", "--cross-check"],
    ["eval", "--classes", "cat"],
    ["eval", "--images", "1"],
    ["eval", "--curves", "curves.csv"],
    ["eval", "--threads", "2"],
    ["eval", "--output-format", "json"],
    ["eval", "--output-format", "html"],
    ["eval", "--fail-under", "0.5"],
    ["eval", "--baseline-detections", "{dt}", "--max-drop", "0", "--confidence", "0.9"],
    ["eval", "--baseline-detections", "{dt}", "--max-drop", "0"],
    ["check"],
    ["report"],
    ["show", "1"],
    ["compare", "{dt}"],
    ["explain", "--from", "voc2012", "--to", "{protocol}"],
    ["explain", "--value", "0.5123"],
)
"""Further options."""


def check(random: Random, folder: Path) -> None:
    """Run a command with a random preset, up to two changed fields and a reading option."""
    command = line(random, folder)
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        status = main(command)
    out.seek(0)
    assert status in (0, 1, 2), f"status {status} of detap {' '.join(command)}: {out.read()}"


def line(random: Random, folder: Path) -> list[str]:
    """Return the arguments of a random command; its inputs are written to the folder."""
    inputs, reading = _inputs(random, folder)
    protocol = str(random.choice(list(PRESETS)))
    asked = ASKED[random.integers(len(ASKED))]
    words = [word.format(dt=inputs[3], protocol=protocol) for word in asked]
    if words[0] == "compare":
        inputs = [*inputs[:2], *inputs[3:]]
    elif words[0] == "check" and random.random() < 0.2:
        inputs = inputs[2:]
    if words[0] != "explain":
        words += ["--protocol", protocol]
    for axis in _some(random, protocol_fields(Protocol), 2):
        words += _option(random, axis)
    return [words[0], *words[1:], *inputs, *reading]


def _some(random: Random, entries: Sequence[Any], most: int) -> list[Any]:
    chosen = random.choice(len(entries), random.integers(0, most + 1), replace=False)
    return [entries[index] for index in chosen.tolist()]


def _option(random: Random, axis: Any) -> list[str]:
    """Return the option of a field with a random value."""
    if isinstance(axis.kind, YesNo):
        return [str(random.choice([axis.option, f"--no-{axis.option[2:]}"]))]
    values = VALUES.get(axis.option)
    if values is None:
        assert isinstance(axis.kind, Choice), f"VALUES has no {axis.option}"
        values = axis.kind.choices
    return [axis.option, str(random.choice(values))]


def _inputs(random: Random, folder: Path) -> tuple[list[str], list[str]]:
    """Write inputs of some format; return the options that name them, and options of reading."""
    name = str(random.choice(["coco", "coco", "coco", "voc", "yolo"]))
    if not (folder / "slices.json").exists():
        (folder / "slices.json").write_text('{"day": [1], "night": [2]}')
        (folder / "names.txt").write_text("\n".join(CLASSES.values()))
        (folder / "sizes.csv").write_text("image,width,height\n1,640,480\n2,640,480\n")
        _write_coco(folder)
        write_voc(folder)
        _write_text(folder)
    if name == "coco":
        paths = ["gt.json", "dt.json"]
    elif name == "voc":
        paths = ["Annotations", str(random.choice(["results", "per-image"]))]
    else:
        paths = ["labels", "predictions"]
    reading = ["--format", name] if random.random() < 0.8 else []
    options = [entry for entry in FORMATS[name].options if entry.name != "split"]
    for entry in _some(random, options, 1):
        values = entry.choices or {
            "class_names": ("names.txt",),
            "dt_class_names": ("names.txt",),
            "image_sizes": ("sizes.csv",),
            "image_size": ("640x480",),
            "image_set": ("names.txt",),
        }.get(entry.name, ("x",))
        reading += [entry.flag, str(random.choice(values))]
    if name == "yolo":
        reading += ["--image-sizes", "sizes.csv"] if "--image-sizes" not in reading else []
    if random.random() < 0.2:
        reading.append("--as-is")
    return ["--gt", paths[0], "--dt", paths[1]], reading


def _write_coco(folder: Path) -> None:
    """Write a COCO case with masks, keypoints, crowds, and LVIS's lists and frequencies."""
    random = np.random.default_rng(1)
    truth: dict[str, Any] = {
        "images": [
            {
                "id": image,
                "width": 100,
                "height": 80,
                "neg_category_ids": [1] if image == 2 else [],
                "not_exhaustive_category_ids": [2] if image == 1 else [],
            }
            for image in (1, 2, 3)
        ],
        "categories": [
            {"id": 1, "name": "cat", "frequency": "f"},
            {"id": 2, "name": "dog", "frequency": "r"},
            {"id": 3, "name": "Car"},
        ],
        "annotations": [],
    }
    results = []
    for number in range(9):
        x, y, w, h = (int(value) for value in random.integers([0, 0, 5, 5], [50, 40, 45, 40]))
        row = {
            "image_id": int(random.integers(1, 3)),
            "category_id": int(random.integers(1, 4)),
            **_shapes(x, y, w, h),
        }
        flags = {"iscrowd": int(number == 3), "ignore": int(number == 4), "area": w * h}
        truth["annotations"].append({"id": number, **row, **flags, "num_keypoints": 17})
        for label in (row["category_id"], int(random.integers(1, 4))):
            shapes = _shapes(x + int(random.integers(0, 3)), y, w, h)
            score = int(random.integers(1, 10)) / 10
            results.append({**row, **shapes, "category_id": label, "score": score})
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps(results))


def _shapes(x: int, y: int, w: int, h: int) -> dict[str, Any]:
    steps = [step / 16 for step in range(17)]
    return {
        "bbox": [x, y, w, h],
        "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]],
        "keypoints": [value for step in steps for value in (x + w * step, y + h * step, 2)],
    }


def _write_text(folder: Path) -> None:
    """Write the detections of VOC's case with a file per image, and as YOLO's."""
    for name in ("per-image", "labels", "predictions"):
        (folder / name).mkdir()
    for image in (1, 2):
        rows = [(label, score, *box) for where, label, box, score in FOUND if where == image]
        corners = [f"{k - 1} {s} {x} {y} {x + w} {y + h}" for k, s, x, y, w, h in rows]
        (folder / "per-image" / f"{image}.txt").write_text("\n".join(corners))
        fractions = [
            f"{k - 1} {(x + w / 2) / 640} {(y + h / 2) / 480} {w / 640} {h / 480}"
            for k, _, x, y, w, h in rows
        ]
        (folder / "labels" / f"{image}.txt").write_text("\n".join(sorted(set(fractions))))
        scored = [f"{line} {row[1]}" for line, row in zip(fractions, rows, strict=True)]
        (folder / "predictions" / f"{image}.txt").write_text("\n".join(scored))
