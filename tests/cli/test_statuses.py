"""Exit status, messages and files of every kind of run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import detap.cli
from detap._version import __version__
from detap.errors import DifferenceError, InputError, Problem
from tests.cli.conftest import CLASSES, FOUND, Ended, Files, Run, spawn
from tests.processes import finished
from tests.reliability.kills import hear_signals
from tests.reliability.runner import FULL_DEVICE

needs_full_device = pytest.mark.skipif(
    not FULL_DEVICE, reason="/dev/full is no device on this system"
)


@pytest.mark.parametrize("numbers", [True, False])
def test_the_wrong_layout_is_an_input_error(
    voc: Files, detap: Run, tmp_path: Path, numbers: bool
) -> None:
    """One of two cats is detected, and the dog: mAP .75."""
    names, per_image = tmp_path / "names.txt", tmp_path / "per-image"
    names.write_text("".join(f"{name}\n" for name in CLASSES.values()))
    per_image.mkdir()
    for image in (1, 2):
        lines = [
            f"{label - 1 if numbers else CLASSES[label]} {score} {x + 1} {y + 1} {x + w} {y + h}\n"
            for where, label, (x, y, w, h), score in FOUND
            if where == image
        ]
        (per_image / f"{image}.txt").write_text("".join(lines))
    for folder, right, wrong in (
        (per_image, "image", "class"),
        (voc.dt, "class", "image"),
    ):
        inputs = ["--gt", voc.gt, "--dt", folder, "--format", "voc", "--class-names", names]
        for command in ("eval", "check"):
            ended = detap(command, *inputs, "--layout", f"{wrong}-files")
            assert ended.status == 2, ended.err
            assert "is not in the ground truth" in ended.out + ended.err
        for hint in (["--layout", f"{right}-files"], []):
            ended = detap("eval", *inputs, *hint)
            assert "mAP     0.7500" in ended.out, ended.err


def test_version_help_and_nothing() -> None:
    assert spawn("--version").stdout == f"detap {__version__}\n"
    ended = spawn("--help")
    assert ended.returncode == 0
    assert "eval  " in ended.stdout
    assert spawn("eval", "--help").returncode == 0
    ended = spawn()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("Usage: detap ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evil"], "Error: No such command 'evil'."),
        (["eval"], "Error: Missing option '--gt'."),
        (["eval", "--gtt", "x"], "Error: No such option '--gtt'"),
        (
            ["eval", "--gt", "x", "--dt", "y", "\x1b[31mz"],
            "Error: Ground truth given twice: GT '\\x1b[31mz' and --gt 'x'",
        ),
    ],
)
def test_usage_errors(arguments: list[str], message: str) -> None:
    ended = spawn(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr
    assert "Try 'detap" in ended.stderr
    assert "\x1b" not in ended.stderr


def test_an_input_error_is_one_line_without_debug(coco: Files) -> None:
    path = coco.folder / "absent.json"
    ended = spawn("eval", "--gt", coco.gt, "--dt", path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"Error: {path}: no such file or directory\n"
    ended = spawn("eval", "--gt", coco.gt, "--dt", path, "--debug")
    assert ended.returncode == 2
    assert ended.stderr.startswith("Traceback (most recent call last):\n")
    assert ended.stderr.endswith("absent.json: no such file or directory\n")


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def invoke(*_: Any) -> int:
        raise error

    monkeypatch.setattr(detap.cli.group, "invoke", invoke)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (DifferenceError("it differs"), 1, "Error: it differs\n"),
        (
            InputError([Problem("a.json", "record 3", "is \x1b bad", "mend it")], omitted=2),
            2,
            "Error: a.json: record 3: is \\x1b bad; mend it\n... and 2 more\n",
        ),
        (KeyboardInterrupt(), 130, ""),
        (
            MemoryError(),
            3,
            "Error: out of memory: this input needs more than the process may use\n",
        ),
        (
            RecursionError("too\ndeep"),
            3,
            "Error: detap itself failed (RecursionError: too deep); "
            "run it with --debug and report what it shows\n",
        ),
        (
            ValueError("no"),
            3,
            "Error: detap itself failed (ValueError: no); "
            "run it with --debug and report what it shows\n",
        ),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_all_exceptions_are_caught_in_one_function(
    detap: Run,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    message: str,
) -> None:
    fail_with(error, monkeypatch)
    assert detap("eval") == Ended(status, "", message)


def waiting(coco: Files, *options: str) -> subprocess.Popen[str]:
    """Start an evaluation that waits for its detections on stdin."""
    process = subprocess.Popen(
        [sys.executable, "-m", "detap", "eval", "--gt", coco.gt, "--dt", "-", "-v", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_signals,  # noqa: PLW1509 - no threads here
    )
    assert process.stderr is not None
    # The first step has ended: the command is in charge of its signals.
    assert process.stderr.readline().startswith("starting: ")
    return process


@pytest.mark.parametrize("begun", ["", "[ ", "[" + " " * 300_000])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(coco: Files, number: signal.Signals, status: int, begun: str) -> None:
    with waiting(coco, "-o", str(coco.folder / "report.json")) as process:
        assert process.stdin is not None
        process.stdin.write(begun)
        process.stdin.flush()
        time.sleep(0.1)  # so that it is met at its reading, mostly; the answer is the same
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert process.returncode == status
    assert (out, err) == ("", "")
    assert sorted(path.name for path in coco.folder.iterdir()) == ["instances.json", "results.json"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_the_command_and_its_end(coco: Files, number: signal.Signals) -> None:
    """While the handlers are being restored, no code of detap would catch an exception."""
    code = (
        "import os, sys\n"
        "from detap import cli\n"
        "from detap.__main__ import main\n"
        "leave = cli._Signals.__exit__\n"
        f"cli._Signals.__exit__ = lambda *a: (os.kill(os.getpid(), {int(number)}), leave(*a))\n"
        "main()\n"
    )
    finished(
        [sys.executable, "-c", code, *coco.arguments, "-q"],
        128 + number,
        preexec_fn=hear_signals,
        text=False,
    )


def test_an_ignored_interrupt_stays_ignored(coco: Files) -> None:
    """As under nohup: the caller decides."""
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "detap", *coco.arguments[:-1], "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    finally:
        signal.signal(signal.SIGINT, usual)
    with process:
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(coco.dt.read_bytes(), timeout=300)
    assert process.returncode == 0
    assert out.startswith(b"class ")


def test_an_interrupt_under_another_name_is_an_interrupt(
    detap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's compiler turns an interrupt during an import into a SyntaxError."""

    def invoke(*_: Any) -> int:
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            raise SyntaxError("(unicode error)") from None
        return 0

    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr("detap.cli.group.invoke", invoke)
        assert detap("eval") == Ended(130, "", "")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, usual)


@pytest.mark.parametrize("line", ["eval", "--help", "--version"])
def test_a_closed_pipe_is_quiet(coco: Files, line: str) -> None:
    report = coco.folder / "r.json"
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nowhere:
        ended = spawn(
            *([*coco.arguments, "-q", "-o", report] if line == "eval" else [line]),
            capture_output=False,
            stdout=nowhere,
            stderr=subprocess.PIPE,
        )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert report.exists() == (line == "eval")  # files come first: nobody reads the other one


@needs_full_device
@pytest.mark.parametrize("output_format", ["table", "json"])
def test_a_full_disk_behind_stdout(coco: Files, output_format: str) -> None:
    arguments = [*coco.arguments, "-q", "--output-format", output_format]
    with open("/dev/full", "wb") as full:
        ended = spawn(*arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 2
    assert ended.stderr == "Error: standard output: cannot be written: No space left on device\n"


def test_a_report_to_the_path_of_stdout(coco: Files) -> None:
    if not os.path.exists("/dev/stdout"):
        pytest.skip("no /dev/stdout on this system")
    ended = spawn(*coco.arguments, "-q", "-o", "csv=/dev/stdout", "--output-format", "json")
    assert ended.returncode == 0
    assert ended.stdout.startswith("name,id,AP")
    assert '"schema_version": 2' in ended.stdout


@pytest.mark.parametrize("closed", ["1", "2"])
def test_closed_standard_streams(coco: Files, closed: str) -> None:
    script = f'exec "$@" {closed}>&-'
    ended = finished(
        ["sh", "-c", script, "sh", sys.executable, "-m", "detap", *coco.arguments], None
    )
    if closed == "1":
        assert ended.returncode == 2
        assert "standard output: cannot be written: Bad file descriptor" in ended.stderr
    else:
        assert ended.returncode == 0
        assert ended.stdout.startswith("class ")


def test_from_a_folder_that_cannot_be_written(coco: Files, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    assert spawn(*coco.arguments, cwd=locked).returncode == 0
    assert list(locked.iterdir()) == []


def test_color_is_for_terminals(coco: Files) -> None:
    import pty

    def on_a_terminal(**environment: str) -> str:
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "detap", *coco.arguments],
            stdout=slave,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80", **environment},
        )
        os.close(slave)
        shown = b""
        try:
            while chunk := os.read(master, 65536):
                shown += chunk
        except OSError:  # Linux ends a terminal without a user so
            pass
        os.close(master)
        assert process.wait(timeout=300) == 0
        return shown.decode()

    colored = on_a_terminal(NO_COLOR="")
    assert "\x1b[" in colored
    assert "\x1b" not in on_a_terminal(NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(NO_COLOR="", TERM="dumb")
