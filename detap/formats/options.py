"""Options of the readers, and the formats that have them (:mod:`detap.formats.catalogue`)."""

from functools import partial
from typing import Literal, NamedTuple

TRUTH, DETECTIONS = "ground truth", "detections"
AS_IS = "as_is"
"""The option that turns failed plausibility checks into warnings."""
MISSING_SCORES = "missing_scores"
"""The option that says what an evaluation takes in place of missing scores, of all formats."""
TREATMENTS = ("none", "1", "area", "error")
"""Its values."""
GEOMETRIES = ("masks", "keypoints")
"""Geometries that protocols may require in addition to boxes."""
KEYS = ("keypoint_keys", "result_score_key")
"""Keywords of the formats whose keys protocols may name; the latter is for detections."""


class Option(NamedTuple):
    """A reader option."""

    name: str  # keyword of the reader; image_set is --image-set on the command line
    help: str
    metavar: str | None = None  # the value in the help, for options without choices
    choices: tuple[str, ...] = ()
    roles: tuple[str, ...] = (TRUTH, DETECTIONS)
    value_kind: Literal["text", "path", "path or text"] = "text"
    """No report may overwrite paths, and text is recorded in reports: it affects comparability."""
    default: str | None = None
    keyword: str = ""  # another reader keyword that this option overrides for its role

    def recorded(self, value: object) -> str | None:
        """Return the text of a value for reports; None for the default, and for files: inputs."""
        if self.value_kind != "text" or value is None:
            return None
        text = "x".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        return None if text == self.default else text

    @property
    def flag(self) -> str:
        """The command-line option."""
        return f"--{self.name.replace('_', '-')}"


IMAGE_SET = Option(
    "image_set",
    "Image set: a name in ImageSets/Main, or a file with one image per line.",
    "NAME|FILE",
    roles=(TRUTH,),
    value_kind="path or text",
)
EXTRA_IMAGES = Option(
    "extra_images",
    "Detections of images that the ground truth lacks are an error (the default), or are left out, "
    "with a note (drop). --images leaves them out too.",
    choices=("error", "drop"),
    roles=(DETECTIONS,),
    default="error",
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
    "center x, center y, width, height (default of YOLO; also COCO, JSON Lines, Parquet). Formats "
    "that name their coordinates or store four corners accept only their own; so does a bbox "
    "column with metadata.",
    choices=("xyxy", "xywh", "cxcywh"),
)
_BOXES_OF = {
    role: BOXES._replace(
        name=name, help=f"Box format of the {role} only.", roles=(role,), keyword="boxes"
    )
    for role, name in ((TRUTH, "gt_boxes"), (DETECTIONS, "dt_boxes"))
}
BOX_OPTIONS = (BOXES, *_BOXES_OF.values())


def named_coordinates(title: str, coordinates: str, role: str, value: str) -> str:
    """Return the message for a box format that contradicts coordinate names."""
    other = DETECTIONS if role == TRUTH else TRUTH
    return (
        f"{_BOXES_OF[role].flag} {value} does not apply to {title} files, which name their "
        f"coordinates ({coordinates}); use {_BOXES_OF[other].flag} for the {other}"
    )


CLASS_NAMES = Option(
    "class_names",
    "Class names of numbered classes (text files count from 0): one per line, or a data.yaml.",
    "FILE",
    value_kind="path",
)
DT_CLASS_NAMES = Option(
    "dt_class_names",
    "Class names of the detections only, if numbered differently from the ground truth.",
    "FILE",
    roles=(DETECTIONS,),
    value_kind="path",
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
    value_kind="path",
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
    value_kind="path",
)
IMAGE_LABELS = Option(
    "image_labels",
    "Verified classes by image: CSV with ImageID,LabelName,Confidence (1 present, 0 absent).",
    "FILE",
    roles=(TRUTH,),
    value_kind="path",
)
HIERARCHY = Option(
    "hierarchy",
    "Class hierarchy (Open Images JSON): boxes and present labels also count for parent classes, "
    "absent labels for child classes.",
    "FILE",
    roles=(TRUTH,),
    value_kind="path",
)
SUBFOLDERS = Option(
    "subfolders",
    "Read the files of subfolders of the ground truth too (the default), or only those of the "
    "folder (skip).",
    choices=("read", "skip"),
    roles=(TRUTH,),
    default="read",
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
)
LABEL_ATTRIBUTE = Option(
    "label_attribute",
    "Label attribute with the boxes; required if a manifest has several.",
    "NAME",
)
BOX = Option(
    "box",
    "Box of each person that is compared.",
    choices=("full", "visible", "head"),
    roles=(TRUTH,),
    default="full",
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

_of_answers = partial(Option, roles=(DETECTIONS,))
_PIXELS = "{} pixels of the resized input (dialect qwen2.5-vl)."
DIALECT_OPTIONS = (
    _of_answers("dialect", "How the model writes boxes, such as qwen3-vl.", "NAME"),
    _of_answers("box_key", "Key of the box (dialect json).", "NAME", default="bbox"),
    _of_answers("label_key", "Key of the class (dialect json).", "NAME", default="label"),
    _of_answers(
        "score_key", "Key of the score, which is not read without it (JSON dialects).", "NAME"
    ),
    _of_answers(
        "box_order",
        "Order of the box (dialect json).",
        choices=("xyxy", "xywh", "yxyx"),
        default="xyxy",
    ),
    _of_answers(
        "box_scale",
        "Unit of the box (dialect json): pixels, or 1/N of width and height.",
        "pixels|N",
        default="pixels",
    ),
    _of_answers("max_pixels", _PIXELS.format("Most"), "N", default="12845056"),
    _of_answers("min_pixels", _PIXELS.format("Fewest"), "N", default="3136"),
)
MISSING_RESPONSES = _of_answers(
    "missing_responses",
    "Images without an answer: an error (the default), or empty.",
    choices=("error", "empty"),
    default="error",
)
