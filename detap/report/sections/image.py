"""The report of one image: the result of every detection and ground truth."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from detap.analysis.errors import NEAR
from detap.analysis.image_results import ImageResults
from detap.analysis.row_results import DetectionStatus, GroundTruthStatus
from detap.evaluation.results import Result
from detap.report.fields import Object, each, field, list_of, report_of
from detap.report.model import Block, Column, Report, Table, columns_of

CORNERS = ("x1", "y1", "x2", "y2")

ShownDetection = Object(
    "ShownDetection",
    **{
        "name": field(str, "Its number, from 1."),
        "class": str,
        "score": float,
        "result": DetectionStatus,
        "why": str,
        "ground_truth": field(int | None, "The matched, attributed or nearest one.", minimum=1),
        "iou": float | None,
        "matched_by": field(int | None, "The other detection that matches it.", minimum=1),
        **each(float, *CORNERS),
    },
)

ShownGroundTruth = Object(
    "ShownGroundTruth",
    **{
        "name": field(str, "Its number, from 1, in the order of the file."),
        "class": str,
        "result": GroundTruthStatus,
        "why": str,
        "detection": field(int | None, "The matching or near-miss detection.", minimum=1),
        **each(float, *CORNERS),
    },
)

ImageData = Object("ImageData", name=int | str, iou=float, ground_truths=list_of(ShownGroundTruth))

ImageReport = report_of(
    Literal["image"],
    "ImageReport",
    "The JSON report of detap show: the detections and ground truths of one image. "
    "Undefined values are null.",
    signature=str,
    protocol=field(dict[str, Any], "The fields of the protocol."),
    inputs=list[dict[str, Any]],
    summary=field(dict[str, Any], maxProperties=0, required=False),
    detections=field(list_of(ShownDetection), "By descending score."),
    notes=list[dict[str, Any]],
    image=ImageData,
)


def image_report(
    result: Result, image_results: ImageResults, *, inputs: Sequence[Mapping[str, Any]] = ()
) -> Report:
    """Return the report of one image; detections and ground truths are numbered from 1."""
    numbers = {one.row: n for n, one in enumerate(image_results.detections, 1)}
    truths = {one.row: (n, one) for n, one in enumerate(image_results.ground_truths, 1)}
    detections = []
    for detection in image_results.detections:
        text, near, by = _WHY[detection.result], "", ""
        number, truth = truths.get(detection.ground_truth, (None, None))
        if truth is not None:
            measure = "overlap" if detection.result == "ignored" else "IoU"
            nearest = f"{number} ({result.classes[truth.label]})"
            near = f"{measure} {detection.similarity:.4f} with ground truth {nearest}"
        elif "{near}" in text:
            text = "overlaps no ground truth"
        if (matching := numbers.get(detection.matched_by)) is not None:
            before = " by" if detection.result == "duplicate" else "; matched by"
            by = f"{before} detection {matching}"
        iou, maximum = f"{image_results.iou:.6g}", result.max_dets[-1]
        row = ShownDetection(
            detection,
            name=str(numbers[detection.row]),
            why=text.format(near=near, by=by, iou=iou, maximum=maximum),
            ground_truth=number,
            iou=None if number is None else detection.similarity,
            matched_by=matching,
            **{"class": result.classes[detection.label]},
            **_box(result.detections.corners[detection.row]),
        )
        detections.append(row)
    ground_truths = [
        ShownGroundTruth(
            truth,
            name=str(number),
            why=_WHY_OF_TRUTH[truth.result].format(numbers.get(truth.detection)),
            detection=numbers.get(truth.detection),
            **{"class": result.classes[truth.label]},
            **_box(result.ground_truth.corners[truth.row]),
        )
        for number, truth in truths.values()
    ]
    data = {"name": image_results.image, "iou": image_results.iou, "ground_truths": ground_truths}
    title = f"Ground truths of image {image_results.image}, IoU {image_results.iou:.6g}"
    return Report(
        kind="image",
        signature=result.signature,
        protocol=result.protocol.as_dict(),
        inputs=tuple(inputs),
        table=Table(_DETECTIONS, tuple(detections)),
        notes=result.notes,
        blocks=(Block("image", title, data, table=Table(_TRUTHS, tuple(ground_truths))),),
    )


def _box(corners: Any) -> dict[str, float]:
    return dict(zip(CORNERS, corners.tolist(), strict=True))


_WHY = {
    "true-positive": "{near}, matched{by}",
    "ignored": "{near}, which is ignored{by}",
    "duplicate": "{near}, already matched{by}",
    "localization": "{near}, below {iou}{by}",
    "classification": "{near}, of another class{by}",
    "both": "{near}, below {iou}, and of another class{by}",
    "background": f"IoU below {NEAR:g} with every ground truth: {{near}}",
    "beyond-max-dets": "ranked beyond the maximum of {maximum} detections",
    "not-exhaustive": "unmatched; its class is not exhaustively annotated in this image",
    "outside-area-range": "unmatched; outside the area range",
    "unverified": "its class is not verified in this image",
    "zero-area": "zero area; dropped by the protocol",
}
_WHY_OF_TRUTH = {
    "matched": "matched by detection {}",
    "near-miss": "near miss: detection {}",
    "missed": "no matching or near-miss detection",
    "ignored": "ignored",
    "outside-area-range": "outside the area range",
}

_DETECTIONS = (
    Column("name", "detection", "det", "name"),
    *columns_of("name", "class"),
    *columns_of("fraction", "score"),
    *columns_of("text", "result"),
    *columns_of("fraction", iou="IoU"),
    *columns_of("count", "ground_truth", "matched_by"),
    *columns_of("text", "why", priority=1),
)
_TRUTHS = (
    Column("name", "ground truth", "GT", "name"),
    *columns_of("name", "class"),
    *columns_of("text", "result", "why"),
)
