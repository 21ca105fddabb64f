"""``detap compare`` of several detectors: read, score and resample one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import truediv
from typing import Any

import click
from click.core import ParameterSource

from detap.analysis.detectors import (
    Settings,
    check_names,
    default_resamples,
    name_of,
    rank_detectors,
)
from detap.cli.inputs import Inputs, Tables, class_maps
from detap.cli.output import DATA_FORMATS, Outputs
from detap.cli.session import Session
from detap.errors import Note, UsageError
from detap.evaluation.results import Result
from detap.evaluation.sanity_notes import cut_notes, score_cut_of
from detap.io.paths import SourceFile
from detap.protocols import Protocol
from detap.report.inputs import describe
from detap.report.sections.detectors import detectors_report
from detap.tables.detection import Detections, GroundTruth
from detap.text_input import quote


def run(session: Session, given: Sequence[tuple[str, str]], options: dict[str, Any]) -> int:
    """Compare several detectors, given by name and path; return the exit status."""
    named = [(name or name_of(path), path) for name, path in given]
    reference, metric = options.pop("reference"), options.pop("metric")
    _check_names(named, reference)
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
    runs = _Runs(inputs, truth, options, session)
    detectors = rank_detectors(
        runs.results(named, protocol),
        Settings(*(options[name] for name in Settings._fields)),
        reference=reference,
        metric=metric,
        threads=options["threads"],
    )
    files = runs.truth.files
    of_truth = describe("ground_truth", files, digests=digests, images=len(truth.images))
    report = detectors_report(
        detectors,
        inputs=[*of_truth, *runs.described],
        notes=runs.all_notes(),
        max_rows=options["top"],
        by_class=options["by_class"],
    )
    outputs.publish(report, session, (*files, *runs.files))
    return 0


def _check_names(named: Sequence[tuple[str, str]], reference: str | None) -> None:
    """Raise UsageError if two names are equal, or the reference is none of them."""
    first: dict[str, str] = {}
    for name, path in named:
        if name in first:
            raise UsageError(
                f"{first[name]} and {path} are both named {name!r}; name one of them: "
                f"'{name}-2={path}'"
            )
        first[name] = path
    check_names([*first], reference)


class _Runs:
    """The evaluations of detectors on one ground truth, one after the other."""

    def __init__(
        self, inputs: Inputs, truth: GroundTruth, options: Mapping[str, Any], session: Session
    ) -> None:
        self._inputs, self._options, self._session = inputs, options, session
        self._unmapped, self._classes = truth, dict[str, None]()  # before the map; of all detectors
        self.truth = truth
        if inputs.class_map is not None:
            self.truth = class_maps().map_ground_truth(inputs.class_map, truth)
        self.described: list[dict[str, Any]] = []
        self.files: list[SourceFile] = []
        self._notes: dict[str, tuple[Note, ...]] = {}
        self._cuts: dict[str, float | None] = {}

    def results(
        self, named: Sequence[tuple[str, str]], protocol: Protocol
    ) -> Iterator[tuple[str, Result]]:
        """Yield the results, without keeping one; those without detections last."""
        empty: list[tuple[str, Detections]] = []
        given = protocol
        for number, (name, path) in enumerate(named):
            step = f"Detector {number + 1} of {len(named)}"
            self._session.start_progress(step, partial(truediv, number, len(named)))
            detections = self._read(name, path)
            if not len(detections):
                empty.append((name, detections))
                continue
            result = self._score(name, detections, given)
            protocol = result.protocol  # without scores if the detections have none
            yield name, result
            del detections, result  # before the next ones are read
        for name, detections in empty:
            yield name, self._score(name, detections, protocol)
        if self._inputs.class_map is not None:
            self._inputs.class_map.check_names(self._unmapped.classes, self._classes)

    def _read(self, name: str, path: str) -> Detections:
        """Read detections and describe their files."""
        table = self._inputs.read_detector(path, self._unmapped)
        self._classes |= dict.fromkeys(table.classes)
        if (class_map := self._inputs.class_map) is not None:
            truths = self._unmapped, self.truth
            table = class_maps().map_detections(class_map, table, truths)
        digests = self._inputs.reading["limits"].digests
        described = describe("detections", table.files, digests=digests)
        self.described += [{**entry, "detector": name} for entry in described]
        self.files += table.files
        return table

    def _score(self, name: str, detections: Detections, protocol: Protocol) -> Result:
        """Match and score detections, once."""
        tables, keep = Tables(self.truth, detections), bool(self._options["resamples"])
        result, _ = tables.score(protocol, self._options, match_table=keep)
        self._notes[name], self._cuts[name] = result.notes, score_cut_of(result)
        self._session.print_time(f"evaluating {quote(name)}")
        return result

    def all_notes(self) -> list[Note]:
        """Return the notes, those of some detectors with their names."""
        shared = set.intersection(*map(set, self._notes.values()))
        notes: dict[Note, None] = {}
        for name, own in self._notes.items():
            for note in own:
                named = replace(note, message=f"{name}: {note.message}")
                notes[note if note in shared else named] = None
        return [*notes, *cut_notes(self._cuts)]
