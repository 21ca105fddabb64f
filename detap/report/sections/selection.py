"""Which classes and images were chosen, where not all were."""

from collections.abc import Sequence

from detap.formats.reading.digest import sha256_of_names
from detap.report.model import Block
from detap.tables.detection import Name


def selection_block(
    chosen: Sequence[Name],
    *,
    classes: tuple[Sequence[str], int] | None = None,
    images: int | None = None,
) -> Block:
    """Return what a report says of a selection.

    Parameters
    ----------
    chosen : sequence of int or str
        The images.
    classes : (sequence of str, int), optional
        The classes that were chosen, and of how many.
    images : int, optional
        Of how many images some were chosen.
    """
    names = [str(name) for name in chosen]
    lines = []
    if classes is not None:
        lines.append(f"{len(classes[0])} of {classes[1]} classes")
    if images is not None:
        lines.append(f"{len(names)} of {images} images")
    data = {
        "classes": None if classes is None else [*classes[0]],
        "images": None if images is None else len(names),
        "images_sha256": None if images is None else sha256_of_names(names),
    }
    return Block("selection", "Selection", data, lines=(", ".join(lines),))
