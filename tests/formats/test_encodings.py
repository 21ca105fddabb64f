"""One data set in every format: the known metrics.

The hundred images are `voc-100`'s (Padilla et al. 2021, Electronics 10(3):279), whose owner
publishes pycocotools' metrics on the decoded boxes.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import detap
from detap import Detections, GroundTruth
from detap.errors import UsageError
from detap.formats.catalogue import FORMATS
from tests.cli.conftest import Run
from tests.formats import small_files as small
from tests.formats.voc_files import write

SIZES = "yolo-voc-100/sizes.csv"
PATHS = {"image_sizes", "class_names", "dt_class_names"}

TRUTHS: dict[str, tuple[str, dict[str, str]]] = {
    "coco v1": ("voc-100/gt/coco_v1/instances_default.json", {}),
    "coco v2": ("voc-100/gt/coco_v2/instances_v2.json", {}),
    "voc": ("voc-100/gt/voc_xml", {}),
    "cvat": ("voc-100/gt/cvat/annotations.xml", {}),
    "labelme": ("labelme-voc-100", {}),
    "openimages": ("voc-100/gt/openimages/all_bounding_boxes.csv", {"image_sizes": SIZES}),
    "yolo": ("yolo-voc-100/data.yaml", {"image_sizes": SIZES}),
}
"""Path and reading options of each format."""

FOUND: dict[str, tuple[str, dict[str, str]]] = {
    "yolo": ("yolo-voc-100/predictions", {"class_names": "yolo-voc-100/data.yaml"}),
    "coco": ("voc-100/dt/coco_dets.json", {}),
    "corners": ("voc-100/dt/abs_xyx2y2", {"class_names": "voc-100/voc.names"}),
    "sides": ("voc-100/dt/abs_xywh", {"class_names": "voc-100/voc.names", "boxes": "xywh"}),
}

IN_FRACTIONS = "voc-100/expected_coco_all_encodings.json"
IN_PIXELS = "voc-100/expected_coco.json"
BY_YOLO = "yolo-voc-100/expected_coco.json"


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield pairs of formats with known metrics, and their tolerance.

    Decoded fractions differ from pixels in the sixth digit, and one IoU lies on a threshold: for
    ground truth of Open Images and YOLO the metrics are known with YOLO's detections only. Results
    in COCO JSON have their own ids, which must not be taken for those of COCO ground truth.
    """
    for truth in TRUTHS:
        yield truth, "yolo", BY_YOLO if truth == "yolo" else IN_FRACTIONS
        if truth in ("openimages", "yolo"):
            continue
        for detections in FOUND.keys() - {"yolo"}:
            if not (truth.startswith("coco") and detections == "coco"):
                yield truth, detections, IN_PIXELS


def opened(real_data: Path, entry: tuple[str, dict[str, str]]) -> tuple[Path, dict[str, Any]]:
    path, options = entry
    arguments = {name: real_data / v if name in PATHS else v for name, v in options.items()}
    return real_data / path, arguments


def known(real_data: Path, path: str) -> Any:
    record = json.loads((real_data / path).read_text())
    return pytest.approx(record.get("stats", record), rel=0, abs=1e-12)


def tables(real_data: Path, truth: str, detections: str) -> tuple[GroundTruth, Detections]:
    path, options = opened(real_data, TRUTHS[truth])
    ground_truth = detap.read_ground_truth(path, **options)
    path, options = opened(real_data, FOUND[detections])
    return ground_truth, detap.read_detections(path, ground_truth, **options)


def summary(truth: GroundTruth, detections: Detections) -> Mapping[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return detap.evaluate(truth, detections, protocol="coco").summary


@pytest.mark.parametrize(("truth", "detections", "expected"), sorted(rows()))
def test_every_format_gives_the_known_metrics(
    real_data: Path, truth: str, detections: str, expected: str
) -> None:
    assert summary(*tables(real_data, truth, detections)) == known(real_data, expected)


def test_columns_of_padillas_tools(real_data: Path) -> None:
    """The same detections in their column order, numbered by VOC's own class list."""
    path, options = opened(real_data, TRUTHS["yolo"])
    truth = detap.read_ground_truth(path, **options)
    padilla = real_data / "voc-100/dt/rel_xywh"
    names: dict[str, Any] = {"dt_class_names": real_data / "voc-100/voc.names"}
    right = detap.read_detections(padilla, truth, **names)
    assert summary(truth, right) == known(real_data, BY_YOLO)
    # As if they were Ultralytics', which none of them suggests:
    wrong = detap.read_detections(padilla, truth, **names, columns="conf-last")
    assert summary(truth, wrong)["AP"] == pytest.approx(0.0137, abs=5e-5)


@pytest.mark.parametrize(
    "call",
    [
        ("dt", "--layout", "image-files", "--class-names", "voc.names"),
        ("dt", "--layout", "image-files", "--dt-class-names", "voc.names"),
        ("dt.json",),
        ("dt.jsonl", "--boxes", "xywh", "--class-names", "voc.names"),
    ],
)
def test_detections_without_ground_truth_use_the_names_of_their_list(
    command: Run, tmp_path: Path, call: tuple[str, ...]
) -> None:
    box = {"bbox": [1, 1, 9, 9], "score": 0.5}
    results = {
        "categories": [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}],
        "annotations": [{"image_id": 1, "category_id": 1, **box}],
    }
    write(
        tmp_path,
        {
            "dt/a.txt": "1 0.5 1 1 9 9\n",
            "voc.names": "cat\ndog\n",
            "dt.json": json.dumps(results),
            "dt.jsonl": json.dumps({"image_id": 1, "objects": [{"category": "dog", **box}]}),
        },
    )
    paths = [str(tmp_path / word) if "." in word or word == "dt" else word for word in call]
    assert "dog" in command("check", "--dt", *paths).passed().out


# --- box formats: --boxes, --gt-boxes and --dt-boxes of every input format


SIZE: dict[str, Any] = {"image_size": "200x100", "format": "yolo"}
# Of an image of 200 x 100, the box from (75, 25) to (125, 75): center (100, 50), sides 50 and 50.
ROWS = {"cxcywh": ".5 .5 .25 .5", "xywh": ".375 .25 .25 .5", "xyxy": ".375 .25 .625 .75"}
POLYGON = "0 0 0 .5 0 .25 1"


def labels(folder: Path, box_format: str) -> str:
    return str(write(folder, {"gt/a.txt": f"0 {ROWS[box_format]}\n", "gt/b.txt": f"{POLYGON}\n"}))


@pytest.mark.parametrize("box_format", ROWS)
def test_rows_of_yolo(tmp_path: Path, box_format: str) -> None:
    labels(tmp_path, box_format)
    truth = detap.read_ground_truth(tmp_path / "gt", **SIZE, boxes=box_format)
    assert truth.corners.tolist() == [[75, 25, 125, 75], [0, 0, 100, 100]]
    assert truth.box_area.tolist() == [2500, 10_000]
    write(tmp_path, {"dt/a.txt": f"0 {ROWS[box_format]} .75\n"})
    detections = detap.read_detections(tmp_path / "dt", truth, format="yolo", boxes=box_format)
    assert detections.corners.tolist() == [[75, 25, 125, 75]]
    assert detections.score.tolist() == [0.75]


def test_yolo_inputs_of_two_box_formats(tmp_path: Path, command: Run) -> None:
    """Labels as xyxy, predictions as centered boxes: AP 1 with --gt-boxes only."""
    labels(tmp_path, "xyxy")
    write(tmp_path, {"dt/a.txt": f"0 {ROWS['cxcywh']} .75\n", "dt/b.txt": "0 .25 .5 .5 1 .5\n"})
    call = ["eval", "--gt", str(tmp_path / "gt"), "--dt", str(tmp_path / "dt"), "--format", "yolo"]
    call += ["--image-size", "200x100", "--output-format", "json"]
    record = command(*call, "--gt-boxes", "xyxy").report()
    assert record["summary"]["AP"] == pytest.approx(1, abs=1e-12)


def test_the_confidence_may_precede_xyxy(tmp_path: Path) -> None:
    """Read as the last value, it would leave a box with x2 below x1."""
    labels(tmp_path, "xyxy")
    truth = detap.read_ground_truth(tmp_path / "gt", **SIZE, boxes="xyxy")
    write(tmp_path, {"dt/a.txt": f"0 .75 {ROWS['xyxy']}\n" * 20})
    detections = detap.read_detections(tmp_path / "dt", truth, format="yolo", boxes="xyxy")
    assert detections.score.tolist() == [0.75] * 20
    assert detections.corners.tolist() == [[75, 25, 125, 75]] * 20
    assert "columns-conf-first" in {note.code for note in detections.notes}


def test_an_error_names_the_columns_as_they_are_read(tmp_path: Path) -> None:
    write(tmp_path, {"gt/a.txt": "0 .1 .1 .2\n", "dt/a.txt": "0 .1 .1 .2 1.5\n"})
    with pytest.raises(detap.InputError, match=r"write `class x1 y1 x2 y2`"):
        detap.read_ground_truth(tmp_path / "gt", **SIZE, boxes="xyxy")
    with pytest.raises(detap.InputError, match=r"h 1\.5 is outside \[0, 1\]"):
        detap.read_ground_truth(tmp_path / "dt", **SIZE, boxes="xywh")


# --- formats that name their coordinates

NAMED = {
    "cvat": small.cvat,
    "labelme": small.labelme,
    "openimages": small.open_images,
    "tfcsv": small.tfcsv,
    "supervisely": small.supervisely,
    "dota": small.dota,
    "voc": small.voc,
}
COORDINATES = {
    "cvat": r"CVAT files, which name their coordinates \(xtl, ytl, xbr, ybr\)",
    "labelme": r"LabelMe files, which name their coordinates \(points\)",
    "openimages": r"Open Images files, which name their coordinates \(XMin, XMax, YMin, YMax\)",
    "tfcsv": r"TensorFlow CSV files, which name their coordinates \(xmin, ymin, xmax, ymax\)",
    "supervisely": r"Supervisely files, which name their coordinates \(points\)",
    "dota": r"DOTA files, which name their coordinates \(x1 y1 x2 y2 x3 y3 x4 y4\)",
    "voc": r"VOC XML files, which name their coordinates \(xmin, ymin, xmax, ymax\)",
}


def named(folder: Path, name: str) -> tuple[Path, dict[str, Any]]:
    box = (0.02, 0.05, 0.22, 0.55) if name == "openimages" else (1, 2, 11, 22)
    write(folder / "gt", NAMED[name](("a",), "dog", box))
    write(folder, {"sizes.csv": "image,width,height\na,50,40\n"})
    sizes = {"image_sizes": folder / "sizes.csv"} if name == "openimages" else {}
    path = folder / "gt"
    return next(path.iterdir()) if name in ("openimages", "tfcsv") else path, {
        "format": name,
        **sizes,
    }


@pytest.mark.parametrize("name", NAMED)
def test_named_columns_decide_the_box_format(tmp_path: Path, name: str) -> None:
    path, reading = named(tmp_path, name)
    values = ("xyxy",) if name != "dota" else ()
    for boxes in values:
        table = detap.read_ground_truth(path, **reading, boxes=boxes)
        assert table.corners[0].tolist() == pytest.approx([1, 2, 11, 22], abs=1e-12)
    for boxes in {"xyxy", "xywh"} - {*values}:
        with pytest.raises(UsageError, match=COORDINATES[name]) as caught:
            detap.read_ground_truth(path, **reading, boxes=boxes)
        assert str(caught.value).startswith(f"--gt-boxes {boxes} does not apply to ")
        assert str(caught.value).endswith("; use --dt-boxes for the detections")


@pytest.mark.parametrize("option", ["--boxes", "--gt-boxes"])
def test_the_command_refuses_them_and_its_hint_works(
    tmp_path: Path, option: str, command: Run
) -> None:
    path, _ = named(tmp_path, "cvat")
    write(tmp_path, {"dt/a.txt": "dog .5 1 2 10 20\n"})
    call = ["eval", "--gt", str(path), "--dt", str(tmp_path / "dt"), "--dt-format", "voc"]
    call += ["--output-format", "json", "--protocol", "coco"]
    assert "use --dt-boxes for the detections" in command(*call, option, "xywh").refused()
    report = command(*call, "--dt-boxes", "xywh").report()
    assert report["summary"]["AP"] == pytest.approx(1, abs=1e-12)


def test_centered_boxes_are_only_for_yolo(tmp_path: Path) -> None:
    write(tmp_path, {"gt/a.txt": "dog 1 2 11 22\n"})
    with pytest.raises(UsageError, match="boxes 'cxcywh' is unknown; use one of xyxy, xywh"):
        detap.read_ground_truth(tmp_path / "gt", format="voc", boxes="cxcywh")


def test_every_format_accepts_the_option() -> None:
    for line in FORMATS.lines.values():
        is_saved_table = line.name == "npz"  # whose corners are known
        names = {option.name for option in line.options}
        assert is_saved_table != ({"boxes", "gt_boxes", "dt_boxes"} <= names)
