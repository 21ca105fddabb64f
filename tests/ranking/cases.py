"""Random rankings, and files of them."""

from pathlib import Path
from typing import Any

import numpy as np

from detap.tables.ranking import Gallery

Run = dict[str, dict[str, float]]
Qrels = dict[str, dict[str, int]]


def random_run(seed: int, *, grades: int = 1, levels: int = 6) -> tuple[Run, Qrels]:
    """Return a run with ties, unjudged queries and items, and judgments with more than it has.

    Some judged queries are missing from the run, some have nothing relevant, and some relevant
    items are not retrieved.
    """
    random = np.random.default_rng(seed)
    items = [f"d{number}" for number in range(40)]
    run: Run = {}
    qrels: Qrels = {}
    for number in range(30):
        query = f"q{number}"
        judged = random.choice(items, random.integers(1, 20), replace=False)
        empty = random.random() < 0.1
        high = 1 if empty else grades + 1
        qrels[query] = {str(item): int(random.integers(0, high)) for item in judged}
        if random.random() < 0.85:
            ranked = random.choice(items, random.integers(1, 30), replace=False)
            run[query] = {str(item): int(random.integers(levels)) / 7 for item in ranked}
    run["unjudged"] = {"d1": 1.0}
    return run, qrels


def write_trec(folder: Path, run: Run, qrels: Qrels) -> tuple[Path, Path]:
    """Write both as TREC text; the ranks of the run are wrong and must not be used."""
    run_path, qrels_path = folder / "run.txt", folder / "qrels.txt"
    run_path.write_text(
        "".join(
            f"{query} Q0 {item} 0 {score!r} test\n"
            for query, items in run.items()
            for item, score in items.items()
        )
    )
    qrels_path.write_text(
        "".join(
            f"{query} 0 {item} {grade}\n"
            for query, items in qrels.items()
            for item, grade in items.items()
        )
    )
    return run_path, qrels_path


def save(path: Path, **arrays: Any) -> None:
    """Write an .npz file."""
    np.savez(path, **arrays)


def gallery(kind: str, query: Any, items: Any, labels: tuple[Any, Any], **more: Any) -> Gallery:
    """Return a Gallery of arrays with numbered queries; `items` is None for scores."""
    query_labels, gallery_labels = (
        array if array.ndim == 2 else array.astype(np.int32) for array in map(np.asarray, labels)
    )
    return Gallery(
        kind=kind,  # type: ignore[arg-type]
        query=np.asarray(query),
        gallery=np.zeros((0, 0)) if items is None else np.asarray(items),
        query_labels=query_labels,
        gallery_labels=gallery_labels,
        queries=tuple(map(str, range(len(query_labels)))),
        **more,
    )
