"""Compare metrics with pycocotools on the same boxes.

pycocotools reads x, y, w, h; a table keeps the values that metrics depend on: x, y, x + w, y + h
and w * h. `to_xywh` finds w and h that give these values exactly; boxes without any are counted.

Images, classes and annotations are numbered from 1, in their order. pycocotools counts a match with
annotation id 0 as no match. If the protocol does too, that annotation keeps its id. Otherwise
pycocotools runs a second time with id 0, to show its metrics of the unmodified file.
"""

import contextlib
import io
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools import mask

from detap import metrics
from detap.core.curves import mean_of_defined
from detap.decimals import format_distinct
from detap.display import Brief
from detap.errors import Note, UsageError
from detap.evaluation.overlaps.keypoints import sigmas_of
from detap.evaluation.results import Result
from detap.formats.xywh import to_xywh
from detap.protocols import PRESETS, Protocol
from detap.protocols.fields import compared_fields
from detap.tables.detection import Detections, Flags, Floats, GroundTruth

_FREE = frozenset(
    {
        "iou_thresholds",
        "iou_dtype",
        "recall_grid",
        "min_score",
        "area_ranges",
        "area_source",
        "max_dets",
        "class_agnostic",
        "annotation_id_zero",
        "detection_area",
        "sigmas",
    }
)
"""Protocol fields that pycocotools supports; all others must be those of the coco preset."""

_PRESETS = {"segm": "coco-segm", "keypoints": "coco-keypoints"}
"""The equivalent presets of IoU types other than boxes."""


@dataclass(frozen=True, slots=True, repr=False)
class CrossCheck(Brief):
    """Metrics of detap and pycocotools on the same boxes."""

    metrics: dict[str, tuple[float, float]]  # detap's and pycocotools' value by metric name
    arrays: dict[str, tuple[int, int, float]]  # number of values, that differ, largest difference
    inexact: int  # number of boxes without exact w and h
    reference: str  # pycocotools and its version
    notes: tuple[Note, ...]
    unmodified_file: dict[str, float] | None = None  # with annotation id 0, if they differ

    @property
    def differences(self) -> dict[str, float]:
        """Difference of each metric; infinite if one value is undefined."""
        return {name: difference(*pair) for name, pair in self.metrics.items()}

    @property
    def largest(self) -> float:
        """Largest difference of any metric or array value; infinite if one of two is undefined."""
        return max(
            [*self.differences.values(), *(worst for _, _, worst in self.arrays.values())],
            default=0.0,
        )

    @property
    def equal(self) -> bool:
        """True if all values are bitwise equal."""
        return self.largest == 0.0

    @property
    def conclusion(self) -> str:
        """The result in a sentence."""
        value_count = sum(count for count, _, _ in self.arrays.values())
        same = f"the same {len(self.metrics)} metrics and {value_count} precisions and recalls"
        if self.equal and self.unmodified_file is not None:
            return (
                f"{self.reference} gives other values on the unmodified file, {self._other()}: "
                f"{ZERO}, as --protocol coco-strict does; with annotations numbered from 1 it "
                f"gives {same}"
            )
        if self.equal:
            return f"{self.reference} gives {same}, to the last bit"
        differing = sum(count for _, count, _ in self.arrays.values())
        return (
            f"{self.reference} differs: {differing} of {value_count} precisions and recalls, "
            f"by {self.largest:.6g} at most"
        )

    def _other(self) -> str:
        """Return the first metric that differs on the unmodified file, with both values."""
        for name, theirs in (self.unmodified_file or {}).items():
            ours, _ = self.metrics[name]
            if difference(ours, theirs):
                return "{name} {} instead of {}".format(*format_distinct(theirs, ours), name=name)
        return "only in single precisions or recalls"


ZERO = "it counts a match with annotation id 0 as no match"  # behavior of pycocotools


def check_supported(protocol: Protocol) -> None:
    """Raise UsageError if pycocotools does not support the protocol."""
    preset = PRESETS[_PRESETS.get(protocol.iou_type, "coco")]
    unsupported = [
        field.name.replace("_", "-")
        for field in compared_fields(Protocol)
        if field.name not in _FREE and getattr(protocol, field.name) != getattr(preset, field.name)
    ]
    if protocol.relative_areas:
        unsupported.append("area-ranges in percent")
    if unsupported:
        raise UsageError(
            f"--cross-check: pycocotools does not support protocol {protocol.name} "
            f"({', '.join(unsupported)}); it supports coco with other IoU thresholds, recall "
            "levels, max dets, area ranges, area source or minimum score, or class-agnostic"
        )


def cross_check(result: Result) -> CrossCheck:
    """Evaluate the boxes of a result with pycocotools and compare all metrics."""
    protocol, truth = result.protocol, result.ground_truth
    check_supported(protocol)
    reference, inexact = _reference(
        result, truth.zero_id & (protocol.annotation_id_zero == "unmatched")
    )
    numbers = _numbers(result, reference)
    arrays = {
        name: _compare(ours, _undefined(reference[name]))
        for name, ours in (("precision", result.full_precision()), ("recall", result.recall))
    }
    message = (
        "boxes have no width and height that give corners and area exactly; pycocotools gets the "
        "nearest"
    )
    notes = (Note("cross-check-inexact", message, inexact, severity="info"),) if inexact else ()
    check = CrossCheck(
        {name: (result.summary[name], value) for name, value in numbers.items()},
        arrays,
        inexact,
        f"pycocotools {version('pycocotools')}",
        notes,
    )
    if protocol.annotation_id_zero == "unmatched" or not truth.zero_id.any():
        return check
    with_zero, _ = _reference(result, truth.zero_id)
    if all(_compare(reference[name], with_zero[name])[1] == 0 for name in arrays):
        return check
    check = replace(check, unmodified_file=_numbers(result, with_zero))
    note = Note("cross-check-renumbered", check.conclusion)
    return replace(check, notes=(note, *check.notes))


def _numbers(result: Result, reference: dict[str, Any]) -> dict[str, float]:
    """Return the summary metrics of pycocotools' accumulated arrays."""
    values = {name: _undefined(reference[name]) for name in ("precision", "recall")}
    means = {}
    for spec in metrics.summary(result.protocol):
        if spec.metric.accumulated is not None:
            # As pycocotools' summarize, for any area and max dets.
            table = values[spec.metric.accumulated][spec.thresholds]
            means[spec.name] = mean_of_defined(table[..., [spec.area], [spec.max_dets_index]])
    return means


def difference(ours: float, theirs: float) -> float:
    """Return the difference of two values: 0 if both are undefined, infinite if one is."""
    gap = _gaps(np.array([ours]), np.array([theirs]))
    return float(gap[0])


def _gaps(ours: Floats, theirs: Floats) -> Floats:
    either = np.isnan(ours) | np.isnan(theirs)
    both = np.isnan(ours) & np.isnan(theirs)
    gaps: Floats = np.where(either, np.where(both, 0.0, np.inf), np.abs(ours - theirs))
    return gaps


def _compare(ours: Floats, theirs: Floats) -> tuple[int, int, float]:
    if ours.shape != theirs.shape:
        raise AssertionError(f"arrays have shapes {ours.shape} and {theirs.shape}")
    gaps = _gaps(ours, theirs)
    return gaps.size, int(np.count_nonzero(gaps)), float(gaps.max(initial=0.0))


def _undefined(values: Floats) -> Floats:
    return np.where(values == -1, np.nan, values)


def _reference(result: Result, zero: Flags) -> tuple[dict[str, Any], int]:
    """Return pycocotools' accumulated arrays and the number of inexact boxes."""
    # Not at the top: the drop-in may take these names.
    from pycocotools import coco, cocoeval  # noqa: PLC0415

    if cocoeval.COCOeval.__module__.startswith("detap."):
        raise UsageError(
            "--cross-check: detap replaces pycocotools in this process (install); "
            "run the cross-check in another process, as the command does"
        )
    ground_truth, detections = result.ground_truth, result.detections
    truth_boxes, truth_exact = to_xywh(ground_truth.corners, ground_truth.box_area)
    detection_boxes, detection_exact = to_xywh(detections.corners, detections.box_area)
    inexact = int(np.count_nonzero(~truth_exact) + np.count_nonzero(~detection_exact))
    areas = result._run.shapes.truth_areas()
    truth_records = _records(
        ground_truth, truth_boxes, area=areas, iscrowd=ground_truth.crowd.astype(int)
    )
    for row in np.flatnonzero(zero).tolist():
        truth_records[row]["id"] = 0
    detection_records = _records(
        detections, detection_boxes, area=result._run.boxes()[0].area, score=detections.score
    )
    add_shapes = {"segm": _put_masks, "keypoints": _put_keypoints}.get(result.protocol.iou_type)
    if add_shapes is not None:
        add_shapes(ground_truth, truth_records)
        add_shapes(detections, detection_records)
        inexact = 0
    with contextlib.redirect_stdout(io.StringIO()):
        evaluation = cocoeval.COCOeval(
            _fill(coco.COCO(), ground_truth, detections, truth_records),
            _fill(coco.COCO(), ground_truth, detections, detection_records),
            result.protocol.iou_type,
        )
        _set_parameters(evaluation.params, result)
        evaluation.evaluate()
        evaluation.accumulate()
    return evaluation.eval, inexact


def _put_masks(table: GroundTruth | Detections, records: list[dict[str, Any]]) -> None:
    """Add masks to records: polygons unchanged, runs compressed."""
    masks = table.masks
    assert masks is not None
    assert table.mask is not None
    for record, number in zip(records, table.mask.tolist(), strict=True):
        size = masks.sizes[number].tolist()
        runs = masks.runs[slice(*masks.run_start[number : number + 2].tolist())]
        rings = [ring.ravel().tolist() for ring in masks.rings_of(number)]
        record["segmentation"] = rings or mask.frPyObjects(
            {"size": size, "counts": runs.tolist()}, *size
        )


def _put_keypoints(table: GroundTruth | Detections, records: list[dict[str, Any]]) -> None:
    """Add keypoints to records, and the boxes as read."""
    keypoints = table.keypoints
    assert keypoints is not None
    if isinstance(table, Detections):
        keypoints = np.dstack([keypoints, np.ones(keypoints.shape[:2])])
    for record, values in zip(records, keypoints.reshape(len(keypoints), -1).tolist(), strict=True):
        record["keypoints"] = values
    if isinstance(table, GroundTruth):
        assert table.width_height is not None
        assert table.no_keypoints is not None
        rows = zip(records, table.width_height.tolist(), table.no_keypoints.tolist(), strict=True)
        for record, size, no_keypoints in rows:
            record["bbox"][2:] = size
            record["num_keypoints"] = int(not no_keypoints)


def _records(
    table: GroundTruth | Detections, boxes: Floats, **columns: NDArray[Any]
) -> list[dict[str, Any]]:
    values: dict[str, NDArray[Any]] = {
        "image_id": table.image + 1,
        "category_id": table.label + 1,
        "bbox": boxes,
        **columns,
    }
    rows = zip(*(column.tolist() for column in values.values()), strict=True)
    return [{"id": n, **dict(zip(values, row, strict=True))} for n, row in enumerate(rows, 1)]


def _fill(
    coco: Any, ground_truth: GroundTruth, detections: Detections, records: list[dict[str, Any]]
) -> Any:
    """Fill a COCO object with records."""
    sizes = np.zeros((len(ground_truth.images), 2), np.int32)  # height and width, as of masks
    for table in (ground_truth, detections):
        if table.masks is not None:
            sizes[table.image] = table.masks.sizes[table.mask]
    # Not COCO.loadRes, which fails on an empty list.
    coco.dataset = {
        "images": [
            {"id": number, "height": height, "width": width}
            for number, (height, width) in enumerate(sizes.tolist(), 1)
        ],
        "categories": [{"id": number} for number in range(1, len(detections.classes) + 1)],
        "annotations": records,
    }
    coco.createIndex()
    return coco


def _set_parameters(parameters: Any, result: Result) -> None:
    protocol = result.protocol
    no_limit = max(1, len(result.detections))  # pycocotools requires a limit
    parameters.iouThrs = np.array(protocol.search_thresholds)
    parameters.recThrs = np.array(protocol.recall_levels)
    parameters.areaRng = [[area_range.low, area_range.high] for area_range in protocol.area_ranges]
    parameters.areaRngLbl = [area_range.name for area_range in protocol.area_ranges]
    parameters.maxDets = [no_limit if limit is None else limit for limit in protocol.max_dets]
    parameters.useCats = int(not protocol.class_agnostic)
    if protocol.iou_type == "keypoints":
        parameters.kpt_oks_sigmas = np.array(sigmas_of(protocol, result.ground_truth))
