"""The plots as SVG; the same results give the same bytes."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from benchmarks.report import compared

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


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw the plots of the available results."""
    mpl.use("svg")
    mpl.rcParams.update(STYLE)
    paths = []
    if results.get("comparisons"):
        paths.append(_save(_ratios(results), folder / "ratios.svg"))
    if results.get("scaling_detections") and results.get("scaling_images"):
        paths.append(_save(_scaling(results), folder / "scaling.svg"))
    return paths


def _save(figure: Figure, path: Path) -> Path:
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    # matplotlib leaves blanks at line ends, which tools that look for them dislike.
    lines = (line.rstrip() for line in path.read_text().splitlines())
    path.write_text("\n".join(lines) + "\n")
    return path


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
