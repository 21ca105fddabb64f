"""Options that several commands share, in the groups that the help shows.

Every option can also be given in the environment: ``--max-dets`` as ``DETAP_MAX_DETS``. On the
command line it wins.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

from detap.cli.session import Session
from detap.cli.values import NO_ROUNDING, Areas, Decimals, Flags, Limits, Number, Target, Thresholds
from detap.protocols import PRESETS, Protocol, protocol
from detap.report.sinks import SINKS

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]

# Which option changes which field of a protocol. A test sees to it that none is forgotten.
AXES = {
    "iou": "iou_thresholds",
    "strict_iou": "strict_iou",
    "iou_ceiling": "iou_ceiling",
    "pixel_edge": "pixel_edge",
    "candidate": "candidate",
    "equal_iou": "equal_iou",
    "neutral": "neutral",
    "absorbing": "absorbing",
    "area_ranges": "area_ranges",
    "area_source": "area_source",
    "max_dets": "detection_limits",
    "limit_scope": "limit_scope",
    "ties": "ties",
    "ap": "interpolation",
    "recall_grid": "recall_grid",
    "precision_guard": "precision_guard",
    "absent_class": "absent_class",
    "class_agnostic": "class_agnostic",
    "pairing": "pairing",
    "empty_images": "empty_images",
    "id_zero": "id_zero",
    "score_decimals": "score_decimals",
    "box_decimals": "box_decimals",
    "headline": "headline",
}


class Option(click.Option):
    """An option with a group of the help and a variable of the environment."""

    def __init__(self, *args: Any, group: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group
        if self.envvar is None:
            self.envvar = f"DETAP_{str(self.name).upper()}"


class Command(click.Command):
    """A command whose help lists its options by group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each under its group's heading."""
        groups = defaultdict(list)
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups[getattr(parameter, "group", "General")].append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def stack(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Return one decorator for several, the first of them first in the help."""

    def decorate(function: Decorated) -> Decorated:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def option(*names: str, group: str, **attributes: Any) -> Decorator[Any]:
    """Return a decorator that adds an :class:`Option`."""
    return click.option(*names, cls=Option, group=group, **attributes)


def _input(*names: str, **attributes: Any) -> Decorator[Any]:
    return option(*names, group="Input", **attributes)


def _axis(*names: str, **attributes: Any) -> Decorator[Any]:
    return option(*names, group="Protocol (what is left out stays the preset's)", **attributes)


def _selection(*names: str, **attributes: Any) -> Decorator[Any]:
    return option(*names, group="Selection", **attributes)


def _output(*names: str, **attributes: Any) -> Decorator[Any]:
    return option(*names, group="Output", **attributes)


_format_option = _input(
    "--format",
    "file_format",
    envvar="DETAP_FORMAT",
    type=click.Choice(["voc", "coco"]),
    help="What the files are. Told from the files where left out.",
)
_truth_option = _input(
    "--gt", required=True, metavar="PATH", help="Ground truth: a JSON file, or a folder."
)
_detections_option = _input(
    "--dt",
    required=True,
    metavar="PATH",
    help="Detections: a JSON file, or a folder of text files; - is stdin.",
)
_reading_options = stack(
    _input(
        "--image-set",
        metavar="NAME|FILE",
        help="VOC: a set of ImageSets/Main, or a file with one image a line.",
    ),
    _input(
        "--layout",
        type=click.Choice(["class-files", "image-files"]),
        help="VOC: whether a text file holds the detections of a class or of an image.",
    ),
    _input(
        "--boxes",
        type=click.Choice(["corners", "xywh"]),
        help="VOC: what the four numbers of a text line are: x1 y1 x2 y2 (the default), or x y "
        "width height.",
    ),
    _input(
        "--class-names",
        metavar="FILE",
        help="VOC: class names, one a line, where text files number the classes from 0.",
    ),
)


def _limit(*names: str, **attributes: Any) -> Decorator[Any]:
    return option(*names, group="Limits (of what is read)", **attributes)


limit_options = stack(
    _limit(
        "--max-file-size",
        type=click.IntRange(1),
        metavar="BYTES",
        help="Of one file, also after expansion; 17179869184 by default.",
    ),
    _limit(
        "--max-expansion",
        type=click.IntRange(1),
        metavar="TIMES",
        help="How many times its own size a gzip file may hold; 200 by default.",
    ),
    _limit(
        "--max-records",
        type=click.IntRange(1),
        metavar="N",
        help="Images, annotations or detections of one input; 200000000 by default.",
    ),
    _limit(
        "--max-nesting",
        type=click.IntRange(1, 900),
        metavar="N",
        help="Levels of JSON or XML inside each other; 100 by default.",
    ),
    _limit(
        "--max-problems",
        type=click.IntRange(1),
        metavar="N",
        help="Problems of an input that an error lists; 20 by default.",
    ),
)
"""What is accepted at most: fields of `detap.formats.files.Limits`."""

input_options = stack(
    _format_option, _truth_option, _detections_option, _reading_options, limit_options
)
"""What a command reads that scores one detector."""

truth_options = stack(_format_option, _truth_option, _reading_options, limit_options)
"""The same without the detections, for a command that takes them otherwise."""

protocol_options = stack(
    _axis(
        "--protocol",
        "preset",
        envvar="DETAP_PROTOCOL",
        metavar="NAME",
        help=f"One of {', '.join(PRESETS)}. By default coco for COCO files, voc2012 for VOC.",
    ),
    _axis(
        "--iou",
        type=Thresholds(),
        multiple=True,
        metavar="LIST",
        help="IoU thresholds: 0.5, or 0.5,0.75, or 0.5:0.95:0.05.",
    ),
    _axis("--strict-iou/--no-strict-iou", default=None, help="Overlap must exceed the threshold."),
    _axis(
        "--iou-ceiling", type=Number(0, 1), metavar="IOU", help="Thresholds are lowered to this."
    ),
    _axis(
        "--pixel-edge/--no-pixel-edge", default=None, help="Width is x2 - x1 + 1, in whole pixels."
    ),
    _axis(
        "--candidate",
        type=click.Choice(["best", "best-free"]),
        help="The ground truth a detection may match: the best, taken or not, or the best free.",
    ),
    _axis("--equal-iou", type=click.Choice(["first", "last"]), help="The best of equal ones."),
    _axis(
        "--neutral",
        type=Flags(),
        metavar="FLAGS",
        help="Ground truths that count neither way: difficult, crowd, ignore, group_of; or none.",
    ),
    _axis(
        "--absorbing",
        type=Flags(),
        metavar="FLAGS",
        help="Neutral ones that take any number of detections; or none.",
    ),
    _axis(
        "--area-ranges",
        type=Areas(),
        metavar="RANGES",
        help="coco, proposals, none, or small=0:1024,large=1024:1e10 in square pixels.",
    ),
    _axis(
        "--area-source",
        type=click.Choice(["annotation", "box"]),
        help="The area that decides a ground truth's range.",
    ),
    _axis(
        "--max-dets",
        type=Limits(),
        metavar="LIST",
        help="Best-scored detections that count: 1,10,100; none is no limit. AP is taken at the "
        "largest.",
    ),
    _axis(
        "--limit-scope",
        type=click.Choice(["class", "image"]),
        help="The limit is for each class of an image, or for the image.",
    ),
    _axis(
        "--ties",
        type=click.Choice(["image", "file"]),
        help="Equal scores rank by image and then by place in the file, or by place alone.",
    ),
    _axis(
        "--ap",
        type=click.Choice(["11-point", "all-point", "101-point"]),
        help="How the curve becomes its average precision.",
    ),
    _axis(
        "--recall-grid",
        type=click.Choice(["matlab", "arange", "linspace", "hundredths"]),
        help="Who makes the recall levels of 11 or 101 points.",
    ),
    _axis(
        "--precision-guard",
        type=Number(0, 1),
        metavar="X",
        help="Added to TP + FP in the precision.",
    ),
    _axis(
        "--absent-class",
        type=click.Choice(["undefined", "zero"]),
        help="The AP of a class without ground truth.",
    ),
    _axis("--class-agnostic/--no-class-agnostic", default=None, help="Score classes as one."),
    _axis(
        "--pairing",
        type=click.Choice(["ranked", "coverage"]),
        help="Detections claim ground truths by falling score, or (proposals) by falling IoU.",
    ),
    _axis(
        "--empty-images",
        type=click.Choice(["counted", "left-out"]),
        help="Proposals: ground truths of images without any proposal.",
    ),
    _axis(
        "--id-zero",
        type=click.Choice(["name", "no-match"]),
        help="What an annotation id of 0 is: a name like any other, or, as in pycocotools, none.",
    ),
    _axis(
        "--score-decimals", type=Decimals(), metavar="N", help="Round scores first; none does not."
    ),
    _axis(
        "--box-decimals", type=Decimals(), metavar="N", help="Round corners first; none does not."
    ),
    _axis(
        "--headline",
        type=click.Choice(["AP", "mAP", "AR"]),
        help="The number that comes first, and with it which others there are.",
    ),
)

selection_options = stack(
    _selection(
        "--classes", multiple=True, metavar="NAMES", help="Only these, separated by commas."
    ),
    _selection(
        "--images",
        multiple=True,
        metavar="FILE|NAMES",
        help="Only these: a file with one image a line, or names (COCO: ids) separated by commas.",
    ),
)

output_options = stack(
    _output(
        "-o",
        "--output",
        "targets",
        envvar="DETAP_OUTPUT",
        type=Target(),
        multiple=True,
        metavar="[FORMAT=]PATH",
        help="Also write the report here, in the format of the extension, or the one named; - is "
        "stdout. Repeatable.",
    ),
    _output(
        "--output-format",
        type=click.Choice(list(SINKS)),
        help="What goes to stdout; a table by default.",
    ),
)


def _talk(attribute: str, value: int) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, _: click.Parameter, given: Any) -> None:
        if given:
            setattr(ctx.ensure_object(Session), attribute, value)

    return callback


def _flag(*names: str, attribute: str, value: int, text: str) -> Decorator[Any]:
    return option(
        *names,
        group="General",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_talk(attribute, value),
        help=text,
    )


general_options = stack(
    _flag(
        "-v",
        "--verbose",
        attribute="verbosity",
        value=1,
        text="Say on stderr how long each step takes.",
    ),
    _flag("-q", "--quiet", attribute="verbosity", value=-1, text="Say nothing but errors."),
    _flag("--debug", attribute="debug", value=1, text="Show the traceback of an error."),
)


def protocol_from(options: dict[str, Any], default: str) -> Protocol:
    """Take a protocol's options out of `options` and return the protocol.

    Parameters
    ----------
    options : dict
        The values of :data:`protocol_options` and perhaps others, which stay.
    default : str
        The preset where none is named.

    Raises
    ------
    UsageError
        Where the preset is unknown or the fields contradict each other.
    """
    rules = protocol(options.pop("preset") or default)
    changes: dict[str, Any] = {field: options.pop(name) for name, field in AXES.items()}
    # A repeated option gives one tuple of values per use.
    thresholds = sorted({value for part in changes["iou_thresholds"] for value in part})
    changes["iou_thresholds"] = tuple(thresholds) or None
    interpolation = changes.pop("interpolation")
    if interpolation is not None:
        rules = rules.with_interpolation(interpolation)
    given = {field: value for field, value in changes.items() if value is not None}
    if "neutral" in given and "absorbing" not in given:
        # Only neutral ground truths can absorb, and these are no longer neutral.
        kept = set(given["neutral"])
        given["absorbing"] = tuple(flag for flag in rules.absorbing if flag in kept)
    given = {field: None if value is NO_ROUNDING else value for field, value in given.items()}
    return replace(rules, **given)
