"""Regressions: the classes and images behind gates that did not pass."""

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


KEY = "regressions"
"""The key of the block in the JSON report."""


class DropAt(TypedDict):
    """The drop of AP at an IoU threshold."""

    iou: float
    drop: float


class LocalizationDrop(TypedDict):
    """The drop of AP at the lowest threshold and at the one with the largest drop."""

    lowest: DropAt
    worst: DropAt


class RegressedClass(TypedDict):
    """The AP of a class, now and in the baseline."""

    name: str
    AP: float | None
    baseline: float | None
    ground_truths: Count


class ImageErrorRow(TypedDict):
    """The errors of an image by type."""

    name: str | int
    errors: int
    missed: int
    localization: int
    duplicate: int
    classification: int
    background: int


class RegressionsData(TypedDict):
    """The classes and images behind gates that did not pass."""

    slice: Annotated[str | None, "The slice, if all of these gates are about one."]
    localization_regression: Annotated[
        LocalizationDrop | None,
        "If AP dropped mostly at high IoU: the drop at the lowest threshold and the largest one.",
    ]
    images_compared: Annotated[bool, "True if the images are compared with an earlier detector."]
    classes: Annotated[
        list[RegressedClass],
        "Classes with the largest drops of AP; without a baseline, those of lowest AP.",
    ]
    images: Annotated[
        list[ImageErrorRow],
        "Images with the most errors at the lowest threshold, or at the worst of "
        "localization_regression; with an earlier detector, the most additional errors.",
    ]


def regressions_block(regressions: "Regressions") -> Block:
    """Return the regressions as a block."""
    localization = regressions.localization
    place = "" if localization is None else f" at IoU {localization.iou[1]:.6g}"
    data = {
        "slice": regressions.slice,
        "classes": [
            {
                "name": entry.name,
                "AP": entry.average_precision,
                "baseline": entry.baseline,
                "ground_truths": entry.ground_truths,
            }
            for entry in regressions.classes
        ],
        "localization_regression": None
        if localization is None
        else {
            end: {"iou": iou, "drop": drop}
            for end, iou, drop in zip(
                ("lowest", "worst"), localization.iou, localization.drop, strict=True
            )
        },
        "images": [
            {"name": entry.name, "errors": entry.total, **entry.by_type}
            for entry in regressions.images
        ],
        "images_compared": regressions.images_compared,
    }
    lines = (
        *(_class_line(entry) for entry in regressions.classes),
        *([] if localization is None else [_localization_line(localization)]),
        *(
            f"{_image_line(entry, more=regressions.images_compared)}{place}"
            for entry in regressions.images
        ),
    )
    return Block(KEY, _title(regressions), data, lines)


def _title(regressions: "Regressions") -> str:
    if regressions.images_compared:
        title = "Regressions"
    elif regressions.classes and regressions.baseline:
        title = "Regressions and worst images"
    else:
        title = "Worst classes and images"
    return title if regressions.slice is None else f"{title}, in slice {escape(regressions.slice)}"


def _class_line(entry: "ClassRegression") -> str:
    before = "" if entry.baseline is None else f"{entry.baseline:.4f} -> "
    value = f"{entry.average_precision:.4f}"
    return f"class {entry.name}: AP {before}{value} ({entry.ground_truths} ground truths)"


def _localization_line(localization: "LocalizationRegression") -> str:
    low, worst = (f"{iou:.6g}" for iou in localization.iou)
    lowest, largest = localization.drop
    at_low = change(abs(lowest), 4).removeprefix("+")
    if nearly_equal(lowest, 0.0):
        at_low = "unchanged"
    elif lowest < 0:
        at_low = f"rose {at_low}"
    return f"localization: AP dropped {largest:.4f} at IoU {worst}, {at_low} at IoU {low}"


def _image_line(entry: "ImageErrors", *, more: bool) -> str:
    counts = [(kind, count) for kind, count in entry.by_type.items() if more or count > 0]
    counts.sort(key=lambda entry: entry[1] < 0)
    parts = [f"{count:+d} {kind}" if more else f"{count} {kind}" for kind, count in counts if count]
    return f"image {entry.name}: {', '.join(parts)}"
