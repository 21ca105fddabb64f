"""Read retrievals: a run with judgments, or codes, embeddings or scores with labels."""

import os
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detap.errors import Note
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
    judged = _read_judgments(qrels, limits)
    problems = Problems(limits.problems, shown(run))
    rows = read_rows(run, RUN, problems, limits)
    problems.raise_any()
    return _join(rows, judged, problems)


class _Judgments(NamedTuple):
    """The grade of each judged item of each query."""

    file: SourceFile
    grades: dict[str, dict[str, float]]
    repeated: int


def _read_judgments(path: Path, limits: Limits) -> _Judgments:
    problems = Problems(limits.problems, shown(path))
    rows = read_rows(path, QRELS, problems, limits)
    grades: dict[str, dict[str, float]] = {}
    repeated = 0
    first: dict[tuple[str, str], int] = {}
    for row, (query, item) in enumerate(zip(rows.query, rows.item, strict=True)):
        grade = rows.number[row]
        first_grade = grades.setdefault(query, {}).setdefault(item, grade)
        earlier = first.setdefault((query, item), row)
        repeated += earlier != row
        if grade != first_grade:
            new, old = (repr(value).removesuffix(".0") for value in (grade, first_grade))
            message = f"judges item {item!r} of query {query!r} as {new}"
            hint = f"{rows.location_of(earlier)} judges it as {old}; keep one of them"
            problems.add_here(rows.location_of(row), message, hint)
    problems.raise_any()
    if not rows.query:
        refuse(os.fspath(path), "no judgments", "use the judgments of the run")
    return _Judgments(SourceFile(shown(path), len(rows.query)), grades, repeated)


def _join(rows: Rows, judged: _Judgments, problems: Problems) -> Run:
    queries = tuple(judged.grades)
    numbers = {query: number for number, query in enumerate(queries)}
    _refuse_repeated(rows, problems)
    number = np.array([numbers.get(query, -1) for query in rows.query], np.int64)
    unknown_queries = {query for query in rows.query if query not in numbers}
    if rows.query and len(unknown_queries) == len(set(rows.query)):
        here = f"here: {rows.query[0]!r}; judgments: {queries[0]!r}"
        message = f"no query in common with {judged.file.path} ({here})"
        problems.instead(message, "use a run and judgments of the same queries")
    problems.raise_any()
    order = np.flatnonzero(number >= 0)
    order = order[np.argsort(number[order], kind="stable")]
    grades = [judged.grades[rows.query[row]].get(rows.item[row]) for row in order.tolist()]
    notes = []
    if judged.repeated:
        message = "duplicate judgments count once"
        notes.append(Note("repeated-judgment", message, judged.repeated))
    if unknown_queries:
        message = "queries of the run without judgment are dropped"
        notes.append(Note("unjudged-query", message, len(unknown_queries)))
    if not rows.query:
        notes.append(Note("empty-run", "empty run: no query has a ranking"))
    unjudged = sum(grade is None for grade in grades)
    if unjudged:
        message = "ranked items without judgment count as irrelevant"
        notes.append(Note("unjudged-item", message, unjudged, severity="info"))
    start = np.searchsorted(number[order], np.arange(len(queries) + 1))
    judged_above = [
        sorted((grade for grade in items.values() if grade > 0), reverse=True)
        for items in judged.grades.values()
    ]
    return Run(
        queries=queries,
        start=start,
        score=np.array(rows.number, np.float64)[order],
        grade=np.array([grade or 0.0 for grade in grades], np.float64),
        name_order=_name_order(rows.item)[order],
        judged_start=np.cumsum([0, *map(len, judged_above)]),
        judged=np.array([grade for grades in judged_above for grade in grades], np.float64),
        present=np.diff(start) > 0,
        files=(SourceFile(problems.file, len(rows.query)), judged.file),
        notes=tuple(notes),
    )


def _refuse_repeated(rows: Rows, problems: Problems) -> None:
    first: dict[tuple[str, str], int] = {}
    for row, pair in enumerate(zip(rows.query, rows.item, strict=True)):
        earlier = first.setdefault(pair, row)
        if earlier != row:
            also_at = rows.location_of(earlier)
            message = f"duplicate item {pair[1]!r} for query {pair[0]!r} (also at {also_at})"
            problems.add_here(rows.location_of(row), message, "rank it once")


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
    paths = {
        f"query_{kind}": os.fspath(query),
        f"gallery_{kind}": os.fspath(gallery),
        "query_labels": os.fspath(query_labels),
        "gallery_labels": os.fspath(gallery_labels),
    }
    arrays = {name: read_npy(path, limits) for name, path in paths.items()}
    return _gallery(kind, ArraySource("", paths, arrays))


def _gallery(kind: Kind, source: ArraySource) -> Gallery:
    first, second = ("scores", "") if kind == "scores" else (f"query_{kind}", f"gallery_{kind}")
    source.require(*filter(None, (first, second)), "query_labels", "gallery_labels")
    query, gallery = source.arrays[first], source.arrays.get(second, np.zeros((0, 0)))
    _check_matrix(query, first, source)
    notes: tuple[Note, ...] = ()
    if not second:
        query = _numbers(query, first, source)
        items = query.shape[1]
    else:
        _check_matrix(gallery, second, source)
        if query.shape[1] != gallery.shape[1]:
            message = f"has {gallery.shape[1]} columns, {first} has {query.shape[1]}"
            source.refuse(second, message, "give both the same width")
        items = len(gallery)
        if kind == "codes":
            query, gallery, notes = _codes(query, gallery, source)
        else:
            query, gallery = _numbers(query, first, source), _numbers(gallery, second, source)
            common = np.result_type(query, gallery)
            query, gallery = query.astype(common, copy=False), gallery.astype(common, copy=False)
    _check_lengths((len(query), items), first, source)
    labels = source.arrays["query_labels"], source.arrays["gallery_labels"]
    query_labels, gallery_labels = _labels(*labels, source)
    if source.archive:
        files: tuple[SourceFile, ...] = (SourceFile(source.archive, len(query)),)
    else:
        records = {"query": len(query), "gallery": items}
        files = tuple(
            SourceFile(path, records[name.split("_")[0]]) for name, path in source.paths.items()
        )
    return Gallery(
        kind=kind,
        query=query,
        gallery=gallery,
        query_labels=query_labels,
        gallery_labels=gallery_labels,
        queries=source.names("query_names", len(query)),
        items=source.names("gallery_names", items) if "gallery_names" in source.arrays else (),
        files=files,
        notes=notes,
    )


def _graded(source: ArraySource) -> Run:
    """Return scores with grades as a run in which every query ranks every item."""
    scores, grades = source.arrays["scores"], source.arrays["relevance"]
    _check_matrix(scores, "scores", source)
    if grades.shape != scores.shape:
        source.refuse("relevance", f"has the shape {grades.shape}", f"give {scores.shape}")
    score = _numbers(scores, "scores", source).astype(np.float64)
    grade = _numbers(grades, "relevance", source).astype(np.float64)
    queries, items = scores.shape
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


def _check_matrix(array: NDArray[Any], name: str, source: ArraySource) -> None:
    if array.ndim != 2 or 0 in array.shape:
        hint = "give (rows, columns), at least one each"
        source.refuse(name, f"has the shape {array.shape}", hint)


def _numbers(array: NDArray[Any], name: str, source: ArraySource) -> NDArray[Any]:
    """Return finite numbers exactly: float16 and float32 as float32, others as float64."""
    if array.dtype.kind not in NUMBERS:
        source.refuse(name, f"has the type {array.dtype}", "give numbers")
    source.check_exact(name, array, "give finite numbers")
    narrow = array.dtype in (np.float16, np.float32)
    return array.astype(np.float32 if narrow else np.float64, copy=False)


def _codes(
    query: NDArray[Any], gallery: NDArray[Any], source: ArraySource
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], tuple[Note, ...]]:
    codes = {"query_codes": query, "gallery_codes": gallery}
    for name, array in codes.items():
        if array.dtype.kind not in NUMBERS:
            source.refuse(name, f"has the type {array.dtype}", "give -1 and 1, or 0 and 1")
    notes: tuple[Note, ...] = ()
    if all(array.dtype == np.uint8 for array in codes.values()) and (
        max(int(array.max()) for array in codes.values()) > 1
    ):
        query, gallery = (np.unpackbits(array, axis=1) for array in codes.values())
        notes = (Note("packed-codes", "codes are bytes with 8 bits each", severity="info"),)
    else:
        low = -1 if any((array == -1).any() for array in codes.values()) else 0
        hint = "give -1 and 1, or 0 and 1, or bytes of 8 bits each (uint8)"
        for name, array in codes.items():
            wrong = (array != low) & (array != 1)
            is_zero = low == -1 and bool((array[wrong][:1] == 0).any())
            other = " (where another code has -1)" * is_zero
            source.refuse_cells(name, array, wrong, f"is {{:g}}{other}, expected {low} or 1", hint)
    if (bits := query.shape[1]) > _MOST_BITS:
        source.refuse("query_codes", f"has {bits} bits", f"at most {_MOST_BITS} are supported")
    return query == 1, gallery == 1, notes


def _check_lengths(expected: tuple[int, int], first: str, source: ArraySource) -> None:
    queries, items = expected
    of_items = "scores has {} columns" if first == "scores" else "the gallery has {} rows"
    for name, count, of in (
        ("query_labels", queries, f"{first} has {{}} rows"),
        ("gallery_labels", items, of_items),
    ):
        array = source.arrays[name]
        if array.ndim not in (1, 2) or len(array) != count:
            message = f"has the shape {array.shape}, {of.format(count)}"
            source.refuse(name, message, f"give ({count},) or ({count}, labels)")


def _labels(
    query: NDArray[Any], gallery: NDArray[Any], source: ArraySource
) -> tuple[NDArray[Any], NDArray[Any]]:
    if query.ndim != gallery.ndim:
        message = f"has the shape {gallery.shape}, query_labels has {query.shape}"
        hint = "give class numbers on both sides, or 0 and 1 for each label on both"
        source.refuse("gallery_labels", message, hint)
    if query.ndim == 1:
        return _classes(query, gallery, source)
    if query.shape[1] != gallery.shape[1]:
        message = f"has {gallery.shape[1]} labels, query_labels has {query.shape[1]}"
        source.refuse("gallery_labels", message, "give both the same labels")
    hint = "give 1 for each label that there is; or class numbers as (n,)"
    for name, array in (("query_labels", query), ("gallery_labels", gallery)):
        if array.shape[1] == 1:
            source.refuse(name, "has one column", "give class numbers as (n,)")
        if array.dtype.kind not in NUMBERS:
            source.refuse(name, f"has the type {array.dtype}", "give 0 and 1 for each label")
        wrong = (array != 0) & (array != 1)
        source.refuse_cells(name, array, wrong, "is {!r}, expected 0 or 1", hint)
    return query.astype(np.bool_), gallery.astype(np.bool_)


def _classes(
    query: NDArray[Any], gallery: NDArray[Any], source: ArraySource
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    for name, array in (("query_labels", query), ("gallery_labels", gallery)):
        if array.dtype.kind == "f" and not (
            np.isfinite(array).all() and (array == np.floor(array)).all()
        ):
            hint = "give whole numbers or names"
            source.refuse(name, "has a class number that is not whole", hint)
    if (query.dtype.kind in TEXT) != (gallery.dtype.kind in TEXT):
        hint = "give names, or numbers, on both"
        source.refuse("gallery_labels", "has names on one side alone", hint)
    if query.dtype != gallery.dtype and query.dtype.kind in NUMBERS:
        # Python integers: a common float type may merge large numbers.
        query, gallery = (np.array([int(x) for x in y], object) for y in (query, gallery))
    _, inverse = np.unique(np.concatenate([query, gallery]), return_inverse=True)
    numbers: NDArray[np.int32] = inverse.astype(np.int32)
    return numbers[: len(query)], numbers[len(query) :]
