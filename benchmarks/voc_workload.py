"""Text of VOC workloads: a tree of annotations and a detections file per class."""

import numpy as np

from benchmarks.coco_workload import Floats, Scene, detection_counts, draw_detections, scene
from benchmarks.shapes import SEED, CocoShape, VocShape


def voc_trees(shape: VocShape, seed: int = SEED) -> tuple[dict[str, str], dict[str, str]]:
    """Return the files of a VOC tree and of a detector by relative path."""
    coco = CocoShape(shape.name, shape.images, shape.objects, shape.classes, shape.detections)
    layout = scene(coco, seed)
    random = np.random.default_rng([seed, shape.objects, 3])
    names = [
        f"{number:06d}"
        for number in np.sort(random.permutation(2 * shape.images)[: shape.images]) + 1
    ]
    order = np.argsort(layout.image, kind="stable")
    bounds = np.searchsorted(layout.image[order], np.arange(shape.images + 1))
    truth = {"ImageSets/Main/test.txt": "".join(f"{name}\n" for name in names)}
    for number, name in enumerate(names):
        rows = order[bounds[number] : bounds[number + 1]]
        objects = [_voc_object(random, layout, row) for row in rows]
        width, height = layout.frame[number]
        truth[f"Annotations/{name}.xml"] = (
            f"<annotation>\n\t<folder>VOC</folder>\n\t<filename>{name}.jpg</filename>\n"
            "\t<source>\n\t\t<database>detap benchmark workload</database>\n\t</source>\n"
            f"\t<size>\n\t\t<width>{width}</width>\n\t\t<height>{height}</height>\n"
            "\t\t<depth>3</depth>\n\t</size>\n\t<segmented>0</segmented>\n"
            f"{''.join(objects)}</annotation>\n"
        )
    return truth, _voc_detections(coco, layout, names, seed)


def _corners(box: Floats) -> Floats:
    """Return xmin, ymin, xmax, ymax as in VOC: from 1, with inclusive ends."""
    return np.column_stack((box[:, :2] + 1, np.maximum(box[:, :2] + box[:, 2:], box[:, :2] + 1)))


def _voc_object(random: np.random.Generator, layout: Scene, row: int) -> str:
    corners = np.round(_corners(layout.box[row : row + 1]))[0].astype(int).tolist()
    part = ""
    if layout.label[row] == 0 and random.random() < 0.1:  # people have heads there
        part = f"\t\t<part>\n\t\t\t<name>head</name>\n{_voc_box(corners, 3)}\t\t</part>\n"
    return (
        f"\t<object>\n\t\t<name>class{layout.label[row]:02d}</name>\n\t\t<pose>Unspecified</pose>\n"
        f"\t\t<truncated>{int(random.random() < 0.4)}</truncated>\n"
        f"\t\t<difficult>{int(random.random() < 0.2)}</difficult>\n"
        f"{part}{_voc_box(corners, 2)}\t</object>\n"
    )


def _voc_box(corners: list[int], depth: int) -> str:
    indent = "\t" * depth
    inner = "".join(
        f"{indent}\t<{tag}>{value}</{tag}>\n"
        for tag, value in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True)
    )
    return f"{indent}<bndbox>\n{inner}{indent}</bndbox>\n"


def _voc_detections(coco: CocoShape, layout: Scene, names: list[str], seed: int) -> dict[str, str]:
    random = np.random.default_rng([seed, coco.detections, 4])
    counts = detection_counts(coco, layout, random)
    images, rows = np.arange(coco.images), np.arange(len(layout.image))
    image, label, box, score, _ = draw_detections(random, layout, images, rows, counts)
    corners = _corners(box)
    files = {}
    for number in range(coco.classes):
        mine = np.flatnonzero(label == number)
        mine = mine[np.lexsort((-score[mine], image[mine]))]
        lines = (
            f"{names[image[row]]} {score[row]:.6f} {' '.join(f'{v:.6f}' for v in corners[row])}\n"
            for row in mine
        )
        files[f"comp4_det_test_class{number:02d}.txt"] = "".join(lines)
    return files
