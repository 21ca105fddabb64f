"""The plots as SVG; the same results give the same bytes."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from benchmarks.report import compared, pooled

Results = dict[str, Any]

OURS, THEIRS = "#0072b2", "#999999"  # distinct for the color-blind and in print
STYLE = {
    "svg.hashsalt": "detap",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}
PANELS = (
    ("wall", "wall, s", 1.0),
    ("processor", "processor, s", 1.0),
    ("peak", "peak memory, MB", 1e-6),
)


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw the plots of the available results."""
    mpl.use("svg")
    mpl.rcParams.update(STYLE)
    paths = []
    for name in dict.fromkeys(row["workload"] for row in results.get("comparisons", ())):
        paths.append(_save(_costs(results, name), folder / f"costs-{name}.svg"))
    if results.get("comparisons"):
        paths.append(_save(_ratios(results), folder / "ratios.svg"))
    if results.get("scaling_detections") and results.get("scaling_images"):
        paths.append(_save(_scaling(results), folder / "scaling.svg"))
    if results.get("threads"):
        paths.append(_save(_threads(results), folder / "threads.svg"))
    return paths


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    # matplotlib leaves blanks at line ends, which tools that look for them dislike.
    lines = (line.rstrip() for line in path.read_text().splitlines())
    path.write_text("\n".join(lines) + "\n")
    return path


def _costs(results: Results, name: str) -> Figure:
    rows = compared(results, name)
    names = ["detap", *(row["peer"] for row in rows)]
    sides = [pooled(rows), *(row["theirs"] for row in rows)]
    figure, axes = plt.subplots(1, 3, figsize=(9, 0.8 + 0.3 * len(names)), sharey=True)
    for panel, (cost, title, unit) in zip(axes, PANELS, strict=True):
        values = [side[cost] * unit for side in sides]
        bars = panel.barh(names, values, color=[OURS, *[THEIRS] * len(rows)])
        panel.bar_label(bars, [_short(value) for value in values], padding=2)
        panel.set_title(title)
        _logarithmic(panel, values)
    axes[0].invert_yaxis()
    figure.suptitle(f"{name}: whole processes, medians; logarithmic")
    return figure


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _logarithmic(panel: Axes, values: list[float]) -> None:
    panel.set_xscale("log")
    panel.set_xlim(min(values) / 2, max(values) * 5)
    panel.minorticks_off()


def _ratios(results: Results) -> Figure:
    names = list(dict.fromkeys(row["workload"] for row in results["comparisons"]))
    rows = [row for name in names for row in compared(results, name)]
    labels = [f"{row['workload']}: {row['peer']}" for row in rows]
    middle = [row["ratio"]["median"] for row in rows]
    ends = [
        [row["ratio"]["median"] - row["ratio"]["low"] for row in rows],
        [row["ratio"]["high"] - row["ratio"]["median"] for row in rows],
    ]
    figure, panel = plt.subplots(figsize=(9, 0.9 + 0.24 * len(rows)))
    panel.errorbar(middle, labels, xerr=ends, fmt="o", color=OURS, markersize=4, capsize=2)
    panel.axvline(1, color=THEIRS, linewidth=1)
    panel.set_xscale("log")
    panel.invert_yaxis()
    panel.set_title("detap's wall time divided by the peer's: median, least and most of the pairs")
    panel.grid(axis="x", linewidth=0.3)
    return figure


def _scaling(results: Results) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2))
    series = (("scaling_detections", "detections"), ("scaling_images", "images"))
    for panel, (key, size) in zip(axes, series, strict=True):
        rows = results[key]
        sizes = [row[size] for row in rows]
        panel.plot(sizes, [row["ours"]["wall"] for row in rows], "o-", color=OURS, label="detap")
        if "theirs" in rows[0]:
            times = [row["theirs"]["wall"] for row in rows]
            panel.plot(sizes, times, "s--", color=THEIRS, label=rows[0]["peer"])
        panel.set_xlabel(size)
        panel.set_ylabel("wall, s")
        panel.set_ylim(bottom=0)
        panel.set_xlim(left=0)
        panel.xaxis.set_major_formatter(EngFormatter(sep=""))  # 200k, or the numbers run together
        panel.legend(frameon=False)
    return figure


def _threads(results: Results) -> Figure:
    rows = results["threads"]
    figure, panel = plt.subplots(figsize=(4.5, 3.2))
    for name, mark in zip(dict.fromkeys(row["workload"] for row in rows), "os^v*", strict=False):
        mine = [row for row in rows if row["workload"] == name and "evaluation" in row]
        counts = [row["threads"] for row in mine]
        gains = [mine[0]["evaluation"] / row["evaluation"] for row in mine]
        panel.plot(counts, gains, f"{mark}-", label=name)
    panel.set_xlabel("threads")
    panel.set_ylabel("evaluation proper: times faster than one")
    panel.set_ylim(bottom=0)
    panel.legend(frameon=False)
    return figure
