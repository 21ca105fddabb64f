"""What got worse: the classes and images behind gates that did not pass."""

from typing import TYPE_CHECKING, Annotated, TypedDict

from detap.decimals import nearly_equal
from detap.escaping import escape
from detap.report.fields import Count
from detap.report.model import Block
from detap.report.numbers import change

if TYPE_CHECKING:
    from detap.gates.regressions import (
        ClassRegression,
        ImageErrors,
        LocalizationRegression,
        Regressions,
    )


class DropAt(TypedDict):
    """By how much AP fell at an IoU threshold."""

    iou: float
    drop: float


class LooserBoxes(TypedDict):
    """By how much AP fell at the lowest threshold, and where it fell most."""

    lowest: DropAt
    worst: DropAt


class CulpritClass(TypedDict):
    """The AP of a class, and what it was."""

    name: str
    AP: float | None
    baseline: float | None
    ground_truths: Count


class ImageMistakes(TypedDict):
    """How many mistakes of each kind an image has."""

    name: str | int
    mistakes: int
    missed: int
    mislocated: int
    duplicate: int
    confused: int
    background: int


class CulpritsData(TypedDict):
    """What the gates that did not pass are about."""

    slice: Annotated[str | None, "The slice, where all of these gates are about one."]
    looser: Annotated[
        LooserBoxes | None,
        "Where boxes became looser: by how much AP fell at the lowest "
        "threshold, and where it fell most.",
    ]
    images_compared: Annotated[bool, "Whether the images are compared with an earlier detector's."]
    classes: Annotated[
        list[CulpritClass], "Those whose AP fell most; without a baseline, those of lowest AP."
    ]
    images: Annotated[
        list[ImageMistakes],
        "Those with most mistakes, at the lowest threshold or at the worst of "
        "looser; with an earlier detector, most mistakes more than it.",
    ]


def culprits_block(found: "Regressions") -> Block:
    """Return what made gates fail, as a part of a report."""
    looser = found.looser
    location = "" if looser is None else f" at IoU {looser.iou[1]:.6g}"
    data = {
        "slice": found.slice,
        "classes": [
            {
                "name": entry.name,
                "AP": entry.average_precision,
                "baseline": entry.baseline,
                "ground_truths": entry.ground_truths,
            }
            for entry in found.classes
        ],
        "looser": None
        if looser is None
        else {
            end: {"iou": iou, "drop": drop}
            for end, iou, drop in zip(("lowest", "worst"), looser.iou, looser.drop, strict=True)
        },
        "images": [
            {"name": entry.name, "mistakes": entry.mistakes, **entry.kinds}
            for entry in found.images
        ],
        "images_compared": found.before,
    }
    lines = (
        *(_class_line(entry) for entry in found.classes),
        *([] if looser is None else [_looser_line(looser)]),
        *(f"{_image_line(entry, more=found.before)}{location}" for entry in found.images),
    )
    return Block("culprits", _title(found), data, lines)


def _title(found: "Regressions") -> str:
    if found.before:
        title = "What got worse"
    elif found.classes and found.baseline:
        title = "What got worse, and where it is worst now"
    else:
        title = "Where it is worst now"
    return title if found.slice is None else f"{title}, in slice {escape(found.slice)}"


def _class_line(entry: "ClassRegression") -> str:
    was = "" if entry.baseline is None else f", was {entry.baseline:.4f}"
    value = f"{entry.average_precision:.4f}"
    return f"class {entry.name}: AP {value}{was}, {entry.ground_truths} ground truths"


def _looser_line(looser: "LocalizationRegression") -> str:
    low, worst = (f"{iou:.6g}" for iou in looser.iou)
    stands = -looser.drop[0]
    moved = "stands" if nearly_equal(stands, 0.0) else f"changed by {change(stands, 4)}"
    return (
        f"boxes became looser: AP at IoU {low} {moved}, "
        f"at IoU {worst} it fell by {looser.drop[1]:.4f}"
    )


def _image_line(entry: "ImageErrors", *, more: bool) -> str:
    word = "more " if more else ""
    told = [f"{count} {word}{kind}" for kind, count in entry.kinds.items() if count > 0]
    if more:
        told += [f"{-count} fewer {kind}" for kind, count in entry.kinds.items() if count < 0]
    return f"image {entry.name}: {', '.join(told)}"
