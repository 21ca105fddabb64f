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
from contextlib import AbstractContextManager
from dataclasses import replace
from math import isnan, nan
from typing import Any, Literal

import numpy as np

from detap.errors import UsageError
from detap.evaluation.detection import Result
from detap.evaluation.loop.batches import BOX_FORMATS
from detap.evaluation.loop.evaluator import Evaluator
from detap.protocols import PRESETS, Protocol
from detap.protocols.fields import RECALL_GRIDS
from detap.report.writers.plots import plot_steps
from detap.tables.columns import as_array

try:
    import torch
    from torch import Tensor, distributed
except ImportError as error:  # pragma: no cover - tested where torch is absent
    raise ImportError(
        "detap.torch needs PyTorch: pip install 'detap[torch]', or torch by itself"
    ) from error

from detap.torch.metric import Metric
from detap.torch.states import (
    SHAPE_KEYS,
    Arrays,
    Items,
    areas_of,
    batch_columns,
    check_items,
    columns_of,
    decode_names,
    encode_names,
    joined,
    per_image,
    shapes_of,
)

_AREAS = ("small", "medium", "large")
_SIDES = ("preds", "target")


class MeanAveragePrecision(Metric):
    """Mean average precision and recall, compatible with ``torchmetrics.detection``.

    A ``torchmetrics.Metric`` if torchmetrics is installed; otherwise a class with ``forward``,
    ``reset``, ``to``, ``plot``, ``persistent``, ``state_dict`` and ``load_state_dict``. The states
    are the rows of all updates.

    >>> metric = MeanAveragePrecision(class_metrics=True)
    >>> metric.update(preds, target)    # lists of dicts of tensors, one for each image
    >>> metric.compute()["map"]

    Parameters
    ----------
    box_format : {"xyxy", "xywh", "cxcywh"}
        Format of the boxes, in pixels.
    iou_type : {"bbox", "segm", "keypoints"}, or a tuple of them
        IoU of boxes or masks, or OKS. With several, keys start with ``bbox_``, ``segm_`` and
        ``keypoints_``. OKS has the metrics of pycocotools: ``mar_20``, no small area.
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
    image_key : str, optional
        Key of the image name in a target, such as ``"image_id"``. Images that a sampler repeats
        then count once, in one process and over all. Without it each item of a batch is another
        image, as in torchmetrics.
    sigmas : sequence of float, optional
        OKS sigmas, one per keypoint; by default COCO's 17.
    **options
        Arguments of ``torchmetrics.Metric``. Without torchmetrics, `sync_on_compute` and
        `process_group`.

    Raises
    ------
    UsageError
        If an argument is invalid.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    image_names: list[Tensor]

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
        image_key: str | None = None,
        sigmas: Sequence[float] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        del backend
        if box_format not in BOX_FORMATS:
            accepted = ", ".join(BOX_FORMATS)
            raise UsageError(f"box_format {box_format!r} is unknown; choose from {accepted}")
        types = (iou_type,) if isinstance(iou_type, str) else tuple(iou_type)
        if not types or len(set(types)) < len(types) or not set(types) <= set(SHAPE_KEYS):
            accepted = ", ".join(SHAPE_KEYS)
            raise UsageError(
                f"iou_type {iou_type!r} is unknown; choose from {accepted}, or several"
            )
        if average not in ("macro", "micro"):
            raise UsageError(f"average {average!r} is unknown; choose from macro, micro")
        if extended_summary:
            raise UsageError(
                "extended_summary: precision and recall as arrays are in result().full_precision() "
                "and result().recall"
            )
        self.box_format = box_format
        self.class_metrics = class_metrics
        self.average = average
        self.image_key = image_key
        self.iou_type = types
        thresholds = iou_thresholds, rec_thresholds, max_detection_thresholds
        self._protocols = {name: _protocol(name, *thresholds, sigmas) for name in types}
        self.add_state("image_names", [], "cat")
        for side in _SIDES:
            for column in columns_of(side, types):
                self.add_state(f"{side}_{column}", [], "cat")

    def __repr__(self) -> str:
        return f"MeanAveragePrecision(iou_type={self.iou_type!r})"

    def update(self, preds: Items, target: Items) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : sequence of B mappings
            For each image ``scores`` (n,), ``labels`` (n,), and by `iou_type` ``boxes`` (n, 4) in
            `box_format`, ``masks`` (n, H, W) of bool or uint8, ``keypoints`` (n, K, 3).
        target : sequence of B mappings
            The same without ``scores``, and ``boxes`` with ``keypoints``; optional ``iscrowd`` (n,)
            and ``area`` (n,) in square pixels. A missing or zero area is that of the mask if masks
            are compared, else that of the box.

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
        check_items("preds", preds, self.iou_type)
        check_items("target", target, self.iou_type)
        names = self._image_names(target)
        if not names:
            return
        columns = {
            side: batch_columns(side, items, self.iou_type, self.box_format)
            for side, items in zip(_SIDES, (preds, target), strict=True)
        }
        # An invalid batch is refused before it is stored.
        images = [index if isinstance(name, tuple) else name for index, name in enumerate(names)]
        arrays = [{k: as_array(tensor) for k, tensor in columns[side].items()} for side in _SIDES]
        for iou_type in self.iou_type:
            self._evaluator(iou_type, images, *arrays)
        self.image_names.append(encode_names(names))
        for side, tensors in columns.items():
            for column, tensor in tensors.items():
                getattr(self, f"{side}_{column}").append(tensor)

    def _image_names(self, target: Items) -> list[Any]:
        """Return the image names by `image_key`, else pairs (rank, number of processes)."""
        if self.image_key is None:
            there = self._to_sync and distributed.is_available() and distributed.is_initialized()
            group = self.process_group
            rank, ranks = 0, 1
            if there:
                rank, ranks = distributed.get_rank(group), distributed.get_world_size(group)
            return [(rank, ranks)] * len(target)
        for index, item in enumerate(target):
            if self.image_key not in item:
                raise UsageError(f"target {index} has no image_key {self.image_key!r}")
        names = [item[self.image_key] for item in target]
        return [name.item() if isinstance(name, Tensor) else name for name in names]

    def compute(self) -> dict[str, Tensor]:
        """Return the metrics by torchmetrics' names, -1 if undefined.

        With a process group every process must call this method, and each returns the metrics of
        all.
        """
        values: dict[str, Tensor] = {}
        ids: Any = ()
        with self._synced():
            for iou_type in self.iou_type:
                by_class = self._evaluate(iou_type, "macro")
                micro = self.average == "micro"
                result = self._evaluate(iou_type, "micro") if micro else by_class
                prefix = f"{iou_type}_" if len(self.iou_type) > 1 else ""
                metrics = self._metrics(iou_type, result, by_class)
                values |= {prefix + key: value for key, value in metrics.items()}
                ids = () if by_class is None else by_class.class_ids
        return values | {"classes": self._tensor(ids, torch.int32)}

    def _metrics(
        self, iou_type: str, result: Result | None, by_class: Result | None
    ) -> dict[str, Tensor]:
        """Return the metrics of one IoU type by torchmetrics' names."""
        limits = self._protocols[iou_type].max_dets
        names = {"map": "AP", "map_50": "AP50", "map_75": "AP75"}
        names |= {f"map_{area}": f"AP{area[0]}" for area in _AREAS}
        names |= {f"mar_{limit}": f"AR{limit}" for limit in limits}
        names |= {f"mar_{area}": f"AR{area[0]}" for area in _AREAS}
        summary = {} if result is None else result.summary
        values = {key: self._tensor([summary.get(name, nan)]) for key, name in names.items()}
        last = limits[-1]
        for key, name in (("map_per_class", "AP"), (f"mar_{last}_per_class", f"AR{last}")):
            given = None if by_class is None or not self.class_metrics else by_class.by_class
            values[key] = self._tensor([nan] if given is None else given[name].tolist())
        return values

    def result(self, iou_type: str | None = None) -> Result | None:
        """Return the full result of all updates and processes; None without images.

        Every process must call this method, as for :meth:`compute`.

        Parameters
        ----------
        iou_type : {"bbox", "segm", "keypoints"}, optional
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
        with self._synced():
            return self._evaluate(selected, self.average)

    def _synced(self) -> AbstractContextManager[None]:
        """Gather the states of all processes for the time of a block, unless they are already."""
        sync = self._to_sync and not self._is_synced
        return self.sync_context(should_sync=sync, should_unsync=sync)

    def _evaluate(self, iou_type: str, average: str) -> Result | None:
        """Return the result of one IoU type; None without images."""
        if not self.image_names:
            return None
        names = decode_names(joined({"": self.image_names})[""])
        columns = {side: columns_of(side, self.iou_type) for side in _SIDES}
        preds, target = (
            joined({name: getattr(self, f"{side}_{name}") for name in columns[side]})
            for side in _SIDES
        )
        if average == "micro":
            preds["labels"], target["labels"] = (
                np.zeros_like(side["labels"]) for side in (preds, target)
            )
        return self._evaluator(iou_type, names, preds, target).compute()

    def _evaluator(
        self, iou_type: str, names: list[Any], preds: Arrays, target: Arrays
    ) -> Evaluator:
        """Return an evaluator of one IoU type with all images."""
        key = SHAPE_KEYS[iou_type]
        detections, ground_truths = (shapes_of(side, iou_type) for side in (preds, target))
        ground_truth = {
            "labels": per_image(target, "labels"),
            "area": per_image({**target, "areas": areas_of(target, self.iou_type)}, "areas"),
            "crowd": per_image(target, "crowds"),
            key: ground_truths,
        }
        if key == "keypoints":
            ground_truth["boxes"] = per_image(target, "boxes")
        shapes = {} if key == "boxes" else {key: detections}
        repeats: Any = "error" if self.image_key is None else "identical"
        evaluator = Evaluator(protocol=self._protocols[iou_type], repeats=repeats, as_is=True)
        evaluator.update(
            names,
            detections if key == "boxes" else None,
            per_image(preds, "scores"),
            per_image(preds, "labels"),
            **shapes,
            ground_truth=ground_truth,
        )
        return evaluator

    def _sync_dist(self, dist_sync_fn: Any = None, process_group: Any = None) -> None:
        """Replace the states by those of all processes, also if some have none."""
        del dist_sync_fn
        group = process_group or self.process_group
        own = {name: [t.cpu() for t in getattr(self, name)] for name in self._defaults}
        gathered: list[Any] = [None] * distributed.get_world_size(group)
        distributed.all_gather_object(gathered, own, group)
        for name in self._defaults:
            setattr(self, name, [tensor for states in gathered for tensor in states[name]])

    def plot(self, val: Any = None, ax: Any = None) -> tuple[Any, Any]:
        """Plot the metrics with matplotlib.

        Parameters
        ----------
        val : dict or sequence of dicts, optional
            What :meth:`compute` or the metric itself returned, once or at several steps; by default
            :meth:`compute`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default new ones.

        Returns
        -------
        figure, axes : matplotlib.figure.Figure, matplotlib.axes.Axes
        """
        steps = self.compute() if val is None else val
        steps = [steps] if isinstance(steps, Mapping) else steps
        lines = {
            key: [float(step[key]) for step in steps]
            for key, value in steps[0].items()
            if key != "classes" and value.ndim == 0 and value >= 0
        }
        axes: Any = plot_steps(lines, ax)
        return axes.figure, axes

    def _tensor(self, values: Sequence[float], dtype: torch.dtype = torch.float32) -> Tensor:
        """Return values as a tensor, undefined ones as -1; a single value as a scalar."""
        defined = [-1 if isnan(value) else value for value in values]
        tensor = torch.tensor(defined, dtype=dtype, device=self.device)
        return tensor[0] if len(defined) == 1 else tensor


def _protocol(
    iou_type: str,
    iou_thresholds: Sequence[float] | None,
    rec_thresholds: Sequence[float] | None,
    max_dets: Sequence[int] | None,
    sigmas: Sequence[float] | None,
) -> Protocol:
    """Return the preset ``torchmetrics``, or ``coco-keypoints``, with the given settings."""
    of_masks = {"iou_type": "segm", "detection_area": "pixels"}
    changes: dict[str, Any] = of_masks if iou_type == "segm" else {}
    base = PRESETS["coco-keypoints" if iou_type == "keypoints" else "torchmetrics"]
    if rec_thresholds is not None:
        names = [name for name, grid in RECALL_GRIDS.items() if len(grid) == 101]
        grids = [name for name in names if RECALL_GRIDS[name] == tuple(rec_thresholds)]
        if not grids:
            accepted = ", ".join(names)
            raise UsageError(
                f"rec_thresholds are not the 101 levels of a recall grid; choose from {accepted}"
            )
        changes["recall_grid"] = grids[0]
    if iou_thresholds is not None:
        changes |= {"iou_thresholds": tuple(iou_thresholds), "iou_dtype": "float64"}
    if max_dets is not None:
        changes["max_dets"] = tuple(sorted(max_dets))
    if sigmas is not None and iou_type == "keypoints":
        changes["sigmas"] = tuple(sigmas)
    return replace(base, **changes)
