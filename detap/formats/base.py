"""The base class of formats.

If ground truth and detections have different formats, images are matched by file stem
(:mod:`detap.formats.stem_matching`) and classes by name.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from detap.errors import InputError, Note, Problem, UsageError
from detap.formats.catalogue import FORMATS, Line, options
from detap.formats.content import Content
from detap.formats.detection import matching_formats, only_format
from detap.formats.image_folders import ImageFolder, nearby_folders
from detap.formats.options import (
    AS_IS,
    BOXES,
    DETECTIONS,
    GEOMETRIES,
    SPLIT,
    TRUTH,
    named_coordinates,
)
from detap.formats.stem_matching import by_stem, restore_ids, retry_with_original_names
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import STDIN, Path
from detap.tables.detection import Detections, GroundTruth, Name

Table = TypeVar("Table", GroundTruth, Detections)


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
        """Return the folders that may have the images, and file names by image name.

        File names are missing if they are the names with a suffix.
        """
        names = self.file_names(ground_truth) if self.by_ids else {}
        folders = nearby_folders(ground_truth, self.image_folders)
        return folders, {str(image): name for image, name in names.items()}

    def write(self, content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
        """Yield names and contents of files; add notes on lost data."""
        raise NotImplementedError

    def geometry(self, path: str, reading: Mapping[str, Any]) -> str:
        """Return the geometry of a ground truth, in `geometry_protocols`, or ""; raise nothing."""
        return ""

    def source(self, path: str) -> Any:
        """Return the input of the readers for a path; it may know the progress of reading."""
        return path

    def begin_detections(self, source: Any, reading: Mapping[str, Any]) -> None:
        """Begin to read detections in a thread, as far as that needs no ground truth."""

    def default_protocol(self, path: Path | None, reading: Mapping[str, Any]) -> str:
        """Return the default preset for the ground truth of a path, before it is read."""
        geometry = "" if path is None else self.geometry(os.fspath(path), reading)
        return self.geometry_protocols.get(geometry, self.protocol)

    def protocol_of(self, ground_truth: GroundTruth) -> str:
        """Return the default preset of a ground truth."""
        for geometry, preset in self.geometry_protocols.items():
            if getattr(ground_truth, geometry) is not None:
                return preset
        return self.protocol

    def of_detections(self, path: Any) -> "Format":
        """Return the format of detections whose ground truth has this format."""
        names = matching_formats(os.fspath(path))
        return self if self.name in names else only_format(path, names, DETECTIONS) or self

    def read_ground_truth(self, path: Any, reading: Mapping[str, Any]) -> GroundTruth:
        """Read ground truth; options for detections alone are ignored."""
        given = self.reader_options(TRUTH, reading)
        with self._suggesting(path, TRUTH):
            truth = self.read_truth_file(path, **given)
        return self._with_options(replace(truth, format=self.name), TRUTH, reading)

    def read_detections(
        self, path: Any, ground_truth: GroundTruth | None, reading: Mapping[str, Any]
    ) -> Detections:
        """Read detections with the indices of their ground truth, or of a placeholder."""
        given = self.reader_options(DETECTIONS, reading)
        if ground_truth is None:
            ground_truth = self._placeholder(path, given)
        with self._suggesting(path, DETECTIONS):
            try:
                detections = self._read_detections(path, ground_truth, given)
            except InputError as error:
                if getattr(path, "path", path) == STDIN:
                    raise
                detections = self._read_renamed(error, path, ground_truth, given)
        return self._with_options(detections, DETECTIONS, reading)

    def _read_detections(
        self, path: Any, ground_truth: GroundTruth, given: dict[str, Any]
    ) -> Detections:
        gt_format = FORMATS.get(ground_truth.format, self)  # arrays have no format
        same_ids = gt_format.by_ids and self.by_ids
        if gt_format is self or same_ids or self.same_names:
            return self.read_detections_file(path, ground_truth, **given)
        named = gt_format._by_stem(ground_truth)
        return restore_ids(self.read_detections_file(path, named, **given), ground_truth)

    def _by_stem(self, ground_truth: GroundTruth) -> GroundTruth:
        """Return ground truth of this format with file stems as image names."""
        return by_stem(ground_truth, self.file_names(ground_truth) if self.by_ids else {})

    def _read_renamed(
        self, error: InputError, path: Any, truth: GroundTruth, given: dict[str, Any]
    ) -> Detections:
        """Read detections that name the images as before an export changed their names."""
        source = FORMATS.get(truth.format, self)
        try:
            named = source._by_stem(truth)
        except (InputError, ValueError, KeyError, TypeError):
            raise error from None  # the ground truth cannot be read again
        same_ids = source.by_ids and self.by_ids
        renamed = replace(named, class_ids=truth.class_ids, format="") if same_ids else named
        file = getattr(path, "path", path)
        detections = retry_with_original_names(
            error,
            lambda table: self.read_detections_file(file, table, **given),
            renamed,
            tuple(map(str, named.images)),
        )
        return restore_ids(detections, truth)

    @contextmanager
    def _suggesting(self, path: Any, role: str) -> Iterator[None]:
        """Precede the problems of an input by its format, if the content is of another one."""
        try:
            yield
        except InputError as error:
            is_path = isinstance(path, str | os.PathLike)  # else a stream that has begun
            file = os.fspath(path) if is_path else error.problems[0].file
            names = [name for name in matching_formats(file) if FORMATS.lines[name].fits]
            if self.name in names or len(names) != 1:
                raise
            option = "--gt-format" if role == TRUTH else "--dt-format"
            message = f"is {FORMATS.lines[names[0]].title}, read as {self.title}"
            hint = f"use {option} {names[0]} (format= in Python)"
            first = Problem(file, "", message, hint)
            raise InputError([first, *error.problems], error.omitted) from None

    def _with_options(self, table: Table, role: str, reading: Mapping[str, Any]) -> Table:
        """Record the reader options in the table's files."""
        given = {
            option.name: option.recorded(reading[option.name])
            for option in self.options
            if role in option.roles and option.name in reading
        }
        if reading.get(AS_IS):
            given[AS_IS] = "yes"
        recorded = tuple(sorted((name, text) for name, text in given.items() if text is not None))
        if not recorded:
            return table
        return replace(table, files=tuple(file._replace(reading=recorded) for file in table.files))

    def placeholder_ground_truth(self, path: Any, reading: Mapping[str, Any]) -> GroundTruth:
        """Return a ground truth without boxes, of the images and classes in detections."""
        return self._placeholder(path, self.reader_options(DETECTIONS, reading))

    def _placeholder(self, path: Any, given: dict[str, Any]) -> GroundTruth:
        if os.fspath(getattr(path, "path", path)) == STDIN:
            raise UsageError("detections cannot come from stdin without --gt")
        if not hasattr(self, "placeholder"):
            raise UsageError(f"{self.title} detections require --gt")
        limits: Limits = given.get("limits", DEFAULT_LIMITS)
        return self.placeholder(path, given, limits)

    def image_attribute(self, ground_truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return the value of an attribute by image; raise InputError if no image has it."""
        values = self.attribute_values(ground_truth, name)
        if not values:
            raise InputError(Problem(ground_truth.path, "", f"no image has an attribute {name!r}"))
        return values

    def reader_options(self, role: str, reading: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keywords of the reader of a role; those of other formats are ignored."""
        for name in GEOMETRIES:
            if reading.get(name) and name not in self.geometries:
                files = (f for f in FORMATS.values() if name in f.geometries and not f.same_names)
                titles = " and ".join(file_format.title for file_format in files)
                raise UsageError(
                    f"{name} are read from {titles} files; these are read as {self.name}"
                )
        available = [option for option in self.options if role in option.roles]
        if self.subsets:  # the path is that of the subset
            available = [option for option in available if option is not SPLIT]
        others = {option.name for option in options()} - {option.name for option in available}
        given = {name: value for name, value in reading.items() if name not in others}
        if role != TRUTH or not self.has_attributes:
            given.pop("attributes", None)
        for option in available:
            if option.keyword and option.name in given:
                given[option.keyword] = given.pop(option.name)
        if self.coordinates and (value := given.pop(BOXES.name, None)) not in (None, *self.boxes):
            raise UsageError(named_coordinates(self.title, self.coordinates, role, value))
        return given
