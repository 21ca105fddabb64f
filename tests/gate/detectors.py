"""Randomly degraded detections, as VOC devkit files or COCO results."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from tests.coco import results_of, truth_of

Line = list[str]
"""image, score, x1, y1, x2, y2, as text."""

Worsen = Callable[[str, list[Line]], list[Line]]


def copy_voc(source: Path, target: Path, worsen: Worsen) -> Path:
    """Write a copy of a folder of detections with the lines of each class changed."""
    target.mkdir()
    for path in sorted(source.glob("*.txt")):
        name = path.stem.rpartition("_")[2]
        lines = [line.split() for line in path.read_text().splitlines()]
        changed = worsen(name, lines)
        (target / path.name).write_text("".join(f"{' '.join(line)}\n" for line in changed))
    return target


def without_best(class_name: str, count: int) -> Worsen:
    """Drop the highest-scored boxes of one class."""

    def worsen(name: str, lines: list[Line]) -> list[Line]:
        if name != class_name:
            return lines
        ranked = sorted(range(len(lines)), key=lambda row: -float(lines[row][1]))
        dropped = set(ranked[:count])
        return [line for row, line in enumerate(lines) if row not in dropped]

    return worsen


def jittered(share: float, seed: int, only: str | None = None) -> Worsen:
    """Shift every box edge by a normal fraction of the box's size."""

    def worsen(name: str, lines: list[Line]) -> list[Line]:
        if only is not None and name != only:
            return lines
        rng = np.random.default_rng([seed, *name.encode()])
        box = np.array([line[2:] for line in lines], float)
        size = np.tile(box[:, 2:] - box[:, :2], 2)
        moved = box + rng.normal(0, share, box.shape) * size
        moved = np.hstack(
            [np.minimum(moved[:, :2], moved[:, 2:]), np.maximum(moved[:, :2], moved[:, 2:])]
        )
        return [
            [*line[:2], *(f"{side:.2f}" for side in sides)]
            for line, sides in zip(lines, moved, strict=True)
        ]

    return worsen


def lower_scores(share: float, seed: int) -> Worsen:
    """Lower the scores of a fraction of the boxes, each by its own factor."""

    def worsen(name: str, lines: list[Line]) -> list[Line]:
        rng = np.random.default_rng([seed, *name.encode()])
        factor = np.where(rng.random(len(lines)) < share, rng.random(len(lines)), 1.0)
        return [
            [line[0], repr(float(line[1]) * part), *line[2:]]
            for line, part in zip(lines, factor.tolist(), strict=True)
        ]

    return worsen


def images_of(source: Path, class_name: str, count: int) -> set[str]:
    """Return the images of the highest-scored boxes of a class."""
    (path,) = source.glob(f"*_{class_name}.txt")
    lines = [line.split() for line in path.read_text().splitlines()]
    lines.sort(key=lambda line: -float(line[1]))
    return {line[0] for line in lines[:count]}


def coco(
    names: Iterable[str], *, matched: bool = True
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a COCO case with one box per class, matched or not."""
    named = dict(enumerate(names, 1))
    truth = truth_of([(k - 1, k, [10, 10, 100, 100]) for k in named], named, range(len(named)))
    left = 10 if matched else 400
    return truth, results_of((k - 1, k, [left, 10, 100, 100]) for k in named)
