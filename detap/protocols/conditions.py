"""Conditions on the attributes of objects: ``height<50 or vis_ratio<0.65``.

The grammar is Python's, without anything but comparisons, ``and``, ``or``, ``not``, parentheses,
attributes, numbers and quoted strings. A condition is parsed, never executed.
"""

import ast
import warnings

MAX_LENGTH = 1000
"""Maximum number of characters: longer ones could exhaust the parser's stack."""

_EXAMPLE = "write comparisons such as: height<50 or vis_ratio<0.65"
_EQUALITY = ast.Eq, ast.NotEq
_ORDER = ast.Lt, ast.LtE, ast.Gt, ast.GtE


def parse(text: str) -> ast.expr:
    """Return the tree of a condition, or raise ValueError if it is invalid."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a condition has at most {MAX_LENGTH} characters, this one {len(text)}")
    if "|" in text or "\\" in text:
        raise ValueError(f"{text!r} contains | or \\, which a condition cannot have")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own, on comparisons that are refused below
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError(f"{text!r} is not a condition; {_EXAMPLE}") from None
    return _checked(tree)


def canonical(text: str) -> str:
    """Return the condition with Python's usual spaces."""
    return ast.unparse(parse(text))


def names(text: str) -> tuple[str, ...]:
    """Return the attributes that a valid condition uses, in order."""
    nodes = [node for node in ast.walk(parse(text)) if isinstance(node, ast.Name)]
    nodes.sort(key=lambda node: node.col_offset)
    return tuple(dict.fromkeys(node.id for node in nodes))


def _checked(node: ast.expr) -> ast.expr:
    """Return a tree of allowed nodes, with negative numbers as constants."""
    if isinstance(node, ast.BoolOp):
        node.values = [*map(_checked, node.values)]
        return node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node.operand = _checked(node.operand)
        return node
    if not isinstance(node, ast.Compare):
        raise ValueError(f"{ast.unparse(node)!r} is not a comparison; {_EXAMPLE}")
    operands = [_operand(operand) for operand in (node.left, *node.comparators)]
    node.left, node.comparators = operands[0], operands[1:]
    text = any(isinstance(o, ast.Constant) and isinstance(o.value, str) for o in operands)
    for operator in node.ops:
        if not isinstance(operator, _EQUALITY + (() if text else _ORDER)):
            expected = "== or !=" if text else "<, <=, >, >=, == or !="
            raise ValueError(f"{ast.unparse(node)!r}: compare {'text ' * text}with {expected}")
    if not any(isinstance(operand, ast.Name) for operand in operands):
        raise ValueError(f"{ast.unparse(node)!r} compares no attribute; {_EXAMPLE}")
    return node


def _operand(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign, number = (-1 if isinstance(node.op, ast.USub) else 1), node.operand
        if isinstance(number, ast.Constant) and isinstance(number.value, int | float):
            return ast.Constant(sign * number.value)
    if isinstance(node, ast.Name):
        return node
    if isinstance(node, ast.Constant) and type(node.value) in (str, int, float):
        return node
    raise ValueError(
        f"{ast.unparse(node)!r} is not an attribute, a number or a quoted string; {_EXAMPLE}"
    )
