"""A short run of the fuzzer, structural mutations by hypothesis, and former findings."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.formats.coco.results import ResultsFile
from fuzz import targets
from fuzz.__main__ import run
from fuzz.mutate import Mutator
from fuzz.seeds import SEEDS
from fuzz.targets import TARGETS, Disagreement


@pytest.mark.parametrize("target", TARGETS)
def test_seeds_are_valid(target: str) -> None:
    assert set(TARGETS[target](SEEDS[target])) == {"valid"}


@pytest.mark.parametrize("target", TARGETS)
def test_mutated_inputs_are_handled(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    counts, wrong = run(target, 2_000, seed=20)
    assert wrong == 0, capsys.readouterr().out
    # Enough of both, or the mutations would test little.
    assert counts["valid"] > 50
    assert counts["refused"] > 500


def test_mutations_depend_only_on_the_seed() -> None:
    one, other = (Mutator("coco-truth", 3) for _ in range(2))
    assert [one.next() for _ in range(50)] == [other.next() for _ in range(50)]
    assert Mutator("coco-truth", 4).next() != Mutator("coco-truth", 3).next()


def test_a_differing_reader_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    valid = SEEDS["coco-results"][0]
    real = ResultsFile.columns

    def off_by_an_ulp(*given: Any) -> Any:
        table = real(*given)
        return replace(table, score=np.array([0.9000000000000001, *table.score[1:]]))

    monkeypatch.setattr(ResultsFile, "columns", off_by_an_ulp)
    with pytest.raises(Disagreement, match="reads other values"):
        targets.coco_results(valid)


def test_a_crashing_reader_is_detected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def crash(*_: Any) -> Any:
        raise RecursionError("deep")

    monkeypatch.setattr(targets, "read_annotation", crash)
    _, wrong = run("voc-xml", 5, seed=1)
    assert wrong == 5
    assert "RecursionError: deep" in capsys.readouterr().out


# --- former findings

FOUND = {
    # The reader did not check for NaN among the categories of a results object.
    "nan-among-categories": (
        "coco-results",
        b'{"annotations": [], "categories": [{"id": NaN, "name": "cat"}]}',
        "refused",
    ),
    "infinity-among-categories": (
        "coco-results",
        b'{"annotations": [], "categories": [{"id": -Infinity, "name": "cat"}]}',
        "refused",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_former_findings(name: str) -> None:
    target, data, expected = FOUND[name]
    assert TARGETS[target]([data]) == [expected]


# --- structure, by hypothesis: valid files of any content, then one thing in them changed

ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from([[], {}, [1, 2, 3, 4], [[0, 0, 1, 1]], 2**53, 2**64, -0.0, 1e308, "1", "é"]),
)
SIDES = st.one_of(st.integers(0, 1000), st.floats(0, 1e6))
BOX = st.tuples(SIDES, SIDES, SIDES, SIDES).map(list)


@st.composite
def ground_truths(draw: Any) -> dict[str, Any]:
    images = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5, unique=True))
    classes = draw(st.lists(st.integers(0, 100), min_size=1, max_size=4, unique=True))
    count = draw(st.integers(1, 6))
    annotations = []
    for number in range(count):
        record: dict[str, Any] = {
            "id": number,
            "image_id": draw(st.sampled_from(images)),
            "category_id": draw(st.sampled_from(classes)),
            "bbox": draw(BOX),
        }
        if draw(st.booleans()):
            record["area"] = draw(SIDES)
        if draw(st.booleans()):
            record["iscrowd"] = draw(st.sampled_from([0, 1, True, 1.0]))
        annotations.append(record)
    return {
        "images": [{"id": name, "width": draw(SIDES), "height": draw(SIDES)} for name in images],
        "annotations": annotations,
        "categories": [{"id": name, "name": draw(st.text(max_size=8))} for name in classes],
    }


@st.composite
def results(draw: Any) -> Any:
    records = st.fixed_dictionaries(
        {
            "image_id": st.sampled_from([1, 2, 3, 40]),
            "category_id": st.sampled_from([1, 2, 90, 7]),
            "bbox": BOX,
            "score": st.floats(allow_nan=False, allow_infinity=False),
        },
        optional={"id": st.integers(), "area": SIDES, "segmentation": ODD},
    )
    listed = draw(st.lists(records, max_size=6))
    return draw(st.sampled_from([listed, {"annotations": listed}, {"x": 1, "predictions": listed}]))


@st.composite
def edited(draw: Any, source: st.SearchStrategy[Any]) -> Any:
    """Return a value with one part removed, repeated, or replaced by something unusual."""
    value = json.loads(json.dumps(draw(source)))
    parent: Any = None
    where: Any = None
    here = value
    while isinstance(here, dict | list) and here and draw(st.integers(0, 4)):
        keys: Any = list(here) if isinstance(here, dict) else range(len(here))
        parent, where = here, draw(st.sampled_from(keys))
        here = parent[where]
    if parent is None:
        return draw(st.one_of(st.just(value), ODD))
    action = draw(st.sampled_from(["replace", "remove", "double", "rename"]))
    if action == "remove":
        del parent[where]
    elif action == "double" and isinstance(parent, list):
        parent.insert(where, parent[where])
    elif action == "rename" and isinstance(parent, dict):
        parent[draw(st.text(max_size=4))] = parent.pop(where)
    else:
        parent[where] = draw(ODD)
    return value


SPELLINGS = st.fixed_dictionaries(
    {"indent": st.sampled_from([None, 0, 2]), "ensure_ascii": st.booleans()}
)


def as_json(value: Any, how: dict[str, Any]) -> bytes:
    return json.dumps(value, **how).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("read", "source"),
    [(targets.coco_truth, ground_truths()), (targets.coco_results, results())],
    ids=["truth", "results"],
)
def test_structure_of_coco_files(
    read: Callable[[bytes], str], source: st.SearchStrategy[Any]
) -> None:
    @given(edited(source), SPELLINGS)
    def every_reading_agrees(value: Any, how: dict[str, Any]) -> None:
        read(as_json(value, how))

    @given(source, SPELLINGS)
    def valid_files_are_read(value: Any, how: dict[str, Any]) -> None:
        assert read(as_json(value, how)) == "valid"

    every_reading_agrees()
    valid_files_are_read()


TEXTS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=6)
VALUES = st.one_of(
    st.integers(-5, 500).map(str),
    st.floats(-10, 1000).map(repr),
    st.sampled_from(["1e999", "nan", "", " 7 ", "1_0", "\uff11", "0x1", "1,5", "+3", ".5", "5."]),
)


@st.composite
def elements(draw: Any) -> str:
    def element(name: str, content: str) -> str:
        return f"<{name}>{content}</{name}>" if draw(st.integers(0, 15)) else content

    def escaped(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    low, high = sorted(draw(st.tuples(st.integers(0, 99), st.integers(0, 99))))
    corners = {"xmin": str(low), "ymin": str(low), "xmax": str(high), "ymax": str(high)}
    if not draw(st.integers(0, 3)):
        corners[draw(st.sampled_from(list(corners)))] = draw(VALUES)
    order = draw(st.permutations(list(corners)))
    parts = [
        element("name", escaped(draw(TEXTS)) or "x"),
        element("difficult", draw(st.sampled_from(["0", "1", "0", "1", "", "2", " 1 "]))),
        element("bndbox", "".join(element(name, corners[name]) for name in order)),
        draw(st.sampled_from(["", "<part><name>p</name></part>", "<!-- x -->", "<?x y?>"])),
    ]
    return element("object", "".join(draw(st.permutations(parts))))


@given(st.lists(elements(), max_size=4), st.sampled_from(["", "<size><width>5</width></size>"]))
def test_structure_of_annotations(objects: list[str], size: str) -> None:
    text = f"<annotation>{size}{''.join(objects)}</annotation>"
    TARGETS["voc-xml"]([text.encode()])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "img_03", "c"]), st.lists(VALUES, min_size=4, max_size=6)
        ),
        max_size=5,
    ),
    st.sampled_from([" ", "\t", "  ", "\u00a0"]),
    st.sampled_from(["\n", "\r\n", "\n\n", "\r"]),
)
def test_structure_of_lines(rows: list[tuple[str, list[str]]], gap: str, end: str) -> None:
    text = end.join(gap.join((name, *values)) for name, values in rows)
    TARGETS["voc-text"]([text.encode()])
