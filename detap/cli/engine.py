"""``detap eval --engine``: evaluate inputs on workers."""

import os
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from detap.cli.inputs import Evaluated, Inputs, Tables, selected
from detap.cli.session import Session
from detap.engines.dask import Engine
from detap.engines.evaluation import evaluate
from detap.formats.multi_file import LocatedInput
from detap.protocols import Protocol


def evaluate_on_workers(
    inputs: Inputs, protocol: Protocol, options: Mapping[str, Any], session: Session
) -> Evaluated:
    """Evaluate each input on a worker, and then the classes."""
    session.start_progress("Evaluating")
    ground_truth = inputs.read_ground_truth(inputs.gt)
    folder = "" if options["scheduler"] is None else os.getcwd()
    with closing(Engine(options["scheduler"])) as engine:
        result, detections = evaluate(
            engine,
            [
                LocatedInput(inputs.format_of(path).name, path, folder, inputs.reading)
                for path in inputs.dt
            ],
            ground_truth,
            protocol,
            select=lambda detections: selected(ground_truth, detections, options),
            read=lambda: inputs.read_detections(inputs.dt, ground_truth),
            threads=options["threads"],
        )
    session.print_time("evaluating")
    return Evaluated(result, Tables(ground_truth, detections))
