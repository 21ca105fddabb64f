"""Write input that is no fixture: odd and broken files, and real data in other forms."""

import json
import random
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.mutate import Mutator
from tests.reliability.test_corpus import CASES

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
QUICKSTART = FIXTURES / "quickstart"
MUTATIONS = 40
MUTATED = {
    "coco-truth": "--format coco --gt",
    "coco-results": "--format coco --dt",
    "cvat": "--format cvat --gt",
    "tfcsv": "--format tfcsv --gt",
    "open-images": "--format openimages --gt",
    "createml": "--format createml --gt",
    "via": "--format via --gt",
    "datumaro": "--format datumaro --gt",
    "label-studio": "--format labelstudio --gt",
}
"""Formats of one file that the fuzzer mutates, and the option of `check` that reads it."""


def write(folder: Path, data: Path) -> None:
    """Write everything; what needs real data that is absent is left out."""
    results = json.loads((QUICKSTART / "coco" / "results.json").read_text())
    truth = json.loads((QUICKSTART / "coco" / "instances.json").read_text())
    for number, case in enumerate(CASES):
        (folder / "cases" / str(number)).mkdir(parents=True)
        case.build(folder / "cases" / str(number))
    for target in MUTATED:
        mutator = Mutator(target, seed=1)
        for number in range(MUTATIONS):
            put(folder / "mutated" / target / str(number), mutator.next())
    put(folder / "jsonl" / "gt.jsonl", "\n".join(json_lines(truth, truth["annotations"])))
    put(folder / "jsonl" / "dt.jsonl", "\n".join(json_lines(truth, results)))
    write_odd_text(folder)
    write_large(folder)
    write_tables(folder, truth, results)
    write_rankings(folder)
    write_slices(folder)
    leaves = [{"LabelName": "Shellfish"}, {"LabelName": "Dog"}]
    animals = {"LabelName": "Animal", "Subcategory": leaves}
    put(folder / "hierarchy.json", {"LabelName": "Entity", "Subcategory": [animals]})
    for source in (write_exports, write_kaist, write_measures, write_iou_types):
        try:
            source(folder, data)
        except FileNotFoundError:
            continue  # the cases that need it are skipped


def put(path: Path, content: Any) -> None:
    """Write bytes, text, or JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(content, str | bytes):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def json_lines(truth: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """Return Hugging Face's lines of COCO records, a line per image."""
    names = {category["id"]: category["name"] for category in truth["categories"]}
    lines = []
    for image in truth["images"]:
        of_image = [row for row in rows if row["image_id"] == image["id"]]
        objects: dict[str, list[Any]] = {
            "bbox": [row["bbox"] for row in of_image],
            "category": [names[row["category_id"]] for row in of_image],
        }
        if rows is not truth["annotations"]:
            objects["score"] = [row["score"] for row in of_image]
        else:
            objects["area"] = [row["area"] for row in of_image]
            objects["iscrowd"] = [row["iscrowd"] for row in of_image]
        fields = {key: image[key] for key in ("file_name", "width", "height")}
        lines.append(json.dumps({**fields, "objects": objects}))
    return lines


def write_odd_text(folder: Path) -> None:
    """Write folders of text in which one file is mutated."""
    sources = {
        "voc-gt": (QUICKSTART / "voc/Annotations", "000001.xml"),
        "voc-dt": (QUICKSTART / "voc/detections", "det_test_cat.txt"),
        "yolo-dt": (FIXTURES / "labelling-tools/predict/labels", "000002.txt"),
        "kitti-dt": (FIXTURES / "kitti-levels/kitti/results", "000001.txt"),
        "kitti-gt": (FIXTURES / "kitti-levels/kitti/label_2", "000001.txt"),
    }
    dota = folder / "dota"
    put(
        dota / "gt/a.txt",
        "imagesource:GoogleEarth\ngsd:0.146\n10 10 50 12 48 40 8 38 plane 0\n"
        "60 60 90 60 90 90 60 90 ship 1\n",
    )
    put(dota / "gt/b.txt", "5 5 25 5 25 25 5 25 ship 0\n")
    put(dota / "dt/Task1_plane.txt", "a 0.9 11 10 50 13 48 41 8 37\nb 0.4 1 1 9 1 9 9 1 9\n")
    put(dota / "dt/Task1_ship.txt", "b 0.8 5 6 25 6 25 24 5 24\na 0.3 60 61 90 60 90 90 60 88\n")
    sources["dota-dt"] = dota / "dt", "Task1_plane.txt"
    sources["dota-gt"] = dota / "gt", "b.txt"
    for name, (source, file) in sources.items():
        mutator = Mutator("voc-xml" if file.endswith(".xml") else "voc-text", seed=1)
        mutator.seeds = [(source / file).read_bytes()]
        for number in range(MUTATIONS):
            shutil.copytree(source, folder / name / str(number))
            put(folder / name / str(number) / file, mutator.next())


def write_large(folder: Path) -> None:
    """Write a set of 300 images, 20 classes and many ties, from a fixed seed."""
    random_ = random.Random(43)
    images = [
        {
            "id": i,
            "file_name": f"{i:05d}.jpg",
            "width": 640,
            "height": 480,
            "place": random_.choice("abc"),
        }
        for i in range(1, 301)
    ]
    truths: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for image in images:
        for _ in range(random_.randrange(9)):
            x, y = random_.uniform(0, 500), random_.uniform(0, 380)
            w, h = random_.uniform(4, 140), random_.uniform(4, 100)
            label = random_.randrange(1, 21)
            truths.append(
                {
                    "id": len(truths) + 1,
                    "image_id": image["id"],
                    "category_id": label,
                    "bbox": [x, y, w, h],
                    "area": w * h * random_.uniform(0.5, 1),
                    "iscrowd": int(random_.random() < 0.03),
                }
            )
            for _ in range(random_.choice([0, 1, 1, 1, 2, 3])):
                box = [v * random_.uniform(0.9, 1.1) for v in (x, y, w, h)]
                kind = label if random_.random() < 0.85 else random_.randrange(1, 21)
                results.append(
                    {
                        "image_id": image["id"],
                        "category_id": kind,
                        "bbox": box,
                        "score": round(random_.random(), 2),
                    }
                )
    names = [{"id": i, "name": f"class {i}"} for i in range(1, 21)]
    large = folder / "large"
    put(large / "gt.json", {"images": images, "annotations": truths, "categories": names})
    put(large / "dt.json", results)
    worse = [{**r, "score": round(r["score"] * random_.uniform(0.5, 1), 3)} for r in results]
    put(large / "worse.json", worse)
    for part in range(3):
        put(large / "parts" / f"{part}.json", [r for r in results if r["image_id"] % 3 == part])
    put(large / "images.txt", "\n".join(f"{i}" for i in range(1, 301, 2)))


def write_tables(folder: Path, truth: dict[str, Any], results: list[dict[str, Any]]) -> None:
    """Write Parquet and Arrow files where pyarrow is installed."""
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        feather = import_module("pyarrow.feather")
    except ImportError:
        return
    to = folder / "arrow"
    to.mkdir()
    names = {category["id"]: category["name"] for category in truth["categories"]}
    for name, rows in (("gt", truth["annotations"]), ("dt", results)):
        columns: dict[str, Any] = {
            "image_id": [row["image_id"] for row in rows],
            "category_id": [row["category_id"] for row in rows],
            "category": [names[row["category_id"]] for row in rows],
        }
        for at, key in enumerate(("x", "y", "width", "height")):
            columns[key] = [float(row["bbox"][at]) for row in rows]
        if name == "dt":
            columns["score"] = [row["score"] for row in rows]
        else:
            columns["iscrowd"] = [row["iscrowd"] for row in rows]
            columns["area"] = [float(row["area"]) for row in rows]
        table = arrow.table(columns)
        parquet.write_table(table, to / f"{name}.parquet")
        parquet.write_table(table, to / f"{name}-groups.parquet", row_group_size=4)
        feather.write_feather(table, str(to / f"{name}.arrow"), compression="uncompressed")
        small = table.set_column(3, "x", table["x"].cast(arrow.float32()))
        parquet.write_table(small, to / f"{name}-float32.parquet")
        parquet.write_table(table.drop_columns(["width"]), to / f"{name}-without-width.parquet")
        boxes = arrow.array([[float(v) for v in row["bbox"]] for row in rows])
        nested = table.drop_columns(["x", "y", "width", "height"]).append_column("bbox", boxes)
        parquet.write_table(nested, to / f"{name}-bbox.parquet")
        columns["x"][3] = float("nan")
        parquet.write_table(arrow.table(columns), to / f"{name}-nan.parquet")
        columns["x"][3] = None
        parquet.write_table(arrow.table(columns), to / f"{name}-null.parquet")
    put(to / "truncated.parquet", (to / "dt.parquet").read_bytes()[:-30])


def write_rankings(folder: Path) -> None:
    """Write embeddings, codes, scores and labels from a fixed seed."""
    to = folder / "rank"
    to.mkdir()
    generator = np.random.default_rng(5)
    queries, gallery = generator.normal(size=(12, 8)), generator.normal(size=(60, 8))
    query_labels, gallery_labels = generator.integers(0, 4, 12), generator.integers(0, 4, 60)
    labels: dict[str, Any] = {"query_labels": query_labels, "gallery_labels": gallery_labels}
    arrays: dict[str, Any] = {
        "query_embeddings": queries + query_labels[:, None],
        "gallery_embeddings": gallery + gallery_labels[:, None],
    }
    np.savez(to / "embeddings.npz", **arrays, **labels)
    np.savez(
        to / "codes.npz",
        query_codes=np.sign(arrays["query_embeddings"]).astype(np.int8),
        gallery_codes=np.sign(arrays["gallery_embeddings"]).astype(np.int8),
        **labels,
    )
    scores = np.round(queries @ gallery.T, 1)
    np.savez(to / "scores.npz", scores=scores, relevance=generator.integers(0, 4, scores.shape))
    np.savez(to / "worse.npz", scores=-scores, relevance=generator.integers(0, 4, scores.shape))
    np.savez(to / "nan.npz", scores=np.where(scores > 2, np.nan, scores), **labels)
    np.savez(
        to / "classes.npz",
        scores=np.round(generator.random((40, 5)), 2),
        labels=generator.integers(0, 5, 40),
    )
    np.savez(
        to / "multi.npz",
        scores=generator.random((40, 5)),
        labels=generator.integers(0, 2, (40, 5)),
        class_names=np.array(list("abcde")),
    )
    for name, array in {**arrays, **labels}.items():
        np.save(to / f"{name}.npy", array)
    lines = [f"q{q} Q0 d{d} 1 {scores[q, d]} made" for q in range(12) for d in range(60)]
    put(to / "run.txt", "\n".join(lines))
    put(to / "worse.txt", "\n".join(line for line in lines if " d1" not in line))
    judged = [f"q{q} 0 d{d} {(q * d) % 4}" for q in range(13) for d in range(0, 66, 3)]
    put(to / "qrels.txt", "\n".join(judged))
    put(to / "short.txt", "q1 Q0 d1 1 0.5\nq1 Q0\n")
    put(to / "twice.txt", "q1 Q0 d1 1 0.5 a\nq1 Q0 d1 2 0.4 a\n")


def write_slices(folder: Path) -> None:
    """Write slices, settings, baselines and data sets of the quickstart."""
    to = folder / "settings"
    put(to / "slices.json", {"day": [1, 2, 3], "night": [4, 5], "both": [1, 4]})
    put(to / "slices.csv", "image,tag\n1,day\n2,day\n4,night\n9,night\n")
    put(to / "bad-slices.csv", "image,tag\n1\n")
    put(
        to / "detap.toml",
        'gt = "gt.json"\ndt = "dt.json"\nfail-under = ["AP=0.6"]\n'
        '[targets.voc]\nprotocol = "voc2012"\nclasses = ["cat", "dog"]\n',
    )
    put(to / "unknown.toml", 'protocoll = "coco"\n')
    put(to / "wrong.toml", 'iou = "a"\nresamples = "many"\n')
    put(to / "broken.toml", "[a\n")
    for name in ("instances", "results"):
        text = (QUICKSTART / "coco" / f"{name}.json").read_text()
        put(to / f"{'gt' if name == 'instances' else 'dt'}.json", text)
    quickstart, crowd = QUICKSTART / "coco", FIXTURES / "crowd/coco"
    put(
        to / "sets.toml",
        "".join(
            f'[{name}]\ngt = "{folder}/instances.json"\ndt = "{folder}/results.json"\n'
            for name, folder in (("first", quickstart), ("second", crowd))
        ),
    )
    put(
        to / "sets-missing.toml",
        f'[first]\ngt = "{quickstart}/instances.json"\n'
        f'dt = "{quickstart}/results.json"\n[gone]\ngt = "gone.json"\ndt = "gone.json"\n',
    )
    put(to / "names.txt", "bird\ncat\ndog\n")


def write_exports(folder: Path, data: Path) -> None:
    """Write the detections of the labelling tools' images as COCO results of names, by subset."""
    records = json.loads((data / "formats2/detections_20.json").read_text())
    subsets = data / "formats2/cvat-exports/voc_detection/ImageSets/Main"
    parts = {name: (subsets / f"{name}.txt").read_text().split() for name in ("train", "val")}
    parts["all"] = [*parts["train"], *parts["val"]]
    classes = {name: n for n, name in enumerate(sorted({r["category"] for r in records}), 1)}
    categories = [{"id": n, "name": name} for name, n in classes.items()]
    for part, images in parts.items():
        rows = [
            {
                "image_id": record["image"],
                "category_id": classes[record["category"]],
                "bbox": record["bbox"],
                "score": record["score"],
            }
            for record in records
            if record["image"] in images
        ]
        put(folder / f"exports/{part}.json", {"annotations": rows, "categories": categories})


def write_kaist(folder: Path, data: Path) -> None:
    """Write KAIST's published results as COCO results."""
    for name in ("INSANet", "MLPD"):
        lines = (data / f"measures/kaist/{name}_result.txt").read_text().split()
        rows = [[float(value) for value in line.split(",")] for line in lines]
        put(
            folder / f"kaist/{name}.json",
            [
                {"image_id": int(row[0]) - 1, "category_id": 1, "bbox": row[1:5], "score": row[5]}
                for row in rows
            ],
        )


def safe(name: str) -> str:
    """Return a name for a file; what a file system refuses becomes its code."""
    return "".join(c if c.isalnum() or c in "-_.+" else f"~{ord(c):x}" for c in name)


def write_measures(folder: Path, data: Path) -> None:
    """Write the pairs of COCO files that the data of other metrics holds."""
    record = json.loads((data / "measures/pedestrian.json").read_text())
    put(folder / "pedestrian/gt.json", record["ground_truth"])
    put(folder / "pedestrian/dt.json", record["detections"])
    cases = json.loads((data / "measures/lrp_cases.json").read_text())
    for name, case in cases.items():
        put(folder / f"lrp/{safe(name)}/gt.json", case["ground_truth"])
        put(folder / f"lrp/{safe(name)}/dt.json", case["detections"])


def write_iou_types(folder: Path, data: Path) -> None:
    """Write the small cases of masks, keypoints, LVIS and Open Images that are COCO files."""
    cases = json.loads((data / "iou-types-cases/cases.json").read_text())
    for number, case in enumerate(cases):
        if isinstance(case.get("ground_truth"), dict) and isinstance(case.get("detections"), list):
            put(folder / f"iou-types/{number}/gt.json", case["ground_truth"])
            put(folder / f"iou-types/{number}/dt.json", case["detections"])
            put(folder / f"iou-types/{number}/protocol", case["protocol"])
