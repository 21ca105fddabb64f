"""Shards with Dask: the metrics of one process, even if workers die."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ended, Run
from tests.shards import JSON, PAIRS, SHARDS, WHOLE

distributed = pytest.importorskip("distributed")

# Its own warnings, of ports and of processes that we kill, are none of ours.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("dask"),
]


@contextmanager
def two_workers() -> Iterator[Any]:
    """Run two workers, restarted when they die."""
    import logging

    import dask

    settings = {
        "distributed.scheduler.allowed-failures": 2,
        "distributed.scheduler.no-workers-timeout": 60,
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster


class Cluster:
    """Two workers, replaced by another two once one is lost.

    Dask does not restart a worker that a test kills during start-up.
    """

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.now = stack.enter_context(two_workers())

    def address(self) -> str:
        try:
            self.now.wait_for_workers(2, timeout=20)
        except TimeoutError:
            self.now = self.stack.enter_context(two_workers())
        return str(self.now.scheduler_address)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(stack)


@pytest.fixture
def scheduler(cluster: Cluster) -> str:
    return cluster.address()


def split(rows: list[dict[str, Any]], parts: int = 3) -> tuple[str, ...]:
    """Write results in turns by image, and return the option that reads them."""
    images = sorted({row["image_id"] for row in rows})
    part_of = {image: index % parts for index, image in enumerate(images)}
    Path("parts").mkdir()
    for part in range(parts):
        of_part = [row for row in rows if part_of[row["image_id"]] == part]
        Path(f"parts/{part}.json").write_text(json.dumps(of_part))
    return ("--dt", "parts/*.json")


def same(detap: Run, scheduler: str, *arguments: object) -> Ended:
    """Evaluate here and on workers; the output is that of one process, byte for byte."""
    here = detap("eval", *arguments)
    there = detap("eval", *arguments, "--engine", "dask", "--scheduler", scheduler)
    assert (there.status, there.out, there.err) == (here.status, here.out, here.err)
    return there


@pytest.mark.parametrize(
    "asked",
    [
        (),
        ("--protocol", "voc2012"),
        ("--protocol", "proposals"),
        ("--protocol", "detectron2-voc"),
        ("--protocol", "openimages", "--verified", "all"),
        ("--class-agnostic",),
        ("--max-dets-scope", "image"),
        ("--max-dets", "20", "--max-dets-scope", "dataset"),
        ("--min-score", "0.5", "--drop-where", "width < 20"),
        ("--min-score", "2"),
        ("--min-score", "2", "--strict"),
        ("--images", "1,2,3,7,14,20"),
        ("--images", "seen"),
        ("--classes", "class 1,class 3"),
        ("--classes", "no class"),
        ("--sort", "AP", "--threads", "2"),
        ("--fail-under", "AP50=0.1"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("form", ["json", "text"])
def test_an_engine_reports_as_one_process(
    shards: Path, detap: Run, scheduler: str, asked: tuple[str, ...], form: str
) -> None:
    same(detap, scheduler, *SHARDS, *asked, "--output-format", form)


@pytest.mark.parametrize("files", [WHOLE, PAIRS], ids=["one-file", "pairs"])
def test_other_numbers_of_files_are_evaluated(
    shards: Path, detap: Run, scheduler: str, files: tuple[str, ...]
) -> None:
    same(detap, scheduler, *files, *JSON)


def test_digests_of_a_report_file_are_those_of_one_process(
    shards: Path, detap: Run, scheduler: str
) -> None:
    engine = ("--engine", "dask", "--scheduler", scheduler)
    for name, more in (("here", ()), ("there", engine)):
        assert detap("eval", *SHARDS, *more, "-o", f"{name}.json").status == 0
    here = Path("here.json").read_text()
    assert Path("there.json").read_text() == here
    assert all(source["sha256"] for source in json.loads(here)["inputs"])


@pytest.mark.parametrize(
    ("truth", "detections", "asked"),
    [
        ("instances_val2014_100", "instances_val2014_fakebbox100_results", ()),
        ("instances_val2014_100", "instances_val2014_fakebbox100_results", ("--images", "seen")),
        *(
            ("instances_val2014_100", "instances_val2014_fakesegm100_results", asked)
            for asked in (
                ("--protocol", "coco-segm"),
                ("--protocol", "coco-segm", "--detection-area", "box"),
                ("--protocol", "coco-boundary"),
            )
        ),
        ("coco79_gt", "coco79_dt", ("--protocol", "coco-keypoints")),
        ("lvis_val_100", "lvis_results_bbox", ("--protocol", "lvis")),
        ("lvis_val_100", "lvis_results_segm", ("--protocol", "lvis-segm")),
        ("lvis_val_100", "lvis_results_bbox", ("--protocol", "lvis", "--max-dets-scope", "class")),
    ],
)
def test_real_boxes_masks_and_keypoints(
    *,
    real_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    detap: Run,
    scheduler: str,
    truth: str,
    detections: str,
    asked: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    ground_truth, results = (next(real_data.glob(f"*/{name}.json")) for name in (truth, detections))
    files = ("--gt", ground_truth, *split(json.loads(results.read_text())))
    assert same(detap, scheduler, *files, *asked, *JSON).status == 0


def boxes_like(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that changes a result."""
    return lambda row: row | {name: change(row[name]) for name, change in changes.items()}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (boxes_like(bbox=lambda b: [b[0] + 300, b[1] + 500, *b[2:]]), "few-overlaps"),
        (boxes_like(category_id=lambda label: label % 90 + 1), "off by +1"),
        (boxes_like(category_id=lambda label: 1000 + label % 3), "no category"),
        (boxes_like(category_id=lambda k: 1000 if k == 1 else k), "classes-only-in-detections"),
        (boxes_like(bbox=lambda b: [*b[:2], b[0] + b[2], b[1] + b[3]]), "[x1, y1, x2, y2]"),
        (boxes_like(bbox=lambda b: [side / 640 for side in b]), "normalized"),
        (boxes_like(bbox=lambda b: [*b[:2], -b[2], b[3]]), "negative width"),
        (boxes_like(score=lambda score: 1 - score), ""),
    ],
    ids=["moved", "shifted", "unknown", "one-unknown", "xyxy", "normalized", "negative", "scores"],
)
@pytest.mark.parametrize("more", [(), ("--as-is",)], ids=["", "as-is"])
def test_implausible_inputs_are_noted_or_refused_as_by_one_process(
    *,
    real_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    detap: Run,
    scheduler: str,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    code: str,
    more: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = real_data / "coco-val2014-100"
    results = json.loads((folder / "instances_val2014_fakebbox100_results.json").read_text())
    files = ("--gt", folder / "instances_val2014_100.json", *split([*map(change, results)]))
    ended = same(detap, scheduler, *files, *more, *JSON)
    assert more or code in ended.err


def test_repeated_detections_are_noted(shards: Path, detap: Run, scheduler: str) -> None:
    for path in Path("dts").iterdir():
        path.write_text(json.dumps(2 * json.loads(path.read_text())))
    assert "[repeated-detections]" in same(detap, scheduler, *SHARDS, *JSON).err


@pytest.mark.parametrize("limit", [1 << 25, 0])
def test_annotation_id_zero_is_noted_with_both_values(
    shards: Path, detap: Run, scheduler: str, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """The client reads all detections for that, up to a limit."""
    truth = json.loads(Path("gt.json").read_text())
    truth["annotations"][0]["id"] = 0
    Path("gt.json").write_text(json.dumps(truth))
    monkeypatch.setattr("detap.engines.evaluation._MAX_ROWS_HERE", limit)
    engine = ("--engine", "dask", "--scheduler", scheduler)
    here, there = (json.loads(detap("eval", *SHARDS, *more, *JSON).out) for more in ((), engine))
    notes = [report.pop("notes") for report in (here, there)]
    assert here == there
    assert (notes[0] == notes[1]) == bool(limit)


@pytest.mark.parametrize("descending", [False, True])
def test_ties_by_file_order(shards: Path, detap: Run, scheduler: str, *, descending: bool) -> None:
    """The images of the inputs do not interleave; those of an input may descend."""
    rows = json.loads(Path("dt.json").read_text())
    for part in range(5):
        of_part = [row for row in rows if (row["image_id"] - 1) // 5 == part]
        Path(f"dts/{part}.json").write_text(json.dumps(of_part[:: -1 if descending else 1]))
    ended = same(detap, scheduler, *SHARDS, "--protocol", "detectron2-voc", *JSON)
    assert "interleaved" not in ended.err


@pytest.mark.parametrize(
    ("asked", "subject"),
    [
        (("--errors",), "--errors"),
        (("--confusion",), "--confusion"),
        (("--calibration",), "--calibration"),
        (("--analysis",), "--analysis"),
        (("--score-threshold", "best"), "--score-threshold"),
        (("--tie-range",), "--tie-range"),
        (("--curves", "curves.json"), "--curves"),
        (("--matches", "matches.csv"), "--matches"),
        (("--cross-check",), "--cross-check"),
        (("--baseline-detections", "dt.json", "--max-drop", "0"), "--baseline-detections"),
        (("--confidence", "0.95"), "--confidence"),
        (("--detectable-drop", "0.01"), "--detectable-drop"),
        (("--slice-by", "light"), "--slice-by"),
        (("--fail-under", "F1=0.5"), "a gate of a score threshold"),
        (("--metrics", "MR-2"), "the metric MR-2"),
        (("--classes", "class 1", "--class-agnostic"), "--classes with --class-agnostic"),
        (("--merge-images",), "--merge-images"),
        (("-o", "report.html"), "the report page"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_need_all_boxes_are_refused(
    shards: Path, detap: Run, asked: tuple[str, ...], subject: str
) -> None:
    said = detap("eval", *SHARDS, "--engine", "dask", *asked).refused()
    assert said == f"Error: {subject} needs all boxes in one process; remove --engine\n"


def test_stdin_is_refused(shards: Path, detap: Run) -> None:
    said = detap("eval", "--gt", "gt.json", "--dt", "-", "--engine", "dask").refused()
    assert "--engine cannot read from stdin, because inputs may be read again" in said


def test_failed_gates_name_no_images(shards: Path, detap: Run, scheduler: str) -> None:
    engine = ("--engine", "dask", "--scheduler", scheduler)
    asked = (*SHARDS, "--fail-under", "class:*.AP=0.9", *JSON)
    here, there = detap("eval", *asked), detap("eval", *asked, *engine)
    assert here.status == there.status == 1
    assert here.err == there.err
    reports = [json.loads(ended.out) for ended in (here, there)]
    assert reports[1].pop("regressions")["images"] == []
    reports[0].pop("regressions")
    assert reports[0] == reports[1]


@pytest.mark.parametrize("stage", ["replace", "read_columns", "getitem", "evaluate_chunk"])
def test_a_worker_killed_at_any_stage_changes_no_metric(
    shards: Path, detap: Run, scheduler: str, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from detap.engines.dask import Engine

    submit = Engine.submit
    killed: list[int] = []

    def submit_and_kill(self: Engine, name: str, function: Any, *arguments: Any) -> Any:
        submitted = submit(self, name, function, *arguments)
        if function.__name__ == stage and not killed:
            victim = next(iter(self._client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
        return submitted

    monkeypatch.setattr(Engine, "submit", submit_and_kill)
    same(detap, scheduler, *SHARDS, *JSON)
    assert killed


def die() -> None:
    """Exit as if a task ran out of memory."""
    os._exit(9)


def test_a_shard_that_kills_its_workers_fails_the_run_by_name() -> None:
    """On its own workers: Dask may lose one for good if it dies while restarting."""
    from detap.engines.dask import Engine
    from detap.errors import InputError

    with two_workers() as cluster:
        engine = Engine(cluster.scheduler_address)
        with pytest.raises(InputError) as caught:
            engine.gather([engine.submit("shards/7.json", die)])
        engine.close()
    assert str(caught.value) == (
        "shards/7.json: every worker that evaluated it died; see the workers' logs; they may need "
        "more memory"
    )


def test_an_invalid_shard_fails_the_run_by_name(shards: Path, detap: Run, scheduler: str) -> None:
    Path("dts/2.json").write_text('[{"image_id": 1}]')
    engine = ("--engine", "dask", "--scheduler", scheduler)
    assert "dts/2.json: [0]: category_id is missing" in detap("eval", *SHARDS, *engine).refused()


def test_an_image_in_two_shards_is_named_with_both(
    shards: Path, detap: Run, scheduler: str
) -> None:
    Path("dts/4.json").write_text(Path("dts/0.json").read_text())
    said = detap("eval", *SHARDS, "--engine", "dask", "--scheduler", scheduler).refused()
    assert "Error: dts/4.json: image 4 is also in dts/0.json; " in said


@contextmanager
def interrupts(handler: Any) -> Iterator[None]:
    """Let processes begun inside ignore Ctrl-C (``SIG_IGN``), or not, however pytest was begun.

    A shell without job control begins a background job with Ctrl-C ignored, and so do its children.
    """
    usual = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)


def begin(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "detap", "eval", *SHARDS, "--engine", "dask", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that the signal is that of a terminal: to all of them
    )


def await_workers(run: "subprocess.Popen[str]") -> None:
    while run.poll() is None and not children(run.pid):
        time.sleep(0.01)


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="processes are found in /proc"
)


@needs_proc
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"]
)
def test_an_interrupted_run_ends_silently_with_its_workers(
    shards: Path, number: signal.Signals, status: int
) -> None:
    for _ in range(5):
        with interrupts(signal.default_int_handler):
            run = begin("-o", "out.json")
        await_workers(run)
        (os.killpg if number == signal.SIGINT else os.kill)(run.pid, number)
        said = run.communicate(timeout=60)[1]
        if run.returncode:  # else it was done before the signal arrived
            break
    assert (run.returncode, said) == (status, "")
    assert not Path("out.json").exists()
    assert not sessions(run.pid)


@needs_proc
def test_a_run_that_ignores_interrupts_is_not_ended_by_one(shards: Path, detap: Run) -> None:
    """A background job of a script: who starts it decides."""
    with interrupts(signal.SIG_IGN):
        run = begin("-o", "out.json", "--quiet")
    await_workers(run)
    os.killpg(run.pid, signal.SIGINT)
    said = run.communicate(timeout=60)[1]
    assert (run.returncode, said) == (0, "")
    summary = json.loads(Path("out.json").read_text())["summary"]
    assert summary == json.loads(detap("eval", *WHOLE, *JSON).out)["summary"]
    assert not sessions(run.pid)


@needs_proc
def test_a_worker_killed_while_it_starts_is_replaced(shards: Path, detap: Run) -> None:
    """As by a machine short of memory, before the worker has connected."""
    run = begin("-o", "out.json", "--quiet")
    await_workers(run)
    os.kill(int(children(run.pid)[0]), signal.SIGKILL)
    said = run.communicate(timeout=120)[1]
    assert (run.returncode, said) == (0, "")
    summary = json.loads(Path("out.json").read_text())["summary"]
    assert summary == json.loads(detap("eval", *WHOLE, *JSON).out)["summary"]
    assert not sessions(run.pid)


def test_workers_that_never_start_end_the_run(
    shards: Path, detap: Run, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hint works: workers started by the user."""
    started = []

    def fail(**_: Any) -> None:
        started.append(True)
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("distributed.LocalCluster", fail)
    said = detap("eval", *SHARDS, "--engine", "dask", *JSON).refused()
    assert "the workers died 3 times while starting (Nanny failed to start.)" in said
    assert "start dask scheduler and dask worker and give --scheduler" in said
    assert len(started) == 3
    same(detap, scheduler, *SHARDS, *JSON)


def test_a_run_whose_workers_are_all_gone_ends(
    shards: Path, detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from detap.engines.dask import Engine

    begin_workers = Engine._start_workers

    def begin_and_lose(self: Engine) -> Any:
        cluster = begin_workers(self)
        cluster.scale(0)
        return cluster

    monkeypatch.setattr("detap.engines.dask.NO_WORKERS_TIMEOUT", 1.0)
    monkeypatch.setattr(Engine, "_start_workers", begin_and_lose)
    said = detap("eval", *SHARDS, "--engine", "dask", *JSON).refused()
    assert said == (
        "Error: --engine dask: for 1 s no worker was left; see the workers' logs; they may need "
        "more memory\n"
    )


def children(pid: int) -> list[str]:
    """Return the child processes of a process."""
    pids = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
                    pids.append(child)
    return pids


def sessions(leader: int) -> list[str]:
    """Return the processes of a session that still run, a moment after their leader."""
    pids: list[str] = []
    for _ in range(200):
        pids = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = path.read_text().rpartition(")")[2].split()
                if int(fields[3]) == leader and fields[0] != "Z":
                    pids.append(path.parent.name)
        if not pids:
            break
        time.sleep(0.05)
    return pids


def test_started_workers_listen_only_on_this_machine() -> None:
    from detap.engines.dask import Engine

    engine = Engine()
    try:
        info = engine._client.scheduler_info(n_workers=-1)
        addresses = [info["address"], *info["workers"]]
        ports = list(engine._cluster.scheduler.http_server._sockets.values())
        addresses += [f"tcp://{port.getsockname()[0]}:0" for port in ports]
        assert len(ports) == 1
        assert all(address.startswith("tcp://127.0.0.1:") for address in addresses), addresses
    finally:
        engine.close()


def test_a_scheduler_that_does_not_answer_is_named(shards: Path, detap: Run) -> None:
    said = detap("eval", *SHARDS, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1").refused()
    assert "--scheduler tcp://127.0.0.1:1: no scheduler answers there" in said


def test_a_lost_scheduler_is_not_reported_as_an_internal_error(
    shards: Path, detap: Run, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed.comm import CommClosedError

    def lost(*_: object) -> None:
        raise CommClosedError("in <TCP>: Stream is closed")

    monkeypatch.setattr(distributed.Client, "gather", lost)
    said = detap("eval", *SHARDS, "--engine", "dask", "--scheduler", scheduler).refused()
    assert said == (
        "Error: the scheduler of --engine dask went away (CommClosedError: in <TCP>: Stream is "
        "closed)\n"
    )


def test_a_scheduler_needs_its_engine(shards: Path, detap: Run) -> None:
    said = detap("eval", *SHARDS, "--scheduler", "tcp://127.0.0.1:1").refused()
    assert "--scheduler requires --engine dask" in said
