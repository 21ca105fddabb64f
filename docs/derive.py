"""Write the parts of the docs and the metadata that derive from the program and release.toml.

``python -m docs.derive`` writes them; a test sees to it that this changes nothing. With the folder
of the built pages it puts the schemas there, where their addresses lead.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from detap import metrics
from detap.cli.commands.config import settings_schema
from detap.formats.base import Line
from detap.formats.catalogue import FORMATS, options
from detap.formats.options import Option
from detap.metrics.at_threshold import AT_THRESHOLD
from detap.protocols import PRESETS, Protocol
from detap.protocols.fields import SIGMAS, ProtocolBase, ProtocolField, YesNo, protocol_fields
from detap.protocols.ranking import Classification, Retrieval
from detap.report import schema
from detap.report.schemas import NAMES
from detap.report.schemas import PAGES as PAGES_OF_PROJECT
from docs.release import LINES, filled, values

ROOT = Path(__file__).parents[1]


def fields_table(rules: type[ProtocolBase]) -> list[str]:
    """Return the options of a protocol's fields with their values, the default in bold."""
    rows = [
        f"| {_spellings(axis) or f'`{axis.name}`'} | {_marked(axis)} | {axis.meaning} |"
        for axis in protocol_fields(rules)
    ]
    return ["| option | values | meaning |", "|---|---|---|", *rows]


def _marked(axis: ProtocolField) -> str:
    """Return the values, the default in bold; the default only if the help names all others."""
    default = f"`{axis.kind.format(axis.default)}`"
    listed = re.findall("`(.+?)`", axis.kind.values)
    named = listed and not axis.kind.choices and all(value in axis.help for value in listed)
    if isinstance(axis.kind, YesNo) or named:
        return f"**{default}**"
    if default in axis.kind.values:
        return axis.kind.values.replace(default, f"**{default}**")
    return ", ".join(filter(None, [axis.kind.values, f"**{default}**"]))


def presets_table() -> list[str]:
    """Return the source, the changed fields and the tolerance of each preset."""
    first: dict[str, str] = {}
    rows = []
    for name, preset in PRESETS.items():
        tolerance = _tolerance(preset)
        same = first.setdefault(tolerance, name)
        shown = f"as `{same}`" if same != name and " " in tolerance else tolerance
        rows.append(f"| `{name}` | {preset.source} | {_changes(preset)} | {shown} |")
    return [
        "| preset | reproduces | base and changed fields | tolerance |",
        "|---|---|---|---|",
        *rows,
    ]


_BASES = (
    *("voc2012", "voc2007-py", "coco", "coco-keypoints", "lvis", "dota", "kitti", "open-images-v2"),
    *("citypersons", "kaist", "wider-easy"),
)
"""Presets that the table describes others by."""


def _changes(preset: Protocol) -> str:
    """Return the changed fields: of the defaults, or of a preset if that saves a third of them."""
    changed = _changed_fields(preset, Protocol(name=preset.name))
    base, longest = "defaults", 2 * len(changed) / 3
    for name in _BASES:
        if name == preset.name:
            break
        of_base = _changed_fields(preset, PRESETS[name])
        if len(of_base) <= longest and len(of_base) < len(changed):
            base, changed = f"`{name}`", of_base
    return " ".join([base, *changed])


def _changed_fields(preset: Protocol, base: Protocol) -> list[str]:
    return [
        f"`{axis.option[2:]}:{_option_value(axis, getattr(preset, axis.name))}`"
        for axis in protocol_fields(Protocol)
        if getattr(preset, axis.name) != getattr(base, axis.name)
    ]


def _option_value(axis: ProtocolField, value: Any) -> str:
    """Return a value as the option takes it, by name if it has one."""
    for name in (*SIGMAS, "proposals", "kitti", "0.5:0.95:0.05"):
        with suppress(ValueError):
            if value == axis.kind.parse(name):
                return name
    return axis.kind.format(value)


def _tolerance(preset: ProtocolBase) -> str:
    if preset.tolerance is None:
        return f"unknown: {preset.residue}"
    if preset.residue in ("", "order of summation"):
        return f"{preset.tolerance:g}"
    return f"{preset.tolerance:g}: {preset.residue}" if preset.tolerance else "0"


def metrics_table() -> list[str]:
    """Return the declarations of all metrics, also those at a score threshold."""
    rows = []
    for metric in (*metrics.METRICS, *AT_THRESHOLD.values()):
        better = "higher" if metric.higher_is_better else "lower"
        fields = ", ".join(f"`{field}`" for field in metric.fields)
        exceptions = [
            {"both": "", "overall": "overall only", "class": "by class only"}[metric.scope],
            "" if metric.bounds == (0, 1) else "may exceed 1",
            "" if metric.has_intervals else "no interval",
        ]
        title = "; ".join([metric.title, *filter(None, exceptions)])
        name = f"{metric.name}{metric.parameter}"
        rows.append(f"| `{name}` | {title} | {better} | {fields} |")
    return ["| metric | title | better | fields |", "|---|---|---|---|", *rows]


def summary_table() -> list[str]:
    """Return the numbers in the summary of each preset of detections."""
    presets: dict[str, list[str]] = {}
    for name, rules in PRESETS.items():
        numbers = ", ".join(f"`{measure.name}`" for measure in metrics.summary(rules))
        presets.setdefault(numbers, []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {numbers} |" for numbers, names in presets.items()]
    return ["| preset | metrics |", "|---|---|", *rows]


def options_table(rules: type[ProtocolBase], omit: type[ProtocolBase] | None = None) -> list[str]:
    """Return the options of a protocol as a command's page lists them, without those of `omit`."""
    omitted = {field.option for field in protocol_fields(omit)} if omit else set()
    rows = [
        f"| {_spellings(axis)} {_values(axis)} | {axis.meaning} |"
        for axis in protocol_fields(rules)
        if axis.option and axis.option not in omitted
    ]
    return ["| option | meaning |", "|---|---|", *rows]


def _spellings(axis: ProtocolField) -> str:
    if isinstance(axis.kind, YesNo):
        return f"`{axis.option}`, `--no-{axis.option[2:]}`"
    return f"`{axis.option}`" if axis.option else ""


def _values(axis: ProtocolField) -> str:
    if isinstance(axis.kind, YesNo):
        return ""
    return axis.kind.values


def reading_table() -> list[str]:
    """Return the options of formats as the page of ``detap eval`` lists them."""
    rows = []
    for option, formats in options().items():
        prefix = _readers(formats)
        values = ", ".join(f"`{choice}`" for choice in option.choices) or _value(option)
        text = f"{option.help[0].lower()}{option.help[1:]}" if prefix else option.help
        rows.append(f"| `{option.flag}` {values} | {prefix}{text} |")
    return ["| option | meaning |", "|---|---|", *rows]


def _readers(formats: list[Line]) -> str:
    """Return the titles of the formats that take an option, or of those that do not if fewer."""
    others = [entry.title for entry in FORMATS.lines.values() if entry not in formats]
    if not others:
        return ""
    titles = [entry.title for entry in formats]
    listed = f"all but {', '.join(others)}" if len(others) < len(titles) else ", ".join(titles)
    return f"{listed[0].upper()}{listed[1:]}: "


def _value(option: Option) -> str:
    return str(option.metavar).replace("|", " or ").lower()


PAGES = {
    "docs/protocols.md": {
        "fields": fields_table(Protocol),
        "metrics": metrics_table(),
    },
    "docs/presets.md": {"presets": presets_table()},
    "docs/json.md": {"summary": summary_table()},
    "docs/commands/eval.md": {"reading": reading_table()},
    "docs/commands/rank.md": {
        "retrieval": options_table(Retrieval),
        "classification": options_table(Classification, omit=Retrieval),
    },
}
"""Where which table goes: between ``<!-- derived: NAME -->`` and ``<!-- end -->``."""


def page(text: str, tables: dict[str, list[str]]) -> str:
    """Return a page with its derived tables."""
    for name, lines in tables.items():
        begin, end = f"<!-- derived: {name} -->", "<!-- end -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        place = pattern.search(text)
        if place is None:
            raise ValueError(f"no {begin} in the page")
        text = text[: place.start()] + "\n".join([begin, *lines, end]) + text[place.end() :]
    return text


def derived() -> dict[Path, str]:
    """Return the text of every file with derived parts."""
    given, texts = values(), {}
    for name in sorted({*PAGES, *LINES}):
        text = page((ROOT / name).read_text("utf-8"), PAGES.get(name, {}))
        texts[ROOT / name] = filled(name, text, given)
    return texts


QUICKSTART = ROOT / "fixtures" / "quickstart" / "coco"
EXAMPLES = {
    "docs/which-command.md": QUICKSTART,
    "docs/class_map.md": ROOT,
    "docs/commands/explain.md": ROOT,
}
"""Pages with lines of the output of commands, and the folder where these run."""

_TERMINAL = {**os.environ, "COLUMNS": "80", "DETAP_ISOLATED": "1"}
_LINES = re.compile(r"(<!-- lines: (.*) -->\n```console\n\$ (detap .*)\n)(?:.*\n)*?```")


def with_output(text: str, folder: Path) -> str:
    """Return a page with the lines of each command's output that begin as its comment says."""

    def example(match: re.Match[str]) -> str:
        head, beginnings, command = match.groups()
        run = [sys.executable, "-m", *shlex.split(command)]
        ended = subprocess.run(
            run, cwd=folder, capture_output=True, text=True, check=False, env=_TERMINAL
        )
        lines = ended.stdout.splitlines()
        outputs = [
            next((line for line in lines if line.startswith(beginning)), "")
            for beginning in beginnings.split(" | ")
        ]
        if not all(outputs):
            raise ValueError(f"{command}: no line begins with one of {beginnings}: {ended.stderr}")
        return "\n".join([head + outputs[0], *outputs[1:], "```"])

    return _LINES.sub(example, text)


def publish(folder: Path) -> None:
    """Write every schema into the folder of the pages, where its address leads."""
    for record in [*map(schema, NAMES), settings_schema()]:
        path = folder / record["$id"].removeprefix(f"{PAGES_OF_PROJECT}/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        publish(Path(sys.argv[1]))
    else:
        for path, text in derived().items():
            path.write_text(text, "utf-8")
        for name, folder in EXAMPLES.items():
            (ROOT / name).write_text(with_output((ROOT / name).read_text("utf-8"), folder), "utf-8")
