"""CreateML's JSON: valid and invalid input."""

from pathlib import Path
from typing import Any

import detap
from tests.formats.exports import Bad, changed, write


def box(label: str, x: Any, y: Any, width: Any, height: Any, **more: Any) -> dict[str, Any]:
    coordinates = {"x": x, "y": y, "width": width, "height": height}
    return {"label": label, "coordinates": coordinates, **more}


# The centers of DOG and CAT.
BOXES = [box("dog", 6.25, 12, 10.5, 20), box("cat", 25, 10, 10, 10)]
TRUTH = [{"image": "a.jpg", "annotations": BOXES}, {"image": "b.png", "annotations": []}]
SCORED = [
    {"image": "a.jpg", "annotations": [{**BOXES[0], "confidence": 0.9}]},
    {"image": "b.png", "annotations": []},
]


def valid(folder: Path) -> Path:
    return write(folder / "gt.json", TRUTH)


def test_images_match_by_stem_if_folders_differ(tmp_path: Path) -> None:
    truth = detap.read_ground_truth(
        write(tmp_path / "gt.json", changed(TRUTH, 0, "image", to="x\\a.jpg"))
    )
    assert truth.images == ("b", "x/a")
    detections = detap.read_detections(write(tmp_path / "dt.json", SCORED), truth)
    assert detections.image.tolist() == [1]


FIRST = "[0].annotations[0]"
AT = (0, "annotations", 0)
SIDES = (*AT, "coordinates")
BAD = {
    "empty list": Bad([], "no boxes in its 0 images"),
    "an object": Bad({"image": "a.jpg"}, "not a list of images"),
    "negative width": Bad(changed(TRUTH, *SIDES, "width", to=-3), f"{FIRST}: width -3 is negative"),
    "huge": Bad(
        changed(TRUTH, *AT, to=box("dog", 0, 0, 1e300, 1e300)), f"{FIRST}: box area overflows"
    ),
    "no coordinates": Bad(
        changed(TRUTH, *AT, without="coordinates"), f"{FIRST}: coordinates is missing"
    ),
    "a list of coordinates": Bad(
        changed(TRUTH, *SIDES, to=[1, 2, 3, 4]), f"{FIRST}: coordinates is [1, 2, 3, 4]"
    ),
    "an object of annotations": Bad(
        changed(TRUTH, 0, "annotations", to={}), "[0]: annotations is {}"
    ),
    "no annotations": Bad(changed(TRUTH, 0, without="annotations"), "[0]: annotations is missing"),
    "no image": Bad(changed(TRUTH, 0, without="image"), "[0]: image name is missing"),
    "a number as image": Bad(changed(TRUTH, 0, "image", to=7), "[0]: image name is 7"),
    "an image is a list": Bad(changed(TRUTH, 1, to=[]), "[1]: is []"),
    "an image in two types": Bad(
        changed(TRUTH, 1, "image", to="a.png"), "duplicate image 'a.png' (also at [0], as 'a.jpg')"
    ),
    "detections": Bad(SCORED, f"{FIRST}: has a confidence (detections?)"),
    "text as confidence": Bad(
        changed(SCORED, *AT, "confidence", to="0.9"), f'{FIRST}: confidence is "0.9"', True
    ),
    "other classes": Bad(changed(SCORED, *AT, "label", to="fox"), "no class in common", True),
}
