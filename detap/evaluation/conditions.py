"""Evaluate the conditions of a protocol on ground truths and detections."""

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from detap.errors import InputError, Problem, UsageError
from detap.protocols import Protocol, conditions
from detap.tables.detection import Detections, Flags, Floats, GroundTruth
from detap.text_input import suggest

Column = NDArray[Any]
"""Numbers (n,) float64, NaN if missing; or text (n,), empty if missing."""

_OPERATORS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

_DECIMALS = 9
"""Of widths and heights: the difference of two corners differs from the file's width in the last
bits, which decide whether it is below a limit."""


def ignored_by_condition(ground_truth: GroundTruth, protocol: Protocol) -> Flags:
    """Flag the ground truths for which the protocol's `ignore_where` holds, (G,)."""
    if not protocol.ignore_where or not len(ground_truth):
        return np.zeros(len(ground_truth), np.bool_)
    boxes = _box_columns(ground_truth.corners, protocol) | {"area": ground_truth.area}
    flags = {name: ground_truth.marked(name) for name in ("crowd", "difficult", "ignore")}
    known = boxes | {name: flag.astype(np.float64) for name, flag in flags.items()}
    for name, values in ground_truth.extra.items():  # those of the box where the file has none
        fills = name in boxes and values.dtype.kind != "U"
        known[name] = np.where(np.isnan(values), boxes[name], values) if fills else values

    def column(name: str) -> Column:
        values = _known(known, name, "ignore_where", of_truth=True)
        missing = values == "" if values.dtype.kind == "U" else np.isnan(values)
        if missing.any():
            row = int(missing.argmax())
            image = ground_truth.images[ground_truth.image[row]]
            class_name = ground_truth.classes[ground_truth.label[row]]
            counts = f"{np.count_nonzero(missing)} of {len(ground_truth)}"
            message = f"a ground truth of class {class_name!r} has no attribute {name!r}, as "
            hint = "correct --ignore-where, or add the attribute"
            raise InputError(Problem(ground_truth.path, f"image {image!r}", message + counts, hint))
        return values

    return _holds(protocol.ignore_where, column)


def dropped_by_condition(detections: Detections, protocol: Protocol) -> Flags:
    """Flag the detections for which the protocol's `drop_where` holds, (N,)."""
    if not protocol.drop_where or not len(detections):
        return np.zeros(len(detections), np.bool_)
    known: dict[str, Column] = _box_columns(detections.corners, protocol)
    known |= {"area": detections.box_area, "score": detections.score}
    return _holds(protocol.drop_where, lambda name: _known(known, name, "drop_where"))


def _box_columns(corners: Floats, protocol: Protocol) -> dict[str, Column]:
    sides = np.round(corners[:, 2:] - corners[:, :2], _DECIMALS) + protocol.inclusive_pixels
    columns = dict(zip(("x1", "y1", "x2", "y2"), corners.T, strict=True))
    return columns | {"width": sides[:, 0], "height": sides[:, 1]}


def _known(known: dict[str, Column], name: str, field: str, *, of_truth: bool = False) -> Column:
    if name in known:
        return known[name]
    hint = suggest(name, known) or f"choose from {', '.join(known)}"
    if of_truth:
        hint += (
            f"; or read it: attributes=[{name!r}] of read_ground_truth, extra= of "
            "GroundTruth.from_arrays"
        )
    rows = "the ground truth has" if of_truth else "detections have"
    raise UsageError(f"{field}: {rows} no attribute {name!r}; {hint}")


def _holds(text: str, column: Callable[[str], Column]) -> Flags:
    """Evaluate a condition; `column` returns the values of an attribute."""

    def value(node: ast.expr) -> Any:
        return column(node.id) if isinstance(node, ast.Name) else ast.literal_eval(node)

    def compared(comparison: ast.cmpop, left: ast.expr, right: ast.expr) -> Any:
        values = value(left), value(right)
        if _is_text(values[0]) != _is_text(values[1]):
            raise UsageError(
                f"condition {text!r}: {ast.unparse(left)} is "
                f"{'text' if _is_text(values[0]) else 'a number'}, {ast.unparse(right)} is not"
            )
        return _OPERATORS[type(comparison)](*values)

    def holds(node: ast.expr) -> Any:
        if isinstance(node, ast.BoolOp):
            combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return combine.reduce([holds(part) for part in node.values])
        if isinstance(node, ast.UnaryOp):
            return ~holds(node.operand)
        assert isinstance(node, ast.Compare)
        sides = [node.left, *node.comparators]
        pairs = zip(node.ops, sides[:-1], sides[1:], strict=True)
        return np.logical_and.reduce([compared(*pair) for pair in pairs])

    return np.asarray(holds(conditions.parse(text)), np.bool_)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype.kind == "U")
