"""Losses against direct implementations of their definitions and against each other."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from detap.core import curves
from detap.errors import UsageError
from detap.ranking import losses

Step = Callable[[float], float]

SMOOTH: list[tuple[str, Any, dict[str, Any]]] = [
    ("smooth", losses.smooth_ap_loss, {"tau": 0.1}),
    ("sup", losses.sup_ap_loss, {"tau": 0.05, "offset": None}),
    ("quantized", losses.quantized_ap_loss, {}),
    ("quantized, 5 bins", losses.quantized_ap_loss, {"bins": 5, "low": -0.5, "high": 0.7}),
    ("tie-aware", losses.quantized_ap_loss, {"form": "tie-aware"}),
    ("tie-aware, simple", losses.quantized_ap_loss, {"form": "tie-aware-simple"}),
    ("fast", losses.fast_ap_loss, {}),
    ("calibration", losses.calibration_loss, {}),
    ("roadmap", losses.roadmap_loss, {"tau": 0.05, "weight": 0.3}),
]


def by_pairs(scores: Any, relevant: Any, up: Step, down: Step) -> Any:
    """Return 1 - mean of rank+ / (rank+ + rank-), item by item."""
    terms = []
    for k in range(len(scores)):
        if not relevant[k]:
            continue
        others = [j for j in range(len(scores)) if j != k]
        above = 1 + sum(up(scores[j] - scores[k]) for j in others if relevant[j])
        wrong = sum(down(scores[j] - scores[k]) for j in others if not relevant[j])
        terms.append(above / (above + wrong))
    return 1 - sum(terms) / len(terms)


def heaviside(t: float) -> float:
    return float(t >= 0)


def sigmoid(tau: float) -> Step:
    return lambda t: 1 / (1 + math.exp(-t / tau))


def sup_step(t: float) -> float:
    if t <= 0:
        return sigmoid(0.01)(t)
    return 0.5 + sigmoid(0.01)(t) if t <= 0.05 else 100 * (t - 0.05) + 1.44


def by_bins(scores: Any, relevant: Any, bins: int, form: str) -> Any:
    """Return 1 - the quantized AP on [-1, 1] of one query."""
    width = 2 / (bins - 1)
    centers = 1 - np.arange(bins) * width
    weight = np.clip(1 - abs(scores[:, None] - centers) / width, 0, None)
    every, relevant_weight = weight.sum(axis=0), weight[relevant].sum(axis=0)
    total, hits = every.cumsum(), relevant_weight.cumsum()
    if form == "plain":
        terms = hits / (total + 1e-16) * relevant_weight
    elif form == "tie-aware-simple":
        terms = relevant_weight * (2 * hits - relevant_weight + 1) / (2 * total - every + 1)
    else:
        before, hits_before = total - every, hits - relevant_weight
        ratio = np.clip(relevant_weight - 1, 0, None) / (np.clip(every - 1, 0, None) + 1e-8)
        log = np.log((total + 1) / (before + 1))
        inner = every * ratio + (hits_before + 1 - ratio * (before + 1)) * log
        terms = relevant_weight * inner / (every + 1e-8)
    return 1 - terms.sum() / relevant.sum()


def random_case(seed: int, queries: int = 4, items: int = 12) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    relevant = random.random((queries, items)) < 0.4
    relevant[:, 0] = True
    return random.uniform(-0.95, 0.95, (queries, items)), relevant


@pytest.mark.parametrize("seed", range(5))
def test_losses_equal_their_definitions(seed: int) -> None:
    scores, relevant = random_case(seed)
    cases = [
        (losses.ap_loss(scores, relevant), (heaviside, heaviside)),
        (losses.smooth_ap_loss(scores, relevant), (sigmoid(0.01), sigmoid(0.01))),
        (losses.sup_ap_loss(scores, relevant), (heaviside, sup_step)),
    ]
    for result, steps in cases:
        expected = [by_pairs(s, r, *steps) for s, r in zip(scores, relevant, strict=True)]
        assert result.value == pytest.approx(expected, abs=1e-12)
    for bins, form in product((20, 11, 2), ("plain", "tie-aware", "tie-aware-simple")):
        expected = [by_bins(s, r, bins, form) for s, r in zip(scores, relevant, strict=True)]
        result = losses.quantized_ap_loss(scores, relevant, bins=bins, form=form)
        assert result.value == pytest.approx(expected, abs=1e-12)
        if (bins, form) == (11, "plain"):
            assert losses.fast_ap_loss(scores, relevant).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_ap_loss_is_one_minus_the_ap_of_the_curve(seed: int) -> None:
    scores, relevant = random_case(seed)
    for s, r, value in zip(scores, relevant, losses.ap_loss(scores, relevant).value, strict=True):
        hits = curves.hits_of(r[np.argsort(-s)])
        assert 1 - curves.average_precision(hits, len(hits), interpolated=False) == (
            pytest.approx(value, abs=1e-15)
        )


@pytest.mark.parametrize(
    ("loss", "parameters"), [row[1:] for row in SMOOTH], ids=[r[0] for r in SMOOTH]
)
@pytest.mark.parametrize("seed", range(3))
def test_gradients_equal_finite_differences(
    loss: Any, parameters: dict[str, Any], seed: int
) -> None:
    scores, relevant = random_case(seed)
    step = 1e-6
    expected = np.zeros_like(scores)
    for item in range(scores.shape[1]):
        moved = np.zeros_like(scores)
        moved[:, item] = step
        ends = [loss(scores + sign * moved, relevant, **parameters).value for sign in (1, -1)]
        expected[:, item] = (ends[0] - ends[1]) / (2 * step)
    assert loss(scores, relevant, **parameters).gradient == pytest.approx(
        expected, abs=2e-8, rel=1e-6
    )


def test_a_gradient_with_equal_scores_of_relevant_items() -> None:
    """Two relevant items of equal score and an irrelevant one below, by hand.

    SmoothAP with tau 1, scores 0, 0 and -ln 3: sigmoid 1/2 between the equal scores and 1/4 for the
    lower one. rank+ = 3/2, rank- = 1/4, precision 6/7 for both. The derivative of AP by the low
    score is -2 (1/2) (3/2) (3/16) / (7/4)^2 = -9/98.
    """
    result = losses.smooth_ap_loss([0.0, 0.0, -math.log(3)], [1, 1, 0], tau=1.0)
    assert result.value == pytest.approx(1 / 7)
    assert result.gradient[2] == pytest.approx(9 / 98)
    assert result.gradient.sum() == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("bins", [3, 5, 11, 21])
def test_the_gradient_at_the_center_of_a_bin_is_zero(bins: int) -> None:
    result = losses.quantized_ap_loss([0.0, 0.123], [1, 0], bins=bins)
    assert result.gradient[0] == 0


@pytest.mark.parametrize("bins", [3, 5, 11, 20, 21])
def test_the_gradient_next_to_the_center_of_a_bin_is_one_sided(bins: int) -> None:
    centre = 1 - (bins // 3) * (2 / (bins - 1))
    for side in (1e-15, -1e-15):
        at, near = ([centre + k * side, 0.123] for k in (4, 1e9))
        one = losses.quantized_ap_loss(at, [1, 0], bins=bins).gradient
        two = losses.quantized_ap_loss(near, [1, 0], bins=bins).gradient
        assert one == pytest.approx(two, abs=1e-3)


@st.composite
def ranked(draw: st.DrawFn, extreme: bool = False) -> tuple[NDArray[np.float64], Any]:
    count = draw(st.integers(1, 12))
    far = st.floats(allow_nan=False, allow_infinity=False)
    # Few values, so that many are equal; neighbours, so that differences are the smallest.
    near = st.sampled_from((0.0, -0.0, 0.5, np.nextafter(0.5, 1), 0.51, 0.55, 0.550001, -0.3))
    scores = draw(st.lists(far if extreme else near, min_size=count, max_size=count))
    return np.array(scores), draw(st.lists(st.booleans(), min_size=count, max_size=count))


@given(ranked(), st.sampled_from((0.01, 0.5, 1e-9)), st.sampled_from((1.44, None)))
def test_sup_ap_is_an_upper_bound(case: Any, tau: float, offset: float | None) -> None:
    bound = losses.sup_ap_loss(*case, tau=tau, offset=offset).value
    exact = losses.ap_loss(*case).value
    assert np.isnan(bound) == np.isnan(exact) == (not any(case[1]))
    assert np.isnan(bound) or bound >= exact - 1e-15


def test_the_published_step_at_a_tie_is_not_an_upper_bound() -> None:
    """With 1/2 at t = 0 the loss is 1 - 1/(1 + 1/2), below the AP loss 1 - 1/2."""
    scores, relevant = [0.5, 0.5], [1, 0]
    assert losses.ap_loss(scores, relevant).value == 1 / 2
    assert losses.sup_ap_loss(scores, relevant).value == 1 / 2
    assert losses.sup_ap_loss(scores, relevant, tie=0.5).value == pytest.approx(1 / 3)


@given(ranked(extreme=True))
def test_extreme_scores_give_finite_losses_and_gradients(case: Any) -> None:
    scores, relevant = case
    for _, loss, parameters in SMOOTH:
        with np.errstate(over="ignore"):  # calibration: the largest float less another
            result = loss(scores, relevant, **parameters)
        assert np.isfinite(result.gradient).all()
        if any(relevant) and loss not in (losses.calibration_loss, losses.roadmap_loss):
            assert -1e-7 <= result.value <= 1 + 1e-7


@given(ranked(), st.integers(0, 3))
def test_a_query_does_not_depend_on_the_batch(case: Any, index: int) -> None:
    scores, relevant = case
    others = random_case(7, queries=3, items=len(scores))
    many = (
        np.insert(others[0], index, scores, axis=0),
        np.insert(others[1], index, relevant, axis=0),
    )
    for _, loss, parameters in SMOOTH:
        alone, among = loss(scores, relevant, **parameters), loss(*many, **parameters)
        assert among.value[index] == pytest.approx(alone.value, abs=1e-12, nan_ok=True)
        assert among.gradient[index] == pytest.approx(alone.gradient, abs=1e-9)


def test_the_offset_that_makes_the_step_of_sup_ap_continuous() -> None:
    """By hand: tau 1, delta ln 3, a difference of delta + 0.01 and rho 100.

    The offset is 1/2 + sigmoid(ln 3) = 5/4 and rank- is 1 + 5/4, so the loss is
    1 - 1 / (1 + 9/4) = 9/13.
    """
    delta = math.log(3)
    result = losses.sup_ap_loss([0.0, delta + 0.01], [1, 0], tau=1.0, delta=delta, offset=None)
    assert result.value == pytest.approx(9 / 13)


def test_the_calibration_loss_is_a_sum_of_means() -> None:
    """By hand: 0.9 - 0.5 for one relevant item, and the mean of 0.8 - 0.6 and 0 for the others."""
    result = losses.calibration_loss([0.5, 0.8, 0.1], [1, 0, 0])
    assert result.value == pytest.approx(0.4 + 0.1)
    assert result.gradient.tolist() == [-1, 1 / 2, 0]


def test_a_query_without_relevant_items() -> None:
    for _, loss, parameters in SMOOTH:
        result = loss([0.1, 0.9], [0, 0], **parameters)
        if loss is losses.calibration_loss:
            assert result.value == pytest.approx(0.15)  # .9 exceeds .6 by .3, of two
            continue
        assert np.isnan(result.value)
        assert result.gradient.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses.ap_loss([[1.0, 2.0]], [1, 0]), "scores have shape"),
        (lambda: losses.ap_loss([1.0, np.nan], [1, 0]), "score nan is not a finite number"),
        (lambda: losses.smooth_ap_loss([1.0], [1], tau=0), "tau 0 is not a finite number above 0"),
        (
            lambda: losses.sup_ap_loss([1.0], [1], rho=-1),
            "rho -1 is not a finite number of at least 0",
        ),
        (
            lambda: losses.quantized_ap_loss([1.0], [1], bins=1),
            "at least 2 bin centers are required, not 1",
        ),
        (
            lambda: losses.quantized_ap_loss([1.0], [1], low=1),
            "low 1 and high 1.0 are not finite and asc",
        ),
        (lambda: losses.quantized_ap_loss([1.0], [1], form="x"), "form 'x' is unknown; choose"),
        (lambda: losses.roadmap_loss([1.0], [1], weight=2), r"weight 2 is outside \[0, 1\]"),
        (lambda: losses.decomposability_gap([1.0], [1], [0, 1]), "batch has shape"),
    ],
)
def test_invalid_arguments_are_rejected(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


# --- the decomposability gap


@st.composite
def batches(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """Draw batches that each rank their relevant items first."""
    count = draw(st.integers(1, 4))
    sizes = [(draw(st.integers(0, 4)), draw(st.integers(0, 4))) for _ in range(count)]
    scores, relevant, batch = [], [], []
    for number, (positives, negatives) in enumerate(sizes):
        size = positives + negatives
        values = draw(st.lists(st.integers(-20, 20), min_size=size, max_size=size, unique=True))
        scores += [v / 10 for v in sorted(values, reverse=True)]
        relevant += [True] * positives + [False] * negatives
        batch += [number] * size
    return np.array(scores), np.array(relevant, bool), np.array(batch, int)


@given(batches())
def test_the_gap_of_perfectly_ranked_batches_is_within_its_bounds(case: Any) -> None:
    _, relevant, batch = case
    gap = losses.decomposability_gap(*case)
    if not relevant.any():
        assert np.isnan(gap.gap)
        return
    assert gap.applies
    assert -1e-12 <= gap.gap <= gap.worst_bound + 1e-12
    counts = {(int(relevant[batch == b].sum()), int((batch == b).sum())) for b in set(batch)}
    if len(counts) == 1:  # batches of one make-up: their order makes no difference
        assert gap.worst_bound == pytest.approx(gap.bound)


@given(batches(), st.floats(0.01, 1))
def test_calibrated_batches_of_equal_composition_are_within_the_bound(
    case: Any, beta: float
) -> None:
    scores, relevant, batch = case
    sizes = {(int(relevant[batch == b].sum()), int((batch == b).sum())) for b in set(batch)}
    if len(sizes) != 1 or not relevant.any():
        return
    # Calibrated: what is relevant is above alpha, the rest below beta <= alpha.
    scores = np.where(relevant, beta + 1 + np.abs(scores), -np.abs(scores))
    gap = losses.decomposability_gap(scores, relevant, batch, alpha=beta, beta=beta)
    assert gap.calibrated_bound == pytest.approx(0, abs=1e-12)
    assert gap.gap == pytest.approx(0, abs=1e-12)


def test_the_published_bounds_do_not_hold_everywhere() -> None:
    """Two counterexamples, by hand.

    Neither batch perfect: relevant items at scores 3 and 1, others at 2 (with 1) and 0 (with 3).
    Batch APs 1/2 and 1, AP over all (1 + 2/3)/2: the gap is 3/4 - 5/6 = -1/12.
    Batches of unequal composition: a single relevant item, scored below a batch of one relevant and
    ten others. In the order of the formula the bound is 0, the gap 1 - (1 + 2/12)/2 = 5/12.
    """
    gap = losses.decomposability_gap([2.0, 1.0, 3.0, 0.0], [0, 1, 1, 0], [0, 0, 1, 1])
    assert gap.gap == pytest.approx(-1 / 12)
    assert not gap.applies
    scores = [0.0, 99.0, *range(1, 11)]
    gap = losses.decomposability_gap(scores, [1, 1, *([0] * 10)], [0, *([1] * 11)])
    assert gap.applies
    assert gap.gap == pytest.approx(5 / 12)
    assert gap.bound == 0
    assert gap.worst_bound == pytest.approx(5 / 12)


def test_the_bounds_equal_their_formulas() -> None:
    """Batches of (2 relevant, 1 not) and (1, 2), by hand.

    Without calibration: 1 - (1 + 1 + 3/(3 + 1))/3. With alpha .5 and beta .4: of batch 1 one
    relevant item is above alpha, its other item above beta; of batch 2 the relevant one is. The
    sure ones: 1/1, then 2/(2 + 1). The unsure one of batch 1: (1 + 1)/(1 + 1 + 0). In all
    1 - (1 + 2/3 + 1)/3.
    """
    scores = [0.9, 0.3, 0.45, 0.8, 0.1, 0.2]
    gap = losses.decomposability_gap(
        scores, [1, 1, 0, 1, 0, 0], [0, 0, 0, 1, 1, 1], alpha=0.5, beta=0.4
    )
    assert gap.bound == pytest.approx(1 - (1 + 1 + 3 / 4) / 3)
    assert gap.calibrated_bound == pytest.approx(1 - (1 + 2 / 3 + 1) / 3)
