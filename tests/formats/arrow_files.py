"""COCO records as columns, written as Parquet and Arrow."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

SIDES = ("x", "y", "width", "height")
Record = Mapping[str, Any]


def truth_columns(document: Record) -> dict[str, list[Any]]:
    """Return the columns of an instances file; an image without objects is a row of its own."""
    names = {category["id"]: category["name"] for category in document["categories"]}
    rows = [
        {
            **{key: record.get(key) for key in ("id", "image_id", "category_id", "area")},
            "iscrowd": record.get("iscrowd"),
            "category": names[record["category_id"]],
            **dict(zip(SIDES, map(float, record["bbox"]), strict=True)),
        }
        for record in document["annotations"]
    ]
    filled = {record["image_id"] for record in document["annotations"]}
    bare = [{"image_id": i["id"]} for i in document["images"] if i["id"] not in filled]
    return columns_of([*rows, *bare])


def result_columns(records: Sequence[Record]) -> dict[str, list[Any]]:
    return columns_of(
        [
            {
                **{key: record[key] for key in ("image_id", "category_id")},
                "score": float(record["score"]),
                **dict(zip(SIDES, map(float, record["bbox"]), strict=True)),
            }
            for record in records
        ]
    )


def columns_of(rows: Sequence[Record]) -> dict[str, list[Any]]:
    return {key: [row.get(key) for row in rows] for key in rows[0]}


def write_parquet(table: Any, path: Path) -> None:
    parquet.write_table(table, path, row_group_size=2)


def write_feather(table: Any, path: Path) -> None:
    feather.write_feather(table, path, compression="lz4")


def write_file(table: Any, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def write_stream(table: Any, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, tuple[str, Callable[[Any, Path], None]]] = {
    "parquet": (".parquet", write_parquet),
    "feather": (".feather", write_feather),
    "file": (".arrow", write_file),
    "stream": (".arrow", write_stream),
}


def hugging_face(rows: Any, objects: Any, names: Sequence[str] | None) -> Any:
    """Return a table as in Hugging Face's datasets: one row per image."""
    table = pa.table({**rows, "objects": objects})
    if names is None:
        return table
    label = {"names": list(names), "_type": "ClassLabel"}
    features = {"objects": {"feature": {"category": label}, "_type": "Sequence"}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return table.replace_schema_metadata(metadata)
