"""Tables of the benchmarks, and parsing of the output of peers and detap."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import detap_command, peers, report, run
from benchmarks.measure import Pairs, Run, comparison

OURS = [Run(0.10, 0.1, 0.0, 50_000_000), Run(0.12, 0.1, 0.1, 50_000_000)]
THEIRS = [Run(0.2, 0.2, 0.0, 100_000_000), Run(0.24, 0.2, 0.2, 100_000_000)]


def results() -> dict[str, Any]:
    slow = [Run(30.0, 29.0, 1.0, 2_000_000_000)] * 2
    rows = [("pycocotools", slow), ("hotcoco", THEIRS)]
    return {
        "comparisons": [
            {"workload": "48k", "peer": peer, **comparison(Pairs(OURS, runs))}
            for peer, runs in rows
        ]
    }


def test_each_peer_has_a_column_of_ratios_of_pairs() -> None:
    lines = report.comparison_table(results()).splitlines()
    half = "**0.50** (0.50\N{EN DASH}0.50)"
    assert lines[0] == "| workload | detap, s | MB | memory | pycocotools | hotcoco |"
    assert lines[2].startswith("| 48k | 0.110 | 50 | 0.50 | **0.00** ")
    assert lines[2].endswith(f" | {half} |")


def test_a_trial_compares_and_tolerates_a_failing_peer() -> None:
    def peer(program: str) -> peers.Peer:
        def command(truth: Path, detections: Path, format_: str) -> list[str]:
            return [sys.executable, "-c", program]

        return peers.Peer("other", ["coco"], "", command, command, peers.read_list)

    bench = run.Bench(detap_command.Detap(("detap",), None), ["48k"], [], 1)
    bench._files["48k"] = {"format": "coco", "ground_truth": "g", "detections": "d"}
    assert run.trial(bench, peer("print([0.5])"), "48k", [0.5])["status"] == "equal"
    assert run.trial(bench, peer("print([0.5])"), "48k", [0.5 + 1e-12])["status"] == "agrees"
    assert run.trial(bench, peer("print([0.5])"), "48k", [0.6])["status"] == "differs"
    failed = run.trial(bench, peer("raise MemoryError"), "48k", [0.5])
    assert failed == {"status": "failed", "trial": None}


OTHERS = [{"workload": "48k", "name": "JSON report", **comparison(Pairs(THEIRS, OURS))}]


@pytest.fixture
def one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> run.Bench:
    """Return a bench of a fresh clone that can only measure other commands."""
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(run, "versions", lambda: {"numpy": "2.0", "hotcoco": "0.5"})
    monkeypatch.setattr(run, "others", lambda bench: OTHERS)
    monkeypatch.setattr(run, "prepare", lambda: pytest.fail("no peers are wanted"))
    return run.Bench(detap_command.Detap((sys.executable,), None), ["48k"], [], 1)


def test_one_part_is_measured_in_a_fresh_clone(one_part: run.Bench) -> None:
    run.run_all(one_part, ["others"])
    kept = json.loads(run.RESULTS.read_text())
    texts = report.sections(kept)
    assert list(texts) == ["machine", "others"]
    assert "hotcoco" not in texts["machine"]  # it was not compared with
    assert "| 48k | JSON report | 0.300 | 0.150 | **2.00** " in texts["others"]
    assert one_part.best_peer("48k") is None


def test_tables_replace_the_text_between_their_markers() -> None:
    page = "a\n<!-- begin one -->\nold\n<!-- end one -->\nb\n<!-- begin two -->\n<!-- end two -->\n"
    once = report.insert(page, {"one": "new\n"})
    assert once == (
        "a\n<!-- begin one -->\n\nnew\n\n<!-- end one -->\nb\n"
        "<!-- begin two -->\n<!-- end two -->\n"
    )
    assert report.insert(once, {"one": "new\n"}) == once


def test_the_documentation_has_markers_of_sections() -> None:
    page = (Path(report.DOCS) / "performance.md").read_text()
    names = {match.group(2) for match in report.MARKER.finditer(page)}
    assert names
    assert names <= set(report.SECTIONS)


def test_metrics_of_peers_are_parsed() -> None:
    assert peers.read_list("some talk\n[0.5, -1, 0.0]\n") == [0.5, None, 0.0]
    metrics = {name: number / 100 for number, name in enumerate(peers.COCO_NUMBERS)}
    text = json.dumps({"metrics": {**dict(reversed(metrics.items())), "APs": -1}})
    ten = {"AR": 0.5, **dict.fromkeys(peers.KEYPOINT_NUMBERS[:5], -1), "AR50": 0.6, "AR75": 0.4}
    pose = json.dumps({"metrics": {**ten, "ARm": 0.3, "ARl": 0.2}})
    assert peers.read_hotcoco(pose) == [None] * 5 + [0.5, 0.6, 0.4, 0.3, 0.2]
    assert peers.read_hotcoco(text) == [0.0, 0.01, 0.02, None, *(n / 100 for n in range(4, 12))]


def test_metrics_of_detap_are_parsed() -> None:
    summary = dict.fromkeys(peers.COCO_NUMBERS) | {"AP": 0.5}
    assert detap_command.read_coco(json.dumps({"summary": summary})) == [0.5] + [None] * 11
    rows = [{"name": "b", "AP": 0.25}, {"name": "a", "AP": 0.75}]
    text = json.dumps({"summary": {"mAP": 0.5}, "classes": rows})
    assert detap_command.read_voc(text) == [0.5, 0.75, 0.25]


def test_every_peer_has_its_script() -> None:
    for peer in peers.PEERS.values():
        for format_ in peer.formats:
            command = peer.command(Path("gt.json"), Path("dt.json"), format_)
            assert {"gt.json", "dt.json"} < set(command)
            assert command[-1] == peers.IOU_TYPES.get(format_, "dt.json")
        if peer.name != "hotcoco-cli":
            assert Path(command[1]).is_file()


def test_the_first_command_is_that_of_the_readme() -> None:
    (command,) = run.FIRST_COMMAND.findall((run.HERE.parent / "README.md").read_text("utf-8"))
    assert command.endswith("detap eval fixtures/quickstart/voc fixtures/quickstart/voc/detections")
    cost = {"wall": 44.7, "wall_low": 44, "wall_high": 46, "runs": 3, "processor": 61}
    text = report.installation_sentence({"installation": cost})
    assert "takes 45 s from a clone to the table (44\N{EN DASH}46 in 3 runs; 61 s" in text
