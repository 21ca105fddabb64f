"""Inputs and selection recorded in JSON reports."""

import json
from collections.abc import Mapping
from typing import Any

from detap.io.digest import sha256_of_names


def format_difference(subject: str, baseline: object, current: object) -> str:
    """Return the text of a difference between a baseline and the current report."""
    return f"{subject} (baseline: {baseline}; current: {current})"


def recorded_reading(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the reading options of a report that change results.

    An option with several values, from several inputs, has them sorted and joined by commas.
    """
    values_by_option: dict[str, set[str]] = {}
    for source in record["inputs"]:
        for name, value in (source.get("reading") or {}).items():
            if name != "as_is":  # which changes the input that is accepted, not the result
                values_by_option.setdefault(name, set()).add(str(value))
    return {name: ", ".join(sorted(values)) for name, values in sorted(values_by_option.items())}


def format_option(name: str, value: str) -> str:
    """Return the text of an option's value; a class map as its digest in signatures."""
    return f"sha256 {sha256_of_names([value])[:8]}" if name == "class_map" else value


def reading_differences(current: Mapping[str, Any], baseline: Mapping[str, Any]) -> list[str]:
    """Describe each reading option in which two reports differ."""
    current_options, baseline_options = (
        {name: format_option(name, value) for name, value in recorded_reading(record).items()}
        for record in (current, baseline)
    )
    return [
        format_difference(
            f"--{name.replace('_', '-')}",
            baseline_options.get(name, "not given"),
            current_options.get(name, "not given"),
        )
        for name in sorted({*current_options, *baseline_options})
        if current_options.get(name) != baseline_options.get(name)
    ]


def recorded_selection(record: Mapping[str, Any]) -> str:
    """Return the selection of classes and images in the form of the signature."""
    selection = record.get("selection")
    if selection is None:
        return "all classes and images"
    parts = selection.get("signature")
    if isinstance(parts, list):
        return " ".join(map(str, parts))
    return f"without a signature, {json.dumps(selection)}"
