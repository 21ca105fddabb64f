"""Masks on the command line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ended, instances, results, summary, written

Detap = Callable[..., Ended]


def ring(box: list[float]) -> list[list[float]]:
    """Return a box as a polygon."""
    x, y, w, h = box
    return [[x, y, x + w, y, x + w, y + h, x, y + h]]


@pytest.fixture
def masks(tmp_path: Path) -> list[str]:
    """Write files in which every box is a mask too, the first narrower; return arguments."""
    truth, detections = instances(), results()
    for row in (*truth["annotations"], *detections):
        row["segmentation"] = ring(row["bbox"])
    detections[0]["segmentation"] = ring([0, 0, 60, 100])
    return written(tmp_path, truth, detections)


@pytest.mark.parametrize("how", [["--iou-type", "segm"], ["--protocol", "coco-segm"]])
def test_masks_are_scored(detap: Detap, masks: list[str], how: list[str]) -> None:
    """The narrow mask (6,000 of 10,000 pixels) is a TP at .5 and an FP at .75."""
    ended = detap("eval", *masks, *how, "-o", "json=-")
    assert "protocol:coco-segm|" in json.loads(ended.out)["signature"]
    boxes = summary(detap("eval", *masks, "-o", "json=-"))
    report = summary(ended)
    assert report["AP50"] == boxes["AP50"]
    assert report["AP75"] < boxes["AP75"]


def test_the_sibling_of_a_preset(detap: Detap, masks: list[str]) -> None:
    same = ["--protocol", "coco-segm", "--iou-type", "bbox", "-o", "json=-"]
    assert summary(detap("eval", *masks, *same)) == summary(detap("eval", *masks, "-o", "json=-"))
    ended = detap("eval", *masks, "--protocol", "voc2012", "--iou-type", "segm", "-o", "json=-")
    signature = json.loads(ended.out)["signature"]
    assert signature.startswith("protocol:voc2012|inclusive-pixels:no|iou-type:segm|")


def test_several_inputs_of_masks(detap: Detap, masks: list[str], tmp_path: Path) -> None:
    """Two results files of one image each, and a third image without detections."""
    truth, detections = (json.loads(Path(path).read_text()) for path in masks[1::2])
    truth["images"].append({"id": 3, "width": 9, "height": 9})
    truth["annotations"].append(
        {**truth["annotations"][0], "id": 9, "image_id": 3, "segmentation": ring([1, 1, 3, 3])}
    )
    whole = written(tmp_path, truth, detections)
    how = ["--iou-type", "segm", "-o", "json=-"]
    expected = summary(detap("eval", *whole, *how))
    for image in (1, 2):
        rows = [row for row in detections if row["image_id"] == image]
        (tmp_path / f"dt{image}.json").write_text(json.dumps(rows))
    parts = [part for n in (1, 2) for part in ("--dt", str(tmp_path / f"dt{n}.json"))]
    assert summary(detap("eval", *whole[:2], *parts, *how)) == expected


def test_malformed_masks_are_reported_with_their_location(
    detap: Detap, masks: list[str], tmp_path: Path
) -> None:
    detections = results()
    detections[2]["segmentation"] = {"size": [480, 640], "counts": [5]}
    arguments = written(tmp_path, json.loads(Path(masks[1]).read_text()), detections)
    ended = detap("eval", *arguments, "--iou-type", "segm")
    assert ended.status == 2
    assert "dt.json: [2]: counts sum to 5, expected 307200 for size [480, 640]" in ended.err
    assert detap("eval", *arguments).status == 0


@pytest.mark.parametrize(
    "asked",
    [
        ["--errors"],
        ["--confusion"],
        ["--tie-range"],
        ["--cross-check"],
        ["--calibration"],
        ["--fail-under", "AP50=0.3"],
        ["--fail-under", "AP=0.01"],
    ],
)
def test_analyses_work(detap: Detap, masks: list[str], asked: list[str]) -> None:
    ended = detap("eval", *masks, "--iou-type", "segm", *asked)
    assert ended.status == 0, ended.err


def test_options_rejected_for_masks(detap: Detap, masks: list[str]) -> None:
    ended = detap("eval", *masks, "--iou-type", "segm", "--errors", "tidecv")
    assert ended.status == 2
    assert "has iou_type segm, this requires bbox; type the errors" in ended.err


def test_explain_reads_masks_if_a_protocol_uses_them(detap: Detap, masks: list[str]) -> None:
    ended = detap("explain", *masks, "--from", "coco", "--to", "coco-segm")
    assert ended.status == 0, ended.err
    assert "iou type" in ended.out


def test_an_image_and_the_page(detap: Detap, masks: list[str], tmp_path: Path) -> None:
    ended = detap("show", "1", *masks, "--iou-type", "segm")
    assert ended.status == 0, ended.err
    assert "0.6000" in ended.out  # the narrow mask
    page = tmp_path / "page.html"
    ended = detap("eval", *masks, "--iou-type", "segm", "-o", str(page))
    assert ended.status == 0, ended.err
    assert page.stat().st_size > 1000


# --- boundaries


@pytest.mark.parametrize("how", [["--iou-type", "boundary"], ["--protocol", "coco-boundary"]])
def test_boundaries_are_scored(detap: Detap, masks: list[str], how: list[str]) -> None:
    """With a dilation as large as the image, boundaries equal masks."""
    ended = detap("eval", *masks, *how, "-o", "json=-")
    assert "protocol:coco-boundary|" in json.loads(ended.out)["signature"]
    of_masks = summary(detap("eval", *masks, "--iou-type", "segm", "-o", "json=-"))
    assert summary(ended)["AP"] < of_masks["AP"]
    deep = detap("eval", *masks, *how, "--dilation-ratio", "1", "-o", "json=-")
    assert "|dilation-ratio:1|" in json.loads(deep.out)["signature"]
    assert summary(deep) == of_masks


def test_sibling_presets_for_boundaries(detap: Detap, masks: list[str]) -> None:
    given = ["eval", *masks, "--protocol", "coco-boundary", "--iou-type", "segm", "-o", "json=-"]
    assert "protocol:coco-segm|" in json.loads(detap(*given).out)["signature"]


def test_options_rejected_for_boundaries(detap: Detap, masks: list[str]) -> None:
    ended = detap("eval", *masks, "--iou-type", "boundary", "--cross-check")
    assert ended.status == 2
    assert (
        "pycocotools does not support protocol coco-boundary (iou-type, ignore-flags)" in ended.err
    )
    ended = detap("eval", *masks, "--iou-type", "segm", "--dilation-ratio", "0.01")
    assert ended.status == 2
    assert "dilation_ratio has no effect with iou_type segm" in ended.err


def test_explain_between_masks_and_boundaries(detap: Detap, masks: list[str]) -> None:
    ended = detap("explain", *masks, "--from", "coco-segm", "--to", "coco-boundary")
    assert ended.status == 0, ended.err
    assert "iou type" in ended.out


# --- check


def test_check_reads_masks_if_the_protocol_uses_them(tmp_path: Path, detap: Detap) -> None:
    truth, detections = instances(), results()
    for row in (*truth["annotations"], *detections):
        row["segmentation"] = ring(row["bbox"])
    detections[1]["segmentation"] = {"size": [640, 480], "counts": [640 * 480]}
    truth["annotations"][2]["segmentation"] = []
    given = ["check", *written(tmp_path, truth, detections)]
    assert detap(*given).status == 0
    for how in (["--iou-type", "segm"], ["--protocol", "coco-segm"], ["--iou-type", "boundary"]):
        ended = detap(*given, *how)
        assert ended.status == 2
        assert "annotations[2] (id 3): segmentation is empty" in ended.err
    # Its remedy, and the other file: sizes are those of the ground truth, which can now be read.
    truth["annotations"][2]["segmentation"] = ring([0, 0, 50, 50])
    written(tmp_path, truth, detections)
    ended = detap(*given, "--iou-type", "segm")
    assert "dt.json: [1]: segmentation has size [640, 480], expected [480" in ended.err


@pytest.mark.parametrize("form", ["polygons", "boxes", "runs"])
def test_check_reads_masks_of_detections_without_ground_truth(
    tmp_path: Path, detap: Detap, form: str
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
    ended = detap("check", "--dt", str(path), "--iou-type", "segm", "--output-format", "json")
    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["statistics"]
    rows[1]["segmentation"] = {"size": [480, 640], "counts": [480 * 640 - 1]}
    path.write_text(json.dumps(rows))
    ended = detap("check", "--dt", str(path), "--iou-type", "segm")
    assert ended.status == 2
    assert "[1]: counts sum to 307199" in ended.err


def test_check_reads_masks_only_from_coco_files(tmp_path: Path, detap: Detap) -> None:
    (tmp_path / "a.xml").write_text("<annotation/>")
    ended = detap("check", "--format", "voc", "--gt", str(tmp_path), "--iou-type", "segm")
    assert ended.status == 2
    assert "masks are read from COCO and YOLO files; these are read as voc" in ended.err
    ended = detap("check", "--format", "voc", "--gt", str(tmp_path), "--protocol", "coco-segm")
    assert ended.status == 2
    assert "masks are read from COCO and YOLO files; these are read as voc" in ended.err


@pytest.mark.parametrize(
    ("overlap", "name"), [("segm", "coco-segm"), ("boundary", "coco-boundary")]
)
def test_a_mask_value_is_searched_if_requested(
    detap: Detap, masks: list[str], overlap: str, name: str
) -> None:
    """The first search reports the skipped presets and the option that searches them."""
    value = summary(detap("eval", *masks, "--protocol", name, "-o", "json=-"))["AP"]
    ended = detap("explain", *masks, "--value", repr(value), "--metric", "AP")
    assert "--iou-type segm); coco-boundary (" in " ".join(ended.out.split())
    assert f"--iou-type {overlap})" in " ".join(ended.out.split())
    ended = detap(
        "explain", *masks, "--value", repr(value), "--metric", "AP", "--iou-type", overlap
    )
    assert ended.out.startswith(f"{name} gives AP {value!r}, equal in all"), ended.err
