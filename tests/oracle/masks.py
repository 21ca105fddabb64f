"""Masks as bitmaps: one pixel at a time, column by column.

Sources: maskApi.c of pycocotools for run-length encoding (RLE), its compressed text, areas, boxes,
unions and intersection over union; Cheng et al., Boundary IoU, CVPR 2021, for boundaries.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Bitmap = NDArray[np.bool_]
"""(height, width)"""


def encode(bitmap: Bitmap) -> list[int]:
    """Return the run lengths of a bitmap, background first."""
    runs, foreground = [0], False
    for pixel in bitmap.T.ravel().tolist():
        if pixel != foreground:
            runs.append(0)
            foreground = pixel
        runs[-1] += 1
    return runs


def decode(runs: Sequence[int], height: int, width: int) -> Bitmap:
    """Return the bitmap of run lengths."""
    pixels: list[bool] = []
    for number, length in enumerate(runs):
        pixels += [number % 2 == 1] * length
    return np.array(pixels, np.bool_).reshape(width, height).T


def compress(runs: Sequence[int]) -> bytes:
    """Return run lengths as text: five bits a character, from the fourth run on as differences."""
    text = []
    for number, length in enumerate(runs):
        value = length - runs[number - 2] if number > 2 else length
        more = True
        while more:
            bits, value = value & 31, value >> 5
            more = value != (-1 if bits & 16 else 0)
            text.append(48 + bits + 32 * more)
    return bytes(text)


def decompress(text: bytes) -> list[int]:
    """Return the run lengths of a text."""
    runs: list[int] = []
    value = shift = 0
    for character in text:
        bits = character - 48
        value += (bits & 31) << shift
        shift += 5
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << shift
        runs.append(value + (runs[-2] if len(runs) > 2 else 0))
        value = shift = 0
    return runs


def area(bitmap: Bitmap) -> int:
    """Return the number of foreground pixels."""
    return sum(bitmap.ravel().tolist())


def bounding_box(bitmap: Bitmap) -> list[int]:
    """Return x, y, width and height of the box around the foreground, zeros if there is none."""
    pixels = [(x, y) for y, row in enumerate(bitmap.tolist()) for x, on in enumerate(row) if on]
    if not pixels:
        return [0, 0, 0, 0]
    columns, rows = zip(*pixels, strict=True)
    left, top = min(columns), min(rows)
    return [left, top, max(columns) - left + 1, max(rows) - top + 1]


def merge(bitmaps: Sequence[Bitmap], *, intersect: bool = False) -> Bitmap:
    """Return the union of bitmaps, or their intersection."""
    merged = bitmaps[0]
    for bitmap in bitmaps[1:]:
        merged = merged & bitmap if intersect else merged | bitmap
    return merged


def iou(detection: Bitmap, truth: Bitmap, *, crowd: bool = False) -> float:
    """Return intersection over union, or over the detection for a crowd."""
    intersection = area(detection & truth)
    union = area(detection) if crowd else area(detection | truth)
    return intersection / union if intersection else 0.0


def boundary_iou(detection: Bitmap, truth: Bitmap, ratio: float) -> float:
    """Return the smaller of mask IoU and boundary IoU."""
    height, width = truth.shape
    depth = boundary_depth(height, width, ratio)
    return min(iou(detection, truth), iou(boundary(detection, depth), boundary(truth, depth)))


def boundary_depth(height: int, width: int, ratio: float) -> int:
    """Return the boundary width in pixels: a fraction of the diagonal, halves rounded to even."""
    return max(1, round(ratio * math.sqrt(height**2 + width**2)))


def boundary(bitmap: Bitmap, depth: int) -> Bitmap:
    """Return the pixels that erosion by 3 x 3, `depth` times, removes.

    The outside is background.
    """
    eroded = bitmap
    for _ in range(depth):
        padded = np.pad(eroded, 1)
        rows, columns = (range(side) for side in bitmap.shape)
        eroded = np.array(
            [[padded[y : y + 3, x : x + 3].all() for x in columns] for y in rows], np.bool_
        ).reshape(bitmap.shape)
    return bitmap & ~eroded
