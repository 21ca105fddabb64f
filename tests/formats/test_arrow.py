"""Parquet and Arrow files give the tables of COCO files with the same records."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import detap
from detap.errors import InputError, UsageError
from detap.formats.catalogue import FORMATS
from detap.io.limits import Limits
from detap.tables.detection import Detections, GroundTruth
from tests.cli.conftest import Run
from tests.formats.arrow_files import (
    SIDES,
    WRITERS,
    columns_of,
    hugging_face,
    pa,
    parquet,
    result_columns,
    truth_columns,
    write_parquet,
    write_stream,
)
from tests.formats.coco_files import RESULTS, TRUTH
from tests.processes import finished
from tests.raised import raised

from detap.formats.arrow.columns import NULL, encode  # isort: skip

Tables = tuple[GroundTruth, Detections]


def same(mine: GroundTruth | Detections, theirs: GroundTruth | Detections) -> None:
    assert (mine.images, mine.classes, mine.class_ids) == (
        theirs.images,
        theirs.classes,
        theirs.class_ids,
    )
    for name, column in theirs.columns().items():
        assert column.tobytes() == mine.columns()[name].tobytes(), name


@pytest.fixture
def json_tables(tmp_path: Path) -> Tables:
    (tmp_path / "gt.json").write_text(json.dumps(TRUTH))
    (tmp_path / "dt.json").write_text(json.dumps(RESULTS))
    truth = detap.read_ground_truth(tmp_path / "gt.json")
    return truth, detap.read_detections(tmp_path / "dt.json", truth)


def table(columns: Any, **types: Any) -> Any:
    """Return an Arrow table with some columns cast to a type; a table unchanged."""
    if isinstance(columns, pa.Table):
        return columns
    return pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})


def truth_of(tmp_path: Path, columns: Any, **options: Any) -> GroundTruth:
    write_parquet(table(columns), tmp_path / "gt.parquet")
    return detap.read_ground_truth(tmp_path / "gt.parquet", **options)


def detections_of(tmp_path: Path, columns: Any, truth: GroundTruth, **options: Any) -> Detections:
    write_parquet(table(columns), tmp_path / "dt.parquet")
    return detap.read_detections(tmp_path / "dt.parquet", truth, **options)


# --- the same as COCO files


@pytest.mark.parametrize("form", WRITERS)
def test_tables_equal_those_of_json(form: str, tmp_path: Path, json_tables: Tables) -> None:
    suffix, write = WRITERS[form]
    gt, dt = tmp_path / f"gt{suffix}", tmp_path / f"dt{suffix}"
    write(table(truth_columns(TRUTH)), gt)
    write(table(result_columns(RESULTS)), dt)
    truth = detap.read_ground_truth(gt)
    same(truth, json_tables[0])
    same(detap.read_detections(dt, truth), json_tables[1])
    # Of JSON there, of Parquet here.
    same(detap.read_detections(dt, json_tables[0]), json_tables[1])
    same(detap.read_detections(tmp_path / "dt.json", truth), json_tables[1])
    if form != "stream":  # which begins with nothing of its own
        same(detap.read_detections(dt.rename(tmp_path / form), truth), json_tables[1])


def test_images_without_objects_are_rows_of_their_own(tmp_path: Path, json_tables: Tables) -> None:
    columns = truth_columns(TRUTH)
    assert columns["image_id"][-1] == 3
    assert columns["x"][-1] is None
    truth = truth_of(tmp_path, columns)
    assert truth.images == (1, 2, 3)
    assert [(n.code, n.count) for n in truth.notes if "images" in n.code] == [
        ("images-without-objects", 1)
    ]
    # Locations in messages are those of the file.
    columns = {name: [values[-1], *values[:-1]] for name, values in columns.items()}
    same(truth_of(tmp_path, columns), json_tables[0])
    columns["width"][1] = -30.0
    with pytest.raises(InputError, match=r"gt.parquet: row 1 \(row group 0\): bbox has a negative"):
        truth_of(tmp_path, columns)


def test_every_box_column_layout(tmp_path: Path, json_tables: Tables) -> None:
    truth, detections = json_tables
    columns = result_columns(RESULTS)
    boxes = list(zip(*(columns.pop(side) for side in SIDES), strict=True))
    for kind in (pa.list_(pa.float64(), 4), pa.list_(pa.float64()), pa.large_list(pa.float64())):
        column = pa.array(map(list, boxes), kind)
        plain = table(columns).append_column("bbox", column)
        same(detections_of(tmp_path, plain, truth, boxes="xywh"), detections)
        field = pa.field("bbox", kind, metadata={"boxes": "xywh"})
        same(
            detections_of(tmp_path, table(columns).append_column(field, column), truth), detections
        )
        named = plain.replace_schema_metadata({"boxes": "xywh"})
        same(detections_of(tmp_path, named, truth), detections)
    corners = [[x, y, x + w, y + h] for x, y, w, h in boxes]
    sides = dict(zip(("x1", "y1", "x2", "y2"), zip(*corners, strict=True), strict=True))
    flat = detections_of(tmp_path, {**columns, **{k: list(v) for k, v in sides.items()}}, truth)
    expected = Detections.from_arrays(
        image=columns["image_id"],
        label=columns["category_id"],
        boxes=np.array(corners),
        score=columns["score"],
    ).reindex_like(truth)
    assert flat.corners.tolist() == expected.corners.tolist()
    assert flat.box_area.tolist() == expected.box_area.tolist()
    for name in ("xyxy", "corners"):
        bbox = table(columns).append_column("bbox", pa.array(corners, pa.list_(pa.float64(), 4)))
        bbox = bbox.replace_schema_metadata({"boxes": name})
        assert detections_of(tmp_path, bbox, truth).corners.tolist() == expected.corners.tolist()


def test_the_box_format_of_bbox_is_never_guessed(tmp_path: Path, json_tables: Tables) -> None:
    columns = result_columns(RESULTS)
    boxes = list(zip(*(columns.pop(side) for side in SIDES), strict=True))
    plain = table({**columns, "bbox": list(map(list, boxes))})
    error = raised(InputError, detections_of, tmp_path, plain, json_tables[0])
    assert "box format of bbox is unknown; pass boxes='xywh' or 'xyxy' (--boxes), or set the " in (
        str(error)
    )
    named = plain.replace_schema_metadata({"boxes": "cxcywh"})
    with pytest.raises(InputError, match="metadata `boxes` of bbox is 'cxcywh', expected one of"):
        detections_of(tmp_path, named, json_tables[0])
    named = plain.replace_schema_metadata({"boxes": "xywh"})
    with pytest.raises(
        InputError, match="boxes are xywh according to the metadata, but --boxes is xyxy"
    ):
        detections_of(tmp_path, named, json_tables[0], boxes="xyxy")
    with pytest.raises(
        InputError, match="boxes are xywh according to the columns, but --boxes is xyxy"
    ):
        detections_of(tmp_path, result_columns(RESULTS), json_tables[0], boxes="xyxy")
    with pytest.raises(UsageError, match="boxes 'yxyx' is unknown; use one of xyxy, xywh, cxcywh"):
        detections_of(tmp_path, named, json_tables[0], boxes="yxyx")


# --- names


def test_text_columns_are_names_of_images_and_classes(tmp_path: Path) -> None:
    columns = truth_columns(TRUTH)
    del columns["category_id"]
    columns["id"] = ["a", None, "c", None]
    columns["image_id"] = [f"{value:03}" for value in columns["image_id"]]
    truth = truth_of(tmp_path, columns)
    assert truth.images == ("001", "002", "003")
    assert truth.classes == truth.class_ids == ("bird", "cat", "dog")
    assert truth.label.tolist() == [1, 2, 0]
    results = result_columns(RESULTS)
    results["image_id"] = [f"{value:03}" for value in results["image_id"]]
    names = {entry["id"]: entry["name"] for entry in TRUTH["categories"]}
    results["category"] = [names[value] for value in results.pop("category_id")]
    mine = detections_of(tmp_path, results, truth)
    assert [truth.images[i] for i in mine.image] == results["image_id"]
    assert [truth.classes[i] for i in mine.label] == results["category"]
    # Numbered text, with numbers that no row has.
    image = pa.DictionaryArray.from_arrays(
        pa.array([int(name) for name in results["image_id"]], pa.int8()),
        ["zzz", "001", "002", "003"],
    )
    numbered = table(results).drop_columns(["image_id"]).append_column("image_id", image)
    same(detections_of(tmp_path, numbered, truth), mine)
    write_stream(numbered, tmp_path / "numbered.arrow")
    same(detap.read_detections(tmp_path / "numbered.arrow", truth), mine)


def test_names_match_ids_of_coco(tmp_path: Path, json_tables: Tables) -> None:
    truth, expected = json_tables
    names = {entry["id"]: entry["name"] for entry in TRUTH["categories"]}
    columns = result_columns(RESULTS)
    columns["category"] = [names[value] for value in columns["category_id"]]
    same(detections_of(tmp_path, columns, truth), expected)
    by_name = {name: values for name, values in columns.items() if name != "category_id"}
    same(detections_of(tmp_path, by_name, truth), expected)
    columns["category"][0] = "dog"
    with pytest.raises(
        InputError,
        match='category 1 has the name "dog", expected "cat" as in the ground truth; use the '
        "ground truth's category ids or names",
    ):
        detections_of(tmp_path, columns, truth)
    twice = columns_of([{key: values[0] for key, values in columns.items()}] * 2)
    twice["category"] = ["cat", "dog"]
    with pytest.raises(InputError, match='row 1: category 1 has the names "dog" and "cat"'):
        detections_of(tmp_path, twice, truth)


def test_no_category_in_common(tmp_path: Path, json_tables: Tables) -> None:
    columns = result_columns(RESULTS)
    columns["category"] = [f"n{value}" for value in columns.pop("category_id")]
    assert str(raised(InputError, detections_of, tmp_path, columns, json_tables[0])) == (
        f"{tmp_path / 'dt.parquet'}: no category of the results is in the ground truth (results: "
        '"n1"\N{EN DASH}"n3"; ground truth: "bird"\N{EN DASH}"dog"); use the ground '
        "truth's names, or pass as_is=True (--as-is)"
    )
    detections = detections_of(tmp_path, columns, json_tables[0], as_is=True)
    assert len(detections) == 0


def test_whole_floats_are_ids_and_others_are_not(tmp_path: Path, json_tables: Tables) -> None:
    truth, expected = json_tables
    columns = result_columns(RESULTS)
    columns["image_id"] = list(map(float, columns["image_id"]))
    same(detections_of(tmp_path, columns, truth), expected)
    columns["image_id"][1] += 0.5
    with pytest.raises(
        InputError, match=rf"row 1 .*image_id is {columns['image_id'][1]}, expected an"
    ):
        detections_of(tmp_path, columns, truth)


def test_large_ids_stay_distinct(tmp_path: Path) -> None:
    columns = truth_columns(TRUTH)
    for low in (2**63 - 4, 2**64 - 4, -(2**63)):
        kind = pa.uint64() if low > 2**63 else pa.int64()
        columns["image_id"] = [low, low + 1, low + 1, low + 2]
        mine = truth_of(tmp_path, table(columns, image_id=kind))
        assert mine.images == (low, low + 1, low + 2)


# --- Hugging Face

OBJECTS = [
    {"bbox": [10.0, 20.0, 30.0, 40.0], "category": 0, "area": 700.5},
    {"bbox": [100.0, 100.0, 50.0, 50.0], "category": 1, "area": 2500.0},
    {"bbox": [200.0, 100.0, 60.0, 70.0], "category": 2, "area": 4000.0},
]
IMAGES = {"image_id": [7, 3, 5], "width": [640, 320, 640], "height": [480, 240, 480]}
PER_IMAGE = [OBJECTS[:1], [], OBJECTS[1:]]


def _lists() -> Any:
    return pa.array(
        [{key: [entry[key] for entry in image] for key in OBJECTS[0]} for image in PER_IMAGE],
        pa.struct(
            [
                ("bbox", pa.list_(pa.list_(pa.float64(), 4))),
                ("category", pa.list_(pa.int64())),
                ("area", pa.list_(pa.float64())),
            ]
        ),
    )


@pytest.mark.parametrize("objects", [pa.array(PER_IMAGE), _lists()], ids=["structs", "lists"])
def test_a_row_for_each_image(objects: Any, tmp_path: Path) -> None:
    rows = hugging_face(IMAGES, objects, ("mask", "gloves", "shield", "goggles"))
    truth = truth_of(tmp_path, rows, boxes="xywh")
    assert truth.images == (3, 5, 7)
    assert truth.classes == ("mask", "gloves", "shield", "goggles")
    assert truth.class_ids == (0, 1, 2, 3)
    assert truth.image.tolist() == [2, 1, 1]
    assert truth.label.tolist() == [0, 1, 2]
    assert truth.corners.tolist() == [[10, 20, 40, 60], [100, 100, 150, 150], [200, 100, 260, 170]]
    assert truth.area.tolist() == [700.5, 2500.0, 4000.0]
    assert np.asarray(truth.image_sizes).tolist() == [[320, 240], [640, 480], [640, 480]]
    assert truth.files[0].records == 3
    assert "images-without-objects" in [note.code for note in truth.notes]
    # Without the names, numbers are ids.
    plain = truth_of(tmp_path, hugging_face(IMAGES, objects, None), boxes="xywh")
    assert plain.class_ids == (0, 1, 2)
    with pytest.raises(InputError, match="box format of bbox is unknown"):
        truth_of(tmp_path, rows)


def test_errors_in_image_rows_have_locations(tmp_path: Path) -> None:
    wrong = [PER_IMAGE[0], [], [OBJECTS[1], {**OBJECTS[2], "bbox": [1.0, 2.0, 3.0]}]]
    with pytest.raises(
        InputError, match=r"row 2 \(row group 1\), objects\[1\]: bbox has 3 values, exp"
    ):
        truth_of(tmp_path, hugging_face(IMAGES, pa.array(wrong), None), boxes="xywh")
    names = hugging_face(IMAGES, pa.array(PER_IMAGE), ("mask", "gloves"))
    with pytest.raises(InputError, match=r"objects\[1\]: category is 2, expected 0 to 1"):
        truth_of(tmp_path, names, boxes="xywh")
    twice = {**IMAGES, "image_id": [7, 3, 7]}
    with pytest.raises(
        InputError, match=r"row 2 .*: duplicate image_id \(also at row 0 .*\); write"
    ):
        truth_of(tmp_path, hugging_face(twice, pa.array(PER_IMAGE), None), boxes="xywh")
    nothing = pa.array([PER_IMAGE[0], None, PER_IMAGE[2]])
    with pytest.raises(InputError, match="objects is null; use an empty list"):
        truth_of(tmp_path, hugging_face(IMAGES, nothing, None), boxes="xywh")
    uneven = _lists().to_pylist()
    uneven[2]["category"].pop()
    with pytest.raises(InputError, match=r"objects.category and objects.bbox differ in length"):
        truth_of(
            tmp_path, hugging_face(IMAGES, pa.array(uneven, _lists().type), None), boxes="xywh"
        )
    damaged = hugging_face(IMAGES, pa.array(PER_IMAGE), None)
    damaged = damaged.replace_schema_metadata({"huggingface": "{"})
    with pytest.raises(InputError, match="invalid metadata huggingface"):
        truth_of(tmp_path, damaged, boxes="xywh")
    columns = {name: v for name, v in truth_columns(TRUTH).items() if name != "category"}
    nameless = table(columns).replace_schema_metadata({"huggingface": '{"info": {"features": {}}}'})
    assert truth_of(tmp_path, nameless).classes == ("1", "2", "3")


# --- columns that may be there


def test_flags_ids_and_areas(tmp_path: Path) -> None:
    columns = truth_columns(TRUTH)
    columns["iscrowd"] = [True, False, None, None]
    columns["difficult"] = [0, 1, None, None]
    columns["group_of"] = [0.0, 0.0, 1.0, None]
    columns["ignore"] = [None, 0, 1, None]
    columns["area"] = [1.5, None, 0.0, None]
    columns["id"] = [0, None, 7, None]
    truth = truth_of(tmp_path, columns)
    assert truth.zero_id.tolist() == [True, False, False]
    assert truth.crowd.tolist() == [True, False, False]
    assert truth.difficult.tolist() == [False, True, False]
    assert truth.group_of.tolist() == [False, False, True]
    assert truth.ignore.tolist() == [False, False, True]
    assert truth.area.tolist() == [1.5, 2500.0, 0.0]
    assert {note.code: note.count for note in truth.notes} == {
        "annotation-id-zero": 1,
        "missing-annotation-ids": 1,
        "missing-area": 1,
        "missing-iscrowd": 1,
        "ignore-without-effect": 1,
        "images-without-objects": 1,
    }


def test_repeated_ids(tmp_path: Path, json_tables: Tables) -> None:
    columns = {name: [*values, values[1]] for name, values in truth_columns(TRUTH).items()}
    truth = truth_of(tmp_path, columns)
    same(truth, json_tables[0])
    assert ("repeated-annotations", 1) in [(n.code, n.count) for n in truth.notes]
    columns["area"][-1] = 1.0
    with pytest.raises(
        InputError, match=r"row 4 \(.*\): duplicate id 12 \(also at row 1 \(row group 0\)\)"
    ):
        truth_of(tmp_path, columns)


def test_single_precision_is_read_unchanged_and_noted(tmp_path: Path, json_tables: Tables) -> None:
    columns = result_columns(RESULTS)
    columns["x"] = [value + 0.1 for value in columns["x"]]
    single = table(columns, x=pa.float32())
    mine = detections_of(tmp_path, single, json_tables[0])
    assert mine.corners[:, 0].tolist() == np.array(columns["x"], np.float32).tolist()
    assert [(n.code, n.severity) for n in mine.notes] == [("float32-columns", "info")]
    assert not detections_of(tmp_path, columns, json_tables[0]).notes
    single = table(columns, **dict.fromkeys(SIDES, pa.float32()))
    x, y, width, height = (np.array(columns[name], np.float32).astype(float) for name in SIDES)
    mine = detections_of(tmp_path, single, json_tables[0])
    assert mine.corners.tolist() == np.stack([x, y, x + width, y + height], axis=1).tolist()
    assert mine.box_area.tolist() == (width * height).tolist()


# --- what is wrong is said


def changed(**columns: Any) -> dict[str, list[Any]]:
    """Return the columns of the results, some of them with one value in each row."""
    count = len(RESULTS)
    given = {name: v if isinstance(v, list) else [v] * count for name, v in columns.items()}
    return {**result_columns(RESULTS), **given}


def at(row: int, name: str, value: Any) -> dict[str, list[Any]]:
    columns = result_columns(RESULTS)
    columns[name][row] = value
    return columns


def without(*names: str) -> dict[str, list[Any]]:
    return {name: v for name, v in result_columns(RESULTS).items() if name not in names}


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (at(1, "score", None), r"row 1 \(.*\): score is missing; 1 of 3 records has none"),
        (at(1, "score", float("nan")), r"row 1 \(.*\): score is NaN, expected a finite"),
        (at(0, "x", float("-inf")), r"row 0 \(.*\): x is infinite, expected a finite"),
        (at(0, "width", 1e308), r"row 0 \(.*\): bbox \[10.0, .* overflows, expected finite"),
        (at(0, "image_id", None), r"row 0 \(.*\): image_id is null, expected an integer"),
        (at(0, "category_id", None), r"row 0 \(.*\): category_id is null, expected an"),
        (at(1, "image_id", 99), r"row 1 \(.*\): image_id 99 is not in the ground"),
        (
            changed(score=[2**53 + 1, *[1] * (len(RESULTS) - 1)]),
            r"row 0 \(.*\): score is 9007199254740993, beyond 2\^53; use numbers that float64",
        ),
        (changed(score="high"), "column score has type string, expected numbers"),
        (changed(image_id=True), "column image_id has type bool, expected integers or strings"),
        (
            changed(image_id="1"),
            'no image_id of the results is in the ground truth \\(results: "1"; ground truth: 1',
        ),
        (
            changed(category_id="1"),
            r'category_id "1" is not in the ground truth \(ids are numbers\)',
        ),
        (
            changed(category_id=77),
            "no category_id of the results is in the ground truth \\(results: 77",
        ),
        (
            without("image_id", "height"),
            "no column image_id \\(columns: category_id, score, x, y, width\\); expected",
        ),
        (without("x"), "no box columns; expected the columns image_id, "),
        (
            changed(bbox=[[1.0, 2.0, 3.0, 4.0]] * len(RESULTS)),
            "several box columns: x, y, width, height and bbox; keep one of them",
        ),
        (
            changed(category=1),
            r"column category has type int64, expected strings \(category_id has numbers",
        ),
    ],
)
def test_invalid_detections(columns: Any, says: str, tmp_path: Path, json_tables: Tables) -> None:
    with pytest.raises(InputError, match=f"^{tmp_path / 'dt.parquet'}: {says}"):
        detections_of(tmp_path, columns, json_tables[0])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"difficult": [0, 2, 0, None]}, r"row 1 \(.*\): difficult is 2, expected 0 or 1"),
        ({"area": [1.0, -1.0, 1.0, None]}, r"row 1 \(.*\): area is -1.0, expected a number >= 0"),
        ({"area": [1.0, float("nan"), 1.0, None]}, r"row 1 \(.*\): area is NaN, expected a finite"),
        ({"id": [5.0, 1.5, 7.0, None]}, r"row 1 \(.*\): id is 1\.5, expected an integer or a str"),
        ({"x": [1.0, None, 1.0, None]}, r"row 1 \(.*\): x is null, expected a number"),
        ({"score": [0.5] * 4}, "column score in ground truth \\(detections\\?\\)"),
        ({"category": ["cat", "dog", "cat", None]}, None),
        (
            {"category_id": [1, 1, 3, None]},
            r'row 1 \(.*\): category 1 has the names "dog" and "cat"',
        ),
        ({name: [None] * 4 for name in (*SIDES, "category_id", "category")}, "no annotations"),
    ],
)
def test_invalid_ground_truth(change: dict[str, Any], says: str | None, tmp_path: Path) -> None:
    columns = {**truth_columns(TRUTH), **change}
    types = {"x": pa.float64(), **dict.fromkeys((*SIDES,), pa.float64()), "category_id": pa.int32()}
    content = table(columns, **types, category=pa.string())
    if says is None:  # two classes of one name are two classes
        assert truth_of(tmp_path, content).classes == ("cat (id 1)", "dog", "cat (id 3)")
        return
    with pytest.raises(InputError, match=f"^{tmp_path / 'gt.parquet'}: {says}"):
        truth_of(tmp_path, content)


# --- files


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty; write or download it again"),
        (b'[{"image_id": 1}]', "looks like JSON; expected a Parquet or Arrow file"),
        (b'{"images": []}', "looks like JSON; expected a Parquet or Arrow file"),
        (b"version https://git-lfs.github.com/spec/v1\n", "looks like a Git LFS pointer"),
        (b"\x80\x04\x95", "looks like a Python pickle"),
        (b"FEA1" + bytes(30), "is a Feather version 1 file; write it as version 2"),
        (b"PARE" + bytes(30), "is encrypted; write it without encryption"),
        (b"nothing", "is neither Parquet nor Arrow; expected a"),
        (b"PAR1" + bytes(30), "is damaged: "),
        (b"ARROW1\0\0" + bytes(30), "is damaged: "),
        (b"ARROW1\0\0", "is damaged: file is truncated"),
    ],
)
def test_other_files(content: bytes, says: str, tmp_path: Path, json_tables: Tables) -> None:
    path = tmp_path / "dt.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"^{path}: {says}"):
        detap.read_detections(path, json_tables[0])


@pytest.mark.parametrize("form", WRITERS)
def test_truncated_files_are_refused(form: str, tmp_path: Path, json_tables: Tables) -> None:
    suffix, write = WRITERS[form]
    path = tmp_path / f"dt{suffix}"
    write(table(result_columns(RESULTS * 5)), path)
    whole = path.read_bytes()
    expected = detap.read_detections(path, json_tables[0])
    for end in range(0, len(whole), max(1, len(whole) // 150)):
        path.write_bytes(whole[:end])
        try:
            detections = detap.read_detections(path, json_tables[0])
        except InputError:
            continue
        same(detections, expected)  # what stands behind the end mark may be missing


@pytest.mark.parametrize("form", WRITERS)
def test_damaged_files_raise_input_error(form: str, tmp_path: Path, json_tables: Tables) -> None:
    suffix, write = WRITERS[form]
    path = tmp_path / f"dt{suffix}"
    write(table(result_columns(RESULTS)), path)
    whole = path.read_bytes()
    random = np.random.default_rng(12)
    said: list[str] = []
    for _ in range(150):
        content = bytearray(whole)
        for at in random.integers(0, len(whole), 3).tolist():
            content[at] = int(random.integers(256))
        path.write_bytes(content)
        try:
            detap.read_detections(path, json_tables[0])
        except InputError as error:
            said.append(str(error))
    assert said
    assert all(text.startswith(str(path)) for text in said)


@pytest.mark.parametrize(
    "write",
    [
        lambda content, path: parquet.write_table(
            content, path, compression="zstd", use_dictionary=False
        ),
        parquet.write_table,
        lambda content, path: pa.feather.write_feather(content, path, compression="zstd"),
    ],
    ids=["parquet", "parquet-dictionary", "feather"],
)
def test_decompressed_size_is_limited(write: Any, tmp_path: Path, json_tables: Tables) -> None:
    many = 2_000_000
    zeros = {name: np.zeros(many) for name in ("score", *SIDES)}
    ids = {name: np.ones(many, np.int64) for name in ("image_id", "category_id")}
    path = tmp_path / "dt.parquet"
    write(pa.table({**ids, **zeros}), path)
    with pytest.raises(
        InputError,
        match=r"expands from \d+ to \d+ bytes, the limit is \d+; if the file is trusted",
    ):
        detap.read_detections(path, json_tables[0], limits=Limits(expansion=20))


def test_the_objects_of_images_are_counted_too(tmp_path: Path) -> None:
    rows = hugging_face(IMAGES, pa.array(PER_IMAGE), None)
    assert len(truth_of(tmp_path, rows, boxes="xywh", limits=Limits(records=3))) == 3
    many = hugging_face(IMAGES, pa.array([OBJECTS, [], OBJECTS]), None)
    with pytest.raises(InputError, match="more than 5 boxes; raise the limit with --max-records"):
        truth_of(tmp_path, many, boxes="xywh", limits=Limits(records=5))


def test_repeated_text_takes_no_memory(tmp_path: Path, json_tables: Tables) -> None:
    columns = result_columns([RESULTS[0]] * 60_000)
    del columns["image_id"]
    zeros = pa.array(np.zeros(60_000, np.int32))
    image = pa.DictionaryArray.from_arrays(zeros, ["x" * 100_000])  # 6 GB if each were made
    path = tmp_path / "dt.parquet"
    parquet.write_table(table(columns).append_column("image_id", image), path)
    with pytest.raises(InputError, match="no image_id of the results"):
        detap.read_detections(path, json_tables[0])


def test_without_pyarrow(
    tmp_path: Path, json_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    detections_of(tmp_path, table(result_columns(RESULTS)), json_tables[0])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    says = r"^Parquet and Arrow files require pyarrow: pip install 'detap\[arrow\]'$"
    with pytest.raises(UsageError, match=says):
        detap.read_detections(tmp_path / "dt.parquet", json_tables[0])


# --- the command


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "dt.json").write_text(json.dumps(RESULTS))
    truth = truth_columns(TRUTH)
    truth["weather"] = ["sun", "rain", "rain", "sun"]
    write_parquet(table(truth), tmp_path / "gt.parquet")
    write_parquet(table(result_columns(RESULTS)), tmp_path / "dt.parquet")
    return tmp_path


def test_detections_from_standard_input(files: Path, command: Run) -> None:
    call = ("eval", "--gt", str(files / "gt.parquet"), "--output-format", "json", "--dt")
    piped = finished(
        [sys.executable, "-m", "detap", *call, "-"],
        input=(files / "dt.parquet").read_bytes(),
        text=False,
    )
    expected = command(*call, files / "dt.parquet")
    assert json.loads(piped.stdout)["summary"] == json.loads(expected.out)["summary"]


def test_slices_by_a_column(files: Path, command: Run) -> None:
    call = ("--gt", files / "gt.parquet", "--dt", files / "dt.json", "--slice-by", "weather")
    ended = command("eval", *call, "--fail-under", "AP=0", "--output-format", "json").passed()
    assert set(json.loads(ended.out)["slices"]) == {"weather=rain", "weather=sun"}
    truth = truth_columns(TRUTH)
    truth["weather"] = ["sun", "rain", "sun", "sun"]
    write_parquet(table(truth), files / "gt.parquet")
    said = command("eval", *call, "--fail-under", "AP=0").refused()
    message = "image 2 has two values of weather: 'rain', 'sun'; use one value per image\n"
    assert f"{files / 'gt.parquet'}: {message}" in said


def test_file_names_of_images(tmp_path: Path) -> None:
    names = {**truth_columns(TRUTH), "file_name": ["a.jpg", "b/c.jpg", "b/c.jpg", "d.jpg"]}
    truth = truth_of(tmp_path, names)
    assert FORMATS["arrow"].file_names(truth) == {1: "a.jpg", 2: "b/c.jpg", 3: "d.jpg"}


# --- names of any type

KINDS = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64())


@st.composite
def columns(draw: st.DrawFn) -> tuple[Any, list[list[int | None]]]:
    kind = draw(st.sampled_from((*KINDS, pa.uint64())))
    signed = pa.types.is_signed_integer(kind)
    low, high = (
        (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)
        if signed
        else (0, 2**kind.bit_width - 1)
    )
    middle = draw(st.integers(low, high))
    close = st.integers(max(low, middle - 5), min(high, middle + 5))
    value = st.none() | close | st.integers(low, high)
    return kind, draw(st.lists(st.lists(value, max_size=12), max_size=5))


@given(columns())
@example((pa.int64(), [[7, 8, 7], [2**40, 8, 6], [5, None, 2**40]]))
def test_whole_numbers_of_any_type(case: tuple[Any, list[list[int | None]]]) -> None:
    kind, parts = case
    codes = encode(pa.chunked_array(parts, kind))
    rows = [value for part in parts for value in part]
    assert (codes.rows == NULL).tolist() == [value is None for value in rows]
    assert set(codes.number) == {value for value in rows if value is not None}
    for value, code in zip(rows, codes.rows.tolist(), strict=True):
        assert value is None or code == codes.number[value]


@pytest.mark.parametrize("offset", [1, 3])
def test_unaligned_integers(offset: int) -> None:
    """As they occur in files."""
    values = np.array([40, 41, 40, -3], np.int64)
    data = pa.py_buffer(bytes(offset) + values.tobytes()).slice(offset)
    column = pa.Array.from_buffers(pa.int64(), 4, [None, data])
    codes = encode(pa.chunked_array([column]))
    assert [[*codes.number][code] for code in codes.rows.tolist()] == values.tolist()
