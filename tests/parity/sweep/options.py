"""No combination of options ends in an internal error (status 3).

No reference is needed: a run must end with 0 or 1, or reject the options with a message (2).
"""

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from detap import convert
from detap.cli import main
from detap.formats.catalogue import FORMATS
from detap.protocols import PRESETS, Protocol
from detap.protocols.fields import Choice, YesNo, protocol_fields
from tests.coco import read, saved
from tests.laws.test_class_map import NAMES, scene

Random = np.random.Generator

VALUES = {
    "--iou": ("0.5", "0.5:0.95:0.05", "0.3,1"),
    "--max-iou-threshold": ("1", "0.6"),
    "--sigmas": ("coco", ".1,.2"),
    "--keypoint-keys": ("keypoints", "keypoints,foot_kpts"),
    "--result-score-key": ("score", "other"),
    "--drop-in-regions": ("none", "chair=0.5"),
    "--excluded-classes": ("none", "chair"),
    "--dilation-ratio": ("0.5",),
    "--ignore-flags": ("none", "crowd", "crowd,ignore", "difficult", "group_of", "no_keypoints"),
    "--crowd-flags": ("none", "crowd", "ignore"),
    "--ignore-where": ("none", "height<20", "not (area<400 or x1>30)"),
    "--drop-where": ("none", "height<20 or score>0.7"),
    "--group-of-weight": ("none", "0", "1"),
    "--area-ranges": ("coco", "none", "proposals", "kitti", "tiny=0:100", "tiny=0:2%"),
    "--max-dets": ("none", "1", "1,10,100", "300"),
    "--precision-eps": ("0", "1e-9"),
    "--class-iou": ("none", "chair=0.5", "Car=0.7"),
    "--neighbor-classes": ("none", "Car=Van", "*=Van"),
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

SIZES = "yolo/sizes.csv"
INPUTS = {
    "coco": ("gt.json", "dt.json"),
    "voc": ("voc", "voc/detections"),
    "yolo": ("yolo/data.yaml", "yolo/predictions"),
}
READING = {
    **dict.fromkeys(("class_names", "dt_class_names", "image_set"), ("names.txt",)),
    "image_sizes": (SIZES,),
    "image_size": ("640x480",),
}
"""Values of reading options without fixed choices."""

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
    ["eval", "--classes", "Car"],
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
        (folder / "names.txt").write_text("\n".join(NAMES))
        tables = read(saved(folder, *scene(1)), as_is=True)
        for target in ("voc", "yolo"):
            convert(folder / target, *tables, to=target)
    gt, dt = INPUTS[name]
    reading = ["--format", name] if random.random() < 0.8 else []
    options = [entry for entry in FORMATS[name].options if entry.name != "split"]
    for entry in _some(random, options, 1):
        values = entry.choices or READING.get(entry.name, ("x",))
        reading += [entry.flag, str(random.choice(values))]
    if name == "yolo":
        reading += ["--image-sizes", SIZES] if "--image-sizes" not in reading else []
    if random.random() < 0.2:
        reading.append("--as-is")
    return ["--gt", gt, "--dt", dt], reading
