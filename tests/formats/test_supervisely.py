"""Supervisely's projects: valid and invalid input."""

from pathlib import Path
from typing import Any

import pytest

import detap
from detap.errors import InputError
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from tests.formats.exports import CAT, DOG, Bad, changed, write


def thing(title: str, *points: Any, kind: Any = "rectangle", **tags: Any) -> dict[str, Any]:
    return {
        "classTitle": title,
        "geometryType": kind,
        "tags": [{"name": name, "value": value} for name, value in tags.items()],
        "points": {"exterior": points, "interior": []},
    }


# The second rectangle has its corners in another order.
THINGS = [thing("dog", [1, 2], [11.5, 22]), thing("cat", [30, 5], [20, 15])]
SIZE = {"height": 40, "width": 50}
A = {"description": "", "tags": [{"name": "night"}], "size": SIZE, "objects": THINGS}
B = {"description": "", "tags": [], "size": SIZE, "objects": []}
META = {"classes": [{"title": name, "shape": "rectangle"} for name in ("cow", "dog", "cat")]}
SCORED = {**A, "objects": [thing("dog", [1, 2], [11.5, 22], confidence=0.9)]}


def project(root: Path, content: Any = A, data_set: str = "ds0") -> Path:
    write(root / "meta.json", META)
    write(root / data_set / "ann/a.jpg.json", content)
    write(root / data_set / "ann/b.png.json", B)
    write(root / data_set / "img/a.jpg", b"\xff\xd8\xff")
    return root


def valid(folder: Path) -> Path:
    return write(folder / "a.jpg.json", A)


@pytest.mark.parametrize("inside", ["", "ds0", "ds0/ann", "ds0/ann/a.jpg.json"])
def test_a_project_a_data_set_its_folder_and_a_file(tmp_path: Path, inside: str) -> None:
    path = project(tmp_path) / inside
    assert detect_format(path).name == "supervisely"
    assert detap.read_ground_truth(path).corners.tolist() == [[*DOG], [*CAT]]


def test_equal_names_in_two_data_sets_have_their_folder(tmp_path: Path) -> None:
    project(tmp_path, data_set="one")
    truth = detap.read_ground_truth(project(tmp_path, data_set="two"))
    assert truth.images == ("one/a", "one/b", "two/a", "two/b")
    assert len(truth) == 4
    assert FORMATS["supervisely"].file_names(truth)["two/b"] == "two/b.png"


def test_attributes_of_images_with_equal_names_in_two_data_sets(tmp_path: Path) -> None:
    """Files are read again with the prefix of their data set."""
    night = {**A, "tags": [{"name": "light", "value": "night"}]}
    project(tmp_path, data_set="one")
    truth = detap.read_ground_truth(project(tmp_path, night, data_set="two"))
    assert FORMATS["supervisely"].image_attribute(truth, "light") == {"two/a": "night"}


def test_other_files_are_skipped_with_a_count(tmp_path: Path) -> None:
    write(project(tmp_path) / "ds0/ann/notes.txt", "")
    notes = detap.read_ground_truth(tmp_path).notes
    assert {note.code: note.count for note in notes}["files-skipped"] == 1


def test_tags_are_flags_and_scores(tmp_path: Path) -> None:
    hard = {**A, "objects": [thing("dog", [1, 2], [3, 4], hard=None), THINGS[1]]}
    truth = detap.read_ground_truth(
        project(tmp_path / "gt", hard), attribute_flags="hard=difficult"
    )
    assert truth.difficult.tolist() == [True, False]
    detections = detap.read_detections(project(tmp_path / "dt", SCORED), truth)
    assert detections.score.tolist() == [0.9]
    named = {**A, "objects": [thing("dog", [1, 2], [3, 4], p=0.7)]}
    path = project(tmp_path / "other", named)
    assert detap.read_detections(path, truth, score_attribute="p").score.tolist() == [0.7]


def test_other_shapes_are_read_as_their_bounds(tmp_path: Path) -> None:
    things = [
        thing("x", [3.5, 4], [1, 9], [8, 2], kind="polygon"),
        thing("x", [1, 2], [3, 1], kind="line"),
        thing("x", [1, 2], kind="point"),
    ]
    path = project(tmp_path, {**A, "objects": things})
    with pytest.raises(InputError, match=r"objects\[0\]: is a polygon, not a box; pass shapes="):
        detap.read_ground_truth(path)
    corners = detap.read_ground_truth(path, shapes="bbox").corners.tolist()
    assert corners == [[1, 2, 8, 9], [1, 1, 3, 2], [1, 2, 1, 2]]


def test_a_broken_project_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "meta.json", META)
    with pytest.raises(
        InputError, match=r"no annotations: no file in a folder ann ends with .json"
    ):
        detap.read_ground_truth(tmp_path)
    write(project(tmp_path) / "meta.json", {"classes": [{"title": ""}]})
    with pytest.raises(InputError, match=r'meta.json: classes\[0\]: title is ""'):
        detap.read_ground_truth(tmp_path)
    write(tmp_path / "meta.json", META)
    write(tmp_path / "ds0/ann/a.png.json", B)
    with pytest.raises(
        InputError, match=r"duplicate image 'ds0/a.png' \(also at .*, as 'ds0/a.jpg'"
    ):
        detap.read_ground_truth(tmp_path)


FIRST = "objects[0]"
AT = ("objects", 0)
POINTS = (*AT, "points", "exterior")
TAGS = (*AT, "tags")


def made(*points: Any, kind: Any = "rectangle", **tags: Any) -> Any:
    return changed(A, *AT, to=thing("dog", *points, kind=kind, **tags))


BBOX = ("--shapes", "bbox")
BAD = {
    "a list": Bad([], "is []; expected {"),
    "no objects": Bad(changed(A, without="objects"), "objects is missing"),
    "objects are an object": Bad(changed(A, "objects", to={}), "objects is {}; expected {"),
    "a size of text": Bad(changed(A, "size", to="50x40"), 'is "50x40"'),
    "tags are text": Bad(changed(A, "tags", to="x"), 'tags is "x"'),
    "an unknown type": Bad(made([1, 2], kind="star"), f'{FIRST}: geometryType is "star"'),
    "a type that is a list": Bad(made([1, 2], kind=[]), f"{FIRST}: geometryType is []"),
    "a bitmap": Bad(made([1, 2], kind="bitmap"), f'{FIRST}: geometryType is "bitmap"; use'),
    "a polygon": Bad(made([1, 2], kind="polygon"), f"{FIRST}: is a polygon, not a box"),
    "few points": Bad(
        made([1, 2], [3, 4], kind="polygon"), "has 2 points as a polygon", options=BBOX
    ),
    "no points": Bad(changed(A, *AT, without="points"), f"{FIRST}: points is missing"),
    "no exterior": Bad(changed(A, *POINTS), f"{FIRST}: points.exterior is null"),
    "an empty exterior": Bad(made(), f"{FIRST}: points.exterior is []"),
    "one corner": Bad(made([1, 2]), f"{FIRST}: has 1 point as a rectangle"),
    "a point of one number": Bad(made([1], [3, 4]), f"{FIRST}: points.exterior[0] is [1]"),
    "a tag is text": Bad(changed(A, *TAGS, to=["x"]), f'{FIRST}: is "x"'),
    "a tag without name": Bad(changed(A, *TAGS, to=[{"value": 1}]), f"{FIRST}: name is missing"),
}
