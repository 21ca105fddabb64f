"""Regions of Label Studio: boxes, polygons and ellipses in percent of the image."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from detap.formats.shapes.flags import BBOX_HINT, as_xywh, bounds, rotated_box, rotated_ellipse
from detap.formats.shapes.json_values import finite_number, numbers, points_of
from detap.io.json_text import short_json
from detap.io.problems import FaultError
from detap.text_input import join_names

SHAPES = ("rectanglelabels", "polygonlabels", "ellipselabels", "brushlabels", "labels")
"""Types of results that are regions with a class."""
_BARE = ("rectangle", "polygon", "ellipse", "brush")
"""Types of regions without a class."""
_UPLOADED = re.compile(r"^[0-9a-f]{8}-(?=.)")
_LOCAL = "/data/local-files/?d="


def file_name_of(value: str) -> str:
    """Return the file of an image's value: a URL, an upload or a local path."""
    path = value.removeprefix(_LOCAL)
    if path == value and ("://" in value or value.startswith("/data/")):
        path = unquote(value.partition("?")[0])
    return path.replace("\\", "/").rpartition("/")[2]


def image_name_of(value: str) -> str:
    """Return the file name of an image without the digits that an upload puts before it."""
    return _UPLOADED.sub("", file_name_of(value))


def is_region(kind: object) -> bool:
    """Return True if results of a type are regions of the image, with a class or without."""
    return kind in SHAPES or kind in _BARE


def label_of(kind: str, value: Mapping[str, Any]) -> str:
    """Return the only label of a region; raise FaultError if it has none or several."""
    labels = value.get(kind)
    if kind in _BARE or labels is None or labels == []:
        raise FaultError("has no label", "label the region, or remove it")
    if not isinstance(labels, list) or not all(isinstance(name, str) for name in labels):
        raise FaultError(f"{kind} is {short_json(labels)}", "expected a list with one label")
    if len(labels) > 1:
        message = f"has {len(labels)} labels: {join_names(labels)}"
        raise FaultError(message, "give each region one label")
    if not labels[0].strip():
        raise FaultError(f"{kind} is {short_json(labels)}", "write the name of its class")
    return str(labels[0])


def box_of(
    kind: str, value: dict[str, Any], size: tuple[float, float], shapes: str
) -> tuple[list[float], list[list[float]] | None]:
    """Return the box of a region, in pixels, and the corners if it is rotated.

    The box is x, y, width, height; the corners are in order around.

    Parameters
    ----------
    kind : str
        The type of the result.
    value : dict
        In percent of the image.
    size : (float, float)
        Width and height of the image.
    shapes : {"reject", "bbox"}
    """
    if kind in ("brushlabels", "brush") or "rle" in value:
        raise FaultError("is a brush mask, which is not read", "export COCO, or draw boxes")
    if "points" in value:
        _refuse("a polygon", shapes)
        return as_xywh(bounds(_scaled(points_of(value["points"]), size))), None
    if "radiusX" in value:
        _refuse("an ellipse", shapes)
        return _of_ellipse(value, size), None
    x, y, width, height = numbers(value, "x", "y", "width", "height")
    for name, side in (("width", width), ("height", height)):
        if side < 0:
            raise FaultError(f"{name} {side:g} is negative", "correct the box")
    rotation = finite_number("rotation", value.get("rotation", 0))
    (x, y), (width, height) = _scaled([[x, y], [width, height]], size)
    if not rotation % 360:
        return [x, y, width, height], None
    corners = rotated_box(x, y, width, height, rotation, about=0)
    return as_xywh(bounds(corners)), corners


def _refuse(shape: str, shapes: str) -> None:
    if shapes != "bbox":
        raise FaultError(f"is {shape}, not a box", BBOX_HINT)


def _scaled(points: list[list[float]], size: tuple[float, float]) -> list[list[float]]:
    return [[x * size[0] / 100, y * size[1] / 100] for x, y in points]


def _of_ellipse(value: dict[str, Any], size: tuple[float, float]) -> list[float]:
    x, y, across, down = numbers(value, "x", "y", "radiusX", "radiusY")
    if across < 0 or down < 0:
        raise FaultError("a radius is negative", "correct the ellipse")
    rotation = finite_number("rotation", value.get("rotation", 0))
    (x, y), (across, down) = _scaled([[x, y], [across, down]], size)
    return as_xywh(rotated_ellipse(x, y, 2 * across, 2 * down, rotation))
