"""Select the presets that a protocol search scores."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from detap.errors import UsageError
from detap.protocols import Protocol

_SHAPES = {
    "bbox": "boxes",
    "segm": "masks",
    "boundary": "boundaries",
    "keypoints": "keypoints",
    "polygon": "quadrilaterals",
}


class Skipped(NamedTuple):
    """Presets that are not searched.

    Attributes
    ----------
    reason : str

    presets : tuple of str
    """

    reason: str
    presets: tuple[str, ...]


def searched_presets(
    changes: Mapping[str, Any], *, polygons: bool = False
) -> tuple[list[Protocol], list[Skipped]]:
    """Return the presets to search, with changed fields, and the skipped ones.

    Presets with the requested IoU type, by default boxes, come first.
    """
    iou_type = changes.get("iou_type", "polygon" if polygons else "bbox")
    iou_types = {iou_type, "bbox"} if "iou_type" in changes else {iou_type}
    presets, skipped = [], dict[str, list[str]]()
    rejected: list[UsageError] = []
    for name, protocol in Protocol.presets.items():
        if protocol.iou_type not in iou_types:
            shapes = _SHAPES.get(protocol.iou_type, protocol.iou_type)
            option = "--shapes" if protocol.iou_type == "bbox" else "--iou-type"
            reason = f"compare {shapes}: {option} {protocol.iou_type}"
            skipped.setdefault(reason, []).append(name)
            continue
        if protocol.attributes and "ignore_where" not in changes:
            # Reading them would be slower for every search.
            reason = "need attributes of annotations: --ignore-where"
            skipped.setdefault(reason, []).append(name)
            continue
        try:
            presets.append((protocol.iou_type != iou_type, protocol.with_changes(**changes)))
        except UsageError as error:
            rejected.append(error)
            skipped.setdefault("reject the options given", []).append(name)
    if not presets:
        raise rejected[0]
    searched = [protocol for _, protocol in sorted(presets, key=lambda pair: pair[0])]
    return searched, [Skipped(reason, tuple(names)) for reason, names in skipped.items()]
