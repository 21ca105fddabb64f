"""Batches of tensors as the states of a metric: columns, which are concatenated over batches."""

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from detap.errors import UsageError
from detap.io.stream import refuse
from detap.tables.columns import Columns, Name, as_array
from detap.tables.masks import Masks
from detap.tables.shapes import READERS

Items = Sequence[Mapping[str, Tensor]]
"""The predictions or targets of a batch, a mapping per image."""

Arrays = Mapping[str, NDArray[Any]]

SHAPE_KEYS = {"bbox": "boxes", "segm": "masks", "keypoints": "keypoints"}
"""The key of each IoU type's shapes."""

_MASKS = ("mask_sizes", "run_counts", "runs")
_TABLES = {"preds": "detections", "target": "ground truth"}


def shape_keys(side: str, iou_types: Sequence[str]) -> list[str]:
    """Return the keys of the shapes of one side; true keypoints need boxes for their areas."""
    keys = [SHAPE_KEYS[iou_type] for iou_type in iou_types]
    return ["boxes", *keys] if keys == ["keypoints"] and side == "target" else keys


def columns_of(side: str, iou_types: Sequence[str]) -> list[str]:
    """Return the names of the columns of one side, ``preds`` or ``target``."""
    names = ["counts", "labels"]
    names += ["scores"] if side == "preds" else ["areas", "crowds"]
    for key in shape_keys(side, iou_types):
        names += _MASKS if key == "masks" else (key,)
    return names


def check_items(side: str, items: Items, iou_types: Sequence[str]) -> None:
    """Raise an error if items lack a tensor, or tensors differ in length or have a wrong shape."""
    score = ["scores"] if side == "preds" else []
    keys = [*shape_keys(side, iou_types), *score, "labels"]
    for index, item in enumerate(items):
        for key in keys:
            if not isinstance(item.get(key), Tensor):
                raise UsageError(f"{side} {index} has no tensor {key!r}; give {', '.join(keys)}")
        first, *others = keys + [key for key in ("area", "iscrowd") if key in item]
        for key in others:
            if len(item[key]) != len(item[first]):
                one = {"boxes": "box", "masks": "mask"}.get(first, "row")
                message = f"{len(item[first])} {first} and {len(item[key])} {key}"
                refuse(_TABLES[side], message, f"give one for each {one}", f"image {index}")
        boxes = item["boxes"] if "boxes" in keys else torch.zeros(0)
        if boxes.numel() and boxes.shape[1:] != (4,):
            raise UsageError(
                f"{side} {index}: boxes has shape {tuple(boxes.shape)}; expected (n, 4)"
            )


def batch_columns(
    side: str, items: Items, iou_types: Sequence[str], box_format: str
) -> dict[str, Tensor]:
    """Return the columns of a batch: boxes x, y, width, height; areas NaN if missing or zero."""
    labels = [item["labels"] for item in items]
    counts = torch.tensor([len(label) for label in labels])
    columns = {"counts": counts, "labels": torch.cat(labels)}
    if side == "preds":
        columns["scores"] = torch.cat([item["scores"] for item in items])
    else:
        areas = [item.get("area", torch.zeros(len(item["labels"]))).double() for item in items]
        zeros = [torch.zeros(len(label), dtype=torch.bool) for label in labels]
        crowds = [item.get("iscrowd", zero) != 0 for item, zero in zip(items, zeros, strict=True)]
        area = torch.cat([area.cpu() for area in areas])
        columns["areas"] = torch.where(area > 0, area, torch.nan)
        columns["crowds"] = torch.cat([crowd.cpu() for crowd in crowds])
    for key in shape_keys(side, iou_types):
        if key == "masks":
            parts: list[Any] = [Masks.none()]
            for index, item in enumerate(items):
                reader = Columns(_TABLES[side], f"image {index}")
                parts.append(READERS["masks"](reader, item["masks"], None))
            masks = Masks.joined(parts)
            arrays = masks.sizes, np.diff(masks.run_start), masks.runs.astype(np.int64)
            columns |= zip(_MASKS, map(torch.tensor, arrays), strict=True)
        elif key == "boxes":
            boxes = torch.cat([item["boxes"].reshape(-1, 4) for item in items])
            columns["boxes"] = _as_xywh(boxes, box_format)
        else:
            columns["keypoints"] = torch.cat([item["keypoints"] for item in items])
    return {name: column.detach() for name, column in columns.items()}


def _as_xywh(boxes: Tensor, box_format: str) -> Tensor:
    """Convert boxes to x, y, width, height like torchvision's ``box_convert``."""
    if boxes.dtype in (torch.float16, torch.bfloat16):
        boxes = boxes.float()
    if box_format == "xywh":
        return boxes
    first, second = boxes[:, :2], boxes[:, 2:]
    if box_format == "cxcywh":
        first, second = first - 0.5 * second, first + 0.5 * second
    return torch.cat([first, second - first], 1)


def shapes_of(columns: Arrays, iou_type: str) -> list[Any]:
    """Return the shapes of one IoU type per image: arrays, or masks."""
    if iou_type != "segm":
        return per_image(columns, SHAPE_KEYS[iou_type])
    start = np.concatenate([[0], np.cumsum(columns["run_counts"])])
    runs = [columns["runs"][a:b].astype(np.uint32) for a, b in pairwise(start.tolist())]
    sizes = [(int(height), int(width)) for height, width in columns["mask_sizes"]]
    bounds = pairwise([0, *accumulate(columns["counts"].tolist())])
    return [Masks.of_runs(sizes[a:b], runs[a:b]) for a, b in bounds]


def per_image(columns: Arrays, name: str) -> list[NDArray[Any]]:
    """Return a column split by image."""
    ends = [0, *accumulate(columns["counts"].tolist())]
    return [columns[name][start:end] for start, end in pairwise(ends)]


def joined(states: Mapping[str, Sequence[Tensor]]) -> dict[str, NDArray[Any]]:
    """Return the states of all batches as arrays."""
    return {
        name: np.concatenate([as_array(part) for part in parts]) for name, parts in states.items()
    }


def areas_of(columns: Arrays, iou_types: Sequence[str]) -> NDArray[np.float64]:
    """Return the areas of ground truths; missing ones are those of the masks, else of the boxes."""
    if "segm" in iou_types:
        masks = [mask.measured()[0] for mask in shapes_of(columns, "segm")]
        shape_areas = np.concatenate([np.zeros(0), *masks])
    else:
        width_height = columns["boxes"][:, 2:].astype(np.float64)
        shape_areas = width_height[:, 0] * width_height[:, 1]
    return np.where(np.isnan(columns["areas"]), shape_areas, columns["areas"])


# --- names of the images


def encode_names(names: Sequence[Any]) -> Tensor:
    """Return image names as a tensor of bytes, a line of JSON each."""
    text = "".join(f"{json.dumps(name)}\n" for name in names)
    return torch.frombuffer(bytearray(text, "ascii"), dtype=torch.uint8)


def decode_names(column: NDArray[np.uint8]) -> list[Name]:
    """Return the names of :func:`encode_names`; a pair (rank, world size) gets a free number.

    The images of all processes alternate.
    """
    counts: dict[int, int] = {}
    names: list[Name] = []
    for name in map(json.loads, column.tobytes().decode().splitlines()):
        if isinstance(name, list):
            rank, ranks = name
            names.append(counts.get(rank, 0) * ranks + rank)
            counts[rank] = counts.get(rank, 0) + 1
        else:
            names.append(name)
    return names
