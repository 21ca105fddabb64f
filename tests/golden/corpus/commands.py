"""The commands of the corpus.

`$FIXTURES`, `$DATA` (real data) and `$ODD` (what `inputs.py` writes) stand for folders; `detap`
for the command line and `api NAME` for a function of `api.py`. The commands of a case run in order
in one new folder. Partials, shards and engines are left out.
"""

import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.golden import worked
from tests.golden.corpus.inputs import MUTATED
from tests.reliability.runner import arguments
from tests.reliability.test_corpus import CASES

ROOT = Path(__file__).resolve().parents[3]


def each(text: str) -> list[str]:
    """Return the options of a list with strokes or line ends between them."""
    return re.split(r" \| |\n", text)


WRITERS = each("coco | voc | yolo | labelstudio | tfcsv | createml | via | datumaro | supervisely")
OUTPUTS = ("json", "html", "csv", "markdown", "junit", "github", "gitlab", "dvc", "codequality")
REPORTS = " ".join(f"-o {name}=report.{name}" for name in OUTPUTS if name != "html")
COMMANDS = each(
    "eval | check | convert | report | compare | explain | show | history | badge | config | "
    "rank retrieval | rank classification"
)
Q = "$FIXTURES/quickstart/coco/instances.json $FIXTURES/quickstart/coco/results.json"
QV = "$FIXTURES/quickstart/voc/Annotations $FIXTURES/quickstart/voc/detections"
WORSE = "$FIXTURES/quickstart/coco/results-worse.json"
COCO = "$DATA/coco-val2014-100/instances_val2014_100.json"
BOXES = "$DATA/coco-val2014-100/instances_val2014_fakebbox100_results.json"
MASKS = "$DATA/coco-val2014-100/instances_val2014_fakesegm100_results.json"
KEYPOINTS = "$DATA/keypoints/coco79_gt.json $DATA/keypoints/coco79_dt.json"
LVIS, LVIS_DT = "$DATA/lvis-val-100/lvis_val_100.json", "$DATA/lvis-val-100-results/lvis_results"
OPEN = "$DATA/open-images-150"
VOC100 = "$DATA/voc-100"
TOOLS = "$DATA/formats2"
LARGE = "$ODD/large/gt.json $ODD/large/dt.json"


def trained(kind: str, predictions: str) -> str:
    """Return the files of a model of Ultralytics."""
    at = f"{TOOLS}/ultralytics-{kind}"
    return f"{at}/data.yaml {at}/predictions/{predictions} --image-sizes {at}/sizes.csv"


SETS = {
    "quickstart": Q,
    "quickstart-voc": QV,
    "labelling-tools": "$FIXTURES/labelling-tools/annotations.xml "
    "$FIXTURES/labelling-tools/predict --class-names $FIXTURES/labelling-tools/data.yaml",
    "kitti-levels": "$FIXTURES/kitti-levels/kitti/label_2 $FIXTURES/kitti-levels/kitti/results",
    "jsonl": "$ODD/jsonl/gt.jsonl $ODD/jsonl/dt.jsonl",
    "dota": "$ODD/dota/gt $ODD/dota/dt --format dota",
    "arrow": "$ODD/arrow/gt.parquet $ODD/arrow/dt.parquet",
    "large": LARGE,
    "coco": f"{COCO} {BOXES}",
    "segm": f"{COCO} {MASKS} --iou-type segm",
    "boundary": f"{COCO} {MASKS} --protocol coco-boundary",
    "keypoints": f"{KEYPOINTS} --iou-type keypoints",
    "xtcoco": "$DATA/keypoints/example_coco_val.json $DATA/keypoints/example_coco_preds.json "
    "--iou-type keypoints",
    "crowdpose": "$DATA/keypoints/example_crowdpose_val.json "
    "$DATA/keypoints/example_crowdpose_preds.json --iou-type keypoints --sigmas crowdpose",
    "lvis": f"{LVIS} {LVIS_DT}_bbox.json --protocol lvis",
    "lvis-segm": f"{LVIS} {LVIS_DT}_segm.json --protocol lvis-segm",
    "lvis-fixed": f"{LVIS} $DATA/measures/lvis_extra.json --protocol lvis-fixed",
    "open-images": f"{OPEN}/boxes.csv {OPEN}/predictions.csv --image-labels {OPEN}/labels.csv "
    "--protocol open-images-v2 --hierarchy $ODD/hierarchy.json",
    "open-images-flat": f"{OPEN}/boxes.csv {OPEN}/predictions.csv --protocol tf-pascal",
    "voc2007": "$DATA/voc2007-test $DATA/voc2007-test/detections --image-set test",
    "voc100": f"{VOC100}/gt/voc_xml {VOC100}/dt/abs_xyx2y2 --class-names {VOC100}/voc.names",
    "voc100-xywh": f"{VOC100}/gt/voc_xml {VOC100}/dt/abs_xywh --dt-boxes xywh "
    f"--class-names {VOC100}/voc.names --protocol padilla",
    "voc100-relative": f"{VOC100}/gt/voc_xml {VOC100}/dt/rel_xywh --dt-format yolo "
    f"--class-names {VOC100}/voc.names",
    "voc100-coco": f"{VOC100}/gt/coco_v1/instances_default.json "
    f"{VOC100}/dt/coco_aligned_to_gt_v1.json",
    "voc100-other-ids": f"{VOC100}/gt/coco_v2/instances_v2.json {VOC100}/dt/coco_dets.json",
    "voc100-cvat": f"{VOC100}/gt/cvat/annotations.xml {VOC100}/dt/coco_dets.json",
    "voc100-openimages": f"{VOC100}/gt/openimages/all_bounding_boxes.csv "
    f"{VOC100}/dt/coco_dets.json --image-sizes $DATA/yolo-voc-100/sizes.csv",
    "voc100-yolo": f"{VOC100}/gt/yolo $DATA/yolo-voc-100/predictions --class-names "
    f"{VOC100}/gt/yolo/obj.names --dt-class-names $DATA/yolo-voc-100/data.yaml "
    "--image-sizes $DATA/yolo-voc-100/sizes.csv",
    "labelme": "$DATA/labelme-voc-100 $DATA/yolo-voc-100/predictions "
    "--class-names $DATA/yolo-voc-100/data.yaml",
    "yolo": "$DATA/yolo-voc-100/data.yaml $DATA/yolo-voc-100/predictions "
    "--image-sizes $DATA/yolo-voc-100/sizes.csv",
    "cartucho": "$DATA/cartucho-85/ground-truth $DATA/cartucho-85/detection-results",
    "cartucho-coco": "$DATA/cartucho-85/groundtruths_coco.json "
    "$DATA/cartucho-85/detections_coco.json --protocol cartucho",
    "odm": "$DATA/odm-sample-2/groundtruths $DATA/odm-sample-2/detections --boxes xywh --iou .3",
    "toy": "$DATA/voc-toy/gts_vocpascal_format $DATA/voc-toy/dets_classname_abs_xyx2y2",
    "toy-coco": "$DATA/voc-toy/gts_coco_format/toy_example_coco.JSON "
    "$DATA/voc-toy/dets_coco_format/coco_dets.json",
    "kitti": "$DATA/kitti-from-voc/label_2 $DATA/kitti-from-voc/results/data",
    "kaist": "$DATA/measures/kaist/KAIST_annotation.json $ODD/kaist/MLPD.json --protocol kaist",
    "pedestrian": "$ODD/pedestrian/gt.json $ODD/pedestrian/dt.json --protocol citypersons",
    "ultralytics-pose": trained("pose", "labels"),
    "ultralytics-segment": trained("segment", "labels"),
    "ultralytics-obb": trained("obb", "labels"),
    "ultralytics-obb-json": trained("obb", "predictions.json"),
    "ultralytics-json": trained("pose", "predictions.json"),
    "wholebody": "$DATA/formats3/wholebody/wholebody_val.json "
    "$DATA/formats3/wholebody/wholebody_preds.json --iou-type keypoints",
    "crowdpose3": "$DATA/formats3/crowdpose/crowdpose_val.json "
    "$DATA/formats3/crowdpose/crowdpose_preds.json --iou-type keypoints --sigmas crowdpose",
}
"""Ground truth, detections and options by data set."""

SIZES = "--image-sizes $DATA/yolo-voc-100/sizes.csv"
EXPORTS = {
    f"{TOOLS}/cvat-exports/yolo": ("val", f"{SIZES} --split val"),
    f"{TOOLS}/cvat-exports/yolo/obj.data": ("train", f"{SIZES} --split train"),
    f"{TOOLS}/cvat-exports/yolov8_detection": ("val", f"{SIZES} --split val"),
    f"{TOOLS}/cvat-exports/yolov8_oriented_boxes": (
        "train",
        f"{SIZES} --split train --protocol coco-polygon",
    ),
    f"{TOOLS}/cvat-exports/datumaro": ("val", "--split val"),
    f"{TOOLS}/cvat-exports/datumaro/annotations/train.json": ("train", "--iou-type polygon"),
    f"{TOOLS}/cvat-exports/label_me": ("all", "--shapes bbox"),
    f"{TOOLS}/cvat-exports/coco_instances": ("val", "--split val"),
    f"{TOOLS}/cvat-exports/voc_detection": ("val", "--image-set val"),
    f"{TOOLS}/cvat-exports/cvat": ("val", "--split val"),
    f"{TOOLS}/cvat-exports/cvat/train.xml": ("train", "--shapes bbox"),
    f"{TOOLS}/label-studio/project-1.json": ("all", "--shapes bbox"),
    f"{TOOLS}/label-studio/COCO/result.json": ("all", ""),
    f"{TOOLS}/label-studio/JSON_MIN/result.json": ("all", "--shapes bbox"),
    f"{TOOLS}/label-studio/CSV/result.csv": ("all", ""),
    f"{TOOLS}/label-studio/VOC": ("all", "--protocol coco"),
    f"{TOOLS}/label-studio/YOLO": (
        "all",
        f"{SIZES} --class-names {TOOLS}/label-studio/YOLO/classes.txt",
    ),
    f"{TOOLS}/label-studio/YOLO_OBB": ("all", f"{SIZES} --task obb"),
    f"{TOOLS}/labelme-nested": ("all", "--images seen"),
    f"{TOOLS}/supervision/coco.json": ("all", ""),
    f"{TOOLS}/supervision/voc": ("all", "--protocol coco"),
    f"{TOOLS}/supervision/yolo": ("all", f"{SIZES} --class-names {TOOLS}/supervision/data.yaml"),
    f"{TOOLS}/other-layouts/createml": ("all", ""),
    f"{TOOLS}/other-layouts/roboflow-coco": ("all", ""),
    f"{TOOLS}/other-layouts/roboflow-coco/valid/_annotations.coco.json": ("all", ""),
    f"{TOOLS}/other-layouts/supervisely": ("all", ""),
    f"{TOOLS}/other-layouts/supervisely/ds0": ("all", ""),
    f"{TOOLS}/other-layouts/tensorflow-csv": ("all", "--as-is"),
    f"{TOOLS}/other-layouts/via/via_project.json": ("all", ""),
    f"{TOOLS}/other-layouts/via/via_region_data.json": ("all", ""),
    f"{TOOLS}/other-layouts/via/via_region_data.csv": ("all", ""),
    "$DATA/bccd": ("all", "--image-set test"),
    "$DATA/coco-val2017-boxes/val2017_boxes_coco.json.gz": ("all", ""),
}
"""Ground truths of labelling tools, the part of the detections, and options."""

OPTIONS = """
--iou .5 | --iou .5,.75 | --iou .3:.9:.2 | --iou 0 | --iou 1.1 | --iou 1
--iou .5 --iou-dtype float32 | --strict-iou | --max-iou-threshold .8 | --inclusive-pixels
--candidate best | --candidate best-unmatched | --equal-iou first | --equal-iou last
--ignore-flags none | --ignore-flags difficult | --ignore-flags crowd,ignore
--crowd-flags none | --ignore-where height<50 | --ignore-where 'height<50 or width>80'
--ignore-where vis_ratio<1 | --ignore-where 'height <' | --drop-where height<40
--drop-where 'aspect>1' | --area-ranges none | --area-ranges proposals
--area-ranges small=0:1024,large=1024:1e10 | --area-ranges small=0:1%,large=1%:100%
--area-ranges small=5:1 | --area-source box | --area-source 0.53-box | --max-dets 1
--max-dets none | --max-dets 1,10,300 | --max-dets 10,1 | --max-dets-scope image
--max-dets-scope dataset | --tie-break image | --tie-break file | --interpolation 11-point
--interpolation all-point | --interpolation 40-point | --interpolation trapezoid-101
--recall-grid matlab | --recall-grid arange | --recall-grid hundredths | --recall-grid float32
--interpolation 40-point --recall-grid fortieths | --precision-eps 1e-9 | --absent-class zero
--absent-class zero-if-detected | --class-agnostic | --matching by-iou | --matching kitti
--matching kitti --class-iou cat=.7,dog=.5 --neighbor-classes cat=bird | --min-height 40
--empty-images exclude | --images-without-ground-truth ignore | --annotation-id-zero unmatched
--min-score .5 | --min-score none | --score-decimals 1 | --box-decimals 0
--degenerate-boxes drop | --zero-area drop | --verified listed | --not-exhaustive ignore
--class-groups frequency | --primary-metric AR | --primary-metric mAP | --metrics MR-2
--metrics MR-2,MR-2@75,MR-4,FROC,LRP@score=.5,oLRP | --metrics LRP | --metrics none
--metrics MR-3x | --metrics MR-2 --mr-points exact --mr-rule at-least --mr-floor .1
--metrics MR-2 --mr-rule at-most | --metrics FROC --froc-points 1/8,1/4,1 --froc-rule linear
--metrics FROC --duplicates ignore | --classes cat,dog | --classes lion | --classes 'cat,'
--images 1,2,3 | --images 1,99 | --images $ODD/large/images.txt | --sort AP
--sort GT --reverse | --sort nothing | --reverse | --threads 1 | --threads 0 | --tie-range
--confidence .95 --resamples 200
--confidence .9 --resamples 100 --seed 7 --min-ground-truths 3 | --confidence 1.5
--detectable-drop .02 | --errors | --errors tidecv | --errors protocol --iou .75
--score-threshold .5 | --score-threshold best | --score-threshold 2 | --confusion
--confusion class-agnostic | --calibration | --breakdowns | --examples | --examples 2
--analysis | --cross-check | --slices $ODD/settings/slices.json
--slices $ODD/settings/slices.csv | --slices $ODD/settings/bad-slices.csv | --slice-by place
--slice-by width | --slice-by file_name
--slices $ODD/settings/slices.json --fail-under slice:night.AP50=.4 --confidence .95 --resamples 100
--fail-under .5 | --fail-under .9
--fail-under AP50=.7 --fail-under class:cat.AP=.99 --fail-under min-class.AP=.1
--fail-under class:lion.AP=.5 | --fail-under nothing=.5 | --fail-under APs=x
--fail-over class:*.false_positives=3 | --fail-over AP=.1 | --max-drop .1 | --max-rise .1
--baseline-detections $WORSE --max-drop .005
--baseline-detections $WORSE --max-rise class:*.duplicates=10% --analysis
--baseline-detections $WORSE --max-drop AP=1% --confidence .95 --resamples 200
--baseline-detections $WORSE --max-drop .005 --detectable-drop .02
--baseline-detections gone.json --max-drop .1 | --data-sets $ODD/settings/sets.toml | --as-is
--strict | --quiet | --verbose | --max-file-size 100 | --max-records 5 | --max-nesting 2
--max-problems 1 | --max-expansion 1 | --format coco | --format voc | --format nothing
--dt-format yolo | --gt-format jsonl | --boxes xyxy | --boxes cxcywh | --dt-boxes xyxy --as-is
--class-names $ODD/settings/names.txt | --class-names gone.txt
--first-category-id 0 --class-names $ODD/settings/names.txt | --image-set test
--image-size 10x10 | --layout class-files | --columns conf-first | --task detect
--attribute-flags hard=difficult | --model-version a | --class-attribute a | --score-attribute a
--angle-unit degrees | --split val | --shapes bbox | --merge-images | --hierarchy gone.json
--dilation-ratio .1 | --iou-type segm | --iou-type boundary | --iou-type keypoints
--iou-type polygon | --iou-type nothing | --sigmas coco | --detection-area pixels
--group-of-weight 1 | --target voc | --config gone.toml | --config $ODD/settings/unknown.toml
--config $ODD/settings/wrong.toml | --config $ODD/settings/broken.toml | --output-format nothing
-o report.xyz | -o json=- -o report.csv | -o /proc/report.json | --curves curves.txt
--curves curves.csv | --curves curves.json | --matches matches.csv | --matches matches.jsonl
--matches matches.parquet | --matches matches.txt
--matches matches.csv --baseline-detections $WORSE --max-drop .5 | --plots plots --analysis
--no-such-option | --ioou .5 | --gt a.json
"""
"""Options of `eval`, run one by one on the quickstart: valid, invalid and without effect."""


class Case(NamedTuple):
    """Commands that run in order in one new folder, and the width of the terminal."""

    commands: tuple[str, ...]
    columns: int = 80

    @property
    def text(self) -> str:
        """The commands in one line."""
        return "; ".join(self.commands)


def cases(odd: Path, data: Path) -> Iterator[Case]:
    """Yield the whole corpus."""
    for line in commands(odd, data):
        yield Case((line,)) if isinstance(line, str) else Case(line)
    for line in ("detap --help", f"detap eval {Q} --analysis", f"detap check {Q}"):
        yield Case((line,), columns=200)


def commands(odd: Path, data: Path) -> Iterator[str | tuple[str, ...]]:
    """Yield commands, alone or several for one folder."""
    yield from of_help()
    yield from of_fixtures()
    for options in each(OPTIONS.replace("$WORSE", WORSE).strip()):
        yield f"detap eval {Q} {options}"
    for name, files in SETS.items():
        yield from of_set(name, files)
    yield from of_presets()
    yield from of_exports()
    yield from of_reports()
    yield from of_outputs()
    yield from of_rankings()
    yield from of_odd_files(odd)
    yield from of_public_reports(data)
    yield from of_python()


def of_help() -> Iterator[str]:
    """Yield help, completion, settings and schemas."""
    yield from ("detap", "detap --version", "detap --help", "detap evaluate", "detap eval")
    for command in (*COMMANDS, "baseline", "baseline update", "demo", "completion", "rank"):
        yield f"detap {command} --help"
    for command in COMMANDS:
        if command != "config":
            yield f"detap {command} --help-all"
    yield from (f"detap completion {shell}" for shell in ("bash", "zsh", "fish", "tcsh"))
    yield from ("detap config", "detap config eval --all")
    yield "detap config eval --all --output-format json"
    yield from ("detap config rank-retrieval --all", "detap config rank-classification --all")
    settings = "$ODD/settings"
    yield f"detap config --config {settings}/detap.toml"
    yield f"detap config --config {settings}/detap.toml --target voc --output-format json"
    yield from (
        f"detap config --config {settings}/{n}.toml" for n in ("unknown", "wrong", "broken")
    )
    for schema in each(
        "settings | report | comparison | check | ranking | image | explanation | history | "
        "data_sets | nothing"
    ):
        yield f"detap config --schema {schema}"
    for target in ("", "--target voc", "--target gone", "--fail-under .9", "--isolated"):
        yield f"detap eval --config {settings}/detap.toml {target}"


def of_fixtures() -> Iterator[str | tuple[str, ...]]:
    """Yield the evaluations of every fixture, and of every number worked by hand."""
    root = ROOT / "fixtures"
    seen = dict.fromkeys((n.case, n.files, n.options) for n in worked.read(root))
    for number in worked.read(root):
        if seen.pop((number.case, number.files, number.options), 0) is None:
            words = " ".join(f"'{word}'" for word in number.arguments(Path("$FIXTURES")))
            yield f"detap eval {words} -o report.json"
    for folder in sorted(root.iterdir()):
        pairs = {
            "coco": ("instances.json", "results.json"),
            "voc": ("Annotations", "detections"),
            "kitti": ("label_2", "results"),
        }
        for kind, names in pairs.items():
            if (folder / kind).is_dir():
                files = " ".join(f"$FIXTURES/{folder.name}/{kind}/{name}" for name in names)
                yield f"detap eval {files} --analysis --matches matches.csv --curves curves.csv"
                yield f"detap check {files}"
                yield f"detap report {files} -o page.html"
    commands_by_hand = ["command", "number", "worked", "value"]
    rows = worked.table_rows(root, "ranking-*", commands_by_hand)
    for case, command in dict.fromkeys((case, cells[0]) for case, cells in rows):
        line = [
            f"$FIXTURES/{case}/{w}" if (root / case / w).exists() else w for w in command.split()
        ]
        yield f"detap rank {' '.join(line)} -o report.json --per-query"


def of_set(name: str, files: str) -> Iterator[str]:
    """Yield the commands of a data set: scores, reports, checks, conversions."""
    reading = without_protocol(files)
    truth, _, *options = reading.split()
    by_row = "" if "kitti" in name else "--curves curves.csv --matches matches.csv"
    yield f"detap eval {files} {REPORTS} {by_row}"
    yield f"detap eval {files} --analysis -o report.json"
    yield f"detap check {reading} -o check.json"
    yield f"detap report {files} -o page.html"
    for target in WRITERS:
        if target == "via":  # cannot hold scores
            of_truth = [word for word in options if not word.startswith("--dt")]
            yield f"detap convert {truth} {' '.join(of_truth)} --to via -o converted"
        elif name not in ("voc2007", "kaist") or target in ("coco", "voc"):
            yield f"detap convert {reading} --to {target} -o converted"


def without_protocol(files: str) -> str:
    """Return words without the options of the protocol, which conversions do not take."""
    words = files.split()
    for option in ("--protocol", "--iou-type", "--iou", "--sigmas"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    return " ".join(words)


def of_presets() -> Iterator[str]:
    """Yield evaluations by every preset, on boxes, masks and keypoints."""
    public = json.loads((ROOT / "docs/public.json").read_text())["names"]["presets"]
    for preset in (*public, "nothing"):
        yield f"detap eval {Q} --protocol {preset} -o report.json"
        if not re.search("segm|boundary|keypoints|pose|polygon|lvis|dota|wider|city|kaist", preset):
            yield f"detap eval {LARGE} --protocol {preset} -o report.json"
            yield f"detap eval {COCO} {BOXES} --protocol {preset} -o report.json"
    for preset in ("coco-segm", "coco-boundary", "lvis-segm", "lvis-fixed-segm"):
        yield f"detap eval {COCO} {MASKS} --protocol {preset} -o report.json"
        yield f"detap eval {COCO} {BOXES} --protocol {preset}"
    for preset in ("coco-keypoints", "ultralytics-pose", "coco"):
        yield f"detap eval {KEYPOINTS} --protocol {preset}"
    for preset in ("voc2007", "voc2007-py", "voc2012-py", "coco", "mmdet-voc", "tidecv-ap"):
        yield f"detap eval {SETS['voc2007']} --protocol {preset} -o report.json"
    for preset in ("kaist", "kaist-script", "caltech"):
        kaist = "$DATA/measures/kaist/KAIST_annotation.json $ODD/kaist/INSANet.json"
        yield f"detap eval {kaist} --protocol {preset} -o report.json --curves curves.csv"
    for preset in each(
        "citypersons | citypersons-small | citypersons-heavy | citypersons-all | "
        "citypersons-script | crowdhuman"
    ):
        files = "$ODD/pedestrian/gt.json $ODD/pedestrian/dt.json"
        yield f"detap eval {files} --protocol {preset} -o report.json"
    for preset in ("kitti", "kitti-r11"):
        yield f"detap eval {SETS['kitti']} --protocol {preset} -o report.json"
    for options in each(
        "--detection-area pixels | --detection-area extent | --dilation-ratio .05 | "
        "--max-mask-runs 10 | --as-is | --ignore-flags none | --errors"
    ):
        yield f"detap eval {COCO} {MASKS} --protocol coco-segm {options} -o report.json"
        yield f"detap eval {KEYPOINTS} --protocol coco-keypoints {options} -o report.json"


def of_exports() -> Iterator[str]:
    """Yield evaluations and conversions of what labelling tools and trainers wrote."""
    for path, (part, options) in EXPORTS.items():
        yield f"detap eval {path} $ODD/exports/{part}.json {options} -o report.json"
        yield f"detap check {path} {options}"
        yield f"detap check {path}"
        yield f"detap convert {path} {without_protocol(options)} --to coco -o gt.json"
        yield f"detap convert {path} {without_protocol(options)} --to datumaro -o converted"
    gt = f"{TOOLS}/supervision/coco.json"
    for file in ("detections.csv", "detections.json"):
        names = f"--dt-class-names {TOOLS}/supervision/data.yaml"
        yield f"detap eval {gt} {TOOLS}/supervision/{file} {names} -o report.json"
    for path in ("darknet.json", "hf.jsonl", "torchvision.json", "mmdet", "ultralytics"):
        yield f"detap eval {COCO} $DATA/formats3/inference/{path}"
    yield from (f"detap convert {Q} --to {to} -o /proc/out" for to in ("coco", "voc"))


def of_reports() -> Iterator[str | tuple[str, ...]]:
    """Yield the commands that compare, explain and read reports."""
    gt, dt = Q.split()
    files = f"--gt {gt} --dt {dt}"
    two = (f"detap eval {Q} -o a.json", f"detap eval {gt} {WORSE} -o b.json")
    for metric in each(
        " | --metric AP50 | --metric class:cat.AP --label 'AP of cats' | --metric nothing"
    ):
        yield (two[0], f"detap badge a.json {metric}", f"detap badge a.json {metric} -o badge.json")
    gated = f"detap eval {Q} --fail-under .9 -o a.json"
    yield (gated, "detap badge a.json", "detap explain a.json a.json")
    for options in ("", "--allow-drop", "--dry-run", "--allow-mismatch"):
        yield (*two, f"detap baseline update b.json a.json {options}", "detap badge b.json")
        yield (*two, f"detap baseline update a.json b.json {options}")
    yield (two[0], "detap baseline update new.json a.json")
    yield (two[0], f"detap eval {gt} {WORSE} --baseline a.json --max-drop .005 -o b.json {REPORTS}")
    yield (two[0], f"detap eval {gt} {WORSE} --baseline a.json --max-drop class:*.AP=.5 -o b.html")
    yield (two[0], f"detap eval {QV} --baseline a.json --max-drop .005")
    yield (two[0], f"detap eval {QV} --baseline a.json --max-drop .005 --allow-mismatch")
    for options in each(
        " | --metric AP50 | --output-format json | -o history.html -o history.csv | "
        "--metric nothing | --strict"
    ):
        yield (*two, f"detap history a.json b.json {options}", f"detap history . {options}")
    yield (
        *two,
        f"detap eval {QV} -o c.json",
        "detap history . -o h.md",
        "detap explain a.json c.json",
    )
    for options in ("", "--metric AP50", "-o explanation.json", "--output-format markdown"):
        yield (*two, f"detap explain a.json b.json {options}")
        for start, end in (("coco", "voc2012"), ("voc2007", "coco"), ("coco", "coco|max-dets:1")):
            yield f"detap explain {files} --from {start} --to '{end}' {options}"
        yield f"detap explain {files} --value 69.94 {options}"
        yield f"detap explain {files} --value .699 --top 3 {options}"
    yield f"detap explain --gt {COCO} --dt {BOXES} --from voc2012 --to coco -o explanation.json"
    yield "detap explain gone.json gone.json"
    for options in each(
        " | --resamples 0 | --confidence .9 --resamples 200 | --classes cat | --protocol voc2012 | "
        "-o comparison.json -o c.md -o c.html -o c.csv"
    ):
        yield f"detap compare {dt} {WORSE} --gt {gt} {options}"
    yield "detap compare $ODD/large/dt.json $ODD/large/worse.json --gt $ODD/large/gt.json -o c.json"
    yield f"detap compare {BOXES} {BOXES} --gt {COCO}"
    yield f"detap compare {MASKS} {MASKS} --gt {COCO} --iou-type segm --resamples 100"
    for image in ("1", "000001.jpg", "000004", "99", "''"):
        yield f"detap show {image} {Q}"
        yield f"detap show {image} {QV} -o image.json -o image.md"
    for image in ("136", "42", "73"):
        yield f"detap show {image} {COCO} {BOXES} --at-iou .75"
        yield f"detap show {image} {COCO} {MASKS} --iou-type segm -o image.json"
        yield f"detap show {image} {KEYPOINTS} --iou-type keypoints --output-format json"


def of_outputs() -> Iterator[str | tuple[str, ...]]:
    """Yield pages, data sets, every output format, several inputs and files that are absent."""
    gt, dt = Q.split()
    two = (f"detap eval {Q} -o a.json", f"detap eval {gt} {WORSE} -o b.json")
    yield f"detap report {Q} --baseline-detections {WORSE} -o page.html"
    yield f"detap report {Q} --images none -o -"
    yield (*two, f"detap report {Q} --history a.json --history b.json -o page.html")
    yield f"detap report {LARGE} --baseline-detections $ODD/large/worse.json -o page.html"
    yield f"detap report {Q} --classes cat --protocol voc2012"
    for options in each(
        " | -o sets.json -o sets.md | --output-format csv | --confidence .9 --resamples 100"
    ):
        yield f"detap eval --data-sets $ODD/settings/sets.toml {options}"
        yield f"detap eval --data-sets $ODD/settings/sets-missing.toml {options}"
        yield f"detap eval --data-sets $ODD/settings/sets-missing.toml --allow-missing {options}"
    for form in (*OUTPUTS, "table"):
        yield f"detap eval {Q} --output-format {form}"
        yield f"detap eval {gt} {WORSE} --fail-under .9 --fail-under AP50=.1 --output-format {form}"
        analyses = "--analysis --tie-range --confidence .95 --resamples 100"
        yield f"detap eval {Q} {analyses} --output-format {form}"
        yield f"detap check {Q} --output-format {form}"
        yield f"detap compare {dt} {WORSE} --gt {gt} --resamples 100 --output-format {form}"
        yield f"detap show 1 {Q} --output-format {form}"
        yield (
            *two,
            f"detap history . --output-format {form}",
            f"detap explain a.json b.json --output-format {form}",
        )
    for options in each(
        " | --tie-range | --confidence .95 --resamples 200 | "
        "--slice-by place --confidence .9 --resamples 100 | --images $ODD/large/images.txt | "
        "--cross-check | --max-dets 1,5 | "
        "--baseline-detections $ODD/large/worse.json --max-drop .01 --confidence .95 | "
        "--metrics MR-2,FROC,oLRP,LRP@score=0.5 --curves curves.csv | --plots plots --analysis"
    ):
        yield f"detap eval {LARGE} {options} -o report.json -o page.html"
        yield f"detap eval {COCO} {BOXES} {options} -o report.json"
    yield f"detap eval {COCO} {MASKS} --iou-type segm --tie-range --confidence .95 --resamples 100"
    yield "detap eval $ODD/large/gt.json --dt '$ODD/large/parts/*.json' -o report.json --errors"
    yield "detap eval $ODD/large/gt.json $ODD/large/parts"
    parts = "--dt $ODD/large/parts/2.json --dt $ODD/large/parts/0.json"
    yield f"detap eval $ODD/large/gt.json {parts} --images seen"
    yield f"detap eval {Q} --gt {gt} --merge-images"
    yield f"detap eval {gt} - < {dt}"
    yield f"detap check {gt} - < {WORSE}"
    yield f"detap eval {gt} gone.json"
    yield f"detap eval gone.json {dt}"
    yield f"detap eval {dt} {gt}"
    yield f"detap eval {gt} {gt}"
    yield f"detap check {dt}"
    yield "detap check $FIXTURES"
    yield "detap demo"
    yield "detap demo folder"


def of_rankings() -> Iterator[str | tuple[str, ...]]:
    """Yield retrieval and classification."""
    run = "--run $ODD/rank/run.txt --qrels $ODD/rank/qrels.txt"
    npz = {name: f"--npz $ODD/rank/{name}.npz" for name in ("embeddings", "codes", "scores")}
    npy = (
        "--queries $ODD/rank/query_embeddings.npy --gallery $ODD/rank/gallery_embeddings.npy "
        "--query-labels $ODD/rank/query_labels.npy --gallery-labels $ODD/rank/gallery_labels.npy"
    )
    presets = ("retrieval", "trec_eval", "ir_measures", "hashing", "metric-learning", "nothing")
    options = [
        *each(
            " | --k 1,5,10 | --divisor hits --k 5 | --divisor min --k 5 | --no-relevant exclude | "
            "--tie-break trec | --tie-break expected | --missing-queries exclude | "
            "--relevant-from 2 | --gain exponential | --measures mAP@10,P@5,nDCG@10,R@3,MRR | "
            "--measures nothing | --per-query | --curves curves.json | --curves curves.csv | "
            "--losses | --batches 3 | --fail-under .9 | --fail-under min-query.AP=.1 --quiet | "
            "--fail-under query:q1.AP=.01 | --detectable-drop .01 | --strict"
        ),
        *(REPORTS, "-o page.html", *(f"--protocol {preset}" for preset in presets)),
    ]
    for source in (run, *npz.values(), npy):
        yield from (f"detap rank retrieval {source} {words}" for words in options)
    for similarity in ("cosine", "dot", "euclidean"):
        yield f"detap rank retrieval {npz['embeddings']} --similarity {similarity} --exclude-self"
    worse = "--max-drop .01 --confidence .95 --resamples 200"
    yield f"detap rank retrieval {run} --baseline-ranking $ODD/rank/worse.txt {worse} -o r.json"
    yield f"detap rank retrieval {npz['scores']} --baseline-ranking $ODD/rank/worse.npz {worse}"
    yield (
        f"detap rank retrieval {run} -o a.json",
        "detap rank retrieval --run $ODD/rank/worse.txt "
        "--qrels $ODD/rank/qrels.txt --baseline a.json --max-drop .001",
        "detap badge a.json",
        "detap history a.json",
        "detap explain a.json a.json",
        "detap baseline update a.json a.json",
    )
    for words in (
        "--npz $ODD/rank/nan.npz",
        "--npz $ODD/rank/classes.npz",
        "--npz gone.npz",
        "",
        "--run $ODD/rank/short.txt --qrels $ODD/rank/qrels.txt",
        "--run $ODD/rank/run.txt",
        "--run $ODD/rank/twice.txt --qrels $ODD/rank/qrels.txt",
        "--npz $ODD/rank/run.txt",
        f"{npy} --codes",
        "--run - --qrels $ODD/rank/qrels.txt < $ODD/rank/run.txt",
    ):
        yield f"detap rank retrieval {words}"
    classes = "$FIXTURES/ranking-classes"
    fixtures = f"--scores {classes}/scores.csv --labels {classes}/labels.csv"
    voc = "--scores $FIXTURES/ranking-voc/results --labels $FIXTURES/ranking-voc"
    for source in ("--npz $ODD/rank/classes.npz", "--npz $ODD/rank/multi.npz", fixtures, voc):
        for words in (
            REPORTS,
            *each(
                " | --k 1,3 | --per-query | --protocol voc2007 | --protocol non-interpolated | "
                "--interpolation 101-point --recall-grid linspace | --absent-class zero | "
                "--fail-under .99 | --fail-under min-class.AP=.1 | -o page.html | "
                "--divisor min --k 2 | --no-relevant exclude --k 2 | --image-set test"
            ),
        ):
            yield f"detap rank classification {source} {words}"
    yield "detap rank classification --npz $ODD/rank/codes.npz"


def of_odd_files(odd: Path) -> Iterator[str]:
    """Yield evaluations of odd and broken files, and checks of mutated ones."""
    for number, case in enumerate(CASES):
        if not case.stdin and case.row != "target":
            folder = f"cases/{number}"
            words = (
                f"$ODD/{folder}/{word}" if word and os.path.exists(odd / folder / word) else word
                for word in arguments(case)
            )
            yield f"detap {' '.join(map(shlex.quote, words))}"
    for target, option in MUTATED.items():
        for path in names(odd / "mutated" / target):
            yield f"detap check {option} $ODD/mutated/{target}/{path} -o check.json"
    for path in names(odd / "voc-gt"):
        yield f"detap eval $ODD/voc-gt/{path} $FIXTURES/quickstart/voc/detections"
    labelling = "$FIXTURES/labelling-tools"
    kitti = "$FIXTURES/kitti-levels/kitti"
    for change in names(odd / "voc-dt"):
        yield f"detap eval {QV.split(maxsplit=1)[0]} $ODD/voc-dt/{change} --matches matches.csv"
        yield (
            f"detap eval {labelling}/annotations.xml $ODD/yolo-dt/{change} --dt-format yolo "
            f"--class-names {labelling}/data.yaml --matches matches.csv"
        )
        yield f"detap eval {kitti}/label_2 $ODD/kitti-dt/{change}"
        yield f"detap eval $ODD/kitti-gt/{change} {kitti}/results"
        yield f"detap eval $ODD/dota/gt $ODD/dota-dt/{change} --format dota"
        yield f"detap eval $ODD/dota-gt/{change} $ODD/dota/dt --format dota"
    for path in names(odd / "arrow"):
        other = (
            "gt.parquet $ODD/arrow/{}"
            if path.startswith(("dt", "trunc"))
            else "{} $ODD/arrow/dt.parquet"
        )
        yield f"detap eval $ODD/arrow/{other.format(path)}"
        yield f"detap eval $ODD/arrow/{other.format(path)} --boxes xywh"
    for small in names(odd / "iou-types"):
        preset = (odd / "iou-types" / small / "protocol").read_text()
        files = f"$ODD/iou-types/{small}/gt.json $ODD/iou-types/{small}/dt.json"
        yield f"detap eval {files} --protocol {preset} -o report.json"
    for small in names(odd / "lrp"):
        files = f"$ODD/lrp/{small}/gt.json $ODD/lrp/{small}/dt.json"
        yield f"detap eval {files} --metrics oLRP,LRP@score=0.5 -o report.json"


def names(folder: Path) -> list[str]:
    """Return the sorted names in a folder; none if it is absent."""
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def of_public_reports(data: Path) -> Iterator[str]:
    """Yield the inputs that were rebuilt from public reports of users."""
    for name in names(data / "reports4"):
        at = f"$DATA/reports4/{name}"
        here = data / "reports4" / name
        if (here / "data.yaml").exists():
            files = f"{at}/data.yaml {at}/pred"
        elif (here / "Annotations").exists():
            files = f"{at} {at}/dt"
        elif (here / "label_2").exists():
            files = f"{at}/label_2 {at}/data"
        else:
            truth = "gt.json" if (here / "gt.json").exists() else "gt"
            files = f"{at}/{truth} {at}/{'dt.json' if (here / 'dt.json').exists() else 'dt'}"
        for options in each(
            " | --protocol coco | --as-is | --images 1,2,3 | --iou-type keypoints | "
            "--area-source box | --task obb --protocol dota --area-ranges coco"
        ):
            yield f"detap eval {files} {options} -o report.json"
        yield f"detap check {files}"


def of_python() -> Iterator[str]:
    """Yield the functions of `api.py`."""
    for name in ("evaluate", "arrays", "evaluator", "gates", "rankings", "formats", "pycocotools"):
        yield f"api {name} $FIXTURES $DATA $ODD"
