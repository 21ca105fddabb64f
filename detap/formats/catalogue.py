"""The list of all formats: a line each, which names the class that reads it.

A format's module is imported when its name, a suffix or content asks for it.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module

from detap.errors import UsageError
from detap.formats import options as opt
from detap.formats.base import Format, Line
from detap.tables.detection import GroundTruth
from detap.text_input import suggest

_JSON, _LINES, _CSV = ((suffix, f"{suffix}.gz") for suffix in (".json", ".jsonl", ".csv"))
_SHAPES = (opt.SHAPES, opt.ATTRIBUTE_FLAGS)
_NAMES = (opt.CLASS_NAMES, opt.DT_CLASS_NAMES)

LINES = (
    Line(
        "coco",
        "COCO",
        "detap.formats.coco.format.Coco",
        _JSON,
        (*_NAMES, opt.FIRST_CATEGORY_ID, opt.SPLIT, opt.SHAPES),
        heads=(b"{", b"["),
        subsets=(
            *("annotations/instances_{split}.json", "annotations/person_keypoints_{split}.json"),
            *("{split}/_annotations.coco.json", "_annotations.coco.json"),
        ),
        writes=True,
    ),
    Line(
        "voc",
        "VOC",
        "detap.formats.voc.tables.Voc",
        (".xml", ".txt"),
        (opt.IMAGE_SET, opt.SPLIT, opt.SUBFOLDERS, opt.LAYOUT, *_NAMES),
        heads=(b"<",),
        folders=True,
        subsets=("{split}/*.xml",),
        writes=True,
    ),
    Line(
        "yolo",
        "YOLO",
        "detap.formats.yolo.format.Yolo",
        (".yaml", ".yml", ".data", ".txt"),
        (
            *(*_NAMES, opt.SPLIT, opt.IMAGE_SIZE, opt.IMAGE_SIZES),
            *(opt.COLUMNS, opt.TASK, opt.SHAPES),
        ),
        fits="files",
        folders=True,
        writes=True,
    ),
    Line(
        "arrow",
        "Parquet/Arrow",
        "detap.formats.arrow.format.Arrow",
        (".parquet", ".arrow", ".feather"),
        heads=(b"PAR1", b"ARROW1"),
    ),
    Line(
        "jsonl",
        "JSON Lines",
        "detap.formats.jsonl.JsonLines",
        _LINES,
        (*_NAMES, opt.FIRST_CATEGORY_ID),
    ),
    Line(
        "cvat",
        "CVAT",
        "detap.formats.cvat.Cvat",
        (".xml", ".xml.gz"),
        (opt.SPLIT, *_SHAPES),
        pattern=rb".*annotations",
        folders=True,
        subsets=("annotations.xml", "{split}.xml"),
    ),
    Line(
        "labelme",
        "LabelMe",
        "detap.formats.labelme.LabelMe",
        (".json",),
        (*_SHAPES, opt.SUBFOLDERS),
        pattern=rb'\{.*"(shapes|flags|imageData|imagePath|shape_type)"',
        folders=True,
    ),
    Line(
        "labelstudio",
        "Label Studio",
        "detap.formats.label_studio.LabelStudio",
        (".json", ".csv"),
        (opt.SHAPES, opt.MODEL_VERSION),
        pattern=rb'\[.*"(annotations|completions|predictions|lead_time)"|[^\n]*lead_time',
        writes=True,
    ),
    Line(
        "roboflow",
        "Roboflow",
        "detap.formats.roboflow.Roboflow",
        (".json",),
        pattern=rb'\{.*"predictions"',
        folders=True,
    ),
    Line(
        "predictions",
        "Inference output",
        "detap.formats.predictions.InferenceOutput",
        (*_JSON, *_LINES),
        (*_NAMES, opt.IMAGE_SIZES),
        pattern=rb'[{\[].*"(relative_coordinates|frame_id|bboxes|boxes|box|labels|predictions)"',
        folders=True,
    ),
    Line(
        "openimages",
        "Open Images",
        "detap.formats.openimages.tables.OpenImages",
        _CSV,
        (opt.IMAGE_SIZES, opt.CLASS_DESCRIPTIONS, opt.IMAGE_LABELS, opt.HIERARCHY),
        heads=(b"ImageID,",),
    ),
    Line(
        "kitti",
        "KITTI",
        "detap.formats.kitti.Kitti",
        (".txt",),
        (opt.IMAGE_SET,),
        fits="folders",
        folders=True,
    ),
    Line(
        "dota",
        "DOTA",
        "detap.formats.dota.Dota",
        (".txt",),
        (opt.IMAGE_SET, opt.ANGLE_UNIT, opt.SHAPES),
        fits="folders",
        folders=True,
    ),
    Line(
        "visdrone",
        "VisDrone",
        "detap.formats.visdrone.VisDrone",
        (".txt",),
        (opt.IMAGE_SIZES,),
        fits="folders",
        folders=True,
        inside="annotations",
    ),
    Line(
        "tfcsv",
        "TensorFlow CSV",
        "detap.formats.tfcsv.TensorFlowCsv",
        _CSV,
        (*_NAMES, opt.IMAGE_SIZES, opt.SPLIT),
        fits="files",
        subsets=("{split}/_annotations.csv",),
        writes=True,
    ),
    Line(
        "createml",
        "CreateML",
        "detap.formats.createml.CreateMl",
        _JSON,
        (opt.SPLIT,),
        pattern=rb'\[.*"annotations"',
        subsets=("{split}/_annotations.createml.json",),
        writes=True,
    ),
    Line(
        "via",
        "VIA",
        "detap.formats.via.Via",
        (*_JSON, *_CSV),
        (*_SHAPES, opt.CLASS_ATTRIBUTE),
        pattern=rb'.*(_via_|"regions"|"base64_img_data"|region_shape_attributes|"(project|file)"\s*:)',
        writes=True,
    ),
    Line(
        "datumaro",
        "Datumaro",
        "detap.formats.datumaro.Datumaro",
        _JSON,
        (opt.SPLIT, *_SHAPES, opt.SCORE_ATTRIBUTE),
        pattern=rb'\{.*"categories"\s*:\s*\{',
        subsets=("annotations/{split}.json", "{split}.json"),
        writes=True,
    ),
    Line(
        "supervisely",
        "Supervisely",
        "detap.formats.supervisely.Supervisely",
        (".json",),
        (*_SHAPES, opt.SCORE_ATTRIBUTE),
        pattern=rb'\{.*"objects"',
        folders=True,
        writes=True,
    ),
    Line(
        "scalabel",
        "Scalabel",
        "detap.formats.scalabel.Scalabel",
        _JSON,
        pattern=rb'(\[|\{.*"frames").*"name"',
        folders=True,
        writes=True,
    ),
    Line(
        "crowdhuman",
        "CrowdHuman",
        "detap.formats.crowdhuman.CrowdHuman",
        (".odgt", ".odgt.gz", *_LINES, *_JSON),
        (opt.BOX,),
        pattern=rb'\{.*"(gtboxes|dtboxes)"\s*:',
    ),
    Line(
        "mot",
        "MOTChallenge",
        "detap.formats.mot.MotChallenge",
        (".txt",),
        pattern=rb"[0-9]+ *,[^A-Za-z]*$",
        folders=True,
        writes=True,
    ),
    Line(
        "sagemaker",
        "SageMaker",
        "detap.formats.sagemaker.SageMaker",
        (".manifest", *_LINES, *_JSON),
        (opt.LABEL_ATTRIBUTE,),
        pattern=rb'\{.*"source-ref"\s*:',
    ),
    Line(
        "responses",
        "model answers",
        "detap.formats.responses.format.Responses",
        (*_LINES, *_JSON),
        (*opt.DIALECT_OPTIONS, opt.MISSING_RESPONSES, opt.IMAGE_SIZES),
        pattern=rb'(\[\s*)?\{.*"response"\s*:',
    ),
    Line("npz", "detap table", "detap.formats.npz.Npz", (".npz",)),
)


class _Formats(Mapping[str, Format]):
    """Formats by name, in order of detection; a class is imported when it is first asked for."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self._formats: dict[str, Format] = {}
        for line in LINES:
            boxes = () if line.name == "npz" else opt.BOX_OPTIONS  # known in saved tables
            options = (*boxes, *line.options, opt.EXTRA_IMAGES)
            fits = "files" if line.pattern else line.fits
            self.lines[line.name] = line._replace(options=options, fits=fits)

    def __getitem__(self, name: str) -> Format:
        if name not in self._formats:
            line = self.lines[name]
            module, _, kind = line.reader.rpartition(".")
            self._formats[name] = getattr(import_module(module), kind)(line)
        return self._formats[name]

    def __contains__(self, name: object) -> bool:
        return name in self.lines

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)


FORMATS = _Formats()


def format_named(name: str) -> Format:
    """Return the format of a name; raise UsageError if there is none."""
    if name not in FORMATS:
        hint = suggest(name, FORMATS) or f"use {' or '.join(FORMATS)}"
        raise UsageError(f"format {name!r} is unknown; {hint}")
    return FORMATS[name]


def default_protocol(ground_truth: GroundTruth) -> str:
    """Return the default preset of a ground truth: that of its format, ``coco`` for arrays."""
    file_format = FORMATS.get(ground_truth.format)
    if file_format is None:
        return "coco"
    for geometry, preset in file_format.geometry_protocols.items():
        if getattr(ground_truth, geometry) is not None:
            return preset
    return file_format.protocol


def options() -> dict[opt.Option, list[Line]]:
    """Return the options of all formats, each with its formats."""
    formats_by_option: dict[opt.Option, list[Line]] = {}
    for line in FORMATS.lines.values():
        for option in line.options:
            formats_by_option.setdefault(option, []).append(line)
    return formats_by_option


def check_options(
    names: Iterable[str],
    ground_truth: Iterable[Format] = (),
    detections: Iterable[Format] = (),
) -> None:
    """Raise UsageError for options that no format of their role has, or else of the other."""
    gt_formats, dt_formats = [*ground_truth], [*detections]
    by_role = {opt.TRUTH: gt_formats or dt_formats, opt.DETECTIONS: dt_formats or gt_formats}
    for option, supported in options().items():
        formats = [file_format for role in option.roles for file_format in by_role[role]]
        if option.name in names and not any(option in f.options for f in formats):
            titles = " and ".join(line.title for line in supported)
            read_as = " and ".join(dict.fromkeys(f.name for f in formats))
            raise UsageError(f"{option.flag} is for {titles} files; these are read as {read_as}")
