"""What a command reads: which files, as what, and which of their classes and images."""

import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from detap.errors import InputError, Problem, UsageError
from detap.formats.multi_file import (
    Sources,
    detections_of,
    expand_folders,
    expand_patterns,
    ground_truth_of,
)
from detap.formats.registry import (
    DETECTIONS,
    TRUTH,
    Format,
    check_options,
    detect_format,
    format_named,
)
from detap.formats.registry import options as format_options
from detap.io.limits import Limits
from detap.io.paths import STDIN
from detap.io.stream import read_bytes
from detap.records import Record

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


class Inputs(Record):
    """What is read, and as what.

    Attributes
    ----------
    format : Format
        Of the ground truth; of the detections too, where they do not tell another.
    gt, dt : tuple of str
        Paths, patterns and folders expanded; ``"-"`` in `dt` is stdin.
    reading : dict
        What else the readers of either format take, and their limits.
    detected : dict
        Detected formats of detections by path; detection may read files of a folder.
    named : Format or None
        That of the detections, where it was named.
    merge_images : bool
        Whether an image may be in several inputs.
    part : bool
        Whether detections become a partial, which is judged when merged.
    """

    format: Format
    gt: tuple[str, ...]
    dt: tuple[str, ...]
    reading: Mapping[str, Any]
    detected: dict[Any, Format]
    named: Format | None = None
    merge_images: bool = False
    part: bool = False

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> "Inputs":
        """Take the input options out of `options`; detect the format if not given."""
        gt, dt = expand_patterns(options.pop("gt")), expand_patterns(options.pop("dt"))
        both = options.pop("file_format")
        names = [options.pop(option) or both for option in ("gt_format", "dt_format")]
        reading = {
            option.name: value
            for option in format_options()
            if (value := options.pop(option.name)) is not None
        }
        as_is = {"as_is": True} if options.pop("as_is") else {}
        merge_images = options.pop("merge_images")
        limits = limits_of(options)
        if STDIN in gt:
            raise UsageError("only the detections can come from stdin, not the ground truth")
        named = None if names[1] is None else format_named(names[1])
        found = detect_format(*gt[:1], *dt[:1]) if names[0] is None else format_named(names[0])
        inputs = cls(found, gt, dt, {**reading, **as_is}, {}, named, merge_images)
        check_options(reading, [found], map(inputs.format_of, dt))
        gt, dt = expand_folders(gt, lambda _: found), expand_folders(dt, inputs.format_of)
        part = options.get("partial") is not None
        # Of several files of ground truth some may be empty.
        limits = replace(limits, empty=limits.empty or len(gt) > 1, part=len(dt) > 1 or part)
        reading = {**inputs.reading, "limits": limits}
        return replace(inputs, gt=gt, dt=dt, reading=reading, part=part)

    def scored_by(self, *protocols: "Protocol", digests: bool) -> "Inputs":
        """Return the same, with what any of the protocols asks for beside boxes.

        With `digests` the files are hashed while they are read.
        """
        asked = {name: value for protocol in protocols for name, value in protocol.reading.items()}
        limits = replace(self.reading["limits"], digests=digests)
        return replace(self, reading={**self.reading, **asked, "limits": limits})

    def read_with(self, options: Mapping[str, str]) -> "Inputs":
        """Return the same, read with the options that a report has recorded, and no others."""
        recorded = {option.name for option in format_options() if not option.names_files}
        kept = {name: value for name, value in self.reading.items() if name not in recorded}
        return replace(self, reading={**kept, **options})

    def format_of(self, detections: Any) -> Format:
        """Return the format of detections, by their path or what :meth:`begin` made of it."""
        path = getattr(detections, "path", detections)
        if self.named is None and path not in self.detected:
            self.detected[path] = self.format.of_detections(path)
        return self.named or self.detected[path]

    def paths(self, others: str | None = None) -> list[str]:
        """Return the paths that must not be written, those of another detector among them."""
        entries = dict.fromkeys((self.format, *map(self.format_of, self.dt)))
        files = [
            self.reading.get(option.name)
            for entry in entries
            for option in entry.options
            if option.is_path or option.may_be_path
        ]
        more = () if others is None else self.meant(others)
        return [path for path in (*self.gt, *self.dt, *files, *more) if path not in (None, STDIN)]

    def begin(self) -> tuple[Sources, Sources]:
        """Let threads read while numpy is being imported; return what to read on."""
        return self._begin(TRUTH, self.gt), self._begin(DETECTIONS, self.dt)

    def _begin(self, side: str, paths: tuple[str, ...]) -> Sources:
        ahead = {name: value for name, value in self.reading.items() if name != "as_is"}
        format_of = self.format_of if side == DETECTIONS else lambda _: self.format
        return Sources(paths, lambda path: format_of(path).begin(side, path, ahead))

    @staticmethod
    def fraction(sources: tuple[Sources, Sources]) -> float | None:
        """Return which share of the sources has been read, where that is known."""
        if not all(side.has_progress for side in sources):
            return None
        return sum(side.fraction() for side in sources) / len(sources)

    def read(self, sources: tuple[Sources, Sources]) -> "tuple[GroundTruth, Detections]":
        """Return both tables from what :meth:`begin` has returned."""
        truth = self.read_ground_truth(sources[0])
        return truth, self.read_detections(sources[1], truth)

    def read_ground_truth(self, sources: Iterable[Any]) -> "GroundTruth":
        """Return the ground truth, of :meth:`begin`'s first sources or of paths."""
        return ground_truth_of(
            sources,
            lambda source: self.format.read_ground_truth(source, self.reading),
            self.reading["limits"],
            merge_images=self.merge_images,
        )

    def read_detections(
        self, sources: Iterable[Any], ground_truth: "GroundTruth | None"
    ) -> "Detections":
        """Return detections alone, of :meth:`begin`'s second sources or of other paths."""
        return detections_of(
            sources,
            lambda source: self.format_of(source).read_detections(
                source, ground_truth, self.reading
            ),
            ground_truth,
            self.reading["limits"],
            merge_images=self.merge_images,
            check=not self.part,
        )

    def meant(self, given: str) -> tuple[str, ...]:
        """Return the paths of another detector's detections: a path, a pattern or a folder."""
        return expand_folders(expand_patterns([given]), self.format_of)

    def read_others(self, given: str, ground_truth: "GroundTruth") -> "Detections":
        """Return another detector's detections."""
        return self.read_detections(self._begin(DETECTIONS, self.meant(given)), ground_truth)


def limits_of(options: dict[str, Any]) -> Limits:
    """Take the limits out of `options`; those that are not given are the default."""
    given = {
        field: value
        for name, field in _LIMITS.items()
        if (value := options.pop(name, None)) is not None
    }
    return Limits(**given)


def chosen_names(given: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names that the values of an option mean.

    A value is a list of names separated by commas, or one name that has a comma itself.
    """
    names = set(known)
    return [
        name
        for value in given
        for name in ([value] if value in names else value.split(","))
        if name
    ]


SEEN = "seen"
"""The value of an option of images that means those with detections."""


def chosen_images(
    given: Iterable[str], known: "Iterable[Name]", detections: "Detections | None" = None
) -> "list[Name]":
    """Return the images that the values of an option mean: each a file of names, or names.

    The word :data:`SEEN`, alone, means those that have detections.
    """
    by_text = {str(name): name for name in known}
    if detections is not None and only_seen(given, by_text):
        from detap.tables.concat import images_seen  # numpy is there by now

        return images_seen(detections)
    chosen: list[str] = []
    for value in given:
        if value not in by_text and os.path.exists(value):
            chosen += _lines(value)
        else:
            chosen += chosen_names([value], by_text)
    return [by_text.get(name, name) for name in chosen]


def only_seen(given: Iterable[str], known: Container[str] = ()) -> bool:
    """Return whether an option of images means those with detections."""
    return [*given] == [SEEN] and SEEN not in known and not os.path.exists(SEEN)


def _lines(path: str) -> list[str]:
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            Problem(path, f"byte {error.start}", "is not UTF-8", "list one image a line")
        ) from None
    return [line.strip() for line in text.splitlines() if line.strip()]
