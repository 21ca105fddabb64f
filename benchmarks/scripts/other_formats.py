"""Write a COCO workload in other formats, for comparison with COCO JSON.

    other_formats.py GROUND_TRUTH RESULTS FOLDER

writes ``gt`` and ``dt`` as JSON Lines (``objects``, ``lists``), CVAT (``xml``) and Parquet
(``parquet``; needs pyarrow), the results with other scores (``second.json``), and shards of the
results by image (``shards/*.json``).
"""

import json
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

SHARDS = 8
NUMBER = ("area", "iscrowd", "score")


def by_image(records):
    groups = defaultdict(list)
    for record in records:
        groups[record["image_id"]].append(record)
    return groups


def write_lines(images, groups, side, folder):
    with (
        (folder / f"{side}-objects.jsonl").open("w") as objects_file,
        (folder / f"{side}-lists.jsonl").open("w") as lists_file,
    ):
        for image in images:
            head = {"image_id": image["id"], "width": image["width"], "height": image["height"]}
            objects = [
                {"bbox": record["bbox"], "category": record["category_id"]}
                | {name: record[name] for name in NUMBER if name in record}
                for record in groups[image["id"]]
            ]
            names = objects[0] if objects else ("bbox", "category")
            lists = {name: [one[name] for one in objects] for name in names}
            objects_file.write(json.dumps(head | {"objects": objects}) + "\n")
            lists_file.write(json.dumps(head | {"objects": lists}) + "\n")


def write_cvat(images, groups, names, path):
    with path.open("w") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n')
        for image in images:
            size = f'width="{image["width"]}" height="{image["height"]}"'
            file.write(f'  <image id="{image["id"]}" name="{image["file_name"]}" {size}>\n')
            for record in groups[image["id"]]:
                x, y, width, height = record["bbox"]
                corners = (
                    f'xtl="{x:.2f}" ytl="{y:.2f}" xbr="{x + width:.2f}" ybr="{y + height:.2f}"'
                )
                file.write(
                    f'    <box label="{names[record["category_id"]]}" {corners} z_order="0">\n'
                )
                if "score" in record:
                    file.write(f'      <attribute name="score">{record["score"]}</attribute>\n')
                file.write("    </box>\n")
            file.write("  </image>\n")
        file.write("</annotations>\n")


def write_parquet(records, path):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    sides = zip(*(record["bbox"] for record in records), strict=True)
    columns = {
        "image_id": [record["image_id"] for record in records],
        "category_id": [record["category_id"] for record in records],
        **dict(zip(("x", "y", "width", "height"), sides, strict=True)),
        **{name: [r[name] for r in records] for name in NUMBER if name in records[0]},
    }
    parquet.write_table(pa.table(columns), path)


def write_shards(images, groups, folder):
    folder.mkdir(exist_ok=True)
    for shard in range(SHARDS):
        records = [record for image in images[shard::SHARDS] for record in groups[image["id"]]]
        (folder / f"{shard}.json").write_text(json.dumps(records))


def main(truth_path, results_path, folder):
    truth = json.loads(Path(truth_path).read_bytes())
    results = json.loads(Path(results_path).read_bytes())
    names = {category["id"]: category["name"] for category in truth["categories"]}
    images = truth["images"]
    for side, records in (("gt", truth["annotations"]), ("dt", results)):
        groups = by_image(records)
        write_lines(images, groups, side, folder)
        write_cvat(images, groups, names, folder / f"{side}.xml")
    write_parquet(results, folder / "dt.parquet")
    write_shards(images, by_image(results), folder / "shards")
    for number, record in enumerate(results):
        record["score"] = round(record["score"] * (0.9 + number % 7 / 70), 5)
    (folder / "second.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
