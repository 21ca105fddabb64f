"""Evaluate several data sets, or read their reports, as one report."""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from detap import metrics
from detap._version import __version__
from detap.analysis.data_sets import DataSet, DataSets, signature_of
from detap.cli.gates import Gates, finish
from detap.cli.inputs import Inputs
from detap.cli.options import Option
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.cli.settings import by_name, options_of, read_tables
from detap.errors import InputError, Note, Problem, UnknownNameError, UsageError
from detap.escaping import escape
from detap.evaluation.sanity_notes import add_sanity_notes
from detap.formats.multi_file import expand_patterns
from detap.gates.baseline import read_baseline
from detap.gates.config import CHANGES, GateConfig, Limit, endings
from detap.gates.data_sets import GatedSets, data_set_of_report, require_same_protocol
from detap.gates.evaluate import evaluate_gates
from detap.gates.history import report_paths
from detap.io.paths import STDIN, SourceFile, is_url
from detap.metrics.metric import MetricSpec
from detap.protocols import Protocol
from detap.report.numbers import plain
from detap.report.sections.data_sets import data_sets_report
from detap.report.sections.gates import gate_blocks
from detap.report.writers.json import as_dict

_GROUPS = ("Input", "Limits of input", "Protocol (default: as in the preset)", "General")
"""Help groups of options that apply to data sets."""

_APPLY = frozenset(
    {"data_sets", "allow_missing", "fail_under", "fail_over", "baseline", "max_drop", "max_rise"}
    | {"allow_mismatch", "confidence", "resamples", "seed", "min_ground_truths"}
    | {"targets", "output_format"}
)
_OF_A_SET = ("Input", "Limits of input", "Selection")
_FURTHER = (
    Option(["--report"], group="Input", value_kind="path"),
    Option(["--group"], group="Input"),
)

_HINT = "give gt and dt, or report"


class Entry(NamedTuple):
    """A data set in the file: its name, settings, and location in messages."""

    name: str
    values: Mapping[str, Any]
    location: str

    @property
    def group(self) -> str:
        """The group, or an empty text."""
        return str(self.values.get("group", ""))

    @property
    def report(self) -> str | None:
        """The path of a report, if it is one."""
        return self.values.get("report")

    @property
    def paths(self) -> list[str]:
        """The paths of ground truth and detections, or of the report."""
        named = [self.report] if self.report else [*self.values["gt"], *self.values["dt"]]
        return [path for path in named if path]

    def named(self, inputs: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
        """Return the inputs of a report with the name of the data set."""
        return tuple({"data_set": self.name, **item} for item in inputs)

    def absent(self) -> str:
        """Return the first path that does not exist, or an empty text."""
        for path in self.paths:
            is_local = path != STDIN and not is_url(path)
            if is_local and not os.path.exists(path) and not glob.glob(path):
                return path
        return ""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluated data set."""

    data_set: DataSet
    report: Mapping[str, Any]  # kind, protocol, signature and detap_version of its report
    inputs: tuple[Mapping[str, Any], ...]
    notes: tuple[Note, ...] = ()
    files: tuple[SourceFile, ...] = ()  # files read, which must not be written


def evaluate_data_sets(options: dict[str, Any], session: Session) -> int:
    """Evaluate all data sets, write the reports, and return the exit status."""
    _refuse_others(options)
    entries, missing = _present(_entries(options["data_sets"]), options.pop("allow_missing"))
    gates = Gates.from_options(options)
    config = gates.config
    if reports := [entry for entry in entries if entry.report and config.confidence is not None]:
        raise UsageError(
            f"{reports[0].location}: a report cannot be resampled; give gt and dt, or remove "
            "--confidence"
        )
    paths = [path for entry in entries for path in entry.paths if path != STDIN]
    outputs = Outputs.from_options(options, [*paths, *options["data_sets"], *gates.paths()])
    if outputs.needs_page_source:
        raise UsageError("a report of data sets has no HTML page; use json or markdown")
    digests = outputs.needs_digests or gates.baseline is not None
    evaluated: list[Evaluated] = []
    for index, entry in enumerate(entries):
        session.start_progress(f"Evaluating {escape(entry.name)}")
        evaluated.append(_evaluate(entry, {**options}, config, digests=digests, index=index))
        require_same_protocol([(one.data_set.name, one.report) for one in evaluated])
        session.print_time(f"evaluating {escape(entry.name)}")
    data = DataSets(
        tuple(one.data_set for one in evaluated),
        Protocol.from_report(dict(evaluated[0].report["protocol"])),
        signature_of([str(one.report["signature"]) for one in evaluated]),
        missing,
        config.confidence,
        config.resamples,
        config.seed,
        config.min_ground_truths,
    )
    report = data_sets_report(
        data,
        inputs=[item for one in evaluated for item in one.inputs],
        notes=[note for one in evaluated for note in one.notes],
    )
    record = partial(as_dict, report)
    results = evaluate_gates(config, GatedSets(data), record, baseline_report=gates.baseline)
    report = report.with_blocks(gate_blocks(results), results.notes)
    status = finish(report, results.problems, session)
    files = [file for one in evaluated for file in one.files]
    outputs.write(report, files, quiet=session.quiet)
    return status


def _evaluate(
    entry: Entry, options: dict[str, Any], config: GateConfig, *, digests: bool, index: int
) -> Evaluated:
    """Evaluate one data set, or read its report."""
    try:
        if entry.report:
            record = read_baseline(entry.report)
            data_set = data_set_of_report(entry.name, entry.report, record, entry.group)
            return Evaluated(data_set, record, entry.named(record["inputs"]))
        context = click.get_current_context()
        for name, option in by_name(_options_of_a_set()).items():
            if name in entry.values:
                try:
                    value = option.process_value(context, entry.values[name])
                except click.BadParameter as error:
                    raise UsageError(f"{name}: {error.message}") from None
                options[str(option.name)] = value
        inputs = Inputs.from_options(options)
        protocol = inputs.protocol(options)
        tables = inputs.for_protocols(protocol, digests=digests).read()
        resampled = config.confidence is not None
        scored, _ = tables.score(protocol, options, match_table=resampled)
        result = add_sanity_notes(scored)
        specs = _specs(protocol, config.limits) if resampled else ()
        drawn = {"resamples": config.resamples, "seed": config.seed + index}
        data_set = DataSet.of(entry.name, result, entry.group, specs, **drawn)
    except InputError:
        raise  # names the file
    except UsageError as error:
        raise UsageError(f"{entry.location}: {error}") from None
    report = {
        "kind": "detection",
        "protocol": plain(protocol.as_dict()),
        "signature": result.signature,
        "detap_version": __version__,
    }
    notes = tuple(replace(note, message=f"{entry.name}: {note.message}") for note in result.notes)
    described = entry.named(tables.describe(digests=digests))
    return Evaluated(data_set, report, described, notes, tables.files)


def _specs(protocol: Protocol, limits: tuple[Limit, ...]) -> Iterator[MetricSpec]:
    """Yield the metrics of the summary, and others with limits."""
    yield from metrics.summary(protocol)
    for limit in limits:
        names = () if limit.name is None or limit.kind in CHANGES else endings(limit.name)
        for name in names:  # names of sets and of metrics may have dots
            with suppress(UnknownNameError):
                yield metrics.named(protocol, name)


def _refuse_others(options: dict[str, Any]) -> None:
    """Raise UsageError for an option that does not apply; reset those of a settings file."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        if name not in options or name in _APPLY:
            continue
        if getattr(parameter, "group", "") in _GROUPS and name not in ("gt", "dt"):
            continue
        source = context.get_parameter_source(name)
        if source in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
            raise UsageError(f"{max(parameter.opts, key=len)} does not apply to --data-sets")
        multiple, flag = getattr(parameter, "multiple", False), getattr(parameter, "is_flag", False)
        options[name] = () if multiple else False if flag else None


def _entries(paths: tuple[str, ...]) -> list[Entry]:
    """Return the data sets of a TOML file, or of reports."""
    entries: dict[str, Entry] = {}
    if len(paths) == 1 and paths[0].endswith(".toml"):
        known = by_name([*_options_of_a_set(), *_FURTHER])
        for name, values in read_tables(paths[0], known).items():
            location = f"{paths[0]}: [{name}]"
            if not name:
                raise UsageError(f"{paths[0]}: a data set has no name")
            if "report" in values:
                if others := [key for key in values if key not in ("report", "group")]:
                    raise UsageError(f"{location}: report excludes {others[0]}")
            elif lacking := [key for key in ("gt", "dt") if not values.get(key)]:
                raise UsageError(f"{location}: no {lacking[0]}; {_HINT}")
            entries[name] = Entry(name, values, location)
        return list(entries.values())
    if any(path.endswith(".toml") for path in paths):
        raise UsageError("--data-sets takes one TOML file, or JSON reports")
    for path in report_paths(expand_patterns(paths)):
        name = os.path.splitext(os.path.basename(path))[0]
        if name in entries:
            raise UsageError(
                f"--data-sets: {entries[name].report} and {path} have one name, {name!r}; rename a "
                "file, or name the data sets in a TOML file"
            )
        entries[name] = Entry(name, {"report": path}, path)
    return list(entries.values())


def _options_of_a_set() -> list[Option]:
    options = options_of(click.get_current_context().command)
    return [option for option in options if option.group in _OF_A_SET]


def _present(entries: list[Entry], allow_missing: bool) -> tuple[list[Entry], tuple[str, ...]]:
    """Return the data sets with files, and the names of the others."""
    if not entries:
        raise UsageError(f"--data-sets: the file has no data set; add [NAME] and {_HINT}")
    absent = {entry.name: entry.absent() for entry in entries}
    present = [entry for entry in entries if not absent[entry.name]]
    missing = tuple(name for name, path in absent.items() if path)
    if missing and (not present or not allow_missing):
        first = next(entry for entry in entries if absent[entry.name])
        more = f" ({len(missing)} data sets are missing)" if len(missing) > 1 else ""
        hint = "check the path" if not present else "check the path, or pass --allow-missing"
        message = f"no such file or directory{more}"
        raise InputError(Problem(absent[first.name], f"data set {first.name!r}", message, hint))
    return present, missing
