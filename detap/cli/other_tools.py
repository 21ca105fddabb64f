"""Option names of other tools, for the hint on an unknown option.

They are those of pycocotools, Ultralytics, YOLOv5, Padilla, Cartucho, torchmetrics, TIDE, FiftyOne,
mmdetection, Detectron2, globox, hotcoco and supervision.
"""

import re
from collections.abc import Collection

_SAME_OPTION = {
    "area-ranges": "arearng arearnglbl areas area",
    "gt": "groundtruth groundtruths gtfolder gtfile gts annotations annfile annotation labels data",
    "dt": "detections detfolder detfile det dets predictions prediction pred preds results resfile",
    "boxes": "boxformat bbfmt bboxformat boxfmt",
    "class-agnostic": "singlecls usecats",
    "class-iou": "setclassiou",
    "class-names": "names labelmap classfile mapping",
    "classes": "categories class cls catids",
    "confusion": "confusionmatrix",
    "curves": "prcurve prcurves savecurves",
    "dt-boxes": "detformat bbfmtdets detcoords",
    "dt-format": "formatdets",
    "errors": "tide backgroundthreshold",
    "gt-boxes": "gtformat gtcoords",
    "ignore-flags": "iscrowd usedifficult ignoredifficult",
    "image-size": "imgsz imgsize img",
    "images": "imgids imageids",
    "interpolation": "recthreshold use07metric use11point 11point evalmode",
    "iou": "iouthreshold iouth ious minoverlap t posthreshold threshold",
    "iou-type": "metric metrics mode anntype usemasks masks mask segm keypoints kpts",
    "max-dets": "maxdet maxdetections maxpreds maxdetsperimage maxdetectionthreshold proposalnums",
    "min-score": "conf confthreshold confidencethreshold minconf",
    "output": "out outfile outputfile outputpath save savejson savecsv",
    "plots": "plot saveplots plotdir",
    "protocol": "preset dataset method",
    "sigmas": "kptokssigmas",
    "threads": "workers numworkers nproc jobs j",
}
"""Names in other tools by option of detap; see `_normalized`."""


def option_for(name: str, options: Collection[str]) -> str | None:
    """Return the option that means what an unknown one does in another tool.

    It is empty if the command lacks that option; the result is None for a name that is not known.
    """
    word = _normalized(name)
    for option, names in _SAME_OPTION.items():
        if word in names.split():
            return option if option in options else ""
    return next((option for option in options if word == _normalized(option)), None)


def _normalized(name: str) -> str:
    """Return a name in lower case without separators; thr, thresh and so on as threshold."""
    word = re.sub(r"[^a-z0-9]", "", name.lower())
    return re.sub(r"th(r|re|res|resh)s?$|thresholds$", "threshold", word)
