"""The content of a folder's files, their digests, and what is not a plain file."""

import gzip
import os
from hashlib import sha256
from pathlib import Path

import pytest

from detap.formats.text.folder import Folder, contents
from detap.io.limits import Limits
from detap.io.problems import Problems


def folder_of(path: Path, *members: str) -> Folder:
    return Folder(str(path), "", "", {member: member for member in members})


def read(folder: Folder, limits: Limits | None = None) -> tuple[dict[int, bytes], list[str]]:
    """Return the content by number, and the problems."""
    problems = Problems(9)
    members = [*folder.members.values()]
    read = {n: data for n, _, data in contents(folder, members, problems, limits or Limits())}
    return read, [str(problem) for problem in problems.listed]


def test_files_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0 1 2 3 4")
    (tmp_path / "folder").mkdir()
    (tmp_path / "long").write_bytes(b"0 1 2 3 4\n" * 20_000)
    (tmp_path / "packed").write_bytes(gzip.compress(b"0 1 2 3 4"))
    (tmp_path / "none").write_bytes(b"")
    folder = folder_of(tmp_path, "a", "absent", "folder", "long", "packed", "none")
    read_files, problems = read(folder)
    assert read_files == {
        0: b"0 1 2 3 4",
        3: b"0 1 2 3 4\n" * 20_000,
        4: b"0 1 2 3 4",
        5: b"",
    }
    assert problems == [
        f"{tmp_path}/absent: no such file or directory",
        f"{tmp_path}/folder: is a folder, expected a file; use the path of a regular file",
    ]
    assert folder.digests == {}


def test_one_file_has_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x")
    one = Folder(str(tmp_path / "a.txt"), "", ".txt", {"a": ""})
    assert read(one, Limits(digests=True)) == ({0: b"x"}, [])
    assert one.digests == {0: sha256(b"x").hexdigest()}
    assert read(folder_of(tmp_path / "absent")) == ({}, [])


def test_the_limit_of_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0 1 2 3 4")
    folder = folder_of(tmp_path, "a")
    assert read(folder, Limits(file_bytes=9)) == ({0: b"0 1 2 3 4"}, [])
    read_files, (problem,) = read(folder, Limits(file_bytes=8))
    assert not read_files
    assert problem.startswith(f"{tmp_path}/a: is larger than 8 bytes")


def test_digests_are_of_the_files_as_stored(tmp_path: Path) -> None:
    """That of gzip is left to the digest of the folder, which reads the file again."""
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(gzip.compress(b"b"))
    folder = folder_of(tmp_path, "a", "absent", "b")
    read(folder, Limits(digests=True))
    assert folder.digests == {0: sha256(b"a").hexdigest()}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read_files, (problem,) = read(folder_of(tmp_path, "pipe"))
    assert not read_files
    assert "is a FIFO, expected a file" in problem


EMPTY = Path("/sys/class/net/lo/ifalias")


@pytest.mark.skipif(
    not EMPTY.exists() or EMPTY.stat().st_size == 0 or EMPTY.read_bytes() != b"",
    reason="no file here has fewer bytes than its size",
)
def test_a_file_with_fewer_bytes_than_its_size() -> None:
    assert read(folder_of(EMPTY.parent, EMPTY.name)) == ({0: b""}, [])


def test_the_digest_of_a_folder_covers_the_files_read(tmp_path: Path) -> None:
    """Files hashed while reading are not read again."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.txt").write_bytes(b"b")
    once = {1: sha256(b"a").hexdigest()}
    folder = Folder(str(tmp_path), "in", ".txt", {"a": "a.txt", "b": "b.txt"}, digests=once)
    source = folder.source(["b.txt", "a.txt"], 7)
    assert (source.path, source.records) == (str(tmp_path), 7)
    assert source.members == ("in/a.txt", "in/b.txt")
    lines = [f"{sha256(name).hexdigest()}  in/{name.decode()}.txt\n" for name in (b"a", b"b")]
    assert source.sha256 == sha256("".join(lines).encode()).hexdigest()
    assert Folder(str(tmp_path), "", ".txt", {}).source(["x"], 1)[2:4] == (("x",), "")
