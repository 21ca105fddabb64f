"""Options of gates, and the configuration made from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from detap.cli.options import option, stack
from detap.cli.session import Session
from detap.cli.values import Integer, Text
from detap.errors import Note, UsageError
from detap.escaping import escape
from detap.evaluation.results import Result
from detap.evaluation.slices import read_slices, slices_by
from detap.formats.base import Format
from detap.gates.config import (
    DEFAULT_RESAMPLES,
    LIMITS,
    RESAMPLES,
    SEEDS,
    BaselineReport,
    GateConfig,
    Limit,
    OptionNames,
)
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.protocols.summary import DEFAULT_MIN_GROUND_TRUTHS
from detap.report.model import Report
from detap.tables.detection import Name
from detap.text_input import parse_fraction

GATE_FAILED = 1
DETECTIONS = OptionNames(options=True, interval_source="--baseline-detections", names={})
"""Names of gate settings in messages of commands that evaluate a detector."""


class _Limits(Text):
    """Limits; separated by semicolons in environment variables."""

    def split_envvar_value(self, rv: str) -> list[str]:
        """Split at semicolons, since names may contain spaces."""
        return [part.strip() for part in rv.split(";") if part.strip()]


_gate = partial(option, group="Gates (exit status 1 if one fails)")


def limit_option(
    setting: str, text: str, brief: str = "", *, settable: bool = True
) -> Callable[[Any], Any]:
    """Return an option of limits on metrics."""
    return _gate(
        f"--{setting.replace('_', '-')}",
        value_kind="limit",
        type=_Limits(partial(Limit.of, LIMITS[setting])),
        multiple=True,
        metavar="[NAME=]X",
        help=text,
        brief=brief,
        settable=settable,
    )


def limit_options(*, under: str, drop: str, over: str = "", rise: str = "") -> Callable[[Any], Any]:
    """Return the options of limits, with examples of metrics of the command."""
    return stack(
        limit_option(
            "fail_under",
            f"Fail if a metric is below X: {under}. If lower is better, use --fail-over. "
            "Repeatable.",
            f"Fail if a metric is below X: {', '.join(under.split(', ')[:2])}.",
        ),
        limit_option(
            "fail_over",
            f"Fail if a metric is above X{over and f': {over}'}. Repeatable.",
        ),
        _gate(
            "--baseline",
            value_kind="path",
            metavar="FILE",
            help="Earlier JSON report for --max-drop and --max-rise.",
        ),
        limit_option(
            "max_drop",
            f"Fail if a metric drops by more than X from the baseline: {drop}. If lower is better, "
            "use --max-rise. Repeatable.",
            "Fail if a metric drops by more than X from the baseline.",
        ),
        limit_option(
            "max_rise",
            f"Fail if a metric rises by more than X from the baseline{rise and f': {rise}'}. "
            "Repeatable.",
        ),
        _gate(
            "--allow-mismatch",
            is_flag=True,
            help="Accept a baseline of other data or another protocol.",
        ),
    )


def interval_options(
    earlier: str, units: str = "images", *, alone: str = ""
) -> Callable[[Any], Any]:
    """Return the options of intervals of the drop from the option `earlier`.

    `units` are resampled; `alone` is the help of ``--confidence`` without `earlier`.
    """
    return stack(
        _gate(
            "--confidence",
            type=Text(parse_fraction),
            metavar="LEVEL",
            help=f"{alone}With {earlier}: fail only if the whole confidence interval of the drop "
            "or rise is beyond the limit.",
        ),
        _gate(
            "--resamples",
            type=Integer(*RESAMPLES),
            help=f"Number of resamples. [default: {DEFAULT_RESAMPLES}]",
        ),
        _gate(
            "--seed",
            type=Integer(*SEEDS),
            help="Seed of the resamples. [default: 0]",
        ),
        _gate(
            "--detectable-drop",
            type=Text(parse_fraction),
            metavar="X",
            help=f"Report how many {units} a drop of X needs: between the two with {earlier}, "
            "else between two equally noisy ones.",
        ),
    )


slice_options = stack(
    _gate(
        "--slices",
        value_kind="path",
        metavar="FILE",
        help="Score subsets of images too. JSON: image to tags or tag to images. CSV: image,tag.",
    ),
    _gate(
        "--slice-by",
        metavar="ATTRIBUTE",
        help="Score subsets by image attribute: a key of COCO's image records, an element of VOC's "
        "annotations.",
    ),
)

gate_options = stack(
    limit_options(
        under="0.5 for the primary metric, AP50=0.7, 'class:person.AP=0.6', min-class.AP=0.2, "
        "slice:night.AP50=0.4",
        over="'class:*.false_positives=100'",
        drop="0.005, AP=1%, 'class:*.AP=0.02'",
        rise="'class:*.duplicates=10%'",
    ),
    _gate(
        "--baseline-detections",
        value_kind="path",
        metavar="PATH",
        help="Earlier detections for --max-drop and --max-rise.",
    ),
    interval_options(
        "--baseline-detections",
        alone="Add a bootstrap confidence interval to every metric: 0.95. ",
    ),
    _gate(
        "--min-ground-truths",
        type=Integer(0),
        help="Only warn if a metric with fewer ground truths drops or rises; omit its interval. "
        f"[default: {DEFAULT_MIN_GROUND_TRUTHS} with --confidence, else 0]",
    ),
    slice_options,
)
"""All gate options, for commands that evaluate a detector."""


def finish(report: Report, problems: Sequence[str | Note], session: Session) -> int:
    """Print the notes of a report and the problems of its gates; return the exit status."""
    session.stop_progress()
    session.print_notes(report.notes)
    for problem in problems:
        if isinstance(problem, Note):
            session.print_note(problem)
        else:
            session.print_line(f"gate failed: {escape(problem)}")
    session.check_warnings()
    return GATE_FAILED if any(isinstance(problem, str) for problem in problems) else 0


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of a run, and their input files."""

    config: GateConfig
    baseline: BaselineReport | None = None  # read first, so that its errors come early
    baseline_detections: str | None = None  # path of an earlier detector's detections
    slices: str | None = None
    slice_by: str | None = None

    @classmethod
    def from_options(cls, options: dict[str, Any], option_names: OptionNames = DETECTIONS) -> Self:
        """Remove the gate options from `options`; a command may lack some."""
        baseline = options.pop("baseline", None)
        detections = options.pop("baseline_detections", None)
        names = ("confidence", "resamples", "seed", "detectable_drop", "min_ground_truths")
        config = GateConfig.of(
            [limit for setting in LIMITS for limit in options.pop(setting, ())],
            option_names,
            baseline=baseline is not None,
            baseline_detections=detections is not None,
            **{name: options.pop(name, None) for name in names},
            allow_mismatch=options.pop("allow_mismatch", False),
            writes_baseline=options.get("matches") is not None,
        )
        baseline_report = None
        if baseline is not None:
            from detap.gates.baseline import read_baseline

            baseline_report = BaselineReport(baseline, read_baseline(baseline))
        slices, slice_by = options.pop("slices", None), options.pop("slice_by", None)
        if slices is not None and slice_by is not None:
            raise UsageError("use --slices or --slice-by, not both")
        if detections == "-":
            raise UsageError(f"{option_names('baseline_detections')} cannot come from stdin")
        return cls(config, baseline_report, detections, slices, slice_by)

    @property
    def any(self) -> bool:
        """True if there is a gate, a slice or an interval."""
        gates = self.config.limits or self.config.detectable_drop or self.config.confidence
        return bool(gates or self.slices or self.slice_by)

    @property
    def needs_match_table(self) -> bool:
        """True if the metrics of the protocol are not enough."""
        intervals = self.config.detectable_drop or self.config.confidence
        names = [str(limit.name).rpartition(".")[2] for limit in self.config.limits]
        return any(
            (self.baseline_detections, self.slices, self.slice_by, intervals)
        ) or not AT_THRESHOLD.keys().isdisjoint(names)

    def paths(self) -> list[str]:
        """Return the paths of inputs, which must not be overwritten."""
        paths = (self.baseline and self.baseline.path, self.baseline_detections, self.slices)
        return [path for path in paths if path is not None]

    def read_slices(
        self, result: Result, file_format: Format
    ) -> tuple[dict[str, list[Name]], list[Note]]:
        """Return the images of each slice, and notes."""
        if self.slices is not None:
            return read_slices(self.slices, result.images)
        if self.slice_by is not None:
            values = file_format.image_attribute(result.ground_truth, self.slice_by)
            return slices_by(values, self.slice_by, result.images)
        return {}, []
