"""Image names that exports change: Roboflow's hash after them, Label Studio's before them.

Reference: Roboflow writes ``a_jpg.rf.<32 hexadecimal digits>.jpg`` for ``a.jpg``, Label Studio
``<8 hexadecimal digits>-a.jpg``.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from detap.errors import InputError, Note, Problem
from detap.formats.reading.placeholder import empty_ground_truth
from detap.tables.detection import Detections, GroundTruth
from detap.text_input import quote

_ADDED = re.compile(
    r"_(?:jpe?g|png|bmp|webp)\.rf\.[0-9a-f]{32}$|(?:(?<=/)|^)[0-9a-f]{8}-(?=[^/]+$)"
)


def original_names(names: Sequence[str]) -> tuple[str, ...] | None:
    """Return image names without what an export added; None if it added nothing."""
    originals = tuple(_ADDED.sub("", name) or name for name in names)
    return None if originals == tuple(names) else originals


def retry_with_original_names(
    error: InputError,
    read: Callable[[GroundTruth], Detections],
    ground_truth: GroundTruth,
    names: Sequence[str],
) -> Detections:
    """Read detections again, with the images' names before the export."""
    originals = original_names(names)
    if originals is None:
        raise error
    counts = Counter(originals)
    by_id = dict(zip(ground_truth.class_ids, ground_truth.classes, strict=True))
    renamed = (
        replace(ground_truth, images=originals)
        if len(counts) == len(originals)
        else empty_ground_truth(counts, by_id, by_id)
    )
    try:
        detections = read(renamed)
    except InputError:
        raise error from None
    if len(counts) < len(originals):
        name, count = counts.most_common(1)[0]
        message = f"the export has {count} versions of image {quote(name)}"
        hint = "predict on the exported images, or export without augmentation"
        raise InputError(Problem(ground_truth.path, "", message, hint))
    message = "image names of an export matched without the part that it added"
    note = Note("exported-names-matched", message, len(originals), severity="info")
    return replace(detections, images=ground_truth.images, notes=(*detections.notes, note))
