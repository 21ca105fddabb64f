"""Random workloads for the benchmarks with the statistics of real data.

Nothing here is taken from a data set. The workloads imitate the properties that cost time and
memory: boxes per image, classes, box sizes, lengths of polygons, number and RLE of crowd regions,
order of records and digits of numbers. The same seed gives the same bytes on the same machine and
NumPy; a manifest next to each file has its sha256.
"""

import hashlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.coco_workload import Scene, detection_text, ground_truth_text, scene
from benchmarks.outline_workload import mask_text, people_text, pose_text
from benchmarks.shapes import COCO_SHAPES, SEED, VOC_SHAPE, CocoShape, VocShape, coco_shape
from benchmarks.voc_workload import voc_trees

WORK = Path(__file__).resolve().parent / "cache"
TEXTS = {
    "bbox": (ground_truth_text, detection_text),
    "segm": (ground_truth_text, mask_text),
    "keypoints": (people_text, pose_text),
}
"""Writers of ground truth and detections by IoU type."""
VERSION = 2  # of the generator: raise it when the bytes change, and cached files are made anew


@dataclass(frozen=True, slots=True)
class Workload:
    """Files of a workload.

    Attributes
    ----------
    format : {"coco", "coco-segm", "coco-keypoints", "voc"}
        Format and IoU type.
    files : dict of str to dict
        For each file (or folder), by its role: path, bytes, sha256 (of a folder: over its files).
    """

    name: str
    format: str
    ground_truth: Path
    detections: Path
    files: dict[str, dict[str, Any]]


def make_coco(shape: CocoShape, folder: Path = WORK, seed: int = SEED) -> Workload:
    """Write the workload's files unless they exist."""
    data = folder / "data"
    truth = data / f"{shape.truth_name}.json"
    kind = "" if shape.iou_type == "bbox" else f"-{shape.iou_type}" + "-alone" * (not shape.boxed)
    results = data / f"{shape.truth_name}-results-{shape.detections}-{shape.digits}{kind}.json"
    described = {key: value for key, value in asdict(shape).items() if key != "name"}
    truth_of, results_of = TEXTS[shape.iou_type]
    about = {"version": VERSION, "seed": seed}
    about_truth = {k: described[k] for k in ("images", "ground_truths", "classes")}
    layout: list[Scene] = []

    def lay_out() -> Scene:
        if not layout:
            layout.append(scene(shape, seed))
        return layout[0]

    files = {
        "ground truth": _write(
            truth, about | about_truth, lambda: truth_of(shape, lay_out(), seed)
        ),
        "detections": _write(
            results, about | described, lambda: results_of(shape, lay_out(), seed)
        ),
    }
    format_ = "coco" if shape.iou_type == "bbox" else f"coco-{shape.iou_type}"
    return Workload(shape.name, format_, truth, results, files)


def make_voc(shape: VocShape = VOC_SHAPE, folder: Path = WORK, seed: int = SEED) -> Workload:
    """Write the workload's files unless they exist."""
    base = folder / "data" / f"{shape.name}-{shape.images}-{shape.objects}-{shape.detections}"
    about = {"version": VERSION, "seed": seed, **asdict(shape)}
    manifest = base / "manifest.json"
    known = _read_manifest(manifest)
    if known is None or known["about"] != about:
        trees = voc_trees(shape, seed)
        files = {}
        for role, tree in zip(("ground truth", "detections"), trees, strict=True):
            below = base / ("VOC" if role == "ground truth" else "detections")
            digest = hashlib.sha256()
            for path, text in sorted(tree.items()):
                target = below / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="ascii", newline="\n")
                digest.update(f"{path} {hashlib.sha256(text.encode()).hexdigest()}\n".encode())
            files[role] = {
                "path": below.name,
                "files": len(tree),
                "bytes": sum(map(len, tree.values())),
                "sha256": digest.hexdigest(),
            }
        known = {"about": about, "files": files}
        manifest.write_text(json.dumps(known, indent=1) + "\n")
    return Workload(shape.name, "voc", base / "VOC", base / "detections", known["files"])


def _write(path: Path, about: dict[str, Any], text: Any) -> dict[str, Any]:
    """Write a file from an iterator of text unless it exists."""
    manifest = path.with_suffix(".manifest.json")
    known = _read_manifest(manifest)
    if known is None or known["about"] != about or not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        partial = path.with_suffix(".partial")
        with partial.open("wb") as stream:
            for piece in text():
                data = piece.encode("ascii")
                digest.update(data)
                stream.write(data)
        size = partial.stat().st_size
        partial.replace(path)
        known = {
            "about": about,
            "file": {"path": path.name, "bytes": size, "sha256": digest.hexdigest()},
        }
        manifest.write_text(json.dumps(known, indent=1) + "\n")
    file: dict[str, Any] = known["file"]
    return file


def _read_manifest(path: Path) -> dict[str, Any] | None:
    try:
        known: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return known


def make(name: str) -> dict[str, Any]:
    """Make the workload of that name; return its paths and sizes."""
    if name == VOC_SHAPE.name:
        shape: CocoShape | VocShape = VOC_SHAPE
        made = make_voc(VOC_SHAPE)
    else:
        shape = coco_shape(name)
        made = make_coco(shape)
    return {
        "format": made.format,
        "ground_truth": str(made.ground_truth),
        "detections": str(made.detections),
        "shape": asdict(shape),
        "files": made.files,
    }


def main(words: list[str]) -> None:
    """Make the named workloads (all but the largest by default); ``--json`` describes one."""
    if words[:1] == ["--json"]:
        print(json.dumps(make(words[1])))
        return
    for name in words or [*(n for n in COCO_SHAPES if n != "5M"), VOC_SHAPE.name]:
        for role, file in make(name)["files"].items():
            print(f"{name}: {role}: {file['path']}, {file['bytes'] / 1e6:.1f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
