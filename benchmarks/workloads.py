"""Workloads for the benchmarks: seeded, shaped like real data, written as they are generated.

Nothing here is taken from a data set. What is imitated are the shapes that cost time and memory:
how many boxes an image has and of how many classes, how large they are, how long the polygons are,
how many crowd regions there are and how their run lengths look, in what order the records stand
and how many digits their numbers have. The same seed gives the same bytes on the same machine and
NumPy; every file's sha256 is kept in the manifest beside it.
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
"""What writes ground truth and detections, by what is compared."""
VERSION = 2  # of the generator: raise it when the bytes change, and cached files are made anew


@dataclass(frozen=True, slots=True)
class Workload:
    """Files that are there.

    Attributes
    ----------
    format : {"coco", "coco-segm", "coco-keypoints", "voc"}
        And what of the files is compared.
    files : dict of str to dict
        For each file (or folder), by its role: path, bytes, sha256 (of a folder: over its files).
    """

    name: str
    format: str
    ground_truth: Path
    detections: Path
    files: dict[str, dict[str, Any]]


def make_coco(shape: CocoShape, folder: Path = WORK, seed: int = SEED) -> Workload:
    """Write the workload's files, or find them written."""
    data = folder / "data"
    truth = data / f"{shape.truth_name}.json"
    kind = "" if shape.overlap == "bbox" else f"-{shape.overlap}" + "-alone" * (not shape.boxed)
    results = data / f"{shape.truth_name}-results-{shape.detections}-{shape.digits}{kind}.json"
    described = {key: value for key, value in asdict(shape).items() if key != "name"}
    truth_of, results_of = TEXTS[shape.overlap]
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
    format_ = "coco" if shape.overlap == "bbox" else f"coco-{shape.overlap}"
    return Workload(shape.name, format_, truth, results, files)


def make_voc(shape: VocShape = VOC_SHAPE, folder: Path = WORK, seed: int = SEED) -> Workload:
    """Write the workload's files, or find them written."""
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
    """Write a file from an iterator of text unless it stands there already."""
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
    """Make the workload of that name; return where it is and how large."""
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
