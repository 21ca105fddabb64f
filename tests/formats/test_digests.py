"""The sha256 of files, against hashlib's, by the processor's instructions and without them."""

import copy
import hashlib
import io
import os
import pickle
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detap.errors import InputError
from detap.formats.coco import prefetch
from detap.formats.coco import tables as coco
from detap.formats.reading import awaited, digest
from detap.formats.reading._sha256 import AVAILABLE, sha256_of_descriptors
from detap.formats.reading.awaited import Awaited
from detap.formats.reading.stream import Limits, Stream
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
        assert sha256_of_descriptors(file.fileno()) == [hashlib.sha256(content).hexdigest()]


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
    found = sha256_of_descriptors(source)
    thread.join()
    os.close(source)
    assert found == [hashlib.sha256(b"".join(parts)).hexdigest()]


@needs_instructions
@given(
    lengths=st.tuples(*(st.integers(0, 200_000) | st.integers(0, 130) for _ in range(2))),
    data=st.data(),
)
def test_two_files_side_by_side(lengths: tuple[int, int], data: st.DataObject) -> None:
    contents = [data.draw(st.randoms()).randbytes(length) for length in lengths]
    with tempfile.TemporaryFile() as one, tempfile.TemporaryFile() as other:
        for file, content in zip((one, other), contents, strict=True):
            file.write(content)
            file.seek(0)
        found = sha256_of_descriptors(one.fileno(), other.fileno())
    assert found == [hashlib.sha256(content).hexdigest() for content in contents]


@needs_instructions
def test_one_of_two_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    folder = os.open(tmp_path, os.O_RDONLY)
    file = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        error, found = sha256_of_descriptors(folder, file)
    finally:
        os.close(folder)
        os.close(file)
    assert isinstance(error, IsADirectoryError)
    assert found == hashlib.sha256(b"content").hexdigest()


def taken_beside(paths: list[Path]) -> list[str]:
    """Return the digests of files that begin together."""
    together = threading.Barrier(len(paths))

    def take(stream: Stream) -> str:
        together.wait(60)
        return digest.sha256_beside(stream)

    streams = [Stream(path) for path in paths]
    found = [Awaited(partial(take, stream)) for stream in streams]
    texts = [str(text) for text in found]
    for stream in streams:
        stream.close()
    return texts


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("patience", [0, 60])
def test_digests_that_begin_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, patience: float
) -> None:
    """Whoever takes them, and however many meet, each is its own; an odd one is left alone."""
    alone = count % 2 == 1
    monkeypatch.setattr(digest, "_PATIENCE", 0.2 if alone and patience else patience)
    contents = [os.urandom(1000 * k) for k in range(count)]
    for k, content in enumerate(contents):
        (tmp_path / str(k)).write_bytes(content)
    found = taken_beside([tmp_path / str(k) for k in range(count)])
    assert found == [hashlib.sha256(content).hexdigest() for content in contents]
    assert digest._due == []


@needs_instructions
def test_who_waits_for_another_is_told_what_befell_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*descriptors: int) -> list[str]:
        raise MemoryError

    monkeypatch.setattr(digest, "_PATIENCE", 60)
    monkeypatch.setattr(digest, "sha256_of_descriptors", fail)
    for name in "ab":
        (tmp_path / name).write_bytes(b"content")
    waiting = Awaited(partial(digest.sha256_beside, Stream(tmp_path / "a")))
    while not digest._due:
        time.sleep(0.001)
    with pytest.raises(MemoryError):
        digest.sha256_beside(Stream(tmp_path / "b"))
    with pytest.raises(MemoryError):
        str(waiting)


@needs_instructions
def test_what_cannot_be_read(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        (error,) = sha256_of_descriptors(descriptor)
    finally:
        os.close(descriptor)
    assert isinstance(error, IsADirectoryError)


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

    def late(file: io.FileIO) -> str:
        scanned.wait(60)
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        with path.open("a") as more:
            more.write(" ")
        return found

    for name in ("_of_file", "_in_company"):
        monkeypatch.setattr(digest, name, late)
    handle = prefetch.ground_truth(path, WANTED)
    truth = coco.read_ground_truth(handle)
    assert len(truth) == 1
    scanned.set()
    with pytest.raises(InputError, match=r"gt\.json: changed while it was being read; try again"):
        str(truth.files[0].sha256)
