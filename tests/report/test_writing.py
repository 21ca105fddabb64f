import os
import socket
import stat
from pathlib import Path

import pytest

from detap.errors import OutputError
from detap.io.paths import SourceFile
from detap.io.writing import check_target, write


def only(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write(str(tmp_path / "report.json"), b"new")
    finally:
        os.umask(old)
    assert (tmp_path / "report.json").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == 0o640
    assert only(tmp_path) == ["report.json"]


def test_an_existing_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b"old")
    path.chmod(0o604)
    inode = path.stat().st_ino
    write(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert path.stat().st_ino != inode  # renamed, not overwritten


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.json").write_bytes(b"old")
    (tmp_path / "link.json").symlink_to(tmp_path / "real" / "a.json")
    write(str(tmp_path / "link.json"), b"new")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real" / "a.json").read_bytes() == b"new"


def test_a_dangling_link_creates_its_target(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to(tmp_path / "a.json")
    write(str(tmp_path / "link.json"), b"new")
    assert (tmp_path / "a.json").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (SystemExit(), SystemExit),
        (OSError(28, "No space left on device"), OutputError),
    ],
)
def test_after_an_error_the_old_report_is_unchanged(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    raised: type[BaseException],
) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b"old")

    def fail(_: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(raised):
        write(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert only(tmp_path) == ["report.json"]


def test_a_socket_is_rejected(cwd: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:  # its path must be short
        server.bind("s")
        with pytest.raises(OutputError, match="to a socket"):
            write("s", b"x")


def test_a_device_is_written_to_and_not_replaced() -> None:
    write(os.devnull, b"x")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_file_of_an_input_folder_is_not_overwritten(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    for name in ("one.xml", "two.xml", "other.xml"):
        (inside / name).write_bytes(b"x")
    (tmp_path / "kept.xml").write_bytes(b"x")
    (inside / "led.xml").symlink_to(tmp_path / "kept.xml")
    os.link(inside / "two.xml", tmp_path / "hard.json")
    (tmp_path / "soft.json").symlink_to(inside / "one.xml")
    members = ("in/led.xml", "in/one.xml", "in/two.xml")
    read = [SourceFile(str(tmp_path), 3, members), SourceFile("absent", 1, ("a.xml",))]
    for name in ("in/one.xml", "hard.json", "soft.json", "kept.xml"):
        with pytest.raises(OutputError, match="is an input"):
            check_target(str(tmp_path / name), [], read)
    check_target(str(inside / "other.xml"), [], read)
    write(str(inside / "other.xml"), b"y", [], read)
    with pytest.raises(OutputError, match="is an input"):
        write(str(tmp_path / "hard.json"), b"y", [], read)
    assert (inside / "two.xml").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("absent/report.json", "no such folder"),
        ("file/report.json", "cannot be written: Not a directory"),
        ("loop", "cannot be written: Too many levels"),
        ("new/", "not a file name"),
        ("", "not a file name"),
        ("x" * 300, "cannot be written: File name too long"),
        ("a\0b", "embedded null"),
    ],
)
def test_invalid_targets(tmp_path: Path, path: str, message: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OutputError, match=message):
        check_target(os.path.join(tmp_path, path) if path else path)


def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # permissions do not hold for root
    with pytest.raises(OutputError, match=r"folder .* is not writable"):
        check_target(str(tmp_path / "report.json"))


def test_control_characters_in_messages_are_escaped(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught:
        check_target(str(tmp_path / "\x1b[31m" / "r.json"))
    assert "\\x1b[31m" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_standard_output_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path to our own stdout is written through the stream; a rename would detach it."""
    target = tmp_path / "out"
    stream = os.open(target, os.O_WRONLY | os.O_CREAT)
    saved = os.dup(1)
    try:
        os.dup2(stream, 1)
        write(str(target), b"one")
        write(str(target), b"two")
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(stream)
    assert target.read_bytes() == b"onetwo"


def test_a_long_name_works_with_the_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250 + ".json")
    write(str(path), b"x")
    assert only(tmp_path) == [path.name]
