"""``detap show``: match results of one image."""

from typing import Any

import click

from detap.analysis.image_results import image_results
from detap.cli.commands.eval import command as eval_command
from detap.cli.inputs import Inputs
from detap.cli.options import (
    input_options,
    option,
    output_options,
    protocol_options,
)
from detap.cli.output import Outputs
from detap.cli.session import Session
from detap.cli.settings import ConfiguredCommand, run_options
from detap.cli.values import Text
from detap.evaluation.scoring import score_tables
from detap.report.sections.image import image_report
from detap.text_input import parse_fraction


@click.command(
    cls=ConfiguredCommand,
    settings_command=eval_command,
    first="--gt --dt --format --protocol --at-iou --output --output-format",
    examples={
        "Image 42": "detap show 42 instances.json results.json",
    },
)
@click.argument("image", metavar="IMAGE")
@input_options
@protocol_options
@option(
    "--at-iou",
    group="Protocol (what is left out stays the preset's)",
    type=Text(parse_fraction),
    metavar="X",
    help="IoU threshold of the protocol to match at; by default 0.5, or the lowest.",
)
@output_options
@run_options
@click.pass_obj
def command(session: Session, /, image: str, **options: Any) -> None:
    """Show the match results of one image.

    IMAGE is the image's id (COCO), name or file. Detections are in descending score order.
    """
    inputs = Inputs.from_options(options)
    protocol = inputs.protocol(options)
    outputs = Outputs.from_options(options, inputs.paths(), subject="an image")
    digests = outputs.needs_digests
    tables = inputs.for_protocols(protocol, digests=digests).read(session)
    truth = tables.ground_truth
    if inputs.format.by_ids and image not in {*map(str, truth.images)}:
        files = {name: str(one) for one, name in inputs.format.file_names(truth).items()}
        image = files.get(image, image)
    result = score_tables(truth, tables.detections, protocol, match_table=True)
    results = image_results(result, image, iou=options["at_iou"])
    session.print_time("matching")
    described = tables.describe(digests=digests)
    report = image_report(result, results, inputs=described)
    outputs.publish(report, session, tables.files)
