"""Write a large COCO case in shards, each with its ground truth.

::

    python -m benchmarks.scripts.make_shards FOLDER --shards 50 --detections 2000000

makes FOLDER/gt/00.json and FOLDER/dt/00.json and so on: 50 detections and 15 ground truths an
image, 365 classes, a third of the detections near a ground truth of their class. Scores have four
decimals, so that many tie. The same numbers give the same bytes. With --parquet they are tables
of float64 (needs pyarrow), a quarter of the size and made in a tenth of the time.
"""

import argparse
import json
from importlib import import_module
from pathlib import Path

import numpy as np

CLASSES, PER_IMAGE, TRUTHS = 365, 50, 15
SIDE = 640.0
CHUNK = 20_000
RESULT = '{"image_id":%d,"category_id":%d,"bbox":[%.1f,%.1f,%.1f,%.1f],"score":%.4f}'
TRUTH = (
    '{"id":%d,"image_id":%d,"category_id":%d,"bbox":[%.1f,%.1f,%.1f,%.1f],"area":%.1f,"iscrowd":0}'
)


def rows(template: str, columns: list[np.ndarray]) -> "list[str]":
    """Return records as text, some thousand at a time."""
    texts = []
    for begin in range(0, len(columns[0]), CHUNK):
        part = [column[begin : begin + CHUNK].tolist() for column in columns]
        flat = tuple(value for record in zip(*part, strict=True) for value in record)
        texts.append(",".join([template] * len(part[0])) % flat)
    return texts


def boxes(random: np.random.Generator, count: int) -> np.ndarray:
    """Return boxes as x, y, width, height, in tenths of a pixel."""
    size = np.exp(random.uniform(np.log(8), np.log(320), (count, 2)))
    corner = random.uniform(0, 1, (count, 2)) * (SIDE - size)
    return np.round(np.hstack([corner, size]), 1)


def write_shard(
    folder: Path, number: int, detections: int, name: str, parquet: bool = False
) -> None:
    """Write both files of a shard."""
    random = np.random.default_rng([20260801, number, detections])
    images = max(1, detections // PER_IMAGE)
    first = number * images + 1
    truth_image = np.repeat(np.arange(images), TRUTHS)
    truth_label = random.integers(1, CLASSES + 1, len(truth_image))
    truth_box = boxes(random, len(truth_image))
    near = random.random(detections) < 1 / 3
    aimed = random.integers(0, len(truth_image), detections)
    shift = random.normal(0, 0.08, (detections, 4)) * truth_box[aimed][:, [2, 3, 2, 3]]
    box = np.where(near[:, None], np.abs(truth_box[aimed] + shift) + 1, boxes(random, detections))
    image = np.where(near, truth_image[aimed], random.integers(0, images, detections))
    label = np.where(near, truth_label[aimed], random.integers(1, CLASSES + 1, detections))
    score = np.where(near, random.beta(4, 2, detections), random.beta(1.5, 4, detections))
    order = np.argsort(image, kind="stable")

    images_of = {"image_id": image[order] + first, "category_id": label[order]}
    columns = {**images_of, **sides(box[order]), "score": score[order]}
    truth = {
        "id": number * len(truth_image) + 1 + np.arange(len(truth_image)),
        "image_id": truth_image + first,
        "category_id": truth_label,
        **sides(truth_box),
        "area": truth_box[:, 2] * truth_box[:, 3],
    }
    if parquet:
        columns["score"], truth["area"] = np.round(columns["score"], 4), np.round(truth["area"], 1)
        write_table(folder / "dt" / f"{name}.parquet", columns)
        write_table(folder / "gt" / f"{name}.parquet", truth)
        return
    with (folder / "dt" / f"{name}.json").open("w", encoding="ascii") as file:
        file.write("[" + ",\n".join(rows(RESULT, list(columns.values()))) + "]")
    with (folder / "gt" / f"{name}.json").open("w", encoding="ascii") as file:
        listed = [{"id": first + n, "width": int(SIDE), "height": int(SIDE)} for n in range(images)]
        categories = [{"id": n, "name": f"class {n}"} for n in range(1, CLASSES + 1)]
        file.write(f'{{"images":{json.dumps(listed)},"categories":{json.dumps(categories)},')
        file.write('"annotations":[' + ",\n".join(rows(TRUTH, list(truth.values()))) + "]}")


def sides(box: np.ndarray) -> "dict[str, np.ndarray]":
    """Return the columns of boxes."""
    return dict(zip(("x", "y", "width", "height"), box.T, strict=True))


def write_table(path: Path, columns: "dict[str, np.ndarray]") -> None:
    """Write columns as Parquet."""
    table = import_module("pyarrow").table(columns)
    import_module("pyarrow.parquet").write_table(table, path)


def main() -> None:
    """Write the shards of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shards", type=int, default=50)
    parser.add_argument("--detections", type=int, default=2_000_000, help="of each shard")
    parser.add_argument("--first", type=int, default=0, help="number of the first to be written")
    parser.add_argument("--parquet", action="store_true", help="tables in place of JSON")
    given = parser.parse_args()
    for side in ("gt", "dt"):
        (given.folder / side).mkdir(parents=True, exist_ok=True)
    digits = len(str(given.shards - 1))
    for number in range(given.first, given.shards):
        name = f"{number:0{digits}}"
        write_shard(given.folder, number, given.detections, name, given.parquet)


if __name__ == "__main__":
    main()
