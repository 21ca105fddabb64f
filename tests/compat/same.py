"""Whether two values are the same to the last bit: types, orders of keys, kinds of arrays."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

TIME = re.compile(r"t=\d+\.\d\ds")
"""The one thing in the printed text that no two runs share."""


def differences(ours: Any, theirs: Any, place: str = "") -> list[str]:
    """Return where two values differ; classes of the two packages are compared by name."""
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        return _of_arrays(ours, theirs, place)
    if type(ours).__name__ != type(theirs).__name__:
        return [f"{place}: {type(ours).__name__} for {type(theirs).__name__}"]
    if isinstance(ours, Mapping):
        if list(ours) != list(theirs):
            return [f"{place}: keys {list(ours)[:9]} for {list(theirs)[:9]}"]
        return [d for key in ours for d in differences(ours[key], theirs[key], f"{place}[{key!r}]")]
    if isinstance(ours, list | tuple):
        if len(ours) != len(theirs):
            return [f"{place}: {len(ours)} entries for {len(theirs)}"]
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [d for n, (one, two) in pairs for d in differences(one, two, f"{place}[{n}]")]
    if isinstance(ours, str):
        ours, theirs = TIME.sub("t=", ours), TIME.sub("t=", theirs)
    if type(ours).__name__ == "Params":
        return differences(vars(ours), vars(theirs), f"{place}.")
    same = ours == theirs or (ours != ours and theirs != theirs)  # noqa: PLR0124 - NaN
    return [] if same else [f"{place}: {ours!r} for {theirs!r}"]


def _of_arrays(ours: Any, theirs: Any, place: str) -> list[str]:
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return [f"{place}: {ours.dtype} {ours.shape} for {theirs.dtype} {theirs.shape}"]
    if ours.dtype == object:
        return differences(ours.tolist(), theirs.tolist(), place)
    if ours.tobytes() == theirs.tobytes():
        return []
    at = np.argwhere(~((ours == theirs) | ((ours != ours) & (theirs != theirs))))  # noqa: PLR0124
    return [f"{place}: {len(at)} of {ours.size} entries, first at {at[:1].tolist()}"]
