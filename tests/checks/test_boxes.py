"""Box-format checks: no warning on real pairs, the right one on converted boxes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.checks.boxes import FailedCheck, failed_box_checks
from detap.errors import InputError
from detap.tables.detection import Detections, GroundTruth
from tests.cli.conftest import Run
from tests.formats.exports import write

Tables = tuple[GroundTruth, Detections]

AP = 0.504580699
"""Of coco-val2014-100, by pycocotools: expected_bbox.json there."""

VOC07 = "voc2007-test/detections"
PAIRS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "coco-val2014-100": (
        "coco-val2014-100/instances_val2014_100.json",
        "coco-val2014-100/instances_val2014_fakebbox100_results.json",
        {},
    ),
    "cartucho-85": ("cartucho-85/groundtruths_coco.json", "cartucho-85/detections_coco.json", {}),
    "voc-100": ("voc-100/gt/coco_v1/instances_default.json", "voc-100/dt/coco_dets.json", {}),
    "lvis-val-100": (
        "lvis-val-100/lvis_val_100.json",
        "lvis-val-100-results/lvis_results_bbox.json",
        {},
    ),
    "voc2007": ("voc2007-test", VOC07, {"image_set": "test"}),
    "kitti": ("kitti-from-voc/label_2", "kitti-from-voc/results", {}),
    "yolo-voc-100": (
        "yolo-voc-100/data.yaml",
        "yolo-voc-100/predictions/labels",
        {"image_sizes": "yolo-voc-100/sizes.csv"},
    ),
    "coco79": ("keypoints/coco79_gt.json", "keypoints/coco79_dt.json", {}),
    "crowdpose": (
        "keypoints/example_crowdpose_val.json",
        "keypoints/example_crowdpose_preds.json",
        {},
    ),
}
"""Ground truth and detections of the real data, and the options that they are read with."""

FEW: dict[str, tuple[str, str, dict[str, Any]]] = {
    "voc-100 aligned": (PAIRS["voc-100"][0], "voc-100/dt/coco_aligned_to_gt_v1.json", {}),
    "odm": ("odm-sample-2/groundtruths", "odm-sample-2/detections", {"boxes": "xywh"}),
    "voc-toy": (
        "voc-toy/gts_coco_format/toy_example_coco.JSON",
        "voc-toy/dets_coco_format/coco_dets.json",
        {},
    ),
}
"""Pairs with too few or other boxes for the checks here."""

CUT = {"cartucho-85": 0.25, "voc-100": 0.4, "yolo-voc-100": 0.4}
"""The pairs whose detector was run with a score threshold."""


def read(real_data: Path, name: str) -> Tables:
    gt, dt, options = (PAIRS | FEW)[name]
    for path in (gt, dt):
        if not (real_data / path).exists():
            pytest.skip(f"real data is absent: {real_data / path}")
    both = {k: v for k, v in options.items() if k == "boxes"}
    both |= {k: real_data / v for k, v in options.items() if k == "image_sizes"}
    truth = detap.read_ground_truth(real_data / gt, **{**options, **both})
    detections = detap.read_detections(real_data / dt, truth, **both)
    return truth, detections.reindex_like(truth)


def best(tables: Tables) -> Tables:
    """Return the highest-scored detection of each image and class in the ground truth."""
    truth, detections = tables
    classes = len(detections.classes)
    cells = set((truth.image * classes + truth.label).tolist())
    first: dict[int, int] = {}
    cell = (detections.image * classes + detections.label).tolist()
    for row in np.argsort(-detections.score, kind="stable").tolist():
        if cell[row] in cells:
            first.setdefault(cell[row], row)
    return truth, detections.select(np.array(sorted(first.values())))


def mismatch_codes(tables: Tables) -> list[FailedCheck]:
    return failed_box_checks(*tables, ("gt", "dt"))


def misread(table: Any) -> Any:
    """Return a table whose file contains xyxy boxes that are read as xywh."""
    corners = table.corners.copy()
    corners[:, 2:] += corners[:, :2]
    return replace(table, corners=corners)


def in_network(tables: Tables, size: int, mode: str) -> Tables:
    """Return the detections in the pixels of a network's square input."""
    truth, detections = tables
    sizes = np.asarray(truth.image_sizes)[detections.image]
    scale = size / sizes
    pad = np.zeros_like(sizes)
    if mode != "stretched":
        scale = np.repeat(scale.min(axis=1, keepdims=True), 2, axis=1)
    if mode == "centered":
        pad = (size - sizes * scale) / 2
    corners = detections.corners * np.hstack((scale, scale)) + np.hstack((pad, pad))
    return truth, replace(detections, corners=corners)


# --- over all real pairs


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "crowdpose"])
def test_xyxy_detections_are_detected(real_data: Path, name: str) -> None:
    truth, detections = best(read(real_data, name))
    (one,) = mismatch_codes((truth, misread(detections)))
    assert one.code == "detections-look-xyxy"
    assert one.problem.file == "dt"
    assert one.problem.hint.startswith(hint_for(detections, "--dt-boxes"))


SIZED = [name for name in PAIRS if name not in ("kitti", "cartucho-85", "crowdpose")]
"""Without images of unknown size. CrowdPose has four images and ten objects."""


def hint_for(table: GroundTruth | Detections, option: str) -> str:
    """Return the beginning of the hint: an option only if it changes how the file is read."""
    can_help = not any(file.fixed_boxes for file in table.files)
    return f"pass {option} xyxy" if can_help else "correct the boxes, or pass as_is"


@pytest.mark.parametrize("name", [*SIZED, "cartucho-85"])
def test_xyxy_ground_truth_is_detected(real_data: Path, name: str) -> None:
    truth, detections = best(read(real_data, name))
    (one,) = mismatch_codes((misread(truth), detections))
    assert one.code == "ground-truth-look-xyxy"
    assert one.problem.file == "gt"
    assert one.problem.hint.startswith(hint_for(truth, "--gt-boxes"))
    both = mismatch_codes((misread(truth), misread(detections)))
    assert [each.problem.file for each in both] == ["gt", "dt"]
    assert all(each.problem.hint.startswith(hint_for(truth, "--boxes")) for each in both)


@pytest.mark.parametrize("mode", ["centered", "top left", "stretched"])
@pytest.mark.parametrize("name", SIZED)
def test_network_pixels_are_detected(real_data: Path, name: str, mode: str) -> None:
    tables = read(real_data, name)
    size = 416 if mode == "stretched" else 1024
    (one,) = mismatch_codes(in_network(tables, size, mode))
    assert one.code == "detections-in-network-pixels"
    assert f"pixels of a {size}x{size} " in one.problem.message
    assert mode in one.problem.message


# --- files, commands, Python


def corners_of(box: list[float]) -> list[float]:
    return [box[0], box[1], box[0] + box[2], box[1] + box[3]]


@pytest.fixture
def files(real_data: Path, tmp_path: Path) -> dict[str, Path]:
    """Return ground truth and results of coco-val2014-100, and the same as xyxy."""
    paths = {}
    for side, source in zip(("gt", "dt"), PAIRS["coco-val2014-100"][:2], strict=True):
        if not (real_data / source).exists():
            pytest.skip(f"real data is absent: {real_data / source}")
        content = json.loads((real_data / source).read_text("utf-8"))
        for record in content["annotations"] if side == "gt" else content:
            record["bbox"] = corners_of(record["bbox"])
        paths[side] = real_data / source
        paths[f"{side} misread"] = tmp_path / f"{side}.json"
        paths[f"{side} misread"].write_text(json.dumps(content), "utf-8")
    return paths


def test_results_with_a_score_threshold_are_noted(
    files: dict[str, Path], tmp_path: Path, command: Run
) -> None:
    """A threshold of .3 lowers AP from .5046 to .3778."""
    kept = [r for r in json.loads(files["dt"].read_text("utf-8")) if r["score"] >= 0.3]
    cut = write(tmp_path / "cut.json", kept)
    call = ["--gt", str(files["gt"]), "--dt", str(cut)]
    said = command("eval", *call, "--output-format", "json").passed()
    assert json.loads(said.out)["summary"]["AP"] == pytest.approx(0.3778, abs=5e-5)
    assert "info: no score is below 0.3: a score threshold cuts off" in said.err
    assert "[scores-cut]" in said.err
    assert "[scores-cut]" in command("check", *call).passed().err
    before = ["--baseline-detections", str(files["dt"]), "--max-drop", "0.5"]
    assert "[scores-cut-differently]" in command("eval", *call, *before).passed().err
    assert command("eval", *call, *before, "--strict").status == 2
    compared = ["compare", str(files["dt"]), str(cut), "--gt", str(files["gt"]), "--resamples", "0"]
    assert "[scores-cut-differently]" in command(*compared).passed().err
    same = ["compare", str(cut), str(cut), "--gt", str(files["gt"]), "--resamples", "0"]
    assert "[scores-cut-differently]" not in command(*same).passed().err


@pytest.mark.parametrize("name", PAIRS)
def test_only_detectors_with_a_score_threshold_are_noted(real_data: Path, name: str) -> None:
    tables = read(real_data, name)
    result = detap.evaluate(*tables, "coco")
    said = [note.message for note in result.notes if note.code == "scores-cut"]
    assert [message.split(":")[0] for message in said] == (
        [f"no score is below {CUT[name]:g}"] if name in CUT else []
    )


def test_network_pixels_are_refused_by_eval_and_check(
    files: dict[str, Path], tmp_path: Path, command: Run
) -> None:
    truth = json.loads(files["gt"].read_text("utf-8"))
    sizes = {image["id"]: (image["width"], image["height"]) for image in truth["images"]}
    results = json.loads(files["dt"].read_text("utf-8"))
    for record in results:
        width, height = sizes[record["image_id"]]
        r = min(1024 / width, 1024 / height)
        x, y, w, h = record["bbox"]
        pads = (1024 - r * width) / 2, (1024 - r * height) / 2
        record["bbox"] = [x * r + pads[0], y * r + pads[1], w * r, h * r]
    path = write(tmp_path / "dt.json", results)
    call = ["--gt", str(files["gt"]), "--dt", str(path)]
    for name in ("eval", "check"):
        said = command(name, *call).refused(shown=name == "check")
        assert "boxes look like pixels of a 1024x1024 letterboxed (centered) network input" in said
        assert "(x - (1024 - r * width) / 2) / r, r = min(1024 / width, 1024 / height)" in said
    # The formula of the hint, followed.
    for record in results:
        width, height = sizes[record["image_id"]]
        r = min(1024 / width, 1024 / height)
        x, y, w, h = record["bbox"]
        left, top = (x - (1024 - r * width) / 2) / r, (y - (1024 - r * height) / 2) / r
        record["bbox"] = [left, top, w / r, h / r]
    path.write_text(json.dumps(results), "utf-8")
    report = command("eval", *call, "--output-format", "json").report()
    assert report["summary"]["AP"] == pytest.approx(AP, abs=1e-9)


# --- shards


def shards(folder: Path, results: Path, number: int) -> list[str]:
    """Write results as several files, images in turn; return their arguments."""
    records = json.loads(results.read_text("utf-8"))
    images = sorted({record["image_id"] for record in records})
    folder.mkdir()
    for shard in range(number):
        own = set(images[shard::number])
        part = [record for record in records if record["image_id"] in own]
        (folder / f"{shard}.json").write_text(json.dumps(part), "utf-8")
    return [word for path in sorted(folder.iterdir()) for word in ("--dt", str(path))]


@pytest.mark.parametrize("engine", [[], ["--classes", "person"]])
def test_shards_are_checked_together(
    files: dict[str, Path], cwd: Path, command: Run, engine: list[str]
) -> None:
    gt = ["--gt", str(files["gt"])]
    right = shards(cwd / "right", files["dt"], 40)
    assert command("eval", *gt, *right, *engine).status == 0
    wrong = shards(cwd / "wrong", files["dt misread"], 40)
    assert "pass --dt-boxes xyxy" in command("eval", *gt, *wrong, *engine).refused()


def test_few_boxes_are_not_checked() -> None:
    """Nine detections that would overlap their objects as xyxy are too few."""

    def tables(count: int) -> Tables:
        rows: dict[str, Any] = {
            "image": list(range(count)),
            "label": [1] * count,
            "boxes": [[30, 30, 60, 60]] * count,
        }
        detections = Detections.from_arrays(**rows, score=[0.5] * count, box_format="xywh")
        return GroundTruth.from_arrays(**rows), detections

    assert detap.evaluate(*tables(9)).summary["AP50"] == 0.0
    with pytest.raises(InputError, match="box_format='xyxy'"):
        detap.evaluate(*tables(10))


# --- tables of 30 images without real data


def exact_detections(count: int = 30) -> Tables:
    """Return images of 640 by 480 pixels with an object of 50 by 40 each, and its detection."""
    k = np.arange(count)
    low = np.stack((350.0 + 7 * k, 250.0 + 5 * k), axis=1)
    rows: dict[str, Any] = {"image": k, "label": [1] * count}
    rows["boxes"] = np.hstack((low, low + np.array((50, 40))))
    truth = GroundTruth.from_arrays(**rows)
    detections = Detections.from_arrays(**rows, score=np.full(count, 0.5))
    return replace(truth, image_sizes=np.tile((640.0, 480.0), (count, 1))), detections


READ_AS_XYWH = "boxes look like [x1, y1, x2, y2] but are read as [x, y, width, height]: "
CORNERS_FIT = (
    "0% of the top detections per image and class have IoU >= 0.5 with a ground truth, 100% as two "
    "corners"
)
"""The box as read has at least four times the area of the object."""


def expected_problem(role: str, option: str, why: str) -> tuple[str, ...]:
    path = {"ground-truth": "gt", "detections": "dt"}[role]
    hint = (
        f"pass {option} xyxy (boxes='xyxy'; box_format='xyxy' for arrays), or as_is=True (--as-is)"
    )
    return f"{role}-look-xyxy", path, "", READ_AS_XYWH + why, hint


def problems(tables: Tables) -> list[tuple[str, ...]]:
    return [(each.code, *each.problem) for each in mismatch_codes(tables)]


def test_corners_read_as_width_and_height_are_named_with_their_option() -> None:
    """A far corner is the sum of both, 750 and more, in images of 640 by 480 pixels."""
    truth, detections = exact_detections()
    beyond = "30 of 30 extend beyond their image"
    assert problems((truth, detections)) == []
    assert problems((misread(truth), detections)) == [
        expected_problem("ground-truth", "--gt-boxes", beyond)
    ]
    assert problems((truth, misread(detections))) == [
        expected_problem("detections", "--dt-boxes", CORNERS_FIT)
    ]
    assert problems((misread(truth), misread(detections))) == [
        expected_problem("ground-truth", "--boxes", beyond),
        expected_problem("detections", "--boxes", CORNERS_FIT),
    ]


def test_areas_of_two_corners_are_recognized_without_image_sizes() -> None:
    truth, detections = exact_detections()
    truth = replace(misread(truth), image_sizes=None, area=np.full(30, 50.0 * 40))
    why = "their areas are those of two corners"
    assert problems((truth, detections)) == [expected_problem("ground-truth", "--gt-boxes", why)]
    few = exact_detections(19)  # 20 ground truths are needed
    few_truth = replace(misread(few[0]), image_sizes=None, area=np.full(19, 50.0 * 40))
    assert problems((few_truth, few[1])) == []


def test_pixels_of_a_network_input_are_named_with_their_formula() -> None:
    """416 / 640 is 0.65: a detection has 0.4225 of the object's area, an IoU below 0.5."""
    tables = exact_detections()
    hints = {
        "centered": (
            "letterboxed (centered)",
            "((x - (416 - r * width) / 2) / r, r = min(416 / width, 416 / height))",
        ),
        "top left": ("letterboxed (top left)", "(x / r, r = min(416 / width, 416 / height))"),
        "stretched": ("stretched", "(x * width / 416, y * height / 416)"),
    }
    for mode, (name, formula) in hints.items():
        assert problems(in_network(tables, 416, mode)) == [
            (
                "detections-in-network-pixels",
                "dt",
                "",
                f"boxes look like pixels of a 416x416 {name} network input: 0% of the top "
                "detections per image and class have IoU >= 0.5 with a ground truth, 100% scaled "
                "back",
                f"scale them back to image pixels {formula}, or pass as_is=True (--as-is)",
            )
        ], mode
