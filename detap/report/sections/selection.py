"""Which classes and images were selected."""

from typing import TYPE_CHECKING, Annotated, TypedDict

from detap.io.digest import sha256_of_names
from detap.report.model import Block

if TYPE_CHECKING:
    from detap.evaluation.selection import Selection


class SelectionData(TypedDict):
    """What --classes and --images selected."""

    classes: list[str] | None
    of_classes: Annotated[int | None, "How many classes there are."]
    images: Annotated[int | None, "How many."]
    of_images: Annotated[int | None, "How many images the ground truth has."]
    images_sha256: Annotated[str | None, "Of their names, one a line."]
    signature: Annotated[list[str], "What the signature says of it."]


def selection_blocks(selection: "Selection | None") -> tuple[Block, ...]:
    """Return what a report says of a selection; nothing if there is none."""
    if selection is None:
        return ()
    classes, images, lines = selection.classes, selection.images, []
    data: dict[str, object] = dict.fromkeys(
        ("classes", "of_classes", "images", "of_images", "images_sha256")
    )
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
    return (Block("selection", "Selection", data, lines=(", ".join(lines),)),)
