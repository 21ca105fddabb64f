"""Detection evaluation in Python: :func:`evaluate`, and its result with all analyses."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from detap.analysis.calibration import Calibration, calibration
from detap.analysis.confusion import Confusion, Rule, confusion
from detap.analysis.errors import Convention, Errors, errors
from detap.analysis.intervals import MetricIntervals, metric_intervals
from detap.analysis.matches_table import Columns, matches_table
from detap.analysis.operating import OperatingPoint, operating_point
from detap.errors import DetapWarning, UsageError
from detap.evaluation import results
from detap.evaluation.sanity_notes import add_sanity_notes
from detap.evaluation.scoring import score_tables
from detap.formats import read_tables
from detap.formats.catalogue import default_protocol, options
from detap.formats.class_map import map_tables
from detap.formats.read import with_missing_scores
from detap.io.limits import DEFAULT_LIMITS
from detap.io.paths import Path
from detap.protocols import Protocol
from detap.protocols.summary import DEFAULT_MIN_GROUND_TRUTHS
from detap.report.sections.detection import detection_report
from detap.report.writers.json import as_dict
from detap.report.writers.plots import plot
from detap.report.writers.registry import WRITERS, Style
from detap.tables.detection import Detections, GroundTruth, Name
from detap.tables.notes import AS_IS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class Result(results.Result):
    """Metrics of one evaluation, with all analyses, figures and reports as methods."""

    full: "Result | None" = None

    def errors(self, convention: Convention = "protocol", *, iou: float | None = None) -> Errors:
        """Return the errors by TIDE type, with the AP gained if fixed.

        See :func:`detap.analysis.errors.errors`.
        """
        return errors(self, convention, iou=iou)

    def confusion(
        self, rule: Rule = "protocol", *, score: float | None = None, iou: float | None = None
    ) -> Confusion:
        """Return the confusion matrix.

        See :func:`detap.analysis.confusion.confusion`.
        """
        return confusion(self, rule, score=score, iou=iou)

    def operating_point(
        self, score: float | None = None, *, iou: float | None = None
    ) -> OperatingPoint:
        """Return precision, recall and F1 at a score threshold, or at the best F1.

        See :func:`detap.analysis.operating.sweeps` for all score thresholds.
        """
        return operating_point(self, "best" if score is None else score, iou=iou)

    def calibration(self, *, bins: int = 10, iou: float | None = None) -> Calibration:
        """Return the calibration of the scores.

        See :func:`detap.analysis.calibration.calibration`.
        """
        return calibration(self, bins=bins, iou=iou)

    def intervals(
        self,
        confidence: float = 0.95,
        *,
        resamples: int = 1000,
        seed: int = 0,
        min_ground_truths: int = DEFAULT_MIN_GROUND_TRUTHS,
        threads: int | None = None,
    ) -> MetricIntervals:
        """Return confidence intervals of all metrics, by resampling the images.

        See :func:`detap.analysis.intervals.metric_intervals`.
        """
        return metric_intervals(
            self,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
            min_ground_truths=min_ground_truths,
            threads=threads,
        )

    def matches_table(self, *, iou: float | None = None) -> Columns:
        """Return a row per detection and per missed ground truth, as columns.

        See :func:`detap.analysis.matches_table.matches_table`.
        """
        return matches_table(self, iou=iou)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON report; undefined metrics are None."""
        return as_dict(detection_report(self))

    def to_page(self) -> str:
        """Return the HTML page of ``detap report``, without images.

        Raises
        ------
        UsageError
            If the extra ``detap[report]`` is not installed.
        """
        return WRITERS["html"].render(detection_report(self), Style())

    def to_dataframe(self) -> "DataFrame":
        """Return one row per class as a pandas DataFrame; NaN if undefined.

        Raises
        ------
        UsageError
            If pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise UsageError(
                "to_dataframe needs pandas: pip install pandas; table() has the same without it"
            ) from None
        return pandas.DataFrame(self.table())

    def plot(self, name: str = "precision-recall") -> "Axes":
        """Draw a figure of ``detap eval --plots`` with matplotlib's pyplot and return its axes.

        ``plt.show()`` and notebooks show it; ``axes.figure.savefig(path)`` saves it.

        Parameters
        ----------
        name : {"precision-recall", "miss-rate", "froc", "errors", "operating-point", "confusion", \
"calibration"}

        Raises
        ------
        UsageError
            If matplotlib is not installed, or there is no such figure.
        """
        return plot(self, name)


def with_analyses(result: results.Result) -> Result:
    """Return a result with the methods of the public class."""
    values = {field.name: getattr(result, field.name) for field in fields(result)}
    return Result(**values | {"full": result.full and with_analyses(result.full)})


def evaluate(
    ground_truth: GroundTruth | Path | Sequence[Path],
    detections: Detections | Path | Sequence[Path],
    protocol: Protocol | str | None = None,
    *,
    classes: Iterable[Name] | None = None,
    images: Iterable[Name] | None = None,
    threads: int | None = None,
    matches: bool = False,
    match_table: bool = False,
    as_is: bool = False,
    missing_scores: str = "none",
    class_map: Any = None,
    **reading: Any,
) -> Result:
    """Evaluate detections against ground truth.

    Parameters
    ----------
    ground_truth : GroundTruth or path
        G rows, or a path, pattern or list of paths, as for :func:`detap.read_ground_truth`.
    detections : Detections or path
        N rows, on images of `ground_truth`; reindexed like it if necessary.
    protocol : Protocol or str, optional
        A protocol or the name of a preset. By default that of the ground truth's format, as for
        ``detap eval``: ``"voc2012"`` for VOC; ``"coco"`` for arrays.
    classes : iterable of int or str, optional
        Names, or ids if integers, of the classes to report. All classes are evaluated, so the
        metrics of a class do not depend on the selection; means are over the selected classes. A
        class-agnostic protocol pools only the selected classes.
    images : iterable of int or str, optional
        Names of the images to evaluate; all by default. Detections on images that `ground_truth`
        lacks are then left out, with a note.
    threads : int, optional
        All of the machine by default. The result does not depend on it.
    matches : bool
        If True, keep the match results as arrays, ``Result.matches``.
    match_table : bool
        If True, keep ``Result.match_table``; otherwise its first access matches again.
    as_is : bool
        If True, only warn about boxes that look like another format or normalized.
    missing_scores : {"none", "1", "area", "error"}
        If no detection has a score: report F1 without a ranking, also AP over rankings, rank by
        box area, or raise InputError.
    class_map : path or mapping, optional
        Other class names, as for ``--class-map``: a TOML, JSON or CSV file, or a mapping such as
        ``{"car": "vehicle", "chair": "-"}``.
    **reading
        `format`, `merge_images` and reader options, as for :func:`detap.read_ground_truth`; only
        with a path.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        If a file or the class map is invalid, an image of the detections is not in the ground
        truth, or boxes look normalized, like xyxy, or like pixels of a network's input; if scores
        are missing, and that is an error.
    UsageError
        If an argument is neither a table nor a path; if the protocol is unknown or contradicts
        itself, or a class or an image is unknown.

    Warns
    -----
    DetapWarning
        For each note of the result that is a warning.
    """
    if not (isinstance(ground_truth, GroundTruth) and isinstance(detections, Detections)):
        reading |= {"as_is": True} if as_is else {}
        if images is not None:
            limits = reading.get("limits", DEFAULT_LIMITS)
            reading["limits"] = replace(limits, drop_extra_images=True)
        reading |= {"any_classes": True} if class_map is not None else {}
        ground_truth, detections, protocol = read_tables(
            ground_truth, detections, protocol, **reading
        )
    elif reading:
        name = next(iter(reading))
        if name in ("format", "merge_images") or any(name == option.name for option in options()):
            raise UsageError(f"{name}= is for reading files, but both tables are given")
        raise TypeError(f"evaluate() got an unexpected keyword argument {name!r}")
    if class_map is not None:
        extra_images = "error" if images is None else "drop"
        detections = detections.reindex_like(ground_truth, extra_images=extra_images)
        [ground_truth], [detections] = map_tables(class_map, [ground_truth], [detections])
    detections = with_missing_scores(detections, missing_scores)
    if as_is and AS_IS not in ground_truth.notes:
        ground_truth = replace(ground_truth, notes=(*ground_truth.notes, AS_IS))
    result = add_sanity_notes(
        score_tables(
            ground_truth,
            detections,
            default_protocol(ground_truth) if protocol is None else protocol,
            classes=classes,
            images=images,
            threads=threads,
            matches=matches,
            match_table=match_table,
        )
    )
    for note in result.notes:
        if note.severity == "warning":
            warnings.warn(DetapWarning(note), stacklevel=2)
    return with_analyses(result)
