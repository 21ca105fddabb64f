"""Error analyses of ``detap eval`` on the case computed by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from detap.report.numbers import RULE, UNDEFINED
from detap.report.sections import SECTIONS
from tests.cli.conftest import Files, Run
from tests.cli.test_startup import imported_by
from tests.schemas import valid

# Of fixtures/error-types/why.md.
CHANGES = {
    "classification": 3.3 / 202,
    "localization": 27 / 202,
    "both": 0,
    "duplicate": 3.3 / 202,
    "background": 0,
    "missed": 50 / 202,
    "false_positives": 19.8 / 202,
    "false_negatives": 73.8 / 202,
}
COUNTS = (1, 1, 1, 1, 2, 1, 6, 2)


@pytest.fixture
def case(fixtures: Path) -> list[str]:
    folder = fixtures / "error-types" / "coco"
    files = ["--gt", str(folder / "instances.json"), "--dt", str(folder / "results.json")]
    return ["eval", "--isolated", *files]


def record(detap: Run, case: list[str], *words: str) -> Any:
    """Return the JSON report after validating it against its schema."""
    return valid(detap(*case, *words, "--output-format", "json").report())


@pytest.mark.parametrize(
    ("words", "convention"),
    [(["--errors"], "protocol"), (["--errors", "tidecv"], "tidecv")],
)
def test_errors_equal_the_hand_computed_ones(
    detap: Run, case: list[str], words: list[str], convention: str
) -> None:
    """Without crowds both conventions give the same values."""
    errors = record(detap, case, *words)["errors"]
    assert errors["convention"] == convention
    assert errors["AP"] == pytest.approx(98.2 / 202, abs=1e-12)
    assert list(errors["types"]) == list(CHANGES)
    for (name, change), count in zip(CHANGES.items(), COUNTS, strict=True):
        assert errors["types"][name]["delta_ap"] == pytest.approx(change, abs=1e-12), name
        assert errors["types"][name]["count"] == count, name
    first, second = errors["classes"]
    assert (first["name"], first["id"], second["name"], second["id"]) == ("a", 1, "b", 2)
    # Class b loses all it lacks by one ground truth that is missed.
    assert second["types"]["missed"] == {"delta_ap": pytest.approx(50 / 101), "count": 1}
    total = [sum(row["types"][name]["count"] for row in errors["classes"]) for name in CHANGES]
    assert total == list(COUNTS)


# What people read of all of it, without rules; a dash is ~. The numbers are those of why.md and of
# tests/analysis: of a the AP is 47.2/101, localization costs it 27/101, all it misses 23.8/101.
TEXT = """\
error           dAP if fixed  count
missed (TIDE)        +0.2475      1
localization         +0.1337      1
classification       +0.0163      1
duplicate            +0.0163      1
both                  0.0000      1
background            0.0000      2
all FP               +0.0980      6
all FN               +0.3653      2

dAP by class
class      AP     Miss      Loc      Cls     Dupe    Both     Bkg       FP       FN
a      0.4673   0.0000  +0.2673  +0.0327  +0.0327  0.0000  0.0000  +0.1960  +0.2356
b      0.5050  +0.4950   0.0000   0.0000   0.0000  0.0000  0.0000   0.0000  +0.4950

Operating point: best F1 per class, IoU 0.5
class         score      F1    prec     rec  FP/img  TP  FP  FN
a            0.9500  0.5000  1.0000  0.3333  0.0000   1   0   2
b            0.6000  0.6667  1.0000  0.5000  0.0000   1   0   1
all classes  0.5500  0.5455  0.5000  0.6000  1.0000   3   3   2
Mean F1 over classes with ground truth: 0.5833

Confusion matrix at IoU 0.5 (matching: protocol)
class  ground truths  matched  misclassified  background FN  background FP
a                  3        2              0              1              5
b                  2        1              0              1              1
total              5        3              0              2              6
No misclassifications

Score calibration at IoU 0.5
score bin   confidence  accuracy      gap  detections
0 to 0.1        0.0500    0.0000  +0.0500           1
0.1 to 0.2           ~         ~        ~           0
0.2 to 0.3           ~         ~        ~           0
0.3 to 0.4           ~         ~        ~           0
0.4 to 0.5      0.4000    0.0000  +0.4000           1
0.5 to 0.6      0.5250    0.5000  +0.0250           2
0.6 to 0.7      0.6000    1.0000  -0.4000           1
0.7 to 0.8      0.7000    0.0000  +0.7000           1
0.8 to 0.9      0.8250    0.0000  +0.8250           2
0.9 to 1        0.9500    1.0000  -0.0500           1
ECE 0.3667, MCE 0.8250, LaECE 0.3615 (10 bins; 25 bins for LaECE)

Breakdowns at IoU 0.5
group                     recall  precision  ground truths  matched  detections  true positives
size 0-16 px              0.6000     0.3333              5        3           9               3

Worst images
image  false positives  false negatives
2                    2                2
1                    2                0

Most confident errors
image  class   score  error           ground truth     IoU
1      a      0.8500  duplicate       a             0.9000
1      a      0.8000  classification  b             1.0000

Possible label errors
image  class   score  reason       ground truth
1      a      0.8000  wrong label  b
wrong label: confident detection that overlaps a ground truth of another class
"""


def test_the_text_shows_all_analyses(
    detap: Run, case: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ended = detap(*case, "--analysis", "--examples", "2")
    lines = [line for line in ended.out.splitlines() if not line or set(line) != {RULE}]
    lines = lines[next(n for n, line in enumerate(lines) if line.startswith("error ")) :]
    # Of the parts the first; the others are alike.
    first = next(n for n, line in enumerate(lines) if line.startswith("size 16-32"))
    last = next(n for n, line in enumerate(lines) if line.startswith("bottom right"))
    text = "\n".join([*lines[:first], *lines[last + 1 : -2]])
    assert text.replace(UNDEFINED, "~").rstrip() == TEXT.rstrip()


def test_the_operating_point_maximizes_f1(detap: Run, case: list[str]) -> None:
    point = record(detap, case, "--score-threshold", "best")["operating_point"]
    assert point["score_threshold"] is None
    assert point["overall"] == {
        "score": 0.55,
        "F1": pytest.approx(6 / 11),
        "precision": 0.5,
        "recall": 0.6,
        "false_positives_per_image": 1.0,
        "true_positives": 3,
        "false_positives": 3,
        "false_negatives": 2,
    }
    assert [row["score"] for row in point["classes"]] == [0.95, 0.6]
    assert point["macro_F1"] == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_a_score_threshold_applies_to_all_analyses(detap: Run, case: list[str]) -> None:
    """Scores of at least .7, all of class a: .95 is a TP; .85, .8 and .7 are FPs."""
    report = record(detap, case, "--score-threshold", "0.7", "--confusion", "--breakdowns")
    point = report["operating_point"]
    assert point["score_threshold"] == 0.7
    assert (point["overall"]["precision"], point["overall"]["recall"]) == (0.25, 0.2)
    assert point["overall"]["false_positives_per_image"] == 1.0
    assert point["classes"][1]["precision"] is None
    assert report["confusion"]["score_threshold"] == 0.7
    # The a of .8 lies on the b of the first image, which the b of .6 no longer finds.
    assert report["confusion"]["matrix"] == [[1, 0, 2], [1, 0, 1], [2, 0, 0]]
    assert sum(part["detections"] for part in report["breakdowns"]["size"]) == 4
    histogram = report["breakdowns"]["iou_histogram"]
    assert sum(map(sum, (histogram["true_positives"], histogram["false_positives"]))) == 4


def test_a_score_threshold_of_0_keeps_all(detap: Run, case: list[str]) -> None:
    """Three of nine detections are TPs; two of five ground truths are FNs."""
    point = record(detap, case, "--score-threshold", "0")["operating_point"]
    assert point["score_threshold"] == 0
    assert (point["overall"]["precision"], point["overall"]["recall"]) == (3 / 9, 3 / 5)


def test_confusion_has_both_rules(detap: Run, case: list[str]) -> None:
    by_protocol = record(detap, case, "--confusion")["confusion"]
    assert by_protocol["matrix"] == [[2, 0, 1], [0, 1, 1], [5, 1, 0]]
    assert (by_protocol["matched"], by_protocol["missed"]) == (3, 2)
    agnostic = record(detap, case, "--confusion", "class-agnostic")["confusion"]
    assert agnostic["matrix"] == [[2, 0, 1], [1, 0, 1], [4, 2, 0]]
    assert "b predicted as a: 1 of 2" in detap(*case, "--confusion", "class-agnostic").out


def test_calibration_and_all_at_once(detap: Run, case: list[str]) -> None:
    report = record(detap, case, "--analysis", "--examples", "1")
    calibration = report["calibration"]
    assert (calibration["ECE"], calibration["MCE"]) == (
        pytest.approx(0.366667, abs=1e-6),
        pytest.approx(0.825),
    )
    assert calibration["LaECE"] == pytest.approx(0.361538, abs=1e-6)
    assert report["errors"]["convention"] == "protocol"
    assert report["operating_point"]["score_threshold"] is None
    assert report["confusion"]["score_threshold"] is None
    assert report["examples"]["worst_images"] == [
        {"image": 2, "false_positives": 2, "false_negatives": 2}
    ]
    (mistake,) = report["examples"]["confident_errors"]
    assert (mistake["image"], mistake["score"], mistake["error"]) == (1, 0.85, "duplicate")
    assert (mistake["ground_truth"], mistake["iou"]) == ("a", 0.9)
    (doubtful,) = report["examples"]["label_errors"]
    assert (doubtful["reason"], doubtful["class"], doubtful["ground_truth"]) == (
        "wrong_label",
        "a",
        "b",
    )


def test_scores_outside_0_to_1_have_no_calibration(detap: Run, coco: Files) -> None:
    """--calibration is rejected; --analysis omits it with a note."""
    rows = json.loads(coco.dt.read_text())
    coco.dt.write_text(json.dumps([{**row, "score": 10 * row["score"]} for row in rows]))
    assert "5 scores lie outside [0, 1]" in detap(*coco.arguments, "--calibration").refused()
    ended = detap(*coco.arguments, "--analysis").passed()
    assert "Score calibration\n5 scores lie outside [0, 1]" in ended.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--errors=tide"], "'tide' is not one of 'protocol', 'tidecv'"),
        (["--score-threshold", "nan"], "'nan' is not a number; give a score, or best"),
        (["--examples", "0"], "0 is not in the range"),
        (["--errors", "--protocol", "proposals"], "protocol proposals uses matching by-iou"),
    ],
)
def test_invalid_options_are_rejected(
    detap: Run, case: list[str], words: list[str], message: str
) -> None:
    assert message in detap(*case, *words).refused()


def test_analyses_may_be_set_in_a_settings_file(detap: Run, case: list[str], cwd: Path) -> None:
    """True is the option without a value."""
    (cwd / "detap.toml").write_text("errors = true\nconfusion = false\nscore-threshold = 0.5")
    case.remove("--isolated")
    report = record(detap, case)
    assert report["errors"]["convention"] == "protocol"
    assert report["operating_point"]["score_threshold"] == 0.5
    assert "confusion" not in report


def test_analyses_are_imported_only_if_requested(coco: Files) -> None:
    modules = imported_by(*coco.arguments)
    assert not [name for name in modules if name.startswith("detap.analysis")]
    assert not [name for name in modules if name.startswith("detap.report.sections.analysis")]
    assert not modules & {f"detap.report.sections.{section.name}" for section in SECTIONS}
