"""Keypoints of YOLO rows.

Reference: Ultralytics 8.4.190, ``YOLODataset`` and ``PoseValidator``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from detap.errors import Note
from detap.formats.by_name.problems import Problems
from detap.formats.yolo.boxes import HIGHEST, LOWEST, PREDICTIONS_REACH
from detap.tables.detection import Flags, Floats
from detap.tables.notes import INSIST, KEYPOINT_AREAS

_ZEROED_BELOW = 0.5
"""Older Ultralytics sets keypoints of lower confidence to 0 0 in text files."""


def check_keypoints(
    keypoints: Floats,
    location: Callable[[int], tuple[str, str]],
    problems: Problems,
    *,
    scored: bool,
) -> None:
    """Collect problems of keypoints (N, K, 2 or 3) that are not normalized or have no visibility.

    The third number of predictions (`scored`) is a confidence.
    """
    low, high = (-PREDICTIONS_REACH, 1 + PREDICTIONS_REACH) if scored else (LOWEST, HIGHEST)
    points = keypoints[:, :, :2]
    faults: list[tuple[Flags, str, str]] = [
        (
            np.asarray(((points < low) | (points > high)).any(axis=2)),
            "{:g} {:g} is outside [0, 1]",
            f"correct it; if keypoints do extend beyond their images, pass {INSIST}",
        )
    ]
    if keypoints.shape[2] == 3 and not scored:
        wrong = ~np.isin(keypoints[:, :, 2], (0, 1, 2))
        hint = "correct it, or kpt_shape"
        faults.append((wrong, "has visibility {2:g}, expected 0, 1 or 2", hint))
    for wrong, message, hint in faults:
        rows = np.flatnonzero(wrong.any(axis=1))
        for row in rows[: problems.limit].tolist():
            number = int(wrong[row].argmax())
            text = message.format(*keypoints[row, number].tolist())
            problems.add(*location(row), f"keypoint {number + 1} {text}", hint)
        problems.count += max(0, len(rows) - problems.limit)


def keypoint_fields(
    keypoints: Floats, pixels: Floats, size: Floats, *, scored: bool
) -> dict[str, Any]:
    """Return the table fields of normalized keypoints (N, K, 2 or 3).

    Without visibility, a keypoint is labeled unless x or y is negative.
    """
    points = keypoints[:, :, :2] * size[:, None]
    if scored:
        return {"keypoints": points}
    if keypoints.shape[2] == 3:
        labeled = keypoints[:, :, 2:]
    else:
        labeled = np.where((keypoints >= 0).all(axis=2, keepdims=True), 2.0, 0.0)
    return {
        "keypoints": np.concatenate([points, labeled], axis=2),
        "no_keypoints": ~(labeled > 0).any(axis=(1, 2)),
        "width_height": pixels[:, 2:].copy(),
    }


def keypoint_notes(keypoints: Floats, *, scored: bool) -> tuple[Note, ...]:
    """Return notes on keypoints at 0 0, and on areas."""
    zero = (keypoints[:, :, :2] == 0).all(axis=2)
    count = int(np.count_nonzero(zero))
    has_third = keypoints.shape[2] == 3
    if not scored:
        message = (
            "keypoints at 0 0 are labeled, as in Ultralytics: kpt_shape [K, 2] has no visibility; "
            "padding?"
        )
        area = "labels have no area; OKS uses 0.53 of the box, as in Ultralytics"
        return (
            Note(KEYPOINT_AREAS, area, len(keypoints), severity="info"),
            Note("keypoints-at-zero", message, 0 if has_third else count, severity="info"),
        )
    zeroed = has_third and bool((keypoints[zero][:, 2] < _ZEROED_BELOW).all())
    message = (
        "keypoints are 0 0, all of confidence below 0.5: older Ultralytics writes that to text "
        "files, which lowers OKS; use predictions.json"
    )
    return (Note("keypoints-zeroed", message, count if zeroed else 0),)
