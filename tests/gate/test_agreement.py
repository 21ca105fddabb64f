"""The agreement of two annotators: figures of a reference program, symmetry and the command."""

import json
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap import GroundTruth
from detap.analysis.agreement import Agreement, agreement, f1
from tests.cli.conftest import Ended, Run
from tests.coco import truth_of
from tests.schemas import valid
from tests.tables import gt_table

Row = tuple[Any, str, Sequence[float]]

CASES = (
    *("equal", "one-class", "classes-swapped", "one-missing", "nothing-common", "both-empty"),
    *("class-decides-a-tie", "voc-100-two", "coco-100-two"),
)
DASH = "\N{EN DASH}"
A, B = [0, 0, 10, 10], [50, 50, 60, 60]


def truth(rows: Sequence[Row], images: Sequence[Any] = (1,), **columns: Any) -> GroundTruth:
    none: Any = ((), (), np.zeros((0, 4)))
    image, label, boxes = zip(*rows, strict=True) if rows else none
    return gt_table(np.array(boxes, float), image, label, images=images, as_is=True, **columns)


def cells(result: Agreement) -> dict[tuple[str, str], int]:
    """Return the nonzero cells of the table of classes."""
    names = (*result.classes, "none")
    rows, columns = (axis.tolist() for axis in result.matrix.nonzero())
    return {
        (names[row], names[column]): int(result.matrix[row, column])
        for row, column in zip(rows, columns, strict=True)
    }


def same(actual: float, expected: float | None) -> bool:
    if expected is None or isnan(expected):
        return isnan(actual)
    return actual == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_figures_of_the_reference_program(unscored: Path, name: str) -> None:
    cases = json.loads((unscored / "agreement.json").read_text())["cases"]
    assert [case["id"] for case in cases] == list(CASES)
    case = cases[CASES.index(name)]
    sides = [
        [(row["image"], row["class"], row["box"]) for row in case[side]]
        for side in ("first", "second")
    ]
    images = sorted({row[0] for rows in sides for row in rows}) or [1]
    first, second = (truth(rows, images) for rows in sides)
    result, expected = agreement(first, second), case["expected"]
    assert same(result.summary["F1"], expected["F1"])
    assert same(result.mean_iou, expected["mean_IoU"])
    assert same(result.summary["kappa"], expected["kappa"])
    assert same(result.summary["kappa of matched"], expected["kappa_of_matched"])
    assert cells(result) == {(one, two): n for one, two, n in expected["table"]}
    counts = expected["counts"]
    sums = [counts["TP"] + counts["FN"], counts["TP"] + counts["FP"], counts["TP"]]
    assert result.class_counts.sum(axis=0).tolist() == sums
    assert result.image_counts.sum(axis=0).tolist() == sums
    metrics = pytest.importorskip("sklearn.metrics")
    pairs = [cell for cell, n in cells(result).items() for _ in range(n)]
    if pairs and not isnan(result.summary["kappa"]):
        kappa = metrics.cohen_kappa_score(*zip(*pairs, strict=True))
        assert result.summary["kappa"] == pytest.approx(kappa, abs=1e-12)


_side = st.lists(
    st.tuples(
        st.sampled_from([1, 2]),
        st.sampled_from(["cat", "dog", "bird"]),
        st.sampled_from([A, A, [0, 0, 10, 9], [1, 0, 11, 10], [2, 2, 12, 12], B, [50, 50, 60, 59]]),
    ),
    max_size=7,
)


@given(_side, _side, st.randoms())
def test_exchanging_or_shuffling_the_files_changes_only_the_headings(
    one: list[Row], two: list[Row], random: Any
) -> None:
    result = agreement(truth(one, (1, 2)), truth(two, (1, 2)))
    random.shuffle(one)
    exchanged = agreement(truth(two, (2, 1)), truth(one, (1, 2)))
    for name, value in result.summary.items():
        assert (isnan(value) and isnan(exchanged.summary[name])) or value == exchanged.summary[name]
    transposed = {(second, first): n for (first, second), n in cells(exchanged).items()}
    assert cells(result) == transposed
    assert result.image_counts.tolist() == exchanged.image_counts[:, [1, 0, 2]].tolist()


def test_images_and_classes() -> None:
    # Image 1: one of two pairs, F1 2/4; image 2: none; image 3 has no boxes.
    first = truth([(1, "cat", A), (1, "dog", B), (2, "cat", A)], (1, 2, 3))
    second = truth([(1, "cat", A), (1, "cat", B)], (1, 2, 3))
    result = agreement(first, second)
    by_image = f1(result.image_counts)
    assert by_image[:2].tolist() == [0.5, 0]
    assert isnan(by_image[2])
    assert dict(zip(result.classes, f1(result.class_counts).tolist(), strict=True)) == {
        "cat": 0.5,
        "dog": 0,
    }
    assert cells(result) == {("cat", "cat"): 1, ("dog", "cat"): 1, ("cat", "none"): 1}


def test_ignore_flags_do_not_apply_and_crowds_are_left_out() -> None:
    rows = [(1, "cat", A), (1, "cat", B)]
    first = truth(rows, ignore=[True, False], difficult=[True, True], crowd=[False, True])
    result = agreement(first, truth(rows[:1]))
    assert result.summary["F1"] == 1
    assert [str(note) for note in result.notes] == [
        "crowd regions are left out of the agreement [crowds-left-out]"
    ]


def test_classes_are_compared_by_name() -> None:
    def named(classes: dict[Any, str], label: int) -> GroundTruth:
        return GroundTruth.from_arrays(image=[1], label=[label], boxes=[A], classes=classes)

    assert (
        agreement(named({1: "cat", 2: "dog"}, 2), named({1: "dog", 7: "cat"}, 1)).summary["F1"] == 1
    )
    assert (
        agreement(named({1: "cat", 2: "dog"}, 1), named({1: "dog", 7: "cat"}, 1)).summary["F1"] == 0
    )


def coco(path: Path, *boxes: tuple[int, int, list[int]], images: int = 12) -> Path:
    """Write boxes of image, category and x, y, w, h."""
    record = truth_of(boxes, {1: "cat", 2: "dog"}, range(1, images + 1), size=(100, 100))
    path.write_text(json.dumps(record))
    return path


def figures(ended: Ended) -> list[str]:
    """Return F1, mean IoU, kappa and kappa of matched."""
    lines = ended.out.split("metric ", 1)[1].splitlines()[1:5]
    return [line.split()[-1] for line in lines]


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    boxes = [(image, 1, [0, 0, 10, 10]) for image in range(1, 13)]
    first = coco(tmp_path / "first.json", *boxes, (1, 2, [50, 50, 10, 10]))
    return first, coco(tmp_path / "second.json", *boxes)


def test_the_command(detap: Run, pair: tuple[Path, Path], tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    ended = detap("compare", "--agreement", *pair, "-o", report)
    assert (ended.status, ended.err) == (0, "")
    # 12 pairs and a lone dog: F1 24/25; kappa (12/13 - 144/169) / (1 - 144/169) = 12/25.
    assert figures(ended) == ["0.9600", "1.0000", "0.4800", DASH]
    assert ["dog", "0", "0", "1"] in [line.split() for line in ended.out.splitlines()]
    assert ended.out.endswith("\n2 more: -v shows all\n")
    assert detap("compare", "--agreement", *pair, "-v").out.count("\n") == ended.out.count("\n") + 1
    record = valid(json.loads(report.read_text()), "agreement")
    assert len(record["images"]["all"]) == 12
    assert record["images"]["all"][0] == {
        "name": 1,
        "F1": 2 / 3,
        "first": 2,
        "second": 1,
        "pairs": 1,
    }
    assert record["pairs"]["matrix"] == [[12, 0, 0], [0, 0, 1], [0, 0, 0]]
    markdown = detap("compare", "--agreement", *pair, "--output-format", "markdown").out
    assert "| `kappa` | 0.4800 |" in markdown
    table = detap("compare", "--agreement", *pair, "--output-format", "csv").out
    assert table == "name,F1,first,second,pairs\ncat,1.0,12,12,12\ndog,0.0,1,0,0\n"


def test_gates(detap: Run, pair: tuple[Path, Path]) -> None:
    passed = detap(
        "compare", "--agreement", *pair, "--fail-under", "0.9", "--fail-under", "kappa=0.4"
    )
    assert (passed.status, passed.err) == (0, "")
    failed = detap("compare", "--agreement", *pair, "--fail-under", "kappa=0.5")
    assert (failed.status, failed.err) == (1, "gate failed: kappa 0.4800, required >= 0.5\n")
    undefined = detap("compare", "--agreement", *pair, "--fail-under", "kappa-of-matched=0.5")
    assert undefined.status == 1
    row = detap("compare", "--agreement", *pair, "--fail-under", "min-class.F1=0.5")
    assert row.err == "gate failed: min-class.F1 (dog) 0.0000, required >= 0.5\n"
    assert detap("compare", "--agreement", *pair, "--fail-under", "AP=0.5").status == 2


def test_an_empty_side(detap: Run, pair: tuple[Path, Path], tmp_path: Path) -> None:
    empty = coco(tmp_path / "empty.json")
    for files in ((pair[0], empty), (empty, pair[0])):
        # None of 13 boxes has a partner: observed and chance agreement are 0.
        ended = detap("compare", "--agreement", *files)
        assert figures(ended) == ["0.0000", DASH, "0.0000", DASH]
    assert figures(detap("compare", "--agreement", empty, empty)) == [DASH] * 4


def test_settings_files_are_chosen(detap: Run, pair: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "detap.toml").write_text('output-format = "csv"')
    both = ("compare", "--agreement", *pair)
    assert detap(*both, "--isolated").out.startswith("Agreement")
    assert detap(*both, "--config", tmp_path / "detap.toml").out.startswith("name,F1,")


def test_a_text_format(detap: Run, pair: tuple[Path, Path], tmp_path: Path) -> None:
    assert detap("convert", pair[0], "--to", "yolo", "-o", tmp_path / "yolo").status == 0
    ended = detap("compare", "--agreement", *[tmp_path / "yolo"] * 2, "--image-size", "100x100")
    assert figures(ended)[:3] == ["1.0000"] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--agreement", "--protocol", "coco"), "--protocol does not apply to --agreement"),
        (("--agreement", "--gt", "x.json"), "--gt does not apply to --agreement"),
        (("--agreement", "--iou", "0.5,0.75"), "--agreement has one IoU threshold: --iou 0.5"),
        (("--gt", "x.json", "--fail-under", "1"), "--fail-under requires --agreement; to gate a"),
        ((), "Missing option '--gt'"),
    ],
)
def test_options_of_the_other_comparison(
    detap: Run, pair: tuple[Path, Path], options: tuple[str, ...], message: str
) -> None:
    assert message in detap("compare", *pair, *options).refused()


def test_the_threshold(detap: Run, pair: tuple[Path, Path], tmp_path: Path) -> None:
    smaller = [(image, 1, [0, 0, 10, 8]) for image in range(1, 13)]
    other = coco(tmp_path / "smaller.json", *smaller)
    assert figures(detap("compare", "--agreement", pair[1], other))[1] == "0.8000"
    ended = detap("compare", "--agreement", pair[1], other, "--iou", "0.9")
    assert figures(ended)[:2] == ["0.0000", DASH]


def test_other_images_through_the_command(
    detap: Run, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    said = detap(
        "compare",
        "--agreement",
        pair[0],
        coco(tmp_path / "few.json", (1, 1, [0, 0, 9, 9]), images=10),
    ).refused()
    assert "few.json: 2 of 12 images of " in said
    assert "first.json are missing, first 11; give both files" in said
