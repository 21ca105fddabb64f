"""Run the benchmarks: workloads, peers, agreement, times, tables and plots. See README.md."""

import argparse
import itertools
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks import detap_command, machine, measure
from benchmarks.detap_command import Detap
from benchmarks.peers import PEERS, Peer, binary, prepare, versions
from benchmarks.report import refuse_gaps

HERE = Path(__file__).resolve().parent
WORK = HERE / "cache"
RESULTS = WORK / "results.json"

SIZES = (
    *("1k", "48k", "500k", "500k-full", "2M", "5M", "voc", "1230-classes"),
    *("masks", "masks-alone", "keypoints"),
)
DEFAULT_SIZES = tuple(size for size in SIZES if size not in ("500k-full", "5M"))
LARGE = ("2M", "5M")
LARGE_BOXES = ("500k", *LARGE)  # where threads have enough to do
NOT_FOR_LARGE = ("pycocotools", "faster-coco-eval")  # minutes, and up to 17 GB
TOLERANCE = 1e-9
# Not below the 36,781 ground truths: the generator would have background left over and little else.
DETECTION_COUNTS = (50_000, 100_000, 200_000, 400_000, 800_000)
IMAGE_COUNTS = (2_500, 5_000, 10_000, 20_000, 40_000)
QUICK_DETECTION_COUNTS = (50_000, 100_000)
QUICK_IMAGE_COUNTS = (1_000, 2_000, 4_000)
PARTS = (
    *("workloads", "agreement", "comparisons", "scaling_detections", "scaling_images", "threads"),
    *("profile", "loop", "epoch", "drop_in", "others", "ranking", "installation"),
)
# Uses of an evaluator in a training loop, and the peers that support each.
LOOPS = {
    "arrays": ("ultrafast-pycocotools", "hotcoco", "vernier"),
    "updates": ("hotcoco", "torchmetrics"),
}
# Clients of pycocotools' classes, and the peer that the drop-in is compared with.
DROP_INS = dict.fromkeys(("path", "annotations"), ("pycocotools",))
EPOCH, QUICK_EPOCH = 10_000_000, 1_000_000  # detections of an evaluator
REPORTED = ("500k", "2M", "1230-classes")  # with a JSON report too
PROFILED = ("48k", "500k", "2M", "voc", "masks")
RANKINGS = ("codes", "embeddings")
RANKED_QUERIES = 1_000
FIRST_COMMAND = re.compile(r"^python3 -m venv .*pip install \. && .*$", re.MULTILINE)
STEP = re.compile(r"^(\w+): (\d+\.\d+) s$", re.MULTILINE)


@dataclass(slots=True)
class Bench:
    """Settings and results of a run."""

    detap: Detap
    sizes: Sequence[str]
    peers: Sequence[str]
    runs: int
    quick: bool = False
    torch: str | None = None
    results: dict[str, Any] = field(default_factory=dict)
    _files: dict[str, dict[str, Any]] = field(default_factory=dict)

    def workload(self, name: str) -> dict[str, Any]:
        """Make a workload in another process, so that this one stays small."""
        if name not in self._files:
            say(f"workload {name}")
            made = subprocess.run(
                [sys.executable, "-m", "benchmarks.workloads", "--json", name],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                cwd=HERE.parent,
            )
            self._files[name] = json.loads(made.stdout)
        return self._files[name]

    def ours(self, name: str, *more: str) -> list[str]:
        """Return detap's command for a workload."""
        files = self.workload(name)
        truth, detections = Path(files["ground_truth"]), Path(files["detections"])
        return self.detap.command(files["format"], truth, detections, *more)

    def theirs(self, peer: Peer, name: str, *, checked: bool = False) -> list[str]:
        """Return a peer's command for a workload."""
        files = self.workload(name)
        make = peer.checked if checked else peer.command
        return make(Path(files["ground_truth"]), Path(files["detections"]), files["format"])

    def peers_for(self, name: str) -> Iterable[Peer]:
        """Return the peers that read the workload's format and are not too slow for it."""
        format_ = self.workload(name)["format"]
        for peer in (PEERS[entry] for entry in self.peers):
            if format_ in peer.formats and not (name in LARGE and peer.name in NOT_FOR_LARGE):
                yield peer

    def best_peer(self, name: str) -> Peer | None:
        """Return the fastest peer on a workload."""
        rows = [row for row in self.results.get("comparisons", ()) if row["workload"] == name]
        fastest = min(rows, key=lambda row: row["theirs"]["wall"], default=None)
        return PEERS[fastest["peer"]] if fastest else None


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def check_agreement(bench: Bench) -> list[dict[str, Any]]:
    """Compare the metrics of detap and every peer on every workload."""
    rows = []
    for name in bench.sizes:
        format_ = bench.workload(name)["format"]
        _, text = measure.run(bench.ours(name, "--output-format", "json"))
        ours = detap_command.READ[format_](text)
        for peer in bench.peers_for(name):
            row = {"workload": name, "peer": peer.name, "metrics": len(ours)}
            rows.append(row | trial(bench, peer, name, ours))
            say(f"{name}: {peer.name}: {rows[-1]['status']}")
    return rows


def trial(bench: Bench, peer: Peer, name: str, ours: Sequence[float | None]) -> dict[str, Any]:
    """Run a peer once and compare its metrics; a failing peer is reported and not timed."""
    try:
        cost, said = measure.run(bench.theirs(peer, name, checked=True))
    except measure.CommandError as error:
        say(str(error))
        return {"status": "failed", "trial": None}
    difference = measure.largest_difference(ours, peer.read(said))
    status = "equal" if difference == 0 else "agrees" if difference <= TOLERANCE else "differs"
    return {"status": status, "difference": difference, "trial": asdict(cost)}


def compare(bench: Bench) -> list[dict[str, Any]]:
    """Time detap against every peer on every workload."""
    rows = []
    for name in bench.sizes:
        trials = {
            row["peer"]: measure.Run(**row["trial"])
            for row in bench.results["agreement"]
            if row["workload"] == name and row["trial"]
        }
        for peer in (peer for peer in bench.peers_for(name) if peer.name in trials):
            pairs = measure.alternate(
                bench.ours(name),
                bench.theirs(peer, name),
                measure.pairs_for(trials[peer.name], bench.runs),
            )
            row = {"workload": name, "peer": peer.name, **measure.comparison(pairs)}
            say(
                f"{name}: detap {row['ours']['wall']:.3f} s, {peer.name} "
                f"{row['theirs']['wall']:.3f} s, ratio {row['ratio']['median']:.3f}"
            )
            rows.append(row)
    return rows


def scaling(bench: Bench, names: Iterable[str], size: str) -> list[dict[str, Any]]:
    """Time detap and the fastest peer along a series of workloads."""
    peer = bench.best_peer("500k") or bench.best_peer("48k")
    rows = []
    for name in names:
        files = bench.workload(name)
        row: dict[str, Any] = {"workload": name, size: files["shape"][size]}
        if peer is None:
            row["ours"] = measure.summary(repeat(bench.ours(name), bench.runs))
        else:
            pairs = measure.alternate(bench.ours(name), bench.theirs(peer, name), bench.runs)
            row |= {"peer": peer.name, **measure.comparison(pairs)}
        say(f"{name}: detap {row['ours']['wall']:.3f} s")
        rows.append(row)
    return rows


def repeat(command: Sequence[str], runs: int) -> list[measure.Run]:
    return [measure.run(command)[0] for _ in range(runs)]


def thread_counts() -> list[int]:
    cores = machine.cores()
    return sorted({1, 2, *(2**power for power in range(2, 7) if 2**power <= cores), cores})


def threads(bench: Bench) -> list[dict[str, Any]]:
    """Time detap by number of threads: the process, and the evaluation without reading."""
    rows: list[dict[str, Any]] = []
    for name in (entry for entry in bench.sizes if entry in LARGE_BOXES):
        proper = evaluation_only(bench, name)
        for count in thread_counts():
            runs = repeat(bench.ours(name, "--threads", str(count)), bench.runs)
            ours = measure.summary(runs)
            row: dict[str, Any] = {"workload": name, "threads": count, "ours": ours}
            if proper:
                row["evaluation"] = proper[str(count)]
            say(f"{name}: {count} threads {ours['wall']:.3f} s")
            rows.append(row)
    return rows


def evaluation_only(bench: Bench, name: str) -> dict[str, float] | None:
    """Time the evaluation of files that were read before, in one process."""
    if bench.detap.python is None:
        return None
    files = bench.workload(name)
    script = HERE / "scripts" / "evaluation_only.py"
    counts = ",".join(map(str, thread_counts()))
    command = [bench.detap.python, str(script), files["format"]]
    command += [files["ground_truth"], files["detections"], counts, str(bench.runs)]
    _, text = measure.run(command)
    proper: dict[str, float] = json.loads(text)
    return proper


def profile(bench: Bench) -> list[dict[str, Any]]:
    """Collect the times of detap's steps from its verbose output."""
    rows = []
    for name in (size for size in bench.sizes if size in PROFILED):
        steps: dict[str, list[float]] = {}
        walls = []
        for _ in range(bench.runs):
            cost, said = run_verbose(bench.ours(name, "-v"))
            walls.append(cost)
            for step, seconds in STEP.findall(said):
                steps.setdefault(step, []).append(float(seconds))
        rows.append(
            {
                "workload": name,
                "wall": median(walls),
                "steps": {step: median(times) for step, times in steps.items()},
            }
        )
    return rows


def run_verbose(command: Sequence[str]) -> tuple[float, str]:
    """Run a command; return its wall time and its stderr."""
    start = perf_counter()
    done = subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    return perf_counter() - start, done.stderr


def loop(bench: Bench) -> list[dict[str, Any]]:
    """Time detap and its peers on arrays in memory, all at once and by batch."""
    return inside(
        bench, "loop.py", LOOPS, [size for size in ("500k", "48k") if size in bench.sizes][:1]
    )


def epoch(bench: Bench) -> dict[str, float]:
    """Time an evaluator over a long epoch, and take its memory per detection."""
    if bench.detap.python is None:
        return {}
    script, count = HERE / "scripts" / "epoch.py", QUICK_EPOCH if bench.quick else EPOCH
    command = [bench.detap.python, str(script), str(count)]
    reports = [json.loads(measure.run(command)[1]) for _ in range(min(bench.runs, 3))]
    say(f"epoch: {reports[0]}")
    return {name: median(report[name] for report in reports) for name in reports[0]}


def drop_in(bench: Bench) -> list[dict[str, Any]]:
    """Time the drop-in and pycocotools, loading and evaluating.

    Processor times are those of whole processes, start-up included.
    """
    return inside(bench, "drop_in.py", DROP_INS, [size for size in bench.sizes if size == "48k"])


def inside(
    bench: Bench, name: str, kinds: Mapping[str, Sequence[str]], sizes: Sequence[str]
) -> list[dict[str, Any]]:
    """Run a script that times itself, alternately with detap and each peer."""
    python, rows = bench.detap.python, []
    if python is None:
        return []
    script = str(HERE / "scripts" / name)
    for size, (what, peers) in itertools.product(sizes, kinds.items()):
        files = [bench.workload(size)[side] for side in ("ground_truth", "detections")]
        ours = [str(python), script, "detap", what, *files]
        for peer in peers:
            theirs = bench.torch if peer == "torchmetrics" else str(binary("python"))
            if theirs is None or peer not in (*bench.peers, "torchmetrics"):
                continue
            command = [theirs, script, peer, what, *files]
            runs = 1 if peer == "torchmetrics" else bench.runs
            pairs = measure.alternate(ours, command, runs, measure=seconds_of_loop)
            rows.append(
                {"workload": size, "input": what, "peer": peer, **measure.comparison(pairs)}
            )
            wall, spent = (rows[-1][key]["median"] for key in ("ratio", "processor_ratio"))
            say(f"{size}: {what}: {peer}: ratio {wall:.3f}, of processor time {spent:.3f}")
    return rows


def seconds_of_loop(command: Sequence[str]) -> measure.Run:
    """Return the cost of a loop script, with the wall time of the loop alone."""
    cost, text = measure.run(command)
    report = json.loads(text)
    return replace(cost, wall=report["updates"] + report["rest"])


def others(bench: Bench) -> list[dict[str, Any]]:
    """Time other formats and analyses, each against an evaluation of the same boxes."""
    python = bench.detap.python
    size = next((s for s in ("500k", "48k") if s in bench.sizes), "")
    if python is None or not size:
        return []
    truth, results = (bench.workload(size)[side] for side in ("ground_truth", "detections"))
    folder = WORK / "data" / f"{size}-others"
    if not (folder / "second.json").exists():
        folder.mkdir(exist_ok=True)
        script = HERE / "scripts" / "other_formats.py"
        subprocess.run([str(python), str(script), truth, results, str(folder)], check=True)
    pairs_by_name = other_commands(bench, size, folder)
    named = [(size, name, *commands) for name, commands in pairs_by_name.items()]
    report = str(WORK / "report.json")
    named += [
        (other, "JSON report", bench.ours(other, "-o", report), bench.ours(other))
        for other in bench.sizes
        if other in REPORTED
    ]
    rows = []
    for workload, name, ours, theirs in named:
        pairs = measure.alternate(ours, theirs, bench.runs)
        rows.append({"workload": workload, "name": name, **measure.comparison(pairs)})
        say(f"{workload}: {name}: ratio {rows[-1]['processor_ratio']['median']:.3f}")
    return rows


def other_commands(
    bench: Bench, size: str, folder: Path
) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
    """Return a command and the evaluation to compare it with, by name."""
    truth, results = (bench.workload(size)[side] for side in ("ground_truth", "detections"))
    plain = bench.ours(size)

    def command(name: str, gt: str, *more: str) -> list[str]:
        return [*bench.detap.program, name, "--gt", gt, *more]

    def read(gt: Path | str, dt: str) -> tuple[Sequence[str], Sequence[str]]:
        return command("eval", str(gt), "--dt", str(folder / dt), "--protocol", "coco"), plain

    shards = command("eval", truth, "--dt", str(folder / "shards" / "*.json"))
    return {
        "JSON Lines, lists": read(folder / "gt-lists.jsonl", "dt-lists.jsonl"),
        "JSON Lines, objects": read(folder / "gt-objects.jsonl", "dt-objects.jsonl"),
        "CVAT": read(folder / "gt.xml", "dt.xml"),
        "Parquet": read(truth, "dt.parquet"),
        "--errors": (bench.ours(size, "--errors"), plain),
        "compare, 1,000 resamples": (
            command("compare", truth, results, str(folder / "second.json")),
            plain,
        ),
        "explain --from coco --to voc2012": (
            command("explain", truth, "--dt", results, "--from", "coco", "--to", "voc2012"),
            plain,
        ),
        "--engine dask, 8 shards": ([*shards, "--engine", "dask"], shards),
    }


def ranking(bench: Bench) -> list[dict[str, Any]]:
    """Time retrieval metrics against faiss, which only finds the first 100 items."""
    if bench.detap.python is None:
        return []
    rows = []
    for kind in RANKINGS:
        folder = WORK / "data" / f"ranking-{kind}"
        given = ["--kind", kind, "--queries", str(RANKED_QUERIES), "--folder", str(folder)]
        words = ["-m", "benchmarks.ranking", *given]
        if not (folder / "3.npy").exists():  # the last that is written
            subprocess.run([bench.detap.python, *words, "--write"], check=True, cwd=HERE.parent)
        ours = [bench.detap.python, *words, "--one", "detap, mAP@100 and P@100"]
        theirs = [str(binary("python")), *words, "--one", "faiss flat index, P@100"]
        pairs = measure.alternate(ours, theirs, min(bench.runs, 5), measure=ranking_cost)
        rows.append({"workload": kind, "peer": "faiss", **measure.comparison(pairs)})
        say(f"{kind}: faiss: ratio {rows[-1]['processor_ratio']['median']:.3f}")
    return rows


def ranking_cost(command: Sequence[str]) -> measure.Run:
    """Return the cost of a ranking without reading its arrays."""
    cost, text = measure.run(command)
    report = json.loads(text)
    peak = int(report["megabytes"] * 2**20)
    return replace(cost, wall=report["seconds"], user=report["processor"], system=0.0, peak=peak)


def installation(bench: Bench) -> dict[str, float]:
    """Time the README's first command in a clean clone, with its downloads."""
    readme = (HERE.parent / "README.md").read_text(encoding="utf-8")
    (command,) = FIRST_COMMAND.findall(readme)
    runs = []
    for _ in range(min(bench.runs, 3)):
        with tempfile.TemporaryDirectory() as folder:
            clone = ["git", "clone", "--quiet", str(HERE.parent), folder]
            subprocess.run(clone, check=True)
            in_clone = ["bash", "-c", f"cd {shlex.quote(folder)} && {command}"]
            runs.append(measure.run(in_clone, {"PIP_NO_CACHE_DIR": "1"})[0])
        say(f"installation: {runs[-1].wall:.1f} s")
    return measure.summary(runs)


def series(quick: bool) -> tuple[list[str], list[str]]:
    """Return the names of the workloads of both series."""
    detections = QUICK_DETECTION_COUNTS if quick else DETECTION_COUNTS
    images = QUICK_IMAGE_COUNTS if quick else IMAGE_COUNTS
    return [f"detections-{n}" for n in detections], [f"images-{n}" for n in images]


def last_results() -> dict[str, Any]:
    """Return the results of the last run, or an empty dict."""
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return results


def to_measure(only: Sequence[str], measured: Container[str]) -> Sequence[str]:
    """Return the parts to measure: those requested, and those they depend on if missing.

    Only peers known to finish are timed.
    """
    missing = "comparisons" in only and "agreement" not in measured
    return [part for part in PARTS if not only or part in only or (missing and part == "agreement")]


def run_all(bench: Bench, only: Sequence[str] = ()) -> dict[str, Any]:
    """Measure everything or some parts, and save the results after each part."""
    results = bench.results
    if only:
        results |= last_results()
    chosen_parts = to_measure(only, results)
    results |= {
        "schema": 1,
        "machine": machine.describe(),
        "detap": bench.detap.version(),
        "peers": versions(),
        "runs": bench.runs,
    }
    by_detections, by_images = series(bench.quick)
    makers: tuple[Callable[[], Any], ...] = (
        lambda: {name: bench.workload(name) for name in bench.sizes},
        lambda: check_agreement(bench),
        lambda: compare(bench),
        lambda: scaling(bench, by_detections, "detections"),
        lambda: scaling(bench, by_images, "images"),
        lambda: threads(bench),
        lambda: profile(bench),
        lambda: loop(bench),
        lambda: epoch(bench),
        lambda: drop_in(bench),
        lambda: others(bench),
        lambda: ranking(bench),
        lambda: installation(bench),
    )
    parts = dict(zip(PARTS, makers, strict=True))
    for name in chosen_parts:
        say(f"-- {name}")
        results[name] = parts[name]()
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return results


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sizes", help=f"of {', '.join(SIZES)}; separated by commas")
    parser.add_argument("--peers", help=f"of {', '.join(PEERS)}; separated by commas")
    parser.add_argument("--runs", type=int, help="pairs of runs for each peer (9; quick: 3)")
    parser.add_argument("--only", help=f"parts to measure again: {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="small workloads, few runs")
    parser.add_argument(
        "--torch", metavar="PYTHON", help="a Python that has torchmetrics, for the loop"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--detap", metavar="COMMAND", help="measure this instead of what is here")
    which.add_argument(
        "--build", action="store_true", help="install the checkout apart, as users do"
    )
    parser.add_argument(
        "--docs", action="store_true", help="put the results into docs/performance.md"
    )
    parser.add_argument("--report-only", action="store_true", help="from the results of last time")
    return parser.parse_args(words)


def chosen(given: str | None, known: Iterable[str], default: Sequence[str]) -> Sequence[str]:
    """Return the requested names, or exit with the available ones."""
    if given is None:
        return default
    names = given.split(",")
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return names


def bench_for(options: argparse.Namespace) -> Bench:
    if options.detap:
        detap = Detap(tuple(shlex.split(options.detap)), None)
    else:
        detap = detap_command.build() if options.build else detap_command.installed()
    default = ("1k", "48k", "voc") if options.quick else DEFAULT_SIZES
    quick_peers = [name for name in PEERS if name not in NOT_FOR_LARGE]
    return Bench(
        detap,
        chosen(options.sizes, SIZES, default),
        chosen(options.peers, PEERS, quick_peers if options.quick else list(PEERS)),
        options.runs or (3 if options.quick else 9),
        options.quick,
        options.torch,
    )


def main(words: Sequence[str] | None = None) -> None:
    """Run the benchmark and write its results."""
    options = arguments(words)
    only = chosen(options.only, PARTS, ())
    if options.docs and not options.report_only:
        # Before hours of measuring, not after.
        refuse_gaps({"machine", *(only or PARTS), *(last_results() if only else ())})
    if options.report_only and not RESULTS.exists():
        raise SystemExit(
            f"there are no results of a last time ({RESULTS}): measure first, with python -m "
            "benchmarks, or with --quick for small workloads"
        )
    WORK.mkdir(exist_ok=True)
    prepare()
    if not options.report_only:
        run_all(bench_for(options), only)
    command = [str(binary("python")), "-m", "benchmarks.report", str(RESULTS)]
    subprocess.run([*command, *(["--docs"] if options.docs else [])], check=True, cwd=HERE.parent)
    results = last_results()
    differing = [row for row in results.get("agreement", ()) if row["status"] == "differs"]
    for row in differing:
        say(f"{row['workload']}: {row['peer']} differs from detap by {row['difference']:.3g}")
    if differing:
        raise SystemExit(1)
