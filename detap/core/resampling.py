"""Numbers of resampled images: matches are made once, and summed again with weights.

A resample draws as many images as there are, with replacement; an image drawn twice counts twice,
with all its ground truths and detections. Whether a detection matches depends on its own image
alone, so a resample changes no match: it gives each image a weight, a small whole number, and
average precision is computed from weighted counts. That is exact, not an approximation: with
weights w the numbers are those of a data set in which each image occurs w times.

Axes: B resamples, I images, K classes, A area ranges, T thresholds, N detections, G ground truths,
Q measures.

References
----------
Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 6 and 13.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detap.core import _resampling
from detap.core.match_table import BitArray, MatchTable
from detap.core.params import recall_targets
from detap.core.threads import run_threads, thread_count

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

_HEAVIEST = 255
PARTS = 256
"""Into how many parts images are divided, to see how many of them make a difference."""


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """How often each image occurs in each resample.

    Attributes
    ----------
    blocks : (ceil(B / WIDTH), I, WIDTH) uint8
        Resample b is ``blocks[b // WIDTH, :, b % WIDTH]``.
    resamples : int
        B.
    left_out : int
        How many more follow that each leave out one part of the images; see :func:`leave_out`.
    """

    blocks: NDArray[np.uint8]
    resamples: int
    left_out: int = 0

    @property
    def columns(self) -> int:
        """How many weights there are for each image."""
        return self.resamples + self.left_out

    @property
    def heaviest(self) -> int:
        """The largest weight of all."""
        return int(self.blocks.max(initial=0))

    @classmethod
    def of(cls, table: NDArray[np.integer], left_out: int = 0) -> "Weights":
        """Return given weights.

        Parameters
        ----------
        table : (B, I) array of int
            From 0 to 255.
        left_out : int
            How many of the last rows leave out a part of the images.

        Raises
        ------
        ValueError
            Where a weight is beyond these.
        """
        resamples, images = table.shape
        if table.size and not 0 <= int(table.min()) <= int(table.max()) <= _HEAVIEST:
            raise ValueError(f"weights go from 0 to {_HEAVIEST}")
        width = _resampling.WIDTH
        blocks = np.zeros((-(-resamples // width), images, width), np.uint8)
        for b in range(resamples):
            blocks[b // width, :, b % width] = table[b]
        return cls(blocks, resamples - left_out, left_out)

    def table(self) -> NDArray[np.uint8]:
        """Return the weights as (B, I) uint8, followed by those that leave out a part."""
        flat = self.blocks.transpose(0, 2, 1).reshape(-1, self.blocks.shape[1])
        return np.ascontiguousarray(flat[: self.columns])


def draw_weights(images: int, resamples: int, seed: int) -> Weights:
    """Draw resamples of images.

    Image number ``(r >> 32) * I >> 32`` is drawn for each raw word r of numpy's PCG64, whose
    stream is the same in every version of numpy. An image's chance departs from 1 / I by less than
    2**-32.

    Parameters
    ----------
    images : int
        I, at least 1.
    resamples : int
        B.
    seed : int
        The same one gives the same resamples, whatever else happens.
    """
    width = _resampling.WIDTH
    stream = np.random.PCG64(seed)
    blocks = np.zeros((-(-resamples // width), images, width), np.uint8)
    for b in range(resamples):
        raw = np.asarray(stream.random_raw(images), np.uint64).reshape(images)
        if not _resampling.count_draws(raw, blocks[b // width], b % width):
            raise OverflowError(f"an image was drawn more than {_HEAVIEST} times")
    return Weights(blocks, resamples)


def leave_out(weights: Weights) -> Weights:
    """Return the same resamples, followed by all images but one part of them, for each part.

    Image i is in part ``i % G`` of G, as many as there are images, but at most :data:`PARTS`.
    """
    width, (_, images, _) = _resampling.WIDTH, weights.blocks.shape
    parts = min(images, PARTS)
    columns = weights.resamples + parts
    blocks = np.zeros((-(-columns // width), images, width), np.uint8)
    blocks[: len(weights.blocks)] = weights.blocks
    part = np.arange(images) % parts
    for g in range(parts):
        block, lane = divmod(weights.resamples + g, width)
        blocks[block, :, lane] = part != g
    return Weights(blocks, weights.resamples, parts)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One number of which resamples are wanted.

    Attributes
    ----------
    precision : bool
        Average precision; otherwise final recall.
    thresholds : tuple of int
        Indices; the number is the mean over these.
    area : int
        Index of the area range.
    limit : int
        Index of the detection limit; average precision is always at the last.
    """

    precision: bool
    thresholds: tuple[int, ...]
    area: int
    limit: int


def resample(
    match_table: MatchTable,
    weights: Weights,
    wanted: Sequence[Wanted],
    *,
    threads: int | None = None,
) -> Floats:
    """Return numbers of each class in each resample.

    Parameters
    ----------
    match_table : Evidence
        Of the detector.
    weights : Weights
        The resamples. For a paired comparison, the same for both detectors.
    wanted : sequence of Wanted
        Which numbers, Q of them.
    threads : int, optional
        The result does not depend on it.

    Returns
    -------
    (Q, K, B) float64
        With G more columns where the weights leave out parts.
        NaN where a class has no ground truth that counts in a resample. Sums are taken in another
        order than in plain evaluation: with all weights 1 they agree to 1e-12, not to the last
        bit; to 1e-8 for a trapezoid over levels of float32, which are taken to be evenly spaced.
    """
    out = np.full((len(wanted), match_table.classes, weights.columns), np.nan)
    for area in sorted({entry.area for entry in wanted}):
        here = [q for q, entry in enumerate(wanted) if entry.area == area]
        sums = _sums((match_table, weights), area, [wanted[q] for q in here], threads)
        for q, values in zip(here, sums, strict=True):
            out[q] = values / len(wanted[q].thresholds)
    return out


def detected_classes(match_table: MatchTable, weights: Weights) -> Flags:
    """Return of which classes there are detections in each resample, (K, B) bool."""
    found = np.zeros((match_table.classes, weights.columns), np.bool_)
    pairs = np.unique(match_table.label * np.int64(match_table.images) + match_table.image)
    label, image = np.divmod(pairs, max(match_table.images, 1))
    for k in np.unique(label).tolist():
        drawn = weights.blocks[:, image[label == k]].any(axis=1)
        found[k] = drawn.reshape(-1)[: weights.columns]
    return found


def _sums(
    what: tuple[MatchTable, Weights],
    area: int,
    wanted: Sequence[Wanted],
    threads: int | None,
) -> list[Floats]:
    """Return, for numbers of one area range, the sum over their thresholds, (K, B) float64."""
    match_table, weights = what
    ranking, positive = match_table.ranking, match_table.positive[area]
    shape = (match_table.classes, weights.columns)
    precisions = [entry for entry in wanted if entry.precision]
    recalls = [entry for entry in wanted if not entry.precision]
    precision_out = np.full((len(precisions), *shape), np.nan)
    recall_out = np.full((len(recalls), *shape), np.nan)
    # The thresholds in use are the bits of a word, so there are at most 64; protocols see to it.
    used = sorted({t for entry in wanted for t in entry.thresholds})
    resampler = _resampling.Resampler(
        image=match_table.image[ranking.rows],
        start=ranking.start,
        max_dets_index=match_table.max_dets_index[ranking.rows],
        tp=_gathered(match_table.true_positive[area][ranking.rows], used),
        ignored=_gathered(match_table.ignored[area][ranking.rows], used),
        truth_image=match_table.truth_image[positive],
        truth_label=match_table.truth_label[positive],
        weights=weights.blocks,
        max_weight=weights.heaviest,
        thresholds=len(used),
        targets=recall_targets(
            np.array(match_table.params.levels, np.float64), match_table.params.summing
        ),
        trapezoid=match_table.params.summing == "trapezoid",
        precision_eps=match_table.params.precision_eps,
        precision_bits=_bits(precisions, used),
        recall_bits=_bits(recalls, used),
        recall_max_dets=np.array([entry.limit for entry in recalls], np.uint8),
        precision_out=precision_out,
        recall_out=recall_out,
    )
    work = len(match_table) * weights.columns // 100
    run_threads(resampler.work, threads or thread_count(work))
    sums = {True: iter(precision_out), False: iter(recall_out)}
    return [next(sums[entry.precision]) for entry in wanted]


def _gathered(words: BitArray, used: Sequence[int]) -> NDArray[np.uint64]:
    """Return the bits of the thresholds in use side by side."""
    wide = words.astype(np.uint64)
    if list(used) == list(range(len(used))):
        return wide & np.uint64((1 << len(used)) - 1)
    out = np.zeros(len(wide), np.uint64)
    for place, t in enumerate(used):
        out |= ((wide >> np.uint64(t)) & np.uint64(1)) << np.uint64(place)
    return out


def _bits(wanted: Sequence[Wanted], used: Sequence[int]) -> NDArray[np.uint64]:
    words = [sum(1 << used.index(t) for t in entry.thresholds) for entry in wanted]
    return np.array(words, np.uint64)
