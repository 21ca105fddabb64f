"""Settings from a file: ``[tool.detap]`` in pyproject.toml, or detap.toml.

A setting has the name of the option it stands for: ``max-dets = [1, 10, 100]`` is
``--max-dets 1,10,100``. A target, ``[tool.detap.targets.night]``, holds settings that replace
those of the same name. Paths are relative to the file's folder.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from detap.errors import UsageError
from detap.io.paths import is_url
from detap.records import Record
from detap.spelling import near

PYPROJECT, OWN = "pyproject.toml", "detap.toml"

TARGETS = "targets"
"""The table of targets, each with settings of its own."""

SECTIONS = ("rank-retrieval", "rank-classification")
"""Tables of commands whose settings are their own."""


class Setting(Record):
    """What may be set.

    Attributes
    ----------
    name : str
        Of the option, without its dashes.
    many : bool
        Whether the option may be repeated: a list then gives one value per use.
    flag : bool
        Whether it is a switch.
    holds : {"text", "path", "path or text", "target", "limit"}
        What its values are: paths, relative to the file's folder, or such where the file exists;
        ``FORMAT=PATH`` or paths; ``NAME=NUMBER``, which a table may spell out; or just text.
    bare : str or None
        What true stands for, where the option needs no value.
    """

    name: str
    many: bool = False
    flag: bool = False
    holds: str = "text"
    bare: str | None = None


class Settings(Record):
    """What a file sets.

    Attributes
    ----------
    path : str or None
        The file; None where there is none.
    values : dict
        From the name of a setting to the text of its value, to a list of such texts, or to a bool.
    origins : dict
        From the name of a setting to the table it stands in.
    targets : tuple of str
        The targets that the file has.
    """

    path: str | None
    values: Mapping[str, Any]
    origins: Mapping[str, str]
    targets: tuple[str, ...]


NOTHING = Settings(None, {}, {}, ())


def find(folder: str | None = None) -> str | None:
    """Return the file that settings come from, or None.

    The first of detap.toml and of a pyproject.toml with a table ``[tool.detap]``, in the folder or
    the nearest one above it.

    Parameters
    ----------
    folder : str, optional
        Where to begin; the working folder by default.
    """
    try:
        here = os.path.abspath(folder or os.curdir)
    except OSError:  # the working folder has been deleted
        return None
    while True:
        own, shared = os.path.join(here, OWN), os.path.join(here, PYPROJECT)
        if os.path.isfile(own):
            return own
        if os.path.isfile(shared) and b"tool.detap" in _content(shared):
            return shared
        above = os.path.dirname(here)
        if above == here:
            return None
        here = above


def _content(path: str) -> bytes:
    from detap.io.stream import open_regular  # not where there is no file

    try:
        with os.fdopen(open_regular(path), "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error


def read(
    path: str, known: Iterable[Setting], target: str | None = None, section: str = ""
) -> Settings:
    """Read settings.

    Parameters
    ----------
    path : str
        A TOML file; of a pyproject.toml, the table ``[tool.detap]``.
    known : iterable of Setting
        What may be set.
    target : str, optional
        Whose settings replace the others.
    section : str, optional
        The table of :data:`SECTIONS` to read instead of the file's own settings.

    Raises
    ------
    UsageError
        Where the file is no TOML, sets what is unknown, or has no such target; with near names.
    """
    import tomllib

    shown = _shown(path)
    try:
        record = tomllib.loads(_content(path).decode(), parse_float=_Decimal)
    except (ValueError, RecursionError) as error:  # also of an integer of too many digits
        raise UsageError(f"{shown}: is no TOML: {error}") from error
    table: Mapping[str, Any] = record
    prefix = ""
    if os.path.basename(path) == PYPROJECT:
        table, prefix = _table(record, "tool", shown), "tool.detap"
        table = _table(table, "detap", shown)
    if section:
        table, prefix = _table(table, section, shown), f"{prefix}.{section}".lstrip(".")
    targets = _table(table, TARGETS, shown)
    settings = {setting.name: setting for setting in known}
    tables = (TARGETS, *(() if section else SECTIONS))
    base = {name: value for name, value in table.items() if name not in tables}
    layers: list[tuple[Mapping[str, Any], str]] = [(base, prefix)]
    # The other targets are read too, so that a mistake in one does not lie in wait.
    for name in targets:
        place = ".".join(part for part in (prefix, TARGETS, name) if part)
        layer = (_table(targets, name, shown), place)
        _read_layer(layer, settings, path)
        if name == target:
            layers.append(layer)
    if target is not None and target not in targets:
        hint = _hint(target, targets) or (
            f"; it has {', '.join(map(repr, targets))}" if targets else "; it has none"
        )
        raise UsageError(f"{shown}: there is no target {target!r}{hint}")
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in layers:
        found = _read_layer(layer, settings, path)
        values |= found
        origins |= dict.fromkeys(found, f"[{layer[1]}]" if layer[1] else "")
    return Settings(path, values, origins, tuple(targets))


def _table(record: Mapping[str, Any], name: str, shown: str) -> Mapping[str, Any]:
    found = record.get(name, {})
    if not isinstance(found, dict):
        raise UsageError(f"{shown}: {name!r} is no table")
    return found


def _read_layer(
    layer: tuple[Mapping[str, Any], str], known: Mapping[str, Setting], path: str
) -> dict[str, Any]:
    table, place = layer
    folder = os.path.dirname(path)
    where = f"{_shown(path)}: [{place}]" if place else _shown(path)
    found = {}
    for name, value in table.items():
        if name not in known:
            raise UsageError(f"{where}: unknown setting {name!r}{_hint(name, known)}")
        try:
            found[name] = _value(known[name], value, folder)
        except ValueError as error:
            raise UsageError(f"{where}: {name}: {error}") from None
    return found


def _value(setting: Setting, value: object, folder: str) -> object:
    """Return what the command line would have been given."""
    if setting.flag:
        if not isinstance(value, bool):
            raise ValueError(f"{value!r} is neither true nor false")
        return value
    if setting.bare is not None and isinstance(value, bool):
        return setting.bare if value else None
    if setting.holds == "limit" and isinstance(value, dict):
        value = [f"{name}={_text(limit)}" for name, limit in value.items()]
    texts = [_text(entry) for entry in (value if isinstance(value, list) else [value])]
    texts = [_located(setting, text, folder) for text in texts]
    if setting.many:
        return texts
    return ",".join(texts)


class _Decimal(float):
    """A float of a file that keeps its text, as the command line would have been given it."""

    text: str

    def __new__(cls, text: str) -> "_Decimal":
        value = super().__new__(cls, text)
        value.text = text.replace("_", "")
        return value


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is neither text nor a number")
    if isinstance(value, _Decimal):
        return value.text
    return value if isinstance(value, str) else repr(value)


def _located(setting: Setting, text: str, folder: str) -> str:
    """Return a path from the working folder on."""
    if setting.holds == "target":
        name, equals, path = text.partition("=")
        return f"{name}={_join(folder, path)}" if equals else _join(folder, text)
    there = _join(folder, text)
    is_path = setting.holds == "path" or (setting.holds == "path or text" and os.path.exists(there))
    return there if is_path else text


def _join(folder: str, path: str) -> str:
    if path == "-" or is_url(path):
        return path
    here = os.path.relpath(folder or os.curdir)
    return path if here == os.curdir else os.path.join(here, path)


def _shown(path: str) -> str:
    """Return a path as short as it can be told."""
    try:
        near = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if near.startswith(os.pardir) else near


def _hint(name: str, known: Iterable[str]) -> str:
    hint = near(name.replace("_", "-"), known)
    return hint and f"; {hint}"
