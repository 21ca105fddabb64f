"""What a command reads: which files, as what, and which of their classes and images."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from detap.errors import DetapError, InputError, Problem, UsageError
from detap.formats.files import STDIN, Limits

if TYPE_CHECKING:
    from detap.tables import Detections, GroundTruth, Name, SourceFile

_ONLY_VOC = ("image_set", "layout", "boxes", "class_names")
_LIMITS = {
    "max_file_size": "file_bytes",
    "max_expansion": "expansion",
    "max_records": "records",
    "max_nesting": "nesting",
    "max_problems": "problems",
}


class Inputs(NamedTuple):
    """What is read, and as what.

    Attributes
    ----------
    file_format : {"coco", "voc"}
    gt, dt : str
        Paths; ``"-"`` for `dt` is stdin.
    reading : dict
        What else the format's reader takes, for ground truth and detections.
    """

    file_format: str
    gt: str
    dt: str
    reading: Mapping[str, Any]

    @classmethod
    def from_options(cls, options: dict[str, Any]) -> "Inputs":
        """Take the input options out of `options`; the format is told from the files if need be."""
        gt, dt, given = options.pop("gt"), options.pop("dt"), options.pop("file_format")
        reading = {name: options.pop(name) for name in _ONLY_VOC}
        reading = {name: value for name, value in reading.items() if value is not None}
        limits = _limits(options)
        if gt == STDIN:
            raise UsageError("only the detections can come from stdin, not the ground truth")
        if given is None:
            from detap.formats import tell_format  # noqa: PLC0415 - not when it is given

            given = tell_format(gt, None if dt == STDIN else dt)
        if given == "coco" and reading:
            name = next(iter(reading)).replace("_", "-")
            raise UsageError(f"--{name} is for VOC files; these are read as coco")
        return cls(given, gt, dt, reading | limits)

    def paths(self) -> list[str]:
        """Return the paths that must not be written."""
        files = [self.reading.get(name) for name in ("image_set", "class_names")]
        return [path for path in (self.gt, self.dt, *files) if path is not None and path != STDIN]

    def begin(self) -> tuple[Any, Any]:
        """Let threads read COCO files while numpy is being imported; return what to read on."""
        if self.file_format != "coco":
            return self.gt, self.dt
        from detap.formats import prefetch  # noqa: PLC0415 - not for --help

        return prefetch.ground_truth(self.gt, **self.reading), prefetch.detections(
            self.dt, **self.reading
        )

    @staticmethod
    def fraction(sources: tuple[Any, Any]) -> "Callable[[], float] | None":
        """Return what tells which share of the sources has been read, where that is known."""
        if not all(hasattr(source, "fraction") for source in sources):
            return None
        return lambda: sum(source.fraction() for source in sources) / len(sources)

    def read(self, sources: tuple[Any, Any]) -> "tuple[GroundTruth, Detections]":
        """Return both tables from what :meth:`begin` has returned."""
        reader = import_module(f"detap.formats.{self.file_format}")
        truth_options = {k: v for k, v in self.reading.items() if k != "layout"}
        truth = reader.read_ground_truth(sources[0], **truth_options)
        return truth, self.read_detections(sources[1], truth)

    def read_detections(self, source: Any, truth: "GroundTruth") -> "Detections":
        """Return detections alone, of :meth:`begin`'s second source or of another path."""
        reader = import_module(f"detap.formats.{self.file_format}")
        options = {k: v for k, v in self.reading.items() if k != "image_set"}
        table: Detections = reader.read_detections(source, truth, **options)
        return table


def _limits(options: dict[str, Any]) -> dict[str, Limits]:
    """Take the limits out of `options`; nothing where none is given."""
    given = {field: options.pop(name, None) for name, field in _LIMITS.items()}
    given = {field: value for field, value in given.items() if value is not None}
    return {"limits": Limits(**given)} if given else {}


class Digests:
    """The sha256 of all inputs, computed in a thread while the evaluation runs.

    Parameters
    ----------
    truth, detections : tables
        Whose files they are of.
    piped : str or None
        That of standard input, which cannot be read again.
    """

    def __init__(
        self, truth: "GroundTruth", detections: "Detections", piped: str | None = None
    ) -> None:
        self._found: dict[str, str | None] = {}
        self._error: DetapError | None = None
        sources = [*truth.files, *detections.files]
        self._thread = Thread(target=self._run, args=(sources, piped), daemon=True)
        self._thread.start()

    def _run(self, sources: "Sequence[SourceFile]", piped: str | None) -> None:
        from detap.formats.digest import sha256  # noqa: PLC0415 - needs hashlib, 0.003 s

        try:
            for source in sources:
                again = source.path != STDIN
                self._found[source.path] = sha256(source.path, source.members) if again else piped
        except DetapError as error:
            self._error = error

    def wait(self) -> dict[str, str | None]:
        """Return the digests by path, once they are there."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._found


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


def chosen_images(given: Iterable[str], known: "Iterable[Name]") -> "list[Name]":
    """Return the images that the values of an option mean: each a file of names, or names."""
    by_text = {str(name): name for name in known}
    chosen: list[str] = []
    for value in given:
        if value not in by_text and os.path.exists(value):
            chosen += _lines(value)
        else:
            chosen += chosen_names([value], by_text)
    return [by_text.get(name, name) for name in chosen]


def _lines(path: str) -> list[str]:
    from detap.formats.files import read_bytes  # noqa: PLC0415 - seldom needed

    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            Problem(path, f"byte {error.start}", "is not UTF-8", "list one image a line")
        ) from None
    return [line.strip() for line in text.splitlines() if line.strip()]
