"""What looks wrong about two tables that are meant for each other."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from detap.checks.box_formats import convention, mixed_conventions
from detap.checks.sample import MOST_MET, Sample, beyond_chance
from detap.errors import Note
from detap.tables.detection import Detections, GroundTruth, Name

_FEW = 0.02

_FEWEST_MISSED = 10
"""Objects that say something when none is met: a detector that finds every third misses all of
them in one set of sixty."""


def suspicions(
    ground_truth: GroundTruth, detections: Detections, sample: Sample | None = None
) -> list[Note]:
    """Return what looks wrong about two tables that are meant for each other.

    Parameters
    ----------
    ground_truth : GroundTruth
    detections : Detections
        Numbered as `ground_truth`.
    sample : Sample, optional
        Of these tables.
    """
    sample = sample or Sample(ground_truth, detections)
    if not len(sample.rows):
        return []
    # What a box would be in another convention may be beyond every float.
    with np.errstate(over="ignore", invalid="ignore"):
        return _suspicions(sample)


def misread(ground_truth: GroundTruth, detections: Detections) -> list[Note]:
    """Return whether boxes look as if they were in another convention, and nothing else.

    Parameters
    ----------
    truth, detections
        As :func:`suspicions` has them.
    """
    sample = Sample(ground_truth, detections)
    if not len(sample.rows):
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        found = convention(sample, float(sample.met.mean()))
    return [] if found is None else [found]


def _suspicions(sample: Sample) -> list[Note]:
    met = float(sample.met.mean())
    first = convention(sample, met) or mixed_conventions(sample) or _mixed_images(sample)
    if first:
        return [first]
    if (met < _FEW and len(sample.rows) >= _FEWEST_MISSED) or _no_more_than_chance(sample):
        message = (
            "ground truths are met by detections of whatever class no more often than by chance "
            f"({np.count_nonzero(sample.met)} of {len(sample.rows)} looked at): are these the "
            "detections of other images, or of images of another size, under the same names?"
        )
        return [Note("few-overlaps", message, int(np.count_nonzero(~sample.met)))]
    labels = list(_wrong_labels(sample)) or list(exchanged_classes(sample))
    return [*labels, *_wrong_pixel(sample), *_turned_scores(sample)]


def _no_more_than_chance(sample: Sample) -> bool:
    """Return whether detections meet their own image's ground truths as those of any other."""
    count = len(sample.rows)
    if count < _ENOUGH or sample.met.mean() > MOST_MET:
        return False
    return not beyond_chance(float(np.count_nonzero(sample.met)), sample.chance(), count)


def _mixed_images(sample: Sample) -> Note | None:
    """Return the note of detections that fit other images of a small set than their own.

    Where there are more, that they meet no more than by chance says the same. In a small set
    chance explains much; not that most objects fit closely, each image's those of another one.
    """
    count = len(sample.rows)
    if sample.images < _FEWEST_IMAGES or count >= _ENOUGH:
        return None
    fits = sample.tight()
    own = int(np.trace(fits))
    np.fill_diagonal(fits, 0)
    best, partner = fits.max(axis=1), fits.argmax(axis=1)
    fitting = np.flatnonzero(best)
    fitted = int(best.sum())
    if fitted < max(_FEWEST_FITTED, count / 2, 3 * own):
        return None
    # What the others fit is chance; the best of so many images has as many attempts.
    by_chance = (int(fits.sum()) - fitted + 1) / (count * (sample.images - 2))
    once = 1 - max(0.0, 1 - by_chance) ** (sample.images - 1)
    alone = len(np.unique(partner[fitting]))  # one that fits all is no other's
    if not beyond_chance(fitted, once, count) or 10 * alone < 8 * len(fitting):
        return None
    first = int(fitting[0])
    shown = f"{sample.name(int(partner[first]))!r} on {sample.name(first)!r}"
    message = (
        "images have detections that do not fit them and objects that those of another image fit "
        f"(those of {shown}): are image names mixed up?"
    )
    return Note("images-mixed-up", message, len(fitting))


def _wrong_labels(sample: Sample) -> Iterator[Note]:
    """Note boxes that meet while their classes systematically differ."""
    _, at, _ = sample.best
    wrong = sample.met & ~sample.met_by_class
    right = int(np.count_nonzero(sample.met_by_class))
    count = int(np.count_nonzero(wrong))
    if count < 2 or 2 * right > count or 10 * count < len(wrong):
        return
    due = sample.ground_truth.label[sample.rows[wrong]]
    got = sample.detections.label[at[wrong]]
    ids = sample.detections.class_ids
    pairs = list(zip(due.tolist(), got.tolist(), strict=True))
    step, often = _commonest_step(pairs, ids)
    beginning = (
        f"detections lie on objects of another class ({_example(sample, pairs[0])}); {right} "
        f"ground truths looked at are met by their own class, {count} only by another"
    )
    if step and len(set(due.tolist())) > 1 and often >= 0.6 * count:
        way = "high" if step > 0 else "low"
        yield Note(
            "category-id-offset", f"{beginning}: class ids look {abs(step)} too {way}", count
        )
    elif _is_permutation(pairs):
        yield Note(
            "classes-permuted", f"{beginning}: classes look mixed up, each for one{_LIST}", count
        )
    else:
        yield Note("classes-disagree", f"{beginning}: do both files mean the same classes?", count)


def exchanged_classes(sample: Sample) -> Iterator[Note]:
    """Note classes of which each is taken for another of them, while others may be in their place.

    A detector confuses classes, too; but not so that none of several is found, and each of them
    is called what another should be.
    """
    _, at, _ = sample.best
    wrong = sample.met & ~sample.met_by_class
    due, count = sample.ground_truth.label[sample.rows], len(sample.detections.classes)
    right, others = (np.bincount(due[f], minlength=count) for f in (sample.met_by_class, wrong))
    odd = (others >= _FEWEST_OF_CLASS) & (others > 2 * right)
    wrong &= odd[due]
    got = sample.detections.label[at[wrong]]
    pairs = list(zip(due[wrong].tolist(), got.tolist(), strict=True))
    if len(pairs) < _FEWEST_EXCHANGED or not _is_permutation(pairs):
        return
    # A list that lacks a name moves those behind it, the last of them to no class of these.
    if np.count_nonzero(odd[got]) < _AMONG_THEM * len(got):
        return
    names = [_quoted(sample.detections.classes[k]) for k in np.flatnonzero(odd).tolist()]
    message = (
        f"detections lie on objects of another class ({_example(sample, pairs[0])}), each of "
        f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''} on those of another of them: "
        f"these classes look mixed up{_LIST}"
    )
    yield Note("classes-permuted", message, len(pairs))


_FEWEST_OF_CLASS = 3

_FEWEST_EXCHANGED = 10

_AMONG_THEM = 0.6

_LIST = "; give the list of names that detections are numbered by (--dt-class-names)"


def _example(sample: Sample, pair: tuple[int, int]) -> str:
    names = sample.detections.classes
    return f"{_quoted(names[pair[1]])} on {_quoted(names[pair[0]])}"


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


def _turned_scores(sample: Sample) -> Iterator[Note]:
    """Note scores by which what is right mostly ranks below what is wrong."""
    rows, right = sample.right
    score, label = sample.detections.score[rows], sample.detections.label[rows]
    above = pairs = variance = 0.0
    # Class by class, as they are ranked: scores of one need not be comparable with another's.
    for k in np.unique(label[right]).tolist():
        good, bad = score[right & (label == k)], np.sort(score[~right & (label == k)])
        below = [np.searchsorted(bad, good, side).sum() for side in ("left", "right")]
        above += sum(below) / 2
        pairs += len(good) * len(bad)
        variance += len(good) * len(bad) * (len(good) + len(bad) + 1) / 12
    # Four standard deviations of the rank-sum statistic.
    if above < 0.4 * pairs and above < pairs / 2 - 4 * variance**0.5:
        message = (
            "detections that meet an object of their class mostly have lower scores than those of "
            f"their class that meet none (higher in {above / pairs:.0%} of pairs): is the score a "
            "distance, or 1 - score?"
        )
        yield Note("scores-look-inverted", message, int(np.count_nonzero(right)))


_ONE_PIXEL = 0.25

_ENOUGH = 30

_FEWEST_IMAGES = 4

_FEWEST_FITTED = 5


def _wrong_pixel(sample: Sample) -> Iterator[Note]:
    """Note corners that mostly differ by one pixel: counted from 1 on one side, from 0 on the
    other, or the last pixel of a box on one side and the one behind it on the other.
    """  # noqa: D205 - one thought
    _, at, own = sample.best
    met = own >= 0.7
    if np.count_nonzero(met) < _ENOUGH:
        return
    difference = sample.detections.corners[at[met]] - sample.ground_truth.corners[sample.rows[met]]
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
