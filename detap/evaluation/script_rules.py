"""Compare miss rates by the rules of published scripts with those without them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from detap import metrics
from detap.errors import Note
from detap.evaluation.results import Result, result_of
from detap.evaluation.run import EvaluationRun
from detap.protocols import Protocol


def without_script_rules(protocol: Protocol) -> Protocol:
    """Return the protocol with the defaults of the rules that lower miss rates."""
    changes: dict[str, Any] = {}
    if protocol.mr_rule == "at-most-or-last":
        changes["mr_rule"] = Protocol.mr_rule
    if protocol.matching == "by-score":
        changes["empty_images"] = Protocol.empty_images
    return replace(protocol, **changes)


def script_notes(result: Result) -> Iterator[Note]:
    """Note the listed miss rates that the script's rules change."""
    protocol, plain = result.protocol, without_script_rules(result.protocol)
    specs = [spec for spec in metrics.summary(protocol) if "mr_rule" in spec.metric.fields]
    if plain == protocol or not specs:
        return
    other = replace(result, protocol=plain)
    if plain.empty_images != protocol.empty_images:
        other = _rescored(result, plain)
    values = {spec.name: (result.metric(spec.name), other.metric(spec.name)) for spec in specs}
    differing = [
        f"{name} is {by_script:.4f} by the rules of the script, {value:.4f} without them"
        for name, (by_script, value) in values.items()
        if repr(by_script) != repr(value)
    ]
    if differing:
        yield Note("script-rules", f"{'; '.join(differing)} ({_changed(protocol, plain)})")


def _rescored(result: Result, protocol: Protocol) -> Result:
    """Return the result of another protocol, of the same classes."""
    tables = result.ground_truth, result.detections
    run = EvaluationRun(*tables, protocol, result._run.threads, prepared=True)
    scores = run.evaluate()
    if result.full is None:
        return result_of(run, protocol, run.classes, scores, ())
    from detap.evaluation.selection import SelectedClasses

    labels = [run.classes.index(name) for name in result.classes]
    selected = SelectedClasses(run, labels)
    return result_of(selected, protocol, selected.classes, scores.select_classes(labels), ())


def _changed(protocol: Protocol, plain: Protocol) -> str:
    """Return the options that undo the rules."""
    names = ("empty_images", "mr_rule")
    return " ".join(
        f"--{name.replace('_', '-')} {getattr(plain, name)}"
        for name in names
        if getattr(plain, name) != getattr(protocol, name)
    )
