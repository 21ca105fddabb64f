"""Tables of the benchmarks, and parsing of the output of peers and detap."""

import json
import sys
from dataclasses import asdict
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


def test_a_table_aligns_numbers_to_the_right() -> None:
    assert report.table(["name", "s"], [["detap", "0.1"]]) == (
        "| name | s |\n| --- | ---: |\n| detap | 0.1 |\n"
    )


@pytest.mark.parametrize(
    ("value", "text"), [(0.0512, "0.051"), (1.234, "1.23"), (9.999, "10.00"), (40.06, "40.1")]
)
def test_seconds_have_three_significant_digits(value: float, text: str) -> None:
    assert report.seconds(value) == text


def test_each_peer_has_a_column_of_ratios_of_pairs() -> None:
    lines = report.comparison_table(results()).splitlines()
    half = "**0.50** (0.50\N{EN DASH}0.50)"
    assert lines[0] == "| workload | detap, s | MB | memory | pycocotools | hotcoco |"
    assert lines[2].startswith("| 48k | 0.110 | 50 | 0.50 | **0.00** ")
    assert lines[2].endswith(f" | {half} |")


def test_costs_in_which_a_peer_is_better_are_listed() -> None:
    assert report.losses(results()) == "None in this run.\n"
    twice = "**2.00** (2.00\N{EN DASH}2.00)"
    comparisons = {"workload": "1k", "peer": "vernier", **comparison(Pairs(THEIRS, OURS))}
    lines = report.losses({"comparisons": [comparisons]}).splitlines()[2:]
    assert lines == [
        f"| 1k | vernier | {cost} | {twice} |" for cost in ("wall", "processor", "memory")
    ]
    rows = [{**comparisons, "input": "path"}]
    # Loops are timed inside a process, drop-ins as whole processes.
    inside = report.losses({"comparisons": [], "loop": rows, "drop_in": rows}).splitlines()[2:]
    assert inside == [
        f"| 1k, file | vernier | wall | {twice} |",
        f"| 1k, file | vernier | processor | {twice} |",
    ]


def test_a_peer_that_fails_or_differs_is_reported() -> None:
    rows = [
        {"workload": "5M", "peer": "a", "metrics": 12, "status": "failed"},
        {"workload": "5M", "peer": "b", "metrics": 12, "status": "equal", "difference": 0.0},
        {"workload": "5M", "peer": "c", "metrics": 12, "status": "agrees", "difference": 2e-16},
    ]
    lines = report.agreement_sentence({"agreement": rows}).splitlines()
    assert lines[0] == "Equal to the last bit: 1 of 3 comparisons."
    assert lines[4:] == ["| 5M | a | 12 | did not finish |", "| 5M | c | 12 | 2e-16 |"]
    assert "|" not in report.agreement_sentence({"agreement": rows[1:2]})


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


def test_speedups_are_relative_to_one_thread() -> None:
    rows = [
        {"workload": "2M", "threads": n, "ours": {"wall": wall}, "evaluation": evaluation}
        for n, wall, evaluation in ((1, 2.0, 0.5), (2, 1.6, 0.25))
    ]
    assert "| 2M | 2 | 1.60 | 1.25 | 0.2500 | 2.00 |" in report.thread_table({"threads": rows})


def test_only_measured_parts_are_written() -> None:
    assert list(report.sections(results())) == ["losses", "comparisons"]


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


def test_one_part_is_measured_again_and_the_others_kept(one_part: run.Bench) -> None:
    run.RESULTS.write_text(json.dumps({**results(), "others": []}))
    run.run_all(one_part, ["others"])
    kept = json.loads(run.RESULTS.read_text())
    assert list(report.sections(kept)) == ["machine", "losses", "comparisons", "others"]


def test_parts_that_comparisons_depend_on_are_measured_first() -> None:
    assert run.to_measure(["comparisons"], {}) == ["agreement", "comparisons"]
    assert run.to_measure(["comparisons"], {"agreement": []}) == ["comparisons"]
    assert run.to_measure(["others"], {}) == ["others"]
    assert run.to_measure([], {}) == list(run.PARTS)


def test_a_page_with_gaps_is_rejected_before_measuring(one_part: run.Bench) -> None:
    run.RESULTS.write_text(json.dumps(dict.fromkeys(run.PARTS[:-3], ())))
    with pytest.raises(SystemExit, match="here: others,installation,ranking; measure them too"):
        run.main(["--only", "loop", "--docs"])
    report.refuse_gaps({"machine", *run.PARTS})


def test_tables_replace_the_text_between_their_markers() -> None:
    page = "a\n<!-- begin one -->\nold\n<!-- end one -->\nb\n<!-- begin two -->\n<!-- end two -->\n"
    once = report.insert(page, {"one": "new\n"})
    assert once == (
        "a\n<!-- begin one -->\n\nnew\n\n<!-- end one -->\nb\n"
        "<!-- begin two -->\n<!-- end two -->\n"
    )
    assert report.insert(once, {"one": "new\n"}) == once


def test_every_section_has_markers_in_the_documentation() -> None:
    page = (Path(report.DOCS) / "performance.md").read_text()
    assert set(report.SECTIONS) == {match.group(2) for match in report.MARKER.finditer(page)}


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


def test_commands_have_format_files_and_protocol() -> None:
    detap = detap_command.Detap(("detap",), None)
    truth, detections = Path("gt"), Path("dt")
    assert detap.command("coco", truth, detections, "-o", "x.json") == (
        ["detap", "eval", "--format", "coco", "--gt", "gt", "--dt", "dt", "-o", "x.json"]
    )
    assert detap.command("voc", truth, detections)[-2:] == ["--protocol", "voc2012-py"]
    assert detap.command("coco-segm", truth, detections) == (
        ["detap", "eval", "--format", "coco", "--gt", "gt", "--dt", "dt", "--iou-type", "segm"]
    )


def test_every_peer_has_its_script() -> None:
    for peer in peers.PEERS.values():
        for format_ in peer.formats:
            command = peer.command(Path("gt.json"), Path("dt.json"), format_)
            assert {"gt.json", "dt.json"} < set(command)
            assert command[-1] == peers.IOU_TYPES.get(format_, "dt.json")
        if peer.name != "hotcoco-cli":
            assert Path(command[1]).is_file()


def test_names_are_checked() -> None:
    assert run.chosen(None, ["a", "b"], ["a"]) == ["a"]
    assert run.chosen("b,a", ["a", "b"], ["a"]) == ["b", "a"]
    with pytest.raises(SystemExit, match="unknown: c; there are a, b"):
        run.chosen("a,c", ["a", "b"], ["a"])


def test_steps_are_parsed_from_detap_s_output() -> None:
    said = "starting: 0.057 s\ninfo: boxes: 3 s of it\nreading: 1.250 s\n"
    assert run.STEP.findall(said) == [("starting", "0.057"), ("reading", "1.250")]


def test_the_slowest_peers_skip_the_largest_workloads() -> None:
    bench = run.Bench(detap_command.Detap(("detap",), None), ["2M"], list(peers.PEERS), 1)
    files = {"format": "coco", "ground_truth": "g", "detections": "d"}
    bench._files.update({"2M": files, "48k": files})
    assert [peer.name for peer in bench.peers_for("2M")] == [
        "ultrafast-pycocotools",
        "hotcoco",
        "vernier",
        "hotcoco-cli",
    ]
    assert "pycocotools" in [peer.name for peer in bench.peers_for("48k")]
    bench.results = results()
    fastest = bench.best_peer("48k")
    assert fastest is not None
    assert fastest.name == "hotcoco"
    assert bench.best_peer("2M") is None
    assert asdict(OURS[0])["wall"] == 0.10


def test_a_report_without_results_names_the_command_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(run, "prepare", lambda: pytest.fail("nothing is to be prepared"))
    with pytest.raises(SystemExit) as ended:
        run.main(["--report-only"])
    message = str(ended.value)
    assert message.startswith("there are no results of a last time (")
    assert message.endswith(
        "measure first, with python -m benchmarks, or with --quick for small workloads"
    )


def test_inputs_have_a_column_of_ratios_for_each_peer() -> None:
    runs = [Run(0.3, 1, 0, 1)], [Run(0.4, 1, 0, 1)]
    rows = [
        {"workload": "48k", "input": what, "peer": peer, **comparison(Pairs(*runs))}
        for what, peer in (("path", "a"), ("path", "b"), ("annotations", "b"))
    ]
    lines = report.input_table({"loop": rows}, "loop", "ratio").splitlines()
    ratio = "**0.75** (0.75\N{EN DASH}0.75)"
    assert lines[0] == "| case | a | b |"
    assert lines[2:] == [
        f"| 48k, file | {ratio} | {ratio} |",
        f"| 48k, annotations of each image |  | {ratio} |",
    ]
    assert set(report.INPUTS) == {*run.DROP_INS, *run.LOOPS}


def test_an_epoch_has_times_and_memory() -> None:
    cost = {"detections": 1e7, "updates": 1.25, "rest": 2.5, "held": 54.3, "peak": 91.8}
    assert report.epoch_sentence({"epoch": cost}) == (
        "10,000,000 detections of 100 an image through an `Evaluator`: 1.25 s in updates, "
        "2.50 s in `compute`; 54 bytes per detection, and 92 more in `compute`.\n"
    )


def test_other_commands_are_divided_by_an_evaluation() -> None:
    rows = [{"workload": "500k", "name": "--errors", **comparison(Pairs(THEIRS, OURS))}]
    assert report.others_table({"others": rows}).splitlines()[2] == (
        "| 500k | --errors | 0.300 | 0.150 | **2.00** (2.00\N{EN DASH}2.00) |"
    )


def test_rankings_have_processor_time_and_memory() -> None:
    rows = [{"workload": "codes", "peer": "faiss", **comparison(Pairs(OURS, THEIRS))}]
    assert report.ranking_table({"ranking": rows}).splitlines()[2] == (
        "| codes | faiss | 0.150 | 0.300 | **0.50** (0.50\N{EN DASH}0.50) | 0.50 |"
    )


def test_the_first_command_is_that_of_the_readme() -> None:
    (command,) = run.FIRST_COMMAND.findall((run.HERE.parent / "README.md").read_text("utf-8"))
    assert command.endswith("detap eval fixtures/quickstart/voc fixtures/quickstart/voc/detections")
    cost = {"wall": 44.7, "wall_low": 44, "wall_high": 46, "runs": 3, "processor": 61}
    text = report.installation_sentence({"installation": cost})
    assert "takes 45 s from a clone to the table (44\N{EN DASH}46 in 3 runs; 61 s" in text


def test_a_series_is_one_sentence_on_the_page() -> None:
    rows = [
        {"images": n, "ours": {"wall": 0.1 + n * 1e-6, "peak": n * 1e3}} for n in (10_000, 20_000)
    ]
    assert report.scaling_sentence({"scaling_images": rows}, "scaling_images", "images") == (
        "10,000 to 20,000 images: 0.100 s + 1.00 µs each (R² = 1.0000), 10 to 20 MB.\n"
    )
