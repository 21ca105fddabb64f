"""From results to gates: which numbers there are, how noisy they are, and what made them worse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isnan, nan
from typing import Any

import numpy as np

from detap.bootstrap import Resampled, draw_weights, interval, resampled
from detap.comparison import KINDS, mistakes
from detap.decimals import same
from detap.detection import on_images
from detap.errors import UsageError
from detap.formats.digest import sha256_of_names
from detap.gate import CHANGES, Gate, Interval, Limit, Name, Noise, Numbers, resolve, row_key
from detap.judging import Demands
from detap.protocols import Protocol
from detap.report.model import Block, Cell, Column, Table
from detap.report.names import printable
from detap.report.numbers import change
from detap.report.sections.detection import class_rows
from detap.results import Result
from detap.tables import Floats
from detap.tables import Name as ImageName

_MOST_CULPRITS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A detector's result, whole and by slice; None is a slice without any image.

    What is judged of a detector: a ``Subject`` of ``detap/judging.py``.
    """

    whole: Result
    slices: Mapping[str, Result | None] = field(default_factory=dict)
    threads: int | None = None

    @classmethod
    def of(
        cls,
        whole: Result,
        slices: Mapping[str, Sequence[ImageName]],
        *,
        threads: int | None = None,
    ) -> "Scored":
        """Score each slice of the images by itself."""
        known = set(whole.ground_truth.images)
        parts: dict[str, Result | None] = {}
        for tag, images in slices.items():
            chosen = [image for image in images if image in known]
            if not chosen:
                parts[tag] = None
                continue
            parts[tag] = on_images(whole, chosen, threads=threads)
        return cls(whole, parts, threads)

    def part(self, tag: str | None) -> Result | None:
        """Return the result of a slice; None is the whole."""
        return self.whole if tag is None else self.slices[tag]

    def numbers(self) -> Numbers:
        """Return all that gates can name."""
        whole = _numbers(self.whole)
        slices = {
            tag: whole.undefined() if part is None else _numbers(part)
            for tag, part in self.slices.items()
        }
        return replace(whole, slices=slices)

    def noise(self, before: "Scored", demands: Demands) -> "Intervals":
        """Return the intervals of the drops from an earlier detector."""
        limits = [limit for limit in demands.limits if limit.kind in CHANGES]
        return Intervals(self, before, limits, demands)

    def blame(
        self,
        gates: Sequence[Gate],
        then: Numbers | None,
        before: "Scored | None",
        noise: Noise | None,
    ) -> Block | None:
        """Return the classes and images that the gates which did not pass are about."""
        return culprits(gates, self, then, before)

    def blocks(self) -> list[Block]:
        """Return the part of a report that tells of the slices, if there are any."""
        block = self._slices()
        return [] if block is None else [block]

    def _slices(self) -> Block | None:
        if not self.slices:
            return None
        rows: list[dict[str, Cell]] = []
        data: dict[str, Any] = {}
        for tag, part in self.slices.items():
            names_of_images = () if part is None else part.ground_truth.images
            truths = 0 if part is None else int(part.ground_truths.sum())
            names = list(self.whole.summary)
            summary = dict.fromkeys(names, nan) if part is None else part.summary
            classes = [] if part is None else class_rows(part)
            data[tag] = {
                "images": len(names_of_images),
                "images_sha256": sha256_of_names(names_of_images),
                "ground_truths": truths,
                "summary": summary,
                "classes": classes,
            }
            images = len(names_of_images)
            rows.append({"name": tag, "images": images, "ground_truths": truths, **summary})
        columns = (
            Column("name", "slice", "slice", "name"),
            *(Column(name, name, name, "share", min(place, 2)) for place, name in enumerate(names)),
            Column("images", "images", "img", "count"),
            Column("ground_truths", "ground truths", "GT", "count"),
        )
        return Block("slices", "Slices", data, table=Table(columns, tuple(rows)))


def _numbers(result: Result) -> Numbers:
    def more(name: str) -> float:
        return result.measure(name)

    def more_rows(name: str) -> list[float]:
        values: list[float] = result.measure_by_class(in_protocol(result.protocol, name)).tolist()
        return values

    return Numbers(
        next(iter(result.summary)),
        result.summary,
        class_rows(result),
        more=more,
        more_rows=more_rows,
    )


def in_protocol(rules: Protocol, row_measure: str) -> str:
    """Return what the protocol calls a number of one class: where the mean is mAP, AP is mAP."""
    if row_measure == "recall":
        return "AR"
    if rules.headline == "mAP" and row_measure.startswith("AP"):
        return f"m{row_measure}"
    return row_measure


class Intervals:
    """Intervals of drops, by paired resamples that are drawn once per slice.

    Parameters
    ----------
    now, then : Scored
        The detector and the one before it, on the same images.
    limits : sequence of Limit
        Which numbers will be asked for.
    demands : Demands
        The confidence, the resamples and their seed: see docs/bootstrap.md.

    Raises
    ------
    UsageError
        Where a number cannot be resampled.
    """

    def __init__(
        self, now: Scored, then: Scored, limits: Sequence[Limit], demands: Demands
    ) -> None:
        assert demands.confidence is not None
        self.confidence = demands.confidence
        numbers = now.numbers()
        names = [name for limit in limits for name in resolve(limit.name, numbers)]
        self._pairs: dict[str | None, tuple[Resampled, Resampled] | None] = {}
        for tag in dict.fromkeys(name.slice for name in names):
            wanted = sorted({_measure(now, name) for name in names if name.slice == tag})
            before, after = then.part(tag), now.part(tag)
            if before is None or after is None:
                self._pairs[tag] = None
                continue
            images = len(after.ground_truth.images)
            weights = draw_weights(images, demands.resamples, demands.seed)
            self._pairs[tag] = (
                resampled(before, weights, wanted, threads=then.threads),
                resampled(after, weights, wanted, threads=now.threads),
            )
        self._now = now

    def interval(self, name: Name) -> Interval:
        """Return the interval of the drop of a number."""
        pair = self._pairs[name.slice]
        if pair is None:
            return nan, nan
        measure = _measure(self._now, name)
        before, after = (_series(one, name, measure) for one in pair)
        return interval(before - after, self.confidence)


def _measure(scored: Scored, name: Name) -> str:
    rules = scored.whole.protocol
    measure = name.measure
    if name.row is not None or name.smallest:
        measure = in_protocol(rules, measure)
    try:
        rules.measure(measure)
    except KeyError:
        raise UsageError(
            f"{name.text!r} is no average precision or recall: it has no interval; "
            "leave it or --confidence out"
        ) from None
    return measure


def _series(one: Resampled, name: Name, measure: str) -> Floats:
    if name.row is not None:
        row: Floats = one.by_class[measure][name.row]
        return row
    if name.smallest:
        table = one.by_class[measure]
        filled = np.where(np.isnan(table), np.inf, table).min(axis=0, initial=np.inf)
        smallest: Floats = np.where(np.isinf(filled), np.nan, filled)
        return smallest
    return one.overall[measure]


# --- what made it so


def culprits(
    gates: Sequence[Gate],
    now: Scored,
    baseline: Numbers | None,
    then: Scored | None,
) -> Block | None:
    """Return the classes and images that the gates which did not pass are about.

    Parameters
    ----------
    gates : sequence of Gate
    now : Scored
    baseline : Numbers, optional
        What the numbers were.
    then : Scored, optional
        The detector before: with it, images are those that got worse. Without it nothing tells
        which these are, and they are those with most mistakes now.
    """
    doubtful = [gate.stands_for for gate in gates if gate.failed or gate.warned]
    names = [name for name in doubtful if name is not None]
    tags = {name.slice for name in names}
    tag = tags.pop() if len(tags) == 1 else None
    result = now.part(tag)
    if not names or result is None:
        return None
    before = None if then is None else then.part(tag)
    was = None if baseline is None else baseline.part(tag)
    labels = _labels(names, len(result.classes))
    classes = _classes(labels, result, was)
    looser = None if was is None else _looser(labels, result, was)
    threshold = 0 if looser is None else looser.threshold
    images = _images(labels, threshold, result, before)
    if not classes and not images:
        return None
    if before is not None:
        title = "What got worse"
    elif classes and was is not None:
        title = "What got worse, and where it is worst now"
    else:
        title = "Where it is worst now"
    place = "" if looser is None else f" at IoU {looser.iou[1]:.6g}"
    return Block(
        "culprits",
        title if tag is None else f"{title}, in slice {printable(tag)}",
        {
            "slice": tag,
            "classes": classes,
            "looser": None if looser is None else looser.as_dict(),
            "images": images,
            "images_compared": before is not None,
        },
        (
            *(_class_line(entry) for entry in classes),
            *([] if looser is None else [looser.line]),
            *(f"{_image_line(entry, more=before is not None)}{place}" for entry in images),
        ),
    )


def _labels(names: Sequence[Name], count: int) -> list[int]:
    """Return the classes that gates are about: all, where one is about all."""
    labels = sorted({name.row for name in names if name.row is not None and name.row < count})
    whole = any(name.row is None for name in names)
    return list(range(count)) if whole or not labels else labels


def _aligned(baseline: Numbers, measure: str, now: Result) -> Floats:
    """Return a number of each class as it was, (K,) float64; NaN where there was none."""
    if not baseline.row_has(measure):
        return np.full(len(now.classes), np.nan)
    values = zip(baseline.rows, baseline.by_row(measure), strict=True)
    was = {row_key(row): value for row, value in values}
    return np.array([was.get(row_key(row), nan) for row in class_rows(now)])


def _classes(labels: Sequence[int], now: Result, baseline: Numbers | None) -> list[dict[str, Any]]:
    """Return the classes that fell most; without a baseline those of lowest AP."""
    was = None if baseline is None else _aligned(baseline, "AP", now).tolist()
    table: list[dict[str, Any]] = [dict(row) for row in class_rows(now)]
    found: list[dict[str, Any]] = []
    for label in labels:
        row = table[label]
        value, then = float(row["AP"]), None if was is None else was[label]
        if isnan(value) or (then is not None and (not then > value or same(then, value))):
            continue
        found.append(
            {
                "name": row["name"],
                "AP": value,
                "baseline": then,
                "ground_truths": row["ground_truths"],
            }
        )

    def fallen(entry: Mapping[str, Any]) -> float:
        return float(entry["AP"]) - float(entry["baseline"] or 0.0)

    found.sort(key=fallen)
    return found[:_MOST_CULPRITS]


@dataclass(frozen=True, slots=True)
class _Looser:
    """That boxes are found as before, but with less overlap.

    Attributes
    ----------
    threshold : int
        Where AP fell most: an index into the protocol's thresholds.
    iou, drop : (float, float)
        The lowest threshold and that one, and by how much AP fell there.
    """

    threshold: int
    iou: tuple[float, float]
    drop: tuple[float, float]

    def as_dict(self) -> dict[str, Any]:
        """Return what the JSON report says of it."""
        ends = zip(("lowest", "worst"), self.iou, self.drop, strict=True)
        return {name: {"iou": iou, "drop": drop} for name, iou, drop in ends}

    @property
    def line(self) -> str:
        """A sentence for people."""
        low, worst = (f"{iou:.6g}" for iou in self.iou)
        stands = -self.drop[0]
        moved = "stands" if same(stands, 0.0) else f"changed by {change(stands, 4)}"
        return (
            f"boxes became looser: AP at IoU {low} {moved}, "
            f"at IoU {worst} it fell by {self.drop[1]:.4f}"
        )


def _looser(labels: Sequence[int], now: Result, baseline: Numbers) -> _Looser | None:
    """Tell whether AP fell at a higher threshold, and less than half as much at the lowest.

    Of an earlier report only the thresholds are known that it has numbers of.
    """
    drops: dict[int, float] = {}
    for threshold, iou in enumerate(now.iou_thresholds):
        then = _aligned(baseline, f"AP{format(100 * iou, '.6g')}", now)
        values = (then - now.average_precision[threshold, :, 0])[list(labels)]
        defined = values[~np.isnan(values)]
        if len(defined):
            drops[threshold] = float(defined.mean())
    worst = max(drops, key=lambda threshold: drops[threshold], default=0)
    if worst == 0 or 0 not in drops or not drops[0] < drops[worst] / 2:
        return None
    iou = (float(now.iou_thresholds[0]), float(now.iou_thresholds[worst]))
    return _Looser(worst, iou, (drops[0], drops[worst]))


def _images(
    labels: Sequence[int], threshold: int, now: Result, then: Result | None
) -> list[dict[str, Any]]:
    """Return the images with most mistakes at a threshold, or most more than before."""
    if now.protocol.pairing == "coverage":
        return []
    counts = mistakes(now, threshold=threshold).of_classes(labels)
    if then is not None:
        names = {now.classes[label] for label in labels}
        alike = [label for label, name in enumerate(then.classes) if name in names]
        counts = counts - mistakes(then, threshold=threshold).of_classes(alike)
    total = counts.sum(axis=1)
    order = np.argsort(-total, kind="stable")[:_MOST_CULPRITS]
    return [
        {
            "name": now.ground_truth.images[image],
            "mistakes": int(total[image]),
            **dict(zip(KINDS, counts[image].tolist(), strict=True)),
        }
        for image in order
        if total[image] > 0
    ]


def _class_line(entry: Mapping[str, Any]) -> str:
    was = entry["baseline"]
    told = f"class {entry['name']}: AP {entry['AP']:.4f}"
    if was is not None:
        told += f", was {was:.4f}"
    return f"{told}, {entry['ground_truths']} ground truths"


def _image_line(entry: Mapping[str, Any], *, more: bool) -> str:
    word = "more " if more else ""
    told = [f"{entry[kind]} {word}{kind}" for kind in KINDS if entry[kind] > 0]
    if more:
        told += [f"{-entry[kind]} fewer {kind}" for kind in KINDS if entry[kind] < 0]
    return f"image {entry['name']}: {', '.join(told)}"
