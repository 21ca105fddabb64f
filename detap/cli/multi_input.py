"""Evaluate several inputs as partials, one at a time or on the workers of an engine."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from detap.cli.gates import Gates
from detap.cli.inputs import Inputs, chosen_images, chosen_names, only_seen
from detap.cli.run_reports import Evaluated, requested_blocks, requested_sections
from detap.cli.session import Session
from detap.engines import engine
from detap.errors import InputError
from detap.io.writing import make_folder
from detap.protocols import Protocol

if TYPE_CHECKING:
    from detap.engines.shards import Shard
    from detap.evaluation.partial import Partial
    from detap.tables.detection import GroundTruth, Name, SourceFile


def evaluate_shards(
    inputs: Inputs,
    setup: tuple[Protocol, Gates],
    options: Mapping[str, Any],
    session: Session,
) -> Evaluated:
    """Evaluate inputs one by one and merge the results.

    Parameters
    ----------
    inputs : Inputs
    setup : (Protocol, Gates)
    options : mapping
        Option values of ``detap eval``.
    session : Session
    """
    protocol, gates = setup
    run = _Run(inputs, protocol, gates, options, session)
    union, baseline = run.evaluate(), None
    from detap.evaluation.partial import merge  # lazy import (start-up time)
    from detap.evaluation.partial.merging import align_classes
    from detap.report.inputs import describe_partial

    if gates.baseline_detections is not None:
        earlier = replace(inputs, dt=inputs.detection_paths(gates.baseline_detections))
        union, baseline = align_classes(
            union, _Run(earlier, protocol, gates, options, session).evaluate()
        )
    if options["classes"]:
        names = chosen_names(options["classes"], union.class_names)
        union = union.select(names)
        baseline = None if baseline is None else baseline.select(names)
    results = [
        (merge([one], images="seen") if options["images"] else one).compute(
            threads=options["threads"], check_inputs=not inputs.is_partial
        )
        for one in (union, baseline)
        if one is not None
    ]
    result = results[0]
    session.print_time("evaluating")
    slices, notes = gates.read_slices(result.images, run.attribute)
    return Evaluated(
        result,
        describe_partial(union),
        run.read,
        baseline=results[1] if baseline is not None else None,
        slices=slices,
        notes=notes,
        blocks=requested_blocks(result, options),
        partial=union,
    )


class _Run:
    """One evaluation of several inputs.

    Attributes
    ----------
    read : list of SourceFile
        Files read in this process.
    ground_truth : GroundTruth or None
        The complete ground truth, if this process has read it.
    needs_ground_truth : bool
        Whether the complete ground truth is also needed after matching.
    needs_rows : bool
        Whether per-detection match results are needed.
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
        requested = any(options[name] for name in ("partial", "curves", "images", "tie_range"))
        self.needs_rows = requested or bool(requested_sections(options)) or gates.needs_match_table
        needed = options["images"] or gates.slice_by or "image_set" in inputs.reading
        self.needs_ground_truth = bool(needed)
        self._folder = "" if options["engine"] is None else os.getcwd()
        if options["resume"] is not None:
            make_folder(options["resume"])

    def evaluate(self) -> "Partial":
        """Return the partial of all inputs."""
        result = None
        # Each input has its own ground truth: hold one pair in memory at a time.
        if len(self.inputs.gt) == len(self.inputs.dt) > 1 and not self.needs_ground_truth:
            result = self.evaluate_pairs()
        return self.evaluate_shared() if result is None else result

    def evaluate_pairs(self) -> "Partial | None":
        """Return the partial of paired inputs; None if the images do not match."""
        inputs = self.inputs
        shards = [
            self._shard((gt,), dt, whole=False) for gt, dt in zip(inputs.gt, inputs.dt, strict=True)
        ]
        if self.options["engine"] is not None:
            return self._by_engine(shards)
        ground_truths, sources = self._begin()
        partials = []
        for shard, gt, dt in zip(shards, ground_truths, sources, strict=True):
            try:
                partials.append(
                    self._partial(shard, partial(self._read_ground_truth, shard, [gt]), dt)
                )
            except InputError:
                if self._has_unknown_images(shard):
                    return None
                raise
        return self._merged(partials)

    def evaluate_shared(self) -> "Partial":
        """Return the partial of inputs with one common ground truth."""
        inputs = self.inputs
        ground_truths, sources = self._begin()
        all_images = self._shard(inputs.gt, None)
        in_process = self.options["engine"] is None
        if in_process or self.needs_ground_truth:
            self.ground_truth = self._read_ground_truth(all_images, ground_truths)
        images = self._images()
        shards = [self._shard(inputs.gt, dt, images=images) for dt in inputs.dt]
        rest = None if only_seen(self.options["images"]) else all_images._replace(images=images)
        if not in_process:
            union = self._by_engine(shards, rest)
            assert union is not None  # inputs are not paired
            return union
        from detap.engines.shards import evaluate_shard

        truth = self.ground_truth
        assert truth is not None  # read above
        partials = [
            self._partial(shard, lambda: truth, source)
            for shard, source in zip(shards, sources, strict=True)
        ]
        rests = []
        if rest is not None:
            elsewhere = tuple(image for item in partials for image in item.images)
            rest, threads = rest._replace(images_with_detections=elsewhere), self.options["threads"]
            rests.append(evaluate_shard(rest, truth, None, threads=threads))
        return self._merged(partials, rests)

    def _begin(self) -> tuple[Iterable[Any], Iterable[Any]]:
        """Return the sources, prefetched if this process reads them all."""
        if self.options["engine"] is not None or self.options["resume"] is not None:
            self.session.start_progress("Evaluating")
            return self.inputs.gt, self.inputs.dt
        ground_truths, sources = self.inputs.begin()
        self.session.start_progress("Evaluating", sources.fraction)
        return ground_truths, sources

    def _read_ground_truth(self, shard: "Shard", sources: Iterable[Any]) -> "GroundTruth":
        truth: GroundTruth = shard.ground_truth.with_given_paths(
            self.inputs.read_ground_truth(sources)
        )
        self.read += truth.files
        return truth

    @staticmethod
    def _merged(partials: "list[Partial]", rest: "Sequence[Partial]" = ()) -> "Partial":
        from detap.evaluation.partial import merge
        from detap.tables.concat import refuse_shared

        refuse_shared((item.name, item.images) for item in partials)
        return merge([*partials, *rest])

    def _shard(
        self,
        gt: tuple[str, ...],
        dt: str | None,
        *,
        whole: bool = True,
        images: "tuple[Name, ...] | None" = None,
    ) -> "Shard":
        from detap.engines.shards import InputFiles, Shard

        inputs, reading = self.inputs, tuple(sorted(self.inputs.reading.items()))
        ties = self.options["tie_range"]
        ground_truth = InputFiles(
            inputs.format.name, gt, reading, self._folder, inputs.merge_images
        )
        if dt is None:
            return Shard(ground_truth, None, self.protocol, whole, images, tie_range=ties)
        detections = InputFiles(inputs.format_of(dt).name, (dt,), reading, self._folder)
        return Shard(ground_truth, detections, self.protocol, whole, images, tie_range=ties)

    def _partial(
        self, shard: "Shard", truth: "Callable[[], GroundTruth]", source: Any
    ) -> "Partial":
        """Return the partial of an input, evaluated here or resumed."""
        from detap.engines.shards import evaluate_shard, load_or_create
        from detap.evaluation.partial import Partial

        inputs, threads = self.inputs, self.options["threads"]

        def made(shard: "Shard") -> "Partial":
            assert shard.detections is not None
            ground_truth, file_format = truth(), inputs.format_of(source)
            table = shard.detections.with_given_paths(
                file_format.read_detections(source, ground_truth, inputs.reading)
            )
            self.read.extend(table.files)
            return evaluate_shard(shard, ground_truth, table, threads=threads)

        if self.options["resume"] is None:
            return made(shard)
        blob = load_or_create(shard, self.options["resume"], lambda shard: made(shard).to_bytes())
        return Partial.from_bytes(blob, name=shard.name)

    def _by_engine(self, shards: "list[Shard]", rest: "Shard | None" = None) -> "Partial | None":
        from detap.engines.driver import evaluate

        self.session.start_progress("Evaluating")
        resume = self.options["resume"]
        with closing(engine(self.options["engine"], self.options["scheduler"])) as running:
            try:
                return evaluate(
                    running,
                    shards,
                    remaining=rest,
                    rows=self.needs_rows,
                    folder=None if resume is None else os.path.abspath(resume),
                    threads=self.options["threads"],
                )
            except InputError as error:
                files = {problem.file for problem in error.problems}
                for shard in shards:
                    detections = shard.detections
                    at_fault = detections is not None and files & {
                        *map(detections.resolve, detections.paths)
                    }
                    if (
                        at_fault
                        and not shard.shared_ground_truth
                        and self._has_unknown_images(shard)
                    ):
                        return None
                raise

    def _has_unknown_images(self, shard: "Shard") -> bool:
        """Return True if an input has images that its ground truth lacks."""
        inputs, detections = self.inputs, shard.detections
        truth = inputs.read_ground_truth(shard.ground_truth.paths)
        assert detections is not None
        path = detections.paths[0]
        names = inputs.format_of(path).placeholder_ground_truth(path, inputs.reading)
        return not set(names.images) <= set(truth.images)

    def _images(self) -> "tuple[Name, ...] | None":
        """Return the selected images; None for all."""
        if not self.options["images"] or only_seen(self.options["images"]):
            return None
        from detap.evaluation.detection import name_mask

        assert self.ground_truth is not None  # needed to select images
        names = chosen_images(self.options["images"], self.ground_truth.images)
        name_mask("image", self.ground_truth.images, names)
        return tuple(names)

    def attribute(self, name: str) -> "Mapping[Name, Any]":
        """Return the values of an image attribute."""
        assert self.ground_truth is not None  # needed for attributes
        return self.inputs.format.image_attribute(self.ground_truth, name)
