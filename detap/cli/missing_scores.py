"""Options of ``detap eval`` that detections without scores cannot have."""

from collections.abc import Mapping
from typing import Any

from detap import metrics
from detap.cli.gates import Gates
from detap.evaluation.unscored import needs_scores
from detap.gates.config import RULES
from detap.protocols import Protocol
from detap.report.sections import SECTIONS
from detap.tables.detection import Detections

_OUTPUTS = ("curves", "plots", "tie_range", "cross_check", "baseline_score_threshold")


def check_scores(
    detections: Detections, protocol: Protocol, gates: Gates, options: Mapping[str, Any]
) -> None:
    """Raise UsageError for the first option that needs scores of detections without."""
    if detections.missing_scores == "area":
        return
    keys = [section.key for section in SECTIONS if section.needs_scores]
    for key in (*keys, *_OUTPUTS):
        if options.get(key) not in (None, False):
            raise needs_scores(f"--{key.replace('_', '-')}", detections, "leave it out")
    unscored = protocol.without_scores()
    for limit in gates.config.limits:
        name = "" if limit.name is None else limit.name
        if _ends_with_metric(protocol, name) and not _ends_with_metric(unscored, name):
            option = f"--{RULES[limit.kind].option.replace('_', '-')} {name}"
            raise needs_scores(option, detections, "gate on F1")


def _ends_with_metric(protocol: Protocol, name: str) -> bool:
    """Return True if a gate's name is a metric, or ends with a dot and a metric."""
    parts = name.split(".")
    ends = (".".join(parts[first:]) for first in range(len(parts)))
    return any(metrics.metric_named(protocol, end) is not None for end in ends)
