"""``detap eval --matches`` on the case of the Python table, worked out by hand."""

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from detap.report.writers import matches
from tests.analysis.test_matches_table import INSTANCES, KEYS, RESULTS, ROWS
from tests.cli.conftest import Files, Run, write_coco, write_voc

parquet = pytest.importorskip("pyarrow.parquet")

FORMATS = ("csv", "jsonl", "parquet")


@pytest.fixture
def files(cwd: Path) -> Files:
    return write_coco(cwd, INSTANCES, RESULTS)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file; undefined is None, and CSV is converted to numbers."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]]
        rows = parquet.read_table(path).to_pylist()
        return rows
    kinds: dict[str, Callable[[str], Any]] = {
        **dict.fromkeys(("score", "x1", "y1", "x2", "y2", "iou"), float),
        **dict.fromkeys(("image", "ground_truth"), int),
        "class": lambda name: name.removeprefix("'"),
    }
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {key: kinds.get(key, str)(text) if text else None for key, text in row.items()}
            for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_case_worked_out_by_hand(detap: Run, files: Files, suffix: str) -> None:
    path = files.folder / f"matches.{suffix}"
    assert detap(*files.arguments, "--matches", path).status == 0
    assert read(path) == [dict(zip(KEYS, row, strict=True)) for row in ROWS]


def test_the_text_of_csv(detap: Run, files: Files) -> None:
    """A class name that a spreadsheet would run gets an apostrophe, as in reports."""
    assert detap(*files.arguments, "--matches", "matches.csv").status == 0
    lines = (files.folder / "matches.csv").read_bytes().decode().split("\n")
    assert lines[0] == ",".join(KEYS)
    assert lines[1] == "7,street.jpg,'=cat,0.9,0.0,0.0,10.0,8.0,true-positive,,0.8,1"
    assert lines[5] == "7,street.jpg,dog,,20.0,0.0,30.0,10.0,false-negative,missed,,2"
    assert lines[8:] == ["9,,dog,0.8,5.0,5.0,15.0,15.0,false-positive,background,,", ""]


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_baseline_adds_its_rows(detap: Run, files: Files, suffix: str) -> None:
    """The earlier detector has only the detection that matches the first ground truth."""
    Path("old.json").write_text(json.dumps(RESULTS[2:3]))
    path = files.folder / f"matches.{suffix}"
    ended = detap(*files.arguments, "--baseline-detections", "old.json", "--matches", path)
    assert ended.status == 0, ended.err
    rows = [dict(zip(KEYS, row, strict=True)) for row in ROWS]
    last = rows[6] | {"error": "missed"}
    assert read(path) == [
        *({"detector": "current"} | row for row in rows),
        *({"detector": "baseline"} | row for row in (rows[0], *rows[4:6], last)),
    ]


@pytest.mark.parametrize("suffix", FORMATS)
def test_chunks_do_not_show(
    detap: Run, files: Files, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(matches, "_CHUNK_ROWS", 3)
    path = files.folder / f"matches.{suffix}"
    assert detap(*files.arguments, "--matches", path).status == 0
    assert read(path) == [dict(zip(KEYS, row, strict=True)) for row in ROWS]


@pytest.mark.parametrize("suffix", FORMATS)
def test_no_rows(detap: Run, files: Files, suffix: str) -> None:
    crowd = INSTANCES["annotations"][2]
    files.gt.write_text(json.dumps(INSTANCES | {"annotations": [crowd]}))
    files.dt.write_text("[]")
    path = files.folder / f"matches.{suffix}"
    assert detap(*files.arguments, "--matches", path).status == 0
    assert read(path) == []
    if suffix == "csv":
        assert path.read_text() == ",".join(KEYS) + "\n"


def test_json_lines_run_no_commands_of_ci_systems(detap: Run, files: Files) -> None:
    categories = [{"id": 1, "name": "##[error]\u202e"}, {"id": 2, "name": "dog"}]
    files.gt.write_text(json.dumps(INSTANCES | {"categories": categories}))
    assert detap(*files.arguments, "--matches", "matches.jsonl").status == 0
    text = Path("matches.jsonl").read_text("utf-8")
    assert text.isascii()
    assert "##" not in text
    assert json.loads(text.splitlines()[0])["class"] == "##[error]\u202e"


def test_a_name_that_is_not_utf_8(detap: Run, tmp_path: Path) -> None:
    """Parquet's text is UTF-8, and file names may be any bytes."""
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    voc = write_voc(tmp_path)
    try:
        (voc.gt / "1.xml").rename(voc.gt / f"{name}.xml")
    except OSError:
        pytest.skip("the file system requires UTF-8")
    for path in voc.dt.iterdir():
        lines = [line for line in path.read_text().splitlines(True) if line.startswith("2 ")]
        path.write_text("".join(lines))
    for suffix in FORMATS:
        path = tmp_path / f"matches.{suffix}"
        assert detap(*voc.arguments, "--matches", path).status == 0
    assert {row["image"] for row in read(path)} == {"2", r"caf\udce9"}


def test_a_failed_gate_writes_the_table(detap: Run, files: Files) -> None:
    ended = detap(*files.arguments, "--matches", "matches.csv", "--fail-under", "1")
    assert ended.status == 1
    assert len(read(Path("matches.csv"))) == len(ROWS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--matches", "matches.txt"],
            "--matches matches.txt: use a file name that ends in .csv, .jsonl or .parquet",
        ),
        (["--matches", "-"], "--matches -: use a file name that ends in .csv, .jsonl or"),
        (["--matches", "absent/matches.csv"], "absent/matches.csv: no such folder"),
        (["--matches", "in.jsonl"], "in.jsonl: is an input; use another name for the report"),
        (["--matches", "r.csv", "-o", "r.csv"], "r.csv would be written twice"),
        (
            ["--matches", "matches.csv", "--protocol", "proposals"],
            "labels no detection TP or FP; analyze with another protocol",
        ),
        (
            ["--matches", "matches.csv", "--engine", "dask"],
            "--matches needs all boxes in one process; remove --engine",
        ),
    ],
)
def test_refusals(detap: Run, files: Files, words: list[str], message: str) -> None:
    (files.folder / "in.jsonl").write_bytes(files.dt.read_bytes())
    assert message in detap("eval", files.gt, "in.jsonl", "--dt-format", "coco", *words).refused()
    assert (files.folder / "in.jsonl").read_bytes() == files.dt.read_bytes()
    assert not list(files.folder.glob("matches.*"))


def test_parquet_needs_pyarrow(detap: Run, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = detap(*files.arguments, "--matches", "matches.parquet").refused()
    assert "require pyarrow: pip install 'detap[arrow]'" in said
