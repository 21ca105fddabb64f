"""Comparison of two values to the last bit: types, key order, kinds of arrays."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

TIME = re.compile(r"t=\d+\.\d\ds")
"""The only printed text that differs between runs."""


def differences(ours: Any, theirs: Any, location: str = "") -> list[str]:
    """Return the differences of two values; classes of the two packages are compared by name."""
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        return _of_arrays(ours, theirs, location)
    if type(ours).__name__ != type(theirs).__name__:
        return [f"{location}: {type(ours).__name__} for {type(theirs).__name__}"]
    if isinstance(ours, Mapping):
        if list(ours) != list(theirs):
            return [f"{location}: keys {list(ours)[:9]} for {list(theirs)[:9]}"]
        return [
            d for key in ours for d in differences(ours[key], theirs[key], f"{location}[{key!r}]")
        ]
    if isinstance(ours, list | tuple):
        if len(ours) != len(theirs):
            return [f"{location}: {len(ours)} entries for {len(theirs)}"]
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [d for n, (one, two) in pairs for d in differences(one, two, f"{location}[{n}]")]
    if isinstance(ours, str):
        ours, theirs = TIME.sub("t=", ours), TIME.sub("t=", theirs)
    if type(ours).__name__ == "Params":
        return differences(vars(ours), vars(theirs), f"{location}.")
    same = ours == theirs or (ours != ours and theirs != theirs)  # noqa: PLR0124 - NaN
    return [] if same else [f"{location}: {ours!r} for {theirs!r}"]


def _of_arrays(ours: Any, theirs: Any, location: str) -> list[str]:
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return [f"{location}: {ours.dtype} {ours.shape} for {theirs.dtype} {theirs.shape}"]
    if ours.dtype == object:
        return differences(ours.tolist(), theirs.tolist(), location)
    if ours.tobytes() == theirs.tobytes():
        return []
    at = np.argwhere(~((ours == theirs) | ((ours != ours) & (theirs != theirs))))  # noqa: PLR0124
    return [f"{location}: {len(at)} of {ours.size} entries, first at {at[:1].tolist()}"]
