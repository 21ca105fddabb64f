"""Exports of annotation tools as delivered, with the numbers of pycocotools on their boxes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import detap
from detap.checks.boxes import failed_box_checks
from detap.errors import InputError
from detap.formats.detection import detect_format
from tests.cli.conftest import Run
from tests.coco import truth_of
from tests.formats.exports import write
from tests.formats.text_files import written
from tests.formats.voc_files import item, xml

VAL, TRAIN, LABEL_STUDIO, ALL = "val", "train", "label studio", "all"
"""Images of a layout."""


class Layout(NamedTuple):
    """A layout: its path, key in expected_layouts.json, images, format and options."""

    path: str
    expected: str
    images: str
    format: str
    options: Mapping[str, str] = {}
    tolerance: float = 1e-9

    @property
    def sized(self) -> bool:
        return self.format == "yolo"


IN_COCO, CVAT_COCO = "the 20 images, as COCO", "cvat COCO 1.0, val"
CVAT_YOLO, CVAT_ULTRALYTICS = (
    "cvat YOLO 1.1, val only",
    "cvat Ultralytics YOLO Detection, val only",
)
CVAT_YOLO_BOTH = "cvat YOLO 1.1 (train and val; the rotated box is missing)"
NEWEST = (
    "Label Studio JSON: newest annotation of each task, cancelled left out, rotated box as its "
    "upright bounds"
)
STUDIO_YOLO = (
    "Label Studio YOLO as written (last annotator wins, rotation dropped, cancelled task has no "
    "file)"
)
STUDIO_COCO = "Label Studio COCO as written (two annotators: boxes twice; rotation in percent)"
CSV = "TensorFlow CSV (only images with boxes are in it)"
CREATEML, VIA = "CreateML JSON (x and y are the centre)", "VIA JSON, project and CSV"
DATUMARO = "datumaro JSON, val"
SPLIT, BOUNDS = {"split": "val"}, {"shapes": "bbox"}
LAYOUTS = [
    Layout("cvat-exports/yolo", CVAT_YOLO, VAL, "yolo", SPLIT, 1e-6),
    Layout("cvat-exports/yolo/obj.data", CVAT_YOLO, VAL, "yolo", SPLIT, 1e-6),
    Layout("cvat-exports/yolo/obj_*_data", CVAT_YOLO_BOTH, ALL, "yolo", {}, 1e-6),
    Layout("cvat-exports/yolov8_detection", CVAT_ULTRALYTICS, VAL, "yolo", SPLIT, 1e-6),
    Layout("cvat-exports/yolov8_oriented_boxes", CVAT_ULTRALYTICS, VAL, "yolo", SPLIT, 1e-6),
    Layout("cvat-exports/coco_instances", CVAT_COCO, VAL, "coco", SPLIT),
    Layout("cvat-exports/voc_detection", "cvat VOC, corners as they are", ALL, "voc"),
    Layout("cvat-exports/voc_detection", CVAT_COCO, VAL, "voc", {"image_set": "val"}),
    Layout("cvat-exports/cvat/val.xml", CVAT_COCO, VAL, "cvat"),
    Layout("cvat-exports/cvat", CVAT_COCO, VAL, "cvat", SPLIT),
    Layout("label-studio/project-1.json", NEWEST, LABEL_STUDIO, "labelstudio", BOUNDS),
    Layout("label-studio/JSON_MIN/result.json", NEWEST, LABEL_STUDIO, "labelstudio", BOUNDS),
    Layout("label-studio/COCO", STUDIO_COCO, LABEL_STUDIO, "coco"),
    Layout("label-studio/YOLO", STUDIO_YOLO, LABEL_STUDIO, "yolo"),
    Layout("label-studio/VOC", "Label Studio VOC, corners as they are", LABEL_STUDIO, "voc"),
    Layout("supervision/coco.json", IN_COCO, ALL, "coco"),
    Layout("supervision/yolo", IN_COCO, ALL, "yolo", {}, 1e-6),
    Layout("supervision/voc", "supervision VOC, corners as they are", ALL, "voc"),
    Layout("other-layouts/roboflow-coco", IN_COCO, ALL, "coco"),
    Layout("other-layouts/roboflow-coco", IN_COCO, ALL, "coco", SPLIT),
    Layout("other-layouts/roboflow-coco/valid", IN_COCO, ALL, "coco"),
    Layout("other-layouts/tensorflow-csv", CSV, ALL, "tfcsv"),
    Layout("other-layouts/tensorflow-csv/_annotations.csv", CSV, ALL, "tfcsv"),
    Layout("other-layouts/createml", CREATEML, ALL, "createml"),
    Layout("other-layouts/createml/_annotations.createml.json", CREATEML, ALL, "createml"),
    Layout("other-layouts/via/via_region_data.json", VIA, ALL, "via"),
    Layout("other-layouts/via/via_project.json", VIA, ALL, "via"),
    Layout("other-layouts/via/via_region_data.csv", VIA, ALL, "via"),
    Layout("other-layouts/supervisely", "Supervisely", ALL, "supervisely"),
    Layout("other-layouts/supervisely/ds0", "Supervisely", ALL, "supervisely"),
    Layout("cvat-exports/datumaro/annotations/val.json", DATUMARO, VAL, "datumaro"),
    Layout("cvat-exports/datumaro", DATUMARO, VAL, "datumaro", SPLIT),
]


class Data:
    """The layouts, and results of their images that name images and classes."""

    def __init__(self, folder: Path, tmp_path: Path) -> None:
        self.folder = folder
        self.target = tmp_path
        self.records = json.loads((folder / "detections_20.json").read_text("utf-8"))
        self.expected = json.loads((folder / "expected_layouts.json").read_text("utf-8"))
        coco = json.loads((folder / "supervision/coco.json").read_text("utf-8"))
        self.sizes = {
            image["file_name"].removesuffix(".jpg"): (image["width"], image["height"])
            for image in coco["images"]
        }

    def images(self, which: str) -> set[str]:
        sets = self.folder / "cvat-exports/voc_detection/ImageSets/Main"
        if which in (VAL, TRAIN):
            return set((sets / f"{which}.txt").read_text("utf-8").split())
        if which == ALL:
            return set(self.sizes)
        files = (self.folder / "label-studio/YOLO/labels").iterdir()
        return {file.stem.partition("-")[2] for file in files}

    def results(self, which: str) -> Path:
        """Return COCO results of some images, with their images and categories."""
        images = self.images(which)
        records = [record for record in self.records if record["image"] in images]
        files = {r["image_id"]: f"{r['image']}.jpg" for r in records}
        categories = {r["category_id"]: r["category"] for r in self.records}
        keys = ("image_id", "category_id", "bbox", "score")
        document = truth_of([], categories, files, size=None)
        document["annotations"] = [{key: r[key] for key in keys} for r in records]
        return write(self.target / "results.json", document)

    def image_sizes(self, prefixed: bool) -> Path:
        """Return a table of image sizes; Label Studio's names have digits before them."""
        files = (self.folder / "label-studio/YOLO/labels").iterdir()
        names = {file.stem.partition("-")[2]: file.stem for file in files} if prefixed else {}
        path = self.target / "sizes.csv"
        lines = (f"{names.get(name, name)},{w},{h}\n" for name, (w, h) in self.sizes.items())
        path.write_text("image,width,height\n" + "".join(lines), "utf-8")
        return path


@pytest.fixture
def data(formats2: Path, tmp_path: Path) -> Data:
    return Data(formats2, tmp_path)


@pytest.mark.parametrize("case", LAYOUTS, ids=lambda case: f"{case.path} {case.options}")
def test_a_layout_has_its_number(data: Data, command: Run, case: Layout) -> None:
    options: dict[str, Any] = {**case.options}
    if case.sized:
        options["image_sizes"] = data.image_sizes(case.images == LABEL_STUDIO)
    paths = sorted(data.folder.glob(case.path))
    assert detect_format(paths[0]).name == case.format
    truth = detap.read_ground_truth(paths, **options)
    expected = data.expected[case.expected]
    assert truth.format == case.format
    assert (len(truth.images), len(truth)) == (expected["images"], expected["boxes"])
    results = data.results(case.images)
    detections = detap.read_detections(results, truth)
    assert failed_box_checks(truth, detections, ("gt", "dt")) == []
    arguments = ["eval", *(part for path in paths for part in ("--gt", str(path)))]
    for option, value in options.items():
        arguments += [f"--{option.replace('_', '-')}", str(value)]
    arguments += ["--dt", str(results), "--protocol", "coco", "--output-format", "json"]
    report = command(*arguments).report()
    summary = detap.evaluate(truth, detections, "coco").summary
    for metric in ("AP", "AP50", "AP75"):
        close = pytest.approx(expected[metric], abs=case.tolerance)
        assert report["summary"][metric] == close
        assert summary[metric] == close


def refused(path: Path, **options: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        detap.read_ground_truth(path, **options)
    return [str(problem).replace(f"{path}", "") for problem in caught.value.problems]


_OLD = (
    'is XML of LabelMe\'s older tool ("LabelMe 3.0" in CVAT), not VOC ({} times, in several '
    "files); export COCO, Pascal VOC or CVAT for images"
)
REFUSED = {
    "cvat-exports/label_me": _OLD.format(20),
    "cvat-exports/label_me/train": _OLD.format(10),
    "label-studio/CSV/result.csv": "is Label Studio's CSV, which is not read; export JSON",
    "supervision/data.yaml": "lists classes but no images: it has no `train:`, `val:` or `test:`; "
    "use the folder of the labels, and this file as --class-names {}",
}


def test_a_list_of_classes_is_used_as_the_hint_says(data: Data) -> None:
    truth = detap.read_ground_truth(
        data.folder / "supervision/yolo",
        class_names=data.folder / "supervision/data.yaml",
        image_sizes=data.image_sizes(prefixed=False),
    )
    assert len(truth) == data.expected["the 20 images, as COCO"]["boxes"]


@pytest.mark.parametrize("path", REFUSED)
def test_other_exports_are_refused_by_name(data: Data, path: str) -> None:
    file = data.folder / path
    with pytest.raises(InputError) as caught:
        detap.read_ground_truth(file)
    assert str(caught.value.problems[0]).endswith(REFUSED[path].format(file))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("train.tfrecord-00000-of-00002", "TFRecord is not supported"),
        ("train.record", "TFRecord is not supported"),
        ("labels.cache", "a cache of Ultralytics is not supported"),
    ],
)
def test_binary_formats_are_refused_by_name(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).write_bytes(b"\0\1\2")
    with pytest.raises(InputError, match=said):
        detap.read_ground_truth(tmp_path / name)


# --- made by hand


def roboflow_name(stem: str, number: int = 0) -> str:
    return f"{stem}_jpg.rf.{number:032x}"


def text_detections(folder: Path, *images: str) -> Path:
    return written(folder, {f"{image}.txt": "dog 0.9 1 2 11 22" for image in images})


def voc_folder(folder: Path, *images: str) -> Path:
    annotation = xml(item("dog", (1, 2, 11, 22)))
    names = ({f"{image}.xml": annotation, f"{image}.jpg": ""} for image in images)
    return written(folder, {path: text for files in names for path, text in files.items()})


def test_voc_of_roboflow(tmp_path: Path) -> None:
    """Annotations next to images, a folder for each subset, names with a hash."""
    root = tmp_path / "root"
    voc_folder(root / "train", roboflow_name("c"))
    voc_folder(root / "valid", roboflow_name("a"), roboflow_name("b", 1))
    (root / "README.roboflow.txt").write_text("exported\n")
    write(root / "test/axml", "")  # which is no annotation
    assert detect_format(root).name == "voc"
    assert refused(root) == [
        ": several subsets: 'train', 'valid'; choose one with --split (split=)"
    ]
    truth = detap.read_ground_truth(root, split="val")
    assert truth.images == (roboflow_name("a"), roboflow_name("b", 1))
    [note] = [note for note in truth.notes if note.code == "files-skipped"]
    names = f"'{roboflow_name('a')}.jpg', '{roboflow_name('b', 1)}.jpg'"
    assert (note.message, note.count) == (f"files skipped ({names}): not annotations", 2)
    detections = detap.read_detections(text_detections(tmp_path / "dt", "a", "b"), truth)
    assert detections.images == truth.images
    assert detections.image.tolist() == [0, 1]
    assert "exported-names-matched" in {note.code for note in detections.notes}
    exported = detap.read_detections(text_detections(tmp_path / "same", *truth.images), truth)
    assert "exported-names-matched" not in {note.code for note in exported.notes}
    assert detap.evaluate(truth, detections).summary["mAP"] == 1.0


def test_augmented_versions_are_refused(tmp_path: Path) -> None:
    names = [roboflow_name("a", 0), roboflow_name("a", 1), roboflow_name("b", 2)]
    truth = detap.read_ground_truth(voc_folder(tmp_path / "gt", *names))
    with pytest.raises(InputError) as caught:
        detap.read_detections(text_detections(tmp_path / "dt", "a", "b"), truth)
    (problem,) = caught.value.problems
    assert problem.message == "the export has 2 versions of image 'a'"
    assert problem.hint == "predict on the exported images, or export without augmentation"
    # The hint, followed.
    assert len(detap.read_detections(text_detections(tmp_path / "exported", *names), truth)) == 3


def test_images_of_another_data_set_stay_an_error(tmp_path: Path) -> None:
    truth = detap.read_ground_truth(voc_folder(tmp_path / "gt", roboflow_name("a")))
    with pytest.raises(InputError, match=r"no image in common .*; use results for the same images"):
        detap.read_detections(text_detections(tmp_path / "dt", "x"), truth)


def test_nested_annotations_of_voc(tmp_path: Path) -> None:
    """Equal stems keep their folder; image sets name folders."""
    voc_folder(tmp_path / "Annotations", "top")
    voc_folder(tmp_path / "Annotations/day/one", "a", "b")
    voc_folder(tmp_path / "Annotations/night", "a")
    sets = tmp_path / "ImageSets/Main"
    sets.mkdir(parents=True)
    (sets / "some.txt").write_text("day/one/a\nday/one/b\n")
    truth = detap.read_ground_truth(tmp_path)
    assert truth.images == ("b", "day/one/a", "night/a", "top")
    assert detap.read_ground_truth(tmp_path / "Annotations").images == truth.images
    some = detap.read_ground_truth(tmp_path, image_set="some")
    assert some.images == ("day/one/a", "b")
    detections = detap.read_detections(text_detections(tmp_path / "dt", "b", "top"), truth)
    assert detections.image.tolist() == [0, 3]
    pictures = tmp_path / "JPEGImages/day/one"
    pictures.mkdir(parents=True)
    folders, names = detap.formats.catalogue.FORMATS["voc"].image_files(truth)
    assert str(tmp_path / "Annotations/../JPEGImages") not in {folder.path for folder in folders}
    assert str(tmp_path / "JPEGImages") in {folder.path for folder in folders}
    assert names == {"day/one/a": "day/one/a", "b": "day/one/b", "night/a": "night/a"}


def test_nested_labelme_files_of_one_name(tmp_path: Path) -> None:
    shape = {"label": "dog", "shape_type": "rectangle", "points": [[1, 2], [11, 22]]}
    content = {"shapes": [shape], "imagePath": "../../images/a.jpg", "imageData": None}
    for folder in ("day/cam", "night/cam"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.json").write_text(json.dumps(content))
    (tmp_path / "notes.txt").write_text("")
    assert detect_format(tmp_path).name == "labelme"
    truth = detap.read_ground_truth(tmp_path)
    assert truth.images == ("day/cam/a", "night/cam/a")
    labelme = detap.formats.catalogue.FORMATS["labelme"]
    folders, names = labelme.image_files(truth)
    assert dict(names) == {"day/cam/a": "images/a.jpg", "night/cam/a": "images/a.jpg"}
    assert folders[0].path == str(tmp_path)
    assert labelme.image_attribute(truth, "imagePath") == dict.fromkeys(
        truth.images, "../../images/a.jpg"
    )
    (tmp_path / "day/cam/a.JSON").write_text(json.dumps(content))
    assert refused(tmp_path) == [
        ": 'day/cam/a.json' and 'day/cam/a.JSON' belong to the same image; keep one of them"
    ]


# --- COCO


def instances(**more: Any) -> dict[str, Any]:
    return {
        "images": [{"id": 0, "file_name": "a.jpg", "width": 100, "height": 80}],
        "categories": [
            {"id": 0, "name": "project", "supercategory": "none"},
            {"id": 1, "name": "dog", "supercategory": "project"},
            {"id": 2, "name": "cat", "supercategory": "project"},
        ],
        "annotations": [
            {"id": k, "image_id": 0, "category_id": 1, "bbox": [10, 20, 40, 20], "area": 800}
            for k in (1, 2)
        ],
        **more,
    }


def test_the_parent_of_all_categories_is_no_class(tmp_path: Path) -> None:
    truth = detap.read_ground_truth(write(tmp_path / "gt.json", instances()))
    assert truth.classes == ("dog", "cat")
    assert truth.class_ids == (1, 2)
    assert truth.label.tolist() == [0, 0]
    [note] = [note for note in truth.notes if note.code == "parent-category"]
    assert note.message == "category 0, 'project', is the parent of all others; left out"


@pytest.mark.parametrize(
    "change",
    [
        {"annotations": [{**instances()["annotations"][0], "category_id": 0}]},
        {"categories": [{"id": 0, "name": "dog"}, {"id": 1, "name": "cat"}]},
        {"categories": [*instances()["categories"], {"id": 3, "name": "x", "supercategory": "y"}]},
        {"categories": [{"id": k, "name": str(k), "supercategory": "0"} for k in (0,)]},
        {"categories": [{"id": k, "name": str(k), "supercategory": ["0"]} for k in (0, 1)]},
        {"categories": [{"id": k, "supercategory": None} for k in (0, 0, 1)]},
    ],
    ids=["used", "no supercategory", "of some", "alone", "a list", "repeated"],
)
def test_other_categories_0_are_classes(tmp_path: Path, change: dict[str, Any]) -> None:
    document = instances(**change)
    if len(document["categories"]) == 1:
        document["annotations"][0]["category_id"] = document["annotations"][1]["category_id"] = 0
    truth = detap.read_ground_truth(write(tmp_path / "gt.json", document))
    assert truth.class_ids[0] == 0


@pytest.mark.parametrize("escaped", [False, True], ids=["scanned", "fallback"])
def test_rotation_turns_about_the_center(tmp_path: Path, escaped: bool) -> None:
    """A box of 40 x 20 at (10, 20), rotated by 90 degrees: 20 x 40 about (30, 30)."""
    document = instances()
    document["annotations"][1]["attributes"] = {"rotation": 90.0}
    document["annotations"][0]["attributes"] = {"rotation": 0.0, "occluded": False}
    text = json.dumps(document)
    if escaped:
        text = text.replace('"image_id"', '"image\\u005fid"')
    path = tmp_path / "gt.json"
    path.write_text(text, "utf-8")
    assert refused(path) == [
        ": annotations[1]: boxes are rotated (attributes.rotation 90); 1 in all; pass "
        "shapes='bbox' (--shapes bbox) to read the bounding boxes"
    ]
    truth = detap.read_ground_truth(path, shapes="bbox")
    assert truth.corners.tolist() == [
        pytest.approx([10, 20, 50, 40]),
        pytest.approx([20, 10, 40, 50]),
    ]


def test_a_rotated_box_may_be_too_large(tmp_path: Path) -> None:
    document = instances()
    document["annotations"][1] |= {"bbox": [0, 0, 1e154, 1e154], "area": 1}
    document["annotations"][1]["attributes"] = {"rotation": 45}
    path = write(tmp_path / "gt.json", document)
    (said,) = refused(path, shapes="bbox", as_is=True)
    assert said == ": annotations[1]: the area of the bounding box overflows; correct the box"


@pytest.mark.parametrize(("degrees", "count"), [(90.0, None), (450.0, 1)])
def test_a_rotation_beyond_a_turn_is_read_with_a_note(
    tmp_path: Path, degrees: float, count: int | None
) -> None:
    document = instances()
    document["annotations"][1]["attributes"] = {"rotation": degrees}
    truth = detap.read_ground_truth(write(tmp_path / "gt.json", document), shapes="bbox")
    assert truth.corners[1].tolist() == pytest.approx([20, 10, 40, 50])
    assert {note.code: note.count for note in truth.notes}.get("angles-beyond-a-turn") == count


@pytest.mark.parametrize("rotation", ["30", None, True, 360, 0, 10**350, [30], {"a": 1}])
def test_other_attributes_are_no_rotation(tmp_path: Path, rotation: object) -> None:
    document = instances()
    document["annotations"][0]["attributes"] = {"rotation": rotation}
    truth = detap.read_ground_truth(write(tmp_path / "gt.json", document))
    assert truth.corners[0].tolist() == [10, 20, 50, 40]


def test_images_of_several_annotators_are_merged(tmp_path: Path) -> None:
    """Only in files of Label Studio, and only equal file names."""
    names = ["x/1-a.jpg", "b.jpg", "x/1-a.jpg", None, None]
    images = [{"id": k, "file_name": name, "width": 9, "height": 8} for k, name in enumerate(names)]
    annotations = [
        {"id": k, "image_id": k, "category_id": 1, "bbox": [k, 0, 1, 1]} for k in range(5)
    ]
    document = instances(images=images, annotations=annotations)
    path = tmp_path / "gt.json"
    assert detap.read_ground_truth(write(path, document)).images == (0, 1, 2, 3, 4)
    document["info"] = {"contributor": "Label Studio"}
    truth = detap.read_ground_truth(write(path, document))
    assert truth.images == (0, 1, 3, 4)
    assert truth.image.tolist() == [0, 1, 0, 2, 3]
    assert {note.code: note.count for note in truth.notes}["images-of-several-annotators"] == 1
    document["info"] = ["Label Studio"]
    assert len(detap.read_ground_truth(write(path, document)).images) == 5


def test_results_that_list_images_match_by_file_name(tmp_path: Path) -> None:
    """The ids of two images are exchanged."""
    images = [{"id": k, "file_name": f"{k}.jpg", "width": 100, "height": 80} for k in (0, 1)]
    truth = detap.read_ground_truth(write(tmp_path / "gt.json", instances(images=images)))
    listed = [{"id": 0, "file_name": "x/1.jpg"}, {"id": 1, "file_name": "0.jpg"}]
    record = {"category_id": 1, "bbox": [10, 20, 40, 20], "score": 0.5}
    records = [{**record, "image_id": 0}, {**record, "image_id": 1}, {**record, "image_id": 1}]
    document = {"images": listed, "annotations": records}
    detections = detap.read_detections(write(tmp_path / "dt.json", document), truth)
    assert detections.image.tolist() == [1, 0, 0]
    assert {"images-matched-by-name": 2}.items() <= {
        note.code: note.count for note in detections.notes
    }.items()
