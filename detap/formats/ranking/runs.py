"""Read retrievals: a run with judgments, or codes, embeddings or scores with labels."""

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.ranking.arrays import NUMBERS, TEXT, ArraySource, read_npy, read_npz
from detap.formats.ranking.rows import QRELS, RUN, Rows, read_rows
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path, SourceFile, shown
from detap.io.problems import Problems
from detap.io.stream import refuse
from detap.tables.columns import indices_in
from detap.tables.ranking import Gallery, Run

__all__ = ["read_arrays", "read_npz_retrieval", "read_run"]

_MOST_BITS = 65535


# --- runs


def read_run(run: Path, qrels: Path, *, limits: Limits = DEFAULT_LIMITS) -> Run:
    """Read the ranked items of queries and their relevance judgments.

    Both files are TREC text, CSV with a header, or JSON: a list of objects, or ``{query: {item:
    number}}``. A run is ``query Q0 item rank score tag`` (the rank is ignored) or
    ``query,item,score``; judgments are ``query iteration item relevance`` or
    ``query,item,relevance`` (by default 1). ``"-"`` is stdin. Queries are in the order of the
    judgments, rows in that of the run.
    """
    are_files = STDIN not in (run, qrels) and os.path.exists(run) and os.path.exists(qrels)
    if are_files and os.path.samefile(run, qrels):
        refuse(os.fspath(run), "is both the run and its judgments", "use two files")
    judgments, grades_of = _read_judgments(qrels, limits)
    problems = Problems(limits.problems, shown(run))
    rows = read_rows(run, RUN, problems, limits)
    problems.raise_any()
    for row, earlier in rows.repeated():
        also_at = rows.location_of(earlier)
        message = f"duplicate item {rows.item[row]!r} for query {rows.query[row]!r}"
        location = rows.location_of(row)
        problems.add_here(location, f"{message} (also at {also_at})", "rank it once")
    queries = tuple(grades_of)
    unknown_queries = set(rows.query) - grades_of.keys()
    if rows.query and len(unknown_queries) == len(set(rows.query)):
        here = f"here: {rows.query[0]!r}; judgments: {queries[0]!r}"
        message = f"no query in common with {shown(qrels)} ({here})"
        problems.instead(message, "use a run and judgments of the same queries")
    problems.raise_any()
    numbers = {query: number for number, query in enumerate(queries)}
    number = np.array([numbers.get(query, -1) for query in rows.query], np.int64)
    order = np.flatnonzero(number >= 0)
    order = order[np.argsort(number[order], kind="stable")]
    start = np.searchsorted(number[order], np.arange(len(queries) + 1))
    grades = [grades_of[rows.query[row]].get(rows.item[row]) for row in order.tolist()]
    positive = [
        sorted((grade for grade in items.values() if grade > 0), reverse=True)
        for items in grades_of.values()
    ]
    repeated = len(judgments.number) - sum(map(len, grades_of.values()))
    dropped = "queries of the run without judgment are dropped"
    irrelevant = "ranked items without judgment count as irrelevant"
    notes = nonzero_notes(
        Note("repeated-judgment", "duplicate judgments count once", repeated),
        Note("unjudged-query", dropped, len(unknown_queries)),
        Note("empty-run", "empty run: no query has a ranking", int(not rows.query)),
        Note("unjudged-item", irrelevant, grades.count(None), severity="info"),
    )
    files = ((run, rows), (qrels, judgments))
    return Run(
        queries=queries,
        start=start,
        score=np.array(rows.number, np.float64)[order],
        grade=np.array([grade or 0.0 for grade in grades], np.float64),
        name_order=_name_order(rows.item)[order],
        judged_start=np.cumsum([0, *map(len, positive)]),
        judged=np.array([grade for grades in positive for grade in grades], np.float64),
        present=np.diff(start) > 0,
        files=tuple(SourceFile(shown(path), len(read.number)) for path, read in files),
        notes=notes,
    )


def _read_judgments(path: Path, limits: Limits) -> tuple[Rows, dict[str, dict[str, float]]]:
    """Return the rows of a file, and the grade of each judged item of each query."""
    problems = Problems(limits.problems, shown(path))
    rows = read_rows(path, QRELS, problems, limits)
    for row, earlier in rows.repeated():
        if rows.number[row] != rows.number[earlier]:
            new, old = (repr(rows.number[n]).removesuffix(".0") for n in (row, earlier))
            message = f"judges item {rows.item[row]!r} of query {rows.query[row]!r} as {new}"
            hint = f"{rows.location_of(earlier)} judges it as {old}; keep one of them"
            problems.add_here(rows.location_of(row), message, hint)
    problems.raise_any()
    if not rows.query:
        refuse(os.fspath(path), "no judgments", "use the judgments of the run")
    grades: dict[str, dict[str, float]] = {}
    for query, item, grade in zip(rows.query, rows.item, rows.number, strict=True):
        grades.setdefault(query, {})[item] = grade
    return rows, grades


def _name_order(names: list[str]) -> NDArray[np.int64]:
    """Return the position of each name in descending byte order, that of strcmp."""
    ascending = sorted(set(names), key=lambda name: name.encode("utf-8", "surrogateescape"))
    return indices_in(names, reversed(ascending)).astype(np.int64)


# --- galleries

_KEYS = (
    *("query_codes", "gallery_codes", "query_embeddings", "gallery_embeddings", "scores"),
    *("query_labels", "gallery_labels", "relevance", "query_names", "gallery_names"),
)

Kind = Literal["codes", "embeddings", "scores"]


def read_npz_retrieval(path: Path, *, limits: Limits = DEFAULT_LIMITS) -> Gallery | Run:
    """Read a gallery from one .npz file, or a Run if relevance is given per item.

    Rankings: `query_codes` (Q, B) and `gallery_codes` (N, B), of -1 and 1, of 0 and 1, or packed as
    bytes; or `query_embeddings` (Q, D) and `gallery_embeddings` (N, D); or `scores` (Q, N).
    Relevance: `query_labels` and `gallery_labels`, class numbers or names (Q,), (N,), or 0 and 1
    for each label (Q, L), (N, L); or, with `scores`, the grades `relevance` (Q, N). Optional:
    `query_names`, `gallery_names`.
    """
    text = os.fspath(path)
    arrays = read_npz(path, _KEYS, limits)
    kinds = [kind for kind in ("codes", "embeddings") if f"query_{kind}" in arrays]
    kinds += ["scores"] * ("scores" in arrays)
    if len(kinds) != 1:
        content = f"both {' and '.join(kinds)}" if kinds else "neither codes, embeddings nor scores"
        refuse(text, f"has {content}", f"use one of them; it has {', '.join(arrays)}")
    source = ArraySource(text, {}, arrays)
    if kinds == ["scores"] and "relevance" in arrays:
        return _graded(source)
    return _gallery(kinds[0], source)  # type: ignore[arg-type]


def read_arrays(
    query: Path,
    gallery: Path,
    query_labels: Path,
    gallery_labels: Path,
    *,
    kind: Literal["codes", "embeddings"] = "embeddings",
    limits: Limits = DEFAULT_LIMITS,
) -> Gallery:
    """Read a gallery from .npy files, one for each array of :func:`read_npz_retrieval`.

    `kind` is the content of the first two.
    """
    names = (f"query_{kind}", f"gallery_{kind}", "query_labels", "gallery_labels")
    given = (query, gallery, query_labels, gallery_labels)
    paths = {name: os.fspath(path) for name, path in zip(names, given, strict=True)}
    arrays = {name: read_npy(path, limits) for name, path in paths.items()}
    return _gallery(kind, ArraySource("", paths, arrays))


def _gallery(kind: Kind, source: ArraySource) -> Gallery:
    names = ["scores"] if kind == "scores" else [f"query_{kind}", f"gallery_{kind}"]
    source.require(*names, "query_labels", "gallery_labels")
    matrices = [source.matrix(name) for name in names]
    notes: tuple[Note, ...] = ()
    width = matrices[0].shape[1]
    if matrices[-1].shape[1] != width:
        message = f"has {matrices[-1].shape[1]} columns, {names[0]} has {width}"
        source.refuse(names[-1], message, "give both the same width")
    if kind == "codes":
        matrices, notes = _codes(source)
    else:
        matrices = [source.numbers(name) for name in names]
        common = np.result_type(*matrices)
        matrices = [matrix.astype(common, copy=False) for matrix in matrices]
    query, gallery = matrices if len(matrices) == 2 else (matrices[0], np.zeros((0, 0)))
    counts = {"query": len(query), "gallery": width if kind == "scores" else len(gallery)}
    query_labels, gallery_labels = _labels(counts, names[0], source)
    if source.archive:
        files: tuple[SourceFile, ...] = (SourceFile(source.archive, len(query)),)
    else:
        files = tuple(
            SourceFile(path, counts[name.split("_")[0]]) for name, path in source.paths.items()
        )
    return Gallery(
        kind=kind,
        query=query,
        gallery=gallery,
        query_labels=query_labels,
        gallery_labels=gallery_labels,
        queries=source.names("query_names", counts["query"]),
        items=source.names("gallery_names", counts["gallery"])
        if "gallery_names" in source.arrays
        else (),
        files=files,
        notes=notes,
    )


def _graded(source: ArraySource) -> Run:
    """Return scores with grades as a run in which every query ranks every item."""
    queries, items = shape = source.matrix("scores").shape
    if source.arrays["relevance"].shape != shape:
        message = f"has the shape {source.arrays['relevance'].shape}"
        source.refuse("relevance", message, f"give {shape}")
    score, grade = (source.numbers(name).astype(np.float64) for name in ("scores", "relevance"))
    names = source.names("gallery_names", items)
    descending = -np.sort(-np.maximum(grade, 0.0), axis=1)
    positive = descending > 0
    return Run(
        queries=source.names("query_names", queries),
        start=np.arange(queries + 1) * items,
        score=score.ravel(),
        grade=grade.ravel(),
        name_order=np.tile(_name_order(list(names)), queries),
        judged_start=np.concatenate([[0], np.cumsum(positive.sum(axis=1))]),
        judged=descending[positive],
        present=np.ones(queries, np.bool_),
        files=(SourceFile(source.archive, queries),),
    )


def _codes(source: ArraySource) -> tuple[list[NDArray[Any]], tuple[Note, ...]]:
    """Return the bits of the queries and of the gallery, and a note if they were packed."""
    codes = {name: source.arrays[name] for name in ("query_codes", "gallery_codes")}
    for name in codes:
        source.require_numbers(name, "give -1 and 1, or 0 and 1")
    notes: tuple[Note, ...] = ()
    if all(array.dtype == np.uint8 for array in codes.values()) and (
        max(int(array.max()) for array in codes.values()) > 1
    ):
        codes = {name: np.unpackbits(array, axis=1) for name, array in codes.items()}
        notes = (Note("packed-codes", "codes are bytes with 8 bits each", severity="info"),)
    else:
        low = -1 if any((array == -1).any() for array in codes.values()) else 0
        hint = "give -1 and 1, or 0 and 1, or bytes of 8 bits each (uint8)"
        for name, array in codes.items():
            wrong = (array != low) & (array != 1)
            is_zero = low == -1 and bool((array[wrong][:1] == 0).any())
            other = " (where another code has -1)" * is_zero
            source.refuse_cells(name, array, wrong, f"is {{:g}}{other}, expected {low} or 1", hint)
    if (bits := codes["query_codes"].shape[1]) > _MOST_BITS:
        source.refuse("query_codes", f"has {bits} bits", f"at most {_MOST_BITS} are supported")
    return [array == 1 for array in codes.values()], notes


def _labels(
    counts: dict[str, int], first: str, source: ArraySource
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return class numbers, or flags of each label, of the queries and of the gallery."""
    of_items = "scores has {} columns" if first == "scores" else "the gallery has {} rows"
    texts = {"query": f"{first} has {{}} rows", "gallery": of_items}
    for side, count in counts.items():
        shape = source.arrays[f"{side}_labels"].shape
        if len(shape) not in (1, 2) or shape[0] != count:
            message = f"has the shape {shape}, {texts[side].format(count)}"
            source.refuse(f"{side}_labels", message, f"give ({count},) or ({count}, labels)")
    names = ("query_labels", "gallery_labels")
    query, gallery = (source.arrays[name] for name in names)
    if query.shape[1:] != gallery.shape[1:]:
        message = f"has the shape {gallery.shape}, query_labels has {query.shape}"
        hint = "give class numbers on both sides, or 0 and 1 for the same labels on both"
        source.refuse("gallery_labels", message, hint)
    if query.ndim == 2:
        if query.shape[1] == 1:
            source.refuse("query_labels", "has one column", "give class numbers as (n,)")
        hint = "give 1 for each label that there is; or class numbers as (n,)"
        return source.flags(names[0], hint), source.flags(names[1], hint)
    query, gallery = map(source.classes, names)
    if (query.dtype.kind in TEXT) != (gallery.dtype.kind in TEXT):
        hint = "give names, or numbers, on both"
        source.refuse("gallery_labels", "has names on one side alone", hint)
    if query.dtype != gallery.dtype and query.dtype.kind in NUMBERS:
        # Python integers: a common float type may merge large numbers.
        query, gallery = (np.array([int(x) for x in y], object) for y in (query, gallery))
    numbers = np.unique(np.concatenate([query, gallery]), return_inverse=True)[1].astype(np.int32)
    return numbers[: len(query)], numbers[len(query) :]
