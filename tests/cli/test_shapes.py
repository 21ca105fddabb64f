"""Masks, boundaries and keypoints on the command line."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, instances, results, summary, written

SHIFT = 8
"""Pixels by which the first pose is off, on both axes: an OKS of .5952 in a box of 100 by 100."""

SEGM = ["--iou-type", "segm"]
KEYPOINTS = ["--iou-type", "keypoints"]


def ring(box: list[float]) -> list[list[float]]:
    """Return a box as a polygon."""
    x, y, w, h = box
    return [[x, y, x + w, y, x + w, y + h, x, y + h]]


def pose(box: list[float], shift: float = 0) -> list[float]:
    """Return 17 keypoints on the diagonal of a box, all labeled."""
    x, y, w, h = box
    return [
        value for n in range(17) for value in (x + w * n / 16 + shift, y + h * n / 16 + shift, 2)
    ]


def masked() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the small case with every box as a mask too."""
    truth, detections = instances(), results()
    for row in (*truth["annotations"], *detections):
        row["segmentation"] = ring(row["bbox"])
    return truth, detections


@pytest.fixture
def masks(tmp_path: Path) -> list[str]:
    """Write files of masks, the first narrower than its box; return arguments."""
    truth, detections = masked()
    detections[0]["segmentation"] = ring([0, 0, 60, 100])
    return written(tmp_path, truth, detections)


@pytest.fixture
def poses(tmp_path: Path) -> list[str]:
    """Write files with keypoints in every box, the first detection's shifted; return arguments."""
    truth, detections = instances(), results()
    for row in (*truth["annotations"], *detections):
        row["keypoints"] = pose(row["bbox"])
    for row in truth["annotations"]:
        row["num_keypoints"] = 17
    detections[0]["keypoints"] = pose(detections[0]["bbox"], SHIFT)
    return written(tmp_path, truth, detections)


@dataclass(frozen=True)
class Shape:
    """Files of a shape, and its IoU type, preset and the first detection's similarity."""

    arguments: list[str]
    iou_type: str
    similarity: str

    @property
    def asked(self) -> list[str]:
        return [*self.arguments, "--iou-type", self.iou_type]

    @property
    def preset(self) -> str:
        return f"coco-{self.iou_type}"


@pytest.fixture(params=["segm", "keypoints"])
def shape(request: pytest.FixtureRequest) -> Shape:
    masks = request.param == "segm"
    arguments = request.getfixturevalue("masks" if masks else "poses")
    return Shape(arguments, request.param, "0.6000" if masks else "0.5952")


# --- of both


def test_the_sibling_of_a_preset(detap: Run, shape: Shape) -> None:
    files, as_json = shape.arguments, ("-o", "json=-")
    of_type = detap("eval", *shape.asked, *as_json)
    assert f"protocol:{shape.preset}|" in json.loads(of_type.out)["signature"]
    of_preset = detap("eval", *files, "--protocol", shape.preset, *as_json)
    assert summary(of_preset) == summary(of_type)
    boxes = detap("eval", *files, "--protocol", shape.preset, "--iou-type", "bbox", *as_json)
    assert summary(boxes) == summary(detap("eval", *files, *as_json))
    signature = detap("eval", *shape.asked, "--protocol", "voc2012", *as_json).report()["signature"]
    assert signature.startswith(f"protocol:voc2012|inclusive-pixels:no|iou-type:{shape.iou_type}|")


def test_several_inputs(detap: Run, shape: Shape, tmp_path: Path) -> None:
    """Two results files of one image each, and a third image without detections."""
    truth, detections = (json.loads(Path(path).read_text()) for path in shape.arguments[1::2])
    truth["images"].append({"id": 3, "width": 9, "height": 9})
    box = [1.0, 1.0, 3.0, 3.0]
    added = {"id": 9, "image_id": 3, "segmentation": ring(box), "keypoints": pose(box)}
    truth["annotations"].append({**truth["annotations"][0], **added})
    whole = written(tmp_path, truth, detections)
    how = ["--iou-type", shape.iou_type, "-o", "json=-"]
    expected = summary(detap("eval", *whole, *how))
    for image in (1, 2):
        rows = [row for row in detections if row["image_id"] == image]
        (tmp_path / f"dt{image}.json").write_text(json.dumps(rows))
    parts = [part for n in (1, 2) for part in ("--dt", str(tmp_path / f"dt{n}.json"))]
    assert summary(detap("eval", *whole[:2], *parts, *how)) == expected


@pytest.mark.parametrize(
    "asked",
    [
        *(["--errors"], ["--confusion"], ["--tie-range"], ["--cross-check"], ["--calibration"]),
        *(["--fail-under", "AP50=0.2"], ["--fail-under", "AR100=0.01"]),
    ],
    ids=" ".join,
)
def test_analyses_work(detap: Run, shape: Shape, asked: list[str]) -> None:
    if shape.iou_type == "keypoints":
        asked = [word.replace("AR100", "AR75") for word in asked]
    assert detap("eval", *shape.asked, *asked).status == 0


def test_errors_by_tidecv_are_rejected(detap: Run, shape: Shape) -> None:
    said = detap("eval", *shape.asked, "--errors", "tidecv").refused()
    assert f"has iou_type {shape.iou_type}, this requires bbox; type the errors by" in said


def test_explain_reads_shapes_if_a_protocol_uses_them(detap: Run, shape: Shape) -> None:
    ended = detap("explain", *shape.arguments, "--from", "coco", "--to", shape.preset).passed()
    assert "iou type" in ended.out


def test_an_image_and_the_page(detap: Run, shape: Shape, tmp_path: Path) -> None:
    assert shape.similarity in detap("show", "1", *shape.asked).passed().out
    page = tmp_path / "page.html"
    assert detap("eval", *shape.asked, "-o", str(page)).status == 0
    assert page.stat().st_size > 1000


@pytest.mark.parametrize(
    ("files", "iou_type", "hint"),
    [
        ("masks", "segm", "--iou-type segm); coco-boundary ("),
        ("masks", "boundary", "--iou-type boundary)"),
        (
            *("poses", "keypoints"),
            "crowdpose, ultralytics-pose (compare keypoints: --iou-type keypoints)",
        ),
    ],
)
def test_a_value_is_searched_if_requested(
    detap: Run, request: pytest.FixtureRequest, files: str, iou_type: str, hint: str
) -> None:
    """The first search reports the skipped presets and the option that searches them."""
    arguments = request.getfixturevalue(files)
    name = f"coco-{iou_type}"
    value = summary(detap("eval", *arguments, "--protocol", name, "-o", "json=-"))["AP"]
    search = ["explain", *arguments, "--value", repr(value), "--metric", "AP"]
    assert hint in " ".join(detap(*search).out.split())
    ended = detap(*search, "--iou-type", iou_type)
    assert ended.out.startswith(f"{name} gives AP {value!r}, equal in all"), ended.err


BOUNDARY = ["--iou-type", "boundary"]


@pytest.mark.parametrize(
    ("files", "asked", "message"),
    [
        (
            *("masks", [*BOUNDARY, "--cross-check"]),
            "pycocotools does not support protocol coco-boundary (iou-type, ignore-flags)",
        ),
        ("masks", [*SEGM, "--dilation-ratio", "0.01"], "dilation_ratio has no effect with iou_"),
        ("masks", [*SEGM, "--detection-area", "extent"], "detection_area has no effect with iou_"),
        ("poses", [*KEYPOINTS, "--class-agnostic"], "class_agnostic has no effect with iou_type"),
        ("poses", [*KEYPOINTS, "--inclusive-pixels"], "inclusive_pixels has no effect with iou_"),
        ("poses", [*KEYPOINTS, "--detection-area", "pixels"], "detection_area has no effect with"),
        (
            *("poses", ["--iou-type", "bbox", "--ignore-flags", "crowd,no-keypoints"]),
            "no_keypoints has no effect with iou_type bbox; remove it from --ignore-flags",
        ),
    ],
)
def test_options_without_effect_on_a_shape(
    detap: Run, request: pytest.FixtureRequest, files: str, asked: list[str], message: str
) -> None:
    assert message in detap("eval", *request.getfixturevalue(files), *asked).refused()


# --- masks


def test_masks_are_scored(detap: Run, masks: list[str]) -> None:
    """The narrow mask (6,000 of 10,000 pixels) is a TP at .5 and an FP at .75."""
    boxes = summary(detap("eval", *masks, "-o", "json=-"))
    report = summary(detap("eval", *masks, *SEGM, "-o", "json=-"))
    assert report["AP50"] == boxes["AP50"]
    assert report["AP75"] < boxes["AP75"]


def test_malformed_masks_are_reported_with_their_location(
    detap: Run, masks: list[str], tmp_path: Path
) -> None:
    detections = results()
    detections[2]["segmentation"] = {"size": [480, 640], "counts": [5]}
    arguments = written(tmp_path, json.loads(Path(masks[1]).read_text()), detections)
    said = detap("eval", *arguments, *SEGM).refused()
    assert "dt.json: [2]: counts sum to 5, expected 307200 for size [480, 640]" in said
    assert detap("eval", *arguments).status == 0


# --- boundaries


@pytest.mark.parametrize("how", [["--iou-type", "boundary"], ["--protocol", "coco-boundary"]])
def test_boundaries_are_scored(detap: Run, masks: list[str], how: list[str]) -> None:
    """With a dilation as large as the image, boundaries equal masks."""
    ended = detap("eval", *masks, *how, "-o", "json=-")
    assert "protocol:coco-boundary|" in json.loads(ended.out)["signature"]
    of_masks = summary(detap("eval", *masks, *SEGM, "-o", "json=-"))
    assert summary(ended)["AP"] < of_masks["AP"]
    deep = detap("eval", *masks, *how, "--dilation-ratio", "1", "-o", "json=-")
    assert "|dilation-ratio:1|" in json.loads(deep.out)["signature"]
    assert summary(deep) == of_masks


# --- check


def test_check_reads_masks_if_the_protocol_uses_them(tmp_path: Path, detap: Run) -> None:
    truth, detections = masked()
    detections[1]["segmentation"] = {"size": [640, 480], "counts": [640 * 480]}
    truth["annotations"][2]["segmentation"] = []
    given = ["check", *written(tmp_path, truth, detections)]
    assert detap(*given).status == 0
    for how in (SEGM, ["--protocol", "coco-segm"], ["--iou-type", "boundary"]):
        assert "annotations[2] (id 3): segmentation is empty" in detap(*given, *how).refused(
            shown=True
        )
    # Its remedy, and the other file: sizes are those of the ground truth, which can now be read.
    truth["annotations"][2]["segmentation"] = ring([0, 0, 50, 50])
    written(tmp_path, truth, detections)
    ended = detap(*given, *SEGM)
    assert "dt.json: [1]: segmentation has size [640, 480], expected [480" in ended.err


@pytest.mark.parametrize("form", ["polygons", "boxes", "runs"])
def test_check_reads_masks_of_detections_without_ground_truth(
    tmp_path: Path, detap: Run, form: str
) -> None:
    """Image sizes are unknown then, and polygons are accepted nevertheless."""
    path = tmp_path / "dt.json"
    rows = results()
    for row in rows if form != "boxes" else ():
        row["segmentation"] = ring(row["bbox"])
        if form == "runs":
            row["segmentation"] = {"size": [480, 640], "counts": [480 * 640]}
        else:
            del row["bbox"]
    path.write_text(json.dumps(rows))
    ended = detap("check", "--dt", str(path), *SEGM, "--output-format", "json").passed()
    assert json.loads(ended.out)["statistics"]
    rows[1]["segmentation"] = {"size": [480, 640], "counts": [480 * 640 - 1]}
    path.write_text(json.dumps(rows))
    said = detap("check", "--dt", str(path), *SEGM).refused(shown=True)
    assert "[1]: counts sum to 307199" in said


@pytest.mark.parametrize("how", [SEGM, ["--protocol", "coco-segm"]])
def test_check_reads_masks_only_from_coco_files(tmp_path: Path, detap: Run, how: list[str]) -> None:
    (tmp_path / "a.xml").write_text("<annotation/>")
    said = detap("check", "--format", "voc", "--gt", str(tmp_path), *how).refused()
    assert "masks are read from COCO and YOLO files; these are read as voc" in said


# --- keypoints


def test_the_summary_of_keypoints(detap: Run, poses: list[str]) -> None:
    report = summary(detap("eval", *poses, *KEYPOINTS, "-o", "json=-"))
    names = ["AP", "AP50", "AP75", "APm", "APl", "AR20", "AR50", "AR75", "ARm", "ARl"]
    assert [*report] == names
    assert report["AP75"] < report["AP50"]
    ended = detap("eval", *poses, *KEYPOINTS).passed()
    assert "AR75  " in ended.out
    assert re.search(r"metric +value +OKS +area", ended.out)
    assert "AR50" in ended.out.splitlines()[0]


def test_another_skeleton_needs_sigmas(detap: Run, poses: list[str], tmp_path: Path) -> None:
    """Follow the hint of the message."""
    truth, detections = (json.loads(Path(path).read_text()) for path in poses[1::2])
    for row in (*truth["annotations"], *detections):
        row["keypoints"] = row["keypoints"][:6]
    arguments = written(tmp_path, truth, detections)
    said = detap("eval", *arguments, *KEYPOINTS).refused()
    message = "the protocol has 17 sigmas, but rows of the ground truth have 2 keypoints"
    assert message in said
    ended = detap("eval", *arguments, *KEYPOINTS, "--sigmas", "0.05,0.1", "-o", "json=-")
    assert "coco-keypoints|sigmas:0.05,0.1|" in json.loads(ended.out)["signature"]
    said = detap("eval", *arguments, *KEYPOINTS, "--sigmas", "0.05,0").refused()
    assert "'--sigmas': 0.0 is outside" in said


def test_annotations_with_ignore_set_are_ignored(
    detap: Run, poses: list[str], tmp_path: Path
) -> None:
    """Unless the protocol does not ignore that flag."""
    truth, detections = (json.loads(Path(path).read_text()) for path in poses[1::2])
    truth["annotations"][0]["num_keypoints"] = 0
    arguments = [*written(tmp_path, truth, detections), *KEYPOINTS, "-o", "json=-"]
    ignored, counted = (
        sum(row["ground_truths"] for row in json.loads(detap("eval", *how).out)["classes"])
        for how in (arguments, [*arguments, "--ignore-flags", "crowd"])
    )
    assert ignored == counted - 1


def test_gates_and_a_comparison(detap: Run, poses: list[str], tmp_path: Path) -> None:
    ended = detap("eval", *poses, *KEYPOINTS, "--fail-under", "AP75=1")
    assert ended.status == 1
    before = tmp_path / "before.json"
    assert detap("eval", *poses, *KEYPOINTS, "-o", str(before)).status == 0
    detections = json.loads(Path(poses[3]).read_text())
    for row in detections:
        row["keypoints"] = pose(row["bbox"], 60)
    worse = tmp_path / "worse.json"
    worse.write_text(json.dumps(detections))
    arguments = ["eval", *poses[:2], "--dt", str(worse), *KEYPOINTS, "--max-drop", "AP=0.01"]
    ended = detap(*arguments, "--baseline", str(before))
    assert ended.status == 1, ended.err
    noise = "--confidence", "0.9", "--resamples", "100", "--min-ground-truths", "0"
    ended = detap(*arguments, "--baseline-detections", poses[3], *noise)
    assert ended.status in (0, 1), ended.err
    assert "90%" in ended.out + ended.err
    ended = detap(
        "compare", poses[3], str(worse), *poses[:2], *KEYPOINTS, "--resamples", "100"
    ).passed()
    assert "AR75" in ended.out
