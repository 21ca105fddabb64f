"""The command that compares several detectors: names, options, outputs and bad input."""

import json
import re
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from detap.report.numbers import UNDEFINED
from tests.cli.conftest import Ended, Run, instances, results
from tests.processes import finished
from tests.schemas import valid

# The dog of image 2 is the only object of its class: with it AP of dog is 1, without 0. Without the
# first cat detection, the second finds the same object.
WORSE = [detection for detection in results() if detection["image_id"] == 1]


@pytest.fixture(autouse=True)
def folder(cwd: Path) -> Path:
    contents: dict[str, Any] = {
        "gt": instances(),
        "a": results(),
        "b": WORSE,
        "same": results(),
        "none": [],
        "other": [{**results()[0], "image_id": 77}],
        "unscored": [{k: v for k, v in d.items() if k != "score"} for d in results()],
    }
    for name, content in contents.items():
        (cwd / f"{name}.json").write_text(json.dumps(content))
    return cwd


def compare(detap: Run, *arguments: str) -> Ended:
    return detap(
        "compare", *arguments, "--gt", "gt.json", "--min-ground-truths", "0", "--resamples", "100"
    )


def report(detap: Run, *arguments: str) -> Any:
    return valid(compare(detap, *arguments, "--output-format", "json").report(), "detectors")


def test_the_table_ranks_the_detectors(detap: Run) -> None:
    lines = compare(detap, "b.json", "a.json", "same.json").out.splitlines()
    assert lines[0] == "Best AP: a, 0.7525; not significantly different: same, b"
    assert lines[2] == "Ranking by AP (95% CI)"
    rows = [line.split() for line in lines[5:8]]
    # AP is 0.7525 with the dog and 0.2525 without it (tests/gate/test_compare.py).
    assert [row[:3] for row in rows] == [
        ["a", "1", "0.7525"],
        ["same", "1", "0.7525"],
        ["b", "3", "0.2525"],
    ]
    # The reference has no difference to itself, but one to an equal detector.
    assert [row[5] for row in rows] == [UNDEFINED, "0.0000", "-0.5000"]
    assert rows[0][6:8] == [UNDEFINED] * 2
    assert "Differences are to a." in lines
    assert "Pairs" in lines


def test_json_has_detectors_pairs_and_groups(detap: Run) -> None:
    record = report(detap, "b.json", "a.json", "same.json")
    ranks = {one["name"]: one["rank"] for one in record["detectors"]}
    assert [*ranks.items()] == [("a", 1), ("same", 1), ("b", 3)]
    differences = [one["difference"] for one in record["detectors"]]
    assert differences == [0, 0, pytest.approx(-0.5)]
    pairs = [(pair["first"], pair["second"]) for pair in record["pairs"]]
    assert pairs == [("a", "same"), ("a", "b"), ("same", "b")]
    assert record["pairs"][0]["p"] == record["pairs"][0]["adjusted_p"] == 1
    assert record["pairs"][0]["min_detectable_difference"] is None
    assert record["ranking"] == {"metric": "AP", "higher_is_better": True, "reference": "a"}
    dog = next(row for row in record["classes"] if row["name"] == "dog")
    assert (dog["ground_truths"], dog["values"]) == (1, pytest.approx({"a": 1, "same": 1, "b": 0}))
    names = [file.get("detector") for file in record["inputs"]]
    assert names == [None, "b", "a", "same"]


@pytest.mark.parametrize(
    "more", [["--reference", "b"], ["--metric", "AP50"], ["--by-class"], ["c=b.json"]]
)
def test_two_are_ranked_if_asked_for(detap: Run, more: list[str]) -> None:
    paths = ["a.json"] if more == ["c=b.json"] else ["a.json", "b.json"]
    assert "Ranking by AP" in compare(detap, *paths, *more).out


def test_a_file_with_an_equals_sign_is_a_path(detap: Run, folder: Path) -> None:
    (folder / "x=a.json").write_text((folder / "a.json").read_text())
    assert compare(detap, "x=a.json", "b.json").out.startswith("AP dropped by 0.5000 ")
    assert [one["name"] for one in report(detap, "y=x=a.json", "b.json")["detectors"]] == ["y", "b"]


def test_reference_and_metric(detap: Run) -> None:
    record = report(detap, "a.json", "b.json", "--reference", "b", "--metric", "AP50")
    assert record["ranking"] == {"metric": "AP50", "higher_is_better": True, "reference": "b"}
    a, b = record["detectors"]
    assert a["difference"] == a["AP50"] - b["AP50"]
    assert b["difference"] == b["difference_low"] == b["difference_high"] == 0


def test_classes_by_detectors(detap: Run) -> None:
    out = compare(detap, "a.json", "name=b.json", "same.json", "--by-class", "--top", "2").out
    assert re.search(r"^AP by class\nclass +a +same +name ", out, re.M)
    assert re.search(r"^dog +1\.0000 +1\.0000 +0\.0000 ", out, re.M)
    assert "\n1 more: -v shows all\n" in out  # of three pairs


def test_the_best_of_each_column_is_bold_and_csv_has_the_ranking(detap: Run) -> None:
    out = compare(detap, "a.json", "b.json", "--by-class", "--output-format", "markdown").out
    assert re.search(r"^\| `a` \| 1 \| \*\*0\.7525\*\* \| ", out, re.M)
    assert re.search(r"^\| `b` \| 2 \| 0\.2525 \| ", out, re.M)
    lines = compare(detap, "a.json", "b.json", "same.json", "--output-format", "csv").out.split()
    heads = ["name,rank,AP,low,high,difference,", "a,1,", "same,1,", "b,3,"]
    assert all(line.startswith(head) for line, head in zip(lines, heads, strict=True))


def test_latex_compiles_with_any_name(detap: Run, folder: Path) -> None:
    names = ["[0.5]", "*", "a&b_%$#{}~^<>|\"'`", "x--y"]
    paths = [
        f"{name}={path}.json" for name, path in zip(names, ("a", "b", "same", "a"), strict=True)
    ]
    text = compare(detap, *paths, "--output-format", "latex", "--by-class", "--top", "1").out
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    first = [row.split(" & ")[0] for row in rows[1:5]]
    escaped = r"a\&b\_\%\$\#\{\}\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}"
    assert sorted(first) == sorted(
        ["{[}0.5]", "{*}", rf"{escaped}\textbar{{}}\char34{{}}'`", "x-{}-y"]
    )
    assert rows[1].split(" & ")[1:3] == ["1", r"\textbf{0.7525}"]
    assert "$-0.5000$" in text
    assert "\n% 5 more: -v shows all\n" in text
    if (program := which("pdflatex")) is None:
        pytest.skip("pdflatex is not installed: compiled nothing")
    document = (
        rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{text}\end{{document}}"
    )
    (folder / "table.tex").write_text(document)
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    finished(command, cwd=folder)


def test_files_of_several_detectors_are_not_merged_and_the_remedy_helps(
    detap: Run, folder: Path
) -> None:
    (folder / "runs").mkdir()
    # Both images are in both of a and a copy; b has image 1 alone.
    for name, copied in {"a": "a", "b": "b", "a copy": "a"}.items():
        (folder / "runs" / f"{name}.json").write_text((folder / f"{copied}.json").read_text())
    said = detap("eval", "gt.json", "runs").refused()
    assert said == (
        "Error: runs/a.json: image 1 is also in runs/a copy.json; put each image in one input, "
        "pass merge_images=True (--merge-images) if their boxes differ, or compare the files of "
        "several detectors: detap compare FILES --gt GT\n"
    )
    paths = ("runs/a copy.json", "runs/a.json", "runs/b.json")
    assert detap("compare", *paths, "--gt", "gt.json").out.startswith("Best AP: a copy, 0.7525\n")
    assert detap("eval", "gt.json", "runs", "--merge-images").status == 0


def test_the_page_has_ranking_pairs_and_classes(detap: Run, folder: Path) -> None:
    pytest.importorskip("jinja2", reason="the extra detap[report] is not installed")
    pytest.importorskip("PIL", reason="the extra detap[report] is not installed")
    given = ["a.json", "<b>=b.json", "none.json", "--top", "1"]
    assert compare(detap, *given, "-o", "page.html").status == 0
    page = (folder / "page.html").read_text("utf-8")
    assert "<b>" not in page
    assert "-v shows all" not in page
    # 0.7525 with the dog and 0.2525 without it, as in the table.
    assert '<td class="count">+0.5000</td>' in page
    assert 'class="name">dog</th><td class="fraction">1.0000</td>' in page
    text = re.sub("<.*?>", "", page)
    assert "detap report --gt gt.json --dt a.json --baseline-detections b.json -o" in text
    # Detections of two files have no command.
    compare(detap, "a.json", "several=[ab].json", "--merge-images", "-o", "page.html")
    assert "<select" not in (folder / "page.html").read_text("utf-8")
    given = ["a.json", "x=b.json", "--gt", "gt.json", "--resamples", "0"]
    assert detap("compare", *given, "-o", "page.html").status == 0
    page = (folder / "page.html").read_text("utf-8")
    assert "+0.5000</td>" in page
    assert "CI low</th>" not in page
    ended = compare(detap, "a.json", "b.json", "-o", "page.html")
    assert "a comparison cannot be written as html; use table, json," in ended.err
    assert ended.err.endswith("; for a page: detap report --baseline-detections FIRST\n")
    given = ["--gt", "gt.json", "--dt", "b.json", "--baseline-detections", "a.json"]
    assert detap("report", *given, "-o", "pair.html").status == 0
    assert "dropped by 0.5000" in (folder / "pair.html").read_text("utf-8")


def test_columns_that_cannot_be_had_are_left_out(detap: Run) -> None:
    ended = detap("compare", "a.json", "b.json", "same.json", "--gt", "gt.json", "--resamples", "0")
    assert "Ranking by AP\n" in ended.out
    assert not any(text in ended.out for text in ("Pairs", "group", "CI low"))
    out = compare(detap, "a.json", "c=a.json").out
    assert "min. diff" not in out
    assert "No minimum detectable difference: all resamples are equal.\n" in out


def test_a_note_of_many_detectors_is_one_line(detap: Run, folder: Path) -> None:
    for number in range(3, 6):
        beyond = [{**d, "bbox": [-9.0 * number, 0.0, 20.0, 20.0]} for d in results()]
        (folder / f"{number}.json").write_text(json.dumps(beyond))
    err = compare(detap, "a.json", "3.json", "4.json", "5.json", "x=5.json").err
    assert err.count("detections extend beyond") == 1
    assert "3 and 3 more detectors: detections extend beyond the image" in err
    err = compare(detap, "a.json", "3.json", "4.json", "5.json").err
    assert "4: detections extend beyond the image" in err


def test_ten_detectors_are_shown_without_v(detap: Run, folder: Path) -> None:
    names = [f"d{number:02}" for number in range(12)]
    for name in names:
        (folder / f"{name}.json").write_text((folder / "a.json").read_text())
    paths = [f"{name}.json" for name in names]
    for shown, more in ((10, []), (12, ["-v"]), (12, ["--top", "12"])):
        table = compare(detap, *paths, *more).out.split("\n\n")[1].splitlines()
        assert [line.split()[0] for line in table[3:]] == names[:shown] + ["2"] * (shown < 12)


@pytest.mark.parametrize("order", [["none.json", "unscored.json"], ["unscored.json", "none.json"]])
def test_a_detector_without_detections_is_last(detap: Run, order: list[str]) -> None:
    record = report(detap, *order, "--reference", "none")
    assert record["ranking"]["metric"] == "F1"
    assert [(one["name"], one["F1"] > 0) for one in record["detectors"]] == [
        ("unscored", True),
        ("none", False),
    ]
    scored = report(detap, "none.json", "a.json", "b.json")
    assert [one["name"] for one in scored["detectors"]] == ["a", "b", "none"]
    assert any(note["message"].startswith("none: no detections") for note in scored["notes"])


def test_equal_names_are_an_error_and_the_remedy_helps(detap: Run, folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "a.json").write_text((folder / "b.json").read_text())
    said = compare(detap, "a.json", "other/a.json", "b.json").refused()
    assert said == (
        "Error: two detectors are named 'a'; name one of them: NAME=PATH (in Python, a mapping of "
        "names)\n"
    )
    names = [one["name"] for one in report(detap, "a.json", "a-2=other/a.json")["detectors"]]
    assert names == ["a", "a-2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["a.json", "unscored.json", "b.json"],
            "'unscored' has no scores, and 'a' has; compare detections that all have scores, or "
            "none",
        ),
        (["unscored.json", "a.json", "b.json"], "'unscored' has no scores, and 'a' has"),
        (["unscored.json", "a.json"], "'unscored.json' has no scores, and 'a.json' has; compare"),
        (
            ["a.json"],
            "expected two or more detections, got 1; a pattern or folder is one detector: give "
            "each file as an argument",
        ),
        (["a.json", "-", "b.json"], "detections cannot come from stdin"),
        (["a.json", "b.json", "--metric", "AP5"], "has no metric 'AP5'; did you mean"),
        (
            ["a.json", "b.json", "same.json", "--detectable-drop", "0.1"],
            "--detectable-drop applies to two detectors without names; remove it",
        ),
        (["a.json", "c=missing.json"], "missing.json"),
        (["a.json", "b.json", "other.json"], "Error: other.json: no image_id of the"),
        (["a.json", "b.json", "same.json", "--agreement"], "compares two annotators, got 3"),
        (["a.json", "b.json", "same.json", "-o", "a.json"], "a.json"),
    ],
)
def test_bad_arguments_are_named(detap: Run, arguments: list[str], message: str) -> None:
    assert message in compare(detap, *arguments).refused()


@pytest.mark.parametrize(("empty", "given"), [(1, "unscored none"), (0, "none unscored")])
def test_an_empty_file_of_two_has_no_scores_either(detap: Run, empty: int, given: str) -> None:
    files = [f"{name}.json" for name in given.split()]
    record = json.loads(compare(detap, *files, "--output-format", "json").out)
    # Two of three objects are found: cat and dog; three of five detections find none.
    values = next(row for row in record["metrics"] if row["name"] == "F1")
    side = ["first", "second"]
    assert values[side[empty]] == 0
    assert values[side[1 - empty]] == pytest.approx(2 * 2 / (5 + 3))


def test_different_score_thresholds_are_noted(detap: Run, folder: Path) -> None:
    many = [{**results()[0], "score": 0.5 + n / 1000} for n in range(200)]
    (folder / "cut.json").write_text(json.dumps(many))
    (folder / "full.json").write_text(
        json.dumps([*many, *({**results()[0], "score": n / 1000} for n in range(1, 200))])
    )
    record = report(detap, "cut.json", "full.json", "x=cut.json")
    (note,) = (note for note in record["notes"] if note["code"] == "scores-cut-differently")
    assert note["message"] == (
        "score thresholds differ (cut: 0.5, full: no score threshold, x: 0.5), which alone can "
        "change AP; predict all with the same threshold"
    )
