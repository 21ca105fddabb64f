"""Laws of the formats whose files name their images: what they all refuse, in the same words."""

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import detap
from detap.errors import InputError
from detap.formats.catalogue import FORMATS
from detap.formats.detection import detect_format
from tests.cli.conftest import Run
from tests.formats import test_createml as createml
from tests.formats import test_crowdhuman as crowdhuman
from tests.formats import test_datumaro as datumaro
from tests.formats import test_label_studio as label_studio
from tests.formats import test_labelme as labelme
from tests.formats import test_roboflow as roboflow
from tests.formats import test_sagemaker as sagemaker
from tests.formats import test_scalabel as scalabel
from tests.formats import test_supervisely as supervisely
from tests.formats import test_tfcsv as tfcsv
from tests.formats import test_via as via
from tests.formats.exports import CAT, DOG, RESULTS, Bad, changed, refused, write
from tests.raised import raised


class Kind(NamedTuple):
    """A valid file of a format, and where it has the parts that all formats have."""

    name: str
    content: Any
    item: tuple[Any, ...]  # the keys of the first object
    where: str  # its location in messages
    number: tuple[Any, ...]  # the keys of a coordinate in the object
    number_name: str  # its name in messages
    label: tuple[Any, ...] = ()  # the keys of the name of the class
    size: tuple[Any, ...] = ()  # the keys of the width of the image
    repeated: Callable[[], Any] | None = None  # a file with an image twice
    detections: bool = False


KINDS = {kind.name: kind for kind in (
    Kind("createml", createml.TRUTH, (0, "annotations", 0), "[0].annotations[0]",
         ("coordinates", "x"), "x", ("label",), (),
         lambda: [*createml.TRUTH, createml.TRUTH[0]]),
    Kind("via", via.TRUTH, ("a.jpg7", "regions", 0), '"a.jpg7".regions[0]',
         ("shape_attributes", "x"), "x", ("region_attributes", "kind"), (),
         lambda: {**via.TRUTH, "a.jpg9": via.A}),
    Kind("datumaro", datumaro.TRUTH, ("items", 0, "annotations", 0), "items[0].annotations[0]",
         ("bbox", 1), "bbox[1]", (), ("items", 0, "image", "size", 1),
         lambda: changed(datumaro.TRUTH, "items", 1, "id", to="a")),
    Kind("supervisely", supervisely.A, ("objects", 0), "objects[0]",
         ("points", "exterior", 0, 1), "points.exterior[0][1]", ("classTitle",), ("size", "width")),
    Kind("labelme", labelme.document(labelme.shape()), ("shapes", 0), "shapes[0]",
         ("points", 0, 1), "points[0][1]", ("label",)),
    Kind("scalabel", scalabel.TRUTH, (0, "labels", 0), "[0].labels[0]", ("box2d", "y1"), "y1",
         ("category",), (), lambda: [*scalabel.TRUTH, scalabel.TRUTH[0]]),
    Kind("crowdhuman", crowdhuman.A, ("gtboxes", 0), "line 1: gtboxes[0]", ("fbox", 1), "fbox[1]",
         (), (), lambda: crowdhuman.lines(crowdhuman.A, crowdhuman.A)),
    Kind("sagemaker", sagemaker.A, ("boxes", "annotations", 0), "line 1: boxes.annotations[0]",
         ("left",), "left", (), ("boxes", "image_size", 0, "width"),
         lambda: sagemaker.lines(sagemaker.A, sagemaker.A)),
    Kind("labelstudio", [label_studio.task(label_studio.region())],
         (0, "annotations", 0, "result", 0), "[0].annotations[0].result[0]", ("value", "x"), "x",
         (), (0, "annotations", 0, "result", 0, "original_width"),
         lambda: [label_studio.task(label_studio.region()),
                  label_studio.task(label_studio.region(), image="s3://x/a.jpg")]),
    Kind("roboflow", roboflow.response(roboflow.prediction()), ("predictions", 0), "predictions[0]",
         ("x",), "x", ("class",), ("image", "width"), None, True),
)}  # fmt: skip
Refuses = Callable[[Kind, Any, str], None]


@pytest.fixture
def refuses(tmp_path: Path, command: Run) -> Refuses:
    def check(kind: Kind, content: Any, message: str) -> None:
        bad = Bad(content, message, kind.detections)
        refused(tmp_path, bad, "a.json", createml.valid, command=command, file_format=kind.name)

    return check


def names(with_part: str = "name") -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "name", [name for name, kind in KINDS.items() if getattr(kind, with_part)]
    )


class Example(NamedTuple):
    """A dog and a cat on image a, nothing on image b: a valid file, and what it gives beyond."""

    write: Callable[[Path], Path]
    classes: tuple[str, ...]
    files: dict[str, str]
    sizes: list[list[float]] | None = None
    attribute: tuple[str, dict[str, Any]] | None = None  # of images


A_AND_B = {"a": "a.jpg", "b": "b.png"}
EXAMPLES = {
    "createml": Example(createml.valid, ("cat", "dog"), A_AND_B),
    "datumaro": Example(
        datumaro.valid, ("cat", "cow", "dog"), {"a": "a.jpg"},  # also a class without boxes
        [[50, 40], [math.nan] * 2], ("frame", {"b": 3}),
    ),
    "sagemaker": Example(
        sagemaker.valid, ("cat", "dog"), {"a": "a.jpg", "b": "b.jpg"}, [[50, 40]] * 2
    ),
    "scalabel": Example(scalabel.valid, ("dog", "cat"), A_AND_B),  # as they come
    "supervisely": Example(
        supervisely.project, ("cat", "cow", "dog"), A_AND_B, [[50, 40]] * 2, ("night", {"a": True})
    ),
    **{
        f"via {kind}": Example(
            partial(via.valid, kind=kind), ("cat", "dog"), A_AND_B, None, ("night", {"a": "1"})
        )
        for kind in via.FILES
    },
    "via 3": Example(via.valid_3, ("cat", "dog"), {"a": "a.jpg", "b": "b.jpg"}),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_dog_and_a_cat(name: str, tmp_path: Path) -> None:
    example, reader = EXAMPLES[name], FORMATS[name.split(maxsplit=1)[0]]
    truth = detap.read_ground_truth(example.write(tmp_path / "gt"))
    assert (truth.format, truth.images) == (name.split(maxsplit=1)[0], ("a", "b"))
    assert truth.classes == example.classes
    assert [truth.classes[k] for k in truth.label] == ["dog", "cat"]
    assert truth.corners.tolist() == [[*DOG], [*CAT]]
    assert truth.box_area.tolist() == [210, 100]
    if example.sizes is not None:
        assert np.array_equal(np.asarray(truth.image_sizes), example.sizes, equal_nan=True)
    assert reader.file_names(truth) == example.files
    if example.attribute is not None:
        assert reader.image_attribute(truth, example.attribute[0]) == example.attribute[1]
    detections = detap.read_detections(write(tmp_path / "dt.json", RESULTS), truth)
    assert detap.evaluate(truth, detections, "coco").summary["AP"] == pytest.approx(1)


NO_JSON: dict[str, tuple[Callable[[str], str | bytes], str]] = {
    "empty": (lambda text: "", "is empty"),
    "blank": (lambda text: " \n", "is empty"),
    "cut off": (lambda text: text[:-9], "file is truncated"),
    "a comma too many": (lambda text: f"{text[:-1]},{text[-1]}", "invalid JSON at "),
    "two values": (lambda text: text + text, "unexpected text after the JSON value"),
    "not UTF-8": (lambda text: text.encode() + b"\xff", "0xff is not UTF-8"),
    "UTF-16": (lambda text: text.encode("utf-16"), "UTF-16 "),
    "too deep": (lambda text: "[" * 150 + "]" * 150, "JSON is nested 150 levels deep, the limit"),
    "HTML": (lambda text: "<html></html>", "looks like an HTML page"),
    "a key twice": (lambda text: '{"x": [], "x": []}', 'duplicate key "x"'),
}


@pytest.mark.parametrize("case", NO_JSON)
@names()
def test_invalid_json(name: str, case: str, refuses: Refuses) -> None:
    change, message = NO_JSON[case]
    refuses(KINDS[name], change(json.dumps(KINDS[name].content)), message)


NUMBERS: dict[str, tuple[Any, str]] = {
    "text": ("12", '"12"'),
    "true": (True, "true"),
    "null": (None, "missing"),
    "a list": ([1], "[1]"),
    "NaN": (math.nan, "NaN, expected a finite number"),
    "infinite": (math.inf, "infinite, expected a finite number"),
    "too large": (10**309, f"{str(10**309)[:60]}..., expected a finite number"),
    "a thousand digits": (10**999, "infinite"),
}


@pytest.mark.parametrize("case", NUMBERS)
@names()
def test_coordinates_that_are_no_numbers(name: str, case: str, refuses: Refuses) -> None:
    kind, (value, shown) = KINDS[name], NUMBERS[case]
    content = changed(kind.content, *kind.item, *kind.number, to=value)
    refuses(kind, content, f"{kind.where}: {kind.number_name} is {shown}")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "{} is "), (" ", '{} is " "; write the name of its class'), (3, "{} is 3; write the")],
)
@names("label")
def test_names_of_classes(name: str, value: Any, shown: str, refuses: Refuses) -> None:
    kind = KINDS[name]
    content = changed(kind.content, *kind.item, *kind.label, to=value)
    refuses(kind, content, f"{kind.where}: {shown.format(kind.label[-1])}")


@names("label")
def test_a_name_that_is_no_unicode(name: str, refuses: Refuses) -> None:
    kind = KINDS[name]
    content = changed(kind.content, *kind.item, *kind.label, to="\ud800")
    refuses(kind, json.dumps(content), "unpaired surrogate")


@pytest.mark.parametrize("value", [7, "x", [1]])
@names()
def test_objects_that_are_no_objects(name: str, value: Any, refuses: Refuses) -> None:
    kind = KINDS[name]
    message = f"is {json.dumps(value)}; expected an object"
    refuses(kind, changed(kind.content, *kind.item, to=value), message)


@pytest.mark.parametrize(("value", "shown"), [("50", '"50"'), (0, "0"), (-5, "-5"), (True, "true")])
@names("size")
def test_sizes_of_images(name: str, value: Any, shown: str, refuses: Refuses) -> None:
    kind = KINDS[name]
    content = changed(kind.content, *kind.size, to=value)
    refuses(kind, content, f"width is {shown}; write pixels, or null if unknown")


@names("repeated")
def test_an_image_twice(name: str, refuses: Refuses) -> None:
    repeated = KINDS[name].repeated
    assert repeated is not None
    refuses(KINDS[name], repeated(), ": duplicate image 'a")


@pytest.mark.parametrize(
    "name", [name for name in KINDS if name not in ("labelstudio", "roboflow")]
)
def test_a_nan_elsewhere(name: str, refuses: Refuses) -> None:
    kind = KINDS[name]
    content = changed(kind.content, *kind.item, "other", to=math.nan)
    refuses(kind, content, "contains NaN or Infinity, which are not valid JSON")


OWN: dict[str, Any] = {
    "createml": createml,
    "crowdhuman": crowdhuman,
    "datumaro": datumaro,
    "labelstudio": label_studio,
    "roboflow": roboflow,
    "sagemaker": sagemaker,
    "scalabel": scalabel,
    "supervisely": supervisely,
    "via": via,
}
"""Modules with a table `BAD` of invalid files of their format."""


@pytest.mark.parametrize(("name", "case"), [(name, case) for name in OWN for case in OWN[name].BAD])
def test_invalid_files(name: str, case: str, tmp_path: Path, command: Run) -> None:
    file = "a.jpg.json" if name in ("supervisely", "roboflow") else "bad.json"
    bad, valid = Bad(*OWN[name].BAD[case]), getattr(OWN[name], "valid", createml.valid)
    refused(tmp_path, bad, file, valid, command=command, file_format=name)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "roboflow"])
def test_the_right_format_comes_first(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", KINDS[name].content)
    truth = detap.read_ground_truth(path)
    assert truth.format == name
    first = raised(InputError, detap.read_ground_truth, path, format="coco").problems[0]
    assert first.message.endswith(", read as COCO")
    assert first.hint == f"use --gt-format {name} (format= in Python)"
    scored = write(tmp_path / "dt.json", createml.SCORED)
    error = raised(InputError, detap.read_detections, scored, truth, format="coco")
    assert error.problems[0].hint == "use --dt-format createml (format= in Python)"


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("createml", "_annotations.createml.json", createml.TRUTH),
        ("tfcsv", "_annotations.csv", tfcsv.TRUTH),
    ],
)
def test_a_split_of_roboflow_is_chosen(name: str, file: str, content: Any, tmp_path: Path) -> None:
    for split in ("train", "valid"):
        write(tmp_path / split / file, content)
        write(tmp_path / split / "a.jpg", b"\xff\xd8\xff")
    assert detect_format(tmp_path).name == name
    with pytest.raises(InputError, match="several subsets: 'train', 'valid'; choose one with"):
        detap.read_ground_truth(tmp_path)
    truth = detap.read_ground_truth(tmp_path, split="val")
    assert truth.files[0].path == str(tmp_path / "valid" / file)


@pytest.mark.parametrize("name", ["via", "labelme", "crowdhuman", "labelstudio"])
def test_an_option_of_no_format_is_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(KINDS[name].content), "utf-8")
    message = str(raised(TypeError, detap.read_ground_truth, tmp_path / "a.json", shape="bbox"))
    assert "unexpected keyword argument 'shape'" in message
