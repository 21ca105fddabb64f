"""Several inputs by partials: one input is held at a time, or each by a worker of an engine."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from detap.cli.gates import Gates
from detap.cli.inputs import Inputs, chosen_images, chosen_names, only_seen
from detap.cli.run_reports import Evaluated, asked_blocks, make_folder, requested_sections
from detap.cli.session import Session
from detap.engines import engine
from detap.errors import InputError
from detap.protocols import Protocol

if TYPE_CHECKING:
    from detap.engines.shards import Shard
    from detap.evaluation.partial import Partial
    from detap.tables.detection import GroundTruth, Name, SourceFile


def evaluate_shards(
    inputs: Inputs,
    how: tuple[Protocol, Gates],
    options: Mapping[str, Any],
    session: Session,
) -> Evaluated:
    """Evaluate inputs one by one, and return what comes of them all.

    Parameters
    ----------
    inputs : Inputs
    how : (Protocol, Gates)
    options : mapping
        The values of the options of ``detap eval``.
    session : Session
    """
    protocol, gates = how
    run = _Run(inputs, protocol, gates, options, session)
    union, before = run.union(), None
    from detap.evaluation.partial import merge  # numpy is there by now
    from detap.evaluation.partial.merging import align_classes
    from detap.report.inputs import describe_partial

    if gates.baseline_detections is not None:
        earlier = replace(inputs, dt=inputs.meant(gates.baseline_detections))
        union, before = align_classes(
            union, _Run(earlier, protocol, gates, options, session).union()
        )
    if options["classes"]:
        names = chosen_names(options["classes"], union.class_names)
        union = union.select(names)
        before = None if before is None else before.select(names)
    results = [
        (merge([one], images="seen") if options["images"] else one).compute(
            threads=options["threads"], check_inputs=not inputs.part
        )
        for one in (union, before)
        if one is not None
    ]
    result = results[0]
    session.timed("evaluating")
    slices, notes = gates.read_slices(result.images, run.attribute)
    return Evaluated(
        result,
        describe_partial(union),
        run.read,
        before=results[1] if before is not None else None,
        slices=slices,
        notes=notes,
        blocks=asked_blocks(result, options),
        partial=union,
    )


class _Run:
    """One evaluation of several inputs.

    Attributes
    ----------
    read : list of SourceFile
        What was read in this process.
    ground_truth : GroundTruth or None
        The whole ground truth, where this process has it.
    wants_truth : bool
        Whether more is asked of the whole ground truth than that it be scored.
    wants_rows : bool
        Whether more is asked of the partials than the numbers of the protocol.
    """

    def __init__(
        self,
        inputs: Inputs,
        protocol: Protocol,
        gates: Gates,
        options: Mapping[str, Any],
        session: Session,
    ) -> None:
        self.inputs, self.protocol, self.options, self.session = inputs, protocol, options, session
        self.read: list[SourceFile] = []
        self.ground_truth: GroundTruth | None = None
        wanted = any(options[name] for name in ("partial", "curves", "images", "tie_range"))
        self.wants_rows = wanted or bool(requested_sections(options)) or gates.needs_match_table
        asked = options["images"] or gates.slice_by or "image_set" in inputs.reading
        self.wants_truth = bool(asked)
        self._folder = "" if options["engine"] is None else os.getcwd()
        if options["resume"] is not None:
            make_folder(options["resume"])

    def union(self) -> "Partial":
        """Return what all inputs come to."""
        found = None
        # Each input with a ground truth of its own: only one such pair is held at a time.
        if len(self.inputs.gt) == len(self.inputs.dt) > 1 and not self.wants_truth:
            found = self.pairs()
        return self.whole() if found is None else found

    def pairs(self) -> "Partial | None":
        """Return the union where each input is about one ground truth; None where one is not."""
        inputs = self.inputs
        shards = [
            self._shard((gt,), dt, whole=False) for gt, dt in zip(inputs.gt, inputs.dt, strict=True)
        ]
        if self.options["engine"] is not None:
            return self._by_engine(shards)
        truths, sources = self._begin()
        parts = []
        for shard, gt, dt in zip(shards, truths, sources, strict=True):
            try:
                parts.append(self._partial(shard, partial(self._truth, shard, [gt]), dt))
            except InputError:
                if self._strays(shard):
                    return None
                raise
        return self._merged(parts)

    def whole(self) -> "Partial":
        """Return the union where the ground truth is one for all inputs."""
        inputs = self.inputs
        truths, sources = self._begin()
        whole = self._shard(inputs.gt, None)
        here = self.options["engine"] is None
        if here or self.wants_truth:
            self.ground_truth = self._truth(whole, truths)
        images = self._images()
        shards = [self._shard(inputs.gt, dt, images=images) for dt in inputs.dt]
        rest = None if only_seen(self.options["images"]) else whole._replace(images=images)
        if not here:
            union = self._by_engine(shards, rest)
            assert union is not None  # as none is paired
            return union
        from detap.engines.shards import evaluate_shard

        truth = self.ground_truth
        assert truth is not None  # read above
        parts = [
            self._partial(shard, lambda: truth, source)
            for shard, source in zip(shards, sources, strict=True)
        ]
        rests = []
        if rest is not None:
            elsewhere = tuple(image for part in parts for image in part.images)
            rest, threads = rest._replace(images_with_detections=elsewhere), self.options["threads"]
            rests.append(evaluate_shard(rest, truth, None, threads=threads))
        return self._merged(parts, rests)

    def _begin(self) -> tuple[Iterable[Any], Iterable[Any]]:
        """Return what to read on: begun ahead, but where this process may read nothing of it."""
        if self.options["engine"] is not None or self.options["resume"] is not None:
            self.session.doing("Evaluating")
            return self.inputs.gt, self.inputs.dt
        truths, sources = self.inputs.begin()
        self.session.doing("Evaluating", sources.fraction)
        return truths, sources

    def _truth(self, shard: "Shard", sources: Iterable[Any]) -> "GroundTruth":
        truth: GroundTruth = shard.ground_truth.with_given_paths(
            self.inputs.read_ground_truth(sources)
        )
        self.read += truth.files
        return truth

    @staticmethod
    def _merged(parts: "list[Partial]", rest: "Sequence[Partial]" = ()) -> "Partial":
        from detap.evaluation.partial import merge
        from detap.tables.concat import refuse_shared

        refuse_shared((part.name, part.images) for part in parts)
        return merge([*parts, *rest])

    def _shard(
        self,
        gt: tuple[str, ...],
        dt: str | None,
        *,
        whole: bool = True,
        images: "tuple[Name, ...] | None" = None,
    ) -> "Shard":
        from detap.engines.shards import InputFiles, Shard

        inputs, given = self.inputs, tuple(sorted(self.inputs.reading.items()))
        ties = self.options["tie_range"]
        truth = InputFiles(inputs.format.name, gt, given, self._folder, inputs.merge_images)
        if dt is None:
            return Shard(truth, None, self.protocol, whole, images, tie_range=ties)
        found = InputFiles(inputs.format_of(dt).name, (dt,), given, self._folder)
        return Shard(truth, found, self.protocol, whole, images, tie_range=ties)

    def _partial(
        self, shard: "Shard", truth: "Callable[[], GroundTruth]", source: Any
    ) -> "Partial":
        """Return the partial of an input that is read here, or was kept."""
        from detap.engines.shards import evaluate_shard, load_or_create
        from detap.evaluation.partial import Partial

        inputs, threads = self.inputs, self.options["threads"]

        def made(shard: "Shard") -> "Partial":
            assert shard.detections is not None  # it is of an input
            known, entry = truth(), inputs.format_of(source)
            table = shard.detections.with_given_paths(
                entry.read_detections(source, known, inputs.reading)
            )
            self.read.extend(table.files)
            return evaluate_shard(shard, known, table, threads=threads)

        if self.options["resume"] is None:
            return made(shard)
        blob = load_or_create(shard, self.options["resume"], lambda shard: made(shard).to_bytes())
        return Partial.from_bytes(blob, name=shard.name)

    def _by_engine(self, shards: "list[Shard]", rest: "Shard | None" = None) -> "Partial | None":
        from detap.engines.driver import evaluate

        self.session.doing("Evaluating")
        resume = self.options["resume"]
        with closing(engine(self.options["engine"], self.options["scheduler"])) as begun:
            try:
                return evaluate(
                    begun,
                    shards,
                    remaining=rest,
                    rows=self.wants_rows,
                    folder=None if resume is None else os.path.abspath(resume),
                    threads=self.options["threads"],
                )
            except InputError as error:
                files = {problem.file for problem in error.problems}
                for shard in shards:
                    found = shard.detections
                    at_fault = found is not None and files & {*map(found.resolve, found.paths)}
                    if at_fault and not shard.shared_ground_truth and self._strays(shard):
                        return None
                raise

    def _strays(self, shard: "Shard") -> bool:
        """Return whether an input names images that its own ground truth has not."""
        inputs, found = self.inputs, shard.detections
        truth = inputs.read_ground_truth(shard.ground_truth.paths)
        assert found is not None  # it is of an input
        path = found.paths[0]
        names = inputs.format_of(path).placeholder_ground_truth(path, inputs.reading)
        return not set(names.images) <= set(truth.images)

    def _images(self) -> "tuple[Name, ...] | None":
        """Return the images that were chosen; None where all are due."""
        if not self.options["images"] or only_seen(self.options["images"]):
            return None
        from detap.evaluation.detection import name_mask

        assert self.ground_truth is not None  # as images were chosen
        names = chosen_images(self.options["images"], self.ground_truth.images)
        name_mask("image", self.ground_truth.images, names)
        return tuple(names)

    def attribute(self, name: str) -> "Mapping[Name, Any]":
        """Return the value of an attribute of each image that has it."""
        assert self.ground_truth is not None  # as it was wanted
        return self.inputs.format.image_attribute(self.ground_truth, name)
