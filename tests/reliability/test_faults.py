"""Failures of the environment: kills, full disks, files that change, lack of memory."""

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.reliability import kills
from tests.reliability.coco_cases import BASE, results, truth
from tests.reliability.judge import strict_json, text_problems
from tests.reliability.runner import ROOT, SANITIZED

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def detap(
    folder: Path,
    *arguments: str,
    program: str = "",
    stdout: Any = subprocess.PIPE,
    environment: Mapping[str, str] = MappingProxyType({}),
    **options: Any,
) -> "subprocess.CompletedProcess[bytes]":
    """Run the command, or a program that runs it, in a folder."""
    return subprocess.run(
        [sys.executable, *(("-c", program) if program else ("-m", "detap")), *arguments],
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
        **options,
    )


def write(folder: Path, padding: int = 0) -> None:
    """Write the usual pair; `padding` bytes of spaces make the results long to read."""
    (folder / "gt.json").write_text(json.dumps(truth()))
    text = json.dumps(results())
    (folder / "dt.json").write_text(f"{text[:-1]}{' ' * padding}]")


EVAL = ("eval", "--gt", "gt.json", "--dt", "dt.json")


def check_failure(done: "subprocess.CompletedProcess[bytes]", statuses: set[int]) -> str:
    """Check the properties of any failure; return its output."""
    assert done.returncode in statuses, (done.returncode, done.stderr)
    assert text_problems(done.stderr) == []
    assert text_problems(done.stdout) == []
    assert b"Traceback" not in done.stderr
    return done.stderr.decode()


# --- kills


def test_a_kill_leaves_the_old_report_or_the_new_one(tmp_path: Path) -> None:
    result = kills.run(tmp_path, 16)
    assert set(result.reports) <= {"old", "new"}
    assert sum(result.reports.values()) == 16


def test_a_kill_in_the_middle_of_writing(tmp_path: Path) -> None:
    result = kills.run_writes(tmp_path, 15)
    assert sum(result.reports.values()) == 15
    assert result.leftovers  # or none hit the writing


@pytest.mark.parametrize(
    ("how", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"]
)
def test_a_signal_leaves_a_complete_report_and_no_other_file(
    tmp_path: Path, how: signal.Signals, status: int
) -> None:
    result = kills.run(tmp_path, 10, how=how)
    # Before Python has started, and while it ends, the signal does what it does to any process.
    assert set(result.statuses) <= {0, status, -how}
    assert result.leftovers == 0


INTERRUPTED = """
import os, signal, sys
after, moment = int(sys.argv.pop(1)), 0
def hook(event, _):
    global moment
    if event in ("import", "open"):
        moment += 1
        if moment == after:
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
from detap.__main__ import main
sys.addaudithook(hook)
main()
"""
"""The command, interrupted at a given import or file opening."""


@pytest.mark.parametrize("after", [*range(1, 100, 12), 110, 150, 200])
def test_an_interrupt_at_any_step_is_130(tmp_path: Path, after: int) -> None:
    write(tmp_path)
    call = (str(after), *EVAL, "-o", "report.json", "-q")
    done = detap(tmp_path, *call, program=INTERRUPTED)
    assert (done.returncode, done.stderr) == (130, b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dt.json", "gt.json"]


SWALLOWED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from detap import __main__
class Noisy:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def during(*_):
    Noisy()
    return 0
if sys.argv[1] == "import":
    class Importer:
        find_spec = lambda *_: during() or None
    sys.meta_path.insert(0, Importer())
else:
    import detap.cli
    detap.cli.group.invoke = during
__main__.main()
"""
"""The command, interrupted within a callback that cannot raise."""


@pytest.mark.parametrize("moment", ["import", "run"])
def test_an_interrupt_that_python_would_swallow_is_130(tmp_path: Path, moment: str) -> None:
    done = detap(tmp_path, moment, program=SWALLOWED)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


WITHIN_AN_IMPORT = """
import signal, sys
import detap.__main__
import detap.cli
plain = detap.cli.group.make_context
def hook(frame, event, function):
    if event == "c_return" and function.__name__ == "acquire_lock":
        if frame.f_code.co_name == sys.argv[-1]:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGTERM)
def make_context(name, arguments, **more):
    sys.setprofile(hook)
    return plain(name, arguments[:-1], **more)
detap.cli.group.make_context = make_context
detap.__main__.main()
"""
"""The command, terminated in importlib between taking the lock of all imports and releasing it."""


@pytest.mark.parametrize("function", ["_get_module_lock", "cb"])
def test_a_signal_within_an_import_does_not_hang(function: str, tmp_path: Path) -> None:
    """The callback `cb` cannot raise: it kept the lock, and the threads that read waited for it."""
    write(tmp_path)
    call = (*EVAL, "-o", "report.json", "-q", function)
    done = detap(tmp_path, *call, program=WITHIN_AN_IMPORT)
    assert (done.returncode, done.stdout, done.stderr) == (143, b"", b"")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dt.json", "gt.json"]


@pytest.mark.parametrize("mode", ["OpenBLAS", "import"])
def test_an_early_exit_is_not_reported_as_a_failed_gate(tmp_path: Path, mode: str) -> None:
    """A library that calls exit(1), as OpenBLAS does, and a command that cannot be imported."""
    write(tmp_path)
    broken = {"OpenBLAS": "numpy", "import": "click"}[mode]
    (tmp_path / f"{broken}.py").write_text(
        "import ctypes\nctypes.CDLL(None).exit(1)\n" if mode == "OpenBLAS" else "1 / 0\n"
    )
    done = detap(tmp_path, *EVAL, environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert done.returncode == 3
    if mode == "OpenBLAS":
        assert b"Error: out of memory: this input needs more than the process may" in done.stderr
    else:
        expected = b"Error: detap cannot start (ZeroDivisionError: division by zero)\n"
        assert done.stderr == expected


def test_the_last_status_and_message_count_if_a_library_exits(tmp_path: Path) -> None:
    program = (
        "import ctypes\nfrom detap.cli._abort import end_with\n"
        "end_with(4, 'one')\nend_with(5, 'two')\nctypes.CDLL(None).exit(1)\n"
    )
    done = detap(tmp_path, program=program)
    assert (done.returncode, done.stderr) == (5, b"two\n")


# --- targets


def test_a_full_disk_leaves_the_old_report(tmp_path: Path) -> None:
    """A limit on file sizes replaces the disk: the write fails in the same way."""
    kills.write_inputs(tmp_path)
    report = tmp_path / "report.json"
    report.write_text("old")

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    done = detap(tmp_path, *EVAL, "-o", "report.json", preexec_fn=limit)
    said = check_failure(done, {2})
    assert said.startswith("Error: report.json: cannot be written: File too large")
    assert report.read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(
        ["dt.json", "fewer.json", "gt.json", "report.json"]
    )


AS_NOBODY = """
import os, sys
from detap.cli import main
arguments = sys.argv[1:]
if os.getuid() == 0:
    # Another user may not be able to import what the command imports: that is done before.
    assert main([*arguments[:-2], "-o", sys.argv[-1] + ".warm.json", "-q"]) == 0
    os.unlink(sys.argv[-1] + ".warm.json")
    os.chmod(".", 0o555)
    os.chmod("dt.json", int(os.environ["MODE"], 8))
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
else:
    os.chmod("dt.json", int(os.environ["MODE"], 8))
    os.chmod(".", 0o555)
sys.stdout.flush()
sys.exit(main(arguments))
"""
"""The command, run by a user without write permission: root may write anywhere."""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that other users may enter: pytest's are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("644", r"\S*report.json: folder .* is not writable"),
        ("000", r"(dt.json: permission denied; check its permissions|\S*report.json: folder)"),
    ],
)
def test_missing_permissions(open_folder: Path, mode: str, says: str) -> None:
    folder = open_folder / "closed"
    folder.mkdir()
    write(folder)
    (folder / "report.json").write_text("old")
    try:
        call = (*EVAL, "-o", "report.json")
        done = detap(folder, *call, program=AS_NOBODY, environment={"MODE": mode})
    finally:
        folder.chmod(0o755)
    said = check_failure(done, {2})
    assert re.search(f"Error: {says}", said), said
    assert (folder / "report.json").read_text() == "old"


# --- inputs that change


def changed_during(folder: Path, change: Any, seed: int) -> "subprocess.CompletedProcess[bytes]":
    """Run the command and change the results at a random moment while it reads them."""
    process = subprocess.Popen(
        [sys.executable, "-m", "detap", *EVAL, "-o", "report.json"],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(random.Random(seed).uniform(0.02, 0.3))
    change(folder / "dt.json")
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b" " * 1000)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 5000)
        file.write(b"x" * 1000)


@pytest.mark.parametrize(
    "change", [truncate, grow, overwrite, Path.unlink], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("seed", range(3))
def test_a_file_that_changes_gives_a_valid_metric_or_an_error(
    tmp_path: Path, change: Any, seed: int
) -> None:
    write(tmp_path, padding=40_000_000)
    done = changed_during(tmp_path, change, seed)
    said = check_failure(done, {0, 2})
    if done.returncode == 0:
        report = strict_json((tmp_path / "report.json").read_bytes())
        assert report["summary"]["AP"] == pytest.approx(BASE, abs=1e-9)
    else:
        assert said.startswith("Error: dt.json: ")
        assert not (tmp_path / "report.json").exists()


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    """The file changes at every block that the reader requests."""
    from detap.errors import InputError
    from detap.io.stream import Stream

    for change in (truncate, grow, overwrite):
        write(tmp_path, padding=5_000_000)
        with Stream(tmp_path / "dt.json") as stream:
            stream.read()
            before = os.stat(tmp_path / "dt.json").st_mtime_ns
            change(tmp_path / "dt.json")
            os.utime(tmp_path / "dt.json", ns=(before + 1_000_000, before + 1_000_000))
            with pytest.raises(InputError, match=r"dt\.json: changed while it was being read"):
                stream.read_all()


# --- memory


@pytest.mark.skipif(SANITIZED, reason="the sanitizer needs all of the address space")
@pytest.mark.parametrize("megabytes", [30, 60, 90, 100, 110, 120, 140, 160, 200, 300, 400, 600])
def test_out_of_memory_is_reported(tmp_path: Path, megabytes: int) -> None:
    record = '{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}'
    write(tmp_path)
    (tmp_path / "dt.json").write_text(f"[{','.join([record] * 400_000)}]")
    (tmp_path / "report.json").write_text("old")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    done = detap(tmp_path, *EVAL, "-o", "report.json", "--threads", "2", preexec_fn=limit)
    report = (tmp_path / "report.json").read_bytes()
    # It may run out after the report was written: what is printed to stdout comes last.
    if report != b"old" or done.returncode == 0:
        assert strict_json(report)["summary"]
    if done.returncode:
        assert "out of memory" in check_failure(done, {3})
