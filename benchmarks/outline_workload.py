"""Mask detections and people with keypoints for the COCO workloads."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.coco_workload import (
    Floats,
    Scene,
    Whole,
    detection_blocks,
    instances_text,
    joined,
    outlines,
    polygons,
)
from benchmarks.shapes import SEED, CocoShape

RAGGED = 0.3
"""The share of a mask's crossings that lie a pixel off the outline that they follow."""

JOINTS = np.array(
    [
        *((0.5, 0.08), (0.54, 0.06), (0.46, 0.06), (0.59, 0.08), (0.41, 0.08)),  # face
        *((0.68, 0.22), (0.32, 0.22), (0.78, 0.37), (0.22, 0.37), (0.8, 0.5), (0.2, 0.5)),  # arms
        *((0.61, 0.53), (0.39, 0.53), (0.62, 0.74), (0.38, 0.74), (0.63, 0.94), (0.37, 0.94)),
    ]
)
"""Positions of a person's 17 keypoints within the box, in COCO's order."""

LOOSENESS = np.array([26, 25, 25, 35, 35, 79, 79, 72, 72, 62, 62, 107, 107, 87, 87, 89, 89]) / 1000
"""By how much annotators differ at each, as COCO's metric has it."""

UNLABELLED_SHARE = 0.42  # of the people: they are too small or too hidden
NAMES = (
    *("nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder"),
    *("left_elbow", "right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip"),
    *("left_knee", "right_knee", "left_ankle", "right_ankle"),
)


# --- masks


def mask_text(shape: CocoShape, layout: Scene, seed: int = SEED) -> Iterator[str]:
    """Yield a results file of masks as compressed RLE, with or without the detector's boxes.

    A mask has the polygon of the ground truth that its box comes from, shifted with the box;
    background masks have a new polygon.
    """
    random = np.random.default_rng([seed, shape.detections, 5])
    of_truth = [points for points, _, _ in outlines(shape, layout, seed)]

    def records() -> Iterator[str]:
        for image, label, box, score, source in detection_blocks(shape, layout, seed):
            own = polygons(random, box)
            masks = []
            for row, (points, _) in enumerate(own):
                outline, start = points, box[row]
                if source[row] >= 0:
                    outline, start = of_truth[source[row]], layout.box[source[row]]
                moved = (np.reshape(outline, (-1, 2)) - start[:2]) / start[2:]
                moved = moved * box[row, 2:] + box[row, :2]
                masks.append(run_lengths_of(random, moved, layout.frame[image[row]]))
            texts = run_strings(masks)
            yield from _mask_records(shape, layout, (image, label, box, score), texts)

    yield "["
    yield from joined(records())
    yield "]"


def _mask_records(
    shape: CocoShape,
    layout: Scene,
    columns: tuple[Whole, Whole, Floats, Floats],
    texts: list[str],
) -> Iterator[str]:
    image, label, box, score = columns
    rows = zip(
        layout.image_ids[image].tolist(),
        layout.class_ids[label].tolist(),
        box.tolist(),
        score.tolist(),
        layout.frame[image].tolist(),
        texts,
        strict=True,
    )
    for i, k, b, s, (wide, high), text in rows:
        boxed = f'"bbox": {b}, ' if shape.boxed else ""
        counts = text.replace("\\", "\\\\")
        yield (
            f'{{"image_id": {i}, "category_id": {k}, {boxed}"score": {s}, '
            f'"segmentation": {{"size": [{high}, {wide}], "counts": "{counts}"}}}}'
        )


def run_lengths_of(random: np.random.Generator, points: Floats, frame: Whole) -> Whole:
    """Return the RLE of a filled polygon with ragged edges.

    Column by column, as in COCO: pixels outside, then inside, and so on.
    """
    width, height = (int(side) for side in frame)
    left = max(int(np.ceil(points[:, 0].min() - 0.5)), 0)
    right = min(int(np.ceil(points[:, 0].max() - 0.5)), width)
    columns = np.arange(left, max(right, left + 1))
    after = np.roll(points, -1, axis=0)
    middle = columns + 0.5
    crossed = (points[:, 0, None] <= middle) != (after[:, 0, None] <= middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (after[:, 1] - points[:, 1]) / (after[:, 0] - points[:, 0])
        rows = points[:, 1, None] + slope[:, None] * (middle - points[:, 0, None])
    rows = np.sort(np.where(crossed, rows, np.inf), axis=0).T
    rows = rows[:, : max(int(crossed.sum(axis=0).max()), 2)]
    wobble = (random.random(rows.shape) < RAGGED) * random.choice([-1, 1], rows.shape)
    at = np.clip(np.ceil(rows - 0.5) + wobble, 0, height)
    at[~np.isfinite(rows)] = -1
    ends = (columns[:, None] * height + np.maximum.accumulate(at, axis=1))[at >= 0]
    counts = np.diff(np.concatenate(([0], ends, [width * height]))).astype(np.int64)
    return without_empty(counts)


def without_empty(counts: Whole) -> Whole:
    """Return the same runs without empty ones, except the first if the mask starts at pixel 0."""
    inside = np.arange(len(counts)) % 2 == 1
    kept = counts > 0
    counts, inside = counts[kept], inside[kept]
    first = np.flatnonzero(np.concatenate(([True], inside[1:] != inside[:-1])))
    lengths = np.add.reduceat(counts, first)
    return np.concatenate(([0], lengths)) if inside[0] else lengths


def run_strings(masks: list[Whole]) -> list[str]:
    """Return COCO's compressed RLE string of each mask.

    From the fourth run on, a run is stored as the difference to the second last; a number has
    digits of five bits, lowest first, and a sixth bit if more follow.
    """
    lengths = np.array([len(counts) for counts in masks])
    first = np.cumsum(lengths) - lengths
    runs = np.concatenate(masks)
    index = np.arange(len(runs)) - np.repeat(first, lengths)
    value = np.where(index > 2, runs - np.concatenate(([0, 0], runs[:-2])), runs)
    digits = np.ones(len(runs), np.int64)
    for more in range(1, 7):
        digits += (value < -(1 << (5 * more - 1))) | (value >= 1 << (5 * more - 1))
    number = np.arange(7)
    digit = (value[:, None] >> (5 * number)) & 31
    digit |= 32 * (number < digits[:, None] - 1)
    text = (digit + 48)[number < digits[:, None]].astype(np.uint8).tobytes().decode("ascii")
    ends = np.cumsum(np.add.reduceat(digits, first)).tolist()
    return [text[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]


# --- keypoints


def people_text(shape: CocoShape, layout: Scene, seed: int = SEED) -> Iterator[str]:
    """Yield a file of people with polygons and keypoints in chunks."""
    random = np.random.default_rng([seed, shape.ground_truths, 6])
    points, seen = people(random, layout)

    def extra(row: int) -> str:
        values = np.column_stack((np.where(seen[row, :, None] > 0, points[row], 0), seen[row]))
        count = int((seen[row] > 0).sum())
        return f'"num_keypoints": {count}, "keypoints": {values.ravel().astype(int).tolist()}, '

    category = (
        '{"supercategory": "person", "id": 1, "name": "person", "keypoints": ["'
        + '", "'.join(NAMES)
        + '"], "skeleton": [[16, 14], [14, 12], [17, 15], [15, 13], [12, 13]]}'
    )
    yield from instances_text(shape, layout, seed, extra, [category])


def people(random: np.random.Generator, layout: Scene) -> tuple[Floats, NDArray[np.int64]]:
    """Return the keypoints of each ground truth, (G, 17, 2), and their visibility."""
    count = len(layout.image)
    points = _joints(random, layout.box, np.full(count, 0.06))
    seen = random.choice(3, (count, len(JOINTS)), p=[0.3, 0.1, 0.6])
    seen[layout.crowd | (random.random(count) < UNLABELLED_SHARE)] = 0
    return np.round(points), seen


def _joints(random: np.random.Generator, box: Floats, spread: Floats) -> Floats:
    """Return keypoints within boxes, each shifted by a fraction of the box size."""
    moved = JOINTS + random.normal(0, 1, (len(box), *JOINTS.shape)) * spread[:, None, None]
    return np.asarray(moved * box[:, None, 2:] + box[:, None, :2])


def pose_text(shape: CocoShape, layout: Scene, seed: int = SEED) -> Iterator[str]:
    """Yield a results file of keypoints, near those of the ground truth or in the background.

    It has the detector's boxes too, as one peer requires them.
    """
    random = np.random.default_rng([seed, shape.detections, 7])
    of_truth, _ = people(np.random.default_rng([seed, shape.ground_truths, 6]), layout)

    def records() -> Iterator[str]:
        for image, label, box, score, source in detection_blocks(shape, layout, seed):
            points = _joints(random, box, np.full(len(box), 0.1))
            near = random.choice([0.4, 1.0, 2.5], len(box), p=[0.5, 0.3, 0.2])
            size = np.sqrt(box[:, 2] * box[:, 3]) * near
            noise = random.normal(0, 1, points.shape) * (LOOSENESS * size[:, None])[:, :, None]
            points = np.where((source >= 0)[:, None, None], of_truth[source] + noise, points)
            values = np.concatenate((np.round(points, 3), np.ones((*points.shape[:2], 1))), axis=2)
            rows = zip(
                layout.image_ids[image].tolist(),
                layout.class_ids[label].tolist(),
                box.tolist(),
                values.reshape(len(values), -1).tolist(),
                score.tolist(),
                strict=True,
            )
            for i, k, b, v, s in rows:
                yield (
                    f'{{"image_id": {i}, "category_id": {k}, "bbox": {b}, "keypoints": {v}, '
                    f'"score": {s}}}'
                )

    yield "["
    yield from joined(records())
    yield "]"
