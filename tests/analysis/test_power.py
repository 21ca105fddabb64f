"""Power analysis against tables of the normal distribution and against simulation.

The simulation draws samples of images from a pool of 2,000 with two detectors, whose drop is
therefore known, and computes each sample's interval as a gate does. The seeds are fixed, so the
tests do not fail by chance; the bounds are 3.5 standard errors of a fraction.
"""

from math import isnan, sqrt

import numpy as np
import pytest

from benchmarks.simulation import (
    EVEN,
    GOOD,
    LITTLE,
    RARE,
    WORSE,
    Pool,
    World,
    detected_fraction,
    named,
)
from detap import evaluate
from detap.analysis.bootstrap import standard_error
from detap.analysis.comparison import compare
from detap.analysis.power import (
    Criterion,
    DetectableDrop,
    images_needed,
    power_analysis,
)
from tests.depth import sampled

SAMPLES, RESAMPLES = sampled(240), 150


def test_the_min_detectable_drop_follows_the_normal_tables() -> None:
    # Two-sided 5 % and a power of 80 %: 1.959964 + 0.841621 standard errors.
    assert Criterion().min_detectable_drop(1.0) == pytest.approx(2.801585, abs=1e-6)
    assert Criterion().min_detectable_drop(0.01) == pytest.approx(0.02801585, abs=1e-8)
    # 90 % in both: 1.644854 + 1.281552.
    assert Criterion(0.9, power=0.9).min_detectable_drop(1.0) == pytest.approx(2.926405, abs=1e-6)
    assert Criterion().margin(1.0) == pytest.approx(0.841621, abs=1e-6)


def test_the_standard_error_is_the_deviation_of_the_resamples() -> None:
    # 1, 2, 3, 4: squares about 2.5 sum to 5, over 3.
    spread = np.array([1, np.nan, 2, 3, 4.0])
    assert standard_error(spread) == pytest.approx(sqrt(5 / 3))
    assert Criterion().error(spread) == pytest.approx(sqrt(5 / 3))
    assert Criterion(paired=False).error(spread) == pytest.approx(sqrt(10 / 3))


@pytest.mark.parametrize("spread", [[], [0.5], [np.nan] * 3, [0.25] * 9, [0.1, 0.1 + 1e-16]])
def test_equal_resamples_have_no_detectable_drop(spread: list[float]) -> None:
    assert isnan(standard_error(np.array(spread)))
    reach = DetectableDrop.of("AP", np.array(spread), 9, Criterion(drop=0.1), limit=0.01)
    assert isnan(reach.min_detectable_drop)
    assert reach.images_needed is None
    assert not reach.is_underpowered


def test_half_the_drop_takes_four_times_the_images() -> None:
    assert images_needed(500, 0.02, 0.02) == 500
    assert images_needed(500, 0.02, 0.01) == 2000
    assert images_needed(500, 0.02, 0.0151) == 878  # 500 (200 / 151)^2 = 877.15
    assert images_needed(500, 0.02, 0) is None
    assert images_needed(500, 0.02, None) is None


def test_the_drop_failing_a_gate_is_its_limit_plus_the_detectable_drop() -> None:
    spread = np.array([-0.01, 0.01])  # a deviation of .01 sqrt(2)
    error = 0.01 * sqrt(2)
    by_interval = DetectableDrop.of("AP", spread, 100, Criterion(), limit=0.005)
    assert by_interval.min_detectable_drop == pytest.approx(2.801585 * error, rel=1e-6)
    assert by_interval.drop_failing_gate == pytest.approx(0.005 + 2.801585 * error, rel=1e-6)
    assert by_interval.images_needed == 6280  # 100 (.0396204 / .005)^2 = 6279.1
    assert by_interval.is_underpowered
    as_it_is = DetectableDrop.of("AP", spread, 100, Criterion(), limit=0.005, by_interval=False)
    assert as_it_is.drop_failing_gate == pytest.approx(0.005 + 0.841621 * error, rel=1e-6)
    assert not DetectableDrop.of("AP", spread, 100, Criterion(), limit=0.04).is_underpowered
    assert not DetectableDrop.of(
        "AP", spread, 100, Criterion(), limit=0.0
    ).is_underpowered  # names no size
    wished = DetectableDrop.of("AP", spread, 100, Criterion(drop=0.01), limit=0.005)
    assert wished.images_needed == 1570  # 1569.8


def near(share: float, expected: float, least: float = 0.0) -> bool:
    """Return True if a fraction is within 3.5 standard errors plus `least` of the expected one."""
    return abs(share - expected) <= 3.5 * sqrt(expected * (1 - expected) / SAMPLES) + least


@pytest.mark.parametrize(
    ("world", "label", "extra"),
    [(EVEN, None, 0.0), (EVEN, 1, 0.0), (RARE, None, 0.05)],
    ids=["mean", "class", "rare classes"],
)
def test_a_drop_is_detected_with_the_stated_power(
    world: World, label: int | None, extra: float
) -> None:
    """A pilot of 200 images gives the images needed; with so many, 80 % of samples detect it.

    For classes of two or three objects, a sample's drop is on average larger than the true one
    (0.060 for 0.057), so it is detected slightly more often.
    """
    pool, criterion = Pool.of(world, (GOOD, LITTLE)), Criterion()
    drop = pool.drop(label)
    pilot = pool.draw(200, 30, RESAMPLES, label=label, seed=1)
    images = images_needed(200, named(pilot, criterion), drop)
    assert images is not None
    samples = pool.draw(images, SAMPLES, RESAMPLES, label=label, seed=2)
    # There the drop is the one that is named.
    assert named(samples, criterion) == pytest.approx(drop, rel=0.05 + extra)
    assert near(detected_fraction(samples, criterion), 0.8, extra)
    # With half as many it is found in 51 %: z is 2.8016 / sqrt(2) - 1.9600 = 0.0211.
    fewer = pool.draw(images // 2, SAMPLES, RESAMPLES, label=label, seed=3)
    assert near(detected_fraction(fewer, criterion), 0.508, 0.03 + extra)


def test_a_gate_with_a_limit_fails_with_the_stated_power() -> None:
    """If the true drop is the limit plus the minimum detectable drop, 80 % of gates fail."""
    pool, criterion = Pool.of(EVEN, (GOOD, WORSE)), Criterion()
    samples = pool.draw(200, SAMPLES, RESAMPLES, seed=4)
    limit = pool.drop() - named(samples, criterion)
    assert limit > 0.05
    assert near(detected_fraction(samples, criterion, limit), 0.8)


def test_four_times_the_images_detect_half_the_drop() -> None:
    pool, criterion = Pool.of(EVEN, (GOOD, LITTLE)), Criterion()
    few, many = (named(pool.draw(n, 30, 200, seed=n), criterion) for n in (150, 600))
    assert few / many == pytest.approx(2, rel=0.05)


def test_a_comparison_has_power_overall_and_by_class() -> None:
    rng = np.random.default_rng(0)
    truth = EVEN.truth(rng)
    first, second = (
        evaluate(truth, EVEN.detections(truth, quality, rng), "coco") for quality in (GOOD, WORSE)
    )
    comparison = compare(first, second, resamples=200, seed=3, min_ground_truths=0)
    power = power_analysis(comparison, 0.01)
    assert power is not None
    assert [reach.name for reach in power.metrics] == list(first.summary)
    assert [reach.name for reach in power.classes] == ["class:0.AP", "class:1.AP", "class:2.AP"]
    assert [reach.ground_truths for reach in power.classes] == first.ground_truths.tolist()
    headline = power.metrics[0]
    assert comparison.resamples is not None
    before, after = (one.of("AP").drawn for one in comparison.resamples[:2])
    expected = 2.801585 * np.std(before - after, ddof=1)
    assert headline.min_detectable_drop == pytest.approx(expected, rel=1e-6)
    assert headline.units == 200
    # A class is a third of what the mean is made of: it shows less.
    assert all(reach.min_detectable_drop > headline.min_detectable_drop for reach in power.classes)
    assert power_analysis(compare(first, second, resamples=0)) is None


def test_correlated_detectors_detect_smaller_drops() -> None:
    rng = np.random.default_rng(0)
    truth = EVEN.truth(rng)
    detections = EVEN.detections(truth, GOOD, rng)
    fewer = detections.select(np.flatnonzero(rng.random(len(detections)) < 0.9))
    comparison = compare(
        *(evaluate(truth, one, "coco") for one in (detections, fewer)), resamples=200
    )
    assert comparison.resamples is not None
    before, after = (one.of("AP").drawn for one in comparison.resamples[:2])
    alone, both = Criterion(paired=False), Criterion()
    assert alone.error(before) > 2 * both.error(before - after)
