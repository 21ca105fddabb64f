"""oLRP on the command line: gates and baselines."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.coco import results_of, truth_of

LISTED = ("--metrics", "oLRP,oLRP-loc,oLRP-fp,oLRP-fn,oLRP@75")
SIDE = 40


def detections(images: dict[int, float]) -> list[dict[str, Any]]:
    """Return a detection of each image's object with an IoU; 0 detects nothing there."""
    return results_of(
        (image, 1, [0, 0 if iou else 200, SIDE, SIDE * iou or SIDE])
        for image, iou in images.items()
    )


@pytest.fixture
def folder(cwd: Path) -> Path:
    """Write four images with a cat each, and a dog that nothing detects in the first.

    By hand, at IoU 0.5: cats of ``good`` are detected at IoU .9, so oLRP is .2. Of ``poor``, two
    are, and a detection is false, of equal score in the order of the images: (.2 + .4 + 2) / 4.
    The dog has oLRP 1, so the means are .6 and .825.
    """
    cats = [(image, 1, [0, 0, SIDE, SIDE]) for image in (1, 2, 3, 4)]
    objects = [*cats, (1, 2, [0, 400, SIDE, SIDE])]
    truth = truth_of(objects, {1: "cat", 2: "dog"}, (1, 2, 3, 4))
    Path("gt.json").write_text(json.dumps(truth))
    Path("good.json").write_text(json.dumps(detections(dict.fromkeys((1, 2, 3, 4), 0.9))))
    Path("poor.json").write_text(json.dumps(detections({1: 0.9, 2: 0.8, 3: 0})))
    return cwd


def call(name: str, *arguments: str) -> tuple[str, ...]:
    return ("eval", "--gt", "gt.json", "--dt", f"{name}.json", *arguments)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--fail-over", "oLRP=0.8"], 1, "gate failed: oLRP 0.8250, required <= 0.8"),
        (["--fail-over", "oLRP=0.83"], 0, ""),
        (["--fail-over", "class:cat.oLRP-fn=0.4"], 1, "class:cat.oLRP-fn 0.5000, required <= 0.4"),
        (["--fail-over", "class:dog.oLRP-loc=0.4"], 1, "class:dog.oLRP-loc undefined"),
        (["--fail-over", "LRP@score=0.5=0.8"], 1, "LRP@score=0.5 0.8600, required <= 0.8"),
        (["--fail-under", "oLRP=0.8"], 2, "gets worse (lower is better); use --fail-over"),
        (["--fail-over", "LRP=0.8"], 2, "LRP requires a score threshold; use LRP@score=0.5"),
        (["--fail-over", "class:cat.oLRP-threshold=0.8"], 2, "no score is better than another"),
        (["--baseline", "good.report.json", "--max-rise", "oLRP=0.2"], 1, "rose by 0.2250"),
        (["--baseline", "good.report.json", "--max-rise", "oLRP=0.23"], 0, ""),
        (["--baseline", "good.report.json", "--max-drop", "oLRP=0.2"], 2, "use --max-rise"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_gates_know_that_lower_is_better(
    detap: Run, arguments: list[str], status: int, message: str
) -> None:
    detap(*call("good", *LISTED, "-o", "good.report.json"))
    ended = detap(*call("poor", *arguments, "-q"))
    assert (ended.status, message in ended.err) == (status, True), ended.err
