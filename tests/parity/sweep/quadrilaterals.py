"""shapely: intersection over union of convex and concave quadrilaterals, to within 1e-9."""

from pathlib import Path

import numpy as np
import pytest

from detap.core.polygons import is_self_intersecting, polygon_areas, polygon_overlaps, rotated_boxes

PAIRS = 25


def check(random: np.random.Generator, folder: Path) -> None:
    """Compare areas and IoU of pairs, with and without crowds."""
    del folder
    shapely = pytest.importorskip("shapely")
    scale = float(random.choice([1.0, 50.0, 2000.0]))
    first, second = (_quadrilaterals(random, scale) for _ in range(2))
    near = random.random(PAIRS) < 0.5
    second[near] = first[near] + random.normal(0, 0.05 * scale, (int(near.sum()), 8))
    simple = ~is_self_intersecting(first) & ~is_self_intersecting(second)
    first, second = first[simple], second[simple]
    ours = [shapely.polygons(quads.reshape(-1, 4, 2)) for quads in (first, second)]
    valid = shapely.is_valid(ours[0]) & shapely.is_valid(ours[1])
    first, second, (one, other) = first[valid], second[valid], [each[valid] for each in ours]
    areas = shapely.area(one), shapely.area(other)
    assert polygon_areas(first) == pytest.approx(areas[0], rel=1e-9, abs=1e-9 * scale**2)
    shared = shapely.area(shapely.intersection(one, other))
    crowd = random.random(len(first)) < 0.3
    whole = np.where(crowd, areas[0], areas[0] + areas[1] - shared)
    sound = whole > 1e-6 * scale**2
    actual = polygon_overlaps(first, second, crowd)[sound]
    assert actual == pytest.approx((shared / np.where(sound, whole, 1))[sound], abs=1e-9)


def _quadrilaterals(random: np.random.Generator, scale: float) -> np.ndarray:
    """Return rotated boxes and any quadrilaterals, (PAIRS, 8)."""
    center = random.uniform(0, scale, (PAIRS, 2))
    sides = random.uniform(0.05, 1, (PAIRS, 2)) * scale
    boxes = rotated_boxes(np.hstack([center, sides, random.uniform(-4, 4, (PAIRS, 1))]))
    free = random.uniform(0, scale, (PAIRS, 8))
    return np.where(random.random((PAIRS, 1)) < 0.6, boxes, free)
