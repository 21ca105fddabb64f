"""Time and memory of rankings, compared to NumPy and faiss.

``python -m benchmarks.ranking`` prints a table in Markdown. Every measurement runs in a new
process, whose wall time (without creating the data) and peak memory are recorded. NumPy computes
matrix products with `argpartition`, in blocks; faiss is a library for the purpose (``--faiss
PYTHON`` is an interpreter that has it). Both only find the first k items; only detap computes
metrics here.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

BITS = DIMENSIONS = 128
CLASSES = 1000
BLOCK = 64


def data(queries: int, items: int, kind: str) -> tuple[Any, Any, Any, Any]:
    """Return queries, gallery and labels: noisy copies of a vector for each class."""
    random = np.random.default_rng(0)
    labels = random.integers(0, CLASSES, queries), random.integers(0, CLASSES, items)
    centres = random.normal(size=(CLASSES, DIMENSIONS)).astype(np.float32)
    made = []
    for own in labels:
        vectors = np.empty((len(own), DIMENSIONS), np.float32)
        for low in range(0, len(own), 50_000):
            part = own[low : low + 50_000]
            noise = random.normal(size=(len(part), DIMENSIONS)).astype(np.float32)
            vectors[low : low + len(part)] = centres[part] + 2 * noise
        made.append(vectors > 0 if kind == "codes" else vectors)
    return *made, *(x.astype(np.int32) for x in labels)


def detap(names: list[str] | None, threads: int) -> Callable[..., dict[str, float]]:
    def run(query: Any, gallery: Any, own: Any, theirs: Any, kind: str) -> dict[str, float]:
        from detap.ranking import retrieval  # noqa: PLC0415 - each candidate imports its own
        from detap.tables.ranking import Gallery  # noqa: PLC0415

        table = Gallery(
            kind="codes" if kind == "codes" else "embeddings",
            query=query,
            gallery=gallery,
            query_labels=own,
            gallery_labels=theirs,
            queries=tuple(map(str, range(len(query)))),
        )
        return dict(retrieval.evaluate(table, names=names, threads=threads).summary)

    return run


def product(query: Any, gallery: Any, own: Any, theirs: Any, kind: str) -> dict[str, float]:
    """Return the fraction of relevant items among the first 100, by matrix products."""
    if kind == "codes":
        query, gallery = (np.where(x, 1, -1).astype(np.float32) for x in (query, gallery))
    else:
        query, gallery = (x / np.linalg.norm(x, axis=1)[:, None] for x in (query, gallery))
    hits = 0
    for low in range(0, len(query), BLOCK):
        scores = query[low : low + BLOCK] @ gallery.T
        best = np.argpartition(-scores, 100, axis=1)[:, :100]
        hits += int((theirs[best] == own[low : low + BLOCK, None]).sum())
    return {"P@100": hits / 100 / len(query)}


def faiss(query: Any, gallery: Any, own: Any, theirs: Any, kind: str) -> dict[str, float]:
    """Return the fraction of relevant items among the first 100, by faiss."""
    import faiss as library  # noqa: PLC0415

    if kind == "codes":
        packed = [np.packbits(x, axis=1) for x in (query, gallery)]
        index = library.IndexBinaryFlat(BITS)
    else:
        packed = [
            np.ascontiguousarray(x / np.linalg.norm(x, axis=1)[:, None]) for x in (query, gallery)
        ]
        index = library.IndexFlatIP(DIMENSIONS)
    index.add(packed[1])
    hits = 0
    for low in range(0, len(query), 1000):
        _, best = index.search(packed[0][low : low + 1000], 100)
        hits += int((theirs[best] == own[low : low + 1000, None]).sum())
    return {"P@100": hits / 100 / len(query)}


CANDIDATES: dict[str, Callable[[int], Callable[..., dict[str, float]]]] = {
    "detap, mAP@100 and P@100": lambda threads: detap(["mAP@100", "P@100"], threads),
    "detap, all ranks": lambda threads: detap(None, threads),
    "NumPy product and argpartition, P@100": lambda _: product,
    "faiss flat index, P@100": lambda _: faiss,
}


def peak() -> float:
    """Return the peak memory of this process in MB.

    Linux's ru_maxrss starts with that of the parent process; VmHWM does not.
    """
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_data(folder: str, queries: int, items: int, kind: str) -> None:
    """Write the arrays of a ranking into a folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for number, array in enumerate(data(queries, items, kind)):
        np.save(f"{folder}/{number}.npy", array)


def measure(name: str, kind: str, folder: str, threads: int) -> dict[str, Any]:
    """Run one candidate in this process, on arrays from files."""
    arrays = [np.load(f"{folder}/{number}.npy") for number in range(4)]
    before = peak()
    start, used = time.perf_counter(), time.process_time()
    result = CANDIDATES[name](threads)(*arrays, kind)
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - used,
        "megabytes": peak(),
        "data": before,
        "found": {key: result[key] for key in ("P@100", "mAP@100", "mAP") if key in result},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--kind", choices=["codes", "embeddings"], action="append")
    parser.add_argument("--only", action="append", help="candidates whose name has this word")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--faiss", default=sys.executable, help="a Python that has faiss")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        write_data(given.folder, given.queries, given.items, given.kind[0])
        return
    if given.one:
        print(json.dumps(measure(given.one, given.kind[0], given.folder, given.threads)))
        return
    print("| what | wall, s | processor, s | peak, MB | of it data | found |")
    print("|---|---|---|---|---|---|")
    for kind in given.kind or ["codes", "embeddings"]:
        with TemporaryDirectory() as folder:
            write_data(folder, given.queries, given.items, kind)
            for name in CANDIDATES:
                if not given.only or any(word in name for word in given.only):
                    python = given.faiss if name.startswith("faiss") else sys.executable
                    words = ["--threads", str(given.threads), "--folder", folder]
                    print(row([python, "-m", "benchmarks.ranking", *words], kind, name), flush=True)


def row(command: list[str], kind: str, name: str) -> str:
    """Return one line of the table."""
    words = [*command, "--kind", kind, "--one", name]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["failed"])[-1]
        return f"| {kind}: {name} | {why} |||||"
    report = json.loads(done.stdout)
    numbers = ", ".join(f"{key} {value:.6f}" for key, value in report["found"].items())
    return (
        f"| {kind}: {name} | {report['seconds']:.1f} | {report['processor']:.1f} "
        f"| {report['megabytes']:.0f} | {report['data']:.0f} | {numbers} |"
    )


if __name__ == "__main__":
    main()
