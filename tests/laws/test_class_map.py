"""A class map equals files whose categories are rewritten, to the last bit."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import detap
from detap.protocols import PRESETS
from tests.cases import leaning as with_polygons
from tests.laws.test_laws import assert_same_result
from tests.parity.compare import assert_same_bits

NAMES = ("Car", "Van", "Truck", "Pedestrian", "Cyclist", "chair")
GROUPS = ("r", "c", "f")
UNKNOWN = 99
"""Category id of results that the ground truth lacks."""

KEYPOINTS = {
    "keypoints": 17,
    "foot_kpts": 6,
    "face_kpts": 68,
    **dict.fromkeys(("lefthand_kpts", "righthand_kpts"), 21),
}
"""Numbers of keypoints, by key; of the preset crowdpose, 14."""

MAPS: dict[str, Any] = {
    "merged, crowd": {
        "Van": "Car",
        "Truck": "Car",
        "Cyclist": "Pedestrian",
        "chair": "-",
        "gt": {"Cyclist": {"to": "Pedestrian", "as": "crowd"}},
    },
    "ground truth only": {
        "gt": {"Van": {"to": "Car", "as": "ignore"}, "chair": "-", "Truck": "Cyclist"}
    },
    "exchanged, detections only": {"Car": "Van", "Van": "Car", "dt": {"Truck": "Car"}},
    "rest dropped": {"Truck": "lorry", "dt": {"Car": "Car", "Van": "Pedestrian", "rest": "-"}},
}


def rules_of(class_map: Mapping[str, Any], side: str) -> dict[str, tuple[str | None, str]]:
    """Return the target and the flag of every class of a side, written down from the map."""
    own = {k: v for k, v in class_map.items() if isinstance(v, str)} | class_map.get(side, {})
    rules = {}
    for name in NAMES:
        value = own.get(name, name)
        if "rest" in own and name not in {**own, **dict.fromkeys(map(str, own.values()))}:
            value = "-"
        to, flag = (value["to"], value["as"]) if isinstance(value, dict) else (value, "")
        rules[name] = None if to == "-" else to, flag
    return rules


def scene(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return instances and results with every attribute that a preset reads."""
    random = np.random.default_rng(seed)
    annotations, results = [], []
    for number in range(1, 61):
        x, y = random.integers(0, 300, 2).tolist()
        w, h = random.integers(20, 120, 2).tolist()
        image, label = int(random.integers(1, 6)), int(random.integers(1, 7))
        annotations.append(
            {
                **shape(x, y, w, h),
                "id": number,
                "image_id": image,
                "category_id": label,
                "area": w * h * 0.75,
                "iscrowd": int(random.random() < 0.1),
                "ignore": int(random.random() < 0.1),
                "isgroupof": int(random.random() < 0.1),
                "num_keypoints": 17,
                "height": float(h),
                "vis_ratio": float(random.random()),
                "occlusion": int(random.integers(3)),
                "occluded": 0,
                "truncated": 0.0,
                **{name: int(random.random() < 0.8) for name in ("easy", "medium", "hard")},
            }
        )
        for _ in range(int(random.integers(1, 4))):
            dx, dy = random.integers(-6, 7, 2).tolist()
            other = label if random.random() < 0.6 else int(random.integers(1, 7))
            row = {"image_id": image, "category_id": other, **shape(x + dx, y + dy, w, h)}
            results.append(row | {"score": int(random.integers(1, 40)) / 40})
    lists = ("neg_category_ids", "not_exhaustive_category_ids")
    instances = {
        "images": [
            {"id": image, "width": 640, "height": 480, "file_name": f"{image}.jpg"}
            | {key: sorted(random.choice(np.arange(1, 7), 4, replace=False)) for key in lists}
            for image in range(1, 6)
        ],
        "categories": [
            {"id": number, "name": name, "frequency": GROUPS[number % 3]}
            for number, name in enumerate(NAMES, 1)
        ],
        "annotations": annotations,
    }
    return json.loads(json.dumps(instances, default=int)), results


def shape(x: float, y: float, w: float, h: float) -> dict[str, Any]:
    corners = [x, y, x + w, y, x + w, y + h, x, y + h]
    points = [(x + w * k / 68, y + h * (k * 5 % 68) / 68) for k in range(68)]
    values = [value for point in points for value in (*point, 2)]
    keypoints = {key: values[: 3 * count] for key, count in KEYPOINTS.items()}
    return {"bbox": [x, y, w, h], "segmentation": [corners], **keypoints}


def rewritten(
    instances: dict[str, Any], results: list[dict[str, Any]], class_map: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the files with other categories, numbered from 1 in order of first appearance."""
    truth, dt = rules_of(class_map, "gt"), rules_of(class_map, "dt")
    ids: dict[str | None, int] = {}
    for name in NAMES:
        if truth[name][0] is not None:
            ids.setdefault(truth[name][0], len(ids) + 1)
    merged = {to: [k for k, n in enumerate(NAMES, 1) if truth[n][0] == to] for to in ids}

    def group(labels: list[int]) -> str:
        return max((GROUPS[label % 3] for label in labels), key=GROUPS.index)

    def lists(image: dict[str, Any]) -> dict[str, Any]:
        absent, partial = image["neg_category_ids"], image["not_exhaustive_category_ids"]
        negative = [ids[to] for to, labels in merged.items() if {*labels} <= {*absent}]
        some = [ids[to] for to, labels in merged.items() if {*labels} & {*partial}]
        return {"neg_category_ids": negative, "not_exhaustive_category_ids": some}

    annotations = []
    for record in instances["annotations"]:
        to, flag = truth[NAMES[record["category_id"] - 1]]
        if to is not None:
            key = {"crowd": "iscrowd", "": "iscrowd"}.get(flag, flag)
            flags = {key: int(bool(flag)) or record[key]}
            annotations.append({**record, "category_id": ids[to], **flags})
    targets = [(record, dt[NAMES[record["category_id"] - 1]][0]) for record in results]
    images = [image | lists(image) for image in instances["images"]]
    categories = [{"id": ids[to], "name": to, "frequency": group(merged[to])} for to in merged]
    return {"images": images, "categories": categories, "annotations": annotations}, [
        {**record, "category_id": ids.get(to, UNKNOWN)} for record, to in targets if to is not None
    ]


def written(
    folder: Path, name: str, contents: tuple[Any, Any], *, leaning: bool = False
) -> tuple[Any, Any]:
    """Return the paths of the files; for polygons, which COCO lacks, tables with a few."""
    paths = [folder / f"{name}-{side}.json" for side in ("gt", "dt")]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(json.dumps(content))
    if not leaning:
        return paths[0], paths[1]
    truth = detap.read_ground_truth(paths[0], as_is=True)
    detections = detap.read_detections(paths[1], truth, as_is=True)
    return with_polygons(truth), with_polygons(detections)


@pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")
@pytest.mark.parametrize("preset", PRESETS)
def test_a_map_equals_rewritten_files(preset: str, tmp_path: Path) -> None:
    leaning = PRESETS[preset].iou_type == "polygon"
    reading: dict[str, Any] = {} if leaning else {"as_is": True}
    if PRESETS[preset].matching == "kitti":
        reading["attributes"] = ("occluded", "truncated")
    original = scene(3)
    if preset == "crowdpose":
        for record in (*original[0]["annotations"], *original[1]):
            del record["keypoints"][3 * 14 :]
    files = written(tmp_path, "original", original, leaning=leaning)
    plain = detap.evaluate(*files, preset, **reading)
    summaries = {str(plain.summary)}
    for name, class_map in MAPS.items():
        changed = rewritten(*original, class_map)
        other = written(tmp_path, "rewritten", changed, leaning=leaning)
        mapped = detap.evaluate(*files, preset, class_map=class_map, **reading)
        expected = detap.evaluate(*other, preset, **reading)
        assert (mapped.classes, mapped.class_ids) == (expected.classes, expected.class_ids), name
        assert_same_result(mapped, expected)
        assert expected.true_positives.sum() > 0, name
        codes = {note.code for note in expected.notes}
        assert {note.code for note in mapped.notes} == codes | {"class-map"}, name
        summaries.add(str(mapped.summary))
    assert len(summaries) > 2  # the maps change the result


@pytest.mark.filterwarnings("ignore::detap.errors.DetapWarning")
@pytest.mark.parametrize(
    ("target", "truth", "results"),
    [
        ("voc", "", "detections"),
        ("yolo", "data.yaml", "predictions/labels"),
        ("labelstudio", "tasks.json", "tasks.json"),
        ("tfcsv", "annotations.csv", "detections.csv"),
        ("createml", "annotations.json", "detections.json"),
        ("datumaro", "annotations", "detections"),
        ("supervisely", "annotations", "detections"),
    ],
)
def test_formats_that_name_their_classes(
    target: str, truth: str, results: str, tmp_path: Path
) -> None:
    instances, rows = scene(5)
    for rank, record in enumerate(rows):
        record["score"] = 1 / (2 + rank)  # files of a class have an order of their own
    for record in instances["annotations"]:
        record |= {"iscrowd": 0, "ignore": 0}

    def converted(name: str, contents: tuple[Any, Any]) -> tuple[Any, Any]:
        gt, dt = written(tmp_path, name, contents)
        table = detap.read_ground_truth(gt, as_is=True)
        detections = detap.read_detections(dt, table, as_is=True)
        detap.convert(tmp_path / name, table, detections, to=target)
        return tmp_path / name / truth, tmp_path / name / results

    files = converted("original", (instances, rows))
    for number, name in enumerate(("exchanged, detections only", "rest dropped")):
        changed = rewritten(instances, rows, MAPS[name])
        other = converted(f"rewritten {number}", changed)
        for preset in ("coco", "voc2012", "padilla"):
            reading: dict[str, Any] = {"as_is": True, "format": target}
            reading |= {"image_size": (640, 480)} if target == "yolo" else {}
            mapped = detap.evaluate(*files, preset, class_map=MAPS[name], **reading)
            expected = detap.evaluate(*other, preset, **reading)
            assert mapped.classes[: len(expected.classes)] == expected.classes
            values, others = ([*one.summary.values()] for one in (mapped, expected))
            assert_same_bits(values, others, f"{name}, {preset}")
            assert expected.true_positives.sum() > 0
