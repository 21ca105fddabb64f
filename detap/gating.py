"""From results to gates: which numbers there are, how noisy they are, and what made them worse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any

import numpy as np

from detap.bootstrap import Part, Resampled, draw_weights, interval, resampled
from detap.comparison import KINDS, Mistakes, mistakes
from detap.detection import score_tables, select
from detap.errors import UsageError
from detap.gate import Gate, Interval, Limit, Name, Numbers, resolve
from detap.protocols import Protocol
from detap.report.model import Block, Cell, Column, Table
from detap.report.rows import class_rows
from detap.results import Result
from detap.tables import Floats
from detap.tables import Name as ImageName

_MOST_CULPRITS = 10


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A detector's result, whole and by slice; None is a slice without any image."""

    whole: Result
    slices: Mapping[str, Result | None] = field(default_factory=dict)

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
            tables = select(whole.ground_truth, whole.detections, images=chosen)
            parts[tag] = score_tables(*tables, whole.protocol, threads=threads)
        return cls(whole, parts)

    def part(self, tag: str | None) -> Result | None:
        """Return the result of a slice; None is the whole."""
        return self.whole if tag is None else self.slices[tag]

    def numbers(self) -> Numbers:
        """Return all that gates can name."""
        whole = _numbers(self.whole)
        slices = {
            tag: _undefined(whole) if part is None else _numbers(part)
            for tag, part in self.slices.items()
        }
        return Numbers(
            whole.headline,
            whole.summary,
            whole.rows,
            slices=slices,
            more=whole.more,
            more_rows=whole.more_rows,
        )

    def block(self) -> Block | None:
        """Return the part of a report that tells of the slices."""
        if not self.slices:
            return None
        rows: list[dict[str, Cell]] = []
        data: dict[str, Any] = {}
        for tag, part in self.slices.items():
            images = 0 if part is None else len(part.ground_truth.images)
            truths = 0 if part is None else int(part.ground_truths.sum())
            names = list(self.whole.summary)
            summary = dict.fromkeys(names, nan) if part is None else part.summary
            classes = [] if part is None else class_rows(part)
            data[tag] = {
                "images": images,
                "ground_truths": truths,
                "summary": summary,
                "classes": classes,
            }
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


def _undefined(whole: Numbers) -> Numbers:
    """Return the numbers of a slice without images: those of the whole, none defined."""
    rows = [
        {
            key: value if isinstance(value, str) or key == "id" else 0 if _is_count(value) else nan
            for key, value in row.items()
        }
        for row in whole.rows
    ]
    return Numbers(whole.headline, dict.fromkeys(whole.summary, nan), rows)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


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
    confidence, resamples, seed, threads
        See docs/bootstrap.md.

    Raises
    ------
    UsageError
        Where a number cannot be resampled.
    """

    def __init__(
        self,
        now: Scored,
        then: Scored,
        limits: Sequence[Limit],
        *,
        confidence: float,
        resamples: int,
        seed: int,
        threads: int | None = None,
    ) -> None:
        self.confidence = confidence
        numbers = now.numbers()
        names = [name for limit in limits for name in resolve(limit.name, numbers)]
        self.parts: dict[str | None, tuple[Part, Part]] = {}
        self._pairs: dict[str | None, tuple[Resampled, Resampled] | None] = {}
        for tag in dict.fromkeys(name.slice for name in names):
            wanted = sorted({_measure(now, name) for name in names if name.slice == tag})
            before, after = then.part(tag), now.part(tag)
            if before is None or after is None:
                self._pairs[tag] = None
                continue
            weights = draw_weights(len(after.ground_truth.images), resamples, seed)
            parts = (Part.of(before, wanted), Part.of(after, wanted))
            self.parts[tag] = parts
            self._pairs[tag] = (
                resampled(parts[0], weights, wanted, threads=threads),
                resampled(parts[1], weights, wanted, threads=threads),
            )
        self._now = now

    def of(self, name: Name) -> Interval:
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
    now: Result,
    baseline: Numbers | None,
    then: Result | None,
    intervals: Intervals | None = None,
) -> Block | None:
    """Return the classes and images that the gates which did not pass are about.

    Parameters
    ----------
    gates : sequence of Gate
    now : Result
    baseline : Numbers, optional
        What the numbers were.
    then : Result, optional
        The detector before: with it, images are those that got worse; without it, those with most
        mistakes.
    intervals : Intervals, optional
        Which have matched both already.
    """
    doubtful = [gate for gate in gates if gate.failed or gate.warned]
    if not doubtful:
        return None
    rows = {gate.stands_for.row for gate in doubtful if gate.stands_for is not None}
    labels = sorted(row for row in rows if row is not None)
    if None in rows or not labels:
        labels = list(range(len(now.classes)))
    classes = _classes(labels, now, baseline)
    parts = (None, None) if intervals is None else intervals.parts.get(None, (None, None))
    images = _images(labels, (now, parts[1]), (then, parts[0]))
    if not classes and not images:
        return None
    worse = then is not None or baseline is not None
    lines = [
        *(_class_line(entry) for entry in classes),
        *(_image_line(entry, more=then is not None) for entry in images),
    ]
    return Block(
        "culprits",
        "What got worse" if worse else "Where it is worst",
        {"classes": classes, "images": images},
        tuple(lines),
    )


def _classes(labels: Sequence[int], now: Result, baseline: Numbers | None) -> list[dict[str, Any]]:
    """Return the classes that fell most; without a baseline those of lowest AP."""
    before: dict[tuple[str, str], float] = {}
    if baseline is not None and baseline.row_has("AP"):
        then = baseline.by_row("AP")
        before = {
            (str(row["name"]), str(row.get("id"))): value
            for row, value in zip(baseline.rows, then, strict=True)
        }
    found: list[dict[str, Any]] = []
    table: list[dict[str, Any]] = [dict(row) for row in class_rows(now)]
    for row in (table[label] for label in labels):
        value = float(row["AP"])
        was = before.get((str(row["name"]), str(row["id"])), nan)
        if isnan(value) or (baseline is not None and not was > value):
            continue
        found.append(
            {
                "name": row["name"],
                "AP": value,
                "baseline": None if baseline is None else was,
                "ground_truths": row["ground_truths"],
            }
        )

    def fallen(entry: Mapping[str, Any]) -> float:
        return float(entry["AP"]) - float(entry["baseline"] or 0.0)

    found.sort(key=fallen)
    return found[:_MOST_CULPRITS]


def _images(
    labels: Sequence[int],
    after: tuple[Result, Part | None],
    before: tuple[Result | None, Part | None],
) -> list[dict[str, Any]]:
    now, then = after[0], before[0]
    if now.protocol.pairing == "coverage":
        return []
    counts = mistakes(*after).of_classes(labels)
    if then is not None:
        counts = counts - _of_names(mistakes(then, before[1]), then, now, labels)
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


def _of_names(
    found: Mistakes, then: Result, now: Result, labels: Sequence[int]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    names = {now.classes[label] for label in labels}
    return found.of_classes([k for k, name in enumerate(then.classes) if name in names])


def _class_line(entry: Mapping[str, Any]) -> str:
    was = entry["baseline"]
    told = f"class {entry['name']}: AP {entry['AP']:.4f}"
    if was is not None and not isnan(was):
        told += f", was {was:.4f}"
    return f"{told}, {entry['ground_truths']} ground truths"


def _image_line(entry: Mapping[str, Any], *, more: bool) -> str:
    word = "more " if more else ""
    told = [f"{entry[kind]} {word}{kind}" for kind in KINDS if entry[kind] > 0]
    if more:
        told += [f"{-entry[kind]} fewer {kind}" for kind in KINDS if entry[kind] < 0]
    return f"image {entry['name']}: {', '.join(told)}"
