"""Partial: match results of whole images, merged exactly in any order.

Images and classes are matched independently, so a detection's score, image and match result
suffice for metrics, curves, resamples and subsets, bit for bit those of one run. See
docs/distributed.md.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from detap import metrics
from detap.checks.boxes import (
    NOTHING,
    SampledBoxCounts,
    count_sampled_boxes,
    failed_box_checks,
    warned,
)
from detap.checks.inputs import (
    NO_BOXES,
    BoxCounts,
    failed_input_checks,
    sample_of_images,
)
from detap.checks.sanity_notes import score_cut_notes
from detap.core.accumulate import Coded, Scores, accumulate_chunks, accumulate_coded
from detap.core.jaccard import JaccardCounts
from detap.core.match_table import MAX_ROWS, MatchFlags, MatchTable
from detap.core.params import MatchParams
from detap.core.proposals import accumulate_by_iou
from detap.core.threads import thread_count
from detap.errors import InputError, Note, Problem, UsageError
from detap.evaluation.partial import jaccard_columns
from detap.evaluation.partial.blocks import (
    Block,
    BlockSlice,
    ClassColumns,
    Gathered,
    GroundTruthKinds,
    Order,
    Rows,
    block_of,
    block_of_proposals,
    gather,
    merge_tables,
)
from detap.evaluation.partial.chunks import Part, chunks_by_group, chunks_by_score
from detap.evaluation.partial.encoding import decode, encode
from detap.evaluation.partial.merging import Repeats, merge_partials
from detap.evaluation.partial.provenance import (
    GroundTruthDigest,
    Input,
    displayed_path,
    inputs_of,
    positions,
    split_notes,
)
from detap.evaluation.partial.tie_columns import Ties
from detap.evaluation.results import Result, result_of
from detap.evaluation.run import (
    EvaluationRun,
    best_of_classes,
    dataset_limit_note,
    ground_truth_notes,
    match_params,
    no_detections_note,
    unknown_class_notes,
)
from detap.evaluation.subset import name_mask
from detap.evaluation.tie_groups import TieGroup, tie_groups
from detap.io.limits import DEFAULT_LIMITS, Limits
from detap.metrics.metric import MetricSpec
from detap.protocols import Protocol
from detap.tables.columns import Name, check_threads
from detap.tables.detection import CategorySample, Flags, Floats, GroundTruth, Integers
from detap.tables.notes import INTERLEAVED

if TYPE_CHECKING:
    from detap.evaluation.selection import Selection

CHUNK = 1 << 18
"""Rows accumulated at once, or one class; bounds the extra memory."""

MAX_CHUNK = 1 << 20
"""Rows of one class ranked at once, over all threads."""

_NO_BOXES = "a result merged from partials has no boxes; evaluate all detections in one run"

_NO_TIES = (
    "the partials have no tie groups; create them with Partial.of(result, tie_range=True) "
    "(eval --tie-range --partial)"
)


class MergedTables(NamedTuple):
    """The tables of a union, and the indices of each slice's entries in them."""

    match_flags: MatchFlags
    kinds: GroundTruthKinds
    match_code: list[NDArray[np.uint32]]
    kind_code: list[NDArray[np.uint32]]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Partial:
    """Match results of whole images.

    Attributes
    ----------
    protocol : Protocol
        The protocol of the matching.
    images : tuple of I int or str
        The names of the images, including those without detections.
    class_ids, class_names : tuple
        Ids and names of the classes: the ground truth's first, then those only in detections.
    ground_truth_classes : int
        The number of classes of the ground truth.
    groups : mapping of int or str to str
        The group of each grouped class, by class id.
    ground_truth : GroundTruthDigest or None
        The shared ground truth; None if each part has its own.
    position : (I,) int64
        The index of each image in the shared ground truth, ascending; (0,) without one.
    requires_all_images : bool
        If True, computing requires all images of the shared ground truth.
    sources : tuple of str
        The names of the detection inputs, sorted; ``""`` for arrays.
    source : (I,) int32
        The index of each image's input; that of ``""`` for images without detections.
    inputs : tuple of Input
        The files that were read.
    notes : tuple of Note
        The notes of all parts, with counts added.
    block_slices : tuple of BlockSlice
        The rows.
    unselected : tuple of int or str, or None
        The classes evaluated but not kept, sorted; None without a selection of classes.
    boxes : SampledBoxCounts
        Data of the box checks, made when metrics are computed.
    counts : BoxCounts
    categories : CategorySample
        Data of the input checks, made when metrics are computed.
    lowest_score : float or None
        The lowest score of all inputs.
    threads : int or None
        As for :func:`detap.evaluate`.
    name : str
        The name used in error messages.
    """

    protocol: Protocol
    images: tuple[Name, ...]
    class_ids: tuple[Name, ...]
    class_names: tuple[str, ...]
    ground_truth_classes: int
    ground_truth: GroundTruthDigest | None
    position: Rows
    requires_all_images: bool
    sources: tuple[str, ...]
    source: Integers
    inputs: tuple[Input, ...]
    shared_notes: tuple[Note, ...]
    own_notes: tuple[Note, ...]
    block_slices: tuple[BlockSlice, ...]
    groups: Mapping[Name, str] = field(default_factory=dict)
    unselected: tuple[Name, ...] | None = None
    boxes: SampledBoxCounts = NOTHING
    counts: BoxCounts = NO_BOXES
    categories: CategorySample = ()
    lowest_score: float | None = None
    threads: int | None = None
    name: str = "partial"

    @classmethod
    def of(
        cls,
        result: Result,
        *,
        ground_truth: GroundTruth | None = None,
        input: str | None = None,
        tie_range: bool = False,
    ) -> "Partial":
        """Create the partial of a result.

        Parameters
        ----------
        result : Result
            A result of :func:`detap.evaluate`; without ``match_table=True`` it is matched again.
            All images of its ground truth count as evaluated, also those without detections.
        ground_truth : GroundTruth, optional
            The full ground truth, if the result has some of its images (:func:`detap.select`).
            Its digest is kept: only partials of one ground truth merge, and computing requires
            all of its images. By default each partial has its own ground truth.
        input : str, optional
            The name of the detection input, for messages and for ties broken by file order;
            by default the path of the file, if any.
        tie_range : bool
            If True, keep the tie groups for :func:`detap.evaluation.tie_range.tie_range`.

        Raises
        ------
        UsageError
            If the result was merged from partials; if it has images or classes missing from
            `ground_truth`; if ties break by file order and unnamed detections are not sorted
            by image.
        """
        _check_kind("result", result, (Result,))
        _check_kind("ground_truth", ground_truth, (GroundTruth, type(None)))
        _check_kind("input", input, (str, type(None)))
        _check_kind("tie_range", tie_range, (bool,))
        run, selection = result._run, result.selection
        full_run = run.full_run
        classes_selected = selection is not None and selection.classes is not None
        protocol, detections = run.protocol, run.detections
        source = displayed_path(
            "; ".join(file.path for file in detections.files) if input is None else input
        )
        digest, position = None, np.zeros(0, np.int64)
        if ground_truth is not None:
            digest = GroundTruthDigest.of(ground_truth)
            position = positions(run.ground_truth, ground_truth, some_classes=classes_selected)
        if protocol.tie_break == "file" and not source and (np.diff(detections.image) < 0).any():
            raise UsageError(
                f"protocol {protocol.name} breaks ties by file order, and these detections have no "
                "file; sort them by image, in the order of the ground truth, or name the input: "
                "Partial.of(result, input=...)"
            )
        block = _block(
            result, by_image=protocol.tie_break == "image" or not source, tie_range=tie_range
        )
        # Images without detections have no input, so that every part agrees on them.
        sources = tuple(
            sorted(
                {source if has_rows else "" for has_rows in detections.images_with_rows.tolist()}
            )
        )
        # Notes on metrics are omitted: they hold for all parts together only.
        notes = tuple(run.table_notes())
        shared_notes, part_notes = split_notes(
            notes, () if ground_truth is None else ground_truth_notes(ground_truth, protocol)
        )
        partial = cls(
            protocol=protocol,
            images=run.images,
            class_ids=detections.class_ids,
            class_names=detections.classes,
            ground_truth_classes=len(run.ground_truth.classes),
            groups=_groups_of(run),
            unselected=selection.unselected if selection is not None and classes_selected else None,
            ground_truth=digest,
            position=position,
            requires_all_images=digest is not None,
            sources=sources,
            source=np.where(detections.images_with_rows, len(sources) - 1, 0).astype(np.int32),
            inputs=inputs_of(run.ground_truth.files, detections.files),
            shared_notes=shared_notes,
            own_notes=part_notes,
            block_slices=(BlockSlice.full(block, len(run.images)),),
            boxes=count_sampled_boxes(
                full_run.ground_truth,
                full_run.detections,
                boxes=protocol.iou_type == "bbox",
                whole=True,
            ),
            counts=_counts_of(full_run, shared_ground_truth=digest is not None),
            categories=sample_of_images(full_run.detections.categories, full_run.images),
            lowest_score=full_run.lowest_score,
            name=source or "partial",
        )
        if (np.diff(position) < 0).any():
            return partial._reorder(np.argsort(position).tolist())
        return partial

    @classmethod
    def merge(
        cls,
        blobs: Iterable["Blob"],
        ground_truth: GroundTruth | None = None,
        *,
        repeats: Repeats = "error",
        images: Iterable[Name] | None = None,
    ) -> "Partial":
        """Merge partials; see :func:`merge`."""
        if isinstance(blobs, Partial | bytes | bytearray | memoryview):
            raise UsageError("merge expects an iterable of partials; wrap a single one in a list")
        _check_kind("blobs", blobs, (Iterable,))
        _check_kind("ground_truth", ground_truth, (GroundTruth, type(None)))
        _check_kind("images", images, (Iterable, type(None)))
        parts = []
        for number, blob in enumerate(blobs, 1):
            name = f"partial {number}"
            part = blob if isinstance(blob, Partial) else cls.from_bytes(blob, name=name)
            parts.append(replace(part, name=name) if part.name == cls.name else part)
        return merge_partials(parts, ground_truth, repeats, images)

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        *,
        limits: Limits = DEFAULT_LIMITS,
        name: str = "partial",
    ) -> "Partial":
        """Read and check a partial written by :meth:`to_bytes`.

        Parameters
        ----------
        data : bytes-like
            Not copied if read-only.
        limits : Limits
            The limits of the input.
        name : str
            The name used in error messages, such as the file path.

        Raises
        ------
        InputError
            If it is corrupt, has another format version, or exceeds the limits.
        """
        return cls(**decode(data, limits, name))

    def to_bytes(self) -> bytes:
        """Return the partial as bytes, independent of how it was merged."""
        buffer = BytesIO()  # b"".join would hold the bytes twice
        for chunk in self.buffers():
            buffer.write(chunk)
        return buffer.getvalue()

    def buffers(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes in chunks, one in memory at a time."""
        return encode(self)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the evaluated classes."""
        return ("all",) if self.protocol.class_agnostic else self.class_names

    def __repr__(self) -> str:
        """Return the protocol and the numbers of images and detections."""
        name = self.protocol.name
        return f"Partial({name!r}, {len(self.images)} images, {len(self)} detections)"

    def __len__(self) -> int:
        """Return the number of detections."""
        return sum(len(block_slice.block.detections.image) for block_slice in self.block_slices)

    def select_images(self, images: Sequence[int]) -> "Partial":
        """Return the partial of some images, by ascending index."""
        return replace(self._reorder(images), requires_all_images=False)

    def _reorder(self, images: Sequence[int]) -> "Partial":
        number = np.full(len(self.images), -1, np.int32)
        number[list(images)] = np.arange(len(images), dtype=np.int32)
        used = sorted(set(self.source[list(images)].tolist()))
        return replace(
            self,
            images=tuple(self.images[n] for n in images),
            position=self.position[list(images)] if len(self.position) else self.position,
            sources=tuple(self.sources[n] for n in used),
            source=np.searchsorted(used, self.source[list(images)]).astype(np.int32),
            block_slices=tuple(
                block_slice.select_images(number) for block_slice in self.block_slices
            ),
            boxes=self.boxes.of_images([self.images[n] for n in images]),
            categories=sample_of_images(self.categories, [self.images[n] for n in images]),
        )

    def select(self, classes: Iterable[str]) -> "Partial":
        """Return the partial of some classes, with unchanged metrics.

        Parameters
        ----------
        classes : iterable of str
            The names of the classes.

        Raises
        ------
        UsageError
            If a name is unknown, none is given, or the protocol is class-agnostic.
        """
        labels = np.flatnonzero(name_mask("class", self.class_names, classes)).tolist()
        part = self.select_classes(labels)
        unselected = {*self.class_ids[: self.ground_truth_classes]} - {*part.class_ids} | {
            *(self.unselected or ())
        }
        groups = {name: group for name, group in self.groups.items() if name in part.class_ids}
        from detap.evaluation.selection import sort_names

        return replace(part, unselected=sort_names(unselected), groups=groups)

    def select_classes(self, classes: Sequence[int]) -> "Partial":
        """Return the partial of some classes, by ascending index.

        Raises
        ------
        UsageError
            If the protocol is class-agnostic.
        """
        if self.protocol.class_agnostic:
            raise UsageError(
                "class-agnostic partials have no classes to select; select them at evaluation "
                "(eval --classes)"
            )
        number = np.full(len(self.class_ids), -1, np.int32)
        number[list(classes)] = np.arange(len(classes), dtype=np.int32)
        return replace(
            self,
            class_ids=tuple(self.class_ids[n] for n in classes),
            class_names=tuple(self.class_names[n] for n in classes),
            ground_truth_classes=sum(n < self.ground_truth_classes for n in classes),
            block_slices=tuple(
                block_slice.select_classes(number) for block_slice in self.block_slices
            ),
        )

    def without_rows(self) -> "Partial":
        """Return the partial without rows."""
        none = np.full(len(self.classes), -1, np.int32)
        return replace(
            self,
            block_slices=tuple(
                block_slice.select_classes(none) for block_slice in self.block_slices
            ),
        )

    def compute(self, *, threads: int | None = None, check_inputs: bool = True) -> Result:
        """Return the result, bit for bit that of one run over all boxes.

        Parameters
        ----------
        threads : int, optional
            By default all of the machine. The result does not depend on it.
        check_inputs : bool
            If True, raise an error for implausible inputs; otherwise warn.

        Raises
        ------
        InputError
            If images of the ground truth are missing, or inputs are implausible.
        UsageError
            If a class has more than 2**31 - 1 detections.
        """
        check_threads(threads)
        if (
            self.requires_all_images
            and self.ground_truth is not None
            and len(self.images) < self.ground_truth.images
        ):
            missing = self.ground_truth.images - len(self.images)
            raise InputError(
                Problem(
                    self.name,
                    "",
                    f"{missing} of the {self.ground_truth.images} images of the ground truth are "
                    "in no partial",
                    "evaluate them too (eval --images FILE), also without detections; "
                    'images="seen" (--images seen) excludes them and their ground truths',
                )
            )
        notes = self.warnings(refuse=check_inputs)
        return self.within_dataset_limit()._compute(notes, threads=threads)

    def warnings(self, *, refuse: bool = False) -> tuple[Note, ...]:
        """Return notes on implausible inputs of all parts, or raise them.

        Raises
        ------
        InputError
        """
        path_by_role = {source.role: source.path for source in reversed(self.inputs)}
        ground_truth, detections = (
            path_by_role.get(role, self.name) for role in ("ground_truth", "detections")
        )
        input_mismatches = failed_input_checks(
            self.counts, self.categories, self.notes, ground_truth, detections
        )
        mismatches = input_mismatches or failed_box_checks(self.boxes, ground_truth, detections)
        return warned(mismatches, self.notes, refuse=refuse)

    def _compute(self, notes: Iterable[Note] = (), *, threads: int | None) -> Result:
        scores = self.accumulate(threads=threads)
        if (scores.recall > 1).any():
            raise InputError(
                Problem(self.name, "", "more true positives than ground truths", "recreate it")
            )
        already_noted = any(note.code == "unknown-classes" for note in self.notes)
        noted_classes = self.classes[: self.ground_truth_classes if already_noted else None]
        unknown_classes = unknown_class_notes(scores.counts, noted_classes, self.protocol)
        no_detections = no_detections_note(scores.counts, self.notes)
        order = (INTERLEAVED,) if self._interleaved else ()
        limit = dataset_limit_note(scores.counts, self.protocol)
        notes = (*self.notes, *notes, *order, *no_detections, *unknown_classes, *limit)
        source = replace(self, threads=threads)
        result = result_of(source, self.protocol, self.classes, scores, notes)
        notes = (*result.notes, *score_cut_notes(result))
        return replace(result, notes=notes, selection=self.selection)

    def within_dataset_limit(self) -> "Partial":
        """Return the partial of the detections within the limit of the data set, if there is one.

        Each part keeps as many of its own, so none of the union's is missing.
        """
        if self.protocol.max_dets_scope != "dataset":
            return self
        ends = np.cumsum([0, *(len(part.block.detections.image) for part in self.block_slices)])
        numbered = [  # the code of each row is its number
            (
                part,
                part.block.detections._replace(code=np.arange(end - start)),
                np.arange(start, end),
            )
            for part, start, end in zip(self.block_slices, ends[:-1], ends[1:], strict=True)
        ]
        rows = gather(numbered, range(len(self.classes)), self.order)
        mask = np.zeros(ends[-1], np.bool_)
        mask[rows.code] = best_of_classes(rows.label, rows.score, self.protocol)
        return replace(
            self,
            block_slices=tuple(
                part._replace(
                    block=part.block._replace(
                        detections=part.block.detections.select_rows(mask[start:end])
                    )
                )
                for part, start, end in zip(self.block_slices, ends[:-1], ends[1:], strict=True)
            ),
        )

    @property
    def selection(self) -> "Selection | None":
        """The selected classes and images; None for all."""
        total_images = len(self.images) if self.ground_truth is None else self.ground_truth.images
        some_images = len(self.images) < total_images
        if self.unselected is None and not some_images:
            return None
        from detap.evaluation.selection import Selection

        return Selection(
            None if self.unselected is None else self.class_names,
            self.unselected or (),
            self.images if some_images else None,
            total_images,
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes of all parts."""
        return (*self.shared_notes, *self.own_notes)

    # --- source of a merged result

    def tables(self) -> NoReturn:
        """Raise UsageError: partials keep no boxes."""
        raise UsageError(_NO_BOXES)

    def tie_groups(self) -> list[TieGroup]:
        """Return the tie groups, by class and image.

        Raises
        ------
        UsageError
            If a part has no tie groups.
        """
        groups: list[TieGroup] = []
        for block_slice in self.block_slices:
            if block_slice.block.ties is None:
                raise UsageError(_NO_TIES)
            groups += block_slice.block.ties.tie_groups(block_slice.labels, block_slice.images)
        return sorted(groups, key=lambda tie_group: (tie_group.label, tie_group.image))

    @property
    def has_ties(self) -> bool:
        """True if all parts keep their tie groups."""
        return all(block_slice.block.ties is not None for block_slice in self.block_slices)

    def on_images(self, images: Sequence[int], *, threads: int | None) -> Result:
        """Return the result on some images, by index."""
        return self.select_images(images)._compute(threads=threads)

    def match_table(self) -> MatchTable:
        """Return the match table of all detections.

        Raises
        ------
        UsageError
            If there are more than 2**31 - 1 detections.
        """
        return self.match_table_of(range(len(self.classes)))

    def match_table_of(self, classes: range) -> MatchTable:
        """Return the match table of some classes, indexed from 0."""
        detections, ground_truths = self.gather_rows(classes)
        tables = self.merged_tables
        return MatchTable(
            label=detections.label,
            image=detections.image,
            score=detections.score,
            order=np.arange(len(detections.label), dtype=np.int32),
            max_dets_index=tables.match_flags.max_dets_index[detections.code],
            true_positive=tables.match_flags.true_positive.take(detections.code, axis=1),
            ignored=tables.match_flags.ignored.take(detections.code, axis=1),
            duplicate=tables.match_flags.duplicate[detections.code],
            max_iou=np.zeros(0),
            area_iou_pairs=(),
            matched_gt=np.zeros((0, len(detections.label)), np.int32),
            truth_label=ground_truths.label,
            truth_image=ground_truths.image,
            positive=tables.kinds.positive.take(ground_truths.code, axis=1),
            images=len(self.images),
            classes=len(classes),
            params=match_params(self.protocol),
        ).freeze()

    def matched_iou(self, metric: MetricSpec) -> Floats:
        """Return the IoU of each true positive with its ground truth; 0 for others, (N,) float64.

        Parameters
        ----------
        metric : MetricSpec
            Its area range and threshold.

        Raises
        ------
        UsageError
            If the parts do not keep them.
        """
        index = {pair: i for i, pair in enumerate(metrics.of_matched_iou(self.protocol))}
        pair = metric.area, metric.threshold or 0
        if pair not in index:
            raise UsageError(
                f"{metric.name}: the partials keep no IoU of matches for it; create them with "
                f"--metrics {metric.name}"
            )
        return self._gather_iou(index[pair])

    def iou_columns(self) -> list[Floats]:
        """Return the IoUs of true positives at each pair kept, (N,) each; rows as gathered."""
        return [
            self._gather_iou(index) for index in range(len(metrics.of_matched_iou(self.protocol)))
        ]

    def _gather_iou(self, index: int) -> Floats:
        classes = range(len(self.classes))
        self._check_rows(classes)
        return gather(self._parts(iou=index), classes, self.order).score

    @property
    def jaccard(self) -> tuple[JaccardCounts, ...]:
        """The counts of the Jaccard index, at the IoU thresholds of the listed ones."""
        parts = [
            [(counts, part.labels, part.images) for counts in part.block.jaccard]
            for part in self.block_slices
        ]
        return tuple(map(jaccard_columns.join, zip(*parts, strict=True)))

    def jaccard_counts(self, metric: MetricSpec) -> JaccardCounts:
        """Return the counts of a Jaccard index.

        Raises
        ------
        UsageError
            If the parts do not keep them.
        """
        thresholds = [*metrics.of_jaccard_counts(self.protocol)]
        threshold = metric.threshold or 0
        if threshold not in thresholds:
            raise UsageError(
                f"{metric.name}: the partials keep no matches for it; create them with "
                f"--metrics {metric.name}"
            )
        return self.jaccard[thresholds.index(threshold)]

    # --- rows

    @cached_property
    def merged_tables(self) -> MergedTables:
        """The merged tables of all slices."""
        match_flags, match_code = merge_tables(
            [block_slice.block.match_flags for block_slice in self.block_slices]
        )
        kinds, kind = merge_tables([block_slice.block.kinds for block_slice in self.block_slices])
        return MergedTables(match_flags, kinds, match_code, kind)

    @cached_property
    def order(self) -> Order:
        """The order of rows with equal scores."""
        images, by_image = len(self.images), np.arange(len(self.images), dtype=np.int32)
        if self.protocol.tie_break == "image" or self._interleaved:
            return Order(by_image, images)
        # Arrays count as one file, sorted by image, before all others.
        unnamed = np.array([not name for name in self.sources], np.bool_)[self.source]
        group = np.where(unnamed, by_image, images + self.source).astype(np.int32)
        return Order(group, images + len(self.sources))

    @cached_property
    def _interleaved(self) -> bool:
        """True if ties break by file order and an input's images interleave with others."""
        named = np.array([bool(name) for name in self.sources], np.bool_)[self.source]
        return self.protocol.tie_break == "file" and bool((np.diff(self.source[named]) < 0).any())

    def gather_rows(self, classes: range) -> tuple[Gathered, Gathered]:
        """Return the detections and ground truths of some classes, in order.

        Raises
        ------
        UsageError
            If there are more than 2**31 - 1 of either.
        """
        self._check_rows(classes)
        return gather(self._parts(), classes, self.order), self._gather_ground_truths(classes)

    def _check_rows(self, classes: range) -> None:
        for role, sizes in zip(("detections", "ground truths"), self.sizes, strict=True):
            count = int(sizes[classes.start : classes.stop].sum())
            if count > MAX_ROWS:
                raise UsageError(
                    f"{count} {role} of {_few(self.classes[classes.start : classes.stop])}; at "
                    f"most {MAX_ROWS} can be ranked at once"
                )

    def _parts(self, *, iou: int | None = None) -> list[Part]:
        """Return the detections of each slice, with their indices in the merged tables.

        With `iou`, the score is the IoU of true positives, at this index of the pairs kept.
        """
        pairs = zip(self.block_slices, self.merged_tables.match_code, strict=True)
        parts = [(block_slice, block_slice.block.detections, code) for block_slice, code in pairs]
        if iou is None:
            return parts
        return [(part, rows._replace(score=rows.iou[iou]), code) for part, rows, code in parts]

    def _truth_parts(self) -> list[tuple[BlockSlice, ClassColumns, NDArray[np.uint32]]]:
        """Return the ground truths of each slice, with their merged indices."""
        pairs = zip(self.block_slices, self.merged_tables.kind_code, strict=True)
        return [(block_slice, block_slice.block.ground_truths, code) for block_slice, code in pairs]

    @cached_property
    def _by_image(self) -> Order:
        return Order(np.arange(len(self.images), dtype=np.int32), len(self.images))

    def _gather_ground_truths(self, classes: range) -> Gathered:
        return gather(self._truth_parts(), classes, self._by_image)

    def detections_in_order(
        self, *, scores: bool = True, iou: int | None = None
    ) -> Iterator[Gathered]:
        """Yield all detections in chunks, class by class; `iou` as for :meth:`_parts`."""
        parts = self._parts(iou=iou)
        if not scores:
            no_scores = np.zeros(0)
            parts = [
                (block_slice, columns._replace(score=no_scores), code)
                for block_slice, columns, code in parts
            ]
        return self._ordered_rows(parts, self.sizes[0], self.order)

    def ground_truths_in_order(self) -> Iterator[Gathered]:
        """Yield all ground truths in chunks, class by class."""
        return self._ordered_rows(self._truth_parts(), self.sizes[1], self._by_image)

    def _ordered_rows(
        self,
        parts: list[tuple[BlockSlice, ClassColumns, NDArray[np.uint32]]],
        sizes: Rows,
        order: Order,
    ) -> Iterator[Gathered]:
        for classes in self.chunks():
            if len(classes) != 1 or sizes[classes.start] <= MAX_CHUNK:
                yield gather(parts, classes, order)
                continue
            for chunk in chunks_by_group(parts, classes.start, MAX_CHUNK, order):
                yield gather(chunk, range(1), order)

    @cached_property
    def sizes(self) -> Rows:
        """The numbers of detections and ground truths per class, (2, K) int64."""
        sizes = np.zeros((2, len(self.classes)), np.int64)
        for block_slice in self.block_slices:
            for columns, rows in enumerate(
                (block_slice.block.detections, block_slice.block.ground_truths)
            ):
                np.add.at(sizes[columns], block_slice.labels, np.diff(rows.start))
        return sizes

    def chunks(self) -> Iterator[range]:
        """Yield ranges of classes to accumulate together."""
        first, size_so_far = 0, 0
        for label, size in enumerate(self.sizes.sum(axis=0).tolist()):
            if size_so_far and size_so_far + size > CHUNK:
                yield range(first, label)
                first, size_so_far = label, 0
            size_so_far += size
        yield range(first, len(self.classes))

    def accumulate(self, *, threads: int | None = None) -> Scores:
        """Return the scores of all classes, computed in chunks."""
        params = match_params(self.protocol)
        if self.protocol.matching == "by-iou":
            return self._accumulate_by_iou()
        chunks = [*self.chunks()]
        if len(chunks) == 1:
            return self._accumulate_classes(chunks[0], params, threads)
        scores = Scores.undefined(params, self.truth_counts[0], all_max_dets=False)
        for classes in chunks:
            scores.set_classes(
                slice(classes.start, classes.stop),
                self._accumulate_classes(classes, params, threads),
            )
        return scores

    def _accumulate_classes(
        self, classes: range, params: MatchParams, threads: int | None
    ) -> Scores:
        self._check_rows(classes)
        order, parts = self.order, self._parts()
        counts = self.truth_counts[:, classes.start : classes.stop]
        size = int(self.sizes[0, classes.start : classes.stop].sum())
        if len(classes) != 1 or size <= CHUNK:
            coded = self._coded(gather(parts, classes, order), counts)
            return accumulate_coded(coded, params, threads=threads)

        def load(chunk: Callable[[], list[Part]]) -> Coded:
            return self._coded(gather(chunk(), range(1), order), counts)

        threads = threads or thread_count(size)
        max_rows = max(MAX_CHUNK // threads, CHUNK)
        return accumulate_chunks(
            (partial(load, chunk) for chunk in chunks_by_score(parts, classes.start, max_rows)),
            params,
            truth_counts=counts[0],
            max_hits=self._max_hits(classes.start),
            threads=threads,
        )

    def _max_hits(self, label: int) -> int:
        """Return the number of a class's detections that are ever a true positive."""
        hit: Flags = np.any(self.merged_tables.match_flags.true_positive, axis=0)
        total = 0
        for block_slice, columns, code in self._parts():
            is_hit = hit[code]
            for index in np.flatnonzero(block_slice.labels == label).tolist():
                low, high = columns.start[index : index + 2].tolist()
                for begin in range(low, high, MAX_CHUNK):
                    rows = columns.code[begin : min(begin + MAX_CHUNK, high)]
                    total += int(np.count_nonzero(is_hit[rows]))
        return total

    def _coded(self, rows: Gathered, counts: Rows) -> Coded:
        return Coded(
            label=rows.label,
            score=rows.score,
            code=rows.code,
            match_flags=self.merged_tables.match_flags,
            positives=counts[1:],
            truth_counts=counts[0],
        )

    @cached_property
    def truth_counts(self) -> Rows:
        """Ground truths per class, and those counted per area range, (1 + A, K)."""
        positive = self.merged_tables.kinds.positive
        counts = np.zeros((1 + len(positive), len(self.classes)), np.int64)
        counts[0] = self.sizes[1]
        for block_slice, kind in zip(self.block_slices, self.merged_tables.kind_code, strict=True):
            columns = block_slice.block.ground_truths
            present = np.flatnonzero(np.diff(columns.start))
            if not len(present):
                continue
            for area, row in enumerate(positive, 1):
                flags, of_code = np.empty(len(columns.code), np.bool_), row[kind]
                for begin in range(0, len(flags), MAX_CHUNK):
                    flags[begin : begin + MAX_CHUNK] = of_code[
                        columns.code[begin : begin + MAX_CHUNK]
                    ]
                of_class = np.add.reduceat(flags, columns.start[present], dtype=np.int64)
                np.add.at(counts[area], block_slice.labels[present], of_class)
        return counts

    def _accumulate_by_iou(self) -> Scores:
        params, tables = match_params(self.protocol), self.merged_tables
        _, ground_truths = self.gather_rows(range(1))
        bits = tables.kinds.covered.take(ground_truths.code, axis=1)
        return accumulate_by_iou(
            bits.reshape(len(params.area_ranges), len(params.max_dets), len(ground_truths.code)),
            tables.kinds.positive.take(ground_truths.code, axis=1),
            self.proposals,
            params,
        )

    @cached_property
    def proposals(self) -> Rows:
        """The number of proposals per image, (I,) int64."""
        counts = np.zeros(len(self.images), np.int64)
        for block_slice in self.block_slices:
            kept = block_slice.images >= 0
            if len(block_slice.block.proposals):
                counts[block_slice.images[kept]] = block_slice.block.proposals[kept]
        return counts


Blob = Partial | bytes | bytearray | memoryview


def merge(
    blobs: Iterable[Blob],
    ground_truth: GroundTruth | None = None,
    *,
    repeats: Repeats = "error",
    images: Iterable[Name] | None = None,
) -> Partial:
    """Merge partials; ``.compute()`` returns the result.

    Parameters
    ----------
    blobs : iterable of Partial or bytes
        At least one, in any order: partials, or bytes of :meth:`Partial.to_bytes`.
    ground_truth : GroundTruth, optional
        The ground truth of the partials; all of its images are required.
    repeats : {"error", "identical"}
        Treatment of an image in two partials: an error, or dropped once if its rows are
        identical, as samplers that pad the last batch produce.
    images : iterable of int or str, or "seen", optional
        The required images, others are dropped; or "seen" for those in any partial. By default
        all of the ground truth.

    Raises
    ------
    InputError
        If bytes are not a partial; if partials differ in protocol, classes, ground truth or
        format version; if an image is in two of them, or a required one in none.
    UsageError
        If there are no partials.
    """
    return Partial.merge(blobs, ground_truth, repeats=repeats, images=images)


def _counts_of(run: EvaluationRun, *, shared_ground_truth: bool) -> BoxCounts:
    """Return the box counts of a part, without a shared ground truth.

    A shared ground truth was checked when it was read.
    """
    truth, detections = run.ground_truth, run.detections
    has_known_class = bool((detections.label < len(truth.classes)).any())
    return BoxCounts.of(None if shared_ground_truth else truth, detections)._replace(
        known=int(has_known_class)
    )


def _groups_of(run: EvaluationRun) -> dict[Name, str]:
    if run.protocol.class_groups == "none":
        return {}
    return {name: group for name, group in run.groups.items() if name in run.class_ids}


def _block(result: Result, *, by_image: bool, tie_range: bool) -> Block:
    """Return the rows of a partial, with its tie groups if requested."""
    run = result._run
    protocol = run.protocol
    if protocol.matching == "by-iou":
        bits, counted, proposals = run.match_by_iou()
        image, match_table = run.ground_truth.image, None
        block = block_of_proposals(bits, counted, image, proposals, match_params(protocol))
    else:
        protocol.require_score_matching("evaluate all images in one run")
        match_table = result.match_table
        block = block_of(
            match_table,
            [*map(result.matched_iou, metrics.of_matched_iou(protocol).values())],
            by_image=by_image,
        )
        specs = metrics.of_jaccard_counts(protocol).values()
        if specs and protocol.max_dets_scope == "dataset":
            raise UsageError(
                "partials cannot keep the counts of JI with a limit of the data set; leave out JI, "
                "or use --max-dets-scope class"
            )
        block = block._replace(jaccard=tuple(map(result.jaccard_counts, specs)))
    if not tie_range:
        return block
    return block._replace(ties=Ties.of(tie_groups(run, match_table)))


def _check_kind(name: str, value: object, kinds: tuple[type, ...]) -> None:
    if not isinstance(value, kinds):
        raise UsageError(f"{name}: expected {kinds[0].__name__}, got {type(value).__name__}")


def _few(names: Sequence[str]) -> str:
    return f"class {names[0]!r}" if len(names) == 1 else f"{len(names)} classes"
