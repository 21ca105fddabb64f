"""Input files of a command, their formats, and selected classes and images."""

import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from detap.errors import InputError, Problem, UsageError
from detap.formats.base import Format
from detap.formats.catalogue import check_options, format_named
from detap.formats.catalogue import options as format_options
from detap.formats.detection import detect_format
from detap.formats.multi_file import (
    Sources,
    detections_of,
    expand_folders,
    expand_patterns,
    ground_truth_of,
)
from detap.formats.options import DETECTIONS, TRUTH
from detap.io.limits import Limits
from detap.io.paths import STDIN
from detap.io.stream import read_bytes

if TYPE_CHECKING:
    from detap.protocols import Protocol
    from detap.tables.detection import Detections, GroundTruth, Name

_LIMITS = {
    "max_file_size": "file_bytes",
    "max_expansion": "expansion",
    "max_records": "records",
    "max_nesting": "nesting",
    "max_problems": "problems",
    "max_mask_runs": "mask_runs",
}


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """Input paths and formats.

    Attributes
    ----------
    format : Format
        Of the ground truth; also of detections whose format is not detected.
    gt, dt : tuple of str
        Paths, with patterns and folders expanded; ``"-"`` in `dt` is stdin.
    reading : dict
        Options of the readers of either format, and limits.
    detected : dict
        Detected formats of detections by path; detection may read files of a folder.
    dt_format : Format or None
        Of the detections, if given by option.
    merge_images : bool
        Whether an image may be in several inputs.
    """

    format: Format
    gt: tuple[str, ...]
    dt: tuple[str, ...]
    reading: Mapping[str, Any]
    detected: dict[Any, Format]
    dt_format: Format | None = None
    merge_images: bool = False

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> "Inputs":
        """Remove the input options from `options`; detect the format by default."""
        gt, dt = expand_patterns(options.pop("gt")), expand_patterns(options.pop("dt"))
        if not gt and not dt:
            raise UsageError("no input: use --gt, --dt, or both")
        file_format = options.pop("file_format")
        names = [options.pop(option) or file_format for option in ("gt_format", "dt_format")]
        reading = {
            option.name: value
            for option in format_options()
            if (value := options.pop(option.name)) is not None
        }
        as_is = {"as_is": True} if options.pop("as_is") else {}
        merge_images = options.pop("merge_images")
        limits = limits_of(options)
        if STDIN in gt:
            raise UsageError("only detections can come from stdin, not ground truth")
        dt_format = None if names[1] is None else format_named(names[1])
        gt_format = detect_format(*gt[:1], *dt[:1]) if names[0] is None else format_named(names[0])
        inputs = cls(gt_format, gt, dt, {**reading, **as_is}, {}, dt_format, merge_images)
        check_options(reading, [gt_format], map(inputs.format_of, dt))
        gt = expand_folders(gt, lambda _: gt_format, reading.get("split"))
        dt = expand_folders(dt, inputs.format_of)
        # Some of several ground-truth files may be empty.
        limits = replace(limits, empty=limits.empty or len(gt) > 1, part=len(dt) > 1)
        reading = {**inputs.reading, "limits": limits}
        return replace(inputs, gt=gt, dt=dt, reading=reading)

    def default_protocol(self, iou_type: str | None) -> str:
        """Return the default preset of the ground truth, for an IoU type if given."""
        from detap.protocols import PRESETS

        name = self.format.default_protocol(next(iter(self.gt), None), self.reading)
        other_type = iou_type is not None and PRESETS[name].iou_type != iou_type
        return self.format.protocol if other_type else name

    def for_protocols(self, *protocols: "Protocol", digests: bool) -> "Inputs":
        """Return inputs that also read the data the protocols need."""
        required: dict[str, Any] = {}
        for protocol in protocols:
            required |= protocol.reading
        attributes = dict.fromkeys(name for protocol in protocols for name in protocol.attributes)
        if attributes:
            required["attributes"] = tuple(attributes)
        limits = replace(self.reading["limits"], digests=digests)
        return replace(self, reading={**self.reading, **required, "limits": limits})

    def read_with(self, options: Mapping[str, str]) -> "Inputs":
        """Return inputs with the reader options recorded in a report."""
        recorded = {option.name for option in format_options() if not option.names_files}
        remaining = {name: value for name, value in self.reading.items() if name not in recorded}
        return replace(self, reading={**remaining, **options})

    def format_of(self, detections: Any) -> Format:
        """Return the format of detections, given as a path or prefetched source."""
        path = getattr(detections, "path", detections)
        if self.dt_format is None and path not in self.detected:
            self.detected[path] = self.format.of_detections(path)
        return self.dt_format or self.detected[path]

    def paths(self, other: str | None = None) -> list[str]:
        """Return the input paths, which must not be written."""
        formats = dict.fromkeys((self.format, *map(self.format_of, self.dt)))
        files = [
            self.reading.get(option.name)
            for file_format in formats
            for option in file_format.options
            if option.is_path or option.may_be_path
        ]
        more = () if other is None else self.detection_paths(other)
        return [path for path in (*self.gt, *self.dt, *files, *more) if path not in (None, STDIN)]

    def begin(self) -> tuple[Sources, Sources]:
        """Prefetch in threads while numpy is imported; return the sources."""
        return self._begin(TRUTH, self.gt), self._begin(DETECTIONS, self.dt)

    def _begin(self, role: str, paths: tuple[str, ...]) -> Sources:
        options = {name: value for name, value in self.reading.items() if name != "as_is"}
        format_of = self.format_of if role == DETECTIONS else lambda _: self.format
        return Sources(paths, lambda path: format_of(path).begin(role, path, options))

    @staticmethod
    def fraction(sources: tuple[Sources, Sources]) -> float | None:
        """Return the fraction of the sources read so far, if known."""
        if not all(side.has_progress for side in sources):
            return None
        return sum(side.fraction() for side in sources) / len(sources)

    def read(self, sources: tuple[Sources, Sources]) -> "tuple[GroundTruth, Detections]":
        """Return both tables from the sources of :meth:`begin`."""
        truth = self.read_ground_truth(sources[0])
        return truth, self.read_detections(sources[1], truth)

    def read_ground_truth(self, sources: Iterable[Any]) -> "GroundTruth":
        """Return the ground truth of prefetched sources or paths."""
        return ground_truth_of(
            sources,
            lambda source: self.format.read_ground_truth(source, self.reading),
            self.reading["limits"],
            merge_images=self.merge_images,
        )

    def read_detections(
        self, sources: Iterable[Any], ground_truth: "GroundTruth | None"
    ) -> "Detections":
        """Return the detections of prefetched sources or paths."""
        return detections_of(
            sources,
            lambda source: self.format_of(source).read_detections(
                source, ground_truth, self.reading
            ),
            ground_truth,
            self.reading["limits"],
            merge_images=self.merge_images,
        )

    def detection_paths(self, path: str) -> tuple[str, ...]:
        """Expand a path, pattern or folder of detections."""
        return expand_folders(expand_patterns([path]), self.format_of)

    def read_other_detections(self, path: str, ground_truth: "GroundTruth") -> "Detections":
        """Read another detector's detections."""
        return self.read_detections(
            self._begin(DETECTIONS, self.detection_paths(path)), ground_truth
        )


def limits_of(options: dict[str, Any]) -> Limits:
    """Remove the limits from `options`; fill in defaults."""
    limits = {
        field: value
        for name, field in _LIMITS.items()
        if (value := options.pop(name, None)) is not None
    }
    return Limits(**limits)


def chosen_names(values: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names listed in option values.

    A value is a comma-separated list, or one existing name that contains a comma.
    """
    names = set(known)
    return [
        name
        for value in values
        for name in ([value] if value in names else value.split(","))
        if name
    ]


SEEN = "seen"
"""Value of ``--images`` that selects the images with detections."""


def chosen_images(
    values: Iterable[str], names: "Iterable[Name]", detections: "Detections | None" = None
) -> "list[Name]":
    """Return the images listed in option values.

    A value is a file of names, or a comma-separated list. :data:`SEEN` alone selects the images
    with detections.
    """
    by_text = {str(name): name for name in names}
    if detections is not None and only_seen(values, by_text):
        from detap.tables.concat import images_seen  # lazy import (start-up time)

        return images_seen(detections)
    chosen: list[str] = []
    for value in values:
        if value not in by_text and os.path.exists(value):
            chosen += _lines(value)
        else:
            chosen += chosen_names([value], by_text)
    return [by_text.get(name, name) for name in chosen]


def selected(
    ground_truth: "GroundTruth", detections: "Detections", options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the selected classes and images as keywords of score_tables."""
    classes, images = options["classes"], options["images"]
    return {
        "classes": chosen_names(classes, detections.classes) if classes else None,
        "images": chosen_images(images, ground_truth.images, detections) if images else None,
    }


def only_seen(values: Iterable[str], names: Container[str] = ()) -> bool:
    """Return True if option values select the images with detections."""
    return [*values] == [SEEN] and SEEN not in names and not os.path.exists(SEEN)


def _lines(path: str) -> list[str]:
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            Problem(path, f"byte {error.start}", "is not UTF-8", "list one image per line")
        ) from None
    return [line.strip() for line in text.splitlines() if line.strip()]
