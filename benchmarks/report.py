"""Write the results of a run as Markdown tables and plots, also into the documentation.

    python -m benchmarks.report RESULTS.json [--docs]

prints the tables and writes them as ``results.md``, with the plots as ``*.svg``, next to the
results. With ``--docs`` they replace those between the markers of docs/performance.md, and the
results and the plots on the page are copied to docs/performance/.
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


def machine_sentence(results: Results) -> str:
    """Return the machine, the versions and the number of runs."""
    packages = results["peers"]
    names = sorted({row["peer"] for row in results.get("comparisons", ())} & set(packages))
    versions = [f"{name} {packages[name]}" for name in ("numpy", *names)]
    machine = "; ".join(f"{name} {value}" for name, value in results["machine"].items())
    return (
        f"{machine}. {results['detap']}, {', '.join(versions)}. {results['runs']} pairs per peer, "
        "3 if a run takes over 20 s. [All measurements](performance/results.json).\n"
    )


def workload_table(results: Results) -> str:
    rows = []
    for name, made in results["workloads"].items():
        shape = made["shape"]
        rows.append(
            [
                name,
                f"{shape['images']:,}",
                f"{shape.get('ground_truths', shape.get('objects')):,}",
                str(shape["classes"]),
                f"{shape['detections']:,}",
            ]
        )
    return table(["workload", "images", "ground truths", "classes", "detections"], rows)


def difference(row: dict[str, Any]) -> str:
    if row["status"] == "failed":
        return "did not finish"
    return "none" if row["status"] == "equal" else f"{row['difference']:.2g}"


def agreement_sentence(results: Results) -> str:
    """Return the number of equal comparisons, and a table of the others."""
    others = [row for row in results["agreement"] if row["status"] != "equal"]
    count = len(results["agreement"])
    text = f"Equal to the last bit: {count - len(others)} of {count} comparisons.\n"
    rows = [[row["workload"], row["peer"], str(row["metrics"]), difference(row)] for row in others]
    heading = ["workload", "peer", "metrics compared", "largest difference"]
    return f"{text}\n{table(heading, rows, left=2)}" if others else text


def compared(results: Results, name: str) -> list[dict[str, Any]]:
    """Return the comparisons on one workload, the fastest peer first."""
    rows = [row for row in results["comparisons"] if row["workload"] == name]
    return sorted(rows, key=lambda row: float(row["theirs"]["wall"]))


def pooled(rows: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Return detap's medians over its runs against all peers."""
    return summary([Run(**sample) for row in rows for sample in row["samples"]["ours"]])


def picture(name: str, what: str) -> str:
    """Return a link to a plot in the documentation."""
    return f"![{what}](performance/{name}.svg)\n"


def comparison_table(results: Results) -> str:
    """Return detap's costs on each workload, and a column of wall time ratios for each peer."""
    names = list(dict.fromkeys(row["peer"] for row in results["comparisons"]))
    body = []
    for workload in dict.fromkeys(row["workload"] for row in results["comparisons"]):
        rows = compared(results, workload)
        ours = pooled(rows)
        ratios = {row["peer"]: ratio(row["ratio"]) for row in rows}
        memory = max(row["memory_ratio"]["median"] for row in rows)
        own = [seconds(ours["wall"]), megabytes(ours["peak"]), f"{memory:.2f}"]
        body.append([workload, *own, *(ratios.get(name, "") for name in names)])
    text = table(["workload", "detap, s", "MB", "memory", *names], body)
    return f"{text}\n{picture('ratios', 'wall time of detap divided by that of each peer')}"


def losses(results: Results) -> str:
    """Return every cost in which a peer is at least as good as detap."""
    kinds = {"ratio": "wall", "processor_ratio": "processor", "memory_ratio": "memory"}
    rows = [
        [what, row["peer"], kind, ratio(row[key])]
        for part in ("comparisons", "loop", "drop_in", "ranking")
        for row in results.get(part, ())
        for key, kind in kinds.items()
        if row[key]["median"] >= 1 and (what := case(row)) and (part, kind) in _RELEVANT
    ]
    if not rows:
        return "None in this run.\n"
    return table(["case", "peer", "cost", "detap / peer"], rows, left=3)


_RELEVANT = {
    *(("comparisons", kind) for kind in ("wall", "processor", "memory")),
    ("loop", "wall"),
    ("drop_in", "processor"),
    ("ranking", "processor"),
}
"""The costs of each part: loops are timed inside a process."""


def case(row: dict[str, Any]) -> str:
    """Return the name of a measured case."""
    return ", ".join(filter(None, (row["workload"], INPUTS.get(row.get("input", ""), ""))))


INPUTS = {
    "arrays": "all arrays at once",
    "updates": "16 images at a time",
    "path": "file",
    "annotations": "annotations of each image",
}
"""Inputs of a training loop and of clients of pycocotools."""


def input_table(results: Results, part: str, cost: str) -> str:
    """Return the ratios of a part, a column for each peer."""
    names = list(dict.fromkeys(row["peer"] for row in results[part]))
    rows: dict[str, dict[str, str]] = {}
    for row in results[part]:
        rows.setdefault(case(row), {})[row["peer"]] = ratio(row[cost])
    body = [[what, *(cells.get(name, "") for name in names)] for what, cells in rows.items()]
    return table(["case", *names], body)


def epoch_sentence(results: Results) -> str:
    cost = results["epoch"]
    return (
        f"{cost['detections']:,.0f} detections of 100 an image through an `Evaluator`: "
        f"{seconds(cost['updates'])} s in updates, {seconds(cost['rest'])} s in `compute`; "
        f"{cost['held']:.0f} bytes per detection, and {cost['peak']:.0f} more in `compute`.\n"
    )


def others_table(results: Results) -> str:
    """Return formats, options and commands, each divided by an evaluation of COCO JSON."""
    rows = [
        [row["workload"], row["name"], *_processors(row), ratio(row["processor_ratio"])]
        for row in results["others"]
    ]
    return table(["workload", "", "processor, s", "evaluation, s", "ratio"], rows, left=2)


def _processors(row: dict[str, Any]) -> list[str]:
    return [seconds(row[side]["processor"]) for side in ("ours", "theirs")]


def ranking_table(results: Results) -> str:
    rows = [
        [
            row["workload"],
            row["peer"],
            *_processors(row),
            ratio(row["processor_ratio"]),
            f"{row['memory_ratio']['median']:.2f}",
        ]
        for row in results["ranking"]
    ]
    heading = ["items", "peer", "detap, s", "peer, s", "detap / peer: processor", "memory"]
    return table(heading, rows, left=2)


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


def image_scaling(results: Results) -> str:
    """Return the sentence of the second series, and the plot of both."""
    text = scaling_sentence(results, "scaling_images", "images")
    return f"{text}\n{picture('scaling', 'wall time over detections and images')}"


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
    return table(heading, rows)


def profile_table(results: Results) -> str:
    steps = list(dict.fromkeys(step for row in results["profile"] for step in row["steps"]))
    rows = []
    for row in results["profile"]:
        times = [row["steps"].get(step, 0.0) for step in steps]
        rest = row["wall"] - sum(times)
        rows.append([row["workload"], *map(seconds, [*times, rest, row["wall"]])])
    return table(["workload", *steps, "interpreter, exit", "total"], rows)


def installation_sentence(results: Results) -> str:
    cost = results["installation"]
    return (
        f"The README's first command takes {cost['wall']:.0f} s from a clone to the table "
        f"({cost['wall_low']:.0f}\N{EN DASH}{cost['wall_high']:.0f} in {cost['runs']} runs; "
        f"{cost['processor']:.0f} s of processor time), downloads and compilation included.\n"
    )


SECTIONS: dict[str, Callable[[Results], str]] = {
    "machine": machine_sentence,
    "workloads": workload_table,
    "losses": losses,
    "comparisons": comparison_table,
    "agreement": agreement_sentence,
    "drop_in": lambda results: input_table(results, "drop_in", "processor_ratio"),
    "loop": lambda results: input_table(results, "loop", "ratio"),
    "epoch": epoch_sentence,
    "others": others_table,
    "installation": installation_sentence,
    "scaling-detections": lambda results: scaling_sentence(
        results, "scaling_detections", "detections"
    ),
    "scaling-images": image_scaling,
    "threads": thread_table,
    "profile": profile_table,
    "ranking": ranking_table,
}
"""The sections of a report; docs/performance.md has some of them."""


def part_of(section: str) -> str:
    """Return the part of the results that a section shows."""
    if section == "losses":
        return "comparisons"
    return section.replace("-", "_")


def sections(results: Results) -> dict[str, str]:
    """Return every table for which there are results."""
    return {name: make(results) for name, make in SECTIONS.items() if results.get(part_of(name))}


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
        text = insert(page.read_text(), texts)
        page.write_text(text)
        target = DOCS / "performance"
        target.mkdir(exist_ok=True)
        for path in plots:
            if path.name in text:
                shutil.copyfile(path, target / path.name)
        # Where the checkout lay says nothing to a reader.
        raw = results.read_text().replace(f"{DOCS.parent}/", "")
        (target / results.name).write_text(raw)


if __name__ == "__main__":
    main(sys.argv[1:])
