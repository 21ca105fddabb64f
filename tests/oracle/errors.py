"""TIDE error types and their dAP, one detection and one ground truth at a time."""

import math
from dataclasses import dataclass, field

from detap.evaluation.results import Result
from tests.oracle.curves import area_under, curve
from tests.oracle.overlap import area, boxes, overlap

NAMES = ("classification", "localization", "both", "duplicate", "background", "missed")


@dataclass
class PlainErrors:
    """Errors by type; `changes` also has false positives and false negatives."""

    average_precision: float = math.nan
    counts: dict[str, int] = field(default_factory=dict)
    changes: dict[str, float] = field(default_factory=dict)


class _EvaluationRun:
    def __init__(self, result: Result, t: int) -> None:
        self.protocol = protocol = result.protocol
        matches = result.with_matches().matches
        assert matches is not None
        truth, detections = result.ground_truth, result.detections
        self.t, self.threshold = t, protocol.search_thresholds[t]
        self.truth_boxes, self.found_boxes = boxes(truth), boxes(detections)
        self.truth_image, self.found_image = truth.image.tolist(), detections.image.tolist()
        agnostic = protocol.class_agnostic
        self.truth_label = [0 if agnostic else label for label in truth.label.tolist()]
        self.found_label = [0 if agnostic else label for label in detections.label.tolist()]
        score = detections.score.tolist()
        image = self.found_image if protocol.tie_break == "image" else [0] * len(score)
        order = sorted(range(len(score)), key=lambda n: (-score[n], image[n], n))
        self.ranked = [n for n in order if matches.counted[n] and not matches.ignored[0, t, n]]
        self.match = matches.ground_truth[0, t].tolist()
        self.wrong = [n for n in self.ranked if self.match[n] < 0]
        band = protocol.area_ranges[0]
        annotated = truth.area.tolist()
        if protocol.area_source == "box":
            annotated = [area(box, protocol) for box in self.truth_boxes]
        self.positive = [
            g
            for g in range(len(annotated))
            if band.low <= annotated[g] <= band.high
            and not any(getattr(truth, flag)[g] for flag in protocol.ignore_flags)
            and not (protocol.group_of_weight == 0 and truth.group_of[g])
        ]
        self.used = {self.match[n] for n in self.ranked if self.match[n] >= 0}
        self.classes = range(len(result.classes))

    def overlap(self, n: int, g: int) -> float:
        return overlap(self.found_boxes[n], self.truth_boxes[g], self.protocol, crowd=False)

    def reaches(self, value: float) -> bool:
        return value > self.threshold if self.protocol.strict_iou else value >= self.threshold

    def type_of(self, n: int) -> tuple[str, int]:
        """Return the type of a false positive and its target ground truth, or -1."""
        here = [g for g in self.positive if self.truth_image[g] == self.found_image[n]]
        own = [g for g in here if self.truth_label[g] == self.found_label[n]]
        value = {g: self.overlap(n, g) for g in here}

        def best(group: list[int]) -> int:
            return max(group, key=lambda g: value[g], default=-1)  # the first of equal ones

        near, other = best(own), best([g for g in here if g not in own])
        taken = best([g for g in own if g in self.used])
        if not here:
            return "background", -1
        if near >= 0 and 0.1 <= value[near] <= self.threshold:
            return "localization", near
        if other >= 0 and self.reaches(value[other]):
            return "classification", other
        if taken >= 0 and self.reaches(value[taken]):
            return "duplicate", -1
        return ("background" if value[best(here)] <= 0.1 else "both"), -1

    def precision(self, entries: dict[int, tuple[int, bool]], missing: set[int]) -> list[float]:
        """Return the AP of each class, from (class, hit) by detection; NaN where undefined."""
        values = []
        for k in self.classes:
            positives = sum(self.truth_label[g] == k for g in self.positive if g not in missing)
            hits = [entries[n][1] for n in self.ranked if n in entries and entries[n][0] == k]
            if not positives:
                values.append(math.nan)
                continue
            points = curve(hits, positives, self.protocol.precision_eps)
            values.append(min(area_under(*points, self.protocol), 1.0) if hits else 0.0)
        return values


def errors(result: Result, t: int) -> PlainErrors:
    """Return the errors at one IoU threshold of the protocol, over its first area range."""
    case = _EvaluationRun(result, t)
    types = {n: case.type_of(n) for n in case.wrong}
    aims = {n: g for n, (_, g) in types.items() if g >= 0 and g not in case.used}
    owner: dict[int, int] = {}
    for n in case.ranked:  # the best-scored first
        if n in aims:
            owner.setdefault(aims[n], n)
    unfound = {g for g in case.positive if g not in case.used}
    missed = unfound - set(aims.values())
    plain = {n: (case.found_label[n], case.match[n] >= 0) for n in case.ranked}
    before = case.precision(plain, set())
    after: dict[str, list[float]] = {}
    for name in NAMES[:-1]:
        kept = {n: entry for n, entry in plain.items() if types.get(n, ("", -1))[0] != name}
        for g, n in owner.items():
            if types[n][0] == name:
                kept[n] = (case.truth_label[g], True)
        after[name] = case.precision(kept, set())
    after["missed"] = case.precision(plain, missed)
    after["false_positives"] = case.precision(
        {n: entry for n, entry in plain.items() if entry[1]}, set()
    )
    after["false_negatives"] = case.precision(plain, unfound)
    counts = {name: sum(kind == name for kind, _ in types.values()) for name in NAMES[:-1]}
    absent = result.protocol.absent_class
    zero = [
        absent == "zero" or (absent == "zero-if-detected" and k in case.found_label)
        for k in case.classes
    ]
    return PlainErrors(
        average_precision=_mean(before, before, zero=zero),
        counts=counts | {"missed": len(missed)},
        changes={
            name: _mean(values, before, zero=zero) - _mean(before, before, zero=zero)
            for name, values in after.items()
        },
    )


def _mean(values: list[float], before: list[float], *, zero: list[bool]) -> float:
    """Return the mean over the classes defined before; a class no longer defined keeps its AP."""
    kept = [b if math.isnan(v) else v for v, b in zip(values, before, strict=True)]
    kept = [0.0 if z and math.isnan(v) else v for v, z in zip(kept, zero, strict=True)]
    kept = [v for v in kept if not math.isnan(v)]
    return math.fsum(kept) / len(kept) if kept else math.nan
