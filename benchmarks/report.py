"""Write the results of a run as Markdown tables and plots, also into the documentation.

    python -m benchmarks.report RESULTS.json [--docs]

prints the tables and writes them as ``results.md``, with the plots as ``*.svg``, next to the
results. With ``--docs`` the shorter tables of :data:`PAGE` replace those between the markers of
docs/performance.md, and the plots and results are copied to docs/performance/.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.measure import Run, line, summary

DOCS = Path(__file__).resolve().parent.parent / "docs"
MARKER = re.compile(r"(<!-- begin (\S+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)

Results = dict[str, Any]


def table(heading: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Return a Markdown table; the first `left` columns are text, the others numbers."""
    rule = [" --- " if n < left else " ---: " for n in range(len(heading))]
    lines = [" | ".join(["", *row, ""]).strip() for row in (heading, *rows)]
    lines.insert(1, f"|{'|'.join(rule)}|")
    return "\n".join(lines) + "\n"


def seconds(value: float) -> str:
    """Write seconds with three significant digits, at most to the millisecond."""
    if value < 1:
        return f"{value:.3f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f}"


def ratio(spread: dict[str, float]) -> str:
    """Write a median with its range."""
    return f"**{spread['median']:.2f}** ({spread['low']:.2f}\N{EN DASH}{spread['high']:.2f})"


def machine_table(results: Results) -> str:
    packages = results["peers"]
    names = sorted({row["peer"] for row in results.get("comparisons", ())} & set(packages))
    rows = [
        *results["machine"].items(),
        ("NumPy of the peers", packages["numpy"]),
        ("detap", results["detap"]),
        *((name, packages[name]) for name in names),
        ("runs", f"{results['runs']} pairs per peer, 3 if a run takes over 20 s"),
    ]
    text = table(["", ""], ([name, str(value)] for name, value in rows), left=2)
    raw = "All measurements: [results.json](performance/results.json).\n"
    return f"{text}\n{raw}"


def workload_table(results: Results) -> str:
    rows = []
    for name, made in results["workloads"].items():
        shape, files = made["shape"], made["files"]
        rows.append(
            [
                name,
                f"{shape['images']:,}",
                f"{shape.get('ground_truths', shape.get('objects')):,}",
                str(shape["classes"]),
                f"{shape['detections']:,}",
                megabytes(files["ground truth"]["bytes"]),
                megabytes(files["detections"]["bytes"]),
            ]
        )
    heading = ["workload", "images", "ground truths", "classes", "detections"]
    return table([*heading, "ground truth, MB", "detections, MB"], rows)


def difference(row: dict[str, Any]) -> str:
    if row["status"] == "failed":
        return "did not finish"
    return "none" if row["status"] == "equal" else f"{row['difference']:.2g}"


def agreement_table(results: Results) -> str:
    rows = [
        [
            row["workload"],
            row["peer"],
            str(row["metrics"]),
            difference(row),
        ]
        for row in results["agreement"]
    ]
    return table(["workload", "peer", "metrics compared", "largest difference"], rows, left=2)


def compared(results: Results, name: str) -> list[dict[str, Any]]:
    """Return the comparisons on one workload, the fastest peer first."""
    rows = [row for row in results["comparisons"] if row["workload"] == name]
    return sorted(rows, key=lambda row: float(row["theirs"]["wall"]))


def pooled(rows: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Return detap's medians over its runs against all peers."""
    return summary([Run(**sample) for row in rows for sample in row["samples"]["ours"]])


def comparison_table(results: Results, name: str) -> str:
    """Return detap and its peers on one workload, the fastest first."""
    rows = compared(results, name)
    body = [["detap", *_costs(pooled(rows)), "", "", ""]]
    body += [
        [
            row["peer"],
            *_costs(row["theirs"]),
            ratio(row["ratio"]),
            f"{row['processor_ratio']['median']:.2f}",
            f"{row['memory_ratio']['median']:.2f}",
        ]
        for row in rows
    ]
    heading = ["", "wall, s", "processor, s", "peak memory, MB", "detap / peer: wall"]
    return table([*heading, "processor", "memory"], body)


def _costs(row: dict[str, float]) -> list[str]:
    return [seconds(row["wall"]), seconds(row["processor"]), megabytes(row["peak"])]


def picture(name: str, what: str) -> str:
    """Return a link to a plot in the documentation."""
    return f"![{what}](performance/{name}.svg)\n"


def comparison_tables(results: Results) -> str:
    names = dict.fromkeys(row["workload"] for row in results["comparisons"])
    return "\n".join(
        [
            picture("ratios", "detap's wall time divided by each peer's, on every workload"),
            *(
                f"`{name}`\n\n{comparison_table(results, name)}\n"
                + picture(f"costs-{name}", f"wall, processor and memory of each tool on {name}")
                for name in names
            ),
        ]
    )


def target_table(results: Results) -> str:
    """Return the targets and the measured values."""
    rows = [
        [what, f"{limit:.2f}", f"{aim:.2f}", f"{value:.2f}", status_of(value, limit, aim)]
        for what, workload, peer, limit, aim, cost in TARGETS
        if (value := _ratio_to(results, workload, peer, cost)) is not None
    ]
    rows += [
        [
            f"peak memory of {name}, MB",
            megabytes(limit),
            "",
            megabytes(value),
            status_of(value, limit),
        ]
        for name, limit in LOADS.items()
        if (value := _peak(results, name)) is not None
    ]
    if results.get("checks"):
        fraction = max(100 * row["fraction"] for row in results["checks"])
        rows.append(
            ["checks, % of the process", "5", "", f"{fraction:.1f}", status_of(fraction, 5)]
        )
    text = table(["detap divided by", "at most", "aim", "measured", ""], rows)
    gain = _gain_of_two(results)
    if gain is not None:
        met = "met" if gain >= 1.5 else "**not met**"
        text += f"\nTwo threads: at least 1.5 times as fast as one; measured {gain:.2f}, {met}.\n"
    return text


def status_of(value: float, limit: float, aim: float | None = None) -> str:
    """Return the text that says if a cost is within its limit or its aim."""
    if aim is not None and value <= aim:
        return "aim met"
    return "met" if value <= limit else "**not met**"


def _peak(results: Results, name: str) -> float | None:
    rows = compared(results, name)
    return pooled(rows)["peak"] if rows else None


def _gain_of_two(results: Results) -> float | None:
    """Return the speedup of the evaluation by two threads, on the largest workload."""
    by_threads: dict[int, float] = {}
    for row in results.get("threads", ()):
        if "evaluation" in row:
            by_threads[row["threads"]] = row["evaluation"]
    return by_threads[1] / by_threads[2] if {1, 2} <= set(by_threads) else None


def losses(results: Results) -> str:
    """List every cost in which a peer is at least as good as detap."""
    kinds = {"ratio": "wall", "processor_ratio": "processor", "memory_ratio": "peak memory"}
    lines = [
        f"- `{row['workload']}`, {kind}: {row[key]['median']:.2f} times {row['peer']}'s"
        for row in results["comparisons"]
        for key, kind in kinds.items()
        if row[key]["median"] >= 1
    ]
    return "\n".join(lines or ["None in this run."]) + "\n"


# What is compared, on which workload, with whom (None: with whoever is hardest to beat), at most,
# the aim, and which ratio.
TARGETS = (
    ("the fastest peer, 48k", "48k", None, 0.7, 0.5, "ratio"),
    ("the fastest peer, 500k", "500k", None, 0.6, 0.4, "ratio"),
    ("the fastest peer, 2M", "2M", None, 0.5, 0.3, "ratio"),
    ("the leanest peer's peak memory, 2M", "2M", None, 0.6, 0.6, "memory_ratio"),
    ("hotcoco's command line, 48k", "48k", "hotcoco-cli", 0.25, 0.25, "ratio"),
    ("hotcoco's command line, 500k", "500k", "hotcoco-cli", 0.12, 0.12, "ratio"),
    ("the fastest peer, masks", "masks", None, 0.9, 0.7, "ratio"),
    ("the fastest peer, masks-alone", "masks-alone", None, 0.9, 0.7, "ratio"),
    ("the leanest peer's peak memory, masks", "masks", None, 1.0, 1.0, "memory_ratio"),
    ("the fastest peer, keypoints", "keypoints", None, 0.8, 0.6, "ratio"),
    ("the leanest peer's peak memory, keypoints", "keypoints", None, 1.0, 1.0, "memory_ratio"),
    ("the usual VOC evaluator in Python", "voc", "voc-baseline", 0.25, 0.15, "ratio"),
)
LOADS = {"500k": 0.4e9, "5M": 1.5e9}  # bytes


def _ratio_to(results: Results, workload: str, peer: str | None, cost: str) -> float | None:
    """Return the median ratio to a peer, or to the one that makes it largest."""
    values = [
        float(row[cost]["median"])
        for row in results["comparisons"]
        if row["workload"] == workload and peer in (None, row["peer"])
    ]
    return max(values, default=None)


def report_table(results: Results) -> str:
    rows = [
        [
            row["workload"],
            seconds(row["theirs"]["wall"]),
            seconds(row["ours"]["wall"]),
            ratio(row["ratio"]),
        ]
        for row in results["reports"]
    ]
    return table(["workload", "table, s", "with JSON, s", "ratio"], rows)


def scaling_table(results: Results, key: str, size: str) -> str:
    rows = results[key]
    body = []
    for row in rows:
        cells = [f"{row[size]:,}", seconds(row["ours"]["wall"]), megabytes(row["ours"]["peak"])]
        cells.append(f"{row['ours']['wall'] / row[size] * 1e6:.2f}")
        if "theirs" in row:
            cells += [seconds(row["theirs"]["wall"]), f"{row['ratio']['median']:.2f}"]
        body.append(cells)
    heading = [size, "detap, s", "peak, MB", f"µs for each of the {size}"]
    if "theirs" in rows[0]:
        heading += [f"{rows[0]['peer']}, s", "detap / peer"]
    slope, start, r_squared = line([(row[size], row["ours"]["wall"]) for row in rows])
    text = table(heading, body, left=0)
    return (
        f"{text}\nA straight line through detap's points: {start:.3f} s + "
        f"{slope * 1e6:.2f} µs for each of the {size}, R² = {r_squared:.4f}.\n"
    )


def image_scaling(results: Results) -> str:
    """Return the table of the second series, and the plot of both."""
    text = scaling_table(results, "scaling_images", "images")
    return f"{text}\n{picture('scaling', 'wall time over detections, and over images')}"


def thread_table(results: Results) -> str:
    rows = []
    first: dict[str, dict[str, Any]] = {}
    for row in results["threads"]:
        base = first.setdefault(row["workload"], row)
        cells = [row["workload"], str(row["threads"]), seconds(row["ours"]["wall"])]
        cells.append(f"{base['ours']['wall'] / row['ours']['wall']:.2f}")
        if "evaluation" in row:
            cells.append(f"{row['evaluation']:.4f}")
            cells.append(f"{base['evaluation'] / row['evaluation']:.2f}")
        rows.append(cells)
    heading = ["workload", "threads", "process, s", "speed-up"]
    if any("evaluation" in row for row in results["threads"]):
        heading += ["evaluation, s", "speed-up"]
    text = table(heading, rows)
    return f"{text}\n{picture('threads', 'speed-up over one thread')}"


def profile_table(results: Results) -> str:
    steps = list(dict.fromkeys(step for row in results["profile"] for step in row["steps"]))
    rows = []
    for row in results["profile"]:
        times = [row["steps"].get(step, 0.0) for step in steps]
        rest = row["wall"] - sum(times)
        rows.append([row["workload"], *map(seconds, [*times, rest, row["wall"]])])
    return table(["workload", *steps, "interpreter, exit", "total"], rows)


def limit_table(results: Results) -> str:
    return table(
        ["", "wall, s", "processor, s"],
        (
            [row["command"], seconds(row["wall"]), seconds(row["processor"])]
            for row in results["limits"]
        ),
    )


def check_table(results: Results) -> str:
    rows = [
        [
            row["workload"],
            f"{row['checks'] * 1e3:.2f}",
            f"{row['process'] * 1e3:.0f}",
            f"{100 * row['fraction']:.1f} %",
        ]
        for row in results["checks"]
    ]
    return table(["workload", "checks, ms", "process, ms", "fraction"], rows)


# What a loop may cost: of the time of which peers, at most.
LOOP_LIMITS: dict[str | tuple[str, str], float] = {
    "arrays": 0.5,
    ("updates", "hotcoco"): 0.8,
    ("updates", "torchmetrics"): 0.01,
    **dict.fromkeys(("path", "records", "rows"), 0.6),
    "annotations": 1.0,
}


CALLS = {
    "arrays": "all arrays at once",
    "updates": "16 images at a time",
    "path": "file",
    "records": "records",
    "rows": "(N, 7) array",
    "annotations": "file, annotations read",
}


def loop_table(results: Results, part: str = "loop") -> str:
    rows = []
    several = len({row["workload"] for row in results[part]}) > 1
    for row in results[part]:
        what, peer, value = row["input"], row["peer"], row["ratio"]
        limit = LOOP_LIMITS.get((what, peer)) or LOOP_LIMITS[what]
        digits = 2 if limit >= 0.1 else 4
        rows.append(
            [
                f"{row['workload']}, {CALLS[what]}" if several else CALLS[what],
                peer,
                seconds(row["ours"]["wall"]),
                seconds(row["theirs"]["wall"]),
                f"**{value['median']:.{digits}f}** "
                f"({value['low']:.{digits}f}\N{EN DASH}{value['high']:.{digits}f})",
                f"{limit:g}",
                status_of(value["median"], limit),
            ]
        )
    heading = ["", "peer", "detap, s", "peer, s", "detap / peer", "at most", ""]
    return table(heading, rows, left=2)


# What reading a table of single precision may cost, of the time for the same as JSON, at most.
PARQUET_LIMIT = 0.6


def tables_table(results: Results) -> str:
    rows = []
    for row in results["tables"]:
        held = row["workload"] == "2M" and row["dtype"] == "float32"
        cells = [row["workload"], row["dtype"], megabytes(row["bytes"]), megabytes(row["json"])]
        cells += [seconds(row[side]["wall"]) for side in ("ours", "theirs")]
        cells += [ratio(row["ratio"]), f"{row['memory_ratio']['median']:.2f}"]
        cells += (
            [f"{PARQUET_LIMIT:g}", status_of(row["ratio"]["median"], PARQUET_LIMIT)]
            if held
            else ["", ""]
        )
        rows.append(cells)
    heading = ["workload", "columns", "Parquet, MB", "JSON, MB", "Parquet, s", "JSON, s"]
    return table([*heading, "Parquet / JSON", "memory", "at most", ""], rows, left=2)


def others_table(results: Results) -> str:
    rows = [
        [
            row["name"],
            seconds(row["ours"]["processor"]),
            seconds(row["theirs"]["processor"]),
            ratio(row["processor_ratio"]),
        ]
        for row in results["others"]
    ]
    return table(["", "processor, s", "evaluation, s", "ratio"], rows)


SECTIONS: dict[str, Callable[[Results], str]] = {
    "machine": machine_table,
    "workloads": workload_table,
    "targets": target_table,
    "comparisons": comparison_tables,
    "losses": losses,
    "agreement": agreement_table,
    "reports": report_table,
    "scaling-detections": lambda results: scaling_table(
        results, "scaling_detections", "detections"
    ),
    "scaling-images": image_scaling,
    "threads": thread_table,
    "profile": profile_table,
    "limits": limit_table,
    "checks": check_table,
    "loop": loop_table,
    "tables": tables_table,
    "drop_in": lambda results: loop_table(results, "drop_in"),
    "others": others_table,
}


def joint_comparisons(results: Results) -> str:
    """Return the comparisons on all workloads in one table."""
    rows = []
    pictures = [picture("ratios", "wall time ratios")]
    for name in dict.fromkeys(row["workload"] for row in results["comparisons"]):
        peers = compared(results, name)
        wall, _, peak = _costs(pooled(peers))
        rows.append([name, "detap", wall, peak, "", ""])
        for row in peers:
            wall, _, peak = _costs(row["theirs"])
            memory = f"{row['memory_ratio']['median']:.2f}"
            rows.append([name, row["peer"], wall, peak, ratio(row["ratio"]), memory])
        pictures.append(picture(f"costs-{name}", name))
    heading = ["workload", "evaluator", "wall, s", "peak, MB", "wall: detap / peer", "memory"]
    return "\n".join([table(heading, rows, left=2), *pictures])


def agreement_sentence(results: Results) -> str:
    """Return the number of equal comparisons, and a table of the others."""
    others = [row for row in results["agreement"] if row["status"] != "equal"]
    count = len(results["agreement"])
    text = f"Equal to the last bit: {count - len(others)} of {count} comparisons.\n"
    return f"{text}\n{agreement_table({'agreement': others})}" if others else text


def scaling_sentence(results: Results, key: str, size: str) -> str:
    """Return the fit of a series, with its memory and ratios."""
    rows = results[key]
    first, last = rows[0], rows[-1]
    slope, start, r_squared = line([(row[size], row["ours"]["wall"]) for row in rows])
    text = (
        f"{first[size]:,} to {last[size]:,} {size}: {start:.3f} s + {slope * 1e6:.2f} µs each "
        f"(R² = {r_squared:.4f}), {megabytes(first['ours']['peak'])} to "
        f"{megabytes(last['ours']['peak'])} MB"
    )
    if "theirs" in first:
        low, high = (f"{row['ratio']['median']:.2f}" for row in (first, last))
        text += f"; {low} to {high} of {first['peer']}'s time"
    return f"{text}.\n"


def ratio_table(results: Results, part: str) -> str:
    """Return the ratios of a part, a column for each peer."""
    names = list(dict.fromkeys(row["peer"] for row in results[part]))
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for row in results[part]:
        rows.setdefault((row["workload"], row["input"]), {})[row["peer"]] = ratio(row["ratio"])
    body = [
        [workload, CALLS[what], *(cells.get(name, "") for name in names)]
        for (workload, what), cells in rows.items()
    ]
    return table(["workload", "input", *names], body, left=2)


PAGE: dict[str, Callable[[Results], str]] = {
    **{name: make for name, make in SECTIONS.items() if name != "targets"},
    "comparisons": joint_comparisons,
    "agreement": agreement_sentence,
    "scaling-detections": lambda results: scaling_sentence(
        results, "scaling_detections", "detections"
    ),
    "scaling-images": lambda results: (
        scaling_sentence(results, "scaling_images", "images")
        + f"\n{picture('scaling', 'wall time over detections and images')}"
    ),
    "loop": lambda results: ratio_table(results, "loop"),
    "drop_in": lambda results: ratio_table(results, "drop_in"),
}
"""The sections of docs/performance.md."""


def part_of(section: str) -> str:
    """Return the part of the results that a section shows."""
    if section in {"targets", "losses"}:
        return "comparisons"
    return section.replace("-", "_")


def sections(
    results: Results, made: dict[str, Callable[[Results], str]] = SECTIONS
) -> dict[str, str]:
    """Return every table for which there are results."""
    return {name: make(results) for name, make in made.items() if results.get(part_of(name))}


def refuse_gaps(measured: Container[str]) -> None:
    """Exit if parts of the page were never measured: its raw results would lose them."""
    missing = dict.fromkeys(part_of(name) for name in SECTIONS if part_of(name) not in measured)
    if missing:
        names = ",".join(missing)
        raise SystemExit(
            f"--docs: never measured here: {names}; measure them too, --only {names}, or "
            "leave --docs out"
        )


def insert(page: str, texts: dict[str, str]) -> str:
    """Replace the text between the markers of each given section."""

    def replacement(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        return f"{begin}\n{texts[name]}\n{end}" if name in texts else match.group()

    return MARKER.sub(replacement, page)


def main(words: Sequence[str]) -> None:
    """Write the tables and plots of a run."""
    draw = import_module("benchmarks.plots").draw  # needs matplotlib, which the tables do not

    results = Path(words[0])
    data: Results = json.loads(results.read_text())
    if "--docs" in words:
        refuse_gaps(data)
    texts = sections(data)
    markdown = "\n".join(f"## {name}\n\n{text}" for name, text in texts.items())
    results.with_suffix(".md").write_text(markdown)
    sys.stdout.write(markdown)
    plots = draw(data, results.parent)
    if "--docs" in words:
        page = DOCS / "performance.md"
        page.write_text(insert(page.read_text(), sections(data, PAGE)))
        target = DOCS / "performance"
        target.mkdir(exist_ok=True)
        for path in plots:
            shutil.copyfile(path, target / path.name)
        # Where the checkout lay says nothing to a reader.
        text = results.read_text().replace(f"{DOCS.parent}/", "")
        (target / results.name).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
