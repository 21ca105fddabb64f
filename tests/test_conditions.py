"""Conditions on attributes: ``--ignore-where`` and ``--drop-where``."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import detap
from detap.errors import InputError, UsageError
from detap.evaluation.conditions import dropped_by_condition, ignored_by_condition
from detap.evaluation.scoring import on_images, score_tables
from detap.protocols import Protocol, conditions, protocol
from detap.tables.detection import Detections, GroundTruth
from tests.cases import EVERY_RANKED, Case, cases
from tests.coco import truth_of
from tests.parity.compare import assert_same_bits
from tests.raised import raised

COCO = protocol("coco")


def where(condition: str, preset: str = "coco", **changes: Any) -> Protocol:
    return protocol(preset).with_changes(ignore_where=condition, **changes)


# --- grammar


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("height<50 or vis_ratio<0.65", "height < 50 or vis_ratio < 0.65"),
        (" not (a==1 and b!=-2.5) ", "not (a == 1 and b != -2.5)"),
        ("5 <= x1 <= 635", "5 <= x1 <= 635"),
        ("pose == \"Left\" or 'x' != pose", "pose == 'Left' or 'x' != pose"),
        ("a<b", "a < b"),
        ("a<+1e3", "a < 1000.0"),
    ],
)
def test_conditions_have_one_text(text: str, expected: str) -> None:
    assert conditions.canonical(text) == expected
    rules = where(text)
    assert rules.text == f"coco|ignore-where:{expected}"
    assert Protocol.parse(rules.text) == rules
    assert Protocol.from_dict(json.loads(json.dumps(rules.as_dict()))) == rules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("height<<5", "'height << 5' is not a comparison"),
        ("height<", "'height<' is not a condition; write comparisons such as: height<50"),
        ("", "'' is not a condition"),
        ("truncated", "'truncated' is not a comparison"),
        ("True", "'True' is not a comparison"),
        ("a < f(1)", r"'f(1)' is not an attribute, a number or a quoted string"),
        ("a.b < 1", "'a.b' is not an attribute"),
        ("a[0] < 1", "'a[0]' is not an attribute"),
        ("a == None", "'None' is not an attribute"),
        ("a == True", "'True' is not an attribute"),
        ("a == b'x'", "is not an attribute"),
        ("a == 1j", "'1j' is not an attribute"),
        ("a == -'x'", "\"-'x'\" is not an attribute"),
        ("a == (1, 2)", "'(1, 2)' is not an attribute"),
        ("a in (1, 2)", "is not an attribute"),
        ("a is 1", "compare with <, <=, >, >=, == or !="),
        ("a in b", "'a in b': compare with"),
        ("a < 'x'", "\"a < 'x'\": compare text with == or !="),
        ("1 < 2", "'1 < 2' compares no attribute"),
        ("(a := 3) < 4", "is not an attribute"),
        ("[a for a in b] < 4", "is not an attribute"),
        ("a < 1 if b else 2", "is not a comparison"),
        ("__import__('os').system('x') == 0", "is not an attribute"),
        ("a == 'x|y'", "contains | or"),
        ("a == '\\n'", "contains | or"),
        ("not " * 300 + "a<1", "at most 1000 characters, this one 1203"),
        ("(" * 300 + "a<1" + ")" * 300, "is not a condition"),
        ("a<1\nb<2", "is not a condition"),
        ("a<1\0", "is not a condition"),
    ],
)
def test_nothing_else_is_a_condition(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        conditions.canonical(text)


def test_invalid_values_of_the_field() -> None:
    with pytest.raises(UsageError, match="ignore_where: 3 is not text"):
        replace(COCO, ignore_where=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="drop_where: 'height<' is not a condition"):
        replace(COCO, drop_where="height<")


def test_none_removes_a_condition() -> None:
    assert Protocol.parse("coco|ignore-where:none") == COCO
    assert Protocol.parse("coco|ignore-where:none").text == "coco"


def test_names_are_those_used_and_readers_get_those_of_files() -> None:
    text = "b<1 or a<2 and b>3 or area<9 or x1<5 or difficult==1"
    assert conditions.names(text) == ("b", "a", "area", "x1", "difficult")
    assert where(text).attributes == ("b", "a")
    assert where(text).reader_options == {"attributes": ("b", "a")}
    assert COCO.reader_options == {}


# --- values

ROWS = {"height": [10.0, 50.0, 60.0], "occlusion": [0.0, 2.0, 1.0]}
POSES = ["Left", "", "Right"]


def truth(**extra: Any) -> GroundTruth:
    """Three boxes of 20 x 40, 30 x 50 and 40 x 60; corners from widths with rounding."""
    boxes = [[0.1, 0.2, 20, 40], [100.3, 0.7, 30, 50], [200.1, 0.1, 40, 60.1]]
    return GroundTruth.from_arrays(
        image=["a", "a", "b"],
        label=["x", "y", "x"],
        boxes=boxes,
        box_format="xywh",
        difficult=[False, True, False],
        extra=extra,
    )


CONDITIONS = [
    "height < 50",
    "height <= 50",
    "not height == 60",
    "height > 50 or occlusion >= 2",
    "height >= 50 and occlusion != 1",
    "1 <= occlusion < 2",
    "not (occlusion < 1 or height < 55)",
    "height > occlusion",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_hold_as_in_python(condition: str) -> None:
    """Python evaluates the same text row by row."""
    rows = [dict(zip(ROWS, values, strict=True)) for values in zip(*ROWS.values(), strict=True)]
    expected = [eval(condition, {}, row) for row in rows]
    assert ignored_by_condition(truth(**ROWS), where(condition)).tolist() == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("height<50", [True, False, False]),
        ("height<50.1", [True, True, False]),
        ("height<60.1", [True, True, False]),
        ("width<=30", [True, True, False]),
        ("area>1600", [False, False, True]),
        ("x1>=100.3", [False, True, True]),
        ("x2<=130.3", [True, True, False]),
        ("y1<0.2 or y2<0", [False, False, True]),
        ("difficult==1", [False, True, False]),
    ],
)
def test_the_box_gives_attributes_that_the_annotation_lacks(
    condition: str, expected: list[bool]
) -> None:
    """A height of exactly 50 is not below 50, whatever the rounding of its corners."""
    assert ignored_by_condition(truth(), where(condition)).tolist() == expected


def test_inclusive_pixels_add_one_to_the_sides_of_boxes() -> None:
    rules = where("height<51", "voc2012")
    assert rules.inclusive_pixels
    assert ignored_by_condition(truth(), rules).tolist() == [True, False, False]


def test_the_annotation_takes_precedence_row_by_row() -> None:
    table = replace(truth(), extra={"height": np.array([55.0, np.nan, 45.0])})
    assert ignored_by_condition(table, where("height<50")).tolist() == [False, False, True]


def test_text_is_compared_for_equality() -> None:
    table = truth(pose=["Left", "Right", "Left"])
    assert ignored_by_condition(table, where("pose=='Left'")).tolist() == [True, False, True]
    assert ignored_by_condition(table, where("pose!='Left'")).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("pose==1", "pose is text, 1 is not"),
        ("occlusion=='x'", "occlusion is a number, 'x' is not"),
        ("pose==occlusion", "pose is text, occlusion is not"),
        ("occlusions<1", "ignore_where: the ground truth has no attribute 'occlusions'; did you"),
        ("visibility<1", "has no attribute 'visibility'; choose from"),
        ("visibility<1", "attributes=['visibility'] of read_ground_truth, extra= of"),
    ],
)
def test_unknown_attributes_and_kinds_are_errors(condition: str, message: str) -> None:
    table = truth(pose=["Left", "Right", "Left"], occlusion=[0, 1, 2])
    assert message in str(raised(UsageError, ignored_by_condition, table, where(condition)))


@pytest.mark.parametrize("missing", [np.array([1.0, np.nan, np.nan]), np.array(["a", "", ""])])
def test_missing_attributes_are_counted_and_the_first_is_named(missing: Any) -> None:
    table = replace(truth(), extra={"vis": missing})
    text = "vis!='x'" if missing.dtype.kind == "U" else "vis<1"
    error = raised(InputError, ignored_by_condition, table, where(text))
    assert (
        "image 'a': a ground truth of class 'y' has no attribute 'vis', as 2 of 3; correct "
        "--ignore-where, or add the attribute"
    ) in str(error)


def test_detections_have_attributes_of_boxes_and_the_score() -> None:
    detections = Detections.from_arrays(
        image=["a"] * 3,
        label=["x"] * 3,
        boxes=np.array([[0.1, 0.2, 20, 40], [0.7, 0.3, 5, 93.75], [0, 0, 9, 60]]),
        box_format="xywh",
        score=[0.1, 0.5, 0.9],
    )
    for condition, expected in (
        ("height<40", [False, False, False]),
        ("height<=40 or height>=93.75", [True, True, False]),
        ("score>0.8 or area<500", [False, True, True]),
    ):
        rules = replace(COCO, drop_where=condition)
        assert dropped_by_condition(detections, rules).tolist() == expected
    with pytest.raises(UsageError, match=r"drop_where: detections have no attribute 'vis'; choose"):
        dropped_by_condition(detections, replace(COCO, drop_where="vis<1"))


# --- evaluation


@given(cases(), st.sampled_from([*EVERY_RANKED.values()]), st.sampled_from(("width<40", "x1>20")))
def test_ignored_ground_truths_are_those_of_a_crowd_flag(
    case: Case, rules: Protocol, condition: str
) -> None:
    """The same as a flag in `ignore_flags` and `crowd_flags`, to the last bit."""
    table, detections = case.tables_for(rules)
    by_condition = replace(rules, ignore_where=condition)
    mask = ignored_by_condition(table, by_condition)
    unflagged = np.zeros(len(table), np.bool_)
    flagged = replace(
        rules,
        ignore_flags=(*rules.ignore_flags, "ignore"),
        crowd_flags=(*rules.crowd_flags, "ignore"),
    )
    ours = score_tables(replace(table, ignore=unflagged), detections, by_condition)
    theirs = score_tables(replace(table, ignore=mask), detections, flagged)
    if "ignore" not in rules.ignore_flags:
        for name in ("average_precision", "recall"):
            assert_same_bits(getattr(ours, name), getattr(theirs, name), name)


@given(cases(), st.sampled_from([*EVERY_RANKED.values()]))
def test_dropped_detections_are_as_if_never_written(case: Case, rules: Protocol) -> None:
    table, detections = case.tables_for(rules)
    dropping = replace(rules, drop_where="height<60 or score>0.8")
    kept = ~dropped_by_condition(detections, dropping)
    ours = score_tables(table, detections, dropping)
    theirs = score_tables(table, detections.select(np.flatnonzero(kept)), rules)
    for name in ("average_precision", "recall", "true_positives", "false_positives"):
        assert_same_bits(getattr(ours, name), getattr(theirs, name), name)


def test_slices_and_batches_equal_one_run() -> None:
    table = truth(vis=[0.9, 0.3, 0.8])
    corners = table.corners[[0, 1, 2, 2]]
    detections = Detections.from_arrays(
        image=["a", "a", "b", "b"],
        label=["x", "y", "x", "x"],
        boxes=corners,
        score=[0.5, 0.6, 0.4, 0.7],
    ).reindex_like(table)
    rules = replace(where("vis<0.5"), drop_where="score>0.65")
    whole = score_tables(table, detections, rules, match_table=True)
    assert whole.ignored.tolist() == [0, 1]
    assert [(n.code, n.count) for n in whole.notes if n.code == "detections-dropped"] == [
        ("detections-dropped", 1)
    ]
    assert whole.summary["AP"] == pytest.approx(1)
    alone = score_tables(*detap.select(table, detections, images=["b"]), rules)
    sliced = on_images(whole, ["b"])
    assert_same_bits([*sliced.summary.values()], [*alone.summary.values()], "slice")
    evaluator = detap.Evaluator(protocol=rules, boxes="xyxy")
    for i, name in enumerate("ab"):
        ours, theirs = (np.flatnonzero(t.image == i) for t in (table, detections))
        evaluator.update(
            [name],
            [detections.corners[theirs]],
            [detections.score[theirs]],
            [np.array(["x", "y"])[detections.label[theirs]].tolist()],
            ground_truth={
                "boxes": [table.corners[ours]],
                "labels": [np.array(["x", "y"])[table.label[ours]].tolist()],
                "vis": [table.extra["vis"][ours]],
            },
        )
    for result in (evaluator.compute(), evaluator.merge([evaluator.to_bytes()]).compute()):
        assert_same_bits([*result.summary.values()], [*whole.summary.values()], "batches")


def test_the_evaluator_refuses_missing_attributes_at_once() -> None:
    with pytest.raises(UsageError, match="no attribute 'vis'"):
        detap.Evaluator(truth(), where("vis<0.5"))
    evaluator = detap.Evaluator(protocol=where("vis<0.5"), boxes="xyxy")
    evaluator.update(
        ["a"],
        [np.zeros((0, 4))],
        [[]],
        [[]],
        ground_truth={"boxes": [[[0.0, 0, 9, 9]]], "labels": [["x"]]},
    )
    with pytest.raises(InputError, match="has no attribute 'vis', as 1 of 1"):
        evaluator.compute()


# --- readers

OBJECTS: list[dict[str, Any]] = [
    {"vis": 0.9, "pose": "Left", "truncated": 0},
    {"vis": 0.25, "pose": "Right", "truncated": 1},
    {"vis": 1, "pose": "Left", "truncated": 1},
]
BOXES = [[10, 10, 40, 50], [60, 20, 30, 30], [5, 5, 50, 60]]


def _coco(folder: Path, objects: list[dict[str, Any]]) -> Path:
    rows = [(1 + n // 2, 1, box) for n, box in enumerate(BOXES)]
    truth = truth_of(rows, {1: "x"}, [1, 2], size=None)
    for annotation, more in zip(truth["annotations"], objects, strict=True):
        annotation.update(more)
    # A repeated annotation counts once, and so do its attributes.
    truth["annotations"].insert(0, truth["annotations"][0])
    path = folder / "gt.json"
    path.write_text(json.dumps(truth))
    return path


def _json_lines(folder: Path, objects: list[dict[str, Any]]) -> Path:
    path = folder / "gt.jsonl"
    lines = []
    for name, rows in (("1", (0, 1)), ("2", (2,))):
        listed = [{"bbox": BOXES[n], "category": "x", **objects[n]} for n in rows]
        size = {"width": 200, "height": 200}
        lines.append(json.dumps({"file_name": f"{name}.jpg", **size, "objects": listed}))
    path.write_text("\n".join(lines))
    return path


def _voc(folder: Path, objects: list[dict[str, Any]]) -> Path:
    for name, rows in (("1", (0, 1)), ("2", (2,))):
        text = ""
        for n in rows:
            x, y, w, h = BOXES[n]
            corners = {"xmin": x, "ymin": y, "xmax": x + w, "ymax": y + h}
            box = "".join(f"<{k}>{v}</{k}>" for k, v in corners.items())
            tags = "".join(f"<{k}>{v}</{k}>" for k, v in objects[n].items())
            text += f"<object><name>x</name>{tags}<bndbox>{box}</bndbox></object>"
        size = "<size><width>200</width><height>200</height></size>"
        (folder / f"{name}.xml").write_text(f"<annotation>{size}{text}</annotation>")
    return folder


def _cvat(folder: Path, objects: list[dict[str, Any]]) -> Path:
    text = ""
    for name, rows in (("1", (0, 1)), ("2", (2,))):
        text += f'<image id="{name}" name="{name}.jpg" width="200" height="200">'
        for n in rows:
            x, y, w, h = BOXES[n]
            own = dict(objects[n])
            shape = f' truncated="{own.pop("truncated")}"' if "truncated" in own else ""
            tags = "".join(f'<attribute name="{k}">{v}</attribute>' for k, v in own.items())
            corners = f'xtl="{x}" ytl="{y}" xbr="{x + w}" ybr="{y + h}"'
            text += f'<box label="x"{shape} {corners}>{tags}</box>'
        text += "</image>"
    path = folder / "annotations.xml"
    path.write_text(f"<annotations>{text}</annotations>")
    return path


Writer = Callable[[Path, list[dict[str, Any]]], Path]
writers = pytest.mark.parametrize("write", [_coco, _json_lines, _voc, _cvat])


@writers
def test_readers_read_the_named_attributes(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path, OBJECTS)
    table = detap.read_ground_truth(path, attributes=("truncated", "pose", "vis", "none"))
    assert table.extra["vis"].tolist() == [0.9, 0.25, 1]
    assert table.extra["truncated"].tolist() == [0, 1, 1]
    assert table.extra["pose"].tolist() == ["Left", "Right", "Left"]
    assert np.isnan(table.extra["none"]).all()
    plain = detap.read_ground_truth(path)
    assert not plain.extra
    for name, column in plain.columns().items():
        assert_same_bits(table.columns()[name], column, name)
    assert (table.images, table.classes) == (plain.images, plain.classes)
    assert ignored_by_condition(table, where("vis<0.5 or pose=='x'")).tolist() == [0, 1, 0]


@writers
def test_evaluation_reads_the_attributes_of_the_protocol(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path, OBJECTS)
    truth = detap.read_ground_truth(path)
    detections = Detections.from_arrays(
        image=[truth.images[n] for n in truth.image],
        label=[truth.class_ids[n] for n in truth.label],
        boxes=truth.corners,
        score=[0.5, 0.4, 0.3],
    )
    result = detap.evaluate(path, detections, protocol=where("vis<0.5 or truncated==0"))
    assert result.ignored.tolist() == [2]
    assert result.ground_truths.tolist() == [1]


@writers
def test_an_attribute_may_be_missing_until_it_is_used(write: Writer, tmp_path: Path) -> None:
    path = write(tmp_path, [OBJECTS[0], {"pose": "Left"}, OBJECTS[2]])
    table = detap.read_ground_truth(path, attributes=("vis", "truncated", "pose"))
    assert np.isnan(table.extra["vis"]).tolist() == [False, True, False]
    with pytest.raises(InputError, match=r"class 'x' has no attribute 'vis', as 1 of 3"):
        ignored_by_condition(table, where("vis<0.5"))


@pytest.mark.parametrize("write", [_coco, _json_lines])
@pytest.mark.parametrize("value", [[1], {"a": 1}, 10**400])
def test_invalid_attributes_are_errors_of_the_file(
    write: Writer, tmp_path: Path, value: Any
) -> None:
    path = write(tmp_path, [OBJECTS[0], {**OBJECTS[1], "vis": value}, OBJECTS[2]])
    with pytest.raises(InputError, match="vis is "):
        detap.read_ground_truth(path, attributes=("vis",))


def test_attributes_with_names_of_columns_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'label' has the name of a column"):
        detap.read_ground_truth(_coco(tmp_path, OBJECTS), attributes=("label",))


def test_mixed_numbers_and_text_of_json_are_text(tmp_path: Path) -> None:
    path = _coco(tmp_path, [{"a": "0.5"}, {"a": 2}, {"a": ""}])
    table = detap.read_ground_truth(path, attributes=("a",))
    assert table.extra["a"].tolist() == ["0.5", "2.0", ""]


def test_attributes_of_several_files(tmp_path: Path) -> None:
    paths = []
    for number, images in enumerate(((1, 2), (3, 4))):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = _coco(folder, OBJECTS)
        data = json.loads(path.read_text())
        for row in data["annotations"]:
            row["image_id"] = images[row["image_id"] - 1]
            row["vis"] += number
        data["images"] = [{"id": image} for image in images]
        path.write_text(json.dumps(data))
        paths.append(path)
    table = detap.read_ground_truth(paths, attributes=("vis",))
    assert table.extra["vis"].tolist() == [0.9, 0.25, 1, 1.9, 1.25, 2]


def test_kitti_labels_have_occlusion_and_truncation(real_data: Path) -> None:
    folder = next((real_data / "kitti-from-voc").rglob("label_2"), None)
    if folder is None:
        pytest.skip("no KITTI labels")
    table = detap.read_ground_truth(folder, format="kitti")
    mask = ignored_by_condition(table, where("occluded>0 or truncated>0.3"))
    expected = (table.extra["occluded"] > 0) | (table.extra["truncated"] > 0.3)
    assert mask.tolist() == expected.tolist()
    assert 0 < mask.sum() < len(mask)
