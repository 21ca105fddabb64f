"""The search for the images of a ground truth without --images, in the layouts that tools write."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

Image = pytest.importorskip("PIL.Image", reason="the extra detap[report] is not installed")

from detap.cli import main  # noqa: E402 - after what it needs was asked for
from detap.formats.catalogue import FORMATS  # noqa: E402
from detap.formats.image_folders import ImageFolder, nearby_folders  # noqa: E402
from detap.formats.read import ground_truth_from  # noqa: E402
from detap.report.page.pictures import ImageFile, find_folder  # noqa: E402
from tests.report.page.cases import images_of, pictures_of  # noqa: E402

SIZE = (64, 48)
BOX = (4, 6, 30, 40)  # x1 y1 x2 y2
STEMS = ("a", "b", "c")


def put(path: Path, text: object) -> None:
    """Write text, or JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text), "utf-8")


def draw(folder: Path, names: tuple[str, ...] = ("a.jpg", "b.jpg", "c.jpg")) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", SIZE, (200, 30, 60)).save(folder / name)


def coco(path: Path, file_name: str = "{}.jpg") -> None:
    """Write COCO ground truth with one cat in each image."""
    x1, y1, x2, y2 = BOX
    box = [x1, y1, x2 - x1, y2 - y1]
    images = [
        {"id": n, "file_name": file_name.format(stem), "width": SIZE[0], "height": SIZE[1]}
        for n, stem in enumerate(STEMS, 1)
    ]
    objects = [
        {"id": n, "image_id": n, "category_id": 1, "bbox": box, "area": 884, "iscrowd": 0}
        for n in range(1, 4)
    ]
    categories = [{"id": 1, "name": "cat"}]
    put(path, {"images": images, "annotations": objects, "categories": categories})


def voc(folder: Path) -> None:
    box = "".join(
        f"<{k}>{v}</{k}>" for k, v in zip(("xmin", "ymin", "xmax", "ymax"), BOX, strict=True)
    )
    for stem in STEMS:
        put(
            folder / f"{stem}.xml",
            f"<annotation><filename>{stem}.jpg</filename>"
            f"<size><width>{SIZE[0]}</width><height>{SIZE[1]}</height><depth>3</depth></size>"
            f"<object><name>cat</name><bndbox>{box}</bndbox></object></annotation>",
        )


def yolo(folder: Path, stems: tuple[str, ...] = STEMS) -> None:
    put(folder / "classes.txt", "cat\n")
    for stem in stems:
        put(folder / f"{stem}.txt", "0 0.25 0.5 0.4 0.7\n")


def labelme(folder: Path, image_path: str = "{}.jpg") -> None:
    shape = {"label": "cat", "shape_type": "rectangle", "points": [BOX[:2], BOX[2:]]}
    for stem in STEMS:
        record = {"imagePath": image_path.format(stem), "shapes": [shape], "imageData": None}
        size = {"imageWidth": SIZE[0], "imageHeight": SIZE[1]}
        put(folder / f"{stem}.json", {"version": "5.0.1", "flags": {}, **record, **size})


def cvat(path: Path, name: str) -> None:
    corners = " ".join(f'{k}="{v}"' for k, v in zip(("xtl", "ytl", "xbr", "ybr"), BOX, strict=True))
    images = "".join(
        f'<image id="{n}" name="{name.format(stem)}" width="{SIZE[0]}" height="{SIZE[1]}">'
        f'<box label="cat" occluded="0" {corners}></box></image>'
        for n, stem in enumerate(STEMS)
    )
    put(path, f"<annotations><version>1.1</version>{images}</annotations>")


def kitti(folder: Path) -> None:
    for stem in STEMS:
        numbers = " ".join(map(str, BOX))
        put(folder / f"{stem}.txt", f"cat 0 0 0 {numbers} -1 -1 -1 -1 -1 -1 -1\n")


def dota(folder: Path) -> None:
    x1, y1, x2, y2 = BOX
    for stem in STEMS:
        put(folder / f"{stem}.txt", f"{x1} {y1} {x2} {y1} {x2} {y2} {x1} {y2} cat 0\n")


def open_images(path: Path) -> None:
    rows = [f"{stem},cat,0.1,0.5,0.1,0.9,0,0,0,0,0" for stem in STEMS]
    header = "ImageID,LabelName,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,"
    put(path, "\n".join([header + "IsInside", *rows, ""]))


def tfcsv(path: Path) -> None:
    rows = "".join(f"{stem}.jpg,cat,{','.join(map(str, BOX))}\n" for stem in STEMS)
    put(path, f"filename,class,xmin,ymin,xmax,ymax\n{rows}")


def createml(path: Path, file_name: str = "{}.jpg") -> None:
    x1, y1, x2, y2 = BOX
    center = {"x": (x1 + x2) / 2, "y": (y1 + y2) / 2, "width": x2 - x1, "height": y2 - y1}
    items = [{"label": "cat", "coordinates": center}]
    put(path, [{"image": file_name.format(stem), "annotations": items} for stem in STEMS])


def via(path: Path) -> None:
    x1, y1, x2, y2 = BOX
    shape = {"name": "rect", "x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1}
    region = {"shape_attributes": shape, "region_attributes": {"kind": "cat"}}
    put(path, {s: {"filename": f"{s}.jpg", "size": 1, "regions": [region]} for s in STEMS})


def datumaro(path: Path) -> None:
    x1, y1, x2, y2 = BOX
    box = {"type": "bbox", "label_id": 0, "bbox": [x1, y1, x2 - x1, y2 - y1]}
    items = [{"id": stem, "annotations": [box], "image": {"size": SIZE[::-1]}} for stem in STEMS]
    put(path, {"categories": {"label": {"labels": [{"name": "cat"}]}}, "items": items})


def supervisely(folder: Path) -> None:
    points = {"exterior": [BOX[:2], BOX[2:]], "interior": []}
    thing = {"classTitle": "cat", "geometryType": "rectangle", "points": points}
    size = {"height": SIZE[1], "width": SIZE[0]}
    for stem in STEMS:
        put(folder / f"{stem}.jpg.json", {"size": size, "objects": [thing]})


def label_studio(path: Path) -> None:
    x1, y1, x2, y2 = (100 * n / side for n, side in zip(BOX, SIZE * 2, strict=True))
    value = {"x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1, "rectanglelabels": ["cat"]}
    region: dict[str, Any] = {"type": "rectanglelabels", "value": value}
    region |= {"original_width": SIZE[0], "original_height": SIZE[1]}
    put(
        path,
        [
            {
                "data": {"image": f"/data/upload/1/0a1b2c3d-{stem}.jpg"},
                "annotations": [{"result": [region]}],
            }
            for stem in STEMS
        ],
    )


def darknet(root: Path) -> None:
    yolo(root / "obj_val_data")
    put(root / "obj.names", "cat\n")
    put(root / "obj.data", "names = data/obj.names\nval = data/val.txt\n")
    put(root / "val.txt", "".join(f"data/obj_val_data/{stem}.jpg\n" for stem in STEMS))


def detections(folder: Path) -> Path:
    """Write class files, which match any format by image stem."""
    text = "".join(f"{stem} 0.9 40 6 60 20\n" for stem in STEMS)
    put(folder / "dt" / "cat.txt", text)
    return folder / "dt"


def report(folder: Path, gt: str, *words: object) -> dict[str, bool]:
    """Write the page; return by name whether each image has its picture."""
    common = ["report", str(folder / gt), str(detections(folder)), "--dt-format", "voc"]
    page = folder / "page.html"
    assert main([*common, "--protocol", "coco", "-o", str(page), *map(str, words)]) == 0
    shown = pictures_of(page)
    return {name: str(n) in shown for n, name in enumerate(images_of(page)["names"])}


def roboflow(root: Path) -> None:
    yolo(root / "valid/labels")
    yaml = "train: ../train/images\nval: ../valid/images\nnames: [cat]\n"
    put(root / "data.yaml", yaml)


def yaml_elsewhere(root: Path) -> None:
    yolo(root / "set/labels/val")
    put(root / "yaml/data.yaml", "path: ../set\nval: images/val\nnames: [cat]\n")


def yaml_of_two_folders(root: Path) -> None:
    yolo(root / "1/labels", ("a", "b"))
    yolo(root / "2/labels", ("c",))
    put(root / "data.yaml", "val: [1/images, 2/images]\nnames: [cat]\n")
    draw(root / "1/images", ("a.jpg", "b.jpg"))


Write = Callable[[Path], Any]

LAYOUTS: dict[str, tuple[Write, str, str, str]] = {
    # What writes the ground truth, its path, the path given if that is another, the image folder.
    "VOC, root": (voc, "Annotations", ".", "JPEGImages"),
    "VOC, folder": (voc, "Annotations", "", "JPEGImages"),
    "VOC, one folder": (voc, "data", "", "data"),
    "VOC, images": (voc, "annotations", "", "images"),
    "VOC, nested": (voc, "Annotations/day", ".", "JPEGImages/day"),
    "YOLO": (yolo, "labels", "", "images"),
    "YOLO, split": (yolo, "labels/val", "", "images/val"),
    "YOLO, Roboflow": (roboflow, "", "data.yaml", "valid/images"),
    "YOLO, path": (yaml_elsewhere, "", "yaml/data.yaml", "set/images/val"),
    "YOLO, two folders": (yaml_of_two_folders, "", "data.yaml", "2/images"),
    "YOLO, Darknet": (yolo, "obj_train_data", "", "obj_train_data"),
    "YOLO, CVAT": (darknet, "", ".", "obj_val_data"),
    "COCO": (coco, "annotations/instances_val2017.json", "", "val2017"),
    "COCO, subset": (
        coco,
        "annotations/instances_val2014_100.json",
        "",
        "images/val2014",
    ),
    "COCO, CVAT": (coco, "annotations/instances_default.json", "", "images/default"),
    "COCO, Label Studio": (lambda at: coco(at, "images\\{}.jpg"), "result.json", "", "images"),
    "COCO, Roboflow": (coco, "valid/_annotations.coco.json", "", "valid"),
    "COCO, folder of Roboflow": (
        lambda at: coco(at, "{}_jpg.rf." + 32 * "0" + ".jpg"),
        "valid/_annotations.coco.json",
        ".",
        "valid",
    ),
    "COCO, split": (coco, "my_val.json", "", "my_val"),
    "COCO, path below the parent": (
        lambda at: coco(at, "pictures/{}.jpg"),
        "json/gt.json",
        "",
        "pictures",
    ),
    "CVAT": (lambda at: cvat(at, "cam/{}.jpg"), "annotations.xml", "", "images/cam"),
    "LabelMe": (labelme, "set", "", "set"),
    "LabelMe, sibling": (lambda at: labelme(at, "../pics/{}.jpg"), "json", "", "pics"),
    "LabelMe, nested": (
        lambda at: labelme(at, "../../pics/{}.jpg"),
        "set/day/cam",
        "set",
        "set/pics",
    ),
    "LabelMe, Windows": (lambda at: labelme(at, "..\\pics\\{}.jpg"), "json", "", "pics"),
    "LabelMe, elsewhere": (lambda at: labelme(at, "C:\\me\\{}.jpg"), "json", "", "json"),
    "Label Studio": (label_studio, "tasks.json", "", "images"),
    "TensorFlow CSV": (tfcsv, "gt.csv", "", "."),
    "CreateML": (createml, "train/gt.json", "", "train"),
    "CreateML, folder": (lambda at: createml(at, "cam/{}.jpg"), "gt.json", "", "images/cam"),
    "VIA": (via, "gt.json", "", "images"),
    "Datumaro": (datumaro, "annotations/val.json", ".", "images/val"),
    "Supervisely": (supervisely, "ds/ann", "ds", "ds/img"),
    "KITTI": (kitti, "label_2", "", "image_2"),
    "DOTA": (dota, "labelTxt", "", "images"),
    "Open Images": (open_images, "validation-annotations-bbox.csv", "", "validation"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_images_are_found_in_the_layouts_of_the_formats(
    layout: str, tmp_path: Path, capsys: Any
) -> None:
    write, written, gt, images = LAYOUTS[layout]
    write(tmp_path / written)
    put(tmp_path / "sizes.csv", "image,width,height\n" + "".join(f"{s},64,48\n" for s in STEMS))
    sized = layout.startswith(("Open Images", "YOLO"))
    more: tuple[object, ...] = ("--image-sizes", tmp_path / "sizes.csv") if sized else ()
    if layout == "DOTA":
        more = ("--shapes", "bbox")
    names: tuple[str, ...] = ("c.jpg",) if "two" in layout else ("a.jpg", "b.jpg", "c.jpg")
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
    labelme(tmp_path / "json", "../pics/IMG_{}.jpg")
    draw(tmp_path / "pics", tuple(f"IMG_{stem}.jpg" for stem in STEMS))
    assert report(tmp_path, "json") == dict.fromkeys(STEMS, True)


def test_a_yolo_image_without_labels_is_found_in_several_folders(tmp_path: Path) -> None:
    yaml_of_two_folders(tmp_path)
    (tmp_path / "1/labels/a.txt").unlink()
    draw(tmp_path / "2/images", ("c.JPG",))
    assert report(tmp_path, "data.yaml") == dict.fromkeys(STEMS, True)


def test_images_overrides_the_search(tmp_path: Path, capsys: Any) -> None:
    voc(tmp_path / "Annotations")
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
    voc(tmp_path / "Annotations")
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
    coco(tmp_path / "annotations/instances_val2017.json")
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
    labelme(at / "json", name)
    assert report(at, "json") == dict.fromkeys(STEMS, False)
    coco(at / "coco/gt.json", name)
    assert report(at, "coco/gt.json") == dict.fromkeys("123", False)
    assert capsys.readouterr().err.count("[no-images-found]") == 2


def test_a_yaml_cannot_name_images_outside_its_parent_folder(tmp_path: Path, capsys: Any) -> None:
    yolo(tmp_path / "secret/labels")
    draw(tmp_path / "secret/images")
    at = tmp_path / "1/2"
    put(at / "data.yaml", f"path: {tmp_path}\nval: secret/images\nnames: [cat]\n")
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
    voc(at / "Annotations")
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
    voc(tmp_path / "real/Annotations")
    (tmp_path / "set").mkdir()
    (tmp_path / "set/Annotations").symlink_to(tmp_path / "real/Annotations")
    draw(tmp_path / "set/JPEGImages")
    assert report(tmp_path, "set/Annotations") == dict.fromkeys(STEMS, True)
    (tmp_path / "set/JPEGImages").rename(tmp_path / "unused")
    draw(tmp_path / "real/Annotations")
    assert report(tmp_path, "set/Annotations") == dict.fromkeys(STEMS, True)


def test_a_search_without_images_or_folders(tmp_path: Path) -> None:
    assert find_folder([ImageFolder(str(tmp_path))], []).folder is None
    assert find_folder([], [ImageFile("a", None, None)]) == (None, (), ())


def test_ground_truth_from_the_network_has_no_folder(tmp_path: Path) -> None:
    coco(tmp_path / "gt.json")
    truth = ground_truth_from(FORMATS["coco"], str(tmp_path / "gt.json"), {})
    assert FORMATS["coco"].image_files(truth)[0]
    (source,) = truth.files
    remote = replace(truth, files=(source._replace(path="https://example.org/gt.json"),))
    assert nearby_folders(remote) == []
