"""Read a YOLO data set whose image sizes are known, by detap and by globox.

    yolo.py FOLDER [IMAGES ...]

For each number of images (3000 and 100000 without) a data set of about 2.73 boxes an image is
written to the folder, unless it is there. Then the labels are read in alternation by detap, with a
table of sizes, and by globox (up to 10000 images), which reads the sizes from the images. A line of
JSON for each: medians of the processor's seconds, their ratio, and microseconds an image. Both must
find the same number of boxes.
"""

import json
import random
import struct
import sys
from importlib import import_module
from pathlib import Path
from statistics import median
from time import process_time

from detap.formats import read_ground_truth

SIZES = ((500, 375), (375, 500), (500, 333), (640, 480))
RUNS = 5
MOST_OF_PEER = 10_000


def write(folder, images):
    chance = random.Random(images)
    for inside in ("images/val", "labels/val"):
        (folder / inside).mkdir(parents=True)
    table = ["image,width,height"]
    for number in range(images):
        width, height = SIZES[number % len(SIZES)]
        name = f"{number:06}"
        table.append(f"{name},{width},{height}")
        lines = []
        for _ in range(2 + (chance.random() < 0.73)):
            w, h = chance.uniform(0.05, 0.5), chance.uniform(0.05, 0.5)
            x, y = chance.uniform(w / 2, 1 - w / 2), chance.uniform(h / 2, 1 - h / 2)
            lines.append(f"{chance.randrange(20)} {x:.6f} {y:.6f} {w:.6f} {h:.6f}\n")
        (folder / "labels/val" / f"{name}.txt").write_text("".join(lines))
        if images <= MOST_OF_PEER:
            (folder / "images/val" / f"{name}.png").write_bytes(header(width, height))
    (folder / "sizes.csv").write_text("\n".join(table) + "\n")


def header(width, height):
    """Return a PNG without pixels, which suffices to read its size."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(
        ">I4sIIBBBBB4s", 13, b"IHDR", width, height, 8, 2, 0, 0, 0, bytes(4)
    )


def detap_reads(folder):
    labels = folder / "labels/val"
    return len(read_ground_truth(labels, format="yolo", image_sizes=folder / "sizes.csv"))


def globox_reads(folder):
    sets = import_module("globox").AnnotationSet
    images = folder / "images/val"
    annotations = sets.from_yolo_v5(
        folder / "labels/val", image_folder=images, image_extension=".png"
    )
    return sum(len(annotation.boxes) for annotation in annotations)


def seconds(read, folder):
    start = process_time()
    boxes = read(folder)
    return process_time() - start, boxes


def measure(folder, images):
    if not folder.exists():
        write(folder, images)
    readers = [detap_reads, *([globox_reads] if images <= MOST_OF_PEER else [])]
    for read in readers:
        read(folder)  # imports, and what the system keeps of files
    runs = [[seconds(read, folder) for read in readers] for _ in range(RUNS)]
    if len({boxes for run in runs for _, boxes in run}) != 1:
        raise SystemExit(f"the readers find other boxes: {runs}")
    times = [median(run[at][0] for run in runs) for at in range(len(readers))]
    row = {"images": images, "boxes": runs[0][0][1], "detap": times[0]}
    row["microseconds_an_image"] = 1e6 * times[0] / images
    if len(times) > 1:
        row |= {"globox": times[1], "ratio": median(run[0][0] / run[1][0] for run in runs)}
    return row


for count in map(int, sys.argv[2:] or ("3000", "100000")):
    print(json.dumps(measure(Path(sys.argv[1]) / f"yolo-{count}", count)))
