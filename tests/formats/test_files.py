"""Opening inputs, their limits and digests, and detecting their format."""

import gzip
import hashlib
import io
import os
import sys
from pathlib import Path

import pytest

from detap.errors import InputError, UsageError
from detap.formats.coco import format as coco
from detap.formats.detection import detect_format
from detap.formats.json.document import JsonFile
from detap.formats.voc import tables as voc
from detap.io import digest
from detap.io.limits import Limits
from detap.io.stream import read_bytes
from tests.formats import voc_files
from tests.formats.coco_files import RESULTS, TRUTH, as_bytes


class Standard:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.fixture
def truth_path(tmp_path: Path) -> Path:
    path = tmp_path / "truth.json"
    path.write_bytes(as_bytes(TRUTH))
    return path


def test_gzip_in_several_members(tmp_path: Path) -> None:
    content = as_bytes(TRUTH)
    path = tmp_path / "truth.json.gz"
    path.write_bytes(gzip.compress(content[:100]) + gzip.compress(content[100:]))
    assert len(coco.read_ground_truth(path)) == 3


def test_gzip_that_expands_beyond_the_limit_of_file_sizes(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b"[" * (40 << 20)))
    with pytest.raises(InputError, match="is larger than 1000000 bytes"):
        read_bytes(path, Limits(file_bytes=1_000_000))


def test_standard_input(truth_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = coco.read_ground_truth(truth_path)
    for content in (as_bytes(RESULTS), as_bytes(RESULTS).replace(b"0.9", b'"0.9"')):
        monkeypatch.setattr(sys, "stdin", Standard(content))
        handle = JsonFile("-")
        if b'"0.9"' in content:
            with pytest.raises(InputError, match=r'^<stdin>: \[0\]: score is "0.9"'):
                coco.read_detections(handle, truth)
        else:
            table = coco.read_detections(handle, truth)
            assert table.files[0].path == "-"
            assert table.files[0].sha256 == hashlib.sha256(content).hexdigest()
            assert len(table) == 3
        assert handle.sha256 == hashlib.sha256(content).hexdigest()


def test_gzip_on_standard_input(truth_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = coco.read_ground_truth(truth_path)
    monkeypatch.setattr(sys, "stdin", Standard(gzip.compress(as_bytes(RESULTS))))
    assert len(coco.read_detections("-", truth)) == 3


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="<stdin>: is closed"):
        read_bytes("-")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("regular", [True, False])
def test_a_digest_taken_while_reading_is_of_the_bytes_on_the_disk(
    truth_path: Path, tmp_path: Path, regular: bool, packed: bool
) -> None:
    content = (
        as_bytes(RESULTS) if regular else as_bytes(RESULTS).replace(b'"score"', b'"sc\\u006fre"')
    )
    path = tmp_path / "results.json"
    path.write_bytes(gzip.compress(content) if packed else content)
    truth = coco.read_ground_truth(truth_path)
    hashed = coco.read_detections(path, truth, limits=Limits(digests=True))
    assert hashed.files[0].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert coco.read_detections(path, truth).files[0].sha256 == truth.files[0].sha256 == ""


def voc_listing(folder: Path, *names: str) -> str:
    lines = [f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_a_folder_is_hashed_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    regular = voc_files.xml(voc_files.item())
    # A character reference is for lxml.
    fallback = regular.replace("<annotation>", "<annotation><folder>&#65;</folder>")
    root = voc_files.tree(tmp_path / "gt", {"b": regular, "a": regular, "c": fallback})
    detections = voc_files.write(tmp_path / "dt", {"det_x_dog.txt": "a 0.5 1 2 3 4\n"})
    again: list[str] = []
    read = digest._file_digest

    def noted(path: str, *rest: os.stat_result) -> str:
        again.append(os.path.basename(path))
        return read(path, *rest)

    monkeypatch.setattr(digest, "_file_digest", noted)
    truth = voc.read_ground_truth(root, limits=Limits(digests=True))
    names = ["Annotations/a.xml", "Annotations/b.xml", "Annotations/c.xml"]
    assert truth.files[0].members == tuple(names)
    assert truth.files[0].sha256 == voc_listing(root, *names)
    assert again == []
    table = voc.read_detections(detections, truth, limits=Limits(digests=True))
    assert table.files[0].sha256 == voc_listing(detections, "det_x_dog.txt")
    one = voc.read_detections(detections / "det_x_dog.txt", truth, limits=Limits(digests=True))
    content = (detections / "det_x_dog.txt").read_bytes()
    assert one.files[0].sha256 == hashlib.sha256(content).hexdigest()
    assert again == []
    assert voc.read_ground_truth(root).files[0].sha256 == ""


def test_the_digest_is_that_of_the_evaluated_content(
    truth_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_file = digest._of_file

    def changing(file: io.FileIO) -> str:
        sha256 = of_file(file)
        with truth_path.open("a") as more:
            more.write(" ")
        return sha256

    limits = Limits(digests=True)
    sha256 = hashlib.sha256(truth_path.read_bytes()).hexdigest()
    assert coco.read_ground_truth(truth_path, limits=limits).files[0].sha256 == sha256
    monkeypatch.setattr(digest, "_of_file", changing)
    with pytest.raises(InputError, match=r"truth\.json: changed while it was being read; retry"):
        coco.read_ground_truth(truth_path, limits=limits)


def test_formats_are_detected_by_name_and_content(tmp_path: Path) -> None:
    def made(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    folder = tmp_path / "folder.json"
    folder.mkdir()
    assert detect_format(folder).name == "voc"
    assert detect_format(made("a.json", b"")).name == "coco"
    assert detect_format(tmp_path / "absent.json.gz").name == "coco"
    assert detect_format(made("a.xml", b"")).name == "voc"
    assert detect_format(made("a", b" \xef\xbb\xbf"), made("b", b"\xef\xbb\xbf [")).name == "coco"
    assert detect_format(made("c", b"<annotation/>")).name == "voc"
    assert detect_format(folder, "-").name == "voc"
    assert detect_format(folder, tmp_path / "a.json").name == "voc"  # the ground truth says it
    assert detect_format(None, tmp_path / "a.json").name == "coco"


def test_formats_that_cannot_be_detected(tmp_path: Path) -> None:
    unknown = tmp_path / "unknown"
    unknown.write_bytes(b"?")
    with pytest.raises(UsageError, match=r"cannot detect .*; use --format coco or --format voc"):
        detect_format(unknown)
    with pytest.raises(InputError, match="absent: no such file or directory"):
        detect_format(tmp_path / "absent")
    with pytest.raises(UsageError, match="cannot detect the format of no file"):
        detect_format(None)
