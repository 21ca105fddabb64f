"""A run: prepared tables that are matched and accumulated, and the notes on them."""

from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap import metrics
from detap.checks.tables import area_notes
from detap.core.arrays import Scores
from detap.core.match_table import AreaIouPair, MatchTable
from detap.errors import Note, UsageError
from detap.evaluation.match import MATCHINGS, scored_classes
from detap.evaluation.prepare import PreparedTables, excluded_rows
from detap.protocols import Protocol
from detap.tables.notes import INTERLEAVED, KEYPOINT_AREAS, NO_DETECTIONS
from detap.text_input import join_names

_KITTI_POINTS, _MOST_LISTED = 41, 9


def unscored() -> Any:
    """Import what evaluates detections without scores, which others do not need."""
    return import_module("detap.evaluation.unscored")


class EvaluationRun(PreparedTables):
    """Prepared tables with their match results and notes."""

    has_boxes = True  # False if workers evaluated the detections, of which this has only some
    remote_notes: tuple[Note, ...] = ()  # `counted_notes` with the counts of all workers

    @property
    def full_run(self) -> "EvaluationRun":
        """The run of all classes."""
        return self

    @property
    def area_iou_pairs(self) -> tuple[AreaIouPair, ...]:
        """The first area range and threshold, and those whose matches listed metrics use."""
        return tuple(dict.fromkeys([(0, 0), *metrics.of_matched_iou(self.protocol)]))

    def match_table(self, area_iou_pairs: tuple[AreaIouPair, ...] = ()) -> MatchTable:
        """Return the match table, with the matches of :attr:`area_iou_pairs` or the given ones."""
        if not self.has_boxes:
            raise UsageError("match results need all boxes in one process; remove --engine")
        pairs = area_iou_pairs or self.area_iou_pairs
        match_table = self.evaluate(match_table=pairs, curves=False).match_table
        assert match_table is not None
        return match_table

    def evaluate(
        self, *, match_table: Iterable[AreaIouPair] | None = None, curves: bool = True
    ) -> Scores:
        """Match and accumulate; `match_table` and `curves` apply to matching by score only."""
        matching = MATCHINGS[self.protocol.matching]
        if not self.protocol.has_scores:
            matching = unscored().OneToOne
        return matching(self).scores(match_table, curves=curves)

    def score_notes(self, scores: Scores) -> Iterator[Note]:
        """Yield notes on the scores."""
        protocol, counts = self.protocol, scores.counts
        if protocol.scores != "given":
            yield from unscored().missing_score_notes(self)
        if not protocol.has_scores:
            return
        codes = {note.code for note in self.detections.notes}
        if NO_DETECTIONS.code not in codes and not counts[2].any():
            yield NO_DETECTIONS
        if protocol.class_iou:
            counts = np.zeros_like(counts)
            scored = [*scored_classes(protocol, self.classes)]
            counts[:, scored] = scores.counts[:, scored]
        # The VOC reader already warned about classes missing from the ground truth.
        noted = "unknown-classes" in codes
        classes = self.classes[: len(self.ground_truth.classes)] if noted else self.classes
        yield from unknown_class_notes(counts, classes, protocol)
        not_scored = scores.counts[2] - counts[2]
        if not_scored.any():
            names = join_names([self.classes[k] for k in np.flatnonzero(not_scored).tolist()])
            message = f"detections of classes that protocol {protocol.name} does not evaluate "
            message += f"({names}); select classes with --class-iou"
            yield Note("classes-not-scored", message, int(not_scored.sum()), severity="info")
        yield from dataset_limit_note(counts, protocol)
        yield from few_objects_note(scores.positives, self.classes, protocol)

    def table_notes(self) -> list[Note]:
        """Return notes on the tables that apply under the protocol."""
        protocol = self.protocol
        moot = {
            "ignore-without-effect": "ignore" in protocol.ignore_flags,
            "missing-area": protocol.area_source != "annotation",
            "missing-iscrowd": "crowd" not in protocol.ignore_flags,
            KEYPOINT_AREAS: protocol.iou_type != "keypoints",
            INTERLEAVED.code: protocol.tie_break != "file",
            # Without scores, others take the place of these.
            "unknown-classes": not protocol.has_scores,
            NO_DETECTIONS.code: not protocol.has_scores,
        }
        areas = area_notes(self.ground_truth) if protocol.uses_annotated_areas else ()
        notes = (*self.ground_truth.notes, *areas, *self.detections.notes)
        return [*(note for note in notes if not moot.get(note.code)), *self.flag_notes()]

    def flag_notes(self) -> list[Note]:
        """Return notes on dropped rows and on flags that the protocol ignores."""
        notes = self.counted_notes() if self.has_boxes else self.remote_notes
        return [note for note in notes if note.count]

    def counted_notes(self) -> Iterator[Note]:
        """Yield the notes of :meth:`flag_notes`, also those of no row.

        Runs of other classes yield the same notes, so that their counts can be added.
        """
        truth, protocol = self.ground_truth, self.protocol
        yield from self.dropped
        if protocol.excluded_classes:
            names = join_names([n for n in protocol.excluded_classes if n in self.classes])
            message = f"detections of classes that protocol {protocol.name} does not evaluate "
            count = int(np.count_nonzero(excluded_rows(self.detections, protocol)))
            yield Note("classes-not-scored", f"{message}({names})", count, severity="info")
        by, without_area = f"by protocol {protocol.name}", int(np.count_nonzero(self.without_area))
        message = f"detections without area are dropped {by}"
        yield Note("zero-area-detections-dropped", message, without_area, severity="info")
        message = f"detections of classes not verified for their image are not scored {by}, but "
        unverified = int(np.count_nonzero(self.unverified))
        yield Note("unverified", f"{message}count for max dets", unverified, severity="info")
        if protocol.class_groups != "none":
            ungrouped = [i for i in truth.class_ids if i not in truth.groups]
            message = "classes without a frequency group are not in APr, APc, APf"
            yield Note("classes-without-group", message, len(ungrouped))
        yield from self.shapes.notes()
        for flag in ("difficult", "crowd"):
            if flag not in protocol.ignore_flags:
                message = (
                    f"{flag} ground truths are not ignored by protocol {protocol.name}; use "
                    f"--ignore-flags {','.join((*protocol.ignore_flags, flag))}"
                )
                yield Note(f"{flag}-not-ignored", message, int(getattr(truth, flag).sum()))


def unknown_class_notes(
    counts: NDArray[np.int64], classes: Sequence[str], protocol: Protocol
) -> Iterator[Note]:
    """Note detections of classes without ground truth, if no AP includes them."""
    if protocol.absent_class != "undefined":
        return
    positives, ignored, detections = counts[:3, : len(classes)]
    if protocol.verified != "all" or protocol.zero_area == "drop" or protocol.excluded_classes:
        detections = counts[6, : len(classes)]  # only these are false positives
    unknown = (positives == 0) & (ignored == 0) & (detections > 0)
    if unknown.any():
        names = [classes[k] for k in np.flatnonzero(unknown).tolist()]
        listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        message = f"detections of classes without ground truth ({listed})"
        message += ": false positives that no AP includes"
        yield Note("classes-only-in-detections", message, int(detections[unknown].sum()))


def dataset_limit_note(counts: NDArray[np.int64], protocol: Protocol) -> Iterator[Note]:
    """Note the classes with ground truth whose detections do not reach the data set's limit."""
    if protocol.max_dets_scope != "dataset":
        return
    limit = protocol.max_dets[-1]
    fewer = int(np.count_nonzero((counts[0] > 0) & (counts[2] < limit)))
    if fewer:
        message = f"classes have fewer than {limit} detections; more could raise their AP"
        yield Note("fewer-than-max-dets", message, fewer, severity="info")


def few_objects_note(
    positives: NDArray[np.int64], classes: Sequence[str], protocol: Protocol
) -> Iterator[Note]:
    """Note the classes of so few objects that KITTI's rule bounds their AP below 1."""
    # Recall is sampled at the scores of matches, at most one for each of 41 recall steps.
    if protocol.matching != "kitti":
        return
    of_40 = protocol.interpolation == "40-point"
    parts = []
    for k in scored_classes(protocol, classes):
        ranges: dict[int, list[str]] = {}
        for area_range, count in zip(protocol.area_ranges, positives[:, k].tolist(), strict=True):
            if 0 < count < _KITTI_POINTS:
                ranges.setdefault(count, []).append(area_range.name)
        for count, names in ranges.items():
            most = (count - 1) / 40 if of_40 else min(ceil(count / 4), 11) / 11
            parts.append(f"{classes[k]!r} {most:.4f} ({'/'.join(names)}: {count})")
    if parts:
        rule = "(n - 1) / 40" if of_40 else "ceil(n / 4) / 11"
        listed = ", ".join(parts[:_MOST_LISTED]) + (", ..." if len(parts) > _MOST_LISTED else "")
        message = (
            f"KITTI samples precision at the scores of matches, so AP is at most {rule} for n < "
            f"{_KITTI_POINTS} counted objects: {listed}"
        )
        yield Note("few-objects", message, severity="info")
