"""``detap rank``: evaluate rankings: retrieval, and classification by scores."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import click

from detap.cli.command import Group
from detap.cli.gates import Gates, finish, interval_options, limit_options
from detap.cli.options import (
    change_options,
    option,
    output_options,
    preset_option,
    protocol_from,
    threads_option,
)
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.cli.settings import ConfiguredCommand, run_options
from detap.cli.values import Integer
from detap.errors import UsageError
from detap.formats.ranking import runs, samples
from detap.gates.config import OptionNames
from detap.gates.evaluate import evaluate_gates
from detap.gates.ranking import Ranked
from detap.io.paths import STDIN, SourceFile
from detap.io.stream import refuse
from detap.protocols.ranking import Classification, Retrieval
from detap.ranking import classification as classifications
from detap.ranking.metrics import select_metrics
from detap.ranking.objectives import objectives as compute_objectives
from detap.ranking.retrieval import RetrievalResult, evaluate
from detap.report.inputs import describe
from detap.report.model import Report
from detap.report.sections.gates import gate_blocks
from detap.report.sections.ranking import brief, classification_report, retrieval_report
from detap.report.writers.curves import check_extension, retrieval_curves
from detap.report.writers.json import as_dict
from detap.tables.ranking import Gallery, Run, Samples

_ARRAYS = ("queries", "gallery", "query_labels", "gallery_labels")
_APPLIES_TO = {
    "similarity": "embeddings",
    "exclude_self": "galleries",
    "missing_queries": "runs",
    "relevant_from": "grades",
    "gain": "grades",
}
"""Kind of input to which a field applies."""


_input = partial(option, group="Input", value_kind="path")
_output = partial(option, group="Output")


@click.group(cls=Group)
def command() -> None:
    """Score rankings: retrieval, or classification by scores."""


@command.command(
    cls=ConfiguredCommand,
    section="rank-retrieval",
    first="--run --qrels --npz --protocol --fail-under --baseline-ranking --max-drop --output "
    "--output-format --quiet",
    examples={
        "A run and its relevance judgments, as for trec_eval": (
            "detap rank retrieval --run run.txt --qrels qrels.txt"
        ),
        "Embeddings of queries and gallery": "detap rank retrieval --npz embeddings.npz",
    },
)
@_input(
    "--npz",
    metavar="FILE",
    help="Arrays: query_codes and gallery_codes (or ..._embeddings, or scores), "
    "query_labels and gallery_labels (or relevance).",
    brief="Arrays: codes, embeddings or scores, and labels.",
)
@_input("--run", metavar="FILE", help="Ranked items: TREC, CSV or JSON; - is stdin.")
@_input("--qrels", metavar="FILE", help="Relevance judgments of a run: TREC, CSV or JSON.")
@_input("--queries", metavar="FILE", help="Embeddings of queries, .npy; requires the next three.")
@_input("--gallery", metavar="FILE", help="Embeddings of items, .npy.")
@_input("--query-labels", metavar="FILE", help="Labels of queries, .npy.")
@_input("--gallery-labels", metavar="FILE", help="Labels of items, .npy.")
@_input(
    "--codes",
    value_kind="text",
    is_flag=True,
    help="Read .npy files as binary codes, not embeddings.",
)
@preset_option(
    Retrieval, "DETAP_RANK_PROTOCOL", "By default ir_measures for a run, else retrieval."
)
@change_options(Retrieval)
@option(
    "--measures",
    group="Selection",
    multiple=True,
    metavar="LIST",
    help="Report only these metrics: mAP@100,P@10. If all are at a k, only the first k items "
    "are searched.",
)
@output_options
@_output("--per-query", is_flag=True, help="Show every query in the table.")
@_output(
    "--curves",
    value_kind="path",
    metavar="FILE",
    help="Write precision and recall by rank and at 11 recall levels, as .json or .csv.",
)
@_output("--losses", is_flag=True, help="Report the training losses of the ranking.")
@_output(
    "--batches",
    type=Integer(1, 1_000_000),
    help="Report the decomposability gap of N batches, with its bounds.",
)
@limit_options(
    under="0.6 for the primary metric, P@5=0.5, min-query.AP=0.1, query:q7.AP=0.5",
    drop="0.005, mAP=1%, 'query:*.AP=0.1'",
)
@option(
    "--baseline-ranking",
    "baseline_detections",
    value_kind="path",
    envvar="DETAP_BASELINE_RANKING",
    group="Gates (exit status 1 if one fails)",
    metavar="FILE",
    help="Earlier ranking of the same queries, in the form of --npz or --run, for --max-drop "
    "and --max-rise.",
)
@interval_options("--baseline-ranking", "queries")
@threads_option
@run_options
@click.pass_obj
def retrieval(session: Session, /, **options: Any) -> int:
    """Score a retrieval: mAP and mAP@k, precision, recall, nDCG and more.

    Input is a run with relevance judgments, or codes, embeddings or scores with labels.
    """
    source = _retrieval_input(options)
    gates = Gates.from_options(options, _RANKINGS)
    given = [name for name in _APPLIES_TO if options[name] is not None]
    default = "ir_measures" if "run" in source.roles else "retrieval"
    protocol = protocol_from(options, Retrieval, default)
    outputs = _outputs(options, source, gates)
    listed = (name.strip() for value in options["measures"] for name in value.split(","))
    names = [*filter(None, listed)] or None
    select_metrics(protocol, names)  # raise errors in names before reading
    session.print_time("starting")
    session.start_progress("Reading")
    table: Run | Gallery = source.read()
    _refuse_unused(given, table)
    session.print_time("reading")
    fraction = [0.0]
    session.start_progress("Ranking", lambda: fraction[0])
    score = partial(evaluate, protocol=protocol, names=names, threads=options["threads"])
    result = score(table, progress=partial(fraction.__setitem__, 0))
    session.print_time("ranking")
    earlier = None
    if gates.baseline_detections is not None:
        before = score(source.read(gates.baseline_detections))
        if result.queries != before.queries or (result.relevant != before.relevant).any():
            hint = "use a ranking of the same data"
            refuse(gates.baseline_detections, "has other queries or relevant items", hint)
        earlier = _ranked(retrieval_report(before), before)
    objectives = None
    if options["losses"] or options["batches"]:
        session.start_progress("Computing losses")
        objectives = compute_objectives(
            table, protocol, with_losses=options["losses"], batches=options["batches"]
        )
    inputs = _describe(source, table) if outputs.needs_digests or gates.baseline else []
    report = retrieval_report(result, inputs=inputs, objectives=objectives)
    if (path := options["curves"]) is not None:
        outputs.write_file(path, retrieval_curves(result, path), table.files)
    gating = gates, _ranked(report, result), earlier
    return _write(report, gating, outputs, table.files, session, complete=options["per_query"])


@command.command(
    cls=ConfiguredCommand,
    section="rank-classification",
    first="--scores --labels --npz --protocol --output --output-format --quiet",
    examples={
        "Scores and labels": "detap rank classification --scores scores.csv --labels labels.csv",
    },
)
@_input(
    "--npz",
    metavar="FILE",
    help="Arrays: scores (N, K), labels (N,) or (N, K).",
)
@_input(
    "--scores",
    metavar="PATH",
    help="Scores: CSV or JSON; or a folder of VOC's ..._cls_<set>_<class>.txt.",
)
@_input(
    "--labels",
    metavar="PATH",
    help="Labels: CSV or JSON; or a VOC root, or its ImageSets/Main.",
)
@_input(
    "--image-set",
    value_kind="text",
    metavar="NAME",
    help="VOC image set, if there are several.",
)
@preset_option(Classification, "DETAP_RANK_PROTOCOL", "By default voc2012.")
@change_options(Classification)
@output_options
@_output("--per-query", is_flag=True, help="Show every class in the table.")
@limit_options(
    under="0.6 for the primary metric, 'class:cat.AP=0.5', min-class.AP=0.2",
    drop="0.005, mAP=1%, 'class:*.AP=0.02'",
)
@run_options
@click.pass_obj
def classification(session: Session, /, **options: Any) -> int:
    """Score a classification by its scores: AP per class, mAP, AP@k per sample."""
    source = _classification_input(options)
    gates = Gates.from_options(options, _RANKINGS)
    protocol = protocol_from(options, Classification, "voc2012")
    outputs = _outputs(options, source, gates)
    table: Samples = source.read()
    result = classifications.evaluate(table, protocol)
    inputs = _describe(source, table) if outputs.needs_digests or gates.baseline else []
    report = classification_report(result, inputs=inputs)
    gating = gates, _ranked(report), None
    return _write(report, gating, outputs, table.files, session, complete=options["per_query"])


# --- inputs


class _Input(NamedTuple):
    """Input files and their reader."""

    reader: Callable[..., Any]
    roles: tuple[str, ...]  # name of each file in reports
    paths: tuple[str, ...]

    def read(self, first: str | None = None) -> Any:
        """Read the files; `first` replaces the first one."""
        paths = self.paths if first is None else (first, *self.paths[1:])
        return self.reader(*paths)


def _retrieval_input(options: dict[str, Any]) -> _Input:
    npz, run, qrels = (options.pop(name) for name in ("npz", "run", "qrels"))
    arrays = {name: options.pop(name) for name in _ARRAYS}
    codes = options.pop("codes")
    present = {"--npz": npz, "--run": run or qrels, "--queries": any(arrays.values())}
    given = [name for name, is_given in present.items() if is_given]
    if len(given) != 1:
        reason = f"{' and '.join(given)} were given" if given else "no input was given"
        raise UsageError(
            f"{reason}: use --npz FILE; or --run and --qrels; or --queries, --gallery, "
            "--query-labels and --gallery-labels"
        )
    if codes and given != ["--queries"]:
        raise UsageError("--codes requires --queries")
    if npz:
        return _Input(runs.read_npz_retrieval, ("scores",), (npz,))
    if run or qrels:
        _require({"--run": run, "--qrels": qrels})
        if run == STDIN == qrels:
            raise UsageError("only one of --run and --qrels can come from stdin")
        return _Input(runs.read_run, ("run", "qrels"), (run, qrels))
    _require({f"--{name.replace('_', '-')}": path for name, path in arrays.items()})
    roles = ("scores", "scores", "labels", "labels")
    kind: Literal["codes", "embeddings"] = "codes" if codes else "embeddings"
    return _Input(partial(runs.read_arrays, kind=kind), roles, tuple(arrays.values()))


def _classification_input(options: dict[str, Any]) -> _Input:
    npz, scores, labels, image_set = (
        options.pop(name) for name in ("npz", "scores", "labels", "image_set")
    )
    if bool(npz) == bool(scores or labels):
        raise UsageError("use --npz FILE, or --scores and --labels")
    if npz:
        if image_set:
            raise UsageError("--image-set requires VOC folders")
        return _Input(samples.read_npz_samples, ("scores",), (npz,))
    _require({"--scores": scores, "--labels": labels})
    roles = ("scores", "labels")
    if "\0" not in labels and os.path.isdir(labels):
        return _Input(partial(samples.read_voc, image_set=image_set), roles, (labels, scores))
    if image_set:
        raise UsageError("--image-set requires VOC folders; --labels is not a folder")
    return _Input(samples.read_samples, roles, (scores, labels))


def _require(paths: Mapping[str, str | None]) -> None:
    for name, path in paths.items():
        if not path:
            given = ", ".join(other for other, value in paths.items() if value)
            raise UsageError(f"{given} requires {name}")


_RANKINGS = OptionNames(
    options=True,
    interval_source="--baseline-ranking",
    names={"baseline_detections": "baseline_ranking"},
    metric_intervals=False,
)


def _outputs(options: dict[str, Any], source: _Input, gates: Gates) -> Outputs:
    inputs = [path for path in (*source.paths, *gates.paths()) if path != STDIN]
    extra_files = [path for path in (options.get("curves"),) if path is not None]
    for path in extra_files:
        check_extension(path)
    return Outputs.from_options(options, inputs, extra_files)


def _describe(source: _Input, table: Run | Gallery | Samples) -> list[dict[str, Any]]:
    """Describe each input; labels within an archive have a sha256 that does not depend on it."""
    files = list(zip(source.roles, table.files, strict=True))
    if source.roles == ("scores",):
        digest = sha256()
        for name in ("query_labels", "gallery_labels", "grade", "truth"):
            column = getattr(table, name, None)
            if column is not None:
                digest.update(f"{name} {column.dtype.str} {column.shape}\n".encode())
                digest.update(column.tobytes())
        files.append(("labels", table.files[0]._replace(sha256=digest.hexdigest())))
    return [entry for role, file in files for entry in describe(role, (file,), digests=True)]


def _write(
    report: Report,
    gating: tuple[Gates, Ranked, Ranked | None],  # with the ranking, and the earlier one
    outputs: Outputs,
    files: Sequence[SourceFile],
    session: Session,
    *,
    complete: bool,
) -> int:
    """Evaluate the gates, if any, and write all reports; tables list every row if `complete`."""
    gates, current, earlier = gating
    record = partial(as_dict, report)
    results = evaluate_gates(
        gates.config, current, record, baseline_report=gates.baseline, baseline=earlier
    )
    report = report.with_blocks(gate_blocks(results), results.notes)
    status = finish(report, results.problems, session)
    shorter = None if complete else brief(report)
    outputs.write(report, files, quiet=session.quiet, brief=shorter)
    session.print_time("reporting")
    return status


def _refuse_unused(given: Sequence[str], table: Run | Gallery) -> None:
    """Raise UsageError for options that do not apply to the input."""
    kind = getattr(table, "kind", "run")
    inputs = {"run": ("runs", "grades"), "embeddings": ("galleries", "embeddings")}
    for name in given:
        if _APPLIES_TO[name] not in inputs.get(kind, ("galleries",)):
            option_name = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option_name} applies to {_APPLIES_TO[name]} only")


def _ranked(report: Report, result: RetrievalResult | None = None) -> Ranked:
    unit = "query" if report.kind == "retrieval" else "class"
    return Ranked(report.summary, report.table.rows, unit, result)
