"""`detap.evaluate` reads paths as the command does."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import detap
from detap import InputError, UsageError
from detap.cli import main
from tests.cli.conftest import written
from tests.coco import truth_of
from tests.conftest import ROOT

COCO = ROOT / "fixtures/quickstart/coco"
VOC = ROOT / "fixtures/quickstart/voc"
DATA_SETS: dict[str, tuple[tuple[Path, Path], dict[str, Any]]] = {
    "coco": ((COCO / "instances.json", COCO / "results.json"), {}),
    "voc": ((VOC, VOC / "detections"), {}),
    "voc2007": ((VOC, VOC / "detections"), {"protocol": "voc2007", "layout": "class-files"}),
    "selected": (
        (COCO / "instances.json", COCO / "results.json"),
        {"classes": ["cat"], "protocol": "coco-strict"},
    ),
}


def report_of_command(
    arguments: tuple[Path, Path], options: dict[str, Any], report: Path
) -> dict[str, Any]:
    """Return the JSON report of ``detap eval``, with every digit."""
    gt, dt = map(str, arguments)
    flags = [
        part
        for name, value in options.items()
        for part in (f"--{name}", *(value if isinstance(value, list) else [value]))
    ]
    assert main(["eval", "--gt", gt, "--dt", dt, "-o", str(report), "-q", *flags]) == 0
    data: dict[str, Any] = json.loads(report.read_text())
    return data


@pytest.mark.parametrize("name", DATA_SETS)
def test_the_result_of_paths_equals_the_commands(name: str, tmp_path: Path) -> None:
    """Bit for bit: JSON has the shortest text of each float."""
    paths, options = DATA_SETS[name]
    assert_equals_the_command(paths, options, tmp_path)


@pytest.mark.parametrize(
    ("gt", "dt", "options"),
    [
        (
            "coco-val2014-100/instances_val2014_100.json",
            "coco-val2014-100/instances_val2014_fakesegm100_results.json",
            {"protocol": "coco-segm"},
        ),
        ("yolo-voc-100/data.yaml", "yolo-voc-100/predictions", {"image-sizes": "sizes.csv"}),
        ("kitti-from-voc/label_2", "kitti-from-voc/results", {}),
    ],
)
def test_the_result_of_real_data_equals_the_commands(
    gt: str, dt: str, options: dict[str, Any], real_data: Path, tmp_path: Path
) -> None:
    if "image-sizes" in options:
        options = {"image-sizes": str((real_data / gt).with_name(options["image-sizes"]))}
    assert_equals_the_command((real_data / gt, real_data / dt), options, tmp_path)


def assert_equals_the_command(
    paths: tuple[Path, Path], options: dict[str, Any], folder: Path
) -> None:
    expected = report_of_command(paths, options, folder / "report.json")
    keywords = {name.replace("-", "_"): value for name, value in options.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", detap.DetapWarning)
        result = detap.evaluate(str(paths[0]), str(paths[1]), **keywords)
    actual = json.loads(json.dumps(result.to_dict()))
    del expected["inputs"], actual["inputs"]
    assert actual == expected


@pytest.mark.parametrize("name", ["coco", "voc"])
def test_paths_and_tables_may_be_mixed(name: str) -> None:
    paths: Any = DATA_SETS[name][0]
    gt, dt = paths
    ground_truth = detap.read_ground_truth(gt)
    detections = detap.read_detections(dt, ground_truth)
    results = [
        detap.evaluate(first, second)
        for first in (ground_truth, gt, str(gt))
        for second in (detections, dt, str(dt))
    ]
    assert len({repr(result.summary) for result in results}) == 1
    assert len({result.signature for result in results}) == 1


@pytest.mark.parametrize(("gt", "protocol"), [(VOC, "voc2012"), (COCO / "instances.json", "coco")])
def test_the_default_protocol_is_that_of_the_format(gt: Path, protocol: str) -> None:
    ground_truth = detap.read_ground_truth(gt)
    detections = detap.Detections.from_arrays(
        image=ground_truth.images[:1],
        label=ground_truth.class_ids[:1],
        boxes=[[1, 1, 9, 9]],
        score=[1],
    )
    for given in (ground_truth, gt):
        assert detap.evaluate(given, detections).protocol.name == protocol


def split(folder: Path) -> list[Path]:
    """Write the results of each image to a file."""
    records = json.loads((COCO / "results.json").read_text())
    paths = []
    for image in sorted({record["image_id"] for record in records}):
        paths.append(folder / f"{image}.json")
        paths[-1].write_text(json.dumps([r for r in records if r["image_id"] == image]))
    return paths


def test_several_files_are_a_list_or_a_pattern(tmp_path: Path) -> None:
    whole = detap.evaluate(COCO / "instances.json", COCO / "results.json")
    paths = split(tmp_path)
    assert len(paths) > 2
    given: Any
    for given in (paths, str(tmp_path / "*.json"), tmp_path):
        assert detap.evaluate(COCO / "instances.json", given).summary == whole.summary


def test_reader_options_reach_the_reader_that_has_them(tmp_path: Path) -> None:
    """`layout` is for detections only, and a COCO ground truth has none."""
    expected = detap.evaluate(VOC, VOC / "detections", "voc2012")
    result = detap.evaluate(VOC, VOC / "detections", layout="class-files", format="voc")
    assert result.summary == expected.summary
    with pytest.raises(UsageError, match="--layout is for VOC files"):
        detap.evaluate(COCO / "instances.json", COCO / "results.json", layout="class-files")
    with pytest.raises(UsageError, match="layout 'files' is unknown; use one of class-files"):
        detap.evaluate(VOC, VOC / "detections", layout="files")
    with pytest.raises(UsageError, match="format 'vocs' is unknown; did you mean voc"):
        detap.evaluate(VOC, VOC / "detections", format="vocs")


def test_masks_are_read_if_the_protocol_needs_them(tmp_path: Path) -> None:
    """By hand: 20 of 20 pixels, IoU 1."""
    square = {"size": [10, 10], "counts": [0, 20, 80]}
    truth = truth_of([(1, 1, [0, 0, 2, 10])], {1: "cat"}, [1], size=(10, 10))
    truth["annotations"][0]["segmentation"] = square
    results = [{"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": square}]
    written(tmp_path, truth, results)
    result = detap.evaluate(tmp_path / "gt.json", tmp_path / "dt.json", "coco-segm")
    assert result.summary["AP"] == pytest.approx(1.0)
    assert result.ground_truth.masks is not None


def test_as_is_is_for_the_readers_too(tmp_path: Path) -> None:
    records = json.loads((COCO / "results.json").read_text())
    for record in records:  # xyxy instead of xywh
        x, y, width, height = record["bbox"]
        record["bbox"] = [x + width, y + height, -width, -height]
    path = tmp_path / "results.json"
    path.write_text(json.dumps(records))
    with pytest.raises(InputError, match="negative"):
        detap.evaluate(COCO / "instances.json", path)
    with pytest.warns(detap.DetapWarning) as caught:
        assert detap.evaluate(COCO / "instances.json", path, as_is=True).summary["AP"] == 0
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((COCO / "nope.json", COCO), {}, InputError, "nope.json: no such file or directory"),
        ((COCO / "nope", COCO), {}, InputError, "nope: no such file or directory"),
        ((COCO / "instances.json", "nope.json"), {}, InputError, "^nope.json: no such file"),
        (
            (COCO / "results.json", COCO / "instances.json"),
            {},
            InputError,
            r"results.json: is a JSON list \(results\?\); expected an object with images",
        ),
        (
            (VOC, VOC / "detections"),
            {"clases": ["cat"]},
            TypeError,
            "got an unexpected keyword argument 'clases'",
        ),
    ],
)
def test_errors_of_paths(
    arguments: tuple[Any, Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        detap.evaluate(*arguments, **options)


def test_reader_options_need_a_path() -> None:
    ground_truth = detap.read_ground_truth(VOC)
    detections = detap.read_detections(VOC / "detections", ground_truth)
    options: dict[str, Any]
    for options in ({"layout": "image-files"}, {"format": "voc"}, {"merge_images": True}):
        with pytest.raises(UsageError, match=r"^\w+= is for reading files, but both tables"):
            detap.evaluate(ground_truth, detections, **options)
    with pytest.raises(TypeError, match=r"^evaluate\(\) got an unexpected keyword argument 'iou'"):
        detap.evaluate(ground_truth, detections, iou=0.5)


def test_ground_truth_of_the_same_images_in_two_files(tmp_path: Path) -> None:
    whole = json.loads((COCO / "instances.json").read_text())
    parts = [tmp_path / "first.json", tmp_path / "second.json"]
    for part, begin in zip(parts, (0, 1), strict=True):
        annotations = whole["annotations"][begin::2]
        part.write_text(json.dumps(whole | {"annotations": annotations}))
    results = COCO / "results.json"
    merged = detap.evaluate(parts, results, merge_images=True)
    assert merged.summary == detap.evaluate(COCO / "instances.json", results).summary


def test_detections_of_a_file_on_ground_truth_from_arrays(tmp_path: Path) -> None:
    truth = detap.GroundTruth.from_arrays(
        image=[1], label=[3], boxes=[[0, 0, 10, 10]], images=[1], classes={3: "cat"}
    )
    row = {"image_id": 1, "category_id": 3, "bbox": [0, 0, 10, 10], "score": 0.5}
    (tmp_path / "dt.json").write_text(json.dumps([row]))
    result = detap.evaluate(truth, tmp_path / "dt.json")
    assert result.protocol.name == "coco"
    assert result.summary["AP"] == pytest.approx(1)
