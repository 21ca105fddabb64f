"""Scoring classifications: a score per sample and class.

Per class the samples are the ranked items, and AP comes from detap.core.curves as a detector's
does; per sample the classes are, as in a retrieval of its labels.
"""

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from detap.core import curves
from detap.errors import Note
from detap.protocols import ranking as protocols
from detap.protocols.ranking import Classification
from detap.ranking.measures import Ordered
from detap.tables.ranking import Samples

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ClassificationResult:
    """Result of a classification with N samples and K classes.

    Attributes
    ----------
    protocol : Classification
        The rules.
    classes, samples : tuple of str
        Names.
    average_precision : (K,) float64
        NaN where it is undefined.
    positives, negatives, difficult, unscored : (K,) int64
        Samples of each class; the unscored ones are among the first two.
    per_sample : dict of str to (N,) float64
        ``"AP@3"`` and so on; NaN where it is undefined.
    summary : dict of str to float
        mAP, and the means of `per_sample`.
    levels : (R,) float64
        Recall levels; the 11 of the classic table where the rules have none.
    precision_at_levels : (K, R) float64
        Interpolated precision.
    notes : tuple of Note
        What the reader and the scoring noticed.
    """

    protocol: Classification
    classes: tuple[str, ...]
    samples: tuple[str, ...]
    average_precision: Floats
    positives: Counts
    negatives: Counts
    difficult: Counts
    unscored: Counts
    per_sample: dict[str, Floats]
    summary: dict[str, float]
    levels: Floats
    precision_at_levels: Floats
    notes: tuple[Note, ...]


def evaluate(table: Samples, protocol: Classification | str = "voc2012") -> ClassificationResult:
    """Score a classification.

    Parameters
    ----------
    table : Samples
        Scores and truth.
    protocol : Classification or str
        How; a preset's name will do.

    Raises
    ------
    UsageError
        If the protocol is unknown.
    """
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
    """Return the hits of one class: samples by falling score, the unscored ones last."""
    counted = table.truth[:, number] >= 0
    if not table.scored[:, number].any():
        return np.zeros(0, np.int32)  # nothing was found of a class without any score
    score, scored = table.score[counted, number], table.scored[counted, number]
    order = np.lexsort((-score, ~scored))  # stable: equal scores keep the order of the samples
    return curves.hits_of(table.truth[counted, number][order] == 1)


def _average(hits: NDArray[np.int32], positives: int, protocol: Classification) -> float:
    if not positives:
        return 0.0 if protocol.absent_class == "zero" else nan
    if protocol.recall_levels is not None:
        return curves.average_precision(hits, positives, levels=np.array(protocol.recall_levels))
    return curves.average_precision(
        hits, positives, interpolated=protocol.curve != "non-interpolated"
    )


def _per_sample(table: Samples, protocol: Classification) -> dict[str, Floats]:
    """Return AP@k of every sample, its classes being ranked; equal ones in their own order."""
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
        end = "counted as 0" if protocol.absent_class == "zero" else "left out of mAP"
        notes.append(Note("class-without-positives", f"a class has no positive: {end}", absent))
    unscored = int((~table.scored & (table.truth >= 0)).sum())
    if unscored:
        message = "a sample has no score for a class: it ranks behind all that have one"
        notes.append(Note("unscored-sample", message, unscored))
    none = int((table.truth != 1).all(axis=1).sum())
    if protocol.cutoffs and none:
        end = {"zero": "counted as 0", "exclude": "left out of the mean"}[protocol.no_relevant]
        notes.append(Note("no-relevant", f"a sample has no label: its AP@k is {end}", none))
    return notes
