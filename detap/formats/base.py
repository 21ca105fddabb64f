"""The base class of formats."""

import os
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from detap.errors import InputError, Note, Problem
from detap.formats.content import Content
from detap.formats.image_folders import ImageFolder, nearby_folders
from detap.formats.options import Option
from detap.io.paths import Path
from detap.tables.detection import Detections, GroundTruth, Name


class Line(NamedTuple):
    """A format before its module is imported."""

    name: str  # value of --format
    title: str  # in messages
    reader: str  # the subclass of `detap.formats.base.Format`, with its module
    suffixes: tuple[str, ...]
    options: tuple[Option, ...] = ()  # of the format alone, in the catalogue
    heads: tuple[bytes, ...] = ()
    """First bytes after white space, to detect files without a known suffix."""
    fits: Literal["", "folders", "files"] = ""
    """Inputs that the format's ``fits`` detects by content: none, folders, or files too.

    It is "files" for lines with a `pattern`. A match takes precedence over one by name.
    """
    pattern: bytes = b""
    """Regular expression of the first bytes after white space; else ``fits`` is not asked."""
    folders: bool = False  # True if a data set is a folder
    inside: str = ""  # a folder of the data set that may have its text files
    subsets: tuple[str, ...] = ()
    """Files or folders of ``--split`` (`detap.formats.subsets`), which are of the format."""
    writes: bool = False  # True if the format has `write`


class Format:
    """A file format; its line in the catalogue has name, title, suffixes and options.

    A subclass sets the attributes and overrides the methods that differ, at least
    :meth:`read_truth_file` and :meth:`read_detections_file`.
    """

    protocol: ClassVar[str] = "coco"  # default preset
    geometry_protocols: ClassVar[Mapping[str, str]] = MappingProxyType({})  # of other geometries
    by_ids: ClassVar[bool] = False  # images and classes have ids, as in COCO
    same_names: ClassVar[bool] = False  # images and classes are named as in tables
    geometries: ClassVar[tuple[str, ...]] = ()  # keywords for others than boxes: masks=True
    has_attributes: ClassVar[bool] = False
    """True if the ground-truth reader has ``attributes``: names of numbers or text of objects."""
    coordinates: ClassVar[str] = ""
    """Names of the box coordinates in the files. The readers then have no ``boxes`` option."""
    boxes: ClassVar[tuple[str, ...]] = ("xyxy",)
    """Values of ``boxes`` that agree with `coordinates` and are therefore accepted."""
    image_folders: ClassVar[tuple[str, ...]] = ()
    """Folders that may have the images, relative to the annotations; by default those nearby."""

    read_truth_file: ClassVar[Callable[..., GroundTruth]]
    """Reads a path with the options of the format, and ``limits``."""
    read_detections_file: ClassVar[Callable[..., Detections]]
    """Also has the ground truth, whose indices the detections get."""
    placeholder: ClassVar[Callable[..., GroundTruth]]
    """Returns the images and classes in detections, from path, options and limits; optional.

    It may change the options for the reader.
    """

    def __init__(self, line: Line) -> None:
        self.line = line
        self.name, self.title = line.name, line.title
        self.suffixes, self.options = line.suffixes, line.options
        self.folders, self.subsets = line.folders, line.subsets

    def fits(self, path: str) -> bool:
        """Return True if the content of a path is of this format; raise nothing."""
        return False

    def attribute_values(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the value of an attribute by image, for slices; files may be read again."""
        return {}

    def file_names(self, ground_truth: GroundTruth) -> dict[Name, str]:
        """Return the file of each image, where the ground truth names it."""
        return {}

    def image_files(self, ground_truth: GroundTruth) -> tuple[list[ImageFolder], Mapping[str, str]]:
        """Return the folders that may have the images, and file names that differ from names."""
        names = self.file_names(ground_truth) if self.by_ids else {}
        folders = nearby_folders(ground_truth, self.image_folders)
        return folders, {str(image): name for image, name in names.items()}

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield names and contents of files; add notes on lost data."""
        raise NotImplementedError

    def geometry(self, path: str, reading: Mapping[str, Any]) -> str:
        """Return the geometry of a ground truth, in `geometry_protocols`, or ""; raise nothing."""
        return ""

    def shapes_of_results(self, path: str) -> tuple[str, bool]:
        """Return the geometry in `geometries` that results have, or "", and if they have boxes."""
        return "", True

    def source(self, path: str) -> Any:
        """Return the input of the readers for a path; it may know the progress of reading."""
        return path

    def begin_detections(self, source: Any, reading: Mapping[str, Any]) -> None:
        """Begin to read detections in a thread, as far as that needs no ground truth."""

    def default_protocol(self, path: Path | None, reading: Mapping[str, Any]) -> str:
        """Return the default preset for the ground truth of a path, before it is read."""
        geometry = "" if path is None else self.geometry(os.fspath(path), reading)
        return self.geometry_protocols.get(geometry, self.protocol)

    def image_attribute(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the value of an attribute by image; raise InputError if no image has it."""
        values = self.attribute_values(ground_truth, name)
        if not values:
            raise InputError(Problem(ground_truth.path, "", f"no image has an attribute {name!r}"))
        return values
