"""Saved tables of detections: written completely or not at all, and checked when read."""

import errno
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
import detap.io.limits
from detap import Detections
from detap.errors import InputError, OutputError, UsageError
from tests.cli.conftest import Run

BOXES = [[0, 0, 10, 10], [5, 5, 20, 25]]


@pytest.fixture
def table() -> Detections:
    bits = np.zeros((2, 30, 40), np.uint8)
    bits[0, :10, :10] = bits[1, 5:25, 5:20] = 1
    return Detections.from_arrays(
        image=["a", "b"], label=[7, 9], boxes=BOXES, score=[0.5, 0.25], masks=bits
    )


@pytest.fixture
def saved(table: Detections, tmp_path: Path) -> Path:
    path = tmp_path / "a.npz"
    table.save(path)
    return path


def test_a_loaded_table_is_the_saved_one(table: Detections, saved: Path) -> None:
    loaded = Detections.load(saved)
    for name, column in table.columns().items():
        assert loaded.columns()[name].tobytes() == column.tobytes(), name
    assert loaded.masks is not None
    assert table.masks is not None
    assert loaded.masks.tobytes() == table.masks.tobytes()
    for name in ("images", "classes", "class_ids", "notes", "files"):
        assert getattr(loaded, name) == getattr(table, name), name


def test_notes_and_digests_of_files_are_kept(tmp_path: Path) -> None:
    path = Path("fixtures/quickstart/voc")
    truth = detap.read_ground_truth(path)
    table = detap.read_detections(path / "detections", truth)
    table.save(tmp_path / "a.npz")
    loaded = Detections.load(tmp_path / "a.npz")
    assert loaded.notes == table.notes
    assert [file.path for file in loaded.files] == [file.path for file in table.files]
    assert all(len(file.sha256) == 64 for file in loaded.files)


def test_a_saved_table_is_checked_without_ground_truth(command: Run, saved: Path) -> None:
    report = json.loads(command("check", "--dt", saved, "--output-format", "json").passed().out)
    assert [entry["name"] for entry in report["classes"]] == ["7", "9"]
    assert report["errors"]["problems"] == []


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Rewrite the arrays of a file."""
    with np.load(path) as arrays:
        columns = dict(arrays)
    change(columns)
    np.savez(path, **columns)
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(image=np.array([0, 2], np.int32)), "image has an index outside 0 to 1"),
        (lambda c: c.update(label=np.array([-1, 0], np.int32)), "label has an index outside"),
        (
            lambda c: c.update(score=np.array([0.5, np.nan])),
            "score is missing; 1 of 2 records",
        ),
        (lambda c: c.update(score=np.array([0.5])), "score has dtype float64 and shape"),
        (lambda c: c.update(score=np.array([1, 2])), "score has dtype int64"),
        (lambda c: c.update(other=np.zeros(2)), "KeyError: 'other'"),
        (lambda c: c.pop("corners"), "is damaged: TypeError"),
        (lambda c: c.pop("mask"), ": is damaged: only one of mask and masks is there"),
        (lambda c: c.pop("masks.runs"), "masks.runs"),
        (lambda c: c["masks.runs"].fill(4_000_000), "a mask has invalid runs or points"),
        (lambda c: c.pop("detap"), "is not a file of detections that detap wrote"),
    ],
)
def test_damaged_tables_are_refused(saved: Path, change: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Detections.load(changed(saved, change))
    assert str(caught.value).startswith(f"{saved}: ")
    assert message in str(caught.value)


def test_truncated_and_foreign_files_are_refused(saved: Path) -> None:
    data = saved.read_bytes()
    foreign = io.BytesIO()
    np.savez(foreign, boxes=np.zeros((2, 4)))
    for content in (b"", b"{}", data[:-1], data[:100], pickle.dumps([1]), foreign.getvalue()):
        saved.write_bytes(content)
        with pytest.raises(InputError, match=r"is damaged or not|is not a file of detections"):
            Detections.load(saved)


def test_nothing_is_unpickled(saved: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(saved.parent / "made"),)

    changed(saved, lambda c: c.update(score=np.array([Bomb(), Bomb()], object)))
    with pytest.raises(InputError, match="allow_pickle=False"):
        Detections.load(saved)
    assert not (saved.parent / "made").exists()


def test_an_expanding_file_is_refused(saved: Path) -> None:
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("detap.npy", bytes(1 << 20))
    limits = detap.io.limits.Limits(file_bytes=1 << 16)
    with pytest.raises(InputError, match="expands to more than 65536 bytes"):
        Detections.load(saved, limits=limits)


def test_a_full_disk_leaves_the_old_file(
    table: Detections, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OutputError, match="cannot be written: No space left on device"):
        table.save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["a.npz"]


def test_images_of_another_ground_truth_are_refused(saved: Path) -> None:
    truth = detap.GroundTruth.from_arrays(image=["a"], label=[7], boxes=BOXES[:1])
    with pytest.raises(InputError, match=r"a\.npz: image 'b' is not in the ground truth"):
        detap.read_detections(saved, truth)


def test_ground_truth_is_not_read(saved: Path) -> None:
    with pytest.raises(InputError, match=r"a\.npz: holds detections only"):
        detap.read_ground_truth(saved)


def test_boxes_are_of_one_format(saved: Path) -> None:
    truth = detap.GroundTruth.from_arrays(image=["a"], label=[7], boxes=BOXES[:1])
    with pytest.raises(UsageError, match=r"--boxes is for .*; these are read as npz"):
        detap.read_detections(saved, truth, boxes="xyxy")
