"""Looking at tables without scoring them: what is there, and what looks wrong about it.

Readers refuse what is invalid and note what is odd about single records. Here both tables are
looked at together, for mistakes that no record shows: boxes in another convention, class ids that
mean other classes, detections of other images. Such a table is scored without complaint, with an
average precision near 0 that costs its owner weeks.

Nothing here changes a number. What follows from overlaps is computed on a sample of the images,
spread evenly over all of them, so that its cost is bounded whatever the size of the tables.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.core.overlap import overlaps
from detap.errors import Note
from detap.tables import Detections, Flags, Floats, GroundTruth, Name

if TYPE_CHECKING:
    from detap.results import Result

Rows = NDArray[np.intp]

MEETS = 0.5
"""The overlap from which a detection is taken to mean an object."""

MOST_MET = 0.5
"""Where more ground truths than this are met, boxes are what they should be."""

_FAR = 1e150
"""Corners are looked at no further out, so that no area overflows."""

_PAIRS = 1_000_000
"""Pairs of boxes that a sample may have, and any one image of it."""
_IMAGES = 1_000
_FEW = 0.02
_LOW = 0.05


class Fact(NamedTuple):
    """One thing that is so.

    Attributes
    ----------
    key : str
        What JSON calls it.
    title : str
        What people read.
    value : int, float, str, list or None
        None where there is nothing that could have it.
    """

    key: str
    title: str
    value: Any


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found.

    Attributes
    ----------
    facts : tuple of Fact
        About the ground truth, the detections, and both together.
    notes : tuple of Note
        Those of the readers first.
    classes : tuple of dict
        For each class its name, id, and counts.
    """

    facts: tuple[Fact, ...]
    notes: tuple[Note, ...]
    classes: tuple[dict[str, Any], ...]


def examine(truth: GroundTruth | None, detections: Detections | None) -> Examination:
    """Look at either table, or at both together.

    Parameters
    ----------
    truth : GroundTruth or None
    detections : Detections or None
        Numbered as `truth`, where that is given.
    """
    facts: list[Fact] = []
    notes: list[Note] = []
    if truth is not None:
        facts += _truth_facts(truth)
        notes += [*truth.notes, *_truth_notes(truth)]
    if detections is not None:
        facts += _detection_facts(detections)
        notes += [*detections.notes, *_detection_notes(detections)]
    if truth is not None and detections is not None:
        sample = Sample(truth, detections)
        facts += _common_facts(truth, detections, sample)
        notes += [*_missing_notes(truth, detections), *suspicions(truth, detections, sample)]
    return Examination(tuple(facts), tuple(_once(notes)), _class_rows(truth, detections))


def _once(notes: list[Note]) -> Iterator[Note]:
    """Give each note once: both tables may have noted the same."""
    seen = set()
    for note in notes:
        if note not in seen:
            seen.add(note)
            yield note


def notes_of_arrays(result: "Result") -> Iterator[Note]:
    """Say of tables that came from arrays what readers say of files.

    Parameters
    ----------
    result : Result
        Of :func:`detap.evaluate`.
    """
    truth, detections = result.ground_truth, result.detections
    # Where pixels are counted inclusively, corners that coincide are a box of one pixel.
    hollow = not result.protocol.pixel_edge
    if not truth.files and hollow and (empty := int(np.count_nonzero(truth.box_area <= 0))):
        message = "ground truth boxes have no area: nothing can find them"
        yield Note("zero-area-ground-truth", message, empty)
    if detections.files:
        return
    if not len(detections):
        yield Note("no-detections", "there is no detection: every AP is 0")
    score = detections.score
    if outside := int(np.count_nonzero((score < 0) | (score > 1))):
        message = (
            f"scores lie outside 0 to 1 ({score.min():.6g} to {score.max():.6g}); only their "
            "order counts"
        )
        yield Note("scores-outside-unit", message, outside, warning=False)
    if hollow and (empty := int(np.count_nonzero(detections.box_area <= 0))):
        message = "detections have no area: they are false positives"
        yield Note("zero-area-detections", message, empty, warning=False)


def suspicions_of(result: "Result") -> tuple[Note, ...]:
    """Return what looks wrong about tables that score next to nothing; nothing where they score.

    The sample of overlaps is taken only where the average precision at the lowest threshold is
    below 0.05, so that it costs nothing where all is well.

    Parameters
    ----------
    result : Result
        Of :func:`detap.evaluate`.
    """
    try:
        return _suspicions_of(result)
    except Exception:  # advice: for want of memory, or whatever else, the numbers stand without
        return ()


def _suspicions_of(result: "Result") -> tuple[Note, ...]:
    truth, detections = result.ground_truth, result.detections
    if not len(detections) or not len(truth):
        return ()
    reached = result.recall[0, :, 0, -1]
    if result.average_precision.size and result.protocol.pairing == "ranked":
        reached = result.average_precision[0, :, 0]
    defined = reached[~np.isnan(reached)]
    if not len(defined) or float(defined.mean()) >= _LOW:
        return ()
    known = {note.code for note in result.notes}
    return tuple(note for note in suspicions(truth, detections) if not _said(note.code, known))


def _said(code: str, known: set[str]) -> bool:
    """Return whether a reader has said the same already, under its own name."""
    # Readers go by the images' borders, of which both sides' boxes may have crossed one.
    for ending, other in (
        ("look-like-corners", "look-like-corners"),
        ("look-relative", "relative-boxes"),
    ):
        if code.endswith(ending):
            return any(name.endswith(other) for name in known)
    return code in known


# --- one table


def _truth_facts(truth: GroundTruth) -> Iterator[Fact]:
    filled = np.bincount(truth.image, minlength=len(truth.images))
    yield Fact("images", "images", len(truth.images))
    yield Fact("images_without_ground_truth", "  without ground truth", int((filled == 0).sum()))
    yield Fact("classes", "classes", len(truth.classes))
    yield Fact("ground_truths", "ground truths", len(truth))
    for flag in ("crowd", "difficult", "ignore", "group_of"):
        count = int(np.count_nonzero(getattr(truth, flag)))
        if count:
            yield Fact(flag, f"  marked {flag.replace('_', ' ')}", count)
    yield Fact("ground_truth_sides", "  shorter side, median (px)", _median_side(truth))
    yield from _box_facts("ground_truth", truth, truth.image_sizes)


def _detection_facts(detections: Detections) -> Iterator[Fact]:
    score = detections.score
    filled = np.bincount(detections.image, minlength=len(detections.images))
    yield Fact("detections", "detections", len(detections))
    yield Fact("detections_per_image", "  in one image, at most", int(filled.max(initial=0)))
    low, middle, high = (
        (float(score.min()), float(np.median(score)), float(score.max()))
        if len(score)
        else (None, None, None)
    )
    yield Fact("score_lowest", "  lowest score", low)
    yield Fact("score_median", "  median score", middle)
    yield Fact("score_highest", "  highest score", high)
    distinct, tied = _ties(detections)
    yield Fact("scores_distinct", "  distinct scores", distinct)
    yield Fact("tied_detections", "  of a score that another of their class has", tied)
    yield Fact("detection_sides", "  shorter side, median (px)", _median_side(detections))
    yield from _box_facts("detections", detections, None)


def _box_facts(key: str, table: GroundTruth | Detections, sizes: Floats | None) -> Iterator[Fact]:
    yield Fact(f"{key}_repeated", "  that repeat another's image, class and box", repeated(table))
    yield Fact(f"{key}_empty", "  without area", int(np.count_nonzero(table.box_area <= 0)))
    if sizes is not None:
        yield Fact(f"{key}_outside", "  wholly outside their image", _outside(table, sizes))


def _median_side(table: GroundTruth | Detections) -> float | None:
    if not len(table):
        return None
    with np.errstate(over="ignore"):
        sides = table.corners[:, 2:] - table.corners[:, :2]
        middle = float(np.median(sides.min(axis=1)))
    return middle if np.isfinite(middle) else None


def _ties(detections: Detections) -> tuple[int, int]:
    """Return how many scores there are, and how many detections share theirs within a class."""
    order = np.lexsort((detections.score, detections.label))
    score, label = detections.score[order], detections.label[order]
    equal = (score[1:] == score[:-1]) & (label[1:] == label[:-1])
    touched = np.zeros(len(score), np.bool_)
    touched[1:] |= equal
    touched[:-1] |= equal
    return len(np.unique(detections.score)), int(np.count_nonzero(touched))


def repeated(table: GroundTruth | Detections) -> int:
    """Return how many rows have the image, class and box of an earlier one."""
    if len(table) < 2:
        return 0
    order = np.lexsort((*table.corners.T, table.label, table.image))
    equal = (table.image[order][1:] == table.image[order][:-1]) & (
        table.label[order][1:] == table.label[order][:-1]
    )
    corners = table.corners[order]
    return int(np.count_nonzero(equal & (corners[1:] == corners[:-1]).all(axis=1)))


def _outside(table: GroundTruth | Detections, sizes: Floats) -> int:
    size = sizes[table.image]
    low, high = table.corners[:, :2], table.corners[:, 2:]
    return int(np.count_nonzero(((high <= 0) | (low >= size)).any(axis=1)))


def _truth_notes(truth: GroundTruth) -> Iterator[Note]:
    if not any(note.code == "repeated-objects" for note in truth.notes):
        count = repeated(truth)
        if count:
            message = "ground truths repeat the image, class and box of another; all count"
            yield Note("repeated-ground-truth", message, count)
    used = np.bincount(truth.label, minlength=len(truth.classes))
    empty = int(np.count_nonzero(used == 0))
    if empty:
        message = "classes have no ground truth; their AP is undefined"
        yield Note("classes-without-ground-truth", message, empty, warning=False)


def _detection_notes(detections: Detections) -> Iterator[Note]:
    count = repeated(detections)
    if count:
        message = (
            "detections repeat the image, class and box of another: each but the first is a false "
            "positive; was the file written twice, or non-maximum suppression left out?"
        )
        yield Note("repeated-detections", message, count, warning=100 * count >= len(detections))
    score = detections.score
    if len(score) > 1 and bool((score == score[0]).all()):
        message = "all detections have one score: their order in the file decides the numbers"
        yield Note("one-score", message, len(score))


# --- both tables


def _common_facts(truth: GroundTruth, detections: Detections, sample: "Sample") -> Iterator[Fact]:
    with_truth = np.bincount(truth.image, minlength=len(truth.images)) > 0
    with_found = np.bincount(detections.image, minlength=len(truth.images)) > 0
    yield Fact("images_with_detections", "images with detections", int(with_found.sum()))
    bare = int(np.count_nonzero(with_truth & ~with_found))
    yield Fact("images_undetected", "  with ground truth, but no detection", bare)
    only = _only(detections, truth)
    yield Fact("classes_only_in_detections", "classes only in the detections", only)
    yield Fact("classes_undetected", "classes without any detection", _only(truth, detections))
    yield Fact("sampled_images", "images looked at for overlaps", sample.images)
    yield Fact("sampled_ground_truths", "  ground truths in them", len(sample.rows))
    yield Fact("met", f"  met by a detection of any class (IoU {MEETS})", _share(sample.met))
    yield Fact("met_by_class", "  met by one of their own class", _share(sample.met_by_class))


def _share(flags: Flags) -> float | None:
    return float(flags.mean()) if len(flags) else None


def _only(table: GroundTruth | Detections, other: GroundTruth | Detections) -> list[str]:
    """Return the names of the classes that `table` has rows of and `other` has not."""
    classes = max(len(table.classes), len(other.classes))
    here = np.bincount(table.label, minlength=classes) > 0
    there = np.bincount(other.label, minlength=classes) > 0
    return [table.classes[number] for number in np.flatnonzero(here & ~there)]


def _missing_notes(truth: GroundTruth, detections: Detections) -> Iterator[Note]:
    if not len(detections):
        return
    with_truth = np.bincount(truth.image, minlength=len(truth.images)) > 0
    with_found = np.bincount(detections.image, minlength=len(truth.images)) > 0
    bare = int(np.count_nonzero(with_truth & ~with_found))
    if 2 * bare > int(with_truth.sum()):
        message = (
            "images with ground truth have no detection, more than half of them: was the detector "
            "run on all of this split?"
        )
        yield Note("images-undetected", message, bare)
    missing = _only(truth, detections)
    if missing and not any(note.code == "classes-without-file" for note in detections.notes):
        names = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
        message = f"classes with ground truth have no detection ({names}): their AP is 0"
        yield Note("classes-undetected", message, len(missing), warning=False)


def _class_rows(
    truth: GroundTruth | None, detections: Detections | None
) -> tuple[dict[str, Any], ...]:
    tables = [table for table in (truth, detections) if table is not None]
    if not tables:
        return ()
    names = max((table.classes for table in tables), key=len)
    ids = max((table.class_ids for table in tables), key=len)
    counts = {
        key: np.bincount(table.label, minlength=len(names)).tolist()
        for key, table in (("ground_truths", truth), ("detections", detections))
        if table is not None
    }
    return tuple(
        {"name": name, "id": identifier} | {key: values[k] for key, values in counts.items()}
        for k, (name, identifier) in enumerate(zip(names, ids, strict=True))
    )


# --- a sample of overlaps


class _Image(NamedTuple):
    """The rows of one image, and what overlaps."""

    truths: Rows
    found: Rows


class Sample:
    """Images, spread evenly, that have both ground truths and detections.

    Attributes
    ----------
    rows : (G,) int
        The ground truths in them; crowds, which are no single object, are left out.
    """

    def __init__(self, truth: GroundTruth, detections: Detections) -> None:
        self.truth = truth
        self.detections = detections
        self._parts = list(_sampled(truth, detections))
        self.rows = _joined([part.truths for part in self._parts])

    @property
    def images(self) -> int:
        """How many there are."""
        return len(self._parts)

    @cached_property
    def best(self) -> tuple[Floats, Rows, Floats]:
        """For each ground truth (G,): its largest overlap with any detection, that detection's
        row, and its largest overlap with one of its own class.
        """  # noqa: D205 - three columns
        areas, at, own = [], [], []
        for part, overlap in self._overlaps():
            winner = overlap.argmax(axis=0)
            areas.append(overlap[winner, np.arange(overlap.shape[1])])
            at.append(part.found[winner])
            alike = self.detections.label[part.found][:, None] == self.truth.label[part.truths]
            own.append(np.where(alike, overlap, 0.0).max(axis=0))
        return _joined(areas, np.float64), _joined(at), _joined(own, np.float64)

    @property
    def met(self) -> Flags:
        """Whether each ground truth (G,) is met by a detection of any class."""
        return self.best[0] >= MEETS

    @property
    def met_by_class(self) -> Flags:
        """Whether each ground truth (G,) is met by one of its class."""
        return self.best[2] >= MEETS

    def met_share(
        self,
        of_found: "Change | None" = None,
        of_truths: "Change | None" = None,
        parts: "Sequence[_Image] | None" = None,
    ) -> float:
        """Return the share of ground truths that would be met if boxes meant something else.

        Parameters
        ----------
        of_found, of_truths : Change, optional
            What the detections and the ground truths would mean; by default what they say.
        parts : sequence, optional
            Other pairs of rows than those of each image.
        """
        met = total = 0
        for _, overlap in self._overlaps(of_found, of_truths, parts):
            best = overlap.max(axis=0)
            met += int(np.count_nonzero(best >= MEETS))
            total += len(best)
        return met / total if total else 0.0

    def chance(self) -> float:
        """Return the share of ground truths met by the detections of other images than theirs."""
        most = _PAIRS // max(1, self.images)
        mixed = [
            _Image(_thinned(part.truths, len(other.found), most), other.found)
            for step in range(1, min(4, self.images))
            for part, other in zip(
                self._parts, self._parts[step:] + self._parts[:step], strict=True
            )
        ]
        return self.met_share(parts=mixed)

    def _overlaps(
        self,
        of_found: "Change | None" = None,
        of_truths: "Change | None" = None,
        parts: "Sequence[_Image] | None" = None,
    ) -> Iterator[tuple[_Image, Floats]]:
        for part in self._parts if parts is None else parts:
            one = _boxes(self._read(self.detections, part.found, of_found))
            other = _boxes(self._read(self.truth, part.truths, of_truths))
            yield part, overlaps(one, other, detection_areas=_areas(one), truth_areas=_areas(other))

    def _read(self, table: GroundTruth | Detections, rows: Rows, change: "Change | None") -> Floats:
        corners = table.corners[rows]
        if change is None:
            return corners
        sizes = self.truth.image_sizes
        known = np.full((len(rows), 2), np.nan) if sizes is None else sizes[table.image[rows]]
        return change(corners, known)


def _joined(parts: list[Any], kind: Any = np.intp) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def _boxes(corners: Floats) -> Floats:
    """Return boxes of which none ends before it begins: such have no area instead."""
    corners = np.clip(np.nan_to_num(corners), -_FAR, _FAR)
    corners[:, 2:] = np.maximum(corners[:, 2:], corners[:, :2])
    return corners


def _areas(corners: Floats) -> Floats:
    # Never quite 0, so that nothing divides by it.
    sides = corners[:, 2:] - corners[:, :2]
    areas: Floats = np.maximum(sides[:, 0] * sides[:, 1], 1e-300)
    return areas


def _sampled(truth: GroundTruth, detections: Detections) -> Iterator[_Image]:
    images = len(truth.images)
    truths = np.bincount(truth.image[~truth.crowd], minlength=images)
    found = np.bincount(detections.image, minlength=images)
    both = np.flatnonzero((truths > 0) & (found > 0))
    if not len(both):
        return
    pairs = int(np.minimum(truths[both].astype(np.int64) * found[both], _PAIRS).sum())
    step = max(1, -(-len(both) // _IMAGES), -(-pairs // _PAIRS))
    chosen = both[::step]
    wanted = np.zeros(images, np.bool_)
    wanted[chosen] = True
    rows = [_by_image(table.image, wanted) for table in (truth, detections)]
    for image in chosen.tolist():
        of_truth, of_found = (
            order[np.searchsorted(image_of, image) : np.searchsorted(image_of, image, "right")]
            for order, image_of in rows
        )
        of_truth = of_truth[~truth.crowd[of_truth]]
        yield _Image(_thinned(of_truth, len(of_found), _PAIRS), of_found)


def _thinned(truths: Rows, found: int, most: int) -> Rows:
    """Return ground truths, evenly spread, that make at most so many pairs; at least one.

    All detections stay: a ground truth is met or not by any of them.
    """
    return truths[:: max(1, -(-len(truths) * found // max(1, most)))]


def _by_image(image: NDArray[np.int32], wanted: Flags) -> tuple[Rows, NDArray[np.int32]]:
    """Return the rows of the images that are wanted, sorted by image, and their images."""
    rows = np.flatnonzero(wanted[image])
    rows = rows[np.argsort(image[rows], kind="stable")]
    return rows, image[rows]


# --- suspicions


def suspicions(
    truth: GroundTruth, detections: Detections, sample: Sample | None = None
) -> list[Note]:
    """Return what looks wrong about two tables that are meant for each other.

    Parameters
    ----------
    truth : GroundTruth
    detections : Detections
        Numbered as `truth`.
    sample : Sample, optional
        Of these tables.
    """
    sample = sample or Sample(truth, detections)
    if not len(sample.rows):
        return []
    # What a box would be in another convention may be beyond every float.
    with np.errstate(over="ignore", invalid="ignore"):
        return _suspicions(sample)


def _suspicions(sample: Sample) -> list[Note]:
    met = float(sample.met.mean())
    convention = _convention(sample, met)
    if convention:
        return [convention]
    if met < _FEW or _no_more_than_chance(sample):
        message = (
            "ground truths are met by detections of whatever class no more often than by chance "
            f"({np.count_nonzero(sample.met)} of {len(sample.rows)} looked at): are these the "
            "detections of other images, or of images of another size, under the same names?"
        )
        return [Note("few-overlaps", message, int(np.count_nonzero(~sample.met)))]
    return [*_wrong_labels(sample), *_wrong_pixel(sample)]


def _no_more_than_chance(sample: Sample) -> bool:
    """Return whether detections meet their own image's ground truths as those of any other."""
    count = len(sample.rows)
    if count < _ENOUGH or sample.met.mean() > MOST_MET:
        return False
    expected = sample.chance() * count
    # Three standard deviations of a count with this mean.
    return bool(np.count_nonzero(sample.met) <= expected + 3 * (expected + 1) ** 0.5)


Change = Callable[[Floats, Floats], Floats]
"""From corners (n, 4) and the image sizes (n, 2) of their rows to the corners that were meant."""


def _as_corners(corners: Floats, _: Floats) -> Floats:
    changed = corners.copy()
    changed[:, 2:] -= corners[:, :2]
    return changed


def _as_sides(corners: Floats, _: Floats) -> Floats:
    changed = corners.copy()
    changed[:, 2:] += corners[:, :2]
    return changed


def _from_centre(corners: Floats, _: Floats) -> Floats:
    half = (corners[:, 2:] - corners[:, :2]) / 2
    return corners - np.hstack((half, half))


def _axes_swapped(corners: Floats, _: Floats) -> Floats:
    return corners[:, [1, 0, 3, 2]]


def _sides_swapped(corners: Floats, _: Floats) -> Floats:
    sides = corners[:, 2:] - corners[:, :2]
    return np.hstack((corners[:, :2], corners[:, :2] + sides[:, ::-1]))


def _scaled(corners: Floats, sizes: Floats) -> Floats:
    return corners * np.hstack((sizes, sizes))


def _centre_scaled(corners: Floats, sizes: Floats) -> Floats:
    return _scaled(_from_centre(corners, sizes), sizes)


_CONVENTIONS: tuple[tuple[str, str, Change], ...] = (
    ("look-like-corners", "x1, y1, x2, y2 where x, y, width, height is due", _as_corners),
    ("look-like-sides", "x, y, width, height where x1, y1, x2, y2 is due", _as_sides),
    ("look-centred", "given by their centre where the corner is due", _from_centre),
    ("axes-look-swapped", "given with x and y swapped", _axes_swapped),
    ("sides-look-swapped", "given with width and height swapped", _sides_swapped),
    ("look-relative", "shares of the image's size where pixels are due", _scaled),
    ("look-relative", "shares of the image's size, by their centre", _centre_scaled),
)


class _Reading(NamedTuple):
    """Another reading of one table's boxes: what it would change."""

    met: float
    outside: float
    what: str
    code: str
    meaning: str


def _convention(sample: Sample, met: float) -> Note | None:
    """Return the note of another reading of the boxes by which far more of them meet."""
    if met > MOST_MET:
        return None
    best = max(_readings(sample), default=None)
    if best is None or best.met <= max(0.3, 2 * met + 0.1):
        return _relative(sample)
    table = sample.detections if best.what == "detections" else sample.truth
    message = (
        f"the boxes of the {best.what.replace('-', ' ')} look like {best.meaning}: read so, "
        f"{best.met:.0%} of the ground truths would be met by a detection, and {met:.0%} are as "
        "they stand"
    )
    return Note(f"{best.what}-{best.code}", message, len(table))


def _readings(sample: Sample) -> Iterator[_Reading]:
    """Give every other reading; the best is the largest.

    To read one side's sides as corners helps as much as the reverse on the other side. Then the
    side that leaves its images is the one that is wrong.
    """
    truth, detections = sample.truth, sample.detections
    sizes = truth.image_sizes
    for what, table in (("ground-truth", truth), ("detections", detections)):
        known = np.full((len(table), 2), np.nan) if sizes is None else sizes[table.image]
        outside = float((table.corners[:, 2:] > known).any(axis=1).mean())
        relative = bool(table.corners.max(initial=0.0) <= 2)
        for code, meaning, change in _CONVENTIONS:
            if code == "look-relative" and (sizes is None or not relative):
                continue
            share = (
                sample.met_share(change)
                if table is detections
                else sample.met_share(of_truths=change)
            )
            order = 1.0 if table is detections else 0.0
            yield _Reading(round(share, 1), outside + order / 100, what, code, meaning)


def _relative(sample: Sample) -> Note | None:
    """Return the note of boxes within the first pixels where the other table's are not."""
    tables = {"detections": sample.detections, "ground truth": sample.truth}
    reach = {what: float(table.corners.max(initial=0.0)) for what, table in tables.items()}
    for what, other in (("detections", "ground truth"), ("ground truth", "detections")):
        if reach[what] <= 2 and reach[other] >= 10:
            message = (
                f"the boxes of the {what} look like shares of the image's size where pixels are "
                f"due: none reaches beyond {reach[what]:.3g}"
            )
            code = f"{what.replace(' ', '-')}-look-relative"
            return Note(code, message, len(tables[what]))
    return None


def _wrong_labels(sample: Sample) -> Iterator[Note]:
    """Note boxes that meet while their classes systematically differ."""
    _, at, _ = sample.best
    wrong = sample.met & ~sample.met_by_class
    right = int(np.count_nonzero(sample.met_by_class))
    count = int(np.count_nonzero(wrong))
    if count < 2 or 2 * right > count or 10 * count < len(wrong):
        return
    due = sample.truth.label[sample.rows[wrong]]
    got = sample.detections.label[at[wrong]]
    ids = sample.detections.class_ids
    pairs = list(zip(due.tolist(), got.tolist(), strict=True))
    step, often = _commonest_step(pairs, ids)
    names = sample.detections.classes
    shown = f"{_quoted(names[pairs[0][1]])} on {_quoted(names[pairs[0][0]])}"
    beginning = (
        f"detections lie on objects of another class ({shown}); {right} ground truths looked at "
        f"are met by their own class, {count} only by another"
    )
    if step and len(set(due.tolist())) > 1 and often >= 0.6 * count:
        way = "high" if step > 0 else "low"
        yield Note("class-shift", f"{beginning}: class ids look {abs(step)} too {way}", count)
    elif _is_permutation(pairs):
        yield Note("classes-permuted", f"{beginning}: classes look mixed up, each for one", count)
    else:
        yield Note("classes-disagree", f"{beginning}: do both files mean the same classes?", count)


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 40 else name[:37] + "...")


def _commonest_step(pairs: list[tuple[int, int]], ids: tuple[Name, ...]) -> tuple[int, int]:
    """Return by how much class ids (numbers of classes, where ids are words) mostly differ."""
    numbers: list[int] = [name if isinstance(name, int) else k for k, name in enumerate(ids)]
    ((step, often),) = Counter(numbers[got] - numbers[due] for due, got in pairs).most_common(1)
    return step, often


def _is_permutation(pairs: list[tuple[int, int]]) -> bool:
    """Return whether nearly every class is taken for one other, and no two for the same."""
    by_class: dict[int, Counter[int]] = {}
    for due, got in pairs:
        by_class.setdefault(due, Counter())[got] += 1
    commonest = {due: counts.most_common(1)[0] for due, counts in by_class.items()}
    steady = sum(often for _, often in commonest.values())
    return steady >= 0.8 * len(pairs) and len({got for got, _ in commonest.values()}) == len(
        commonest
    )


_ONE_PIXEL = 0.25
_ENOUGH = 30


def _wrong_pixel(sample: Sample) -> Iterator[Note]:
    """Note corners that mostly differ by one pixel: counted from 1 on one side, from 0 on the
    other, or the last pixel of a box on one side and the one behind it on the other.
    """  # noqa: D205 - one thought
    _, at, own = sample.best
    met = own >= 0.7
    if np.count_nonzero(met) < _ENOUGH:
        return
    difference = sample.detections.corners[at[met]] - sample.truth.corners[sample.rows[met]]
    for way in (1.0, -1.0):
        usual = (np.abs(difference - way) < _ONE_PIXEL).mean(axis=0) > 0.5
        still = (np.abs(difference) < _ONE_PIXEL).mean(axis=0) > 0.5
        more = "higher" if way > 0 else "lower"
        if usual.all():
            message = (
                f"most corners of detections are one pixel {more} than the ground truth's: is one "
                "side counted from 0 and the other from 1?"
            )
            yield Note("one-pixel-off", message, int(np.count_nonzero(met)))
        elif usual[2:].all() and still[:2].all():
            message = (
                f"most detections end one pixel {more} than the ground truth, and begin where it "
                "begins: does one side name the last pixel, and the other the one behind it?"
            )
            yield Note("one-pixel-wider", message, int(np.count_nonzero(met)))
