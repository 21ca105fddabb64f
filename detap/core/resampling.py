"""Resample metrics: match once, accumulate again with weights.

A resample draws as many images as there are, with replacement; an image drawn twice counts twice,
with its ground truths and detections. Images are matched independently, so a resample changes no
match: it weights each image by a small integer, and average precision is computed from weighted
counts. This is exact: the metrics are those of a data set with each image repeated w times.

Axes: B resamples, I images, K classes, A area ranges, T thresholds, N detections, G ground truths,
Q metrics.

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

_MAX_WEIGHT = 255
MAX_PARTS = 256
"""Maximum number of parts that are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Number of occurrences of each image in each resample."""

    blocks: NDArray[np.uint8]  # resample b is ``blocks[b // WIDTH, :, b % WIDTH]``
    resamples: int
    left_out: int = 0  # additional columns that each leave out one part of the images

    @property
    def columns(self) -> int:
        """Number of weights per image."""
        return self.resamples + self.left_out

    @property
    def max_weight(self) -> int:
        """The largest weight."""
        return int(self.blocks.max(initial=0))

    @classmethod
    def from_table(cls, table: NDArray[np.integer], left_out: int = 0) -> "Weights":
        """Return the weights as (B, I) uint8, then those that leave out a part."""
        resamples, images = table.shape
        if table.size and not 0 <= int(table.min()) <= int(table.max()) <= _MAX_WEIGHT:
            raise ValueError(f"weights must be in [0, {_MAX_WEIGHT}]")
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
    """Draw resamples of images."""
    # For each raw number r of numpy's PCG64, the same in every version, image ``(r >> 32) * I >>
    # 32`` is drawn; its probability differs from 1 / I by less than 2**-32.
    width = _resampling.WIDTH
    stream = np.random.PCG64(seed)
    blocks = np.zeros((-(-resamples // width), images, width), np.uint8)
    for b in range(resamples):
        raw = np.asarray(stream.random_raw(images), np.uint64).reshape(images)
        image = (raw >> np.uint64(32)) * np.uint64(images) >> np.uint64(32)
        counts = np.bincount(image.astype(np.intp), minlength=images)
        if counts.max(initial=0) > _MAX_WEIGHT:
            raise OverflowError(f"an image was drawn more than {_MAX_WEIGHT} times")
        blocks[b // width, :, b % width] = counts
    return Weights(blocks, resamples)


def leave_out(weights: Weights) -> Weights:
    """Append the jackknife weights: for each part of the images, all but that part."""
    # Image i is in part ``i % G``; G is the number of images, at most MAX_PARTS.
    width, (_, images, _) = _resampling.WIDTH, weights.blocks.shape
    parts = min(images, MAX_PARTS)
    columns = weights.resamples + parts
    blocks = np.zeros((-(-columns // width), images, width), np.uint8)
    blocks[: len(weights.blocks)] = weights.blocks
    part_of_image = np.arange(images) % parts
    for g in range(parts):
        block, lane = divmod(weights.resamples + g, width)
        blocks[block, :, lane] = part_of_image != g
    return Weights(blocks, weights.resamples, parts)


@dataclass(frozen=True, slots=True)
class ResampledMetric:
    """A metric to resample."""

    precision: bool  # average precision; otherwise final recall
    thresholds: tuple[int, ...]  # indices; the metric is the mean over these
    area: int  # index of the area range
    max_dets_index: int  # index of max dets; average precision always uses the last


def resample(
    match_table: MatchTable,
    weights: Weights,  # for a paired comparison, the same for both detectors
    metrics: Sequence[ResampledMetric],
    *,
    threads: int | None = None,
) -> Floats:
    """Return metrics of each class in each resample, (Q, K, B) float64; undefined is NaN."""
    # Sums are in another order than in plain evaluation: with all weights 1 they agree to 1e-12; to
    # 1e-8 for a trapezoid over levels of float32, which are taken as evenly spaced.
    out = np.full((len(metrics), match_table.classes, weights.columns), np.nan)
    for area in sorted({metric.area for metric in metrics}):
        area_metrics = [q for q, metric in enumerate(metrics) if metric.area == area]
        sums = _sums((match_table, weights), area, [metrics[q] for q in area_metrics], threads)
        for q, values in zip(area_metrics, sums, strict=True):
            out[q] = values / len(metrics[q].thresholds)
    return out


def detected_classes(match_table: MatchTable, weights: Weights) -> Flags:
    """Return the mask of classes with detections in each resample, (K, B) bool."""
    is_detected = np.zeros((match_table.classes, weights.columns), np.bool_)
    pairs = np.unique(match_table.label * np.int64(match_table.images) + match_table.image)
    label, image = np.divmod(pairs, max(match_table.images, 1))
    for k in np.unique(label).tolist():
        drawn = weights.blocks[:, image[label == k]].any(axis=1)
        is_detected[k] = drawn.reshape(-1)[: weights.columns]
    return is_detected


def images_drawn(match_table: MatchTable, weights: Weights) -> NDArray[np.int64]:
    """Return the images with counted ground truths of each class in each resample, (K, B)."""
    counts = np.zeros((match_table.classes, weights.columns), np.int64)
    counted = match_table.positive[0]
    for k in range(match_table.classes):
        images = np.unique(match_table.truth_image[counted & (match_table.truth_label == k)])
        drawn = weights.blocks[:, images].sum(axis=1, dtype=np.int64)
        counts[k] = drawn.reshape(-1)[: weights.columns]
    return counts


def _sums(
    inputs: tuple[MatchTable, Weights],
    area: int,
    metrics: Sequence[ResampledMetric],
    threads: int | None,
) -> list[Floats]:
    """Return the sum over thresholds of metrics of one area range, (K, B) float64 each."""
    match_table, weights = inputs
    shape = (match_table.classes, weights.columns)
    precisions = [metric for metric in metrics if metric.precision]
    recalls = [metric for metric in metrics if not metric.precision]
    precision_out = np.full((len(precisions), *shape), np.nan)
    recall_out = np.full((len(recalls), *shape), np.nan)
    # Protocols have at most 64 thresholds, which fit into uint64.
    used_thresholds = sorted({t for metric in metrics for t in metric.thresholds})
    start, rows = match_table.ranking
    tp = _select_bits(match_table.true_positive[area].take(rows), used_thresholds)
    ignored = _select_bits(match_table.ignored[area].take(rows), used_thresholds)
    fp = ~(tp | ignored) & np.uint64(2 ** len(used_thresholds) - 1)
    counted = np.flatnonzero(tp | fp)
    rows, tp, fp = rows[counted], tp[counted], fp[counted]
    begin = np.searchsorted(counted, start)
    # Nothing below the last true positive of a class affects its metrics.
    hits = np.flatnonzero(tp)
    end = np.append(0, hits + 1)[np.searchsorted(hits, begin[1:])]
    positive = np.flatnonzero(match_table.positive[area])
    positive = positive[np.argsort(match_table.truth_label[positive], kind="stable")]
    classes = np.arange(match_table.classes + 1)
    resampler = _resampling.Resampler(
        event_start=begin[:-1],
        event_end=np.maximum(begin[:-1], end),
        image=match_table.image[rows],
        max_dets_index=match_table.max_dets_index[rows],
        tp=tp,
        fp=fp,
        truth_start=np.searchsorted(match_table.truth_label[positive], classes),
        truth_image=match_table.truth_image[positive],
        weights=weights.blocks,
        max_weight=weights.max_weight,
        thresholds=len(used_thresholds),
        targets=recall_targets(
            np.array(match_table.params.levels, np.float64), match_table.params.summing
        ),
        trapezoid=match_table.params.summing == "trapezoid",
        precision_eps=match_table.params.precision_eps,
        precision_bits=_threshold_bits(precisions, used_thresholds),
        recall_bits=_threshold_bits(recalls, used_thresholds),
        recall_max_dets=np.array([metric.max_dets_index for metric in recalls], np.uint8),
        precision_out=precision_out,
        recall_out=recall_out,
    )
    work = len(match_table) * weights.columns // 100
    run_threads(resampler.work, threads or thread_count(work))
    sums = {True: iter(precision_out), False: iter(recall_out)}
    return [next(sums[metric.precision]) for metric in metrics]


def _select_bits(bits: BitArray, used_thresholds: Sequence[int]) -> NDArray[np.uint64]:
    """Pack the bits of the used thresholds side by side."""
    bits64 = bits.astype(np.uint64)
    if list(used_thresholds) == list(range(len(used_thresholds))):
        return bits64 & np.uint64((1 << len(used_thresholds)) - 1)
    out = np.zeros(len(bits64), np.uint64)
    for index, t in enumerate(used_thresholds):
        out |= ((bits64 >> np.uint64(t)) & np.uint64(1)) << np.uint64(index)
    return out


def _threshold_bits(
    metrics: Sequence[ResampledMetric], used_thresholds: Sequence[int]
) -> NDArray[np.uint64]:
    bits = [sum(1 << used_thresholds.index(t) for t in metric.thresholds) for metric in metrics]
    return np.array(bits, np.uint64)
