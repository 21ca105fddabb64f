"""Evaluation of classifications: a score per sample and class.

Each class ranks the samples, and :mod:`detap.core.curves` computes its AP as for detections. Each
sample ranks the classes, as in a retrieval of its labels.
"""

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from detap.core import curves
from detap.display import Displayed, summary_line
from detap.errors import Note
from detap.protocols import ranking as protocols
from detap.protocols.ranking import Classification
from detap.ranking.metrics import Ordered
from detap.tables.ranking import Samples

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, repr=False, slots=True, eq=False, kw_only=True)
class ClassificationResult(Displayed):
    """Result of a classification with N samples and K classes."""

    protocol: Classification
    classes: tuple[str, ...]
    samples: tuple[str, ...]
    average_precision: Floats  # (K,) AP of each class; NaN if undefined
    positives: Counts  # (K,)
    negatives: Counts  # (K,)
    difficult: Counts  # (K,)
    unscored: Counts  # (K,)
    per_sample: dict[str, Floats]  # AP@k of each sample by name, such as ``"AP@3"``
    summary: dict[str, float]  # mAP, and the means of `per_sample`
    levels: Floats  # (R,) recall levels; 0, 0.1 ... 1 if the protocol has none
    precision_at_levels: Floats  # (K, R) interpolated precision of each class
    notes: tuple[Note, ...]  # notes of the reader and of the evaluation

    def __repr__(self) -> str:
        return summary_line(self, f"{len(self.samples)} samples", f"{len(self.classes)} classes")


def evaluate(table: Samples, protocol: Classification | str = "voc2012") -> ClassificationResult:
    """Evaluate a classification."""
    resolved = protocols.classification(protocol) if isinstance(protocol, str) else protocol
    classes = len(table.classes)
    levels = np.array(resolved.recall_levels or protocols.ELEVEN)
    average, precision = np.full(classes, nan), np.full((classes, len(levels)), nan)
    positives = (table.truth == 1).sum(axis=0)
    for number in range(classes):
        hits, count = _class_hits(table, number), int(positives[number])
        average[number] = _average(hits, count, resolved)
        if count:
            precision[number] = curves.interpolated_precision(hits, count, levels)
    per_sample = _per_sample(table, resolved)
    counted = per_sample
    if resolved.no_relevant == "zero":
        counted = {name: np.nan_to_num(values, nan=0.0) for name, values in per_sample.items()}
    return ClassificationResult(
        protocol=resolved,
        classes=table.classes,
        samples=table.samples,
        average_precision=average,
        positives=positives,
        negatives=(table.truth == 0).sum(axis=0),
        difficult=(table.truth == -1).sum(axis=0),
        unscored=(~table.scored & (table.truth >= 0)).sum(axis=0),
        per_sample=per_sample,
        summary={
            "mAP": curves.mean_of_defined(average),
            **{name: curves.mean_of_defined(values) for name, values in counted.items()},
        },
        levels=levels,
        precision_at_levels=precision,
        notes=(*table.notes, *_notes(table, resolved, positives)),
    )


def _class_hits(table: Samples, number: int) -> NDArray[np.int32]:
    """Return the hits of one class; without any score, an empty ranking."""
    counted = table.truth[:, number] >= 0
    if not table.scored[:, number].any():
        return np.zeros(0, np.int32)
    score, scored = table.score[counted, number], table.scored[counted, number]
    order = np.lexsort((-score, ~scored))  # stable: tied samples stay in order
    return curves.hits_of(table.truth[counted, number][order] == 1)


def _average(hits: NDArray[np.int32], positives: int, protocol: Classification) -> float:
    """Return the AP of one class by the protocol; NaN if undefined."""
    if not positives:
        return 0.0 if protocol.absent_class == "zero" else nan
    if protocol.recall_levels is not None:
        return curves.average_precision(hits, positives, levels=np.array(protocol.recall_levels))
    return curves.average_precision(
        hits, positives, interpolated=protocol.curve != "non-interpolated"
    )


def _per_sample(table: Samples, protocol: Classification) -> dict[str, Floats]:
    """Return AP@k of each sample from its ranked classes; tied classes stay in order."""
    values = {f"AP@{k}": np.full(len(table.samples), nan) for k in protocol.cutoffs}
    for sample in range(len(table.samples) if values else 0):
        counted = table.truth[sample] >= 0
        score, scored = table.score[sample, counted], table.scored[sample, counted]
        relevant = table.truth[sample, counted] == 1
        hits = curves.hits_of(relevant[np.lexsort((-score, ~scored))])
        ranked = Ordered(hits, int(relevant.sum()), len(relevant))
        for k in protocol.cutoffs:
            values[f"AP@{k}"][sample] = ranked.average_precision(k, protocol.divisor)
    return values


def _notes(table: Samples, protocol: Classification, positives: Counts) -> list[Note]:
    notes = []
    absent = int((positives == 0).sum())
    if absent:
        treatment = "have AP 0" if protocol.absent_class == "zero" else "are excluded from mAP"
        message = f"classes without positive samples {treatment}"
        notes.append(Note("class-without-positives", message, absent))
    unscored = int((~table.scored & (table.truth >= 0)).sum())
    if unscored:
        message = "samples without a score for a class rank last in it"
        notes.append(Note("unscored-sample", message, unscored))
    unlabeled = int((table.truth != 1).all(axis=1).sum())
    if protocol.cutoffs and unlabeled:
        treatment = {"zero": "have AP@k 0", "exclude": "are excluded"}[protocol.no_relevant]
        message = f"samples without a label {treatment}"
        notes.append(Note("no-relevant", message, unlabeled))
    return notes
