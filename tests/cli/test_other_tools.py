"""Options of other tools: each hint leads to a command that works."""

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from detap.cli import group
from detap.cli.other_tools import _SAME_OPTION, _SENTENCES, advice_on
from tests.cli.conftest import Files, Run

CONF = (
    "--min-score drops detections of a lower score; "
    "--score-threshold reports precision and recall at a score"
)
AREAS = "--area-ranges names and limits them: small=0:1024"

CASES = [
    # Ultralytics and YOLOv5
    ("--conf 0.25", CONF, "--min-score 0.25 --score-threshold 0.25"),
    ("--conf-thres 0.25", CONF, "--min-score 0.25"),
    ("--iou-thres 0.5", "--iou", "--iou 0.5"),
    ("--max_det 300", "--max-dets", "--max-dets 300"),
    ("--single-cls", "--class-agnostic", "--class-agnostic"),
    ("--workers 2", "--threads", "--threads 2"),
    ("--device 0", "detap runs no model; --dt names its detections", ""),
    # pycocotools and the COCO API
    ("--iou-thrs 0.5", "--iou", "--iou 0.5"),
    ("--iouThrs 0.5", "--iou", "--iou 0.5"),
    ("--maxDets 100", "--max-dets", "--max-dets 100"),
    ("--iouType bbox", "--iou-type", "--iou-type bbox"),
    ("--areaRng 0,1024", AREAS, "--area-ranges small=0:1024"),
    ("--imgIds 1", "--images", "--images 1"),
    ("--catIds 1", "--classes lists classes by name", "--classes cat"),
    (
        "--useCats 0",
        "each class has a row of the table; --class-agnostic treats all classes as one",
        "--class-agnostic",
    ),
    ("--ann-file x", "--gt", ""),
    ("--res-file x", "--dt", ""),
    (
        "--recThrs 0",
        "--interpolation selects the recall levels: 101-point, 11-point, all-point",
        "--interpolation 11-point",
    ),
    # Padilla
    ("-gt x", "--gt", ""),
    ("-det x", "--dt", ""),
    ("-t 0.3", "--iou", "--iou 0.3"),
    (
        "-gtformat xywh",
        "--gt-format is the file format; --gt-boxes is the box format",
        "--gt-format coco --gt-boxes xywh",
    ),
    ("-detformat xywh", "--dt-boxes", "--dt-boxes xywh"),
    ("-np", "detap draws figures only with --plots DIR", ""),
    (
        "-sp out",
        "-o FILE (--output) writes the report; --plots DIR draws figures",
        "-o {folder}/report.json",
    ),
    # Cartucho
    ("--no-animation", "detap draws figures only with --plots DIR", ""),
    ("--ignore dog", "--classes lists the classes to report", "--classes cat"),
    (
        "--set-class-iou cat 0.7",
        "IoU thresholds per class are --class-iou of --protocol kitti; else use --iou",
        "--iou 0.7",
    ),
    # torchmetrics
    ("--iou-thresholds 0.5", "--iou", "--iou 0.5"),
    ("--max-detection-thresholds 1,10", "--max-dets", "--max-dets 1,10"),
    ("--box_format xywh", "--boxes", "--boxes xywh"),
    # TIDE
    ("--tide", "--errors", "--errors"),
    ("--background-threshold 0.1", "--errors tidecv uses TIDE's thresholds", "--errors tidecv"),
    # FiftyOne
    ("--iou-threshs 0.5", "--iou", "--iou 0.5"),
    ("--max-preds 100", "--max-dets", "--max-dets 100"),
    # mmdetection, Detectron2, gluon
    ("--proposal-nums 100", "--max-dets", "--max-dets 100"),
    ("--out report.json", "--output", "--output {folder}/report.json"),
    ("--use-07-metric", "use --interpolation 11-point", "--interpolation 11-point"),
    ("--confusion-matrix", "--confusion", "--confusion"),
    ("--ground-truth x", "--gt", ""),
    ("--predictions x", "--dt", ""),
    # Spelled otherwise
    ("--score_threshold 0.5", CONF, "--score-threshold 0.5"),
    ("--classNames x", "--class-names", ""),
]


@pytest.mark.parametrize(("foreign", "hint", "ours"), CASES, ids=[case[0] for case in CASES])
def test_the_hint_works(detap: Run, coco: Files, foreign: str, hint: str, ours: str) -> None:
    ended = detap(*coco.arguments, *shlex.split(foreign))
    name = foreign.split(maxsplit=1)[0]
    is_option = re.fullmatch(r"--[a-z-]+", hint)
    expected = f". Did you mean '{hint}'?" if is_option else f"; {hint}"
    assert ended.status == 2
    assert ended.err.splitlines()[-1] == f"Error: No such option '{name}'{expected}"
    followed = detap(*coco.arguments, *shlex.split(ours.format(folder=coco.folder)))
    assert followed.status == 0, followed.err


def test_every_name_leads_to_options_of_eval() -> None:
    eval_command = group.get_command(click.Context(group), "eval")
    assert eval_command is not None
    options = {word.lstrip("-") for option in eval_command.params for word in option.opts}
    assert set(_SAME_OPTION) <= options
    for sentence in _SENTENCES.values():
        assert set(re.findall(r"(?<=--)[a-z-]+", sentence)) <= options, sentence
    names = " ".join([*_SAME_OPTION.values(), *_SENTENCES]).split()
    assert len(names) == len(set(names))
    for name in names:
        assert advice_on(name, options) not in (None, ("", "")), name


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("check --conf 0.5", "No such option '--conf'."),
        (
            "compare a b --conf 0.5",
            "No such option '--conf'; --min-score drops detections of a lower score",
        ),
        ("compare a b --tide", "No such option '--tide'."),
        ("eval --confg a", "No such option '--confg'. Did you mean '--config'?"),
        ("eval -vx", "No such option '-vx'. Did you mean '-v'?"),
    ],
)
def test_only_options_of_the_command_are_named(detap: Run, line: str, end: str) -> None:
    assert detap(*line.split()).err.splitlines()[-1] == f"Error: {end}"


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("conf = 0.25", CONF),
        ("iou_thrs = 0.5", "did you mean iou?"),
        ("maxDets = 5", "did you mean max-dets?"),
        ("protocl = 'coco'", "did you mean protocol?"),
    ],
)
def test_settings_have_the_same_hints(
    detap: Run, coco: Files, tmp_path: Path, setting: str, hint: str
) -> None:
    (tmp_path / "detap.toml").write_text(f"{setting}\n")
    ended = detap(*coco.arguments, "--config", tmp_path / "detap.toml")
    name = setting.split(maxsplit=1)[0]
    assert ended.status == 2
    assert ended.err.endswith(f"detap.toml: unknown setting '{name}'; {hint}\n")


def test_min_score_is_what_conf_means_elsewhere(detap: Run, coco: Files) -> None:
    """--min-score does what Ultralytics' conf does: three of the five detections remain."""
    ended = detap(*coco.arguments, "--min-score", "0.65", "--output-format", "json")
    assert sum(row["detections"] for row in json.loads(ended.out)["classes"]) == 3
