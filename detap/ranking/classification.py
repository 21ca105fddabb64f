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
from detap.ranking.lists import Ordered
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
        column, count = (slice(None), number), int(positives[number])
        hits = _hits(table, column)
        if not table.scored[column].any():
            hits = hits[:0]  # an empty ranking
        average[number] = 0.0 if resolved.absent_class == "zero" else nan
        if count:
            precision[number] = curves.interpolated_precision(hits, count, levels)
            average[number] = curves.average_precision(
                hits,
                count,
                levels=None if resolved.recall_levels is None else levels,
                interpolated=resolved.curve != "non-interpolated",
            )
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


def _hits(table: Samples, index: int | tuple[slice, int]) -> NDArray[np.int32]:
    """Return the hits of a sample or class: by score, tied ones in order, unscored ones last."""
    counted = table.truth[index] >= 0
    order = np.lexsort((-table.score[index][counted], ~table.scored[index][counted]))
    return curves.hits_of(table.truth[index][counted][order] == 1)


def _per_sample(table: Samples, protocol: Classification) -> dict[str, Floats]:
    """Return AP@k of each sample from its ranked classes; tied classes stay in order."""
    values = {f"AP@{k}": np.full(len(table.samples), nan) for k in protocol.cutoffs}
    for sample in range(len(table.samples) if values else 0):
        hits = _hits(table, sample)
        ranked = Ordered(hits, len(hits), int((table.truth[sample] >= 0).sum()))
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
