"""Errors and warnings survive copying and pickling, as between worker processes."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from detap import errors
from detap.errors import DetapError, DetapWarning, InputError, Note, Problem

PROBLEM = Problem("results.json", "record 3", "score is 'high'", "give a number")
LINE = "results.json: record 3: score is 'high'; give a number"

EXAMPLES: dict[type[Exception], tuple[Exception, str]] = {
    InputError: (InputError([PROBLEM, PROBLEM], 3), f"{LINE}\n{LINE}\n... and 3 more"),
    DetapWarning: (DetapWarning(Note("missing-area", "No area", 2)), "No area (2) [missing-area]"),
}

RAISED = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, DetapError | DetapWarning)
]

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda error: pickle.loads(pickle.dumps(error)),
    "pickle 0": lambda error: pickle.loads(pickle.dumps(error, 0)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", RAISED)
def test_a_copy_has_the_message_of_the_error(kind: type[Exception], way: str) -> None:
    error, message = EXAMPLES.get(kind) or (kind("a message"), "a message")
    error.add_note("while reading shard 2")
    twin = WAYS[way](error)
    assert (type(twin), str(twin), twin.args) == (kind, message, error.args)
    assert vars(twin) == vars(error)


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_of_an_input_error_has_its_problems(way: str) -> None:
    twin = WAYS[way](InputError(PROBLEM, 1))
    assert twin.problems == (PROBLEM,)
    assert twin.omitted == 1
