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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from detap.core import _resampling
from detap.core.threads import share, thread_count

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]

_HEAVIEST = 255


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """How often each image occurs in each resample.

    Attributes
    ----------
    blocks : (ceil(B / WIDTH), I, WIDTH) uint8
        Resample b is ``blocks[b // WIDTH, :, b % WIDTH]``.
    resamples : int
        B.
    """

    blocks: NDArray[np.uint8]
    resamples: int

    @property
    def heaviest(self) -> int:
        """The largest weight of all."""
        return int(self.blocks.max(initial=0))

    @classmethod
    def of(cls, table: NDArray[np.integer]) -> "Weights":
        """Return given weights.

        Parameters
        ----------
        table : (B, I) array of int
            From 0 to 255.

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
        return cls(blocks, resamples)

    def table(self) -> NDArray[np.uint8]:
        """Return the weights as (B, I) uint8."""
        flat = self.blocks.transpose(0, 2, 1).reshape(-1, self.blocks.shape[1])
        return np.ascontiguousarray(flat[: self.resamples])


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Matched:
    """A detector's detections, what became of them, and the ground truths.

    Attributes
    ----------
    image, label : (N,) int32
    score : (N,) float64
    counted : (N,) bool
        Whether each is within the largest detection limit.
    overlap : (N,) float64
        The largest overlap of each with a ground truth of its class and image.
    truth : (A, T, N) int32
        The ground truth matched, or -1.
    neutral : (A, T, N) bool
        Whether it counts neither way.
    truth_image, truth_label : (G,) int32
    positive : (A, G) bool
        Which ground truths count in which area range.
    images, classes : int
    limits : (M,) int64
        Detection limits, ascending.
    rank : (N,) int32 or None
        What the limits are held against; None is the rank within image and class.
    ties_by_image : bool
        Whether equal scores rank by image before they rank by row.
    levels : (R,) float64
        Recall levels; empty where precision is integrated over recall at all points.
    guard : float
        Added to tp + fp in the precision.
    """

    image: Integers
    label: Integers
    score: Floats
    counted: Flags
    overlap: Floats
    truth: Integers
    neutral: Flags
    truth_image: Integers
    truth_label: Integers
    positive: Flags
    images: int
    classes: int
    limits: NDArray[np.int64]
    rank: Integers | None
    ties_by_image: bool
    levels: Floats
    guard: float

    @cached_property
    def ranking(self) -> "Ranking":
        """The detections that count, class by class, by falling score."""
        return Ranking(self)


def resample(
    matched: Matched, weights: Weights, wanted: Sequence[Wanted], *, threads: int | None = None
) -> Floats:
    """Return numbers of each class in each resample.

    Parameters
    ----------
    matched : Matched
        The detector.
    weights : Weights
        The resamples. For a paired comparison, the same for both detectors.
    wanted : sequence of Wanted
        Which numbers, Q of them.
    threads : int, optional
        The result does not depend on it.

    Returns
    -------
    (Q, K, B) float64
        NaN where a class has no ground truth that counts in a resample. Sums are taken in another
        order than in plain evaluation: with all weights 1 they agree to 1e-12, not to the last
        bit.
    """
    out = np.full((len(wanted), matched.classes, weights.resamples), np.nan)
    for area in sorted({entry.area for entry in wanted}):
        here = [q for q, entry in enumerate(wanted) if entry.area == area]
        sums = _sums((matched, weights), area, [wanted[q] for q in here], threads)
        for q, values in zip(here, sums, strict=True):
            out[q] = values / len(wanted[q].thresholds)
    return out


class Ranking:
    """Each class's detections that count, by falling score.

    Attributes
    ----------
    start : (K + 1,) int32
        Where each class begins in `ranked`.
    ranked : (n,) int32
        Rows, class by class.
    bucket : (n,) uint8
        Beside it, the first detection limit that each is within.
    """

    def __init__(self, matched: Matched) -> None:
        count = len(matched.image)
        self.start = np.zeros(matched.classes + 1, np.int32)
        ranked, bucket = np.zeros(count, np.int32), np.zeros(count, np.uint8)
        _resampling.rank_rows(
            matched.image,
            matched.label,
            matched.score,
            matched.counted.view(np.uint8),
            np.zeros(0, np.int32) if matched.rank is None else matched.rank,
            matched.limits,
            matched.images,
            matched.ties_by_image,
            self.start,
            ranked,
            bucket,
        )
        self.ranked, self.bucket = ranked[: self.start[-1]], bucket[: self.start[-1]]

    def of_class(self, label: int) -> Integers:
        """Return the rows of one class."""
        return self.ranked[self.start[label] : self.start[label + 1]]


def _sums(
    what: tuple[Matched, Weights],
    area: int,
    wanted: Sequence[Wanted],
    threads: int | None,
) -> list[Floats]:
    """Return, for numbers of one area range, the sum over their thresholds, (K, B) float64."""
    matched, weights = what
    ranking = matched.ranking
    shape = (matched.classes, weights.resamples)
    precisions = [entry for entry in wanted if entry.precision]
    recalls = [entry for entry in wanted if not entry.precision]
    precision_out = np.full((len(precisions), *shape), np.nan)
    recall_out = np.full((len(recalls), *shape), np.nan)
    # The thresholds in use are the bits of a word, so there are at most 64; protocols see to it.
    used = sorted({t for entry in wanted for t in entry.thresholds})
    good = np.empty(len(matched.image), np.uint64)
    wrong = np.empty(len(matched.image), np.uint64)
    _resampling.pack_thresholds(
        matched.truth[area],
        matched.neutral[area].view(np.uint8),
        np.array(used, np.int64),
        good,
        wrong,
    )
    positive = matched.positive[area]
    resampler = _resampling.Resampler(
        image=matched.image,
        start=ranking.start,
        ranked=ranking.ranked,
        bucket=ranking.bucket,
        good=good,
        wrong=wrong,
        truth_image=matched.truth_image[positive],
        truth_label=matched.truth_label[positive],
        weights=weights.blocks,
        heaviest=weights.heaviest,
        thresholds=len(used),
        levels=matched.levels,
        guard=matched.guard,
        precision_bits=_bits(precisions, used),
        recall_bits=_bits(recalls, used),
        recall_bucket=np.array([entry.limit for entry in recalls], np.uint8),
        precision_out=precision_out,
        recall_out=recall_out,
    )
    work = len(matched.image) * weights.resamples // 100
    share(resampler.work, threads or thread_count(work))
    sums = {True: iter(precision_out), False: iter(recall_out)}
    return [next(sums[entry.precision]) for entry in wanted]


def _bits(wanted: Sequence[Wanted], used: Sequence[int]) -> NDArray[np.uint64]:
    words = [sum(1 << used.index(t) for t in entry.thresholds) for entry in wanted]
    return np.array(words, np.uint64)
