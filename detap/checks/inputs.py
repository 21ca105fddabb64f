"""Plausibility checks of inputs, judged over all of them: negative sides and categories.

A reader judges an input that stands alone. Of one of several it keeps what is here, which adds up:
shards are judged as the one file that holds all of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from detap.checks.boxes import Suspicion, image_keys, warned
from detap.errors import Note, Problem
from detap.tables.detection import CategoryPair, CategorySample, Detections, GroundTruth, Name
from detap.tables.notes import BOX_OPTIONS, INSIST, backward, too_many

_SURE = 0.8
_STRAY = 0.05
_ENOUGH = 10
"""Objects that must bear it out where every id is listed: fewer may be a detector's mistakes."""

_OFTEN = itemgetter(3)
"""How often there is a pair of categories."""

_HINT = "use the ground truth's category ids"
_UNKNOWN = ("unknown-categories", "unknown-classes")
"""Codes of the readers' notes of detections of classes that the ground truth lacks."""


class BoxCounts(NamedTuple):
    """How many boxes inputs have, and how many of these a negative width or height.

    Attributes
    ----------
    truths, truths_backward : int
        0 of a ground truth that parts have in common.
    detections, detections_backward : int
        Of classes that are kept.
    known : int
        1 where a detection is of a class that the ground truth has.
    """

    truths: int = 0
    truths_backward: int = 0
    detections: int = 0
    detections_backward: int = 0
    known: int = 0

    @classmethod
    def of(cls, ground_truth: GroundTruth | None, detections: Detections | None) -> "BoxCounts":
        """Return the counts of tables."""
        counts = [0, 0, 0, 0]
        for place, table in enumerate((ground_truth, detections)):
            if table is not None:
                negative = len(backward(table.corners, table.box_area))
                counts[2 * place : 2 * place + 2] = len(table), negative
        return cls._make((*counts, 0))

    def __add__(self, other: "BoxCounts") -> "BoxCounts":  # type: ignore[override]
        """Return the counts of both."""
        sums = [one + two for one, two in zip(self[:4], other[:4], strict=True)]
        return BoxCounts._make((*sums, max(self.known, other.known)))


NO_BOXES = BoxCounts()


def sample_of_images(sample: CategorySample, images: Sequence[Name]) -> CategorySample:
    """Return the sample of these images alone."""
    if not sample:
        return ()
    keys = set(image_keys(images).tolist())
    return tuple(entry for entry in sample if entry[0] in keys)


# --- judged


def category_shift(pairs: Iterable[CategoryPair], *, unknown: bool) -> str:
    """Return what is wrong with the category ids, or an empty string.

    A file whose ids are all one off, or count from 0 where the ground truth has gaps, is well
    formed. But its boxes lie where the objects are, and its ids differ from theirs in always the
    same way.

    Parameters
    ----------
    pairs : iterable of CategoryPair
        Of each sampled ground truth with a detection in its place.
    unknown : bool
        Whether there are detections of categories that the ground truth lacks.
    """
    every = [*pairs]
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
    way = _same_way(wrong, least=total if few else _SURE * total)
    _, due, got, _ = wrong[0]
    return way and f"{way}: the boxes lie on objects of another class, such as {got} on {due}"


def _same_way(wrong: Iterable[CategoryPair], *, least: float) -> str:
    """Return in which way at least so many category ids differ; empty if in none."""
    steps: Counter[int] = Counter()
    positions = 0
    for index, due, got, often in wrong:
        steps[got - due] += often
        positions += often * (got == index)
    shift, often = steps.most_common(1)[0]
    if often >= least:
        return f"every category_id looks {abs(shift)} too {'high' if shift > 0 else 'low'}"
    if positions >= least:
        return "category_id looks like the position in the list of categories, counted from 0"
    return ""


def shift_suspicion(sample: CategorySample, path: str, *, unknown: bool) -> Iterator[Suspicion]:
    """Yield that category ids mean other classes."""
    shift = category_shift((pair for _, pairs in sample for pair in pairs), unknown=unknown)
    if shift:
        hint = f"{_HINT}; or, if the detector is as wrong as that, give {INSIST}"
        yield Suspicion("category-id-offset", Problem(path, "", shift, hint))


def input_suspicions(
    counts: BoxCounts, sample: CategorySample, notes: Iterable[Note], truth: str, detections: str
) -> list[Suspicion]:
    """Return what looks wrong about inputs together.

    Parameters
    ----------
    counts : BoxCounts
    sample : CategorySample
    notes : iterable of Note
        What readers noticed.
    truth, detections : str
        What messages call either side.
    """
    unknown = {note.code: note.count for note in notes if note.code in _UNKNOWN}
    found = [
        *_backward("ground-truth", truth, counts.truths, counts.truths_backward),
        *_backward("detections", detections, counts.detections, counts.detections_backward),
    ]
    if unknown and not counts.known:
        count = sum(unknown.values())
        message = f"no category of the results is in the ground truth ({count} detections)"
        hint = f"{_HINT}, or pass {INSIST}"
        return [*found, Suspicion(next(iter(unknown)), Problem(detections, "", message, hint))]
    return [*found, *shift_suspicion(sample, detections, unknown=bool(unknown))]


def _backward(kind: str, path: str, total: int, count: int) -> Iterator[Suspicion]:
    if not count or not too_many(count, total):
        return
    message = f"{count} of {total} boxes of the inputs have a negative width or height"
    hint = (
        f"say what the four numbers are ({BOX_OPTIONS[kind]} xyxy or xywh), or correct the boxes; "
        f"or give {INSIST}, and they count as boxes that overlap nothing"
    )
    yield Suspicion(f"{kind}-negative-size", Problem(path, "", message, hint))


def warned_of_truth(table: GroundTruth) -> tuple[Note, ...]:
    """Refuse what looks wrong about ground truth of several inputs, or return it as warnings.

    Raises
    ------
    InputError
    """
    counts = BoxCounts.of(table, None)
    return warned(input_suspicions(counts, (), (), table.path, ""), table.notes)


def warned_of_detections(table: Detections, ground_truth: GroundTruth | None) -> tuple[Note, ...]:
    """Refuse what looks wrong about detections of several inputs, or return it as warnings.

    Raises
    ------
    InputError
    """
    counts = BoxCounts.of(None, table)
    if ground_truth is not None:
        counts = counts._replace(known=int((table.label < len(ground_truth.classes)).any()))
    found = input_suspicions(counts, table.categories, table.notes, "", table.path)
    return warned(found, table.notes)
