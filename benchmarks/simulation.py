"""Simulate null pairs and real differences: error rate of gates, coverage of intervals.

A null pair is two detectors of the same quality whose errors are drawn independently. The quick
version runs in the test suite; this is the long one:

    python -m benchmarks.simulation --pairs 2000

With --power: how often a drop is detected that should be detected with 80 % power.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from detap import evaluate
from detap.analysis.bootstrap import Draws, Weights, draw_weights, leave_out, resampled
from detap.analysis.power import Criterion, images_needed
from detap.evaluation.results import Result
from detap.tables.detection import Detections, GroundTruth, encode_boxes

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Quality:
    """Quality of a simulated detector.

    `missed` is the fraction of missed objects, `jitter` the standard deviation of each edge as a
    fraction of the box, `false` the mean number of background boxes per image.
    """

    missed: float
    jitter: float
    false: float


@dataclass(frozen=True)
class World:
    """Number of images and frequency of each class."""

    images: int
    shares: tuple[float, ...]
    objects: float = 3.0

    def truth(self, rng: np.random.Generator) -> GroundTruth:
        image = np.repeat(np.arange(self.images), rng.poisson(self.objects, self.images))
        return GroundTruth.from_arrays(
            image=image,
            label=self.labels(rng, len(image)),
            boxes=boxes(rng, len(image)),
            box_format="xywh",
            images=range(self.images),
            classes=range(len(self.shares)),
        )

    def labels(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        share = np.array(self.shares)
        return rng.choice(len(share), count, p=share / share.sum()).astype(np.int64)

    def detections(
        self, truth: GroundTruth, quality: Quality, rng: np.random.Generator
    ) -> Detections:
        kept = np.flatnonzero(rng.random(len(truth)) >= quality.missed)
        box = truth.corners[kept]
        size = np.tile(box[:, 2:] - box[:, :2], 2)
        matched = box + rng.normal(0, quality.jitter, box.shape) * size
        matched[:, 2:] = np.maximum(matched[:, 2:], matched[:, :2] + 1)
        image = np.repeat(np.arange(self.images), rng.poisson(quality.false, self.images))
        stray, _ = encode_boxes(boxes(rng, len(image)), "xywh")
        return Detections.from_arrays(
            image=np.concatenate([truth.image[kept], image]),
            label=np.concatenate([truth.label[kept], self.labels(rng, len(image))]),
            boxes=np.concatenate([matched, stray]),
            score=np.concatenate([rng.beta(5, 2, len(kept)), rng.beta(2, 4, len(image))]),
        ).reindex_like(truth)


def boxes(rng: np.random.Generator, count: int) -> Floats:
    return np.hstack([rng.uniform(0, 1000, (count, 2)), rng.uniform(20, 150, (count, 2))])


EVEN = World(200, (1.0, 1.0, 1.0))
RARE = World(100, tuple(1 / rank**1.2 for rank in range(1, 21)))
GOOD, WORSE = Quality(0.2, 0.08, 2.0), Quality(0.35, 0.10, 2.5)


@dataclass(frozen=True)
class Trial:
    """Drop of AP between two detectors, with its interval."""

    drop: float
    low: float
    high: float


def trials(
    world: World, pair: tuple[Quality, Quality], seeds: Sequence[int], *, resamples: int
) -> Iterator[Trial]:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        truth = world.truth(rng)
        tables = [world.detections(truth, quality, rng) for quality in pair]
        yield trial(truth, tables, ("coco", "AP"), resamples, seed)


def trial(
    truth: GroundTruth,
    tables: Sequence[Detections],
    what: tuple[str, str],
    resamples: int,
    seed: int,
) -> Trial:
    protocol, name = what
    first, second = (evaluate(truth, table, protocol) for table in tables)
    weights = leave_out(draw_weights(len(truth.images), resamples, seed))
    before, after = (resampled(result, weights, [name]) for result in (first, second))
    drop = first.summary[name] - second.summary[name]
    return Trial(drop, *(before.of(name) - after.of(name)).interval(0.95))


def true_drop(world: World, pair: tuple[Quality, Quality], images: int = 20_000) -> float:
    """Return the drop on so many images that its standard error is small."""
    rng = np.random.default_rng(10**6)
    large = replace(world, images=images)
    truth = large.truth(rng)
    first, second = (
        evaluate(truth, large.detections(truth, quality, rng), "coco").summary["AP"]
        for quality in pair
    )
    return first - second


@dataclass(frozen=True)
class Pool:
    """Population of images with two detectors, whose true drop is known."""

    pair: tuple[Result, Result]
    name: str = "AP"

    @classmethod
    def of(cls, world: World, pair: tuple[Quality, Quality], images: int = 2000) -> "Pool":
        rng = np.random.default_rng(1)
        large = replace(world, images=images)
        truth = large.truth(rng)
        first, second = (
            evaluate(truth, large.detections(truth, quality, rng), "coco") for quality in pair
        )
        return cls((first, second))

    def drop(self, label: int | None = None) -> float:
        """Return the true drop, overall or of one class."""
        first, second = (
            result.metric(self.name)
            if label is None
            else float(result.metric_by_class(self.name)[label])
            for result in self.pair
        )
        return first - second

    def draw(
        self, images: int, samples: int, resamples: int, *, label: int | None = None, seed: int = 0
    ) -> list[Floats]:
        """Return the drops in resamples of samples of `count` images, as a gate computes them.

        A resample of a sample is also one of the pool, with other weights.
        """
        rng = np.random.default_rng(seed)
        size = len(self.pair[0].images)
        rows = []
        for _ in range(samples):
            sample = rng.integers(0, size, images)
            drawn = sample[rng.integers(0, images, (resamples, images))]
            weights = Weights.from_table(
                np.array([np.bincount(row, minlength=size) for row in drawn])
            )
            before, after = (resampled(result, weights, [self.name]) for result in self.pair)
            drops = before.of(self.name, label) - after.of(self.name, label)
            rows.append(drops.drawn)
        return rows


def named(samples: Sequence[Floats], criterion: Criterion) -> float:
    """Return the mean minimum detectable drop of the samples."""
    return float(
        np.mean([criterion.min_detectable_drop(criterion.error(drops)) for drops in samples])
    )


def detected_fraction(samples: Sequence[Floats], criterion: Criterion, limit: float = 0.0) -> float:
    """Return the fraction of samples whose interval of the drop is above a limit."""
    lows = [Draws(drops).interval(criterion.level)[0] for drops in samples]
    return sum(low > limit for low in lows) / len(lows)


LITTLE = Quality(0.26, 0.085, 2.2)
"""A little worse than GOOD."""


def power(world: World, label: int | None, samples: int, resamples: int) -> str:
    """Return the rate at which a drop is detected with the images that a pilot of 200 asks for."""
    pool, criterion = Pool.of(world, (GOOD, LITTLE)), Criterion()
    drop = pool.drop(label)
    smallest = named(pool.draw(200, 100, resamples, label=label, seed=1), criterion)
    images = images_needed(200, smallest, drop)
    assert images is not None
    shares = [
        detected_fraction(pool.draw(count, samples, resamples, label=label, seed=count), criterion)
        for count in (images, images // 2)
    ]
    return (
        f"true drop {drop:.4f}; 200 images tell {smallest:.4f}, so that it takes {images}: found "
        f"in {shares[0]:.3f} of {samples} samples (expected 0.800), with half as many in "
        f"{shares[1]:.3f} (expected 0.508)"
    )


def describe(name: str, results: Sequence[Trial], true: float) -> str:
    count = len(results)
    failed = sum(entry.low > true for entry in results)
    covered = sum(entry.low <= true <= entry.high for entry in results)
    error = sqrt(0.95 * 0.05 / count)
    return (
        f"{name}: true drop {true:.4f}; of {count} intervals at 95 % {covered / count:.3f} have it "
        f"inside (expected 0.950 +- {error:.3f}); the gate fails in {failed / count:.3f} "
        f"(expected 0.025 +- {sqrt(0.025 * 0.975 / count):.3f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--power", action="store_true")
    options = parser.parse_args()
    if options.power:
        for name, world, label in (
            ("AP of 3 even classes", EVEN, None),
            ("one of them", EVEN, 1),
            ("AP of 20 classes, most rare", RARE, None),
            ("the commonest of them", RARE, 0),
        ):
            print(f"{name}: {power(world, label, options.pairs, options.resamples)}")
        return
    seeds = range(options.pairs)
    for name, world, pair in (
        ("null pairs, 200 images, 3 even classes", EVEN, (GOOD, GOOD)),
        ("null pairs, 100 images, 20 classes, most rare", RARE, (GOOD, GOOD)),
        ("a worse detector, 200 images, 3 even classes", EVEN, (GOOD, WORSE)),
        ("a worse detector, 100 images, 20 classes, most rare", RARE, (GOOD, WORSE)),
    ):
        true = 0.0 if pair[0] == pair[1] else true_drop(world, pair)
        print(describe(name, list(trials(world, pair, seeds, resamples=options.resamples)), true))


if __name__ == "__main__":
    main()
