"""Interpolated precision stored without repetitions equals the dense array, values and means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.core import interpolated
from detap.core.curves import interpolated_precision
from detap.core.interpolated import Interpolated
from detap.core.params import SUMMINGS, MatchParams, Summing
from detap.protocols import protocol
from tests.parity.compare import assert_same_bits

GRIDS = {
    "coco": protocol("coco").recall_levels,
    "voc2007": tuple(np.linspace(0, 1, 11).tolist()),
    "uneven": (0.0, 0.01, 0.5, 0.5000001, 1.0),
    "one": (0.0,),
    "none": (),
}


def params_of(levels: tuple[float, ...], summing: Summing, thresholds: int) -> MatchParams:
    return MatchParams(
        thresholds=(0.5,) * thresholds,
        strict=False,
        best_unmatched=True,
        last_of_equal=True,
        area_ranges=((0.0, 1e10), (0.0, 100.0)),
        max_dets=(None,),
        ties_by_image=True,
        levels=levels,
        summing=summing,
        precision_eps=0.0,
        inclusive_pixels=False,
    )


def both(seed: int, classes: int, protocol: MatchParams) -> tuple[Interpolated, np.ndarray]:
    """Return random curves in compact form and as a dense array (T, R, K, A)."""
    rng = np.random.default_rng(seed)
    truths = rng.integers(0, 4, classes) ** rng.integers(0, 5, classes)
    positives = np.array([truths, rng.integers(0, truths + 1)])
    kept = Interpolated.undefined(protocol, truths, positives, 1)
    levels = np.array(protocol.levels)
    dense = np.full((len(protocol.thresholds), len(levels), classes, 2), np.nan)
    for k, a in zip(*np.nonzero(positives.T), strict=True):
        for t in range(len(protocol.thresholds)):
            hits = np.sort(rng.integers(0, 50, rng.integers(0, positives[a, k] + 1)))
            precision = interpolated_precision(
                hits.astype(np.int32), positives[a, k], levels, summing=protocol.summing
            )
            kept.write(k, a, t, precision)
            dense[t, :, k, a] = precision
    return kept, dense


def check(kept: Interpolated, dense: np.ndarray, some: np.ndarray) -> None:
    assert_same_bits(kept.dense()[..., 0], dense, "precision")
    for area, rows in ((0, slice(None)), (1, slice(None)), (0, slice(0, 1))):
        block = dense[rows, :, :, area]
        chosen = np.flatnonzero(some)
        assert_same_bits(kept.at(area, rows, chosen), block[:, :, some].swapaxes(1, 2), "at")
        chosen = np.flatnonzero((kept.positives[area] > 0) & some)
        defined = block[:, :, chosen].ravel()
        expected = np.mean(defined) if defined.size else np.nan
        assert_same_bits(kept.mean(area, rows, chosen), expected, "mean")


@given(
    st.integers(0, 1 << 32),
    st.integers(1, 30),
    st.sampled_from([*GRIDS]),
    st.sampled_from(SUMMINGS),
    st.integers(1, 3),
)
def test_values_equal_the_dense_array(
    seed: int, classes: int, grid: str, summing: Summing, thresholds: int
) -> None:
    kept, dense = both(seed, classes, params_of(GRIDS[grid], summing, thresholds))
    some = np.random.default_rng(seed).random(classes) < 0.7
    check(kept, dense, some)
    labels = np.flatnonzero(some)[::-1].tolist()
    part = kept.select_classes(labels)
    assert_same_bits(part.dense()[..., 0], dense[:, :, labels], "some classes")
    again = Interpolated.concatenate([part, kept])
    assert_same_bits(
        again.dense()[..., 0], np.concatenate([dense[:, :, labels], dense], axis=2), ""
    )
    of_class = np.arange(classes) / classes
    filled = dense.copy()  # of all areas, which come first
    filled[..., 0] = np.where(np.isnan(dense[..., 0]), of_class, dense[..., 0])
    assert_same_bits(kept.fill_undefined(of_class).dense()[..., 0], filled, "filled")


@pytest.mark.parametrize("classes", [79, 1203, 2001])
def test_means_in_blocks_equal_numpy_mean(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, dense = both(classes, classes, params_of(GRIDS["coco"], "pairwise", 3))
    for block in (128, 5000, 1 << 20):
        monkeypatch.setattr(interpolated, "_BLOCK", block)
        check(kept, dense, np.ones(classes, np.bool_))
