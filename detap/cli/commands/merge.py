"""``detap merge``: merge partials and report as one run."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from detap.cli.command import files
from detap.cli.commands.eval import command as eval_command
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
    check_report_options,
    extra_files,
    report_options,
    requested_blocks,
    write_reports,
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
        value_kind="path or text",
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
        value_kind="path",
        metavar="FILE",
        help="Write the merged partial.",
    ),
)


@click.command(
    cls=ConfiguredCommand,
    settings_command=eval_command,
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
        raise UsageError(
            "--slice-by needs the ground truth, which merge does not read; use --slices"
        )
    limits = limits_of(options)
    earlier = (
        () if gates.baseline_detections is None else expand_patterns([gates.baseline_detections])
    )
    outputs = Outputs.from_options(
        options, [*paths, *earlier, *gates.paths()], extra_files(options)
    )
    outputs.check()
    baseline = gates.read_baseline()
    session.start_progress("Reading")
    union = _read(paths, limits, options)
    check_report_options(options, union.protocol)
    session.start_progress("Merging")
    baseline_partial = _read(earlier, limits, options) if earlier else None
    evaluated = _evaluated(union, baseline_partial, gates, options)
    session.print_time("merging")
    return write_reports(evaluated, (gates, baseline), outputs, options, session)


def _read(paths: tuple[str, ...], limits: Limits, options: Mapping[str, Any]) -> "Partial":
    """Read and merge partials."""
    from detap.evaluation.partial import Partial, merge

    parts = [
        Partial.from_bytes(read_bytes(path, limits), limits=limits, name=path) for path in paths
    ]
    return merge(parts, repeats=options["repeats"])


def _evaluated(
    union: "Partial", baseline: "Partial | None", gates: Gates, options: Mapping[str, Any]
) -> Evaluated:
    from detap.evaluation.partial import merge
    from detap.evaluation.partial.merging import align_classes

    threads, total_images = options["threads"], len(union.images)
    images = _requested_images(union, options)
    if images is not None:
        union = merge([union], images=images)
        baseline = None if baseline is None else merge([baseline], images=images)
    if baseline is not None:
        union, baseline = align_classes(union, baseline)
    if options["classes"]:
        names = chosen_names(options["classes"], union.class_names)
        union = union.select(names)
        baseline = None if baseline is None else baseline.select(names)
    result = union.compute(threads=threads)
    if union.ground_truth is None and len(union.images) < total_images:
        from detap.evaluation.selection import Selection

        old_selection = result.selection or Selection()
        selection = replace(old_selection, images=union.images, total_images=total_images)
        result = replace(result, selection=selection)
    slices, notes = gates.read_slices(result.images, lambda _: {})
    return Evaluated(
        result,
        describe_partial(union),
        (),
        baseline=None if baseline is None else baseline.compute(threads=threads),
        slices=slices,
        notes=notes,
        blocks=requested_blocks(result, options),
        partial=union,
    )


def _requested_images(union: "Partial", options: Mapping[str, Any]) -> "str | list[Name] | None":
    """Return the selected images; None for all images of the ground truth."""
    values = options["images"]
    if not values:
        return None
    return SEEN if [*values] == [SEEN] else chosen_images(values, union.images)
