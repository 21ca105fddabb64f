"""``detap convert``: write ground truth and detections in another format."""

from collections.abc import Sequence
from typing import Any

import click

from detap.cli.command import Command
from detap.cli.inputs import Inputs
from detap.cli.options import message_options, option, optional_inputs
from detap.cli.session import Session
from detap.errors import Note, UsageError
from detap.escaping import escape
from detap.formats.catalogue import FORMATS
from detap.formats.class_map import map_tables
from detap.formats.convert import check_new, convert


@click.command(
    cls=Command,
    first="--gt --dt --format --to --output --strict --quiet",
    examples={
        "VOC annotations as COCO JSON": "detap convert VOC2007/ --to coco -o instances.json",
        "Ground truth and detections as a YOLO data set": (
            "detap convert instances.json results.json --to yolo -o yolo/"
        ),
    },
)
@optional_inputs
@option(
    "--to",
    group="Output",
    type=click.Choice([line.name for line in FORMATS.lines.values() if line.writes]),
    help="Target format; coco by default if the output is a .json file.",
)
@option(
    "-o",
    "--output",
    "target",
    group="Output",
    envvar="DETAP_CONVERT_OUTPUT",
    required=True,
    metavar="PATH",
    help="New folder; for COCO also a new .json file, of the detections if both are given.",
)
@message_options
@click.pass_obj
def command(session: Session, /, target: str, to: str | None, **options: Any) -> None:
    """Convert to COCO JSON, VOC, YOLO or the format of a labelling tool.

    Boxes and scores keep every bit that the target can hold; losses are reported. Nothing is
    overwritten.
    """
    is_json = target.endswith(".json") and to in (None, "coco")
    if to is None and not is_json:
        raise UsageError("no target format: use --to, or an output such as results.json for COCO")
    inputs = Inputs.from_options(options)
    check_new(target)
    session.start_progress("Reading")
    truth = inputs.read_ground_truth(inputs.gt) if inputs.gt else None
    detections = inputs.read_detections(inputs.dt, truth) if inputs.dt else None
    [truth], [detections] = map_tables(inputs.class_map, [truth], [detections])
    for table in (truth, detections):
        session.print_notes(() if table is None else table.notes)
    session.print_time("reading")

    def accept(notes: Sequence[Note]) -> None:
        session.print_notes(notes)
        session.check_warnings()

    if is_json and detections is not None:
        truth = None
    done = convert(target, truth, detections, to=to or "coco", accept=accept)
    session.print_time("writing")
    counts = []
    if truth is not None:
        of = f"{len(truth.classes)} classes on {len(truth.images)} images"
        counts.append(f"{len(truth)} objects of {of}")
    if detections is not None:
        counts.append(f"{len(detections)} detections")
    if not session.quiet:
        session.print_line(f"{escape(done.path)}: {' and '.join(counts)}")
