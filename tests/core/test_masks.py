"""Run-length masks, compared bit for bit with pycocotools.mask and with bitmaps of the oracle."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pycocotools import mask

from detap.core.arrays import Boxes, Pairs
from detap.core.masks import areas_and_boxes, mask_pairs, max_runs, runs_of
from detap.tables import _runs
from detap.tables.masks import Masks
from tests.core.pairs import check_pairs
from tests.oracle import masks as plain
from tests.oracle.masks import Bitmap
from tests.oracle.polygons import rasterize

Rings = list[list[float]]


def polygons(shapes: list[Rings], height: int, width: int) -> Masks:
    rings = [ring for shape in shapes for ring in shape]
    return Masks(
        np.full((len(shapes), 2), (height, width), np.int32),
        np.zeros(len(shapes) + 1, np.int64),
        np.zeros(0, np.uint32),
        np.cumsum([0, *map(len, shapes)]),
        np.cumsum([len(ring) // 2 for ring in rings], dtype=np.int64),
        np.array([value for ring in rings for value in ring], np.float64).reshape(-1, 2),
    )


def of_runs(runs: list[NDArray[np.uint32]], height: int, width: int) -> Masks:
    return Masks(
        np.full((len(runs), 2), (height, width), np.int32),
        np.cumsum([0, *map(len, runs)]),
        np.concatenate([*runs, np.zeros(0, np.uint32)]).astype(np.uint32),
        np.zeros(len(runs) + 1, np.int64),
        np.zeros(0, np.int64),
        np.zeros((0, 2)),
    )


def runs(bitmap: Bitmap) -> NDArray[np.uint32]:
    return np.array(plain.encode(bitmap), np.uint32)


def boxes(
    count: int, image: NDArray[Any] | None = None, label: NDArray[Any] | None = None
) -> Boxes:
    none = np.zeros(0)
    zeros = np.zeros(count, np.int32)
    image = zeros if image is None else image.astype(np.int32)
    label = zeros if label is None else label.astype(np.int32)
    return Boxes(image, label, none.reshape(0, 4), none, none, none)


def paired(left: Masks, right: Masks, **more: Any) -> Pairs:
    numbers = np.arange(len(left), dtype=np.int32), np.arange(len(right), dtype=np.int32)
    more.setdefault("crowd", np.zeros(len(right), np.bool_))
    return mask_pairs(
        boxes(len(left)),
        boxes(len(right)),
        masks=(left.arrays, right.arrays),
        numbers=numbers,
        **more,
    )


# Tenths and halves: the finer grid has fifths, and where an edge rounds is what is asked.
coordinate = st.one_of(
    st.integers(-8, 40).map(float),
    st.integers(-16, 80).map(lambda n: n / 2),
    st.integers(-80, 400).map(lambda n: n / 10),
    st.floats(-20, 60),
)
ring = st.lists(coordinate, min_size=6, max_size=16).map(lambda c: c[: len(c) // 2 * 2])
shape = st.lists(ring, min_size=1, max_size=4)
side = st.integers(1, 37)

bitmaps = st.tuples(st.integers(1, 9), st.integers(1, 9)).flatmap(
    lambda sides: st.lists(
        st.lists(st.booleans(), min_size=sides[0] * sides[1], max_size=sides[0] * sides[1]).map(
            lambda bits: np.array(bits, np.bool_).reshape(sides)
        ),
        min_size=2,
        max_size=6,
    )
)


@given(shape, side, side)
def test_polygons_are_rasterized_as_by_pycocotools_and_the_oracle(
    rings: Rings, h: int, w: int
) -> None:
    masks = polygons([rings], h, w)
    expected = mask.frPyObjects(rings, h, w)
    expected = mask.merge(expected) if len(rings) > 1 else expected[0]
    ours = runs_of(masks.arrays, 0)
    assert mask.frPyObjects({"size": [h, w], "counts": ours.tolist()}, h, w) == expected
    area, box = areas_and_boxes(masks.arrays)
    assert area[0] == mask.area(expected)
    if area[0]:
        assert box[0].tolist() == mask.toBbox(expected).tolist()
    bitmap = rasterize(rings, h, w)
    assert (plain.decode(ours.tolist(), h, w) == bitmap).all()
    assert (area.tolist(), box.tolist()) == ([plain.area(bitmap)], [plain.bounding_box(bitmap)])


@given(bitmaps, st.integers(1, 4), st.booleans(), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_iou_of_runs_equals_iou_of_bitmaps(
    maps: list[Bitmap], left: int, is_crowd: bool, lowest: float
) -> None:
    """Union, intersection and area of runs equal those of the pixels."""
    height, width = maps[0].shape
    left = min(left, len(maps) - 1)
    sides = maps[:left], maps[left:]
    stores = [of_runs([runs(one) for one in side], height, width) for side in sides]
    area, box = areas_and_boxes(stores[0].arrays)
    assert area.tolist() == [plain.area(one) for one in sides[0]]
    assert box.tolist() == [plain.bounding_box(one) for one in sides[0]]
    crowd = np.full(len(sides[1]), is_crowd)
    pairs = paired(*stores, crowd=crowd, min_similarity=lowest)
    actual = {
        (n, int(pairs.truth[at])): pairs.similarity[at]
        for n in range(left)
        for at in range(pairs.start[n], pairs.start[n + 1])
    }
    expected = {}
    for n, one in enumerate(sides[0]):
        for g, other in enumerate(sides[1]):
            overlap = plain.iou(one, other, crowd=is_crowd)
            if overlap and overlap >= lowest:
                expected[n, g] = overlap
    assert actual == expected


# --- boundaries


@st.composite
def solid_maps(draw: st.DrawFn) -> list[Bitmap]:
    """Draw a few bitmaps of one size: boxes with holes, for erosion."""
    height, width = draw(st.integers(1, 26)), draw(st.integers(1, 26))
    row, column = st.integers(0, height), st.integers(0, width)
    bitmaps = []
    for _ in range(draw(st.integers(2, 4))):
        one = np.zeros((height, width), np.bool_)
        for filled in (True, True, False):
            (top, bottom), (left, right) = (
                sorted((draw(ends), draw(ends))) for ends in (row, column)
            )
            one[top:bottom, left:right] = filled
        for y, x in draw(st.lists(st.tuples(row, column), max_size=3)):
            one[y : y + 1, x : x + 1] ^= True
        bitmaps.append(one)
    return bitmaps


@given(
    solid_maps(),
    st.sampled_from([0.01, 0.02, 0.05, 0.1, 0.2, 1.0]),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 0.7]),
    st.randoms(use_true_random=False),
)
def test_boundary_iou_equals_that_of_eroded_bitmaps(
    maps: list[Bitmap], ratio: float, is_crowd: bool, lowest: float, random: Any
) -> None:
    """Crowds use mask IoU only; others the smaller of mask and boundary IoU."""
    height, width = maps[0].shape
    sides = maps[:1], maps[1:]
    stores = [of_runs([parted(runs(one), random) for one in side], height, width) for side in sides]
    crowd = np.full(len(sides[1]), is_crowd)
    pairs = paired(*stores, crowd=crowd, min_similarity=lowest, dilation_ratio=ratio)
    actual = dict(zip(pairs.truth.tolist(), pairs.similarity.tolist(), strict=True))
    expected = {}
    for g, other in enumerate(sides[1]):
        if is_crowd:
            overlap = plain.iou(maps[0], other, crowd=True)
        else:
            overlap = plain.boundary_iou(maps[0], other, ratio)
        if overlap and overlap >= lowest:
            expected[g] = overlap
    assert actual == expected


def parted(detections: NDArray[np.uint32], random: Any) -> NDArray[np.uint32]:
    """Split some runs in two, with an empty run between them."""
    parts: list[int] = []
    for length in detections.tolist():
        cut = random.randint(0, length)
        parts += [cut, 0, length - cut] if random.random() < 0.3 else [length]
    return np.array(parts, np.uint32)


@pytest.mark.parametrize(
    ("height", "width", "ratio", "depth"),
    [
        (100, 100, 0.02, 3),
        (100, 100, 0.008, 1),
        (480, 640, 0.02, 16),
        (480, 640, 0.008, 6),
        (480, 640, 0.0001, 1),
        # The diagonal is 20: halves of a pixel, which round to even.
        (12, 16, 2.5 / 20, 2),
        (12, 16, 3.5 / 20, 4),
        (12, 16, 1.5 / 20, 2),
    ],
)
@pytest.mark.parametrize("at", [0, 2])
def test_boundary_depth(height: int, width: int, ratio: float, depth: int, at: int) -> None:
    """A square and the same shifted by one column; the image border is not a boundary."""
    side = min(height - at, 40)
    squares, rings = [], []
    for left in (at, at + 1):
        one = np.zeros((height, width), np.bool_)
        one[at : at + side, left : left + side] = True
        inner = slice(at + depth, at + side - depth), slice(left + depth, left + side - depth)
        ring = one.copy()
        ring[inner] = False
        squares.append(one)
        rings.append(ring)
    stores = [of_runs([runs(one)], height, width) for one in squares]
    pairs = paired(*stores, dilation_ratio=ratio)
    expected = plain.iou(rings[0], rings[1])
    assert expected < plain.iou(squares[0], squares[1])
    assert pairs.similarity.tolist() == [expected]


def of_boxes(*boxes: tuple[int, int, int, int]) -> Masks:
    """Return the mask of some boxes (top, bottom, left, right) in an image of 100 x 100."""
    one = np.zeros((100, 100), np.bool_)
    for top, bottom, left, right in boxes:
        one[top:bottom, left:right] = True
    return of_runs([runs(one)], 100, 100)


def test_equal_masks_reach_the_minimum_1() -> None:
    ring = [0, 5.6, 7, 5.6, 7, 7, 0, 7]
    for store in (of_boxes((3, 5, 3, 5)), polygons([[ring]], 7, 7)):
        assert paired(store, store, min_similarity=1.0).similarity.tolist() == [1.0]


def test_the_bound_of_runs() -> None:
    """A square of four columns has at most two crossings in each, and a run more."""
    square = [2.0, 2, 6, 2, 6, 6, 2, 6]
    store = polygons([[square], [square, square]], 20, 20)
    assert max_runs(store.arrays).tolist() == [9, 18]
    zigzag = [value for n in range(20) for value in (0.0, 0.5, 2.0, 0.5 * (n % 2))]
    assert max_runs(polygons([[zigzag]], 3, 2).arrays).tolist() == [(3 + 1) * 2 + 1]


@given(st.lists(shape, min_size=2, max_size=6), side, side, st.data())
def test_iou_of_polygons_equals_pycocotools(
    shapes: list[Rings], h: int, w: int, data: st.DataObject
) -> None:
    crowd = [data.draw(st.booleans()) for _ in shapes]
    store = polygons(shapes, h, w)
    pairs = paired(store, store, crowd=np.array(crowd))
    rle = [mask.merge(mask.frPyObjects(rings, h, w)) for rings in shapes]
    expected = mask.iou(rle, rle, crowd)
    ours = np.zeros_like(expected)
    dts = np.repeat(np.arange(len(shapes)), np.diff(pairs.start))
    ours[dts, pairs.truth] = pairs.similarity
    assert ours.tolist() == np.nan_to_num(expected).tolist()


def test_pairs_share_image_and_class_with_any_number_of_threads() -> None:
    rng = np.random.default_rng(3)
    shapes = [[rng.uniform(0, 30, 8).tolist()] for _ in range(300)]
    store = polygons(shapes, 30, 30)
    image, label = rng.integers(0, 5, 300), rng.integers(0, 3, 300)
    number = np.arange(300, dtype=np.int32)
    made = [
        mask_pairs(
            boxes(300, image, label),
            boxes(300, image, label),
            masks=(store.arrays, store.arrays),
            numbers=(number, number[::-1].copy()),
            crowd=np.zeros(300, np.bool_),
            threads=threads,
        )
        for threads in (1, 4)
    ]
    for one, other in zip(*made, strict=True):
        assert one.tobytes() == other.tobytes()
    pairs = made[0]
    check_pairs(pairs, boxes(300, image, label), boxes(300, image, label))
    assert len(pairs.truth) > 300
    dts = np.repeat(number, np.diff(pairs.start))
    assert pairs.between(dts, pairs.truth).tolist() == pairs.similarity.tolist()
    assert not pairs.between(np.array([0]), np.array([int(np.argmax(image != image[0]))]))


def test_without_ground_truths_or_detections_there_are_no_pairs() -> None:
    none, some = polygons([], 5, 5), polygons([[[0, 0, 4, 0, 0, 4]]], 5, 5)
    assert paired(none, some).start.tolist() == [0]
    assert paired(some, none).start.tolist() == [0, 0]
    assert areas_and_boxes(none.arrays)[0].tolist() == []


@given(bitmaps)
def test_compressed_strings_of_pycocotools_are_decoded(maps: list[Bitmap]) -> None:
    for one in maps:
        text = mask.encode(np.asfortranarray(one.astype(np.uint8)))["counts"]
        assert plain.compress(plain.encode(one)) == text
        runs = _runs.decoded(text, one.size)
        assert not isinstance(runs, str)
        assert (plain.decode(runs.tolist(), *one.shape) == one).all()


@given(
    st.lists(st.one_of(st.integers(0, 20), st.integers(0, 2**18)), min_size=1, max_size=60),
    st.integers(0, 3),
)
def test_long_compressed_strings_of_pycocotools_are_decoded(lengths: list[int], more: int) -> None:
    """The decoder reads eight digits at a time; near the end and in long runs one at a time."""
    lengths += [2**30] * more
    text = mask.frPyObjects({"counts": lengths, "size": [1, sum(lengths)]}, 1, sum(lengths))
    runs = _runs.decoded(text["counts"], sum(lengths))
    assert not isinstance(runs, str)
    assert runs.tolist() == lengths == plain.decompress(text["counts"])


@pytest.mark.parametrize(
    ("teeth", "ends", "height", "width"),
    [
        *((teeth, (2.0, 9.0), 1000, 12) for teeth in (3, 30, 300)),
        (400, (0.0, 500.0), 300, 500),  # above 131,072, crossings at one pixel cancel each other
    ],
)
def test_an_edge_may_cross_a_column_many_times(
    teeth: int, ends: tuple[float, float], height: int, width: int
) -> None:
    down = np.linspace(0, min(height, 997), 2 * teeth)
    ring = np.stack([np.resize(ends, 2 * teeth), down], axis=1).ravel().tolist()
    expected = mask.frPyObjects([ring], height, width)[0]
    lengths = runs_of(polygons([[ring]], height, width).arrays, 0).tolist()
    size = {"size": [height, width], "counts": lengths}
    assert mask.frPyObjects(size, height, width) == expected


@given(st.lists(shape, min_size=2, max_size=6), side, side, st.booleans())
def test_omitted_pairs_are_below_the_minimum_iou(
    shapes: list[Rings], h: int, w: int, is_crowd: bool
) -> None:
    """Upper bounds skip pairs before rasterization; the result equals that of the pixels."""
    half = len(shapes) // 2
    left, right = polygons(shapes[:half], h, w), polygons(shapes[half:], h, w)
    drawn = of_runs([runs_of(right.arrays, n) for n in range(len(right))], h, w)
    crowd = np.full(len(right), is_crowd)
    for other in (right, drawn):
        everything = paired(left, other, crowd=crowd)
        expected = paired(left, other, crowd=crowd, min_similarity=0.5)
        kept = everything.similarity >= 0.5
        assert expected.truth.tolist() == everything.truth[kept].tolist()
        assert expected.similarity.tolist() == everything.similarity[kept].tolist()


LONG = b"555" + b"0" * 61
"""64 runs of 5 pixels, more than the decoder reads at a time."""


@pytest.mark.parametrize(
    ("text", "pixels", "fault"),
    [
        (b"5 5", 10, "holds a character that is no digit of run lengths"),
        (b"5\xff", 10, "holds a character that is no digit of run lengths"),
        (b"5o", 10, "ends within a number"),
        (b"O", 10, "holds a negative run"),
        (b"9", 8, "runs beyond the mask"),
        (b"oooooooo0", 1 << 31, "runs beyond the mask"),
        *(
            (LONG[:40] + byte + LONG[41:], 320, "holds a character that is no digit of run lengths")
            for byte in (b" ", b"\x80", b"p")
        ),
        (LONG[:40] + b"@" + LONG[41:], 320, "holds a negative run"),
        (LONG[:40] + b"_" + LONG[41:], 320, "runs beyond the mask"),
        (LONG[:63] + b"P", 320, "ends within a number"),
    ],
)
def test_errors_in_compressed_strings(text: bytes, pixels: int, fault: str) -> None:
    assert _runs.decoded(text, pixels) == fault


def test_numbers_of_run_length_strings_by_hand() -> None:
    """A digit has five bits, a sixth says that more follow, the highest of the last is the sign."""
    for text, runs_expected in (
        (b"\\0", [12]),
        (b"P" * 7 + b"0", [0]),
        (b"PPPPP?", [15 << 25]),
        (LONG, [5] * 64),
    ):
        decoded = _runs.decoded(text, 1 << 30)
        assert not isinstance(decoded, str)
        assert decoded.tolist() == runs_expected
    assert _runs.decoded(b"P" * 8 + b"0", 5) == "runs beyond the mask"
    assert _runs.decoded(b"PPPPP@", 1 << 30) == "holds a negative run"


@pytest.mark.parametrize(
    ("size", "lengths", "box"),
    [
        ((2, 3), [1, 0, 4, 1], [2, 1, 1, 1]),  # an empty run bounds nothing
        ((49, 2), [49, 1, 48], [1, 0, 1, 1]),  # 49 * (1 / 49) is below 1
        ((4, 3), [2, 4, 6], [0, 0, 2, 4]),  # on in the next column: all rows
    ],
)
def test_boxes_of_runs_by_hand(size: tuple[int, int], lengths: list[int], box: list[int]) -> None:
    start = np.array([0, len(lengths)])
    areas, boxes = _runs.measured(np.array([size], np.int32), start, np.array(lengths, np.uint32))
    assert areas.tolist() == [sum(lengths[1::2])]
    assert boxes.tolist() == [box]


def test_a_polygon_in_an_image_without_pixels() -> None:
    """One run of no pixel, as in pycocotools."""
    empty = polygons([[[0, 0, 4, 0, 4, 4]]], 0, 5)
    assert runs_of(empty.arrays, 0).tolist() == [0]


def test_masks_of_different_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="ring_end does not ascend from 0 to the end"):
        Masks(
            np.array([[5, 5]], np.int32),
            np.array([0, 3]),
            np.zeros(2, np.uint32),
            np.zeros(2, np.int64),
            np.zeros(0, np.int64),
            np.zeros((0, 2)),
        )
