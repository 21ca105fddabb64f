"""Registry of file formats: names, detection, options and reader modules.

Only this module has the format names. Reader modules are imported on first use. Each has

``read_ground_truth(path, *, limits, **options)``
    which returns a :class:`detap.tables.detection.GroundTruth`;
``read_detections(path, truth, *, limits, **options)``
    which returns :class:`detap.tables.detection.Detections` with the indices of `truth`.

The metadata module may have

``placeholder_ground_truth(path, options, limits)``
    which returns a ground truth without boxes, of the images and classes in detections, so that
    they can be checked without ground truth. It may change `options` for the reader;
``image_attribute(truth, name)``
    which returns the value of an attribute by image, for slices;
``file_names(truth)``
    which returns the file of each image;
``image_files(truth)``
    as :meth:`Format.image_files`, if the registry cannot state the folders.

If ground truth and detections have different formats, images are matched by file stem
(:mod:`detap.formats.stem_matching`) and classes by name.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from detap.errors import InputError, Problem, UsageError
from detap.io.limits import DEFAULT_LIMITS
from detap.io.paths import STDIN, Path, is_url, shown
from detap.text_input import suggest

if TYPE_CHECKING:
    from detap.formats.image_folders import ImageFolder
    from detap.tables.detection import Detections, GroundTruth, Name

    Table = TypeVar("Table", GroundTruth, Detections)

_HEAD = 64
"""Bytes read to detect a format by content."""
_MAX_ENTRIES = 256
"""Folder entries read to detect a format."""
_MAX_SNIFFED = 16
"""Files of a folder whose content is read to detect a format."""

TRUTH, DETECTIONS = "ground truth", "detections"
AS_IS = "as_is"
"""The option that turns failed plausibility checks into warnings."""
GEOMETRIES = ("masks", "keypoints")
"""Geometries that protocols may require in addition to boxes."""


class Option(NamedTuple):
    """A reader option.

    Attributes
    ----------
    name : str
        Keyword of the reader; ``image_set`` is ``--image-set`` on the command line.
    help : str
    metavar : str
        Placeholder of the value in the help, for options without choices.
    choices : tuple of str
    roles : tuple of str
        Readers with this option: :data:`TRUTH`, :data:`DETECTIONS` or both.
    is_path, may_be_path : bool
        True if values are, or may be, paths, which no report may overwrite. The values of other
        options are recorded in reports, because they affect comparability.
    default : str or None
        The default value, if there is one.
    keyword : str
        Another reader keyword that this option overrides for its role.
    """

    name: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    roles: tuple[str, ...] = (TRUTH, DETECTIONS)
    is_path: bool = False
    may_be_path: bool = False
    default: str | None = None
    keyword: str = ""

    def recorded(self, value: object) -> str | None:
        """Return the text of a value for reports; None for the default and for files.

        Files are recorded as inputs, by sha256.
        """
        if self.names_files or value is None:
            return None
        text = "x".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        return None if text == self.default else text

    @property
    def names_files(self) -> bool:
        """True if values are, or may be, paths."""
        return self.is_path or self.may_be_path

    @property
    def flag(self) -> str:
        """The command-line option."""
        return f"--{self.name.replace('_', '-')}"


class Format(NamedTuple):
    """A file format.

    Attributes
    ----------
    name : str
        Value of ``--format``.
    title : str
        Name in messages.
    module : str
        Reader module.
    protocol : str
        Default preset.
    suffixes : tuple of str
        File suffixes.
    heads : tuple of bytes
        First bytes after white space, to detect files without a known suffix.
    folders : bool
        True if a data set is a folder.
    subsets : tuple of str
        Files or folders of ``--split``, by :func:`detap.formats.subsets.subsets_of`. A folder with
        one has the format.
    options : tuple of Option
    metadata_module : str
        A module with `placeholder_ground_truth`, `image_attribute`, `file_names` and `image_files`.
    image_folders : tuple of str
        Folders that may have the images, relative to that of the annotations; by default those
        near a file (:func:`detap.formats.image_folders.nearby_folders`).
    prefetch_module : str
        A module with ``ground_truth(path, **options)`` and ``detections(path, **options)``, which
        start to read in threads and return the source for the readers.
    by_ids : bool
        True if images and classes have ids, as in COCO.
    same_names : bool
        True if files name images and classes as tables do, whatever the ground truth's format.
    sniff : str
        A module with ``fits(path)``, which returns True if a folder is of this format, and raises
        nothing. A match by content takes precedence over a match by name.
    sniffs_files : bool
        True if ``fits`` takes files too.
    geometries : tuple of str
        Reader keywords for geometries other than boxes: ``masks=True``.
    attributes : bool
        True if the ground-truth reader has the keyword ``attributes``, names of numbers or text of
        each object, which become `extra` columns.
    coordinates : str
        Names of the box coordinates in the files. The readers then have no ``boxes`` option.
    boxes : tuple of str
        Values of ``boxes`` that agree with `coordinates` and are therefore accepted.
    writer : str
        A module with ``files(content, notes)``, which yields names and contents of files, and adds
        notes on lost data.
    protocols : tuple of (str, str)
        Default presets of ground truth with other geometries than boxes.
    geometry_module : str
        A module with ``geometry(path, options)``, which returns the geometry of a ground truth, a
        name in `protocols` or "", and raises nothing.
    """

    name: str
    title: str
    module: str
    protocol: str
    suffixes: tuple[str, ...] = ()
    heads: tuple[bytes, ...] = ()
    folders: bool = False
    subsets: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    metadata_module: str = ""
    image_folders: tuple[str, ...] = ()
    prefetch_module: str = ""
    by_ids: bool = False
    same_names: bool = False
    sniff: str = ""
    sniffs_files: bool = False
    geometries: tuple[str, ...] = ()
    attributes: bool = False
    coordinates: str = ""
    boxes: tuple[str, ...] = ("xyxy",)
    writer: str = ""
    protocols: tuple[tuple[str, str], ...] = ()
    geometry_module: str = ""

    def default_protocol(self, path: Path | None, reading: Mapping[str, Any]) -> str:
        """Return the default preset for the ground truth of a path, before it is read."""
        if not self.geometry_module or path is None:
            return self.protocol
        geometry = import_module(self.geometry_module).geometry(os.fspath(path), reading)
        return dict(self.protocols).get(geometry, self.protocol)

    def begin(self, role: str, path: str, reading: Mapping[str, Any]) -> Any:
        """Start to read an input in a thread, if supported; return the source."""
        if not self.prefetch_module:
            return path
        prefetch = import_module(self.prefetch_module)
        begin = prefetch.ground_truth if role == TRUTH else prefetch.detections
        return begin(path, **self._reader_options(role, reading))

    def of_detections(self, path: Any) -> "Format":
        """Return the format of detections whose ground truth has this format.

        Raises
        ------
        UsageError
            If they may have either of two other formats.
        """
        names = _matching_formats(os.fspath(path))
        return self if self.name in names else _only_format(path, names, DETECTIONS) or self

    def read_ground_truth(self, path: Any, reading: Mapping[str, Any]) -> "GroundTruth":
        """Read ground truth; options for detections alone are ignored."""
        read = import_module(self.module).read_ground_truth
        given = self._reader_options(TRUTH, reading)
        with self._suggesting(path, TRUTH):
            truth: GroundTruth = read(path, **given)
        return self._with_options(replace(truth, format=self.name), TRUTH, reading)

    def read_detections(
        self, path: Any, ground_truth: "GroundTruth | None", reading: Mapping[str, Any]
    ) -> "Detections":
        """Read detections with the indices of their ground truth, or of a placeholder."""
        options = self._reader_options(DETECTIONS, reading)
        if ground_truth is None:
            ground_truth = self._placeholder(path, options)
        with self._suggesting(path, DETECTIONS):
            try:
                detections = self._read_detections(path, ground_truth, options)
            except InputError as error:
                if getattr(path, "path", path) == STDIN:
                    raise
                detections = self._read_renamed(error, path, ground_truth, options)
        return self._with_options(detections, DETECTIONS, reading)

    def _read_detections(
        self, path: Any, ground_truth: "GroundTruth", options: dict[str, Any]
    ) -> "Detections":
        read = import_module(self.module).read_detections
        detections: Detections
        gt_format = FORMATS.get(ground_truth.format, self)  # arrays have no format
        same_ids = gt_format.by_ids and self.by_ids
        if gt_format.module == self.module or same_ids or self.same_names:
            detections = read(path, ground_truth, **options)
            return detections
        from detap.formats.stem_matching import by_stem, restore_ids

        named = by_stem(
            ground_truth, gt_format.file_names(ground_truth) if gt_format.by_ids else {}
        )
        detections = restore_ids(read(path, named, **options), ground_truth)
        return detections

    def _read_renamed(
        self, error: InputError, path: Any, truth: "GroundTruth", options: dict[str, Any]
    ) -> "Detections":
        """Read detections that name the images as before an export changed their names."""
        from detap.formats.exported_names import retry_with_original_names
        from detap.formats.stem_matching import by_stem, restore_ids

        source = FORMATS.get(truth.format, self)
        try:
            named = by_stem(truth, source.file_names(truth) if source.by_ids else {})
        except (InputError, ValueError, KeyError, TypeError):
            raise error from None  # the ground truth cannot be read again
        same_ids = source.by_ids and self.by_ids
        renamed = replace(named, class_ids=truth.class_ids, format="") if same_ids else named
        file = getattr(path, "path", path)
        read = import_module(self.module).read_detections
        detections = retry_with_original_names(
            error,
            lambda table: read(file, table, **options),
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
            names = [name for name in _matching_formats(file) if FORMATS[name].sniff]
            if self.name in names or len(names) != 1:
                raise
            option = "--gt-format" if role == TRUTH else "--dt-format"
            message = f"is {FORMATS[names[0]].title}, read as {self.title}"
            hint = f"use {option} {names[0]} (format= in Python)"
            first = Problem(file, "", message, hint)
            raise InputError([first, *error.problems], error.omitted) from None

    def _with_options(self, table: "Table", role: str, reading: Mapping[str, Any]) -> "Table":
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

    def placeholder_ground_truth(self, path: Any, reading: Mapping[str, Any]) -> "GroundTruth":
        """Return a ground truth without boxes, of the images and classes in detections."""
        return self._placeholder(path, self._reader_options(DETECTIONS, reading))

    def _placeholder(self, path: Any, options: dict[str, Any]) -> "GroundTruth":
        if os.fspath(path) == STDIN:
            raise UsageError("detections cannot come from stdin without --gt")
        if not self.metadata_module:
            raise UsageError(f"{self.title} detections require --gt")
        metadata = import_module(self.metadata_module)
        limits = options.get("limits", DEFAULT_LIMITS)
        truth: GroundTruth = metadata.placeholder_ground_truth(path, options, limits)
        return truth

    def image_attribute(self, ground_truth: Any, name: str) -> dict[Any, Any]:
        """Return the value of an attribute by image.

        Raises
        ------
        InputError
            If no image has it.
        """
        read = self._metadata_function("image_attribute")
        values: dict[Any, Any] = {} if read is None else read(ground_truth, name)
        if not values:
            raise InputError(Problem(ground_truth.path, "", f"no image has an attribute {name!r}"))
        return values

    def _metadata_function(self, name: str) -> Any:
        """Return a function of the metadata module; None if there is none."""
        return (
            getattr(import_module(self.metadata_module), name, None)
            if self.metadata_module
            else None
        )

    def file_names(self, ground_truth: Any) -> "dict[Name, str]":
        """Return the file of each image, where the ground truth names it."""
        read = self._metadata_function("file_names")
        names: dict[Name, str] = {} if read is None else read(ground_truth)
        return names

    def image_files(self, ground_truth: Any) -> "tuple[list[ImageFolder], Mapping[str, str]]":
        """Return the folders that may have the images, and file names by image name.

        File names are missing if they are the names with a suffix.
        """
        find = self._metadata_function("image_files")
        if find is not None:
            result: tuple[list[ImageFolder], Mapping[str, str]] = find(ground_truth)
            return result
        from detap.formats.image_folders import nearby_folders

        names = self.file_names(ground_truth) if self.by_ids else {}
        folders = nearby_folders(ground_truth, self.image_folders)
        return folders, {str(image): name for image, name in names.items()}

    def _reader_options(self, role: str, reading: Mapping[str, Any]) -> dict[str, Any]:
        for name in GEOMETRIES:
            if reading.get(name) and name not in self.geometries:
                titles = " and ".join(f.title for f in FORMATS.values() if name in f.geometries)
                raise UsageError(
                    f"{name} are read from {titles} files; these are read as {self.name}"
                )
        available = [option for option in self.options if role in option.roles]
        if self.subsets:  # the path is that of the subset
            available = [option for option in available if option is not SPLIT]
        others = {option.name for option in options()} - {option.name for option in available}
        given = {name: value for name, value in reading.items() if name not in others}
        if role != TRUTH or not self.attributes:
            given.pop("attributes", None)
        for option in available:
            if option.keyword and option.name in given:
                given[option.keyword] = given.pop(option.name)
        if self.coordinates and (value := given.pop(BOXES.name, None)) not in (None, *self.boxes):
            raise UsageError(named_coordinates(self.title, self.coordinates, role, value))
        return given


IMAGE_SET = Option(
    "image_set",
    "Image set: a name in ImageSets/Main, or a file with one image per line.",
    "NAME|FILE",
    roles=(TRUTH,),
    may_be_path=True,
)
LAYOUT = Option(
    "layout",
    "Text files hold the detections of one class, or of one image.",
    choices=("class-files", "image-files"),
    roles=(DETECTIONS,),
)
BOXES = Option(
    "boxes",
    "Box format: x1 y1 x2 y2 (default of text files), x y width height (default of COCO), or "
    "center x, center y, width, height (YOLO only, its default). Formats that name their "
    "coordinates or store four corners accept only their own; so does a bbox column with metadata.",
    choices=("xyxy", "xywh", "cxcywh"),
)
GT_BOXES = Option(
    "gt_boxes",
    "Box format of the ground truth only.",
    choices=BOXES.choices,
    roles=(TRUTH,),
    keyword="boxes",
)
DT_BOXES = Option(
    "dt_boxes",
    "Box format of the detections only.",
    choices=BOXES.choices,
    roles=(DETECTIONS,),
    keyword="boxes",
)
_BOX_OPTIONS = (BOXES, GT_BOXES, DT_BOXES)


def named_coordinates(title: str, coordinates: str, role: str, value: str) -> str:
    """Return the message for a box format that contradicts coordinate names."""
    option, other = (GT_BOXES, DT_BOXES) if role == TRUTH else (DT_BOXES, GT_BOXES)
    other_role = DETECTIONS if role == TRUTH else TRUTH
    return (
        f"{option.flag} {value} does not apply to {title} files, which name their coordinates "
        f"({coordinates}); use {other.flag} for the {other_role}"
    )


CLASS_NAMES = Option(
    "class_names",
    "Class names of numbered classes (text files count from 0): one per line, or a data.yaml.",
    "FILE",
    is_path=True,
)
DT_CLASS_NAMES = Option(
    "dt_class_names",
    "Class names of the detections only, if numbered differently from the ground truth.",
    "FILE",
    roles=(DETECTIONS,),
    is_path=True,
)
FIRST_CATEGORY_ID = Option(
    "first_category_id",
    "category_id of the first class name; by default detected from the ids or boxes.",
    choices=("0", "1"),
    roles=(DETECTIONS,),
)
SPLIT = Option(
    "split",
    "Subset of an exported folder: train, val, test or another name; val by default in a "
    "data.yaml.",
    "NAME",
    roles=(TRUTH,),
    default="val",
)
IMAGE_SIZE = Option("image_size", "Width and height of all images, for normalized boxes.", "WxH")
IMAGE_SIZES = Option(
    "image_sizes",
    "Image sizes: CSV with columns image,width,height.",
    "FILE",
    is_path=True,
)
COLUMNS = Option(
    "columns",
    "Line format: class xc yc w h conf, or class conf xc yc w h; by default conf-last, unless only "
    "conf-first boxes fit their images.",
    choices=("conf-last", "conf-first"),
    roles=(DETECTIONS,),
)

TASK = Option(
    "task",
    "Row content: boxes, polygons, boxes with keypoints, or four corners; by default detected from "
    "kpt_shape and the columns.",
    choices=("detect", "segment", "pose", "obb"),
)

CLASS_DESCRIPTIONS = Option(
    "class_descriptions",
    "Names of labels such as /m/0bt9lr: class-descriptions*.csv with LabelName,DisplayName.",
    "FILE",
    is_path=True,
)
IMAGE_LABELS = Option(
    "image_labels",
    "Verified classes by image: CSV with ImageID,LabelName,Confidence (1 present, 0 absent).",
    "FILE",
    roles=(TRUTH,),
    is_path=True,
)
HIERARCHY = Option(
    "hierarchy",
    "Class hierarchy (Open Images JSON): boxes and present labels also count for parent classes, "
    "absent labels for child classes.",
    "FILE",
    roles=(TRUTH,),
    is_path=True,
)
SHAPES = Option(
    "shapes",
    "Reject rotated boxes, polygons and other shapes where boxes are compared (the default), or "
    "read their bounding boxes (bbox).",
    choices=("reject", "bbox"),
    default="reject",
)
ATTRIBUTE_FLAGS = Option(
    "attribute_flags",
    "Object attributes to read as flags: difficult, iscrowd, or hard=difficult,group=crowd.",
    "NAME[=FLAG],...",
    roles=(TRUTH,),
)
CLASS_ATTRIBUTE = Option(
    "class_attribute",
    "Attribute of regions with the class; required if they have several.",
    "NAME",
    roles=(TRUTH,),
)
SCORE_ATTRIBUTE = Option(
    "score_attribute",
    "Attribute or tag of objects with the score; by default score or confidence.",
    "NAME",
    roles=(DETECTIONS,),
)
MODEL_VERSION = Option(
    "model_version",
    "Model whose predictions are read, if a file has several.",
    "NAME",
    roles=(DETECTIONS,),
)

ANGLE_UNIT = Option(
    "angle_unit",
    "Angle unit; files then have cx cy w h angle instead of eight coordinates.",
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
        subsets=(
            *("annotations/instances_{split}.json", "annotations/person_keypoints_{split}.json"),
            *("{split}/_annotations.coco.json", "_annotations.coco.json"),
        ),
        options=(*_BOX_OPTIONS, CLASS_NAMES, DT_CLASS_NAMES, FIRST_CATEGORY_ID, SPLIT, SHAPES),
        metadata_module="detap.formats.coco.metadata",
        prefetch_module="detap.formats.coco.prefetch",
        by_ids=True,
        geometries=GEOMETRIES,
        attributes=True,
        writer="detap.formats.writing.coco",
    ),
    Format(
        "voc",
        "VOC",
        "detap.formats.voc.tables",
        "voc2012",
        suffixes=(".xml", ".txt"),
        heads=(b"<",),
        folders=True,
        subsets=("{split}/*.xml",),
        options=(IMAGE_SET, SPLIT, LAYOUT, *_BOX_OPTIONS, CLASS_NAMES, DT_CLASS_NAMES),
        metadata_module="detap.formats.voc.metadata",
        attributes=True,
        writer="detap.formats.writing.voc",
    ),
    Format(
        "yolo",
        "YOLO",
        "detap.formats.yolo.tables",
        "coco",
        suffixes=(".yaml", ".yml", ".data", ".txt"),
        folders=True,
        options=(
            *_BOX_OPTIONS,
            *(CLASS_NAMES, DT_CLASS_NAMES, SPLIT, IMAGE_SIZE, IMAGE_SIZES, COLUMNS, TASK, SHAPES),
        ),
        metadata_module="detap.formats.yolo.metadata",
        sniff="detap.formats.yolo.sniff",
        sniffs_files=True,
        writer="detap.formats.writing.yolo",
        geometries=GEOMETRIES,
        protocols=(("keypoints", "ultralytics-pose"), ("polygons", "coco-polygon")),
        geometry_module="detap.formats.yolo.geometry",
    ),
    Format(
        "arrow",
        "Parquet/Arrow",
        "detap.formats.arrow.tables",
        "coco",
        suffixes=(".parquet", ".arrow", ".feather"),
        heads=(b"PAR1", b"ARROW1"),
        options=_BOX_OPTIONS,
        metadata_module="detap.formats.arrow.metadata",
        prefetch_module="detap.formats.arrow.prefetch",
        by_ids=True,
    ),
    Format(
        "jsonl",
        "JSON Lines",
        "detap.formats.jsonl.tables",
        "coco",
        suffixes=(".jsonl", ".jsonl.gz"),
        options=(*_BOX_OPTIONS, CLASS_NAMES, DT_CLASS_NAMES, FIRST_CATEGORY_ID),
        metadata_module="detap.formats.jsonl.metadata",
        by_ids=True,
        attributes=True,
    ),
    Format(
        "cvat",
        "CVAT",
        "detap.formats.cvat.tables",
        "coco",
        suffixes=(".xml", ".xml.gz"),
        folders=True,
        subsets=("annotations.xml", "{split}.xml"),
        options=(*_BOX_OPTIONS, SPLIT, SHAPES, ATTRIBUTE_FLAGS),
        metadata_module="detap.formats.cvat.metadata",
        sniff="detap.formats.cvat.sniff",
        sniffs_files=True,
        attributes=True,
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
        metadata_module="detap.formats.labelme.metadata",
        sniff="detap.formats.labelme.sniff",
        sniffs_files=True,
        coordinates="points",
    ),
    Format(
        "labelstudio",
        "Label Studio",
        "detap.formats.label_studio.tables",
        "coco",
        suffixes=(".json", ".csv"),
        options=(*_BOX_OPTIONS, SHAPES, MODEL_VERSION),
        metadata_module="detap.formats.label_studio.tables",
        sniff="detap.formats.label_studio.sniff",
        sniffs_files=True,
        boxes=(),
        coordinates="x, y, width, height",
        writer="detap.formats.writing.label_studio",
    ),
    Format(
        "roboflow",
        "Roboflow",
        "detap.formats.roboflow.tables",
        "coco",
        suffixes=(".json",),
        folders=True,
        options=_BOX_OPTIONS,
        metadata_module="detap.formats.roboflow.tables",
        sniff="detap.formats.roboflow.sniff",
        sniffs_files=True,
        boxes=(),
        coordinates="x, y, width, height",
    ),
    Format(
        "openimages",
        "Open Images",
        "detap.formats.openimages.tables",
        "coco",
        suffixes=(".csv", ".csv.gz"),
        heads=(b"ImageID,",),
        options=(*_BOX_OPTIONS, IMAGE_SIZES, CLASS_DESCRIPTIONS, IMAGE_LABELS, HIERARCHY),
        metadata_module="detap.formats.openimages.metadata",
        coordinates="XMin, XMax, YMin, YMax",
    ),
    Format(
        "kitti",
        "KITTI",
        "detap.formats.kitti",
        "kitti",
        suffixes=(".txt",),
        folders=True,
        options=(IMAGE_SET, *_BOX_OPTIONS),
        metadata_module="detap.formats.kitti",
        image_folders=("../image_2", "../images", "."),
        sniff="detap.formats.kitti",
    ),
    Format(
        "dota",
        "DOTA",
        "detap.formats.dota",
        "dota",
        suffixes=(".txt",),
        folders=True,
        options=(*_BOX_OPTIONS, IMAGE_SET, ANGLE_UNIT, SHAPES),
        metadata_module="detap.formats.dota",
        image_folders=("../images", "."),
        sniff="detap.formats.dota",
        boxes=(),
        coordinates="x1 y1 x2 y2 x3 y3 x4 y4",
    ),
    Format(
        "tfcsv",
        "TensorFlow CSV",
        "detap.formats.tfcsv.tables",
        "coco",
        suffixes=(".csv", ".csv.gz"),
        subsets=("{split}/_annotations.csv",),
        options=(*_BOX_OPTIONS, CLASS_NAMES, DT_CLASS_NAMES, IMAGE_SIZES, SPLIT),
        metadata_module="detap.formats.tfcsv.tables",
        image_folders=(".", "images"),
        sniff="detap.formats.tfcsv.sniff",
        sniffs_files=True,
        coordinates="xmin, ymin, xmax, ymax",
        writer="detap.formats.writing.tfcsv",
    ),
    Format(
        "createml",
        "CreateML",
        "detap.formats.createml.tables",
        "coco",
        suffixes=(".json", ".json.gz"),
        subsets=("{split}/_annotations.createml.json",),
        options=(*_BOX_OPTIONS, SPLIT),
        metadata_module="detap.formats.createml.tables",
        image_folders=(".", "images"),
        sniff="detap.formats.createml.sniff",
        sniffs_files=True,
        boxes=(),
        coordinates="x, y, width, height",
        writer="detap.formats.writing.createml",
    ),
    Format(
        "via",
        "VIA",
        "detap.formats.via.tables",
        "coco",
        suffixes=(".json", ".json.gz", ".csv", ".csv.gz"),
        options=(*_BOX_OPTIONS, SHAPES, ATTRIBUTE_FLAGS, CLASS_ATTRIBUTE),
        metadata_module="detap.formats.via.tables",
        image_folders=(".", "images"),
        sniff="detap.formats.via.sniff",
        sniffs_files=True,
        attributes=True,
        boxes=("xywh",),
        coordinates="x, y, width, height",
        writer="detap.formats.writing.via",
    ),
    Format(
        "datumaro",
        "Datumaro",
        "detap.formats.datumaro.tables",
        "coco",
        suffixes=(".json", ".json.gz"),
        subsets=("annotations/{split}.json", "{split}.json"),
        options=(*_BOX_OPTIONS, SPLIT, SHAPES, ATTRIBUTE_FLAGS, SCORE_ATTRIBUTE),
        metadata_module="detap.formats.datumaro.tables",
        sniff="detap.formats.datumaro.sniff",
        sniffs_files=True,
        attributes=True,
        boxes=("xywh",),
        coordinates="bbox",
        writer="detap.formats.writing.datumaro",
    ),
    Format(
        "supervisely",
        "Supervisely",
        "detap.formats.supervisely.tables",
        "coco",
        suffixes=(".json",),
        folders=True,
        options=(*_BOX_OPTIONS, SHAPES, ATTRIBUTE_FLAGS, SCORE_ATTRIBUTE),
        metadata_module="detap.formats.supervisely.tables",
        image_folders=("../img", "."),
        sniff="detap.formats.supervisely.sniff",
        sniffs_files=True,
        attributes=True,
        coordinates="points",
        writer="detap.formats.writing.supervisely",
    ),
    Format(
        "npz",
        "detap table",
        "detap.formats.npz",
        "coco",
        suffixes=(".npz",),
        metadata_module="detap.formats.npz",
        same_names=True,
        geometries=GEOMETRIES,
        coordinates="x1, y1, x2, y2",
    ),
)

_UNSUPPORTED = {
    ".tfrecord": ("TFRecord", "export COCO JSON, or the CSV that it was made from"),
    ".record": ("TFRecord", "export COCO JSON, or the CSV that it was made from"),
    ".cache": ("a cache of Ultralytics", "use the data.yaml, or the folder of the labels"),
}
"""Titles and hints by a part of the file name."""

FORMATS = {file_format.name: file_format for file_format in _FORMATS}
"""Formats by name, in order of detection."""


def register(file_format: Format) -> None:
    """Add a format, before the command line is built."""
    FORMATS[file_format.name] = file_format


def format_named(name: str) -> Format:
    """Return the format of a name.

    Raises
    ------
    UsageError
        If there is none.
    """
    if name not in FORMATS:
        hint = suggest(name, FORMATS) or f"use {' or '.join(FORMATS)}"
        raise UsageError(f"format {name!r} is unknown; {hint}")
    return FORMATS[name]


def default_protocol(ground_truth: "GroundTruth") -> str:
    """Return the default preset of a ground truth: that of its format, ``coco`` for arrays."""
    file_format = FORMATS.get(ground_truth.format)
    if file_format is None:
        return "coco"
    return next(
        (
            preset
            for name, preset in file_format.protocols
            if getattr(ground_truth, name) is not None
        ),
        file_format.protocol,
    )


def options() -> dict[Option, list[Format]]:
    """Return the options of all formats, each with its formats."""
    formats_by_option: dict[Option, list[Format]] = {}
    for file_format in FORMATS.values():
        for option in file_format.options:
            formats_by_option.setdefault(option, []).append(file_format)
    return formats_by_option


def check_options(
    names: Iterable[str], ground_truth: Iterable[Format] = (), detections: Iterable[Format] = ()
) -> None:
    """Raise UsageError for options that no format of their role has.

    Parameters
    ----------
    names : iterable of str
        Reader keywords.
    ground_truth, detections : iterable of Format
        Formats of each role; a role without formats has those of the other.

    Raises
    ------
    UsageError
    """
    gt_formats, dt_formats = [*ground_truth], [*detections]
    by_role = {TRUTH: gt_formats or dt_formats, DETECTIONS: dt_formats or gt_formats}
    for option, supported in options().items():
        formats = [file_format for role in option.roles for file_format in by_role[role]]
        if option.name in names and not any(option in f.options for f in formats):
            titles = " and ".join(f.title for f in supported)
            read_as = " and ".join(dict.fromkeys(f.name for f in formats))
            raise UsageError(f"{option.flag} is for {titles} files; these are read as {read_as}")


def detect_format(ground_truth: Path | None, detections: Path | None = None) -> Format:
    """Detect the format of ground truth, or else of detections, by name and content.

    Only the first bytes of a few files are read, and only if names are ambiguous.

    Parameters
    ----------
    ground_truth, detections : str or path or None
        The inputs; ``"-"`` and None are ignored.

    Raises
    ------
    UsageError
        If no format matches, or several do.
    """
    paths = {TRUTH: ground_truth, DETECTIONS: detections}
    for role, path in paths.items():
        if path is not None:
            file_format = _only_format(path, _matching_formats(os.fspath(path)), role)
            if file_format is not None:
                return file_format
    given = [os.fspath(path) for path in paths.values() if path is not None]
    for text in given:
        for part, (title, hint) in _UNSUPPORTED.items():
            if part in os.path.basename(text).lower():
                raise InputError(Problem(shown(text), "", f"{title} is not supported", hint))
    for text in given:
        if text != STDIN and not is_url(text) and not os.path.lexists(text):
            raise InputError(Problem(text, "", "no such file or directory"))
    inputs = " and ".join(given) or "no file"
    choices = " or --format ".join(FORMATS)
    raise UsageError(
        f"cannot detect the format of {inputs}; use --format {choices} (format= in Python)"
    )


def _only_format(path: Path, names: list[str], role: str) -> Format | None:
    if len(names) > 1:
        option = "--gt-format" if role == TRUTH else "--dt-format"
        titles = " or ".join(FORMATS[name].title for name in names)
        choices = f" or {option} ".join(names)
        message = f"{os.fspath(path)} may be {titles}; use {option} {choices} (format= in Python)"
        raise UsageError(message)
    return FORMATS[names[0]] if names else None


def _matching_formats(path: str) -> list[str]:
    """Return the names of the possible formats; sniffed formats take precedence."""
    if path == STDIN:
        return []
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        mode = 0  # the reader reports missing files
    if stat.S_ISDIR(mode):
        return _matching_folder_formats(path)
    name = shown(path).removesuffix("?...").lower()
    by_suffix = [f for f in FORMATS.values() if name.endswith(f.suffixes)]
    if not stat.S_ISREG(mode):
        plain = [f.name for f in by_suffix if not f.sniff]
        return plain[:1] or [f.name for f in by_suffix[:1]]
    sniffed = [f.name for f in by_suffix if f.sniffs_files and import_module(f.sniff).fits(path)]
    return sniffed or [f.name for f in by_suffix or _by_content(path) if not f.sniff][:1]


def _matching_folder_formats(path: str) -> list[str]:
    """Return the possible formats of a folder: a data set, or files."""
    exported = [f.name for f in FORMATS.values() if _has_subsets(f, path)]
    if exported:
        return exported
    entries, folders = _entries(path)
    names = [name.lower() for name in entries]
    sniffed = [
        f.name
        for f in FORMATS.values()
        if f.sniff
        and f.folders
        and "annotations" not in folders
        and (folders or any(name.endswith(f.suffixes) for name in names))
        and import_module(f.sniff).fits(path)
    ]
    of_files = [
        name
        for name in _formats_of_files(path, entries)
        if name not in sniffed and (FORMATS[name].sniff or not sniffed)
    ]
    if of_files:
        return [*sniffed, *of_files]
    plain = _formats_of_entries(names, folders)[0]
    return [*sniffed, plain.name] if _is_possible(plain, sniffed, names) else sniffed


def _has_subsets(file_format: Format, path: str) -> bool:
    """Return True if a folder has subsets of a format; of some their content is detected too."""
    from detap.formats.subsets import subsets_of

    files = [*subsets_of(path, file_format.subsets).values()][:_MAX_SNIFFED]
    if not files or not file_format.sniff:
        return bool(files)
    return all(map(import_module(file_format.sniff).fits, files))


def _formats_of_files(path: str, names: list[str]) -> list[str]:
    """Return the formats of the first files, if the content of one is that of a file format."""
    of_files = [f for f in FORMATS.values() if f.sniffs_files and not f.folders]
    suffixes = tuple(suffix for f in of_files for suffix in f.suffixes)
    files = (name for name in names if name.lower().endswith(suffixes))
    matches = {
        name
        for file in islice(files, _MAX_SNIFFED)
        for name in _matching_formats(os.path.join(path, file))
    }
    if not any(f.name in matches for f in of_files):
        return []
    return [name for name in FORMATS if name in matches]


def _is_possible(plain: Format, sniffed: list[str], names: list[str]) -> bool:
    """Return True if no format was sniffed, or `plain` has half as many files.

    Only its first suffix counts: a text file in a folder of other files may list the classes.
    """
    suffixes = tuple(suffix for name in sniffed for suffix in FORMATS[name].suffixes)
    count = sum(n.endswith(plain.suffixes[:1]) and not n.endswith(suffixes) for n in names)
    return not sniffed or 2 * count >= max(1, sum(n.endswith(suffixes) for n in names))


def _formats_of_entries(names: list[str], folders: set[str]) -> list[Format]:
    """Return the folder formats, or the file formats if only their files are present."""
    of_folders = [f for f in FORMATS.values() if f.folders and not f.sniff]
    of_files = [f for f in FORMATS.values() if not f.folders and not f.sniff]
    for name in names:
        if any(name.endswith(f.suffixes) for f in of_folders):
            return of_folders
    matches = [f for name in names for f in of_files if name.endswith(f.suffixes)]
    return matches if matches and "annotations" not in folders else of_folders


def _entries(path: str) -> tuple[list[str], set[str]]:
    """Return the names of the first files and subfolders of a folder."""
    names: list[str] = []
    folders = set()
    with suppress(OSError), os.scandir(path) as entries:
        for entry in islice(entries, _MAX_ENTRIES):
            if entry.is_dir():
                folders.add(entry.name.lower())
            elif entry.name[0] != ".":
                names.append(entry.name)
    return names, {name for name in folders if name[0] != "."}


def _by_content(path: str) -> list[Format]:
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError:
        return []
    return [f for f in FORMATS.values() if f.heads and head.startswith(f.heads)]
