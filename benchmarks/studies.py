"""Simulate intervals on little data, which the rules of docs/statistics.md are based on.

    python -m benchmarks.studies few --pairs 500
    python -m benchmarks.studies near-perfect --pairs 500
    python -m benchmarks.studies smallest --pairs 500
    python -m benchmarks.studies single --pairs 500

`--first` is the first seed, so that a study can be run in parts.
"""

import argparse
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulation import EVEN, GOOD, RARE, Quality, World, boxes, true_drop
from detap import evaluate
from detap.analysis.bootstrap import Draws, Resampled, draw_weights, leave_out, resampled
from detap.evaluation.detection import Result
from detap.tables.detection import Detections, GroundTruth

Floats = NDArray[np.float64]
Interval = tuple[float, float]

HUNDRED = World(100, (1.0, 1.0, 1.0))
MISSING = Quality(0.01, 0.0, 0.0)
NEARLY = Quality(0.01, 0.01, 0.1)

_normal = NormalDist()


@dataclass(frozen=True)
class Sizes(World):
    """Images of large objects and a fraction of small ones."""

    small: float = 0.0

    def truth(self, rng: np.random.Generator) -> GroundTruth:
        image = np.repeat(np.arange(self.images), rng.poisson(self.objects, self.images))
        box = boxes(rng, len(image))
        side = np.where(rng.random(len(image)) < self.small, 0.2, 1.0)[:, None]
        box[:, 2:] = np.maximum(box[:, 2:], 60) * side  # 12 to 30 pixels, or 60 to 150
        return GroundTruth.from_arrays(
            image=image,
            label=self.labels(rng, len(image)),
            boxes=box,
            box_format="xywh",
            images=range(self.images),
            classes=range(len(self.shares)),
        )


def drawn(
    truth: GroundTruth, tables: Sequence[Detections], resamples: int, seed: int
) -> tuple[list[Result], list[Resampled]]:
    """Return two results and their metrics in resamples, with groups of images left out."""
    results = [evaluate(truth, table, "coco") for table in tables]
    weights = leave_out(draw_weights(len(truth.images), resamples, seed))
    return results, [resampled(result, weights, ["AP", "APs"]) for result in results]


def pairs(
    world: World, pair: tuple[Quality, ...], seeds: Sequence[int], resamples: int
) -> Iterator[tuple[list[Result], list[Resampled]]]:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        truth = world.truth(rng)
        tables = [world.detections(truth, quality, rng) for quality in pair]
        yield drawn(truth, tables, resamples, seed)


def every_interval(drop: float, draws: Draws) -> dict[str, Interval]:
    """Return the intervals that were compared, at 95 %.

    References
    ----------
    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 13 and 14.
    """
    low, high = Draws(draws.drawn).interval(0.95)
    defined = draws.drawn[~np.isnan(draws.drawn)]
    influence = np.nanmean(draws.left_out) - draws.left_out
    influence = influence[~np.isnan(influence)]
    square = float((influence**2).sum())
    below = float(np.mean(defined < drop) + np.mean(defined == drop) / 2)
    bias = _normal.inv_cdf(min(max(below, 0.001), 0.999))
    skew = float((influence**3).sum()) / (6 * square**1.5) if square else 0.0
    tails = []
    for z in (_normal.inv_cdf(0.025), _normal.inv_cdf(0.975)):
        tails.append(_normal.cdf(bias + (bias + z) / (1 - skew * (bias + z))))
    corrected = np.quantile(defined, tails).tolist()
    return {
        "percentile": (low, high),
        "basic": (2 * drop - high, 2 * drop - low),
        "BCa": (corrected[0], corrected[1]),
        "expanded": draws.interval(0.95),
    }


@dataclass
class Tally:
    """Counts of intervals that exclude the true drop."""

    count: int = 0
    above: int = 0
    below: int = 0

    def add(self, ends: Interval, true: float) -> None:
        self.count += 1
        self.above += ends[0] > true
        self.below += ends[1] < true

    def __str__(self) -> str:
        covered = 1 - (self.above + self.below) / max(self.count, 1)
        return f"fails {self.above / max(self.count, 1):.3f}, covers {covered:.3f}"


NEAR_PERFECT: Mapping[str, tuple[World, tuple[Quality, Quality]]] = {
    "1 % missed, nothing else wrong": (HUNDRED, (MISSING, MISSING)),
    "1 % missed, 1 % jitter, 0.1 false an image": (HUNDRED, (NEARLY, NEARLY)),
    "1 % missed before, 3 % now": (HUNDRED, (MISSING, replace(MISSING, missed=0.03))),
    "ordinary, 3 even classes": (HUNDRED, (GOOD, GOOD)),
    "ordinary, 20 classes, most rare": (RARE, (GOOD, GOOD)),
}


def near_perfect(name: str, seeds: Sequence[int], resamples: int) -> dict[str, Tally]:
    """Return the rate at which each interval excludes the true drop of AP."""
    world, pair = NEAR_PERFECT[name]
    true = 0.0 if pair[0] == pair[1] else true_drop(world, pair)
    shares: dict[str, Tally] = {}
    for results, both in pairs(world, pair, seeds, resamples):
        first, second = (result.summary["AP"] for result in results)
        ends = every_interval(first - second, both[0].of("AP") - both[1].of("AP"))
        for kind, entry in ends.items():
            shares.setdefault(kind, Tally()).add(entry, true)
    return shares


def few(expected: float, seeds: Sequence[int], resamples: int) -> tuple[Tally, Tally]:
    """Return the rate at which the interval of APs excludes 0 without a change, by either rule.

    `expected` is the mean number of small objects. Without the rule every pair has a percentile
    interval; with it, only pairs of at least 20 small objects have one, which is expanded.
    """
    world = Sizes(100, (1.0, 1.0, 1.0), small=expected / 300)
    without, ruled = Tally(), Tally()
    for results, both in pairs(world, (GOOD, GOOD), seeds, resamples):
        drops = both[0].of("APs") - both[1].of("APs")
        if np.isnan(drops.drawn).all():
            continue
        without.add(Draws(drops.drawn).interval(0.95), 0.0)
        if int(results[0].ground_truth_counts("APs").sum()) >= 20:
            ruled.add(drops.interval(0.95), 0.0)
    return without, ruled


BAD = replace(GOOD, missed=0.3)
SMALLEST: Mapping[str, tuple[tuple[Quality, ...], tuple[Quality, ...]]] = {
    "three equal classes, no change": ((GOOD,) * 3, (GOOD,) * 3),
    "one of them falls": ((GOOD,) * 3, (BAD, GOOD, GOOD)),
    "the better two fall to the worst": ((BAD, GOOD, GOOD), (BAD,) * 3),
}


def smallest(name: str, seeds: Sequence[int], resamples: int) -> Tally:
    """Return the rate at which the percentile interval of the smallest class's AP excludes 0."""
    tally = Tally()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        truth = EVEN.truth(rng)
        tables = [_of_classes(truth, qualities, rng) for qualities in SMALLEST[name]]
        _, both = drawn(truth, tables, resamples, seed)
        before, after = (one.by_class["AP"].drawn.min(axis=0) for one in both)
        tally.add(Draws(before - after).interval(0.95), 0.0)
    return tally


def _of_classes(
    truth: GroundTruth, qualities: Sequence[Quality], rng: np.random.Generator
) -> Detections:
    """Return detections with a separate quality per class."""
    tables = [EVEN.detections(truth, quality, rng) for quality in qualities]
    kept = [table.label == label for label, table in enumerate(tables)]

    def column(name: str) -> NDArray[np.generic]:
        parts = zip(tables, kept, strict=True)
        return np.concatenate([getattr(table, name)[rows] for table, rows in parts])

    image, label, corners, score = map(column, ("image", "label", "corners", "score"))
    return Detections.from_arrays(
        image=image, label=label, boxes=corners, score=score
    ).reindex_like(truth)


SINGLE: Mapping[str, World] = {
    f"{images} images, {name}": replace(world, images=images)
    for name, world in (("3 classes", EVEN), ("20 classes, most rare", RARE))
    for images in (100, 400, 1600)
}


def single(name: str, seeds: Sequence[int], resamples: int) -> dict[str, Tally]:
    """Return the rate at which each interval of the AP of one detector excludes the true AP."""
    world = SINGLE[name]
    rng = np.random.default_rng(10**6)
    large = replace(world, images=20_000)
    truth = large.truth(rng)
    true = evaluate(truth, large.detections(truth, GOOD, rng), "coco").summary["AP"]
    shares: dict[str, Tally] = {}
    for (result,), (values,) in pairs(world, (GOOD,), seeds, resamples):
        ends = every_interval(result.summary["AP"], values.of("AP"))
        for kind, entry in ends.items():
            shares.setdefault(kind, Tally()).add(entry, true)
    return shares


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=["few", "near-perfect", "smallest", "single"])
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--resamples", type=int, default=500)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.pairs)
    warnings.simplefilter("ignore")
    if options.study == "near-perfect":
        for name in NEAR_PERFECT:
            for kind, tally in near_perfect(name, seeds, options.resamples).items():
                print(f"{name}; {kind}: {tally}", flush=True)
    elif options.study == "single":
        for name in SINGLE:
            for kind, tally in single(name, seeds, options.resamples).items():
                print(f"{name}; {kind}: {tally}", flush=True)
    elif options.study == "few":
        for expected in (2.4, 7, 21, 40):
            without, ruled = few(expected, seeds, options.resamples)
            print(f"{expected} small objects: {without}; {ruled.count} with the rule: {ruled}")
    else:
        for name in SMALLEST:
            print(f"{name}: {smallest(name, seeds, options.resamples)}", flush=True)


if __name__ == "__main__":
    main()
