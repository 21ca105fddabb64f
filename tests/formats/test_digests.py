"""The sha256 of files, against hashlib's, by the processor's instructions and without them."""

import copy
import hashlib
import io
import os
import pickle
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.errors import InputError
from detap.formats.coco import prefetch
from detap.formats.coco import tables as coco
from detap.formats.reading import awaited, digest
from detap.formats.reading._sha256 import AVAILABLE, sha256_of_descriptor
from detap.formats.reading.awaited import Awaited
from detap.formats.reading.stream import Limits
from detap.tables.detection import SourceFile

needs_instructions = pytest.mark.skipif(
    not AVAILABLE, reason="this processor has no instructions for sha256"
)
WANTED = Limits(digests=True)


# 55, 56 and 64 bytes are where what ends the last block no longer fits into it; 65,536 are read at
# once.
@needs_instructions
@pytest.mark.parametrize("block", [0, 64, 65_536, 3 * 65_536])
@pytest.mark.parametrize("more", [0, 1, 54, 55, 56, 57, 63, 65, 119, 120, 127])
def test_every_length_of_the_last_block(tmp_path: Path, block: int, more: int) -> None:
    content = os.urandom(block + more)
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb", buffering=0) as file:
        assert sha256_of_descriptor(file.fileno()) == hashlib.sha256(content).hexdigest()


@needs_instructions
@given(parts=st.lists(st.binary(max_size=300), max_size=12))
def test_bytes_that_come_in_parts(parts: list[bytes]) -> None:
    """A pipe gives what it has, of any length."""
    source, sink = os.pipe()

    def write() -> None:
        for part in parts:
            os.write(sink, part)
        os.close(sink)

    thread = threading.Thread(target=write)
    thread.start()
    found = sha256_of_descriptor(source)
    thread.join()
    os.close(source)
    assert found == hashlib.sha256(b"".join(parts)).hexdigest()


@needs_instructions
def test_what_cannot_be_read(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(IsADirectoryError):
            sha256_of_descriptor(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("instructions", [True, False])
def test_files_with_and_without_instructions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instructions: bool
) -> None:
    if instructions and not AVAILABLE:
        pytest.skip("this processor has no instructions for sha256")
    monkeypatch.setattr(digest, "AVAILABLE", instructions)
    content = os.urandom(200_000)
    (tmp_path / "file").write_bytes(content)
    assert digest.sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("tight", [False, True])
def test_a_text_in_the_making_is_a_text(monkeypatch: pytest.MonkeyPatch, tight: bool) -> None:
    monkeypatch.setattr(awaited, "memory_is_tight", lambda: tight)
    made_by: list[threading.Thread] = []

    def make() -> str:
        made_by.append(threading.current_thread())
        return "abc"

    text = Awaited(make)
    assert text == "abc"
    assert str(text) == "abc"
    assert bool(text)
    assert (made_by[0] is threading.current_thread()) == tight
    file = SourceFile("x", 1, sha256=text)
    assert file == SourceFile("x", 1, sha256="abc")
    for same in (copy.deepcopy(file), pickle.loads(pickle.dumps(file))):
        assert type(same.sha256) is str
        assert same.sha256 == "abc"


def test_nobody_waits_before_the_text_is_looked_at() -> None:
    go_on = threading.Event()

    def make() -> str:
        assert go_on.wait(60)
        return "abc"

    text = Awaited(make)
    go_on.set()
    assert text == "abc"


def test_who_looks_is_told_why_there_is_none() -> None:
    def make() -> str:
        raise OSError("it is gone")

    text = Awaited(make)
    for _ in range(2):
        with pytest.raises(OSError, match="it is gone"):
            str(text)


def test_a_file_that_changes_after_it_was_scanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest is taken beside the evaluation, and must be of what was evaluated."""
    path = tmp_path / "gt.json"
    path.write_text(
        '{"images": [{"id": 1}], "categories": [{"id": 1, "name": "a"}], '
        '"annotations": [{"id": 1, "image_id": 1, "category_id": 1, '
        '"bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}]}'
    )
    scanned = threading.Event()

    def late(descriptor: int) -> str:
        scanned.wait(60)
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        with path.open("a") as file:
            file.write(" ")
        return found

    def late_of(file: io.FileIO) -> str:
        return late(file.fileno())

    monkeypatch.setattr(digest, "sha256_of_descriptor", late)
    monkeypatch.setattr(digest, "_digest_of", late_of)
    handle = prefetch.ground_truth(path, WANTED)
    truth = coco.read_ground_truth(handle)
    assert len(truth) == 1
    scanned.set()
    with pytest.raises(InputError, match=r"gt\.json: changed while it was being read; try again"):
        str(truth.files[0].sha256)
