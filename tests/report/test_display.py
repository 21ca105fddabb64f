"""`print`, `repr` and notebooks show tables and one line, never an object's address."""

import sys
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from inspect import isclass
from typing import Any

import numpy as np
import pytest

import detap
from detap.analysis import match_results
from detap.analysis.breakdowns import breakdowns, score_histogram
from detap.analysis.comparison import compare, count_errors
from detap.analysis.crosscheck import cross_check
from detap.analysis.image_results import image_results
from detap.analysis.operating import sweeps
from detap.analysis.power import power_analysis
from detap.formats.ranking.runs import read_run
from detap.protocols import ranking as ranking_protocols
from detap.ranking import classification, objectives, retrieval
from detap.tables.ranking import Run, Samples
from tests.cli.conftest import Run as Command
from tests.conftest import ROOT
from tests.tables import dt_table, gt_table

VOC = ROOT / "fixtures/quickstart/voc"
COCO = ROOT / "fixtures/quickstart/coco"
MOST = 130
"""Most characters of a `repr`."""


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@cache
def result() -> detap.Result:
    ground_truth = detap.read_ground_truth(VOC)
    detections = detap.read_detections(VOC / "detections", ground_truth)
    return detap.evaluate(ground_truth, detections, "voc2012")


@cache
def coco() -> detap.Result:
    ground_truth = detap.read_ground_truth(COCO / "instances.json")
    detections = detap.read_detections(COCO / "results.json", ground_truth)
    return detap.evaluate(ground_truth, detections, "coco")


def results() -> match_results.MatchResults:
    return match_results.MatchResults.of(result())


def run() -> Run:
    case = ROOT / "fixtures/ranking-ties"
    return read_run(str(case / "run.json"), str(case / "qrels.json"))


def samples() -> Samples:
    return Samples(
        score=np.array([[0.9, 0.1], [0.2, 0.8]]),
        truth=np.array([[1, 0], [0, 1]], np.int8),
        scored=np.ones((2, 2), np.bool_),
        classes=("cat", "dog"),
        samples=("a", "b"),
    )


VALUES: dict[str, Callable[[], Any]] = {
    "result": result,
    "ground truth": lambda: result().ground_truth,
    "detections": lambda: result().detections,
    "match table": lambda: result().match_table,
    "matches": lambda: result().with_matches().matches,
    "curve": lambda: result().curves()[0],
    "evaluator": lambda: detap.Evaluator(result().ground_truth),
    "protocol": lambda: detap.protocol("coco").with_changes(iou_thresholds=(0.5,)),
    "errors": lambda: result().errors(),
    "confusion": lambda: result().confusion(),
    "calibration": lambda: result().calibration(),
    "reliability": lambda: result().calibration().overall,
    "operating point": lambda: result().operating_point(),
    "point": lambda: result().operating_point().overall,
    "sweeps": lambda: sweeps(result()),
    "sweep": lambda: sweeps(result()).overall,
    "comparison": lambda: compare(result(), result(), resamples=10),
    "resampled": lambda: compare(result(), result(), resamples=10).resamples[0],  # type: ignore[index]
    "error counts": lambda: count_errors(result()),
    "breakdowns": lambda: breakdowns(result()),
    "breakdown": lambda: breakdowns(result()).size,
    "histogram": lambda: score_histogram(results()),
    "match results": results,
    "image results": lambda: image_results(result(), "000003"),
    "power analysis": lambda: power_analysis(compare(result(), result(), resamples=10)),
    "cross-check": lambda: cross_check(coco()),
    "retrieval": lambda: retrieval.evaluate(run()),
    "classification": lambda: classification.evaluate(samples()),
    "ranked run": run,
    "samples": samples,
    "objectives": lambda: objectives.objectives(run(), ranking_protocols.retrieval("retrieval")),
}


class Page(HTMLParser):
    """The elements of a page, its words and the cells of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: set[str] = set()
        self.cells: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.elements.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


@pytest.mark.parametrize("name", VALUES)
def test_repr_is_one_short_line(name: str) -> None:
    value = VALUES[name]()
    text = repr(value)
    assert text.startswith(f"{type(value).__name__}(")
    assert "\n" not in text
    assert len(text) <= MOST
    assert " at 0x" not in text + str(value)


def test_each_public_class_is_among_them() -> None:
    shown = {type(make()) for make in VALUES.values()}
    # Names, severities and messages of exceptions and notes are their text.
    plain = {detap.Note, *(c for c in vars(detap.errors).values() if isclass(c))}
    public = {value for name in detap.__all__ if isclass(value := getattr(detap, name))}
    assert public - plain <= shown
    assert "'voc2012': Protocol('voc2012'), " in repr(detap.PRESETS)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("result", ("class", "mean / sum", "metric", "protocol:voc2012|detap:")),
        ("errors", ("TIDE errors at IoU 0.5", "dAP by class", "missed")),
        ("confusion", ("Confusion matrix at IoU 0.5", "background FP")),
        ("calibration", ("Score calibration at IoU 0.5", "0.9 to 1")),
        ("operating point", ("Operating point: best F1 per class, IoU 0.5", "all classes")),
        ("comparison", ("Comparison (95% CI)", "No class changed")),
        ("breakdowns", ("Breakdowns at IoU 0.5", "2-3 objects in image")),
        ("retrieval", ("q1", "R-precision", "protocol:retrieval|")),
        ("classification", ("class", "AP", "protocol:voc2012")),
    ],
)
def test_print_shows_tables(value: str, words: tuple[str, ...]) -> None:
    shown = VALUES[value]()
    for word in words:
        assert word in str(shown)
    page = Page(shown._repr_html_())
    assert page.cells


def test_print_of_a_result_equals_the_command(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")  # which the command heeds in a pipe
    ended = command("eval", "--gt", VOC, "--dt", VOC / "detections").passed()
    assert str(result()) + "\n" == ended.out


def test_an_operating_point_names_its_score() -> None:
    text = str(result().operating_point(0.5))
    assert text.startswith("Operating point: score >= 0.5, IoU 0.5\n")


def test_rows_of_tables_are_shown() -> None:
    ground_truth = detap.GroundTruth.from_arrays(
        image=["a", "b"],
        label=["cat", "dog"],
        boxes=[[10.0, 20.0, 30.0, 40.25], [1.0, 2.0, 3.0, 4.0]],
        crowd=[False, True],
        difficult=[False, True],
    )
    assert str(ground_truth).splitlines() == [
        "GroundTruth(2 ground truths, 2 images, 2 classes)",
        "image  class  x1  y1  x2     y2  flags",
        "─" * 49,
        "a      cat    10  20  30  40.25",
        "b      dog     1   2   3      4  crowd, difficult",
    ]
    detections = dt_table([[10, 20, 30, 40]], [0.125], image="a", label="cat")
    assert str(detections).splitlines() == [
        "Detections(1 detections, 1 images, 1 classes)",
        "image  class  x1  y1  x2  y2  score",
        "─" * 35,
        "a      cat    10  20  30  40  0.125",
    ]
    head = ["image", "class", "x1", "y1", "x2", "y2", "score"]
    row = ["a", "cat", "10", "20", "30", "40", "0.125"]
    assert Page(detections._repr_html_()).cells == head + row


def test_only_the_ends_of_many_rows_are_shown() -> None:
    count = 101
    table = dt_table([[0, 0, 1, 1]] * count, np.zeros(count), image=np.arange(count), label="cat")
    images = [line.split()[0] for line in str(table).splitlines()[3:]]
    assert images == ["0", "1", "2", "3", "4", "…", "96", "97", "98", "99", "100"]
    assert Page(table._repr_html_()).cells[7::7] == images
    assert len(str(table.select(np.arange(100))).splitlines()) == 103


def test_only_the_ends_of_many_classes_are_shown() -> None:
    names = [f"c{number:03}" for number in range(101)]
    box = [[0, 0, 10, 10]] * 101
    ground_truth = gt_table(box, image=1, label=names)
    detections = dt_table(box, [0.5] * 101, image=1, label=names)
    whole = detap.evaluate(ground_truth, detections, "voc2012")
    shown = [line.split()[0] for line in str(whole).splitlines() if line]
    assert [name for name in shown if name[0] in "c…"][1:] == [*names[:5], "…", *names[-5:]]
    assert len(whole.table()) == 101


def test_a_table_without_rows_is_its_repr() -> None:
    table = result().detections.select(np.zeros(0, np.int64))
    assert str(table) == repr(table) == "Detections(0 detections, 6 images, 3 classes)"
    assert Page(table._repr_html_()).cells == []


def test_no_name_of_a_table_is_markup_or_a_terminal_code() -> None:
    table = dt_table([[0, 0, 1, 1]], [1], image="<b>\x1b[31m", label="<script>")
    assert "<b>\\x1b[31m" in str(table)
    assert "&lt;b&gt;\\x1b[31m" in table._repr_html_()
    assert "<script>" not in table._repr_html_()


def test_table_and_data_frame_have_a_row_per_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: fixtures/quickstart/why.md has 5, 4 and 4 ground truths."""
    rows = result().table()
    assert [row["name"] for row in rows] == ["bird", "cat", "dog"]
    assert [row["ground_truths"] for row in rows] == [5, 4, 4]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows)
    assert frame["AP"].tolist() == result().by_class["AP"].tolist()
    assert frame["ground_truths"].dtype == np.int64
    frame = perfect().to_dataframe()
    assert list(frame["name"]) == ["cat", "dog"]
    assert frame["AP"].isna().tolist() == [False, True]
    assert frame["false_positives"].tolist() == [0, 1]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(detap.UsageError, match="needs pandas: pip install pandas"):
        result().to_dataframe()


def perfect(name: str = "cat") -> detap.Result:
    """Return the result of one perfectly detected class and one without ground truth."""
    box = [[0.0, 0.0, 10.0, 10.0]]
    truth = gt_table(box, image=1, label=name)
    detections = dt_table(box * 2, [0.9, 0.5], image=1, label=[name, "dog"])
    with pytest.warns(detap.DetapWarning):
        return detap.evaluate(truth, detections, "voc2012")


def test_a_notebook_shows_the_primary_metric_and_classes() -> None:
    seen = Page(perfect()._repr_html_())
    assert "mAP 1.0000" in seen.words
    assert {"cat", "dog", "\N{EN DASH}"} <= {*seen.words}
    assert any(word.startswith("protocol:voc2012|detap:") for word in seen.words)


def test_no_name_of_a_result_is_markup() -> None:
    text = perfect("<script>alert(1)</script>\x1b[31m&")._repr_html_()
    elements = "div p strong code table thead tbody tr th td"
    assert Page(text).elements == set(elements.split())
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m&amp;" in text
