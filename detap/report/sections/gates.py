"""The gates of a report, and the classes and images behind those that did not pass."""

from collections.abc import Sequence

from detap.analysis.comparison import KINDS, LABELS
from detap.decimals import nearly_equal
from detap.escaping import escape
from detap.gates.checks import Gate, GateStatus
from detap.gates.config import Kind
from detap.gates.evaluate import GateResults
from detap.gates.regressions import Regressions
from detap.report.checks import KEY, MARKS, Checks, shortened
from detap.report.fields import Count, Object, each, field, list_of
from detap.report.model import Block
from detap.report.numbers import change
from detap.report.sections.power import power_block

GateEntry = Object(
    "GateEntry",
    kind=Kind,
    name=field(str, "The metric's full name: AP50, class:person.AP, slice:night.AP50."),
    status=field(GateStatus, "undefined fails too; the last two are warnings."),
    value=float | None,
    limit=field(str, "As given."),
    baseline=field(float | None, "Null for a minimum or maximum, or if undefined."),
    drop=field(float | None, "Negative if the metric rose."),
    interval=field(
        list[float | None] | None,
        "Of the drop; of the metric with a minimum or maximum.",
        minItems=2,
        maxItems=2,
    ),
    confidence=float | None,
    ground_truths=field(int | None, "Of the metric's class, area range, slice or class group."),
    message=str,
)

GatesData = Object(
    "GatesData",
    passed=field(bool, "True if no gate failed."),
    **each(Count, "failed", "warned"),
    checks=list_of(GateEntry),
)


def gate_block(gates: Sequence[Gate]) -> Block:
    """Return the gates block, failed gates first."""
    order = {"FAILED": 0, "warning": 1, "passed": 2}
    ranked = sorted(gates, key=lambda gate: order[MARKS[gate.status]])
    checks = Checks([GateEntry(gate) for gate in ranked])
    shown = shortened(checks.all)
    results = [(MARKS[check["status"]], check["message"]) for check in shown]
    if len(shown) < len(ranked):
        results.append(("passed", f"{len(ranked) - len(shown)} more"))
    return Block(
        key=KEY,
        title=f"Gates: {checks.conclusion.replace(' gates', '')}",
        data={
            "passed": not checks.failed,
            "failed": len(checks.failed),
            "warned": len(checks.warned),
            "checks": checks.all,
        },
        lines=tuple(f"{mark:<7}  {message}" for mark, message in results),
        verdicts=tuple(mark.lower() for mark, _ in results),
    )


def gate_blocks(results: GateResults) -> tuple[Block, ...]:
    """Return the blocks of gates, regressions and power."""
    blocks = [gate_block(results.gates)] if results.gates else []
    if results.regressions is not None:
        blocks.append(regressions_block(results.regressions))
    if results.power is not None:
        blocks.append(power_block(results.power))
    return tuple(blocks)


# --- regressions

DropAt = Object("DropAt", **each(float, "iou", "drop"))

LocalizationDrop = Object("LocalizationDrop", **each(DropAt, "lowest", "worst"))

RegressedClass = Object(
    "RegressedClass",
    "The AP of a class, now and in the baseline; F1 of detections without scores.",
    name=str,
    **each(field(float | None, required=False), "AP", "F1"),
    baseline=float | None,
    ground_truths=Count,
)

ImageErrorRow = Object("ImageErrorRow", name=str | int, **each(int, "errors", *KINDS))

RegressionsData = Object(
    "RegressionsData",
    "The classes and images behind gates that did not pass.",
    slice=field(str | None, "The slice, if all of these gates are about one."),
    classes=field(list_of(RegressedClass), "Of the largest drops; else of the lowest AP."),
    localization_regression=field(
        LocalizationDrop, "The drop of AP by IoU threshold, if mostly at high IoU.", null=True
    ),
    images=field(
        list_of(ImageErrorRow),
        "Of the most (or most additional) errors, at the threshold of localization_regression.",
    ),
    images_compared=field(bool, "True if the images are compared with an earlier detector."),
)


def regressions_block(regressions: Regressions) -> Block:
    """Return the regressions as a block."""
    localization = regressions.localization
    at_iou = "" if localization is None else f" at IoU {localization['worst']['iou']:.6g}"
    data = RegressionsData(regressions, localization_regression=localization)
    lines = []
    for row in regressions.classes:
        metric = "AP" if "AP" in row else "F1"
        before = "" if row["baseline"] is None else f"{row['baseline']:.4f} -> "
        value = f"{metric} {before}{row[metric]:.4f}"
        lines.append(f"class {row['name']}: {value} ({row['ground_truths']} ground truths)")
    if localization is not None:
        lowest, worst = localization["lowest"], localization["worst"]
        at_low = change(abs(lowest["drop"]), 4).removeprefix("+")
        if nearly_equal(lowest["drop"], 0.0):
            at_low = "unchanged"
        elif lowest["drop"] < 0:
            at_low = f"rose {at_low}"
        at_worst = f"dropped {worst['drop']:.4f}{at_iou}"
        lines.append(f"localization: AP {at_worst}, {at_low} at IoU {lowest['iou']:.6g}")
    more = regressions.images_compared
    for row in regressions.images:
        counts = [(kind, row[kind]) for kind in KINDS if more or row[kind] > 0]
        counts.sort(key=lambda item: item[1] < 0)
        parts = [f"{count:{'+' * more}d} {LABELS[kind]}" for kind, count in counts if count]
        lines.append(f"image {row['name']}: {', '.join(parts)}{at_iou}")
    if regressions.images_compared:
        title = "Regressions"
    elif regressions.classes and regressions.baseline:
        title = "Regressions and worst images"
    else:
        title = "Worst classes and images"
    title += "" if regressions.slice is None else f", in slice {escape(regressions.slice)}"
    return Block("regressions", title, data, tuple(lines))
