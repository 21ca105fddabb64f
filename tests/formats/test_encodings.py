"""One data set in every format: the known metrics, and common mistakes.

The hundred images are `voc-100`'s (Padilla et al. 2021, Electronics 10(3):279), whose owner
publishes pycocotools' metrics on the decoded boxes.
"""

import json
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import detap
from detap import Detections, GroundTruth, InputError
from tests.cli.conftest import Ended
from tests.cli.conftest import detap as command
from tests.formats.voc_files import write

__all__ = ["command"]

Run = Callable[..., Ended]
SIZES = "yolo-voc-100/sizes.csv"
PATHS = {"image_sizes", "class_names", "dt_class_names"}

TRUTHS: dict[str, tuple[str, dict[str, str]]] = {
    "coco v1": ("voc-100/gt/coco_v1/instances_default.json", {}),
    "coco v2": ("voc-100/gt/coco_v2/instances_v2.json", {}),
    "voc": ("voc-100/gt/voc_xml", {}),
    "cvat": ("voc-100/gt/cvat/annotations.xml", {}),
    "labelme": ("labelme-voc-100", {}),
    "openimages": ("voc-100/gt/openimages/all_bounding_boxes.csv", {"image_sizes": SIZES}),
    "yolo": ("yolo-voc-100/data.yaml", {"image_sizes": SIZES}),
}
"""Path and reading options of each format."""

FOUND: dict[str, tuple[str, dict[str, str]]] = {
    "yolo": ("yolo-voc-100/predictions", {"class_names": "yolo-voc-100/data.yaml"}),
    "coco": ("voc-100/dt/coco_dets.json", {}),
    "corners": ("voc-100/dt/abs_xyx2y2", {"class_names": "voc-100/voc.names"}),
    "sides": ("voc-100/dt/abs_xywh", {"class_names": "voc-100/voc.names", "boxes": "xywh"}),
}

IN_FRACTIONS = "voc-100/expected_coco_all_encodings.json"
IN_PIXELS = "voc-100/expected_coco.json"
BY_YOLO = "yolo-voc-100/expected_coco.json"


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield pairs of formats with known metrics, and their tolerance.

    Decoded fractions differ from pixels in the sixth digit, and one IoU lies on a threshold: for
    ground truth of Open Images and YOLO the metrics are known with YOLO's detections only. Results
    in COCO JSON have their own ids, which must not be taken for those of COCO ground truth.
    """
    for truth in TRUTHS:
        yield truth, "yolo", BY_YOLO if truth == "yolo" else IN_FRACTIONS
        if truth in ("openimages", "yolo"):
            continue
        for detections in FOUND.keys() - {"yolo"}:
            if not (truth.startswith("coco") and detections == "coco"):
                yield truth, detections, IN_PIXELS


def opened(real_data: Path, entry: tuple[str, dict[str, str]]) -> tuple[Path, dict[str, Any]]:
    path, options = entry
    arguments = {name: real_data / v if name in PATHS else v for name, v in options.items()}
    return real_data / path, arguments


def known(real_data: Path, path: str) -> Any:
    record = json.loads((real_data / path).read_text())
    return pytest.approx(record.get("stats", record), rel=0, abs=1e-12)


def tables(real_data: Path, truth: str, detections: str) -> tuple[GroundTruth, Detections]:
    path, options = opened(real_data, TRUTHS[truth])
    ground_truth = detap.read_ground_truth(path, **options)
    path, options = opened(real_data, FOUND[detections])
    return ground_truth, detap.read_detections(path, ground_truth, **options)


def summary(truth: GroundTruth, detections: Detections) -> Mapping[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return detap.evaluate(truth, detections, protocol="coco").summary


@pytest.mark.parametrize(("truth", "detections", "expected"), sorted(rows()))
def test_every_format_gives_the_known_metrics(
    real_data: Path, truth: str, detections: str, expected: str
) -> None:
    assert summary(*tables(real_data, truth, detections)) == known(real_data, expected)


def test_columns_of_padillas_tools(real_data: Path) -> None:
    """The same detections in their column order, numbered by VOC's own class list."""
    path, options = opened(real_data, TRUTHS["yolo"])
    truth = detap.read_ground_truth(path, **options)
    padilla = real_data / "voc-100/dt/rel_xywh"
    names: dict[str, Any] = {"dt_class_names": real_data / "voc-100/voc.names"}
    right = detap.read_detections(padilla, truth, **names)
    assert summary(truth, right) == known(real_data, BY_YOLO)
    # As if they were Ultralytics', which none of them suggests:
    wrong = detap.read_detections(padilla, truth, **names, columns="conf-last")
    assert summary(truth, wrong)["AP"] == pytest.approx(0.0137, abs=5e-5)


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("target", ["coco", "voc", "yolo"])
def test_converted_files_give_the_known_metrics(
    real_data: Path, tmp_path: Path, truth: str, target: str
) -> None:
    ground_truth, detections = tables(real_data, truth, "yolo")
    out = tmp_path / "out"
    detap.convert(out, ground_truth, detections, to=target)
    sizes = {"image_sizes": out / "sizes.csv"}
    paths: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
        "coco": ("instances.json", {}, "results.json", {}),
        "voc": ("", {"image_set": "default"}, "detections", {"layout": "class-files"}),
        "yolo": ("data.yaml", sizes, "predictions", {}),
    }
    given, options, results, more = paths[target]
    again = detap.read_ground_truth(out / given, **options)
    read = again, detap.read_detections(out / results, again, **more)
    expected = BY_YOLO if truth == "yolo" else IN_FRACTIONS
    if target == "coco":
        assert summary(*read) == summary(ground_truth, detections)
    assert summary(*read) == known(real_data, expected)


# --- lines that are wrong

WRONG = (
    *("nan", "inf", "-Infinity", "1e999", "2_63", "0x10", "1,5", "\N{FULLWIDTH DIGIT ONE}2"),
    *("", "--1", "1.0.0", "None", "true", "\N{ARABIC-INDIC DIGIT TWO}", "1e"),
)
JSON = {"nan": "NaN", "inf": "Infinity", "-Infinity": "-Infinity", "1e999": "1e999"}


def in_json(text: str) -> str:
    return JSON.get(text, json.dumps(text))


def voc(token: str) -> str:
    box = f"<xmin>{token}</xmin><ymin>1</ymin><xmax>30</xmax><ymax>30</ymax>"
    return (
        "<annotation><size><width>64</width><height>48</height></size>\n<object><name>cat</name>\n"
        f"<bndbox>{box}</bndbox></object></annotation>"
    )


def coco(token: str) -> str:
    return (
        '{"images": [{"id": 1, "file_name": "a.jpg", "width": 64, "height": 48}],\n'
        '"categories": [{"id": 1, "name": "cat"}],\n"annotations": [{"id": 1, "image_id": 1, '
        f'"category_id": 1, "iscrowd": 0, "area": 9, "bbox": [{in_json(token)}, 1, 3, 3]}}]}}'
    )


def labelme(token: str) -> str:
    return (
        '{"imagePath": "a.jpg", "imageWidth": 64, "imageHeight": 48, "imageData": null, "shapes": '
        f'[{{"label": "cat", "points": [[{in_json(token)}, 1], [30, 30]], '
        '"shape_type": "rectangle"}]}'
    )


def cvat(token: str) -> str:
    return (
        '<annotations><version>1.1</version>\n<image name="a.jpg" width="64" height="48">\n'
        f'<box label="cat" xtl="{token}" ytl="1" xbr="30" ybr="30"/></image></annotations>'
    )


def createml(token: str) -> str:
    sides = f'{{"x": {in_json(token)}, "y": 9, "width": 3, "height": 3}}'
    return f'[{{"image": "a.jpg", "annotations": [{{"label": "cat", "coordinates": {sides}}}]}}]'


def via(token: str) -> str:
    shape = f'{{"name": "rect", "x": {in_json(token)}, "y": 9, "width": 3, "height": 3}}'
    region = f'{{"shape_attributes": {shape}, "region_attributes": {{"kind": "cat"}}}}'
    return f'{{"a.jpg7": {{"filename": "a.jpg", "size": 7, "regions": [{region}]}}}}'


def datumaro(token: str) -> str:
    box = f'{{"type": "bbox", "label_id": 0, "bbox": [{in_json(token)}, 9, 3, 3]}}'
    labels = '{"label": {"labels": [{"name": "cat"}]}}'
    return f'{{"categories": {labels}, "items": [{{"id": "a", "annotations": [{box}]}}]}}'


def supervisely(token: str) -> str:
    points = f'{{"exterior": [[{in_json(token)}, 1], [30, 30]], "interior": []}}'
    return (
        '{"size": {"width": 64, "height": 48}, "objects": [{"classTitle": "cat", '
        f'"geometryType": "rectangle", "points": {points}}}]}}'
    )


LINES: dict[str, tuple[str, str, Callable[[str], str], str]] = {
    "yolo": ("yolo", "a.txt", "0 .5 .5 .2 .2\n0 {} .5 .2 .2\n".format, "line 2"),
    "openimages": (
        "openimages",
        "gt.csv",
        'ImageID,LabelName,XMin,XMax,YMin,YMax\na,cat,.1,.2,.1,.2\na,cat,"{}",.9,.1,.2\n'.format,
        "line 3",
    ),
    "cvat": ("cvat", "gt.xml", cvat, "line 3"),
    "labelme": ("labelme", "a.json", labelme, "shapes[0]"),
    "tfcsv": (
        "tfcsv",
        "gt.csv",
        'filename,class,xmin,ymin,xmax,ymax\na,cat,1,1,30,30\na,cat,"{}",1,30,30\n'.format,
        "line 3",
    ),
    "createml": ("createml", "gt.json", createml, "[0].annotations[0]"),
    "via": ("via", "gt.json", via, '"a.jpg7".regions[0]'),
    "datumaro": ("datumaro", "gt.json", datumaro, "items[0].annotations[0]"),
    "supervisely": ("supervisely", "a.jpg.json", supervisely, "objects[0]"),
    "voc": ("voc", "a.xml", voc, "line 3"),
    "coco": ("coco", "gt.json", coco, "annotations[0]"),
    "text": ("voc", "a.txt", "cat 1 1 30 30\ncat {} 1 30 30\n".format, "line 2"),
}
"""Of each input the format, a file, a number in it to change, and its location."""


@pytest.mark.parametrize("token", WRONG)
@pytest.mark.parametrize("name", LINES)
def test_an_invalid_number_is_reported_with_its_location(
    tmp_path: Path, name: str, token: str
) -> None:
    file_format, file, content, location = LINES[name]
    write(tmp_path, {file: content(token), "classes.txt" if name == "yolo" else ".x": "cat\n"})
    path = tmp_path if name in ("yolo", "labelme", "voc", "text") else tmp_path / file
    options: dict[str, Any] = {"image_size": "64x48"} if name == "yolo" else {}
    with pytest.raises(InputError) as caught:
        detap.read_ground_truth(path, format=file_format, **options)
    assert {problem.file for problem in caught.value.problems} == {str(tmp_path / file)}
    assert any(location in problem.location for problem in caught.value.problems), caught.value


# --- traps


def records(real_data: Path) -> list[dict[str, Any]]:
    path = real_data / "voc-100/dt/coco_aligned_to_gt_v1.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    return rows


def boxed(real_data: Path, order: Callable[..., list[float]]) -> list[dict[str, Any]]:
    return [row | {"bbox": order(*row["bbox"])} for row in records(real_data)]


def renumbered(real_data: Path) -> list[dict[str, Any]]:
    """Renumber the results by VOC's own class list, from 1."""
    truth = json.loads((real_data / TRUTHS["coco v1"][0]).read_text())
    names = {category["id"]: category["name"] for category in truth["categories"]}
    listed = (real_data / "voc-100/voc.names").read_text().split()
    return [
        row | {"category_id": listed.index(names[row["category_id"]]) + 1}
        for row in records(real_data)
    ]


COCO_TRAPS: dict[str, tuple[Callable[[Path], list[dict[str, Any]]], str]] = {
    "written twice": (lambda d: records(d) * 2, "repeated-detections"),
    "numbered by another list": (renumbered, "classes-permuted"),
    "width and height swapped": (
        lambda d: boxed(d, lambda x, y, w, h: [x, y, h, w]),
        "detections-width-height-swapped",
    ),
    "x and y swapped": (
        lambda d: boxed(d, lambda x, y, w, h: [y, x, h, w]),
        "detections-xy-swapped",
    ),
}


@pytest.mark.parametrize("trap", COCO_TRAPS)
def test_a_mistake_in_results_is_named(
    command: Run, real_data: Path, tmp_path: Path, trap: str
) -> None:
    make, code = COCO_TRAPS[trap]
    path = tmp_path / "dt.json"
    path.write_text(json.dumps(make(real_data)))
    call = ("eval", "--gt", str(real_data / TRUTHS["coco v1"][0]), "--dt", str(path))
    ended = command(*call)
    assert f"[{code}]" in ended.err
    assert command(*call, "--strict").status == 2


def test_the_class_list_of_the_results_gives_the_right_metric(
    command: Run, real_data: Path, tmp_path: Path
) -> None:
    path = tmp_path / "dt.json"
    path.write_text(json.dumps(renumbered(real_data)))
    call = ("eval", "--gt", str(real_data / TRUTHS["coco v1"][0]), "--dt", str(path))
    names = str(real_data / "voc-100/voc.names")
    ended = command(*call, "--class-names", names, "--output-format", "json")
    assert ended.status == 0, ended.err
    assert json.loads(ended.out)["summary"] == known(real_data, IN_PIXELS)


def yolo_folder(real_data: Path, folder: Path, change: Callable[[list[str]], str]) -> Path:
    folder.mkdir()
    for path in (real_data / "yolo-voc-100/predictions/labels").iterdir():
        lines = [line.split() for line in path.read_text().splitlines()]
        (folder / path.name).write_text("".join(f"{change(line)}\n" for line in lines))
    return folder


YOLO_TRAPS: dict[str, tuple[Callable[[list[str]], str], str]] = {
    "written twice": (lambda line: "\n".join([" ".join(line)] * 2), "[repeated-rows]"),
    "some without confidence": (
        lambda line: " ".join(line[: 5 if line[0] == "0" else 6]),
        "records have none: give all records a score, or none",
    ),
    "width and height swapped": (
        lambda line: " ".join([*line[:3], line[4], line[3], line[5]]),
        "[detections-width-height-swapped]",
    ),
    "corners": (
        lambda line: " ".join([line[0], *corners(*map(float, line[1:5])), line[5]]),
        "[detections-look-xyxy]",
    ),
    "a corner": (
        lambda line: " ".join(
            [line[0], *corners(*map(float, line[1:5]))[:2], line[3], line[4], line[5]]
        ),
        "[detections-look-top-left]",
    ),
    "x and y swapped": (
        lambda line: " ".join([line[0], line[2], line[1], line[4], line[3], line[5]]),
        "-xy-swapped]",
    ),
}


def corners(x: float, y: float, w: float, h: float) -> list[str]:
    return [f"{value:.6f}" for value in (x - w / 2, y - h / 2, x + w / 2, y + h / 2)]


def test_ids_of_a_tracker_change_no_number(command: Run, real_data: Path, tmp_path: Path) -> None:
    path = yolo_folder(real_data, tmp_path / "dt", lambda line: " ".join([*line, "7"]))
    truth = ("--gt", str(real_data / TRUTHS["yolo"][0]), "--image-sizes", str(real_data / SIZES))
    ended = command("eval", *truth, "--dt", str(path), "--strict", "--output-format", "json")
    assert ended.status == 0, ended.err
    report = json.loads(ended.out)
    assert "track-ids" in {note["code"] for note in report["notes"]}
    assert report["summary"] == known(real_data, "yolo-voc-100/expected_coco.json")


@pytest.mark.parametrize("trap", YOLO_TRAPS)
def test_a_mistake_in_yolo_predictions_is_named(
    command: Run, real_data: Path, tmp_path: Path, trap: str
) -> None:
    change, said = YOLO_TRAPS[trap]
    path = yolo_folder(real_data, tmp_path / "dt", change)
    truth = ("--gt", str(real_data / TRUTHS["yolo"][0]), "--image-sizes", str(real_data / SIZES))
    call = ("eval", *truth, "--dt", str(path), "--strict")
    ended = command(*call)
    assert ended.status == 2
    if said.startswith("[detections-") and "--columns" in ended.err:
        # Boxes that do not fit may be columns in another order: that is asked first.
        assert "say --columns conf-last" in ended.err
        ended = command(*call, "--columns", "conf-last")
        assert ended.status == 2
    assert said in ended.err


def test_swapped_image_sizes_are_named(command: Run, real_data: Path, tmp_path: Path) -> None:
    """With detections in pixels; if both inputs are normalized neither IoU nor areas change."""
    swapped = tmp_path / "sizes.csv"
    text = (real_data / SIZES).read_text()
    swapped.write_text(text.replace("image,width,height", "image,height,width"))
    truth = ("--gt", str(real_data / TRUTHS["yolo"][0]), "--image-sizes", str(swapped))
    pixels = command("eval", *truth, "--dt", str(real_data / FOUND["coco"][0]))
    assert "[ground-truth-sizes-look-swapped]" in pixels.err
    both = command(
        "eval", *truth, "--dt", str(real_data / FOUND["yolo"][0]), "--output-format", "json"
    )
    expected = json.loads((real_data / BY_YOLO).read_text())["AP"]
    assert json.loads(both.out)["summary"]["AP"] == pytest.approx(expected, abs=1e-12)


def test_text_with_duplicates_and_another_class_list(
    command: Run, real_data: Path, tmp_path: Path
) -> None:
    twice = tmp_path / "twice"
    shutil.copytree(real_data / FOUND["corners"][0], twice)
    for path in twice.iterdir():
        path.chmod(0o644)
        path.write_text(path.read_text() * 2)
    truth = ("--gt", str(real_data / TRUTHS["voc"][0]))
    names = ("--class-names", str(real_data / "voc-100/voc.names"))
    assert "[repeated-detections]" in command("eval", *truth, "--dt", str(twice), *names).err
    other = ("--class-names", str(real_data / "yolo-voc-100/data.yaml"))
    detections = ("--dt", str(real_data / FOUND["corners"][0]))
    assert "[classes-permuted]" in command("eval", *truth, *detections, *other).err
    sides = ("--dt", str(real_data / FOUND["sides"][0]))
    ended = command("eval", *truth, *sides, *names)
    assert ended.status == 2
    assert "they look like x, y, width and height" in ended.err


@pytest.mark.parametrize("detections", ["corners", "sides"])
def test_numbers_of_another_class_list_with_yolo(
    command: Run, real_data: Path, detections: str
) -> None:
    """The hint is followed, and gives the known metric."""
    truth = ("--gt", str(real_data / TRUTHS["yolo"][0]), "--image-sizes", str(real_data / SIZES))
    path, options = FOUND[detections]
    call = (
        "eval",
        *truth,
        "--dt",
        str(real_data / path),
        "--dt-boxes",
        options.get("boxes", "xyxy"),
    )
    refused = command(*call)
    assert "pass --dt-class-names FILE" in refused.err
    names = str(real_data / options["class_names"])
    ended = command(*call, "--dt-class-names", names, "--output-format", "json")
    assert ended.status == 0, ended.err
    expected = json.loads((real_data / BY_YOLO).read_text())["AP50"]
    assert json.loads(ended.out)["summary"]["AP50"] == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        ("dt", "--layout", "image-files", "--class-names", "voc.names"),
        ("dt", "--layout", "image-files", "--dt-class-names", "voc.names"),
        ("dt.json",),
    ],
)
def test_detections_without_ground_truth_use_the_names_of_their_list(
    command: Run, tmp_path: Path, call: tuple[str, ...]
) -> None:
    results = {
        "categories": [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 1, 9, 9], "score": 0.5}],
    }
    write(
        tmp_path,
        {
            "dt/a.txt": "1 0.5 1 1 9 9\n",
            "voc.names": "cat\ndog\n",
            "dt.json": json.dumps(results),
        },
    )
    paths = [str(tmp_path / word) if "." in word or word == "dt" else word for word in call]
    ended = command("check", "--dt", *paths)
    assert ended.status == 0, ended.err
    assert "dog" in ended.out


@pytest.mark.parametrize("detections", ["corners", "sides"])
def test_text_with_the_score_in_the_last_column_is_named(
    command: Run, real_data: Path, tmp_path: Path, detections: str
) -> None:
    given = real_data / FOUND[detections][0]
    for path in given.iterdir():
        lines = [line.split() for line in path.read_text().splitlines()]
        text = "".join(" ".join([name, *box, score]) + "\n" for name, score, *box in lines)
        (tmp_path / path.name).write_text(text)
    names = ("--class-names", str(real_data / "voc-100/voc.names"))
    boxes = ("--dt-boxes", FOUND[detections][1].get("boxes", "xyxy"))
    truth = ("--gt", str(real_data / TRUTHS["voc"][0]))
    ended = command("eval", *truth, "--dt", str(tmp_path), *names, *boxes)
    assert ended.status == 2
    assert "the last column looks like the score" in ended.err
