"""`detap rank` as a command: outputs, gates, baselines, noise, start-up."""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from detap.analysis.bootstrap import Draws
from detap.cli import main
from detap.ranking.bootstrap import resampled_means
from detap.report import schema as report_schema
from tests.cli.conftest import Run
from tests.processes import finished
from tests.ranking.cases import random_run, write_trec


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return codes of two classes, most of them near their class."""
    return write_codes(tmp_path / "codes.npz", flips=0.2)


def write_codes(path: Path, flips: float, seed: int = 0) -> Path:
    random = np.random.default_rng(seed)
    centres = random.random((4, 32)) < 0.5
    labels = np.arange(40) % 4, np.arange(200) % 4
    noise = [np.random.default_rng(7).random((len(x), 32)) < flips for x in labels]
    codes = [centres[x] ^ n for x, n in zip(labels, noise, strict=True)]
    np.savez(
        path,
        query_codes=codes[0],
        gallery_codes=codes[1],
        query_labels=labels[0],
        gallery_labels=labels[1],
    )
    return path


def report_of(*words: str) -> dict[str, Any]:
    """Return the JSON report of a run in a new process."""
    done = finished([sys.executable, "-m", "detap", "rank", *words, "--output-format", "json"])
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_strict_makes_every_warning_an_error(cwd: Path, command: Run) -> None:
    codes, labels = np.eye(4, dtype=np.int64), np.arange(4) % 2
    np.savez(
        "r.npz", query_codes=codes, gallery_codes=codes, query_labels=labels, gallery_labels=labels
    )
    np.savez("c.npz", scores=np.eye(3), labels=np.array([0, 1, 1]))
    for call, code in (
        (["rank", "retrieval", "--npz", "r.npz"], "queries-in-gallery"),
        (["rank", "classification", "--npz", "c.npz"], "class-without-positives"),
    ):
        assert f"[{code}]" in command(*call).passed().err
        for quiet in ([], ["-q"]):
            ended = command(*call, "--strict", *quiet, "-o", "report.json")
            assert f"[{code}]" in ended.refused()
            assert "Error: 1 warning type and --strict" in ended.err
            assert (ended.out, Path("report.json").exists()) == ("", False)
    command("rank", "retrieval", "--npz", "r.npz", "--exclude-self", "--strict").passed()


@pytest.fixture(scope="session")
def schema() -> Any:
    report = report_schema("ranking")
    jsonschema.Draft202012Validator.check_schema(report)
    return jsonschema.Draft202012Validator(report)


def test_reports_match_the_schema(schema: Any, archive: Path, tmp_path: Path) -> None:
    run, qrels = write_trec(tmp_path, *random_run(2))
    np.savez(tmp_path / "c.npz", scores=np.eye(3), labels=np.arange(3))
    for words in (
        ["retrieval", "--npz", str(archive), "--k", "5", "--losses", "--batches", "3"],
        ["retrieval", "--npz", str(archive), "--measures", "mAP@5"],
        ["retrieval", "--run", str(run), "--qrels", str(qrels), "--tie-break", "expected"],
        ["classification", "--npz", str(tmp_path / "c.npz"), "--k", "1"],
    ):
        report = report_of(*words)
        schema.validate(report)
        del report["curve"]
        with pytest.raises(jsonschema.ValidationError):
            schema.validate(report)


def test_the_report_has_the_structure_of_detection_reports(archive: Path) -> None:
    report = report_of("retrieval", "--npz", str(archive), "--k", "5")
    assert list(report)[:9] == [
        "schema_version",
        "detap_version",
        "kind",
        "signature",
        "protocol",
        "inputs",
        "summary",
        "queries",
        "notes",
    ]
    assert report["kind"] == "retrieval"
    assert list(report["summary"])[:4] == ["mAP", "mAP@5", "P@5", "R@5"]
    assert "top-accuracy@5" in report["summary"]
    assert [entry["role"] for entry in report["inputs"]] == ["scores", "labels"]
    assert all(len(entry["sha256"]) == 64 for entry in report["inputs"])
    assert len(report["queries"]) == 40
    for name, key in (("mAP", "AP"), ("mAP@5", "AP@5"), ("MRR", "RR")):
        mean = np.mean([row[key] for row in report["queries"]])
        assert report["summary"][name] == pytest.approx(mean)
    assert len(report["curve"]["levels"]) == 11


def test_the_number_of_threads_changes_no_byte(archive: Path, tmp_path: Path) -> None:
    texts = set()
    for threads in ("1", "2", "8"):
        out = tmp_path / "out.json"
        words = ["--npz", str(archive), "--k", "3", "--threads", threads, "-o", str(out), "-q"]
        assert main(["rank", "retrieval", *words]) == 0
        texts.add(out.read_bytes())
    assert len(texts) == 1


def test_a_run_from_stdin_and_csv(tmp_path: Path) -> None:
    run, qrels = write_trec(tmp_path, *random_run(1))
    command = [sys.executable, "-m", "detap", "rank", "retrieval", "--run", "-"]
    done = finished(
        [*command, "--qrels", str(qrels), "--output-format", "csv", "-q"], input=run.read_text()
    )
    rows = list(csv.DictReader(done.stdout.splitlines()))
    report = report_of("retrieval", "--run", str(run), "--qrels", str(qrels))
    assert [row["name"] for row in rows] == [row["name"] for row in report["queries"]]
    assert [float(row["AP"]) if row["AP"] else None for row in rows] == [
        row["AP"] for row in report["queries"]
    ]


def test_many_queries_are_shown_on_request(tmp_path: Path, command: Run) -> None:
    labels = np.zeros(60, int)
    np.savez(tmp_path / "a.npz", scores=np.eye(60), query_labels=labels, gallery_labels=labels)
    words = ["rank", "retrieval", "--npz", str(tmp_path / "a.npz")]
    short = command(*words).passed().out
    assert "60 queries; --per-query shows each, as JSON and CSV do" in short
    assert short.startswith("Metrics over 60 queries\nmetric ")
    assert "mean / sum" not in short
    every = command(*words, "--per-query").passed().out
    assert len(every.splitlines()) > len(short.splitlines()) + 50
    page = tmp_path / "report.md"
    text = command(*words, "--output-format", "json", "-o", str(page)).passed().out
    assert len(json.loads(text)["queries"]) == 60
    assert "60 queries; --per-query shows each" in page.read_text("utf-8")


def test_metrics_at_k_show_precision_and_recall_at_ranks(fixtures: Path, command: Run) -> None:
    """Only the first k items are searched, so that levels of recall are unknown.

    The ranking 1 0 1 0 1 of three relevant items: precision 1, 1/2, 2/4 and recall 1/3, 1/3, 2/3
    after 1, 2 and 4 items.
    """
    folder = fixtures / "ranking-list"
    words = ["--run", str(folder / "run.txt"), "--qrels", str(folder / "qrels.txt")]
    shown = command("rank", "retrieval", *words, "--measures", "mAP@4").passed().out
    _, _, table = shown.partition("\nPrecision and recall at ranks\n")
    assert [line.split() for line in table.splitlines()[:5] if line[0].isalnum()] == [
        ["rank", "precision", "recall"],
        ["1", "1.0000", "0.3333"],
        ["2", "0.5000", "0.3333"],
        ["4", "0.5000", "0.6667"],
    ]


@pytest.mark.parametrize("output_format", ["table", "markdown"])
def test_no_heading_without_text(
    output_format: str, fixtures: Path, tmp_path: Path, command: Run
) -> None:
    (tmp_path / "run.txt").write_text("")
    files = [
        "--run",
        str(tmp_path / "run.txt"),
        "--qrels",
        str(fixtures / "ranking-list/qrels.txt"),
    ]
    words = [*files, "--measures", "mAP@4", "--output-format", output_format]
    out = command("rank", "retrieval", *words).passed().out
    assert "Precision" not in out
    assert "###" not in out
    assert "\n\n\n" not in out


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--fail-under", "0.1"], 0),
        (["--fail-under", "0.999999"], 1),
        (["--fail-under", "P@5=0.1", "--fail-under", "min-query.AP=0.01"], 0),
        (["--fail-under", "query:3.AP=0.999999"], 1),
        (["--fail-under", "P@6=0.1"], 2),
    ],
)
def test_minimums(words: list[str], status: int, archive: Path) -> None:
    assert main(["rank", "retrieval", "--npz", str(archive), "--k", "5", *words]) == status


def test_baselines(archive: Path, tmp_path: Path, command: Run) -> None:
    old = tmp_path / "old.json"
    command("rank", "retrieval", "--npz", archive, "-o", old, "-q").passed()
    worse = write_codes(tmp_path / "worse.npz", flips=0.35)
    given = ["rank", "retrieval", "--npz", str(worse), "--baseline", str(old)]
    command(*given, "--max-drop", "0.9").passed()
    failed = command(*given, "--max-drop", "0.01")
    assert (failed.status, "mAP dropped by" in failed.err) == (1, True)
    # Other labels are another ground truth; another rule is another protocol.
    with np.load(worse) as arrays:
        other = dict(arrays) | {"query_labels": (arrays["query_labels"] + 1) % 4}
    np.savez(tmp_path / "other.npz", **other)
    words = ["--npz", str(tmp_path / "other.npz"), "--baseline", str(old), "--max-drop", "0.9"]
    assert "ground truth: sha256" in command("rank", "retrieval", *words).refused()
    said = command(*given, "--max-drop", "0.9", "--tie-break", "expected").refused()
    assert "|tie-break:expected|no-relevant:zero)\nRegenerate" in said


def test_noise(archive: Path, tmp_path: Path, command: Run) -> None:
    given = ["rank", "retrieval", "--baseline-ranking", str(archive), "--confidence", "0.95"]
    worse = write_codes(tmp_path / "worse.npz", flips=0.4)
    failed = command(*given, "--npz", worse, "--max-drop", "0.01")
    assert (failed.status, "95% CI of the drop" in failed.err) == (1, True)
    like = write_codes(tmp_path / "like.npz", flips=0.21)
    like_it = (*given, "--npz", like, "--max-drop")
    assert "inconclusive" in command(*like_it, "0.04").passed().err
    assert "has no interval" in command(*like_it, "query:3.AP=0.01").refused()
    with np.load(worse) as arrays:
        fewer = {
            key: rows[:10] if key.startswith("query") else rows for key, rows in arrays.items()
        }
    np.savez(tmp_path / "fewer.npz", **fewer)
    said = command(*given, "--npz", tmp_path / "fewer.npz", "--max-drop", "0.01").refused()
    assert "has other queries" in said


def drop_interval(
    then: Any, now: Any, *, confidence: float, resamples: int, seed: int
) -> tuple[float, float]:
    """Return the interval of the drop of a mean, as gates compute it."""
    before, after = (resampled_means(x, resamples=resamples, seed=seed) for x in (then, now))
    return Draws(before - after).interval(confidence)


def test_the_interval_resamples_queries() -> None:
    then, now = np.array([1.0, 0.0, np.nan]), np.array([0.5, 0.0, 0.25])
    stream = np.random.PCG64(3)
    raw = np.array(stream.random_raw(50 * 3), np.uint64).reshape(50, 3)
    drops = []
    for row in raw.tolist():
        chosen = [(word >> 32) * 3 >> 32 for word in row]
        means = []
        for values in (then, now):
            drawn = [float(values[index]) for index in chosen if not np.isnan(values[index])]
            means.append(sum(drawn) / len(drawn) if drawn else np.nan)
        drops.append(means[0] - means[1])
    expected = Draws(np.array(drops)).interval(0.9)
    assert drop_interval(then, now, confidence=0.9, resamples=50, seed=3) == pytest.approx(expected)
    none = np.zeros(0)
    assert np.isnan(drop_interval(none, none, confidence=0.9, resamples=50, seed=0)[0])


def test_classification_gates_and_json(tmp_path: Path) -> None:
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    np.savez(tmp_path / "a.npz", scores=scores, labels=np.array([0, 1, 1]))
    report = report_of("classification", "--npz", str(tmp_path / "a.npz"), "--k", "1")
    assert report["summary"] == {"mAP": 1.0, "AP@1": pytest.approx(2 / 3)}
    assert [row["AP"] for row in report["classes"]] == [1.0, 1.0]
    assert report["samples"]["AP@1"] == {"0": 1.0, "1": 1.0, "2": 0.0}
    words = ["rank", "classification", "--npz", str(tmp_path / "a.npz"), "--k", "1", "--fail-under"]
    assert main([*words, "class:1.AP=1"]) == 0
    assert main([*words, "AP@1=0.67"]) == 1


def test_options_without_effect_are_rejected(archive: Path, tmp_path: Path, command: Run) -> None:
    run, qrels = write_trec(tmp_path, *random_run(1))
    np.savez(tmp_path / "graded.npz", scores=np.eye(2), relevance=np.eye(2))
    judged = ["--run", str(run), "--qrels", str(qrels)]
    for words, message in (
        ([*judged, "--similarity", "dot"], "--similarity applies to embeddings only"),
        ([*judged, "--no-exclude-self"], "--exclude-self applies to galleries only"),
        ([*judged, "--protocol", "metric-learning"], "exclude_self requires a gallery"),
        (["--npz", str(archive), "--similarity", "dot"], "--similarity applies to embeddings only"),
        (["--npz", str(archive), "--gain", "linear"], "--gain applies to grades only"),
        (["--npz", str(archive), "--missing-queries", "zero"], "--missing-queries applies to runs"),
    ):
        assert message in command("rank", "retrieval", *words).refused()
    graded = ["--npz", str(tmp_path / "graded.npz"), "--gain", "exponential"]
    assert command("rank", "retrieval", *graded, "--relevant-from", "1").status == 0


@pytest.mark.parametrize(
    "output_format", ["table", "json", "csv", "markdown", "junit", "github", "gitlab"]
)
def test_every_writer_supports_both_kinds(
    output_format: str, archive: Path, tmp_path: Path, command: Run
) -> None:
    np.savez(tmp_path / "c.npz", scores=np.eye(3), labels=np.arange(3))
    for words in (
        ["retrieval", "--npz", str(archive), "--losses", "--batches", "2"],
        ["classification", "--npz", str(tmp_path / "c.npz"), "--k", "1"],
    ):
        given = ["rank", *words, "--fail-under", "0.01", "--output-format", output_format]
        assert command(*given).passed().out
