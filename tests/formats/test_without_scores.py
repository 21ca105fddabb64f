"""Detections without scores in every format: all records have a score, or none."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import detap
from detap.checks.boxes import check_boxes
from detap.errors import DetapWarning, InputError
from detap.tables.detection import Detections, GroundTruth
from tests.cli.conftest import Run, spawn
from tests.coco import read as read_pair
from tests.coco import saved, truth_of

Scores = Sequence[float | None]

# A cat and a dog in an image of 100 x 80.
CORNERS = [[10, 20, 40, 60], [50, 60, 80, 70]]
NONE: Scores = (None, None)
SOME: Scores = (None, 0.5)
ALL: Scores = (0.25, 0.5)


@pytest.fixture
def truth() -> GroundTruth:
    return GroundTruth.from_arrays(
        image=["a", "a"],
        label=["cat", "dog"],
        boxes=[[12, 22, 40, 60], [50, 60, 80, 70]],
        classes=["cat", "dog"],
        image_sizes=[[100, 80]],
    )


class Case(NamedTuple):
    """Files of a format: $ is the place of a score, @ that of the title of their column."""

    format: str
    files: dict[str, str]  # content by path; "" for a single file
    score: str  # the text of a score
    location: str  # of the first record
    title: str = ""
    no_score: str = ""


COCO = """[{"image_id": "a", "category_id": "cat", "bbox": [10, 20, 30, 40]$},
    {"image_id": "a", "category_id": "dog", "bbox": [50, 60, 30, 10]$}]"""
LINE = """{"file_name": "a.jpg", "objects": [{"category": "cat", "bbox": [10, 20, 30, 40]$},
    {"category": "dog", "bbox": [50, 60, 30, 10]$}]}""".replace("\n", "")
LISTS = """{"file_name": "a.jpg", "objects": {"category": ["cat", "dog"], "score": [$, $],
    "bbox": [[10, 20, 30, 40], [50, 60, 30, 10]]}}""".replace("\n", "")
SCORE, CONFIDENCE = ', "score": {}', ', "confidence": {}'
KITTI = "-1 -1 -1 -1000 -1000 -1000 -10"
LABEL_STUDIO = """[{"data": {"image": "a.jpg"}, "predictions": [{"result": [
    {"type": "rectanglelabels", "original_width": 100, "original_height": 80, "value":
    {"x": 10, "y": 25, "width": 30, "height": 50, "rectanglelabels": ["cat"]}$},
    {"type": "rectanglelabels", "original_width": 100, "original_height": 80, "value":
    {"x": 50, "y": 75, "width": 30, "height": 12.5, "rectanglelabels": ["dog"]}$}]}]}]"""
VIA = """{"a": {"filename": "a.jpg", "regions": [
    {"shape_attributes": {"name": "rect", "x": 10, "y": 20, "width": 30, "height": 40},
    "region_attributes": {"label": "cat"$}},
    {"shape_attributes": {"name": "rect", "x": 50, "y": 60, "width": 30, "height": 10},
    "region_attributes": {"label": "dog"$}}]}}"""
SUPERVISELY = """{"size": {"height": 80, "width": 100}, "objects": [
    {"classTitle": "cat", "geometryType": "rectangle",
    "points": {"exterior": [[10, 20], [40, 60]]}, "tags": [$]},
    {"classTitle": "dog", "geometryType": "rectangle",
    "points": {"exterior": [[50, 60], [80, 70]]}, "tags": [$]}]}"""
NAMES = {"classes.txt": "cat\ndog\n"}
TF_CSV = """filename,width,height,class,xmin,ymin,xmax,ymax@
a.jpg,100,80,cat,10,20,40,60$
a.jpg,100,80,dog,50,60,80,70$"""
OPEN_IMAGES = """ImageID,LabelName,XMin,XMax,YMin,YMax@
a,cat,.1,.4,.25,.75$
a,dog,.5,.8,.75,.875$"""

FORMATS = {
    "COCO list": Case("coco", {"": COCO}, SCORE, ": [0]"),
    "COCO null": Case("coco", {"": COCO}, SCORE, ": [0]", no_score=SCORE.format("null")),
    "COCO odd": Case("coco", {"": COCO}, ', "sc\\u006fre": {}', ": [0]"),
    "COCO dict": Case(
        "coco",
        {"": f'{{"images": [{{"id": "a"}}], "categories": [], "annotations": {COCO}}}'},
        *(SCORE, ": annotations[0]"),
    ),
    "JSON Lines": Case("jsonl", {"": LINE}, SCORE, ": line 1: objects[0]"),
    "lists": Case("jsonl", {"": LISTS}, "{}", ": line 1: objects[0]", no_score="null"),
    "VOC": Case("voc", {"a.txt": "cat$ 10 20 40 60\ndog$ 50 60 80 70"}, " {}", "/a.txt: line 1"),
    "VOC by class": Case(
        "voc",
        {"det_val_cat.txt": "a$ 10 20 40 60", "det_val_dog.txt": "a$ 50 60 80 70"},
        *(" {}", "/det_val_cat.txt: line 1"),
    ),
    "KITTI": Case(
        "kitti",
        {"a.txt": f"cat -1 -1 -10 10 20 40 60 {KITTI}$\ndog -1 -1 -10 50 60 80 70 {KITTI}$"},
        *(" {}", "/a.txt: line 1"),
    ),
    "DOTA": Case(
        "dota",
        {
            "Task1_cat.txt": "a$ 10 20 40 20 40 60 10 60",
            "Task1_dog.txt": "a$ 50 60 80 60 80 70 50 70",
        },
        *(" {}", "/Task1_cat.txt: line 1"),
    ),
    "YOLO": Case(
        "yolo",
        {**NAMES, "a.txt": "0 .25 .5 .3 .5$\n1 .65 .8125 .3 .125$"},
        *(" {}", "/a.txt: line 1"),
    ),
    "TensorFlow CSV": Case("tfcsv", {"": TF_CSV}, ",{}", ": line 2", ",score", ","),
    "Open Images": Case("openimages", {"": OPEN_IMAGES}, ",{}", ": line 2", ",Score", ","),
    "CVAT": Case(
        "cvat",
        {
            "": """<annotations><image id="0" name="a.jpg" width="100" height="80">
<box label="cat" xtl="10" ytl="20" xbr="40" ybr="60"$/>
<box label="dog" xtl="50" ytl="60" xbr="80" ybr="70"$/></image></annotations>"""
        },
        *(' score="{}"', ": line 2"),
    ),
    "LabelMe": Case(
        "labelme",
        {
            "a.json": """{"imagePath": "a.jpg", "imageWidth": 100, "imageHeight": 80, "shapes": [
    {"label": "cat", "shape_type": "rectangle", "points": [[10, 20], [40, 60]]$},
    {"label": "dog", "shape_type": "rectangle", "points": [[50, 60], [80, 70]]$}]}"""
        },
        *(SCORE, "/a.json: shapes[0]"),
    ),
    "Label Studio": Case(
        "labelstudio", {"": LABEL_STUDIO}, SCORE, ": [0].predictions[0].result[0]"
    ),
    "Roboflow": Case(
        "roboflow",
        {
            "a.json": """{"image": {"width": 100, "height": 80}, "predictions": [
    {"class": "cat", "x": 25, "y": 40, "width": 30, "height": 40$},
    {"class": "dog", "x": 65, "y": 65, "width": 30, "height": 10$}]}"""
        },
        *(CONFIDENCE, "/a.json: predictions[0]"),
    ),
    "CreateML": Case(
        "createml",
        {
            "": """[{"image": "a.jpg", "annotations": [
    {"label": "cat", "coordinates": {"x": 25, "y": 40, "width": 30, "height": 40}$},
    {"label": "dog", "coordinates": {"x": 65, "y": 65, "width": 30, "height": 10}$}]}]"""
        },
        *(CONFIDENCE, ": [0].annotations[0]"),
    ),
    "VIA": Case("via", {"": VIA}, ', "score": "{}"', ': "a".regions[0]'),
    "Datumaro": Case(
        "datumaro",
        {
            "": """{"categories": {"label": {"labels": [{"name": "cat"}, {"name": "dog"}]}},
    "items": [{"id": "a", "annotations": [
    {"type": "bbox", "label_id": 0, "bbox": [10, 20, 30, 40], "attributes": {"n": 1$}},
    {"type": "bbox", "label_id": 1, "bbox": [50, 60, 30, 10], "attributes": {"n": 1$}}]}]}"""
        },
        *(SCORE, ": items[0].annotations[0]"),
    ),
    "Supervisely": Case(
        "supervisely",
        {"ann/a.jpg.json": SUPERVISELY},
        *('{{"name": "confidence", "value": {}}}', "/ann/a.jpg.json: objects[0]"),
        no_score='{"name": "confidence", "value": null}',
    ),
}
OPTIONS: dict[str, dict[str, Any]] = {"VIA": {"class_attribute": "label"}}
SUFFIXES = {"jsonl": ".jsonl", "tfcsv": ".csv", "openimages": ".csv", "cvat": ".xml"}


def filled(case: Case, text: str, scores: list[float | None]) -> str:
    """Return a text with the next scores, and a title only for scores."""
    has_title = any(score is not None for score in scores)
    text = text.replace("@", case.title if has_title else "")
    missing = case.no_score if has_title or not case.title else ""
    while "$" in text:
        score = scores.pop(0)
        number = missing if score is None else case.score.format(json.dumps(score))
        text = text.replace("$", number, 1)
    return text


def written(folder: Path, name: str, scores: Scores) -> Path:
    case, left = FORMATS[name], [*scores]
    is_folder = "" not in case.files
    path = folder / f"dt{'' if is_folder else SUFFIXES.get(case.format, '.json')}"
    for file, text in case.files.items():
        target = path / file if file else path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(filled(case, text, left) + "\n")
    return path


def read(path: Path, name: str, truth: GroundTruth) -> Detections:
    options = OPTIONS.get(name, {})
    return detap.read_detections(path, truth, format=FORMATS[name].format, **options)


@pytest.mark.parametrize("name", FORMATS)
def test_all_records_have_a_score_or_none(truth: GroundTruth, tmp_path: Path, name: str) -> None:
    scored = read(written(tmp_path / "all", name, ALL), name, truth)
    assert scored.score.tolist() == [*ALL]
    unscored = read(written(tmp_path / "none", name, NONE), name, truth)
    assert not unscored.has_scores
    assert np.isnan(unscored.score).all()
    for table in (unscored, scored):
        assert table.corners == pytest.approx(np.array(CORNERS))
        assert [table.classes[k] for k in table.label] == ["cat", "dog"]
    codes = {note.code for note in scored.notes} - {"columns-conf-last"}
    assert {note.code for note in unscored.notes} == codes


@pytest.mark.parametrize("name", FORMATS)
def test_a_missing_score_is_one_error(truth: GroundTruth, tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, SOME)
    with pytest.raises(InputError) as caught:
        read(path, name, truth)
    message = "score is missing; 1 of 2 records has none: give all records a score, or none"
    assert str(caught.value) == f"{path}{FORMATS[name].location}: {message}"


@pytest.mark.parametrize("name", FORMATS)
def test_detections_alone_are_checked(command: Run, tmp_path: Path, name: str) -> None:
    """Their classes are those that they name."""
    path = written(tmp_path, name, ALL)
    options = {"VIA": ["--class-attribute=label"], "VOC": ["--layout=image-files"]}
    options["YOLO"] = ["--image-size=100x80", f"--class-names={path / 'classes.txt'}"]
    words = ["--dt-format", FORMATS[name].format, "--output-format", "json"]
    report = command("check", "--dt", path, *words, *options.get(name, [])).report()
    assert {row["name"]: row["detections"] for row in report["classes"]} == {"cat": 1, "dog": 1}
    assert report["statistics"]["detections"] == 2


@pytest.mark.parametrize("column", [True, False])
def test_parquet(truth: GroundTruth, tmp_path: Path, column: bool) -> None:
    """A column of scores may be absent, or all null: with a type, or without."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "dt.parquet"
    columns: dict[str, Any] = {"image_id": ["a", "a"], "category": ["cat", "dog"]}
    columns |= dict(zip(("x1", "y1", "x2", "y2"), np.transpose(CORNERS), strict=True))
    kinds = [pa.null(), pa.float64()] if column else [None]
    for kind in kinds:
        scores = {"score": pa.array([None, None], kind)} if kind else {}
        parquet.write_table(pa.table({**columns, **scores}), path)
        assert np.isnan(detap.read_detections(path, truth).score).all()
    parquet.write_table(pa.table({**columns, "score": [0.5, None]}), path)
    with pytest.raises(InputError, match=r"row 1.*: score is missing; 1 of 2 records has none"):
        detap.read_detections(path, truth)


CSV = "filename,class,xmin,ymin,xmax,ymax"
OPEN_IMAGES = "ImageID,LabelName,XMin,XMax,YMin,YMax"


@pytest.mark.parametrize("header", [CSV, OPEN_IMAGES])
def test_without_rows_the_header_says_whether_there_are_scores(
    truth: GroundTruth, tmp_path: Path, header: str
) -> None:
    path, score = tmp_path / "dt.csv", "score" if header == CSV else "Score"
    for columns, has_scores in ((header, False), (f"{header},{score}", True)):
        path.write_text(f"{columns}\n")
        table = detap.read_detections(path, truth)
        assert (len(table), table.has_scores) == (0, has_scores)
        table.save(tmp_path / "dt.npz")
        assert Detections.load(tmp_path / "dt.npz").has_scores == has_scores
    with pytest.warns(DetapWarning, match="no detections: every AP is 0"):
        assert detap.evaluate(truth, table).summary["AP"] == 0
    none: dict[str, Any] = {"image": [], "label": [], "boxes": np.zeros((0, 4))}
    assert not Detections.from_arrays(**none).has_scores
    assert Detections.from_arrays(**none, score=[]).has_scores


def test_parquet_without_rows(truth: GroundTruth, tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = ("x1", "y1", "x2", "y2", "score")
    texts = {name: pa.array([], pa.string()) for name in ("image_id", "category")}
    for count in (4, 5):
        columns = texts | {name: pa.array([], pa.float64()) for name in names[:count]}
        parquet.write_table(pa.table(columns), tmp_path / "dt.parquet")
        table = detap.read_detections(tmp_path / "dt.parquet", truth)
        assert (len(table), table.has_scores) == (0, count == 5)


# --- in the formats


def coco(scores: Scores) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = json.loads(filled(FORMATS["COCO list"], COCO, [*scores]))
    return records


def test_all_of_several_inputs_have_scores_or_none(truth: GroundTruth, tmp_path: Path) -> None:
    """Each input is complete; empty ones count as either."""
    paths = [tmp_path / f"{name}.json" for name in "abc"]
    content: list[Any] = [coco(NONE)[:1], coco(ALL)[1:], []]
    for path, boxes in zip(paths, content, strict=True):
        path.write_text(json.dumps(boxes))
    message = f"{paths[0]}: records have no score, but those of {paths[1]} have one; give all "
    with pytest.raises(InputError, match=f"^{re.escape(message)}inputs scores, or none$"):
        detap.read_detections(paths, truth, merge_images=True)
    paths[1].write_text(json.dumps(coco(NONE)[1:]))
    joined = detap.read_detections(paths, truth, merge_images=True)
    assert len(joined) == 2
    assert np.isnan(joined.score).all()


def test_masks_and_keypoints_of_coco(tmp_path: Path) -> None:
    polygon = [[10, 20, 40, 20, 40, 60, 10, 60]]
    shapes: dict[str, Any] = {"segmentation": polygon, "keypoints": [10, 20, 2, 40, 60, 2]}
    truth = truth_of([(1, 1, [10, 20, 30, 40])], {1: "cat"}, [1], size=(100, 80), **shapes)
    truth["categories"][0]["keypoints"] = ["a", "b"]
    for shape, values in shapes.items():
        files = saved(tmp_path, truth, [{"image_id": 1, "category_id": 1, shape: values}])
        reading = "masks" if shape == "segmentation" else "keypoints"
        detections = read_pair(files, **{reading: True})[1]
        assert not detections.has_scores
        assert detections.corners.tolist() == [[10, 20, 40, 60]]


KEYPOINTS = " .1 .25 1 .4 .75 1"


@pytest.mark.parametrize(
    ("line", "yaml", "options"),
    [
        (f"0 .25 .5 .3 .5{KEYPOINTS}", "kpt_shape: [2, 3]\n", {"keypoints": True}),
        ("0 .1 .25 .4 .25 .4 .75 .1 .75", "", {"task": "segment", "masks": True}),
        # Track ids are whole numbers; a polygon may end at the border of its image.
        ("0 .1 .25 .4 .25 .4 .75 .25 1\n0 .1 .25 .4 .25 .4 .75", "", {"task": "segment"}),
        ("0 .1 .25 .4 .25 .4 .75 .1 .75", "", {"task": "obb"}),
        ("0 .25 .5 .3 .5", "", {"task": "detect"}),
    ],
)
def test_tasks_of_yolo(tmp_path: Path, line: str, yaml: str, options: dict[str, Any]) -> None:
    data = tmp_path / "data.yaml"
    data.write_text(f"names: [cat]\n{yaml}")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.txt").write_text(f"{line}\n")
    truth = GroundTruth.from_arrays(
        image=["a"], label=["cat"], boxes=[[10, 20, 40, 60]], image_sizes=[[100, 80]]
    )
    detections = detap.read_detections(
        tmp_path / "run", truth, format="yolo", class_names=data, **options
    )
    assert np.isnan(detections.score).all()
    assert len(detections) == line.count("\n") + 1
    assert detections.corners[-1].tolist() == pytest.approx([10, 20, 40, 60])


def test_a_named_attribute_must_be_there(truth: GroundTruth, tmp_path: Path) -> None:
    """A misspelled name would leave out all scores."""
    path = written(tmp_path, "Datumaro", ALL)
    message = "no object has 'p'; correct --score-attribute, or omit it if there are no scores"
    with pytest.raises(InputError, match=message):
        detap.read_detections(path, truth, format="datumaro", score_attribute="p")
    assert detap.read_detections(path, truth, format="datumaro").has_scores


# --- tables, files that are written, checks


@pytest.fixture
def unscored(truth: GroundTruth) -> Detections:
    image, label, boxes = ["a", "a"], ["cat", "dog"], CORNERS
    table = Detections.from_arrays(image=image, label=label, boxes=boxes)
    return table.reindex_like(truth)


WRITTEN = ("coco", "voc", "yolo", "tfcsv", "createml", "via", "datumaro", "supervisely")


@pytest.mark.parametrize("name", [*WRITTEN, "labelstudio"])
def test_written_files_are_read_as_without_scores(
    truth: GroundTruth, unscored: Detections, tmp_path: Path, name: str
) -> None:
    done = detap.convert(tmp_path / "out", truth, unscored, to=name)
    assert not [note for note in done.notes if note.severity == "warning"]
    texts = [(tmp_path / "out" / file).read_bytes() for file in done.files]
    assert not any(re.search(rb"\bnan\b|score|confidence", text, re.I) for text in texts)
    alone = detap.convert(tmp_path / "alone", truth, to=name)
    files = [file for file in done.files if file not in alone.files] or [*done.files]
    path = tmp_path / "out" / (files[0] if len(files) == 1 else files[0].split("/")[0])
    gt = detap.read_ground_truth(tmp_path / "out" / alone.files[0]) if name == "coco" else truth
    options: dict[str, Any] = (
        {"class_names": tmp_path / "out" / "data.yaml"} if name == "yolo" else {}
    )
    read_again = detap.read_detections(path, gt, format=name, **options)
    assert np.isnan(read_again.score).all()
    assert np.sort(read_again.corners, axis=0) == pytest.approx(np.sort(CORNERS, axis=0))


def test_saved_tables(truth: GroundTruth, unscored: Detections, tmp_path: Path) -> None:
    path = tmp_path / "dt.npz"
    unscored.save(path)
    assert np.isnan(Detections.load(path).score).all()
    assert np.isnan(detap.read_detections(path, truth, format="npz").score).all()
    mixed = Detections(**{**vars(unscored), "score": np.array([0.5, np.nan])})
    mixed.save(path)
    message = re.escape(f"{path}: row 1: score is missing; 1 of 2 records has none: give all")
    with pytest.raises(InputError, match=message):
        Detections.load(path)


def test_arrays(unscored: Detections) -> None:
    assert not unscored.has_scores
    assert not unscored.select(np.array([1])).has_scores
    with pytest.raises(InputError, match="detections: row 1: score is nan; expected a finite"):
        Detections.from_arrays(
            image=["a"] * 2, label=["cat"] * 2, boxes=CORNERS, score=[0.5, np.nan]
        )


def test_the_ground_truth_as_detections(truth: GroundTruth, unscored: Detections) -> None:
    """The same boxes in another order; one moved box is enough to be detections."""
    order = [1, 0]
    same = Detections.from_arrays(
        image=[truth.images[k] for k in truth.image[order]],
        label=[truth.classes[k] for k in truth.label[order]],
        boxes=truth.corners[order],
    )
    [note] = check_boxes(truth, same.reindex_like(truth), boxes=True)
    assert (note.code, note.count, note.severity) == ("detections-equal-ground-truth", 2, "warning")
    assert note.message == "all boxes are those of the ground truth: is one file given as both?"
    assert not check_boxes(truth, unscored, boxes=True)


def test_the_command_check(command: Run, tmp_path: Path) -> None:
    gt, dt = tmp_path / "gt.json", written(tmp_path, "COCO list", NONE)
    boxes = [{**record, "id": k + 1, "area": 1, "iscrowd": 0} for k, record in enumerate(coco(ALL))]
    categories = [{"id": name, "name": name} for name in ("cat", "dog")]
    for record in boxes:
        del record["score"]
    content = {"images": [{"id": "a"}], "categories": categories}
    gt.write_text(json.dumps({**content, "annotations": boxes}))
    ended = command("check", "--gt", gt, "--dt", dt, "--output-format", "json").passed()
    statistics = json.loads(ended.out)["statistics"]
    names = ("score_lowest", "score_median", "score_highest", "scores_distinct", "tied_detections")
    assert [statistics[name] for name in names] == [None] * 5
    assert "[detections-equal-ground-truth]" in ended.err
    assert "[one-score]" not in ended.err
    # From standard input too, and with one missing.
    assert spawn("check", "--gt", gt, "--dt", "-", input=json.dumps(coco(NONE))).returncode == 0
    piped = spawn("check", "--gt", gt, "--dt", "-", input=json.dumps(coco(SOME)))
    assert piped.returncode == 2
    assert "[0]: score is missing; 1 of 2 records has none: give all" in piped.stderr
    same = command("check", "--gt", gt, "--dt", gt)
    assert "this is the ground-truth file" in same.err


VOC, TEXT = "--protocol=voc2012", "--gt-format=voc"
SETS: dict[str, tuple[int, list[str]]] = {
    "voc-100-voc": (1, [VOC, "--class-names=voc-100/voc.names"]),
    "cartucho-85-voc": (1, [VOC, TEXT]),
    "odm-sample-2-iou30": (1, [TEXT, "--protocol=coco", "--iou=0.3", "--boxes=xywh"]),
    "yolo-voc-100": (5, ["--gt-format=yolo", "--image-sizes=yolo-voc-100/sizes.csv"]),
    "voc2007-test-50": (1, [VOC, "--image-set=test"]),
}
"""The column of the score, and options, of sets in text; evaluation/test_unscored has COCO's."""


def remove_scores(source: Path, target: Path, column: int, least: float) -> Path:
    """Write detections without their scores, those below `least` left out; return the path."""
    for file in source.rglob("*.txt"):
        lines = [line.split() for line in file.read_text().splitlines()]
        kept = [words for words in lines if float(words[column]) >= least]
        rows = [" ".join(words[:column] + words[column + 1 :]) for words in kept]
        (target / file.name).write_text("\n".join(rows) + "\n")
    return target


@pytest.mark.parametrize("name", SETS)
def test_sets_of_the_reference_program(
    command: Run, real_data: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files without scores, and what `detap convert` makes of them, have the expected values."""
    data = real_data / "unscored" / "sets.json"
    if not data.is_file():
        pytest.skip(f"the data of detections without scores is absent: no file {data}")
    [expected] = [one for one in json.loads(data.read_text())["sets"] if one["name"] == name]
    column, options = SETS[name]
    truth, source = (Path(expected[key].split(" ")[0]) for key in ("ground_truth", "detections"))
    if name == "voc2007-test-50":
        source = truth / "detections"
    least = 0.5 if name == "voc2007-test-50" else 0.0
    (tmp_path / "dt").mkdir()
    path = remove_scores(real_data / source, tmp_path / "dt", column, least)
    monkeypatch.chdir(real_data)
    converted = tmp_path / "converted"
    reading = [option for option in options if not option.startswith(("--protocol", "--iou"))]
    inputs = ["--gt", truth, "--dt", path, *reading]
    ended = command("convert", *inputs, "--to", "tfcsv", "--output", converted).passed()
    for detections in (path, next(converted.glob("d*.csv"))):
        ended = command("eval", truth, detections, *options, "--output-format", "json")
        options = [option.replace("--boxes", "--gt-boxes") for option in options]  # of the other
        assert ended.status == 0, ended.err
        report = json.loads(ended.out)
        # With six decimals, an IoU of .75 in YOLO's files is a little less.
        inexact = {"F1@75", "mF1"} if name == "yolo-voc-100" else set()
        names = expected["summary"].keys() - inexact
        assert {key: report["summary"][key] for key in names} == pytest.approx(
            {key: expected["summary"][key] for key in names}, abs=1e-9
        )
        counts = report["unscored"]["by_threshold"][0]
        assert counts["true_positives"] == expected["counts"]["TP"]
        assert counts["false_positives"] == expected["counts"]["FP"]
        assert counts["false_negatives"] == expected["counts"]["FN"]
        assert counts["ignored_detections"] == expected["counts"]["ignored"]
