"""What JSON reports say of what was evaluated."""

import json
from collections.abc import Mapping
from typing import Any

NO_CHANGE = frozenset({"as_is"})
"""Options of reading that decide what is accepted, and change nothing that is."""


def recorded_reading(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that changed how the inputs of a report were read, and their values."""
    found: dict[str, set[str]] = {}
    for entry in record["inputs"]:
        for name, value in (entry.get("reading") or {}).items():
            if name not in NO_CHANGE:
                found.setdefault(name, set()).add(str(value))
    return {name: ", ".join(sorted(values)) for name, values in sorted(found.items())}


def reading_differences(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """Return in which options of reading two reports differ, and how."""
    here, there = recorded_reading(now), recorded_reading(then)
    return [
        f"--{name.replace('_', '-')} {there.get(name, 'not given')} there, "
        f"{here.get(name, 'not given')} here"
        for name in sorted({*here, *there})
        if here.get(name) != there.get(name)
    ]


def recorded_selection(record: Mapping[str, Any]) -> str:
    """Return which classes and images a report is about, as its signature spells it."""
    selection = record.get("selection")
    if selection is None:
        return "all classes and images"
    parts = selection.get("signature")
    if isinstance(parts, list):
        return " ".join(map(str, parts))
    return f"by an earlier version, {json.dumps(selection)}"
