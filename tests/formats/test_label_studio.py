"""Label Studio's JSON and JSON-MIN: valid and invalid input."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.errors import InputError
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from detap.formats.label_studio import image_name_of
from tests.cli.conftest import Run
from tests.formats.exports import write
from tests.formats.helpers import codes

fits = FORMATS["labelstudio"].fits

BOUNDS = "pass shapes='bbox' (--shapes bbox) to read its bounding box"


def region(*, label: Any = "dog", kind: Any = "rectanglelabels", **more: Any) -> dict[str, Any]:
    """Return a result: 10 percent of an image of 200 x 100 at (20, 30)."""
    value = {"x": 10, "y": 30, "width": 10, "height": 10, "rotation": 0, kind: [label]}
    value |= more.pop("value", {})
    size = {"original_width": 200, "original_height": 100, "image_rotation": 0}
    value = {key: number for key, number in value.items() if number is not ...}
    return {"id": "r", "type": kind, "value": value, **size, **more}


UPLOADED = "/data/upload/1/0a1b2c3d-a.jpg"


def task(*results: Any, image: Any = UPLOADED, **more: Any) -> dict[str, Any]:
    annotations = [{"id": 1, "result": [*results], "updated_at": "2026-01-01T00:00:00Z"}]
    return {"id": 1, "data": {"image": image}, "annotations": annotations, **more}


def minimal(*regions: dict[str, Any], **more: Any) -> dict[str, Any]:
    flat = [{**r["value"], **{k: r[k] for k in r if k.startswith("original")}} for r in regions]
    image = {"image": UPLOADED, "id": 1, "annotation_id": 7}
    return {**image, "label": flat, "lead_time": 1.0, "updated_at": "2026-01-01T00:00:00Z", **more}


def written(folder: Path, content: Any, name: str = "project.json") -> Path:
    return write(folder / name, content)


def read(folder: Path, content: Any, **options: Any) -> Any:
    return detap.read_ground_truth(written(folder, content), format="labelstudio", **options)


def valid(folder: Path) -> Path:
    folder.mkdir()
    return written(folder, [task(region())])


# --- what is read


@pytest.mark.parametrize("content", [[task(region())], [minimal(region())]], ids=["JSON", "MIN"])
def test_percent_become_pixels(tmp_path: Path, content: Any) -> None:
    truth = read(tmp_path, content)
    assert truth.images == ("a",)
    assert truth.classes == ("dog",)
    assert truth.corners.tolist() == [[20, 30, 40, 40]]
    assert truth.image_sizes.tolist() == [[200, 100]]
    assert detect_format(tmp_path / "project.json").name == "labelstudio"


def test_a_box_rotates_about_its_top_left_corner(tmp_path: Path) -> None:
    """At (20, 30), 20 wide and 10 high, turned clockwise by 90 and 30 degrees."""
    boxes = [region(value={"rotation": degrees}) for degrees in (90, 30)]
    truth = read(tmp_path, [task(*boxes)], shapes="bbox")
    assert truth.corners[0].tolist() == pytest.approx([10, 30, 20, 50])
    s, c = 0.5, math.sqrt(3) / 2
    expected = [20 - 10 * s, 30, 20 + 20 * c, 30 + 20 * s + 10 * c]
    assert truth.corners[1].tolist() == pytest.approx(expected)


def test_a_rotated_box_is_a_quadrilateral(tmp_path: Path) -> None:
    """A square rotated by 45 degrees about its corner."""
    square = {"x": 40, "y": 40, "width": 10, "height": 20}  # 20 x 20 of 200 x 100 pixels
    project = [task(region(value={**square, "rotation": 45}))]
    result = {**region(value=square), "score": 0.9}
    project[0]["predictions"] = [{"model_version": "v1", "result": [result]}]
    path = written(tmp_path, project)
    truth = detap.read_ground_truth(path, format="labelstudio")
    detections = detap.read_detections(path, truth, format="labelstudio")
    s = 20 * math.sqrt(0.5)
    corners = [80, 40, 80 + s, 40 + s, 80, 40 + 2 * s, 80 - s, 40 + s]
    assert np.asarray(truth.polygons)[0].tolist() == pytest.approx(corners)
    assert truth.corners[0].tolist() == pytest.approx([80 - s, 40, 80 + s, 40 + 2 * s])
    assert truth.area.tolist() == pytest.approx([400])
    assert detections.polygons is None
    with pytest.raises(detap.UsageError, match="oriented boxes in the ground truth; use --iou-typ"):
        detap.evaluate(truth, detections)


def test_other_shapes_are_read_as_their_bounds(tmp_path: Path) -> None:
    points = [[10, 10], [30, 20], [20, 50]]
    box = dict.fromkeys(("x", "y", "width", "height", "rotation"), ...)
    polygon = region(kind="polygonlabels", value={**box, "points": points})
    circle = {"x": 50, "y": 50, "width": ..., "height": ..., "radiusX": 10, "radiusY": 20}
    ellipses = [
        region(kind="ellipselabels", value={**circle, "rotation": degrees}) for degrees in (0, 90)
    ]
    truth = read(tmp_path, [task(polygon, *ellipses)], shapes="bbox")
    assert truth.corners.tolist() == [
        [20, 10, 60, 50],
        [80, 30, 120, 70],
        pytest.approx([80, 30, 120, 70]),
    ]


def test_the_newest_annotation_counts(tmp_path: Path) -> None:
    """Cancelled ones do not; times may have different offsets."""
    times = ["2026-01-01T12:00:00+02:00", "2026-01-01T11:00:00Z", "2026-01-02T00:00:00Z"]
    annotations = [
        {"result": [region(label=f"annotator {k}")], "updated_at": time, "was_cancelled": k == 2}
        for k, time in enumerate(times)
    ]
    truth = read(tmp_path, [task(annotations=annotations)])
    assert truth.classes == ("annotator 1",)
    assert codes(truth) == {"several-annotators": 1, "annotations-cancelled": 1}
    records = [minimal(region(label=str(k)), updated_at=time) for k, time in enumerate(times[:2])]
    truth = read(tmp_path, records)
    assert truth.classes == ("1",)
    assert codes(truth) == {"several-annotators": 1}


def test_images_are_annotated_tasks(tmp_path: Path) -> None:
    cancelled = [{"result": [region()], "was_cancelled": True}]
    truth = read(
        tmp_path,
        [
            task(region(), image="a.jpg"),
            task(image="b.jpg"),
            task(image="c.jpg", annotations=[]),
            task(image="d.jpg", annotations=cancelled),
        ],
    )
    assert truth.images == ("a", "b")
    assert codes(truth) == {
        "tasks-not-annotated": 1,
        "annotations-cancelled": 1,
        "images-without-objects": 1,
    }


def test_results_that_are_no_regions_are_skipped(tmp_path: Path) -> None:
    choice = {"type": "choices", "value": {"choices": ["day"]}}
    relation = {"type": "relation", "from_id": "a", "to_id": "b"}
    bare = region(kind="rectangle", value={"rectangle": ...})
    labels = region(kind="labels")
    truth = read(tmp_path, [task(choice, relation, bare, labels)])
    assert truth.corners.tolist() == [[20, 30, 40, 40]]
    [note] = [note for note in truth.notes if note.code == "results-skipped"]
    assert note.message == "results skipped: not regions ('choices', 'relation')"
    assert note.count == 2


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("/data/upload/1/0a1b2c3d-a.jpg", "a.jpg"),
        ("/data/local-files/?d=day/cam 1/a.jpg", "a.jpg"),
        ("/data/local-files/?d=day\\cam\\a.jpg", "a.jpg"),
        ("s3://bucket/day/a%20b.jpg?token=x/y", "a b.jpg"),
        ("https://host/0a1b2c3d-a-b.jpg", "a-b.jpg"),
        ("a.jpg", "a.jpg"),
        ("0a1b2c3-a.jpg", "0a1b2c3-a.jpg"),
    ],
)
def test_names_of_images(value: str, name: str) -> None:
    assert image_name_of(value) == name


def test_the_key_of_the_image(tmp_path: Path) -> None:
    one = task(region(), data={"picture": "s3://x/a.jpg", "text": "a dog"})
    truth = read(tmp_path, [one])
    assert truth.images == ("a",)
    assert FORMATS["labelstudio"].image_attribute(truth, "text") == {"a": "a dog"}


def test_older_exports_have_completions(tmp_path: Path) -> None:
    old = task(region())
    old["completions"] = old.pop("annotations")
    assert len(read(tmp_path, [old])) == 1
    assert fits(str(tmp_path / "project.json"))


def test_where_images_may_be(tmp_path: Path) -> None:
    truth = read(tmp_path, [task(region())])
    folders, names = FORMATS["labelstudio"].image_files(truth)
    assert [folder.path for folder in folders] == [str(tmp_path / "images"), str(tmp_path)]
    assert names == {"a": "0a1b2c3d-a.jpg"}
    assert FORMATS["labelstudio"].file_names(truth) == {"a": "a.jpg"}


def test_many_results_before_the_data_of_a_task(tmp_path: Path) -> None:
    one = task(*(region() for _ in range(50)))
    path = written(tmp_path, [{"annotations": one["annotations"], "data": one["data"]}])
    assert path.read_text("utf-8").index('"data"') > 4096
    assert detect_format(path).name == "labelstudio"


# --- predictions


def predicted(*results: Any, model: str = "m1", **more: Any) -> dict[str, Any]:
    return task(region(), predictions=[{"model_version": model, "result": [*results], **more}])


def test_predictions_are_detections(tmp_path: Path, command: Run) -> None:
    content = [predicted(region(score=0.75), region(label="cat"), score=0.5)]
    truth = read(tmp_path, [task(region())])
    table = detap.read_detections(written(tmp_path, content, "dt.json"), truth)
    assert table.score.tolist() == [0.75, 0.5]
    assert table.classes == ("dog", "cat")
    assert codes(table)["prediction-scores"] == 1
    path = tmp_path / "dt.json"
    assert command("eval", "--gt", path, "--dt", path, "--strict").status == 2


def test_a_project_against_its_own_predictions(tmp_path: Path) -> None:
    """Tasks without annotations are not images, so their predictions do not count."""
    first = predicted(region(score=0.75))
    cancelled = [{"result": [region()], "was_cancelled": True}]
    others = [
        {**predicted(region(score=0.5)), "data": {"image": f"{name}.jpg"}, "annotations": listed}
        for name, listed in (("b", []), ("c", cancelled))
    ]
    path = written(tmp_path, [first, *others])
    truth = detap.read_ground_truth(path)
    table = detap.read_detections(path, truth)
    assert table.score.tolist() == [0.75]
    assert codes(table)["tasks-not-annotated"] == 2
    # Without annotations, it is a file of predictions.
    path = written(tmp_path, [{**first, "annotations": []}, *others], "dt.json")
    with pytest.raises(InputError, match="image 'b' is not in the ground truth"):
        detap.read_detections(path, truth)


# --- writing


def test_written_tasks_are_read_again(tmp_path: Path) -> None:
    """Boxes in percent; annotations and predictions are in one file."""
    truth = detap.GroundTruth.from_arrays(
        image=["a", "a"],
        label=["dog", "a<b"],
        boxes=[[20.0, 30.0, 40.0, 40.0], [0.1, 0.2, 0.3, 0.7]],
        images=["a", "b"],
        image_sizes=[(200, 100), (640, 480)],
    )
    detections = detap.Detections.from_arrays(
        image=["b", "a"],
        label=["dog", "dog"],
        boxes=[[1, 2, 3, 4], [20, 30, 41, 40]],
        score=[1, 0.3],
    )
    done = detap.convert(tmp_path / "out", truth, detections, to="labelstudio")
    assert done.files == ("tasks.json", "config.xml")
    # The second box, in percent and back.
    assert [(note.code, note.count) for note in done.notes] == [("values-rounded", 1)]
    tasks = json.loads((tmp_path / "out/tasks.json").read_text("utf-8"))
    assert [one["data"] for one in tasks] == [{"image": "a.jpg"}, {"image": "b.jpg"}]
    first = tasks[0]["annotations"][0]["result"][0]
    assert first["value"] == {
        "x": 10,
        "y": 30,
        "width": 10,
        "height": 10,
        "rotation": 0,
        "rectanglelabels": ["dog"],
    }
    assert (first["original_width"], first["original_height"]) == (200, 100)
    assert (first["from_name"], first["to_name"]) == ("label", "image")
    assert tasks[0]["predictions"][0]["result"][0]["score"] == 0.3
    assert '<Label value="a&lt;b"/>' in (tmp_path / "out/config.xml").read_text("utf-8")
    again = detap.read_ground_truth(tmp_path / "out/tasks.json")
    assert again.images == ("a", "b")
    by_class = np.argsort([again.classes.index(truth.classes[k]) for k in truth.label])
    assert np.allclose(again.corners[np.argsort(again.label)], truth.corners[by_class], atol=1e-12)
    table = detap.read_detections(tmp_path / "out/tasks.json", again)
    assert table.score.tolist() == [0.3, 1]
    assert table.corners.tolist() == [[20, 30, 41, 40], [1, 2, 3, 4]]


# --- what is refused

LABEL = "give each region one label"
FORMAT = "expected Label Studio's JSON or JSON-MIN, a list of tasks with data and annotations"
AT = "[0].annotations[0].result[0]: "
BARE = {"x": ..., "y": ..., "width": ..., "height": ..., "rotation": ...}

BAD: dict[str, Any] = {
    "an object": ({"tasks": []}, f'is {{"tasks": []}}; {FORMAT}'),
    "no tasks": ([], "has no tasks; export tasks with annotations"),
    "a number as task": ([7], "[0]: is 7; expected an object"),
    "data is a list": ([{"data": [], "annotations": [{"result": []}]}], "[0]: data is []"),
    "no image": ([task(region(), image=None)], "keys with an image: none"),
    "an image list": ([task(region(), image=["a.jpg"])], 'image is ["a.jpg"]; write its URL'),
    "two images": (
        [task(region(), data={"left": "a.jpg", "right": "b.jpg"})],
        "keys with an image: 'left', 'right'; expected one, such as data.image",
    ),
    "annotations is null": ([task(annotations=None)], "[0]: annotations is null; expected a list"),
    "annotation is an id": (
        [task(annotations=[5])],
        "[0].annotations[0]: is 5; expected an object",
    ),
    "no result": ([task(annotations=[{}])], "[0].annotations[0]: result is missing; expected a l"),
    "value is a list": ([task({**region(), "value": []})], f"{AT}value is []; expected an object"),
    "type is a list": ([task(region() | {"type": []})], f"{AT}type is []; use rectanglelabels"),
    "no label": (
        [task(region(value={"rectanglelabels": ...}))],
        f"{AT}rectanglelabels is null; {LABEL}",
    ),
    "a label of blanks": ([task(region(label=" "))], f'{AT}rectanglelabels[0] is " "; write'),
    "a numeric label": ([task(region(label=3))], f"{AT}rectanglelabels[0] is 3; write the name"),
    "a label of half a pair": ([task(region(label="\ud800"))], f"{AT}rectanglelabels[0] has an un"),
    "two labels": (
        [task(region(value={"rectanglelabels": ["dog", "cat"]}))],
        f'{AT}rectanglelabels is ["dog", "cat"]; {LABEL}',
    ),
    "rotated, and its area overflows": (
        [task(region(value={"rotation": 30, "width": 1e200, "height": 1e200}))],
        f"{AT}box area overflows; correct the box",
    ),
    "rotation is text": (
        [task(region(value={"rotation": "30"}))],
        f'{AT}rotation is "30", expected a number',
    ),
    "a rotated image": (
        [task(region(image_rotation=90))],
        f"{AT}image_rotation is not 0; rotate the image, and label it again",
    ),
    "a polygon": (
        [task(region(kind="polygonlabels", value={**BARE, "points": [[1, 2], [3, 4], [5, 1]]}))],
        f"{AT}is a polygon, not a box; {BOUNDS}",
    ),
    "an ellipse": (
        [task(region(kind="ellipselabels", value={"radiusX": 1, "radiusY": 2}))],
        f"{AT}is an ellipse, not a box; {BOUNDS}",
    ),
    "a brush": (
        [task(region(kind="brushlabels", value={**BARE, "format": "rle", "rle": [0]}))],
        f"{AT}is a brush mask, which is not read; export COCO, or draw boxes",
    ),
    "keypoints": ([task(region(kind="keypointlabels"))], f'{AT}type is "keypointlabels"; use'),
    "no image size": (
        [task({k: v for k, v in region().items() if k != "original_width"})],
        f"{AT}original_width is missing; use a finite number",
    ),
    "two image sizes": (
        [task(region(), region(original_width=300))],
        "[0]: regions have several image sizes; use one image per task",
    ),
    "no boxes": ([task()], "no boxes in its 1 images"),
    "times are missing": (
        [task(annotations=[{"result": [region()]}, {"result": [region()]}])],
        "[0]: updated_at is null; several annotations need it; write the time of each",
    ),
    "JSON-MIN: a rotation of text": (
        [minimal(region(value={"rotation": "5"}))],
        '[0].label[0]: rotation is "5"',
    ),
    "JSON-MIN: a region is a number": (
        [minimal(region(), label=[{}, 5])],
        "[0].label[1]: is 5; expected an object",
    ),
    "CSV": ('"annotation_id","lead_time","image"\n1,2,"a.jpg"\n', "is Label Studio's CSV"),
}
OF_PREDICTIONS: dict[str, tuple[Any, str]] = {
    "no predictions": ([task(region())], "has no predictions; import predictions"),
    "ids": ([task(predictions=[500])], "[0].predictions[0]: is 500; expected an object; export"),
    "result is null": (
        [task(predictions=[{"result": None}])],
        "[0].predictions[0]: result is null; expected a list",
    ),
    "two of one model": (
        [task(predictions=2 * predicted(region(score=1))["predictions"])],
        "[0]: has 2 predictions of one model; keep one per task",
    ),
    "JSON-MIN": ([minimal(region())], "is JSON-MIN, which has no predictions; export JSON"),
}


BAD |= {f"predictions: {name}": (*case, True) for name, case in OF_PREDICTIONS.items()}
