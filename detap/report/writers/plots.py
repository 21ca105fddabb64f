"""Figures for papers: SVG and PNG, legible in gray and with color blindness.

Colors are those of Okabe and Ito; dashes, hatches or labels distinguish lines and bars as well. The
same result gives the same bytes with the same version of matplotlib.

References
----------
Okabe and Ito, Color Universal Design, 2008.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from detap.analysis.calibration import calibration
from detap.analysis.confusion import confusion
from detap.analysis.errors import ACROSS, errors
from detap.analysis.match_results import MatchResults
from detap.analysis.operating import sweeps
from detap.errors import UsageError
from detap.escaping import escape
from detap.evaluation.results import Curve, Result
from detap.protocols.summary import percent
from detap.report.numbers import threshold
from detap.report.sections.errors import words
from detap.tables.detection import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Size = tuple[float, float]  # width and height in inches
_LineOf = Callable[[Floats, Curve], Floats]  # the values of a curve over those of the x axis

FORMATS = ("svg", "png")
_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#767676"
_LINES = (
    *(("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", "-."), ("#CC79A7", ":")),
    *(("#000000", (0, (5, 1))), ("#E69F00", (0, (3, 1, 1, 1))), ("#56B4E9", (0, (1, 1)))),
)
_MOST_CURVES = len(_LINES)
_MOST_CELLS = 25
_MOST_NUMBERS = 12
_MOST_PAIRS = 20
_LONGEST = 24
_LINE_SIZE = (4.6, 3.6)
_OPTIONAL = ("miss-rate", "froc", "calibration")  # not every result has them
_DOTS = 200  # an inch
_STYLE = {
    "svg.hashsalt": "detap",
    "svg.fonttype": "path",
    "text.parse_math": False,  # names are untrusted
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
}


def check_installed() -> Any:
    """Check that matplotlib is installed; return its module."""
    try:
        import matplotlib.figure
    except ImportError:
        raise UsageError("figures need matplotlib: pip install 'detap[plots]'") from None
    return matplotlib


def _pyplot() -> Any:
    check_installed()
    import matplotlib.pyplot as plt

    return plt


def paths(folder: str) -> list[str]:
    """Return the paths of the figures."""
    return [os.path.join(folder, f"{name}.{kind}") for name in FIGURES for kind in FORMATS]


def render_all(result: Result) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of the file of each figure that the result has."""
    for name in FIGURES:
        try:
            fig = figure(result, name)
        except UsageError:
            if name not in _OPTIONAL:
                raise
            continue
        for kind in FORMATS:
            yield f"{name}.{kind}", render(fig, kind)


def figure(result: Result, name: str, *, pyplot: bool = False) -> "Figure":
    """Return a figure of a result, or a figure of pyplot."""
    matplotlib = check_installed()
    if name not in FIGURES:
        raise UsageError(f"unknown figure {name!r}; available: {', '.join(FIGURES)}")
    with matplotlib.rc_context(_STYLE):
        make = _pyplot().figure if pyplot else matplotlib.figure.Figure
        fig: Figure = make(layout="constrained")
        axes = fig.subplots()
        axes.grid(visible=True)
        fig.set_size_inches(FIGURES[name](MatchResults.of(result), axes))
    return fig


def plot(result: Result, name: str) -> "Axes":
    """Return the axes of a figure of pyplot, which ``plt.show`` and notebooks display."""
    return figure(result, name, pyplot=True).axes[0]


def plot_steps(lines: Mapping[str, Sequence[float]], axes: "Axes | None" = None) -> "Axes":
    """Draw metrics at several steps, such as epochs, on axes of pyplot and return them."""
    drawn: Axes = _pyplot().subplots(layout="constrained")[1] if axes is None else axes
    for (name, values), (color, dash) in zip(lines.items(), cycle(_LINES), strict=False):
        drawn.plot(range(len(values)), values, color=color, linestyle=dash, marker=".", label=name)
    drawn.set(xlabel="step", ylabel="value", ylim=(0, 1))
    drawn.legend()
    return drawn


def render(fig: "Figure", kind: str) -> bytes:
    """Return the content of a figure's file, without date and version."""
    data = BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    with check_installed().rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # missing glyphs
        fig.savefig(data, format=kind, dpi=_DOTS, metadata=metadata)
    return data.getvalue()


def _name(name: str) -> str:
    text = escape(name)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


# --- lines: precision over recall, and over false positives per image


def _precision_recall(match_results: MatchResults, axes: "Axes") -> Size:
    def precision_at(recalls: Floats, curve: Curve) -> Floats:  # that of the next level, or 0
        index = np.searchsorted(curve.levels, recalls - 1e-9)
        return np.append(curve.interpolated, 0.0)[np.minimum(index, len(curve.interpolated))]

    _line_per_class(match_results, axes, np.linspace(0, 1, 101), precision_at)
    title = f"Precision and recall at IoU {match_results.iou:.6g}"
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02), title=title)
    return _LINE_SIZE


def _miss_rate(match_results: MatchResults, axes: "Axes") -> Size:
    def miss_rate_at(fppi: Floats, curve: Curve) -> Floats:
        # Below the axis: a miss rate of 0 has no logarithm.
        return np.maximum(1 - _recall_at(fppi, curve), 1e-3)

    grid = np.geomspace(2e-4, 50, 1081)  # the range of KAIST's figures
    _line_per_class(match_results, axes, grid, miss_rate_at, "MR-2")
    title = f"Miss rate at IoU {match_results.iou:.6g}, with MR-2"
    axes.set(yscale="log", ylabel="miss rate", ylim=(0.01, 1), title=title)
    ticks = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    powers = (0.001, 0.01, 0.1, 1, 10)  # the default labels are formulas, which are not drawn
    return _over_fppi(axes, grid, {f"{power:g}": power for power in powers})


def _froc(match_results: MatchResults, axes: "Axes") -> Size:
    grid = np.geomspace(1 / 16, 16, 1025)
    _line_per_class(match_results, axes, grid, partial(_recall_at, whole=True), "CPM")
    title = f"FROC at IoU {match_results.iou:.6g}, with CPM"
    axes.set(ylabel="recall", ylim=(0, 1.02), title=title)
    names = ("1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8", "16")
    return _over_fppi(axes, grid, {name: 2.0**n for n, name in enumerate(names, -4)})


def _recall_at(fppi: Floats, curve: Curve, *, whole: bool = False) -> Floats:
    """Return the recall of the last point within each FPPI; of distinct scores only if `whole`."""
    points = np.ones(len(curve.score), np.bool_)
    if whole:
        points[:-1] = curve.score[1:] != curve.score[:-1]
    index = np.searchsorted(curve.fppi[points], fppi * (1 + 1e-12), side="right")
    recalls: Floats = np.append(0.0, curve.recall[points])[index]
    return recalls


def _over_fppi(axes: "Axes", grid: Floats, ticks: Mapping[str, float]) -> Size:
    """Make the x axis that of false positives per image, with ticks by their labels."""
    axes.set(xscale="log", xlabel="false positives per image", xlim=(grid[0], grid[-1]))
    axes.set_xticks([*ticks.values()], [*ticks])
    axes.minorticks_off()
    return _LINE_SIZE


def _line_per_class(
    match_results: MatchResults, axes: "Axes", grid: Floats, line_of: _LineOf, metric: str = ""
) -> None:
    """Plot a line per class, named with AP or a metric if they are few, and their mean."""
    result = match_results.result
    iou = result.protocol.iou_thresholds[match_results.threshold]
    curves = [curve for curve in result.curves() if curve.threshold == iou]
    values = result.metric_by_class(f"{metric}@{percent(iou)}") if metric else None
    lines = [line_of(grid, curve) for curve in curves]
    for curve, line, (color, dashes) in zip(curves, lines, cycle(_LINES), strict=False):
        if len(lines) <= _MOST_CURVES:
            value = curve.average_precision if values is None else values[curve.label]
            label = f"{_name(result.classes[curve.label])} {value:.3f}"
            axes.plot(grid, line, color=color, linestyle=dashes, linewidth=1.4, label=label)
        else:
            axes.plot(grid, line, color="#bbbbbb", linewidth=0.5)
    if len(lines) > 1:
        label = f"mean of {len(lines)} classes"
        axes.plot(grid, np.mean(lines, axis=0), color="black", linewidth=2.4, label=label)
    if lines:
        axes.legend()


# --- one figure each


def _errors(match_results: MatchResults, axes: "Axes") -> Size:
    tide = errors(match_results)
    order = [*tide.by_delta_ap(), *ACROSS][::-1]
    values = [100 * tide.of_type(name)[0] for name in order]
    bars = axes.barh(range(len(order)), values, height=0.65, color=_BLUE, edgecolor="black")
    for index, (name, value, bar) in enumerate(zip(order, values, bars, strict=True)):
        if name in ACROSS:
            bar.set(facecolor="white", hatch="////")
        text = f" {value:.2f}  ({tide.of_type(name)[1]})"
        axes.text(max(value, 0), index, text, va="center", fontsize=7)
    axes.set_yticks(range(len(order)), [words(name) for name in order])
    axes.set_xlim(min(0, *values), max(*values, 0.1) * 1.3)
    title = f"Errors at IoU {match_results.iou:.6g}: AP {100 * tide.average_precision:.2f}"
    axes.set(xlabel="dAP if fixed, in points (count)", title=title)
    axes.grid(visible=False, axis="y")
    return 4.6, 3.0


def _operating_point(match_results: MatchResults, axes: "Axes") -> Size:
    sweep = sweeps(match_results).overall
    for label, values, color, dashes in (
        ("precision", sweep.precision, _BLUE, "--"),
        ("recall", sweep.recall, _ORANGE, "-."),
        ("F1", sweep.f1, "black", "-"),
    ):
        # A threshold between two scores keeps the detections from the higher one.
        style = {"color": color, "linestyle": dashes, "label": label}
        axes.step(sweep.score[::-1], values[::-1], where="pre", **style)
    best = sweep.best
    if len(sweep.score):
        axes.axvline(best.score, color=_GREY, linewidth=0.8, linestyle=":")
        axes.plot([best.score], [best.f1], "o", color="black", markersize=4)
        axes.set_title(
            f"Best F1 {best.f1:.4f} at score {threshold(best.score)}: "
            f"precision {best.precision:.4f}, recall {best.recall:.4f}",
            fontsize=8,
        )
        axes.legend()
    axes.set(xlabel=f"score threshold (IoU {match_results.iou:.6g})", ylim=(0, 1.02))
    return 4.6, 3.4


def _confusion(match_results: MatchResults, axes: "Axes") -> Size:
    cells = confusion(match_results)
    if len(cells.classes) >= _MOST_CELLS:
        pairs = cells.largest(_MOST_PAIRS)[::-1]
        axes.barh(range(len(pairs)), [pair.pairs for pair in pairs], color=_BLUE, edgecolor="black")
        names = [
            f"{_name(cells.classes[pair.ground_truth])} as {_name(cells.classes[pair.prediction])}"
            for pair in pairs
        ]
        axes.set_yticks(range(len(pairs)), names, fontsize=7)
        axes.xaxis.get_major_locator().set_params(integer=True)
        title = f"Largest confusions at IoU {match_results.iou:.6g}"
        axes.set(xlabel="misclassified ground truths", title=title)
        axes.grid(visible=False, axis="y")
        return 5.2, 1.2 + 0.2 * max(len(pairs), 4)
    matrix = cells.matrix
    size = len(matrix)
    axes.grid(visible=False)
    # Fractions of each row.
    shown = np.sqrt(matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1))
    axes.imshow(shown, cmap="Blues", vmin=0, vmax=1)
    names = [*map(_name, cells.classes), "background"]
    axes.set_xticks(range(size), names, rotation=90)
    axes.set_yticks(range(size), names)
    title = f"Confusion at IoU {match_results.iou:.6g}"
    axes.set(xlabel="detected as", ylabel="ground truth", title=title)
    centered = {"ha": "center", "va": "center", "fontsize": 8 if size <= _MOST_NUMBERS else 5}
    for row, column in zip(*np.nonzero(matrix), strict=True):
        color = "white" if shown[row, column] > 0.55 else "black"
        axes.text(column, row, str(matrix[row, column]), color=color, **centered)
    return 2.2 + 0.28 * size, 1.8 + 0.28 * size


def _calibration(match_results: MatchResults, axes: "Axes") -> Size:
    bins = calibration(match_results)
    overall = bins.overall
    width = np.diff(overall.edges)
    accuracy = np.nan_to_num(overall.mean_value)
    style = {"color": "#9ecae1", "edgecolor": "black", "label": "accuracy"}
    axes.bar(overall.edges[:-1], accuracy, width, align="edge", **style)
    axes.plot([0, 1], [0, 1], color=_GREY, linestyle="--", linewidth=1, label="calibrated")
    axes.plot(overall.mean_score, overall.mean_value, "o", color="black", markersize=3)
    for left, span, count in zip(overall.edges, width, overall.count, strict=False):
        axes.text(left + span / 2, 1.04, str(count), ha="center", fontsize=5, rotation=30)
    title = f"ECE {bins.expected_error:.4f}, MCE {bins.largest_error:.4f} at IoU {bins.iou:.6g}"
    axes.set(xlabel="score (number of detections above)", ylabel="accuracy", title=title)
    axes.set(xlim=(0, 1), ylim=(0, 1.14))
    axes.figure.legend(loc="outside lower center", ncols=2)
    return 4.0, 3.8


FIGURES: "dict[str, Callable[[MatchResults, Axes], Size]]" = {
    "precision-recall": _precision_recall,
    "miss-rate": _miss_rate,
    "froc": _froc,
    "errors": _errors,
    "operating-point": _operating_point,
    "confusion": _confusion,
    "calibration": _calibration,
}
