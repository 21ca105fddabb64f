"""The search for the images of a ground truth without --images, in the layouts that tools write."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

Image = pytest.importorskip("PIL.Image", reason="the extra detap[report] is not installed")

from detap.cli import main  # noqa: E402 - after what it needs was asked for
from detap.formats.catalogue import FORMATS  # noqa: E402
from detap.formats.image_folders import ImageFolder, nearby_folders  # noqa: E402
from detap.formats.read import ground_truth_from  # noqa: E402
from detap.report.page.pictures import find_folder  # noqa: E402
from tests.formats import small_files as small  # noqa: E402
from tests.formats.exports import write  # noqa: E402
from tests.formats.small_files import Corners, Make, Stems, below  # noqa: E402
from tests.report.page.cases import images_of, pictures_of  # noqa: E402

BOX = (4, 6, 30, 40)  # x1 y1 x2 y2
STEMS = ("a", "b", "c")


def put(path: Path, made: Make) -> None:
    """Write ground truth with a cat in each image: in a folder, or as a file of this path."""
    box = (0.1, 0.1, 0.5, 0.9) if made is small.open_images else BOX
    for name, content in made(STEMS, "cat", box).items():
        write(path if path.suffix else path / name, content)


def draw(folder: Path, names: tuple[str, ...] = ("a.jpg", "b.jpg", "c.jpg")) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", small.SIZE, (200, 30, 60)).save(folder / name)


def report(folder: Path, gt: str, *words: object) -> dict[str, bool]:
    """Write the page; return by name whether each image has its picture."""
    # Class files, which match any format by image stem.
    write(folder / "dt" / "cat.txt", "".join(f"{stem} 0.9 35 6 48 20\n" for stem in STEMS))
    common = ["report", str(folder / gt), str(folder / "dt"), "--dt-format", "voc"]
    page = folder / "page.html"
    assert main([*common, "--protocol", "coco", "-o", str(page), *map(str, words)]) == 0
    shown = pictures_of(page)
    return {name: str(n) in shown for n, name in enumerate(images_of(page)["names"])}


def two_folders(stems: Stems, label: str, box: Corners) -> dict[str, Any]:
    files: dict[str, Any] = {"data.yaml": "val: [1/images, 2/images]\nnames: [cat]\n"}
    for folder, some in (("1/labels", stems[:2]), ("2/labels", stems[2:])):
        files |= below(folder, small.yolo)(some, label, box)
    return files


def naming(made: Make, picture: str) -> Make:
    """Return a function that names images so."""
    return lambda *content: made(*content, picture)  # type: ignore[call-arg]


ROBOFLOW = "train: ../train/images\nval: ../valid/images\nnames: [cat]\n"
roboflow = below("valid/labels", small.yolo, {"data.yaml": ROBOFLOW})
ELSEWHERE = "path: ../set\nval: images/val\nnames: [cat]\n"
elsewhere = below("set/labels/val", small.yolo, {"yaml/data.yaml": ELSEWHERE})

LAYOUTS: dict[str, tuple[Make, str, str, str]] = {
    # What writes the ground truth, its path, the path given if that is another, the image folder.
    "VOC, root": (small.voc, "Annotations", ".", "JPEGImages"),
    "VOC, folder": (small.voc, "Annotations", "", "JPEGImages"),
    "VOC, one folder": (small.voc, "data", "", "data"),
    "VOC, images": (small.voc, "annotations", "", "images"),
    "VOC, nested": (small.voc, "Annotations/day", ".", "JPEGImages/day"),
    "YOLO": (small.yolo, "labels", "", "images"),
    "YOLO, split": (small.yolo, "labels/val", "", "images/val"),
    "YOLO, Roboflow": (roboflow, "", "data.yaml", "valid/images"),
    "YOLO, path": (elsewhere, "", "yaml/data.yaml", "set/images/val"),
    "YOLO, two folders": (two_folders, "", "data.yaml", "2/images"),
    "YOLO, Darknet": (small.yolo, "obj_train_data", "", "obj_train_data"),
    "YOLO, CVAT": (naming(small.darknet, "val"), "", ".", "obj_val_data"),
    "COCO": (small.coco, "annotations/instances_val2017.json", "", "val2017"),
    "COCO, subset": (small.coco, "annotations/instances_val2014_100.json", "", "images/val2014"),
    "COCO, CVAT": (small.coco, "annotations/instances_default.json", "", "images/default"),
    "COCO, Label Studio": (naming(small.coco, "images\\{}.jpg"), "result.json", "", "images"),
    "COCO, Roboflow": (small.coco, "valid/_annotations.coco.json", "", "valid"),
    "COCO, folder of Roboflow": (
        naming(small.coco, "{}_jpg.rf." + 32 * "0" + ".jpg"),
        "valid/_annotations.coco.json",
        ".",
        "valid",
    ),
    "COCO, split": (small.coco, "my_val.json", "", "my_val"),
    "COCO, path below the parent": (
        naming(small.coco, "pictures/{}.jpg"),
        "json/gt.json",
        "",
        "pictures",
    ),
    "CVAT": (naming(small.cvat, "cam/{}.jpg"), "annotations.xml", "", "images/cam"),
    "LabelMe": (small.labelme, "set", "", "set"),
    "LabelMe, sibling": (naming(small.labelme, "../pics/{}.jpg"), "json", "", "pics"),
    "LabelMe, nested": (
        naming(small.labelme, "../../pics/{}.jpg"),
        "set/day/cam",
        "set",
        "set/pics",
    ),
    "LabelMe, Windows": (naming(small.labelme, "..\\pics\\{}.jpg"), "json", "", "pics"),
    "LabelMe, elsewhere": (naming(small.labelme, "C:\\me\\{}.jpg"), "json", "", "json"),
    "LabelMe, images": (naming(small.labelme, "C:\\me\\{}.jpg"), "json", "", "images"),
    "Label Studio": (small.label_studio, "tasks.json", "", "images"),
    "TensorFlow CSV": (small.tfcsv, "gt.csv", "", "."),
    "CreateML": (small.createml, "train/gt.json", "", "train"),
    "CreateML, folder": (naming(small.createml, "cam/{}.jpg"), "gt.json", "", "images/cam"),
    "VIA": (small.via_json, "gt.json", "", "images"),
    "Datumaro": (small.datumaro, "annotations/val.json", ".", "images/val"),
    "Supervisely": (small.supervisely, "ds/ann", "ds", "ds/img"),
    "KITTI": (small.kitti, "label_2", "", "image_2"),
    "DOTA": (small.dota, "labelTxt", "", "images"),
    "Open Images": (small.open_images, "validation-annotations-bbox.csv", "", "validation"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_images_are_found_in_the_layouts_of_the_formats(
    layout: str, tmp_path: Path, capsys: Any
) -> None:
    made, written, gt, images = LAYOUTS[layout]
    put(tmp_path / written, made)
    write(tmp_path / "sizes.csv", "image,width,height\n" + "".join(f"{s},50,40\n" for s in STEMS))
    sized = layout.startswith(("Open Images", "YOLO"))
    more: tuple[object, ...] = ("--image-sizes", tmp_path / "sizes.csv") if sized else ()
    if layout == "DOTA":
        more = ("--shapes", "bbox")
    names: tuple[str, ...] = ("a.jpg", "b.jpg", "c.jpg")
    if "two" in layout:
        draw(tmp_path / "1/images", names[:2])
        names = names[2:]
    if layout.startswith("COCO, folder"):
        names = tuple(f"{stem}_jpg.rf.{32 * '0'}.jpg" for stem in STEMS)
    draw(tmp_path / images, names)
    pictures = report(tmp_path, gt or written, *more)
    assert list(pictures.values()) == [True] * 3
    note = next(n for n in capsys.readouterr().err.splitlines() if "[images-found]" in n)
    folder = Path(note.removeprefix("info: images from ").removesuffix(" [images-found]"))
    assert (tmp_path / images).is_relative_to(folder)
    assert "[images-found]" in (tmp_path / "page.html").read_text("utf-8")


def test_a_labelme_picture_may_have_another_name(tmp_path: Path) -> None:
    put(tmp_path / "json", naming(small.labelme, "../pics/IMG_{}.jpg"))
    draw(tmp_path / "pics", tuple(f"IMG_{stem}.jpg" for stem in STEMS))
    assert report(tmp_path, "json") == dict.fromkeys(STEMS, True)


def test_a_yolo_image_without_labels_is_found_in_several_folders(tmp_path: Path) -> None:
    put(tmp_path, two_folders)
    draw(tmp_path / "1/images", ("a.jpg", "b.jpg"))
    (tmp_path / "1/labels/a.txt").unlink()
    draw(tmp_path / "2/images", ("c.JPG",))
    assert report(tmp_path, "data.yaml") == dict.fromkeys(STEMS, True)


def test_images_overrides_the_search(tmp_path: Path, capsys: Any) -> None:
    put(tmp_path / "Annotations", small.voc)
    draw(tmp_path / "JPEGImages")
    draw(tmp_path / "other", ("a.jpg",))
    assert report(tmp_path, ".", "--images", tmp_path / "other") == {
        "a": True,
        "b": False,
        "c": False,
    }
    assert report(tmp_path, ".", "--images", "none") == dict.fromkeys(STEMS, False)
    assert "images-found" not in capsys.readouterr().err


def test_the_folders_searched_are_listed_if_none_has_the_images(
    tmp_path: Path, capsys: Any
) -> None:
    put(tmp_path / "Annotations", small.voc)
    (tmp_path / "images").mkdir()
    draw(tmp_path / "JPEGImages", ("a.jpg", "other.jpg"))
    assert report(tmp_path, "Annotations", "--strict") == dict.fromkeys(STEMS, False)
    searched = ", ".join(str(tmp_path / name) for name in ("JPEGImages", "images", "Annotations"))
    message = (
        f"no images on the page: fewer than half have a file in {searched}; use --images DIR "
        "[no-images-found]"
    )
    assert f"info: {message}\n" in capsys.readouterr().err
    assert message in (tmp_path / "page.html").read_text("utf-8")
    # As the hint says; and half of them are enough.
    assert report(tmp_path, ".", "--images", tmp_path / "JPEGImages")["a"]
    draw(tmp_path / "JPEGImages", ("b.jpg",))
    assert report(tmp_path, "Annotations") == {"a": True, "b": True, "c": False}


def test_missing_folders_are_listed_after_existing_ones(tmp_path: Path, capsys: Any) -> None:
    put(tmp_path / "annotations/instances_val2017.json", small.coco)
    (tmp_path / "val2017").mkdir()
    report(tmp_path, "annotations/instances_val2017.json")
    existing = f"{tmp_path}/annotations, {tmp_path}, {tmp_path}/val2017"
    missing = f"{tmp_path}/annotations/images, {tmp_path}/images, ..."
    assert f"have a file in {existing}, {missing}; use --images DIR" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["../../secret/{}.jpg", "/secret/{}.jpg", "../json/../../secret/{}.jpg"]
)
def test_names_that_lead_out_open_nothing(name: str, tmp_path: Path, capsys: Any) -> None:
    draw(tmp_path / "secret")
    at = tmp_path / "set"
    put(at / "json", naming(small.labelme, name))
    assert report(at, "json") == dict.fromkeys(STEMS, False)
    put(at / "coco/gt.json", naming(small.coco, name))
    assert report(at, "coco/gt.json") == dict.fromkeys("123", False)
    assert capsys.readouterr().err.count("[no-images-found]") == 2


def test_a_yaml_cannot_name_images_outside_its_parent_folder(tmp_path: Path, capsys: Any) -> None:
    put(tmp_path / "secret/labels", small.yolo)
    draw(tmp_path / "secret/images")
    at = tmp_path / "1/2"
    write(at / "data.yaml", f"path: {tmp_path}\nval: secret/images\nnames: [cat]\n")
    assert report(at, "data.yaml") == dict.fromkeys(STEMS, False)
    images, labels = (tmp_path / "secret" / name for name in ("images", "labels"))
    message = (
        f"no images on the page; {images}, {labels} not searched, because outside the data set; "
        "use --images DIR"
    )
    assert message in capsys.readouterr().err
    assert report(at, "data.yaml", "--images", images) == dict.fromkeys(STEMS, True)


def test_links_out_of_the_data_set_are_followed_only_on_request(
    tmp_path: Path, capsys: Any
) -> None:
    draw(tmp_path / "elsewhere")
    at = tmp_path / "set"
    put(at / "Annotations", small.voc)
    (at / "JPEGImages").symlink_to(tmp_path / "elsewhere")
    assert report(at, ".") == dict.fromkeys(STEMS, False)
    refused = f"{at}/JPEGImages not searched, because outside the data set; use --images DIR"
    assert refused in capsys.readouterr().err
    assert report(at, ".", "--images", at / "JPEGImages") == dict.fromkeys(STEMS, True)
    # A link inside the data set.
    (at / "JPEGImages").unlink()
    draw(at / "v2")
    (at / "JPEGImages").symlink_to("v2")
    assert report(at, ".") == dict.fromkeys(STEMS, True)
    # One image that is a link.
    (at / "v2/c.jpg").unlink()
    (at / "v2/c.jpg").symlink_to(tmp_path / "elsewhere/c.jpg")
    assert report(at, ".") == {"a": True, "b": True, "c": False}
    problem = f"c: &#39;c.jpg&#39; is a link out of {at}; use --images"
    assert problem in (at / "page.html").read_text("utf-8")
    assert report(at, ".", "--images", at / "v2") == dict.fromkeys(STEMS, True)


def test_a_linked_annotation_folder_is_found_in_both_places(tmp_path: Path) -> None:
    """Links of the given path are the user's."""
    put(tmp_path / "real/Annotations", small.voc)
    (tmp_path / "set").mkdir()
    (tmp_path / "set/Annotations").symlink_to(tmp_path / "real/Annotations")
    draw(tmp_path / "set/JPEGImages")
    assert report(tmp_path, "set/Annotations") == dict.fromkeys(STEMS, True)
    (tmp_path / "set/JPEGImages").rename(tmp_path / "unused")
    draw(tmp_path / "real/Annotations")
    assert report(tmp_path, "set/Annotations") == dict.fromkeys(STEMS, True)


def test_a_search_without_images_or_folders(tmp_path: Path) -> None:
    assert find_folder([ImageFolder(str(tmp_path))], {}, [])[0] is None
    assert find_folder([], {}, ["a"]) == (None, [], [])


def test_ground_truth_from_the_network_has_no_folder(tmp_path: Path) -> None:
    put(tmp_path / "gt.json", small.coco)
    truth = ground_truth_from(FORMATS["coco"], str(tmp_path / "gt.json"), {})
    assert FORMATS["coco"].image_files(truth)[0]
    (source,) = truth.files
    remote = replace(truth, files=(source._replace(path="https://example.org/gt.json"),))
    assert nearby_folders(remote) == []
