"""The formats that can be read: what each is called, how it is told, and who reads it.

A format is a record here and a module of its own, which is imported when it is wanted. The command
line, `check`, `compare`, settings and the Python API all take it from here: nothing else knows the
name of a format. The module has

``read_ground_truth(path, *, limits, **options)``
    which returns a :class:`detap.tables.detection.GroundTruth`;
``read_detections(path, truth, *, limits, **options)``
    which returns :class:`detap.tables.detection.Detections` numbered as `truth`;

and, there or in another module, what is seldom wanted and may be absent:

``named(path, options, limits)``
    which returns an empty ground truth of the images and classes that detections name, so that they
    can be examined by themselves, and may change the options that they are then read with;
``image_attribute(truth, name)``
    which returns the value of an attribute of each image that has it, for slices;
``file_names(truth)``
    which returns the file of each image; that is asked where ids call the images, and by
    :mod:`detap.formats.writing`.

Ground truth and detections may be of two formats: images are then called by the stems of their
files (:mod:`detap.formats.stem_matching`), and classes by their names, when the detections are
read.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from detap.errors import InputError, Problem, UsageError
from detap.io.limits import DEFAULT_LIMITS
from detap.io.paths import STDIN, Path, shown
from detap.text_input import suggest

if TYPE_CHECKING:
    from detap.tables.detection import Detections, GroundTruth, Name

    Table = TypeVar("Table", GroundTruth, Detections)

_HEAD = 64
_LOOKED_AT = 256

TRUTH, DETECTIONS = "ground truth", "detections"
AS_IS = "as_is"
"""The option that accepts what looks wrong; what is accepted without it is read alike."""
BESIDE = ("masks", "keypoints")
"""What can be read beside boxes, as protocols ask for it."""


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
        Whether its values are paths, which no report may overwrite; or may be. Other options are
        recorded in reports: they are part of what makes numbers comparable.
    default : str or None
        The value that is the same as leaving it out, where there is one.
    keyword : str
        The keyword of readers whose value it overrides on its side, where that is another one.
    """

    name: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    sides: tuple[str, ...] = (TRUTH, DETECTIONS)
    is_path: bool = False
    may_be_path: bool = False
    default: str | None = None
    keyword: str = ""

    def recorded(self, value: object) -> str | None:
        """Return what reports say of a value; None if that is nothing.

        Files are recorded as inputs, by their sha256.
        """
        if self.names_files or value is None:
            return None
        text = "x".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        return None if text == self.default else text

    @property
    def names_files(self) -> bool:
        """Whether its values are, or may be, paths."""
        return self.is_path or self.may_be_path

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
        A module with `named`, `image_attribute` and `file_names`.
    ahead : str
        A module with ``ground_truth(path, **options)`` and ``detections(path, **options)``, which
        begin to read in threads and return what the readers then take for a path.
    by_ids : bool
        Whether ids call its images and classes, which another such format has too.
    sniff : str
        A module with ``fits(path)``, which looks into a folder whether it is of this format,
        for those that are told by no name. It raises nothing. Formats whose sniffer says so win
        over those without.
    sniffs_files : bool
        Whether it looks into files too, of its suffixes.
    beside : tuple of str
        What its readers give beside boxes where they are asked for it: ``masks=True``.
    coordinates : str
        What its files call the coordinates of a box, where they name them. Its readers have no
        ``boxes`` then.
    boxes : tuple of str
        The values of ``boxes`` that are accepted in spite of that, since they are so.
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
    by_ids: bool = False
    sniff: str = ""
    sniffs_files: bool = False
    beside: tuple[str, ...] = ()
    coordinates: str = ""
    boxes: tuple[str, ...] = ("xyxy",)

    def begin(self, side: str, path: str, reading: Mapping[str, Any]) -> Any:
        """Begin to read a side where that can be done ahead; return what to read on."""
        if not self.ahead:
            return path
        ahead = import_module(self.ahead)
        begin = ahead.ground_truth if side == TRUTH else ahead.detections
        return begin(path, **self._of(side, reading))

    def of_detections(self, path: Any) -> "Format":
        """Return the format of detections for ground truth of this one: another if they tell it.

        Raises
        ------
        UsageError
            Where they may be of two others.
        """
        found = _fitting(os.fspath(path))
        return self if self.name in found else _the_one(path, found, DETECTIONS) or self

    def read_ground_truth(self, path: Any, reading: Mapping[str, Any]) -> "GroundTruth":
        """Read ground truth; of `reading`, what concerns detections alone is left out."""
        read = import_module(self.module).read_ground_truth
        found: GroundTruth = read(path, **self._of(TRUTH, reading))
        return self._recorded(replace(found, format=self.name), TRUTH, reading)

    def read_detections(
        self, path: Any, truth: "GroundTruth | None", reading: Mapping[str, Any]
    ) -> "Detections":
        """Read detections, numbered as their ground truth; None where that is not at hand."""
        options = self._of(DETECTIONS, reading)
        if truth is None:
            truth = self._named(path, options)
        read = import_module(self.module).read_detections
        found: Detections
        other = FORMATS.get(truth.format, self)  # arrays are of none
        if other.module == self.module or (other.by_ids and self.by_ids):
            found = self._recorded(read(path, truth, **options), DETECTIONS, reading)
            return found
        from detap.formats.stem_matching import by_stem, restored  # seldom needed

        known = by_stem(truth, other.file_names(truth) if other.by_ids else {})
        found = self._recorded(restored(read(path, known, **options), truth), DETECTIONS, reading)
        return found

    def _recorded(self, table: "Table", side: str, reading: Mapping[str, Any]) -> "Table":
        """Return a table whose files say with which options they were read."""
        given = {
            option.name: option.recorded(reading[option.name])
            for option in self.options
            if side in option.sides and option.name in reading
        }
        if reading.get(AS_IS):
            given[AS_IS] = "yes"
        told = tuple(sorted((name, text) for name, text in given.items() if text is not None))
        if not told:
            return table
        return replace(table, files=tuple(file._replace(reading=told) for file in table.files))

    def names(self, path: Any, reading: Mapping[str, Any]) -> "GroundTruth":
        """Return the images and classes that detections name, as a ground truth without boxes."""
        return self._named(path, self._of(DETECTIONS, reading))

    def _named(self, path: Any, options: dict[str, Any]) -> "GroundTruth":
        if os.fspath(path) == STDIN:
            raise UsageError("detections without their ground truth cannot come from stdin")
        if not self.aside:
            raise UsageError(f"{self.title} detections cannot be examined by themselves: give --gt")
        limits = options.get("limits", DEFAULT_LIMITS)
        found: GroundTruth = import_module(self.aside).named(path, options, limits)
        return found

    def image_attribute(self, truth: Any, name: str) -> dict[Any, Any]:
        """Return the value of an attribute of each image that has it.

        Raises
        ------
        InputError
            Where no image has it.
        """
        attribute = self._asked("image_attribute")
        found: dict[Any, Any] = {} if attribute is None else attribute(truth, name)
        if not found:
            raise InputError(Problem(truth.path, "", f"no image has an attribute {name!r}"))
        return found

    def _asked(self, what: str) -> Any:
        """Return a function that is seldom wanted; None where the format has none such."""
        return getattr(import_module(self.aside), what, None) if self.aside else None

    def file_names(self, truth: Any) -> "dict[Name, str]":
        """Return the file of each image, as far as the files of ground truth name it."""
        find = self._asked("file_names")
        found: dict[Name, str] = {} if find is None else find(truth)
        return found

    def _of(self, side: str, reading: Mapping[str, Any]) -> dict[str, Any]:
        for what in (name for name in BESIDE if reading.get(name) and name not in self.beside):
            titles = " and ".join(e.title for e in FORMATS.values() if what in e.beside)
            raise UsageError(f"{what} are read from {titles} files; these are read as {self.name}")
        own = [option for option in self.options if side in option.sides]
        others = {option.name for option in options()} - {option.name for option in own}
        given = {name: value for name, value in reading.items() if name not in others}
        for option in own:
            if option.keyword and option.name in given:
                given[option.keyword] = given.pop(option.name)
        if self.coordinates and (value := given.pop(BOXES.name, None)) not in (None, *self.boxes):
            raise UsageError(named_coordinates(self.title, self.coordinates, side, value))
        return given


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
    "What the four numbers of a box are: x1 y1 x2 y2 (of a text line the default), x y width "
    "height (of COCO's bbox the default), or, of YOLO alone and its default, center x, center y, "
    "width and height; of a column bbox, where its metadata do not say. Files that name their "
    "coordinates, or hold four corners, accept no other value than their own.",
    choices=("xyxy", "xywh", "cxcywh"),
)
GT_BOXES = Option(
    "gt_boxes",
    "The same, of the ground truth alone.",
    choices=BOXES.choices,
    sides=(TRUTH,),
    keyword="boxes",
)
DT_BOXES = Option(
    "dt_boxes",
    "The same, of the detections alone.",
    choices=BOXES.choices,
    sides=(DETECTIONS,),
    keyword="boxes",
)
_BOX_OPTIONS = (BOXES, GT_BOXES, DT_BOXES)


def named_coordinates(title: str, coordinates: str, side: str, value: str) -> str:
    """Return the message that boxes cannot be read as `value`, since files name coordinates."""
    option, other = (GT_BOXES, DT_BOXES) if side == TRUTH else (DT_BOXES, GT_BOXES)
    return (
        f"{title} files name their coordinates ({coordinates}): {option.spelling} {value} does not "
        f"apply to them; use {other.spelling} for the other side"
    )


CLASS_NAMES = Option(
    "class_names",
    "Class names where files number the classes, text files from 0: one a line, or a data.yaml.",
    "FILE",
    is_path=True,
)
DT_CLASS_NAMES = Option(
    "dt_class_names",
    "Class names of the detections, where another list numbers them than the ground truth.",
    "FILE",
    sides=(DETECTIONS,),
    is_path=True,
)
FIRST_CATEGORY_ID = Option(
    "first_category_id",
    "The category_id of the first of the class names; told by the ids, or by the boxes, where left "
    "out.",
    choices=("0", "1"),
    sides=(DETECTIONS,),
)
SPLIT = Option(
    "split",
    "Which part of a data.yaml; val by default.",
    choices=("val", "test", "train"),
    sides=(TRUTH,),
    default="val",
)
IMAGE_SIZE = Option(
    "image_size", "Width and height of all images, where boxes are fractions of them.", "WxH"
)
IMAGE_SIZES = Option(
    "image_sizes",
    "Width and height of each image: CSV with the columns image,width,height.",
    "FILE",
    is_path=True,
)
COLUMNS = Option(
    "columns",
    "Whether a line is class xc yc w h conf, or class conf xc yc w h; by default the first, unless "
    "only boxes of the second fit their images.",
    choices=("conf-last", "conf-first"),
    sides=(DETECTIONS,),
)

TASK = Option(
    "task",
    "What rows hold: boxes, polygons, boxes with keypoints, or four corners; by default as "
    "kpt_shape and the columns tell.",
    choices=("detect", "segment", "pose", "obb"),
)

CLASS_DESCRIPTIONS = Option(
    "class_descriptions",
    "What labels such as /m/0bt9lr are called: class-descriptions*.csv, LabelName,DisplayName.",
    "FILE",
    is_path=True,
)
IMAGE_LABELS = Option(
    "image_labels",
    "Which classes are verified in which images: CSV of ImageID,LabelName,Confidence, 1 where the "
    "class is there, 0 where it is not.",
    "FILE",
    sides=(TRUTH,),
    is_path=True,
)
HIERARCHY = Option(
    "hierarchy",
    "Which classes are kinds of which, as Open Images' JSON; boxes and labels count for those "
    "above too, labels of what is absent for those below.",
    "FILE",
    sides=(TRUTH,),
    is_path=True,
)
SHAPES = Option(
    "shapes",
    "Whether polygons and other shapes are an error (boxes, the default), or their bounds boxes.",
    choices=("boxes", "bounds"),
    default="boxes",
)
ATTRIBUTE_FLAGS = Option(
    "attribute_flags",
    "Attributes of objects that are flags: difficult, iscrowd, or hard=difficult,group=crowd.",
    "NAME[=FLAG],...",
    sides=(TRUTH,),
)

ANGLE_UNIT = Option(
    "angle_unit",
    "Files have cx cy w h angle in place of eight coordinates, and this is the unit of the angle.",
    choices=("degrees", "radians"),
)

_FORMATS = (
    Format(
        "coco",
        "COCO",
        "detap.formats.coco.tables",
        "coco",
        suffixes=(".json", ".json.gz"),
        heads=(b"{", b"["),
        options=(*_BOX_OPTIONS, CLASS_NAMES, DT_CLASS_NAMES, FIRST_CATEGORY_ID),
        aside="detap.formats.coco.metadata",
        ahead="detap.formats.coco.prefetch",
        by_ids=True,
        beside=BESIDE,
    ),
    Format(
        "voc",
        "VOC",
        "detap.formats.voc.tables",
        "voc2012",
        suffixes=(".xml", ".txt"),
        heads=(b"<",),
        folders=True,
        options=(IMAGE_SET, LAYOUT, *_BOX_OPTIONS, CLASS_NAMES, DT_CLASS_NAMES),
        aside="detap.formats.voc.metadata",
    ),
    Format(
        "yolo",
        "YOLO",
        "detap.formats.yolo.tables",
        "coco",
        suffixes=(".yaml", ".yml", ".txt"),
        folders=True,
        options=(
            *_BOX_OPTIONS,
            *(CLASS_NAMES, DT_CLASS_NAMES, SPLIT, IMAGE_SIZE, IMAGE_SIZES, COLUMNS, TASK),
        ),
        aside="detap.formats.yolo.metadata",
        sniff="detap.formats.yolo.sniff",
        sniffs_files=True,
    ),
    Format(
        "arrow",
        "Parquet/Arrow",
        "detap.formats.arrow.tables",
        "coco",
        suffixes=(".parquet", ".arrow", ".feather"),
        heads=(b"PAR1", b"ARROW1"),
        options=_BOX_OPTIONS,
        aside="detap.formats.arrow.metadata",
        ahead="detap.formats.arrow.prefetch",
        by_ids=True,
    ),
    Format(
        "jsonl",
        "JSON Lines",
        "detap.formats.jsonl.tables",
        "coco",
        suffixes=(".jsonl", ".jsonl.gz"),
        options=(*_BOX_OPTIONS, CLASS_NAMES, DT_CLASS_NAMES, FIRST_CATEGORY_ID),
        aside="detap.formats.jsonl.metadata",
        by_ids=True,
    ),
    Format(
        "cvat",
        "CVAT",
        "detap.formats.cvat.tables",
        "coco",
        suffixes=(".xml", ".xml.gz"),
        folders=True,
        options=(*_BOX_OPTIONS, SHAPES, ATTRIBUTE_FLAGS),
        aside="detap.formats.cvat.metadata",
        sniff="detap.formats.cvat.sniff",
        sniffs_files=True,
        coordinates="xtl, ytl, xbr, ybr",
    ),
    Format(
        "labelme",
        "LabelMe",
        "detap.formats.labelme.tables",
        "coco",
        suffixes=(".json",),
        folders=True,
        options=(*_BOX_OPTIONS, SHAPES, ATTRIBUTE_FLAGS),
        aside="detap.formats.labelme.metadata",
        sniff="detap.formats.labelme.sniff",
        sniffs_files=True,
        coordinates="points",
    ),
    Format(
        "openimages",
        "Open Images",
        "detap.formats.openimages.tables",
        "coco",
        suffixes=(".csv", ".csv.gz"),
        heads=(b"ImageID,",),
        options=(*_BOX_OPTIONS, IMAGE_SIZES, CLASS_DESCRIPTIONS, IMAGE_LABELS, HIERARCHY),
        aside="detap.formats.openimages.metadata",
        coordinates="XMin, XMax, YMin, YMax",
    ),
    Format(
        "kitti",
        "KITTI",
        "detap.formats.kitti.tables",
        "kitti",
        suffixes=(".txt",),
        folders=True,
        options=(IMAGE_SET, *_BOX_OPTIONS),
        aside="detap.formats.kitti.metadata",
        sniff="detap.formats.kitti.sniff",
    ),
    Format(
        "dota",
        "DOTA",
        "detap.formats.dota.tables",
        "dota",
        suffixes=(".txt",),
        folders=True,
        options=(*_BOX_OPTIONS, IMAGE_SET, ANGLE_UNIT),
        aside="detap.formats.dota.metadata",
        sniff="detap.formats.dota.sniff",
        boxes=(),
        coordinates="x1 y1 x2 y2 x3 y3 x4 y4",
    ),
)

FORMATS = {entry.name: entry for entry in _FORMATS}
"""The formats by name, in the order in which they are told from files."""


def register(entry: Format) -> None:
    """Add a format, before the command line is built."""
    FORMATS[entry.name] = entry


def format_named(name: str) -> Format:
    """Return a format.

    Raises
    ------
    UsageError
        Where there is none of this name.
    """
    if name not in FORMATS:
        hint = suggest(name, FORMATS) or f"use {' or '.join(FORMATS)}"
        raise UsageError(f"format {name!r} is unknown; {hint}")
    return FORMATS[name]


def options() -> dict[Option, list[Format]]:
    """Return every option of any format, and whose it is."""
    found: dict[Option, list[Format]] = {}
    for entry in FORMATS.values():
        for option in entry.options:
            found.setdefault(option, []).append(entry)
    return found


def check_options(
    names: Iterable[str], truth: Iterable[Format] = (), detections: Iterable[Format] = ()
) -> None:
    """Refuse options that no format takes on the side that they are of.

    Parameters
    ----------
    names : iterable of str
        The keywords of readers.
    truth, detections : iterable of Format
        Those of either side; of what is not read, as those of the other.

    Raises
    ------
    UsageError
    """
    sides = [*truth], [*detections]
    read = {TRUTH: sides[0] or sides[1], DETECTIONS: sides[1] or sides[0]}
    for option, whose in options().items():
        formats = [entry for side in option.sides for entry in read[side]]
        if option.name in names and not any(option in entry.options for entry in formats):
            titles = " and ".join(other.title for other in whose)
            read_as = " and ".join(dict.fromkeys(entry.name for entry in formats))
            raise UsageError(
                f"{option.spelling} is for {titles} files; these are read as {read_as}"
            )


def told(ground_truth: Path | None, detections: Path | None = None) -> Format:
    """Return the format of ground truth, by its name and content; else that of its detections.

    No more is looked at than the beginning of a few files, and only where names do not tell.

    Parameters
    ----------
    ground_truth, detections : str or path or None
        What is to be read; ``"-"`` and None tell nothing.

    Raises
    ------
    UsageError
        Where neither tells, or one may be of two formats.
    """
    sides = {TRUTH: ground_truth, DETECTIONS: detections}
    for side, path in sides.items():
        if path is not None:
            found = _the_one(path, _fitting(os.fspath(path)), side)
            if found is not None:
                return found
    named = " and ".join(os.fspath(path) for path in sides.values() if path is not None)
    choices = " or --format ".join(FORMATS)
    raise UsageError(f"the format of {named or 'no file'} cannot be told; say --format {choices}")


def _the_one(path: Path, fitting: list[str], side: str) -> Format | None:
    if len(fitting) > 1:
        option = "--gt-format" if side == TRUTH else "--dt-format"
        listed = " or ".join(FORMATS[name].title for name in fitting)
        choices = f" or {option} ".join(fitting)
        raise UsageError(f"{os.fspath(path)} may be {listed}; say {option} {choices}")
    return FORMATS[fitting[0]] if fitting else None


def _fitting(path: str) -> list[str]:
    """Return the names of the formats that a path may be of: of those that look, if any fit."""
    if path == STDIN:
        return []
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        mode = 0  # what is absent is reported by its reader
    if stat.S_ISDIR(mode):
        return _fitting_folder(path)
    name = shown(path).removesuffix("?...").lower()
    named = [entry for entry in FORMATS.values() if name.endswith(entry.suffixes)]
    if not stat.S_ISREG(mode):
        plain = [entry.name for entry in named if not entry.sniff]
        return plain[:1] or [entry.name for entry in named[:1]]
    looking = [entry for entry in named if entry.sniffs_files]
    found = [entry.name for entry in looking if import_module(entry.sniff).fits(path)]
    return found or [e.name for e in named or _of_content(path) if not e.sniff][:1]


def _fitting_folder(path: str) -> list[str]:
    """Return the formats of a folder: a data set's, or that of the files in it."""
    names, folders = _entries(path)
    found = [
        entry.name
        for entry in FORMATS.values()
        if entry.sniff
        and entry.folders
        and "annotations" not in folders
        and (folders or any(name.endswith(entry.suffixes) for name in names))
        and import_module(entry.sniff).fits(path)
    ]
    plain = _of_members(names, folders)[0]
    return [*found, plain.name] if _as_well(plain, found, names) else found


def _as_well(plain: Format, found: list[str], names: list[str]) -> bool:
    """Return whether a folder may be of a plain format: no other fits, or half as many files.

    What counts are files of its first suffix: text beside other files may be a list of classes.
    """
    others = tuple(suffix for entry in found for suffix in FORMATS[entry].suffixes)
    own = sum(name.endswith(plain.suffixes[:1]) and not name.endswith(others) for name in names)
    return not found or 2 * own >= max(1, sum(name.endswith(others) for name in names))


def _of_members(names: list[str], folders: set[str]) -> list[Format]:
    """Return the format of folders, unless all files of this one are another's."""
    whole = [entry for entry in FORMATS.values() if entry.folders and not entry.sniff]
    others = [e for e in FORMATS.values() if not e.folders and not e.sniff]
    for name in names:
        if any(name.endswith(entry.suffixes) for entry in whole):
            return whole
    found = [entry for name in names for entry in others if name.endswith(entry.suffixes)]
    return whole if folders or not found else found


def _entries(path: str) -> tuple[list[str], set[str]]:
    """Return the names of the first files of a folder, and of its folders, in lower case."""
    names: list[str] = []
    folders = set()
    with suppress(OSError), os.scandir(path) as entries:
        for entry in islice(entries, _LOOKED_AT):
            name = entry.name.lower()
            if entry.is_dir():
                folders.add(name)
            elif name[0] != ".":
                names.append(name)
    return names, {name for name in folders if name[0] != "."}


def _of_content(path: str) -> list[Format]:
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError:
        return []
    return [entry for entry in FORMATS.values() if entry.heads and head.startswith(entry.heads)]
