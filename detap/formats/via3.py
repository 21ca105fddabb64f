"""The project file of VIA 3, as the images and regions that VIA 2 would write.

Reference: VGG Image Annotator (VIA) 3, the project file of its image and video annotator. A
metadata is a shape in the image of a view, or a segment of a video.
"""

from typing import Any

from detap.formats.shapes.values import (
    as_xywh,
    bounds,
    finite_number,
    object_of,
    required,
    value_text,
)
from detap.io.json_text import short_json
from detap.io.problems import FaultError, Problems

_SHAPES = {
    2: ("rect", ("x", "y", "width", "height")),
    3: ("circle", ("cx", "cy", "r")),
    4: ("ellipse", ("cx", "cy", "rx", "ry")),
}
"""The shapes with a fixed number of numbers, as VIA 2 names them."""
_POLYGON, _EXTREME = 7, 8  # a rectangle by points on its sides


class Project:
    """The content of a project file."""

    def __init__(self, content: dict[str, Any], expected: str) -> None:
        self.files, self.views, self.metadata, self.attributes = (
            {key: object_of(value, expected) for key, value in members.items()}
            for members in (
                object_of(content.get(name) or {}, expected)
                for name in ("file", "view", "metadata", "attribute")
            )
        )
        self.skipped = 0  # metadata that are no shape of an image, or enclose nothing

    def records(self, problems: Problems) -> list[tuple[str, Any]]:
        """Return the location and record of each image; collect the problems of metadata.

        The keys of ``regions`` are their locations.
        """
        regions: dict[str, dict[str, Any]] = {number: {} for number in self.files}
        for key, metadata in self.metadata.items():
            where = f"metadata[{short_json(key)}]"
            with problems.collected(where):
                image = self._file_of(metadata)
                shape = _shape(required(metadata, "xy", list, "expected the numbers of a shape"))
                if shape is None or metadata.get("z"):
                    self.skipped += 1
                    continue
                chosen = object_of(metadata.get("av") or {})
                attributes = dict(self._attribute(name, value) for name, value in chosen.items())
                region = {"shape_attributes": shape, "region_attributes": attributes}
                regions[image][where] = region
        return [
            (
                f"file {short_json(number)}",
                {"filename": of.get("fname"), "regions": regions[number]},
            )
            for number, of in self.files.items()
        ]

    def _file_of(self, metadata: dict[str, Any]) -> str:
        """Return the only file of a metadata's view."""
        view = self.views.get(str(metadata.get("vid")))
        if view is None:
            message = f"vid is {value_text(metadata, 'vid')}"
            raise FaultError(message, "expected the key of a view")
        files = [str(number) for number in required(view, "fid_list", list, "expected a list")]
        if len(files) != 1 or files[0] not in self.files:
            raise FaultError(f"its view has the files {short_json(files)}", "expected one")
        return files[0]

    def _attribute(self, number: str, value: Any) -> tuple[str, Any]:
        """Return the name and value of an attribute; the chosen options of several as an object."""
        attribute = self.attributes.get(number, {})
        options = attribute.get("options")
        name = str(attribute.get("aname", number))
        if not isinstance(options, dict) or not isinstance(value, str):
            return name, value
        keys = [key for key in value.split(",") if key in options]
        if len(keys) > 1:
            return name, {str(options[key]): True for key in keys}
        return name, options.get(value, value)


def _shape(xy: list[Any]) -> dict[str, Any] | None:
    """Return a shape as VIA 2 writes it; None if it encloses nothing."""
    kind, values = next(iter(xy), None), xy[1:]
    numbers = [finite_number(f"xy[{n}]", value) for n, value in enumerate(values, 1)]
    if kind in (_POLYGON, _EXTREME):
        if len(numbers) % 2 or len(numbers) < 4:
            message = f"xy has {len(numbers)} coordinates"
            raise FaultError(message, "write x1, y1, x2, y2, ...")
        across, down = numbers[::2], numbers[1::2]
        if kind == _POLYGON:
            return {"name": "polygon", "all_points_x": across, "all_points_y": down}
        kind, numbers = 2, as_xywh(bounds([*zip(across, down, strict=True)]))
    if kind not in _SHAPES:
        return None
    name, keys = _SHAPES[kind]
    if len(numbers) != len(keys):
        message = f"xy has {len(numbers)} numbers after the kind of shape"
        raise FaultError(message, f"expected {len(keys)}")
    return {"name": name, **dict(zip(keys, numbers, strict=True))}
