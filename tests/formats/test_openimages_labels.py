"""Image-level labels and the class hierarchy of Open Images."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from detap import evaluate
from detap.errors import InputError
from detap.formats.catalogue import FORMATS
from detap.formats.openimages.labels import Descriptions, Hierarchy
from detap.formats.openimages.tables import read_detections, read_ground_truth
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.io.problems import Problems
from detap.tables.detection import GroundTruth
from tests.cli.conftest import Run

TREE = {
    "LabelName": "root",
    "Subcategory": [
        {
            "LabelName": "animal",
            "Subcategory": [
                {"LabelName": "dog", "Part": [{"LabelName": "tail"}]},
                {"LabelName": "cat"},
            ],
        },
        {"LabelName": "toy", "Subcategory": [{"LabelName": "dog"}]},
    ],
}
BOXES = (
    "ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf",
    "a,dog,0,.5,0,.5,0",
    "b.jpg,cat,.5,1,.5,1,1",
)
LABELS = "ImageID,Source,LabelName,Confidence"


def written(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def tree(folder: Path, content: Any = TREE) -> Path:
    return written(folder, "tree.json", json.dumps(content))


def read(folder: Path, *labels: str, boxes: tuple[str, ...] = BOXES, **options: Any) -> GroundTruth:
    if labels:
        options["image_labels"] = written(folder, "labels.csv", *labels)
    return read_ground_truth(written(folder, "boxes.csv", *boxes), **options)


def listed(truth: GroundTruth, name: str) -> list[tuple[Any, str]]:
    return [(truth.images[i], truth.classes[k]) for i, k in truth.listed[name].tolist()]


def refused(call: Callable[[], object], folder: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        call()
    return [str(p).replace(f"{folder}/", "") for p in caught.value.problems]


# --- labels


def test_labels_verify_classes_and_add_images_and_classes(tmp_path: Path) -> None:
    truth = read(tmp_path, LABELS, "c,v,dog,1", "a.jpg,v,bird,0", "a,v,bird,0.0", "b,v,cat,1")
    assert truth.images == ("a", "b", "c")
    assert truth.classes == ("bird", "cat", "dog")
    assert listed(truth, "negative") == [("a", "bird")]
    assert listed(truth, "positive") == [("b", "cat"), ("c", "dog")]
    assert [truth.classes[k] for k in truth.label] == ["dog", "cat"]
    assert truth.group_of.tolist() == [False, True]
    assert [Path(file.path).name for file in truth.files] == ["boxes.csv", "labels.csv"]
    assert [note.code for note in truth.notes] == [
        "normalized-boxes-unknown-size",
        "images-without-objects",
    ]
    assert read(tmp_path).listed == {}
    nothing = {name: pairs.tolist() for name, pairs in read(tmp_path, LABELS).listed.items()}
    assert nothing == {"negative": [], "positive": []}


def test_labels_use_the_names_of_class_descriptions(tmp_path: Path) -> None:
    names = written(tmp_path, "names.csv", "/m/1,dog", "/m/2,cat")
    truth = read(tmp_path, LABELS, "a,v,/m/2,0", class_descriptions=names)
    assert listed(truth, "negative") == [("a", "cat")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            (LABELS, "a,v,dog,1", "a,v,cat,.7"),
            "labels.csv: line 3: Confidence 0.7 is not 0 or 1; use the human-verified labels",
        ),
        (
            ("ImageID,LabelName", "a,dog"),
            "labels.csv: line 1: has no column Confidence: its first line is 'ImageID,LabelName'; "
            "begin with the line `ImageID,LabelName,Confidence`",
        ),
        (
            ("ImageID,LabelName,Confidence,XMin,XMax,YMin,YMax", "a,dog,1,0,1,0,1"),
            "labels.csv: line 1: has box columns; use the image labels",
        ),
        (
            (LABELS, "a,v,dog,yes"),
            "labels.csv: line 2: Confidence 'yes' is not a number; use a decimal number",
        ),
        (
            (LABELS, "a.jpg,v,dog,1", "b,v,dog,0", "a,v,dog,0"),
            "labels.csv: line 4: class 'dog' of image 'a' has Confidence 0, and 1 in line 2; keep "
            "one of them",
        ),
    ],
)
def test_invalid_labels(tmp_path: Path, lines: tuple[str, ...], message: str) -> None:
    assert refused(lambda: read(tmp_path, *lines), tmp_path) == [message]


def test_a_label_may_be_repeated_and_the_hint_about_contradictions_works(tmp_path: Path) -> None:
    truth = read(tmp_path, LABELS, "a,v,dog,1", "a,x,dog,1", "a,v,cat,0")
    assert ("a", "dog") in listed(truth, "positive")


# --- the hierarchy


def test_boxes_and_labels_are_expanded_and_detections_are_not(tmp_path: Path) -> None:
    lines = (LABELS, "b,v,dog,1", "a,v,animal,0", "b,v,toy,0")
    truth = read(tmp_path, *lines, hierarchy=tree(tmp_path))
    assert truth.classes == ("animal", "cat", "dog", "toy")
    rows = [
        (truth.images[i], truth.classes[k]) for i, k in zip(truth.image, truth.label, strict=True)
    ]
    assert rows == [("a", "dog"), ("a", "animal"), ("a", "toy"), ("b", "cat"), ("b", "animal")]
    assert truth.corners[:, 0].tolist() == [0, 0, 0, 0.5, 0.5]
    assert truth.group_of.tolist() == [False] * 3 + [True] * 2
    assert listed(truth, "positive") == [("b", name) for name in ("animal", "dog", "toy")]
    assert listed(truth, "negative") == [
        *(("a", name) for name in ("animal", "cat", "dog")),
        ("b", "dog"),
        ("b", "toy"),
    ]
    detections = written(
        tmp_path, "dt.csv", "ImageID,LabelName,Score,XMin,XMax,YMin,YMax", "a,dog,.9,0,.5,0,.5"
    )
    assert len(read_detections(detections, truth)) == 1
    result = evaluate(truth, read_detections(detections, truth), "open-images-v2")
    ours = dict(zip(result.classes, result.average_precision[0, :, 0].tolist(), strict=True))
    assert [ours[name] for name in ("dog", "animal", "toy")] == [1.0, 0.0, 0.0]


def test_cases_of_tensorflows_script(real_data: Path, tmp_path: Path) -> None:
    listed = json.loads((real_data / "iou-types-cases" / "hierarchy.json").read_text("utf-8"))
    nameless = Descriptions(None, Problems(1), DEFAULT_LIMITS)
    first, second = (
        Hierarchy(tree(tmp_path, case["hierarchy"]), nameless, DEFAULT_LIMITS)
        for case in listed["cases"]
    )
    expected = listed["cases"][0]
    assert sorted(first.above["d"]) == expected["box of d becomes"]
    assert sorted(first.above["d"]) == expected["label d, confidence 1, becomes"]
    assert sorted(first.below["a"]) == expected["label a, confidence 0, becomes"]
    assert not set(expected["refused"]) & set(first.above)
    for kin, which in ((second.above, "ancestors"), (second.below, "descendants")):
        others = {name: [*own][1:] for name, own in kin.items()}
        assert others == listed["cases"][1][which]


def test_hierarchies_with_class_names(tmp_path: Path) -> None:
    content = {"LabelName": "/m/0", "Subcategory": [
        {"LabelName": "/m/3", "Subcategory": [{"LabelName": "/m/1"}, {"LabelName": "/m/2"}]}
    ]}  # fmt: skip
    names = written(tmp_path, "names.csv", "/m/1,dog", "/m/2,cat", "/m/3,animal")
    truth = read(tmp_path, hierarchy=tree(tmp_path, content), class_descriptions=names)
    assert truth.classes == ("animal", "cat", "dog")


def test_detections_without_ground_truth(tmp_path: Path) -> None:
    names = written(tmp_path, "names.csv", "/m/1,dog", "/m/2,cat")
    header = "ImageID,LabelName,Score,XMin,XMax,YMin,YMax"
    rows = (f"{image},{label},.5,0,1,0,1" for image, label in (("b.jpg", "/m/1"), ("a", "/m/3")))
    path = written(tmp_path, "dt.csv", header, *rows)
    truth = FORMATS["openimages"].placeholder(path, {"class_descriptions": names}, DEFAULT_LIMITS)
    assert (truth.images, truth.classes, len(truth)) == (("a", "b"), ("/m/3", "dog"), 0)
    # Reading the detections reports the problems of both files.
    names = written(tmp_path, "names.csv", "/m/1,dog", "/m/2")
    truth = FORMATS["openimages"].placeholder(path, {"class_descriptions": names}, DEFAULT_LIMITS)
    assert truth.classes == ("/m/3", "dog")


@pytest.mark.parametrize("label", ["tail", "root", "bird"])
def test_unknown_classes_are_refused(tmp_path: Path, label: str) -> None:
    lines = (BOXES[0], BOXES[1], f"a,{label},0,1,0,1,0")
    message = (
        f"boxes.csv: line 3: class {label!r} is not in {tmp_path}/tree.json; use the hierarchy of "
        f"these classes; its root is not a class"
    )
    path = tree(tmp_path)
    (problem,) = refused(lambda: read(tmp_path, boxes=lines, hierarchy=path), tmp_path)
    assert problem == message.replace(f"{tmp_path}/", "")
    (problem,) = refused(lambda: read(tmp_path, LABELS, f"a,v,{label},0", hierarchy=path), tmp_path)
    assert problem.startswith(f"labels.csv: line 2: class {label!r} is not in tree.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "line 2, column 1: file is truncated"),
        ("", "is empty"),
        ("[]", "not a hierarchy: no Subcategory; expected `{"),
        ('{"LabelName": "x"}', "not a hierarchy: no Subcategory; expected `{"),
        ('{"LabelName": "x", "Subcategory": []}', "no classes below the root; expected `{"),
        ('{"Subcategory": [{}]}', "class without a LabelName; expected `{"),
        ('{"Subcategory": [{"LabelName": 7}]}', "class without a LabelName; expected `{"),
        ('{"Subcategory": {}}', "Subcategory is {}, not a list; expected `{"),
        (
            '{"Subcategory": [{"LabelName": "x", "Subcategory": [{"LabelName": "x"}]}]}',
            "class 'x': is its own descendant; expected `{",
        ),
        ("ImageID,LabelName\n", "line 1, column 1: "),
    ],
)
def test_invalid_hierarchies(tmp_path: Path, content: str, message: str) -> None:
    path = written(tmp_path, "tree.json", content)
    (problem,) = refused(lambda: read(tmp_path, hierarchy=path), tmp_path)
    assert problem.startswith(f"tree.json: {message}")


def test_a_hierarchy_that_is_nested_too_deeply(tmp_path: Path) -> None:
    node: dict[str, Any] = {"LabelName": "x"}
    for depth in range(120):
        node = {"LabelName": f"c{depth}", "Subcategory": [node]}
    path = tree(tmp_path, {"Subcategory": [node]})
    (problem,) = refused(lambda: read(tmp_path, hierarchy=path), tmp_path)
    assert "JSON is nested 243 levels deep, the limit is 100" in problem


@pytest.mark.parametrize("confidence", [0, 1])
def test_the_expansion_by_a_hierarchy_is_limited(confidence: int, tmp_path: Path) -> None:
    """1,100 labels of a class with 1,000 descendants, or with 1,000 ancestors."""
    if confidence:
        kinds = [{"LabelName": f"c{n}", "Subcategory": [{"LabelName": "top"}]} for n in range(1000)]
    else:
        below = [{"LabelName": f"c{n}"} for n in range(1000)]
        kinds = [{"LabelName": "top", "Subcategory": below}]
    kinds += [{"LabelName": name} for name in ("cat", "dog", "animal")]
    path = tree(tmp_path, {"LabelName": "root", "Subcategory": kinds})
    lines = [LABELS, *(f"i{n},v,top,{confidence}" for n in range(1100))]
    assert refused(lambda: read(tmp_path, *lines, hierarchy=path), tmp_path) == [
        "labels.csv: the hierarchy expands 1100 rows to 1101100; raise the limits with "
        "--max-expansion and --max-records"
    ]
    truth = read(tmp_path, *lines, hierarchy=path, limits=Limits(expansion=1001))
    assert len(truth.listed["positive" if confidence else "negative"]) == 1_101_100


def test_the_command_accepts_labels_and_hierarchy(tmp_path: Path, detap: Run) -> None:
    """One dog and its ancestors match; the cat of image a is an FP by its label."""
    boxes = written(tmp_path, "boxes.csv", *BOXES[:2])
    labels = written(tmp_path, "labels.csv", LABELS, "a,v,cat,0", "b,v,cat,1")
    detections = written(
        tmp_path,
        "dt.csv",
        "ImageID,LabelName,Score,XMin,XMax,YMin,YMax",
        *(f"a,{name},.9,0,.5,0,.5" for name in ("dog", "animal", "toy", "cat")),
        "b,toy,.95,0,.5,0,.5",
    )
    ended = detap(
        "eval", "--gt", boxes, "--dt", detections, "--image-labels", labels, "--hierarchy",
        tree(tmp_path), "--protocol", "open-images-challenge", "--output-format", "json",
    )  # fmt: skip
    report = json.loads(ended.out)
    assert report["summary"]["mAP"] == 1.0
    assert "unverified" in [note["code"] for note in report["notes"]]
