"""Options shared by several commands, in the groups of the help.

Every option can also be set in the environment: ``--max-dets`` as ``DETAP_MAX_DETS``.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import starmap
from typing import Any, Literal, TypeVar

import click
from click.shell_completion import CompletionItem

from detap import metrics
from detap.cli.command import files
from detap.cli.session import Session
from detap.cli.values import Given, Integer, Path, Target, Text, target
from detap.formats.base import Format
from detap.formats.catalogue import FORMATS
from detap.formats.catalogue import options as format_options
from detap.formats.options import TREATMENTS
from detap.formats.options import Option as FormatOption
from detap.io.limits import DEFAULT_LIMITS, MOST_RECORDS
from detap.protocols import Protocol
from detap.protocols.fields import ProtocolBase, ProtocolField, YesNo, protocol_fields
from detap.report.writers.registry import WRITERS
from detap.text_input import nearest

_PATHS = ("path", "path or text", "target")

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Decorator = Callable[[Decorated], Decorated]


def envvar_of(name: str) -> str:
    """Return the environment variable of an option."""
    return f"DETAP_{name.lstrip('-').replace('-', '_').upper()}"


class Option(click.Option):
    """An option with a help group, a `brief` text for ``--help``, and an environment variable.

    The values of a settings file depend on `value_kind`: paths are relative to the folder of the
    file; ``path or text`` is a path if it exists; ``target`` is ``[FORMAT=]PATH``; ``limit`` is
    ``[NAME=]NUMBER`` or a table. It cannot set options that are not `settable`.
    """

    def __init__(
        self,
        *args: Any,
        group: str,
        value_kind: Literal["text", "path", "path or text", "target", "limit"] = "text",
        settable: bool = True,
        brief: str = "",
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **attributes)
        self.group = group
        self.value_kind = value_kind
        self.settable = settable
        self.brief = brief or self.help
        if self.envvar is None:
            self.envvar = f"DETAP_{str(self.name).upper()}"

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert a text; for an invalid choice suggest similar ones."""
        try:
            return super().type_cast_value(ctx, value)
        except click.BadParameter as error:
            suggestions: list[str] = []
            if isinstance(self.type, click.Choice) and isinstance(value, str):
                suggestions = nearest(value, map(str, self.type.choices))
            if not suggestions:
                raise
            hint = f"{error.message} Did you mean {' or '.join(map(repr, suggestions))}?"
            raise click.BadParameter(hint, ctx, self) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Return completions; paths are completed by the shell."""
        items = super().shell_complete(ctx, incomplete)
        return items or (files(ctx, self, incomplete) if self.value_kind in _PATHS else [])


def stack(*decorators: Decorator[Any]) -> Decorator[Any]:
    """Combine decorators; options appear in the help in this order."""

    def decorate(function: Decorated) -> Decorated:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def option(*names: str, group: str, **attributes: Any) -> Decorator[Any]:
    """Return a decorator that adds an :class:`Option`."""
    return click.option(*names, **{"cls": Option, **attributes}, group=group)


_input = partial(option, group="Input")
_field = partial(option, group="Protocol (default: as in the preset)")
_selection = partial(option, group="Selection")
_output = partial(option, group="Output")


_format = partial(_input, type=click.Choice(list(FORMATS)))

_format_options = stack(
    _format(
        "--format", "file_format", envvar="DETAP_FORMAT", help="Input format; detected by default."
    ),
    _format("--gt-format", help="Format of the ground truth only."),
    _format(
        "--dt-format",
        help="Format of the detections only. Files of two formats match images by file stem and "
        "classes by name.",
    ),
)

_ROLES = {
    "--gt": (
        "Ground truth: a file, a folder, or a pattern of several files. Repeatable.",
        "Ground truth: a file or a folder. Repeatable.",
    ),
    "--dt": (
        "Detections: a file, a folder, a pattern of several files, or - for stdin. Repeatable.",
        "Detections: a file, a folder, or - for stdin. Repeatable.",
    ),
}
"""Help and brief help of ``--gt`` and ``--dt``."""


_ARGUMENTS = "input_paths"  # name of the positional arguments GT and DT


class _RoleOption(Option):
    """``--gt`` or ``--dt``; one path may be a positional argument instead."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Take the path from the arguments."""
        name, index = self.opts[0], [*_ROLES].index(self.opts[0])
        paths = opts.get(_ARGUMENTS)
        if isinstance(paths, tuple) and len(paths) > index:
            if opts.get(str(self.name)):
                role, option_path = _ROLES[name][1].partition(":")[0], opts[str(self.name)][0]
                raise click.UsageError(
                    f"{role} given twice: {name[2:].upper()} {paths[index]!r} and {name} "
                    f"{option_path!r}; use GT DT, or --gt and --dt",
                    ctx,
                )
            opts = {**opts, str(self.name): [paths[index]]}
        return super().handle_parse_result(ctx, opts, args)

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Require a value, unless the inputs are in a file of data sets, or are arguments."""
        elsewhere = ctx.params.get("data_sets") or ctx.params.get("agreement")
        if elsewhere and self.value_is_missing(value):
            return ()
        return super().process_value(ctx, value)


def _check_arguments(ctx: click.Context, _: click.Parameter, paths: tuple[str, ...]) -> None:
    if len(paths) > len(_ROLES):
        raise click.UsageError(
            f"unexpected argument {paths[len(_ROLES)]!r} after GT DT; for several inputs repeat "
            "--gt or --dt, or quote a pattern",
            ctx,
        )


_path_arguments = click.argument(
    _ARGUMENTS,
    metavar="[GT] [DT]",
    nargs=-1,
    expose_value=False,
    callback=_check_arguments,
    shell_complete=files,
)


def _role_option(name: str, *, required: bool = True) -> Decorator[Any]:
    text, brief = _ROLES[name]
    return _input(
        name,
        cls=_RoleOption,
        brief=brief,
        required=required,
        multiple=True,
        value_kind="path",
        type=Path(),
        metavar="PATH",
        help=text,
    )


def _reading_option(reading: FormatOption, formats: Sequence[Format]) -> Decorator[Any]:
    titles = ", ".join(file_format.title for file_format in formats)
    text = f"{titles}: {reading.help[0].lower()}{reading.help[1:]}"
    return _input(
        reading.flag,
        reading.name,
        value_kind=reading.value_kind,
        type=click.Choice(reading.choices) if reading.choices else None,
        metavar=reading.metavar,
        help=reading.help if len(formats) == len(FORMATS) else text,
    )


_reading_options = stack(
    _input(
        "--class-map",
        value_kind="path",
        metavar="FILE",
        help='Map class names, as TOML (car = "vehicle"; "-" drops a class), JSON or CSV, before '
        "everything else.",
    ),
    *starmap(_reading_option, format_options().items()),
    _input(
        "--as-is",
        is_flag=True,
        help="Accept input that fails a plausibility check (normalized boxes, negative sizes, "
        "category ids off by one).",
    ),
    _input(
        "--missing-scores",
        type=click.Choice(TREATMENTS),
        help="If no detection has a score: report F1 without a ranking (none, the default), also "
        "AP over rankings (1), rank by box area (area), or fail (error).",
    ),
    _input(
        "--merge-images",
        is_flag=True,
        help="Merge the boxes of an image that occurs in several inputs; an error by default.",
    ),
)
"""Options of the format readers."""


_RECORDS = "number of images, annotations or detections of an input"
_LIMITS: tuple[tuple[str, str, str, int | None, str | None], ...] = (
    ("max_file_size", "file_bytes", "size of a file, also after expansion", None, "BYTES"),
    ("max_expansion", "expansion", "ratio of expanded to compressed size", None, "TIMES"),
    ("max_records", "records", _RECORDS, MOST_RECORDS, None),
    ("max_nesting", "nesting", "nesting depth of JSON or XML", 900, None),
    ("max_problems", "problems", "number of problems that an error lists", None, None),
    ("max_mask_runs", "mask_runs", "number of pixel runs of an image's polygons", None, None),
)
LIMITS = {name: limit for name, limit, *_ in _LIMITS}
"""Fields of `detap.io.limits.Limits` by option."""

limit_options = stack(
    *(
        option(
            f"--{name.replace('_', '-')}",
            group="Limits of input",
            type=Integer(1, most),
            metavar=metavar,
            help=f"Maximum {text}. [default: {getattr(DEFAULT_LIMITS, limit)}]",
        )
        for name, limit, text, most, metavar in _LIMITS
    )
)


def _read_options(*sides: Decorator[Any]) -> Decorator[Any]:
    return stack(_format_options, *sides, _reading_options, limit_options)


input_options = stack(_path_arguments, _read_options(_role_option("--gt"), _role_option("--dt")))
ground_truth_options = _read_options(_role_option("--gt"))
optional_input_options = _read_options(*(_role_option(name, required=False) for name in _ROLES))
optional_inputs = stack(_path_arguments, optional_input_options)


def preset_option(kind: type[ProtocolBase], envvar: str, default: str) -> Decorator[Any]:
    """Return ``--protocol``; `default` describes its default."""
    return _field(
        "--protocol",
        "preset",
        envvar=envvar,
        metavar="NAME",
        shell_complete=lambda _, __, text: [n for n in kind.presets if n.startswith(text)],
        help=f"Preset: {', '.join(kind.presets)}. {default}",
        brief=f"Preset; {default[0].lower()}{default[1:]}",
    )


def change_options(kind: type[ProtocolBase]) -> Decorator[Any]:
    """Return an option for each field of a kind of protocol."""
    return stack(*(_option_of(field) for field in protocol_fields(kind) if field.option))


def _option_of(field: ProtocolField) -> Decorator[Any]:
    if isinstance(field.kind, YesNo):
        return _field(
            f"{field.option}/--no-{field.option[2:]}", field.name, default=None, help=field.help
        )
    kind = field.kind

    def read(text: str) -> Given:
        value = kind.parse(text)
        kind.accept(sorted(value) if kind.repeatable else value)
        return Given(value)

    choices = click.Choice(kind.choices) if kind.metavar is None else None
    return _field(
        field.option,
        field.name,
        envvar=envvar_of(field.option),
        type=choices or Text(read),
        multiple=kind.repeatable,
        metavar=kind.metavar,
        help=field.help,
    )


_PRESET = preset_option(
    Protocol,
    "DETAP_PROTOCOL",
    "By default voc2012 for VOC, kitti for KITTI, dota for DOTA, else coco.",
)

_FIELDS = {field.name: field for field in protocol_fields(Protocol)}

preset_options = stack(_PRESET, _option_of(_FIELDS["iou_type"]), _option_of(_FIELDS["sigmas"]))
"""Preset, IoU type and keypoint sigmas, for commands that only read the data."""

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
        value_kind="path or text",
        metavar="FILE|NAMES",
        help="Evaluate only these images: a file with one per line, or names (COCO: ids) "
        "separated by commas.",
    ),
)


class _OutputOption(Option):
    """``-o``, which adds to the ``output`` of a settings file."""

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Add the targets of the file."""
        name = str(self.name)
        given, configured = opts.get(name), (ctx.default_map or {}).get(name)
        if given and configured:
            opts = {**opts, name: [*configured, *given]}
        return super().handle_parse_result(ctx, opts, args)


output_options = stack(
    _output(
        "-o",
        "--output",
        "targets",
        cls=_OutputOption,
        value_kind="target",
        envvar="DETAP_OUTPUT",
        type=Target(target),
        multiple=True,
        metavar="[FORMAT=]PATH",
        help="Write the report here too, in the format given or by extension; - is stdout. "
        "Repeatable; adds to output of the settings file.",
        brief="Write the report here too; format by extension: .json, .md and others.",
    ),
    _output(
        "--output-format",
        type=click.Choice(list(WRITERS)),
        help="Format on stdout; table by default.",
        brief="Format on stdout: table, json, markdown and others.",
    ),
)


def _set_session(
    ctx: click.Context, _: click.Parameter, given: Any, attribute: str, value: int
) -> Any:
    """Set an attribute of the session if the option is given."""
    if given:
        setattr(ctx.ensure_object(Session), attribute, value)
    return given


_flag = partial(option, group="General", is_flag=True, is_eager=True, expose_value=False)

strict_option = option(
    "--strict",
    group="General",
    is_flag=True,
    callback=partial(_set_session, attribute="strict", value=True),
    help="Make warnings errors: exit status 2.",
)

page_data_option = _output(
    "--page-data",
    value_kind="path",
    metavar="DIR",
    help="Write the images of the HTML page into this folder, if they have more than 20 MB.",
)

threads_option = option(
    "--threads",
    group="General",
    type=Integer(1, 1024),
    help="Number of threads; all cores by default. The result is the same.",
)

general_options = stack(
    _flag(
        "-v",
        "--verbose",
        callback=partial(_set_session, attribute="verbosity", value=1),
        help="Print the time of each step on stderr.",
    ),
    _flag(
        "-q",
        "--quiet",
        callback=partial(_set_session, attribute="verbosity", value=-1),
        help="Print only errors and failed gates.",
    ),
    _flag(
        "--debug",
        callback=partial(_set_session, attribute="debug", value=1),
        help="Show the traceback of an error.",
    ),
)


message_options = stack(strict_option, general_options)  # of commands that print notes


def protocol_from(options: dict[str, Any], kind: type[ProtocolBase], default: str) -> Any:
    """Remove the protocol options from `options` and return the protocol."""
    preset: Any = kind.preset(options.pop("preset") or default)
    iou_type = options.get("iou_type")
    if iou_type is not None and preset.iou_type != iou_type:
        # lvis with segm is lvis-segm. Without a sibling the option changes the field.
        base = preset.name.removesuffix(f"-{preset.iou_type}")
        sibling: Any = preset.presets.get(base if iou_type == "bbox" else f"{base}-{iou_type}")
        preset = sibling if sibling and sibling.iou_type == iou_type else preset
    changes = changes_from(options, kind)
    if not changes:
        return preset
    protocol = preset.with_changes(**changes)
    if changes.get("metrics"):
        metrics.summary(protocol)  # raises if a name is unknown, before any file is read
    protocol.check_effect(name for name, value in changes.items() if value != getattr(preset, name))
    return protocol


def changes_from(options: dict[str, Any], kind: type[ProtocolBase]) -> dict[str, Any]:
    """Remove the options of :func:`change_options` from `options`; return those given."""
    changes: dict[str, Any] = {}
    for field in protocol_fields(kind):
        given = options.pop(field.name, None)
        if given in (None, ()):
            continue
        if field.kind.repeatable:  # each use of the option gives a list
            changes[field.name] = tuple(sorted({value for item in given for value in item.value}))
        else:
            changes[field.name] = given.value if isinstance(given, Given) else given
    return changes
