"""SHA-256 digests compared with hashlib's."""

import hashlib
import io
import os
from pathlib import Path

import pytest

from detap.errors import InputError
from detap.formats.coco import format as coco
from detap.io import digest
from detap.io.limits import Limits


def test_a_file_of_many_blocks(tmp_path: Path) -> None:
    content = os.urandom(200_000)
    (tmp_path / "file").write_bytes(content)
    assert digest.sha256(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_a_file_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest is that of the evaluated content."""
    path = tmp_path / "gt.json"
    path.write_text(
        '{"images": [{"id": 1}], "categories": [{"id": 1, "name": "a"}], '
        '"annotations": [{"id": 1, "image_id": 1, "category_id": 1, '
        '"bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}]}'
    )
    of_file = digest._of_file

    def changing(file: io.FileIO) -> str:
        sha256 = of_file(file)
        with path.open("a") as more:
            more.write(" ")
        return sha256

    limits = Limits(digests=True)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert coco.read_ground_truth(path, limits=limits).files[0].sha256 == sha256
    monkeypatch.setattr(digest, "_of_file", changing)
    with pytest.raises(InputError, match=r"gt\.json: changed while it was being read; retry"):
        coco.read_ground_truth(path, limits=limits)
