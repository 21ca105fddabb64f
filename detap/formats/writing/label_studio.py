"""Write Label Studio: ``tasks.json`` to import, and the labeling configuration ``config.xml``."""

import json
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

import numpy as np

from detap.errors import Note
from detap.formats.by_name.notes import nonzero_notes
from detap.formats.writing.content import (
    Content,
    check_words,
    known_sizes,
    lost,
    lost_areas,
    lost_flags,
    number_text,
    rows_of_images,
)
from detap.formats.writing.xywh import to_xywh
from detap.tables.detection import Detections, Floats, GroundTruth, encode_boxes

_STEPS = (0, 1, -1, 2, -2)
_MODEL = "detap"


def files(content: Content, notes: list[Note]) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file; add lost data to `notes`.

    A task has the ground truth as annotation and the detections as prediction.

    Raises
    ------
    InputError
        If the size of an image with boxes is unknown, since boxes are in percent.
    """
    check_words(content, content.classes, "class")
    sizes = known_sizes(content)
    keys: dict[str, list[str]] = {}
    if content.ground_truth is not None:
        truth = content.ground_truth
        notes += lost_flags(truth, ["crowd", "difficult", "ignore", "group_of"], "Label Studio")
        notes += lost_areas(truth, "Label Studio")
        used = np.isin(np.arange(len(truth.classes)), truth.label)
        notes += lost("classes without objects not supported by Label Studio", ~used)
        keys["annotations"] = _results(truth, sizes, notes)
    if content.detections is not None:
        keys["predictions"] = _results(content.detections, sizes, notes)
    names = [json.dumps(content.file_name(image), ensure_ascii=False) for image in content.images]
    tasks = (
        f'{{"data": {{"image": {name}}}, '
        + ", ".join(f'"{key}": [{records[image]}]' for key, records in keys.items())
        + "}"
        for image, name in enumerate(names)
    )
    yield "tasks.json", ("[\n" + ",\n".join(tasks) + "\n]\n").encode()
    yield "config.xml", _config(content.classes)


def _results(table: GroundTruth | Detections, sizes: Floats, notes: list[Note]) -> list[str]:
    """Return the annotation or prediction of each image."""
    is_scored = isinstance(table, Detections)
    kind = "detections" if is_scored else "objects"
    boxes = to_xywh(table.corners, table.box_area)[0]
    side = np.tile(sizes[table.image], 2)
    percent = _percent(boxes, side)
    changed = (encode_boxes(percent * side / 100, "xywh")[0] != table.corners).any(axis=1)
    message = f"{kind}: corners change in the last bits as percent"
    count = int(np.count_nonzero(changed))
    notes += nonzero_notes(Note("values-rounded", message, count, severity="info"))
    negative = np.any(boxes[:, 2:] < 0, axis=1)
    notes += lost(f"{kind} of negative size; readers reject them", negative)
    labels = [json.dumps(name, ensure_ascii=False) for name in table.classes]
    scores = table.score.tolist() if isinstance(table, Detections) else []
    values, label, image = percent.tolist(), table.label.tolist(), table.image.tolist()

    def region(row: int) -> str:
        pairs = zip(("x", "y", "width", "height"), values[row], strict=True)
        box = ", ".join(f'"{key}": {number_text(value)}' for key, value in pairs)
        width, height = map(number_text, sizes[image[row]].tolist())
        score = f', "score": {number_text(scores[row])}' if is_scored else ""
        return (
            f'{{"id": "{kind[0]}{row}", "type": "rectanglelabels", "from_name": "label", '
            f'"to_name": "image", "original_width": {width}, "original_height": {height}, '
            f'"image_rotation": 0, "value": {{{box}, "rotation": 0, '
            f'"rectanglelabels": [{labels[label[row]]}]}}{score}}}'
        )

    model = f'"model_version": "{_MODEL}", ' if is_scored else ""
    return [
        f'{{{model}"result": [{", ".join(map(region, rows.tolist()))}]}}'
        for rows in rows_of_images(table)
    ]


def _percent(values: Floats, side: Floats) -> Floats:
    """Return values in percent of a side that read as the same bits, if there are any."""
    percent = values * 100 / side
    result = percent.copy()
    missing = np.ones(values.shape, np.bool_)
    for step in _STEPS:
        tried = percent + step * np.spacing(np.abs(percent))
        exact = missing & (tried * side / 100 == values)
        result[exact] = tried[exact]
        missing &= ~exact
    return result


def _config(classes: tuple[str, ...]) -> bytes:
    labels = "".join(f"    <Label value={quoteattr(name)}/>\n" for name in classes)
    return (
        '<View>\n  <Image name="image" value="$image"/>\n'
        f'  <RectangleLabels name="label" toName="image">\n{labels}  </RectangleLabels>\n</View>\n'
    ).encode()
