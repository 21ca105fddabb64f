"""Class maps: rules, and what they do to the columns of both tables."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.errors import InputError, Note, UsageError
from detap.formats.class_map import (
    ClassMap,
    class_map_of,
    map_detections,
    map_ground_truth,
    map_tables,
)
from tests.raised import raised

EVERYTHING = """\
car = "vehicle"
"potted plant" = "-"
[gt]
train = { to = "vehicle", as = "crowd" }
[dt]
lorry = "vehicle"
rest = "-"
"""
AS_JSON = (
    '{"car":"vehicle","dt":{"lorry":"vehicle","rest":"-"},'
    '"gt":{"train":{"as":"crowd","to":"vehicle"}},"potted plant":"-"}'
)


def tables(
    truth: str, detected: str, classes: Any = None, **more: Any
) -> tuple[detap.GroundTruth, detap.Detections]:
    """Return tables of one image with a box per class named, one letter each."""
    ids = {name: number for number, name in (classes or {}).items()}

    def rows(names: str) -> dict[str, Any]:
        return {
            "image": [1] * len(names),
            "label": [ids.get(name, name) for name in names],
            "boxes": [[10 * k, 0, 10 * k + 8, 8] for k in range(len(names))],
        }

    table = detap.GroundTruth.from_arrays(**rows(truth), classes=classes, **more)
    scores = np.linspace(0.9, 0.1, len(detected))
    return table, detap.Detections.from_arrays(**rows(detected), score=scores)


def named(table: detap.GroundTruth | detap.Detections) -> str:
    return "".join(table.classes[k] for k in table.label.tolist())


# --- the file


def test_maps_of_the_same_meaning_have_one_text(tmp_path: Path) -> None:
    for name, text in {
        "map.toml": 'car = "vehicle"\n"a, b" = "-"\n',
        "map.JSON": '\ufeff{"a, b": "-", "car": "vehicle"}',
        "map.csv": 'from,to\r\n"a, b",-\r\n\r\ncar,vehicle\r\n',
    }.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        assert class_map_of(path).text == '{"a, b":"-","car":"vehicle"}'
    path = tmp_path / "map.toml"
    path.write_text(EVERYTHING)
    class_map = class_map_of(path)
    assert class_map.text == AS_JSON
    assert class_map_of(json.loads(AS_JSON)).text == class_map.text
    path.write_text("# other layout\n" + EVERYTHING.replace("car =", "'car'  ="))
    assert class_map_of(path).text == class_map.text
    path.write_text(EVERYTHING.replace("crowd", "ignore"))
    assert class_map_of(path).text != class_map.text
    expanded = {"gt": {"a": "b"}, "dt": {"a": "b"}}
    assert class_map_of(expanded).text == class_map_of({"a": "b"}).text == '{"a":"b"}'


def test_detections_alone_lose_the_note_on_files_of_ground_truth_classes() -> None:
    _, detected = tables("", "ab")
    note = Note("classes-without-file", "classes without a detections file have AP 0: 'c'", 1)
    _, [mapped] = map_tables({"a": "v"}, (), [replace(detected, notes=(note,))])
    assert [note.code for note in mapped.notes] == ["class-map"]


def test_a_class_may_be_named_as_a_side_or_rest() -> None:
    side = class_map_of({"gt": {"a": "b"}, "dt": "c"})
    assert side.text == '{"dt":{"dt":"c"},"gt":{"a":"b","dt":"c"}}'
    rest = class_map_of({"dt": {"rest": {"to": "other"}, "a": "b"}})
    assert rest.rest == "keep"
    for class_map in (side, rest):
        assert class_map_of(json.loads(class_map.text)) == class_map


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.toml", "car = ", "m.toml: is not valid TOML: "),
        ("m.toml", "", 'm.toml: has no rule; write a line such as car = "vehicle"'),
        ("m.toml", "car = 3", "m.toml: car: is mapped to 3; expected the name of a class"),
        ("m.toml", "[gt]\ncar = {to = 'x', at = 'y'}", "[gt] car: is mapped to {"),
        ("m.toml", "[gt]\ncar = {}", "m.toml: [gt] car: is mapped to {}"),
        ("m.toml", "[gt]\ncar = {as = 'crwd'}", 'as = "crowd" } (crowd, ignore, difficult)'),
        ("m.toml", "car = {as = 'crowd'}", 'car: is mapped to {"as": "crowd"}; expected the'),
        ("m.toml", "[gt]\ncar = {to = '-', as = 'crowd'}", "car: is mapped to {"),
        ("m.toml", "[dt]\nrest = 'x'", "m.toml: [dt] rest: is 'x'; use keep, -, error; a class"),
        ("m.json", "[1]", "m.json: is not a table of classes; expected car = "),
        ("m.json", '{"a"', "m.json: is not valid JSON: "),
        ("m.json", '{"a": "b", "a": "c"}', "m.json: is not valid JSON: several rules for 'a'; ex"),
        ("m.csv", "a,b\n", "m.csv: is not valid CSV: the first line is not from,to; expected"),
        ("m.csv", "from,to\na,b,c\n", "a,b,c has 3 columns; quote names with a comma"),
        ("m.csv", "from,to\na,b\na,c\n", "m.csv: is not valid CSV: several rules for 'a'; ex"),
    ],
)
def test_an_invalid_file(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert message in str(raised(InputError, class_map_of, path))


def test_other_arguments(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"class map .*\.txt is not \.toml, \.json or \.csv"):
        class_map_of(tmp_path / "map.txt")
    with pytest.raises(UsageError, match="class_map is int, expected a path or a mapping"):
        class_map_of(3)
    with pytest.raises(InputError, match='class_map: 1: is mapped to "car"; expected'):
        class_map_of({1: "car"})


# --- the tables


def test_merged_classes_keep_rows_and_get_ids_in_order_of_first_appearance() -> None:
    truth, detected = tables("bacb", "acb", {3: "b", 7: "a", 9: "c"})
    mapped = map_ground_truth(ClassMap.of({"a": "x", "c": "b"}), truth)
    assert (mapped.classes, mapped.class_ids) == (("b", "x"), (1, 2))
    assert named(mapped) == "bxbb"
    _, [detections] = map_tables({"a": "x", "c": "b"}, [truth], [detected.reindex_like(truth)])
    assert (detections.classes, detections.class_ids) == (("b", "x"), (1, 2))
    assert named(detections) == "xbb"
    assert detections.corners.tolist() == detected.corners.tolist()


def test_flags_of_the_ground_truth() -> None:
    truth, _ = tables("abc", "", difficult=[False, True, False])
    rules = {"a": {"as": "crowd"}, "b": {"to": "a", "as": "ignore"}, "c": {"as": "difficult"}}
    mapped = map_ground_truth(ClassMap.of({"gt": rules}), truth)
    assert named(mapped) == "aac"
    assert mapped.crowd.tolist() == [True, False, False]
    assert mapped.ignore.tolist() == [False, True, False]
    assert mapped.difficult.tolist() == [False, True, True]
    assert not truth.crowd.any()


def test_lists_and_groups_of_merged_classes() -> None:
    """Absent if all are absent; incomplete or present if one is; the most frequent group."""
    listed = {
        "negative": [(1, "a"), (1, "b"), (2, "a"), (1, "c"), (2, "d")],
        "not_exhaustive": [(2, "b")],
        "positive": [(1, "d"), (2, "a")],
    }
    groups = {"a": "rare", "b": "frequent", "c": "common"}
    truth, _ = tables("abcd", "", images=[1, 2], listed=listed, groups=groups)
    mapped = map_ground_truth(ClassMap.of({"a": "x", "b": "x", "c": "-"}), truth)
    assert mapped.classes == ("d", "x")
    assert {name: pairs.tolist() for name, pairs in mapped.listed.items()} == {
        "negative": [[0, 1], [1, 0]],
        "not_exhaustive": [[1, 1]],
        "positive": [[0, 0], [1, 1]],
    }
    assert mapped.groups == {"x": "frequent"}


def test_classes_that_the_map_does_not_name() -> None:
    truth, detected = tables("ab", "abxx")
    detected = detected.reindex_like(truth)
    for rest, expected in {"keep": "vbxx", "-": "v"}.items():
        class_map = ClassMap.of({"a": "v", "dt": {"rest": rest}})
        mapped = map_detections(class_map, detected, truth, map_ground_truth(class_map, truth))
        assert named(mapped) == expected
    kept = ClassMap.of({"a": "b", "dt": {"rest": "-"}})  # b is named, as a target
    pair = truth, map_ground_truth(kept, truth)
    assert named(map_detections(kept, detected, *pair)) == "bb"
    error = raised(InputError, map_tables, {"a": "v", "dt": {"rest": "error"}}, [truth], [detected])
    assert str(error) == (
        "class_map: [dt] rest: the map does not name 'b', 'x' (3 detections); map each, also to "
        'itself, or use rest = "-" or "keep"'
    )
    misspelt = {"y": "v", "z": "v", "gt": {"q": "v"}}
    assert len(raised(InputError, map_tables, misspelt, [truth], [detected]).problems) == 3
    named_all = {"a": "v", "b": "b", "dt": {"x": "x", "rest": "error"}}
    assert named(map_tables(named_all, [truth], [detected])[1][0]) == "vbxx"


@pytest.mark.parametrize(
    ("class_map", "message"),
    [
        ({"bycicle": "x"}, "class 'bycicle' is not in the inputs; did you mean 'bicycle'?"),
        ({"zzz": "x"}, "class 'zzz' is not in the inputs; it has 'bicycle', 'car', 'lorry'"),
        ({"gt": {"lorry": "x"}}, "[gt]: class 'lorry' is not in the ground truth; it has "),
        ({"dt": {"lory": "x"}}, "class 'lory' is not in the detections; did you mean 'lorry'?"),
        ({"car": "-", "bicycle": "-"}, "with ground truths is dropped (2 ground truths); keep"),
        ({"dt": {"lorry": "-", "car": "-"}}, "every class with detections is dropped (2 "),
    ],
)  # fmt: skip
def test_a_map_that_cannot_be_meant(class_map: Any, message: str) -> None:
    box: dict[str, Any] = {"boxes": [[0, 0, 9, 9]] * 2, "image": [1, 1]}
    truth = detap.GroundTruth.from_arrays(**box, label=["car", "bicycle"])
    detected = detap.Detections.from_arrays(**box, label=["car", "lorry"], score=[0.5, 0.6])
    assert message in str(raised(InputError, detap.evaluate, truth, detected, class_map=class_map))


def test_what_a_map_did_in_one_line() -> None:
    truth, detected = tables("abcdef", "aabz")
    merged = dict.fromkeys("abc", "v") | {"d": "w", "e": "x", "f": "-", "gt": {}}
    _, [mapped] = map_tables(merged, [truth], [detected.reindex_like(truth)])
    assert str(mapped.notes[-1]) == (
        "class map: 3 classes to v, 1 to w, 1 to x, 1 dropped (6 ground truths, 3 detections) "
        "[class-map]"
    )
    for rules, effect in (
        ({"gt": {"a": {"as": "crowd"}}}, "1 class as crowd (1 ground truth)"),
        (
            dict(zip("abcdef", "ghijkl", strict=True)),
            "1 class to g, 1 to h, 1 to i, 1 to j, 1 to k, 1 more (6 ground truths)",
        ),
        ({"a": "a"}, "no class changed"),
    ):
        [mapped_truth], _ = map_tables(rules, [truth], [])
        assert str(mapped_truth.notes[-1]) == f"class map: {effect} [class-map]"


def test_detections_that_become_duplicates() -> None:
    """Two boxes of one object, of two classes that are merged: a match and a duplicate."""
    (truth, _), (_, detected) = tables("c", ""), tables("", "cv")
    detected = replace(detected, corners=detected.corners[[0, 0]])
    result = detap.evaluate(truth, detected, "voc2012", class_map={"dt": {"v": "c"}})
    assert result.true_positives.tolist() == [1]
    assert result.false_positives.tolist() == result.duplicates.tolist() == [1]
    assert "|class-map:" in result.signature
