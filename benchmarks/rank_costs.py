"""Processor time and peak memory of ``detap rank`` on inputs of several kinds.

``python -m benchmarks.rank_costs`` prints the table of docs/ranking.md. The numbers are random,
with a fixed seed. Needs 4 GB of memory.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.detap_command import installed
from benchmarks.measure import run

CASES = {
    "codes": "1,000 queries, 1,000,000 items: codes of 128 bits",
    "embeddings": "the same: embeddings of 128 float32",
    "scores": "1,000 queries, 100,000 items: float32 scores",
    "run": "10,000 queries, 1,000 items ranked for each: TREC",
    "classification": "100,000 samples, 1,000 classes: float32 scores",
}


def write(kind: str, folder: Path) -> None:
    """Write the files of a case."""
    import numpy as np  # noqa: PLC0415 - in a child: the parent's memory is inherited

    random = np.random.default_rng(0)
    if kind == "run":
        with (folder / "run.txt").open("w") as ranked, (folder / "qrels.txt").open("w") as judged:
            for query in range(10_000):
                items = random.choice(1_000_000, 1_000, replace=False)
                ranked.writelines(
                    f"q{query} Q0 d{d} {k} {1 - k / 1e3} x\n" for k, d in enumerate(items.tolist())
                )
                judged.writelines(f"q{query} 0 d{d} 1\n" for d in items[::50])
        return
    rows, many = {"scores": (1_000, 100_000), "classification": (100_000, 1_000)}.get(
        kind, (1_000, 1_000_000)
    )
    columns: dict[str, Any] = {"query_labels": random.integers(0, 1_000, rows)}
    columns["gallery_labels"] = random.integers(0, 1_000, many)
    if kind == "codes":
        for side, count in (("query", rows), ("gallery", many)):
            columns[f"{side}_codes"] = random.integers(0, 256, (count, 16), dtype=np.uint8)
    elif kind == "embeddings":
        for side, count in (("query", rows), ("gallery", many)):
            columns[f"{side}_embeddings"] = random.standard_normal((count, 128), np.float32)
    else:
        columns["scores"] = random.standard_normal((rows, many), np.float32)
    if kind == "classification":
        columns = {"scores": columns["scores"], "labels": columns["query_labels"]}
    np.savez(folder / "data.npz", **columns)


def main() -> None:
    """Print the table."""
    print("| input | files, MB | processor, s | memory, MB |\n|---|---:|---:|---:|", flush=True)
    for kind, title in CASES.items():
        with TemporaryDirectory() as made:
            subprocess.run([sys.executable, "-m", "benchmarks.rank_costs", kind, made], check=True)
            folder = Path(made)
            task = "classification" if kind == "classification" else "retrieval"
            given = ["--npz", str(folder / "data.npz")]
            if kind == "run":
                given = ["--run", str(folder / "run.txt"), "--qrels", str(folder / "qrels.txt")]
            size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
            cost, _ = run([*installed().program, "rank", task, *given, "-q"])
            seconds = cost.user + cost.system
            print(f"| {title} | {size:.0f} | {seconds:.1f} | {cost.peak / 1e6:.0f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        write(sys.argv[1], Path(sys.argv[2]))
    else:
        main()
