"""The selected classes and images."""

from detap.evaluation.selection import Selection
from detap.io.digest import sha256_of_names
from detap.report.fields import Object, each, field
from detap.report.model import Block

SelectionData = Object(
    "SelectionData",
    "The selection of --classes and --images; the digest is of names, one per line.",
    classes=list[str] | None,
    **each(int | None, "of_classes", "images", "of_images"),
    images_sha256=str | None,
    signature=field(list[str], "Its parts of the signature."),
)


def selection_blocks(selection: Selection | None) -> tuple[Block, ...]:
    """Return the block of a selection; empty without one."""
    if selection is None:
        return ()
    classes, images, lines = selection.classes, selection.images, []
    data: dict[str, object] = dict.fromkeys(SelectionData.fields)
    if classes is not None:
        lines.append(f"{len(classes)} of {selection.total_classes} classes")
        data |= {"classes": [*classes], "of_classes": selection.total_classes}
    if images is not None:
        lines.append(f"{len(images)} of {selection.total_images} images")
        data |= {
            "images": len(images),
            "of_images": selection.total_images,
            "images_sha256": sha256_of_names(images),
        }
    data["signature"] = [*selection.signature_parts]
    return (Block("selection", "Selection", data, lines=(", ".join(lines) or "all images",)),)
