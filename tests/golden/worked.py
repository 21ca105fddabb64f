"""The tables of numbers worked by hand in fixtures/*/why.md."""

import ast
import operator
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLUMNS = ["files", "options", "number", "worked", "value"]
UNDEFINED = "undefined"
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Worked:
    """A number that was worked out by hand."""

    case: str
    files: str
    options: tuple[str, ...]
    number: str
    worked: str
    value: str

    @property
    def expected(self) -> float | None:
        """The value at full precision; None if undefined."""
        if self.value == UNDEFINED:
            return None
        return calculate(self.worked) if self.worked else float(self.value)

    def arguments(self, fixtures: Path) -> list[str]:
        """Return the arguments of `detap eval`."""
        kind, *variant = self.files.split()
        suffix = "".join(f"-{word}" for word in variant)
        folder = fixtures / self.case / kind
        if kind == "voc":
            truth, detections = folder / "Annotations", folder / f"detections{suffix}"
        elif kind == "kitti":
            truth, detections = folder / "label_2", folder / "results"
        else:
            truth, detections = folder / "instances.json", folder / f"results{suffix}.json"
        return ["--format", kind, "--gt", str(truth), "--dt", str(detections), *self.options]


def number_of(report: dict[str, Any], name: str) -> Any:
    """Return a number of the summary, or, as class/key or query/key, of a row."""
    if "/" not in name:
        return report["summary"][name]
    label, key = name.rsplit("/", 1)
    table = report["queries" if report["kind"] == "retrieval" else "classes"]
    return {row["name"]: row for row in table}[label][key]


def calculate(text: str) -> float:
    """Return the value of an expression of numbers, + - *
    and parentheses.
    """

    def walk(node: ast.expr) -> float:
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](walk(node.left), walk(node.right))
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return node.value
        raise ValueError(f"{text!r} is more than arithmetic")

    return walk(ast.parse(text, mode="eval").body)


def table_rows(fixtures: Path, cases: str, columns: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the case and the cells of every row of each table with these columns in a why.md."""
    for why in sorted(fixtures.glob(f"{cases}/why.md")):
        expected = False
        for line in why.read_text(encoding="utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if not line.startswith("|"):
                expected = False
            elif cells == columns:
                expected = True
            elif expected and not set(line) <= set("|- "):
                yield why.parent.name, cells


def read(fixtures: Path) -> list[Worked]:
    """Return every worked number of every case."""
    return [
        Worked(case, files, tuple(shlex.split(options)), number, worked, value)
        for case, (files, options, number, worked, value) in table_rows(fixtures, "*", COLUMNS)
    ]
