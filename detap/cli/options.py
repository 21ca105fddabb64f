"""Options that several commands share, in the groups that the help shows.

Every option can also be given in the environment: ``--max-dets`` as ``DETAP_MAX_DETS``. On the
command line it wins.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from detap.cli.command import files
from detap.cli.session import Session
from detap.cli.values import Given, Path, Target, Text, Whole, target
from detap.formats.registry import FORMATS, Format
from detap.formats.registry import Option as FormatOption
from detap.formats.registry import options as format_options
from detap.io.limits import MOST_RECORDS
from detap.protocols import Protocol
from detap.protocols.fields import ProtocolBase, ProtocolField, YesNo, protocol_fields
from detap.report.writers.registry import WRITERS
from detap.text_input import nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_PATHS = ("path", "path or text", "target")


IOU_TYPE_SUFFIXES = {
    "bbox": "",
    "segm": "-segm",
    "boundary": "-boundary",
    "keypoints": "-keypoints",
}
"""The end of the names of presets that differ in the IoU type: lvis, lvis-segm."""

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]


def envvar_of(spelling: str) -> str:
    """Return the variable that stands for an option: ``DETAP_MAX_DETS`` for ``--max-dets``."""
    return f"DETAP_{spelling.lstrip('-').replace('-', '_').upper()}"


class Option(click.Option):
    """An option with a group of the help and a variable of the environment.

    `holds` says what its values are, for settings files, whose paths are relative to their folder.
    One that is not `settable` takes nothing from such a file: there its name means something else.
    `known_as` are words that other tools have for it, for who types one of them. `brief` is what
    the first screen of help says of it: all its help, where left out.
    """

    def __init__(
        self,
        *args: Any,
        group: str,
        holds: Literal["text", "path", "path or text", "target", "limit"] = "text",
        settable: bool = True,
        known_as: Sequence[str] = (),
        brief: str = "",
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.group = group
        self.holds = holds
        self.settable = settable
        self.known_as = known_as
        self.brief = brief or self.help
        if self.envvar is None:
            self.envvar = f"DETAP_{str(self.name).upper()}"

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the value of a text; one that is none of a choice may be a slip for one."""
        try:
            return super().type_cast_value(ctx, value)
        except click.BadParameter as error:
            meant: list[str] = []
            if isinstance(self.type, click.Choice) and isinstance(value, str):
                meant = nearest(value, map(str, self.type.choices))
            if not meant:
                raise
            hint = f"{error.message} Did you mean {' or '.join(map(repr, meant))}?"
            raise click.BadParameter(hint, ctx, self) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[Any]]":
        """Return what may stand there: of a choice or a path, the shell knows the rest."""
        found = super().shell_complete(ctx, incomplete)
        return found or (files(ctx, self, incomplete) if self.holds in _PATHS else [])


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


_input = partial(option, group="Input")
_axis = partial(option, group="Protocol (default: as in the preset)")
_selection = partial(option, group="Selection")
_output = partial(option, group="Output")
_limit = partial(option, group="Limits of input")


_format_options = stack(
    _input(
        "--format",
        "file_format",
        envvar="DETAP_FORMAT",
        type=click.Choice(list(FORMATS)),
        help="Input format; detected by default.",
    ),
    _input(
        "--gt-format",
        envvar="DETAP_GT_FORMAT",
        type=click.Choice(list(FORMATS)),
        help="Format of the ground truth only.",
    ),
    _input(
        "--dt-format",
        envvar="DETAP_DT_FORMAT",
        type=click.Choice(list(FORMATS)),
        help="Format of the detections only. Files of two formats match images by file stem and "
        "classes by name.",
    ),
)

_SIDES = {
    "--gt": (
        "Ground truth: a file, a folder, or a pattern of several files. Repeatable.",
        "Ground truth: a file or a folder. Repeatable.",
        ("--ground-truth", "--groundtruth", "--annotations", "--ann-file", "--labels"),
    ),
    "--dt": (
        "Detections: a file, a folder, a pattern of several files, or - for stdin. Repeatable.",
        "Detections: a file, a folder, or - for stdin. Repeatable.",
        ("--detections", "--predictions", "--pred", "--preds", "--results", "--res-file"),
    ),
}
"""What the two sides are, the same in brief, and what other tools call them."""


def _side(name: str, *, required: bool = True) -> Decorator[Any]:
    text, brief, known_as = _SIDES[name]
    return _input(
        name,
        brief=brief,
        known_as=known_as,
        required=required,
        multiple=True,
        holds="path",
        type=Path(),
        metavar="PATH",
        help=text,
    )


def _reading_option(found: FormatOption, formats: Sequence[Format]) -> Decorator[Any]:
    whose = ", ".join(entry.title for entry in formats)
    return _input(
        found.spelling,
        found.name,
        holds="path" if found.is_path else "path or text" if found.may_be_path else "text",
        type=click.Choice(found.choices) if found.choices else None,
        metavar=found.metavar,
        help=f"{whose}: {found.help[0].lower()}{found.help[1:]}",
    )


_reading_options = stack(
    *starmap(_reading_option, format_options().items()),
    _input(
        "--as-is",
        is_flag=True,
        help="Accept input that fails a plausibility check (normalized boxes, negative sizes, "
        "category ids off by one).",
    ),
    _input(
        "--merge-images",
        is_flag=True,
        help="Merge the boxes of an image that occurs in several inputs; an error by default.",
    ),
)
"""What the readers of formats take."""


limit_options = stack(
    _limit(
        "--max-file-size",
        type=Whole(1),
        metavar="BYTES",
        help="Maximum size of a file, also after expansion. [default: 17179869184]",
    ),
    _limit(
        "--max-expansion",
        type=Whole(1),
        metavar="TIMES",
        help="Maximum ratio of expanded to compressed size. [default: 200]",
    ),
    _limit(
        "--max-records",
        type=Whole(1, MOST_RECORDS),
        metavar="N",
        help="Maximum number of images, annotations or detections of an input. "
        "[default: 200000000]",
    ),
    _limit(
        "--max-nesting",
        type=Whole(1, 900),
        metavar="N",
        help="Maximum nesting depth of JSON or XML. [default: 100]",
    ),
    _limit(
        "--max-problems",
        type=Whole(1),
        metavar="N",
        help="Maximum number of problems that an error lists. [default: 20]",
    ),
    _limit(
        "--max-mask-runs",
        type=Whole(1),
        metavar="N",
        help="Maximum number of pixel runs of an image's polygons. [default: 8388608]",
    ),
)
"""What is accepted at most: fields of `detap.io.limits.Limits`."""


def _read_options(*sides: Decorator[Any]) -> Decorator[Any]:
    return stack(_format_options, *sides, _reading_options, limit_options)


input_options = _read_options(_side("--gt"), _side("--dt"))
"""What a command reads that scores one detector."""

truth_options = _read_options(_side("--gt"))
"""The same without the detections, for a command that takes them otherwise."""

perhaps_input_options = _read_options(*(_side(name, required=False) for name in _SIDES))
"""The same for a command that can do without."""


def axis_options(rules: type[ProtocolBase], envvar: str, default: str) -> Decorator[Any]:
    """Return the options of a kind of protocol: its preset, and one for each axis.

    Parameters
    ----------
    rules : type
        :class:`detap.protocols.Protocol` or another kind.
    envvar : str
        Names the preset in the environment.
    default : str
        What the help says of the preset where none is named.
    """
    return stack(_preset_option(rules, envvar, default), change_options(rules))


def _preset_option(rules: type[ProtocolBase], envvar: str, default: str) -> Decorator[Any]:
    return _axis(
        "--protocol",
        "preset",
        envvar=envvar,
        metavar="NAME",
        shell_complete=lambda _, __, text: [n for n in rules.presets if n.startswith(text)],
        help=f"Preset: {', '.join(rules.presets)}. {default}",
        brief=f"Preset; {default[0].lower()}{default[1:]}",
    )


def change_options(rules: type[ProtocolBase]) -> Decorator[Any]:
    """Return an option for each axis of a kind of protocol."""
    return stack(*map(_option_of, protocol_fields(rules)))


def _option_of(axis: ProtocolField) -> Decorator[Any]:
    if isinstance(axis.kind, YesNo):
        return _axis(
            f"{axis.option}/--no-{axis.option[2:]}", axis.name, default=None, help=axis.help
        )
    kind = axis.kind
    choices = click.Choice(kind.choices) if kind.metavar is None else None
    return _axis(
        axis.option,
        axis.name,
        envvar=envvar_of(axis.option),
        type=choices or Text(lambda text: Given(kind.parse(text))),
        multiple=kind.repeatable,
        metavar=kind.metavar,
        help=axis.help,
    )


_PRESET = _preset_option(
    Protocol,
    "DETAP_PROTOCOL",
    "By default voc2012 for VOC, kitti for KITTI, dota for DOTA, else coco.",
)

_FIELDS = {field.name: field for field in protocol_fields(Protocol)}

preset_options = stack(_PRESET, _option_of(_FIELDS["iou_type"]))
"""The preset, for a command that only reads what it evaluates."""

sigmas_option = _option_of(_FIELDS["sigmas"])
"""The number of keypoints of an object, for such a command."""

protocol_options = stack(_PRESET, change_options(Protocol))

classes_option = _selection(
    "--classes",
    multiple=True,
    metavar="NAMES",
    help="Report only these classes, separated by commas.",
)

selection_options = stack(
    classes_option,
    _selection(
        "--images",
        multiple=True,
        holds="path or text",
        metavar="FILE|NAMES",
        help="Evaluate only these images: a file with one per line, or names (COCO: ids) "
        "separated by commas.",
    ),
)

output_options = stack(
    _output(
        "-o",
        "--output",
        "targets",
        holds="target",
        envvar="DETAP_OUTPUT",
        type=Target(target),
        multiple=True,
        metavar="[FORMAT=]PATH",
        help="Write the report here too, in the format given or by extension; - is stdout. "
        "Repeatable.",
        brief="Write the report here too; format by extension: .json, .md and others.",
    ),
    _output(
        "--output-format",
        type=click.Choice(list(WRITERS)),
        help="Format on stdout; table by default.",
        brief="Format on stdout: table, json, markdown and others.",
    ),
)


def _talk(ctx: click.Context, _: click.Parameter, given: Any, attribute: str, value: int) -> Any:
    """Set an attribute of the session where the option is given."""
    if given:
        setattr(ctx.ensure_object(Session), attribute, value)
    return given


def _flag(*names: str, attribute: str, value: int, text: str) -> Decorator[Any]:
    return option(
        *names,
        group="General",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=partial(_talk, attribute=attribute, value=value),
        help=text,
    )


strict_option = option(
    "--strict",
    group="General",
    is_flag=True,
    callback=partial(_talk, attribute="strict", value=True),
    help="Make warnings errors: exit status 2.",
)

threads_option = option(
    "--threads",
    group="General",
    type=Whole(1, 1024),
    metavar="N",
    help="Number of threads; all cores by default. The result is the same.",
)

general_options = stack(
    _flag(
        "-v",
        "--verbose",
        attribute="verbosity",
        value=1,
        text="Print the time of each step on stderr.",
    ),
    _flag(
        "-q",
        "--quiet",
        attribute="verbosity",
        value=-1,
        text="Print only errors and failed gates.",
    ),
    _flag("--debug", attribute="debug", value=1, text="Show the traceback of an error."),
)


def protocol_from(options: dict[str, Any], kind: type[ProtocolBase], default: str) -> Any:
    """Take a protocol's options out of `options` and return the protocol.

    Parameters
    ----------
    options : dict
        The values of :func:`axis_options` and perhaps others, which stay.
    kind : type
        Of protocol.
    default : str
        The preset where none is named.

    Raises
    ------
    UsageError
        Where the preset is unknown or the fields contradict each other.
    """
    preset, changes = preset_from(options, kind, default), changes_from(options, kind)
    if not changes:
        return preset
    protocol = preset.with_changes(**changes)
    protocol.check_effect(name for name, value in changes.items() if value != getattr(preset, name))
    return protocol


def preset_from(options: dict[str, Any], kind: type[ProtocolBase], default: str) -> Any:
    """Take what names a preset out of `options` and return it, as :func:`protocol_from` does.

    ``--iou-type`` selects the sibling preset of that type where there is one (``lvis`` and ``segm``
    give ``lvis-segm``). Otherwise it changes the field like any other option.
    """
    preset: Any = kind.preset(options.pop("preset") or default)
    iou_type = options.get("iou_type")
    if iou_type is None or preset.iou_type == iou_type:
        return preset
    suffix = IOU_TYPE_SUFFIXES.get(preset.iou_type, "")
    name = preset.name.removesuffix(suffix) + IOU_TYPE_SUFFIXES.get(iou_type, "")
    sibling: Any = preset.presets.get(name)
    return sibling if sibling and sibling.iou_type == iou_type else preset


def changes_from(options: dict[str, Any], kind: type[ProtocolBase]) -> dict[str, Any]:
    """Take the options of :func:`change_options` out of `options`, and return those given."""
    found = {axis: options.pop(axis.name, None) for axis in protocol_fields(kind)}
    return {axis.name: _value(axis, value) for axis, value in found.items() if value not in _LEFT}


_LEFT = (None, ())
"""What an option that was left out has, or a repeatable one."""


def _value(axis: ProtocolField, found: Any) -> Any:
    if axis.kind.repeatable:
        # One list for each use of the option.
        return tuple(sorted({value for part in found for value in part.value}))
    return found.value if isinstance(found, Given) else found
