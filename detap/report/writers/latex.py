r"""The tables of the report in LaTeX, for ``\usepackage{booktabs}``; names are escaped.

The best value of a column is bold where the table emphasizes it.
"""

from detap.escaping import escape
from detap.report.model import Report, Table
from detap.report.numbers import UNDEFINED, grid_of, summary_table
from detap.report.writers.registry import Style

_ESCAPED = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\char34{}",  # other commands for it need an encoding
        "[": "{[}",  # else the argument of \\ or \midrule before it, as is *
        "*": "{*}",
    }
)


def render(report: Report, style: Style) -> str:
    """Return a ``tabular`` for the summary and for each table."""
    parts = [f"% {escape(report.signature)}"] if report.signature else []
    if report.summary:
        parts.append(_tabular(summary_table(report)))
    if report.table.rows:
        parts.append(_tabular(report.table, report.title))
    parts += [_tabular(b.table, b.title, *b.lines) for b in report.blocks if b.table]
    return "\n\n".join(parts) + "\n"


def _tabular(table: Table, *comments: str) -> str:
    """Return a table after its title and its lines, such as the number of hidden rows."""
    grid = grid_of(table, _words, _strong)
    lines = [f"% {escape(text)}" for text in comments if text]
    sides = "".join(side[0] for side in grid.sides)
    head = " & ".join(grid.headings) + r" \\"
    rows = [" & ".join(map(_number, row)) + r" \\" for row in grid.rows]
    lines += [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", head, r"\midrule", *rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _number(text: str) -> str:
    """Return the text of a cell, with the sign of a number as a minus."""
    is_signed = text[:1] in "+-" and text[1:2].isdigit()
    return f"${text}$" if is_signed else text.replace(UNDEFINED, "--")


def _strong(text: str) -> str:
    return rf"$\mathbf{{{text}}}$" if text[:1] in "+-" else rf"\textbf{{{text}}}"


def _words(text: str, kind: str) -> str:
    escaped = escape(text).translate(_ESCAPED)
    return escaped.replace("--", "-{}-").replace(UNDEFINED, "--")  # -- is a dash
