"""Small evaluation cases as rows, from which tables and COCO dictionaries are made alike.

Boxes are kept as x, y, width, height, as a COCO file holds them: from corners the last bits of
width and area could not be had back.
"""

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from detap.protocols import PRESETS, Protocol
from detap.tables.detection import Detections, GroundTruth
from detap.tables.masks import Masks
from tests.coco import results_of, truth_of

PLAIN = {
    name: protocol
    for name, protocol in PRESETS.items()
    if protocol.iou_type == "bbox"
    and protocol.verified == "all"
    and protocol.not_exhaustive == "count"
    and not set(protocol.attributes) - {"width", "height"}
}
"""The presets that need only boxes and flags."""

BY_IMAGE = {name: protocol for name, protocol in PLAIN.items() if protocol.matching != "kitti"}
"""Those of them that match each image independently."""

RANKED = {name: protocol for name, protocol in PLAIN.items() if protocol.matching == "by-score"}
"""Those of them that match detections by score."""

IN_ORACLE = {name: protocol for name, protocol in BY_IMAGE.items() if name != "visdrone"}
"""Those that the plain oracle scores; for VisDrone there are its toolkit's figures."""

_SHAPES = ("box", "mask", "boundary", "polygon")

EVERY_RANKED = {
    name: protocol
    for name, protocol in PRESETS.items()
    if protocol.matching == "by-score" and protocol.iou_type in _SHAPES
}
"""All presets that match by score, with those that need :meth:`Case.tables_for`."""

MORE = {name: protocol for name, protocol in EVERY_RANKED.items() if name not in RANKED}
"""Only the presets that need :meth:`Case.tables_for`."""

FREQUENCIES = ("rare", "common", "frequent")
HEIGHT, WIDTH = 340, 360
"""Of every image, where masks are requested: anything beyond is cut off."""

Table = TypeVar("Table", GroundTruth, Detections)
XYWH = tuple[float, float, float, float]


@dataclass(frozen=True)
class Truth:
    """A ground truth."""

    image: int
    label: int
    box: XYWH
    crowd: bool = False
    difficult: bool = False
    area: float | None = None
    group: bool = False


@dataclass(frozen=True)
class Detection:
    """A detection."""

    image: int
    label: int
    box: XYWH
    score: float


@dataclass(frozen=True)
class Case:
    """Ground truths and detections, in file order."""

    truths: tuple[Truth, ...] = ()
    dt: tuple[Detection, ...] = ()
    images: tuple[int, ...] = (1,)
    classes: tuple[int, ...] = (1,)
    negative: frozenset[tuple[int, int]] = frozenset()
    not_exhaustive: frozenset[tuple[int, int]] = frozenset()
    notes: str = field(default="", compare=False)

    def ground_truth(self) -> GroundTruth:
        return GroundTruth.from_arrays(
            image=np.array([t.image for t in self.truths], np.int64),
            label=np.array([t.label for t in self.truths], np.int64),
            boxes=np.array([t.box for t in self.truths], np.float64).reshape(-1, 4),
            box_format="xywh",
            area=[t.box[2] * t.box[3] if t.area is None else t.area for t in self.truths],
            crowd=[t.crowd for t in self.truths],
            difficult=[t.difficult for t in self.truths],
            group_of=[t.group for t in self.truths],
            images=self.images,
            classes=self.classes,
        )

    def detections(self) -> Detections:
        table = Detections.from_arrays(
            image=np.array([f.image for f in self.dt], np.int64),
            label=np.array([f.label for f in self.dt], np.int64),
            boxes=np.array([f.box for f in self.dt], np.float64).reshape(-1, 4),
            box_format="xywh",
            score=[f.score for f in self.dt],
        )
        return table.reindex_like(self.ground_truth())

    def tables(self) -> tuple[GroundTruth, Detections]:
        return self.ground_truth(), self.detections()

    def tables_for(self, protocol: Protocol) -> tuple[GroundTruth, Detections]:
        """Return the tables with the further data that the protocol needs.

        Ground truths and detections have the same shape in a box: a mask without two corners,
        or a quadrilateral that leans.
        """
        truth, dt = self.tables()
        if protocol.verified != "all":
            truth = self._listing(truth)
        names = [name for name in protocol.attributes if name not in ("width", "height")]
        values = np.arange(len(truth)) % 4 / 2  # 0, 0.5, 1, 1.5
        truth = replace(truth, extra=dict.fromkeys(names, values))
        if protocol.reading.get("masks"):
            truth, dt = _masked(truth), _masked(dt)
        if protocol.iou_type == "polygon":
            truth, dt = leaning(truth), leaning(dt)
        return truth, dt

    def _listing(self, truth: GroundTruth) -> GroundTruth:
        """Return a table with the lists of images and the groups of classes."""
        image = {name: number for number, name in enumerate(truth.images)}
        label = {name: number for number, name in enumerate(truth.class_ids)}
        listed = {
            name: np.array(sorted((image[i], label[k]) for i, k in pairs), np.int32).reshape(-1, 2)
            for name, pairs in (
                ("negative", self.negative),
                ("not_exhaustive", self.not_exhaustive),
            )
        }
        groups = {name: FREQUENCIES[number % 3] for name, number in label.items()}
        return replace(truth, listed=listed, groups=groups)

    def coco(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the case as the contents of an instances and of a results file."""
        rows = [(t.image, t.label, list(t.box)) for t in self.truths]
        instances = truth_of(rows, {k: str(k) for k in self.classes}, self.images, size=None)
        for annotation, t in zip(instances["annotations"], self.truths, strict=True):
            annotation["iscrowd"] = int(t.crowd)
            if t.area is not None:
                annotation["area"] = t.area
        results = results_of((f.image, f.label, list(f.box), f.score) for f in self.dt)
        return instances, results

    def with_dt(self, dt: tuple[Detection, ...]) -> "Case":
        return replace(self, dt=dt)


def _masked(table: Table) -> Table:
    """Return the table with a mask in each box, of five corners."""
    left, top, right, bottom = table.corners.T
    middle, half = (left + right) / 2, (top + bottom) / 2
    corners = [left, top, right, top, right, half, middle, bottom, left, bottom]
    count = len(table)
    masks = Masks(
        np.full((count, 2), (HEIGHT, WIDTH), np.int32),
        np.zeros(count + 1, np.int64),
        np.zeros(0, np.uint32),
        np.arange(count + 1),
        5 * np.arange(1, count + 1),
        np.stack(corners, axis=1).reshape(-1, 2),
    )
    return replace(table, masks=masks, mask=np.arange(count, dtype=np.int32))


def leaning(table: Table) -> Table:
    """Return the table with a quadrilateral in each box."""
    left, top, right, bottom = table.corners.T
    wide, high = (right - left) / 4, (bottom - top) / 4
    corners = [left + wide, top, right, top + high, right - wide, bottom, left, bottom - high]
    return replace(table, polygons=np.stack(corners, axis=1))


def on_integers(table: Table) -> Table:
    """Return the table with corners rounded to whole pixels, and the areas that these give."""
    corners = np.round(table.corners)
    area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    return replace(table, corners=corners, box_area=area)


def _boxes(scale: float) -> st.SearchStrategy[XYWH]:
    # Few places and sizes, so that boxes often coincide, touch, nest, and have equal overlaps;
    # thirds, so that the last bits of sums and products matter.
    corner = st.integers(0, 6).map(lambda n: n * scale)
    side = st.sampled_from((0.0, 1.0, 2.0, 3.0, 4.0, 4 / 3, 10 / 3, 0.1)).map(lambda n: n * scale)
    return st.tuples(corner, corner, side, side)


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    crowds: bool = True,
    distinct_scores: bool = False,
    most_truths: int = 10,
    most_dt: int = 16,
    shifts: bool = True,
) -> Case:
    """Draw a case: id gaps, empty images and classes, ties, zero areas, areas at the very ends."""
    images = tuple(sorted(draw(st.sets(st.integers(1, 40), min_size=1, max_size=3))))
    classes = tuple(sorted(draw(st.sets(st.integers(1, 90), min_size=1, max_size=3))))
    scale = draw(st.sampled_from((1.0, 8.0, 16.0, 32.0, 10.7)))
    box = _boxes(scale)
    area = st.one_of(
        st.none(), st.none(), st.sampled_from((0.0, 1024.0, 1024.5, 9216.0, 9215.5, 500.0, 2e4))
    )
    image, label = st.sampled_from(images), st.sampled_from(classes)
    crowd = st.sampled_from((False, False, False, True)) if crowds else st.just(False)
    difficult = st.sampled_from((False, False, False, True))
    group = st.sampled_from((False, False, False, True))
    one = st.builds(Truth, image, label, box, crowd, difficult, area, group)
    truths = draw(st.lists(one, max_size=most_truths))
    score = st.sampled_from((0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.0, -1.0, 12.0))
    dt = draw(st.lists(st.builds(Detection, image, label, box, score), max_size=most_dt))
    # Most random boxes match nothing: add detections near ground truths.
    for truth in draw(st.lists(st.sampled_from(truths), max_size=most_dt)) if truths else []:
        x, y, w, h = truth.box
        shift = draw(st.sampled_from((0.0, 0.0, 0.1, 0.25))) if shifts else 0.0
        dt.append(
            Detection(truth.image, truth.label, (x + shift * w, y, w, h * (1 - shift)), draw(score))
        )
    if distinct_scores:
        order = draw(st.permutations(range(len(dt))))
        dt = [replace(f, score=0.5 + n / 64) for f, n in zip(dt, order, strict=True)]
    dt = draw(st.permutations(dt))
    pairs = st.frozensets(st.tuples(image, label), max_size=4)
    return Case(tuple(truths), tuple(dt), images, classes, draw(pairs), draw(pairs))


@st.composite
def crowded_cases(draw: st.DrawFn) -> Case:
    """Draw a case with more than 100 detections in an image, over two classes."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(101, 160))
    levels = draw(st.sampled_from((5, 40, 10_000)))

    def box() -> XYWH:
        x, y, w, h = (random.integers(0, 60, 4) * 1.1).tolist()
        return (x, y, w, h)

    truths = tuple(
        Truth(
            int(random.choice((3, 8))),
            int(random.choice((1, 9))),
            box(),
            random.random() < 0.1,
            group=random.random() < 0.2,
        )
        for _ in range(30)
    )
    dt = []
    for number in range(count + 40):
        score = int(random.integers(levels)) / levels
        if random.random() < 0.4:
            truth = truths[random.integers(len(truths))]
            x, y, w, h = truth.box
            dt.append(Detection(truth.image, truth.label, (x + 1.0, y, w, h), score))
        else:
            dt.append(Detection(3 if number < count else 8, 1 if number % 7 else 9, box(), score))
    return Case(truths, tuple(dt), (3, 5, 8), (1, 4, 9))
