"""What is left aside of a folder, and worth telling its owner."""

from detap.errors import Note
from detap.formats.named.notes import images_without_objects, left_aside, told
from detap.formats.text.folder import Folder, Selection
from detap.spelling import some
from detap.tables.detection import Integers


def folder_notes(
    folder: Folder, selection: Selection, image: Integers, nested: int
) -> tuple[Note, ...]:
    """Note what was left aside; `image` (G,) is the image of each object."""
    return told(
        Note(
            "images-listed-twice",
            "lines of the image set repeat an image, which counts once: "
            + some(selection.repeated),
            len(selection.repeated),
        ),
        left_aside(folder.aside, "annotations"),
        Note("nested-objects", "object elements inside others are left aside", nested),
        images_without_objects(len(selection.images), image),
    )
