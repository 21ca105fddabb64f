"""Time the functions of detap that only check the input, while a command runs.

    cost_of_checks.py eval --gt ... --dt ...

runs the command in this process and prints the processor seconds of the functions below as JSON, in
total and for each. A function called by another of them is not counted twice.
"""

import contextlib
import importlib
import inspect
import io
import json
import sys
from functools import wraps
from time import thread_time

# A missing name ends the benchmark. Each function is wrapped in the module that calls it.
CHECKS = {
    "detap.formats.coco.assembly": (
        "_truth_notes",
        "_detection_notes",
        "_negative_size_notes",
        "_check_categories",
    ),
    "detap.formats.coco.tables": ("_match_images",),
    "detap.formats.text.reader": ("images_without_objects",),
    "detap.formats.by_name.objects": (
        "class_notes",
        "detection_notes",
        "ground_truth_notes",
        "negative_size_notes",
    ),
    "detap.evaluation.detection": ("check_boxes", "add_sanity_notes"),
    "detap.evaluation.run": ("EvaluationRun.table_notes", "EvaluationRun.score_notes"),
}


class Clock:
    """Adds up the processor time that the main thread spends in some functions."""

    def __init__(self):
        self.spent = {}
        self.within = False

    def timed(self, name, function):
        @wraps(function)
        def wrapper(*args, **options):
            if self.within:
                return function(*args, **options)
            self.within = True
            start = thread_time()
            try:
                result = function(*args, **options)
                return list(result) if inspect.isgenerator(result) else result
            finally:
                self.spent[name] = self.spent.get(name, 0.0) + thread_time() - start
                self.within = False

        return wrapper


def wrap(clock):
    for module_name, names in CHECKS.items():
        module = importlib.import_module(module_name)
        for name in names:
            *path, last = name.split(".")
            owner = module
            for part in path:
                owner = getattr(owner, part)
            setattr(owner, last, clock.timed(f"{module_name}.{name}", getattr(owner, last)))


def main(words):
    clock = Clock()
    wrap(clock)
    command_line = importlib.import_module("detap.cli")
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        status = command_line.main(words)
    if status:
        raise SystemExit(status)
    print(json.dumps({"seconds": sum(clock.spent.values()), "functions": clock.spent}))


main(sys.argv[1:])
