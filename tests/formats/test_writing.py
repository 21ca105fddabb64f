"""Tables written to files of another format: kept to the bit where possible, losses reported."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import detap
from detap.errors import InputError
from detap.formats.xywh import to_xywh
from detap.tables.detection import Detections, GroundTruth, encode_boxes
from tests.coco import read, results_of, saved, truth_of
from tests.formats.voc_files import item, tree, write, xml
from tests.raised import raised

SIDE = st.floats(1e-3, 2000, allow_nan=False, width=64)
SINGLE = st.floats(0.0625, 2000, width=32)
DECIMAL = st.integers(1, 200000).map(lambda n: n / 100)
PLACE = st.one_of(st.floats(0, 4000), DECIMAL, SINGLE)
LENGTH = st.one_of(SIDE, DECIMAL, SINGLE)
BOX = st.tuples(PLACE, PLACE, LENGTH, LENGTH)
COLUMNS = ("image", "label", "corners", "box_area", "area", "crowd", "ignore", "group_of")


# --- sides from corners


def test_widths_and_heights_are_short_decimals() -> None:
    """In float64, 0.8 - 0.1 and 0.2 - 0.1 are no short decimals."""
    boxes = [[0.1, 0.1, 0.7, 0.1], [0.1, 0.1, 0.4, 0.7], [2, 3, 4, 5]]
    assert to_xywh(*encode_boxes(np.array(boxes), "xywh"))[0].tolist() == boxes


def test_a_small_box_far_away_has_too_many_lengths_to_try_all() -> None:
    boxes = np.array([[1e15, 1e15, 0.9123456789012345, 0.8123456789012345]])
    corners, area = encode_boxes(boxes, "xywh")
    written, _ = to_xywh(corners, area)
    assert encode_boxes(written, "xywh")[0].tolist() == corners.tolist()
    none = to_xywh(np.array([[-1e16, 0, 1, 1]]), np.array([5.0]))  # there is no such width
    assert [part.tolist() for part in none] == [[[-1e16, 0, 1e16, 1]], [False]]


def test_classes_of_detections_alone_are_no_categories_of_coco(tmp_path: Path) -> None:
    truth = GroundTruth.from_arrays(image=[1], label=["a"], boxes=[[1, 2, 3, 4]], ignore=[True])
    detections = Detections.from_arrays(
        image=[1, 1], label=["a", "b"], boxes=[[1, 2, 3, 4]] * 2, score=[0.5, 0.25]
    )
    detap.convert(tmp_path / "new", truth, detections, to="coco")
    written = json.loads((tmp_path / "new" / "instances.json").read_text())
    assert written["categories"] == [{"id": 1, "name": "a"}]
    assert [*written["annotations"][0]][-2:] == ["ignore", "iscrowd"]
    results = json.loads((tmp_path / "new" / "results.json").read_text())
    records = results if isinstance(results, list) else results["annotations"]
    assert [record["category_id"] for record in records] == [1, 2]


def test_last_bits_that_coco_cannot_store_are_an_info_note(tmp_path: Path) -> None:
    """From 0 to 1 and from 1e-30 to 0.3 no width and height have the product 0.31."""
    truth = GroundTruth.from_arrays(image=["a"], label=["c"], boxes=[[1e-30, 0, 0.3, 1]])
    truth = replace(truth, box_area=np.array([0.31]), area=np.array([0.31]))
    done = detap.convert(tmp_path / "out.json", truth, to="coco")
    [note] = [note for note in done.notes if note.code == "values-rounded"]
    assert (note.count, note.severity) == (1, "info")


def test_changed_areas_are_an_info_note(tmp_path: Path) -> None:
    truth = GroundTruth.from_arrays(
        image=["a"] * 3, label=["c"] * 3, boxes=[[0, 0, 3, 1], [0, 0, 1, 1], [0, 0, 1, 2]]
    )
    detections = Detections.from_arrays(
        image=["a"], label=["c"], boxes=[[0, 0, 1, 1]], score=[0.5]
    ).reindex_like(truth)
    done = detap.convert(
        tmp_path / "out",
        replace(truth, box_area=np.array([2.5, 0.5, 2])),
        replace(detections, box_area=np.array([2.0])),
        to="voc",
    )
    message = "areas change in the last bits, computed from corners"
    assert [(n.count, n.message) for n in done.notes if n.code == "values-rounded"] == [
        (2, f"objects: {message}"),
        (1, f"detections: {message}"),
    ]


def same(one: Any, other: Any, names: Sequence[str]) -> None:
    """Compare rows to the last bit; classes by name."""
    labels = [[table.classes[k] for k in table.label] for table in (one, other)]
    assert labels[0] == labels[1]
    for name in names:
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


def by_image(table: Any) -> Any:
    """Return a table with its rows image by image, as they were within each."""
    return table.select(np.argsort(table.image, kind="stable"))


# --- to COCO and back


@st.composite
def tables(draw: Any, box_format: str, *, flags: bool) -> tuple[GroundTruth, Detections]:
    """Draw tables as a reader returns them, which list every image and class."""
    images = [f"{k:03d}" for k in range(draw(st.integers(1, 4)))]
    classes = ["a b", "c", "ünï"][: draw(st.integers(1, 3))]
    n, m = draw(st.integers(1, 8)), draw(st.integers(0, 8))

    def column(of: Any, count: int) -> list[Any]:
        values: list[Any] = draw(st.lists(of, min_size=count, max_size=count))
        return values

    def boxes(count: int) -> Any:
        values = np.array(column(BOX, count)).reshape(-1, 4)
        if box_format == "xyxy":
            values[:, 2:] += values[:, :2]
        return values

    names = ("crowd", "ignore", "group_of") if flags else ("difficult",)
    some: dict[str, Any] = {name: column(st.booleans(), n) for name in names}
    truth = GroundTruth.from_arrays(
        image=column(st.sampled_from(images), n),
        label=column(st.sampled_from(classes), n),
        boxes=boxes(n),
        box_format=box_format,
        images=images,
        classes=classes,
        **some,
    )
    values = Detections.from_arrays(
        image=np.array(column(st.sampled_from(images), m), dtype=str),
        label=np.array(column(st.sampled_from(classes), m), dtype=str),
        boxes=boxes(m),
        box_format=box_format,
        score=column(st.floats(-5, 5), m),
    )
    return truth, values.reindex_like(truth)


@given(tables("xywh", flags=True))
def test_tables_written_as_coco_are_read_back_equal(
    made: tuple[GroundTruth, Detections],
) -> None:
    truth, detections = made
    with TemporaryDirectory() as parent:
        folder = Path(parent, "out")
        done = detap.convert(folder, truth, detections, to="coco")
        again = detap.read_ground_truth(folder / "instances.json")
        found_again = detap.read_detections(folder / "results.json", again)
        listed = json.loads((folder / "instances.json").read_bytes())["images"]
    assert [note for note in done.notes if note.severity == "warning"] == []
    assert again.classes == truth.classes
    assert again.images == tuple(range(1, len(truth.images) + 1))
    assert [image["file_name"] for image in listed] == [f"{name}.jpg" for name in truth.images]
    same(truth, again, COLUMNS)
    same(detections, found_again, ("image", "label", "corners", "box_area", "score"))


@given(tables("xyxy", flags=False))
def test_tables_written_as_voc_are_read_back_equal(
    made: tuple[GroundTruth, Detections],
) -> None:
    truth, detections = made
    with TemporaryDirectory() as parent:
        folder = Path(parent, "out")
        detap.convert(folder, truth, detections, to="voc")
        again = detap.read_ground_truth(folder, image_set="default")
        found_again = detap.read_detections(
            folder / "detections", again, format="voc", layout="class-files", as_is=True
        )
    assert again.images == truth.images
    same(by_image(truth), again, ("image", "corners", "box_area", "area", "difficult"))
    # Detections come class by class, as they were within each.
    by_class = detections.select(
        np.argsort([detections.classes[k] for k in detections.label], kind="stable")
    )
    same(by_class, found_again, ("image", "corners", "box_area", "score"))


SHARE = st.integers(0, 10**6).map(lambda n: f"{n / 10**6:.6f}")
LINE = st.tuples(st.integers(0, 2), SHARE, SHARE, SHARE, SHARE)


@given(
    st.lists(st.lists(LINE, max_size=4), min_size=1, max_size=3),
    st.lists(LINE, max_size=5),
    st.tuples(st.integers(1, 4000), st.integers(1, 4000)),
)
def test_tables_written_as_yolo_are_read_back_equal(
    labels: list[list[tuple[Any, ...]]], predictions: list[tuple[Any, ...]], size: tuple[int, int]
) -> None:
    """Fractions of six digits, as tools write them, are recovered as the same floats."""
    assume(any(labels))
    with TemporaryDirectory() as parent:
        folder = Path(parent, "in")
        files = {f"labels/{k}.txt": [*dict.fromkeys(rows)] for k, rows in enumerate(labels)}
        files["dt/0.txt"] = [(*row, "0.25") for row in predictions]
        texts = {
            name: "".join(" ".join(map(str, row)) + "\n" for row in rows)
            for name, rows in files.items()
        }
        write(folder, {**texts, "labels/classes.txt": "a b\nc\nd\n"})
        given_size: dict[str, Any] = {"format": "yolo", "image_size": f"{size[0]}x{size[1]}"}
        truth = detap.read_ground_truth(folder / "labels", **given_size)
        form: dict[str, Any] = {"format": "yolo", "columns": "conf-last"}
        detections = detap.read_detections(folder / "dt", truth, **form)
        out = Path(parent, "out")
        done = detap.convert(out, truth, detections, to="yolo")
        again = detap.read_ground_truth(out / "data.yaml", image_sizes=out / "sizes.csv")
        found_again = detap.read_detections(out / "predictions", again, **form)
    assert [note.code for note in done.notes] == []
    assert (again.images, again.classes) == (truth.images, truth.classes)
    for table, other in ((truth, again), (detections, found_again)):
        same(table, other, ("image", "label", "corners", "box_area"))


def test_data_that_yolo_cannot_store_is_reported(tmp_path: Path) -> None:
    truth = GroundTruth.from_arrays(
        image=["a"] * 4,
        label=["c"] * 4,
        boxes=[[0, 0, 10, 10], [0, 0, 10, 10], [-40, 0, 10, 10], [30, 5, 60, 20]],
    )
    truth = replace(truth, image_sizes=np.array([[100.0, 50.0]]))
    done = detap.convert(tmp_path / "out", truth, to="yolo")
    assert [(note.code, note.count, note.message) for note in done.notes] == [
        ("data-lost", 1, "objects extend beyond the image; YOLO readers reject them"),
        ("data-lost", 1, "duplicate objects; YOLO readers ignore them"),
    ]


COORDINATE = st.integers(-200, 1200).map(lambda n: n / 4)


@given(st.lists(st.lists(COORDINATE, min_size=8, max_size=8), min_size=1, max_size=4), st.data())
def test_quadrilaterals_written_as_yolo_are_read_back_equal(
    polygons: list[list[float]], data: st.DataObject
) -> None:
    score = data.draw(st.lists(st.floats(0, 1), min_size=len(polygons), max_size=len(polygons)))
    names: dict[str, Any] = {"image": ["a"] * len(polygons), "label": ["c"] * len(polygons)}
    truth = GroundTruth.from_arrays(**names, polygons=polygons)
    truth = replace(truth, image_sizes=np.array([[640.0, 480.0]]))
    detections = Detections.from_arrays(**names, polygons=polygons, score=score)
    with TemporaryDirectory() as parent:
        out = Path(parent, "out")
        done = detap.convert(out, truth, detections.reindex_like(truth), to="yolo")
        reading: dict[str, Any] = {"task": "obb", "format": "yolo"}
        sizes = out / "sizes.csv"
        again = detap.read_ground_truth(out / "data.yaml", image_sizes=sizes, **reading)
        found_again = detap.read_detections(out / "predictions", again, **reading)
    assert {note.code for note in done.notes} <= {"data-lost", "values-rounded"}
    if any("duplicate" in note.message for note in done.notes):
        return
    for table, other in ((truth, again), (detections, found_again)):
        assert table.polygons is not None
        corners = table.polygons if other.polygons is None else other.polygons  # all upright
        assert corners == pytest.approx(table.polygons, abs=1e-9)


def test_quadrilaterals_as_yolo_by_hand(tmp_path: Path) -> None:
    names: dict[str, Any] = {"image": ["a"], "label": ["c"]}
    truth = GroundTruth.from_arrays(**names, polygons=[[50, 20, 80, 50, 50, 80, 20, 50]])
    truth = replace(truth, image_sizes=np.array([[100.0, 200.0]]))
    boxes = Detections.from_arrays(**names, boxes=[[20, 20, 80, 80]], score=[0.5])
    done = detap.convert(tmp_path / "out", truth, boxes.reindex_like(truth), to="yolo")
    assert done.notes == ()
    text = (tmp_path / "out/labels/val/a.txt").read_text()
    assert text == "0 0.5 0.1 0.8 0.25 0.5 0.4 0.2 0.25\n"
    text = (tmp_path / "out/predictions/labels/a.txt").read_text()
    assert text == "0 0.2 0.1 0.8 0.1 0.8 0.4 0.2 0.4 0.5\n"
    done = detap.convert(tmp_path / "coco", truth, to="coco")
    assert "quadrilaterals are written to coco as bounding boxes" in done.notes[-1].message


def test_keypoints_as_yolo_by_hand(tmp_path: Path) -> None:
    """Detections have no confidence of keypoints in tables: 1."""
    names: dict[str, Any] = {"image": ["a"], "label": ["c"], "boxes": [[20, 20, 80, 80]]}
    truth = GroundTruth.from_arrays(**names, keypoints=[[[50, 20, 2], [7, 7, 0]]])
    truth = replace(truth, image_sizes=np.array([[100.0, 200.0]]), sigmas=(0.1, 0.2))
    posed = Detections.from_arrays(**names, keypoints=[[[50, 40], [10, 20]]], score=[0.5])
    posed = posed.reindex_like(truth)
    assert detap.convert(tmp_path / "out", truth, posed, to="yolo").notes == ()
    yaml = (tmp_path / "out/data.yaml").read_text()
    assert "kpt_shape: [2, 3]\nkpt_oks_sigmas: [0.1, 0.2]\n" in yaml
    text = (tmp_path / "out/labels/val/a.txt").read_text()
    assert text == "0 0.5 0.25 0.6 0.3 0.5 0.1 2 0 0 0\n"
    text = (tmp_path / "out/predictions/labels/a.txt").read_text()
    assert text == "0 0.5 0.25 0.6 0.3 0.5 0.2 1 0.1 0.1 1 0.5\n"
    again = detap.read_ground_truth(
        tmp_path / "out/data.yaml", image_sizes=tmp_path / "out/sizes.csv"
    )
    assert again.sigmas == (0.1, 0.2)
    assert np.asarray(again.keypoints)[0, 0].tolist() == [50, 20, 2]
    boxes = replace(posed, keypoints=None)
    (note,) = detap.convert(tmp_path / "half", truth, boxes, to="yolo").notes[:1]
    assert "keypoints of one side only" in note.message
    (note,) = detap.convert(tmp_path / "voc", truth, to="voc").notes[-1:]
    assert "keypoints are not written to voc" in note.message


# --- to labelling tools and back

FILES = {
    "tfcsv": "{}.csv",
    "createml": "{}.json",
    "datumaro": "{}/default.json",
    "supervisely": "{}",
    "via": "via_region_data.json",
}
"""The path of ground truth or detections in the output."""


def converted(
    target: str, made: tuple[GroundTruth, Detections], **options: Any
) -> tuple[GroundTruth, Detections]:
    with TemporaryDirectory() as parent:
        folder = Path(parent, "out")
        detap.convert(folder, *made, to=target)
        again = detap.read_ground_truth(folder / FILES[target].format("annotations"), **options)
        path = folder / FILES[target].format("detections")
        rows = detap.read_detections(path, again, format=target, as_is=True)
    assert again.images == made[0].images
    return again, rows


@pytest.mark.parametrize(
    ("target", "box_format", "flags"),
    [
        ("datumaro", "xywh", ("crowd", "ignore")),
        ("supervisely", "xyxy", ("difficult",)),
        ("tfcsv", "xyxy", ()),
    ],
)
@given(data=st.data())
def test_tables_written_for_a_tool_are_read_back_equal(
    target: str, box_format: str, flags: tuple[str, ...], data: st.DataObject
) -> None:
    truth, detections = data.draw(tables(box_format, flags=target == "datumaro"))
    truth = replace(truth, group_of=np.zeros(len(truth), np.bool_))
    keys = [*zip(truth.image, truth.label, map(tuple, truth.corners.tolist()), strict=True)]
    assume(target != "tfcsv" or len(set(keys)) == len(keys))  # its readers drop repeated rows
    names = {"crowd": "is_crowd", "ignore": "ignore=ignore", "difficult": "difficult"}
    options = {"attribute_flags": ",".join(names[flag] for flag in flags)} if flags else {}
    again, rows = converted(target, (truth, detections), **options)
    assert again.classes == truth.classes or target == "tfcsv"  # which lists none
    same(by_image(truth), by_image(again), ("image", "corners", "box_area", "area", *flags))
    same(by_image(detections), by_image(rows), ("image", "corners", "box_area", "score"))


@pytest.mark.parametrize("target", ["datumaro", "supervisely", "tfcsv"])
def test_sizes_of_images_are_read_back_equal(target: str, tmp_path: Path) -> None:
    truth = GroundTruth.from_arrays(image=["a"], label=["c"], boxes=[[1, 2, 3, 4]])
    truth = replace(truth, image_sizes=np.array([[60.0, 50.0]]))
    detap.convert(tmp_path / "out", truth, to=target)
    again = detap.read_ground_truth(tmp_path / "out" / FILES[target].format("annotations"))
    assert np.asarray(again.image_sizes).tolist() == [[60, 50]]


@given(tables("xywh", flags=False))
def test_tables_written_as_createml_are_read_back_nearly_equal(
    made: tuple[GroundTruth, Detections],
) -> None:
    """The corner is the center less half the size: off by an ulp of the far corner."""
    again, rows = converted("createml", made)
    same(by_image(made[0]), by_image(again), ("image", "box_area"))
    same(by_image(made[1]), by_image(rows), ("image", "box_area", "score"))
    for one, other in zip(made, (again, rows), strict=True):
        corners = one.corners[np.argsort(one.image, kind="stable")]
        assert np.abs(other.corners - corners).max(initial=0) <= 1e-11


@given(tables("xywh", flags=False))
def test_tables_written_as_via_are_read_back_equal(made: tuple[GroundTruth, Detections]) -> None:
    with TemporaryDirectory() as parent:
        folder = Path(parent, "out")
        detap.convert(folder, made[0], to="via")
        again = detap.read_ground_truth(folder / FILES["via"])
        with pytest.raises(InputError, match="VIA cannot hold scores; convert the ground truth"):
            detap.convert(Path(parent, "other"), *made, to="via")
    same(by_image(made[0]), by_image(again), ("image", "corners", "box_area", "area"))


def test_data_that_labelling_tools_cannot_hold_is_reported(tmp_path: Path) -> None:
    truth = GroundTruth.from_arrays(
        image=["a", "a"],
        label=["c", "c"],
        boxes=[[0, 0, 9, 9], [0, 0, 9, 9]],
        crowd=[True, False],
        group_of=[False, True],
        classes=["c", "d"],
    )
    reported = {
        target: [note.message for note in detap.convert(tmp_path / target, truth, to=target).notes]
        for target in FILES
    }
    group, crowd = "flag group_of not supported by {}", "flag crowd not supported by {}"
    unused = "classes without objects not supported by {}"
    titles = {"tfcsv": "TensorFlow CSV", "createml": "CreateML", "via": "VIA"}
    for target, title in titles.items():
        expected = [text.format(title) for text in (crowd, group, unused)]
        repeated = ["duplicate objects; readers drop them"] if target == "tfcsv" else []
        assert reported[target] == [*expected, *repeated]
    assert reported["datumaro"] == [group.format("Datumaro")]
    assert reported["supervisely"] == [group.format("Supervisely")]


# --- by hand


def test_a_voc_tree_as_coco_by_hand(tmp_path: Path) -> None:
    annotation = xml(item("dog", (10, 20, 30.5, 40)), item("cat", (1, 2, 3, 4), "1"))
    named = annotation.replace("<annotation>", "<annotation><filename>other.PNG</filename>")
    source = tree(tmp_path / "voc", {"a.b": named, "empty": xml()})
    truth = detap.read_ground_truth(source)
    done = detap.convert(tmp_path / "out.json", truth, to="coco")
    assert done.files == ("instances.json",)
    rows = [(1, 2, [10, 20, 20.5, 20]), (1, 1, [1.0, 2, 2, 2])]
    names, files = {1: "cat", 2: "dog"}, {1: "a.b.PNG", 2: "empty.jpg"}
    expected = truth_of(rows, names, files, size=(500, 375))
    assert json.loads((tmp_path / "out.json").read_text()) == expected
    assert [(note.code, note.count, note.severity) for note in done.notes] == [
        ("numbered-images", 2, "info"),
        ("numbered-classes", 2, "info"),
        ("data-lost", 1, "warning"),
    ]
    assert done.notes[-1].message == "flag difficult not supported by COCO"


COCO = truth_of(
    [(7, 5, [10, 20, 30, 40]), (3, 2, [0, 0, 64, 48])],
    {2: "hot dog", 5: "cat", 9: "no"},
    {7: "val/x 1.jpg", 3: "val\\y.png"},
)
COCO["annotations"][0] |= {"id": 0, "area": 700.5, "iscrowd": 1}
RESULTS = results_of([(3, 2, [0.5, 0, 64, 48], 0.25), (7, 5, [10, 20, 30, 40], 1)])


@pytest.fixture
def coco(tmp_path: Path) -> tuple[GroundTruth, Detections]:
    return read(saved(tmp_path, COCO, RESULTS))


def test_coco_to_coco_keeps_ids_and_file_names(
    coco: tuple[GroundTruth, Detections], tmp_path: Path
) -> None:
    done = detap.convert(tmp_path / "out", *coco, to="coco")
    written = json.loads((tmp_path / "out" / "instances.json").read_text())
    assert [(i["id"], i["file_name"]) for i in written["images"]] == [
        (3, "val\\y.png"),
        (7, "val/x 1.jpg"),
    ]
    assert written["categories"] == COCO["categories"]
    assert [a["id"] for a in written["annotations"]] == [0, 2]
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == RESULTS
    assert done.notes == ()


def test_coco_to_voc_by_hand_with_blanks_in_image_names(
    coco: tuple[GroundTruth, Detections], tmp_path: Path
) -> None:
    """The class has a blank, so that a file holds a class; an image has one too: refused."""
    with pytest.raises(detap.InputError, match="class 'hot dog' and image names contain blanks"):
        detap.convert(tmp_path / "out", *coco, to="voc")
    assert not (tmp_path / "out").exists()
    done = detap.convert(tmp_path / "out", coco[0], to="voc")
    assert sorted(done.files) == [
        "Annotations/x 1.xml",
        "Annotations/y.xml",
        "ImageSets/Main/default.txt",
    ]
    assert (tmp_path / "out/ImageSets/Main/default.txt").read_text() == "y\nx 1\n"
    assert (tmp_path / "out/Annotations/y.xml").read_text() == (
        "<annotation>\n<filename>y.png</filename>\n"
        "<size><width>640</width><height>480</height><depth>3</depth></size>\n"
        "<object>\n<name>hot dog</name>\n<pose>Unspecified</pose>\n<truncated>0</truncated>\n"
        "<difficult>0</difficult>\n"
        "<bndbox><xmin>0</xmin><ymin>0</ymin><xmax>64</xmax><ymax>48</ymax></bndbox>\n</object>\n"
        "</annotation>\n"
    )
    assert [(note.code, note.count) for note in done.notes] == [
        ("data-lost", 1),  # a crowd
        ("data-lost", 1),  # an area of 700.5 in a box of 1200
        ("data-lost", 1),  # the class without objects
        ("classes-sorted", 2),
    ]


def test_detections_are_written_per_image_without_blanks_in_image_names(
    coco: tuple[GroundTruth, Detections], tmp_path: Path
) -> None:
    detap.convert(tmp_path / "out", *coco, to="voc", file_names={3: "y.png", 7: "x.jpg"})
    folder = tmp_path / "out" / "detections"
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        "comp4_det_default_hot dog.txt": "y 0.25 0.5 0 64.5 48\n",
        "comp4_det_default_cat.txt": "x 1 10 20 40 60\n",
        "comp4_det_default_no.txt": "",
    }


def test_coco_to_yolo_by_hand(coco: tuple[GroundTruth, Detections], tmp_path: Path) -> None:
    done = detap.convert(tmp_path / "out", *coco, to="yolo")
    files = {name: (tmp_path / "out" / name).read_text() for name in done.files}
    assert files == {
        "data.yaml": "path: .\nval: val.txt\nnc: 3\n"
        'names:\n  0: "hot dog"\n  1: "cat"\n  2: "no"\n',
        "val.txt": "./images/val/y.png\n./images/val/x 1.jpg\n",
        "sizes.csv": "image,width,height\ny,640,480\nx 1,640,480\n",
        # 64 and 48 of 640 and 480; 25 / 640, 40 / 480, 30 / 640, 40 / 480
        "labels/val/y.txt": "0 0.05 0.05 0.1 0.1\n",
        "labels/val/x 1.txt": f"1 0.0390625 {40 / 480!r} 0.046875 {40 / 480!r}\n",
        "predictions/labels/y.txt": "0 0.05078125 0.05 0.1 0.1 0.25\n",
        "predictions/labels/x 1.txt": f"1 0.0390625 {40 / 480!r} 0.046875 {40 / 480!r} 1\n",
    }


def test_yolo_fractions_are_short_decimals(tmp_path: Path) -> None:
    """Those of the files that were read, although division may give others: 0.15 * 641 / 641."""
    lines = "0 0.202947 0.250461 0.15 0.12345\n1 0.5 0.297975 0.001 0.012345\n"
    write(tmp_path / "in", {"a.txt": lines, "classes.txt": "a\nb\n"})
    truth = detap.read_ground_truth(tmp_path / "in", format="yolo", image_size="641x479")
    detap.convert(tmp_path / "out", truth, to="yolo")
    assert (tmp_path / "out" / "labels" / "val" / "a.txt").read_text() == lines


@pytest.mark.parametrize("target", ["yolo", "labelstudio"])
def test_fractions_need_the_sizes_of_images_with_boxes(target: str, tmp_path: Path) -> None:
    truth = GroundTruth.from_arrays(image=["a"], label=["c"], boxes=[[1, 2, 3, 4]])
    assert str(raised(detap.InputError, detap.convert, tmp_path / "out", truth, to=target)) == (
        "the input: size of image 'a' is unknown, required for normalized boxes; use ground truth "
        "with image sizes"
    )


@pytest.mark.parametrize("name", ["sub/a", ".hidden", "a\nb", " a", "x" * 201, "\udce9"])
def test_names_invalid_as_file_names_are_refused(name: str, tmp_path: Path) -> None:
    truth = GroundTruth.from_arrays(image=[name], label=["c"], boxes=[[1, 2, 3, 4]])
    with pytest.raises(detap.InputError, match=r"image .* (cannot|is not) .*; rename it"):
        detap.convert(tmp_path / "out", truth, to="voc")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_and_a_failure_leaves_no_files(
    coco: tuple[GroundTruth, Detections], tmp_path: Path
) -> None:
    target = tmp_path / "out"
    target.mkdir()
    with pytest.raises(detap.DetapError, match="out: already exists; use another name, or remove"):
        detap.convert(target, *coco, to="coco")
    assert list(target.iterdir()) == []
    with pytest.raises(detap.DetapError, match="is not a folder; create it first"):
        detap.convert(tmp_path / "no" / "out", *coco, to="coco")
    with pytest.raises(detap.UsageError, match="'cocoa' is not writable; did you mean coco"):
        detap.convert(tmp_path / "new", *coco, to="cocoa")
    with pytest.raises(detap.UsageError, match="'x' is not writable; use one of coco, voc, yolo"):
        detap.convert(tmp_path / "new", *coco, to="x")
    with pytest.raises(detap.DetapError, match=r"^output: invalid output path$"):
        detap.convert("", *coco, to="coco")
    with pytest.raises(
        detap.UsageError, match="nothing to convert: pass ground_truth, detections or both"
    ):
        detap.convert(tmp_path / "new", to="coco")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dt.json", "gt.json", "out"]
