"""``--iou-type`` selects the sibling preset if there is one, else it changes the field."""

import pytest

from detap.cli.options import protocol_from
from detap.protocols import PRESETS, Protocol
from detap.protocols.fields import protocol_fields

TYPES = ("bbox", "segm", "boundary", "keypoints", "polygon")
SIBLINGS = {
    **dict.fromkeys(
        ("coco", "coco-segm", "coco-boundary", "coco-keypoints", "coco-polygon"),
        {"bbox": "coco"} | {name: f"coco-{name}" for name in TYPES[1:]},
    ),
    "lvis": {"segm": "lvis-segm"},
    "lvis-segm": {"bbox": "lvis"},
}


def resolved(preset: str, **given: str) -> Protocol:
    options: dict[str, object] = {field.name: None for field in protocol_fields(Protocol)}
    result = protocol_from({"preset": preset, **options, **given}, Protocol, "coco")
    assert isinstance(result, Protocol)
    return result


@pytest.mark.parametrize("iou_type", TYPES)
@pytest.mark.parametrize("preset", SIBLINGS)
def test_a_preset_with_a_sibling_becomes_the_sibling(preset: str, iou_type: str) -> None:
    sibling = SIBLINGS[preset].get(iou_type)
    if sibling is not None:
        assert resolved(preset, iou_type=iou_type) == PRESETS[sibling]
    elif PRESETS[preset].iou_type == iou_type:
        assert resolved(preset, iou_type=iou_type) == PRESETS[preset]
    else:
        changed = resolved(preset, iou_type=iou_type)
        assert (changed.name, changed.iou_type) == (preset, iou_type)
        assert f"|iou-type:{iou_type}" in changed.signature("1.0")


def test_the_iou_type_of_the_preset_changes_nothing() -> None:
    for name, preset in PRESETS.items():
        assert resolved(name, iou_type=preset.iou_type) == preset
