"""The content of a folder's files, their digests, and what is not a plain file."""

import gzip
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


EMPTY = Path("/sys/class/net/lo/ifalias")


@pytest.mark.skipif(
    not EMPTY.exists() or EMPTY.stat().st_size == 0 or EMPTY.read_bytes() != b"",
    reason="no file here has fewer bytes than its size",
)
def test_a_file_with_fewer_bytes_than_its_size() -> None:
    assert read(folder_of(EMPTY.parent, EMPTY.name)) == ({0: b""}, [])
