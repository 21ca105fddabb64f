"""The public interface: Python names, commands and options, JSON keys, presets.

``python -m docs.public`` records it in ``docs/public.json``. It drops a name that is gone only if
the newest section of CHANGELOG.md has it in backquotes.
"""

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from detap._version import SCHEMA_VERSION
from detap.cli import group
from detap.cli.commands.config import settings_schema
from detap.formats.catalogue import FORMATS
from detap.protocols import PRESETS, Protocol
from detap.report import schema
from detap.report.schemas import NAMES
from detap.report.writers.registry import WRITERS
from detap.tables import npz

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs" / "public.json"

MODULES = {
    "detap": (),
    "detap.testing": ("assert_detections",),
    "detap.report": ("schema",),
    "detap.io.limits": ("Limits",),
    "detap.compat.pycocotools": (),
    "detap.ranking.losses": (),
}
"""Public modules, and the public names of those without ``__all__``."""

TORCH = {"detap.torch": (), "detap.ranking.torch": ()}
"""The same, for modules that need PyTorch."""


def python_names(modules: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield the names of modules, the members of their classes and all parameters."""
    for module_name, listed in modules.items():
        module = import_module(module_name)
        for name in listed or getattr(module, "__all__", ()):
            value = getattr(module, name)
            yield f"{module_name}.{name}"
            yield from _members(f"{module_name}.{name}", value)


def _members(path: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        if not issubclass(value, Exception):
            yield from _parameters(path, value)
        for name in dir(value):
            if not name.startswith("_") and _is_ours(value, name):
                yield f"{path}.{name}"
                yield from _parameters(f"{path}.{name}", getattr(value, name))
        for name in (name for base in value.__mro__ for name in inspect.get_annotations(base)):
            if not name.startswith("_"):
                yield f"{path}.{name}"
    else:
        yield from _parameters(path, value)


def _is_ours(owner: type, name: str) -> bool:
    """Return True unless torchmetrics' base class, or the class in its place, defines a member."""
    homes = [base.__module__ for base in owner.__mro__ if name in vars(base)]
    return bool(homes) and homes[0].startswith("detap") and homes[0] != "detap.torch.metric"


def _parameters(path: str, value: Any) -> Iterator[str]:
    if inspect.isfunction(value) or inspect.ismethod(value) or inspect.isclass(value):
        for name in inspect.signature(value).parameters:
            if name not in ("self", "cls") and not name.startswith("_"):
                yield f"{path}({name})"


def command_names(command: click.Command, path: str = "detap") -> Iterator[str]:
    """Yield commands and their options."""
    yield path
    for parameter in command.params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("-"):
                yield f"{path} {option}"
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from command_names(inner, f"{path} {name}")


def json_keys(record: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the keys of a JSON schema; ``[]`` is an entry of a list, ``{}`` of an object."""
    yield from _keys(record, record, path, ())


def _keys(node: Any, root: Mapping[str, Any], path: str, seen: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(node, Mapping):
        return
    reference = node.get("$ref")
    if reference is not None and reference not in seen:
        target: Any = root
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        yield from _keys(target, root, path, (*seen, reference))
    for name, inner in node.get("properties", {}).items():
        key = f"{path}.{name}"
        yield key
        yield from _keys(inner, root, key, seen)
    for name, sign in (("items", "[]"), ("additionalProperties", "{}")):
        yield from _keys(node.get(name), root, path + sign, seen)
    for name in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for inner in node.get(name, ()):
            yield from _keys(inner, root, path, seen)


def note_codes() -> set[str]:
    """Return the codes of notes, which are literals in the source."""
    sources = (path.read_text("utf-8") for path in (ROOT / "detap").rglob("*.py"))
    return {code for text in sources for code in re.findall(r'\bNote\(\s*"([a-z0-9-]+)"', text)}


def interface() -> dict[str, list[str]]:
    """Return the public names by kind, sorted."""
    keys = [key for name in NAMES for key in json_keys(schema(name), name)]
    keys += json_keys(settings_schema(), "settings")
    return {
        "python": sorted(set(python_names(MODULES))),
        "commands": sorted(set(command_names(group))),
        "json": sorted(set(keys)),
        "presets": sorted(PRESETS),
        "formats": sorted(FORMATS),
        "output formats": sorted(WRITERS),
        "notes": sorted(note_codes()),
        "versions": [f"detections {npz.VERSION}", f"schema {SCHEMA_VERSION}"],
    }


def torch_interface() -> dict[str, list[str]]:
    """Return the names of the modules that need PyTorch."""
    return {"torch": sorted(set(python_names(TORCH)))}


def presets() -> dict[str, dict[str, Any]]:
    """Return the fields of each preset that differ from those of an empty protocol, ``""``."""
    fields = {name: preset.as_dict() for name, preset in PRESETS.items()}
    defaults = Protocol(name="").as_dict()
    changed = {
        name: {key: value for key, value in preset.items() if value != defaults.get(key)}
        for name, preset in fields.items()
    }
    record: dict[str, dict[str, Any]] = json.loads(json.dumps({"": defaults, **changed}))
    return record


def changed_presets(
    recorded: Mapping[str, Mapping[str, Any]], current: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return the fields of recorded presets that have another value now: ``coco.iou_type``."""
    return [
        f"{name}.{key}"
        for name in recorded.keys() & current.keys() - {""}
        for key, value in {**recorded[""], **recorded[name]}.items()
        if {**current[""], **current[name]}.get(key) != value
    ]


def gone(recorded: Mapping[str, list[str]], current: Mapping[str, list[str]]) -> list[str]:
    """Return the recorded names that are gone, of the kinds that `current` has."""
    return [
        name
        for kind, names in recorded.items()
        if kind in current
        for name in names
        if name not in set(current[kind])
    ]


def unmentioned(names: list[str], changes: str) -> list[str]:
    """Return the names that the newest section of the changes does not have in backquotes.

    A class, function or command under "Removed" stands for its members, parameters and options.
    """
    newest = changes.split("\n## ")[1]
    mentioned = set(re.findall(r"`([^`\n]+)`", newest))
    sections = re.findall(r"^\*\*Removed\*\*$(.*?)(?=^\*\*|\Z)", newest, re.MULTILINE | re.DOTALL)
    removed = re.findall(r"`([^`\n]+)`", "".join(sections))
    prefixes = tuple(f"{name}{mark}" for name in removed for mark in (".", "(", " "))
    return [name for name in names if name not in mentioned and not name.startswith(prefixes)]


def main() -> int:
    """Write the record; return 1 if a name is gone that the changes do not mention."""
    recorded = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {"names": {}}
    current = interface()
    try:
        current |= torch_interface()
    except ImportError:
        current["torch"] = recorded["names"].get("torch", [])
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    missing = unmentioned(gone(recorded["names"], current), changes)
    for name in missing:
        print(f"`{name}` is gone; the changes do not mention it", file=sys.stderr)
    changed = changed_presets(recorded.get("presets", {"": {}}), presets())
    for name in changed:
        print(f"{name} has changed; make a new preset instead", file=sys.stderr)
    if missing or changed:
        return 1
    record = {"names": current, "presets": presets()}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
