"""Evaluate in detap's core with pycocotools' exact results, for regular input.

Annotations become columns, and parameters :class:`MatchParams`. For irregular input (ids that are
not integers, NaN, unsorted thresholds, ...) there is no :class:`Evaluated`, and the evaluator uses
the per-image path.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets, I images.
"""

import copy
import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from detap.compat.pycocotools._walks import Columns, fill_scores
from detap.compat.pycocotools.annotations import Annotations
from detap.compat.pycocotools.coco import COCO, Unopened
from detap.compat.pycocotools.results import Boxed, Results
from detap.compat.pycocotools.shapes import Keypoints, KeypointShapes, Masks, MaskShapes, Shapes
from detap.core.accumulate import Scores
from detap.core.match_table import AreaIouPair, MatchTable
from detap.core.matching import Boxes, Pairs, match_and_accumulate
from detap.core.params import MatchParams
from detap.core.threads import run_threads, thread_count
from detap.records import Record as Frozen

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Record = dict[str, Any]

MAX_IOU_THRESHOLD = 1 - 1e-10
"""Maximum IoU threshold, as in pycocotools."""

QUERIES = ("getAnnIds", "loadAnns")
"""Methods of a data set that pycocotools' evaluator calls."""

_MAX_THRESHOLDS = 64
_CLASSES = 8
"""Classes per chunk of a thread."""


class Selection(NamedTuple):
    """Selected images and categories.

    Attributes
    ----------
    image, category : dict of int
        Index by id.
    by_category : bool
        Whether categories are evaluated separately.
    """

    image: dict[Any, int]
    category: dict[Any, int]
    by_category: bool

    @classmethod
    def of(cls, params: Any) -> Self | None:
        """Return the selection; None if it is empty or repeats a category."""
        image = {name: index for index, name in enumerate(_plain_ids(params.imgIds))}
        category = {name: index for index, name in enumerate(_plain_ids(params.catIds))}
        if not image or not category or len(category) != len(params.catIds):
            return None
        return cls(image, category, bool(params.useCats))

    @property
    def classes(self) -> int:
        """Number of evaluated classes."""
        return len(self.category) if self.by_category else 1


def _plain_ids(names: Sequence[Any]) -> list[Any]:
    """Return ids as Python objects, which compare faster than numpy's."""
    if all(type(name) is np.int64 for name in names):
        return [*np.array(names, np.int64).tolist()]
    return [name.item() if isinstance(name, np.generic) else name for name in names]


class GroundTruthColumns(NamedTuple):
    """G ground truths as columns, with ids, and masks or keypoints."""

    boxes: Boxes
    ignored: Flags
    crowd: Flags
    unmatchable: Flags
    ids: NDArray[Any]
    shapes: Masks | Keypoints | None


class DetectionColumns(NamedTuple):
    """N detections as columns.

    Attributes
    ----------
    boxes : Boxes
    ids : sequence of int
        Ids of all annotations read.
    rows : (N,) int
        Indices of the N detections in `ids` and `source_scores`.
    source_scores : sequence of float, or Results
        Scores of all annotations read; parsed from results when needed.
    shapes : Masks, Keypoints or None
        Compared shapes, unless boxes.
    """

    boxes: Boxes
    ids: Sequence[int]
    rows: NDArray[np.intp]
    source_scores: Sequence[Any] | Results
    shapes: Masks | Keypoints | None

    def scores(self) -> list[Any]:
        """Return the scores as the original objects."""
        scores = self.source_scores
        if isinstance(scores, Results):
            scores = scores.source.scores()
        return [scores[row] for row in self.rows.tolist()]


def _unopened(coco: Any) -> Unopened | None:
    """Return the stored annotations, if no method is overridden."""
    if not isinstance(coco, COCO) or overridden(coco, COCO, *QUERIES, "annToRLE"):
        return None
    return coco.unopened


def read_ground_truths(coco: Any, params: Any, selection: Selection) -> GroundTruthColumns | None:
    """Return the selected ground truths; None if irregular."""
    unopened = _unopened(coco)
    if isinstance(unopened, Annotations) and params.iouType == "bbox":
        return _select_ground_truths(unopened, params, selection)
    read = _read(coco, params, selection, scored=False)
    if read is None:
        return None
    columns, boxes, rows, shapes = read
    crowd, ignored = columns.columns()[-2:]
    flags = ignored.view(np.bool_)[rows], crowd.view(np.bool_)[rows]
    ids = np.array(columns.ids, np.object_)[rows]
    return GroundTruthColumns(boxes, *flags, (ids == 0).astype(np.bool_), ids, shapes)


def _select_ground_truths(
    annotations: Annotations, params: Any, selection: Selection
) -> GroundTruthColumns:
    """Return the selected ground truths, and mark them as evaluated."""
    image, label, *numbers = _indexed_columns(annotations, selection)
    boxes, rows = _select_rows(selection, image, label, *numbers, np.zeros(len(image)))
    chosen = image >= 0
    if selection.by_category:
        chosen &= label >= 0
    annotations.choose(chosen, rows, params.areaRng[-1])
    crowd, ids = annotations.crowd[rows], annotations.ids[rows]
    return GroundTruthColumns(boxes, crowd, crowd, ids == 0, ids, None)


def read_detections(coco: Any, params: Any, selection: Selection) -> DetectionColumns | None:
    """Return the selected detections; None if irregular."""
    unopened = _unopened(coco)
    if isinstance(unopened, Results) and _has_masks(unopened, coco, params.iouType):
        return _select_detections(unopened, selection)
    read = _read(coco, params, selection, scored=True)
    if read is None:
        return None
    columns, boxes, rows, shapes = read
    return DetectionColumns(boxes, columns.ids, rows, columns.scores, shapes)


def _select_detections(results: Results, selection: Selection) -> DetectionColumns:
    """Return the selected detections; as in pycocotools, their ids count from 1."""
    indexed = _indexed_columns(results, selection)
    boxes, rows = _select_rows(selection, *indexed, results.score)
    masks = None if results.masks is None else results.masks.at(rows)
    return DetectionColumns(boxes, range(1, len(results) + 1), rows, results, masks)


def _has_masks(results: Results, coco: COCO, kind: str) -> bool:
    """Return True if columns have the required masks and image sizes."""
    if kind == "bbox":
        return True
    return results.masks is not None and all(
        "height" in image and "width" in image for image in coco.imgs.values()
    )


def _read(
    coco: Any, params: Any, selection: Selection, *, scored: bool
) -> tuple[Columns, Boxes, NDArray[np.intp], Masks | Keypoints | None] | None:
    """Return all columns, and the selected boxes, rows and shapes."""
    columns = _columns(coco, params, selection, scored=scored)
    if columns is None:
        return None
    boxes, rows = _select_rows(selection, *columns.columns()[:-2])
    shapes = _read_shapes(coco, columns, params, boxed=not scored)
    if shapes is None and params.iouType != "bbox":
        return None
    return columns, boxes, rows, shapes and shapes.at(rows)


def _read_shapes(
    coco: Any, columns: Columns, params: Any, *, boxed: bool
) -> Masks | Keypoints | None:
    """Return masks or keypoints; None for boxes, or if irregular.

    Masks of selected records are replaced by RLE strings.
    """
    if params.iouType == "keypoints":
        return Keypoints.of(columns.records, len(params.kpt_oks_sigmas), boxed=boxed)
    if params.iouType == "bbox" or not isinstance(coco, COCO) or overridden(coco, COCO, "annToRLE"):
        return None
    return Masks.of(columns.records, columns.skipped, coco.imgs)


def _columns(coco: Any, params: Any, selection: Selection, *, scored: bool) -> Columns | None:
    low, high = params.areaRng[-1]

    def new(room: int) -> Columns:
        chosen_by = selection.image, selection.category
        area_range, kind = (low, high), params.iouType
        return Columns(*chosen_by, room, scored, area_range, kind, selection.by_category)

    if not isinstance(coco, COCO) or overridden(coco, COCO, *QUERIES):
        records = selected_annotations(coco, params)
    elif isinstance(coco.unopened, list):
        records = coco.unopened  # of all images and categories; unselected ones are skipped
    else:
        return _read_indexed(coco, selection, new)
    columns = new(len(records))
    return columns if columns.take_all(records) else None


def _read_indexed(
    coco: COCO, selection: Selection, new: Callable[[int], Columns]
) -> Columns | None:
    """Read the indexed records of a data set, from its list if consistent."""
    index, by_category = coco.imgToAnns, selection.by_category
    records = coco.dataset.get("annotations")
    if type(records) is list and type(coco.anns) is dict:
        columns = new(len(records))
        if columns.take_in_order(records, index, coco.anns, by_category):
            return columns
    columns = new(sum(len(index[image]) for image in selection.image if image in index))
    regular = columns.take_indexed(selection.image, index, coco.anns, by_category)
    return columns if regular else None


def copy_params(params: Any) -> Any:
    """Return a deep copy of parameters; id objects are shared."""
    ids = [*params.imgIds], [*params.catIds]
    base = copy.copy(params)
    base.imgIds, base.catIds = [], []
    result = copy.deepcopy(base)
    result.imgIds, result.catIds = ids
    return result


def selected_annotations(coco: Any, params: Any) -> list[Record]:
    """Return the annotations of the selected images and categories."""
    by = {"imgIds": params.imgIds}
    if params.useCats:
        by["catIds"] = params.catIds
    records: list[Record] = coco.loadAnns(coco.getAnnIds(**by))
    return records


def overridden(instance: Any, home: type, *names: str) -> bool:
    """Return True if a method of a class is overridden."""
    return any(
        name in vars(instance) or getattr(type(instance), name) is not getattr(home, name)
        for name in names
    )


def _indexed_columns(
    boxed: Boxed, selection: Selection
) -> tuple[Integers, Integers, *tuple[Floats, ...]]:
    """Return columns as :func:`_select_rows` expects, without scores; -1 if not selected."""
    image = _indices(boxed.images, selection.image)[boxed.image]
    label = _indices(boxed.categories, selection.category)[boxed.label]
    return image, label, boxed.corners, boxed.box_area, boxed.area


def _indices(names: Sequence[Any], index: dict[Any, int]) -> NDArray[np.int32]:
    return np.array([index.get(name, -1) for name in names], np.int32)


def _select_rows(
    selection: Selection, image: Integers, label: Integers, *columns: Floats
) -> tuple[Boxes, NDArray[np.intp]]:
    """Return the selected rows; if categories are merged, sorted by category.

    The columns are corners, box area, area for the ranges, and score.
    """
    rows = np.flatnonzero((image >= 0) & (label >= 0))
    if not selection.by_category:
        rows = rows[np.argsort(label[rows], kind="stable")]
    if len(rows) < len(image) or not selection.by_category:
        image, label = image[rows], label[rows]
        columns = tuple(column[rows] for column in columns)
    if not selection.by_category:
        label = np.zeros_like(label)
    return Boxes(image, label, *columns), rows


def match_params(params: Any) -> MatchParams | None:
    """Return parameters for the core; None if irregular."""
    thresholds = np.minimum(np.asarray(params.iouThrs, np.float64), MAX_IOU_THRESHOLD)
    levels = np.asarray(params.recThrs, np.float64)
    limits = [*params.maxDets]
    areas = np.asarray([[*area_range] for area_range in params.areaRng], np.float64)
    regular = (
        thresholds.ndim == levels.ndim == 1
        and 0 < len(thresholds) <= _MAX_THRESHOLDS
        and len(levels) > 0
        and bool((thresholds > 0).all())
        and _is_ascending(thresholds)
        and _is_ascending(levels)
        and areas.ndim == 2
        and areas.shape[1] == 2
        and bool(np.isfinite(areas).all())
        and all(isinstance(limit, int | np.integer) for limit in limits)
        and len(limits) > 0
        and limits[0] >= 1
        and all(low < high for low, high in itertools.pairwise(limits))
        and params.useCats in (0, 1)
    )
    if not regular:
        return None
    return MatchParams(
        thresholds=tuple(thresholds.tolist()),
        strict=False,
        best_unmatched=True,
        last_of_equal=True,
        area_ranges=tuple((low, high) for low, high in areas.tolist()),
        max_dets=tuple(int(limit) for limit in limits),
        ties_by_image=True,
        levels=tuple(levels.tolist()),
        summing="pairwise",
        precision_eps=float(np.spacing(1)),
        inclusive_pixels=False,
    )


def _is_ascending(values: Floats) -> bool:
    return bool(np.isfinite(values).all() and (np.diff(values) >= 0).all())


class Accumulated(NamedTuple):
    """The arrays of ``COCOeval.eval``; -1 is undefined.

    Attributes
    ----------
    precision, scores : (T, R, K, A, M) float64
    recall : (T, K, A, M) float64
    """

    precision: Floats
    recall: Floats
    scores: Floats


class Evaluated(Frozen):
    """Input of evaluate() as columns.

    Attributes
    ----------
    params : Params
        A copy.
    """

    params: Any
    ground_truths: GroundTruthColumns
    detections: DetectionColumns
    selection: Selection
    match_params: MatchParams
    shapes: Shapes | None

    @classmethod
    def of(cls, ground_truths: Any, detections: Any, params: Any) -> Self | None:
        """Convert two data sets; None if irregular."""
        converted, selection = match_params(params), Selection.of(params)
        if converted is None or selection is None:
            return None
        gt_columns = read_ground_truths(ground_truths, params, selection)
        dt_columns = None if gt_columns is None else read_detections(detections, params, selection)
        if gt_columns is None or dt_columns is None:
            return None
        shapes = _make_shapes(dt_columns, gt_columns, params)
        if shapes is None and params.iouType != "bbox":
            return None
        return cls(copy_params(params), gt_columns, dt_columns, selection, converted, shapes)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of classes and images (K, I)."""
        return self.selection.classes, len(self.selection.image)

    def overlaps(self, lowest: float = 0.0) -> Pairs | None:
        """Return pairs of shapes with a similarity of at least `lowest`; None for boxes."""
        if self.shapes is None:
            return None
        ground_truths = self.ground_truths
        return self.shapes.pairs(
            self.detections.boxes, ground_truths.boxes, ground_truths.crowd, lowest
        )

    @cached_property
    def pairs(self) -> Pairs | None:
        """Pairs that reach the lowest threshold."""
        return self.overlaps(self.match_params.thresholds[0])

    @cached_property
    def scores(self) -> Sequence[Any]:
        """Scores of the detections as the original objects."""
        return self.detections.scores()


def _make_shapes(
    detections: DetectionColumns, ground_truths: GroundTruthColumns, params: Any
) -> Shapes | None:
    """Return pairs of masks or keypoints; None for boxes, or if irregular."""
    if isinstance(detections.shapes, Masks) and isinstance(ground_truths.shapes, Masks):
        image = detections.boxes.image, ground_truths.boxes.image
        return MaskShapes.of(detections.shapes, ground_truths.shapes, image)
    if not isinstance(detections.shapes, Keypoints) or not isinstance(
        ground_truths.shapes, Keypoints
    ):
        return None
    sigmas = np.asarray(params.kpt_oks_sigmas)
    regular = sigmas.dtype == np.float64 and sigmas.ndim == 1 and bool((sigmas > 0).all())
    if not (regular and params.useCats and (ground_truths.boxes.area >= 0).all()):
        return None
    return KeypointShapes(detections.shapes, ground_truths.shapes, tuple(sigmas.tolist()))


def _match(
    evaluated: Evaluated, unmatchable: Flags, area_iou_pairs: Iterable[AreaIouPair]
) -> Scores:
    ground_truths = evaluated.ground_truths
    classes, images = evaluated.shape
    return match_and_accumulate(
        evaluated.detections.boxes,
        ground_truths.boxes,
        ignored=ground_truths.ignored,
        crowd=ground_truths.crowd,
        unmatchable=unmatchable,
        images=images,
        classes=classes,
        params=evaluated.match_params,
        pairs=evaluated.pairs,
        all_max_dets=True,
        match_table=area_iou_pairs,
    )


def compute_match_table(evaluated: Evaluated) -> MatchTable:
    """Return the match table with the matched ground truths by area range and threshold.

    Ground truths of id 0 are included: pycocotools matches them and then reports no match.
    """
    params = evaluated.match_params
    area_iou_pairs = itertools.product(
        range(len(params.area_ranges)), range(len(params.thresholds))
    )
    match_table = _match(
        evaluated, np.zeros_like(evaluated.ground_truths.unmatchable), area_iou_pairs
    ).match_table
    assert match_table is not None
    return match_table


def accumulate(evaluated: Evaluated) -> Accumulated:
    """Match and accumulate."""
    scores = _match(evaluated, evaluated.ground_truths.unmatchable, ())
    precision, recall = scores.precision.transpose(2, 3, 4, 1, 0), scores.recall
    for a, positives in enumerate(scores.positives):
        precision[:, :, positives == 0, a] = -1
        recall[:, positives == 0, a] = -1
    return Accumulated(precision, recall, _scores_at_levels(scores))


def _scores_at_levels(scores: Scores) -> Floats:
    """Return the score at which each recall level is reached, (T, R, K, A, M)."""
    match_table = scores.match_table
    assert match_table is not None
    params, classes = match_table.params, match_table.classes
    shape = classes, len(params.area_ranges), len(params.max_dets)
    out = np.empty((len(params.thresholds), len(params.levels), *shape))
    start, ranked = _hit_ranking(match_table)
    chunks = iter(range(0, classes, _CLASSES))

    def work() -> None:
        for begin in chunks:
            fill_scores(
                begin,
                min(begin + _CLASSES, classes),
                start,
                ranked,
                match_table.max_dets_index,
                match_table.score,
                match_table.true_positive.view(np.uint8),
                scores.positives,
                np.array(params.levels),
                out,
            )

    run_threads(work, thread_count(len(match_table)))
    return out


def _hit_ranking(match_table: MatchTable) -> tuple[Integers, Integers]:
    """Return the ranking of all true positives and the first of each class."""
    start, ranked = match_table.ranking
    selected = np.any(match_table.true_positive, axis=0)[ranked]
    selected[start[:-1][start[:-1] < start[1:]]] = True
    count_before = np.zeros(len(selected) + 1, np.int32)
    np.cumsum(selected, out=count_before[1:])
    return count_before[start], ranked[selected]
