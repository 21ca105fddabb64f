"""Base reader for files that name their images, each with a list of objects."""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from detap.errors import InputError, Note
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.by_name.objects import detections
from detap.formats.reading.placeholder import empty_ground_truth
from detap.formats.shapes.flags import BBOX_HINT
from detap.formats.shapes.json_values import finite_number, json_value, object_of, side_of
from detap.formats.shapes.reader import ShapeReader
from detap.formats.stem_matching import base_name, without_suffix
from detap.formats.text.folder import Folder
from detap.io.digest import read_hashed
from detap.io.json_text import HOLDS_CONSTANTS, short_json
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.paths import Path
from detap.io.problems import FaultError
from detap.io.stream import read_bytes
from detap.tables.detection import Detections, GroundTruth, Name, SourceFile
from detap.text_input import quote

SCORES = ("score", "confidence")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Image(NamedTuple):
    """An image of a file.

    Attributes
    ----------
    name : object
        The name of its file; checked by the reader.
    objects : iterable of (str, object)
        Location and content of each object.
    width, height : object
        In pixels, None if unknown; checked by the reader.
    attributes : mapping of str to object
        Attributes of the image, for slices.
    """

    name: Any
    objects: Iterable[tuple[str, Any]]
    width: Any = None
    height: Any = None
    attributes: Mapping[str, Any] = _NOTHING


class Item(NamedTuple):
    """An object of a file.

    Attributes
    ----------
    label : str
    box : sequence of float
        In the reader's `box_format`.
    attributes : mapping of str to object
        Attributes, which may be flags or the score.
    corners : (4, 2) sequence of float or None
        Of a rotated box, in order around; `box` encloses it.
    """

    label: str
    box: Sequence[float]
    attributes: Mapping[str, Any] = _NOTHING
    corners: Sequence[Sequence[float]] | None = None


class DocumentReader(ShapeReader):
    """Reader of files that name their images.

    A subclass overrides :meth:`images_of`, :meth:`image_of` and :meth:`item_of`, and for files
    other than JSON :meth:`parse`.

    Parameters
    ----------
    path, limits, shapes, flags, **how
        As in :class:`ShapeReader`.
    score : str, optional
        The attribute with the score, by default ``score`` or ``confidence``.

    Attributes
    ----------
    expected : str
        The hint for other content.
    images_only : bool
        If True, objects are not read.
    file_names : dict of str to str
        The file name of each image.
    attributes : dict of str to mapping
        The attributes of each image.
    """

    expected = ""

    def __init__(
        self,
        path: Path,
        limits: Limits = DEFAULT_LIMITS,
        shapes: str = "reject",
        flags: str | None = None,
        *,
        score: str | None = None,
        **how: Any,
    ) -> None:
        super().__init__(os.fspath(path), limits, shapes, flags, **how)
        self.images_only = False
        self.score_names = (score,) if score else SCORES
        self.file_names: dict[Name, str] = {}
        self.attributes: dict[Name, Mapping[str, Any]] = {}
        self._first: dict[str, str] = {}
        self._locations: list[tuple[str, str]] = []
        self._sources: list[tuple[Folder, int]] = []

    def images_of(self, content: Any) -> Iterator[tuple[str, Any]]:
        """Yield the location and record of each image; raise FaultError for other content."""
        raise NotImplementedError

    def image_of(self, location: str, record: Any) -> Image:
        """Return the image of a record."""
        raise NotImplementedError

    def item_of(self, record: Any) -> Item | None:
        """Return the object of a record; None skips it."""
        raise NotImplementedError

    def parse(self, data: bytes, file: str) -> tuple[Any, int] | None:
        """Return the content of a file, and its number of NaN and Infinity.

        None after collecting a problem.
        """
        return json_value(data, file, self.problems, self.limits, self.expected)

    def read(self, *folders: Folder) -> Self:
        """Read the files of folders, by default the path alone; raise all problems."""
        for folder in folders or (Folder(self.given, "", "", {"": ""}),):
            before = len(self)
            for number, member in enumerate(folder.members.values()):
                file = folder.file(member) if folders else self.path
                try:
                    data, digest = read_hashed(folder.file(member), self.limits)
                except InputError as error:
                    self.problems.extend(*error.problems)
                    continue
                if digest:
                    folder.digests[number] = digest
                self.read_data(data, file)
                if len(self) > self.limits.records:
                    break
            self._sources.append((folder, len(self) - before))
        self.problems.raise_any()
        return self

    def read_data(self, data: bytes, file: str) -> None:
        """Read one file and collect its problems."""
        before = self.problems.count
        parsed = self.parse(data, file)
        if parsed is None:
            return
        content, constants = parsed
        try:
            for location, record in self.images_of(content):
                self._read_image(file, location, record)
                if self.too_many():
                    break
        except FaultError as fault:
            self.problems.add(file, "", fault.message, fault.hint)
        if constants and self.problems.count == before:
            self.problems.add(file, "", *HOLDS_CONSTANTS)

    def _read_image(self, file: str, location: str, record: Any) -> None:
        try:
            image = self.image_of(location, record)
            stem = self._begin(image, file, location)
            width, height = side_of("width", image.width), side_of("height", image.height)
            self.images[stem] = width, height
            for where, item in () if self.images_only else image.objects:
                try:
                    self._take(item, file, where)
                except FaultError as fault:
                    self.problems.add(file, where, fault.message, fault.hint)
        except FaultError as fault:
            self.problems.add(file, location, fault.message, fault.hint)

    def _begin(self, image: Image, file: str, location: str) -> str:
        """Return the stem of a new image."""
        if not isinstance(image.name, str) or not image.name.strip():
            shown = "missing" if image.name is None else short_json(image.name)
            raise FaultError(f"image name is {shown}", "write its file name")
        name = image.name.replace("\\", "/")
        stem = without_suffix(name)
        try:
            stem.encode()
        except UnicodeEncodeError:
            raise FaultError("image name has an unpaired surrogate", "use UTF-8") from None
        if stem in self._first:
            other = self.file_names[stem]
            note = "" if other == image.name else f", as {quote(other)}"
            message = f"duplicate image {quote(image.name)} (also at {self._first[stem]}{note})"
            raise FaultError(message, "keep one of them")
        self._first[stem] = location or file
        self.file_names[stem] = image.name
        self.attributes[stem] = image.attributes
        self.images[stem] = math.nan, math.nan
        return stem

    def _take(self, record: Any, file: str, location: str) -> None:
        item = self.item_of(object_of(record))
        if item is None:
            return
        score = self._score(item.attributes) if self.scored else 0.0
        values = self.object_attributes.values(item.attributes.get)
        flags = self._flags(item.attributes)
        self.add(0, item.label, item.box, score, flags, corners=item.corners)
        self.object_attributes.append(values)
        self._locations.append((file, location))

    def _score(self, attributes: Mapping[str, Any]) -> float:
        for name in self.score_names:
            if name in attributes:
                return finite_number(name, attributes[name])
        names = " or ".join(self.score_names)
        raise FaultError(f"has no {names} (ground truth?)", "detections need a score for each")

    def _flags(self, attributes: Mapping[str, Any]) -> set[str]:
        flags = set()
        for name, value in attributes.items():
            try:
                flags.add("" if value is None else self.flags.flag_of(name, str(value)))
            except ValueError:
                message = f"flag {quote(name)} is {short_json(value)}"
                raise FaultError(message, "expected true or false") from None
        return flags - {""}

    def refuse_shape(self, message: str) -> None:
        """Raise FaultError for a shape that is not a box, unless its bounds are read."""
        if self.shapes != "bbox":
            raise FaultError(message, BBOX_HINT)

    def location(self, row: int) -> tuple[str, str]:
        """Return the file and location of a box."""
        return self._locations[row]

    def sources(self) -> tuple[SourceFile, ...]:
        """Return the input sources."""
        return tuple(
            folder.source(folder.members.values(), records) for folder, records in self._sources
        )

    def ground_truth_of(self, notes: Iterable[Note] = ()) -> GroundTruth:
        """Return the boxes as ground truth."""
        return self.ground_truth(f"boxes in its {len(self.images)} images", self.sources(), notes)

    def detections_of(self, truth: GroundTruth, notes: Iterable[Note] = ()) -> Detections:
        """Return the boxes as detections, numbered as the ground truth.

        Images match by file stem if the names differ in their folders only.
        """
        objects = self.objects()
        objects = objects._replace(images=_matched(objects.images, truth.images))
        return detections(objects, truth, self, self.sources(), nonzero_notes(*notes))

    def placeholder(self) -> GroundTruth:
        """Return a ground truth without boxes, of these images and classes."""
        objects = self.objects()
        return empty_ground_truth(objects.images, objects.classes)

    @classmethod
    def images_again(cls, truth: GroundTruth) -> Self:
        """Read only the images of a ground truth again, unchecked."""
        reader = cls("")
        reader.images_only = True
        for source in truth.files:
            for member in source.members or ("",):
                file = os.path.join(source.path, member) if member else source.path
                with suppress(InputError):  # a list of names
                    reader.read_data(read_bytes(file), file)
        return reader

    @classmethod
    def image_attribute(cls, truth: GroundTruth, name: str) -> dict[Name, Any]:
        """Return an attribute of the images of a ground truth; files are read again."""
        known = set(truth.images)
        return {
            image: attributes[name]
            for image, attributes in cls.images_again(truth).attributes.items()
            if image in known and attributes.get(name) is not None
        }


def _matched(images: Sequence[Name], known: Sequence[Name]) -> tuple[Name, ...]:
    """Replace names of unknown images by the known ones of their stems, if stems are unique."""
    stems: dict[Name, Name] = {base_name(str(name)): name for name in known}
    ours = [base_name(str(name)) for name in images]
    if set(images) <= set(known) or len(stems) < len(known) or len(set(ours)) < len(ours):
        return tuple(images)
    return tuple(stems.get(stem, name) for stem, name in zip(ours, images, strict=True))
