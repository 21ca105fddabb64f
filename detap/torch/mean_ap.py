"""Drop-in replacement for torchmetrics' mean average precision.

Boxes and masks are those that torchmetrics passes to pycocotools; IoU thresholds and recall levels
are rounded to float32 as there. Metrics are equal as float32, except for errors of torchmetrics:

- Metrics at the largest of the maximum detections are defined; pycocotools returns -1 unless it
  is 100.
- Boxes in half precision are converted to float32 before width and height are computed.
- Images that a sampler repeats count once if they are named (`image_key`).
- If only masks are compared, detections on an image without ground truth count.
- With class metrics and two IoU types, `average` applies to both types.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import accumulate, pairwise
from math import isnan, nan
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from detap.errors import UsageError
from detap.evaluation.loop.batches import BOX_FORMATS
from detap.evaluation.loop.evaluator import Evaluator
from detap.evaluation.partial import merge
from detap.evaluation.results import Result
from detap.protocols import PRESETS, Protocol
from detap.protocols.fields import RECALL_GRIDS
from detap.tables.columns import Columns, as_array
from detap.tables.masks import Masks
from detap.tables.shapes import KINDS

try:
    import torch
    from torch import Tensor
except ImportError as error:  # pragma: no cover - tested where torch is absent
    raise ImportError(
        "detap.torch needs PyTorch: pip install 'detap[torch]', or torch by itself"
    ) from error

_AVERAGES = ("macro", "micro")
_AREAS = ("small", "medium", "large")
_TYPES = ("bbox", "segm")
_OF_MASKS: dict[str, Any] = {"iou_type": "segm", "detection_area": "pixels"}

Items = Sequence[Mapping[str, Tensor]]
"""The predictions or targets of a batch, a mapping per image."""


class MeanAveragePrecision:
    """Mean average precision and recall, compatible with ``torchmetrics.detection``.

    >>> metric = MeanAveragePrecision(class_metrics=True)
    >>> metric.update(preds, target)    # lists of dicts of tensors, one for each image
    >>> metric.compute()["map"]

    Parameters
    ----------
    box_format : {"xyxy", "xywh", "cxcywh"}
        Format of the boxes, in pixels.
    iou_type : {"bbox", "segm"}, or a tuple of both
        IoU of boxes or masks. With both, keys start with ``bbox_`` and ``segm_``.
    iou_thresholds : list of float, optional
        IoU thresholds; by default 0.5, 0.55, ..., 0.95 as float32.
    rec_thresholds : list of float, optional
        Recall levels; by default 0, 0.01, ..., 1 as float32. The only others accepted are
        ``numpy.linspace(0, 1, 101).tolist()`` and ``[i / 100 for i in range(101)]``.
    max_detection_thresholds : list of int, optional
        Maximum detections per image and class; by default 1, 10, 100.
    class_metrics : bool
        If True, compute ``map_per_class`` and ``mar_100_per_class``; otherwise they are -1.
    extended_summary : bool
        Must be False; :meth:`result` has the precision and recall arrays.
    average : {"macro", "micro"}
        Mean over classes, or metrics of all classes as one.
    backend : str, optional
        Accepted as in torchmetrics, without effect.
    sync_on_compute : bool
        If True, :meth:`compute` gathers the updates of all processes.
    process_group : torch.distributed.ProcessGroup, optional
        The processes to gather from; all by default.
    image_key : str, optional
        Key of the image name in a target, such as ``"image_id"``. Images that a sampler repeats
        then count once, in one process and over all. Without it each item of a batch is another
        image, as in torchmetrics.

    Raises
    ------
    UsageError
        If an argument is invalid.
    """

    def __init__(  # noqa: PLR0917 - the order is torchmetrics'
        self,
        box_format: Literal["xyxy", "xywh", "cxcywh"] = "xyxy",
        iou_type: str | tuple[str, ...] = "bbox",
        iou_thresholds: Sequence[float] | None = None,
        rec_thresholds: Sequence[float] | None = None,
        max_detection_thresholds: Sequence[int] | None = None,
        class_metrics: bool = False,
        extended_summary: bool = False,
        average: Literal["macro", "micro"] = "macro",
        backend: str | None = None,
        *,
        sync_on_compute: bool = True,
        process_group: Any = None,
        image_key: str | None = None,
    ) -> None:
        del backend
        if box_format not in BOX_FORMATS:
            accepted = ", ".join(BOX_FORMATS)
            raise UsageError(f"box_format {box_format!r} is unknown; choose from {accepted}")
        types = (iou_type,) if isinstance(iou_type, str) else tuple(iou_type)
        if not types or len(set(types)) < len(types) or not set(types) <= set(_TYPES):
            raise UsageError(f"iou_type {iou_type!r} is unknown; choose from bbox, segm, or both")
        if average not in _AVERAGES:
            raise UsageError(f"average {average!r} is unknown; choose from macro, micro")
        if extended_summary:
            raise UsageError(
                "extended_summary: precision and recall as arrays are in result().full_precision() "
                "and result().recall"
            )
        self.box_format = box_format
        self.class_metrics = class_metrics
        self.average = average
        self.sync_on_compute = sync_on_compute
        self.process_group = process_group
        self.image_key = image_key
        self.device = torch.device("cpu")
        self.iou_type = types
        self._protocol = _protocol(iou_thresholds, rec_thresholds, max_detection_thresholds)
        self._count = 0
        self._by_class = self._new_evaluators()
        self._agnostic = self._new_evaluators()

    def __repr__(self) -> str:
        return f"MeanAveragePrecision(iou_type={self.iou_type!r})"

    def reset(self) -> None:
        """Remove all updates."""
        self._count = 0
        for evaluator in (*self._by_class.values(), *self._agnostic.values()):
            evaluator.reset()

    def _new_evaluators(self) -> dict[str, Evaluator]:
        """Return an empty evaluator per IoU type."""
        repeats: Any = "error" if self.image_key is None else "identical"
        protocols = {"bbox": self._protocol, "segm": replace(self._protocol, **_OF_MASKS)}
        return {
            iou_type: Evaluator(
                protocol=protocols[iou_type], boxes="xywh", repeats=repeats, as_is=True
            )
            for iou_type in self.iou_type
        }

    def to(self, device: Any) -> Self:
        """Set the device of the tensors that :meth:`compute` returns."""
        self.device = torch.device(device)
        return self

    def update(self, preds: Items, target: Items) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : sequence of B mappings
            For each image ``scores`` (n,), ``labels`` (n,), and by `iou_type` ``boxes`` (n, 4) in
            `box_format`, ``masks`` (n, H, W) of bool or uint8, or both.
        target : sequence of B mappings
            The same without ``scores``; optional ``iscrowd`` (n,) and ``area`` (n,) in square
            pixels. A missing or zero area is that of the mask if masks are compared, else that of
            the box.

        Raises
        ------
        UsageError
            If a tensor is missing, or `preds` and `target` differ in length.
        InputError
            As :meth:`detap.Evaluator.update`.
        """
        if len(preds) != len(target):
            raise UsageError(
                f"preds has {len(preds)} images, target has {len(target)}; they must be equal"
            )
        shape_keys = [{"bbox": "boxes", "segm": "masks"}[iou_type] for iou_type in self.iou_type]
        _check_items("preds", preds, (*shape_keys, "scores", "labels"))
        _check_items("target", target, (*shape_keys, "labels"))
        images = self._image_names(target)
        scores, labels = _column(preds, "scores"), _column(preds, "labels")
        detections = self._convert("detections", images, preds)
        ground_truths = self._convert("ground truth", images, target)
        annotations = {
            "labels": _column(target, "labels"),
            "area": _areas(target, ground_truths.get("segm"), ground_truths.get("bbox")),
            "crowd": _crowds(target),
        }
        self._update(
            self._by_class, images, (detections, scores, labels), ground_truths, annotations
        )
        if self.average == "micro":
            annotations["labels"] = [np.zeros_like(label) for label in annotations["labels"]]
            zeros = [np.zeros_like(label) for label in labels]
            self._update(
                self._agnostic, images, (detections, scores, zeros), ground_truths, annotations
            )

    def _convert(self, table: str, images: list[Any], items: Items) -> dict[str, list[Any]]:
        """Return the boxes (x, y, width, height) and masks of each item, by IoU type."""
        shapes: dict[str, list[Any]] = {}
        if "bbox" in self.iou_type:
            shapes["bbox"] = _boxes(items, self.box_format)
        if "segm" in self.iou_type:
            shapes["segm"] = _masks(table, images, items)
        return shapes

    @staticmethod
    def _update(
        evaluators: Mapping[str, Evaluator],
        images: list[Any],
        preds: tuple[dict[str, list[Any]], list[Any], list[Any]],
        ground_truths: dict[str, list[Any]],
        annotations: dict[str, list[Any]],
    ) -> None:
        """Update the evaluator of each IoU type.

        An invalid batch is rejected by the first evaluator, before the second is updated.
        """
        detections, scores, labels = preds
        for iou_type, evaluator in evaluators.items():
            of_boxes = iou_type == "bbox"
            boxes, masks = (
                (detections[iou_type], None) if of_boxes else (None, detections[iou_type])
            )
            ground_truth = annotations | {"boxes" if of_boxes else "masks": ground_truths[iou_type]}
            evaluator.update(images, boxes, scores, labels, masks=masks, ground_truth=ground_truth)

    def _image_names(self, target: Items) -> list[Any]:
        """Return the image names by `image_key`, else numbers that no other process uses."""
        if self.image_key is not None:
            for index, item in enumerate(target):
                if self.image_key not in item:
                    raise UsageError(f"target {index} has no image_key {self.image_key!r}")
            names = [item[self.image_key] for item in target]
            return [name.item() if isinstance(name, Tensor) else name for name in names]
        first, self._count = self._count, self._count + len(target)
        rank, ranks = self._rank_and_world_size()
        return [number * ranks + rank for number in range(first, self._count)]

    def _rank_and_world_size(self) -> tuple[int, int]:
        """Return the rank of this process and the number of processes; 0 and 1 without sync."""
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        if not (self.sync_on_compute and distributed):
            return 0, 1
        group = self.process_group
        return torch.distributed.get_rank(group), torch.distributed.get_world_size(group)

    def __call__(self, preds: Items, target: Items) -> dict[str, Tensor]:
        """Add a batch and return its metrics, of this process only."""
        batch_metric = copy(self)
        batch_metric.sync_on_compute = False
        batch_metric._by_class = self._new_evaluators()
        batch_metric._agnostic = self._new_evaluators()
        batch_metric.update(preds, target)
        self.update(preds, target)
        return batch_metric.compute()

    def compute(self) -> dict[str, Tensor]:
        """Return the metrics by torchmetrics' names, -1 if undefined.

        With a process group every process must call this method: ``all_gather_object`` gathers the
        updates, and each process returns the metrics of all.
        """
        values: dict[str, Tensor] = {}
        ids: Any = ()
        for iou_type in self.iou_type:
            by_class = self._gather_result(self._by_class[iou_type])
            micro = self.average == "micro"
            result = self._gather_result(self._agnostic[iou_type]) if micro else by_class
            prefix = f"{iou_type}_" if len(self.iou_type) > 1 else ""
            metrics = self._metrics(result, by_class)
            values |= {prefix + key: value for key, value in metrics.items()}
            ids = () if by_class is None else by_class.class_ids
        return values | {"classes": self._tensor(ids, torch.int32)}

    def _metrics(self, result: Result | None, by_class: Result | None) -> dict[str, Tensor]:
        """Return the metrics of one IoU type by torchmetrics' names."""
        max_dets = self._protocol.max_dets[-1]
        names = {"map": "AP", "map_50": "AP50", "map_75": "AP75"}
        names |= {f"map_{area}": f"AP{area[0]}" for area in _AREAS}
        names |= {f"mar_{limit}": f"AR{limit}" for limit in self._protocol.max_dets}
        names |= {f"mar_{area}": f"AR{area[0]}" for area in _AREAS}
        summary = {} if result is None else result.summary
        values = {key: self._tensor([summary.get(name, nan)]) for key, name in names.items()}
        for key, name in (("map_per_class", "AP"), (f"mar_{max_dets}_per_class", f"AR{max_dets}")):
            given = None if by_class is None or not self.class_metrics else by_class.by_class
            values[key] = self._tensor([nan] if given is None else given[name].tolist())
        return values

    def result(self, iou_type: str | None = None) -> Result | None:
        """Return the full result of all updates and processes; None without images.

        Every process must call this method, as for :meth:`compute`.

        Parameters
        ----------
        iou_type : {"bbox", "segm"}, optional
            One of the metric's IoU types; by default the first.

        Raises
        ------
        UsageError
            If the metric does not have this IoU type.
        """
        selected = self.iou_type[0] if iou_type is None else iou_type
        if selected not in self.iou_type:
            raise UsageError(
                f"iou_type {selected!r} is not computed; choose from {', '.join(self.iou_type)}"
            )
        return self._gather_result(
            (self._agnostic if self.average == "micro" else self._by_class)[selected]
        )

    def _gather_result(self, evaluator: Evaluator) -> Result | None:
        """Return the result of the updates of all processes; None without images."""
        _, ranks = self._rank_and_world_size()
        if ranks == 1:
            return evaluator.compute() if evaluator.seen else None
        blobs: list[Any] = [None] * ranks
        torch.distributed.all_gather_object(blobs, evaluator.to_bytes(), self.process_group)
        merged = merge(blobs, repeats="identical")
        return merged.compute() if merged.images else None

    def _tensor(self, values: Sequence[float], dtype: torch.dtype = torch.float32) -> Tensor:
        """Return values as a tensor, undefined ones as -1; a single value as a scalar."""
        defined = [-1 if isnan(value) else value for value in values]
        tensor = torch.tensor(defined, dtype=dtype, device=self.device)
        return tensor[0] if len(defined) == 1 else tensor


def _protocol(
    iou_thresholds: Sequence[float] | None,
    rec_thresholds: Sequence[float] | None,
    max_dets: Sequence[int] | None,
) -> Protocol:
    """Return the preset ``torchmetrics`` with the given settings.

    Raises
    ------
    UsageError
        If the recall levels are not those of a recall grid.
    """
    requested = RECALL_GRIDS["float32"] if rec_thresholds is None else tuple(rec_thresholds)
    grid_names: list[Any] = [name for name, levels in RECALL_GRIDS.items() if len(levels) == 101]
    grids = [name for name in grid_names if RECALL_GRIDS[name] == requested]
    if not grids:
        accepted = ", ".join(grid_names)
        raise UsageError(
            f"rec_thresholds are not the 101 levels of a recall grid; choose from {accepted}"
        )
    changes: dict[str, Any] = {"recall_grid": grids[0]}
    if iou_thresholds is not None:
        changes |= {"iou_thresholds": tuple(iou_thresholds), "iou_dtype": "float64"}
    if max_dets is not None:
        changes["max_dets"] = tuple(sorted(max_dets))
    return replace(PRESETS["torchmetrics"], **changes)


def _check_items(argument: str, items: Items, keys: Sequence[str]) -> None:
    """Raise UsageError if items lack a tensor or boxes have an invalid shape."""
    for index, item in enumerate(items):
        for key in keys:
            if not isinstance(item.get(key), Tensor):
                raise UsageError(
                    f"{argument} {index} has no tensor {key!r}; give {', '.join(keys)}"
                )
        boxes = item["boxes"] if "boxes" in keys else torch.zeros(0)
        if boxes.numel() and boxes.shape[1:] != (4,):
            raise UsageError(
                f"{argument} {index}: boxes has shape {tuple(boxes.shape)}; expected (n, 4)"
            )


def _column(items: Items, key: str) -> list[NDArray[Any]]:
    """Return one tensor of each item as an array, in a single transfer from the device."""
    return _split_by_item(torch.cat([item[key] for item in items]), items, key) if items else []


def _boxes(items: Items, box_format: str) -> list[NDArray[Any]]:
    """Return the boxes of each item as x, y, width, height."""
    if not items:
        return []
    boxes = torch.cat([item["boxes"] for item in items])
    if not boxes.numel():
        boxes = boxes.reshape(-1, 4)
    return _split_by_item(_as_xywh(boxes, box_format), items, "boxes")


def _split_by_item(concatenated: Tensor, items: Items, key: str) -> list[NDArray[Any]]:
    """Split a concatenated tensor by item."""
    column = as_array(concatenated)
    ends = [*accumulate(len(item[key]) for item in items)]
    return [column[start:end] for start, end in pairwise([0, *ends])]


def _as_xywh(boxes: Tensor, box_format: str) -> Tensor:
    """Convert boxes to x, y, width, height like torchvision's ``box_convert``."""
    if boxes.dtype in (torch.float16, torch.bfloat16):
        boxes = boxes.float()
    if box_format == "xywh":
        return boxes
    first, second = boxes[:, :2], boxes[:, 2:]
    if box_format == "cxcywh":
        first, second = first - 0.5 * second, first + 0.5 * second
    return torch.cat([first, second - first], 1)


def _masks(table: str, images: list[Any], items: Items) -> list[Masks]:
    """Return the masks of each item; `table` is the name used in error messages."""
    masks = []
    for name, item in zip(images, items, strict=True):
        columns = Columns(table)
        columns.whole = f"image {name!r}"
        masks.append(KINDS["masks"].read(columns, item["masks"], None))
    return masks


def _areas(
    items: Items, masks: Sequence[Masks] | None, boxes: Sequence[NDArray[Any]] | None
) -> list[NDArray[np.float64]]:
    """Return the areas of the ground truths; missing and zero ones are those of mask or box."""
    if masks is not None:
        areas = [mask.measured()[0] for mask in masks]
    else:
        width_height = [box[:, 2:].astype(np.float64) for box in boxes or ()]
        areas = [size[:, 0] * size[:, 1] for size in width_height]
    for index, item in enumerate(items):
        if "area" in item:
            given = as_array(item["area"]).astype(np.float64)
            areas[index] = np.where(given > 0, given, areas[index])
    return areas


def _crowds(items: Items) -> list[NDArray[np.bool_]]:
    """Return the crowd flags of the ground truths; missing ones are False."""
    return [
        as_array(item["iscrowd"]) != 0 if "iscrowd" in item else np.zeros(len(item["labels"]), bool)
        for item in items
    ]
