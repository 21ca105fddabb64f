"""Mismatch checks: detections that do not belong to their ground truth."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from detap.checks.box_formats import convention, mixed_conventions
from detap.checks.sample import MOST_OVERLAPPED, Sample, beyond_chance, fraction_of
from detap.errors import Note
from detap.tables.detection import Detections, GroundTruth
from detap.tables.notes import CLASS_IDS
from detap.text_input import quote

_FEW = 0.02

_ENOUGH = 30
_FEWEST_IMAGES, _FEWEST_FITTED = 4, 5
_FEWEST_OF_CLASS, _FEWEST_EXCHANGED, _AMONG_THEM = 3, 10, 0.6
_ONE_PIXEL = 0.25

_CLASS_NAMES = "pass the class list of the detections with --dt-class-names"

_FEWEST_MISSED = 10
"""Sampled objects needed for `few-overlaps`: a recall of 1/3 misses all ten in 1 of 60 sets."""


@np.errstate(over="ignore", invalid="ignore")  # boxes read in another format may overflow
def mismatch_notes(
    ground_truth: GroundTruth, detections: Detections, sample: Sample | None = None
) -> list[Note]:
    """Return the notes of failed mismatch checks."""
    sample = sample or Sample(ground_truth, detections)
    if not len(sample.rows):
        return []
    overlapped = float(sample.overlapped.mean())
    first = convention(sample, overlapped) or mixed_conventions(sample) or _mixed_images(sample)
    if first:
        return [first]
    if (overlapped < _FEW and len(sample.rows) >= _FEWEST_MISSED) or _no_more_than_chance(sample):
        message = (
            "detections overlap ground truths no more often than by chance "
            f"({np.count_nonzero(sample.overlapped)} of {len(sample.rows)} sampled); other images "
            "or another image size under the same names?"
        )
        return [Note("few-overlaps", message, int(np.count_nonzero(~sample.overlapped)))]
    labels = list(_wrong_labels(sample)) or list(exchanged_classes(sample))
    return [*labels, *_wrong_pixel(sample), *_inverted_scores(sample)]


@np.errstate(over="ignore", invalid="ignore")
def misread(ground_truth: GroundTruth, detections: Detections) -> list[Note]:
    """Return the note of boxes in another format, without the other checks."""
    sample = Sample(ground_truth, detections)
    note = convention(sample, fraction_of(sample.overlapped)) if len(sample.rows) else None
    return [] if note is None else [note]


def _no_more_than_chance(sample: Sample) -> bool:
    """Return True if detections overlap other images' ground truths as often as their own."""
    count = len(sample.rows)
    if count < _ENOUGH or sample.overlapped.mean() > MOST_OVERLAPPED:
        return False
    return not beyond_chance(float(np.count_nonzero(sample.overlapped)), sample.chance(), count)


def _mixed_images(sample: Sample) -> Note | None:
    """Return the note of detections that fit another image of a small set."""
    # Larger sets get `few-overlaps`. In a small set, chance explains many overlaps, but not that
    # most objects closely fit the detections of one other image.
    count = len(sample.rows)
    if sample.images < _FEWEST_IMAGES or count >= _ENOUGH:
        return None
    fits = sample.tight()
    fits_of_same_image = int(np.trace(fits))
    np.fill_diagonal(fits, 0)
    most_fits, partner = fits.max(axis=1), fits.argmax(axis=1)
    images = np.flatnonzero(most_fits)
    fitted = int(most_fits.sum())
    if fitted < max(_FEWEST_FITTED, count / 2, 3 * fits_of_same_image):
        return None
    # Fits with images other than the partner are chance. A partner is the best of n images.
    by_chance = (int(fits.sum()) - fitted + 1) / (count * (sample.images - 2))
    best_by_chance = 1 - max(0.0, 1 - by_chance) ** (sample.images - 1)
    partners = len(np.unique(partner[images]))  # one image must not fit all
    if not beyond_chance(fitted, best_by_chance, count) or 10 * partners < 8 * len(images):
        return None
    first = int(images[0])
    example = f"those of {sample.name(int(partner[first]))!r} fit {sample.name(first)!r}"
    message = f"detections fit the objects of another image ({example}); image names mixed up?"
    return Note("images-mixed-up", message, len(images))


def _wrong_labels(sample: Sample) -> Iterator[Note]:
    """Yield the note of overlapping boxes whose classes differ."""
    _, detection, _ = sample.best
    wrong = sample.overlapped & ~sample.overlapped_by_class
    right = int(np.count_nonzero(sample.overlapped_by_class))
    count = int(np.count_nonzero(wrong))
    if count < 2 or 2 * right > count or 10 * count < len(wrong):
        return
    gt_label = sample.ground_truth.label[sample.rows[wrong]]
    dt_label = sample.detections.label[detection[wrong]]
    ids = sample.detections.class_ids
    pairs = list(zip(gt_label.tolist(), dt_label.tolist(), strict=True))
    numbers: list[int] = [name if isinstance(name, int) else k for k, name in enumerate(ids)]
    offsets = Counter(numbers[dt] - numbers[gt] for gt, dt in pairs)
    ((offset, offset_count),) = offsets.most_common(1)
    overlaps = (
        f"({_example(sample, pairs[0])}): of the sampled ground truths, {right} are overlapped by "
        f"their own class, {count} only by another"
    )
    if offset and len(set(gt_label.tolist())) > 1 and offset_count >= 0.6 * count:
        hint = CLASS_IDS if sample.detections.files else "use the ground truth's ids"
        message = f"class ids of detections look off by {offset:+d} {overlaps}; {hint}"
        yield Note("category-id-offset", message, count)
    elif _is_permutation(pairs):
        message = f"classes of detections look permuted {overlaps}; {_CLASS_NAMES}"
        yield Note("classes-permuted", message, count)
    else:
        message = (
            f"detections overlap objects of another class {overlaps}; do both files use the same "
            "classes?"
        )
        yield Note("classes-disagree", message, count)


def exchanged_classes(sample: Sample) -> Iterator[Note]:
    """Yield the note of classes that are permuted among themselves, while others may be right."""
    # A detector confuses classes too, but does not predict each of several as another of them.
    _, detection, _ = sample.best
    by_class = sample.overlapped_by_class
    wrong = sample.overlapped & ~by_class
    gt_label, count = sample.ground_truth.label[sample.rows], len(sample.detections.classes)
    right, others = (np.bincount(gt_label[flags], minlength=count) for flags in (by_class, wrong))
    exchanged = (others >= _FEWEST_OF_CLASS) & (others > 2 * right)
    wrong &= exchanged[gt_label]
    dt_label = sample.detections.label[detection[wrong]]
    pairs = list(zip(gt_label[wrong].tolist(), dt_label.tolist(), strict=True))
    if len(pairs) < _FEWEST_EXCHANGED or not _is_permutation(pairs):
        return
    # A list that lacks a name shifts the later ones; the last of them is outside these classes.
    if np.count_nonzero(exchanged[dt_label]) < _AMONG_THEM * len(dt_label):
        return
    names = [quote(sample.detections.classes[k]) for k in np.flatnonzero(exchanged).tolist()]
    message = (
        f"the classes {', '.join(names[:5])}{', ...' if len(names) > 5 else ''} of detections look "
        f"permuted ({_example(sample, pairs[0])}); {_CLASS_NAMES}"
    )
    yield Note("classes-permuted", message, len(pairs))


def _example(sample: Sample, pair: tuple[int, int]) -> str:
    names = sample.detections.classes
    return f"e.g. {quote(names[pair[1]])} overlaps {quote(names[pair[0]])}"


def _is_permutation(pairs: list[tuple[int, int]]) -> bool:
    """Return True if nearly every class is taken for one other, and no two for the same."""
    by_class: dict[int, Counter[int]] = {}
    for gt, dt in pairs:
        by_class.setdefault(gt, Counter())[dt] += 1
    commonest = [counts.most_common(1)[0] for counts in by_class.values()]
    explained = sum(count for _, count in commonest)
    return explained >= 0.8 * len(pairs) and len({dt for dt, _ in commonest}) == len(commonest)


def _inverted_scores(sample: Sample) -> Iterator[Note]:
    """Yield the note of scores that mostly rank correct detections below false positives."""
    if not sample.detections.has_scores:
        return
    rows, right = sample.correct
    score, label = sample.detections.score[rows], sample.detections.label[rows]
    above = pairs = variance = 0.0
    # Per class, because AP ranks each class separately.
    for k in np.unique(label[right]).tolist():
        good, bad = score[right & (label == k)], np.sort(score[~right & (label == k)])
        below = [np.searchsorted(bad, good, side).sum() for side in ("left", "right")]
        above += sum(below) / 2
        pairs += len(good) * len(bad)
        variance += len(good) * len(bad) * (len(good) + len(bad) + 1) / 12
    # Four standard deviations of the rank-sum statistic.
    if above < 0.4 * pairs and above < pairs / 2 - 4 * variance**0.5:
        message = (
            "detections that overlap an object of their class mostly score lower than those that "
            f"do not (higher in {above / pairs:.0%} of pairs); is it a distance, or 1 - score?"
        )
        yield Note("scores-look-inverted", message, int(np.count_nonzero(right)))


def _wrong_pixel(sample: Sample) -> Iterator[Note]:
    """Yield the note of corners that mostly differ by one pixel."""
    _, detection, iou = sample.best
    close = iou >= 0.7
    count = int(np.count_nonzero(close))
    if count < _ENOUGH:
        return
    corners = sample.detections.corners[detection[close]]
    difference = corners - sample.ground_truth.corners[sample.rows[close]]
    for offset in (1.0, -1.0):
        shifted = (np.abs(difference - offset) < _ONE_PIXEL).mean(axis=0) > 0.5
        equal = (np.abs(difference) < _ONE_PIXEL).mean(axis=0) > 0.5
        comparison = "higher" if offset > 0 else "lower"
        if shifted.all():
            message = (
                f"most corners of detections are one pixel {comparison} than the ground truth's; "
                "0-based and 1-based coordinates mixed?"
            )
            yield Note("one-pixel-off", message, count)
        elif shifted[2:].all() and equal[:2].all():
            message = (
                f"most detections end one pixel {comparison} than the ground truth but start at "
                "the same pixel; inclusive and exclusive ends mixed?"
            )
            yield Note("one-pixel-wider", message, count)
