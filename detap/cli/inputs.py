"""Input files of a command, the tables read from them, and selected classes and images."""

import json
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from detap.cli.options import LIMITS, protocol_from
from detap.cli.session import Session
from detap.errors import Note, UsageError
from detap.evaluation.results import Result
from detap.evaluation.scoring import score_tables
from detap.formats.base import Format
from detap.formats.catalogue import check_options, format_named
from detap.formats.catalogue import options as format_options
from detap.formats.class_map import ClassMap, class_map_of, map_tables
from detap.formats.detection import detect_format, detections_format, preset_of_results
from detap.formats.multi_file import (
    Sources,
    detections_of,
    expand_folders,
    expand_patterns,
    ground_truth_of,
)
from detap.formats.options import MISSING_SCORES
from detap.io.limits import Limits
from detap.io.paths import STDIN, SourceFile
from detap.io.stream import read_bytes, refuse
from detap.protocols import PRESETS, Protocol
from detap.report.inputs import describe_inputs
from detap.report.model import Block
from detap.tables.concat import align_classes, images_seen
from detap.tables.detection import Detections, GroundTruth, Name


class Tables(NamedTuple):
    """The tables of a run, with those of another detector if there is one."""

    ground_truth: GroundTruth
    detections: Detections
    other: Detections | None = None

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The files read, which must not be written."""
        return tuple(file for table in self if table is not None for file in table.files)

    def describe(self, *, digests: bool) -> list[dict[str, Any]]:
        """Return the inputs of a report, without those of the other detector."""
        return describe_inputs(self.ground_truth, digests=digests, detections=self.detections)

    def score(
        self, protocol: Protocol, options: Mapping[str, Any], *, match_table: bool = False
    ) -> tuple[Result, Result | None]:
        """Score each detector on the selected classes and images."""
        keywords = {
            **selected(self.ground_truth, self.detections, options),
            "threads": options["threads"],
            "match_table": match_table,
        }
        result, *others = (
            score_tables(self.ground_truth, detections, protocol, **keywords)
            for detections in (self.detections, self.other)
            if detections is not None
        )
        return result, others[0] if others else None


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluated detector, and further contents of its report."""

    result: Result
    tables: Tables
    baseline: Result | None = None  # of an earlier detector
    slices: Mapping[str, Sequence[Name]] = field(default_factory=dict)  # images by tag
    notes: Sequence[Note] = ()  # in addition to the result's
    blocks: Sequence[Block] = ()
    file_names: Mapping[str, str] = field(default_factory=dict)  # by image, for the HTML page
    check: Any = None  # the comparison with pycocotools


@dataclass(frozen=True, slots=True)
class Inputs:
    """Input paths and formats."""

    format: Format  # of the ground truth; also of detections whose format is not detected
    gt: tuple[str, ...]  # paths, with patterns and folders expanded
    dt: tuple[str, ...]  # "-" is stdin
    reading: Mapping[str, Any]  # options of the readers of either format, and limits
    dt_format: Format | None = None  # if given by option
    merge_images: bool = False  # whether an image may be in several inputs
    class_map: ClassMap | None = None
    detected: dict[Any, Format] = field(default_factory=dict)  # formats of detections, by path
    notes: list[Note] = field(default_factory=list)  # on the default preset

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> Self:
        """Remove the input options from `options`; detect the format by default."""
        gt, dt = expand_patterns(options.pop("gt")), expand_patterns(options.pop("dt"))
        if not gt and not dt:
            raise UsageError("no input: use --gt, --dt, or both")
        file_format = options.pop("file_format")
        names = [options.pop(option) or file_format for option in ("gt_format", "dt_format")]
        reading: dict[str, Any] = {
            option.name: value
            for option in format_options()
            if (value := options.pop(option.name)) is not None
        }
        if (class_map := options.pop("class_map", None)) is not None:
            class_map = class_map_of(class_map)
        limits = {name: options.pop(option, None) for option, name in LIMITS.items()}
        if STDIN in gt:
            raise UsageError("only detections can come from stdin, not ground truth")
        dt_format = None if names[1] is None else format_named(names[1])
        gt_format = detect_format(*gt[:1], *dt[:1]) if names[0] is None else format_named(names[0])
        inputs = cls(gt_format, gt, dt, reading, dt_format, options.pop("merge_images"), class_map)
        check_options(reading, [gt_format], map(inputs.format_of, dt))
        reading |= {"as_is": True} if options.pop("as_is") else {}
        if (missing_scores := options.pop(MISSING_SCORES)) is not None:
            reading[MISSING_SCORES] = missing_scores
        gt = expand_folders(gt, lambda _: gt_format, reading.get("split"))
        dt = expand_folders(dt, inputs.format_of)
        images = options.get("images")  # of report: a folder
        reading["limits"] = Limits(
            **{name: value for name, value in limits.items() if value is not None},
            empty=len(gt) > 1,  # some of several files may be empty
            part=len(dt) > 1,
            any_classes=class_map is not None,
            drop_extra_images=isinstance(images, tuple) and images not in ((), (SEEN,)),
        )
        return replace(inputs, gt=gt, dt=dt)

    def protocol(self, options: dict[str, Any]) -> Protocol:
        """Remove the protocol options from `options`; the format has the default preset."""
        name = self.format.default_protocol(next(iter(self.gt), None), self.reading)
        if options["iou_type"] not in (None, PRESETS[name].iou_type):
            name = self.format.protocol
        if options["preset"] is None and options["iou_type"] is None and self.gt and self.dt:
            dt_format = self.format_of(self.dt[0])
            name, self.notes[:] = preset_of_results(name, self.format, dt_format, self.dt[0])
        protocol: Protocol = protocol_from(options, Protocol, name)
        return protocol

    def for_protocols(self, *protocols: Protocol, digests: bool) -> Self:
        """Return inputs that also read the data the protocols need."""
        required: dict[str, Any] = {}
        if any(protocol.keys != protocols[0].keys for protocol in protocols):
            names = " and ".join(protocol.name for protocol in protocols)
            raise UsageError(
                f"protocols {names} read different keypoints or scores of a record; use one of "
                "them at a time"
            )
        for protocol in protocols:
            required |= protocol.reading | protocol.keys
        attributes = dict.fromkeys(name for protocol in protocols for name in protocol.attributes)
        if attributes:
            required["attributes"] = tuple(attributes)
        limits = replace(self.reading["limits"], digests=digests)
        return replace(self, reading={**self.reading, **required, "limits": limits})

    def read_with(self, options: Mapping[str, str]) -> Self:
        """Return inputs with the reader options and the class map recorded in a report."""
        recorded = {option.name for option in format_options() if option.value_kind == "text"}
        reading = {name: value for name, value in self.reading.items() if name not in recorded}
        reading |= {name: value for name, value in options.items() if name != "class_map"}
        text = options.get("class_map")
        class_map = None if text is None else class_map_of(json.loads(text))
        limits = replace(self.reading["limits"], any_classes=class_map is not None)
        return replace(self, reading={**reading, "limits": limits}, class_map=class_map)

    def format_of(self, detections: Any) -> Format:
        """Return the format of detections, given as a path or source."""
        path = getattr(detections, "path", detections)
        if self.dt_format is None and path not in self.detected:
            self.detected[path] = detections_format(path, self.format)
        return self.dt_format or self.detected[path]

    def paths(self, *others: str | None) -> list[str]:
        """Return the input paths, which must not be written."""
        formats = dict.fromkeys((self.format, *map(self.format_of, self.dt)))
        files = [
            self.reading.get(option.name)
            for file_format in formats
            for option in file_format.options
            if option.value_kind != "text"
        ]
        files += [] if self.class_map is None else [self.class_map.path]
        more = [path for other in others if other for path in self._detection_paths(other)]
        return [path for path in (*self.gt, *self.dt, *files, *more) if path not in (None, STDIN)]

    def read(self, session: Session | None = None, other: str | None = None) -> Tables:
        """Read the tables, and those of another detector if given; show the progress."""
        sources = Sources(self.gt, self.format.source), self._detections(self.dt)

        def fraction() -> float | None:  # read so far, if known
            known = all(side.has_progress for side in sources)
            return sum(side.fraction() for side in sources) / len(sources) if known else None

        if STDIN not in (*self.gt, *self.dt):
            self.format_of(self.dt[0]).begin_detections(sources[1].first, self.reading)
        if session is not None:
            session.start_progress("Reading", fraction)
        truth = self.read_ground_truth(sources[0])
        tables = [self.read_detections(sources[1], truth)]
        if other is not None:
            tables.append(self.read_detector(other, truth))
        [truth], [detections, *others] = map_tables(self.class_map, [truth], tables)
        second = None
        if others:
            both = align_classes(detections, others[0])
            unscored = any(len(table) and not table.has_scores for table in both)
            detections, second = (
                replace(table, without_scores=True) if unscored and not len(table) else table
                for table in both
            )
        if session is not None:
            session.print_time("reading")
        return Tables(truth, detections, second)

    def read_detector(self, path: str, truth: GroundTruth) -> Detections:
        """Return the detections of another detector: a path, pattern or folder."""
        return self.read_detections(self._detections(self._detection_paths(path)), truth)

    def _detections(self, paths: tuple[str, ...]) -> Sources:
        return Sources(paths, lambda path: self.format_of(path).source(path))

    def read_ground_truth(self, sources: Iterable[Any]) -> GroundTruth:
        """Return the ground truth of sources or paths."""
        return ground_truth_of(self.format, sources, self.reading, merge_images=self.merge_images)

    def read_detections(
        self, sources: Iterable[Any], ground_truth: GroundTruth | None
    ) -> Detections:
        """Return the detections of sources or paths."""
        detections = detections_of(
            self.format_of, sources, ground_truth, self.reading, merge_images=self.merge_images
        )
        return replace(detections, notes=(*detections.notes, *self.notes))

    def _detection_paths(self, path: str) -> tuple[str, ...]:
        """Expand a path, pattern or folder of detections."""
        return expand_folders(expand_patterns([path]), self.format_of)


SEEN = "seen"  # value of `--images` that selects the images with detections


def selected(
    ground_truth: GroundTruth, detections: Detections, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the selected classes and images as keywords of score_tables."""
    classes, images = options["classes"] or None, options["images"]
    if classes is not None:  # names, or ids that are no names
        ids = {str(name): name for name in detections.class_ids}
        names = dict(zip(detections.classes, detections.classes, strict=True))
        classes = [(ids | names).get(name, name) for name in _names(classes, names)]
    images = _images(images, ground_truth, detections) if images else None
    return {"classes": classes, "images": images}


def _names(values: Iterable[str], known: Container[str]) -> list[str]:
    """Return the names of comma-separated lists; an existing name may contain a comma."""
    lists = ([value] if value in known else value.split(",") for value in values)
    return [name for names in lists for name in names if name]


def _images(values: Sequence[str], ground_truth: GroundTruth, detections: Detections) -> list[Name]:
    """Return the images of files of names or comma-separated lists, or those :data:`SEEN`."""
    by_text = {str(name): name for name in ground_truth.images}
    if [*values] == [SEEN] and SEEN not in by_text and not os.path.exists(SEEN):
        return images_seen(detections)
    chosen: list[str] = []
    for value in values:
        if value in by_text or not os.path.exists(value):
            chosen += _names([value], by_text)
            continue
        try:
            text = read_bytes(value).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            refuse(value, "is not UTF-8", "list one image per line", f"byte {error.start}")
        chosen += [line.strip() for line in text.splitlines() if line.strip()]
    return [by_text.get(name, name) for name in chosen]
