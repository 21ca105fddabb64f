"""JSON and CSV, and the registry of formats."""

import csv
import json
from dataclasses import replace
from io import StringIO

import jsonschema
import pytest

from detap.report import schema
from detap.report.model import Column
from detap.report.writers import csv as csv_writer
from detap.report.writers import json as json_writer
from detap.report.writers import latex
from detap.report.writers.registry import Style, writer_for_path
from tests.report.reports import report, row


@pytest.mark.parametrize("key", ["summary", "classes", "signature", "inputs", "notes"])
def test_the_schema_rejects_invalid_reports(key: str) -> None:
    record = json_writer.as_dict(report(row("cat")))
    del record[key]
    with pytest.raises(jsonschema.ValidationError, match=f"'{key}' is a required property"):
        jsonschema.Draft202012Validator(schema()).validate(record)


def test_json_is_ascii_whatever_the_names() -> None:
    text = json_writer.render(report(row("猫\x1b\u202e\x7f")), Style())
    assert text.isascii()
    assert "\x1b" not in text
    assert "\x7f" not in text
    assert json.loads(text)["classes"][0]["name"] == "猫\x1b\u202e\x7f"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("=1+1", "'=1+1"),
        ("+a", "'+a"),
        ("-a", "'-a"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("'a", "''a"),
        ("\uff1d1", "'\uff1d1"),
        ("\t=1", "\\x09=1"),
        ("a=1", "a=1"),
        ('a,"b"', 'a,"b"'),
    ],
)
def test_names_are_not_spreadsheet_formulas(name: str, field: str) -> None:
    text = csv_writer.render(report(row(name)), Style())
    assert next(csv.DictReader(StringIO(text)))["name"] == field


def test_latex_escapes_the_headings_of_the_summary() -> None:
    column = Column("interval", "95% CI", "95% CI", "text")
    with_intervals = replace(report(), param_columns=(column,), params={"AP": ("[0.4, 0.6]",)})
    made = replace(with_intervals, summary={"AP": 0.5})
    assert "metric & value & 95\\% CI \\\\\n" in latex.render(made, Style())


def test_a_report_without_rows_has_only_headings() -> None:
    assert csv_writer.render(report(), Style()).startswith("name,AP,AP50,")


@pytest.mark.parametrize(
    ("path", "name"),
    [("a.json", "json"), ("b/c.CSV", "csv"), ("x.txt", "table"), ("x", None), ("json", None)],
)
def test_the_extension_selects_the_format(path: str, name: str | None) -> None:
    writer = writer_for_path(path)
    assert (writer and writer.name) == name
