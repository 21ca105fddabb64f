"""The gates as GitHub annotations: one workflow command per line.

GitHub shows at most 10 errors, 10 warnings and 10 notices of a step; the last one gives the number
of the others. See "Workflow commands for GitHub Actions" in GitHub's documentation.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from detap.errors import OutputError
from detap.escaping import escape
from detap.report.checks import checks_of
from detap.report.model import Report
from detap.report.numbers import fraction
from detap.report.writers.markdown import render as render_markdown
from detap.report.writers.registry import Style

MOST_ANNOTATIONS = 10
SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
MOST_SUMMARY = 1024 * 1024  # bytes that GitHub takes of a step
MOST_TITLE = 200
MOST_MESSAGE = 4000

_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_DATA = str.maketrans(_DATA)
_IN_PROPERTY = str.maketrans({**_DATA, ":": "%3A", ",": "%2C"})


def render(report: Report, style: Style) -> str:
    """Return an error per failed gate, a warning per gate that warns and per note, and a notice."""
    checks = checks_of(report)
    errors = [(check["name"], check["message"]) for check in checks.failed]
    warnings = [(check["name"], check["message"]) for check in checks.warned]
    for note in report.notes:
        if note.severity == "warning":
            count = f" ({note.count})" if note.count > 1 else ""
            warnings.append((note.code, note.message + count))
    numbers = ", ".join(f"{name} {fraction(value, 4)}" for name, value in report.summary.items())
    notice = "; ".join(part for part in (checks.conclusion, numbers) if part)
    lines = [
        *_annotations("error", errors),
        *_annotations("warning", warnings),
        *_annotations("notice", [("detap", notice)]),
    ]
    return "".join(f"{line}\n" for line in lines)


def _annotations(kind: str, messages: Sequence[tuple[str, str]]) -> list[str]:
    if len(messages) > MOST_ANNOTATIONS:
        remaining = len(messages) - MOST_ANNOTATIONS + 1
        more = ("more", f"{remaining} more in the report")
        messages = [*messages[: MOST_ANNOTATIONS - 1], more]
    return [annotation(kind, title, message) for title, message in messages]


def annotation(kind: str, title: str, message: str) -> str:
    """Return a workflow command, with both texts escaped."""
    title = _cut(escape(title), MOST_TITLE).translate(_IN_PROPERTY)
    message = _cut(escape(message), MOST_MESSAGE).translate(_IN_DATA)
    return f"::{kind} title=detap%3A {title}::{message}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def append_summary(report: Report, style: Style) -> None:
    """Append the report as Markdown to the step summary, if GitHub asks for one."""
    path = os.environ.get(SUMMARY_VARIABLE)
    if not path:
        return
    data = render_markdown(report, style).encode()
    try:
        with Path(path).open("ab") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise OutputError(f"${SUMMARY_VARIABLE}: {escape(path)} is not a regular file")
            # The report, or at least its first line, if it fits.
            for text in (data, data.partition(b"\n")[0] + b"\n"):
                if status.st_size + len(text) <= MOST_SUMMARY:
                    file.write(text)
                    break
    except OSError as error:
        reason = f"{escape(path)}: cannot be written: {error.strerror}"
        raise OutputError(f"${SUMMARY_VARIABLE}: {reason}") from error
