"""Text of COCO workloads: an instances file with polygons and crowd regions, and results."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.shapes import SEED, CocoShape

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

BLOCK = 2_000  # images or annotations held at once

CROWD_SHARE = 0.012
EMPTY_SHARE = 0.01
PALETTE = np.array([0.55, 0.25, 0.13, 0.07])  # shares of an image's four kinds of object
FRAMES = np.array([(640, 480), (480, 640), (640, 427), (427, 640), (640, 426), (500, 375)])
FRAME_SHARES = np.array([0.36, 0.14, 0.24, 0.08, 0.1, 0.08])


@dataclass(frozen=True, slots=True)
class Scene:
    """All ground truths and images of a workload as columns, in file order."""

    image_ids: Whole
    frame: Whole  # (I, 2) width, height
    class_ids: Whole
    class_shares: Floats
    image: Whole  # (G,) row of image_ids
    label: Whole  # (G,) row of class_ids
    box: Floats  # (G, 4) x, y, w, h
    crowd: NDArray[np.bool_]


Columns = tuple[Whole, Whole, Floats, Floats, Whole]
"""Of detections: image, label, x y w h, score, and which ground truth they stem from, or -1."""


def scene(shape: CocoShape, seed: int = SEED) -> Scene:
    """Generate the ground truths of a workload without their polygons."""
    random = np.random.default_rng([seed, shape.images, shape.ground_truths, shape.classes])
    image_ids = random.choice(max(581_929, 12 * shape.images), shape.images, replace=False) + 1
    frame = FRAMES[random.choice(len(FRAMES), shape.images, p=FRAME_SHARES)]
    shares = class_shares(shape.classes)

    image = np.repeat(np.arange(shape.images), boxes_per_image(shape, random))
    palette = random.choice(shape.classes, (shape.images, len(PALETTE)), p=shares)
    label = palette[image, random.choice(len(PALETTE), len(image), p=PALETTE)]
    crowd = random.random(len(image)) < CROWD_SHARE
    box = random_boxes(random, frame[image], np.where(crowd, 2.5, 1.0))
    # COCO's own file stands class by class, with the crowd regions at its end.
    order = np.lexsort((random.random(len(image)), random.permutation(shape.classes)[label], crowd))
    return Scene(
        image_ids,
        frame,
        class_ids(shape.classes),
        shares,
        image[order],
        label[order],
        box[order],
        crowd[order],
    )


def class_shares(classes: int) -> Floats:
    """Return the frequency of each class: one has 30 %, the others decrease, in random order."""
    tail = np.exp(-np.linspace(0.0, 4.2, classes - 1))
    random = np.random.default_rng([classes])
    shares = np.concatenate(([0.3], 0.7 * random.permutation(tail) / tail.sum()))
    return np.asarray(shares / shares.sum(), np.float64)


def class_ids(classes: int) -> Whole:
    """Return ascending category ids with a gap after every eight, as in COCO."""
    rows = np.arange(classes)
    return rows + rows // 8 + 1


def boxes_per_image(shape: CocoShape, random: np.random.Generator) -> Whole:
    """Return the number of ground truths per image: mostly few, sometimes many or none."""
    filled = random.random(shape.images) >= EMPTY_SHARE
    filled[0] = True
    least = filled.astype(np.int64)
    if least.sum() > shape.ground_truths:
        least[:] = 0
    weight = random.gamma(0.8, size=shape.images) * filled + 1e-12
    more = random.multinomial(shape.ground_truths - least.sum(), weight / weight.sum())
    return np.asarray(least + more)


def random_boxes(random: np.random.Generator, frame: Whole, enlarge: Floats) -> Floats:
    """Return boxes as xywh within the images, sized as COCO's objects, to 2 decimals."""
    n = len(frame)
    side = np.exp(random.normal(4.06, 1.08, n)) * enlarge
    aspect = np.exp(random.normal(-0.13, 0.6, n) / 2)
    largest = frame * random.uniform(0.7, 0.99, (n, 2))  # few boxes fill their image quite
    width = np.clip(side * aspect, 2.0, largest[:, 0])
    height = np.clip(side / aspect, 2.0, largest[:, 1])
    x = random.random(n) * (frame[:, 0] - width)
    y = random.random(n) * (frame[:, 1] - height)
    return np.asarray(np.round(np.column_stack((x, y, width, height)), 2), np.float64)


def ground_truth_text(shape: CocoShape, layout: Scene, seed: int = SEED) -> Iterator[str]:
    """Yield an instances file in chunks."""
    categories = (
        f'{{"supercategory": "group {row // 8}", "id": {name}, "name": "class {name}"}}'
        for row, name in enumerate(layout.class_ids)
    )
    yield from instances_text(shape, layout, seed, lambda row: "", list(categories))


def instances_text(
    shape: CocoShape,
    layout: Scene,
    seed: int,
    more: Callable[[int], str],
    categories: Sequence[str],
) -> Iterator[str]:
    """Yield an instances file in chunks; `more` returns further keys of an annotation."""
    yield '{"info": {"description": "detap benchmark workload ' + shape.truth_name + '"}, '
    yield '"licenses": [{"url": "http://example.org/licence/", "id": 1, "name": "None"}], '
    yield '"images": ['
    yield from joined(
        _image_record(*row) for row in zip(layout.image_ids, layout.frame, strict=True)
    )
    yield '], "annotations": ['
    yield from joined(_annotation_records(shape, layout, seed, more))
    yield '], "categories": ['
    yield from joined(categories)
    yield "]}"


def joined(records: Iterable[str]) -> Iterator[str]:
    """Yield records with commas between, a block at a time."""
    block: list[str] = []
    comma = ""
    for record in records:
        block.append(record)
        if len(block) == BLOCK:
            yield comma + ", ".join(block)
            block, comma = [], ", "
    if block:
        yield comma + ", ".join(block)


def _image_record(name: int, frame: Whole) -> str:
    return (
        f'{{"license": 1, "file_name": "{name:012d}.jpg", '
        f'"coco_url": "http://images.example.org/val2017/{name:012d}.jpg", '
        f'"height": {frame[1]}, "width": {frame[0]}, "date_captured": "2013-11-14 17:02:52", '
        f'"flickr_url": "http://farm7.example.org/6116/{name * 7919:010d}_b2d4e3a1f2_z.jpg", '
        f'"id": {name}}}'
    )


def _annotation_records(
    shape: CocoShape, layout: Scene, seed: int, more: Callable[[int], str]
) -> Iterator[str]:
    names = _annotation_random(shape, seed).permutation(3 * len(layout.image)) + 1
    for row, (points, inside, counts) in enumerate(outlines(shape, layout, seed)):
        image, label = layout.image[row], layout.label[row]
        outline, area, name = f"[{points}]", inside, int(names[row])
        if layout.crowd[row]:
            size = f"[{layout.frame[image, 1]}, {layout.frame[image, 0]}]"
            outline = f'{{"counts": {counts}, "size": {size}}}'
            name = 900_100_000_000 + row
        yield (
            f'{{"segmentation": {outline}, {more(row)}"area": {area}, '
            f'"iscrowd": {int(layout.crowd[row])}, "image_id": {layout.image_ids[image]}, '
            f'"bbox": {layout.box[row].tolist()}, '
            f'"category_id": {layout.class_ids[label]}, "id": {name}}}'
        )


def _annotation_random(shape: CocoShape, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, shape.ground_truths, 1])


def outlines(
    shape: CocoShape, layout: Scene, seed: int = SEED
) -> Iterator[tuple[list[float], float, list[int]]]:
    """Yield the polygon, area and, for crowd regions, RLE of each ground truth."""
    random = _annotation_random(shape, seed)
    random.permutation(3 * len(layout.image))  # the names
    for start in range(0, len(layout.image), BLOCK):
        rows = slice(start, start + BLOCK)
        for row, (points, area) in enumerate(polygons(random, layout.box[rows]), start):
            counts: list[int] = []
            if layout.crowd[row]:
                frame = layout.frame[layout.image[row]]
                counts, area = run_lengths(random, layout.box[row], frame)  # noqa: PLW2901
            yield points, area, counts


def polygons(random: np.random.Generator, box: Floats) -> Iterator[tuple[list[float], float]]:
    """Yield a polygon that fills each box (x, y pairs to 2 decimals), and its area."""
    points = np.clip(np.exp(random.normal(2.95, 0.68, len(box))).astype(np.int64), 4, 150)
    owner = np.repeat(np.arange(len(box)), points)
    first = np.cumsum(points) - points
    turn = (np.arange(len(owner)) - first[owner] + random.random(len(owner))) / points[owner]
    radius = random.uniform(0.55, 1.0, len(owner))
    outline = np.column_stack((np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)))
    outline *= radius[:, None]
    low = np.minimum.reduceat(outline, first)[owner]
    high = np.maximum.reduceat(outline, first)[owner]
    outline = (outline - low) / (high - low) * box[owner, 2:] + box[owner, :2]
    outline = np.round(outline, 2)
    following = np.arange(len(owner)) + 1
    following[first + points - 1] = first
    cross = outline[:, 0] * outline[following, 1] - outline[following, 0] * outline[:, 1]
    area = np.abs(np.add.reduceat(cross, first)) / 2
    flat = outline.ravel().tolist()
    for start, count, value in zip(first.tolist(), points.tolist(), area.tolist(), strict=True):
        yield flat[2 * start : 2 * (start + count)], value


def run_lengths(random: np.random.Generator, box: Floats, frame: Whole) -> tuple[list[int], int]:
    """Return uncompressed RLE of a region with a ragged edge in a box, and its area.

    Column by column, as in COCO: pixels outside, then inside, and so on, over the whole image.
    """
    height = int(frame[1])
    left, top, width, tall = (int(value) for value in box)
    columns = max(width, 1)
    begin = top + random.integers(0, max(tall // 4, 1), columns)
    length = np.maximum((tall * random.uniform(0.4, 0.74, columns)).astype(np.int64), 1)
    begin = np.minimum(begin, height - length)
    start = (left + np.arange(columns)) * height + begin
    edges = np.column_stack((start, start + length)).ravel()
    counts = np.diff(np.concatenate(([0], edges, [height * int(frame[0])])))
    return counts.tolist(), int(length.sum())


def detection_text(shape: CocoShape, layout: Scene, seed: int = SEED) -> Iterator[str]:
    """Yield a results file in chunks: by image, with descending scores in each."""
    yield "["
    comma = ""
    for block in detection_blocks(shape, layout, seed):
        if len(block[0]):
            yield comma + ", ".join(_detection_records(layout, block))
            comma = ", "
    yield "]"


def detection_blocks(shape: CocoShape, layout: Scene, seed: int) -> Iterator[Columns]:
    """Yield the detections of consecutive blocks of images, in file order."""
    random = np.random.default_rng([seed, shape.detections, 2])
    counts = detection_counts(shape, layout, random)
    by_image = np.argsort(layout.image, kind="stable")
    bounds = np.searchsorted(layout.image[by_image], np.arange(0, shape.images + BLOCK, BLOCK))
    for number, start in enumerate(range(0, shape.images, BLOCK)):
        images = np.arange(start, min(start + BLOCK, shape.images))
        rows = by_image[bounds[number] : bounds[number + 1]]
        yield _printed(shape, draw_detections(random, layout, images, rows, counts))


def _printed(shape: CocoShape, columns: Columns) -> Columns:
    """Return the columns in file order, rounded to the digits of the file."""
    image, label, box, score, source = columns
    order = np.lexsort((-score, image))
    if shape.digits == "full":
        box, score = box.astype(np.float32).astype(float), score.astype(np.float32).astype(float)
    else:
        box, score = np.round(box, 3), np.maximum(np.round(score, 5), 0.00001)
    return image[order], label[order], box[order], score[order], source[order]


def detection_counts(
    shape: CocoShape, layout: Scene, random: np.random.Generator
) -> tuple[Whole, Whole, Whole]:
    """Return the detections per ground truth, with right and wrong class, and per background.

    They add up exactly to the number of detections of the workload."""
    detected = random.random(len(layout.image)) < detection_rate(layout.box)
    plenty = max(0.0, shape.detections / max(shape.ground_truths, 1) - 0.75)
    true = detected * (1 + random.poisson(0.2 * plenty, len(detected)))
    confused = random.poisson(0.15 * plenty, len(detected))
    while true.sum() + confused.sum() > shape.detections:
        true, confused = true // 2, confused // 2
    weight = random.gamma(4.0, size=shape.images)
    rest = shape.detections - int(true.sum() + confused.sum())
    return true, confused, random.multinomial(rest, weight / weight.sum())


def detection_rate(box: Floats) -> Floats:
    """Return the probability that a box of that size is detected."""
    side = np.sqrt(box[:, 2] * box[:, 3])
    return np.asarray(0.95 - 0.55 * np.exp(-side / 60.0))


def draw_detections(
    random: np.random.Generator,
    layout: Scene,
    images: Whole,
    rows: Whole,
    counts: tuple[Whole, Whole, Whole],
) -> Columns:
    """Return the detections of some images, whose ground truths are `rows`, unordered."""
    true, confused, background = counts
    parts = (
        _true(random, layout, np.repeat(rows, true[rows])),
        _confused(random, layout, np.repeat(rows, confused[rows])),
        _background(random, layout, np.repeat(images, background[images])),
    )
    image, label, box, score = (np.concatenate(part) for part in zip(*parts, strict=True))
    nowhere = np.full(int(background[images].sum()), -1)
    source = np.concatenate((np.repeat(rows, true[rows]), np.repeat(rows, confused[rows]), nowhere))
    return image, label, box, score, source


Drawn = tuple[Whole, Whole, Floats, Floats]


def _true(random: np.random.Generator, layout: Scene, rows: Whole) -> Drawn:
    spread = random.choice([0.03, 0.08, 0.2], len(rows), p=[0.5, 0.3, 0.2])
    score = random.beta(3.0, 1.6, len(rows)) * (1 - 1.6 * spread)
    return layout.image[rows], layout.label[rows], _jittered(random, layout, rows, spread), score


def _confused(random: np.random.Generator, layout: Scene, rows: Whole) -> Drawn:
    # A detector confuses a class with a few that resemble it: here, its neighbours in number.
    step = random.integers(1, 4, len(rows))
    label = (layout.label[rows] + step) % len(layout.class_ids)
    score = random.beta(1.3, 4.0, len(rows))
    spread = np.full(len(rows), 0.08)
    return layout.image[rows], label, _jittered(random, layout, rows, spread), score


def _background(random: np.random.Generator, layout: Scene, image: Whole) -> Drawn:
    label = random.choice(len(layout.class_ids), len(image), p=layout.class_shares)
    box = random_boxes(random, layout.frame[image], np.ones(len(image)))
    box = np.clip(box + random.random(box.shape) / 100, 0, None)
    return image, label, box, random.beta(1.0, 9.0, len(image))


def _jittered(random: np.random.Generator, layout: Scene, rows: Whole, spread: Floats) -> Floats:
    box = layout.box[rows]
    side = np.column_stack((box[:, 2:], box[:, 2:]))
    moved = box + random.normal(0, 1, box.shape) * spread[:, None] * side
    frame = layout.frame[layout.image[rows]].astype(np.float64)
    corner = np.clip(moved[:, :2], 0, frame - 1)
    return np.column_stack((corner, np.clip(moved[:, 2:], 1, frame - corner)))


def _detection_records(layout: Scene, columns: Columns) -> list[str]:
    image, label, box, score, _ = columns
    rows = zip(
        layout.image_ids[image].tolist(),
        layout.class_ids[label].tolist(),
        box.tolist(),
        score.tolist(),
        strict=True,
    )
    return [
        f'{{"image_id": {i}, "category_id": {k}, "bbox": {b}, "score": {s}}}' for i, k, b, s in rows
    ]
