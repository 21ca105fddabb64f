"""Parts of the readers of Parquet and Arrow files, which other tests do not see from outside."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

import detap  # noqa: E402 - after what it needs was asked for
from detap.errors import InputError  # noqa: E402
from detap.formats.arrow import ipc  # noqa: E402
from detap.formats.arrow.files import opened  # noqa: E402
from detap.formats.catalogue import FORMATS  # noqa: E402
from detap.io.limits import DEFAULT_LIMITS  # noqa: E402
from tests.formats.arrow_files import write_file, write_parquet  # noqa: E402

BOXES = {"x1": [0.0, 0.0], "y1": [0.0, 0.0], "x2": [10.0, 10.0], "y2": [10.0, 10.0]}
TRUTH = {"image_id": [3, 5], "category_id": [7, 8], **BOXES}


# --- names and images


def test_detections_alone_name_images_and_classes(tmp_path: Path) -> None:
    columns = {"image_id": [5, 3], "category_id": [8, 8], "score": [0.5, 0.5]}
    write_parquet(pa.table({**columns, "bbox": [[0.0, 0.0, 9.0, 9.0]] * 2}), tmp_path / "dt")
    truth = FORMATS["arrow"].placeholder(tmp_path / "dt", {"boxes": "xyxy"}, DEFAULT_LIMITS)
    assert (truth.images, truth.class_ids, truth.classes) == ((3, 5), (8,), ("8",))


def test_file_names_of_images(tmp_path: Path) -> None:
    write_parquet(pa.table({**TRUTH, "file_name": ["a.jpg", "b/c.jpg"]}), tmp_path / "gt")
    truth = detap.read_ground_truth(tmp_path / "gt")
    assert FORMATS["arrow"].file_names(truth) == {3: "a.jpg", 5: "b/c.jpg"}


def test_detections_have_the_image_indices_of_the_ground_truth(tmp_path: Path) -> None:
    write_parquet(pa.table(TRUTH), tmp_path / "gt")
    truth = detap.read_ground_truth(tmp_path / "gt")
    columns = {**TRUTH, "image_id": [5, 5], "score": [0.5, 0.5]}
    write_parquet(pa.table(columns), tmp_path / "dt")
    assert detap.read_detections(tmp_path / "dt", truth).image.tolist() == [1, 1]


def test_a_category_with_another_name(tmp_path: Path) -> None:
    write_parquet(pa.table({**TRUTH, "category": ["cat", "dog"]}), tmp_path / "gt")
    truth = detap.read_ground_truth(tmp_path / "gt")
    columns = {**TRUTH, "category": ["cow", "dog"], "score": [0.5, 0.5]}
    write_parquet(pa.table(columns), tmp_path / "dt")
    with pytest.raises(InputError) as raised:
        detap.read_detections(tmp_path / "dt", truth)
    (problem,) = raised.value.problems
    assert problem.hint == "use the ground truth's category ids or names"


# --- columns


def test_boxes_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "gt.parquet"
    write_parquet(pa.table({"image_id": [1], "category_id": [2]}), path)
    with pytest.raises(InputError) as raised:
        detap.read_ground_truth(path)
    (problem,) = raised.value.problems
    assert problem[:3] == (str(path), "", "no box columns")
    assert problem.hint


@pytest.mark.parametrize("write", [write_parquet, write_file])
def test_only_the_columns_asked_for_are_read(
    write: Callable[[Any, Path], None], tmp_path: Path
) -> None:
    write(pa.table(TRUTH), tmp_path / "gt")
    with opened(tmp_path / "gt", DEFAULT_LIMITS) as container:
        table = container.read(("category_id",))
    assert table.to_pydict() == {"category_id": [7, 8]}


def test_metadata_without_class_names(tmp_path: Path) -> None:
    table = pa.table(TRUTH).replace_schema_metadata({"huggingface": '{"info": {"features": {}}}'})
    write_parquet(table, tmp_path / "gt")
    assert detap.read_ground_truth(tmp_path / "gt").classes == ("7", "8")


# --- messages of Arrow files: tables of FlatBuffers, written by hand


def flat_table(offset: int, content: bytes) -> Any:
    """Return a table of one field, `offset` bytes after the table, with its content."""
    fields = struct.pack("<HHHxx", 6, 4, offset)  # sizes of the list and the table, the field
    start = struct.pack("<i", len(fields))  # from the table back to the list
    data = (fields + start).ljust(len(fields) + offset, b"\0") + content
    return ipc.FlatTable(data, len(fields))


def test_a_field_far_from_its_table() -> None:
    """An offset has no sign."""
    assert flat_table(40_000, struct.pack("<q", -7)).number(0, "<q") == -7


def test_absent_fields() -> None:
    table = flat_table(4, b"\5")
    assert (table.number(0, "<B"), table.number(1, "<B"), table.number(1, "<q")) == (5, 0, 0)
    assert (table.table(1), table.ranges(1)) == (None, [])


def test_buffers_up_to_the_end_of_a_message() -> None:
    vector = struct.pack("<I", 4) + struct.pack("<I", 1) + struct.pack("<qq", 8, 16)
    assert flat_table(4, vector).ranges(0) == [(8, 16)]
    with pytest.raises(IndexError):
        flat_table(4, vector[:-1]).ranges(0)
