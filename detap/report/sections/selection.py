"""Which classes and images were chosen, where not all were."""

from typing import TYPE_CHECKING

from detap.formats.reading.digest import sha256_of_names
from detap.report.model import Block

if TYPE_CHECKING:
    from detap.evaluation.results import Result
    from detap.tables.detection import Detections, GroundTruth


def selection_block(
    result: "Result",
    truth: "GroundTruth",
    detections: "Detections",
    *,
    classes: bool,
    images: bool,
) -> Block:
    """Return what a report says of a selection.

    Parameters
    ----------
    result : Result
        Of what was chosen.
    truth, detections : tables
        All that there is.
    classes, images : bool
        Which of them were chosen, either or both.
    """
    names = [str(name) for name in result.images]
    lines = []
    if classes:
        lines.append(f"{len(result.detections.classes)} of {len(detections.classes)} classes")
    if images:
        lines.append(f"{len(names)} of {len(truth.images)} images")
    data = {
        "classes": list(result.detections.classes) if classes else None,
        "images": len(names) if images else None,
        "images_sha256": sha256_of_names(names) if images else None,
    }
    return Block("selection", "Selection", data, lines=(", ".join(lines),))
