"""Detections without scores: their protocol, matching and notes; imported only for them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from detap.core.arrays import Scores
from detap.core.assignment import assign, candidates
from detap.core.match_table import AreaIouPair, MatchTable, empty_bits
from detap.core.matching import accumulate
from detap.core.params import MatchParams
from detap.errors import Note, UsageError
from detap.evaluation.match import Matching, match_params
from detap.evaluation.overlaps.boxes import sizes_of
from detap.evaluation.prepare import PreparedTables
from detap.protocols import Protocol
from detap.tables.detection import Detections, GroundTruth
from detap.tables.notes import NO_DETECTIONS

_MOST_LABELS = 5
_MADE_UP = {
    "1": "AP over their rankings is below (--missing-scores 1)",
    "area": "AP ranks them by box area (--missing-scores area)",
}


def settle_scores(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol
) -> tuple[Detections, Protocol]:
    """Return detections without scores, or with made-up ones, and the protocol for them."""
    if detections.missing_scores == "area":  # as a fraction of the image
        hint = "give --image-sizes, or leave out --missing-scores area"
        sizes = sizes_of(ground_truth, detections.image, "scores by area", hint)
        detections = replace(detections, score=detections.box_area / sizes.prod(axis=1))
        return detections, replace(protocol, scores="area")
    for option in protocol.options_that_need_scores:
        raise needs_scores(option, detections, "leave it out")
    protocol = protocol.without_scores()
    return detections, replace(protocol, scores=detections.missing_scores)


def needs_scores(subject: str, detections: Detections, remedy: str) -> UsageError:
    """Return the error of an option or metric that needs scores."""
    hint = "use --missing-scores area" if detections.missing_scores == "1" else ""
    hint = f"{remedy}, or {hint or 'see --missing-scores'}"
    return UsageError(f"{subject} needs scores, and {detections.path} has none; {hint}")


class OneToOne(Matching):
    """Detections without scores are assigned to ground truths, at each threshold anew."""

    def scores(self, match_table: Iterable[AreaIouPair] | None, *, curves: bool) -> Scores:
        """Match and count; precision and recall have no order to be accumulated in."""
        del match_table, curves
        matches = self._match(match_params(self.protocol))
        truth_counts = np.bincount(matches.truth_label, minlength=matches.classes)
        undefined = Scores.undefined(matches.params, truth_counts, all_max_dets=False)
        return accumulate(matches)._replace(
            interpolated=undefined.interpolated, average=undefined.average
        )

    def _match(self, params: MatchParams) -> MatchTable:
        """Return the match table, with the matches of all thresholds."""
        run, protocol, not_scored = self.run, self.protocol, self.run.not_scored
        ignored = run.ignored | run.group
        pairs = candidates(
            (self.detections, self.ground_truths),
            run.crowd & ignored,
            run.shapes.pairs((self.detections, self.ground_truths), run.crowd & ignored, 0.0),
            inclusive_pixels=protocol.inclusive_pixels,
        )
        of_scored = pairs.select(~not_scored[pairs.detection])
        count = len(self.detections.image)
        max_iou = np.zeros(count)
        np.maximum.at(max_iou, pairs.detection, pairs.iou)
        bits, ignored_bits = empty_bits(params, count), empty_bits(params, count)
        matched = np.full((len(params.thresholds), count), -1, np.int32)
        for t, threshold in enumerate(params.thresholds):
            matched[t], is_ignored = assign(
                of_scored,
                counted=~ignored,
                repeatable=ignored & (run.crowd | (protocol.candidate == "best")),
                never_false=not_scored | run.not_exhaustive,
                threshold=threshold,
                strict=protocol.strict_iou,
            )
            bits[0] |= (matched[t] >= 0).astype(bits.dtype) << bits.dtype.type(t)
            ignored_bits[0] |= is_ignored.astype(bits.dtype) << bits.dtype.type(t)
        return MatchTable(
            label=self.detections.label,
            image=self.detections.image,
            score=np.zeros(count),
            max_dets_index=not_scored.astype(np.uint8),
            true_positive=bits,
            ignored=ignored_bits,
            duplicate=np.zeros(count, np.bool_),
            max_iou=max_iou,
            area_iou_pairs=tuple((0, t) for t in range(len(params.thresholds))),
            matched_gt=matched,
            truth_label=self.ground_truths.label,
            truth_image=self.ground_truths.image,
            positive=~ignored[None],
            images=len(run.images),
            classes=len(run.classes),
            params=params,
        ).freeze()


def missing_score_notes(run: PreparedTables) -> Iterator[Note]:
    """Yield the notes on missing scores, and on labels that the ground truth lacks."""
    scores = run.protocol.scores
    if scores == "none":
        message = "no detection has a score: no AP; see --missing-scores"
        yield Note("no-scores", message, severity="info")
    elif scores != "given":
        yield Note(
            "made-up-scores",
            f"the {len(run.detections)} detections have no scores; {_MADE_UP[scores]} and compares "
            "with no published AP",
        )
    if not len(run.detections):
        yield replace(NO_DETECTIONS, message="no detections: R and F1 are 0")
    counts = {} if run.protocol.has_scores else unknown_labels(run)
    if counts:
        total, names = sum(counts.values()), [f"{name} ({n})" for name, n in counts.items()]
        listed = ", ".join(names[:_MOST_LABELS])
        if len(names) > _MOST_LABELS:
            listed += f" and {len(names) - _MOST_LABELS} more"
        yield Note(
            "unknown-labels",
            f"{total} detection{'s' * (total > 1)} of {len(counts)} label{'s' * (len(counts) > 1)} "
            f"that the ground truth lacks: {listed}; they are false positives; --class-map FILE "
            "maps them, --unknown-labels drop leaves them out",
        )


def unknown_labels(run: PreparedTables) -> dict[str, int]:
    """Return the classes that the ground truth lacks and their detections, most frequent first."""
    known = len(run.ground_truth.classes)
    classes = run.detections.classes[known:]
    counts = np.bincount(run.detections.label, minlength=known + len(classes))[known:].tolist()
    labels = [(name, count) for name, count in zip(classes, counts, strict=True) if count]
    return dict(sorted(labels, key=lambda item: -item[1]))
