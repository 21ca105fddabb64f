"""What pycocotools' evaluator holds, from detap's core, where nothing about the input is unusual.

Annotations become columns, the parameters rules. Where that cannot be done so that every bit is
pycocotools' (ids that are no whole numbers, NaN, thresholds out of order, ...) there is no
:class:`Evaluated`, and the evaluator goes image by image, as pycocotools does.

Axes: T thresholds, R recall levels, K classes, A area ranges, M max dets, I images.
"""

import copy
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
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

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]
Record = dict[str, Any]

HIGHEST = 1 - 1e-10
"""Thresholds above are lowered to this."""

QUERIES = ("getAnnIds", "loadAnns")
"""What pycocotools' evaluator asks of a data set."""

_MAX_THRESHOLDS = 64
_CLASSES = 8
"""Classes whose scores at recall levels a thread writes at once."""


class Selection(NamedTuple):
    """What is evaluated: images and categories in their order, by id.

    Attributes
    ----------
    image, category : dict of int
        The place of each id.
    by_category : bool
        Whether categories are told apart.
    """

    image: dict[Any, int]
    category: dict[Any, int]
    by_category: bool

    @classmethod
    def of(cls, params: Any) -> Self | None:
        """Return what the parameters select; None where nothing, or a category twice."""
        image = {name: place for place, name in enumerate(_plain(params.imgIds))}
        category = {name: place for place, name in enumerate(_plain(params.catIds))}
        if not image or not category or len(category) != len(params.catIds):
            return None
        return cls(image, category, bool(params.useCats))

    @property
    def classes(self) -> int:
        """How many classes are scored."""
        return len(self.category) if self.by_category else 1


def _plain(names: Sequence[Any]) -> list[Any]:
    """Return ids as Python's own: numpy's are slow to compare."""
    if all(type(name) is np.int64 for name in names):
        return [*np.array(names, np.int64).tolist()]
    return [name.item() if isinstance(name, np.generic) else name for name in names]


class Truths(NamedTuple):
    """G ground truths as columns, with their ids; and what is compared, where it is no box."""

    boxes: Boxes
    ignored: Flags
    crowd: Flags
    unmatchable: Flags
    ids: NDArray[Any]
    drawn: Masks | Keypoints | None


class Claims(NamedTuple):
    """N detections as columns, and where their ids and very scores are.

    Attributes
    ----------
    boxes : Boxes
    ids : sequence of int
        Those of all that were read.
    rows : (N,) int
        Where the N are among these.
    given : sequence of float, or Results
        Likewise the scores; those of results are asked for only where they are needed.
    drawn : Masks, Keypoints or None
        What is compared, where it is no box.
    """

    boxes: Boxes
    ids: Sequence[int]
    rows: NDArray[np.intp]
    given: Sequence[Any] | Results
    drawn: Masks | Keypoints | None

    def scores(self) -> list[Any]:
        """Return the scores, the very numbers that were given."""
        given = self.given.source.scores() if isinstance(self.given, Results) else self.given
        return [given[row] for row in self.rows.tolist()]


def _unopened(coco: Any) -> Unopened | None:
    """Return what a data set holds in place of dictionaries, where it is asked in no other way."""
    if not isinstance(coco, COCO) or overridden(coco, COCO, *QUERIES, "annToRLE"):
        return None
    return coco.unopened


def read_truths(coco: Any, params: Any, selection: Selection) -> Truths | None:
    """Return the ground truths that are selected, marked; None where they are unusual."""
    unopened = _unopened(coco)
    if isinstance(unopened, Annotations) and params.iouType == "bbox":
        return _truths_of_columns(unopened, params, selection)
    read = _read(coco, params, selection, scored=False)
    if read is None:
        return None
    columns, boxes, rows, drawn = read
    crowd, ignored = columns.columns()[-2:]
    flags = ignored.view(np.bool_)[rows], crowd.view(np.bool_)[rows]
    ids = np.array(columns.ids, np.object_)[rows]
    return Truths(boxes, *flags, (ids == 0).astype(np.bool_), ids, drawn)


def _truths_of_columns(annotations: Annotations, params: Any, selection: Selection) -> Truths:
    """Return the ground truths that are selected, from columns, which note that they were."""
    image, label, *numbers = _placed(annotations, selection)
    boxes, rows = _selected(selection, image, label, *numbers, np.zeros(len(image)))
    chosen = image >= 0
    if selection.by_category:
        chosen &= label >= 0
    annotations.choose(chosen, rows, params.areaRng[-1])
    crowd, ids = annotations.crowd[rows], annotations.ids[rows]
    return Truths(boxes, crowd, crowd, ids == 0, ids, None)


def read_claims(coco: Any, params: Any, selection: Selection) -> Claims | None:
    """Return the detections that are selected; None where they are unusual."""
    unopened = _unopened(coco)
    if isinstance(unopened, Results) and _masks_are_there(unopened, coco, params.iouType):
        return _claims_of_columns(unopened, selection)
    read = _read(coco, params, selection, scored=True)
    if read is None:
        return None
    columns, boxes, rows, drawn = read
    return Claims(boxes, columns.ids, rows, columns.scores, drawn)


def _claims_of_columns(results: Results, selection: Selection) -> Claims:
    """Return the detections that are selected, from columns."""
    masks = results.masks
    boxes, rows = _selected(selection, *_placed(results, selection), results.score)
    return Claims(boxes, range(1, len(results) + 1), rows, results, masks and masks.at(rows))


def _masks_are_there(results: Results, found: COCO, kind: str) -> bool:
    """Tell whether columns have the masks that are wanted, and so their images' sizes."""
    if kind == "bbox":
        return True
    return results.masks is not None and all(
        "height" in image and "width" in image for image in found.imgs.values()
    )


def _read(
    coco: Any, params: Any, selection: Selection, *, scored: bool
) -> tuple[Columns, Boxes, NDArray[np.intp], Masks | Keypoints | None] | None:
    """Return all columns; of those that are selected boxes, rows and what is compared besides."""
    columns = _columns(coco, params, selection, scored=scored)
    if columns is None:
        return None
    boxes, rows = _selected(selection, *columns.columns()[:-2])
    drawn = _drawn(coco, columns, params, boxed=not scored)
    if drawn is None and params.iouType != "bbox":
        return None
    return columns, boxes, rows, drawn and drawn.at(rows)


def _drawn(coco: Any, columns: Columns, params: Any, *, boxed: bool) -> Masks | Keypoints | None:
    """Return what is compared, unless boxes are; None where it is unusual.

    Every record that was chosen then holds its mask as a run-length string.
    """
    if params.iouType == "keypoints":
        return Keypoints.of(columns.records, len(params.kpt_oks_sigmas), boxed=boxed)
    if params.iouType == "bbox" or not isinstance(coco, COCO) or overridden(coco, COCO, "annToRLE"):
        return None
    return Masks.of(columns.records, columns.aside, coco.imgs)


def _columns(coco: Any, params: Any, selection: Selection, *, scored: bool) -> Columns | None:
    low, high = params.areaRng[-1]

    def new(room: int) -> Columns:
        chosen_by = selection.image, selection.category
        band, kind = (low, high), params.iouType
        return Columns(*chosen_by, room, scored, band, kind, selection.by_category)

    if not isinstance(coco, COCO) or overridden(coco, COCO, *QUERIES):
        records = chosen(coco, params)
    elif isinstance(coco.unopened, list):
        records = coco.unopened  # of any image and category: what is not selected is passed by
    else:
        return _read_indexed(coco, selection, new)
    columns = new(len(records))
    return columns if columns.take_all(records) else None


def _read_indexed(
    coco: COCO, selection: Selection, new: Callable[[int], Columns]
) -> Columns | None:
    """Read what the indices of a data set say, from its list where the two agree."""
    index, by_category = coco.imgToAnns, selection.by_category
    records = coco.dataset.get("annotations")
    if type(records) is list and type(coco.anns) is dict:
        columns = new(len(records))
        if columns.take_in_order(records, index, coco.anns, by_category):
            return columns
    columns = new(sum(len(index[image]) for image in selection.image if image in index))
    usual = columns.take_indexed(selection.image, index, coco.anns, by_category)
    return columns if usual else None


def copied(params: Any) -> Any:
    """Return a deep copy of parameters; ids, which may be many, are never changed themselves."""
    ids = [*params.imgIds], [*params.catIds]
    bare = copy.copy(params)
    bare.imgIds, bare.catIds = [], []
    twin = copy.deepcopy(bare)
    twin.imgIds, twin.catIds = ids
    return twin


def chosen(coco: Any, params: Any) -> list[Record]:
    """Return the annotations of the images, and of the categories if they are told apart."""
    by = {"imgIds": params.imgIds}
    if params.useCats:
        by["catIds"] = params.catIds
    records: list[Record] = coco.loadAnns(coco.getAnnIds(**by))
    return records


def overridden(instance: Any, home: type, *names: str) -> bool:
    """Tell whether one of the methods of a class is not that class's own."""
    return any(
        name in vars(instance) or getattr(type(instance), name) is not getattr(home, name)
        for name in names
    )


def _placed(boxed: Boxed, selection: Selection) -> tuple[Integers, Integers, *tuple[Floats, ...]]:
    """Return columns as :func:`_selected` takes them, but for scores; -1 is what is not chosen."""
    image = _places(boxed.images, selection.image)[boxed.image]
    label = _places(boxed.categories, selection.category)[boxed.label]
    return image, label, boxed.corners, boxed.box_area, boxed.area


def _places(names: Sequence[Any], place: dict[Any, int]) -> NDArray[np.int32]:
    return np.array([place.get(name, -1) for name in names], np.int32)


def _selected(
    selection: Selection, image: Integers, label: Integers, *columns: Floats
) -> tuple[Boxes, NDArray[np.intp]]:
    """Return the rows that are selected; where categories are not told apart, by category.

    The columns are corners, the area of the box, the area that decides the range, and the score.
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


def rules_of(params: Any) -> MatchParams | None:
    """Return parameters as the plain values that core takes; None where they are unusual."""
    thresholds = np.minimum(np.asarray(params.iouThrs, np.float64), HIGHEST)
    levels = np.asarray(params.recThrs, np.float64)
    limits = [*params.maxDets]
    areas = np.asarray([[*band] for band in params.areaRng], np.float64)
    usual = (
        thresholds.ndim == levels.ndim == 1
        and 0 < len(thresholds) <= _MAX_THRESHOLDS
        and len(levels) > 0
        and bool((thresholds > 0).all())
        and _ascend(thresholds)
        and _ascend(levels)
        and areas.ndim == 2
        and areas.shape[1] == 2
        and bool(np.isfinite(areas).all())
        and all(isinstance(limit, int | np.integer) for limit in limits)
        and len(limits) > 0
        and limits[0] >= 1
        and all(low < high for low, high in itertools.pairwise(limits))
        and params.useCats in (0, 1)
    )
    if not usual:
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


def _ascend(values: Floats) -> bool:
    return bool(np.isfinite(values).all() and (np.diff(values) >= 0).all())


@dataclass(frozen=True, eq=False)
class Accumulated:
    """The arrays of ``COCOeval.eval``; -1 is undefined.

    Attributes
    ----------
    precision, scores : (T, R, K, A, M) float64
    recall : (T, K, A, M) float64
    """

    precision: Floats
    recall: Floats
    scores: Floats


@dataclass(eq=False)
class Evaluated:
    """What evaluate() took, as it was then.

    Attributes
    ----------
    params : Params
        A copy.
    """

    params: Any
    truths: Truths
    claims: Claims
    selection: Selection
    rules: MatchParams
    shapes: Shapes | None

    @classmethod
    def of(cls, truths: Any, found: Any, params: Any) -> Self | None:
        """Return two data sets as the core takes them; None where something is unusual."""
        rules, selection = rules_of(params), Selection.of(params)
        if rules is None or selection is None:
            return None
        columns = read_truths(truths, params, selection)
        claims = None if columns is None else read_claims(found, params, selection)
        if columns is None or claims is None:
            return None
        shapes = _shapes(claims, columns, params)
        if shapes is None and params.iouType != "bbox":
            return None
        return cls(copied(params), columns, claims, selection, rules, shapes)

    @property
    def shape(self) -> tuple[int, int]:
        """K and I."""
        return self.selection.classes, len(self.selection.image)

    def overlaps(self, lowest: float = 0.0) -> Pairs | None:
        """Return the overlaps of shapes from one on; None of boxes."""
        if self.shapes is None:
            return None
        truths = self.truths
        return self.shapes.pairs(self.claims.boxes, truths.boxes, truths.crowd, lowest)

    @cached_property
    def pairs(self) -> Pairs | None:
        """Those that reach a threshold."""
        return self.overlaps(self.rules.thresholds[0])

    @cached_property
    def scores(self) -> Sequence[Any]:
        """The scores of the detections, the very numbers that were given."""
        return self.claims.scores()


def _shapes(claims: Claims, truths: Truths, params: Any) -> Shapes | None:
    """Return what is compared, unless boxes are; None where it is unusual."""
    if isinstance(claims.drawn, Masks) and isinstance(truths.drawn, Masks):
        image = claims.boxes.image, truths.boxes.image
        return MaskShapes.of(claims.drawn, truths.drawn, image)
    if not isinstance(claims.drawn, Keypoints) or not isinstance(truths.drawn, Keypoints):
        return None
    sigmas = np.asarray(params.kpt_oks_sigmas)
    usual = sigmas.dtype == np.float64 and sigmas.ndim == 1 and bool((sigmas > 0).all())
    if not (usual and params.useCats and (truths.boxes.area >= 0).all()):
        return None
    return KeypointShapes(claims.drawn, truths.drawn, tuple(sigmas.tolist()))


def _score(evaluated: Evaluated, unmatchable: Flags, cells: Iterable[AreaIouPair]) -> Scores:
    truths = evaluated.truths
    classes, images = evaluated.shape
    return match_and_accumulate(
        evaluated.claims.boxes,
        truths.boxes,
        ignored=truths.ignored,
        crowd=truths.crowd,
        unmatchable=unmatchable,
        images=images,
        classes=classes,
        params=evaluated.rules,
        pairs=evaluated.pairs,
        all_max_dets=True,
        match_table=cells,
    )


def matched(evaluated: Evaluated) -> MatchTable:
    """Return evidence with the ground truth that each detection matched, A times T times.

    Those of id 0 too: pycocotools has a detection take one, and then calls it unmatched.
    """
    rules = evaluated.rules
    cells = itertools.product(range(len(rules.area_ranges)), range(len(rules.thresholds)))
    match_table = _score(evaluated, np.zeros_like(evaluated.truths.unmatchable), cells).match_table
    assert match_table is not None
    return match_table


def accumulate(evaluated: Evaluated) -> Accumulated:
    """Match, and return the arrays."""
    scores = _score(evaluated, evaluated.truths.unmatchable, ())
    precision, recall = scores.precision.transpose(2, 3, 4, 1, 0), scores.recall
    for a, positives in enumerate(scores.positives):
        precision[:, :, positives == 0, a] = -1
        recall[:, positives == 0, a] = -1
    return Accumulated(precision, recall, _scores_at_levels(scores))


def _scores_at_levels(scores: Scores) -> Floats:
    """Return the score at which each recall level is reached, (T, R, K, A, M)."""
    match_table = scores.match_table
    assert match_table is not None
    rules, classes = match_table.params, match_table.classes
    shape = classes, len(rules.area_ranges), len(rules.max_dets)
    out = np.empty((len(rules.thresholds), len(rules.levels), *shape))
    start, ranked = _hits(match_table)
    pieces = iter(range(0, classes, _CLASSES))

    def work() -> None:
        for begin in pieces:
            fill_scores(
                begin,
                min(begin + _CLASSES, classes),
                start,
                ranked,
                match_table.max_dets_index,
                match_table.score,
                match_table.true_positive.view(np.uint8),
                scores.positives,
                np.array(rules.levels),
                out,
            )

    run_threads(work, thread_count(len(match_table)))
    return out


def _hits(match_table: MatchTable) -> tuple[Integers, Integers]:
    """Return the ranking of what is a true positive anywhere, and of the first of each class."""
    start, ranked = match_table.ranking
    kept = np.any(match_table.true_positive, axis=0)[ranked]
    kept[start[:-1][start[:-1] < start[1:]]] = True
    before = np.zeros(len(kept) + 1, np.int32)
    np.cumsum(kept, out=before[1:])
    return before[start], ranked[kept]
