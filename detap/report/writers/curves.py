"""Curves as a JSON or CSV file."""

from os.path import splitext

from detap._version import __version__
from detap.errors import UsageError
from detap.escaping import escape
from detap.report.sections.curves import Curves
from detap.report.writers import csv, json


def check_extension(path: str) -> None:
    """Raise UsageError unless the file name ends in .json or .csv."""
    if splitext(path)[1].lower() not in (".json", ".csv"):
        raise UsageError(f"--curves {escape(path)}: use a file name that ends in .json or .csv")


def render(curves: Curves, path: str) -> str:
    """Return the curves in the format of the file name."""
    if splitext(path)[1].lower() == ".csv":
        return csv.write(curves.headings, curves.rows)
    record = {
        "schema_version": json.SCHEMA_VERSION,
        "detap_version": __version__,
        "signature": curves.signature,
        curves.key: curves.records,
    }
    return json.dump(record, indent=curves.indent)
