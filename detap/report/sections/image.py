"""The report of one image: the result of every detection and ground truth."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from detap.analysis.errors import NEAR
from detap.analysis.image_results import (
    DetectionResult,
    DetectionStatus,
    GroundTruthResult,
    GroundTruthStatus,
    ImageResults,
)
from detap.errors import Note
from detap.evaluation.results import Result
from detap.report.fields import Limits
from detap.report.model import Block, Cell, Column, Report, Table

ShownDetection = TypedDict(
    "ShownDetection",
    {
        "name": Annotated[str, "Its number, from 1."],
        "class": str,
        "score": float,
        "result": DetectionStatus,
        "why": str,
        "ground_truth": Annotated[
            int | None,
            "The number of the matched, attributed or nearest ground truth.",
            Limits(minimum=1),
        ],
        "iou": float | None,
        "matched_by": Annotated[
            int | None, "The number of the other detection that matches it.", Limits(minimum=1)
        ],
        "x1": float,
        "y1": float,
        "x2": float,
        "y2": float,
    },
)


ShownGroundTruth = TypedDict(
    "ShownGroundTruth",
    {
        "name": Annotated[str, "Its number, from 1, in the order of the file."],
        "class": str,
        "result": GroundTruthStatus,
        "why": str,
        "detection": Annotated[
            int | None, "The number of the matching or near-miss detection.", Limits(minimum=1)
        ],
        "x1": float,
        "y1": float,
        "x2": float,
        "y2": float,
    },
)


class ImageData(TypedDict):
    """The image, and its ground truths."""

    name: int | str
    iou: float
    ground_truths: list[ShownGroundTruth]


def image_report(
    result: Result,
    found: ImageResults,
    *,
    inputs: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[Note] = (),
) -> Report:
    """Return the report of one image.

    Parameters
    ----------
    result : Result
    found : ImageResults
        Of it.
    inputs : sequence of mapping
        What was read.
    notes : sequence of Note
        What is to be said besides.
    """
    formatter = _RowFormatter(result, found)
    truths = [formatter.truth(entry) for entry in found.ground_truths]
    data = {"name": found.image, "iou": found.iou, "ground_truths": truths}
    title = f"Ground truths of image {found.image}, IoU {found.iou:.6g}"
    return Report(
        kind="image",
        signature=result.signature,
        protocol=result.protocol.as_dict(),
        inputs=tuple(inputs),
        table=Table(_DETECTIONS, tuple(formatter.detection(entry) for entry in found.detections)),
        notes=tuple(notes),
        blocks=(Block("image", title, data, table=Table(_TRUTHS, tuple(truths))),),
    )


class _RowFormatter:
    """Rows of detections and ground truths, each numbered from 1."""

    def __init__(self, result: Result, found: ImageResults) -> None:
        self.result, self.iou = result, found.iou
        self.detections = {entry.row: n for n, entry in enumerate(found.detections, 1)}
        self.truths = {entry.row: n for n, entry in enumerate(found.ground_truths, 1)}
        self.labels = {entry.row: entry.label for entry in found.ground_truths}

    def detection(self, entry: DetectionResult) -> dict[str, Cell]:
        """Return the row of a detection."""
        near = entry.ground_truth >= 0
        return {
            "name": str(self.detections[entry.row]),
            "class": self.result.classes[entry.label],
            "score": entry.score,
            "result": entry.result,
            "why": self._why(entry),
            "ground_truth": self.truths[entry.ground_truth] if near else None,
            "iou": entry.similarity if near else None,
            "matched_by": self.detections.get(entry.matched_by),
            **_box(self.result.detections.corners[entry.row]),
        }

    def _why(self, entry: DetectionResult) -> str:
        if entry.result == "beyond-max-dets":
            maximum = self.result.max_dets[-1]
            return f"ranked beyond the maximum of {maximum} detections"
        if entry.result in _WITHOUT_MATCH:
            return _WITHOUT_MATCH[entry.result]
        if entry.ground_truth < 0:
            return "overlaps no ground truth"
        measure = "overlap" if entry.result == "ignored" else "IoU"
        near = (
            f"{measure} {entry.similarity:.4f} with ground truth {self._truth(entry.ground_truth)}"
        )
        if entry.result == "background":
            return f"IoU below {NEAR:g} with every ground truth: {near}"
        reason = {
            "true-positive": "matched",
            "ignored": "which is ignored",
            "duplicate": "already matched",
            "localization": f"below {self.iou:.6g}",
            "classification": "of another class",
            "both": f"below {self.iou:.6g}, and of another class",
        }[entry.result]
        matching = self.detections.get(entry.matched_by)
        if matching is not None:
            reason += (
                f" by detection {matching}"
                if entry.result == "duplicate"
                else f"; matched by detection {matching}"
            )
        return f"{near}, {reason}"

    def _truth(self, row: int) -> str:
        return f"{self.truths[row]} ({self.result.classes[self.labels[row]]})"

    def truth(self, entry: GroundTruthResult) -> dict[str, Cell]:
        """Return the row of a ground truth."""
        by = self.detections.get(entry.detection)
        why = {
            "matched": f"matched by detection {by}",
            "near-miss": f"near miss: detection {by}",
            "missed": "no matching or near-miss detection",
            "ignored": "ignored",
            "outside-area-range": "outside the area range",
        }[entry.result]
        return {
            "name": str(self.truths[entry.row]),
            "class": self.result.classes[entry.label],
            "result": entry.result,
            "why": why,
            "detection": by,
            **_box(self.result.ground_truth.corners[entry.row]),
        }


def _box(corners: Any) -> dict[str, float]:
    return dict(zip(("x1", "y1", "x2", "y2"), corners.tolist(), strict=True))


_WITHOUT_MATCH = {
    "not-exhaustive": "unmatched; its class is not exhaustively annotated in this image",
    "outside-area-range": "unmatched; outside the area range",
    "unverified": "its class is not verified in this image",
    "zero-area": "zero area; dropped by the protocol",
}

_DETECTIONS = (
    Column("name", "detection", "det", "name"),
    Column("class", "class", "class", "name"),
    Column("score", "score", "score", "fraction"),
    Column("result", "result", "result", "text"),
    Column("iou", "IoU", "IoU", "fraction"),
    Column("ground_truth", "ground truth", "GT", "count"),
    Column("matched_by", "matched by", "by", "count"),
    Column("why", "why", "why", "text", 1),
)
_TRUTHS = (
    Column("name", "ground truth", "GT", "name"),
    Column("class", "class", "class", "name"),
    Column("result", "result", "result", "text"),
    Column("why", "why", "why", "text"),
)
