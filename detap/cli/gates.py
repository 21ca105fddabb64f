"""Options of gates, which several commands share, and judging by them."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from detap.cli.options import option, stack
from detap.cli.session import Session
from detap.cli.values import Type
from detap.errors import Note, UsageError
from detap.report.names import printable

if TYPE_CHECKING:
    from detap.gate import Gate, Limit, Numbers
    from detap.gating import Intervals, Scored
    from detap.report.model import Block, Report
    from detap.results import Result
    from detap.tables import Detections, GroundTruth

GATE_FAILED = 1
DEFAULT_RESAMPLES = 1000
DEFAULT_FEWEST = 20


class _Limit(Type):
    """``[NAME=]NUMBER``, as ``Limit.floor`` or ``Limit.drop`` reads it."""

    envvar_list_splitter = ";"  # names have spaces

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.name = "[name=]number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "Limit":
        """Return the limit that the text means."""
        from detap.gate import Limit  # noqa: PLC0415 - only where there are gates

        if isinstance(value, Limit):
            return value
        try:
            return Limit.floor(value) if self.kind == "floor" else Limit.drop(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Share(Type):
    """A number between 0 and 1, neither included."""

    name = "share"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        try:
            share = float(value)
        except ValueError:
            share = math.nan
        if not 0 < share < 1:
            self.fail(f"{value!r} is not between 0 and 1", param, ctx)
        return share


def _gate(*names: str, **attributes: Any) -> Callable[[Any], Any]:
    return option(*names, group="Gates (exit status 1 where one fails)", **attributes)


floor_options = stack(
    _gate(
        "--fail-under",
        "floors",
        envvar="DETAP_FAIL_UNDER",
        type=_Limit("floor"),
        multiple=True,
        metavar="[NAME=]X",
        help="Fail where a number is below X: 0.5 for the headline, AP50=0.7, "
        "'class:person.AP=0.6', min-class.AP=0.2, slice:night.AP50=0.4. Repeatable.",
    ),
)

drop_options = stack(
    _gate(
        "--baseline",
        metavar="FILE",
        help="An earlier JSON report, to compare with by --max-drop.",
    ),
    _gate(
        "--max-drop",
        "drops",
        envvar="DETAP_MAX_DROP",
        type=_Limit("drop"),
        multiple=True,
        metavar="[NAME=]X",
        help="Fail where a number is more than X below the baseline's: 0.005, AP=1%, "
        "'class:*.AP=0.02'. Repeatable.",
    ),
    _gate(
        "--allow-different",
        is_flag=True,
        help="Compare with a baseline of another ground truth or protocol all the same.",
    ),
)

noise_options = stack(
    _gate(
        "--baseline-detections",
        metavar="PATH",
        help="An earlier detector's detections, to compare with by --max-drop.",
    ),
    _gate(
        "--confidence",
        type=Share(),
        metavar="LEVEL",
        help="With --baseline-detections: fail only where the whole interval of the drop, at "
        "this level, is beyond the limit.",
    ),
    _gate(
        "--resamples",
        type=click.IntRange(100, 1_000_000),
        metavar="N",
        help=f"Resamples behind the interval. [default: {DEFAULT_RESAMPLES}]",
    ),
    _gate(
        "--seed",
        type=click.IntRange(0, 2**63 - 1),
        metavar="N",
        help="Seed of the resamples. [default: 0]",
    ),
    _gate(
        "--min-ground-truths",
        type=click.IntRange(0),
        metavar="N",
        help="Drops of classes with fewer only warn. "
        f"[default: {DEFAULT_FEWEST} with --confidence, else 0]",
    ),
)

slice_options = stack(
    _gate(
        "--slices",
        metavar="FILE",
        help="Score parts of the images as well: JSON from image to tags or from tag to images, "
        "or CSV of image,tag.",
    ),
    _gate(
        "--slice-by",
        metavar="ATTRIBUTE",
        help="Likewise by an attribute of the images: a key of COCO's image records, an element "
        "of VOC's annotations.",
    ),
)

gate_options = stack(floor_options, drop_options, noise_options, slice_options)
"""All of them, for a command that scores a detector."""


class Judged(NamedTuple):
    """What came of the gates.

    Attributes
    ----------
    blocks : tuple of Block
        What the report says of them.
    gates : tuple of Gate
    """

    blocks: "tuple[Block, ...]" = ()
    gates: "tuple[Gate, ...]" = ()

    @property
    def status(self) -> int:
        """The exit status that they ask for."""
        return GATE_FAILED if any(gate.failed for gate in self.gates) else 0

    def say(self, session: Session) -> None:
        """Say on stderr which gates failed or are doubtful."""
        for gate in self.gates:
            if gate.failed:
                session.say(f"gate failed: {printable(gate.message)}")
            elif gate.warned:
                session.note(Note(f"gate-{gate.verdict}", gate.message))


class Gates(NamedTuple):
    """The gates of a run.

    Attributes
    ----------
    floors, drops : tuple of Limit
    baseline : str or None
        An earlier report.
    before : str or None
        An earlier detector's detections.
    confidence : float or None
    resamples, seed, fewest : int
    allow_different : bool
    slices, slice_by : str or None
    """

    floors: "tuple[Limit, ...]" = ()
    drops: "tuple[Limit, ...]" = ()
    baseline: str | None = None
    before: str | None = None
    confidence: float | None = None
    resamples: int = DEFAULT_RESAMPLES
    seed: int = 0
    fewest: int = 0
    allow_different: bool = False
    slices: str | None = None
    slice_by: str | None = None

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> "Gates":
        """Take the gate options out of `options`; a command need not have all of them.

        Raises
        ------
        UsageError
            Where they contradict each other, or one is of no use without another.
        """
        confidence = options.pop("confidence", None)
        resamples, seed = options.pop("resamples", None), options.pop("seed", None)
        fewest = options.pop("min_ground_truths", None)
        gates = cls(
            floors=tuple(options.pop("floors", ())),
            drops=tuple(options.pop("drops", ())),
            baseline=options.pop("baseline", None),
            before=options.pop("baseline_detections", None),
            confidence=confidence,
            resamples=DEFAULT_RESAMPLES if resamples is None else resamples,
            seed=seed or 0,
            fewest=(DEFAULT_FEWEST if confidence else 0) if fewest is None else fewest,
            allow_different=options.pop("allow_different", False),
            slices=options.pop("slices", None),
            slice_by=options.pop("slice_by", None),
        )
        gates._check({"--resamples": resamples, "--seed": seed})
        return gates

    def _check(self, of_noise: Mapping[str, Any]) -> None:
        if self.drops and self.baseline is None and self.before is None:
            raise UsageError("--max-drop needs --baseline or --baseline-detections to compare with")
        if (self.baseline or self.before) and not self.drops:
            given = "--baseline" if self.baseline else "--baseline-detections"
            raise UsageError(f"{given} needs --max-drop, which says how much may be lost")
        if self.confidence is not None and self.before is None:
            raise UsageError(
                "--confidence needs --baseline-detections: a report's numbers alone do not tell "
                "how noisy they are"
            )
        for name, value in of_noise.items():
            if value is not None and self.confidence is None:
                raise UsageError(f"{name} is of no use without --confidence")
        if self.allow_different and self.baseline is None:
            raise UsageError("--allow-different is of no use without --baseline")
        if self.slices is not None and self.slice_by is not None:
            raise UsageError("give --slices or --slice-by, not both")
        if self.before == "-":
            raise UsageError("--baseline-detections cannot come from stdin")

    @property
    def any(self) -> bool:
        """Whether there is anything to judge or to slice."""
        return bool(self.floors or self.drops or self.slices or self.slice_by)

    @property
    def want_digests(self) -> bool:
        """Whether the sha256 of the ground truth is needed."""
        return self.baseline is not None

    def paths(self) -> list[str]:
        """Return the paths that are read, and must not be written."""
        return [path for path in (self.baseline, self.before, self.slices) if path is not None]

    def read_baseline(self) -> dict[str, Any] | None:
        """Read the earlier report, before any work is done for nothing."""
        if self.baseline is None:
            return None
        from detap.baseline import read_baseline  # noqa: PLC0415 - only with a baseline

        return read_baseline(self.baseline)

    def read_slices(
        self, truth: "GroundTruth", file_format: str
    ) -> tuple[dict[str, list[Any]], list[Note]]:
        """Return the images of each slice, and notes on them."""
        if self.slices is None and self.slice_by is None:
            return {}, []
        from detap.slices import read_slices, slices_by  # noqa: PLC0415 - only with slices

        if self.slices is not None:
            return read_slices(self.slices, truth.images)
        from detap.formats.attributes import image_attributes  # noqa: PLC0415

        attribute = str(self.slice_by)
        values = image_attributes(truth, file_format, attribute)
        return slices_by(values, attribute, truth.images)


class Judge(NamedTuple):
    """The gates of a run, and what they are judged on.

    Attributes
    ----------
    gates : Gates
    baseline : dict or None
        The earlier report.
    scored : Scored
        The detector.
    before : Scored or None
        The detector before it.
    threads : int or None
    """

    gates: Gates
    baseline: dict[str, Any] | None
    scored: "Scored"
    before: "Scored | None"
    threads: int | None

    def judge(self, report: "Report") -> Judged:
        """Return what comes of the gates.

        Parameters
        ----------
        report : Report
            As it is without them.

        Raises
        ------
        UsageError
            Where a gate names no number, or the baseline may not be compared with.
        """
        from detap.gate import Noise, check_drops, check_floors  # noqa: PLC0415 - only with gates
        from detap.gating import culprits  # noqa: PLC0415
        from detap.report.gates import gate_block  # noqa: PLC0415

        numbers = self.scored.numbers()
        gates = check_floors(self.gates.floors, numbers)
        then = self._baseline_numbers(report)
        intervals = self._intervals()
        if then is not None:
            gates += check_drops(
                self.gates.drops,
                numbers,
                then,
                noise=None
                if intervals is None
                else Noise(confidence=intervals.confidence, interval=intervals.of),
                min_ground_truths=self.gates.fewest,
            )
        blocks = [self.scored.block()]
        if gates:
            before = None if self.before is None else self.before.whole
            blame = culprits(gates, self.scored.whole, then, before, intervals)
            blocks = [gate_block(gates), blame, *blocks]
        return Judged(tuple(block for block in blocks if block is not None), tuple(gates))

    def _baseline_numbers(self, report: "Report") -> "Numbers | None":
        if self.baseline is not None:
            from detap.baseline import (  # noqa: PLC0415 - only with a baseline
                differences,
                numbers_of_record,
                other_numbers,
                refuse_differences,
            )
            from detap.report.json import as_dict  # noqa: PLC0415

            path = printable(self.gates.baseline)
            if not self.gates.allow_different:
                found = differences(as_dict(report), self.baseline)
                if self.before is not None:
                    found += other_numbers(self.baseline, self.before.whole.summary)
                refuse_differences(path, found)
            if self.before is None:
                return numbers_of_record(self.baseline)
        return None if self.before is None else self.before.numbers()

    def _intervals(self) -> "Intervals | None":
        if self.gates.confidence is None or self.before is None:
            return None
        from detap.gating import Intervals  # noqa: PLC0415 - only with gates

        return Intervals(
            self.scored,
            self.before,
            self.gates.drops,
            confidence=self.gates.confidence,
            resamples=self.gates.resamples,
            seed=self.gates.seed,
            threads=self.threads,
        )


def selection_block(
    result: "Result", truth: "GroundTruth", detections: "Detections", options: Mapping[str, Any]
) -> "Block | None":
    """Return what the report says of --classes and --images; None where neither was given."""
    if not options["classes"] and not options["images"]:
        return None
    from hashlib import sha256  # noqa: PLC0415 - only with a selection

    from detap.report.model import Block  # noqa: PLC0415

    images = [str(name) for name in result.ground_truth.images] if options["images"] else None
    classes = list(result.detections.classes) if options["classes"] else None
    lines = []
    if classes is not None:
        lines.append(f"{len(classes)} of {len(detections.classes)} classes")
    if images is not None:
        lines.append(f"{len(images)} of {len(truth.images)} images")
    listed = None if images is None else "\n".join(images).encode("utf-8", "backslashreplace")
    data = {
        "classes": classes,
        "images": None if images is None else len(images),
        "images_sha256": None if listed is None else sha256(listed).hexdigest(),
    }
    return Block("selection", "Selection", data, lines=(", ".join(lines),))
