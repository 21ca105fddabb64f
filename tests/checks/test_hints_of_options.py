"""Hints that name an option: with it the check passes, and the number is that of right data."""

import gzip
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import detap
from tests.checks.test_hints import (
    FOUND,
    HEIGHT,
    HINTS,
    NAMES,
    TRUTHS,
    WIDTH,
    coco,
    in_format,
    lines,
    text,
)
from tests.checks.test_hints import yolo as yolo_files
from tests.cli.conftest import Run
from tests.formats.voc_files import write

STRICT = ("--iou", "0.75", "--protocol", "dota")
Rows = Sequence[Sequence[float]]
Columns = Callable[[str, list[str], str], list[str]]


class Case(NamedTuple):
    """Arguments of an evaluation, its hint, what it advises, and the arguments of right data."""

    given: list[str]
    hint: str
    advised: list[str]
    right: list[str]


CASES: dict[str, Callable[[Path, list[str]], Case]] = {}


def case(make: Callable[[Path, list[str]], Case]) -> Callable[[Path, list[str]], Case]:
    """Add a case by the name of its function, which gets a folder and right COCO files."""
    CASES[make.__name__.strip("_").replace("_", " ")] = make
    return make


def value_of(arguments: Sequence[str], folder: Path, command: Run) -> tuple[str, float]:
    """Return the messages and the primary metric, NaN after an error."""
    report = folder / "value.json"
    report.unlink(missing_ok=True)
    protocol = [] if "--protocol" in arguments else ["--protocol", "coco"]
    messages = command("eval", *arguments, *protocol, "-o", report).err
    if not report.exists():
        return messages, np.nan
    return messages, next(iter(json.loads(report.read_text())["summary"].values()))


def yolo(
    folder: Path,
    columns: Columns = lambda name, box, score: [name, *box, score],
    detected: Rows = FOUND,
    truth_columns: Columns = lambda name, box, score: [name, *box],
) -> list[str]:
    """Write YOLO labels and predictions with these columns of class, box and confidence."""
    given = yolo_files(folder, images=True)
    for part, rows, arrange in (("labels", TRUTHS, truth_columns), ("run", detected, columns)):
        files = {f"{part}/{k}.txt": "" for k in range(8)}
        for row in rows:
            box, score = in_fractions(in_format(row, "xywh")), repr(row[2]) * (part == "run")
            words = arrange(str(int(row[1])), box, score)
            files[f"{part}/{int(row[0])}.txt"] += " ".join(words) + "\n"
        write(folder, files)
    return given


def corners(box: list[str]) -> list[str]:
    x, y, w, h = map(float, box)
    left, right, top, bottom = x - w / 2, x + w / 2, y - h / 2, y + h / 2
    return [*map(repr, (left, top, right, top, right, bottom, left, bottom))]


def in_fractions(box: Sequence[float]) -> list[str]:
    """Return a box x, y, width, height in pixels as YOLO's center and size."""
    x, y, w, h = box
    return [*map(repr, ((x + w / 2) / WIDTH, (y + h / 2) / HEIGHT, w / WIDTH, h / HEIGHT))]


def dota(folder: Path, shape: Callable[[Sequence[float]], list[float]]) -> list[str]:
    """Write DOTA's text of the shapes of boxes x, y, width, height."""
    files = {f"gt/{k}.txt": "" for k in range(8)}
    files |= {f"dt/Task1_{name}.txt": "" for name in NAMES}
    for part, rows in (("gt", TRUTHS), ("dt", FOUND)):
        for row in rows:
            numbers = " ".join(map(repr, shape(in_format(row, "xywh"))))
            image, name = int(row[0]), NAMES[int(row[1])]
            if part == "gt":
                files[f"gt/{image}.txt"] += f"{numbers} {name} 0\n"
            else:
                files[f"dt/Task1_{name}.txt"] += f"{image} {row[2]} {numbers}\n"
    write(folder, files)
    return [
        str(folder / "gt"),
        str(folder / "dt"),
        *["--format", "dota", "--iou", "0.75", "--protocol", "dota"],
    ]


def conf_first(name: str, box: list[str], score: str) -> list[str]:
    return [name, score, *box]


# --- --columns


def _fitting(moved: int) -> Rows:
    """Return 16 detections whose boxes fit either order of the columns, the last ones moved."""
    rows = [[*row[:2], 0.5 + k / 1000, *row[3:]] for k, row in enumerate(TRUTHS[:16])]
    for row in rows[16 - moved :]:
        row[3], row[5] = row[3] + 40, row[5] + 40
    return rows


@case
def columns_of_class_names(folder: Path, _: list[str]) -> Case:
    """Rows with names are taken for those of Padilla's tools; low scores fit as a height."""
    detected = [[*row[:2], row[2] / 10, *row[3:]] for row in _fitting(2)]

    def named(name: str, box: list[str], score: str) -> list[str]:
        return [NAMES[int(name)], *box, score]

    given = [*yolo(folder / "names", named, detected), "--dt-format", "yolo"]
    right = yolo(folder / "numbers", detected=detected)
    return Case(given, r"\(else --columns conf-last\)", ["--columns", "conf-last"], right)


@case
def columns_of_few_rows(folder: Path, _: list[str]) -> Case:
    given = yolo(folder / "first", conf_first, _fitting(2))
    right = yolo(folder / "last", detected=_fitting(2))
    return Case(given, "use --columns conf-first", ["--columns", "conf-first"], right)


@case
def columns_of_few_rows_that_overlap_little(folder: Path, _: list[str]) -> Case:
    given = yolo(folder / "first", conf_first, _fitting(14))
    right = yolo(folder / "last", detected=_fitting(14))
    return Case(given, r"\(--columns conf-first\)", ["--columns", "conf-first"], right)


# --- class names and numbers


def names_file(folder: Path, *names: str) -> str:
    write(folder, {"names.txt": "".join(f"{name}\n" for name in names)})
    return str(folder / "names.txt")


def results(folder: Path, first: int, detected: Rows = FOUND) -> str:
    """Write COCO results whose categories are numbered from `first`."""
    records = [
        {"image_id": str(row[0]), "category_id": row[1] + first, "score": row[2],
         "bbox": in_format(row, "xywh")} for row in detected
    ]  # fmt: skip
    write(folder, {"dt.json": json.dumps(records)})
    return str(folder / "dt.json")


@case
def class_names_of_results(folder: Path, right: list[str]) -> Case:
    given = [text(folder)[0], results(folder, 0)]
    return Case(given, "--class-names FILE", ["--class-names", names_file(folder, *NAMES)], right)


@case
def first_category_id_that_is_unclear(folder: Path, _: list[str]) -> Case:
    names = names_file(folder, "no", *NAMES)
    detected = [row for row in FOUND if row[0] == 0]
    given = [text(folder)[0], results(folder, 1, detected), "--class-names", names]
    right = [text(folder)[0], results(folder / "right", 0, detected)]
    right += ["--class-names", names_file(folder / "right", *NAMES)]
    return Case(given, r"\(--first-category-id\)", ["--first-category-id", "0"], right)


def _permuted(rows: Rows) -> Rows:
    return [[row[0], 1 - row[1], *row[2:]] for row in rows]


@case
def dt_class_names_of_permuted_yolo(folder: Path, right: list[str]) -> Case:
    given = yolo(folder, detected=_permuted(FOUND))
    names = names_file(folder, *NAMES[::-1])
    return Case(given, "with --dt-class-names", ["--dt-class-names", names], right)


@case
def dt_class_names_of_permuted_results(folder: Path, right: list[str]) -> Case:
    given = [coco(folder)[0], results(folder, 1, _permuted(FOUND))]
    names = names_file(folder, *NAMES[::-1])
    return Case(given, "with --dt-class-names", ["--dt-class-names", names], right)


@case
def dt_class_names_of_permuted_json_lines(folder: Path, right: list[str]) -> Case:
    given = lines(folder)
    records = [json.loads(line) for line in Path(given[1]).read_text().splitlines()]
    for record in records:
        names = record["objects"].pop("category")
        record["objects"]["category_id"] = [2 - NAMES.index(name) for name in names]
    write(folder, {"dt.jsonl": "".join(f"{json.dumps(record)}\n" for record in records)})
    names = names_file(folder, *NAMES[::-1])
    given = [coco(folder)[0], given[1]]
    return Case(given, "with --dt-class-names", ["--dt-class-names", names], right)


@case
def dt_class_names_of_permuted_text(folder: Path, right: list[str]) -> Case:
    given = text(folder)
    for part, names in (("gt", NAMES), ("dt", NAMES[::-1])):
        for file in (folder / part).iterdir():
            words = [line.split(maxsplit=1) for line in file.read_text().splitlines()]
            file.write_text("".join(f"{names.index(name)} {rest}\n" for name, rest in words))
    given += ["--class-names", names_file(folder, *NAMES)]
    other = names_file(folder / "other", *NAMES[::-1])
    return Case(given, "with --dt-class-names", ["--dt-class-names", other], right)


@case
def dt_class_names_of_numbers(folder: Path, right: list[str]) -> Case:
    given = text(folder)
    for file in (folder / "dt").iterdir():
        words = [line.split(maxsplit=1) for line in file.read_text().splitlines()]
        file.write_text("".join(f"{NAMES.index(name)} {rest}\n" for name, rest in words))
    names = names_file(folder, *NAMES)
    return Case(given, "pass --dt-class-names FILE", ["--dt-class-names", names], right)


@case
def dt_class_names_of_another_list(folder: Path, right: list[str]) -> Case:
    given = [str(folder / "data.yaml"), yolo(folder, detected=_permuted(FOUND))[1]]
    write(folder, {"run/classes.txt": "dog\ncat\n"})
    names = str(folder / "run/classes.txt")
    return Case(given, "pass --dt-class-names", ["--dt-class-names", names], right)


# --- --task


def as_segments(name: str, box: list[str], score: str = "") -> list[str]:
    return [name, *corners(box), *filter(None, [score])]


def _hexagon(name: str, box: list[str], score: str = "") -> list[str]:
    """Return a row of six points, all on the box."""
    x, y, w, h = map(float, box)
    left, right, top, bottom = x - w / 2, x + w / 2, y - h / 2, y + h / 2
    points = [left, y, left, top, right, top, right, y, right, bottom, left, bottom]
    return [name, *map(repr, points), *filter(None, [score])]


def _crossed(name: str, box: list[str], score: str = "") -> list[str]:
    """Return four corners in an order that crosses itself."""
    corner = corners(box)
    return [name, *corner[:4], *corner[6:], *corner[4:6], *filter(None, [score])]


def _kite(name: str, box: list[str], score: str = "") -> list[str]:
    """Return the middles of the sides, the lower one moved."""
    x, y, w, h = map(float, box)
    points = (x - w / 2, y, x, y - h / 2, x + w / 2, y, x + w / 8, y + h / 2)
    return [name, *map(repr, points), *filter(None, [score])]


def kite_in_pixels(box: Sequence[float]) -> list[float]:
    """Return the corners of the kite in a box x, y, width, height."""
    points = map(float, _kite("", in_fractions(box))[1:])
    return [value * (HEIGHT if k % 2 else WIDTH) for k, value in enumerate(points)]


@case
def task_of_oriented_boxes_that_are_no_rectangles(folder: Path, _: list[str]) -> Case:
    """Kites, whose exact IoU is that of the same corners in DOTA's text."""
    given = [*yolo(folder, _kite, truth_columns=_kite), *STRICT]
    right = dota(folder / "dota", kite_in_pixels)
    return Case(given, "for oriented boxes pass --task obb", ["--task", "obb"], right)


@case
def task_of_boxes_with_kpt_shape(folder: Path, right: list[str]) -> Case:
    given = yolo(folder)
    file = Path(given[-1])
    file.write_text(f"{file.read_text()}kpt_shape: [5, 3]\n")
    return Case(given, "without keypoints pass --task detect", ["--task", "detect"], right)


@case
def task_of_a_run_of_boxes(folder: Path, right: list[str]) -> Case:
    given = yolo(
        folder, truth_columns=lambda name, box, _: [name, *box, *(["0.5", "0.5", "2"] * 5)]
    )
    file = Path(given[-1])
    file.write_text(f"{file.read_text()}kpt_shape: [5, 3]\n")
    write(folder, {"run/args.yaml": "task: detect\n"})
    return Case(given, "pass --task detect to evaluate boxes", ["--task", "detect"], right)


# --- --layout


@case
def layout_that_is_unclear(folder: Path, _: list[str]) -> Case:
    """Two images have the names of the two classes, and only these have detections."""
    detected = [row for row in FOUND if row[0] < 2]
    right = [coco(folder)[0], results(folder, 1, detected)]
    images = {f"{k}.png": f"{name}.png" for k, name in enumerate(NAMES)}
    truth = json.loads(Path(right[0]).read_text())
    for image in truth["images"]:
        image["file_name"] = images.get(image["file_name"], image["file_name"])
    files = dict.fromkeys((f"dt/{name}.txt" for name in NAMES), "")
    for row in detected:
        box = " ".join(map(str, in_format(row, "xyxy")))
        files[f"dt/{NAMES[int(row[1])]}.txt"] += f"{NAMES[int(row[0])]} {row[2]} {box}\n"
    write(folder, {"truth.json": json.dumps(truth), **files})
    given = [str(folder / "truth.json"), str(folder / "dt")]
    return Case(given, "use --layout class-files", ["--layout", "class-files"], right)


# --- --split


@case
def split_of_a_folder(folder: Path, right: list[str]) -> Case:
    for split in ("train", "valid"):
        write(folder, {f"{split}/_annotations.coco.json": Path(right[0]).read_text()})
    return Case([str(folder), right[1]], "choose one with --split", ["--split", "train"], right)


@case
def split_that_is_not_there(folder: Path, right: list[str]) -> Case:
    given = [*split_of_a_folder(folder, right).given, "--split", "other"]
    return Case(given, "use another --split", ["--split", "valid"], right)


@case
def split_of_a_data_yaml(folder: Path, right: list[str]) -> Case:
    given = yolo(folder)
    write(folder, {"data.yaml": "train: images\nnames: [cat, dog]\n"})
    given = [given[-1], given[1]]
    return Case(given, "use another --split", ["--split", "train"], right)


# --- --shapes


@case
def shapes_of_rotated_boxes_in_coco(folder: Path, right: list[str]) -> Case:
    """A turn by 90 degrees exchanges width and height: boxes are written for that."""
    given = [str(folder / "gt.json"), right[1]]
    truth = json.loads(Path(right[0]).read_text())
    for one in truth["annotations"]:
        x, y, w, h = one["bbox"]
        one["bbox"] = [x + w / 2 - h / 2, y + h / 2 - w / 2, h, w]
        one["attributes"] = {"rotation": 90.0}
    write(folder, {"gt.json": json.dumps(truth)})
    return Case(given, "--shapes bbox", ["--shapes", "bbox"], right)


@case
def shapes_of_polygons_in_documents(folder: Path, right: list[str]) -> Case:
    files = {}
    for image in range(8):
        own = [row for row in TRUTHS if row[0] == image]
        corners = [kite_in_pixels(in_format(row, "xywh")) for row in own]
        polygons: list[dict[str, Any]] = [
            {"label": NAMES[int(row[1])], "shape_type": "polygon"} for row in own
        ]
        for polygon, flat in zip(polygons, corners, strict=True):
            polygon["points"] = [*zip(flat[::2], flat[1::2], strict=True)]
        document = {"imagePath": f"{image}.png", "imageWidth": WIDTH, "imageHeight": HEIGHT}
        files[f"gt/{image}.json"] = json.dumps(document | {"shapes": polygons})
    write(folder, files)
    given = [str(folder / "gt"), text(folder)[1]]
    return Case(given, r"\(--shapes bbox\)", ["--shapes", "bbox"], right)


# --- --angle-unit


@case
def angle_unit(folder: Path, _: list[str]) -> Case:
    turn = 0.3
    cosine, sine = np.cos(turn), np.sin(turn)

    def angle(box: Sequence[float]) -> list[float]:
        x, y, w, h = box
        return [x + w / 2, y + h / 2, w, h, turn]

    def turned(box: Sequence[float]) -> list[float]:
        x, y, w, h, _ = angle(box)
        signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
        sides = [(a * w / 2, b * h / 2) for a, b in signs]
        points = [(x + u * cosine - v * sine, y + u * sine + v * cosine) for u, v in sides]
        return [float(value) for point in points for value in point]

    given, right = dota(folder / "angle", angle), dota(folder / "corners", turned)
    return Case(given, "with --angle-unit", ["--angle-unit", "radians"], right)


# --- --area-ranges


@case
def area_ranges_in_percent(folder: Path, right: list[str]) -> Case:
    truth = json.loads(Path(right[0]).read_text())
    for image in truth["images"]:
        del image["width"], image["height"]
    write(folder, {"gt.json": json.dumps(truth)})
    given = [str(folder / "gt.json"), right[1], "--area-ranges", "small=0:1%,large=1%:100%"]
    return Case(given, "use --area-ranges coco", ["--area-ranges", "coco"], right)


def open_images(folder: Path) -> list[str]:
    head = "ImageID,LabelName,{}XMin,XMax,YMin,YMax\n"
    tables = {"gt.csv": head.format(""), "dt.csv": head.format("Score,")}
    for file, rows in zip(tables, (TRUTHS, FOUND), strict=True):
        for row in rows:
            x1, y1, x2, y2 = in_format(row, "xyxy")
            score = f"{row[2]}," * (file == "dt.csv")
            box = ",".join(map(repr, (x1 / WIDTH, x2 / WIDTH, y1 / HEIGHT, y2 / HEIGHT)))
            tables[file] += f"{int(row[0])},{NAMES[int(row[1])]},{score}{box}\n"
    write(folder, tables)
    return [str(folder / name) for name in tables]


@case
def image_sizes_of_normalized_boxes(folder: Path, right: list[str]) -> Case:
    given, sizes = open_images(folder), yolo_files(folder)[3].replace("data.yaml", "sizes.csv")
    return Case(given, "pass --image-sizes FILE", ["--image-sizes", sizes], right)


@case
def no_inclusive_pixels_of_normalized_boxes(folder: Path, right: list[str]) -> Case:
    exact = ["--protocol", "voc2007", "--no-inclusive-pixels", "--iou", "0.75"]
    given = [*open_images(folder), "--protocol", "voc2007", "--iou", "0.75"]
    return Case(given, "or --no-inclusive-pixels", exact[2:3], [*right, *exact])


# --- limits


@case
def max_nesting(folder: Path, right: list[str]) -> Case:
    truth = json.loads(Path(right[0]).read_text())
    deep: list[Any] = []
    for _ in range(120):
        deep = [deep]
    write(folder, {"gt.json": json.dumps(truth | {"info": {"deep": deep}})})
    given = [str(folder / "gt.json"), right[1]]
    return Case(given, "with --max-nesting", ["--max-nesting", "150"], right)


@case
def max_expansion(folder: Path, right: list[str]) -> Case:
    """More than 16 MiB of spaces in few bytes."""
    data = gzip.compress(b" " * (17 << 20) + Path(right[0]).read_bytes())
    write(folder, {"gt.json.gz": data})
    given = [str(folder / "gt.json.gz"), right[1]]
    return Case(given, "with --max-expansion", ["--max-expansion", "2000"], right)


@case
def max_nesting_of_xml(folder: Path, right: list[str]) -> Case:
    """VOC's XML with elements of another tool."""
    detap.convert(folder / "voc", detap.read_ground_truth(right[0]), to="voc")
    deep = f"{'<more>' * 120}{'</more>' * 120}<object>"
    path = folder / "voc/Annotations/0.xml"
    path.write_text(path.read_text().replace("<object>", deep, 1))
    given = [str(folder / "voc"), text(folder)[1]]
    return Case(given, "with --max-nesting", ["--max-nesting", "150"], right)


# --- other options


@case
def image_sizes_beside_pixels(folder: Path, right: list[str]) -> Case:
    given = [open_images(folder)[0], text(folder)[1]]
    sizes = yolo_files(folder)[3].replace("data.yaml", "sizes.csv")
    return Case(given, "pass --image-sizes FILE", ["--image-sizes", sizes], right)


def _via(folder: Path) -> list[str]:
    """Write VIA's JSON with an id and the class of each region, and text detections."""
    detap.convert(folder / "via", detap.read_ground_truth(coco(folder)[0]), to="via")
    path = folder / "via/via_region_data.json"
    images = json.loads(path.read_text())
    for image in images.values():
        for number, region in enumerate(image["regions"]):
            region["region_attributes"]["id"] = str(number)
    path.write_text(json.dumps(images))
    return [str(path), text(folder)[1]]


@case
def model_version_of_two(folder: Path, right: list[str]) -> Case:
    """The second model misses everything."""
    truth = detap.read_ground_truth(right[0])
    detap.convert(folder / "out", truth, detap.read_detections(right[1], truth), to="labelstudio")
    tasks = json.loads((folder / "out/tasks.json").read_text())
    for task in tasks:
        (good,) = task["predictions"]
        missed = [one | {"value": one["value"] | {"x": 0}} for one in good["result"]]
        models = {"good": good, "bad": good | {"result": missed}}
        task["annotations"] = []
        task["predictions"] = [made | {"model_version": name} for name, made in models.items()]
    write(folder, {"dt.json": json.dumps(tasks)})
    given = [text(folder)[0], str(folder / "dt.json"), "--dt-format", "labelstudio"]
    return Case(given, "one with --model-version", ["--model-version", "good"], right)


@case
def boxes_that_contradict_the_file(folder: Path, right: list[str]) -> Case:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    records = json.loads(Path(right[1]).read_text())
    table = pyarrow.Table.from_pylist(records).replace_schema_metadata({"boxes": "xywh"})
    parquet.write_table(table, folder / "dt.parquet")
    given = [right[0], str(folder / "dt.parquet"), "--dt-boxes", "xyxy"]
    return Case(given, "omit --boxes", ["--dt-boxes", "xywh"], right)


# --- hints on shapes, and others, as those of test_hints

MORE: dict[str, tuple[Callable[[Path], list[str]], str, list[str]]] = {
    "polygons of one length": (
        lambda f: yolo(f, _hexagon, truth_columns=_hexagon),
        "for polygons pass --task segment", ["--task", "segment"],
    ),
    "polygons of four corners": (
        lambda f: yolo(f, _crossed, truth_columns=_crossed),
        "for polygons of four corners pass --task segment", ["--task", "segment"],
    ),
    "corners taken for oriented boxes": (
        lambda f: yolo(f, _kite, truth_columns=_kite),
        "else pass --task segment|--task segment", ["--task", "segment"],
    ),
    "track ids that may be coordinates": (
        lambda f: [*yolo(f, lambda *row: [*as_segments(*row), "1"], truth_columns=as_segments),
                   "--shapes", "bbox"],
        r"pass --task \(detect, segment, obb\)", ["--task", "obb"],
    ),
    "oriented labels": (
        lambda f: yolo(f, truth_columns=_kite),
        "use .*--shapes bbox for their bounding", ["--shapes", "bbox"],
    ),
    "corners and boxes": (
        lambda f: [*yolo(f, truth_columns=_kite), "--iou-type", "polygon"],
        "use --iou-type bbox --shapes bbox", ["--iou-type", "bbox", "--shapes", "bbox"],
    ),
    "polygons for quadrilaterals": (
        lambda f: [*yolo(f, truth_columns=_hexagon), "--iou-type", "polygon", "--task", "segment"],
        "or --iou-type bbox", ["--iou-type", "bbox"],
    ),
    "shapes of DOTA": (
        lambda f: dota(f, kite_in_pixels)[:-4],  # without --iou and --protocol
        "--shapes bbox for their bounding", ["--shapes", "bbox"],
    ),
    "area ranges of boxes of unknown size": (
        open_images, "or --area-ranges none", ["--area-ranges", "none"]
    ),
    "max records": (
        lambda f: [*coco(f), "--max-records", "31"], "with --max-records", ["--max-records", "32"]
    ),
    "max file size": (
        lambda f: [*coco(f), "--max-file-size", "2000"],
        "with --max-file-size", ["--max-file-size", "20000"],
    ),
    "class attribute of two": (_via, "with --class-attribute", ["--class-attribute", "label"]),
}  # fmt: skip

for _name, (_make, _hint, _options) in (HINTS | MORE).items():

    def _of_boxes(
        folder: Path, right: list[str], make: Any = _make, hint: str = _hint, named: Any = _options
    ) -> Case:
        options = [str(folder / o) if o.endswith((".csv", ".txt")) else o for o in named]
        return Case(make(folder), hint, options, right)

    CASES[_name] = _of_boxes


@pytest.mark.parametrize("name", CASES)
def test_a_hint_is_followed(name: str, tmp_path: Path, command: Run) -> None:
    right_folder, folder = tmp_path / "right", tmp_path / "faulty"
    right_folder.mkdir()
    folder.mkdir()
    given, hint, advised, right = CASES[name](folder, coco(right_folder))
    messages, expected = value_of(right, tmp_path, command)
    assert 0 < expected < 1, messages
    messages, before = value_of(given, tmp_path, command)
    assert re.search(hint, messages), messages
    assert before != pytest.approx(expected, abs=1e-9)
    messages, after = value_of([*given, *advised], tmp_path, command)
    assert after == pytest.approx(expected, abs=1e-9), messages
    assert not re.search(hint, messages), messages


# --- options of the protocol, whose AP of this data is that of COCO

PROTOCOLS = {
    "masks are missing": ("--protocol coco-segm", "--iou-type bbox"),
    "keypoints are missing": ("--iou-type keypoints", "--iou-type bbox"),
    "quadrilaterals are missing": ("--iou-type polygon", "--iou-type bbox"),
    "lists of classes are missing": (
        "--protocol lvis", "--verified all --not-exhaustive count"
    ),
    "limits of a data set": ("--max-dets-scope dataset", "--max-dets 10000"),
    "bounds of a data set's limit": (
        "--tie-range --max-dets 10000 --max-dets-scope dataset", "--max-dets-scope class"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_hint_on_the_protocol_is_followed(name: str, tmp_path: Path, command: Run) -> None:
    given, advised = PROTOCOLS[name]
    files = coco(tmp_path)
    _, expected = value_of(files, tmp_path, command)
    messages, before = value_of([*files, *given.split()], tmp_path, command)
    assert np.isnan(before)
    assert f"use {advised}" in messages
    messages, after = value_of([*files, *given.split(), *advised.split()], tmp_path, command)
    assert after == pytest.approx(expected, abs=1e-9), messages
