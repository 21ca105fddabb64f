"""Plausibility checks over several inputs: negative sizes and category ids.

Readers check a single input. Of several inputs they keep counts that add up, so shards are checked
like one file.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from detap.checks.boxes import FailedCheck, warned
from detap.errors import Note, Problem
from detap.tables.detection import CategoryPair, CategorySample, Detections, GroundTruth
from detap.tables.notes import CLASS_IDS, INSIST, backward, too_many

_SURE = 0.8
_STRAY = 0.05
_ENOUGH = 10
"""Objects needed if all ids are known; fewer may be errors of the detector."""

_OFTEN = itemgetter(3)
"""Get the count of a category pair."""

_HINT = f"{CLASS_IDS}, or pass {INSIST}"
_UNKNOWN = ("unknown-categories", "unknown-classes")
"""Codes of notes of detections with unknown classes."""


class BoxCounts(NamedTuple):
    """Numbers of boxes, and of boxes with negative width or height."""

    ground_truths: int = 0
    ground_truths_backward: int = 0
    detections: int = 0
    detections_backward: int = 0
    known: int = 0  # 1 if a detection has a class of the ground truth

    @classmethod
    def of(cls, ground_truth: GroundTruth | None, detections: Detections | None) -> "BoxCounts":
        """Count the boxes of both tables."""
        counts: list[int] = []
        for table in (ground_truth, detections):
            negative = 0 if table is None else len(backward(table.corners, table.box_area))
            counts += [0 if table is None else len(table), negative]
        return cls._make((*counts, 0))


# --- checks of the counts


def category_shift(pairs: Iterable[CategoryPair], *, unknown: bool) -> str:
    """Return the message of systematically wrong category ids; empty if there are none."""
    every = [*pairs]
    # Among the first ids of a list with gaps, ids are equal to positions.
    decisive = [pair for pair in every if pair[1] != pair[0] + 1]
    return _shift(every, unknown=unknown) or _shift(decisive, unknown=unknown, first=1)


def _shift(every: Sequence[CategoryPair], *, unknown: bool, first: int = 0) -> str:
    """Return the message of ids that are off, or positions counted from `first`."""
    total = sum(map(_OFTEN, every))
    wrong = [pair for pair in every if pair[1] != pair[2]]
    count = sum(map(_OFTEN, wrong))
    few = count < _ENOUGH
    if (
        (few and not unknown)
        or len({pair[1] for pair in wrong}) < 2
        or total - count > _STRAY * total
    ):
        return ""
    offset = _common_offset(wrong, first, min_count=total if few else _SURE * total)
    _, gt_id, dt_id, _ = wrong[0]
    return offset and f"{offset} (e.g. {dt_id} overlaps class {gt_id})"


def _common_offset(wrong: Iterable[CategoryPair], first: int, *, min_count: float) -> str:
    """Describe the difference that at least `min_count` category ids share; empty if none."""
    offsets: Counter[int] = Counter()
    positions = 0
    for index, gt_id, dt_id, count in wrong:
        offsets[dt_id - gt_id] += count
        positions += count * (dt_id == index + first)
    offset, count = offsets.most_common(1)[0]
    if count >= min_count and not first:
        return f"every category_id looks off by {offset:+d}"
    if positions >= min_count:
        return f"category_id looks like the {first}-based position in the list of categories"
    return ""


def failed_category_check(
    sample: CategorySample, path: str, *, unknown: bool
) -> Iterator[FailedCheck]:
    """Yield a failed check if category ids are systematically wrong."""
    message = category_shift((pair for _, pairs in sample for pair in pairs), unknown=unknown)
    if message:
        yield FailedCheck("category-id-offset", Problem(path, "", message, _HINT))


def failed_input_checks(
    counts: BoxCounts, sample: CategorySample, notes: Iterable[Note], truth: str, detections: str
) -> list[FailedCheck]:
    """Return the failed plausibility checks of all inputs."""
    unknown = {note.code: note.count for note in notes if note.code in _UNKNOWN}
    failed_checks = [
        *_backward("ground-truth", truth, counts.ground_truths, counts.ground_truths_backward),
        *_backward("detections", detections, counts.detections, counts.detections_backward),
    ]
    if unknown and not counts.known:
        count = sum(unknown.values())
        message = f"no category of the results is in the ground truth ({count} detections)"
        problem = Problem(detections, "", message, _HINT)
        return [*failed_checks, FailedCheck(next(iter(unknown)), problem)]
    return [*failed_checks, *failed_category_check(sample, detections, unknown=bool(unknown))]


def _backward(kind: str, path: str, total: int, count: int) -> Iterator[FailedCheck]:
    if not count or not too_many(count, total):
        return
    message = f"{count} of {total} boxes have negative width or height"
    hint = (
        f"read each input alone to see which, correct them, or pass {INSIST} to count them as "
        "boxes that overlap nothing"
    )
    yield FailedCheck(f"{kind}-negative-size", Problem(path, "", message, hint))


def warned_of_truth(table: GroundTruth) -> tuple[Note, ...]:
    """Check ground truth of several inputs; return warnings if it is taken as is."""
    counts = BoxCounts.of(table, None)
    return warned(failed_input_checks(counts, (), (), table.path, ""), table.notes)


def counts_of_detections(table: Detections, ground_truth: GroundTruth | None) -> BoxCounts:
    """Return the counts of one input of detections."""
    counts = BoxCounts.of(None, table)
    if table.responses is not None:  # of a model: their sizes are noted only
        counts = counts._replace(detections_backward=0)
    if ground_truth is None:
        return counts
    return counts._replace(known=int((table.label < len(ground_truth.classes)).any()))


def warned_of_detections(table: Detections, counts: BoxCounts) -> tuple[Note, ...]:
    """Check detections of several inputs; return warnings if they are taken as is."""
    failed_checks = failed_input_checks(counts, table.categories, table.notes, "", table.path)
    return warned(failed_checks, table.notes)
