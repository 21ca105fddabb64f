"""Shapes as drawn: masks by their polygons or by the edges of their pixels."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from detap.cli import main
from tests.coco import saved, truth_of

Ring = list[tuple[int, int]]


def rings(path: str) -> list[Ring]:
    """Return the corners of a path of steps along the axes."""
    closed = []
    for text in re.findall("M([^Z]*)Z", path):
        start, *steps = re.split("(?=[hv])", text)
        x, y = map(int, start.split())
        ring = [(x, y)]
        for step in steps:
            x, y = (x + int(step[1:]), y) if step[0] == "h" else (x, y + int(step[1:]))
            ring.append((x, y))
        closed.append(ring)
    return closed


def filled(path: str, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return the pixels with an odd number of edges to their left."""
    crossed = np.zeros(shape, np.int64)
    for ring in rings(path):
        for (x1, y1), (x2, y2) in zip(ring, ring[1:] + ring[:1], strict=True):
            assert (x1 == x2) != (y1 == y2)  # a side runs along one axis, and has a length
            if x1 == x2:
                crossed[min(y1, y2) : max(y1, y2), x1:] += 1
    return np.asarray(crossed % 2 == 1)


def runs_of(pixels: NDArray[np.bool_]) -> list[int]:
    """Return COCO's RLE: runs down the columns, the first of 0."""
    flat = pixels.T.ravel()
    ends = np.flatnonzero(np.diff(flat, prepend=False, append=not flat[-1]))
    return np.diff(ends, prepend=0).tolist()  # type: ignore[no-any-return]


def drawn(browser: Any, page: Path, kind: str = "path") -> tuple[list[str], list[str]]:
    """Return the geometry of the ground truths and of the detections of the first image."""
    tab = browser.new_page()
    tab.goto(f"{page.as_uri()}#image=0&hide=matched.other")
    shapes = tab.locator(f"#viewer-picture {kind}[data-result]")
    shapes.first.wait_for(state="attached")
    geometry = shapes.evaluate_all(
        "all => all.map(x => [x.dataset.result, x.getAttribute('d') || "
        "['x', 'y', 'width', 'height'].map(name => x.getAttribute(name)).join(' ')])"
    )
    tab.close()
    of_truths = {"matched", "near-miss", "missed"}
    return (
        [shape for result, shape in geometry if result in of_truths],
        [shape for result, shape in geometry if result not in of_truths],
    )


@pytest.mark.parametrize("size", [(1, 1), (1, 6), (6, 1), (3, 3), (5, 7)])
def test_edges_enclose_the_pixels(browser: Any, tmp_path: Path, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(size)
    masks = [rng.random(size) < share for share in np.linspace(0.2, 0.9, 60)]
    masks = [mask for mask in masks if mask.any()]
    box = {"bbox": [0, 0, 1, 1]}
    whole = {"segmentation": {"size": size, "counts": [0, size[0] * size[1]]}}
    files = write(tmp_path, box, box | whole, size)
    truth = json.loads(Path(files[1]).read_text())
    annotation = truth["annotations"][0]
    truth["annotations"] = [
        annotation | {"id": n, "segmentation": {"size": size, "counts": runs_of(mask)}}
        for n, mask in enumerate(masks, 1)
    ]
    Path(files[1]).write_text(json.dumps(truth))
    page = tmp_path / "page.html"
    assert main(["report", *files, "--protocol", "coco-segm", "-o", str(page)]) == 0
    paths, _ = drawn(browser, page)
    assert len(paths) == len(masks)
    for path, mask in zip(paths, masks, strict=True):
        np.testing.assert_array_equal(filled(path, size), mask)


def test_the_edges_of_a_square_with_a_hole(browser: Any, tmp_path: Path) -> None:
    square = {"size": [3, 3], "counts": [0, 4, 1, 4]}
    page = tmp_path / "page.html"
    files = write(tmp_path, {"segmentation": square}, {"segmentation": square}, size=(3, 3))
    assert main(["report", *files, "--protocol", "coco-segm", "-o", str(page)]) == 0
    outer, inner = (sorted(ring) for ring in rings(drawn(browser, page)[0][0]))
    assert outer == [(0, 0), (0, 3), (3, 0), (3, 3)]
    assert inner == [(1, 1), (1, 2), (2, 1), (2, 2)]


def write(
    folder: Path,
    truth: dict[str, Any],
    detections: dict[str, Any],
    size: tuple[int, int] = (8, 6),
) -> list[str]:
    instances = truth_of([(1, 1, [1, 2, 3, 4])], {1: "cat"}, [1], size=size[::-1], **truth)
    record = {"image_id": 1, "category_id": 1, "score": 0.5}
    gt, dt = saved(folder, instances, [record | detections])
    return ["--gt", str(gt), "--dt", str(dt)]


@pytest.mark.parametrize("protocol", ["coco-segm", "coco-boundary"])
def test_masks_are_drawn_as_annotated(browser: Any, tmp_path: Path, protocol: str) -> None:
    """A triangle as its polygon; RLE as the edges of its pixels: columns 3 to 5, rows 2 to 5."""
    files = write(
        tmp_path,
        {"segmentation": [[1.0, 2.0, 4.5, 2.0, 1.0, 6.0]]},
        {"segmentation": {"size": [8, 6], "counts": [26, 4, 4, 4, 4, 4, 2]}},
    )
    page = tmp_path / "page.html"
    assert main(["report", *files, "--protocol", protocol, "-o", str(page)]) == 0
    assert drawn(browser, page) == (["M1 2h3.5L1 6Z"], ["M3 2h3v4h-3Z"])


def test_boxes_are_drawn_as_boxes(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    files = write(tmp_path, {}, {"bbox": [3, 2, 3, 4]})
    assert main(["report", *files, "-o", str(page)]) == 0
    assert drawn(browser, page, "rect") == (["1 2 3 4"], ["3 2 3 4"])


def test_quadrilaterals_are_drawn_as_annotated(browser: Any, tmp_path: Path) -> None:
    labels, results = tmp_path / "labelTxt", tmp_path / "found"
    for folder in (labels, results):
        folder.mkdir()
    (labels / "a.txt").write_text("5 0 10 5 5 10 0 5 plane 0\n")
    (results / "Task1_plane.txt").write_text("a 0.5 0 0 10 0 10 10 0 10\n")
    page = tmp_path / "page.html"
    files = ["--gt", str(labels), "--dt", str(results), "--format", "dota"]
    assert main(["report", *files, "-o", str(page)]) == 0
    assert drawn(browser, page) == (["M5 0L10 5L5 10L0 5Z"], ["M0 0h10v10h-10Z"])


def pose_page(folder: Path, labelled: Sequence[float], detected: Sequence[float]) -> Path:
    """Return the page of annotated and detected keypoints that do not match."""
    count = len(labelled) // 3
    truth = {"keypoints": labelled, "num_keypoints": sum(v > 0 for v in labelled[2::3])}
    files = write(folder, truth, {"keypoints": detected})
    how = ["--protocol", "coco-keypoints", "--sigmas", ",".join(["0.001"] * count)]
    page = folder / "page.html"
    assert main(["report", *files, *how, "-o", str(page)]) == 0
    return page


def test_compared_keypoints_are_drawn_as_crosses(browser: Any, tmp_path: Path) -> None:
    """Arms are 1/40 of the longer side of 40 pixels; a detection's visibility is not used."""
    page = pose_page(tmp_path, [10, 10, 2, 50, 10, 1, 0, 0, 0], [10, 20, 1, 50, 20, 0, 10, 60, 1])
    assert drawn(browser, page) == (
        ["M9 10h2M10 9v2M49 10h2M50 9v2"],
        ["M9 20h2M10 19v2M49 20h2M50 19v2M9 60h2M10 59v2"],
    )


def test_the_keypoints_of_a_person_are_joined(browser: Any, tmp_path: Path) -> None:
    """COCO's first two keypoints, nose and left eye, are joined; the third is not labeled."""
    eye = [10, 10, 2, 50, 10, 1, *[0] * 45]
    (truth,), (shape,) = drawn(browser, pose_page(tmp_path, eye, [20, 20, 1] * 17))
    assert truth == "M9 10h2M10 9v2M49 10h2M50 9v2M10 10L50 10"
    assert shape.count("L") == 19


def test_a_person_without_keypoints_is_a_box(browser: Any, tmp_path: Path) -> None:
    page = pose_page(tmp_path, [0] * 9, [90, 90, 1] * 3)
    assert drawn(browser, page, "rect") == ([], ["1 2 3 4"])  # ignored: not among the results
