"""What is left aside of a folder, and worth telling its owner."""

import numpy as np

from detap.errors import Note
from detap.formats.named.notes import told
from detap.formats.text.folder import Folder, Selection
from detap.spelling import some
from detap.tables.detection import Integers


def folder_notes(
    folder: Folder, selection: Selection, image: Integers, nested: int
) -> tuple[Note, ...]:
    """Note what was left aside; `image` (G,) is the image of each object."""
    filled = int(np.count_nonzero(np.bincount(image, minlength=len(selection.images))))
    empty = len(selection.images) - filled
    return told(
        Note(
            "images-listed-twice",
            "lines of the image set repeat an image, which counts once: "
            + some(selection.repeated),
            len(selection.repeated),
        ),
        Note("left-aside", "entries of the folder are no annotations", folder.aside, warning=False),
        Note("nested-objects", "object elements inside others are left aside", nested),
        Note("images-without-objects", "images have no object", empty, warning=False),
    )
