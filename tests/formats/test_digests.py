"""SHA-256 digests compared with hashlib's, and text computed in a thread."""

import copy
import hashlib
import io
import os
import pickle
import sys
import threading
from pathlib import Path

import pytest

from detap.errors import InputError
from detap.formats.coco import prefetch
from detap.formats.coco import tables as coco
from detap.formats.reading import background
from detap.formats.reading.background import BackgroundText
from detap.io import digest
from detap.io.limits import Limits
from detap.tables.detection import SourceFile

WANTED = Limits(digests=True)


def test_a_file_of_many_blocks(tmp_path: Path) -> None:
    content = os.urandom(200_000)
    (tmp_path / "file").write_bytes(content)
    assert digest.sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("tight", [False, True])
def test_background_text_behaves_as_str(monkeypatch: pytest.MonkeyPatch, tight: bool) -> None:
    monkeypatch.setattr(background, "memory_is_tight", lambda: tight)
    made_by: list[threading.Thread] = []
    niceness: list[int] = []
    before = os.getpriority(os.PRIO_PROCESS, 0)

    def make() -> str:
        made_by.append(threading.current_thread())
        niceness.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return "abc"

    text = BackgroundText(make)
    assert text == "abc"
    assert str(text) == "abc"
    assert bool(text)
    assert (made_by[0] is threading.current_thread()) == tight
    assert made_by[0].daemon != tight
    if sys.platform == "linux":
        assert niceness == [before if tight else 10]
    file = SourceFile("x", 1, sha256=text)
    assert file == SourceFile("x", 1, sha256="abc")
    for same in (copy.deepcopy(file), pickle.loads(pickle.dumps(file))):
        assert type(same.sha256) is str
        assert same.sha256 == "abc"


def test_background_text_waits_only_when_read() -> None:
    go_on = threading.Event()

    def make() -> str:
        assert go_on.wait(60)
        return "abc"

    text = BackgroundText(make)
    go_on.set()
    assert text == "abc"


def test_background_text_raises_the_error_when_read() -> None:
    def make() -> str:
        raise OSError("it is gone")

    text = BackgroundText(make)
    for _ in range(2):
        with pytest.raises(OSError, match="it is gone"):
            str(text)


def test_a_file_that_changes_after_it_was_scanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest is computed in parallel, and must be of the evaluated content."""
    path = tmp_path / "gt.json"
    path.write_text(
        '{"images": [{"id": 1}], "categories": [{"id": 1, "name": "a"}], '
        '"annotations": [{"id": 1, "image_id": 1, "category_id": 1, '
        '"bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}]}'
    )
    scanned = threading.Event()

    def late(file: io.FileIO) -> str:
        scanned.wait(60)
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        with path.open("a") as more:
            more.write(" ")
        return sha256

    monkeypatch.setattr(digest, "_of_file", late)
    handle = prefetch.ground_truth(path, WANTED)
    truth = coco.read_ground_truth(handle)
    assert len(truth) == 1
    scanned.set()
    with pytest.raises(InputError, match=r"gt\.json: changed while it was being read; retry"):
        str(truth.files[0].sha256)
