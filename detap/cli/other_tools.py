"""Option names of other tools, for the hint on an unknown option.

They are those of pycocotools, Ultralytics, YOLOv5, Padilla, Cartucho, torchmetrics, TIDE, FiftyOne,
mmdetection, Detectron2, globox, hotcoco and supervision.
"""

import re
from collections.abc import Collection

_SAME_OPTION = {
    "gt": "groundtruth groundtruths gtfolder gtfile gts annotations annfile annotation labels data",
    "dt": "detections detfolder detfile det dets predictions prediction pred preds results resfile",
    "boxes": "boxformat bbfmt bboxformat boxfmt",
    "class-agnostic": "singlecls",
    "class-names": "names labelmap classfile mapping",
    "classes": "categories class cls",
    "confusion": "confusionmatrix",
    "curves": "prcurve prcurves savecurves",
    "dt-boxes": "detformat bbfmtdets",
    "dt-format": "formatdets",
    "errors": "tide",
    "images": "imgids imageids",
    "iou": "iouthreshold iouth ious minoverlap t posthreshold",
    "max-dets": "maxdet maxdetections maxpreds maxdetsperimage maxdetectionthreshold proposalnums",
    "output": "out outfile outputfile outputpath save savejson savecsv",
    "plots": "plot saveplots plotdir",
    "protocol": "preset dataset method",
    "sigmas": "kptokssigmas",
    "threads": "workers numworkers nproc jobs j",
}
"""Names in other tools by option of detap; see `_normalized`."""

_SENTENCES = {
    "conf confthreshold confidencethreshold scorethreshold minconf minscore": (
        "--min-score drops detections of a lower score; "
        "--score-threshold reports precision and recall at a score"
    ),
    "threshold": (
        "--iou sets the IoU thresholds; --min-score drops detections of a lower score; "
        "--score-threshold reports precision and recall at a score"
    ),
    "gtformat": "--gt-format is the file format; --gt-boxes is the box format",
    "gtcoords detcoords imgsz imgsize img": (
        "boxes are in pixels; --image-size WxH converts normalized boxes of YOLO files"
    ),
    "imgdir imgfolder imgpath imgprefix imagedir": (
        "eval reads no images; detap report --images DIR shows them"
    ),
    "ignore i": "--classes lists the classes to report",
    "setclassiou": "IoU thresholds per class are --class-iou of --protocol kitti; else use --iou",
    "arearng arearnglbl areas area": "--area-ranges names and limits them: small=0:1024",
    "recthreshold": "--interpolation selects the recall levels: 101-point, 11-point, all-point",
    "use07metric use11point 11point evalmode": "use --interpolation 11-point",
    "catids": "--classes lists classes by name",
    "usecats classwise classmetrics perclass": (
        "each class has a row of the table; --class-agnostic treats all classes as one"
    ),
    "metric metrics mode anntype usemasks masks mask segm": (
        "--iou-type segm evaluates masks, --iou-type keypoints keypoints"
    ),
    "keypoints kpts": "--iou-type keypoints evaluates keypoints",
    "iscrowd usedifficult ignoredifficult": (
        "--ignore-flags lists the flags of ignored ground truths: difficult,crowd or none"
    ),
    "backgroundthreshold": "--errors tidecv uses TIDE's thresholds",
    "agnosticnms nms nmsthreshold": "detap applies no NMS; detections are used as they are",
    "model weights device batch batchsize half": "detap runs no model; --dt names its detections",
    "noanimation na noplot np": "detap draws figures only with --plots DIR",
    "savepath sp outputdir outdir savedir": (
        "-o FILE (--output) writes the report; --plots DIR draws figures"
    ),
    "healthcheck": "detap check checks the files",
}
"""Hints by names in other tools. Clauses with an option that the command lacks are omitted."""


def advice_on(name: str, options: Collection[str]) -> tuple[str, str] | None:
    """Return the option of the command, and a sentence, for an unknown option.

    Either is empty if it does not apply; the result is None for a name that is not known.
    """
    word = _normalized(name)
    for names, sentence in _SENTENCES.items():
        if word in names.split():
            clauses = [text for text in sentence.split("; ") if _options_in(text) <= {*options}]
            return "", "; ".join(clauses)
    own = {_normalized(option): option for option in options}
    if word in own:
        return own[word], ""
    for option, names in _SAME_OPTION.items():
        if word in names.split():
            return (option if option in options else ""), ""
    return None


def _options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<=--)[a-z-]+", text))


def _normalized(name: str) -> str:
    """Return a name in lower case without separators; thr, thresh and so on as threshold."""
    word = re.sub(r"[^a-z0-9]", "", name.lower())
    return re.sub(r"th(r|re|res|resh)s?$|thresholds$", "threshold", word)
