"""``detap merge``: add up partials, and report as if all had been evaluated in one run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from detap.cli.command import files
from detap.cli.commands.eval import command as evaluating
from detap.cli.gates import Gates, gate_options
from detap.cli.inputs import SEEN, chosen_images, chosen_names, limits_of
from detap.cli.options import (
    general_options,
    limit_options,
    option,
    output_options,
    stack,
    strict_option,
)
from detap.cli.output import Outputs
from detap.cli.run_reports import (
    Evaluated,
    analysis_options,
    asked_blocks,
    check_report_options,
    other_files,
    report_options,
    tell,
)
from detap.cli.session import Session
from detap.cli.settings import ConfiguredCommand, config_options
from detap.errors import UsageError
from detap.formats.multi_file import expand_patterns
from detap.io.limits import Limits
from detap.io.stream import read_bytes
from detap.report.inputs import describe_partial

if TYPE_CHECKING:
    from detap.evaluation.partial import Partial
    from detap.tables.detection import Name

merge_options = stack(
    option(
        "--classes",
        group="Partials",
        multiple=True,
        settable=False,
        metavar="NAMES",
        help="Report only these classes, separated by commas.",
    ),
    option(
        "--images",
        group="Partials",
        multiple=True,
        settable=False,
        holds="path or text",
        metavar="FILE|NAMES|seen",
        help="Require only these images, or those in any partial (seen); by default all of the "
        "ground truth.",
    ),
    option(
        "--repeats",
        group="Partials",
        type=click.Choice(["error", "identical"]),
        default="error",
        help="Refuse an image in two partials (error, the default), or count equal rows once.",
    ),
    option(
        "--partial",
        group="Output",
        settable=False,
        holds="path",
        metavar="FILE",
        help="Write the merged partial.",
    ),
)


@click.command(
    cls=ConfiguredCommand,
    known=evaluating,
    first=("--fail-under", "--max-drop", "--baseline", "--output", "--output-format", "--quiet"),
    examples={
        "Partials of several jobs": "detap merge 'parts/*.part' -o report.json",
    },
)
@click.argument("partials", metavar="PARTIAL...", shell_complete=files, nargs=-1, required=True)
@merge_options
@gate_options
@analysis_options
@output_options
@report_options
@limit_options
@config_options
@strict_option
@general_options
@click.pass_obj
def command(session: Session, /, partials: tuple[str, ...], **options: Any) -> int:
    """Merge partials and report as one run would.

    PARTIAL is a file of eval --partial, or a pattern. Protocol and ground truth are those of the
    partials. Options that need boxes are refused.
    """
    paths = expand_patterns(partials)
    gates = Gates.from_options(options)
    if gates.slice_by is not None:
        raise UsageError("--slice-by looks into the ground truth, which is not read: give --slices")
    limits = limits_of(options)
    earlier = (
        () if gates.baseline_detections is None else expand_patterns([gates.baseline_detections])
    )
    outputs = Outputs.from_options(
        options, [*paths, *earlier, *gates.paths()], other_files(options)
    )
    outputs.check()
    baseline = gates.read_baseline()
    session.doing("Reading")
    union = _read(paths, limits, options)
    check_report_options(options, union.protocol)
    session.doing("Merging")
    before = _read(earlier, limits, options) if earlier else None
    found = _evaluated(union, before, gates, options)
    session.timed("merging")
    return tell(found, (gates, baseline), outputs, options, session)


def _read(paths: tuple[str, ...], limits: Limits, options: Mapping[str, Any]) -> "Partial":
    """Return what partials add up to."""
    from detap.evaluation.partial import Partial, merge

    parts = [
        Partial.from_bytes(read_bytes(path, limits), limits=limits, name=path) for path in paths
    ]
    return merge(parts, repeats=options["repeats"])


def _evaluated(
    union: "Partial", before: "Partial | None", gates: Gates, options: Mapping[str, Any]
) -> Evaluated:
    from detap.evaluation.partial import merge
    from detap.evaluation.partial.merging import align_classes

    threads, of_images = options["threads"], len(union.images)
    chosen = _chosen(union, options)
    if chosen is not None:
        union = merge([union], images=chosen)
        before = None if before is None else merge([before], images=chosen)
    if before is not None:
        union, before = align_classes(union, before)
    if options["classes"]:
        names = chosen_names(options["classes"], union.class_names)
        union = union.select(names)
        before = None if before is None else before.select(names)
    result = union.compute(threads=threads)
    if union.ground_truth is None and len(union.images) < of_images:
        from detap.evaluation.selection import Selection

        named = result.selection or Selection()
        selection = replace(named, images=union.images, total_images=of_images)
        result = replace(result, selection=selection)
    slices, notes = gates.read_slices(result.images, lambda _: {})
    return Evaluated(
        result,
        describe_partial(union),
        (),
        before=None if before is None else before.compute(threads=threads),
        slices=slices,
        notes=notes,
        blocks=asked_blocks(result, options),
        partial=union,
    )


def _chosen(union: "Partial", options: Mapping[str, Any]) -> "str | list[Name] | None":
    """Return which images are due; None where all are that the ground truth has."""
    given = options["images"]
    if not given:
        return None
    return SEEN if [*given] == [SEEN] else chosen_images(given, union.images)
