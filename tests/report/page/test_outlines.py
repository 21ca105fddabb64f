"""Outlines of shapes: masks by their polygons or by the edges of their pixels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

pytest.importorskip("jinja2", reason="the extra detap[report] is not installed")
pytest.importorskip("PIL", reason="the extra detap[report] is not installed")

from detap.cli import main
from detap.report.page.svg_shapes import edges
from tests.report.page.cases import model_of


def filled(rings: list[list[tuple[int, int]]], shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return the pixels with an odd number of edges to their left."""
    crossed = np.zeros(shape, np.int64)
    for ring in rings:
        for (x1, y1), (x2, y2) in zip(ring, ring[1:] + ring[:1], strict=True):
            assert (x1 == x2) != (y1 == y2)  # a side runs along one axis, and has a length
            if x1 == x2:
                crossed[min(y1, y2) : max(y1, y2), x1:] += 1
    return np.asarray(crossed % 2 == 1)


@given(st.data(), st.integers(1, 7), st.integers(1, 7))
def test_edges_enclose_the_pixels(data: st.DataObject, height: int, width: int) -> None:
    bits = data.draw(st.lists(st.booleans(), min_size=height * width, max_size=height * width))
    pixels = np.array(bits).reshape(height, width)
    assert (filled(edges(pixels), (height, width)) == pixels).all()


def test_the_edges_of_a_square_with_a_hole() -> None:
    pixels = np.ones((3, 3), np.bool_)
    pixels[1, 1] = False
    outer, inner = (sorted(ring) for ring in edges(pixels))
    assert outer == [(0, 0), (0, 3), (3, 0), (3, 3)]
    assert inner == [(1, 1), (1, 2), (2, 1), (2, 2)]


def write(folder: Path, truth: dict[str, Any], detections: dict[str, Any]) -> list[str]:
    record = {"image_id": 1, "category_id": 1}
    plain = {"bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0, "id": 1}
    instances = {
        "images": [{"id": 1, "width": 6, "height": 8}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [record | plain | truth],
    }
    paths = [folder / "truth.json", folder / "found.json"]
    for path, content in zip(
        paths, (instances, [record | {"score": 0.5} | detections]), strict=True
    ):
        path.write_text(json.dumps(content))
    return ["--gt", str(paths[0]), "--dt", str(paths[1])]


@pytest.mark.parametrize("protocol", ["coco-segm", "coco-boundary"])
def test_masks_are_drawn_as_annotated(tmp_path: Path, protocol: str) -> None:
    """A triangle as its polygon; RLE as the edges of its pixels: columns 3 to 5, rows 2 to 5."""
    files = write(
        tmp_path,
        {"segmentation": [[1.0, 2.0, 4.5, 2.0, 1.0, 6.0]]},
        {"segmentation": {"size": [8, 6], "counts": [26, 4, 4, 4, 4, 4, 2]}},
    )
    page = tmp_path / "page.html"
    assert main(["report", *files, "--protocol", protocol, "-o", str(page)]) == 0
    (image,) = model_of(page)["gallery"]["images"]
    assert image["outlines"] == {"truths": ["M1 2h3.5L1 6Z"], "detections": ["M3 2h3v4h-3Z"]}


def test_boxes_are_drawn_as_boxes(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    files = write(tmp_path, {}, {"bbox": [3, 2, 3, 4]})
    assert main(["report", *files, "-o", str(page)]) == 0
    (image,) = model_of(page)["gallery"]["images"]
    assert image["outlines"] is None


def test_quadrilaterals_are_drawn_as_annotated(tmp_path: Path) -> None:
    labels, results = tmp_path / "labelTxt", tmp_path / "found"
    for folder in (labels, results):
        folder.mkdir()
    (labels / "a.txt").write_text("5 0 10 5 5 10 0 5 plane 0\n")
    (results / "Task1_plane.txt").write_text("a 0.5 0 0 10 0 10 10 0 10\n")
    page = tmp_path / "page.html"
    files = ["--gt", str(labels), "--dt", str(results), "--format", "dota"]
    assert main(["report", *files, "-o", str(page)]) == 0
    (image,) = model_of(page)["gallery"]["images"]
    drawn = {"truths": ["M5 0L10 5L5 10L0 5Z"], "detections": ["M0 0h10v10h-10Z"]}
    assert image["outlines"] == drawn


def poses(folder: Path, labelled: Sequence[float], detected: Sequence[float]) -> tuple[str, str]:
    """Return the outlines of annotated and detected keypoints that do not match."""
    count = len(labelled) // 3
    truth = {"keypoints": labelled, "num_keypoints": sum(v > 0 for v in labelled[2::3])}
    files = write(folder, truth, {"keypoints": detected})
    how = ["--protocol", "coco-keypoints", "--sigmas", ",".join(["0.001"] * count)]
    page = folder / "page.html"
    assert main(["report", *files, *how, "-o", str(page)]) == 0
    (image,) = model_of(page)["gallery"]["images"]
    return image["outlines"]["truths"][0], image["outlines"]["detections"][0]


def test_compared_keypoints_are_drawn_as_crosses(tmp_path: Path) -> None:
    """Arms are 1/40 of the longer side of 40 pixels; a detection's visibility is not used."""
    truth, shapes = poses(
        tmp_path, [10, 10, 2, 50, 10, 1, 0, 0, 0], [10, 20, 1, 50, 20, 0, 10, 60, 1]
    )
    assert truth == "M9 10h2M10 9v2M49 10h2M50 9v2"
    assert shapes == "M9 20h2M10 19v2M49 20h2M50 19v2M9 60h2M10 59v2"


def test_the_keypoints_of_a_person_are_joined(tmp_path: Path) -> None:
    """COCO's first two keypoints, nose and left eye, are joined; the third is not labeled."""
    eye = [10, 10, 2, 50, 10, 1, *[0] * 45]
    truth, shapes = poses(tmp_path, eye, [20, 20, 1] * 17)
    assert truth == "M9 10h2M10 9v2M49 10h2M50 9v2M10 10L50 10"
    assert shapes.count("L") == 19


def test_a_person_without_keypoints_is_a_box(tmp_path: Path) -> None:
    truth, _ = poses(tmp_path, [0] * 9, [90, 90, 1] * 3)
    assert truth == "M1 2h3v4h-3Z"
