"""What became of every detection and ground truth of one image, as a report."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict

from detap.analysis.errors import NEAR
from detap.analysis.image_results import (
    DetectionResult,
    DetectionVerdict,
    GroundTruthResult,
    ImageResults,
    TruthVerdict,
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
        "verdict": DetectionVerdict,
        "why": str,
        "ground_truth": Annotated[
            int | None,
            "The number of the one matched, aimed at, stood on or nearest.",
            Limits(minimum=1),
        ],
        "overlap": float | None,
        "claimed_by": Annotated[
            int | None, "The number of the other detection that has found it.", Limits(minimum=1)
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
        "verdict": TruthVerdict,
        "why": str,
        "detection": Annotated[
            int | None, "The number of the detection that found it or means it.", Limits(minimum=1)
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
    teller = _Teller(result, found)
    truths = [teller.truth(entry) for entry in found.ground_truths]
    data = {"name": found.image, "iou": found.iou, "ground_truths": truths}
    title = f"Ground truths of image {found.image}, IoU {found.iou:.6g}"
    return Report(
        kind="image",
        signature=result.signature,
        protocol=result.protocol.as_dict(),
        inputs=tuple(inputs),
        table=Table(_DETECTIONS, tuple(teller.detection(entry) for entry in found.detections)),
        notes=tuple(notes),
        blocks=(Block("image", title, data, table=Table(_TRUTHS, tuple(truths))),),
    )


class _Teller:
    """Sentences and rows; detections and ground truths are numbered from 1 in their tables."""

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
            "verdict": entry.verdict,
            "why": self._why(entry),
            "ground_truth": self.truths[entry.ground_truth] if near else None,
            "overlap": entry.similarity if near else None,
            "claimed_by": self.detections.get(entry.matched_by),
            **_box(self.result.detections.corners[entry.row]),
        }

    def _why(self, entry: DetectionResult) -> str:
        if entry.verdict == "beyond-limit":
            most = self.result.max_dets[-1]
            return f"better-scored detections fill the limit of {most}"
        if entry.verdict in _WITHOUT_MATCH:
            return _WITHOUT_MATCH[entry.verdict]
        if entry.ground_truth < 0:
            return "overlaps no ground truth"
        what = "overlap" if entry.verdict == "neutral" else "IoU"
        near = f"{what} {entry.similarity:.4f} with ground truth {self._truth(entry.ground_truth)}"
        if entry.verdict == "background":
            return f"overlaps no ground truth by more than {NEAR:g}: {near}"
        reason = {
            "true-positive": "finds it",
            "neutral": "which need not be found",
            "duplicate": "which is taken",
            "localisation": f"too little for {self.iou:.6g}",
            "classification": "of another class",
            "both": f"too little for {self.iou:.6g}, and of another class",
        }[entry.verdict]
        taker = self.detections.get(entry.matched_by)
        return f"{near}, {reason}" + ("" if taker is None else f"; detection {taker} finds it")

    def _truth(self, row: int) -> str:
        return f"{self.truths[row]} ({self.result.classes[self.labels[row]]})"

    def truth(self, entry: GroundTruthResult) -> dict[str, Cell]:
        """Return the row of a ground truth."""
        by = self.detections.get(entry.detection)
        why = {
            "found": f"by detection {by}",
            "aimed-at": f"detection {by} means it",
            "missed": "no detection means it",
            "neutral": "need not be found",
            "out-of-range": "its area is not asked for",
        }[entry.verdict]
        return {
            "name": str(self.truths[entry.row]),
            "class": self.result.classes[entry.label],
            "verdict": entry.verdict,
            "why": why,
            "detection": by,
            **_box(self.result.ground_truth.corners[entry.row]),
        }


def _box(corners: Any) -> dict[str, float]:
    return dict(zip(("x1", "y1", "x2", "y2"), corners.tolist(), strict=True))


_WITHOUT_MATCH = {
    "not-exhaustive": "matches nothing, and not every object of its class is annotated here",
    "out-of-range": "matches nothing, and its area is not asked for",
    "unverified": "nothing says whether its class is in the image",
    "zero-area": "it has no area, and the protocol leaves it out",
}

_DETECTIONS = (
    Column("name", "detection", "det", "name"),
    Column("class", "class", "class", "name"),
    Column("score", "score", "score", "share"),
    Column("verdict", "verdict", "verdict", "text"),
    Column("overlap", "IoU", "IoU", "share"),
    Column("ground_truth", "ground truth", "GT", "count"),
    Column("claimed_by", "found by", "by", "count"),
    Column("why", "why", "why", "text", 1),
)
_TRUTHS = (
    Column("name", "ground truth", "GT", "name"),
    Column("class", "class", "class", "name"),
    Column("verdict", "verdict", "verdict", "text"),
    Column("why", "why", "why", "text"),
)
