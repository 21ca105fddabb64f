"""Options of ``detap eval`` that no engine serves; imports no engine."""

from collections.abc import Mapping
from typing import Any

from detap import metrics
from detap.cli.gates import Gates
from detap.cli.inputs import Inputs
from detap.cli.output import Outputs
from detap.errors import UsageError
from detap.io.paths import STDIN
from detap.protocols import Protocol
from detap.report.sections import SECTIONS


def check_engine_options(
    inputs: Inputs, setup: tuple[Protocol, Gates], outputs: Outputs, options: Mapping[str, Any]
) -> None:
    """Raise UsageError for the first option that needs all boxes in one process."""
    protocol, gates = setup
    names = ("all_analyses", "plots", "matches", "cross_check", "curves", "tie_range")
    keys = [*(section.key for section in SECTIONS), *names]
    flags = {"all_analyses": "--analysis"}
    given: dict[str, Any] = {
        flags.get(key, f"--{key.replace('_', '-')}"): options.get(key) not in (None, False)
        for key in keys
    }
    given |= {
        "--baseline-detections": gates.baseline_detections,
        "--confidence": gates.config.confidence,
        "--detectable-drop": gates.config.detectable_drop,
        "--slices": gates.slices,
        "--slice-by": gates.slice_by,
        "a gate of a score threshold": gates.needs_match_table,
        "--classes with --class-agnostic": options["classes"] and protocol.class_agnostic,
        "--merge-images": inputs.merge_images,
        "--class-map": inputs.class_map is not None,
        "the report page": outputs.needs_page_source,
    }
    specs = (*metrics.summary(protocol), *metrics.columns(protocol))
    given |= {f"the metric {spec.name}": spec.metric.accumulated is None for spec in specs}
    for name, is_given in given.items():
        if is_given:
            raise UsageError(f"{name} needs all boxes in one process; remove --engine")
    if STDIN in inputs.dt:
        raise UsageError("--engine cannot read from stdin, because inputs may be read again")
