"""Step 4, summarize: metrics of an evaluation as arrays and by name."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import nan
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from detap import metrics
from detap._version import __version__
from detap.core import curves as core_curves
from detap.core.arrays import Scores
from detap.core.interpolated import Interpolated
from detap.core.jaccard import JaccardCounts
from detap.core.match_table import AreaIouPair, MatchTable
from detap.core.matching import accumulate
from detap.display import Displayed, one_line, summary_line
from detap.errors import Note
from detap.evaluation.run import EvaluationRun
from detap.evaluation.selection import Selection
from detap.io.digest import sha256_of_names
from detap.metrics.metric import MetricSpec, averages_of_absent
from detap.protocols import Protocol
from detap.tables.detection import Detections, Flags, Floats, GroundTruth, Integers, Name
from detap.tables.notes import EXTRA_IMAGES

Counts = NDArray[np.int64]

_IN_SIGNATURE = ("max_pixels", "min_pixels")
"""Reading options that are in the signature."""


class Matches(NamedTuple):
    """Per-detection match results; rows are those of ``Result.detections``.

    Attributes
    ----------
    ground_truth : (A, T, N) int32
        The matched row of ``Result.ground_truth``, or -1.
    ignored : (A, T, N) bool
        True if neither TP nor FP.
    counted : (N,) bool
        True if within the largest max dets; others are not counted.
    max_iou : (N,) float64
        The largest IoU with any ground truth of the class and image.
    """

    ground_truth: Integers
    ignored: Flags
    counted: Flags
    max_iou: Floats

    def __repr__(self) -> str:
        return one_line("Matches", self._asdict().items())


class Curve(NamedTuple):
    """Precision-recall curve of one class at one IoU threshold, all areas.

    Attributes
    ----------
    label : int
        The class, an index into ``Result.classes``.
    threshold : float
        The IoU threshold.
    score, precision, recall : (n,) float64
        One point per TP or FP, by descending score.
    levels, interpolated : (R,) float64
        The recall thresholds and the interpolated precision there; for protocols that use all
        points, the recall of each true positive and the precision envelope there.
    average_precision : float
        NaN where undefined.
    fppi : (n,) float64
        False positives per image at each point; NaN if images are verified for some classes only.
    """

    label: int
    threshold: float
    score: Floats
    precision: Floats
    recall: Floats
    levels: Floats
    interpolated: Floats
    average_precision: float
    fppi: Floats

    def __repr__(self) -> str:
        return one_line("Curve", self._asdict().items())


@dataclass(frozen=True, eq=False, repr=False)
class Result(Displayed):
    """Metrics of one evaluation; undefined is NaN.

    Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets, N detections.

    Attributes
    ----------
    protocol : Protocol
        The protocol of the evaluation.
    classes : tuple of str
        The names of the K classes; ``("all",)`` if class-agnostic.
    average_precision : (T, K, A) float64
        At the largest max dets.
    recall : (T, K, A, M) float64
        Final recall.
    ground_truths, ignored, detections_count, true_positives, false_positives, duplicates, \
within_max_dets : (K,) int64
        At the lowest threshold, all areas and the largest max dets. Ground truths exclude the
        ignored ones; duplicates are false positives on an already matched ground truth.
    notes : tuple of Note
        The notes of the readers and the evaluation.
    selection : Selection or None
        The selected classes and images; None for all.
    full : Result or None
        The result of all classes. None without a selection of classes, and for
        class-agnostic protocols.
    """

    protocol: Protocol
    classes: tuple[str, ...]
    average_precision: Floats
    recall: Floats
    ground_truths: Counts
    ignored: Counts
    detections_count: Counts
    true_positives: Counts
    false_positives: Counts
    duplicates: Counts
    within_max_dets: Counts
    notes: tuple[Note, ...]
    _positives: Counts
    _interpolated: Interpolated
    _run: EvaluationRun
    _match_table: MatchTable | None = None
    selection: Selection | None = None
    full: "Result | None" = None

    def __repr__(self) -> str:
        return summary_line(self, f"{len(self.images)} images", f"{len(self.classes)} classes")

    @property
    def ground_truth(self) -> GroundTruth:
        """The evaluated ground truths, with indices in common with the detections."""
        return self._run.ground_truth

    @property
    def detections(self) -> Detections:
        """The evaluated detections, with indices in common with the ground truths."""
        return self._run.detections

    @property
    def has_boxes(self) -> bool:
        """True if the tables are available; False for engines."""
        return self._run.has_boxes

    @property
    def images(self) -> tuple[Name, ...]:
        """The names of the I images."""
        return self._run.images

    @property
    def class_ids(self) -> tuple[Name, ...]:
        """The ids of the classes in the files."""
        return self._run.class_ids

    @property
    def iou_thresholds(self) -> Floats:
        """The IoU thresholds, (T,) float64."""
        return np.array(self.protocol.iou_thresholds)

    @property
    def recall_levels(self) -> Floats:
        """The recall thresholds, (R,) float64; empty if the protocol uses all points."""
        return np.array(self.protocol.recall_levels)

    @property
    def area_ranges(self) -> tuple[str, ...]:
        """The names of the A area ranges."""
        return tuple(area_range.name for area_range in self.protocol.area_ranges)

    @property
    def max_dets(self) -> tuple[int | None, ...]:
        """The M max dets; None is unlimited."""
        return self.protocol.max_dets

    @cached_property
    def _images_by_class(self) -> Counts:
        """The number of images with counted ground truths of each class, (K,) int64."""
        run, truth = self._run, self.ground_truth
        counted = ~run.ignored | (self.protocol.recall_base == "all")
        label = np.zeros_like(truth.label) if self.protocol.class_agnostic else truth.label
        pairs = label[counted] * np.int64(len(self.images)) + truth.image[counted]
        labels = np.unique(pairs) // len(self.images)
        return np.bincount(labels, minlength=len(self.classes))

    @cached_property
    def precision(self) -> Floats:
        """Interpolated precision at the largest max dets, (T, R, K, A) float64."""
        return self._interpolated.dense()[..., -1]

    @property
    def signature(self) -> str:
        """The protocol, selection and version, as in reports."""
        selected = () if self.selection is None else self.selection.signature_parts
        if any(note.code == EXTRA_IMAGES for note in self.notes):
            selected += ("extra-images:drop",)
        options = [option for file in self.detections.files for option in file.reading]
        selected += tuple(
            f"{name.replace('_', '-')}:{value}"
            for name, value in dict(options).items()
            if name in _IN_SIGNATURE
        )
        if class_map := self.ground_truth.class_map:
            selected += (f"class-map:{sha256_of_names([class_map])[:8]}",)
        return self.protocol.signature(__version__, selected)

    @cached_property
    def summary(self) -> dict[str, float]:
        """The protocol's metrics by name, primary metric first; NaN if undefined."""
        return {
            metric.name: metric.metric.overall(self, metric)
            for metric in metrics.summary(self.protocol)
        }

    @cached_property
    def by_class(self) -> dict[str, Floats]:
        """The metrics of each class, (K,) float64, by name.

        The AP of one class is named AP, also if the mean over classes is mAP.
        """
        entries = metrics.columns(self.protocol)
        return {metric.class_name: self.class_values(metric) for metric in entries}

    def class_metrics(self, label: int) -> dict[str, float]:
        """Return the metrics of one class, by name."""
        return {name: float(values[label]) for name, values in self.by_class.items()}

    def metrics(self, prefix: str = "", *, by_class: bool = False) -> dict[str, float]:
        """Return all metrics as a flat dict, as experiment trackers log them.

        The keys depend only on the protocol and the classes: undefined metrics are NaN.

        Parameters
        ----------
        prefix : str
            Text before each key, such as ``"val/"``.
        by_class : bool
            If True, add the metrics of each class: ``class/person/AP``.
        """
        values = {f"{prefix}{name}": value for name, value in self.summary.items()}
        for label, name in enumerate(self.classes if by_class else ()):
            columns = self.class_metrics(label)
            values |= {f"{prefix}class/{name}/{key}": value for key, value in columns.items()}
        return values

    def metric(self, name: str) -> float:
        """Return a metric by name, also outside the summary, such as ``"AP90"``.

        Raises
        ------
        UnknownNameError
            If the protocol has no such metric; the message suggests similar names.
        """
        metric = metrics.named(self.protocol, name)
        return metric.metric.overall(self, metric)

    def metric_by_class(self, name: str) -> Floats:
        """Return a metric of each class, (K,) float64, by the name of its mean.

        Raises
        ------
        UnknownNameError
            If the protocol has no such metric; the message suggests similar names.
        """
        return self.class_values(metrics.named(self.protocol, name))

    def ground_truth_counts(self, name: str) -> Counts:
        """Return the number of ground truths per class of a metric, (K,) int64.

        Only those in the metric's area range and class group count.

        Raises
        ------
        UnknownNameError
            If the protocol has no such metric; the message suggests similar names.
        """
        return self.ground_truth_counts_of(metrics.named(self.protocol, name))

    def ground_truth_counts_of(self, metric: MetricSpec) -> Counts:
        """Return the number of ground truths per class of a metric, (K,) int64."""
        counts = self._positives[metric.area]
        return np.where(self.in_group(metric.group), counts, 0) if metric.group else counts

    @cached_property
    def match_table(self) -> MatchTable:
        """The per-detection match results as bits over the thresholds, computed on first access.

        Its rows are those of ``detections``. Matched ground truths are kept for the first area
        range and threshold, and where listed metrics use them.

        Raises
        ------
        UsageError
            If the protocol does not match by score.
        """
        return self._match_table or self._match(())

    def match_table_for(self, *area_iou_pairs: AreaIouPair) -> MatchTable:
        """Return the match table with matched ground truths of some pairs.

        Parameters
        ----------
        *area_iou_pairs : (int, int)
            Indices of area range and threshold. Pairs that are not kept are matched again.

        Raises
        ------
        UsageError
            As of :attr:`match_table`.
        """
        return (
            self.match_table
            if {*area_iou_pairs} <= {*self.match_table.area_iou_pairs}
            else self._match(area_iou_pairs)
        )

    def matched_iou(self, metric: MetricSpec) -> Floats:
        """Return the IoU of each true positive with its ground truth; 0 for others, (N,) float64.

        Parameters
        ----------
        metric : MetricSpec
            Its area range and threshold; the matched ground truth may differ between them.

        Raises
        ------
        UsageError
            As of :attr:`match_table`.
        """
        pair = metric.area, metric.threshold or 0
        if pair not in self._computed:
            table = self.match_table_for(pair)
            matched_gt = table.matched_gt_at(*pair)
            hits = table.is_true_positive(*pair)
            self._computed[pair] = self._run.matched_iou(np.where(hits, matched_gt, -1))
        iou: Floats = self._computed[pair]
        return iou

    @cached_property
    def _computed(self) -> dict[object, Any]:
        """Results of :meth:`matched_iou` and :meth:`jaccard_counts`."""
        return {}

    def jaccard_counts(self, metric: MetricSpec) -> JaccardCounts:
        """Return the matches of each image for the Jaccard index at a metric's threshold.

        Raises
        ------
        UsageError
            If SciPy is not installed.
        """
        threshold = metric.threshold or 0
        if threshold not in self._computed:
            from detap.evaluation.jaccard import jaccard_counts

            self._computed[threshold] = jaccard_counts(self._run, self.match_table, threshold)
        counts: JaccardCounts = self._computed[threshold]
        return counts

    def _match(self, area_iou_pairs: tuple[AreaIouPair, ...]) -> MatchTable:
        self.protocol.require_score_matching("evaluate with another protocol for that")
        return self._run.match_table(area_iou_pairs)

    @cached_property
    def matches(self) -> Matches | None:
        """The match results as arrays, if requested."""
        match_table, area_iou_pairs = self._match_table, all_area_iou_pairs(self.protocol)
        if match_table is None or match_table.area_iou_pairs != area_iou_pairs:
            return None
        ignored = np.array([match_table.is_ignored(*cell) for cell in area_iou_pairs])
        shape = (len(self.area_ranges), len(self.iou_thresholds), len(match_table))
        return Matches(
            match_table.matched_gt.reshape(shape),
            ignored.reshape(shape),
            match_table.within_max_dets,
            match_table.max_iou,
        )

    def with_matches(self) -> Self:
        """Return the same result with its matches."""
        if self.matches is not None:
            return self
        return replace(self, _match_table=self._match(all_area_iou_pairs(self.protocol)))

    def full_precision(self) -> Floats:
        """Return interpolated precision at each max dets, (T, R, K, A, M) float64.

        pycocotools' ``eval["precision"]``, with NaN for -1. Not cached.
        """
        scores = accumulate(self.match_table, threads=self._run.threads, all_max_dets=True)
        return scores.interpolated.dense()

    def curves(self) -> list[Curve]:
        """Return the precision-recall curves, by class and threshold."""
        if self.protocol.matching == "by-iou" or not self.protocol.has_scores:
            return []
        return [
            self._curve(label, t)
            for label in range(len(self.classes))
            if self.ground_truths[label]
            for t in range(len(self.protocol.iou_thresholds))
        ]

    def table(self) -> list[dict[str, str | int | float | None]]:
        """Return one row per class: name, id, metrics and counts; NaN if undefined."""
        return class_rows(self)

    def _curve(self, label: int, t: int) -> Curve:
        rows = self.match_table.ranking.of_class(label)
        rows = rows[~self.match_table.is_ignored(0, t, rows)]
        is_true_positive = self.match_table.is_true_positive(0, t, rows)
        true_positives = np.cumsum(is_true_positive)
        positives = int(self.ground_truths[label])
        hits = core_curves.hits_of(is_true_positive)
        guard = self.protocol.precision_eps
        levels = self.recall_levels
        if len(levels):
            interpolated = core_curves.interpolated_precision(
                hits, positives, levels, summing=self.protocol.summing, precision_eps=guard
            )
        else:
            levels = np.arange(1, len(hits) + 1) / positives
            interpolated = core_curves.envelope(hits, precision_eps=guard)
        false_positives = np.arange(1, len(rows) + 1) - true_positives
        images = len(self.images) if self.protocol.verified == "all" else nan
        return Curve(
            label=label,
            threshold=self.protocol.iou_thresholds[t],
            score=self.match_table.score[rows],
            precision=true_positives / (np.arange(1, len(rows) + 1) + guard),
            recall=true_positives / positives,
            levels=levels,
            interpolated=interpolated,
            average_precision=float(self.average_precision[t, label, 0]),
            fppi=false_positives / images,
        )

    def in_group(self, group: str) -> Flags:
        """Return a mask of the classes in a group, such as ``"rare"``, (K,) bool."""
        groups = self.ground_truth.groups
        return np.array([groups.get(name) == group for name in self.class_ids], np.bool_)

    def class_values(self, metric: MetricSpec) -> Floats:
        """Return a metric of each class, (K,) float64; NaN outside its group."""
        values = metric.metric.by_class(self, metric)
        return np.where(self.in_group(metric.group), values, np.nan) if metric.group else values


def result_of(
    run: EvaluationRun, protocol: Protocol, scores: Scores, notes: tuple[Note, ...]
) -> Result:
    """Return the result of scores."""
    average, interpolated = scores.average, scores.interpolated
    if protocol.absent_class != "undefined":
        absent = averages_of_absent(protocol, scores.counts[2] > 0)
        # A class can have objects and none in a range: it is undefined there.
        average = average.copy(order="K")
        np.copyto(average[..., 0], absent, where=np.isnan(average[..., 0]))
        interpolated = interpolated.fill_undefined(absent)
    return Result(
        protocol=protocol,
        classes=run.classes,
        average_precision=average,
        recall=scores.recall,
        ground_truths=scores.counts[0],
        ignored=scores.counts[1],
        detections_count=scores.counts[2],
        true_positives=scores.counts[3],
        false_positives=scores.counts[4],
        duplicates=scores.counts[5],
        within_max_dets=scores.counts[6],
        notes=notes,
        _positives=scores.positives,
        _interpolated=interpolated,
        _run=run,
        _match_table=scores.match_table,
    )


def all_area_iou_pairs(protocol: Protocol) -> tuple[AreaIouPair, ...]:
    """Return all pairs of area range and threshold, by index."""
    return tuple(product(range(len(protocol.area_ranges)), range(len(protocol.iou_thresholds))))


def class_rows(result: Result) -> list[dict[str, str | int | float | None]]:
    """Return one row per class with name, id, metrics and counts."""
    protocol = result.protocol
    values_by_metric = {name: values.tolist() for name, values in result.by_class.items()}
    average = (metric for metric in metrics.columns(protocol) if metric.metric.name == "AP")
    undefined = [nan] * len(result.classes)
    columns: dict[str, Sequence[str | int | float | None]] = {
        "name": result.classes,
        "id": [None] * len(undefined) if protocol.class_agnostic else result.class_ids,
        # AP comes first; undefined if the protocol has none.
        "AP": next((values_by_metric[metric.class_name] for metric in average), undefined),
        **values_by_metric,
        "ground_truths": result.ground_truths.tolist(),
        "ignored": result.ignored.tolist(),
        "detections": result.detections_count.tolist(),
        "within_max_dets": result.within_max_dets.tolist(),
        "true_positives": result.true_positives.tolist(),
        "false_positives": result.false_positives.tolist(),
        "duplicates": result.duplicates.tolist(),
    }
    if not protocol.has_scores:
        del columns["AP"], columns["duplicates"]
        missed = result.ground_truths - result.true_positives
        columns["false_negatives"] = missed.tolist()
        counted = result.true_positives + result.false_positives
        columns["ignored_detections"] = (result.detections_count - counted).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
