"""Drop-in for torchmetrics' mean average precision.

torchmetrics hands the same boxes and masks to pycocotools, with thresholds and recall levels
rounded to float32; so does this, and its numbers are equal, those of one float32. Some things
differ, because they are slips there: the numbers at the largest limit exist whatever that is
(pycocotools gives -1 for any but 100), half precision is widened before a width is taken, images
that a sampler repeats can be named, and count once (`image_key`), what is found on an image
without any object counts where masks are scored alone, and with class metrics the second of two
types is averaged as the first.
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


class MeanAveragePrecision:
    """Mean average precision and recall, compatible with ``torchmetrics.detection``.

    >>> metric = MeanAveragePrecision(class_metrics=True)
    >>> metric.update(preds, target)    # lists of dicts of tensors, one for each image
    >>> metric.compute()["map"]

    Parameters
    ----------
    box_format : {"xyxy", "xywh", "cxcywh"}
    iou_type : {"bbox", "segm"}, or a tuple of both
        The compared shapes; with both, keys start with ``bbox_`` and ``segm_``.
    iou_thresholds : list of float, optional
        By default 0.5, 0.55, ..., 0.95 as float32.
    rec_thresholds : list of float, optional
        By default 0, 0.01, ..., 1 as float32; ``numpy.linspace(0, 1, 101).tolist()`` and the
        hundredths themselves will do too.
    max_detection_thresholds : list of int, optional
        By default 1, 10, 100.
    class_metrics : bool
        If True, compute ``map_per_class`` and ``mar_100_per_class``; otherwise they are -1.
    extended_summary : bool
        False; what it adds is in :meth:`result`.
    average : {"macro", "micro"}
        Classes apart, or all as one.
    backend : str, optional
        As torchmetrics has it; it changes nothing.
    sync_on_compute : bool
        If True, :meth:`compute` gathers the updates of all processes.
    process_group : torch.distributed.ProcessGroup, optional
        The processes to gather from; all by default.
    image_key : str, optional
        The entry of a target that names its image, such as ``"image_id"``. Images that come again
        with equal rows, as samplers pad with, then count once, in one process and over all. Without
        it every image that comes is another, as in torchmetrics.

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

    def reset(self) -> None:
        """Remove all updates."""
        self._count = 0
        for evaluator in (*self._by_class.values(), *self._agnostic.values()):
            evaluator.reset()

    def _new_evaluators(self) -> dict[str, Evaluator]:
        """Return an evaluator of each type."""
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
            ``boxes`` (n, 4) in `box_format`, or ``masks`` (n, H, W) of bool or uint8, or both, as
            they are compared, ``scores`` (n,) and ``labels`` (n,) of each image.
        target : sequence of B mappings
            The same without scores; ``iscrowd`` and ``area`` where they are known, an area of 0
            being the mask's where masks are compared, else the box's.

        Raises
        ------
        UsageError
            If a key is missing, or there are more of the one than of the other.
        InputError
            As :meth:`detap.Evaluator.update`.
        """
        if len(preds) != len(target):
            raise UsageError(f"preds are {len(preds)} images, target {len(target)}")
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
        """Return the boxes of each item as x, y, width, height, and its masks."""
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
        """Update the evaluator of each type; the first reports invalid batches."""
        detections, scores, labels = preds
        for iou_type, evaluator in evaluators.items():
            of_boxes = iou_type == "bbox"
            boxes, masks = (
                (detections[iou_type], None) if of_boxes else (None, detections[iou_type])
            )
            ground_truth = annotations | {"boxes" if of_boxes else "masks": ground_truths[iou_type]}
            evaluator.update(images, boxes, scores, labels, masks=masks, ground_truth=ground_truth)

    def _image_names(self, target: Items) -> list[Any]:
        """Return unique image names, by `image_key` or interleaved by rank."""
        if self.image_key is not None:
            for index, item in enumerate(target):
                if self.image_key not in item:
                    raise UsageError(
                        f"target {index} has no {self.image_key!r}, which names its image"
                    )
            names = [item[self.image_key] for item in target]
            return [name.item() if isinstance(name, Tensor) else name for name in names]
        first, self._count = self._count, self._count + len(target)
        rank, ranks = self._rank_and_world_size()
        return [number * ranks + rank for number in range(first, self._count)]

    def _rank_and_world_size(self) -> tuple[int, int]:
        """Return the rank of this process and the number of processes."""
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        if not (self.sync_on_compute and distributed):
            return 0, 1
        group = self.process_group
        return torch.distributed.get_rank(group), torch.distributed.get_world_size(group)

    def __call__(self, preds: Items, target: Items) -> dict[str, Tensor]:
        """Add a batch and return its metrics, in this process only."""
        alone = copy(self)
        alone.sync_on_compute = False
        alone._by_class, alone._agnostic = self._new_evaluators(), self._new_evaluators()
        alone.update(preds, target)
        self.update(preds, target)
        return alone.compute()

    def compute(self) -> dict[str, Tensor]:
        """Return the metrics by torchmetrics' names, -1 if undefined.

        Where a process group is there, what each process has seen is gathered by
        ``all_gather_object``, and each returns the numbers of all: every process has to call.
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
        """Return the metrics of one type by name."""
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
        """Return the full result of all updates and processes.

        None where no image came. Every process has to call, as for :meth:`compute`.

        Parameters
        ----------
        iou_type : {"bbox", "segm"}, optional
            The type, if both are compared; by default the first.

        Raises
        ------
        UsageError
            If it is not compared.
        """
        kind = self.iou_type[0] if iou_type is None else iou_type
        if kind not in self.iou_type:
            raise UsageError(f"iou_type {kind!r} is not compared; {', '.join(self.iou_type)} is")
        return self._gather_result(
            (self._agnostic if self.average == "micro" else self._by_class)[kind]
        )

    def _gather_result(self, evaluator: Evaluator) -> Result | None:
        _, ranks = self._rank_and_world_size()
        if ranks == 1:
            return evaluator.compute() if evaluator.seen else None
        blobs: list[Any] = [None] * ranks
        torch.distributed.all_gather_object(blobs, evaluator.to_bytes(), self.process_group)
        merged = merge(blobs, repeats="identical")
        return merged.compute() if merged.images else None

    def _tensor(self, values: Sequence[float], dtype: torch.dtype = torch.float32) -> Tensor:
        """Return a tensor as torchmetrics does: scalar if single, -1 if undefined."""
        defined = [-1 if isnan(value) else value for value in values]
        tensor = torch.tensor(defined, dtype=dtype, device=self.device)
        return tensor[0] if len(defined) == 1 else tensor


def _protocol(
    iou_thresholds: Sequence[float] | None,
    rec_thresholds: Sequence[float] | None,
    max_dets: Sequence[int] | None,
) -> Protocol:
    """Return torchmetrics' protocol with the given settings."""
    levels_requested = RECALL_GRIDS["float32"] if rec_thresholds is None else tuple(rec_thresholds)
    grid_names: list[Any] = [name for name, levels in RECALL_GRIDS.items() if len(levels) == 101]
    grids = [name for name in grid_names if RECALL_GRIDS[name] == levels_requested]
    if not grids:
        accepted = ", ".join(grid_names)
        raise UsageError(f"rec_thresholds are none of the 101 levels that are known: {accepted}")
    changes: dict[str, Any] = {"recall_grid": grids[0]}
    if iou_thresholds is not None:
        changes |= {"iou_thresholds": tuple(iou_thresholds), "iou_dtype": "float64"}
    if max_dets is not None:
        changes["max_dets"] = tuple(sorted(max_dets))
    return replace(PRESETS["torchmetrics"], **changes)


def _check_items(argument: str, items: Items, keys: Sequence[str]) -> None:
    """Raise UsageError if items lack a tensor or boxes have a wrong shape."""
    for index, item in enumerate(items):
        for key in keys:
            if not isinstance(item.get(key), Tensor):
                raise UsageError(
                    f"{argument} {index} has no tensor {key!r}; give {', '.join(keys)}"
                )
        boxes = item["boxes"] if "boxes" in keys else torch.zeros(0)
        if boxes.numel() and boxes.shape[1:] != (4,):
            raise UsageError(
                f"{argument} {index}: boxes have the shape {tuple(boxes.shape)}; give (n, 4)"
            )


def _column(items: Items, key: str) -> list[NDArray[Any]]:
    """Return an entry of each item, transferred at once."""
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
    """Return the masks of each item."""
    masks = []
    for name, item in zip(images, items, strict=True):
        columns = Columns(table)
        columns.whole = f"image {name!r}"
        masks.append(KINDS["masks"].read(columns, item["masks"], None))
    return masks


def _areas(
    items: Items, masks: Sequence[Masks] | None, boxes: Sequence[NDArray[Any]] | None
) -> list[NDArray[np.float64]]:
    """Return ground truth areas; missing and 0 areas are those of the shape."""
    if masks is not None:
        areas = [mask.measured()[0] for mask in masks]
    else:
        width_height = [box[:, 2:].astype(np.float64) for box in boxes or ()]
        areas = [side[:, 0] * side[:, 1] for side in width_height]
    for index, item in enumerate(items):
        if "area" in item:
            given = as_array(item["area"]).astype(np.float64)
            areas[index] = np.where(given > 0, given, areas[index])
    return areas


def _crowds(items: Items) -> list[NDArray[np.bool_]]:
    """Return the crowd flags of ground truths, False if not given."""
    return [
        as_array(item["iscrowd"]) != 0 if "iscrowd" in item else np.zeros(len(item["labels"]), bool)
        for item in items
    ]
