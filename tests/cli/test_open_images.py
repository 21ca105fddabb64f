"""Open Images on the command line: group-of boxes, image labels and errors."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import Run

BOTH = ("open-images-v2", "open-images-challenge")
# A false positive, a box, and two in the group; in image b a class that nobody has looked for.
TRUTHS = ("a,dog,.1,.3,.1,.3,0", "a,dog,.5,.9,.5,.9,1", "b,cat,.1,.3,.1,.3,0")
FOUND = (
    "a,dog,.95,.1,.2,.7,.8",
    "a,dog,.7,.1,.3,.1,.3",
    "a,dog,.2,.5,.6,.5,.6",
    "a,dog,.1,.6,.7,.6,.7",
    "b,dog,.99,.1,.3,.1,.3",
    "b,cat,.9,.1,.3,.1,.3",
    "c,cat,.95,.1,.3,.1,.3",
    "a,dog,.98,.4,.4,.1,.3",
)
LABELS = ("c,dog,0", "b,bird,1")
SIZES = ("image,width,height", "a,100,100", "b,100,100", "c,100,100")
NUMBERS = {
    # dog: two false positives, then the box; cat: a false positive, then the box.
    "open-images-v2": {"dog": 1 / 3, "cat": 1 / 2, "mAP": 5 / 12},
    # dog: a false positive, the box, the group; cat: the box.
    "open-images-challenge": {"dog": 2 / 3, "cat": 1.0, "mAP": 5 / 6},
}


@pytest.fixture
def data(cwd: Path) -> Path:
    rows = {
        "gt.csv": ("ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf", *TRUTHS),
        "dt.csv": ("ImageID,LabelName,Score,XMin,XMax,YMin,YMax", *FOUND),
        "labels.csv": ("ImageID,LabelName,Confidence", *LABELS),
        "sizes.csv": SIZES,
        "none.csv": ("ImageID,LabelName,Confidence",),
    }
    for image in "abc":
        rows[f"{image}.csv"] = (rows["dt.csv"][0], *(row for row in FOUND if row[0] == image))
    for name, lines in rows.items():
        (cwd / name).write_text("\n".join(lines) + "\n", "utf-8")
    (cwd / "slices.json").write_text('{"one": ["a"], "other": ["b", "c"]}', "utf-8")
    return cwd


def arguments(
    name: str, command: str = "eval", dt: Sequence[str] = ("--dt", "dt.csv")
) -> list[str]:
    given = [command, "--gt", "gt.csv", *dt, "--image-labels", "labels.csv"]
    return [*given, "--image-sizes", "sizes.csv", "--protocol", name]


@pytest.mark.parametrize("name", BOTH)
def test_the_numbers(data: Path, detap: Run, name: str) -> None:
    report = detap(*arguments(name), "--output-format", "json").report()
    ap_by_class = {entry["name"]: entry["AP"] for entry in report["classes"]}
    ap_by_class["mAP"] = report["summary"]["mAP"]
    assert ap_by_class == pytest.approx({"bird": None, **NUMBERS[name]})
    counts = {note["code"]: note["count"] for note in report["notes"]}
    assert counts["degenerate-detections-dropped"] == 1
    assert counts.get("unverified") == (2 if name == BOTH[1] else None)


@pytest.mark.parametrize("name", BOTH)
def test_options_of_an_evaluation(data: Path, detap: Run, name: str) -> None:
    expected = NUMBERS[name]["mAP"]
    assert detap(*arguments(name), "-o", "base.json").status == 0
    gates = ["--fail-under", "0.99", "--baseline", "base.json", "--max-drop", "0"]
    earlier = ["--baseline-detections", "dt.csv", "--confidence", ".9", "--resamples", "100"]
    outputs = ["--slices", "slices.json", "--analysis", "--curves", "curves.csv"]
    ended = detap(*arguments(name), *gates, *earlier, *outputs)
    assert ended.status == 1
    assert f"mAP {expected:.4f}, required >= 0.99" in ended.err
    assert detap(*arguments(name, "report"), "-o", "page.html").status == 0
    assert f"{expected:.4f}"[1:] in Path("page.html").read_text("utf-8")
    parts = [word for image in "cab" for word in ("--dt", f"{image}.csv")]
    assert detap(*arguments(name, dt=()), *parts, "-o", "merged.json").status == 0
    base, merged = (json.loads(Path(f).read_text()) for f in ("base.json", "merged.json"))
    assert merged["summary"] == base["summary"]
    assert detap(*arguments(name, "compare", ()), "dt.csv", "dt.csv").status == 0


def test_the_result_of_each_detection(data: Path, detap: Run) -> None:
    shown = {}
    for image in "ab":
        ended = detap("show", image, *arguments(BOTH[1])[1:], "--output-format", "json")
        shown[image] = [entry["result"] for entry in json.loads(ended.out)["detections"]]
    assert shown["a"] == ["background", "true-positive", "true-positive", "ignored"]
    assert shown["b"] == ["unverified", "true-positive"]


def test_the_protocol_of_a_value(data: Path, detap: Run) -> None:
    ended = detap(*arguments("", "explain")[:-2], "--value", "0.8333", "--top", "1")
    assert "open-images-challenge gives mAP 0.833333333333333" in " ".join(ended.out.split())


def test_image_labels_that_coco_can_store_are_converted(data: Path, detap: Run) -> None:
    ended = detap(*arguments("", "convert", ())[:-2], "--to", "coco", "-o", "gt.json")
    assert "positive image labels not supported by COCO" in ended.err
    images = {
        entry["file_name"]: entry for entry in json.loads(Path("gt.json").read_text())["images"]
    }
    assert images["c.jpg"]["neg_category_ids"] == [3]
    assert images["b.jpg"]["neg_category_ids"] == []
    ended = detap("eval", "--gt", "gt.json", "--dt", "dt.csv", "--dt-format", "openimages",
                  "--protocol", BOTH[1], "--output-format", "json")  # fmt: skip
    expected = NUMBERS[BOTH[1]]["mAP"]
    assert json.loads(ended.out)["summary"]["mAP"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            BOTH[0],
            ["--tie-range"],
            "protocol open-images-v2 matches group-of boxes in a second stage, which --tie-range "
            "does not support; omit it or use --group-of-weight none",
        ),
        (
            BOTH[1],
            ["--cross-check"],
            "--cross-check: pycocotools does not support protocol open-images-challenge",
        ),
        (
            BOTH[0],
            ["--ignore-flags", "group_of"],
            "group_of has a group_of_weight and is among ignore_flags; remove it from "
            "--ignore-flags, or use --group-of-weight none",
        ),
        (BOTH[0], ["--group-of-weight", "2"], "'--group-of-weight': 2 is not None or an integer"),
        ("coco-segm", ["--group-of-weight", "1"], "group_of_weight has no effect with iou_type"),
        (
            "coco-segm",
            ["--degenerate-boxes", "drop"],
            "degenerate_boxes has no effect with iou_type segm",
        ),
    ],
)
def test_errors_are_reported(
    data: Path, detap: Run, name: str, options: list[str], message: str
) -> None:
    said = detap(*arguments(name), *options).refused()
    assert message in " ".join(said.split())


def test_the_challenge_needs_a_label_file_which_may_be_empty(data: Path, detap: Run) -> None:
    given = ["eval", "--gt", "gt.csv", "--dt", "dt.csv", "--image-sizes", "sizes.csv"]
    challenge = [*given, "--protocol", BOTH[1]]
    said = detap(*challenge).refused()
    assert (
        "protocol open-images-challenge requires, per image, the classes known to be absent "
        "(LVIS's neg_category_ids, Open Images' --image-labels); the ground truth lacks them; add "
        "them or use --verified all"
    ) in " ".join(said.split())
    # As by V2, but for the group: dog 0 0 1 1 over two, cat 0 1 over one.
    ended = detap(*challenge, "--verified", "all", "--output-format", "json")
    assert json.loads(ended.out)["summary"]["mAP"] == pytest.approx((1 / 2 + 1 / 2) / 2)
    ended = detap(*challenge, "--image-labels", "none.csv", "--output-format", "json")
    assert json.loads(ended.out)["summary"]["mAP"] == pytest.approx(NUMBERS[BOTH[1]]["mAP"])
