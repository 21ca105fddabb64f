"""YOLO rows with more than boxes: keypoints, polygons, oriented boxes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.errors import InputError, UsageError
from tests.cli.conftest import Run
from tests.coco import truth_of
from tests.formats.helpers import codes, png
from tests.formats.voc_files import write

SQUARE = "0 .2 .2 .8 .2 .8 .8 .2 .8"
DIAMOND = "0 .5 .2 .8 .5 .5 .8 .2 .5"
TURNED = "0 .5 .3 .7 .5 .5 .7 .3 .5"
BOX = ".5 .5 .6 .6"


def pose(count: int, size: int, box: str = BOX) -> str:
    """Return a box and keypoints strictly inside it."""
    points = [(0.3 + 0.4 * at / count, 0.35 + 0.3 * (at % 5) / 5) for at in range(count)]
    rows = (f"{x:.4f} {y:.4f}" + " 2" * (size == 3) for x, y in points)
    return f"0 {box} {' '.join(rows)}"


def data_set(folder: Path, labels: str, predictions: str, yaml: str = "") -> Path:
    """Write a data set of one image of 100 x 100 pixels, and predictions."""
    write(
        folder,
        {
            "data.yaml": f"val: images\nnames: [thing]\n{yaml}",
            "images/a.png": png(100, 100),
            "labels/a.txt": labels + "\n",
            "run/a.txt": predictions + "\n",
        },
    )
    return folder / "data.yaml"


def tables(data: Path, **options: Any) -> tuple[detap.GroundTruth, detap.Detections]:
    truth = detap.read_ground_truth(data, **options)
    return truth, detap.read_detections(data.parent / "run", truth, format="yolo", **options)


def score(data: Path, protocol: Any = "coco", **options: Any) -> detap.Result:
    return detap.evaluate(*tables(data, **options), protocol=protocol)


# --- keypoints


@pytest.mark.parametrize("shape", [(17, 3), (17, 2), (12, 2), (24, 3), (1, 2), (1, 3), (2, 2)])
@pytest.mark.parametrize("written", ["kpt_shape: [{}, {}]", "kpt_shape:\n- {}\n- {}"])
def test_rows_with_keypoints(shape: tuple[int, int], written: str, tmp_path: Path) -> None:
    """On 97fee23 [12, 2] gave AP .0104, [24, 3] gave 0, and [17, 3] an error, without a note."""
    row = pose(*shape)
    truth, detections = tables(data_set(tmp_path, row, f"{row} .9", written.format(*shape) + "\n"))
    assert truth.corners.tolist() == [[20, 20, 80, 80]]
    assert detections.corners.tolist() == [[20, 20, 80, 80]]
    assert detections.score.tolist() == [0.9]
    assert truth.polygons is None
    for table in (truth, detections):
        assert np.asarray(table.keypoints).shape[:2] == (1, shape[0])
        assert np.asarray(table.keypoints)[0, 0, :2].tolist() == pytest.approx([30, 35])
    result = detap.evaluate(truth, detections)
    assert result.protocol.name == "ultralytics-pose"
    assert result.summary["AP"] == pytest.approx(1)
    boxes = detap.evaluate(truth, detections, "coco")
    assert boxes.summary["AP"] == pytest.approx(1)
    assert {note.code: note.count for note in boxes.notes}["keypoints-left-out"] == 1


@pytest.mark.parametrize("shape", [(17, 3), (24, 3), (12, 2), (4, 2), (5, 3), (2, 3)])
def test_keypoints_without_kpt_shape(shape: tuple[int, int], tmp_path: Path) -> None:
    row = pose(*shape)
    rows = "\n".join(pose(*shape, f".5 .5 .{at} .{at}") for at in range(70, 80))
    data = data_set(tmp_path, f"{row}\n{rows}", f"{row} .9")
    hint = rf"`kpt_shape: \[{shape[0]}, {shape[1]}\]`"
    with pytest.raises(InputError, match=hint):
        detap.read_ground_truth(data)
    data.write_text(f"{data.read_text()}kpt_shape: [{shape[0]}, {shape[1]}]\n")
    assert detap.read_ground_truth(data).corners[0].tolist() == [20, 20, 80, 80]


def test_no_predicted_keypoints_at_all(tmp_path: Path) -> None:
    data = data_set(tmp_path, pose(1, 3), "", "kpt_shape: [1, 3]\n")
    assert score(data, "ultralytics-pose").summary["AP"] == 0
    detap.convert(tmp_path / "out", *tables(data), to="yolo")
    assert (tmp_path / "out/predictions/labels/a.txt").read_text() == ""


def test_predicted_keypoints_for_ground_truth_of_another_format(tmp_path: Path) -> None:
    data = data_set(tmp_path, pose(17, 3), f"{pose(17, 2)} .9", "kpt_shape: [17, 2]\n")
    content = truth_of([(1, 1, [20, 20, 60, 60])], {1: "thing"}, {1: "a.png"}, size=(100, 100))
    truth = detap.read_ground_truth(write(tmp_path, {"gt.json": json.dumps(content)}) / "gt.json")
    names = write(tmp_path, {"more/classes.txt": "thing\n"}) / "more" / "classes.txt"
    with pytest.raises(InputError, match=r"every row has 40 columns.*--class-names.*--task segm"):
        detap.read_detections(tmp_path / "run", truth, class_names=names)
    detections = detap.read_detections(tmp_path / "run", truth, class_names=data)
    assert detap.evaluate(truth, detections).summary["AP"] == pytest.approx(1)


def test_the_hint_for_predicted_keypoints_of_unknown_size(tmp_path: Path) -> None:
    """12 numbers are four keypoints or six; 16 are eight."""
    rows = "\n".join(f"{pose(4, 3, f'.5 .5 .{at} .{at}')} .9" for at in range(70, 80))
    data = data_set(tmp_path, f"0 {BOX}", rows)
    truth = detap.read_ground_truth(data)
    with pytest.raises(InputError, match=r"look like rows of keypoints.*`kpt_shape: \[K, D\]`"):
        detap.read_detections(tmp_path / "run", truth, format="yolo")
    write(tmp_path, {"run/a.txt": "\n".join(f"{pose(8, 2)} .{at}" for at in range(70, 80))})
    with pytest.raises(InputError, match=r"look like rows of keypoints.*`kpt_shape: \[8, 2\]`"):
        detap.read_detections(tmp_path / "run", truth, format="yolo")


@pytest.mark.parametrize(
    ("yaml", "task", "error"),
    [
        ("kpt_shape: [5]\n", None, r"line 3: kpt_shape '5' is not \[K, 2\] or \[K, 3\]"),
        ("kpt_shape: [0, 2]\n", None, "is not"),
        ("kpt_shape: [a, b]\n", None, "is not"),
        ("kpt_shape: 5 2\n", None, "is not"),
        ("", "detect", "has 15 columns, expected 5 for --task detect"),
        ("", "obb", "has 15 columns, expected 9 for --task obb"),
    ],
)
def test_contradictions(yaml: str, task: str | None, error: str, tmp_path: Path) -> None:
    data = data_set(tmp_path, pose(5, 2), f"{pose(5, 2)} .9", yaml)
    with pytest.raises(InputError, match=error):
        detap.read_ground_truth(data, task=task)


def test_two_data_yaml_that_disagree(tmp_path: Path) -> None:
    data = data_set(tmp_path, pose(5, 2), f"{pose(5, 2)} .9", "kpt_shape: [5, 2]\n")
    truth = detap.read_ground_truth(data)
    other = write(tmp_path, {"b.yaml": "names: [thing]\nkpt_shape: [6, 2]\n"}) / "b.yaml"
    with pytest.raises(InputError, match=r"kpt_shape is \[6, 2\], and \[5, 2\] in "):
        detap.read_detections(tmp_path / "run", truth, class_names=other)


# --- oriented boxes


@pytest.mark.parametrize("task", [None, "obb"])
def test_a_diamond_in_a_square(task: str | None, tmp_path: Path) -> None:
    """Its area is half the square's; their bounding boxes are equal."""
    data = data_set(tmp_path, SQUARE, f"{DIAMOND} .9")
    protocol = detap.protocol("coco").with_changes(iou_type="polygon")
    tight = protocol.with_changes(iou_thresholds=(0.6,))
    loose = protocol.with_changes(iou_thresholds=(0.5,))
    assert score(data, tight, task=task).summary["AP"] == 0
    assert score(data, loose, task=task).summary["AP"] == pytest.approx(1)
    assert score(data, "dota", task=task).summary["mAP"] == 0  # above .5, not at .5
    truth = detap.read_ground_truth(data, task=task)
    assert truth.polygons is None  # upright: a box
    detections = detap.read_detections(tmp_path / "run", truth, task=task)
    assert np.asarray(detections.polygons).tolist() == [[50, 20, 80, 50, 50, 80, 20, 50]]
    with pytest.raises(UsageError, match="protocol coco compares boxes, but there are oriented"):
        detap.evaluate(truth, detections)
    bounding = score(data, None, task=task, shapes="bbox")
    assert bounding.protocol.name == "coco"
    assert bounding.summary["AP"] == pytest.approx(1)
    assert codes(bounding.detections)["polygons-bounded"] == 1


def test_upright_predictions_of_oriented_boxes(tmp_path: Path) -> None:
    """They are oriented boxes too: IoU is .5, reached at one of ten thresholds."""
    data = data_set(tmp_path, DIAMOND, f"{SQUARE} .9")
    result = score(data, None)
    assert result.protocol.name == "coco-polygon"
    assert result.summary["AP"] == pytest.approx(0.1)
    upright = data_set(tmp_path / "upright", SQUARE, f"{SQUARE} .9")
    assert score(upright, None).protocol.name == "coco"


@pytest.mark.parametrize("rows", [f"0 {BOX} .9", f"{DIAMOND} .9"])
def test_polygons_of_four_corners(rows: str, tmp_path: Path) -> None:
    """With --task segment their bounding boxes count, as those of other polygons."""
    data = data_set(tmp_path, DIAMOND, rows)
    result = score(data, None, task="segment")
    assert result.protocol.name == "coco"
    assert result.summary["AP"] == pytest.approx(1)
    assert codes(result.ground_truth)["polygons-bounded"] == 1
    protocol = detap.protocol("coco").with_changes(iou_type="polygon")
    with pytest.raises(UsageError, match=r"1 polygons of the .* are read as their bounding boxes"):
        score(data, protocol, task="segment")


def test_areas_and_repeated_rows_are_those_of_quadrilaterals(tmp_path: Path) -> None:
    rows = f"{SQUARE}\n{DIAMOND}\n{DIAMOND}\n{TURNED}"
    truth = detap.read_ground_truth(data_set(tmp_path, rows, f"{DIAMOND} .9"))
    assert truth.area.tolist() == pytest.approx([3600, 1800, 800])
    assert truth.corners.tolist() == [[20, 20, 80, 80], [20, 20, 80, 80], [30, 30, 70, 70]]
    assert codes(truth)["repeated-rows"] == 1


def test_labels_of_four_corners_and_predicted_boxes(tmp_path: Path, command: Run) -> None:
    """Oriented boxes or polygons? Only --shapes or --task decides: tests/checks follow the hint."""
    data = data_set(tmp_path, DIAMOND, f"0 {BOX} .9")
    given = "eval", str(data), str(tmp_path / "run"), "--dt-format", "yolo"
    said = command(*given, "--protocol", "coco").refused()
    assert "in the ground truth; use --shapes bbox for their bounding boxes" in said
    said = command(*given, "--task", "obb").refused()
    assert "has 6 columns, expected 10 for --task obb" in said
    truth = detap.read_ground_truth(data, task="obb")
    detections = detap.read_detections(tmp_path / "run", truth, format="yolo")
    protocol = detap.protocol("coco").with_changes(iou_type="polygon", iou_thresholds=(0.5,))
    assert detap.evaluate(truth, detections, protocol).summary["AP"] == pytest.approx(1)
    write(tmp_path, {"images/b.png": png(50, 100), "labels/b.txt": f"0 {BOX}\n"})
    truth = detap.read_ground_truth(data)
    assert np.asarray(truth.polygons)[1].tolist() == [10, 20, 40, 20, 40, 80, 10, 80]


def test_corners_beyond_the_image(tmp_path: Path) -> None:
    """As of rotated boxes, in 73 of 446 rows of real predictions."""
    far = "0 .5 -.4 1.4 .5 .5 1.4 -.4 .5"
    truth = detap.read_ground_truth(data_set(tmp_path, far, f"{far} .9"))
    detections = detap.read_detections(tmp_path / "run", truth)
    assert codes(truth)["ground-truth-beyond-image"] == 1
    assert codes(detections)["detections-beyond-image"] == 1
    farther = "0 .5 -.9 1.9 .5 .5 1.9 -.9 .5"
    write(tmp_path, {"run/a.txt": f"{farther} .9\n"})
    detap.read_detections(tmp_path / "run", truth)
    write(tmp_path, {"labels/a.txt": farther + "\n"})
    with pytest.raises(InputError, match=r"the lowest x -0\.9 is outside .0, 1"):
        detap.read_ground_truth(tmp_path / "data.yaml")
    write(tmp_path, {"run/a.txt": "0 .5 -1.9 2.9 .5 .5 2.9 -1.9 .5 .9\n"})
    with pytest.raises(InputError, match=r"the lowest x -1\.9 is outside .0, 1"):
        detap.read_detections(tmp_path / "run", truth, format="yolo")


def test_other_polygons_are_not_compared_as_their_bounds(tmp_path: Path) -> None:
    rows = f"{DIAMOND}\n0 .2 .2 .6 .2 .4 .6"
    data = data_set(tmp_path, rows, f"{DIAMOND} .9")
    protocol = detap.protocol("coco").with_changes(iou_type="polygon")
    with pytest.raises(UsageError, match=r"1 polygons of the detections .*--iou-type bbox"):
        score(data, protocol)
    assert score(data).summary["AP"] == pytest.approx(0.50495, abs=1e-5)  # one of two, as boxes


# --- keypoints without visibility, areas and sigmas


def test_keypoints_without_visibility(tmp_path: Path) -> None:
    """Those of negative x or y are unlabeled; 0 0 is labeled, with a note."""
    row = f"0 {BOX} .3 .4 -.005 .5 0 0"
    data = data_set(tmp_path, row, f"{row} .9", "kpt_shape: [3, 2]\n")
    truth = detap.read_ground_truth(data)
    assert np.asarray(truth.keypoints)[0, :, 2].tolist() == [2, 0, 2]
    assert truth.sigmas == (1 / 3,) * 3
    assert codes(truth)["keypoints-at-zero"] == 1
    detections = detap.read_detections(tmp_path / "run", truth)
    assert np.asarray(detections.keypoints)[0].tolist() == [[30, 40], [-0.5, 50], [0, 0]]


def test_objects_without_labeled_keypoints_are_ignored(tmp_path: Path) -> None:
    rows = f"0 {BOX} .3 .4 2\n0 .2 .2 .1 .1 .2 .2 0"
    data = data_set(tmp_path, rows, f"0 {BOX} .3 .4 .7 .9", "kpt_shape: [1, 3]\n")
    result = detap.evaluate(data, tmp_path / "run")
    assert result.summary["AP"] == pytest.approx(1)
    assert (result.ground_truths.sum(), result.ignored.sum()) == (1, 1)


def test_oks_of_a_pose(tmp_path: Path) -> None:
    """exp(-d² / 2a(2s)²) with d = 12 pixels, s = 1 and a = .53 * 3600, and with s = .1."""
    data = data_set(tmp_path, f"0 {BOX} .3 .4 2", f"0 {BOX} .42 .4 .7 .9", "kpt_shape: [1, 3]\n")
    near = np.exp(-144 / (8 * 0.53 * 3600))
    protocol = detap.protocol("ultralytics-pose")
    for oks, expected in ((near - 1e-6, 1), (near + 1e-6, 0)):
        changed = protocol.with_changes(iou_thresholds=(oks,))
        summary = detap.evaluate(data, tmp_path / "run", changed).summary
        assert summary["AP"] == pytest.approx(expected)
    data.write_text(f"{data.read_text()}kpt_oks_sigmas: [.1]\n")
    far = near**100
    for oks, expected in ((far - 1e-6, 1), (far + 1e-6, 0)):
        changed = protocol.with_changes(iou_thresholds=(oks,))
        summary = detap.evaluate(data, tmp_path / "run", changed).summary
        assert summary["AP"] == pytest.approx(expected)


def test_sigmas_of_several_data_sets_are_equal(tmp_path: Path) -> None:
    first = data_set(tmp_path / "a", pose(2, 3), pose(2, 3) + " .9", "kpt_shape: [2, 3]\n")
    second = data_set(tmp_path / "b", pose(2, 3), pose(2, 3) + " .9", "kpt_shape: [2, 3]\n")
    (tmp_path / "b/images/a.png").rename(tmp_path / "b/images/b.png")
    (tmp_path / "b/labels/a.txt").rename(tmp_path / "b/labels/b.txt")
    assert detap.read_ground_truth([first, second]).sigmas == (0.5, 0.5)
    second.write_text(f"{second.read_text()}kpt_oks_sigmas: [.1, .2]\n")
    with pytest.raises(InputError, match=r"OKS sigmas \(kpt_oks_sigmas\) differ"):
        detap.read_ground_truth([first, second])


def test_keypoints_set_to_zero(tmp_path: Path) -> None:
    """By older versions where the confidence is below .5; a hint at predictions.json."""
    rows = f"0 {BOX} 0 0 .4 .5 .5 .9 .9"
    truth, detections = tables(data_set(tmp_path, pose(2, 3), rows, "kpt_shape: [2, 3]\n"))
    (note,) = (note for note in detections.notes if note.code == "keypoints-zeroed")
    assert (note.count, note.severity) == (1, "warning")
    assert "use predictions.json" in note.message
    write(tmp_path, {"run/a.txt": f"{rows}\n0 {BOX} 0 0 .6 .5 .5 .9 .9\n"})
    assert "keypoints-zeroed" not in codes(detap.read_detections(tmp_path / "run", truth))


# --- the task of a run, track ids, paths


@pytest.mark.parametrize("folder", ["run/labels", "run", "."])
def test_the_task_of_a_run(folder: str, tmp_path: Path) -> None:
    """Rows of equal length are polygons if the run was of that task."""
    hexagon = "0 .2 .5 .35 .2 .65 .2 .8 .5 .65 .8 .35 .8"
    data = data_set(tmp_path, f"{hexagon}\n{DIAMOND}", "")
    write(tmp_path, {"run/labels/a.txt": f"{hexagon} .9\n"})
    (tmp_path / "run/a.txt").unlink()
    truth = detap.read_ground_truth(data)
    with pytest.raises(InputError, match="every row has 14 columns"):
        detap.read_detections(tmp_path / "run", truth, format="yolo")
    write(tmp_path, {f"{folder}/args.yaml": "mode: train\ntask: segment\n"})
    assert len(detap.read_detections(tmp_path / "run", truth, format="yolo")) == 1


@pytest.mark.parametrize(
    ("labels", "row"),
    [
        (f"0 {BOX}", f"0 {BOX} .9"),
        (f"{DIAMOND}\n{TURNED}", f"{DIAMOND} .9"),
        ("0 .2 .2 .6 .2 .4 .6\n0 .1 .1 .5 .1 .5 .5 .3 .7 .1 .5", "0 .2 .2 .6 .2 .4 .6 .9"),
    ],
)
def test_track_ids(labels: str, row: str, tmp_path: Path) -> None:
    _, detections = tables(data_set(tmp_path, labels, f"{row} 1\n{row} 27"))
    assert detections.score.tolist() == [0.9, 0.9]
    assert codes(detections)["track-ids"] == 2


def test_track_ids_of_labels(tmp_path: Path) -> None:
    """CVAT writes one at the end of a tracked object's row."""
    truth = detap.read_ground_truth(data_set(tmp_path, f"0 {BOX}\n0 .2 .2 .1 .1 5", ""))
    assert len(truth) == 2
    assert codes(truth)["track-ids"] == 1
    data = data_set(tmp_path, f"0 {BOX}\n0 .2 .2 .1 .1 .5", "")
    with pytest.raises(InputError, match=r"one more than a box: a confidence \(detections\?\)"):
        detap.read_ground_truth(data)


def test_flattened_paths(tmp_path: Path) -> None:
    """As `val` of 8.4 writes them: the path below the split, joined by _."""
    write(
        tmp_path,
        {
            "data.yaml": "val: images/val\nnames: [thing]\n",
            "images/val/a/1.png": png(100, 100),
            "images/val/b/2.png": png(100, 100),
            "images/val/b/3.png": png(100, 100),
            "labels/val/a/1.txt": f"0 {BOX}\n",
            "labels/val/b/2.txt": f"0 {BOX}\n",
            "run/a_1.txt": f"0 {BOX} .9\n",
            "run/2.txt": f"0 {BOX} .9\n",
            "run/b_3.txt": f"0 {BOX} .8\n",
        },
    )
    truth = detap.read_ground_truth(tmp_path / "data.yaml")
    detections = detap.read_detections(tmp_path / "run", truth, format="yolo")
    names = [truth.images[number] for number in detections.image.tolist()]
    assert sorted(names) == ["1", "2", "3"]
    assert codes(detections)["paths-flattened"] == 2
    assert detap.evaluate(truth, detections).summary["AP"] == pytest.approx(1)
    write(tmp_path, {"run/1.txt": f"0 {BOX} .9\n"})
    with pytest.raises(InputError, match=r"a_1.txt: path of image '1', as is 1.txt"):
        detap.read_detections(tmp_path / "run", truth, format="yolo")


def test_dota_results_with_hyphens(tmp_path: Path) -> None:
    """Ultralytics replaces blanks in class names."""
    data = data_set(tmp_path, f"{DIAMOND}\n{TURNED}", "")
    data.write_text("val: images\nnames: [small vehicle]\n")
    write(tmp_path, {"dota/Task1_small-vehicle.txt": "a 0.9 50 20 80 50 50 80 20 50\n"})
    truth = detap.read_ground_truth(data)
    detections = detap.read_detections(tmp_path / "dota", truth, format="dota")
    assert detections.classes == ("small vehicle",)
    data.write_text("val: images\nnames: [small vehicle, small-vehicle]\n")
    truth = detap.read_ground_truth(data)
    detections = detap.read_detections(tmp_path / "dota", truth, format="dota")
    assert detections.label.tolist() == [1]


# --- segments as masks


def test_labels_are_outlines_and_predictions_contours(tmp_path: Path) -> None:
    """A square of 10 x 10 pixels: as an outline from 10 to 20, as a contour from 10 to 19."""
    outline = "0 .1 .1 .2 .1 .2 .2 .1 .2"
    contour = "0 .1 .1 .19 .1 .19 .19 .1 .19"
    data = data_set(tmp_path, f"{outline}\n0 .5 .5 .9 .5 .7 .9", f"{contour} .9")
    truth = detap.read_ground_truth(data, masks=True)
    detections = detap.read_detections(tmp_path / "run", truth, format="yolo", masks=True)
    assert truth.area[0] == 100
    assert np.asarray(detections.area).tolist() == [100]
    assert codes(detections)["contours"] == 1
    protocol = detap.protocol("coco-segm").with_changes(iou_thresholds=(1.0,))
    result = detap.evaluate(truth, detections, protocol)
    assert result.summary["AP"] == pytest.approx(0.50495, abs=1e-5)  # one of two
    write(tmp_path, {"run/a.txt": "0 .1003 .1 .19 .1 .19 .19 .1 .19 .9\n"})
    detections = detap.read_detections(tmp_path / "run", truth, format="yolo", masks=True)
    assert np.asarray(detections.area).tolist() == [81]
    assert codes(detections)["outlines"] == 1


def test_contours_of_one_and_two_points(tmp_path: Path) -> None:
    """Rows of four and six columns, which earlier versions wrote: a pixel and a line."""
    rows = "0 .1 .1 .19 .1 .19 .19 .1 .19 .9\n0 .5 .5 .8\n0 .5 .5 .53 .5 .7"
    data = data_set(tmp_path, f"{DIAMOND}\n0 .5 .5 .9 .5 .7 .9", rows)
    truth = detap.read_ground_truth(data, masks=True)
    detections = detap.read_detections(
        tmp_path / "run", truth, format="yolo", masks=True, task="segment"
    )
    assert np.asarray(detections.area).tolist() == [100, 1, 4]


def test_boxes_and_polygons_in_several_files_of_predictions(tmp_path: Path) -> None:
    """A contour of two pixels has six columns, as a box has."""
    triangles = "0 .2 .2 .6 .2 .4 .6 .9\n0 .1 .1 .5 .1 .5 .5 .3 .7 .1 .5 .8"
    data = data_set(tmp_path, f"{DIAMOND}\n0 .5 .5 .9 .5 .7 .9", triangles)
    write(tmp_path, {"images/b.png": png(100, 100), "run/b.txt": "0 .5 .5 .53 .5 .7\n"})
    truth = detap.read_ground_truth(data)
    with pytest.raises(InputError, match=r"run/b.txt: line 1: is a box, but other files have pol"):
        detap.read_detections(tmp_path / "run", truth, format="yolo")
    detections = detap.read_detections(tmp_path / "run", truth, format="yolo", masks=True)
    assert np.asarray(detections.area)[2] == 4


# --- predictions.json


def record(**changes: Any) -> dict[str, Any]:
    box = {"image_id": "a", "category_id": 1, "bbox": [20, 20, 60, 60], "score": 0.9}
    return box | changes


def results(folder: Path, *records: dict[str, Any]) -> Path:
    return write(folder, {"run/predictions.json": json.dumps(records)}) / "run/predictions.json"


def test_categories_count_from_one_by_default(tmp_path: Path) -> None:
    data = data_set(tmp_path, f"0 {BOX}", "")
    data.write_text("val: images\nnames: [thing, other, third]\n")
    truth = detap.read_ground_truth(data)
    detections = detap.read_detections(results(tmp_path, record()), truth)
    assert detections.label.tolist() == [0]
    (note,) = (note for note in detections.notes if note.code == "categories-counted")
    assert "category_id 1 is the first name of" in note.message
    zero = results(tmp_path, record(category_id=0), record(category_id=1))
    assert detap.read_detections(zero, truth).label.tolist() == [0, 1]


def test_categories_counted_from_zero_by_their_boxes(tmp_path: Path) -> None:
    """Older releases; boxes of at least five objects decide."""
    labels = "\n".join(f"1 .{n} .{n} .08 .08" for n in range(1, 9))
    data = data_set(tmp_path, labels, "")
    data.write_text("val: images\nnames: [thing, other, third]\n")
    truth = detap.read_ground_truth(data)
    records = [record(bbox=[10 * n - 4, 10 * n - 4, 8, 8]) for n in range(1, 9)]
    assert set(detap.read_detections(results(tmp_path, *records), truth).label) == {1}


def test_pairs_of_keypoints(tmp_path: Path) -> None:
    """With kpt_shape [K, 2], `keypoints` has 2K numbers."""
    for count in (2, 3, 6):
        data = data_set(tmp_path, pose(count, 2), "", f"kpt_shape: [{count}, 2]\n")
        truth = detap.read_ground_truth(data)
        flat = np.asarray(truth.keypoints)[0, :, :2].ravel().tolist()
        file = results(tmp_path, record(keypoints=flat))
        detections = detap.read_detections(file, truth, keypoints=True)
        assert np.asarray(detections.keypoints)[0].ravel().tolist() == flat
        both = results(tmp_path, record(keypoints=flat), record(keypoints=[1, 2, 2] * count))
        detections = detap.read_detections(both, truth, keypoints=True)
        assert np.asarray(detections.keypoints).reshape(2, -1).tolist() == [flat, [1, 2] * count]
        without_box = {"image_id": "a", "category_id": 1, "score": 0.5, "keypoints": flat}
        with pytest.raises(InputError, match=r"keypoints has "):
            detap.read_detections(results(tmp_path, without_box), truth, keypoints=True)


def test_images_of_equal_number(tmp_path: Path) -> None:
    data = data_set(tmp_path, f"0 {BOX}", "")
    for name in ("7", "007"):
        write(tmp_path, {f"images/{name}.png": png(100, 100), f"labels/{name}.txt": f"0 {BOX}\n"})
    truth = detap.read_ground_truth(data)
    with pytest.raises(InputError, match=r"image_id 7 is not in .*the number of '007', '7': write"):
        detap.read_detections(results(tmp_path, record(image_id=7), record()), truth)
    named = (record(image_id=7, file_name=f"{name}.png") for name in ("007", "7"))
    detections = detap.read_detections(results(tmp_path, *named), truth)
    assert [truth.images[number] for number in detections.image.tolist()] == ["007", "7"]


def test_boxes_among_oriented_boxes(tmp_path: Path) -> None:
    data = data_set(tmp_path, f"{DIAMOND}\n{TURNED}", "")
    truth = detap.read_ground_truth(data)
    turned = {**record(), "poly": [50, 20, 80, 50, 50, 80, 20, 50]}
    del turned["bbox"]
    detections = detap.read_detections(results(tmp_path, record(), turned), truth)
    assert np.asarray(detections.polygons)[0].tolist() == [20, 20, 80, 20, 80, 80, 20, 80]
    assert np.asarray(detections.polygons)[1].tolist() == turned["poly"]
    assert detections.corners.tolist() == [[20, 20, 80, 80]] * 2
