"""Jackknife weights: each leaves out one part of the images."""

import numpy as np

from detap.core.resampling import MAX_PARTS, Weights, draw_weights, leave_out


def test_each_image_is_left_out_after_the_resamples() -> None:
    """Of 70 weights the first 67 are resamples: those that leave out fill a second block."""
    resamples = draw_weights(3, 67, seed=1)
    weights = leave_out(resamples)
    assert (weights.resamples, weights.left_out, weights.columns) == (67, 3, 70)
    table = weights.table()
    assert (table[:67] == resamples.table()).all()
    assert table[67:].tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_a_block_of_resamples_is_continued_in_the_next() -> None:
    ones = np.ones((63, 4), np.uint8)
    weights = leave_out(Weights.from_table(ones))
    assert weights.blocks.shape == (2, 4, 64)
    assert weights.table().tolist() == [*ones.tolist(), *(1 - np.eye(4)).tolist()]


def test_many_images_are_left_out_in_parts() -> None:
    images = MAX_PARTS + 2
    weights = leave_out(draw_weights(images, 1, seed=1))
    left_out = [np.flatnonzero(row == 0).tolist() for row in weights.table()[1:]]
    assert left_out == [[0, 256], [1, 257], *([image] for image in range(2, 256))]
