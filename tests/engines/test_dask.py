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

from detap.engines import driver
from tests.cli.conftest import Ended, detap
from tests.cli.test_shards import JSON, PAIRS, SHARDS, WHOLE, numbers, shards

__all__ = ["detap", "shards"]

Run = Callable[..., Ended]

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


@pytest.fixture(params=[0, 1 << 20], ids=["groups", "merged"])
def merged_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_MAX_MERGED_ROWS", request.param)


@pytest.mark.parametrize("files", [SHARDS, PAIRS], ids=["one-truth", "pairs"])
@pytest.mark.parametrize(
    "asked",
    [(), ("--protocol", "voc2012"), ("--class-agnostic",), ("--score-threshold", "best")],
    ids=" ".join,
)
@pytest.mark.usefixtures("merged_rows")
def test_an_engine_gives_the_metrics_of_one_process(
    shards: Path, detap: Run, scheduler: str, files: tuple[str, ...], asked: tuple[str, ...]
) -> None:
    engine = ("--engine", "dask", "--scheduler", scheduler)
    ended = detap("eval", *files, *engine, *asked, *JSON)
    assert numbers(ended) == numbers(detap("eval", *WHOLE, *asked, *JSON))
    here = detap("eval", *files, *asked, *JSON)
    assert json.loads(ended.out)["inputs"] == json.loads(here.out)["inputs"]


def test_curves_and_partials_are_returned(shards: Path, detap: Run, scheduler: str) -> None:
    engine = ("--engine", "dask", "--scheduler", scheduler)
    for more, name in (((), "here"), (engine, "there")):
        ended = detap(
            *("eval", *SHARDS, *more, "--curves", f"{name}.json", "--partial", f"{name}.part")
        )
        assert ended.status == 0, ended.err
    for suffix in ("json", "part"):
        assert Path(f"here.{suffix}").read_bytes() == Path(f"there.{suffix}").read_bytes()


def test_selected_images_and_slices(shards: Path, detap: Run, scheduler: str) -> None:
    asked = ("--images", "1,2,3,7,14,20", "--slice-by", "light", *JSON)
    engine = ("--engine", "dask", "--scheduler", scheduler)
    one = detap("eval", *WHOLE, *asked)
    assert numbers(detap("eval", *SHARDS, *engine, *asked)) == numbers(one)


@pytest.mark.parametrize(
    "stage", ["shard_to_partial", "header_of", "select_classes", "accumulate_classes"]
)
def test_a_worker_killed_at_any_stage_changes_no_metric(
    shards: Path, detap: Run, scheduler: str, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from detap.engines.dask import Engine

    submit = Engine.submit
    killed: list[int] = []

    def submit_and_kill(
        self: Engine, name: str, function: Any, *arguments: Any, **options: Any
    ) -> Any:
        submitted = submit(self, name, function, *arguments, **options)
        if function.__name__ == stage and not killed:
            victim = next(iter(self._client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
        return submitted

    monkeypatch.setattr(driver, "_MAX_MERGED_ROWS", 0)
    monkeypatch.setattr(Engine, "submit", submit_and_kill)
    ended = detap("eval", *SHARDS, "--engine", "dask", "--scheduler", scheduler, *JSON)
    assert killed
    assert numbers(ended) == numbers(detap("eval", *WHOLE, *JSON))


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
    ended = detap("eval", *SHARDS, *engine)
    assert ended.status == 2
    assert "dts/2.json: none of the 1 records has a score" in ended.err


def test_an_image_in_two_shards_is_named_with_both(
    shards: Path, detap: Run, scheduler: str
) -> None:
    Path("dts/4.json").write_text(Path("dts/0.json").read_text())
    ended = detap("eval", *SHARDS, "--engine", "dask", "--scheduler", scheduler)
    assert ended.status == 2
    assert "Error: dts/4.json: image 4 is also in dts/0.json; " in ended.err


def test_unpaired_inputs_are_evaluated_with_all_ground_truths(
    shards: Path, detap: Run, scheduler: str
) -> None:
    one = numbers(detap("eval", *WHOLE, *JSON))
    Path("dts/0.json").rename("x.json")
    Path("dts/3.json").rename("dts/0.json")
    Path("x.json").rename("dts/3.json")
    engine = ("--engine", "dask", "--scheduler", scheduler)
    assert numbers(detap("eval", *PAIRS, *engine, *JSON)) == one


def test_workers_keep_partials_for_a_resumed_run(shards: Path, detap: Run, scheduler: str) -> None:
    engine = ("--engine", "dask", "--scheduler", scheduler, "--resume", "kept")
    first = detap("eval", *SHARDS, *engine, *JSON)
    assert len(list(Path("kept").iterdir())) == 6  # five inputs, and the images of none
    assert detap("eval", *SHARDS, *engine, *JSON).out == first.out


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
    ended = detap("eval", *SHARDS, "--engine", "dask", *JSON)
    assert ended.status == 2
    assert "the workers died 3 times while starting (Nanny failed to start.)" in ended.err
    assert "start dask scheduler and dask worker and give --scheduler" in ended.err
    assert len(started) == 3
    again = detap("eval", *SHARDS, "--engine", "dask", "--scheduler", scheduler, *JSON)
    assert numbers(again) == numbers(detap("eval", *WHOLE, *JSON))


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
    ended = detap("eval", *SHARDS, "--engine", "dask", *JSON)
    assert ended.status == 2
    assert ended.err == (
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
    ended = detap("eval", *SHARDS, "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1")
    assert ended.status == 2
    assert "--scheduler tcp://127.0.0.1:1: no scheduler answers there" in ended.err


def test_a_lost_scheduler_is_not_reported_as_an_internal_error(
    shards: Path, detap: Run, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed.comm import CommClosedError

    def lost(*_: object) -> None:
        raise CommClosedError("in <TCP>: Stream is closed")

    monkeypatch.setattr(distributed.Client, "gather", lost)
    ended = detap("eval", *SHARDS, "--engine", "dask", "--scheduler", scheduler)
    assert ended.status == 2
    assert ended.err == (
        "Error: the scheduler of --engine dask went away (CommClosedError: in <TCP>: Stream is "
        "closed)\n"
    )


def test_a_scheduler_needs_its_engine(shards: Path, detap: Run) -> None:
    ended = detap("eval", *SHARDS, "--scheduler", "tcp://127.0.0.1:1")
    assert ended.status == 2
    assert "--scheduler requires --engine dask" in ended.err
