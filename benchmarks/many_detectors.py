"""Compare detectors by ``detap compare``, against as many evaluations.

    python -m benchmarks.many_detectors [SIZE [DETECTORS]]

SIZE is a workload, 500k without; the detectors (4) find the same objects with other errors. A line
of JSON: wall seconds of the evaluations together, of their comparison without and with resamples,
the ratio of the comparison without resamples, which may be 1.1, and the peak memory in MB of the
comparison of all and of two.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.detap_command import installed
from benchmarks.measure import Run, run
from benchmarks.shapes import SEED, coco_shape

RUNS = 3
DATA = Path(__file__).resolve().parent / "cache" / "data"


def write(size: str, count: int) -> None:
    """Write the detections of each detector, unless they are there."""
    # This process would keep the memory of NumPy: a child of it writes.
    from benchmarks.coco_workload import detection_text, scene  # noqa: PLC0415

    shape = coco_shape(size)
    layout = scene(shape)
    for path, seed in zip(paths(size, count), range(SEED, SEED + count), strict=True):
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(detection_text(shape, layout, seed)), encoding="ascii")


def paths(size: str, count: int) -> list[Path]:
    return [DATA / f"detectors-{size}" / f"{number}.json" for number in range(count)]


def cost(command: list[str]) -> Run:
    runs = [run(command)[0] for _ in range(RUNS)]
    return Run(*(median(getattr(one, name) for one in runs) for name in Run.__slots__))


def measured(size: str, count: int) -> dict[str, Any]:
    """Return times and peak memory."""
    this = [sys.executable, "-m"]
    made = subprocess.run(
        [*this, "benchmarks.workloads", "--json", size], check=True, capture_output=True
    )
    truth = json.loads(made.stdout)["ground_truth"]
    subprocess.run([*this, "benchmarks.many_detectors", "--write", size, str(count)], check=True)
    program, files = installed().program, list(map(str, paths(size, count)))
    given = ["--format", "coco", "--gt", truth]
    alone = [cost([*program, "eval", *given, "--dt", file]) for file in files]
    compare = [*program, "compare", *given]
    plain, drawn = (
        cost([*compare, *files, "--by-class", *more]) for more in (["--resamples", "0"], [])
    )
    two = cost([*compare, *files[:2], "--by-class"])
    evaluations = sum(one.wall for one in alone)
    return {
        "detectors": count,
        "evaluations": evaluations,
        "compare_without_resamples": plain.wall,
        "compare": drawn.wall,
        "ratio": plain.wall / evaluations,
        "peak_mb": drawn.peak / 1e6,
        "peak_mb_of_two": two.peak / 1e6,
    }


if __name__ == "__main__":
    writes = sys.argv[1:2] == ["--write"]
    words = sys.argv[2 if writes else 1 :]
    given_size, given_count = words[0] if words else "500k", int(words[1]) if words[1:] else 4
    if writes:
        write(given_size, given_count)
    else:
        print(json.dumps(measured(given_size, given_count)))
