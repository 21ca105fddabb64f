"""Options of other tools: each hint leads to a command that works."""

import json
import shlex
from pathlib import Path

import click
import pytest

from detap.cli import group
from detap.cli.other_tools import _SAME_OPTION
from tests.cli.conftest import Files, Run

CASES = [
    # Ultralytics and YOLOv5
    ("--conf 0.25", "--min-score", "--min-score 0.25"),
    ("--conf-thres 0.25", "--min-score", "--min-score 0.25"),
    ("--iou-thres 0.5", "--iou", "--iou 0.5"),
    ("--max_det 300", "--max-dets", "--max-dets 300"),
    ("--single-cls", "--class-agnostic", "--class-agnostic"),
    ("--workers 2", "--threads", "--threads 2"),
    # pycocotools and the COCO API
    ("--iou-thrs 0.5", "--iou", "--iou 0.5"),
    ("--iouThrs 0.5", "--iou", "--iou 0.5"),
    ("--maxDets 100", "--max-dets", "--max-dets 100"),
    ("--iouType bbox", "--iou-type", "--iou-type bbox"),
    ("--areaRng 0,1024", "--area-ranges", "--area-ranges small=0:1024"),
    ("--imgIds 1", "--images", "--images 1"),
    ("--catIds 1", "--classes", "--classes cat"),
    ("--useCats 0", "--class-agnostic", "--class-agnostic"),
    ("--ann-file x", "--gt", ""),
    ("--res-file x", "--dt", ""),
    ("--recThrs 0", "--interpolation", "--interpolation 11-point"),
    # Padilla
    ("-gt x", "--gt", ""),
    ("-det x", "--dt", ""),
    ("-t 0.3", "--iou", "--iou 0.3"),
    ("-gtformat xywh", "--gt-boxes", "--gt-boxes xywh"),
    ("-detformat xywh", "--dt-boxes", "--dt-boxes xywh"),
    # torchmetrics
    ("--iou-thresholds 0.5", "--iou", "--iou 0.5"),
    ("--max-detection-thresholds 1,10", "--max-dets", "--max-dets 1,10"),
    ("--box_format xywh", "--boxes", "--boxes xywh"),
    # TIDE
    ("--tide", "--errors", "--errors"),
    ("--background-threshold 0.1", "--errors", "--errors tidecv"),
    # FiftyOne
    ("--iou-threshs 0.5", "--iou", "--iou 0.5"),
    ("--max-preds 100", "--max-dets", "--max-dets 100"),
    # mmdetection, Detectron2, gluon
    ("--proposal-nums 100", "--max-dets", "--max-dets 100"),
    ("--out report.json", "--output", "--output {folder}/report.json"),
    ("--use-07-metric", "--interpolation", "--interpolation 11-point"),
    ("--confusion-matrix", "--confusion", "--confusion"),
    ("--ground-truth x", "--gt", ""),
    ("--predictions x", "--dt", ""),
    # Spelled otherwise
    ("--score_threshold 0.5", "--score-threshold", "--score-threshold 0.5"),
    ("--classNames x", "--class-names", ""),
]


@pytest.mark.parametrize(("foreign", "hint", "ours"), CASES, ids=[case[0] for case in CASES])
def test_the_hint_works(detap: Run, coco: Files, foreign: str, hint: str, ours: str) -> None:
    ended = detap(*coco.arguments, *shlex.split(foreign))
    name = foreign.split(maxsplit=1)[0]
    message = f"Error: No such option '{name}'. Did you mean '{hint}'?"
    assert (ended.status, ended.err.splitlines()[-1]) == (2, message)
    assert detap(*coco.arguments, *shlex.split(ours.format(folder=coco.folder))).status == 0


def test_every_name_leads_to_options_of_eval() -> None:
    eval_command = group.get_command(click.Context(group), "eval")
    assert eval_command is not None
    options = {word.lstrip("-") for option in eval_command.params for word in option.opts}
    assert set(_SAME_OPTION) <= options
    names = " ".join(_SAME_OPTION.values()).split()
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("check --conf 0.5", "No such option '--conf'."),
        ("compare a b --conf 0.5", "No such option '--conf'. Did you mean '--min-score'?"),
        ("compare a b --tide", "No such option '--tide'."),
        (
            "check --images seen",
            "No such option '--images'. Did you mean '--image-set' or '--image-size' or "
            "'--image-sizes'?",
        ),
        ("eval --confg a", "No such option '--confg'. Did you mean '--config'?"),
        ("eval -vx", "No such option '-vx'. Did you mean '-v'?"),
    ],
)
def test_only_options_of_the_command_are_named(detap: Run, line: str, end: str) -> None:
    assert detap(*line.split()).err.splitlines()[-1] == f"Error: {end}"


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("conf = 0.25", "did you mean min-score?"),
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
