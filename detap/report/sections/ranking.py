"""Reports of retrieval and classification."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isnan, nan
from typing import Any, Literal

import numpy as np

from detap._version import __version__
from detap.ranking.classification import ClassificationResult
from detap.ranking.objectives import PARAMETERS, Objectives
from detap.ranking.retrieval import RetrievalResult
from detap.report.fields import Count, Object, Signature, Version, each, field, list_of, report_of
from detap.report.model import Block, Cell, Column, Report, Table, columns_of, name_column
from detap.report.numbers import is_undefined, mean, rows_of, with_totals
from detap.tables.detection import Floats

QueryRow = Object("QueryRow", others=float | None, name=str, **each(Count, "relevant", "ranked"))

_CLASS_COUNTS = ("positives", "negatives", "difficult", "unscored")

RankedClassRow = Object(
    "RankedClassRow", others=float | None, name=str, AP=float | None, **each(Count, *_CLASS_COUNTS)
)

RankingCurve = Object(
    "RankingCurve",
    "Along the ranking. Retrieval: means over queries, at levels of recall (empty if only the "
    "first k items were searched) and after each of the first ranks. Classification: by class.",
    others=Any,
    levels=list[float | None],
    interpolated_precision=list[float | None] | dict[str, list[float | None]],
    **each(field(list[float | None], required=False), "precision_at_ranks", "recall_at_ranks"),
)

LossesData = Object(
    "LossesData", others=Any, means=dict[str, float | None], parameters=dict[str, Any]
)

_GAP_TITLES = {
    "gap": "mean AP of batches less AP over all",
    "bound": "published upper bound",
    "calibrated_bound": "published upper bound for calibrated scores",
    "worst_bound": "largest bound over all orders of the batches",
}

DecomposabilityData = Object(
    "DecomposabilityData",
    "The decomposability of AP over batches: means over queries. The bounds suppose that each "
    "batch ranks its relevant items first; that applies to some of the queries.",
    others=Any,
    **each(Count, "batches", "applies", "queries"),
    means=Object("DecomposabilityMeans", others=float | None, **each(float | None, *_GAP_TITLES)),
)

RankingReport = report_of(
    Literal["retrieval", "classification"],
    "RankingReport",
    "The JSON report of detap rank: like detap eval, with rows of queries or classes.",
    version=Version,
    signature=Signature,
    protocol=Object(
        "RankingProtocol",
        "Every field of the protocol.",
        others=Any,
        **each(Any, "name", "cutoffs", "divisor", "no_relevant"),
    ),
    summary=field(
        dict[str, float | None], "Means over queries, classes or samples.", minProperties=1
    ),
    queries=field(list_of(QueryRow), "Of a retrieval.", required=False),
    classes=field(list_of(RankedClassRow), "Of a classification.", required=False),
    curve=RankingCurve,
    samples=field(dict[str, dict[str, float | None]], "AP@k, of a classification.", required=False),
    losses=field(LossesData, required=False),
    decomposability=field(DecomposabilityData, required=False),
)

LOSS_TITLES = {
    "ap": "AP loss, ties counted against the query",
    "smooth_ap": "SmoothAP loss",
    "sup_ap": "SupAP loss, an upper bound of the AP loss",
    "quantized_ap": "quantized AP loss",
    "quantized_tie_ap": "quantized AP loss, tie-aware",
    "fast_ap": "FastAP loss",
    "calibration": "calibration loss",
    "roadmap": "ROADMAP loss",
}
_MOST_SHOWN = 50
_SHOWN_RANKS = (1, 2, 5, 10, 20, 50, 100, 200, 500)


def _report(
    result: RetrievalResult | ClassificationResult,
    inputs: Sequence[Mapping[str, Any]],
    definitions: Mapping[str, str],
    table: Table,
    blocks: Iterable[Block],
) -> Report:
    return Report(
        kind="retrieval" if isinstance(result, RetrievalResult) else "classification",
        signature=result.protocol.signature(__version__),
        protocol=result.protocol.as_dict(),
        inputs=tuple(inputs),
        summary=dict(result.summary),
        param_columns=columns_of("text", "definition"),
        params={name: (definition,) for name, definition in definitions.items()},
        table=table,
        notes=result.notes,
        blocks=tuple(blocks),
    )


# --- retrieval


def retrieval_report(
    result: RetrievalResult,
    *,
    inputs: Sequence[Mapping[str, Any]] = (),
    objectives: Objectives | None = None,
) -> Report:
    """Return the report of a retrieval."""
    values: dict[str, Any] = {"name": result.queries, **result.values}
    if objectives is not None:
        values |= {f"{key}_loss": column for key, column in objectives.losses.items()}
        values |= objectives.gaps
    values |= {"relevant": result.relevant, "ranked": result.ranked}
    columns = (
        name_column("query"),
        *(
            Column(metric.key, metric.key, metric.key, "fraction", min(number, 2))
            for number, metric in enumerate(result.metrics)
        ),
        *columns_of("count", "relevant"),
        *columns_of("count", "ranked", priority=1),
    )
    means = {metric.key: result.summary[metric.name] for metric in result.metrics}
    table = with_totals(columns, rows_of(values), "mean / sum", means)
    definitions = {metric.name: metric.title for metric in result.metrics}
    blocks = (_curve_block(result), *_objective_blocks(objectives))
    return _report(result, inputs, definitions, table, blocks)


def brief(report: Report, most: int = _MOST_SHOWN) -> Report:
    """Return a report with quantiles instead of its rows if it has more than `most`."""
    if len(report.table.rows) <= most:
        return report
    unit = "queries" if report.kind == "retrieval" else "classes"
    lines = (f"{len(report.table.rows)} {unit}; --per-query shows each, as JSON and CSV do",)
    block = Block("rows", unit.capitalize(), {}, lines=lines)
    rows: list[dict[str, Cell]] = []
    for column in report.table.columns:
        if column.kind != "fraction":
            continue
        values = [row[column.key] for row in report.table.rows]
        defined = [float(v) for v in values if v is not None and not is_undefined(v)]
        quantiles = np.quantile(defined, _LEVELS).tolist() if defined else [nan] * len(_LEVELS)
        rows.append(
            {"name": column.heading, "mean": (report.table.totals or {}).get(column.key)}
            | dict(zip(_QUANTILES, quantiles, strict=True))
            | {"undefined": len(values) - len(defined)}
        )
    return replace(
        report,
        table=Table(_QUANTILE_COLUMNS, tuple(rows)),
        title=f"Metrics over {len(report.table.rows)} {unit}",
        blocks=(*report.blocks, block),
    )


_LEVELS = (0, 0.25, 0.5, 0.75, 1)
_QUANTILES = ("min", "25%", "median", "75%", "max")
_QUANTILE_COLUMNS = (
    name_column("metric"),
    *columns_of("fraction", "mean", *_QUANTILES),
    *columns_of("count", "undefined", priority=1),
)


def _curve_block(result: RetrievalResult) -> Block:
    """Return precision at levels of recall, or at some of the ranks if no others were searched."""
    data = RankingCurve(
        result,
        interpolated_precision=result.precision_at_levels,
        precision_at_ranks=result.precision_at_ranks,
        recall_at_ranks=result.recall_at_ranks,
    )
    if levels := data["levels"]:
        precision = data["interpolated_precision"]
        return _levels_block(data, levels, 1, "interpolated precision", precision)
    at_ranks = zip(data["precision_at_ranks"], data["recall_at_ranks"], strict=True)
    last = len(data["precision_at_ranks"])
    rows = tuple(
        {"rank": rank, "precision": precision, "recall": recall}
        for rank, (precision, recall) in enumerate(at_ranks, 1)
        if rank in _SHOWN_RANKS or rank == last
    )
    if not rows:
        return Block("curve", "", data)
    columns = (*columns_of("count", "rank"), *columns_of("fraction", "precision", "recall"))
    return Block("curve", "Precision and recall at ranks", data, table=Table(columns, rows))


def _levels_block(
    data: Mapping[str, Any],
    levels: Sequence[float],
    decimals: int,
    heading: str,
    precision: Sequence[float],
) -> Block:
    columns = (
        Column("recall", "recall", "recall", "name"),
        Column("precision", heading, "int. prec.", "fraction"),
    )
    texts = [f"{level:.{decimals}f}" for level in levels[: len(precision)]]
    table = Table(columns, rows_of({"recall": texts, "precision": precision}))
    return Block("curve", f"Precision at {len(levels)} levels of recall", data, table=table)


def _objective_blocks(objectives: Objectives | None) -> Iterator[Block]:
    if objectives is None:
        return
    if objectives.losses:
        means, table = _means("loss", objectives.losses, LOSS_TITLES)
        data = {"means": means, "parameters": PARAMETERS}
        yield Block("losses", "Losses", data, table=table)
    if objectives.gaps:
        means, table = _means("what", objectives.gaps, _GAP_TITLES)
        counted = sum(not isnan(value) for value in objectives.gaps["gap"].tolist())
        applies = int(objectives.applies.sum())
        lines = (
            f"{objectives.batches} batches; the bounds suppose that each batch ranks all its "
            f"relevant items first, as in {applies} of {counted} queries",
        )
        data = DecomposabilityData(objectives, applies=applies, queries=counted, means=means)
        yield Block("decomposability", "Decomposability", data, lines, table)


def _means(
    what: str, values: Mapping[str, Floats], titles: Mapping[str, str]
) -> tuple[dict[str, float], Table]:
    """Return the means over the queries, and a table of them under their titles."""
    means = {key: mean(column.tolist()) for key, column in values.items()}
    columns = (Column(what, what, what, "name"), Column("value", "mean", "mean", "exact"))
    return means, Table(
        columns, rows_of({what: [titles[key] for key in means], "value": [*means.values()]})
    )


# --- classification


def classification_report(
    result: ClassificationResult, *, inputs: Sequence[Mapping[str, Any]] = ()
) -> Report:
    """Return the report of a classification."""
    values: dict[str, Any] = {"name": result.classes, "AP": result.average_precision}
    values |= {key: getattr(result, key) for key in _CLASS_COUNTS}
    columns = (
        name_column("class"),
        *columns_of("fraction", "AP"),
        *columns_of("count", *_CLASS_COUNTS[:2]),
        *columns_of("count", *_CLASS_COUNTS[2:], priority=1),
    )
    table = with_totals(columns, rows_of(values), "mean / sum", {"AP": result.summary["mAP"]})
    samples = {
        name: dict(zip(result.samples, column.tolist(), strict=True))
        for name, column in result.per_sample.items()
    }
    precision = result.precision_at_levels.tolist()
    by_class = dict(zip(result.classes, precision, strict=True))
    curve = RankingCurve(result, interpolated_precision=by_class)
    means = [mean(values) for values in zip(*precision, strict=True)]
    heading = "mean interpolated precision"
    blocks = [_levels_block(curve, result.levels.tolist(), 2, heading, means)]
    if samples:
        lines = (f"{len(result.samples)} samples; JSON has the AP@k of each",)
        blocks.append(Block("samples", "Samples", samples, lines=lines))
    definitions = {
        name: f"mean average precision, over classes, {result.protocol.curve}"
        if name == "mAP"
        else f"mean average precision, over samples, by {result.protocol.divisor}"
        for name in result.summary
    }
    return _report(result, inputs, definitions, table, blocks)
