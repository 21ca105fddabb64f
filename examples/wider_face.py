"""Score face detections on WIDER FACE's validation set: easy, medium, hard.

::

    python examples/wider_face.py ground_truth/ predictions/

`ground_truth/` has wider_face_val.mat and the lists wider_easy_val.mat, wider_medium_val.mat and
wider_hard_val.mat. `predictions/` has a folder per event with a text file per image: the name, the
number of faces, and a line `x y width height score` per face. Needs SciPy.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

import detap

SUBSETS = ("easy", "medium", "hard")


def read_ground_truth(folder: Path) -> detap.GroundTruth:
    """Return the faces, with a column for each subset: 1 if the face counts."""
    faces = loadmat(folder / "wider_face_val.mat")
    lists = {name: loadmat(folder / f"wider_{name}_val.mat")["gt_list"] for name in SUBSETS}
    images: list[str] = []
    image: list[str] = []
    boxes: list[Any] = []
    extra: dict[str, list[float]] = {name: [] for name in SUBSETS}
    for event, (event_name,) in enumerate(faces["event_list"][:, 0]):
        names = faces["file_list"][event, 0]
        for index in range(len(names)):
            key = f"{event_name}/{names[index, 0][0]}"
            of_image = faces["face_bbx_list"][event, 0][index, 0].reshape(-1, 4)
            images.append(key)
            image += [key] * len(of_image)
            boxes += of_image.astype(float).tolist()
            for name in SUBSETS:
                counted = lists[name][event, 0][index, 0].ravel()  # numbered from 1
                extra[name] += np.isin(np.arange(1, len(of_image) + 1), counted).tolist()
    return detap.GroundTruth.from_arrays(
        image=image,
        label=["face"] * len(image),
        boxes=np.reshape(boxes, (-1, 4)),
        box_format="xywh",
        images=images,
        classes=["face"],
        extra={name: np.array(column, float) for name, column in extra.items()},
    )


def read_detections(folder: Path, truth: detap.GroundTruth) -> detap.Detections:
    """Return the detections of all event folders."""
    image: list[str] = []
    rows: list[list[float]] = []
    for path in sorted(folder.glob("*/*.txt")):
        lines = path.read_text().splitlines()[2:]
        image += [f"{path.parent.name}/{path.stem}"] * len(lines)
        rows += [[float(number) for number in line.split()] for line in lines]
    table = np.reshape(rows, (-1, 5))
    detections = detap.Detections.from_arrays(
        image=image,
        label=["face"] * len(image),
        boxes=table[:, :4],
        box_format="xywh",
        score=table[:, 4],
    )
    return detections.reindex_like(truth)


def main(ground_truth: str, predictions: str) -> None:
    """Print the three values of WIDER FACE's table."""
    truth = read_ground_truth(Path(ground_truth))
    detections = read_detections(Path(predictions), truth)
    for name in SUBSETS:
        result = detap.evaluate(truth, detections, protocol=f"wider-{name}")
        print(f"{name:6}  {result.summary['AP@thresholds=1000']:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
