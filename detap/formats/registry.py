"""The formats that can be read: what each is called, how it is told, and who reads it.

A format is a record here and a module of its own, which is imported when it is wanted. The command
line, `check`, `compare`, settings and the Python API all take it from here: nothing else knows the
name of a format. The module has

``read_ground_truth(path, *, limits, **options)``
    which returns a :class:`detap.tables.detection.GroundTruth`;
``read_detections(path, truth, *, limits, **options)``
    which returns :class:`detap.tables.detection.Detections` numbered as `truth`;

and, there or in another module, what is seldom wanted and may be absent:

``named(path, *, limits, **options)``
    which returns options and an empty ground truth of the images and classes that detections name,
    so that they can be examined by themselves;
``image_attribute(truth, name)``
    which returns the value of an attribute of each image that has it, for slices.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from detap.errors import InputError, Problem, UsageError
from detap.formats.reading.paths import STDIN, shown
from detap.spelling import near

if TYPE_CHECKING:
    from detap.tables.detection import Detections, GroundTruth

_HEAD = 64

TRUTH, DETECTIONS = "ground truth", "detections"


class Option(NamedTuple):
    """What a format's readers take besides a path.

    Attributes
    ----------
    name : str
        Their keyword; ``--image-set`` for ``image_set``.
    help : str
    metavar : str
        What the help shows for a value, where there are no choices.
    choices : tuple of str
    sides : tuple of str
        Which reader takes it: :data:`TRUTH`, :data:`DETECTIONS` or both.
    is_path, may_be_path : bool
        Whether its values are paths, which no report may overwrite; or may be.
    """

    name: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    sides: tuple[str, ...] = (TRUTH, DETECTIONS)
    is_path: bool = False
    may_be_path: bool = False

    @property
    def spelling(self) -> str:
        """The option of the command line."""
        return f"--{self.name.replace('_', '-')}"


class Format(NamedTuple):
    """A format of files.

    Attributes
    ----------
    name : str
        As ``--format`` has it.
    title : str
        What people call it.
    module : str
        Who reads it.
    protocol : str
        The preset that goes with it.
    suffixes : tuple of str
        That files of this format alone have.
    heads : tuple of bytes
        That they begin with, blanks apart, where the name does not tell.
    folders : bool
        Whether a folder is of this format.
    options : tuple of Option
    aside : str
        A module with `named` and `image_attribute`.
    ahead : str
        A module with ``ground_truth(path, **options)`` and ``detections(path, **options)``, which
        begin to read in threads and return what the readers then take for a path.
    beside : tuple of str
        The formats whose files may be the other side, as images and classes are called alike there.
    """

    name: str
    title: str
    module: str
    protocol: str
    suffixes: tuple[str, ...] = ()
    heads: tuple[bytes, ...] = ()
    folders: bool = False
    options: tuple[Option, ...] = ()
    aside: str = ""
    ahead: str = ""
    beside: tuple[str, ...] = ()

    def reader(self) -> Any:
        """Import the module that reads it."""
        return import_module(self.module)

    def begin(self, side: str, path: str, reading: Mapping[str, Any]) -> Any:
        """Begin to read a side where that can be done ahead; return what to read on."""
        if not self.ahead:
            return path
        ahead = import_module(self.ahead)
        options = self._of(side, reading)
        return (
            ahead.ground_truth(path, **options)
            if side == TRUTH
            else ahead.detections(path, **options)
        )

    def goes_with(self, other: "Format") -> bool:
        """Return whether one side may be of this format and the other side of that."""
        return other is self or other.name in self.beside or self.name in other.beside

    def of_detections(self, path: Any) -> "Format":
        """Return the format of detections for ground truth of this one: another if they tell it."""
        other = FORMATS.get(_tell(os.fspath(path)) or "", self)
        return other if self.goes_with(other) else self

    def read_ground_truth(self, path: Any, reading: Mapping[str, Any]) -> "GroundTruth":
        """Read ground truth; of `reading`, what concerns detections alone is left out."""
        found: GroundTruth = self.reader().read_ground_truth(path, **self._of(TRUTH, reading))
        return found

    def read_detections(
        self, path: Any, truth: "GroundTruth | None", reading: Mapping[str, Any]
    ) -> "Detections":
        """Read detections, numbered as their ground truth; None where that is not at hand."""
        options = self._of(DETECTIONS, reading)
        if truth is None:
            options, truth = self._named(path, options)
        found: Detections = self.reader().read_detections(path, truth, **options)
        return found

    def names(self, path: Any, reading: Mapping[str, Any]) -> "GroundTruth":
        """Return the images and classes that detections name, as a ground truth without boxes."""
        truth: GroundTruth = self._named(path, self._of(DETECTIONS, reading))[1]
        return truth

    def _named(self, path: Any, options: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        if os.fspath(path) == STDIN:
            raise UsageError("detections without their ground truth cannot come from stdin")
        if not self.aside:
            raise UsageError(f"{self.title} detections cannot be examined by themselves: give --gt")
        found: tuple[dict[str, Any], Any] = import_module(self.aside).named(path, **options)
        return found

    def image_attribute(self, truth: Any, name: str) -> dict[Any, Any]:
        """Return the value of an attribute of each image that has it.

        Raises
        ------
        InputError
            Where no image has it.
        """
        found: dict[Any, Any] = {}
        if self.aside:
            found = import_module(self.aside).image_attribute(truth, name)
        if not found:
            path = truth.files[0].path if truth.files else "ground truth"
            raise InputError(Problem(path, "", f"no image has an attribute {name!r}"))
        return found

    def _of(self, side: str, reading: Mapping[str, Any]) -> dict[str, Any]:
        own = {option.name for option in self.options if side in option.sides}
        others = {option.name for option in options()} - own
        return {name: value for name, value in reading.items() if name not in others}


IMAGE_SET = Option(
    "image_set",
    "A set of ImageSets/Main, or a file with one image a line.",
    "NAME|FILE",
    sides=(TRUTH,),
    may_be_path=True,
)
LAYOUT = Option(
    "layout",
    "Whether a text file holds the detections of a class or of an image.",
    choices=("class-files", "image-files"),
    sides=(DETECTIONS,),
)
BOXES = Option(
    "boxes",
    "What four numbers are: x1 y1 x2 y2 (of a text line the default), or x y width height; of a "
    "column bbox, where its metadata do not say.",
    choices=("corners", "xywh"),
)
CLASS_NAMES = Option(
    "class_names",
    "Class names, one a line, where text files number the classes from 0.",
    "FILE",
    is_path=True,
)

FORMATS: dict[str, Format] = {}
"""The formats by name, in the order in which they are told from files."""


def register(entry: Format) -> None:
    """Add a format, before the command line is built."""
    FORMATS[entry.name] = entry


register(
    Format(
        "coco",
        "COCO",
        "detap.formats.coco.tables",
        "coco",
        suffixes=(".json", ".json.gz"),
        heads=(b"{", b"["),
        aside="detap.formats.coco.aside",
        ahead="detap.formats.coco.prefetch",
    )
)
register(
    Format(
        "voc",
        "VOC",
        "detap.formats.voc.tables",
        "voc2012",
        suffixes=(".xml", ".txt"),
        heads=(b"<",),
        folders=True,
        options=(IMAGE_SET, LAYOUT, BOXES, CLASS_NAMES),
        aside="detap.formats.voc.aside",
    )
)
register(
    Format(
        "arrow",
        "Parquet/Arrow",
        "detap.formats.arrow.tables",
        "coco",
        suffixes=(".parquet", ".arrow", ".feather"),
        heads=(b"PAR1", b"ARROW1"),
        options=(BOXES,),
        aside="detap.formats.arrow.aside",
        ahead="detap.formats.arrow.ahead",
        beside=("coco", "voc"),
    )
)


def format_named(name: str) -> Format:
    """Return a format.

    Raises
    ------
    UsageError
        Where there is none of this name.
    """
    if name not in FORMATS:
        hint = near(name, FORMATS) or f"use {' or '.join(FORMATS)}"
        raise UsageError(f"format {name!r} is unknown; {hint}")
    return FORMATS[name]


def options() -> dict[Option, list[Format]]:
    """Return every option of any format, and whose it is."""
    found: dict[Option, list[Format]] = {}
    for entry in FORMATS.values():
        for option in entry.options:
            found.setdefault(option, []).append(entry)
    return found


def check_options(names: Iterable[str], *formats: Format) -> None:
    """Refuse options that none of the formats takes, by the keywords of readers.

    Raises
    ------
    UsageError
    """
    for option, whose in options().items():
        if option.name in names and not any(option in entry.options for entry in formats):
            titles = " and ".join(other.title for other in whose)
            read_as = " and ".join(dict.fromkeys(entry.name for entry in formats))
            raise UsageError(
                f"{option.spelling} is for {titles} files; these are read as {read_as}"
            )


def told(*paths: str | os.PathLike[str] | None) -> Format:
    """Return the format of files, by their names and first bytes: of the first that tells.

    No more is looked at than a file's beginning, and only where its name does not tell.

    Parameters
    ----------
    *paths : str or path or None
        What is to be read; ``"-"`` and None tell nothing.

    Raises
    ------
    UsageError
        Where none tells, or two tell formats that do not go with each other.
    """
    given = [os.fspath(path) for path in paths if path is not None]
    said = {path: name for path in given if (name := _tell(path))}
    first = next((FORMATS[name] for name in said.values()), None)
    if first is not None and not all(first.goes_with(FORMATS[name]) for name in said.values()):
        listed = ", ".join(f"{path} looks like {name}" for path, name in said.items())
        raise UsageError(f"{listed}; convert one of them, or say --format if one is mistaken")
    if first is None:
        named = " and ".join(given) or "no file"
        choices = " or --format ".join(FORMATS)
        raise UsageError(f"the format of {named} cannot be told; say --format {choices}")
    return first


def _tell(path: str) -> str | None:
    if path == STDIN:
        return None
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        mode = 0  # what is absent is reported by its reader
    if stat.S_ISDIR(mode):
        return _tell_folder(path)
    name = shown(path).removesuffix("?...").lower()
    for entry in FORMATS.values():
        if name.endswith(entry.suffixes):
            return entry.name
    return _tell_content(path) if stat.S_ISREG(mode) else None


def _tell_folder(path: str) -> str | None:
    """Return the format of a folder: one that has folders, unless all its files are another's."""
    whole = next((entry.name for entry in FORMATS.values() if entry.folders), None)
    found = None
    with suppress(OSError), os.scandir(path) as files:
        for file in files:
            name = file.name.lower()
            told = next((e.name for e in FORMATS.values() if name.endswith(e.suffixes)), None)
            if name[0] != "." and (told == whole or file.is_dir()):
                return whole
            found = found or told
    return found or whole


def _tell_content(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError:
        return None
    for entry in FORMATS.values():
        if entry.heads and head.startswith(entry.heads):
            return entry.name
    return None
