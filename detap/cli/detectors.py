"""``detap compare`` of several detectors: read, score and resample one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import truediv
from typing import Any

import click
from click.core import ParameterSource

from detap.analysis.detectors import (
    Detector,
    Settings,
    check_names,
    default_resamples,
    name_of,
    rank_detectors,
)
from detap.cli.inputs import Inputs, Tables, class_maps
from detap.cli.output import DATA_FORMATS, Outputs
from detap.cli.session import Session
from detap.errors import Note
from detap.evaluation.results import Result
from detap.evaluation.sanity_notes import cut_notes
from detap.protocols import Protocol
from detap.report.inputs import describe
from detap.report.sections.detectors import detectors_report
from detap.tables.detection import Detections, GroundTruth
from detap.text_input import quote


def run(session: Session, given: Sequence[tuple[str, str]], options: dict[str, Any]) -> int:
    """Compare several detectors, given by name and path; return the exit status."""
    named = [(name or name_of(path), path) for name, path in given]
    reference, metric = options.pop("reference"), options.pop("metric")
    check_names([name for name, _ in named], reference)
    options["dt"] = (named[0][1],)
    inputs = Inputs.from_options(options)
    protocol = inputs.protocol(options)
    paths = inputs.paths(*(path for _, path in named[1:]))
    formats = (*DATA_FORMATS, "html")
    outputs = Outputs.from_options(options, paths, subject="a comparison", formats=formats)
    digests = outputs.needs_digests
    inputs = inputs.for_protocols(protocol, digests=digests)
    source = click.get_current_context().get_parameter_source("resamples")
    if source is ParameterSource.DEFAULT:
        options["resamples"] = default_resamples(len(named), options["confidence"])
    session.start_progress("Reading the ground truth")
    truth = inputs.read_ground_truth(inputs.gt)
    session.print_time("reading the ground truth")
    mapped = truth
    if inputs.class_map is not None:
        mapped = class_maps().map_ground_truth(inputs.class_map, truth)
    detectors = rank_detectors(
        _results(session, inputs, (truth, mapped), named, protocol=protocol, options=options),
        Settings(*(options[name] for name in Settings._fields)),
        reference=reference,
        metric=metric,
        threads=options["threads"],
    )
    described = describe("ground_truth", mapped.files, digests=digests, images=len(truth.images))
    for name, _ in named:
        entries = describe("detections", detectors[name].files, digests=digests)
        described += [{**entry, "detector": name} for entry in entries]
    report = detectors_report(
        detectors,
        inputs=described,
        notes=_notes([detectors[name] for name, _ in named]),
        max_rows=options["top"],
        by_class=options["by_class"],
    )
    detected = (file for one in detectors.detectors for file in one.files)
    outputs.publish(report, session, (*truth.files, *detected))
    return 0


def _results(
    session: Session,
    inputs: Inputs,
    truths: tuple[GroundTruth, GroundTruth],
    named: Sequence[tuple[str, str]],
    *,
    protocol: Protocol,
    options: Mapping[str, Any],
) -> Iterator[tuple[str, Result]]:
    """Yield the results, without keeping one; those without detections last.

    `truths` are the ground truth before and after the class map.
    """
    classes: dict[str, None] = {}  # of all detectors, before the map
    empty: list[tuple[str, Detections]] = []
    given, (before, truth) = protocol, truths

    def score(name: str, table: Detections, protocol: Protocol) -> Result:
        tables, keep = Tables(truth, table), bool(options["resamples"])
        result, _ = tables.score(protocol, options, match_table=keep)
        session.print_time(f"evaluating {quote(name)}")
        return result

    for number, (name, path) in enumerate(named):
        step = f"Detector {number + 1} of {len(named)}"
        session.start_progress(step, partial(truediv, number, len(named)))
        table = inputs.read_detector(path, before)
        classes |= dict.fromkeys(table.classes)
        if inputs.class_map is not None:
            table = class_maps().map_detections(inputs.class_map, table, truths)
        if not len(table):
            empty.append((name, table))
            continue
        result = score(name, table, given)
        protocol = result.protocol  # without scores if the detections have none
        yield name, result
        del table, result  # before the next ones are read
    for name, table in empty:
        yield name, score(name, table, protocol)
    if inputs.class_map is not None:
        inputs.class_map.check_names(before.classes, classes)


def _notes(detectors: Sequence[Detector]) -> list[Note]:
    """Return the notes, those of some detectors with their names."""
    shared = set.intersection(*(set(one.notes) for one in detectors))
    notes = dict.fromkeys(
        note if note in shared else replace(note, message=f"{one.name}: {note.message}")
        for one in detectors
        for note in one.notes
    )
    return [*notes, *cut_notes({one.name: one.score_cut for one in detectors})]
